"""Other sizes of an allreduce's pieces, so that ranks that are ready later than others sum up less.

What a rank sums up it spreads itself, and that loads its links most. The piece of a rank that is ready at r gets
max(0, 1 - x r) of its bytes; what is saved goes to all others in proportion. Of all x that is taken under which the
busiest link would be free first, if each began when the rank that it leaves is ready and never paused.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.solution import Schedule

STEPS, ROUNDS = 16, 4  # of the search for x: values that are compared, each time between nearer ends
WORTH = 0.002  # of the time, below which pieces stay as they are


def lighter_roots(instance: FabricInstance, schedule: Schedule) -> IntArray | None:
    """Bytes of the pieces, shape (pieces,); None where they may as well stay."""
    blocks, late = instance.blocks, moments(instance.ready)
    if len(blocks) != 1 or blocks.origin[0] != EVERYONE or blocks.goal[0] != EVERYONE or not late:
        return None
    root = _roots(instance, schedule)
    if root is None:
        return None
    moment = np.zeros(instance.machine.nodes)
    for rank, seconds in late.items():
        moment[rank] = float(seconds)
    kinds, kind = np.unique(moment[root], return_inverse=True)
    if len(kinds) < 2:
        return None
    kind = kind.reshape(-1)
    net = instance.machine.network
    of = np.repeat(schedule.piece, np.diff(schedule.route_start))
    cells = schedule.link * len(kinds) + kind[of]
    taken = np.bincount(cells, schedule.piece_bytes[of], instance.machine.links * len(kinds)).astype(np.float64)
    busy: FloatArray = taken.reshape(-1, len(kinds)) / net.bandwidth[:, None]
    used = np.flatnonzero(busy.any(axis=1))
    amount: FloatArray = np.bincount(kind, schedule.piece_bytes).astype(np.float64)
    share = _best(busy[used], moment[net.src[used]], kinds, amount)
    return None if share is None else _cut(schedule.piece_bytes, share[kind], kind == 0)


def _roots(instance: FabricInstance, schedule: Schedule) -> IntArray | None:
    """The rank that first sends each piece whole; None where some piece never is."""
    whole = np.flatnonzero(~schedule.adds)
    first = whole[np.lexsort((schedule.start[whole], schedule.piece[whole]))]
    pieces, at = np.unique(schedule.piece[first], return_index=True)
    if len(pieces) < len(schedule.piece_block):
        return None
    found: IntArray = instance.machine.network.src[schedule.link[schedule.route_start[first[at]]]].astype(np.int64)
    return found


def _best(busy: FloatArray, begin: FloatArray, kinds: FloatArray, amount: FloatArray) -> FloatArray | None:
    """The factor of the bytes of every kind of piece; None where all may stay. ``busy``: seconds by link and kind."""

    def factors(x: float) -> FloatArray:
        kept = np.maximum(0.0, 1 - x * kinds)
        found: FloatArray = kept * (amount.sum() / (kept @ amount))
        return found

    def ends(x: float) -> float:
        return float((busy @ factors(x) + begin).max())

    low, high = 0.0, 1 / float(kinds[1:].max())
    for _ in range(ROUNDS):
        tried = np.linspace(low, high, STEPS + 1)
        at = int(np.argmin([ends(x) for x in tried]))
        low, high = tried[max(0, at - 1)], tried[min(STEPS, at + 1)]
    x = (low + high) / 2
    return factors(x) if ends(x) < ends(0.0) * (1 - WORTH) else None


def _cut(size: IntArray, factor: FloatArray, fill: BoolArray) -> IntArray | None:
    """Sizes times their factors as whole bytes, one at least; what is left or lacks goes to those of ``fill``."""
    found = np.maximum(1, np.floor(size * factor)).astype(np.int64)
    places = np.flatnonzero(fill)
    each, rest = divmod(int(size.sum() - found.sum()), len(places))
    found[places] += each
    found[places[:rest]] += 1
    return found if found.min() > 0 else None
