"""Renumberings of the nodes that may be symmetries of a topology: steps, shifts, reflections, exchanges of axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from synth.arrays import IntArray
from synth_models.topology.instance import Cubes, TopologyInstance, lines


def offered(instance: TopologyInstance, circuits: IntArray) -> Iterator[IntArray]:
    """Renumberings worth trying for these circuits, shape (nodes,) each."""
    plant, n = instance.plant, instance.nodes
    if isinstance(plant, Cubes):
        yield from _steps(plant, instance, circuits)
        grid = np.arange(n, dtype=np.int64).reshape(plant.cubes, *plant.sides)
        for by in range(1, plant.cubes):
            if plant.cubes % by == 0:
                yield np.roll(grid, -by, 0).ravel()
        yield from _of_a_cube(grid)
        return
    ids = np.arange(n, dtype=np.int64)
    for by in range(1, n // 2 + 1):
        if n % by == 0:
            yield np.roll(ids, -by)
    for end in (0, n - 1):
        yield (end - ids) % n


def _steps(plant: Cubes, instance: TopologyInstance, circuits: IntArray) -> Iterator[IntArray]:
    """Every node moves one link along an axis, through the circuits at the end of its line; where all circuits work.

    In a torus, twisted or not, these are its shifts."""
    if plant.failed or len(circuits) < sum(len(switch.sends) for switch in instance.switches):
        return
    grid = np.arange(instance.nodes, dtype=np.int64).reshape(plant.cubes, *plant.sides)
    axis_of = np.array([axis for axis, _, _ in lines(plant.sides)])
    for axis in range(len(plant.sides)):
        image = np.roll(grid, -1, axis + 1).ravel()
        for switch, sends, receives in circuits[axis_of[circuits[:, 0]] == axis].tolist():
            ports = instance.switches[switch]
            image[ports.sends[sends]] = ports.receives[receives]
        yield image


def _of_a_cube(grid: IntArray) -> Iterator[IntArray]:
    """Reflections of the axes of all cubes, and exchanges of two that are equal."""
    axes = range(1, grid.ndim)
    yield np.flip(grid, tuple(axes)).ravel()
    for axis in axes:
        yield np.flip(grid, axis).ravel()
    for a, b in combinations(axes, 2):
        if grid.shape[a] == grid.shape[b]:
            yield grid.swapaxes(a, b).ravel()
