"""An alltoall on a balanced dragonfly in slots of which each uses every link at most once: part of ``flow``.

The dragonfly has n + 1 groups of ``a`` routers with h hosts and h links to other groups each, where a = 2 h and
n = a h, one link between any two groups (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly
topology, 2008). A rank then sends n n blocks to other groups, and as many cross every link between groups, and every
link within a group: half of these at the beginning of a route and half at the end of another. So a schedule near the
bound leaves no link idle. Where n is a power of two, this one does so.

The slots are the n n points of the affine plane over the field of n elements. Its n + 1 classes of parallel lines
(Lidl, Niederreiter: Finite Fields, section 9.3) belong to the groups, and each class has n lines: a rank or a port of
the group, moved by a constant. What goes from group g to another, g', takes the slot where the line of its source in
the class of g meets the line of its goal in the class of g'. Two lines of different classes meet in one point, so that
the link from g to g' carries one block in every slot. Within g every rank sends one and receives one. A bit of the
line, the same for sources and goals, says whether routers reach half of the others for what leaves the group, and the
other half for what comes into it, or the other way round. So no link within a group is wanted twice.

What stays within a group takes n slots more, of which each is a permutation of its ranks: n (n + 1) slots, where
n (n + 1) - 1 is the least number.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.near_groups import routes_leaving_once
from synth_models.fabric.references.slots.balanced_dragonfly import BalancedDragonfly
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def affine_slots(instance: FabricInstance) -> Schedule | None:
    """Blocks from rank to rank, each in its slot; None where the machine is no dragonfly that suits. Slots follow each
    other as closely as links allow. Raises :class:`UnsupportedError` where a pair of ranks has no route."""
    dragonfly = BalancedDragonfly.of(instance.machine)
    if dragonfly is None:
        return None
    blocks = instance.blocks
    number = np.arange(len(blocks), dtype=np.int64)
    slot = slots(dragonfly, blocks.origin, blocks.goal)
    priority = np.empty(len(blocks), dtype=np.int64)
    priority[np.argsort(slot, kind="stable")] = number
    routes = routes_leaving_once(
        instance, dragonfly.members(), blocks.origin, blocks.goal, int(blocks.bytes.max(initial=1))
    )
    transfers = Transfers.of_rows(number, blocks.bytes, number, routes, priority=priority)
    return timed(instance, transfers, in_order=True)


def slots(dragonfly: BalancedDragonfly, source: IntArray, target: IntArray) -> IntArray:
    """The slot of what goes from each ``source`` to its ``target``, two different ranks: shape as theirs."""
    group, place, port, hosts = dragonfly.group, dragonfly.place, dragonfly.port, dragonfly.hosts
    n = 2 * hosts * hosts
    g, other = group[source], group[target]
    far = g != other
    found = np.empty(len(source), dtype=np.int64)
    found[~far] = n * n + _within(hosts, place[source[~far]], place[target[~far]])
    g, other = g[far], other[far]
    leaves = place[source[far]] ^ _moved(hosts, port[g, other])
    comes = place[target[far]] ^ _moved(hosts, port[other, g]) ^ n // 2
    found[far] = _meeting(n, g, leaves, other, comes)
    return found


def _moved(hosts: int, place: IntArray) -> IntArray:
    """The place whose number at the router is part of this one's router, and the other way round: what is at one router
    then belongs to different ones. The highest bit, the half of the routers, stays."""
    half, router, at = place // (hosts * hosts), place // hosts % hosts, place % hosts
    found: IntArray = (half * hosts + at) * hosts + router
    return found


def _within(hosts: int, source: IntArray, target: IntArray) -> IntArray:
    """A slot for each two places of a group: in each every place sends to one, and a router to one at every router."""
    n = 2 * hosts * hosts
    half = (source ^ target) // (n // 2)
    router = source // hosts % hosts ^ target // hosts % hosts ^ source % hosts
    found: IntArray = (half * hosts + router) * hosts + (target % hosts ^ source // hosts % hosts)
    return found


def _meeting(n: int, g: IntArray, line: IntArray, other: IntArray, crossing: IntArray) -> IntArray:
    """The point, as x n + y, where a line of class ``g`` meets one of class ``other``. Line c of class m < n has the
    points (x, y) with y + m x = c, line c of class n those with x = c, in the field of n elements."""
    times = multiplication(n)
    inverse = np.argmax(times == 1, axis=1)
    upright, crossing_upright = g == n, other == n
    slope, steep = np.where(upright, 0, g), np.where(crossing_upright, 0, other)
    x = times[line ^ crossing, inverse[slope ^ steep]]
    x = np.where(upright, line, np.where(crossing_upright, crossing, x))
    y = np.where(upright, crossing ^ times[steep, x], line ^ times[slope, x])
    return np.asarray(x * n + y, dtype=np.int64)


def multiplication(n: int) -> IntArray:
    """The products in the field of n elements, n a power of two, shape (n, n): elements are polynomials over two
    elements, written as bits, modulo the first that leaves no zero divisors."""
    for modulus in range(n, 2 * n):
        table = np.zeros((n, n), dtype=np.int64)
        shifted = np.arange(n, dtype=np.int64)
        for bit in range(n.bit_length() - 1):
            table ^= np.where(np.arange(n)[:, None] >> bit & 1, shifted, 0)
            shifted <<= 1
            shifted ^= np.where(shifted >= n, modulus, 0)
        if np.all(table[1:, 1:]):
            return table
    raise ValueError(f"no field has {n} elements")
