"""WRHT extended to allgather as circuits, which the check replays.

Dai, Chen, Huang, Zhang, Section IV-A: WRHT's routing without its reduction. Groups of ``M = 2w + 1`` neighbours
collect in their middle node, which stands for the group at the next level. At the top the at most ``M`` nodes left
exchange all they hold (variant 1), or collect in one node (variant 2). Then every group's middle node sends its members
what they lack, level by level downwards. A circuit has one sender, one receiver and one item, as all of the paper's
have; a stage begins when the one before has ended and uses every wavelength of the links that it needs.

The published count gives a broadcast ``M^(t-1)`` steps a level, what the top level collects from one node. A member
lacks all ``N`` items but its own, though, so a full group takes ``N - 1`` steps at the lowest level alone.

**No wavelengths, order or overlap of stages save this** (:func:`least_steps`). Let ``N > M``, so that some group is
full. Its ``2w`` members receive from its middle node only, ``N - 1`` items each; its own ``M`` items leave the group
from the middle node only. So that node sends ``2w (N - 1) + M`` circuits at least, over ``2w`` wavelengths of its two
links out: ``S >= N + 1/(2w)``, that is ``N + 1``, two more than the ring algorithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.optree.parts.stage_circuits import staged
from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits


class Holder(NamedTuple):
    """A node that holds the items of nodes ``first`` to ``end - 1``."""

    node: int
    first: int
    end: int


class Stages(NamedTuple):
    """Steps by what they do."""

    collect: int
    exchange: int
    broadcast: int


Group = list[Holder]


def least_steps(nodes: int, wavelengths: int, variant: int) -> int | None:
    """Steps that WRHT's routing takes at least, whatever the wavelengths and the order (module docstring); None where
    there is no full group whose items must leave it.

    Where ``nodes <= M`` the second variant has one group, whose middle node sends ``N - 1`` items to ``N - 1`` members.
    """
    if nodes > 2 * wavelengths + 1:
        return nodes + 1
    return -(-((nodes - 1) ** 2) // (2 * wavelengths)) if variant == 2 else None


def wrht_circuits(nodes: int, wavelengths: int, variant: int) -> tuple[Circuits, Stages]:
    """The circuits, every item to every node once, sorted by stage; and the steps of each kind of stage."""
    levels, top = _levels(nodes, 2 * wavelengths + 1, 1 if variant == 2 else 2 * wavelengths + 1)
    columns: list[IntArray] = []
    step = 0
    for groups in levels:
        step = _stage(columns, step, wavelengths, groups, None)
    collected = step
    if len(top) > 1:
        columns.append(_exchange(step, wavelengths, top))
        step = int(columns[-1][0].max())
    exchanged = step
    for groups in reversed(levels):
        step = _stage(columns, step, wavelengths, groups, nodes)
    circuits = Circuits.of(*np.concatenate(columns, axis=1))
    return circuits, Stages(collected, exchanged - collected, step - exchanged)


def _levels(nodes: int, group: int, most: int) -> tuple[list[list[Group]], list[Holder]]:
    """The groups of every level, lowest first, and the at most ``most`` middle nodes that are left."""
    left = [Holder(node, node, node + 1) for node in range(nodes)]
    levels = []
    while len(left) > most:
        groups = [left[k : k + group] for k in range(0, len(left), group)]
        levels.append(groups)
        left = [Holder(_middle(members).node, members[0].first, members[-1].end) for members in groups]
    return levels, left


def _middle(group: Group) -> Holder:
    return group[len(group) // 2]


def _stage(columns: list[IntArray], step: int, wavelengths: int, groups: list[Group], nodes: int | None) -> int:
    """Add the circuits of one level after ``step``: members to their middle node or (``nodes`` given) back, all of
    that many items that a member lacks. Returns the stage's last step.

    All circuits of one side of a group run over the link beside its middle node, those of no two sides over the same
    link and direction. So a side's circuits take the slots (step, wavelength) one after the other, and none is spared.
    """
    last = step
    for group in groups:
        middle, half = _middle(group), len(group) // 2
        for members, upwards in ((group[:half], nodes is None), (group[half + 1 :], nodes is not None)):
            if not members:
                continue
            items = [_moved(member, nodes) for member in members]
            item = np.concatenate(items)
            there = np.repeat([member.node for member in members], [len(one) for one in items])
            slot, here = np.arange(len(item)), np.full(len(item), middle.node)
            src, dst = (there, here) if nodes is None else (here, there)
            way = np.full(len(item), CLOCKWISE if upwards else COUNTERCLOCKWISE)
            columns.append(np.stack([step + 1 + slot // wavelengths, src, dst, way, slot % wavelengths, item]))
            last = max(last, step + -(-len(item) // wavelengths))
    return last


def _moved(member: Holder, nodes: int | None) -> IntArray:
    """The items that a member sends up, or those of ``nodes`` that it lacks."""
    if nodes is None:
        return np.arange(member.first, member.end)
    return np.concatenate([np.arange(member.first), np.arange(member.end, nodes)])


def _exchange(step: int, wavelengths: int, top: list[Holder]) -> IntArray:
    """All to all among the nodes of the top level, in circles through pairs (``parts/stage_layout.py``); columns of
    the circuits, shape (6, circuits)."""
    most = max(holder.end - holder.first for holder in top)
    when, src, dst, way, wavelength, origin, copy = staged(len(top), wavelengths, (len(top),), most)
    node, first, end = (np.array(column) for column in zip(*top, strict=True))
    there = first[origin] + copy < end[origin]  # the last group may be smaller
    _, ordinal = np.unique(when[there], return_inverse=True)
    moved = [node[src[there]], node[dst[there]], way[there], wavelength[there], (first[origin] + copy)[there]]
    return np.stack([step + 1 + ordinal, *moved]).astype(np.int64)
