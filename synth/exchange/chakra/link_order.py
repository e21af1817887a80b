"""Which sends need a node more, so that links that serve first come, first served keep the schedule's order.

Sends from one rank to another share a link. A send joins the link's queue when what it depends on has ended, which may
be before its turn: then the simulator serves it before one that the schedule has first. A node that ends 1 ns after the
earlier send was issued (a compute node without a duration, in ASTRA-sim), and on which the later one depends, keeps the
order, and delays nothing where a message takes more than 1 ns: the later one starts no earlier than the earlier one has
left. With the order of all links kept, no message is later than in the schedule, by induction over time, but for these
nanoseconds.

No node is needed where the order is a consequence: after a send of the rank's own data at the very beginning, or of
what came over one link, what came over the same link later.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.exchange.transfers import Transfers

NONE = -1


class LinkOrder:
    """The order of the sends over every link of the transfers; ``sent`` and ``prior`` as
    :func:`synth.exchange.dataflow.carried` returns them, ``held`` as
    :func:`synth.exchange.chakra.held_back.held_back`."""

    def __init__(self, t: Transfers, sent: IntArray, prior: IntArray, held: IntArray) -> None:
        count = len(t.piece)
        order = np.lexsort((np.arange(count), t.end_s, t.start_s, t.dst, t.src))
        first = np.ones(count, dtype=bool)
        src, dst = t.src[order], t.dst[order]
        first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
        earlier = np.concatenate([[NONE], order[:-1]])[:count]
        place = np.empty(count, dtype=np.int64)
        place[order] = np.arange(count)
        before = np.where(first, NONE, earlier)
        needs = np.zeros(count, dtype=bool)
        implied = _implied(t, sent, prior, place, sent[before[~first]], sent[order[~first]])
        needs[~first] = ~implied | (held[before[~first]] != NONE)
        # once one send waits for a node, the next is ordered behind it by a node too
        links = np.cumsum(first) - 1
        begin = np.flatnonzero(first)
        sums = np.cumsum(needs)
        behind = sums - (sums[begin] - needs[begin])[links] if count else sums
        self._before = np.full(count, NONE, dtype=np.int64)
        self._before[order] = np.where(behind > 0, before, NONE)

    def before(self, k: int) -> int | None:
        """The send that a node has to order before send ``k``, None where none is needed."""
        found = int(self._before[k])
        return None if found == NONE else found


def _implied(
    t: Transfers, sent: IntArray, prior: IntArray, place: IntArray, earlier: IntArray, later: IntArray
) -> IntArray:
    """Whether what the later of two sends carries is always there after what the earlier one carries, shape (pairs,);
    ``earlier``, ``later``: the arrivals that made it, -1 for a rank's own data."""
    own = (earlier == NONE) & (later != NONE)
    same = (earlier != NONE) & (later != NONE) & (t.src[earlier] == t.src[later]) & (t.dst[earlier] == t.dst[later])
    alone = ~t.adds[earlier] | (prior[earlier] == NONE)  # nothing but its own message is waited for
    found: IntArray = own | (same & (place[earlier] < place[later]) & alone)
    return found
