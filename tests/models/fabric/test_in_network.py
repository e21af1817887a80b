"""Method ``in_network``, and bounds of machines whose switches copy and add."""

from __future__ import annotations

import random
from typing import Any

import pytest
from examples import some_of
from models.fabric.test_tree_replay import adding_machine, drawn_schedule

import synth
from synth.errors import InputError
from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.references import nvls, sharp
from synth_models.fabric.references.in_network import method as in_network

STAR = {"network": "star", "nodes": 8, "bandwidth": 450e9, "latency": 3.5e-7, "multicast": True, "adds": True}
FAT_TREE = {
    "network": "fat_tree", "leaves": 4, "hosts": 4, "spines": 3, "bandwidth": 50e9, "uplink_bandwidth": 20e9,
    "latency": 1e-6,
}  # fmt: skip

SLOWER = [pytest.param(boxes, marks=pytest.mark.slow) for boxes in (4, 16)]


def made(**keys: Any) -> FabricInstance:
    instance = synth.make("fabric", **({"collective": "allreduce", "bytes": 2**30} | keys))
    assert isinstance(instance, FabricInstance)
    return instance


def gap(instance: FabricInstance) -> float:
    options = RunOptions(time_limit_s=60.0).started_now()
    found = in_network.solve(instance, options)
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    proven = strongest(instance, RunOptions(time_limit_s=20.0).started_now())
    assert check_bound(instance, float_below(proven.seconds), proven.certificate()) == []
    assert proven.seconds <= verdict.value
    return 1 - float(proven.seconds) / verdict.value


@pytest.mark.parametrize("size", [2**10, 2**20, 2**30])
def test_one_switch_that_adds_is_at_its_bound(size: int) -> None:
    """Everybody's data goes up once and the sum comes down once: the cut around a rank."""
    assert gap(made(**STAR, bytes=size)) < 1e-6


def test_without_adding_the_same_box_takes_almost_twice_as_long() -> None:
    plain = made(**(STAR | {"adds": False, "multicast": False}))
    proven = strongest(plain, RunOptions(time_limit_s=20.0).started_now())
    adding = strongest(made(**STAR), RunOptions(time_limit_s=20.0).started_now())
    assert float(proven.seconds / adding.seconds) == pytest.approx(14 / 8, rel=1e-3)


@pytest.mark.long
def test_the_spines_of_a_fat_tree_share_the_data() -> None:
    instance = made(**FAT_TREE, multicast=True, adds=True)
    assert gap(instance) < 0.01
    found = in_network.solve(instance, RunOptions(time_limit_s=60.0).started_now())
    assert len(found.solution.piece_block) > 1


@pytest.mark.long
@pytest.mark.parametrize("boxes", [2, *SLOWER])
def test_boxes_that_add_inside_are_within_one_percent(boxes: int) -> None:
    """Rails between boxes neither copy nor add: what crosses between boxes is bounded by gossip among them."""
    assert gap(made(machine="dgx-h100-nvls", boxes=boxes)) < 0.01


def test_a_rate_of_adding_and_a_number_of_streams_hold() -> None:
    """With 2 of 3 spines' streams taken in turn and sums at a fifth of the links' rate, time is what these allow."""
    slow = made(**(STAR | {"add_rate": 90e9}))
    found = in_network.solve(slow, RunOptions(time_limit_s=60.0).started_now())
    verdict = check_schedule(slow, found.solution)
    assert verdict.value == pytest.approx(2**30 / 90e9, rel=1e-3)
    limited = made(**FAT_TREE, multicast=True, adds=True, streams=1)
    found = in_network.solve(limited, RunOptions(time_limit_s=60.0).started_now())
    assert check_schedule(limited, found.solution).faults == []
    assert check_schedule(made(**FAT_TREE, multicast=True, adds=True), found.solution).faults == []


def test_too_many_streams_at_once_are_a_fault() -> None:
    free = made(**FAT_TREE, multicast=True, adds=True)
    found = in_network.solve(free, RunOptions(time_limit_s=60.0).started_now())
    faults = check_schedule(made(**FAT_TREE, multicast=True, adds=True, streams=1), found.solution).faults
    assert any("1 at most" in fault for fault in faults)
    assert any("no path" in fault for fault in check_schedule(made(**FAT_TREE), found.solution).faults)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"network": "ring", "nodes": 4}, "switches that add"),
        ({"network": "star", "nodes": 4}, "switches that add"),
        ({**STAR, "collective": "alltoall"}, "no algorithm for alltoall"),
        ({**STAR, "collective": "allgather"}, "farther than others"),
        ({**FAT_TREE, "collective": "reduce_scatter", "multicast": True}, "over switches that copy"),
        ({**STAR, "multicast": False}, "switches that add"),
    ],
)
def test_what_it_does_not_know_is_unsupported(keys: dict[str, Any], word: str) -> None:
    found = in_network.solve(made(**keys), RunOptions(time_limit_s=5.0).started_now())
    assert found.termination == "unsupported"
    assert word in found.message


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"streams": 2}, "no meaning without adds or multicast"),
        ({"adds": True, "switching": "store_and_forward"}, "must be true where switches add"),
        ({"adds": True, "streams": 0}, "streams"),
        ({"adds": True, "add_rate": 1e-9}, "add_rate = 1e-09: must be in"),
        ({"adds": True, "add_rate": 1e30}, "must be in"),
    ],
)
def test_impossible_switches_are_refused_in_one_line(keys: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        made(network="star", nodes=4, **keys)


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_no_bound_lies_above_a_schedule_of_trees(seed: int) -> None:
    """50 machines a seed whose switches copy and add in part; the bound, proven again by its certificate and by none a
    little higher, is below six schedules of random trees each."""
    chooser = random.Random(100 + seed)
    kinds = set()
    for _ in range(50):
        instance = adding_machine(chooser)
        proven = strongest(instance, RunOptions(time_limit_s=1.0).started_now())
        if instance.machine.abilities.any:
            kinds.add(proven.certificate()["argument"])
        assert check_bound(instance, float_below(proven.seconds), proven.certificate()) == []
        assert check_bound(instance, float(proven.seconds) * (1 + 1e-4), proven.certificate()) != []
        for _ in range(6):
            verdict = check_schedule(instance, drawn_schedule(chooser, instance))
            assert verdict.value is not None, verdict.faults
            assert proven.seconds <= verdict.value
    assert {"cut"} <= kinds <= {"cut", "partition", "gossip", "sum_rates"}


def test_arguments_of_plain_switches_are_refused_where_one_multiplies() -> None:
    """A certificate that needs every transfer to pay its own way proves nothing once a switch adds."""
    plain = made(network="star", nodes=5, latency=1e-6, bandwidth=1e9, bytes=2**10)
    proven = strongest(plain, RunOptions(time_limit_s=10.0).started_now())
    assert proven.certificate()["argument"] not in ("cut", "partition")
    assert check_bound(plain, float_below(proven.seconds), proven.certificate()) == []
    adding = made(network="star", nodes=5, latency=1e-6, bandwidth=1e9, bytes=2**10, adds=True, multicast=True)
    assert check_bound(adding, float_below(proven.seconds), proven.certificate()) != []


def seconds(method: Any, instance: FabricInstance) -> float:
    found = method.solve(instance, RunOptions(time_limit_s=20.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def test_nvls_on_a_box_carries_the_data_once_each_way() -> None:
    """Long: M / b, with chunks within 1 % of the bound. Short: two hops to the owner of a share and two from it, and a
    share's bytes, as the formula in the method says."""
    assert seconds(nvls, made(machine="dgx-h100-nvls")) == pytest.approx(2**30 / 450e9, rel=0.01)
    short = seconds(nvls, made(machine="dgx-h100-nvls", bytes=2**10))
    assert 4 * 3.5e-7 < short < 4 * 3.5e-7 + 2 * 2**10 / 450e9


@pytest.mark.long
@pytest.mark.parametrize("boxes", [2, 3, 5])
def test_nvls_between_boxes_is_valid_and_needs_what_two_trees_carry(boxes: int) -> None:
    """No NIC carries less than a share of a rail; the busiest of two binary trees no more than all of it twice."""
    took = seconds(nvls, made(machine="dgx-h100-nvls", boxes=boxes))
    assert 2**30 / 8 / 50e9 < took < 1.2 * 2 * 2**30 / 8 / 50e9 * (1 if boxes < 3 else 2)


def test_sharp_uses_one_tree() -> None:
    """At a fat tree of thin uplinks one spine carries all the data; all spines together are as many times as fast."""
    instance = made(**FAT_TREE, multicast=True, adds=True)
    assert seconds(sharp, instance) == pytest.approx(2**30 / 20e9 + 4e-6, rel=1e-6)
    assert seconds(in_network, instance) < 0.5 * seconds(sharp, instance)
    assert seconds(sharp, made(**STAR)) == seconds(in_network, made(**STAR))


@pytest.mark.parametrize(("method", "word"), [(nvls, "equally many ranks"), (sharp, "joined to all ranks")])
def test_references_of_switches_that_add_need_some(method: Any, word: str) -> None:
    for keys in ({"network": "star", "nodes": 4}, {"machine": "dgx-h100"}):
        found = method.solve(made(**keys), RunOptions(time_limit_s=5.0).started_now())
        assert found.termination == "unsupported"
        assert word in found.message


@pytest.mark.parametrize(("machine", "word"), [("dgx-h100", "dgx-h100-nvls"), ("dgx-b200", "dgx-b200-nvls")])
def test_a_bound_says_what_the_machine_leaves_out(machine: str, word: str) -> None:
    """What real machines do beyond the file stands beside its bound, and only there."""
    keys = {"time_limit": 5.0}
    assert word in (synth.solve(made(machine=machine), "bound", **keys)["message"] or "")
    assert not synth.solve(made(machine=word), "bound", **keys)["message"]
    assert not synth.solve(made(network="star", nodes=4), "bound", **keys)["message"]
