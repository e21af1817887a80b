"""Incumbents and bounds over time, as a solve finds them."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field

MOST_ROWS = 2000  # of a record; beyond it every other row between the first and the last is dropped


@dataclass
class Progress:
    """What was known when: rows ``(seconds since the start of the run, incumbent, bound)``, both best so far.

    A bound is one the running solver reports; the record's ``bound`` is what was proven in the end.
    """

    started: float = field(default_factory=time.monotonic)
    rows: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    def note(self, value: float | None = None, bound: float | None = None, at: float | None = None) -> None:
        """Add a row if ``value`` or ``bound`` is better than before; ``at`` in seconds of the run, default now.

        Never raises: what cannot be a number is ignored.
        """
        last = self.rows[-1] if self.rows else (0.0, None, None)
        best = _better(last[1], value, min)
        proven = _better(last[2], bound, max)
        if (best, proven) != last[1:]:
            seconds = time.monotonic() - self.started if at is None else at
            self.rows.append((round(max(seconds, last[0]), 4), best, proven))
            if len(self.rows) > MOST_ROWS:
                self.rows[1:-1] = self.rows[1:-1:2]

    def note_log(
        self, solver: str, log: str, offset: float, factor: float = 1.0,
        value: float | None = None, bound: float | None = None,
    ) -> None:  # fmt: skip
        """Add the rows of a solver's log; ``offset`` is the second of the run at which the solver began, ``factor``
        turns the model's objective into the instance's. ``value`` and ``bound`` are the model's in the end, unrounded:
        no row claims more, which a log's few digits would (98.30007 for a bound of 98.300069)."""
        reader = _READERS.get(solver)
        for row in filter(None, map(reader, log.splitlines())) if reader else ():
            seconds, incumbent, proven = row
            if incumbent is not None and value is not None:
                incumbent = max(incumbent, value)
            if proven is not None and bound is not None:
                proven = min(proven, bound)
            known, least = (None if number is None else number * factor for number in (incumbent, proven))
            self.note(known, least, offset + seconds)


def _better(old: float | None, new: float | None, best: object) -> float | None:
    if new is None or not math.isfinite(new) or abs(new) >= 1e19:
        return old
    if old is None:
        return float(new)
    gain = old - new if best is min else new - old
    return float(new) if gain > 1e-9 * abs(old) else old


Row = tuple[float, float | None, float | None]


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
