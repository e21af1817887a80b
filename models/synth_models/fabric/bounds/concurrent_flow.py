"""Bound 2: concurrent flow. Every byte that goes from one rank to another uses up link time.

**Proof.** Let c_e >= 0 be a price of a byte on link e. Every byte of a block from u to v is carried, over a chain of
transfers, along some walk from u to v, and pays at least the shortest distance ``dist_c(u, v)``; so all blocks pay at
least ``sum of bytes * dist_c(origin, goal)``. A link that is occupied for x seconds carries b_e x bytes, and until T it
can carry useful ones for ``max(0, T - h_e)`` seconds, where h_e is the latency before and behind it
(:mod:`synth_models.fabric.bounds.cuts`; here U are the origins and W the goals of the blocks that are looked at). So
``sum of bytes * dist_c <= sum over e of c_e b_e max(0, T - h_e)``: the dual of the maximum concurrent flow (Shahrokhi,
Matula 1990), which is attained where latency is nothing. Switches may do what they like: a byte that is wanted at one
place needs one walk, whatever copies are made of others (copies only take more room). Ranks outside the group pay too.

**Groups.** A transfer occupies a group for at least n / b of each of its links in it, one after the other or at once.
Where no route can use two links of the group, the group earns at most ``max of c_e b_e`` a second. Otherwise a route
uses at most one of its links that leave a rank, and at most one that leaves a switch and enters a rank: these are two
parts that earn separately, every other link of the group is a part of its own. With ``store_and_forward`` every hop is
a transfer of its own, and a group is one part.

Blocks whose origin and goal are near can be left out (``away``): then what is left has larger h_e.
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
from synth_models.fabric.bounds.link_prices import anywhere, improved, resources_of
from synth_models.fabric.bounds.paths import distances, earliest
from synth_models.fabric.bounds.proven import Proven

MOST_THRESHOLDS = 4


class Demands:
    """Blocks from rank to rank that are at least ``away`` ticks of latency apart, by origin."""

    def __init__(self, links: Links, distance: dict[int, IntArray], away: int) -> None:
        _, goal, size = links.blocks
        self.links, self.away = links, away
        self.wanted: dict[int, IntArray] = {}
        for u, from_u in distance.items():
            rows = links.rows_from[u]
            rows = rows[from_u[goal[rows]] >= away]
            if len(rows):
                wanted = np.zeros(links.nodes, dtype=np.int64)
                np.add.at(wanted, goal[rows], size[rows])
                self.wanted[u] = wanted
        self.origins, self.goals = np.zeros(links.nodes, dtype=bool), np.zeros(links.nodes, dtype=bool)
        for u, wanted in self.wanted.items():
            self.origins[u] = True
            self.goals |= wanted > 0

    def worth(self, length: IntArray, sources: list[int]) -> tuple[list[int], list[IntArray]]:
        """Bytes times distance, and bytes on every link, of each of the sources."""
        values, by_link = [], []
        came, order = np.empty(self.links.nodes, dtype=np.int64), np.empty(self.links.nodes, dtype=np.int64)
        everywhere = anywhere(self.links)
        for u in sources:
            first = np.full(self.links.nodes, UNREACHABLE, dtype=np.int64)
            first[u] = 0
            cost = search(*self.links.out, self.links.dst, length, first, everywhere, came, order)
            wanted = self.wanted[u]
            values.append(exact_dot(wanted[wanted > 0], cost[wanted > 0]))
            load = np.zeros(self.links.links, dtype=np.int64)
            add_loads(came, order, self.links.src, wanted, load)
            by_link.append(load)
        return values, by_link


def strongest_prices(links: Links, look: Colours, more: Callable[[], bool], known: Proven) -> Proven:
    """The strongest bound by prices that is found while ``more()``, or ``known`` if none is stronger."""
    _, goal, _ = links.blocks
    distance = {u: distances(links, links.delay, [u]) for u in links.rows_from}
    pairs = np.concatenate([from_u[goal[links.rows_from[u]]] for u, from_u in distance.items()])
    levels = np.unique(pairs).tolist()
    thresholds = [0] + [level for level in levels[1:] if level > 0][-MOST_THRESHOLDS:]
    best = known
    for away in thresholds:
        demands = Demands(links, distance, away)
        best = _strongest_of(demands, look, more, best)
        if not more():
            break
    return best


def _strongest_of(demands: Demands, look: Colours, more: Callable[[], bool], best: Proven) -> Proven:
    links = demands.links
    begin = earliest(links, demands.origins)[links.src]
    left = earliest(links.reverse, demands.goals)[links.dst]
    left = np.where(left < UNREACHABLE, left + links.delay, UNREACHABLE)
    resources = resources_of(links, look, begin, left)
    same = links.instance.collective == "demand"
    some = [u for u in (list(demands.wanted) if same else look.first.tolist()) if u in demands.wanted]
    times = np.array([1 if same else int(look.count[look.first == u][0]) for u in some], dtype=np.float64)

    def worth(lengths: list[IntArray]) -> tuple[FloatArray, list[FloatArray]]:
        values, by_link = demands.worth(lengths[0], some)
        return np.array(values, dtype=np.float64) * times, [np.stack(by_link) * times[:, None]]

    def exactly(lengths: list[IntArray]) -> int:
        return sum(demands.worth(lengths[0], list(demands.wanted))[0])

    def made(lengths: list[IntArray], seconds: Fraction) -> Proven:
        return Proven(seconds, "prices", lambda: _words(links, lengths[0]), lambda: _certificate(demands, lengths[0]))

    return improved([resources], worth, exactly, made, more, best)


def _certificate(demands: Demands, length: IntArray) -> dict[str, Any]:
    ticks = demands.links.ticks
    return {"argument": "prices", "length": length.tolist(), "away_ticks": demands.away, "ticks_per_s": ticks}


def _words(links: Links, length: IntArray) -> str:
    used: BoolArray = length > 0
    return (
        f"concurrent flow: at prices on {int(used.sum())} of {links.links} links, all blocks' shortest ways cost what "
        "the links can carry in that time"
    )
