"""The arcs of a topology, parallel ones as one, and its symmetries among renumberings that are offered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import arc_images, orbits
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import joined


@dataclass(frozen=True)
class Arcs:
    """Arcs ordered by tail and head, shape (arcs,) each: ``tail``, ``head``, and the ``rate`` of the links that each
    stands for, added up, in parts of which a fixed link has ``unit``."""

    nodes: int
    tail: IntArray
    head: IntArray
    rate: IntArray
    unit: int

    @cached_property
    def start(self) -> IntArray:
        """Where the arcs of each node begin, shape (nodes + 1,)."""
        return np.searchsorted(self.tail, np.arange(self.nodes + 1)).astype(np.int64)


def arcs_of(instance: TopologyInstance, circuits: IntArray) -> Arcs:
    """The arcs of the fixed links and these circuits, shape (circuits, 3)."""
    links = np.concatenate([instance.fixed, joined(instance, circuits)])
    each = np.repeat(np.array(instance.weights, dtype=np.int64), [len(instance.fixed), len(circuits)])
    links, each = links[apart := links[:, 0] != links[:, 1]], each[apart]
    both = links if instance.one_way else np.concatenate([links, links[:, ::-1]])
    pairs, place = np.unique(both, axis=0, return_inverse=True)
    rate = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(rate, place.ravel(), np.tile(each, 1 if instance.one_way else 2))
    return Arcs(instance.nodes, pairs[:, 0].copy(), pairs[:, 1].copy(), rate, instance.weights[0])


def symmetries_among(arcs: Arcs, offered: Iterable[IntArray]) -> list[IntArray]:
    """Those renumberings, shape (nodes,) each, that map the arcs onto themselves and join orbits that are apart."""
    kept: list[IntArray] = []
    orbit = np.arange(arcs.nodes)
    for image in offered:
        if np.array_equal(orbit[image], orbit):
            continue
        if arc_images(image, arcs.tail, arcs.head, (arcs.rate,)) is not None:
            kept.append(image)
            orbit = orbits(arcs.nodes, kept)
    return kept
