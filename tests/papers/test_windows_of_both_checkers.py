"""Prices that begin at moments (fabric's deliveries and sums): both checkers prove the same bound to the last double.

What is found from a rank that knows something only from a moment on is a distance whose starts have costs: those of
the second checker are compared with all paths of small networks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from handed_in import published
from two_checkers import greatest, opinions, verify, whole

import synth

verify_networks = import_module("verify_networks")  # beside that checker, which has its folder on the path

WINDOWS = [
    "fabric/ours/fabric/dgx-a100-reduce-1KiB/bound",  # deliveries, backwards
    "fabric/ours/fabric/dgx-a100-broadcast-1KiB/bound",  # deliveries
    "fabric/ours/fabric/dgx-a100-allreduce-1KiB/bound",  # sums
]


def paths(
    out: list[list[tuple[int, int]]], at: int, inner: set[int], seen: frozenset[int]
) -> Iterator[tuple[int, Any]]:
    """Yield (last node, links) of all paths from a node whose other nodes, but for the last, are inner ones."""
    yield at, ()
    if len(seen) > 1 and at not in inner:
        return
    for e, v in out[at]:
        if v not in seen:
            for end, links in paths(out, v, inner, seen | {v}):
                yield end, (e, *links)


@pytest.mark.parametrize("seed", range(40))
def test_distances_from_starts_that_have_costs(seed: int) -> None:
    chance = random.Random(seed)
    nodes, network = 6, verify.Network()
    links = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and chance.random() < 0.4]
    network.connect(nodes, [verify_networks.new_link(u, v, 1.0, 0.0) for u, v in links])
    costs = [chance.choice((0, 0, 1, 2, 7)) for _ in links]
    starts = {v: chance.choice((0, 1, 5)) for v in chance.sample(range(nodes), 2)}
    passes = [chance.random() < 0.5 for _ in range(nodes)]
    inner = {v for v in range(nodes) if passes[v]} | starts.keys()
    expected: dict[int, int] = {}
    for start, cost in starts.items():
        for end, over in paths(network.out, start, inner, frozenset({start})):
            expected[end] = min(expected.get(end, 10**9), cost + sum(costs[e] for e in over))
    assert network.distances(starts, costs, passes) == expected


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_prove_the_same_to_the_last_double(name: str, tmp_path: Path) -> None:
    """As published, and with a window's prices doubled, or the first one's in the second, too, which begins later."""
    original = whole(published(name))
    for a, b, c in ((1, 0, 1), (2, 0, 1), (1, 0, 2), (1, 1, 1), (1, 2, 0)):
        record = deepcopy(original)
        first, second = record["solution"]["windows"]
        second["length"] = [b * x + c * y for x, y in zip(first["length"], second["length"], strict=True)]
        first["length"] = [a * x for x in first["length"]]
        most = greatest(record)
        for bound, said in ((most, "accept"), (math.nextafter(most, math.inf), "refuse")):
            ours, theirs, reason, why = opinions(json.dumps(record | {"bound": bound}), tmp_path)
            assert (ours, theirs) == (said, said), f"{a, b, c}: {reason} | {why}"


def test_late_parts_prove_the_same_to_the_last_double(tmp_path: Path) -> None:
    """A ring of 5 on which three ranks are late, the last two most: parts with their late members, all of them, one."""
    keys: dict[str, Any] = {"network": "ring", "nodes": 5, "bandwidth": 1e9, "latency": 1e-6}
    late = synth.make("fabric", **keys, collective="allreduce", bytes=10**6, late="1:1ms,3-4:2ms")
    original = whole(synth.solve(late, "bound", time_limit=10))
    for parts, who in ((range(5), [3, 4]), (range(5), [1, 3, 4]), ([0, 0, 1, 2, 2], [4]), (range(5), None)):
        certificate = {"argument": "partition", "part": list(parts)} | ({} if who is None else {"late": who})
        record = original | {"solution": certificate, "bound": 1e-3}
        most = greatest(record)
        for bound, said in ((most, "accept"), (math.nextafter(most, math.inf), "refuse")):
            ours, theirs, reason, why = opinions(json.dumps(record | {"bound": bound}), tmp_path)
            assert (ours, theirs) == (said, said), f"{parts, who}: {reason} | {why}"
