"""Prices for many GPUs from a program over blocks of them.

A block system is a partition of the GPUs whose blocks the renumberings of :mod:`.automorphisms` map onto blocks. Taking
every GPU as its block turns a topology into links between blocks, as many a block on average as a GPU has, and a route
into a walk with as many hops at most. So what :mod:`.joint_prices` asks for can be sought over the blocks, which are
fewer; its prices, given to all pairs of GPUs of the same two blocks, are prices as any others. A pattern that joins
GPUs of one block has none.

The blocks are those of the same residues in a 1-D, 2-D or 3-D numbering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.bounds.automorphisms import row_orbits
from synth_models.harvest.bounds.rate_prices import Bundle, RatePrices
from synth_models.harvest.parts.topologies import torus_sides

BLOCKS_FROM = 64  # of fewer GPUs all are told apart
Pick = tuple[int, int, float]


class CoarsePrices:
    """What :class:`.joint_prices.JointPrices` needs, over the blocks of ``fine``: ``block`` is that of every GPU;
    ``picks`` have two blocks and the volume of a fine orbit, of as many GPUs as there are blocks."""

    def __init__(self, fine: RatePrices, group: Sequence[IntArray], block: IntArray) -> None:
        self.fine, self.ports, self.gpus = fine, fine.ports, int(block.max()) + 1
        self.block = block
        first = np.unique(block, return_index=True)[1]
        grid = np.stack(np.meshgrid(np.arange(self.gpus), np.arange(self.gpus), indexing="ij"), axis=-1).reshape(-1, 2)
        self.label = row_orbits(grid, [block[moved[first]] for moved in group]).reshape(self.gpus, self.gpus)
        self.count = int(self.label.max()) + 1
        share = self.gpus / fine.gpus
        self.picks = [[(int(block[u]), int(block[v]), size * share) for u, v, size in one] for one in fine.picks]
        self.joint_paths: dict[tuple[int, Pick], set[tuple[int, ...]]] = {}
        ends = np.unique(fine.label, return_index=True)[1]
        self.of_fine = self.label[block[ends // fine.gpus], block[ends % fine.gpus]]

    @property
    def apart(self) -> int:
        """How many kinds of pairs of blocks the patterns have, those inside one block not counted."""
        return len({self.label[u, v] for one in self.picks for u, v, _ in one if u != v})

    def prices_all(self, patterns: Sequence[int]) -> bool:
        """Whether these patterns join different blocks only."""
        return all(u != v for k in patterns for u, v, _ in self.picks[k])

    def whole_bundle(self, patterns: list[int], prices: FloatArray) -> Bundle:
        """The prices (patterns, orbits of pairs of blocks) as a bundle of the GPUs."""
        return replace(self.fine.whole_bundle(patterns, prices[:, self.of_fine]), columns=self.of_fine)


def coarse_prices(fine: RatePrices, group: Sequence[IntArray]) -> list[CoarsePrices]:
    """Over BLOCKS_FROM blocks or more, the fewest first; of as many blocks, those that tell most pairs apart. Left out
    are those beside which more blocks, or all GPUs, have few orbits of pairs too."""
    systems = {np.unique(block, return_index=True)[1][block].tobytes(): block for block in _systems(fine.gpus, group)}
    best: dict[int, CoarsePrices] = {}
    for block in systems.values():
        made = CoarsePrices(fine, group, block)
        if made.gpus not in best or made.apart > best[made.gpus].apart:
            best[made.gpus] = made
    if fine.count <= BLOCKS_FROM:
        return []
    found = [best[blocks] for blocks in sorted(best)]
    few = [number for number, one in enumerate(found) if one.count <= BLOCKS_FROM]
    return found[max(few, default=0) :]


def prices_of(known: Sequence[CoarsePrices], patterns: Sequence[int]) -> list[CoarsePrices]:
    """Those whose blocks tell the ends of all these patterns' pairs apart, of the fewest blocks first."""
    return [one for one in known if one.prices_all(patterns)]


def _systems(gpus: int, group: Sequence[IntArray]) -> Iterator[IntArray]:
    """Each GPU's block in every block system tried that has BLOCKS_FROM blocks or more."""
    for sides in ((gpus,), torus_sides(gpus, 2), torus_sides(gpus, 3)):
        if sides is None:
            continue
        places = np.stack(np.unravel_index(np.arange(gpus), sides), axis=-1)
        for residues in product(*([part for part in range(1, side + 1) if side % part == 0] for side in sides)):
            if BLOCKS_FROM <= np.prod(residues) < gpus:
                block = np.ravel_multi_index(tuple((places % residues).T), residues).astype(np.int64)
                if all(_respects(moved, block) for moved in group):
                    yield block


def _respects(moved: IntArray, block: IntArray) -> bool:
    """Whether the renumbering maps blocks onto blocks."""
    first = np.unique(block, return_index=True)[1]
    return bool((block[moved] == block[moved[first]][block]).all())
