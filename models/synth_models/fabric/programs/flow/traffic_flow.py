"""``flow`` for blocks with several holders and wanters: trees along the links of the quickest flow.

The linear program of :mod:`synth_models.fabric.bounds.traffic` says how often a byte of every block crosses each link
in the least time without latencies, and its prices bound every schedule. Pieces then grow trees by load
(:mod:`synth_models.fabric.plans.block_trees`); a route over links that the flow leaves alone costs :data:`OFF` times
its seconds more.
"""

from __future__ import annotations

import time

import numpy as np

from synth.arrays import FloatArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.proven import NOTHING
from synth_models.fabric.bounds.traffic import classes, fluid_traffic, proven_by
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.block_schedules import best_trees
from synth_models.fabric.plans.block_trees import Piece, Roads
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.programs.flow.tuned import HABITS, LONGEST_S, OFF, SHARE_OF_FLOW, UNUSED


def propose(instance: FabricInstance, options: RunOptions) -> Outcome:
    """The best schedule of trees along the flow, and what its prices prove."""
    begun = time.monotonic()
    links = Links.of(instance)
    kinds = classes(links)
    left = options.part(SHARE_OF_FLOW, most_s=LONGEST_S).remaining()
    fluid = fluid_traffic(links, kinds, LONGEST_S if left is None else left)
    if fluid is None:
        return Outcome("unsupported", message="the flow's program is too large, or was not solved in half the time")
    built, proven = time.monotonic(), proven_by(links, kinds, fluid, NOTHING)
    number = {kind: k for k, one in enumerate(kinds) for kind in [_kind(instance, one.block)]}

    def toll(roads: Roads, piece: Piece) -> FloatArray:
        use = fluid.use[number[_kind(instance, piece.block)]]
        off: FloatArray = OFF * roads.seconds * (use[roads.table].min(axis=1) < UNUSED)
        return off

    found = best_trees(instance, options, f"trees along a flow of {fluid.seconds:.6g} s", HABITS, toll)
    found.build_s, found.solve_s = built - begun, time.monotonic() - built
    if proven is not NOTHING:
        found.bound, found.bound_proof = float_below(proven.seconds), str(proven)
        found.certificate = proven.certificate()
        options.held.offer_bound(found.bound, found.bound_proof, found.certificate)
    return found


def _kind(instance: FabricInstance, block: int) -> tuple[int, int, bool]:
    blocks = instance.blocks
    return int(blocks.origin[block]), int(blocks.goal[block]), bool(np.any(blocks.sums[block]))
