"""Both ways round a cycle through all nodes, and schedules that symmetry repeats from the instance to the record."""

from __future__ import annotations

import numpy as np
import pytest
from models.xtree.cases import instance_of, make

import synth
from synth.errors import InputError
from synth.family import get_family
from synth.network import Network
from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule, listed
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.references import from_allgather
from synth_models.xtree.references.cycle import around, cycle
from synth_models.xtree.solution import pack, unpack

LARGE = dict(network="torus", rows=40, cols=40)  # 2,558,400 transfers: more than are listed


@pytest.mark.parametrize("sides", [(2, 2), (2, 7), (4, 4), (3, 6), (6, 5)], ids=str)
@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
def test_even_meshes_meet_the_bound(sides, chunks, collective):
    """A corner has two links in and two out: ceil(C (N - 1) / 2) timesteps, and no fewer."""
    instance = make(network="mesh", rows=sides[0], cols=sides[1], chunks=chunks, collective=collective)
    record = synth.solve(instance, "cycle")
    assert record.ok
    assert record.value == record.bound == -(-chunks * (sides[0] * sides[1] - 1) // 2)


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        (dict(network="ring", nodes=3), 1),
        (dict(network="ring", nodes=9, chunks=3), 12),
        (dict(network="torus", rows=3, cols=4), 6),
        (dict(network="equimesh", rows=4, cols=5), 10),
        (dict(network="mesh", rows=4, cols=3, collective="allreduce"), 12),
    ],
    ids=str,
)
def test_other_networks_with_a_cycle(words, steps):
    record = synth.solve(make(**words), "cycle")
    assert record.ok
    assert record.value == steps


@pytest.mark.parametrize(
    "words",
    [
        dict(network="mesh", rows=3, cols=3),
        dict(network="mesh", rows=1, cols=4),
        dict(network="line", nodes=4),
        dict(network="ring", nodes=4, bidirectional="off"),
        dict(network="hypercube", dimension=3),
        dict(network="kautz", nodes=6, degree=2),
    ],
    ids=str,
)
def test_no_cycle_is_unsupported(words):
    assert synth.solve(make(**words), "cycle")["termination"] == "unsupported"


def test_the_cycle_visits_every_node_once():
    for rows, cols in ((2, 2), (2, 5), (5, 2), (4, 7), (7, 4), (6, 6)):
        network = make(network="mesh", rows=rows, cols=cols).topology
        order = cycle(network)
        assert order[0] == 0
        assert sorted(order.tolist()) == list(range(rows * cols))
        assert all(network.hops_from(u)[w] == 1 for u, w in zip(order, np.roll(order, -1), strict=True))


@pytest.mark.long
def test_many_transfers_are_kept_as_one_nodes_part():
    """The record holds node 0's part; what is checked and said is of the whole schedule."""
    instance = make(**LARGE)
    record = synth.solve(instance, "symmetric")
    schedule = record.solution()
    assert isinstance(schedule, QuotientSchedule)
    assert record.value == record.bound == 400
    facts = record["verified"]["facts"]
    assert facts["transfers"] == 1600 * 1599
    assert facts["replayed_transfers"] == len(schedule.part) == 1599
    whole = listed(instance.topology, schedule)
    verdict = check_schedule(instance, whole)
    assert verdict.ok
    assert verdict.value == 400
    for key in ("transfers", "redundant_transfers", "link_use"):
        assert verdict.facts[key] == facts[key]
    assert verdict.facts["completion_time_s"] == pytest.approx(facts["completion_time_s"], rel=1e-12)
    assert "2558400 transfers" in record.describe()
    assert len(record.table()) == 2_558_400


def test_packing_is_undone():
    instance = make(network="mesh", rows=4, cols=4, chunks=2)
    for schedule in (around(instance.topology, 2), from_allgather.by_quotient(instance, around)):
        again = unpack(instance, pack(schedule))
        assert isinstance(again, type(schedule))
        assert check_schedule(instance, again).value == check_schedule(instance, schedule).value == 15


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("generators", [[0, 1]], "shape"),
        ("generators", [[16] * 16], "more than 15"),
        ("generators", [[-1] * 16], "less than 0"),
        ("generators", [["a"] * 16], "whole numbers"),
        ("generators", 7, "shape"),
        ("within", [48], "more than 47"),
        ("within", [-1], "less than 0"),
        ("within", [[0]], "shape"),
        ("within", "all", "shape"),
        ("link", [2**40] * 30, "more than"),
    ],
)
def test_stored_values_are_read_with_care(key, value, words):
    instance = make(network="mesh", rows=4, cols=4, chunks=2)
    packed = pack(around(instance.topology, 2)) | {key: value}
    with pytest.raises(ValueError, match=words):
        unpack(instance, packed)


@pytest.mark.parametrize("damage", ["generator", "missing", "link", "within"])
def test_a_damaged_record_fails_its_check(damage):
    instance = make(network="mesh", rows=4, cols=6, chunks=1)
    good = around(instance.topology, 1)
    packed = {key: np.array(value) for key, value in pack(good).items()}
    assert check_schedule(instance, unpack(instance, packed)).ok
    if damage == "generator":
        packed["generators"][0, :2] = packed["generators"][0, 1::-1]
    elif damage == "missing":
        packed = {k: v if k in ("generators", "within") else v[:-1] for k, v in packed.items()}
    elif damage == "link":
        packed["link"][1] = packed["link"][0]
    else:
        packed["within"] = packed["within"][:-1]
    verdict = check_schedule(instance, unpack(instance, packed))
    assert not verdict.ok
    assert verdict.value is None


def test_methods_that_list_everything_say_when_it_is_too_much(monkeypatch):
    """Beyond the limit they say so at once; nothing is built."""
    monkeypatch.setattr(from_allgather, "MOST_LISTED", 1000)
    for network, methods in (
        ("mesh", ("pull", "xtree", "multitree", "tacos", "mesh2d_rings", "tto", "tidalmesh", "ilp", "cpsat")),
        ("torus", ("pull", "tacos")),
    ):
        instance = make(network=network, rows=6, cols=6)
        for method in methods:
            record = synth.solve(instance, method)
            assert record["termination"] == "size_limit", method
            assert "symmetric" in record["message"]


def test_bounds_need_no_table_of_all_distances():
    """At 16,384 nodes they would be a gigabyte, at 65,536 nodes 17."""
    instance = make(network="torus", rows=128, cols=128)
    assert lower_bound(instance)[0] == 4096
    assert "distances" not in instance.topology.__dict__


def test_exported_and_drawn_as_far_as_they_can_be_listed():
    instance = make(network="mesh", rows=4, cols=4)
    schedule = around(instance.topology, 1)
    family = get_family("xtree")

    whole = listed(instance.topology, schedule)
    one, other = (family.capability("export")(instance, s) for s in (schedule, whole))
    assert np.array_equal(np.sort(one.start_s), np.sort(other.start_s))
    assert isinstance(whole, Schedule)
    with pytest.raises(InputError, match="more than the 10"):
        listed(instance.topology, schedule, most=10)


def test_symmetric_takes_a_network_with_parallel_links():
    raw = {"kind": "links", "nodes": 3, "links": [{"src": v, "dst": (v + 1) % 3} for v in range(3) for _ in range(2)]}
    record = synth.solve(instance_of(raw, 2), "symmetric")
    assert record["termination"] == "unsupported"  # no grid coordinates are known of it
    from synth_models.xtree.references.symmetric import one_node

    network = Network(3, [(v, (v + 1) % 3) for v in range(3) for _ in range(2)], grid=(3,))
    schedule = listed(network, one_node(network, 2, np.random.SeedSequence(0), 2))
    assert check_schedule(instance_of(raw, 2), schedule).value == 2
