"""Where the nodes of a machine are drawn."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from synth.views.frames import circle
from synth_models.fabric.problem.machine import Machine

MOST_SPRUNG = 96  # nodes for which a layout is computed


def positions(machine: Machine) -> Any:
    """Given, by grid coordinates, or by a layout without chance; shape (nodes, 2), y upwards."""
    network = machine.network
    if network.positions is not None:
        return np.asarray(network.positions, dtype=float)
    if network.grid is not None and len(network.grid) == 2:
        row, column = np.unravel_index(np.arange(network.nodes), network.grid)
        return np.stack([column, -row], axis=1).astype(float)
    if network.kind == "ring" or not 2 < network.nodes <= MOST_SPRUNG:
        return circle(network.nodes) * max(1.0, network.nodes / 6)
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(network.nodes))
    graph.add_edges_from(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    if not nx.is_connected(graph):  # nodes that have failed, ranks of no group
        return circle(network.nodes) * max(1.0, network.nodes / 6)
    layout = nx.kamada_kawai_layout(graph)
    return np.array([layout[v] for v in range(network.nodes)]) * network.nodes**0.5
