"""The check: values by hand, every mutation of a valid schedule is caught, storage, tables and drawings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from models.harvest.instances import made

import synth
from synth.method import load
from synth_models.harvest import FAMILY
from synth_models.harvest.check.replay import check_schedule, step_times
from synth_models.harvest.solution import Schedule, flow_table, pack, table, unpack


@pytest.fixture
def case():
    """Shift 1 then shift 2 on four GPUs with 2 ports: the shift-1 ring doubled, then 1 and 2; shares 1/2 + 1/2."""
    instance = made(algorithm="recursive_doubling", gpus=4, ports=2, message_bytes=4e6, half="reduce_scatter")
    one = np.array([[u, (u + 1) % 4, 2] for u in range(4)])
    two = np.array(sorted([u, (u + s) % 4, 1] for u in range(4) for s in (1, 2)))
    rows = [(u, 0, u, (u + 1) % 4, 1.0) for u in range(4)]
    for u in range(4):
        rows += [(u, 0, u, (u + 2) % 4, 0.5), (u, 0, u, (u + 1) % 4, 0.5), (u, 1, (u + 1) % 4, (u + 2) % 4, 0.5)]
    pair, hop, src, dst = (np.array([row[i] for row in rows]) for i in range(4))
    share = np.array([row[4] for row in rows])
    schedule = Schedule((one, two), np.array([0, 1]), np.array([0, 4, 16]), pair, hop, src, dst, share)
    return instance, schedule


def test_value_by_hand(case):
    """Step 0: 0.5 us + 0.5 us + 2e6 * 0.5 / 1e11 = 10 us. Step 1: loads 0.5 on shift 2 and 1 on shift 1, 2 hops:
    0.5 + 1 + 10 us. One change: 10 us."""
    instance, schedule = case
    verdict = check_schedule(instance, schedule)
    assert verdict.ok
    assert verdict.value == pytest.approx(32.5e-6)
    assert verdict.facts["reconfigurations"] == 1
    assert verdict.facts["alpha_s"] == pytest.approx(1e-6)
    assert verdict.facts["delta_s"] == pytest.approx(1.5e-6)
    assert verdict.facts["bandwidth_s"] == pytest.approx(20e-6)
    assert verdict.facts["reconfiguration_s"] == pytest.approx(1e-5)
    assert step_times(instance, schedule).theta.tolist() == [1.0, 0.5]


def test_equal_link_counts_under_two_numbers_are_no_change(case):
    instance, schedule = case
    doubled = replace(schedule, topologies=(schedule.topologies[1], schedule.topologies[1][::-1].copy()))
    verdict = check_schedule(instance, doubled)
    assert verdict.ok
    assert verdict.facts["reconfigurations"] == 0


def test_latency_off_leaves_the_hops_out(case):
    instance, schedule = case
    verdict = check_schedule(instance.model_copy(update={"latency": "off"}), schedule)
    assert verdict.value == pytest.approx(31e-6)


def edited(schedule, column, row, new):
    values = getattr(schedule, column).copy()
    values[row] = new
    return replace(schedule, **{column: values})


def without(schedule, row):
    columns = {name: np.delete(getattr(schedule, name), row) for name in ("pair", "hop", "src", "dst", "share")}
    starts = schedule.flow_start - (schedule.flow_start > row)
    return replace(schedule, flow_start=starts, **columns)


def topologies(schedule, number, change):
    links = [one.copy() for one in schedule.topologies]
    links[number] = change(links[number])
    return replace(schedule, topologies=tuple(links))


MUTATIONS = {
    "more links than ports": (lambda p: topologies(p, 0, lambda t: t + [[0, 0, 1]]), "outside 1..2"),
    "a GPU with three links": (
        lambda p: topologies(p, 1, lambda t: np.vstack([t, [[0, 3, 1]]])),
        "3 links leave GPU 0, which has 2 ports",
    ),
    "a loop": (lambda p: topologies(p, 1, lambda t: np.vstack([t[1:], [[0, 0, 1]]])), "from a GPU to itself"),
    "ends twice": (lambda p: topologies(p, 1, lambda t: np.vstack([t, t[:1]])), "the same two ends stand twice"),
    "no such GPU": (lambda p: topologies(p, 1, lambda t: t + [[0, 9, 0]]), "GPU that does not exist"),
    "count 0": (lambda p: topologies(p, 0, lambda t: t * [[1, 1, 0]]), "outside 1..2"),
    "a link taken away": (lambda p: topologies(p, 1, lambda t: t[1:]), "which is no link of its topology"),
    "the wrong topology": (lambda p: edited(p, "topology_of_step", 1, 0), "which is no link of its topology"),
    "no such topology": (lambda p: edited(p, "topology_of_step", 1, 2), "names a topology that does not exist"),
    "too few steps": (lambda p: replace(p, topology_of_step=p.topology_of_step[:1]), "the instance has 2"),
    "smaller share": (lambda p: edited(p, "share", 0, 0.9), "shares of pair 0 sum to 0.9"),
    "share lost on the way": (lambda p: edited(p, "share", 6, 0.4), "goes on"),
    "share 0": (lambda p: edited(p, "share", 0, 0.0), "not in (0, 1]"),
    "share NaN": (lambda p: edited(p, "share", 0, np.nan), "not in (0, 1]"),
    "negative share": (lambda p: edited(p, "share", 0, -1.0), "not in (0, 1]"),
    "another start": (lambda p: edited(edited(p, "src", 0, 1), "dst", 0, 2), "starts at 1"),
    "ends elsewhere": (lambda p: edited(edited(p, "src", 6, 1), "dst", 6, 3), "goes on"),
    "a hop left out": (lambda p: without(p, 6), "goes on"),
    "a hop too late": (lambda p: edited(p, "hop", 6, 2), "goes on"),
    "negative hop": (lambda p: edited(p, "hop", 6, -1), "does not exist"),
    "no such pair": (lambda p: edited(p, "pair", 0, 4), "does not exist"),
    "a pair left out": (lambda p: without(p, 0), "shares of pair 0 sum to 0"),
    "leaves its destination": (lambda p: edited(edited(p, "src", 6, 2), "dst", 6, 3), "leaves its destination 2 again"),
    "rows of another step": (lambda p: edited(p, "flow_start", 1, 5), "sum to 0.5"),
    "rows not cut": (lambda p: edited(p, "flow_start", 2, 15), "not cut into consecutive parts"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_caught(case, name):
    instance, schedule = case
    change, message = MUTATIONS[name]
    verdict = check_schedule(instance, change(schedule))
    assert verdict.value is None
    assert any(message in fault for fault in verdict.faults), verdict.faults


def test_worse_hop_and_load_change_the_value_not_the_validity(case):
    """The cost follows the schedule: everything over shift 1 is valid and slower."""
    instance, schedule = case
    rows = [(u, h, (u + h) % 4, (u + h + 1) % 4) for u in range(4) for h in (0, 1)]
    later = [
        np.concatenate([getattr(schedule, n)[:4], [r[i] for r in rows]])
        for i, n in enumerate(("pair", "hop", "src", "dst"))
    ]
    slow = Schedule(schedule.topologies, schedule.topology_of_step, np.array([0, 4, 12]), *later, np.ones(12))
    assert check_schedule(instance, slow).value == pytest.approx(42.5e-6)


def test_packed_plans_come_back(case):
    _, schedule = case
    again = unpack(case[0], pack(schedule))
    for name, values in pack(again).items():
        assert np.array_equal(values, pack(schedule)[name])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share", ["a"]),
        ("pair", [0.5]),
        ("pair", [0]),
        ("link_src", [0]),
        ("topology_start", [0, 99]),
        ("flow_start", []),
        ("flow_start", [1, 16]),
        ("topology_start", [0, 8, 4, 12]),
    ],
)
def test_data_that_is_no_schedule_is_refused(case, key, value):
    with pytest.raises(ValueError, match=r"is not|differ|does not"):
        unpack(case[0], pack(case[1]) | {key: value})
    with pytest.raises(ValueError, match="is missing"):
        unpack(case[0], {name: data for name, data in pack(case[1]).items() if name != key})


def test_tables_hold_topologies_and_flows(case):
    instance, schedule = case
    links = table(instance, schedule)
    assert list(links.columns) == ["step", "src", "dst", "links"]
    assert links[links.step == 0].links.tolist() == [2] * 4
    flows = flow_table(instance, schedule)
    assert list(flows.columns) == ["step", "pair_src", "pair_dst", "src", "dst", "flow", "hops", "shares"]
    assert len(flows) == 16
    assert flows[(flows.step == 1) & (flows.pair_src == 3)].flow.tolist() == [0.5] * 3
    assert set(flows[flows.step == 1].pair_dst - flows[flows.step == 1].pair_src) == {2, -2}


def test_text_and_drawing(case, tmp_path):
    instance, schedule = case
    text = load(FAMILY.describe)(instance, schedule)
    assert "step 1: 4 pairs, 977 KiB each: 11.5 us = 500 ns alpha + 1.00 us for 2 hops + 10.0 us for the bytes" in text
    assert "shift +1 (2 links)" in text
    load(FAMILY.plot)(instance, schedule, "title").savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_animation_has_a_frame_a_step(case):
    instance, schedule = case
    found = FAMILY.capability("frames")(instance, schedule)
    assert found.titles[1] == "step 1: reconfigured (10.0 us) to shifts +1, +2; 11.5 us"
    assert (found.step == 1).sum() == 4
    assert (found.step == 2).sum() == 8
    sizes = {found.items[i] for i in found.item[found.step == 2]}
    assert sizes == {"500000 bytes", "1000000 bytes"}


def test_records_are_stored_and_checked_again(tmp_path):
    instance = made(algorithm="swing", gpus=8, ports=2, message_bytes=1e6)
    for method in ("candidates", "bvn", "static_ring", "static_torus", "static_kautz", "greedy", "dp_k"):
        record = synth.solve(instance, method=method, results=tmp_path)
        assert record.ok
        assert synth.check(str(record.path), instance).ok
        raw = synth.check(str(record.path), instance).value
        assert raw == pytest.approx(record.value, rel=1e-12)
