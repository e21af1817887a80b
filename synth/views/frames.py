"""A solution as an animation: what a page needs to step through it. Families fill it in ``Family.frames``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Frames:
    """Nodes in the plane, fixed links, and per step what moves.

    ``positions``: shape (nodes, 2), any scale, y upwards. ``names``: what the page calls the nodes. ``groups``: a
    number per node, shape (nodes,), or empty; nodes of one group get one colour (hosts, pods).

    ``step`` (1, 2, …), ``src``, ``dst`` (node indices), ``item``: shape (moves,); one row is one item moving over one
    drawn arrow in that step, ``item`` an index into ``items`` (what the page calls it; ``1048576 bytes`` is shown
    there as 1.00 MiB, the exact number on hover) or -1. ``titles``: a line per step.

    ``links``: shape (links, 2), source and destination; drawn in grey in every step, and the page counts how often
    each is used. Leave it empty where the topology changes from step to step, and draw the topology as moves.

    ``held``: rows (item, node) that hold an item before the first step; a node holds what it received from the next
    step on. The page marks the nodes that hold the item a reader chooses; without rows it does not ask for one (as for
    reductions, where what arrives is added up).

    ``moments``: where a step is a moment at which something sets out, its seconds, shape (steps,); ``begin`` and
    ``end``, shape (moves,), are then the seconds between which a move occupies its arrow, so that the page draws a
    timeline in seconds and what is still on its way from earlier moments. Empty where time is counted in steps.

    ``boxes``: rows (box, node) of nodes that the page frames together, such as the GPUs and switches of one server.

    ``whole``: how many moves the schedule has where these are a sample of them; 0 where they are all.
    """

    positions: FloatArray
    names: Sequence[str]
    step: IntArray
    src: IntArray
    dst: IntArray
    item: IntArray
    items: Sequence[str] = ()
    links: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    held: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    titles: Sequence[str] = ()
    groups: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    moments: FloatArray = field(default_factory=lambda: np.zeros(0))
    begin: FloatArray = field(default_factory=lambda: np.zeros(0))
    end: FloatArray = field(default_factory=lambda: np.zeros(0))
    boxes: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    whole: int = 0


def circle(nodes: int) -> FloatArray:
    """Positions on a circle, node 0 on top, clockwise; shape (nodes, 2)."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(nodes) / nodes
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
