"""Nodes and links of a drawn machine, no larger than the room that a node has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import FloatArray
from synth.views.figure_style import current
from synth.views.text_room import LINE

PANEL = 0.62  # of a narrow page's width that a panel with a bar of colours leaves to its drawing
ROOM = 0.8  # of the distance between two nodes that a node may fill
LEAST_PT, MOST_PT = 2.5, 13.0  # across a node
MOST_NAMED = 512
EM = 0.62  # width of a character over its type's size


class NodeLook(NamedTuple):
    """How nodes are drawn: ``across`` in points, the type of their names and the lines between them; ``room`` to the
    next node in its row, in points, shape (nodes,)."""

    across: float
    font: float
    arrow: float
    line: float
    room: FloatArray

    @property
    def area(self) -> float:
        """As matplotlib's ``scatter`` takes it."""
        return self.across**2

    def name(self, node: int, name: str) -> dict[str, Any] | None:
        """How a name is written: over a white ground where it is wider than its node, upright where it has no room;
        None where it has none at all."""
        how: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": self.font, "parse_math": False}
        wide = EM * self.font * len(name)
        if wide > self.across:
            how["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
        if wide > self.room[node]:
            how["rotation"] = 90
        return how if min(wide, LINE * self.font) <= self.room[node] else None


def node_look(place: Any, width_in: float, font: float = 8.0) -> NodeLook:
    """Of nodes at ``place``, shape (nodes, 2), in a panel ``width_in`` inches wide, as it is where no other width is
    asked for; ``font`` at most."""
    style = current()
    if style.narrow and style.width_in is not None:
        width_in = PANEL * style.width_in
    place = np.asarray(place, dtype=float)
    points = 72 * width_in / (float(np.ptp(place, axis=0).max()) * 1.24 or 1.0)  # a unit, with margins
    across = min(MOST_PT, max(LEAST_PT, ROOM * points * _nearest(place)))
    size = min(font, max(5.0, 0.7 * across))
    room = _in_row(place * points, LINE * size) if len(place) <= MOST_NAMED else np.zeros(len(place))
    return NodeLook(across, size, max(2.5, 0.7 * across), max(0.4, 0.12 * across), room)


def _in_row(place: Any, height: float) -> FloatArray:
    """The distance of every node to the next one beside it, less than ``height`` up or down."""
    x, y = np.abs(place[:, None] - place).transpose(2, 0, 1)
    found: FloatArray = np.where((y < height) & (x > 0), x, np.inf).min(axis=1)
    return found


def _nearest(place: Any) -> float:
    """The least distance between two nodes in different places."""
    from scipy.spatial import cKDTree

    apart = np.unique(np.round(place, 9), axis=0)
    if len(apart) < 2:
        return 1.0
    distance = np.asarray(cKDTree(apart).query(apart, k=2)[0])
    return float(distance[:, 1].min())
