"""Where the nodes of a machine are drawn."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.views.frames import circle
from synth_models.fabric.problem.machine import Machine

MOST_SPRUNG = 96  # nodes for which a layout is computed
GAP = 1.0  # between two boxes, where two ranks are 1 apart


def positions(machine: Machine) -> Any:
    """Given, by grid coordinates, in layers where there are switches, or by a layout without chance.

    Shape (nodes, 2), y upwards."""
    network = machine.network
    if network.positions is not None:
        return np.asarray(network.positions, dtype=float)
    if network.grid is not None and len(network.grid) == 2:
        row, column = np.unravel_index(np.arange(network.nodes), network.grid)
        return np.stack([column, -row], axis=1).astype(float)
    if not machine.is_switch.any() and (network.kind == "ring" or not 2 < network.nodes <= MOST_SPRUNG):
        return circle(network.nodes) * max(1.0, network.nodes / 6)
    if machine.is_switch.any():
        return layered(machine)
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(network.nodes))
    graph.add_edges_from(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    if not nx.is_connected(graph):  # nodes that have failed, ranks of no group
        return circle(network.nodes) * max(1.0, network.nodes / 6)
    layout = nx.kamada_kawai_layout(graph)
    return np.array([layout[v] for v in range(network.nodes)]) * network.nodes**0.5


def boxes(machine: Machine) -> IntArray:
    """Rows (box, node): a box is all nodes whose names begin alike up to a slash, as `0/gpu3` and `0/nic3` do."""
    before = [name.partition("/")[0] if "/" in name else "" for name in machine.names]
    number = {name: k for k, name in enumerate(dict.fromkeys(filter(None, before)))}
    rows = [(number[name], v) for v, name in enumerate(before) if name]
    return np.array(rows if len(number) > 1 else [], dtype=np.int64).reshape(-1, 2)


def layered(machine: Machine) -> FloatArray:
    """Ranks side by side, box after box, in one row; switches above them, as many rows up as they are links away from
    the nearest rank, over the middle of what they join below. Those whose links all end in one box and that join
    several ranks stand below."""
    near, box = _neighbours(machine), dict(boxes(machine)[:, ::-1].tolist())
    ranks = [v for v, switch in enumerate(machine.is_switch.tolist()) if not switch]
    level = _levels(ranks, near)
    place = np.zeros((len(near), 2))
    order = sorted(ranks, key=lambda v: (box.get(v, -1), v))
    for number, v in enumerate(order):
        place[v] = number + GAP * len({box.get(u, -1) for u in order[: number + 1]}), 0.0
    width = float(np.ptp(place[:, 0])) or 1.0
    rows = {v: -1 if box and _within(v, near, box) else high for v, high in level.items() if high}
    for high in sorted(set(rows.values())):
        row = [v for v in rows if rows[v] == high]
        _over(row, near, level, place, high * max(1.5, width / 5), width)
    return place


def _neighbours(machine: Machine) -> list[set[int]]:
    """Of every node those that a link joins it with, in either direction."""
    near: list[set[int]] = [set() for _ in range(machine.network.nodes)]
    for u, v in zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True):
        near[u].add(v)
        near[v].add(u)
    return near


def _levels(ranks: list[int], near: list[set[int]]) -> dict[int, int]:
    """How many links every node is away from the nearest rank."""
    level, reached = dict.fromkeys(ranks, 0), ranks
    while reached:
        high = level[reached[0]] + 1
        reached = sorted({w for v in reached for w in near[v]} - set(level))
        level |= dict.fromkeys(reached, high)
    return level


def _within(switch: int, near: list[set[int]], box: dict[int, int]) -> bool:
    """Whether a switch joins several nodes, all of its own box."""
    return len(near[switch]) > 2 and {box.get(v) for v in near[switch]} == {box.get(switch)}


def _over(
    row: list[int], near: list[set[int]], level: dict[int, int], place: FloatArray, height: float, width: float
) -> None:
    """Put the switches of a row over the middle of what they join below, apart from each other."""
    middle = {v: np.mean([place[w, 0] for w in near[v] if level.get(w, 0) < level[v]] or [0.0]) for v in row}
    order = sorted(row, key=lambda v: (round(float(middle[v]), 6), v))
    apart = max(1.0, width / (2 * max(1, len(row))))
    wanted = np.array([middle[v] for v in order], dtype=float)
    spread = np.maximum.accumulate(wanted - apart * np.arange(len(order))) + apart * np.arange(len(order))
    back = spread + (wanted - spread).mean() if len(order) else spread
    for v, x in zip(order, back.tolist(), strict=True):
        place[v] = x, height
