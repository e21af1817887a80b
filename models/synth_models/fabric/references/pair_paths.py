"""What the references share for blocks that go from one rank to one other: a path of ranks each, and its transfers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.moves import Moves, in_chunks, pieces_of
from synth_models.fabric.scheduling.routes import Routes
from synth_models.fabric.solution import Schedule

MOST_TRIED = 100_000  # transfers of a schedule with more than one chunk a block
MOST_CHUNKS = 1024
MOST_BLOCKS = 1_100_000
Path = Callable[[int, int], tuple[list[int], list[int]]]  # from origin and goal: ranks of the path, priority per move


def best_paths(instance: FabricInstance, options: RunOptions, name: str, path: Path) -> Outcome:
    """Every block along its path; the quickest over numbers of chunks."""
    if len(instance.blocks) > MOST_BLOCKS:
        return Outcome("unsupported", message=f"{len(instance.blocks)} blocks: at most {MOST_BLOCKS} are supported")
    known: dict[int, Transfers] = {}

    def make(count: int) -> Schedule | None:
        template = known.get(0)
        if template is None:
            template = known[0] = _along(instance, path)
        if count > 1 and count * len(template.piece) > MOST_TRIED:
            return None
        blocks = instance.blocks
        sizes = [chunks.cut(int(n), count) for n in blocks.bytes]
        block, size = pieces_of(sizes)
        rows = np.full((count, len(blocks)), -1, dtype=np.int64)
        nth = np.arange(len(block)) - np.concatenate([[0], np.cumsum([len(row) for row in sizes])])[block]
        rows[nth, block] = np.arange(len(block))
        return timed(instance, in_chunks(template, rows, block, size, lambda step, chunk: step * count + chunk))

    most = min(MOST_CHUNKS, int(instance.blocks.bytes.max(initial=1)))
    found = chunks.best_number(instance, options, make, most)
    assert found is not None
    words = f"{name}, {chunks.in_words(found[0])}"
    return Outcome("finished", solution=found[1], message=f"{words}{chunks.hurried(options)}")


def _along(instance: FabricInstance, path: Path) -> Transfers:
    """One piece a block, over the routes that are best for the largest block, equally quick ones used in turn."""
    blocks = instance.blocks
    routes = Routes.of(instance, int(blocks.bytes.max(initial=1)))
    moves = Moves(routes, range(len(blocks)), blocks.bytes, blocks.origin.tolist())
    for b, (origin, goal) in enumerate(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True)):
        stops, steps = path(origin, goal)
        moves.send_along(b, zip(stops, stops[1:], steps, strict=False))
    return moves.transfers()
