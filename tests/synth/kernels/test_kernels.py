"""Kernels give the same bits compiled and as plain Python, and nobody waits for a compiler in vain."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_twice import both, import_all

from synth import kernels
from synth.clock import start_up_costs
from synth.clock.deadline import OutOfTime, stopping
from synth.kernels import KERNELS, Kernel, jit, mode

ROOT = Path(__file__).parents[3]


@jit
def draws(seed: int, count: int, high: int) -> Any:
    np.random.seed(seed)
    numbers = np.zeros(count, dtype=np.int64)
    for i in range(count):
        numbers[i] = np.random.randint(high) - np.random.randint(i + 1) + np.random.randint(-3, 3)
    shuffled = np.arange(count)
    np.random.shuffle(shuffled)
    return numbers, np.random.random(count), np.random.permutation(count), shuffled, np.random.random()


@jit
def drawn_on(count: int) -> Any:
    total = 0.0
    for _ in range(count):
        total += np.random.random()
    return total


@jit(wraps=True)
def wrapped(a: Any, b: int) -> Any:
    for i in range(len(a)):
        a[i] = a[i] * a[i] + b
    return a[0]


@jit
def overflows(a: Any) -> Any:
    for i in range(len(a)):
        a[i] = a[i] * a[i]
    return a[0]


@jit
def divided(a: Any, b: Any, x: Any, y: Any) -> Any:
    return a[0] // b[0], a[0] % b[0], x[0] / y[0], x[0] // y[0], x[0] % y[0], a[0] > b[0]


@jit
def sorted_by(key: Any) -> Any:
    return np.argsort(key), np.argsort(key, kind="mergesort")


@jit
def narrow(a: Any, b: Any) -> Any:
    return a[0] - 1, a[0] + b[0], b[0] * 3, a[0] * b[0], -b[0]


@jit
def _halved(x: int) -> int:
    return x // 2


@jit
def counted(a: Any, turns: int) -> int:
    total = 0
    for _ in range(turns):
        a[0] += 1
        total += a[0] % 7 + _halved(a[0])
    return total


@jit
def all_equal(a: Any, b: Any, turns: int) -> int:
    total = 0
    for _ in range(turns):
        total += np.array_equal(a, b)
    return total


@jit
def at(a: Any, i: int) -> Any:
    return a[i]


WORD = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False, allow_infinity=True, width=64)


@given(st.integers(0, 2**63 - 1), st.integers(0, 40), st.integers(1, 2**31) | st.integers(1, 9))
def test_random_numbers(seed: int, count: int, high: int) -> None:
    both(draws, seed, count, high)


@given(st.lists(WORD, min_size=1, max_size=4), WORD)
def test_overflow(words: list[int], more: int) -> None:
    both(wrapped, np.array(words, dtype=np.int64), more)
    both(overflows, np.array(words, dtype=np.int64))


@given(WORD, WORD, REAL, REAL)
def test_division(a: int, b: int, x: float, y: float) -> None:
    if a != -(2**63) or b != -1:  # undefined where compiled
        both(divided, np.array([a]), np.array([b]), np.array([x]), np.array([y]))


@pytest.mark.parametrize("kind", [np.float64, pytest.param(np.int64, marks=pytest.mark.slow)])
@given(keys=st.lists(st.integers(0, 9), max_size=60))
def test_ties_in_sorts(kind: type, keys: list[int]) -> None:
    both(sorted_by, np.array(keys, dtype=kind))


@pytest.mark.parametrize(("first", "second"), [(np.int8, np.int8), (np.uint8, np.int64), (np.int32, np.int8)])
def test_widths(first: type, second: type) -> None:
    for a in (0, 1, 100, 127):
        for b in (-128, -1, 0, 127):
            both(narrow, np.array([a], dtype=first), np.array([b], dtype=second))


def test_random_numbers_go_on_where_the_last_kernel_left_them() -> None:
    with mode("compiled"):
        draws(7, 3, 5)
        expected = [drawn_on(n) for n in (1, 700, 2)]
    with mode("plain"):
        draws(7, 3, 5)
    for n, total in zip((1, 700, 2), expected, strict=True):
        with mode("compiled" if n == 700 else "plain"):
            assert drawn_on(n) == total


def test_a_call_given_up_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the time a call may take, its result and its arguments are the compiled kernel's."""
    monkeypatch.setattr(start_up_costs, "plain_s", 1e9)
    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    a, turns = np.zeros(2, dtype=np.int64), 400_000
    kernel: Any = counted
    kernel._ready = None
    monkeypatch.setattr(kernel, "plain_s", 0.0)
    monkeypatch.setattr(kernels, "COMPILING_S", 0.02 / sum(len(k.function.__code__.co_code) for k in kernel.callees))
    start_up_costs.used = False
    with mode("compiled"):
        expected = counted(np.zeros(2, dtype=np.int64), turns)
    kernel._ready = None
    kernel.compiled.overloads.clear()
    start_up_costs.used = False
    assert counted(a, turns) == expected
    assert a[0] == turns
    assert start_up_costs.used


def test_what_another_kernel_calls_is_compiled_for_it_alone() -> None:
    """Without what Python would call, and not onto the disk: until Python calls it itself."""
    outer: Any = counted
    inner: Any = _halved
    for kernel in (outer, inner):
        kernel.compiled.overloads.clear()
        kernel.compiled._cache.flush()  # what another session has left on the disk
    with mode("compiled"):
        assert counted(np.zeros(2, dtype=np.int32), 3) == 8
        assert list(outer.missing()) == []
        assert list(inner.missing()) == [inner]
        assert _halved(9) == 4
    assert list(inner.missing()) == []


@pytest.mark.parametrize(("turns", "compiled"), [(100, False), (10**7, True)])
def test_a_large_call_is_compiled_if_plain_python_takes_long(
    monkeypatch: pytest.MonkeyPatch, turns: int, compiled: bool
) -> None:
    """Not because its arrays are large: one pass over them takes less than the compiler."""
    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    kernel: Any = counted
    monkeypatch.setattr(kernel, "_ready", None)
    monkeypatch.setattr(kernel, "plain_s", 0.0)
    kernel.signatures and kernel.compiled.overloads.clear()
    monkeypatch.setattr(kernels, "COMPILING_S", 1.0 / sum(len(k.function.__code__.co_code) for k in kernel.callees))
    a = np.zeros(kernels.MANY_ENTRIES + 1, dtype=np.int64)
    counted(a, turns)
    assert a[0] == turns
    assert (kernel._ready is not None) == compiled
    assert kernel.allowance_s((np.zeros(kernels.MOST_ENTRIES + 1),)) == 0.0


def test_an_exception_out_of_a_plain_call_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever Python may let a signal in, where a function begins or built-in code returns: no call is under way, no
    timer set, numpy's errors are as they were, and the next call is as good as any."""
    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    monkeypatch.setattr(start_up_costs, "plain_s", 1e9)
    monkeypatch.setattr(kernels, "COMPILING_S", 1e6)
    kernel: Any = counted
    monkeypatch.setattr(kernel, "_ready", None)
    before, points, past = np.geterr(), 0, 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal past
        past += event in ("call", "c_return")
        if past == points + 1 and event in ("call", "c_return"):
            past += 1
            sys.setprofile(None)
            raise OutOfTime

    ended = False
    while not ended:
        points, past = points + 1, 0
        a = np.zeros(2, dtype=np.int64)
        sys.setprofile(look)
        try:
            result = counted(a, 3)
            sys.setprofile(None)
            assert result == 8
            ended = True
        except OutOfTime:
            pass
        finally:
            sys.setprofile(None)
        assert kernels._Call.running is None
        assert start_up_costs.plain_since is None
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
        assert np.geterr() == before
    assert points > 20
    assert not kernel.signatures or kernel._ready is None


def test_a_call_may_be_given_up_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within what takes an exception for an answer, as ``np.array_equal`` does, or makes another of it."""
    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    monkeypatch.setattr(start_up_costs, "plain_s", 1e9)
    kernel: Any = all_equal
    a, points, past = np.arange(3, dtype=np.int64), 0, 0
    with mode("compiled"):
        assert all_equal(a, a, 2) == 2

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal past
        past += event == "call" and kernels._Call.running is not None
        if past == points + 1:
            past += 1
            sys.setprofile(None)
            monkeypatch.setattr(kernels, "COMPILING_S", 0.0)
            kernels._ring()

    given_up = True
    while given_up:
        points, past = points + 1, 0
        monkeypatch.setattr(kernels, "COMPILING_S", 1e6)
        monkeypatch.setattr(kernel, "_ready", None)
        kernel.compiled.overloads.clear()
        sys.setprofile(look)
        try:
            total = all_equal(a, a, 3)
        finally:
            sys.setprofile(None)
        assert total == 3, points
        given_up = kernel._ready is not None
    assert points > 8


@pytest.mark.parametrize("error", [TypeError, SystemError, None])
def test_what_compiled_code_makes_of_a_signal_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None
) -> None:
    """An error of its own, or nothing at all: the call has been given up, and the compiled kernel answers."""

    def plain(*_: object) -> int:
        try:
            monkeypatch.setattr(kernels, "COMPILING_S", 0.0)
            kernels._ring()
        except BaseException as signalled:
            if error is not None:
                raise error from signalled
        return -1

    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    monkeypatch.setattr(start_up_costs, "plain_s", 1e9)
    monkeypatch.setattr(kernels, "COMPILING_S", 1e6)
    kernel: Any = all_equal
    monkeypatch.setattr(kernel, "_ready", None)
    monkeypatch.setattr(kernel, "_plain", plain)
    kernel.signatures and kernel.compiled.overloads.clear()
    a = np.arange(3, dtype=np.int64)
    assert all_equal(a, a, 5) == 5


def test_a_signal_ends_a_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a real signal in the middle of the kernel, as a run's time limit sends it."""
    monkeypatch.setattr(Kernel, "is_on_disk", lambda *_: False)
    monkeypatch.setattr(start_up_costs, "plain_s", 1e9)
    monkeypatch.setattr(kernels, "COMPILING_S", 1e6)
    kernel: Any = counted
    monkeypatch.setattr(kernel, "_ready", None)
    a, end = np.zeros(2, dtype=np.int64), time.monotonic() + 0.02
    with pytest.raises(OutOfTime), stopping(lambda: end - time.monotonic()):
        counted(a, 10**9)
    assert a[0] > 0
    assert kernels._Call.running is None
    assert start_up_costs.plain_since is None
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert counted(np.zeros(2, dtype=np.int64), 3) == 8


def test_whoever_compiles_linear_algebra_has_it() -> None:
    """Here, in a program of somebody else's."""
    kernels._compiler()
    import numba

    product = numba.njit(lambda a, b: np.dot(a, b))
    assert product(np.arange(3.0), np.ones(3)) == 3.0


def test_unlike_lengths_are_an_error_and_no_strings_are_compiled() -> None:
    """The error's text is otherwise the compiler's longest work on such a line."""
    kernels._compiler()
    import numba
    from numba.core import event

    compiled: list[str] = []

    class Compiled(event.Listener):
        def on_start(self, event: Any) -> None: ...

        def on_end(self, event: Any) -> None:
            compiled.append(event.data["dispatcher"].py_func.__module__)

    def copied_over(a: Any, b: Any) -> None:
        a[:] = b

    copy = numba.njit(copied_over)  # not in the cache on disk
    with event.install_listener("numba:compile", Compiled()):
        copy(target := np.zeros(3), np.ones(3))
    assert target.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="different size"):
        copy(np.zeros(3), np.ones(2))
    assert __name__ in compiled
    assert not [module for module in compiled if "unicode" in module]


def test_out_of_bounds_is_an_error_in_plain_python() -> None:
    with mode("plain"), pytest.raises(IndexError):
        at(np.zeros(3), 3)


PURE = {
    "arange", "any", "argmax", "argmin", "argsort", "array", "array_equal", "bool_", "concatenate", "cumsum", "diff",
    "empty", "empty_like", "flatnonzero", "float64", "full", "iinfo", "inf", "int32", "int64", "int8", "maximum",
    "minimum", "ones", "random", "searchsorted", "sort", "sum", "uint64", "zeros",
}  # fmt: skip


def unlike(function: ast.FunctionDef) -> list[str]:
    """What stands in a function's body that is not the same in both."""
    found = []
    for part in (part for line in function.body for part in ast.walk(line)):
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "np" and part.attr not in PURE:
            found.append(ast.unparse(part))
        power = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow)
        if power and isinstance(part.right, ast.Constant) and not isinstance(part.left, ast.Constant):
            found.append(ast.unparse(part))
    return found


def lost_stores(function: ast.FunctionDef) -> list[str]:
    """Stores into a field of named state in a function with a comprehension. numba (0.68) inlines the comprehension and
    then takes such a store for dead code, unless the state is an argument."""
    nodes = list(ast.walk(function))
    if not any(isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) for node in nodes):
        return []
    given = {argument.arg for argument in function.args.args}
    return [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Attribute)
        and ast.unparse(node.value).partition(".")[0] not in given
    ]


@cache
def kernels_written() -> list[tuple[Path, ast.FunctionDef]]:
    """All functions in the packages' files that are made kernels, without an import."""
    return [
        (file, node)
        for folder in ("synth", "models/synth_models", "models/synth_peers")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "jit" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and "jit" in "".join(map(ast.unparse, node.decorator_list))
    ]


def test_kernels_use_only_what_is_the_same_in_both() -> None:
    """numpy's exp and log differ from numba's in their last bit (math's do not), as do powers by whole numbers."""
    functions = kernels_written()
    assert len(functions) > 200
    assert [(file.name, node.name, unlike(node)) for file, node in functions if unlike(node)] == []


def test_no_kernel_stores_where_numba_drops_it() -> None:
    """The rule finds the store that numba drops, and none in our kernels."""
    lost = "def f(n):\n    h = made(n)\n    events = [n for _ in range(0)]\n    h.near[0] += 7\n    return h, events"
    kept = "def f(n, h):\n    events = [n for _ in range(0)]\n    h.near[0] = 7\n    return events"
    parsed = [ast.parse(text).body[0] for text in (lost, kept)]
    assert [lost_stores(part) for part in parsed if isinstance(part, ast.FunctionDef)] == [["h.near[0]"], []]
    assert [(file.name, node.name, lost_stores(node)) for file, node in kernels_written() if lost_stores(node)] == []


TINY = """
import sys, synth
record = synth.solve(synth.read("instances/tour/equimesh-3x3.json"), "pull")
print(record.data["kernels"], synth.check(record).ok, "numba" in sys.modules)
"""


def test_a_tiny_question_imports_no_numba() -> None:
    ran = subprocess.run([sys.executable, "-c", TINY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["plain", "True", "False"]


FAMILIES = ("bine", "fabric", "harvest", "mlfm", "optree", "topology", "xtree")
DRIVERS = (
    "exchange",
    "synth/graph",
    "synth/schedule",
    *(f"models/{family}" for family in FAMILIES),
    "models/test_rare_kernels.py",
    "test_tour.py",
)


@pytest.mark.slow
def test_every_kernel_gives_the_same_bits_in_both(tmp_path: Path) -> None:
    """The tests of all families and of the toolkit's schedules, every call of a kernel made twice: all of them pass,
    all kernels ran in both ways, and no result, argument or random number differed."""
    ran, faults = set(), []
    for place in DRIVERS:
        file = tmp_path / "found.json"
        file.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--kernels-twice", str(file), f"tests/{place}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            faults.append(f"{place}: pytest ended with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
        if file.exists():
            ran |= {tuple(key) for key in json.loads(file.read_text())["kernels"]}
    assert faults == []
    import_all("synth", "synth_models", "synth_peers")
    every = {key for key in KERNELS if key[0].startswith("synth")}
    assert every - ran == set()
    assert len(every) == len(kernels_written())
