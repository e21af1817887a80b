"""Symmetries of an instance: renumberings of its nodes that keep the machine and the demand.

A concurrent flow may be replaced by the average of its images, so one source per orbit and one capacity row per orbit
of links are enough. Tried are shifts and reversals of every digit of every mixed-radix numbering of the members: they
contain the rotations of rings, boxes and hosts of a leaf, translations and reflections of meshes and tori, and the
exclusive or of hypercubes. Switches are matched by colour refinement, and every symmetry is verified link by link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray, WordArray
from synth.graph.symmetry import arc_images, generated, orbits_of_group
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine

MOST_CELLS = 20_000_000  # images of links that are held
CHOSEN = 0x9E3779B97F4A7C15
MOST_CHOICES = 64  # times that interchangeable switches are told apart by choosing one


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


def automorphism(
    machine: Machine, members: IntArray, image: IntArray, around: bool = False
) -> tuple[IntArray, IntArray] | None:
    """The symmetry that maps members[i] to members[image[i]], as images of nodes and links; None where there is none
    (or none was found: interchangeable switches are matched without going back). ``around``: interchangeable switches
    are mapped in a ring, each to the next, instead of to themselves."""
    net = machine.network
    groups = len(machine.group_names)
    total = machine.nodes + groups  # a group is a vertex that its links know
    ours = np.where(np.arange(total) < machine.nodes, 1, 2).astype(np.uint64)
    ours[: machine.nodes] += machine.is_switch.astype(np.uint64) * np.uint64(2)
    theirs = ours.copy()
    ours[members] = np.arange(len(members), dtype=np.uint64) + np.uint64(10)
    theirs[members[image]] = np.arange(len(members), dtype=np.uint64) + np.uint64(10)
    kind = _mixed(
        np.unique(net.bandwidth, return_inverse=True)[1].reshape(-1).astype(np.uint64) * np.uint64(1 << 20)
        + np.unique(net.latency, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    )
    ours, theirs = _mixed(ours), _mixed(theirs)
    used = np.zeros(total, dtype=bool)
    used[net.src] = used[net.dst] = True
    used[machine.nodes + machine.group[machine.group >= 0]] = True
    for _ in range(MOST_CHOICES):
        ours, theirs = _refined(machine, kind, ours, theirs)
        mine, yours = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
        if not np.array_equal(ours[mine], theirs[yours]):
            return None
        twice = np.flatnonzero((ours[mine][1:] == ours[mine][:-1]) & used[mine][1:])
        if not len(twice):
            break
        ours[mine[twice[:1]]] += np.uint64(CHOSEN)
        theirs[yours[twice[:1] + int(around)]] += np.uint64(CHOSEN)
    moved = np.empty(total, dtype=np.int64)
    moved[mine] = yours
    group = np.where(machine.group >= 0, moved[machine.nodes + machine.group] - machine.nodes, -1)
    kinds = net.latency, net.bandwidth
    links = arc_images(moved, net.src, net.dst, (machine.group, *kinds), (group, *kinds))
    if links is None or not np.array_equal(machine.is_switch[moved[: machine.nodes]], machine.is_switch):
        return None
    return moved[: machine.nodes], links


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
    src, dst = image[blocks.origin], image[blocks.goal]
    order = np.lexsort((blocks.bytes, dst, src))
    return np.stack([src[order], dst[order], blocks.bytes[order]])


def _generated(machine: Machine, generators: list[tuple[IntArray, IntArray]], limit: int) -> Symmetries | None:
    """The group that these generate, if it is not too large: permutations of the nodes and, behind them, the links."""
    nodes = machine.nodes
    moved = [np.concatenate([of_nodes, nodes + of_links]) for of_nodes, of_links in generators]
    found = generated(moved, nodes + machine.links, limit, told_apart=nodes)
    return None if found is None else Symmetries(found[:, :nodes].copy(), found[:, nodes:] - nodes)


def _mixed(values: WordArray) -> WordArray:
    """splitmix64's finaliser (Steele, Lea, Flood 2014), so that sums of colours tell multisets apart."""
    mixed = values.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _refined(machine: Machine, kind: WordArray, ours: WordArray, theirs: WordArray) -> tuple[WordArray, WordArray]:
    """Both colourings after colour refinement."""
    count = len(np.unique(ours))
    while True:
        ours, theirs = _round(machine, kind, ours), _round(machine, kind, theirs)
        more = len(np.unique(ours))
        if more <= count:
            return ours, theirs
        count = more


def _round(machine: Machine, kind: WordArray, colour: WordArray) -> WordArray:
    net, group = machine.network, machine.group
    held = np.where(group >= 0, colour[np.where(group >= 0, machine.nodes + group, 0)], 0).astype(np.uint64)
    both: WordArray = colour[net.src] * np.uint64(3) + colour[net.dst] * np.uint64(5) + kind + held * np.uint64(7)
    link = _mixed(both)
    found: WordArray = colour * np.uint64(11)
    np.add.at(found, net.src, _mixed(link + np.uint64(1)))
    np.add.at(found, net.dst, _mixed(link + np.uint64(2)))
    grouped = group >= 0
    np.add.at(found, machine.nodes + group[grouped], _mixed(link[grouped] + np.uint64(3)))
    return _mixed(found)
