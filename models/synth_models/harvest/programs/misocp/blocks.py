"""What the exact programs see of an interval of steps: its distinct steps, how often each occurs, its symmetries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import IntArray

RELABELLINGS_KEPT = 64

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class Block:
    """One distinct step of an interval: its ``pairs``, the ``seconds`` a pair's bytes take on one link, and how many
    steps of the interval are like this (``count``). All of them cost the same on one topology."""

    pairs: Pairs
    seconds: float
    count: int = 1

    @property
    def degree(self) -> int:
        """The most pairs that leave or enter one GPU."""
        return max(max(Counter(pair[side] for pair in self.pairs).values()) for side in (0, 1))

    def partners(self) -> dict[int, list[int]]:
        """Destinations of every source."""
        found: dict[int, list[int]] = {}
        for source, target in self.pairs:
            found.setdefault(source, []).append(target)
        return found


def blocks_of(instance: HarvestInstance, first: int, last: int) -> tuple[Block, ...]:
    """Steps ``first`` … ``last`` (both included, from 0), equal ones counted, in a fixed order."""
    found: Counter[tuple[Pairs, float]] = Counter()
    for i in range(first, last + 1):
        pairs = tuple(sorted((int(u), int(v)) for u, v in instance.pairs[i]))
        found[pairs, float(instance.bytes_per_pair[i]) / instance.port_bandwidth] += 1
    return tuple(sorted(Block(pairs, seconds, count) for (pairs, seconds), count in found.items()))


def reversed_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The same interval with every pair turned round: its best topology is the other's with every link turned round."""
    return tuple(
        sorted(Block(tuple(sorted((v, u) for u, v in block.pairs)), block.seconds, block.count) for block in blocks)
    )


def reversed_links(links: IntArray) -> IntArray:
    """Every link turned round, sorted."""
    turned = links[:, [1, 0, 2]]
    return turned[np.lexsort((turned[:, 1], turned[:, 0]))]


@dataclass(frozen=True)
class Relabelling:
    """A map of GPUs under which every pattern stays the same (``turned``: becomes the same with all pairs turned
    round). It maps topologies to topologies of equal cost: link (u, v) to (image[u], image[v]), ends swapped if turned.
    """

    image: tuple[int, ...]
    turned: bool

    def link(self, u: int, v: int) -> tuple[int, int]:
        """Where the link from u to v goes."""
        a, b = self.image[u], self.image[v]
        return (b, a) if self.turned else (a, b)


def relabellings(blocks: Sequence[Block], gpus: int, most: int = RELABELLINGS_KEPT) -> list[Relabelling]:
    """Up to ``most`` relabellings under which all patterns are invariant, by backtracking over the GPUs."""
    colour = np.zeros((gpus, gpus), dtype=np.int64)  # equal where the same patterns meet
    for pairs in dict.fromkeys(block.pairs for block in blocks):
        member = np.zeros((gpus, gpus), dtype=np.int64)
        member[tuple(np.array(pairs).T)] = 1
        kinds = np.unique(2 * colour + member, return_inverse=True)[1]
        colour = kinds.reshape(gpus, gpus).astype(np.int64)
    found = [Relabelling(image, False) for image in _maps(colour, colour, most)]
    found += [Relabelling(image, True) for image in _maps(colour, colour.T, most)]
    return found[:most]


def _maps(colour: IntArray, target: IntArray, most: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for image in _extend(colour, target, []):
        found.append(image)
        if len(found) == most:
            break
    return found


def _extend(colour: IntArray, target: IntArray, image: list[int]) -> Iterator[tuple[int, ...]]:
    u = len(image)
    if u == len(colour):
        yield tuple(image)
        return
    for v in range(len(colour)):
        if v in image or colour[u, u] != target[v, v]:
            continue
        if all(colour[u, w] == target[v, x] and colour[w, u] == target[x, v] for w, x in enumerate(image)):
            yield from _extend(colour, target, [*image, v])
