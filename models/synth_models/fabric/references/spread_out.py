"""Method ``spread_out`` (reference): the all-to-all of MPI libraries, one partner a step.

In step k rank i sends to rank i + k and receives from rank i - k (pairwise exchange: MPICH, Thakur et al. 2005). It
begins a step when what it received last before that has arrived, and in the order of the steps; a library also waits
until what it sent has been received. Unequal blocks leave ranks waiting for each other.
Complexity: one transfer a block, more where a route leads over ranks.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np

from synth.arrays import IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.pair_edges import step_after_step, turns
from synth_models.fabric.plans.pair_paths import once
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import waiting

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``spread_out``."""
    refused = refusal(instance, KNOWN, "spread_out")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    blocks = instance.blocks
    found = once(instance, blocks.bytes, step_after_step(instance, blocks.origin, blocks.goal))
    waits = _waits(turns(instance, blocks.origin, blocks.goal), blocks.origin, blocks.goal, found.piece)
    return Outcome("finished", solution=timed(instance, waiting(found, waits)), message="one partner a step")


def _waits(step: IntArray, origin: IntArray, goal: IntArray, piece: IntArray) -> list[tuple[int, int]]:
    """Which transfers wait for which: the first of each block for the last of the block that its origin received in the
    latest step before. ``piece``: of every transfer, those of a block one behind the other."""
    begins = np.flatnonzero(np.diff(piece, prepend=-1))
    ends = np.append(begins[1:], len(piece)) - 1
    waits: list[tuple[int, int]] = []
    received: dict[int, int] = {}
    columns = (column[piece[begins]].tolist() for column in (step, origin, goal))
    for _, together in groupby(zip(*columns, begins.tolist(), ends.tolist(), strict=True), key=itemgetter(0)):
        rows = list(together)
        waits += [(first, received[source]) for _, source, _, first, _ in rows if source in received]
        received |= {target: last for _, _, target, _, last in rows}
    return waits
