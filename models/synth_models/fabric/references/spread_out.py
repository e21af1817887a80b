"""Method ``spread_out`` (reference): the all-to-all of MPI libraries, one partner a step.

In step k rank i sends to rank i + k and receives from rank i - k; it goes on to the next step when both are done
(pairwise exchange: MPICH, Thakur et al. 2005). Unequal blocks leave ranks waiting for each other.
Complexity: one transfer a block, more where a route leads over ranks.
"""

from __future__ import annotations

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import empty, refusal
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import Moves
from synth_models.fabric.scheduling.routes import Routes

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``spread_out``."""
    refused = refusal(instance, KNOWN, "spread_out")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    blocks = instance.blocks
    place = {rank: k for k, rank in enumerate(instance.members)}
    pairs = list(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True))
    step = [(place[goal] - place[origin]) % len(place) for origin, goal in pairs]
    routes = Routes.of(instance, int(blocks.bytes.max()))
    moves = Moves(routes, range(len(blocks)), blocks.bytes, blocks.origin.tolist())
    received: dict[int, int] = {}
    for b in sorted(range(len(blocks)), key=step.__getitem__):
        (origin, goal), first = pairs[b], len(moves)
        moves.send(b, origin, goal, step[b])
        last = received.get(origin)
        if last is not None:
            moves.wait(first, last)
        received[goal] = len(moves) - 1
    return Outcome("finished", solution=timed(instance, moves.transfers()), message="one partner a step")
