"""Schedules whose switches copy: valid under the check on all kinds of small machines, and worth it where it counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from examples import some_of

import synth
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.references.pull.multicast_trees import MulticastTrees, fits, offer_multicast


def made(**keys: object) -> FabricInstance:
    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def multicast_only(instance: FabricInstance) -> Incumbent:
    incumbent = Incumbent(instance, RunOptions(seed=0))
    offer_multicast(incumbent)
    return incumbent


SHAPES = (
    {"network": "star", "nodes": 5},
    {"network": "fat_tree", "leaves": 3, "hosts": 2, "spines": 2},
    {"network": "dragonfly", "groups": 2, "routers": 2, "hosts": 2},
    {"machine": "teccl-ndv2-2"},
    {"machine": "dgx-a100", "boxes": 2},
)
RULES = (
    {"switching": "store_and_forward"},
    {"switching": "store_and_forward", "buffer": "on"},
    {"switching": "cut_through", "multicast": "on"},
)


@pytest.mark.long(after=5)
@pytest.mark.parametrize(("shape", "rules", "collective"), some_of(product(SHAPES, RULES, ["allgather", "broadcast"])))
def test_valid_wherever_switches_copy(shape, rules, collective):
    instance = made(**shape, **rules, collective=collective, bytes=240_000)
    assert fits(instance)
    incumbent = multicast_only(instance)
    verdict = check_schedule(instance, incumbent.best)
    assert verdict.ok, verdict.faults[:3]
    assert verdict.value == pytest.approx(float(incumbent.time))


def test_a_multicast_tree_is_all_that_one_link_leads_to():
    """A star of 4: rank 0 reaches the three others over its link; store and forward, one sending takes (0.1 + 1) s
    into the switch and as much out of it, whoever gets it: 2.2 s for a broadcast in one piece."""
    star = made(
        network="star", nodes=4, bandwidth=100, latency=0.1, collective="broadcast", bytes=100,
        switching="store_and_forward",
    )  # fmt: skip
    trees = MulticastTrees.of(star)
    first = slice(trees.start[0], trees.start[1])
    assert len(trees.link[first]) == 4
    assert trees.parent[first].tolist() == [-1, 0, 0, 0]
    incumbent = Incumbent(star, RunOptions(seed=0))
    offer_multicast(incumbent)
    assert float(incumbent.times["1 pieces a block, copied in switches"]) == pytest.approx(2.2)
    # n pieces of 1/n: 0.2 + 1 + 1/n
    assert float(incumbent.time) == pytest.approx(0.2 + 1 + 0.02, abs=0.01)


@pytest.mark.parametrize(
    "keys",
    [
        {"switching": "store_and_forward", "copies": "off"},
        {"switching": "cut_through"},
        {"switching": "store_and_forward", "collective": "reduce_scatter"},
        {"switching": "store_and_forward", "collective": "alltoall"},
    ],
)
def test_not_where_switches_do_not_copy_or_data_are_not_for_all(keys):
    assert not fits(made(network="star", nodes=4, bytes=1024, **keys))


@pytest.mark.long
def test_outsiders_that_a_way_leads_over_leave_it_to_others():
    """Two stars joined by a rank that is no member: no tree reaches across, so nothing is offered."""
    links = [{"src": u, "dst": v, "bandwidth": 1e9, "latency": 0.0}
             for a, b in ((0, 5), (1, 5), (4, 5), (4, 6), (2, 6), (3, 6)) for u, v in ((a, b), (b, a))]  # fmt: skip
    instance = made(network="star", nodes=4, bytes=4000, switching="store_and_forward")
    network = {"kind": "links", "nodes": 7, "switches": [5, 6], "links": links}
    apart = instance.model_copy(update={"network": network, "ranks": [0, 1, 2, 3], "relay": True})
    apart = FabricInstance.model_validate(apart.model_dump())
    incumbent = multicast_only(apart)
    assert incumbent.best is None
    record = synth.solve(apart, "pull", time_limit=20)
    assert record.ok
    assert record.value is not None


@pytest.mark.long
def test_two_dgx2_at_256_kb_beat_what_te_ccl_prints():
    """5.376 us after 170 s of Gurobi (84 epochs of 64 ns, output_provided/DGX2_output); the bound is 4.64 us."""
    incumbent = multicast_only(made(machine="teccl-dgx2-2", collective="allgather", bytes=256_000))
    assert 4.64e-6 <= float(incumbent.time) < 4.8e-6
    again = multicast_only(made(machine="teccl-dgx2-2", collective="allgather", bytes=256_000))
    assert np.array_equal(again.best.start, incumbent.best.start)
