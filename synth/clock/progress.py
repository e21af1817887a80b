"""Incumbents and bounds over time, as a solve finds them."""

from __future__ import annotations

import math
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
        before_s, held, known = self.rows[-1] if self.rows else (0.0, None, None)
        best = _better(held, value, min)
        proven = _better(known, bound, max)
        if (best, proven) != (held, known):
            seconds = time.monotonic() - self.started if at is None else at
            self.rows.append((round(max(seconds, before_s), 4), best, proven))
            if len(self.rows) > MOST_ROWS:
                self.rows[1:-1] = self.rows[1:-1:2]


def _better(old: float | None, new: float | None, best: object) -> float | None:
    if new is None or not math.isfinite(new) or abs(new) >= 1e19:
        return old
    if old is None:
        return float(new)
    gain = old - new if best is min else new - old
    return float(new) if gain > 1e-9 * abs(old) else old
