"""The bound that the program's own multipliers prove: prices of links, made whole, and what they prove exactly.

The argument and its exact value are those of :mod:`synth_models.fabric.bounds.concurrent_flow`; only the prices come
from the linear program over the whole machine here, instead of from cutting planes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import FloatArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.concurrent_flow import Demands
from synth_models.fabric.bounds.link_prices import Resources, resources_of, time_to_pay, whole_prices
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below


@dataclass(frozen=True)
class Certified:
    """A proven lower bound in seconds, in words, and its certificate."""

    seconds: float
    words: str
    certificate: Mapping[str, Any]


class _ByLink(Resources):
    """Resources whose prices are given link by link."""

    def lengths(self, x: FloatArray) -> FloatArray:
        """Prices of a byte on every link: they are what is given."""
        return np.where(self.row >= 0, x, 0.0)


def certified(instance: FabricInstance, price: FloatArray) -> Certified | None:
    """What the best of the whole prices near ``price`` proves (of a second on every link and group, shape
    (resources,)); None where they prove nothing."""
    machine, links = instance.machine, Links.of(instance)
    each = price[: machine.links].copy()
    grouped = machine.group >= 0
    each[grouped] += price[machine.links + machine.group[grouped]]
    origins = np.unique(instance.blocks.origin).tolist()
    demands = Demands(links, {int(u): distances(links, links.delay, [int(u)]) for u in origins}, 0)
    begin = distances(links, links.delay, demands.origins)[links.src]
    left = distances(links.reverse, links.delay, demands.goals)[links.dst]
    left = np.where(left < UNREACHABLE, left + links.delay, UNREACHABLE)
    alone = Colours(np.arange(links.nodes), np.arange(links.links), links.members, np.ones_like(links.members))
    found = resources_of(links, alone, begin, left)
    by_link = _ByLink(found.links, found.row, found.lost, found.kind, links.links)
    best, chosen = Fraction(0), None
    for (length,) in whole_prices([by_link], each / machine.network.bandwidth):
        worth = sum(demands.worth(length, list(demands.wanted))[0])
        if worth and (seconds := time_to_pay([found], [length], worth)) > best:
            best, chosen = seconds, length
    if chosen is None:
        return None
    words = (
        f"concurrent flow: at prices on {int((chosen > 0).sum())} of {links.links} links, the multipliers of the "
        "program, all blocks' shortest ways cost what the links can carry in that time"
    )
    certificate = {"argument": "prices", "length": chosen.tolist(), "away_ticks": 0, "ticks_per_s": links.ticks}
    return Certified(float_below(best), words, certificate)
