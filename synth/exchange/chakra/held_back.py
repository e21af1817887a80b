"""Which sends a schedule holds back, though their data are there and their link is idle.

An algorithm of steps does: who has finished one step begins the next, over another link and with other data. A trace
without such an order lets everything begin at once. Where a send starts later than its data and its link explain, it
depends on what came to its rank last before. In the schedule that has come when the send starts, so that no message is
later than there.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.exchange.transfers import Transfers

NONE = -1


def held_back(t: Transfers, sent: IntArray) -> IntArray:
    """For every transfer the arrival at its sender that it is held back behind, -1 for none; shape (transfers,).
    ``sent``: the arrivals that made what it carries, -1 for a rank's own data."""
    found = np.full(len(t.piece), NONE, dtype=np.int64)
    ready = np.where(sent >= 0, t.end_s[sent], 0.0) if len(sent) else t.end_s
    idle = _link_done(t) <= t.start_s
    for rank in range(t.ranks):
        came = np.flatnonzero(t.dst == rank)
        came = came[np.argsort(t.end_s[came], kind="stable")]
        mine = np.flatnonzero((t.src == rank) & idle & (t.start_s > ready))
        last = np.searchsorted(t.end_s[came], t.start_s[mine], side="right") - 1
        mine, last = mine[last >= 0], last[last >= 0]
        later = t.end_s[came[last]] > ready[mine]
        found[mine[later]] = came[last[later]]
    return found


def _link_done(t: Transfers) -> FloatArray:
    """When what each transfer's sender sent to the same rank before it has arrived."""
    order = np.lexsort((t.end_s, t.start_s, t.dst, t.src))
    done = np.full(len(order), -np.inf)
    same = (t.src[order[1:]] == t.src[order[:-1]]) & (t.dst[order[1:]] == t.dst[order[:-1]])
    done[order[1:][same]] = t.end_s[order[:-1][same]]
    return done
