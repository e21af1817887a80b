"""Column generation: trees come in while their price is below what their block pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.steiner.model import Column, Packing, packed, proven, whole_prices
from synth_models.fabric.programs.steiner.pricing import FAR, Costs, Pricing
from synth_models.fabric.programs.steiner.tree_transfers import Hop, seconds_a_byte, spreading, summing, up_and_down
from synth_models.fabric.programs.steiner.tuned import MOST_ROUNDS

ENOUGH = 1e-7  # of the value: where the packing and the bound of tree packings count as equal


@dataclass(frozen=True, eq=False)
class Fluid:
    """The packing of trees: columns with their shares, the seconds of the fluid, what every packing takes at least
    (None where trees are no least ones), and the rounds."""

    columns: list[Column]
    packing: Packing
    least: Fraction | None
    rounds: int


class Generation:
    """Trees of an instance's blocks."""

    def __init__(self, instance: FabricInstance) -> None:
        self.instance, self.machine = instance, instance.machine
        self.there = instance.machine.reversed()
        members = tuple(instance.members)
        self.out, self.into = Pricing(self.machine, members), Pricing(self.there, members)
        self.resources = self.machine.links + len(self.machine.group_names)
        self.sizes = instance.blocks.bytes
        able = self.machine.abilities
        hubs = np.flatnonzero(self.machine.is_switch & able.adds & able.copies).tolist()
        self.centres = [*members, *hubs]

    def fluid(self, options: RunOptions) -> Fluid | None:
        """The best packing within the time limit; None where some block has no tree."""
        columns: list[Column] = []
        least: Fraction | None = None
        packing: Packing | None = None
        price = np.ones(self.resources)
        rounds = 0
        while rounds < MOST_ROUNDS:
            rounds += 1
            prices = whole_prices(self.machine, price)
            found = list(self.priced(prices))
            if len({column.block for _, column in found}) < len(self.sizes):
                return None
            least = self._proven(prices, found, least)
            known = {(column.block, column.hops) for column in columns}
            fresh = [column for _, column in found if (column.block, column.hops) not in known]
            if packing is not None and (not fresh or self._met(packing, least) or options.out_of_time()):
                break
            columns += fresh
            packing = packed(columns, self.sizes, self.resources)
            price = packing.price
        assert packing is not None
        return Fluid(columns, packing, least, rounds)

    def _proven(self, prices: IntArray, found: list[tuple[int, Column]], known: Fraction | None) -> Fraction | None:
        """What all packings take at least, by these prices or those before; None where trees are no least ones."""
        if not (self.out.exact and self.into.exact):
            return None
        cheapest = [min(cost for cost, column in found if column.block == b) for b in range(len(self.sizes))]
        bound = proven(self.machine, prices, cheapest, self.sizes)
        return bound if known is None else max(known, bound)

    def _met(self, packing: Packing, least: Fraction | None) -> bool:
        return least is not None and packing.seconds * (1 - ENOUGH) <= float_below(least)

    def priced(self, prices: IntArray) -> Iterator[tuple[int, Column]]:
        """Trees of every block that cost least at these prices, with their costs."""
        blocks = self.instance.blocks
        if self.instance.collective == "allreduce":
            yield from self._through_centres(prices)
            return
        backwards = bool(blocks.origin[0] == EVERYONE)
        machine, pricing = (self.there, self.into) if backwards else (self.machine, self.out)
        roots = (blocks.goal if backwards else blocks.origin).tolist()
        for block, found in enumerate(pricing.trees(_costs(machine, prices), roots)):
            if found is not None:
                hops = (summing if backwards else spreading)(machine, found[1])
                yield found[0], self._column(block, hops)

    def _through_centres(self, prices: IntArray) -> Iterator[tuple[int, Column]]:
        """Allreduce: to a rank or a hub and from it, the least for each of these whose cost is the least or near."""
        ups = self.into.trees(_costs(self.there, prices), self.centres)
        downs = self.out.trees(_costs(self.machine, prices), self.centres)
        limited = np.isfinite(self.machine.abilities.add_rate)
        for number, centre in enumerate(self.centres):
            if self.machine.is_switch[centre] and limited[centre]:
                [downs[number]] = self.out.trees(_costs_from(self.machine, prices, centre), [centre])
        both = [(up, down) for up, down in zip(ups, downs, strict=True) if up is not None and down is not None]
        for up, down in both:
            hops = up_and_down(self.machine, self.there, up[1], down[1])
            if hops is not None:
                yield up[0] + down[0], self._column(0, hops)

    def _column(self, block: int, hops: list[Hop]) -> Column:
        return Column(block, tuple(hops), seconds_a_byte(self.machine, hops))


def _costs(machine: Machine, prices: IntArray) -> Costs:
    """What a byte pays; on the reversed machine more where a switch behind a link parts it and adds slowly."""
    rate = machine.abilities.copy_rate[machine.network.dst]
    slower = np.maximum(machine.network.bandwidth / rate, 1.0)
    return Costs(prices, _whole(np.asarray(prices * slower, dtype=np.float64)))


def _costs_from(machine: Machine, prices: IntArray, hub: int) -> Costs:
    """The same, where sums leave a hub that adds slowly."""
    slower = np.maximum(machine.network.bandwidth / machine.abilities.add_rate[hub], 1.0)
    own = np.where(machine.network.src == hub, _whole(prices * slower), prices)
    return Costs(own, own)


def _whole(prices: FloatArray) -> IntArray:
    """The prices rounded down, and cut off where no tree would pay them: sums over a tree stay below :data:`FAR`."""
    return np.floor(np.minimum(prices, float(FAR >> 12))).astype(np.int64)
