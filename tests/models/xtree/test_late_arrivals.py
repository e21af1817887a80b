"""The bound that joins distance and in-degree: hand-counted, verified, and never above an optimum."""

from __future__ import annotations

import pytest
from models.xtree import brute_force
from models.xtree.cases import make

from synth.method import load
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.certificates import check_bound
from synth_models.xtree.references.pull import once


def test_allreduce_on_a_line_of_four():
    """4 chunks enter node 0 over its one link, each with node 3's contribution, so none in the first 2 timesteps: they
    fill timesteps 3..6. Volume: 2 * 3 * 4 / 6 = 4; diameter 3. The exhaustive search needs 6."""
    instance = make(network="line", nodes=4, collective="allreduce")
    bound, words, certificate = lower_bound(instance)
    assert bound == 6
    assert certificate["binding"] == "late arrivals"
    assert certificate["hops"] == 3
    assert "none of them within 2 timesteps" in words
    assert brute_force.minimum_timesteps(instance.topology, "allreduce", 1) == 6


@pytest.mark.parametrize(("side", "receive", "steps"), [(4, 4, 5), (5, 6, 7), (8, 16, 17)])
def test_parallel_links_idle_at_first(side, receive, steps):
    """Corner 0 of an EquiMesh has 4 in-links, but they come from 2 neighbours (ring links run parallel to mesh links).
    With C = 1 the other N - 3 chunks can enter only from timestep 2 on: 1 + ceil(13 / 4) = 5, 1 + ceil(22 / 4) = 7,
    1 + ceil(61 / 4) = 17, one more than the receive bounds."""
    instance = make(network="equimesh", rows=side, cols=side)
    assert -(-(side * side - 1) // 4) == receive
    bound, _, certificate = lower_bound(instance)
    assert bound == steps
    assert certificate["binding"] == "late arrivals"
    neighbours = {int(u) for u in instance.topology.src[instance.topology.dst == certificate["node"]]}
    assert (len(neighbours), certificate["hops"]) == (2, 2)


@pytest.mark.parametrize(("rows", "cols", "steps"), [(2, 3, 5), (3, 3, 8)])
def test_allreduce_on_small_meshes(rows, cols, steps):
    """Corner: ceil(6 / 2) = 3 slots from timestep 3 on: 5. Corner of 3 x 3: ceil(9 / 2) = 5 from timestep 4 on: 8."""
    instance = make(network="mesh", rows=rows, cols=cols, collective="allreduce")
    assert lower_bound(instance)[0] == steps
    assert once(instance, 0, 0).steps >= steps


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
def test_one_far_cluster(collective):
    """Node 0 ends a line 0-1-2-3 of one link each way; its other end has two more neighbours, 4 and 5. Of the 5
    chunks that enter node 0 over its one link, 2 come from 4 hops away: these fill timesteps 4, 5, the others 1..3."""
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)]
    raw = {
        "family": "xtree",
        "name": "t",
        "source": "test",
        "chunks": 1,
        "collective": collective,
        "network": {
            "kind": "links",
            "nodes": 6,
            "links": [{"src": a, "dst": b} for u, v in links for a, b in ((u, v), (v, u))],
        },
    }
    bound, _, certificate = lower_bound(load(FAMILY.instance).model_validate(raw))
    assert bound == 5
    assert certificate["binding"] in ("cut", "late arrivals")


def test_certificates_of_another_claim_are_refused():
    instance = make(network="line", nodes=4, collective="allreduce")
    bound, _, certificate = lower_bound(instance)
    assert check_bound(instance, bound, certificate) == []
    assert check_bound(instance, bound + 1, certificate)
    for change in ({"hops": 4}, {"hops": 0}, {"hops": -1}, {"node": 9}, {"node": -1}, {"side": "up"}, {"node": 1}):
        assert check_bound(instance, bound, {**certificate, **change})
    gather = make(network="line", nodes=4)
    assert check_bound(gather, 3, {"binding": "late arrivals", "node": 0, "hops": 1, "side": "in"}) == []
    assert check_bound(gather, 3, {"binding": "late arrivals", "node": 0, "hops": 1, "side": "out"})
