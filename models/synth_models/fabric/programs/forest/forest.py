"""The fluid optimum of a machine as trees, with what each part of finding it took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.forest.balance import balance
from synth_models.fabric.programs.forest.capacities import Fluid, Share, fluid_of, set_rate, set_trees
from synth_models.fabric.programs.forest.edge_splitting import split_off, trim
from synth_models.fabric.programs.forest.tree_packing import Trees, pack_trees, shallower
from synth_models.fabric.programs.forest.tuned import FINER


@dataclass
class Forest:
    """``trees`` over positions in ``nodes`` given to :func:`forest_of`, ``per_root`` copies for every root of weight
    1; ``shares``: routes of the capacity between two members; ``capacity``: the same in sum, shape (n, n);
    ``cut_rate``: what the cuts of the machine allow; ``unit``: bytes/s of a unit of capacity."""

    trees: Trees
    per_root: int
    rate: Fraction
    cut_rate: Fraction
    unit: Fraction
    shares: dict[tuple[int, int], list[Share]]
    capacity: IntArray
    seconds: dict[str, float]
    remark: str


def forest_of(
    machine: Machine, nodes: list[int], roots: dict[int, int], gathering: bool = False, equal: int | None = None
) -> Forest:
    """Trees from every root at the greatest rate. ``gathering``: with all capacity that there is, and split off as
    :func:`~synth_models.fabric.programs.forest.edge_splitting.split_off` says. ``equal``: so many trees of every root,
    of equal shares, at the greatest rate that these reach. Raises ``ValueError`` where a member cannot be reached, or
    not by so many equal trees."""
    clock = [time.monotonic()]
    members = np.array(nodes, dtype=np.int64)
    fluid = fluid_of(machine, members, roots)
    set_rate(fluid)
    cut_rate = fluid.rate
    clock.append(time.monotonic())
    if balance(machine_fluid := fluid_of(machine, members, roots)):
        fluid = machine_fluid
        set_rate(fluid)
    if equal is not None:
        set_trees(fluid, equal)
        cut_rate = fluid.rate
    if gathering:
        _finer(fluid)
    else:
        trim(fluid)
    split_off(fluid, gathering, thick=equal is not None)
    if equal is None:
        set_rate(fluid)  # the same again, unless a switch takes in more than it lets out
    clock.append(time.monotonic())
    capacity = fluid.capacity[np.ix_(members, members)]
    demand = fluid.weight[members] * fluid.trees
    trees = shallower(pack_trees(capacity, demand), capacity)
    clock.append(time.monotonic())
    remarks = []
    if fluid.rate != cut_rate:
        more = float(cut_rate / fluid.rate)
        remarks.append(f"; the cuts allow {more:.6g} times as much, which routes without copies in switches may miss")
    if fluid.rounded:
        remarks.append("; bandwidths rounded down to 2^-36 of the greatest")
    if fluid.ignored:
        remarks.append(f"; the fluid does not know that {fluid.ignored} groups of links take turns")
    names = ("rate", "splitting", "packing")
    return Forest(
        trees,
        fluid.trees,
        fluid.rate,
        cut_rate,
        fluid.unit,
        {pair: _straight(parts, machine) for pair, parts in fluid.shares.items() if parts},
        capacity,
        {name: after - before for name, before, after in zip(names, clock, clock[1:], strict=False)},
        "".join(remarks),
    )


def equal_rates(
    machine: Machine, nodes: list[int], roots: dict[int, int], counts: Sequence[int]
) -> dict[int, Fraction]:
    """By numbers of equal trees a root the rate that so many reach, without those that reach too little."""
    found: dict[int, Fraction] = {}
    fluid = fluid_of(machine, np.array(nodes, dtype=np.int64), roots)
    set_rate(fluid)
    for count in counts:
        copy = replace(fluid, capacity=fluid.capacity.copy(), shares=dict(fluid.shares))
        with suppress(ValueError):
            set_trees(copy, count)
            found[count] = copy.rate
    return found


def _finer(fluid: Fluid) -> None:
    """Count capacity in units of a :data:`FINER`-th, in place, so that even parts at a switch leave nothing over."""
    fluid.capacity *= FINER
    fluid.unit /= FINER
    fluid.trees *= FINER
    fluid.shares = {pair: [(amount * FINER, way) for amount, way in parts] for pair, parts in fluid.shares.items()}


def _straight(parts: list[Share], machine: Machine) -> list[Share]:
    """The shares with routes that pass no node twice (splitting may join such), equal routes together."""
    total: dict[tuple[int, ...], int] = {}
    src, dst = machine.network.src, machine.network.dst
    for amount, route in parts:
        kept: list[int] = []
        for e in route:
            while kept and int(dst[e]) in {int(src[x]) for x in kept}:
                if int(dst[e]) == int(src[kept[-1]]):
                    kept.pop()
                    break
                kept.pop()
            else:
                kept.append(e)
        total[tuple(kept)] = total.get(tuple(kept), 0) + amount
    return [(amount, route) for route, amount in total.items()]
