"""A renumbering of a machine's members, extended to its switches and links.

Switches are matched by colour refinement; what is found is verified link by link.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray, WordArray
from synth.graph.symmetry import arc_images
from synth_models.fabric.problem.machine import Machine

CHOSEN = 0x9E3779B97F4A7C15
MOST_CHOICES = 64  # times that interchangeable switches are told apart by choosing one


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
    kind = link_kinds(machine)
    ours, theirs = mixed(ours), mixed(theirs)
    used = np.zeros(total, dtype=bool)
    used[net.src] = used[net.dst] = True
    used[machine.nodes + machine.group[machine.group >= 0]] = True
    for _ in range(MOST_CHOICES):
        ours, theirs = refined(machine, kind, ours, theirs)
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
    links = link_images(machine, moved)
    if links is None or not np.array_equal(machine.is_switch[moved[: machine.nodes]], machine.is_switch):
        return None
    return moved[: machine.nodes], links


def link_kinds(machine: Machine) -> WordArray:
    """A word for every link, the same for links of one bandwidth and latency, shape (links,)."""
    net = machine.network
    return mixed(
        np.unique(net.bandwidth, return_inverse=True)[1].reshape(-1).astype(np.uint64) * np.uint64(1 << 20)
        + np.unique(net.latency, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    )


def link_images(machine: Machine, moved: IntArray) -> IntArray | None:
    """Where links go when nodes, and behind them groups, move by ``moved``, shape (nodes + groups,); None where some
    link goes to none of its bandwidth, latency and group."""
    net = machine.network
    group = np.where(machine.group >= 0, moved[machine.nodes + machine.group] - machine.nodes, -1)
    kinds = net.latency, net.bandwidth
    return arc_images(moved, net.src, net.dst, (machine.group, *kinds), (group, *kinds))


def mixed(values: WordArray) -> WordArray:
    """splitmix64's finaliser (Steele, Lea, Flood 2014), so that sums of colours tell multisets apart."""
    mixed = values.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def refined(machine: Machine, kind: WordArray, ours: WordArray, theirs: WordArray) -> tuple[WordArray, WordArray]:
    """Both colourings of nodes, and behind them groups, after colour refinement; ``kind``: :func:`link_kinds`."""
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
    link = mixed(both)
    found: WordArray = colour * np.uint64(11)
    np.add.at(found, net.src, mixed(link + np.uint64(1)))
    np.add.at(found, net.dst, mixed(link + np.uint64(2)))
    grouped = group >= 0
    np.add.at(found, machine.nodes + group[grouped], mixed(link[grouped] + np.uint64(3)))
    return mixed(found)
