"""Bound 5 for short messages: what arrives at a rank comes directly from where it was, or later.

Where one rank sends to many over few links, a cut sees only one receiver at a time, and latency only an empty machine.
Here every arrival pays, and those over another rank can only use what is left of the time.

**Deliveries** (broadcast, allgather; reduce and reduce_scatter with time running backwards). Follow one byte of the
block of u to a member v != u, and take the transfer (through switches) that first brings it to v. It comes *directly*
from u, over switches only; or from another rank w, where the byte had to be first: then it starts at w no earlier than
the latency distance d(u, w). Different bytes and different v have different transfers, provided that no transfer
serves several ranks: no multicast, no copies in switches. Let every link have prices for windows k, ``c_ek`` a byte
for what crosses it at ``t_ek`` or later, and let the delivery pay every window of a link that it *certainly* crosses
late enough: direct ones from the latency of the way from u on, the others from ``min over w != u of d(u, w) + latency
of the way from w`` on. Both cost at least the cheapest such way, so in all

    sum over blocks and v of bytes * min(direct(u, v), relayed(u, v)) <= sum over e, k of c_ek b_e max(0, T - h_ek),

``h_ek = max(t_ek, d(origins, x)) + latency(e) + latency of the cheapest way on through switches to a member``: a link
e = (x, y) is open for window k from the first of these on, and what crosses it at the end must still arrive.

**Allreduce.** A transfer is *simple* if it carries only its sender's contribution. If all transfers of a byte into v
that matter are simple, there is a direct one from each of the other N - 1 members; else at least one is not simple,
and its sender w first received something, which takes ``min over u != w of d(u, w)``. So a byte costs at v at least
``min(sum over u of direct(u, v), relayed(v))``. With time running backwards the same holds for what leaves v: its
contribution goes directly to everyone, or at least one transfer is passed on by its receiver.

**Backwards.** A schedule read backwards moves the same bytes over the same links, transfers end where they began. In a
reduction the contribution of v to the block of u leaves v by some first transfer on its chain to u: directly to u, or
to a rank w from where it still takes d(w, u). That is the statement above with time reversed, for other reasons: what
is delivered backwards is the duty to pass the contribution on, and only transfers that carry it count.

The search takes two windows: from the beginning, and from the moment on at which relayed bytes can cross.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE, add_loads, search
from synth.text.untrusted import exact_dot
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.gossip import counts_each
from synth_models.fabric.bounds.link_prices import improved, resources_of
from synth_models.fabric.bounds.paths import distances, into_ranks
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE

MOST_ORIGINS = 512  # whose ways are computed at every step of the search
LEAST_SHARE = 0.02  # of the bound so far that latency must have


class Origin:
    """One member's deliveries: which windows its direct and its relayed transfers pay, and where they are wanted."""

    def __init__(self, links: Links, u: int, relayed_from: IntArray) -> None:
        """``relayed_from``: the first moment at which every rank can send what it has received, :data:`UNREACHABLE`
        where it never relays, shape (nodes,)."""
        self.links, self.u = links, u
        self.direct_at = distances(links, links.delay, [u], links.is_switch)[links.src]
        self.relays = relayed_from < UNREACHABLE
        self.relayed_at = relayed_times(links, relayed_from)
        self.pays: list[tuple[BoolArray, BoolArray]] = []

    def open(self, after: list[IntArray]) -> None:
        """Set the windows (ticks, shape (links,) each)."""
        self.pays = [(self.direct_at >= t, self.relayed_at >= t) for t in after]

    def direct(self, lengths: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
        """Least cost of a direct transfer to every node, with the ways."""
        cost = np.sum([np.where(pays[0], c, 0) for pays, c in zip(self.pays, lengths, strict=True)], axis=0)
        return self._ways(cost, np.arange(self.links.nodes) == self.u)

    def relayed(self, lengths: list[IntArray]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Least cost of a relayed transfer into every node, its last link, with the ways to where that begins."""
        cost = np.sum([np.where(pays[1], c, 0) for pays, c in zip(self.pays, lengths, strict=True)], axis=0)
        distance, came, order = self._ways(cost, self.relays)
        last = np.empty(self.links.nodes, dtype=np.int64)
        distance[~self.relays & ~self.links.is_switch] = UNREACHABLE
        return into_ranks(self.links.dst, self.links.src, cost, distance, last), last, came, order

    def _ways(self, cost: IntArray, sources: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        links = self.links
        came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
        first = np.where(sources, 0, UNREACHABLE)
        found = search(*links.out, links.dst, cost, first, links.is_switch, came, order)
        return found, came, order

    def load(self, ways: tuple[Any, ...], wanted: IntArray, kind: int) -> list[IntArray]:
        """What ``wanted`` at every node puts on every link, for each window; ``kind`` 0: direct, 1: relayed."""
        load = np.zeros(self.links.links, dtype=np.int64)
        if kind:
            _, last, came, order = ways
            start = np.zeros(self.links.nodes, dtype=np.int64)
            for v in np.flatnonzero(wanted).tolist():
                load[last[v]] += wanted[v]
                start[self.links.src[last[v]]] += wanted[v]
            wanted = start
        else:
            _, came, order = ways
        add_loads(came, order, self.links.src, wanted, load)
        return [np.where(pays[kind], load, 0) for pays in self.pays]


def relayed_times(links: Links, relayed_from: IntArray) -> IntArray:
    """The first moment at which a relayed transfer can cross every link, ticks."""
    came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
    found: IntArray = search(*links.out, links.dst, links.delay, relayed_from, links.is_switch, came, order)
    return found[links.src]


def strongest_deliveries(links: Links, look: Colours, more: Callable[[], bool], known: Proven) -> Proven:
    """The strongest bound by deliveries that is found while ``more()``, or ``known`` if none is stronger."""
    origin, goal, _ = links.blocks
    best = known
    if _longest_latency(links, look) < LEAST_SHARE * known.seconds * links.ticks:
        return best
    for directed in (links, links.reverse):
        if (origin == EVERYONE).all() and (goal == EVERYONE).all():
            best = _strongest(_Allreduce(directed), look, more, best) if len(links.members) <= MOST_ORIGINS else best
        elif (directed.blocks[1] == EVERYONE).all():
            best = _strongest(_FromEach(directed, look), look, more, best)
    return best


def _longest_latency(links: Links, look: Colours) -> int:
    """The longest latency distance of a member that looks special, in ticks: what relayed bytes come later is less."""
    return max(
        int(distances(directed, directed.delay, [u])[links.members].max())
        for directed in (links, links.reverse)
        for u in look.first
    )


class _FromEach:
    """Broadcast and allgather: everybody wants the blocks of each origin."""

    argument = "deliveries"

    def __init__(self, links: Links, look: Colours) -> None:
        self.links = links
        volume = links.volume_from
        self.first = [u for u in look.first.tolist() if u in volume]
        self.times = [int(look.count[look.first == u][0]) for u in self.first]
        self.size = volume
        self.sources = sorted(volume)

    def origins(self, sources: list[int]) -> list[Origin]:
        ranks = ~self.links.is_switch
        found = []
        for u in sources:
            known = np.where(ranks, distances(self.links, self.links.delay, [u]), UNREACHABLE)
            known[u] = UNREACHABLE
            found.append(Origin(self.links, u, known))
        return found

    def worth(self, origins: list[Origin], lengths: list[IntArray]) -> tuple[list[int], list[list[IntArray]]]:
        """Value and load per window of every origin."""
        values, found = [], []
        for origin in origins:
            wanted = np.zeros(self.links.nodes, dtype=np.int64)
            wanted[self.links.members] = self.size[origin.u]
            wanted[origin.u] = 0
            direct, relayed = origin.direct(lengths), origin.relayed(lengths)
            straight = (direct[0] <= relayed[0]) & (wanted > 0)
            cost = np.minimum(direct[0], relayed[0])
            goals = np.flatnonzero(wanted)
            values.append(exact_dot(wanted[goals], cost[goals]))
            one = origin.load(direct, np.where(straight, wanted, 0), 0)
            two = origin.load(relayed, np.where(straight, 0, wanted), 1)
            found.append([a + b for a, b in zip(one, two, strict=True)])
        return values, found


class _Allreduce:
    """Everybody wants the sum of all; the last of the origins stands for what is not simple."""

    argument = "sums"

    def __init__(self, links: Links) -> None:
        self.links = links
        self.first = self.sources = links.members.tolist()
        self.times = [1] * len(self.first)
        self.size = links.instance.bytes

    def origins(self, sources: list[int]) -> list[Origin]:
        soonest = soonest_news(self.links)
        return [Origin(self.links, u, soonest) for u in sources]

    def worth(self, origins: list[Origin], lengths: list[IntArray]) -> tuple[list[int], list[list[IntArray]]]:
        members = self.links.members
        directly = [origin.direct(lengths) for origin in origins]
        direct = np.minimum(np.stack([direct[0][members] for direct in directly]), UNREACHABLE // (len(members) + 1))
        np.fill_diagonal(direct, 0)
        relayed = origins[0].relayed(lengths)
        straight = direct.sum(axis=0) <= relayed[0][members]
        value = int(sum(np.minimum(direct.sum(axis=0), relayed[0][members]).tolist())) * self.size
        wanted = np.zeros(self.links.nodes, dtype=np.int64)
        wanted[members[~straight]] = self.size
        total = origins[0].load(relayed, wanted, 1)
        if straight.any():
            for origin, ends in zip(origins, directly, strict=True):
                wanted[:] = 0
                wanted[members[straight]] = self.size
                wanted[origin.u] = 0
                total = [a + b for a, b in zip(total, origin.load(ends, wanted, 0), strict=True)]
        return [value], [total]


def soonest_news(links: Links) -> IntArray:
    """The first moment at which every rank can have received something from a member, ticks, shape (nodes,)."""
    found = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
    for u in links.members.tolist():
        from_u = distances(links, links.delay, [u])
        from_u[u] = UNREACHABLE
        found = np.minimum(found, from_u)
    return np.where(links.is_switch, UNREACHABLE, found)


def _strongest(problem: Any, look: Colours, more: Callable[[], bool], best: Proven) -> Proven:
    links: Links = problem.links
    origins = problem.origins(problem.first)
    beginning = np.min([np.minimum(o.direct_at, o.relayed_at) for o in origins], axis=0)
    relayed = np.min([o.relayed_at for o in origins], axis=0)
    after = [np.zeros(links.links, dtype=np.int64), np.where(relayed < UNREACHABLE, relayed, 0)]
    members = np.zeros(links.nodes, dtype=bool)
    members[links.members] = True
    left = distances(links.reverse, links.delay, members, links.is_switch)[links.dst]
    before, behind = links.lag
    left = np.where(left < UNREACHABLE, left + behind, UNREACHABLE)
    begins = np.minimum(beginning, distances(links, links.delay, sorted(problem.sources))[links.src])
    each = counts_each(links)
    opens = [np.where(begins < UNREACHABLE, np.maximum(begins, t) + before, UNREACHABLE) for t in after]
    resources = [resources_of(links, look, at, left, each) for at in opens]
    for origin in origins:
        origin.open(after)
    times = np.array(problem.times, dtype=np.float64)[: 1 if problem.argument == "sums" else None]

    def worth(lengths: list[IntArray]) -> tuple[FloatArray, list[FloatArray]]:
        values, found = problem.worth(origins, lengths)
        by_window = [np.stack([load[k] for load in found]) * times[:, None] for k in range(len(after))]
        return np.array(values, dtype=np.float64) * times, by_window

    def exactly(lengths: list[IntArray]) -> int:
        everyone = origins if problem.first == problem.sources else problem.origins(problem.sources)
        for origin in everyone:
            origin.open(after)
        return sum(problem.worth(everyone, lengths)[0])

    def made(lengths: list[IntArray], seconds: Fraction) -> Proven:
        return Proven(
            seconds,
            problem.argument,
            lambda: _words(links, lengths),
            lambda: {
                "argument": problem.argument,
                "backwards": links.is_reversed,
                "ticks_per_s": links.ticks,
                "windows": [{"length": c.tolist(), "after": t.tolist()} for c, t in zip(lengths, after, strict=True)],
            },
        )

    return improved(resources, worth, exactly, made, more, best)


def _words(links: Links, lengths: list[IntArray]) -> str:
    used = [int(np.count_nonzero(c)) for c in lengths]
    what = "leaves" if links.is_reversed else "enters"
    return (
        f"deliveries: what {what} the ranks directly pays prices on {used[0]} links, and what is passed on by another "
        f"rank pays more on {used[1]} links, which it cannot use all the time"
    )
