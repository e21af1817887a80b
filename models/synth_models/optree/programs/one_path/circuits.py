"""The circuits of a point of the program: paths of the items, and wavelengths for what is sent in a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.options import RunOptions
from synth.solvers import cpsat
from synth_models.optree.programs.one_path.model import DOWN, UP, Column, Counts, OnePath
from synth_models.optree.references.relay_wavelengths import colour_rotations
from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits


class Sent(NamedTuple):
    """The item of node ``item`` goes from ``src`` in ``direction`` over ``hops``; so do those of every G-th node."""

    step: int
    direction: int
    hops: int
    src: int
    item: int


def paths_of(path: OnePath, value: Callable[[object], int]) -> list[Sent]:
    """What is sent of the items of nodes 0 to G-1 at a point, which ``value`` reads; sorted, long circuits first.

    Gaps of one length, place and step are filled in any order: the counts say how many in which way.
    """
    left, right, sent = (_stocks(counts, value) for counts in (path.left, path.right, path.sent))
    rows: list[Sent] = []
    nodes, period = path.nodes, path.period
    gaps = [(item, 1, item, nodes) for item in range(period)]  # item, step, node at the lower end, links
    while gaps:
        item, t, low, length = gaps.pop()
        if length < 2:
            continue
        high = low + length
        p = left[t, length, low % period].pop()
        q = right[t, length - p, high % period].pop()
        gaps.append((item, t + 1, low + p, length - p - q))
        for d, end, hops in ((UP, low, p), (DOWN, high, q)):
            while hops:
                shorter = sent[t, d, hops, end % period].pop()
                rows.append(Sent(t, d, hops, end % nodes, item))
                gaps.append((item, t + 1, end + shorter if d == UP else end - hops, hops - shorter))
                hops = shorter
    return sorted(rows, key=lambda row: (row.step, row.direction, -row.hops, row.src, row.item))


def _stocks(counts: Counts, value: Callable[[object], int]) -> dict[Column, list[int]]:
    """The last part of the indices, as often as it is counted, by the others."""
    stocks: dict[Column, list[int]] = defaultdict(list)
    for key, count in counts.items():
        stocks[key[:-1]].extend([key[-1]] * value(count))
    return stocks


def circuits_of(path: OnePath, rows: list[Sent], options: RunOptions) -> Circuits | set[tuple[int, int]]:
    """All circuits with their wavelengths, or the steps and directions for whose circuits none were found."""
    nodes, turns = path.nodes, np.arange(0, path.nodes, path.period)
    columns: list[IntArray] = []
    missing = set()
    for way in path.ways:
        here = [row for row in rows if (row.step, row.direction) == way]
        if not here:
            continue
        sign = 1 if way[1] == UP else -1
        starts = np.array([[(sign * (row.src + turn)) % nodes for turn in turns] for row in here])
        found = _colours(path, [row.hops for row in here], starts, options)
        if found is None:
            missing.add(way)
            continue
        for row, wavelength in zip(here, found, strict=True):
            same = np.ones(len(turns), dtype=np.int64)
            src, dst = (row.src + turns) % nodes, (row.src + sign * row.hops + turns) % nodes
            direction = CLOCKWISE if way[1] == UP else COUNTERCLOCKWISE
            columns.append(
                np.stack([same * row.step, src, dst, same * direction, wavelength, (row.item + turns) % nodes])
            )
    return missing or Circuits.of(*np.concatenate(columns, axis=1))


def _colours(path: OnePath, hops: list[int], starts: IntArray, options: RunOptions) -> Int32Array | IntArray | None:
    """Wavelengths of circuits that run upwards from ``starts`` (shape (circuits, turns)), the same shape, or None."""
    if path.period > 1:
        return colour_arcs(path.nodes, hops, starts, path.wavelengths, options)
    found = colour_rotations(path.nodes, hops, path.wavelengths, options.seed)
    return None if found is None else np.take_along_axis(found, starts, axis=1)


def colour_arcs(
    nodes: int, hops: list[int], starts: IntArray, wavelengths: int, options: RunOptions
) -> IntArray | None:
    """Wavelengths of any circuits upwards by CP-SAT, shape of ``starts`` (circuits, turns), or None where it finds
    none. Circuits of one hop take what is left on their links."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    long = [(i, k) for i, length in enumerate(hops) for k in range(starts.shape[1]) if length > 1]
    use: dict[tuple[int, int], list[Any]] = {}
    over: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, k in long:
        use[i, k] = [model.new_bool_var("") for _ in range(wavelengths)]
        model.add_exactly_one(use[i, k])
        for link in range(hops[i]):
            over[(int(starts[i, k]) + link) % nodes].append((i, k))
    for arcs in over.values():
        for wave in range(wavelengths):
            model.add_at_most_one(use[arc][wave] for arc in arcs)
    for wave, arc in enumerate(over[0]):  # wavelengths are interchangeable
        if wave < wavelengths:
            model.add(use[arc][wave] == 1)
    result, solver = cpsat.solve(model, options, alone=cpsat.IN_TURNS)
    if not result.has_point:
        return None
    chosen = {
        arc: next(wave for wave, on in enumerate(waves) if solver.boolean_value(on)) for arc, waves in use.items()
    }
    return _with_single_hops(nodes, hops, starts, wavelengths, chosen)


def _with_single_hops(
    nodes: int, hops: list[int], starts: IntArray, wavelengths: int, chosen: dict[tuple[int, int], int]
) -> IntArray:
    """The wavelengths chosen for longer circuits, and for those of one hop what these leave on their links."""
    found = np.zeros(starts.shape, dtype=np.int64)
    free = [set(range(wavelengths)) for _ in range(nodes)]
    for (i, k), wave in chosen.items():
        found[i, k] = wave
        for link in range(hops[i]):
            free[(int(starts[i, k]) + link) % nodes].remove(wave)
    for i, length in enumerate(hops):
        if length == 1:
            found[i] = [free[int(start)].pop() for start in starts[i]]
    return found
