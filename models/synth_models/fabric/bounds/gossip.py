"""Bound 3: what an allreduce costs at least, over every algorithm (not only over trees).

**Messages.** Follow one byte. A member's *knowledge* is the set of members whose contributions are in something that it
holds. It begins with its own and must end with all, and grows only by transfers. Take the transfers from member to
member (through switches) one by one in order of arrival; what one brings was known at its sender when it started,
earlier. Let P cut the members into k parts and let a part know what its members know. Until the first part knows all,
every other part's contribution has come there over transfers between parts, which therefore join all parts: at least
k - 1 of them. The transfer that completes this part completes no other; each of the other k - 1 parts becomes complete
by a later transfer of its own into it. So **at least 2 (k - 1) transfers of every byte lead from part to part**,
whatever the algorithm: gossip by one-way messages, the telegraph problem (Harary, Schwenk: The communication problem on
graphs and digraphs, 1974). It does not matter whether sums are added or whole sums copied, nor where.

**Prices** (``gossip``). Let c_e >= 0 be a price of a byte on link e and d(u, v) the shortest distance from member u to
member v. For every x > 0 let the parts be the components of members joined by pairs with ``min(d(u, v), d(v, u)) <
x``. A transfer from part to part costs at least x, so the number of transfers of a byte that cost at least x is at
least ``2 (parts(x) - 1)``; summed over x, all transfers of a byte cost at least twice the minimum spanning tree of the
members under ``min(d(u, v), d(v, u))`` (the integral of parts(x) - 1 is its length, Kruskal 1956). All M bytes
therefore pay ``2 M * tree``, and until T links can be paid ``sum of c_e b_e max(0, T - h_e)``. With c = 1 between the
parts of a partition and 0 within, that is the volume over the capacity between parts, and without switches the best of
them is the strength of the network (Nash-Williams, Tutte 1961; Cunningham 1985); with c = 1 on what leaves the ranks
behind one switch it is ``2 (N - 1) M`` over their ports.

This needs every transfer to pay its own way: **no node multiplies data**, by multicast or by copies or sums in switches
(where there are switches at all), and no rank outside the group that forwards (it would be a switch that copies).

**Switches that copy or add** (cut through) are taken among the members, as ends that contribute nothing: what leads
from one end to the next, over other switches, pays its own way again. Components are formed of all ends; only those
with a member count as parts. Before the first part knows all, the transfers between components join all parts, k - 1
of them at least also over components without a member, and each other part becomes complete by one more into it. So
all transfers of a byte cost at least twice the integral of parts(x) - 1: of Kruskal's edges those that join two
components with members.

**Any switching** (``partition``). Let P cut *all* nodes, switches too, into k parts with at least one member each, and
count crossings of links from part to part instead of transfers. Also over these knowledge spreads one crossing at a
time (those of one transfer in the order of its route), so at least 2 (k - 1) crossings of every byte are made. A
multicast or a copy occupies each of its links; only on a group it may cross several links at the price of one, where
every link is then counted.

**Windows.** Drop what never helps: transfers whose content reaches no member's final sum. Nothing of the above needs
them. What is left begins with some member's contribution, so it cannot cross e = (x, y) before d(members, x), and ends
at a member, ``latency(e) + d(y, members)`` after it has crossed; h_e is the sum (latency distances).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.kernels import jit
from synth.text.untrusted import exact_dot
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.bounds.link_prices import Resources, improved, resources_of, time_to_pay
from synth_models.fabric.bounds.paths import earliest
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.bounds.traffic_cuts import quick_traffic_cut
from synth_models.fabric.instance import FabricInstance

MOST_PARTITIONS = 4000  # times links: beyond, fewer levels of merging are tried


def pays_its_way(links: Links) -> bool:
    """Whether every transfer from rank to rank occupies links for itself alone: nothing is copied or added up under
    way."""
    switching = links.instance.switching
    used = np.zeros(links.nodes, dtype=bool)
    used[links.src] = True
    if switching.mode == "cut_through":
        return not (switching.multicast or links.instance.machine.abilities.any) or not np.any(used & links.is_switch)
    return not (switching.copies or switching.adds) or not np.any(used & links.is_switch)


def only_members(links: Links) -> bool:
    """Whether no rank outside the group has links."""
    used = np.zeros(links.nodes, dtype=bool)
    used[links.src] = True
    used[links.members] = False
    return not np.any(used & ~links.is_switch)


def counts_each(links: Links) -> bool:
    """Whether a transfer may cross several links of a group at once other than along one path."""
    switching = links.instance.switching
    forks = switching.multicast or links.instance.machine.abilities.any
    return switching.mode == "cut_through" and forks


def windows(links: Links) -> tuple[IntArray, IntArray]:
    """In which time an allreduce can use each link, ticks, shape (links,): not before a member's data can be there, and
    not so late that it reaches none any more; :data:`UNREACHABLE` where never."""
    members = np.zeros(links.nodes, dtype=bool)
    members[links.members] = True
    begin = earliest(links, members)[links.src]
    left = earliest(links.reverse, members)[links.dst]
    return begin, np.where(left < UNREACHABLE, left + links.delay, UNREACHABLE)


def strongest_gossip(links: Links, look: Colours, more: Callable[[], bool], known: Proven) -> Proven:
    """The strongest bound of an allreduce by messages that is found while ``more()``, or ``known``."""
    begin, left = windows(links)
    resources = resources_of(links, look, begin, left, each=counts_each(links))
    best = _strongest_partition(links, begin, left, more, known)
    passing = links.instance.special_switches and links.instance.switching.mode == "cut_through"
    if (pays_its_way(links) or passing) and only_members(links):
        best = _strongest_tree(resources, more, best)
    return best


def quick_bound(instance: FabricInstance) -> Fraction:
    """Seconds that a collective takes at least, by :func:`~synth_models.fabric.bounds.cuts.quick_cut` and for an
    allreduce by messages out of the ranks and the boxes, latencies left out: for methods, to see what is left."""
    if instance.traffic is not None:
        return quick_traffic_cut(instance).seconds
    best, messages = quick_cut(instance).seconds, messages_of_boxes(instance)
    return best if messages is None else max(best, messages.seconds)


def messages_of_boxes(instance: FabricInstance) -> Proven | None:
    """What an allreduce takes by messages between ranks or boxes, latencies left out; None where that proves nothing.
    Nothing grows with the square of the ranks."""
    links = Links.of(instance)
    if instance.collective != "allreduce" or not pays_its_way(links) or not only_members(links):
        return None
    found = [_between(links, parts) for parts in (instance.boxes, [(rank,) for rank in instance.members])]
    return max((one for one in found if one is not None), key=lambda one: one.seconds, default=None)


def _between(links: Links, parts: Sequence[Sequence[int]]) -> Proven | None:
    """The strongest bound by prices of one on what leaves a part and what enters one: members, then with the switches
    that they alone are joined to, and so on. A message from part to part pays two."""
    label = np.full(links.nodes, -1, dtype=np.int64)
    for number, part in enumerate(parts):
        label[list(part)] = number
    best: Proven | None = None
    ends = np.stack([links.src, links.dst])
    while True:
        source, target = label[ends]
        price = (source != target) * ((source >= 0).astype(np.int64) + (target >= 0))
        rate = exact_dot(price, links.rate)
        if not rate or len(parts) < 2:
            return best
        seconds = Fraction(4 * (len(parts) - 1) * links.instance.bytes, rate * links.unit)
        if best is None or seconds > best.seconds:
            best = Proven(seconds, "gossip", _tree_words(links, price), _tree_certificate(price))
        least, most = np.full(links.nodes, len(parts)), np.full(links.nodes, -1)
        for here, there in (ends, ends[::-1]):
            known = label[there] >= 0
            np.minimum.at(least, here[known], label[there[known]])
            np.maximum.at(most, here[known], label[there[known]])
        joined = (label < 0) & (least == most)
        if not joined.any():
            return best
        label[joined] = most[joined]


def _strongest_tree(resources: Resources, more: Callable[[], bool], best: Proven) -> Proven:
    links = resources.links
    size = links.instance.bytes

    def worth(lengths: list[IntArray]) -> tuple[FloatArray, list[FloatArray]]:
        value, load = spanning(links, lengths[0])
        return np.array([2.0 * size * value]), [2.0 * size * load[None, :]]

    def exactly(lengths: list[IntArray]) -> int:
        return 2 * size * spanning(links, lengths[0])[0]

    def made(lengths: list[IntArray], seconds: Fraction) -> Proven:
        return Proven(seconds, "gossip", _tree_words(links, lengths[0]), _tree_certificate(lengths[0]))

    return improved([resources], worth, exactly, made, more, best)


def spanning(links: Links, length: IntArray) -> tuple[int, FloatArray]:
    """Length of the minimum spanning tree of the members, and how often its ways use every link; with multiplying
    switches among them, of what joins members."""
    ends = terminals(links)
    is_member = np.isin(ends, links.members)
    tree, load = _spanning(_Graph(*links.out, links.src, links.dst), length, ends, is_member, links.nodes)
    return int(tree), load


def terminals(links: Links) -> IntArray:
    """The members, and behind them the switches that copy or add."""
    able = links.instance.machine.abilities
    used = np.zeros(links.nodes, dtype=bool)
    used[links.src] = True
    several = np.flatnonzero(used & (able.copies | able.adds) & links.is_switch)
    return np.concatenate([links.members, several.astype(np.int64)])


class _Graph(NamedTuple):
    """Links ``out[start[v]:start[v + 1]]`` leave node v; ``src``, ``dst`` of every link."""

    start: IntArray
    out: IntArray
    src: IntArray
    dst: IntArray


class _Tree(NamedTuple):
    """Edges of a spanning tree of terminals, shape (terminals - 1,) each: ``length``, the terminals that they join (the
    way leads from ``source`` to ``target``)."""

    length: IntArray
    source: IntArray
    target: IntArray


@jit
def _spanning(
    graph: _Graph, length: IntArray, ends: IntArray, is_member: BoolArray, nodes: int
) -> tuple[np.int64, FloatArray]:
    """Prim's algorithm on ``min(d(u, v), d(v, u))`` of all terminals, then the edges that join members (Kruskal)."""
    count = len(ends)
    came = np.empty((count, nodes), dtype=np.int64)
    distance = np.empty((count, count), dtype=np.int64)
    first = np.empty(nodes, dtype=np.int64)
    through = np.ones(nodes, dtype=np.bool_)
    order = np.empty(nodes, dtype=np.int64)
    for i in range(count):
        first[:] = UNREACHABLE
        first[ends[i]] = 0
        found = search(graph.start, graph.out, graph.dst, length, first, through, came[i], order)
        for j in range(count):
            distance[i, j] = found[ends[j]]
    tree = _prim(distance)
    load = np.zeros(len(graph.src), dtype=np.float64)
    total = np.int64(0)
    part, has_member = np.arange(count), is_member.copy()
    for k in np.argsort(tree.length, kind="mergesort"):
        a, b = tree.source[k], tree.target[k]
        while part[a] != a:
            a = part[a]
        while part[b] != b:
            b = part[b]
        part[b] = a
        joins = has_member[a] and has_member[b]
        has_member[a] = has_member[a] or has_member[b]
        if not joins:
            continue
        total += tree.length[k]
        source, v = tree.source[k], ends[tree.target[k]]
        while came[source, v] >= 0:
            load[came[source, v]] += 1.0
            v = graph.src[came[source, v]]
    return total, load


@jit
def _prim(distance: IntArray) -> _Tree:
    """A minimum spanning tree under the lesser of the distances there and back."""
    count = len(distance)
    tree = _Tree(
        np.zeros(count - 1, dtype=np.int64), np.zeros(count - 1, dtype=np.int64), np.zeros(count - 1, dtype=np.int64)
    )
    near = np.full(count, UNREACHABLE, dtype=np.int64)
    begin = np.zeros(count, dtype=np.int64)
    forth = np.zeros(count, dtype=np.bool_)
    inside = np.zeros(count, dtype=np.bool_)
    i = 0
    for k in range(count - 1):
        inside[i] = True
        best = -1
        for j in range(count):
            if inside[j]:
                continue
            if distance[i, j] < near[j]:
                near[j], begin[j], forth[j] = distance[i, j], i, True
            if distance[j, i] < near[j]:
                near[j], begin[j], forth[j] = distance[j, i], i, False
            if best < 0 or near[j] < near[best]:
                best = j
        tree.length[k] = near[best]
        tree.source[k], tree.target[k] = (begin[best], best) if forth[best] else (best, begin[best])
        i = best
    return tree


def _tree_words(links: Links, length: IntArray) -> Callable[[], str]:
    used: BoolArray = length > 0
    return lambda: (
        f"gossip, over every algorithm: at prices on {int(used.sum())} of {links.links} links, two spanning trees "
        "a byte (2 (N - 1) messages) cost what the links can carry in that time"
    )


def _tree_certificate(length: IntArray) -> Callable[[], dict[str, Any]]:
    return lambda: {"argument": "gossip", "length": length.tolist()}


def _strongest_partition(
    links: Links, begin: IntArray, left: IntArray, more: Callable[[], bool], best: Proven
) -> Proven:
    """Parts of one member each, with every other node where it is joined most, then merged pair by pair."""
    apart = np.arange(links.links, dtype=np.int64)
    plain = Colours(np.zeros(links.nodes, dtype=np.int64), apart, links.members, np.ones_like(links.members))
    resources = resources_of(links, plain, begin, left, each=counts_each(links))
    label = _attached(links)
    count = int(label.max()) + 1
    between = np.zeros((count, count))
    np.add.at(between, (label[links.src], label[links.dst]), links.rate.astype(float))
    between += between.T
    np.fill_diagonal(between, 0)
    skip = max(1, count * links.links // (MOST_PARTITIONS * 1000))
    alive = np.ones(count, dtype=bool)
    while alive.sum() > 1:
        if int(alive.sum()) % skip == 0 or alive.sum() == 2:
            best = _better_partition(resources, label, int(alive.sum()), best)
        if not more():
            break
        a, b = np.unravel_index(int(between.argmax()), between.shape)
        if between[a, b] <= 0:
            a, b = np.flatnonzero(alive)[:2]
        between[a] += between[b]
        between[:, a] += between[:, b]
        between[b], between[:, b], between[a, a] = 0, 0, 0
        alive[b] = False
        label = np.where(label == b, a, label)
    return best


def _better_partition(resources: Resources, label: IntArray, parts: int, best: Proven) -> Proven:
    links = resources.links
    crossing = (label[links.src] != label[links.dst]) & (resources.row >= 0)
    if not crossing.any():
        return best
    volume = 2 * (parts - 1) * links.instance.bytes
    seconds = time_to_pay([resources], [crossing.astype(np.int64)], volume)
    if seconds <= best.seconds:
        return best
    rate = float(links.rate[crossing].sum() * links.unit) / 1e9
    names = np.unique(label, return_inverse=True)[1].reshape(-1)
    return Proven(
        seconds,
        "partition",
        lambda: (
            f"partition, over every algorithm: every byte crosses at least {2 * (parts - 1)} times between "
            f"{parts} parts, joined by {int(crossing.sum())} links of {rate:.6g} GB/s together"
        ),
        lambda: {"argument": "partition", "part": names.tolist()},
    )


def _attached(links: Links) -> IntArray:
    """The number of the member that every node goes with; unjoined nodes with the first."""
    label = np.full(links.nodes, -1, dtype=np.int64)
    label[links.members] = np.arange(len(links.members))
    order = np.argsort(-links.rate, kind="stable").tolist()
    ends = np.stack([links.src, links.dst], axis=1).tolist()
    moved = True
    while moved:
        moved = False
        for e in order:
            u, v = ends[e]
            for here, there in ((u, v), (v, u)):
                if label[here] < 0 <= label[there]:
                    label[here], moved = label[there], True
    return np.where(label < 0, 0, label)
