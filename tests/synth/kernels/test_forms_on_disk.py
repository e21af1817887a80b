"""Compiled forms on disk: who looks for them, and when they are out of date."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from synth import kernels

ROOT = Path(__file__).parents[3]

COUNTING = """
import sys
import numpy as np
from synth import kernels
from synth.kernels import jit

@jit
def count(a, turns):
    total = 0
    for _ in range(turns):
        a[0] += 1
        total += a[0] % 7
    return total

kernels.LOADING_S, kernels.COMPILING_S = 1e-3, 1e3
if "compile" in sys.argv:
    with kernels.mode("compiled"):
        count(np.zeros(2, dtype=np.float64 if "other" in sys.argv else np.int64), 3)
else:
    for _ in range(3):
        count(np.zeros(2, dtype=np.int64), 20_000)
print("numba" in sys.modules, bool(count.signatures), "scipy.linalg" in sys.modules)
"""


@pytest.mark.long
@pytest.mark.parametrize("place", ["beside the source", "NUMBA_CACHE_DIR", "the user's cache"])
def test_numba_is_imported_where_a_compiled_form_is_on_disk(tmp_path: Path, place: str) -> None:
    """And only there: a process that has been in plain Python for longer than loading takes looks for the file, and a
    form compiled for other types is none. Linear algebra, which no kernel needs, stays out of it."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "counting.py").write_text(COUNTING)
    environment = {key: word for key, word in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "XDG_CACHE_HOME": str(tmp_path / "user")}
    if place == "NUMBA_CACHE_DIR":
        environment[place] = str(tmp_path / "chosen")
    if place == "the user's cache":
        (folder / "__pycache__").write_text("no folder: nothing can be written there")

    def run(*words: str) -> list[str]:
        command = [sys.executable, "-c", "import counting", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.split()

    assert run() == ["False"] * 3
    assert not list(tmp_path.rglob("*.nb?"))
    if place == "beside the source":
        run("compile", "other")
        assert list(tmp_path.rglob("*.nbi"))
        assert run() == ["True", "False", "False"]
    run("compile")
    assert run() == ["True", "True", "False"]


CALLING = """
import sys
import numpy as np
from synth import kernels
from synth.kernels import jit
import called
from called import twice

@jit
def count(pair):
    return twice(pair.first) - pair.last

def main():
    with kernels.mode("compiled"):
        print(count(called.pair(3, 5)), sum(count.compiled.stats.cache_hits.values()))
"""
CALLED = """
from typing import NamedTuple
from synth.kernels import jit

class {name}(NamedTuple):
    {first}: int
    {last}: int

pair = {name}

TIMES = {times}

@jit
def twice(number):
    return number * TIMES{more}
"""
AS_IT_WAS = {"name": "Pair", "first": "first", "last": "last", "times": "2", "more": ""}


@pytest.mark.long
def test_a_compiled_form_is_not_kept_when_what_it_calls_changes(tmp_path: Path) -> None:
    """The file of the caller is the same each time: what was compiled before is compiled again. An index that cannot be
    read, because a class has another name, is none."""
    (tmp_path / "calling.py").write_text(CALLING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}

    def run(**changed: str) -> list[str]:
        (tmp_path / "called.py").write_text(CALLED.format(**{**AS_IT_WAS, **changed}))
        command = [sys.executable, "-B", "-c", "import calling; calling.main()"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.split()

    assert run() == ["1", "0"]
    assert run() == ["1", "1"]
    assert run(more=" + 1") == ["2", "0"]
    assert run(name="Couple", more=" + 1") == ["2", "0"]
    assert run(name="Couple", more=" + 1") == ["2", "1"]


def test_a_digest_tells_what_would_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a kernel in another file, a number there, the order of fields; and nothing else."""

    def digest(**changed: str) -> str:
        for name, text in (("called", CALLED.format(**{**AS_IT_WAS, **changed})), ("calling", CALLING)):
            module = types.ModuleType(name)
            monkeypatch.setitem(sys.modules, name, module)
            exec(text, vars(module))
        return str(module.count.linked)

    try:
        assert digest() == digest() == digest(more="  # as it was")
        changes = [{"more": " + 1"}, {"times": "4"}, {"first": "last", "last": "first"}]
        assert len({digest(), *(digest(**changed) for changed in changes)}) == 4
    finally:
        for name in ("twice", "count"):
            kernels.KERNELS.pop(("called" if name == "twice" else "calling", name))
