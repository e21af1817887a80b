"""All topologies of tiny plants, their hops and their least largest load, by code that shares nothing with ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from synth_models.topology.instance import TopologyInstance


def every_matrix(instance: TopologyInstance) -> Iterator[tuple[list[tuple[int, ...]], Any]]:
    """Every choice of permutations, and its matrix of links between nodes."""
    n = instance.nodes
    for chosen in product(*(permutations(range(len(switch.sends))) for switch in instance.switches)):
        matrix = np.zeros((n, n), dtype=np.int64)
        for u, v in instance.fixed:
            matrix[u, v] += 1
            matrix[v, u] += 1
        for switch, order in zip(instance.switches, chosen, strict=True):
            for i, j in enumerate(order):
                u, v = switch.sends[i], switch.receives[j]
                matrix[u, v] += 1
                matrix[v, u] += 1
        np.fill_diagonal(matrix, 0)
        yield list(chosen), matrix


def circuits(chosen: list[tuple[int, ...]]) -> Any:
    """The rows of a solution for these permutations."""
    rows = [(w, i, j) for w, order in enumerate(chosen) for i, j in enumerate(order)]
    return np.array(rows, dtype=np.int64)


def hop_sums(matrices: Any) -> Any:
    """The sum of hops of each matrix, shape (matrices,); a huge number where nodes are apart."""
    n = matrices.shape[-1]
    step = ((matrices > 0) | np.eye(n, dtype=bool)).astype(np.float32)
    within, total = np.broadcast_to(np.eye(n, dtype=np.float32), step.shape), np.zeros(len(step))
    for _ in range(n):
        total += (within == 0).sum(axis=(1, 2))
        within = ((within @ step) > 0).astype(np.float32)
    return np.where((within > 0).all(axis=(1, 2)), total, 1e9)


def least_load(matrix: Any) -> float:
    """The inverse of the maximum concurrent flow between all pairs, by one linear program, a commodity a source."""
    n = len(matrix)
    arcs = np.argwhere(matrix)
    many, size = matrix[arcs[:, 0], arcs[:, 1]], len(arcs)
    balance, kept = np.zeros((n * n, n * size + 1)), np.ones((n, n)) - np.eye(n)
    limit = np.zeros((size, n * size + 1))
    for s in range(n):
        for a, (u, v) in enumerate(arcs):
            balance[s * n + v, s * size + a] += 1
            balance[s * n + u, s * size + a] -= 1
            limit[a, s * size + a] = 1
        balance[s * n + s] = 0
    limit[:, -1] = -many
    cost = np.zeros(n * size + 1)
    cost[-1] = 1
    found = linprog(cost, limit, np.zeros(size), balance, kept.ravel())
    return float(found.fun) if found.status == 0 else float("inf")
