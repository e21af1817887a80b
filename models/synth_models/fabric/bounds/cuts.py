"""Bounds 1, 4 and 5: what has to cross a cut, and when it can.

**The cut.** Let S be a set of nodes (ranks and switches alike), U members in S and W members outside. Of every block
with its origin in U (or, in a reduction, to which all of U contribute) that is wanted in W (by one of W, or by all),
every byte must leave S: it reaches its goal over a chain of transfers, each of which starts where the one before it
ended, and since the chain begins in S and ends outside, one of the links on it leads out of S. Choose one such link
for every byte. A link e of b bytes/s that is occupied for x seconds carries at most b x bytes. Therefore

    volume(U, W) <= sum over links e out of S of  b_e * (seconds for which e is occupied by such bytes).

Nothing in this needs the switches to be on a particular side or to forward in a particular way: with multicast or
copies a byte crosses once for many goals, and it is counted once; where a switch cuts through, stores, buffers or
copies, links still carry what they carry. In a reduction what crosses may be a sum, which has the size of one
contribution; that is why a block counts once however many of U contribute to it. Blocks that are left out of U and W
only weaken the bound: a schedule of all blocks is one of those that are looked at.

**When it can cross (first arrival plus what is left).** With d the least sum of latencies along a path, a byte of U
cannot begin to cross e = (x, y) before d(U, x); and what has finished crossing it at some moment arrives at its goal
at least ``latency(e) + d(y, W)`` later (cutting through, a transfer arrives after all latencies of its route plus its
longest duration, and link i is occupied from the latencies before it on). So in a schedule that ends at T, link e is
occupied by such bytes for at most ``max(0, T - h_e)`` seconds, ``h_e = d(U, x) + latency(e) + d(y, W)``, and the bound
is the least T with ``sum of b_e * max(0, T - h_e) >= volume``. With latencies 0 this is volume over capacity (bound 1);
with one byte it is the latency (bound 4); S = all but v and U = the ranks at distance >= t from v are the late
arrivals of `xtree` (bound 5).

**Groups.** The links of a group carry one transfer at a time. Choose one crossing for every byte as above; the bytes
chosen of one transfer are at most its size n, and it occupies the group for at least n / b of the link chosen, so the
group counts as one link with the largest bandwidth, the earliest begin and the least way to go of its links in the cut.
Backwards in time a link is occupied after its latency, not before it (:attr:`Links.lag`).

**Search.** For a sink v and sources U at the best T so far, a minimum cut of the network with capacities
``b_e * max(0, T - h_e)`` tells whether any S proves more; if so, that S gives a larger T (Newton's method on the ratio,
Dinkelbach 1967), until none does. What is found is computed again exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.text.quantities import BYTES, shown
from synth_models.fabric.bounds.arrays import Links, crossing_bytes, least_time
from synth_models.fabric.bounds.colours import Colours, colours
from synth_models.fabric.bounds.crossing import crossing
from synth_models.fabric.bounds.maxflow import Arcs, arcs_of, cut_off
from synth_models.fabric.bounds.paths import distances, earliest
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE

FLOW_BITS = 46  # of the supply, where capacities are rounded
MOST_WORK = 200_000  # links times sinks that look like others
SLACK = 1e-10  # by which rounded capacities are too large, so that a cut that proves as much is not found again
MOST_THRESHOLDS = 12  # distances tried per sink
FEW = 4  # questions of :func:`quick_cut`
FARTHEST = 8  # origins tried per sink where every single one has to reach it (allreduce)


@dataclass(frozen=True, eq=False)
class Question:
    """How soon can what the sources supply (bytes, shape (nodes,)) be at the sink?"""

    links: Links
    sink: int
    supply: IntArray


def strongest_cut(links: Links, look: Colours, more: Callable[[], bool], known: Proven = NOTHING) -> Proven:
    """The strongest cut that is found while ``more()``, or ``known`` if none is stronger."""
    best = known
    arcs: dict[bool, Arcs] = {}
    for question in questions(links, look):
        directed = question.links
        if directed.is_reversed not in arcs:
            arcs[directed.is_reversed] = arcs_of(directed)
        best = _improved(question, arcs[directed.is_reversed], best)
        if not more():
            break
    return best


def quick_cut(instance: FabricInstance, asked: int = FEW) -> Proven:
    """What the first few questions prove, in about a second for a thousand ranks: for methods, to see what is left."""
    links = Links.of(instance)
    left = iter(range(asked - 1))
    return strongest_cut(links, colours(links), lambda: next(left, None) is not None)


def box_cut(instance: FabricInstance) -> Proven | None:
    """What has to leave the first box with what it alone is joined to, or None: links behind which its members are
    together carry less than those of each on its own."""
    links = Links.of(instance)
    inside, members = with_joined(links, instance.boxes[0]), mask(links, instance.members)
    return cut_bound(links, inside, members, members)


def with_joined(links: Links, ranks: Sequence[int]) -> BoolArray:
    """These ranks and all nodes that are no members and joined to nothing but such, shape (nodes,)."""
    inside, members = mask(links, ranks), mask(links, links.instance.members)
    while True:
        outer = np.zeros(links.nodes, dtype=bool)
        for here, there in ((links.src, links.dst), (links.dst, links.src)):
            outer[here[~inside[there]]] = True
        joined = ~(inside | outer)
        joined &= ~members
        if not joined.any():
            return inside
        inside |= joined


def mask(links: Links, nodes: Sequence[int]) -> BoolArray:
    """True for these nodes, shape (nodes,)."""
    found = np.zeros(links.nodes, dtype=bool)
    found[list(nodes)] = True
    return found


def questions(links: Links, look: Colours) -> Iterator[Question]:
    """What to ask, the most telling first: one member per colour, with everything that it needs and then with what
    comes from far away; then the members that look like one of these already, as many as ``MOST_WORK`` allows (nodes
    may look alike and not be)."""
    first = look.first.tolist()
    late = []
    for directed in (links, links.reverse):
        for v in first:
            asked = _of_sink(directed, look, v)
            early = next(asked, None)
            if early is not None:
                yield early
                late.append(asked)
    for asked in late:
        yield from asked
    alike = links.members[~np.isin(links.members, look.first)].tolist()
    for directed in (links, links.reverse):
        for v in alike[: MOST_WORK // max(1, links.links)]:
            early = next(_of_sink(directed, look, v), None)
            if early is not None:
                yield early


def cut_bound(links: Links, inside: BoolArray, sources: BoolArray, sinks: BoolArray) -> Proven | None:
    """What the cut around ``inside`` proves with origins in ``sources`` and goals in ``sinks`` (both are cut down to
    their side), or None."""
    sources, sinks = sources & inside, sinks & ~inside
    volume = crossing_bytes(links, sources, sinks)
    if not volume:
        return None
    weight, spent = crossing(links, inside, sources, sinks)
    if not len(weight):
        return None
    done, rest = least_time(weight.tolist(), spent, Fraction(volume * links.ticks) / links.unit)
    seconds = (done + rest) / links.ticks
    return Proven(
        seconds,
        "cut",
        lambda: _words(links, inside, volume, weight, spent),
        lambda: _certificate(links, inside, sources, sinks),
    )


def stronger(best: Proven, found: Proven | None) -> Proven:
    """What was found where it proves more than the best."""
    return found if found is not None and found.seconds > best.seconds else best


def strongest_of(
    links: Links, cuts: Iterable[tuple[BoolArray, BoolArray, BoolArray]], more: Callable[[], bool], known: Proven
) -> Proven:
    """The strongest of cuts (insides, sources, sinks) that are looked at while ``more()``, or ``known``."""
    best = known
    for inside, sources, sinks in cuts:
        best = stronger(best, cut_bound(links, inside, sources, sinks))
        if not more():
            break
    return best


def _of_sink(links: Links, look: Colours, v: int) -> Iterator[Question]:
    """The questions about one sink: all that it needs, then only what comes from far away."""
    origin, goal, size = links.blocks
    mine = np.concatenate([links.rows_to.get(to, np.zeros(0, dtype=np.int64)) for to in (v, EVERYONE)])
    mine = mine[origin[mine] != v]
    if not len(mine):
        return
    to_sink = distances(links.reverse, links.delay, [v])
    to_sink = np.where(to_sink < UNREACHABLE, to_sink + links.begins, UNREACHABLE)
    if (origin[mine] == EVERYONE).any():
        if (goal[mine] == EVERYONE).any():
            yield from _pairs(links, look, v, to_sink, int(size[mine].sum()))
        return
    supply = np.zeros(links.nodes, dtype=np.int64)
    np.add.at(supply, origin[mine], size[mine])
    supply[v] = 0
    away = np.unique(to_sink[supply > 0])
    if len(away) > MOST_THRESHOLDS:
        away = away[np.unique(np.linspace(0, len(away) - 1, MOST_THRESHOLDS).astype(int))]
    for distance in away.tolist():
        yield Question(links, v, np.where(to_sink >= distance, supply, 0))


def _pairs(links: Links, look: Colours, v: int, to_sink: IntArray, size: int) -> Iterator[Question]:
    """Every single origin's contribution has to come: the farthest ones, of different looks, and the first member (so
    that every cut is asked about between it and some other)."""
    others = links.members[links.members != v]
    order = others[np.argsort(-to_sink[others], kind="stable")]
    _, first = np.unique(np.stack([to_sink[order], look.node[order]]), axis=1, return_index=True)
    chosen = [int(order[i]) for i in np.sort(first)[:FARTHEST]]
    for u in dict.fromkeys([*chosen[:1], int(look.first[0]), *chosen]):
        if u != v:
            supply = np.zeros(links.nodes, dtype=np.int64)
            supply[u] = size
            yield Question(links, v, supply)


def _improved(question: Question, arcs: Arcs, best: Proven) -> Proven:
    links, supply = question.links, question.supply
    sources = supply > 0
    sinks = np.zeros(links.nodes, dtype=bool)
    sinks[question.sink] = True
    if not sources.any():
        return best
    if not best.seconds:
        found = cut_bound(links, ~sinks, sources, sinks)
        if found is None:
            return best
        best = found
    begin = earliest(links, sources)[links.src]
    left = earliest(links.reverse, sinks)[links.dst]
    head = np.minimum(begin, UNREACHABLE // 4) + links.delay + np.minimum(left, UNREACHABLE // 4)
    while True:
        capacity, amounts = _scaled(links, head, supply, best.seconds)
        short, inside = cut_off(arcs, links, capacity, amounts, question.sink)
        if not short:
            return best
        found = cut_bound(links, inside, sources, sinks)
        if found is None or found.seconds <= best.seconds:
            return best
        best = found


def _scaled(links: Links, head: IntArray, supply: IntArray, seconds: Fraction) -> tuple[IntArray, IntArray]:
    """What every link can carry until then, and the supply, in a common unit: exact where there is no latency and the
    numbers fit, else rounded."""
    total = int(supply.sum())
    if not links.delay.any():
        common = gcd(*supply[supply > 0].tolist())
        share = links.unit * seconds / common
        top, bottom = share.numerator, share.denominator
        if total // common * bottom < 2**61 and int(links.rate.max()) * top < 2**62:
            return np.where(head < UNREACHABLE // 4, links.rate * top, 0), supply // common * bottom
    factor = max(1, 2**FLOW_BITS // total)
    open_ticks = np.maximum(float(seconds * links.ticks) - head, 0.0)
    carried = links.rate * (float(links.unit / links.ticks * factor)) * open_ticks
    carried = np.where(carried > 0, carried * (1 + SLACK) + 1, 0.0)
    return np.minimum(carried, float(total * factor)).astype(np.int64), supply * factor


def _words(links: Links, inside: BoolArray, volume: int, weight: IntArray, head: IntArray) -> str:
    side = ~inside if links.is_reversed else inside
    leaves = 2 * int(side.sum()) <= len(side)
    smaller = np.flatnonzero(side if leaves else ~side)
    name = links.instance.machine.names[int(smaller[0])]
    where = f"{'out of' if leaves else 'into'} {name if len(smaller) == 1 else f'a set of {len(smaller)} nodes'}"
    rate = float(sum(weight.tolist()) * links.unit) / 1e9
    text = f"{shown(volume, BYTES)} must pass {rate:.6g} GB/s {where}"
    soonest = int(head.min())
    return text + (f", {float(links.seconds(soonest)) * 1e6:.4g} us of latency on the way" if soonest else "")


def _certificate(links: Links, inside: BoolArray, sources: BoolArray, sinks: BoolArray) -> dict[str, Any]:
    if links.is_reversed:
        inside, sources, sinks = ~inside, sinks, sources
    return {
        "argument": "cut",
        "inside": np.flatnonzero(inside).tolist(),
        "origins": np.flatnonzero(sources).tolist(),
        "goals": np.flatnonzero(sinks).tolist(),
    }
