"""Symmetries of an instance: renumberings of its nodes that keep the machine and the demand.

A concurrent flow may be replaced by the average of its images, so one source per orbit and one capacity row per orbit
of links are enough. Tried are shifts and reversals of every digit of every mixed-radix numbering of the members: they
contain the rotations of rings, boxes and hosts of a leaf, translations and reflections of meshes and tori, and the
exclusive or of hypercubes. :mod:`synth_models.fabric.problem.automorphism` finds what they do to switches and links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import generated, orbits_of_group
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.automorphism import automorphism
from synth_models.fabric.problem.machine import Machine

MOST_CELLS = 20_000_000  # images of links that are held


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group: ``node`` shape (elements, nodes) and ``link`` shape (elements, links) map each to its image; the
    identity is first."""

    node: IntArray
    link: IntArray

    def __len__(self) -> int:
        return len(self.node)


def identity(machine: Machine) -> Symmetries:
    """The group of one element."""
    return Symmetries(np.arange(machine.nodes)[None, :], np.arange(machine.links)[None, :])


def symmetries(instance: FabricInstance) -> Symmetries:
    """A group of symmetries of the instance, of at most four elements a member."""
    machine, members = instance.machine, np.array(instance.members, dtype=np.int64)
    group = identity(machine)
    generators: list[tuple[IntArray, IntArray]] = []
    keys = _demand_keys(instance, np.arange(machine.nodes))
    limit = max(1, min(4 * len(members), MOST_CELLS // max(1, machine.links + machine.nodes)))
    apart = len(members)
    for image in _candidates(len(members)):
        if len(group) * 2 > limit or apart == 1:
            break
        nodes = np.arange(machine.nodes)
        nodes[members] = members[image]
        orbit = orbits_of_group(group.node)
        if np.array_equal(orbit[nodes[members]], orbit[members]):
            continue  # brings no two orbits together
        if keys is not None and not _same(_demand_keys(instance, nodes), keys):
            continue
        best: tuple[int, int] | None = None
        for around in (True, False):
            found = automorphism(machine, members, image, around)
            larger = _generated(machine, [*generators, found], limit) if found is not None else None
            if found is None or larger is None:
                continue
            quality = (len(larger), len(np.unique(orbits_of_group(larger.link))))  # small groups that move many links
            if best is None or quality < best:
                best, group, extended = quality, larger, [*generators, found]
        if best is not None:
            generators, apart = extended, len(np.unique(orbits_of_group(group.node)[members]))
    return group


def _candidates(count: int) -> Iterator[IntArray]:
    """Shifts of digits, the largest first, then reversals."""
    at = np.arange(count, dtype=np.int64)
    digits = [
        (place, radix)
        for radix in range(count, 1, -1)
        if count % radix == 0
        for place in range(1, count // radix + 1)
        if (count // radix) % place == 0
    ]
    for place, radix in digits:
        digit = at // place % radix
        yield at + place * ((digit + 1) % radix - digit)
    for place, radix in digits:
        if radix > 2:
            digit = at // place % radix
            yield at + place * (radix - 1 - 2 * digit)


def _same(one: IntArray | None, other: IntArray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _demand_keys(instance: FabricInstance, image: IntArray) -> IntArray | None:
    """The demand under a renumbering, sorted; None where every renumbering keeps it."""
    if instance.collective == "alltoall":
        return None
    blocks = instance.blocks
    src, dst = (np.where(ends < 0, ends, image[ends]) for ends in (blocks.origin, blocks.goal))  # below 0: everyone
    order = np.lexsort((blocks.bytes, dst, src))
    return np.stack([src[order], dst[order], blocks.bytes[order]])


def _generated(machine: Machine, generators: list[tuple[IntArray, IntArray]], limit: int) -> Symmetries | None:
    """The group that these generate, if it is not too large: permutations of the nodes and, behind them, the links."""
    nodes = machine.nodes
    moved = [np.concatenate([of_nodes, nodes + of_links]) for of_nodes, of_links in generators]
    found = generated(moved, nodes + machine.links, limit, told_apart=nodes)
    return None if found is None else Symmetries(found[:, :nodes].copy(), found[:, nodes:] - nodes)
