"""Solvers' logs: the rows of their tables of incumbents and bounds, for a run's progress."""

from __future__ import annotations

import re

from synth.progress import Progress

Row = tuple[float, float | None, float | None]
"""Seconds since the solver began, incumbent and bound of the model."""


def note_log(
    progress: Progress,
    solver: str,
    log: str,
    offset: float,
    factor: float = 1.0,
    value: float | None = None,
    bound: float | None = None,
) -> None:
    """Add the rows of a solver's log; ``offset`` is the second of the run at which the solver began, ``factor`` turns
    the model's objective into the instance's. ``value`` and ``bound`` are the model's in the end, unrounded: no row
    claims more, which a log's few digits would (98.30007 for a bound of 98.300069)."""
    reader = _READERS.get(solver)
    for seconds, incumbent, proven in filter(None, map(reader, log.splitlines())) if reader else ():
        if incumbent is not None and value is not None:
            incumbent = max(incumbent, value)
        if proven is not None and bound is not None:
            proven = min(proven, bound)
        known, least = (None if number is None else number * factor for number in (incumbent, proven))
        progress.note(known, least, offset + seconds)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_HIGHS = re.compile(
    r"^\s?[A-Za-z]?\s+\d+[km]?\s+\d+[km]?\s+\d+[km]?\s+[\d.]+%\s+(\S+)\s+(\S+)\s+\S+\s.*\s([\d.]+)s\s*$"
)


def _highs(line: str) -> Row | None:
    """HiGHS: ``Src Proc. InQueue Leaves Expl. BestBound BestSol Gap Cuts InLp Confl. LpIters Time``."""
    found = _HIGHS.match(line)
    return (float(found[3]), _number(found[2]), _number(found[1])) if found else None


_SCIP = re.compile(r"^\s*\S?\s*([\d.]+)s\|")


def _scip(line: str) -> Row | None:
    """SCIP: columns with ``|``; the dual and primal bounds stand before the gap and the completion."""
    found = _SCIP.match(line)
    columns = [column.strip() for column in line.split("|")]
    if not found or len(columns) < 6:
        return None
    return float(found[1]), _number(columns[-3]), _number(columns[-4])


_GUROBI = re.compile(r"^[H*]?\s*\d+\s+\d+\s.*?(\S+)\s+(\S+)\s+(?:[\d.]+%|-)\s+\S+\s+(\d+)s\s*$")


def _gurobi(line: str) -> Row | None:
    """Gurobi: ``… Incumbent BestBd Gap It/Node Time``."""
    found = _GUROBI.match(line)
    return (float(found[3]), _number(found[1]), _number(found[2])) if found else None


_READERS = {"highs": _highs, "scip": _scip, "gurobi": _gurobi}
