"""Arcs by the node that they leave or enter: the form in which every search here reads a graph."""

from __future__ import annotations

import numpy as np

from synth.arrays import AnyIntArray, IntArray


def rows_by(key: AnyIntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return ``(start, order)``: the places where ``key`` is v are ``order[start[v]:start[v + 1]]``, ascending.

    ``key``: numbers below ``count``, shape (arcs,). Shapes (count + 1,) and (arcs,).
    """
    start = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=count))]).astype(np.int64)
    return start, np.argsort(key, kind="stable").astype(np.int64)


def lists_by(key: AnyIntArray, count: int) -> list[list[int]]:
    """Return the places where ``key`` is 0, 1, … ``count`` - 1, ascending each, in plain Python.

    ``key``: numbers below ``count``, shape (arcs,).
    """
    start, order = rows_by(key, count)
    return [order[start[v] : start[v + 1]].tolist() for v in range(count)]
