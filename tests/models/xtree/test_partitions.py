"""The partition bound of an allreduce, which models/xtree.md states: every chunk crosses every partition often enough,
and on meshes no partition says more than the volume bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from models.xtree import brute_force

from synth.network import Network, builders

NETWORKS = {
    "line4": builders.line(4),
    "one-way ring4": builders.ring(4, False),
    "star4": Network(4, [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0)]),
    "kautz4": builders.kautz(4, 2),
    "irregular4": Network(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 1)]),
}


def partitions(nodes: int) -> Iterator[list[int]]:
    """Every partition of the nodes into two parts or more, as the part of each node."""

    def extend(parts: list[int], used: int) -> Iterator[list[int]]:
        if len(parts) == nodes:
            if used > 1:
                yield parts
            return
        for part in range(used + 1):
            yield from extend([*parts, part], max(used, part + 1))

    yield from extend([], 0)


def crossing(network: Network, parts: list[int]) -> list[int]:
    """The links between different parts."""
    return [e for e, (u, v) in enumerate(zip(network.src, network.dst, strict=True)) if parts[u] != parts[v]]


@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_chunk_crosses_a_partition_twice_per_part_but_one(name: str) -> None:
    """All minimal ways to allreduce one chunk within one timestep more than it needs, rooted at a node or not."""
    network = NETWORKS[name]
    links = tuple((int(u), int(v)) for u, v in zip(network.src, network.dst, strict=True))
    fewest = next(t for t in range(1, 13) if brute_force.plans(4, links, "allreduce", None, t))
    plans = brute_force.plans(4, links, "allreduce", None, fewest + 1)
    for parts in partitions(4):
        mask = sum(1 << t * len(links) + e for t in range(fewest + 1) for e in crossing(network, parts))
        assert min((plan & mask).bit_count() for plan in plans) >= 2 * max(parts)


@pytest.mark.parametrize(("rows", "cols"), [(2, 3), (2, 4), (3, 3)])
def test_no_partition_of_a_small_mesh_says_more_than_the_volume_bound(rows: int, cols: int) -> None:
    network = builders.grid((rows, cols), wrap=False)
    volume = Fraction(network.nodes - 1, network.links)
    assert max(Fraction(max(parts), len(crossing(network, parts))) for parts in partitions(network.nodes)) == volume
