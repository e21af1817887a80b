"""What the exact programs see of an interval of steps: its distinct steps, how often each occurs, its symmetries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import isomorphisms
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import pattern_degree

RELABELLINGS_KEPT = 64
SMALLEST_SHARE = 1e-7  # of the largest volume: programs take no smaller coefficients

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class Block:
    """One distinct step of an interval: its ``pairs``, the ``seconds`` that the bytes of a pair of largest volume take
    on one link, how many steps of the interval are like this (``count``), and the pairs' ``volumes`` without a common
    divisor (empty where all are equal). All of its steps cost the same on one topology. Loads and rates of a block are
    those of a pair of largest volume."""

    pairs: Pairs
    seconds: float
    count: int = 1
    volumes: tuple[int, ...] = ()

    @property
    def largest(self) -> int:
        """The largest volume."""
        return max(self.volumes, default=1)

    @cached_property
    def share(self) -> dict[tuple[int, int], float]:
        """Every pair's volume as a share of the largest, those below SMALLEST_SHARE raised to it."""
        shares = (max(volume / self.largest, SMALLEST_SHARE) for volume in self._volumes)
        return dict(zip(self.pairs, shares, strict=True))

    @property
    def raised(self) -> float:
        """How much shares were raised by in all. A topology's largest load with raised shares is at most 1 + ports *
        this times what it is: the added volume loads no link by more than itself, at rates of at most ``ports``."""
        return sum(max(SMALLEST_SHARE - volume / self.largest, 0.0) for volume in self._volumes)

    @cached_property
    def rows(self) -> IntArray:
        """The pairs with their volumes, shape (pairs, 3)."""
        return np.array([(*pair, volume) for pair, volume in zip(self.pairs, self._volumes, strict=True)])

    @property
    def degree(self) -> float:
        """The largest volume that leaves or enters one GPU, over the largest of a pair."""
        return pattern_degree(self.rows) / self.largest

    @property
    def _volumes(self) -> tuple[int, ...]:
        return self.volumes or (1,) * len(self.pairs)

    def partners(self) -> dict[int, list[int]]:
        """Destinations of every source."""
        found: dict[int, list[int]] = {}
        for source, target in self.pairs:
            found.setdefault(source, []).append(target)
        return found


def blocks_of(instance: HarvestInstance, first: int, last: int) -> tuple[Block, ...]:
    """Steps ``first`` … ``last`` (both included, from 0), equal ones counted, in a fixed order."""
    found: Counter[tuple[Pairs, float, tuple[int, ...]]] = Counter()
    for i in range(first, last + 1):
        rows = sorted(instance.demands[i].tolist())
        volumes = [volume for *_, volume in rows]
        seconds = float(instance.bytes_per_pair[i]) * max(volumes) / instance.port_bandwidth
        common = math.gcd(*volumes)
        reduced = tuple(volume // common for volume in volumes) if len(set(volumes)) > 1 else ()
        found[tuple((u, v) for u, v, _ in rows), seconds, reduced] += 1
    return tuple(sorted(Block(pairs, seconds, count, volumes) for (pairs, seconds, volumes), count in found.items()))


def reversed_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The same interval with every pair reversed: its best topology is the other's with every link reversed."""
    found = []
    for block in blocks:
        rows = sorted((v, u, volume) for u, v, volume in block.rows.tolist())
        volumes = tuple(volume for *_, volume in rows) if block.volumes else ()
        found.append(Block(tuple((u, v) for u, v, _ in rows), block.seconds, block.count, volumes))
    return tuple(sorted(found))


def reversed_links(links: IntArray) -> IntArray:
    """Every link reversed, sorted."""
    found = links[:, [1, 0, 2]]
    return found[np.lexsort((found[:, 1], found[:, 0]))]


@dataclass(frozen=True)
class Relabelling:
    """A map of GPUs under which every pattern stays the same (``is_reversed``: becomes the same with all pairs
    reversed). It maps topologies to topologies of equal cost: link (u, v) to (image[u], image[v]), or to the reversed.
    """

    image: tuple[int, ...]
    is_reversed: bool

    def link(self, u: int, v: int) -> tuple[int, int]:
        """Where the link from u to v goes."""
        a, b = self.image[u], self.image[v]
        return (b, a) if self.is_reversed else (a, b)


def relabellings(blocks: Sequence[Block], gpus: int, most: int = RELABELLINGS_KEPT) -> list[Relabelling]:
    """Up to ``most`` relabellings under which all patterns are invariant, by backtracking over the GPUs."""
    colour = np.zeros((gpus, gpus), dtype=np.int64)  # equal where the same patterns meet
    for rows in {(block.pairs, block.volumes): block.rows for block in blocks}.values():
        member = np.zeros((gpus, gpus), dtype=np.int64)
        member[rows[:, 0], rows[:, 1]] = 1 + np.unique(rows[:, 2], return_inverse=True)[1]
        kinds = np.unique((member.max() + 1) * colour + member, return_inverse=True)[1]
        colour = kinds.reshape(gpus, gpus).astype(np.int64)
    found = [Relabelling(image, False) for image in islice(isomorphisms(colour, colour), most)]
    found += [Relabelling(image, True) for image in islice(isomorphisms(colour, colour.T), most)]
    return found[:most]
