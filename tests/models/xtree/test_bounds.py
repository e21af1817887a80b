"""Bounds of the xtree family against exact optima of tiny networks, and their certificates against forgery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.xtree import brute_force

from synth.network import Network, builders
from synth.options import RunOptions
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.certificates import check_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.instance import XTreeInstance

COLLECTIVES = ("allgather", "reduce_scatter", "allreduce")
NETWORKS = {
    "line2": builders.line(2),
    "line3": builders.line(3),
    "line4": builders.line(4),
    "ring3": builders.ring(3),
    "ring4": builders.ring(4),
    "one-way ring3": builders.ring(3, False),
    "one-way ring4": builders.ring(4, False),
    "kautz4": builders.kautz(4, 2),
    "star4": Network(4, [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0)]),
    "complete4": Network(4, [(u, v) for u in range(4) for v in range(4) if u != v]),
    "parallel2": Network(2, [(0, 1), (0, 1), (1, 0)]),
    "parallel3": Network(3, [(0, 1), (0, 1), (1, 2), (2, 0), (2, 1)]),
    "irregular4": Network(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 1)]),
    "bottleneck4": Network(4, [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (2, 0), (1, 0), (3, 2)]),
    "equimesh2x2": builders.equimesh(2, 2),
}
SLOW_TO_PROVE = {("irregular4", "reduce_scatter", 2)} | {  # the exhaustive search takes more than a few seconds
    (name, "allreduce", 2)
    for name in NETWORKS
    if name not in ("line2", "line3", "ring3", "one-way ring3", "one-way ring4", "parallel2")
}
CASES = [
    (name, collective, chunks)
    for name in NETWORKS
    for collective in COLLECTIVES
    for chunks in (1, 2)
    if (name, collective, chunks) not in SLOW_TO_PROVE
]


def instance_of(network: Network, collective: str = "allgather", chunks: int = 1) -> XTreeInstance:
    links = [{"src": int(u), "dst": int(v)} for u, v in zip(network.src, network.dst, strict=True)]
    raw: dict[str, Any] = {"kind": "links", "nodes": network.nodes, "links": links}
    return XTreeInstance.model_validate(
        {"name": "t", "source": "test", "network": raw, "collective": collective, "chunks": chunks}
    )


@pytest.mark.parametrize(
    ("name", "collective", "chunks", "optimum"),
    [
        # two nodes, one link each way: C chunks each way; in an allreduce every one of the 2C chunks crosses both ways
        ("line2", "allgather", 2, 2),
        ("line2", "allreduce", 1, 2),
        ("line2", "allreduce", 2, 4),
        # one-way ring: every allgather chunk makes N-1 hops and all links are always busy
        ("one-way ring4", "allgather", 1, 3),
        ("one-way ring4", "reduce_scatter", 1, 3),
        # one-way ring allreduce: 2(N-1) transfers per chunk, N chunks, N links
        ("one-way ring3", "allreduce", 1, 4),
        ("one-way ring4", "allreduce", 1, 6),
        # line 0-1-2 allreduce: all three chunks must cross 1->0; what crosses it in step 1 is node 1's contribution
        # alone, so node 0 needs that chunk over 1->0 once more. Step 1 is lost: 3 steps leave 2 slots. So 4.
        ("line3", "allreduce", 1, 4),
        # complete graph: an exchange with everybody in one step; an allreduce as reduce-scatter and allgather, 1 + 1
        ("complete4", "allgather", 1, 1),
        ("complete4", "allreduce", 1, 2),
        # parallel links: the doubled link takes both of node 0's chunks at once, the single one back needs 2 steps
        ("parallel2", "allgather", 2, 2),
    ],
)
def test_brute_force_by_hand(name: str, collective: str, chunks: int, optimum: int) -> None:
    assert brute_force.minimum_timesteps(NETWORKS[name], collective, chunks) == optimum


@pytest.mark.parametrize("name", list(NETWORKS))
def test_reduce_scatter_is_allgather_reversed(name: str) -> None:
    """Time reversal: every contribution of a reduce-scatter counts once, so its useful transfers form trees, and
    backwards they are an allgather on the reversed network. The search does not know this; its optima must."""
    network = NETWORKS[name]
    expected = brute_force.minimum_timesteps(network.reversed(), "allgather", 1)
    assert brute_force.minimum_timesteps(network, "reduce_scatter", 1) == expected


@pytest.mark.parametrize(("name", "collective", "chunks"), some_of(CASES))
def test_bound_optimum_references(name: str, collective: str, chunks: int) -> None:
    """bound <= optimum <= every reference, whose schedules replay; and the bound's certificate verifies."""
    network = NETWORKS[name]
    instance = instance_of(network, collective, chunks)
    optimum = brute_force.minimum_timesteps(network, collective, chunks)
    bound, _, certificate = lower_bound(instance)
    assert 1 <= bound <= optimum
    assert check_bound(instance, bound, certificate) == []
    assert check_bound(instance, bound + 1, certificate) != []
    for method in ("pull", "xtree" if collective == "allgather" else "mirror_xtree"):
        outcome = FAMILY.method(method).load()(instance, RunOptions(seed=1))
        verdict = check_schedule(instance, outcome.solution)
        assert verdict.faults == []
        assert verdict.value is not None
        assert verdict.value >= optimum
        assert outcome.bound is None or outcome.bound <= optimum


def strongly_connected(rng: np.random.Generator, nodes: int, extra: int) -> Network:
    order = rng.permutation(nodes).tolist()
    links = list(zip(order, order[1:] + order[:1], strict=True))
    while len(links) < nodes + extra:
        u, v = rng.integers(nodes, size=2).tolist()
        if u != v:
            links.append((u, v))
    return Network(nodes, links)


@pytest.mark.parametrize("seed", some_of(range(12)))
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_bound_on_random_multigraphs(seed: int, collective: str) -> None:
    """The same chain on random irregular networks, parallel links included (a random cycle plus up to 3 links)."""
    rng = np.random.default_rng(seed)
    network = strongly_connected(rng, int(rng.integers(3, 5)), int(rng.integers(0, 4)))
    instance = instance_of(network, collective)
    bound, _, certificate = lower_bound(instance)
    assert bound <= brute_force.minimum_timesteps(network, collective, 1)
    assert check_bound(instance, bound, certificate) == []


def test_bound_values_by_hand() -> None:
    """One-way ring of 6, C=2: receive ceil(5*2/1) = 10. Two 4-cliques joined by one link each way, C=1: four chunks
    cross one link, 4 (receive around the joints: 7/4 -> 2). Line of 6, C=1: 5 hops and ceil(5/1) = 5."""
    assert lower_bound(instance_of(builders.ring(6, False), chunks=2))[0] == 10
    clique = [(u, v) for u in range(4) for v in range(4) if u != v]
    barbell = Network(8, [*clique, *((u + 4, v + 4) for u, v in clique), (0, 4), (4, 0)])
    timesteps, _, certificate = lower_bound(instance_of(barbell))
    assert timesteps == 4
    assert certificate["binding"] == "cut"
    assert sorted(certificate["inside"]) in ([0, 1, 2, 3], [4, 5, 6, 7])
    assert lower_bound(instance_of(builders.line(6)))[0] == 5


def test_bound_respects_link_direction() -> None:
    """Node 0 has three links in and one out (N=4, C=1): an allgather can get 3 chunks into 0 in one step but a
    reduce-scatter must get 3 sums out of 0 over one link, 3 steps; turned round it is the other way about."""
    links = [(1, 0), (2, 0), (3, 0), (0, 1), (1, 2), (2, 3), (3, 1), (2, 1), (3, 2), (1, 3)]
    network = Network(4, links)
    assert lower_bound(instance_of(network, "reduce_scatter"))[0] == 3
    assert lower_bound(instance_of(network.reversed(), "allgather"))[0] == 3
    inside = {"binding": "cut", "inside": [0]}
    assert check_bound(instance_of(network, "reduce_scatter"), 3, inside) == []
    assert check_bound(instance_of(network, "allgather"), 2, inside) != []  # 3 chunks over 3 links: 1


@pytest.mark.parametrize(
    "certificate",
    [
        {},
        {"binding": "faith"},
        {"binding": "cut"},
        {"binding": "cut", "inside": []},
        {"binding": "cut", "inside": [0, 1, 2, 3, 4, 5]},
        {"binding": "cut", "inside": [99]},
        {"binding": "cut", "inside": "all"},
        {"binding": "cut", "inside": None},
        {"binding": "cut", "inside": [0.5]},
        {"binding": "cut", "inside": [0], "crossings": 1000, "capacity": 1},
        {"binding": "diameter"},
        {"binding": "diameter", "pair": [0, 99]},
        {"binding": "diameter", "pair": [0]},
        {"binding": "diameter", "pair": [0, 5]},
        {"binding": "volume"},
        {"binding": ["cut"]},
    ],
)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_forged_certificates_are_refused(certificate: dict[str, Any], collective: str) -> None:
    """Ring of 6, C=1: no argument proves more than 5 steps (allreduce: 30 transfers each way / 12 links = 5), so
    nothing may carry a bound of 6, whatever numbers it states; refusals are faults, not exceptions."""
    assert check_bound(instance_of(builders.ring(6), collective), 6, certificate) != []


def test_volume_counts_links_once() -> None:
    """Ring of 6, C=1, allreduce: 2*5 transfers for each of 6 chunks over 12 links: 5 steps and not 6."""
    instance = instance_of(builders.ring(6), "allreduce")
    assert check_bound(instance, 5, {"binding": "volume"}) == []
    assert check_bound(instance, 6, {"binding": "volume"}) != []


@pytest.mark.parametrize("bound", [float("nan"), float("inf")])
def test_bound_that_is_no_number_is_refused(bound: float) -> None:
    assert check_bound(instance_of(builders.ring(6)), bound, {"binding": "volume"}) != []


def test_network_too_slow_for_the_search() -> None:
    """The search says so instead of returning a number it has not proven: 3 hops do not fit in 2 timesteps."""
    with pytest.raises(ValueError, match="up to 2"):
        brute_force.minimum_timesteps(builders.line(4), "allgather", 1, most=2)
