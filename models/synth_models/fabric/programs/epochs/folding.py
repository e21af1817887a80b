"""Which chunks (or origins), links and nodes are each other's images under the instance's symmetries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.solvers.rows import Term
from synth_models.fabric.programs.epochs.grid import Grid
from synth_models.fabric.programs.flow.symmetry import identity, symmetries


@dataclass(frozen=True, eq=False)
class Folding:
    """A group: images of the ``item`` s (chunks, or origins), ``node`` s and ``link`` s, shape (elements, …) each."""

    item: IntArray
    node: IntArray
    link: IntArray

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def item_link(self) -> IntArray:
        """The least image of every pair of item and link, as ``item * links + link``; shape (items, links)."""
        return _least(self.item, self.link)

    @cached_property
    def item_node(self) -> IntArray:
        """The least image of every pair of item and node, as ``item * nodes + node``; shape (items, nodes)."""
        return _least(self.item, self.node)

    @cached_property
    def one_link(self) -> IntArray:
        """The least image of every link, shape (links,)."""
        found: IntArray = self.link.min(axis=0)
        return found


def folding(grid: Grid, wanted: bool) -> Folding:
    """The group of the grid's instance; of the identity alone if not ``wanted``, or if it moves no item whole."""
    items = grid.origin if grid.rule == "copied" else np.unique(grid.instance.blocks.origin)
    group = symmetries(grid.instance) if wanted else identity(grid.instance.machine)
    rank = np.arange(len(items)) % (grid.chunks if grid.rule == "copied" else 1)
    place = {(int(v), int(j)): i for i, (v, j) in enumerate(zip(items, rank, strict=True))}
    images = []
    for node in group.node:
        image = [place.get((int(node[v]), int(j)), -1) for v, j in zip(items, rank, strict=True)]
        if min(image) < 0:
            return folding(grid, False)
        images.append(image)
    return Folding(np.array(images, dtype=np.int64), group.node, group.link)


def _least(item: IntArray, other: IntArray) -> IntArray:
    count = other.shape[1]
    best: IntArray = np.arange(item.shape[1])[:, None] * count + np.arange(count)[None, :]
    own = best.copy()
    for one, two in zip(item, other, strict=True):
        np.minimum.at(best, (one[:, None], two[None, :]), own)
    return best  # the group is closed, so every pair has met all its images


def by_link(folding: Folding, sent: Mapping[tuple[int, int, int], Any]) -> dict[tuple[int, int], list[Any]]:
    """Variables of all items by link and epoch; ``sent`` has those that stand for all, by item, link and epoch."""
    items, links = folding.item_link.shape
    times: dict[int, list[tuple[int, Any]]] = defaultdict(list)
    for (item, e, k), x in sent.items():
        times[item * links + e].append((k, x))
    found: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for item in range(items):
        for e in range(links):
            for k, x in times.get(int(folding.item_link[item, e]), ()):
                found[e, k].append(x)
    return found


def added(terms: Iterable[Term]) -> list[Term]:
    """Terms of one variable (several images in one row) added up."""
    total: dict[int, list[Any]] = {}
    for factor, variable in terms:
        entry = total.setdefault(id(variable), [0.0, variable])
        entry[0] += factor
    return [(factor, variable) for factor, variable in total.values() if factor]
