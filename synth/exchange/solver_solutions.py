"""Solution files of solvers: HiGHS, SCIP, Gurobi, MIPLIB (text) and CPLEX (XML), as values by the variables' names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from synth.errors import Fault, InputError
from synth.text.input_file import InputFile

MOST = 1e300
NO_POINT = re.compile(r"infeasible|unbounded|no (primal )?solution|not (available|found)|empty", re.IGNORECASE)
RAW = "write the solution in HiGHS's raw style (solution_style 0)"
STYLES = {  # HiGHS's others by their first lines: six digits, or no names
    "HiGHS's pretty style (1) prints six digits": re.compile(r"\AColumns\n\s*Index\s+Status\s+Lower"),
    "HiGHS's style 2 (GLPSOL, raw) names no variables": re.compile(r"\Ac Problem:.*\nc Rows:"),
    "HiGHS's style 3 (GLPSOL, pretty) prints six digits": re.compile(r"\AProblem:.*\nRows:"),
}
Value = tuple[int, str, str]  # line (0: none), name, text


@dataclass(frozen=True)
class Point:
    """The values of variables by name, and whose form the file has."""

    values: dict[str, float]
    form: str


def read(file: InputFile) -> Point:
    """The point in a solution file, told by its content. Raises :class:`InputError` naming the line for what is none,
    for a name that stands twice and for a value that is no finite number."""
    text = file.text
    form, rows = _form(text, file)
    values: dict[str, float] = {}
    for line, name, number in rows:
        where = f"line {line}" if line else name
        value = _number(number)
        if value is None:
            raise InputError([Fault(where, "must be a finite number", number, True)], str(file))
        if name in values:
            raise InputError([Fault(where, f"{name} stands twice")], str(file))
        values[name] = value
    if not values:
        raise InputError(f"holds no values ({form})", str(file))
    return Point(values, form)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= MOST else None


def _form(text: str, file: InputFile) -> tuple[str, Iterable[Value]]:
    head = text[:4000]
    if head.lstrip().startswith("<"):
        return "CPLEX", _cplex(file)
    if "# Primal solution values" in head or head.startswith("Model status"):
        return "HiGHS", _highs(text, file)
    if re.search(r"^(solution status|objective value):", head, re.MULTILINE):
        return "SCIP", _scip(text, file)
    if re.search(r"^# (Solution for model|Objective value)", head, re.MULTILINE):
        return "Gurobi", _plain(text, file)
    if re.match(r"\s*(=obj=|=infeas=|=unbd=|=unkn=)", head):
        return "MIPLIB", _miplib(text, file)
    for what, begins in STYLES.items():
        if begins.match(head.lstrip()):
            raise InputError([Fault("line 1", f"{what}: {RAW}")], str(file))
    forms = "HiGHS (raw style), SCIP, Gurobi, CPLEX or MIPLIB (=obj= and a name and a value a line)"
    raise InputError(f"is no solution file of {forms}", str(file))


def _highs(text: str, file: InputFile) -> Iterator[Value]:
    """``# Columns N``, then a name and a value a line, N times; what is behind (rows, duals) is left out."""
    lines = text.split("\n")
    if "# Primal solution values" in text and (status := _after(lines, "# Primal solution values")) != "Feasible":
        raise InputError(f"holds no feasible point: primal solution values {status or 'are missing'}", str(file))
    start = next((i for i, line in enumerate(lines) if re.fullmatch(r"# Columns \d{1,9}", line)), None)
    if start is None:
        raise InputError(f"has no section # Columns: {RAW}", str(file))
    count = int(lines[start].split()[2])
    yield from _pairs(lines[start + 1 : start + 1 + count], start + 2, file)
    if len(lines) < start + 1 + count:
        raise InputError(f"ends after {len(lines) - start - 1} of {count} columns", str(file))


def _after(lines: list[str], head: str) -> str | None:
    at = lines.index(head) if head in lines else len(lines)
    return lines[at + 1].strip() if at + 1 < len(lines) else None


def _scip(text: str, file: InputFile) -> Iterator[Value]:
    """``solution status:`` (where SCIP's shell wrote it), ``objective value:``, then name, value and ``(obj:…)``."""
    lines = text.split("\n")
    status = next((line for line in lines if line.startswith("solution status:")), "")
    if NO_POINT.search(status):
        raise InputError(f"holds no point: {status}", str(file))
    for number, line in enumerate(lines, 1):
        if line.startswith(("solution status:", "objective value:", "#", "primal solution", "===")) or not line.strip():
            continue
        yield from _pairs([re.sub(r"\(obj:[^)]*\)\s*$", "", line)], number, file)


def _plain(text: str, file: InputFile) -> Iterator[Value]:
    """A name and a value a line, remarks behind ``#``."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield from _pairs([line], number, file)


def _miplib(text: str, file: InputFile) -> Iterator[Value]:
    """``=obj=`` and the objective, then a name and a value a line; ``=infeas=`` and the like instead of a point."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith("="):
            if not line.split()[0] == "=obj=":
                raise InputError([Fault(f"line {number}", f"holds no point: {line.strip()[:60]}")], str(file))
        elif line.strip() and not line.startswith("#"):
            yield from _pairs([line], number, file)


def _pairs(lines: list[str], first: int, file: InputFile) -> Iterator[Value]:
    for number, line in enumerate(lines, first):
        words = line.split()
        if len(words) != 2:
            raise InputError([Fault(f"line {number}", "must be a name and a value", line[:60], True)], str(file))
        yield number, words[0], words[1]


def _cplex(file: InputFile) -> Iterator[Value]:
    """``<variable name="…" value="…"/>`` of the first ``CPLEXSolution``."""
    import defusedxml.ElementTree as tree
    from defusedxml.common import DefusedXmlException

    try:
        root = tree.fromstring(file.data)
    except (tree.ParseError, DefusedXmlException, ValueError) as error:
        raise InputError(f"is no XML that is read: {error}", str(file)) from None
    solution = root if root.tag == "CPLEXSolution" else root.find(".//CPLEXSolution")
    if solution is None:
        raise InputError("has no CPLEXSolution", str(file))
    for variable in solution.iterfind("./variables/variable"):
        name, value = variable.get("name"), variable.get("value")
        if name is None or value is None:
            raise InputError("a variable without name or value", str(file))
        yield 0, name, value
