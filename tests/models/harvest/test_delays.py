"""Delays that depend on what changes, and overlap: every method against all sequences of topologies."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.harvest import delay_oracle as oracle
from models.harvest.instances import SWITCHES, made, stated

import synth
from synth.errors import InputError
from synth.family import defaults_for
from synth.instance import parse
from synth.options import RunOptions
from synth_models.harvest import FAMILY
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.changes import changes_of
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import changed_between
from synth_models.harvest.parts.kept_topologies import jumping_rings, kept_topologies
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.programs.misocp import method as misocp
from synth_models.harvest.references.algorithm_1 import front_with_delays
from synth_models.harvest.references.recursive_doubling import REDUCE_SCATTER, WHOLE, best_rings, best_rings_paying
from synth_models.harvest.solution import Schedule
from synth_models.harvest.views import describe, frames, plot

ROOT = Path(__file__).resolve().parents[3]
EMPTY = np.zeros(0, dtype=np.int64)


def links_of(matrix):
    rows = [(u, v, count) for u, row in enumerate(matrix) for v, count in enumerate(row) if count]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def with_every_topology(raw):
    """The instance with all topologies as its candidates."""
    shapes = oracle.topologies(raw["gpus"], raw["ports"])
    every = [{"name": str(j), "links": links_of(matrix).tolist()} for j, matrix in enumerate(shapes)]
    return parse(raw | {"candidates": every}, HarvestInstance, "test")


def compare_with_brute_force(raw):
    """The shortest path over all topologies is the least over all sequences, its check agrees, the bound is below."""
    best = oracle.optimum(raw)
    found = synth.solve(with_every_topology(raw), method="candidates")
    assert found.ok, found["verified"]["faults"]
    assert found.value == pytest.approx(best, rel=1e-9)
    instance = parse(raw, HarvestInstance, "test")
    bound = synth.solve(instance, method="bound")
    assert bound.ok
    assert bound["bound"] <= best * (1 + 1e-12)
    ours, table = (synth.solve(instance, method=method) for method in ("candidates", "dp_k"))
    assert table.value == pytest.approx(ours.value, rel=1e-9)
    assert ours.value >= best * (1 - 1e-9)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("gpus", "number"), [(3, 0), (3, 1), *((4, number) for number in range(4))])
def test_agrees_with_all_sequences_of_topologies(gpus, number):
    compare_with_brute_force(oracle.random_instance(number, gpus))


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [3, 4])
def test_agrees_with_all_sequences_of_many_instances(gpus):
    for number in range(4, 104):
        compare_with_brute_force(oracle.random_instance(number, gpus))


matrices = st.integers(2, 5).flatmap(
    lambda gpus: st.tuples(
        st.just(gpus),
        st.integers(1, 3),
        st.lists(
            st.lists(st.tuples(st.integers(0, gpus - 1), st.integers(0, gpus - 1)), max_size=3 * gpus),
            min_size=2,
            max_size=4,
        ),
    )
)


def filled(gpus, ports, wishes):
    """A matrix of link counts: the wished links, as far as the ports allow."""
    links = np.zeros((gpus, gpus), dtype=int)
    for u, v in wishes:
        if u != v and links[u].sum() < ports and links[:, v].sum() < ports:
            links[u, v] += 1
    return tuple(map(tuple, links.tolist()))


@settings(max_examples=some(40), deadline=None)
@given(matrices)
def test_what_changes_is_counted_alike_three_times(case):
    """The methods' sparse products, the check's counts and the oracle's lists of partners."""
    gpus, ports, wishes = case
    shapes = [filled(gpus, ports, wish) for wish in wishes]
    circuits, changed = changed_between([links_of(shape) for shape in shapes], gpus, ports)
    for (i, x), (j, y) in product(enumerate(shapes), repeat=2):
        assert circuits[i, j] == oracle.circuits_set_up(x, y)
        assert changed[i, j] == oracle.ports_changed(x, y, ports)
    steps = [{"bytes": 1.0, "shift": 1}] * len(shapes)
    table = [[2 * gpus * ports, 0.25]]
    raw = {"gpus": gpus, "ports": ports, "steps": steps, "delay_per_circuit": 0.5, "delay_by_ports": table}
    topologies = tuple(links_of(shape) for shape in shapes)
    order = np.arange(len(shapes), dtype=np.int64)
    schedule = Schedule(topologies, order, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, np.zeros(0))
    found = changes_of(stated(**raw | {"reconfiguration_delay": 2.0}), schedule)
    for i, (x, y) in enumerate(pairwise(shapes), start=1):
        expected = 2.25 + 0.5 * oracle.circuits_set_up(x, y) if x != y else 0.0
        assert (found.circuits[i], found.ports[i]) == (circuits[i - 1, i], changed[i - 1, i])
        assert found.seconds[i] == found.paid[i] == expected


def test_hand_arithmetic():
    """4 GPUs, one port, 1 byte/s. The pair (0, 1) sends 4 bytes, then (1, 2) does, then all go round: 4 s each on the
    ring, where beginning is free. BvN has the link 0 -> 1, then 1 -> 2 (one circuit; two ports let go, two join), then
    the ring, for which three circuits are set up at six ports."""
    steps = [{"bytes": 4.0, "pairs": [[0, 1]]}, {"bytes": 4.0, "pairs": [[1, 2]]}, {"bytes": 4.0, "shift": 1}]
    fabric = {"ports": 1, "port_bandwidth": 1.0, "alpha": 0.0, "delta": 0.0, "reconfiguration_delay": 0.0}
    instance = stated(**fabric, steps=steps, delay_per_circuit=1.0)
    found = synth.solve(instance, method="candidates")
    assert found.value == pytest.approx(12.0)
    assert found["verified"]["facts"]["circuits_set_up"] == 0
    bvn = synth.solve(instance, method="bvn")  # 0 -> 1; then 1 -> 2 set up; then the three others of the ring
    assert bvn.value == pytest.approx(12.0 + 1 + 3)
    assert bvn["verified"]["facts"] | {"circuits_set_up": 4, "hidden_s": 0.0} == bvn["verified"]["facts"]
    assert bvn["verified"]["facts"]["ports_changed"] == 4 + 6  # 0 and 1 let go, 1 and 2 join; then all but that link
    steps[2]["overlap"] = 2.0
    hidden = synth.solve(stated(**fabric, steps=steps, delay_per_circuit=1.0), method="bvn")
    assert hidden.value == pytest.approx(12.0 + 1 + 1)
    assert hidden["verified"]["facts"]["hidden_s"] == pytest.approx(2.0)
    table = stated(**fabric, steps=steps, delay_by_ports=[[4, 0.5], [8, 3.0]])
    assert synth.solve(table, method="bvn").value == pytest.approx(12.0 + 0.5 + 1)


tables = st.integers(1, 5).flatmap(
    lambda steps: st.integers(1, 3).flatmap(
        lambda shapes: st.tuples(
            st.lists(st.lists(st.floats(0, 10), min_size=shapes, max_size=shapes), min_size=steps, max_size=steps),
            st.lists(
                st.lists(st.lists(st.floats(0, 5), min_size=shapes, max_size=shapes), min_size=shapes, max_size=shapes),
                min_size=steps,
                max_size=steps,
            ),
        )
    )
)


@settings(max_examples=some(60), deadline=None)
@given(tables)
def test_shortest_path_and_front_equal_every_assignment(table):
    """Any costs of a change, by step and by both topologies: no triangle inequality is needed."""
    cost, change = np.array(table[0]), np.array(table[1])
    steps, shapes = cost.shape
    for own in change:
        np.fill_diagonal(own, 0.0)
    best = np.full(steps, np.inf)  # by the number of changes at most
    for chosen in product(range(shapes), repeat=steps):
        seconds = sum(cost[i, g] for i, g in enumerate(chosen))
        seconds += sum(change[i, a, b] for i, (a, b) in enumerate(pairwise(chosen), start=1))
        changes = sum(a != b for a, b in pairwise(chosen))
        best[changes:] = np.minimum(best[changes:], seconds)
    total, chosen = shortest_schedule(cost, lambda i: change[i])
    assert total == pytest.approx(best[-1])
    paid = sum(change[i, a, b] for i, (a, b) in enumerate(pairwise(chosen.tolist()), start=1))
    assert cost[np.arange(steps), chosen].sum() + paid == pytest.approx(total)
    found = front_with_delays(cost, lambda i: change[i])
    assert found.time.tolist() == pytest.approx(best.tolist())
    for k, row in enumerate(found.topology.tolist()):
        assert sum(a != b for a, b in pairwise(row)) <= k
        paid = sum(change[i, a, b] for i, (a, b) in enumerate(pairwise(row), start=1))
        assert cost[np.arange(steps), row].sum() + paid == pytest.approx(found.time[k])


def overlapped(number, gpus):
    raw = oracle.random_instance(number, gpus)
    return {key: value for key, value in raw.items() if not key.startswith("delay_")} | {"reconfiguration_delay": 1e-5}


@pytest.mark.parametrize(("gpus", "number"), [(3, 1), (4, 3), (4, 10), (4, 17)])
def test_misocp_takes_overlap(gpus, number):
    raw = overlapped(number, gpus)
    instance, best = parse(raw, HarvestInstance, "test"), oracle.optimum(raw)
    found = misocp.solve(instance, RunOptions(time_limit_s=60.0, solver="highs", method=SWITCHES))
    assert found.termination == "optimal"
    assert check_schedule(instance, found.solution).value == pytest.approx(best, rel=2e-4)
    assert found.bound <= best * (1 + 1e-9)


def test_a_delay_of_nothing_is_the_constant_one():
    """delay_per_circuit = 0 and a table of one row say the same as the constant delay does."""
    plain = made(algorithm="recursive_doubling", gpus=8, ports=1, message_bytes=1e6)
    raw = json.loads(plain.to_json())
    for method in ("candidates", "bound", "bvn", "greedy", "dp_k", "recursive_doubling_closed_form"):
        expected = synth.solve(plain, method=method)
        zero = synth.solve(plain.model_copy(update={"delay_per_circuit": 0.0}), method=method)
        table = raw | {"reconfiguration_delay": 0.0, "delay_by_ports": [[16, raw["reconfiguration_delay"]]]}
        same = synth.solve(parse(table, HarvestInstance, "test"), method=method)
        for other in (zero, same):
            assert (other.value, other["bound"]) == (expected.value, expected["bound"]), method


def test_instances_without_the_new_fields_keep_their_text():
    for path in sorted((ROOT / "instances" / "harvest").glob("*.json")):
        raw = json.loads(path.read_text())
        fields = {"delay_per_circuit", "delay_by_ports"} & raw.keys()
        if not fields and not any("overlap" in step for step in raw["steps"]):
            assert json.loads(synth.read(path).to_json()) == raw, path.name


def test_a_certificate_proves_no_more_than_the_delays_do():
    """The bound of dear changes on the same problem where circuits, ports or overlap make them cheaper."""
    keys = {"algorithm": "recursive_doubling", "gpus": 8, "ports": 1, "message_bytes": 1e6}
    dear = made(**keys, reconfiguration_delay=4e-6)
    outcome = synth.solve(dear, method="bound")
    bound, certificate = outcome["bound"], outcome.certificate
    assert check_bound(dear, bound, certificate) == []
    same = made(**keys, reconfiguration_delay=1e-6, delay_per_circuit=3e-6)  # one circuit at least
    assert check_bound(same, bound, certificate) == []
    rows = "2:3e-6,16:1"  # two ports at least
    assert check_bound(made(**keys, reconfiguration_delay=1e-6, delay_by_ports=rows), bound, certificate) == []
    for cheaper in (
        {"reconfiguration_delay": 1e-6, "delay_per_circuit": 2e-6},
        {"reconfiguration_delay": 1e-6, "delay_by_ports": "2:2e-6,16:1"},
        {"reconfiguration_delay": 0.0, "delay_per_circuit": 4e-6, "delay_by_ports": "2:0,16:1"},  # no circuit counts
        {"reconfiguration_delay": 4e-6, "overlap": 1e-6},
    ):
        assert "the certificate proves" in check_bound(made(**keys, **cheaper), bound, certificate)[0]


# --- the closed form -------------------------------------------------------------------------------------------------


@settings(max_examples=some(40), deadline=None)
@given(st.lists(st.floats(0.0, 1e-5), min_size=6, max_size=6), st.floats(0, 1e-6), st.floats(1e3, 1e7))
def test_closed_form_takes_a_delay_for_every_step(changes, delta, message):
    """Against all assignments of rings to the six steps of 8 GPUs; a free first topology."""
    order = (0, 1, 2, 2, 1, 0)
    cost = np.full((6, 3), np.inf)
    for i, e in enumerate(order):
        for ring in range(e + 1):
            cost[i, ring] = 5e-7 + delta * 2.0 ** (e - ring) + message / 1e11 / 2.0 ** (ring + 1)
    paid = np.array(changes)
    expected, _ = shortest_schedule(cost, lambda i: float(paid[i]))
    assert best_rings_paying(3, WHOLE, message / 1e11, 5e-7, delta, paid)[0] == pytest.approx(expected, rel=1e-9)


def test_closed_form_on_four_gpus_is_the_best_also_per_circuit():
    """Two steps of the reduce-scatter over all pairs of the 108 topologies: here Observation 4 still holds."""
    for size, per, delta in (
        (1e4, 1e-8, 0.0),
        (1e5, 1e-7, 5e-7),
        (1e5, 1e-6, 5e-7),
        (1e6, 1e-6, 0.0),
        (1e6, 1e-5, 5e-7),
    ):
        pairs = [[[u, (u + shift) % 4] for u in range(4)] for shift in (1, 2)]
        steps = [{"bytes": size / 2 / (i + 1), "pairs": pairs[i]} for i in range(2)]
        fabric = {"gpus": 4, "ports": 1, "port_bandwidth": 1e11, "alpha": 5e-7, "delta": delta}
        raw = {**fabric, "reconfiguration_delay": 0.0, "delay_per_circuit": per, "steps": steps}
        seconds, _ = best_rings(2, REDUCE_SCATTER, size / 1e11, 5e-7, delta, 4 * per)
        assert seconds == pytest.approx(oracle.optimum(raw), rel=1e-9)


EIGHT = {"algorithm": "recursive_doubling", "half": "reduce_scatter", "gpus": 8, "ports": 1, "message_bytes": 1e5}
PER_CIRCUIT = {"reconfiguration_delay": 0.0, "delay_per_circuit": 3e-7}


def test_closed_form_on_eight_gpus_is_not_the_best_per_circuit():
    """100,000 bytes, 300 ns a circuit. The ring for all: 1.5 us + 7 * 0.5 us + 3 * 0.5 us = 6.5 us. Steps 1 and 2 there
    take 3.5 us; then every second link jumps, so that two hops lead 4 further: four circuits (1.2 us), and the last
    step takes 0.5 + 2 * 0.5 + 2 * 0.125 us: 6.45 us."""
    instance = made(**EIGHT, **PER_CIRCUIT)
    rings = synth.solve(instance, method="recursive_doubling_closed_form")
    best = synth.solve(instance, method="candidates")
    assert rings.value == pytest.approx(6.5e-6)
    assert best.value == pytest.approx(6.45e-6)
    assert best["verified"]["facts"]["circuits_set_up"] == 4
    assert "topologies that keep circuits may be better" in rings["message"]
    assert "may be better" not in synth.solve(made(**EIGHT), method="recursive_doubling_closed_form")["message"]


@pytest.mark.slow
def test_no_sequence_of_permutations_is_better_on_eight_gpus():
    """All 40,320 permutations a step, changes through all 1,441,729 partial ones."""
    assert oracle.one_port_optimum(8, (1, 2, 4), 1e5, 1e11, 5e-7, 5e-7, 3e-7) == pytest.approx(6.45e-6)


# --- topologies that keep circuits -----------------------------------------------------------------------------------


def test_jumping_rings_reach_their_distance_in_q_hops():
    instance = made(algorithm="recursive_doubling", gpus=16, ports=1, message_bytes=1e6, **PER_CIRCUIT)
    found = {one.name: one.links for one in jumping_rings(instance)}
    assert len(found) == 4
    for name, links in found.items():
        base, q, shift = (int(part.rstrip(",")) for part in name.replace("one", "").split() if part[0].isdigit())
        to = links[np.argsort(links[:, 0]), 1]
        at = np.arange(16)
        for _ in range(q):
            at = to[at]
        assert np.array_equal(at, (np.arange(16) + shift) % 16), name
        assert np.count_nonzero(to != (np.arange(16) + base) % 16) == 16 // q
        assert sorted(to.tolist()) == list(range(16))


@pytest.mark.parametrize("ports", [1, 2, 3])
def test_kept_topologies_join_the_pairs_and_keep_to_the_ports(ports):
    instance = made(algorithm="binomial_broadcast", gpus=11, ports=ports, message_bytes=1e6)
    found = kept_topologies(instance)
    assert len(found) == 2 * (2 * len(instance.steps) - 1)
    for one in found:
        for side in (0, 1):
            assert np.bincount(one.links[:, side], one.links[:, 2]).max() <= ports
        step = int(one.name.split("direct ")[1].split(",")[0])
        assert {tuple(pair) for pair in instance.pairs[step].tolist()} <= {(u, v) for u, v, _ in one.links.tolist()}


def test_they_are_tried_only_where_delays_depend_on_what_changes():
    keys = {"algorithm": "recursive_doubling", "gpus": 8, "ports": 1, "message_bytes": 1e6}
    words = [synth.solve(made(**keys, **more), method="candidates")["message"] for more in ({}, {"overlap": 1e-6})]
    assert words[0] == words[1]
    assert synth.solve(made(**keys, **PER_CIRCUIT), method="candidates")["message"] != words[0]


# --- files, keys, views ----------------------------------------------------------------------------------------------

FAULTY = [
    ({"delay_per_circuit": -1.0}, "delay_per_circuit = -1.0: must be >= 0"),
    ({"delay_by_ports": [[8, -1.0]]}, "delay_by_ports[0][1] = -1.0: must be >= 0"),
    ({"delay_by_ports": [[4, 1.0], [4, 1.0], [8, 1.0]]}, "delay_by_ports[1] = 4: the number of ports must be above 4"),
    ({"delay_by_ports": [[4, 2.0], [8, 1.0]]}, "delay_by_ports[1] = 1.0: the time must not be below 2"),
    ({"delay_by_ports": [[4, 1.0]]}, "delay_by_ports[0] = 4: the last row must be for all 2 * gpus * ports = 8 ports"),
    ({"delay_by_ports": [[4, 10**400], [8, 1.0]]}, "delay_by_ports[0][1]"),
    ({"delay_by_ports": []}, "delay_by_ports = []"),
    ({"steps": [{"bytes": 1.0, "shift": 1, "overlap": -1.0}]}, "steps[0].overlap = -1.0: must be >= 0"),
]


@pytest.mark.parametrize(("fields", "message"), FAULTY)
def test_faults_of_a_file(fields, message):
    with pytest.raises(InputError) as caught:
        stated(**{"ports": 1, "steps": [{"bytes": 1.0, "shift": 1}], **fields})
    assert message in str(caught.value)


def test_made_from_keys():
    keys = {"algorithm": "recursive_doubling", "half": "reduce_scatter", "gpus": 8, "ports": 1, "message_bytes": 1e6}
    instance = made(**keys, delay_per_circuit=1e-6, delay_by_ports="4:1e-6,16:2e-6", overlap="0,1e-6,2e-6")
    assert instance.delay_by_ports == ((4, 1e-6), (16, 2e-6))
    assert instance.overlap.tolist() == [0.0, 1e-6, 2e-6]
    assert made(**keys, overlap=3e-6).overlap.tolist() == [3e-6] * 3
    for fields, message in (
        ({"overlap": "1,2"}, "must be one number or 3, one a step, not 2"),
        ({"overlap": "soon"}, "must be a number, or numbers with commas"),
        ({"delay_by_ports": "4=1e-6"}, "must be rows like 32:1e-6,128:1e-5"),
    ):
        with pytest.raises(InputError, match="harvest") as caught:
            made(**keys, **fields)
        assert message in str(caught.value)


@pytest.mark.parametrize("largest", [1e308, 1.7e308])
def test_delays_beyond_a_float_are_never_paid(largest):
    """Staying is the only way; a schedule that changes all the same has no time."""
    steps = [{"bytes": 1e6, "shift": shift} for shift in (1, 2)]
    instance = stated(ports=1, steps=steps, delay_per_circuit=largest, reconfiguration_delay=largest)
    found = synth.solve(instance, method="candidates")
    assert found.ok
    assert found["verified"]["facts"]["reconfigurations"] == 0
    bvn = synth.solve(instance, method="bvn")
    assert not bvn.ok
    assert "beyond the range of a float" in str(bvn["verified"]["faults"])


def test_views_and_default_methods():
    keys = {"algorithm": "recursive_doubling", "gpus": 8, "ports": 1, "message_bytes": 1e7}
    instance = made(**keys, reconfiguration_delay=1e-6, delay_per_circuit=1e-7, overlap=5e-7)
    for method in defaults_for(FAMILY, instance):
        assert synth.solve(instance, method=method).ok, method
    record = synth.solve(instance, method="bvn")
    schedule = record.solution()
    words = describe.describe(instance, schedule)
    assert "1.30 us to reconfigure (8 circuits set up, 16 ports changed), 500 ns more hidden" in words
    assert frames.frames(instance, schedule) is not None
    titles = [axes.get_title() for axes in plot.plot(instance, schedule, "title").axes]
    assert any(title.startswith("step") and ": " in title for title in titles)
