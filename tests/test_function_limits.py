"""Functions one can read: kernels and all others stay within their limits, in every file of the toolkit and the models.

ruff (C901, PLR09) knows no kernels, so this test is the authority: it counts lines, parameters and branches by AST.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TREES = ("synth", "models")
BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert)


class Size(NamedTuple):
    """What is counted of a function; as a limit, what it may have (None: any number)."""

    lines: int
    parameters: int
    branches: int | None


KERNEL = Size(lines=100, parameters=12, branches=None)  # a kernel cannot hand parts of its loops to others for nothing
MODULE = 460  # lines
OTHERS = Size(lines=60, parameters=7, branches=15)

# what a notebook calls: each of their keyword-only parameters has a default and is named where it is given
BY_KEYWORD = {("synth/api.py", "solve"), ("synth/study/run.py", "study"), ("synth/tables/comparison.py", "compare"),
              ("synth/schedule/moves.py", "send")}  # fmt: skip


class Function(NamedTuple):
    """A function of a file: where it is, whether it is a kernel, and its size."""

    name: str
    line: int
    kernel: bool
    size: Size

    @property
    def beyond(self) -> list[str]:
        """What is beyond the limits, as "70 lines (at most 60)"."""
        limits = KERNEL if self.kernel else OTHERS
        counted = zip(Size._fields, self.size, limits, strict=True)
        return [f"{has} {what} (at most {most})" for what, has, most in counted if most is not None and has > most]


def functions(text: str, by_keyword: Collection[str] = ()) -> Iterator[Function]:
    """Every function of a source text, also those within others. Of functions that are called ``by_keyword`` only the
    other parameters are counted."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            args = node.args
            named = [] if node.name in by_keyword else args.kwonlyargs
            parameters = [arg.arg for arg in (*args.posonlyargs, *args.args, *named)]
            of_self = parameters[:1] in (["self"], ["cls"])
            lines = node.end_lineno - node.lineno + 1
            yield Function(node.name, node.lineno, kernel(node), Size(lines, len(parameters) - of_self, branches(node)))


def kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is decorated with ``jit``, with or without options, of our module or of numba."""
    calls = [found.func if isinstance(found, ast.Call) else found for found in node.decorator_list]
    return any(getattr(found, "id", getattr(found, "attr", "")) in ("jit", "njit") for found in calls)


def branches(node: ast.AST) -> int:
    """One, and one for every branch, loop, handler, comprehension and each further term of a condition."""
    below = list(ast.walk(node))
    terms = sum(len(found.values) - 1 for found in below if isinstance(found, ast.BoolOp))
    return 1 + sum(isinstance(found, BRANCHES) for found in below) + terms


@cache
def beyond() -> list[tuple[str, str]]:
    """The file of each function beyond its limits, and a line that says so."""
    found = []
    for path in (path for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))):
        file = str(path.relative_to(ROOT))
        by_keyword = {name for of, name in BY_KEYWORD if of == file}
        for one in functions(path.read_text(encoding="utf-8"), by_keyword):
            if one.beyond:
                found.append((file, f"{file}:{one.line} {one.name}: {', '.join(one.beyond)}"))
    return found


def test_every_function_is_within_its_limits() -> None:
    assert [line for _, line in beyond()] == []


def test_no_module_is_too_long() -> None:
    """CONTRIBUTING.md names the number of lines."""
    long = {
        str(path.relative_to(ROOT)): lines
        for tree in ("synth", "models")
        for path in (ROOT / tree).rglob("*.py")
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MODULE
    }
    assert long == {}


def test_ruff_overlooks_only_what_has_limits_of_its_own() -> None:
    """Where pyproject.toml turns its counts off there is a kernel or a function called by keyword."""
    ignored = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    patterns = [
        pattern for pattern, rules in ignored.items() if any(rule.startswith(("C901", "PLR")) for rule in rules)
    ]
    by_keyword = {file for file, _ in BY_KEYWORD}

    def has_its_own(path: Path) -> bool:
        held = functions(path.read_text(encoding="utf-8"))
        return str(path.relative_to(ROOT)) in by_keyword or any(function.kernel for function in held)

    needless = [
        pattern
        for pattern in patterns
        if pattern.startswith(TREES) and not any(has_its_own(path) for path in files_of(pattern))
    ]
    assert needless == []


def files_of(pattern: str) -> list[Path]:
    folder = pattern.removesuffix("/*")
    return (
        sorted((ROOT / folder).rglob("*.py"))
        if folder != pattern
        else [path for path in [ROOT / pattern] if path.is_file()]
    )


def test_the_count_sees_every_kind_of_branch_and_parameter() -> None:
    """By hand: if, elif, and, or (two), for, while, with its comprehension and filter, else-expression, handler."""
    text = """
@jit(inlined=True)
def kernel(a, b, /, c, *rest, d=1, **named): pass

class Holder:
    async def method(self, a, *, b):
        if a and b: pass
        elif a or b or self: pass
        for x in a:
            while x: x = [y for y in a if y]
        try: return a if b else None
        except ValueError: assert a
"""
    kernel, method = functions(text)
    assert kernel == Function("kernel", 3, True, Size(1, 4, 1))
    assert method == Function("method", 6, False, Size(7, 2, 12))


def test_a_kernel_and_another_function_have_different_limits() -> None:
    eight = "def f(a, b, c, d, e, f, g, h): pass"
    assert [found.beyond for found in functions(eight)] == [["8 parameters (at most 7)"]]
    assert [found.beyond for found in functions(f"@jit\n{eight}\n@numba.njit(cache=True)\n{eight}")] == [[], []]
    long = "def f():\n" + "    if a: b\n" * 100
    assert [found.beyond for found in functions(long)] == [["101 lines (at most 60)", "101 branches (at most 15)"]]
    assert [found.beyond for found in functions(f"@jit\n{long}")] == [["101 lines (at most 100)"]]
