"""What the references share for blocks that go from one rank to one other: a path of ranks each, and its transfers."""

from __future__ import annotations

from functools import cache

import numpy as np

from synth.arrays import IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.routes_in_turn import Edges
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed, timed_at_once
from synth_models.fabric.scheduling.moves import along, in_chunks
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_TRIED = 100_000  # transfers of a schedule with more than one chunk a block
MOST_CHUNKS = 1024
MOST_BLOCKS = 1_100_000


def best_paths(
    instance: FabricInstance, options: RunOptions, name: str, way: Edges | Transfers, parts: int = 1
) -> Outcome:
    """Every block along its edges, or by what :func:`once` makes of these; the quickest over numbers of chunks.
    ``parts``: of a block that transfers take different ways with, ``parts b + k`` being the number of part k of b."""
    if len(instance.blocks) > MOST_BLOCKS:
        return Outcome("unsupported", message=f"{len(instance.blocks)} blocks: at most {MOST_BLOCKS} are supported")
    routed = cache(lambda: way if isinstance(way, Transfers) else once(instance, instance.blocks.bytes, way))

    def make(count: int) -> Schedule | None:
        template = routed()
        if count > 1 and count * len(template.piece) > MOST_TRIED:
            return None
        block, nth, size = _pieces(instance.blocks.bytes, count * parts)
        rows = np.full((count, parts * len(instance.blocks)), -1, dtype=np.int64)
        rows[nth // parts, parts * block + nth % parts] = np.arange(len(block))
        cut = in_chunks(template, rows, block, size, lambda step, chunk: step * count + chunk)
        return (timed_at_once if len(template.piece) > MOST_TRIED else timed)(instance, cut)

    most = max(1, min(MOST_CHUNKS, int(instance.blocks.bytes.max(initial=1)) // parts))
    found = chunks.best_number(instance, options, make, most)
    assert found is not None
    words = f"{name}, {chunks.in_words(found[0])}"
    return Outcome("finished", solution=found[1], message=f"{words}{chunks.hurried(options)}")


def _pieces(size: IntArray, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Blocks of these sizes in so many pieces each, as :func:`~synth_models.fabric.scheduling.chunks.cut` cuts them: of
    every piece its block, its number there, and its bytes."""
    parts = np.minimum(count, size)
    block = np.repeat(np.arange(len(size), dtype=np.int64), parts)
    nth = np.arange(len(block)) - np.repeat(np.cumsum(parts) - parts, parts)
    whole, of = size[block], parts[block]
    return block, nth, whole * (nth + 1) // of - whole * nth // of


def once(instance: FabricInstance, size: IntArray, edges: Edges) -> Transfers:
    """One piece a block of these sizes, over the routes that are best for the largest, equally quick ones in turn."""
    return along(Routes.of(instance, int(size.max(initial=1))), size, edges)
