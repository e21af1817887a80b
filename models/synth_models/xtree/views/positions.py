"""Where the nodes of a network are drawn."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from synth.network import Network


def positions(network: Network) -> Any:
    """Where to draw every node, shape (nodes, 2): given, by grid coordinates, or by a spring layout with a seed."""
    if network.positions is not None:
        return np.asarray(network.positions)
    if network.kind == "ring" or (network.grid is not None and network.kind == "hypercube" and network.nodes <= 2):
        angle = 2 * np.pi * np.arange(network.nodes) / network.nodes
        return np.stack([np.sin(angle), np.cos(angle)], axis=1) * max(1.0, network.nodes / 6)
    if network.grid is not None and len(network.grid) <= 2:
        coordinates = np.unravel_index(np.arange(network.nodes), network.grid)
        rows = coordinates[0] if len(network.grid) == 2 else np.zeros(network.nodes)
        return np.stack([coordinates[-1], -rows], axis=1).astype(float)
    graph = network.to_networkx()
    layout = nx.kamada_kawai_layout(nx.Graph(graph)) if network.nodes <= 128 else nx.circular_layout(graph)
    return np.array([layout[v] for v in range(network.nodes)]) * max(1.0, network.nodes**0.5)
