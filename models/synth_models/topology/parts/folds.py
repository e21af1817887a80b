"""A topology folded by its symmetries, and its routing by trees.

Again and again every source sends a unit along the tree of shortest paths that now carries least; the average of what
was sent is a routing in whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.hops import hops
from synth.graph.symmetry import arc_images, orbits
from synth.options import RunOptions
from synth_models.topology.parts.arcs import Arcs, symmetries_among
from synth_models.topology.parts.kernels import avoid_loads, detour_loads

ROUNDS = (8, 64, 256)  # of trees, after each of which the time is looked at
WORK = 500_000_000  # sources times arcs times rounds of trees, at most


@dataclass(frozen=True)
class Folded:
    """A topology and what its symmetries leave: ``sources`` with the ``weight`` (size) of their orbits, the orbit
    ``of`` every arc and the rate of all links of an orbit as ``room``."""

    arcs: Arcs
    symmetries: IntArray
    sources: IntArray
    weight: FloatArray
    of: IntArray
    room: FloatArray

    @cached_property
    def away(self) -> IntArray:
        """Hops from the sources to all nodes, shape (sources, nodes)."""
        return hops(self.arcs.nodes, self.arcs.tail, self.arcs.head, self.sources).astype(np.int64)

    @property
    def mean(self) -> float:
        """The load of an arc where all are loaded alike by shortest paths: no routing has less."""
        return float(self.weight @ self.away.sum(axis=1)) * self.arcs.unit / float(self.arcs.rate.sum())

    def load(self, flow: IntArray, scale: int) -> Fraction:
        """The largest load of an arc; flow has shape (sources, arcs)."""
        total = np.zeros(len(self.room), dtype=object)
        for weight, row in zip(self.weight.astype(np.int64).tolist(), flow, strict=True):
            carried = np.zeros(len(self.room), dtype=np.int64)
            np.add.at(carried, self.of, row)
            total += weight * carried.astype(object)
        return max(Fraction(int(t) * self.arcs.unit, int(r) * scale) for t, r in zip(total, self.room, strict=True))


def folded(arcs: Arcs, offers: Iterable[IntArray]) -> Folded:
    """The topology folded by those of the renumberings that are symmetries."""
    kept = symmetries_among(arcs, offers)
    least, size = np.unique(orbits(arcs.nodes, kept), return_counts=True)
    images = [image for one in kept if (image := arc_images(one, arcs.tail, arcs.head, (arcs.rate,))) is not None]
    _, of = np.unique(orbits(len(arcs.tail), images), return_inverse=True)
    room = np.bincount(of, arcs.rate).astype(float)
    shape = (len(kept), arcs.nodes)
    return Folded(arcs, np.array(kept, dtype=np.int64).reshape(shape), least, size.astype(float), of, room)


def tree_flows(
    folds: Folded, options: RunOptions, detours: bool = False, most: int = ROUNDS[-1]
) -> Iterator[tuple[IntArray, int]]:
    """The sums of what trees carry, and how many there were, growing to ``most``; with ``detours`` over paths of any
    length."""
    arcs, sources = folds.arcs, folds.sources
    flow, load = np.zeros((len(sources), len(arcs.tail)), dtype=np.int64), np.zeros(len(folds.room))
    send = detour_loads if detours else avoid_loads
    done, most = 0, max(1, min(most, WORK // flow.size))
    for rounds in ROUNDS:
        now = min(rounds, most) - done
        if now <= 0 or (done and options.out_of_time()):
            return
        send(arcs.start, arcs.head, arcs.tail, folds.of, folds.room, sources, folds.weight, flow, load, now)
        done += now
        yield flow, done


def rows(folds: Folded, flow: IntArray) -> IntArray:
    """The rows of a solution: source, tail, head, amount."""
    s, arc = np.nonzero(flow)
    return np.stack([folds.sources[s], folds.arcs.tail[arc], folds.arcs.head[arc], flow[s, arc]], axis=1)
