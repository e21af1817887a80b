"""A solution as an animation: what a page needs to step through it. Families fill it in ``Family.frames``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frames:
    """Nodes in the plane, fixed links, and per step what moves.

    ``positions``: shape (nodes, 2), any scale, y upwards. ``links``: shape (links, 2), drawn in every step (source,
    destination); empty where the topology changes. ``step`` (1, 2, …), ``src``, ``dst``, ``item``: shape (moves,);
    one row is one item moving over one drawn arrow, ``item`` an index into ``items`` (what the page calls
    it) or -1. ``held``: rows (item,
    node) that hold an item before the first step; a node holds what it received from the step after on. Without rows
    the page does not show positions. ``titles``: a line per step.
    """

    positions: npt.NDArray[np.float64]
    names: Sequence[str]
    step: IntArray
    src: IntArray
    dst: IntArray
    item: IntArray
    items: Sequence[str] = ()
    links: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    held: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    titles: Sequence[str] = ()


def circle(nodes: int) -> npt.NDArray[np.float64]:
    """Positions on a circle, node 0 on top, clockwise; shape (nodes, 2)."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(nodes) / nodes
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
