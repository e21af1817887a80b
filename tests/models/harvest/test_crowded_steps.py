"""Steps with more partners than ports, and steps of no bytes: every part of the family takes them."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some_of
from models.harvest.brute_force import optimum
from models.harvest.instances import SWITCHES, made, stated

import synth
from synth.errors import UnsupportedError
from synth.family import defaults_for
from synth.method import load
from synth.options import RunOptions
from synth.solvers.catalogue import solvers_for
from synth_models.harvest import FAMILY
from synth_models.harvest.check.replay import check_schedule, step_times
from synth_models.harvest.parts.flows import layered as layered_flow
from synth_models.harvest.parts.flows import path as path_flow
from synth_models.harvest.parts.flows.profiles import _distances
from synth_models.harvest.parts.topologies import candidates, direct
from synth_models.harvest.programs.misocp import blocks as misocp_blocks
from synth_models.harvest.programs.misocp import method as misocp
from synth_models.harvest.references import recursive_doubling as closed_form
from synth_papers.harvest import heatmaps

ALL_TO_ALL = [[u, v] for u in range(4) for v in range(4) if u != v]


def instance_of(ports: int, steps, **changes):
    return stated(ports=ports, steps=steps, **{"reconfiguration_delay": 1e-6, **changes})


def test_all_to_all_in_one_step_by_hand():
    """One port: the ring, 1 + 2 + 3 hops a GPU on 4 links, so load 6 and 3 hops: 0.5 + 1.5 + 6 * 10 us. The bound
    counts both: every GPU reaches one other a hop."""
    instance = instance_of(1, [{"bytes": 1e6, "pairs": ALL_TO_ALL}])
    for method in ("candidates", "dp_k", "greedy", "static_ring", "misocp"):
        record = synth.solve(instance, method=method, time_limit=60)
        assert record.ok, (method, record["verified"])
        assert record.value == pytest.approx(62e-6, rel=1e-9), method
        assert synth.check(record, instance).ok
    bound = synth.solve(instance, method="bound")
    assert bound.bound == pytest.approx(62e-6, rel=1e-6)
    assert bound.bound <= 62e-6
    assert bound.ok


def test_a_step_without_bytes_costs_its_hops():
    """One port, GPU 0 sends to all: 3 hops within a ring; on two ports 2 hops, on three one."""
    for ports, hops in ((1, 3), (2, 2), (3, 1)):
        instance = instance_of(ports, [{"bytes": 0.0, "pairs": [[0, 1], [0, 2], [0, 3]]}])
        expected = 5e-7 + hops * 5e-7
        assert optimum(instance.model_dump(mode="json")) == pytest.approx(expected)
        record = synth.solve(instance, method="misocp", time_limit=60)
        assert record.value == pytest.approx(expected)
        assert record["termination"] == "optimal"
        schedule = load(FAMILY.unpack)(instance, record.packed)
        assert step_times(instance, schedule).bandwidth.tolist() == [0.0]
        assert step_times(instance, schedule).hops.tolist() == [hops]
        bound = synth.solve(instance, method="bound")
        assert bound.bound is not None
        assert expected * (1 - 1e-6) <= bound.bound <= expected


@pytest.mark.parametrize("changes", [{}, {"delta": 0.0}, {"latency": "off"}, {"alpha": 0.0, "delta": 0.0}])
def test_nothing_at_all_to_send(changes):
    """Every step without bytes; with no latency and no alpha either the time is 0, and all say so."""
    instance = instance_of(2, [{"bytes": 0, "pairs": [[0, 1], [2, 3]]}, {"bytes": 0, "shift": 2}], **changes)
    raw = instance.model_dump(mode="json")
    for step, pairs in zip(raw["steps"], instance.pairs, strict=True):
        step["pairs"] = pairs.tolist()
    best = optimum(raw)
    for method in defaults_for(FAMILY, instance):
        record = synth.solve(instance, method=method)
        assert record.ok, (method, record["message"])
        if record.value is not None:
            assert record.value >= best * (1 - 1e-9)
        if record.bound is not None:
            assert record.bound <= best * (1 + 1e-9)
    for solver in ("highs", "scip"):
        record = synth.solve(instance, method="misocp", solver=solver, time_limit=60)
        assert record.value == pytest.approx(best)
        assert record["termination"] == "optimal"


def test_bvn_says_why_it_cannot():
    instance = instance_of(2, [{"bytes": 1e6, "shift": 1}, {"bytes": 1e6, "pairs": ALL_TO_ALL}])
    message = "a GPU of step 1 has 3 partners and 2 ports: the step has no direct topology"
    with pytest.raises(UnsupportedError, match=message):
        FAMILY.method("bvn").load()(instance, RunOptions(method={}))
    assert "bvn" not in defaults_for(FAMILY, instance)
    assert "bvn" in defaults_for(FAMILY, instance_of(3, [{"bytes": 1e6, "pairs": ALL_TO_ALL}]))


def test_topologies_keep_the_ports():
    instance = instance_of(2, [{"bytes": 1e6, "pairs": ALL_TO_ALL}, {"bytes": 1e6, "shift": 3}])
    assert direct(instance.pairs[0], 4, 2) is None
    found = candidates(instance)
    assert any(topology.name == "part of step 0" for topology in found)
    for topology in found:
        assert topology.links[:, 2].min() >= 1
        for side in (0, 1):
            assert np.bincount(topology.links[:, side], topology.links[:, 2]).max() <= 2


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "binary_broadcast", "gpus": "7", "ports": "1"},
        {"algorithm": "bruck_alltoall", "gpus": "9", "radix": "3", "sends": "2", "ports": "1"},
        {"algorithm": "bruck_allgather", "gpus": "8", "radix": "4", "sends": "3", "ports": "2"},
        {"algorithm": "swing_torus", "torus": "4x4", "gpus": "16", "ports": "2"},
    ],
)
def test_algorithms_for_more_ports_run_on_fewer(given, tmp_path):
    """Those of several sends a step, on fewer ports; views and stored records too."""
    instance = made(message_bytes=1e6, **given)
    for method in defaults_for(FAMILY, instance):
        record = synth.solve(instance, method=method, results=tmp_path)
        assert record.ok, (method, record["message"])
        if record.value is not None:
            schedule = load(FAMILY.unpack)(instance, record.packed)
            assert check_schedule(instance, schedule).ok
            assert "theta" in load(FAMILY.describe)(instance, schedule)
            assert len(FAMILY.capability("flow_table")(instance, schedule)) > 0
    bound = synth.solve(instance, method="bound").bound
    best = synth.solve(instance, method="candidates").value
    assert bound is not None
    assert best is not None
    assert bound <= best


def test_a_schedule_for_a_crowded_step_is_drawn(tmp_path):
    instance = instance_of(1, [{"bytes": 0.0, "pairs": ALL_TO_ALL}, {"bytes": 1e6, "pairs": ALL_TO_ALL}])
    schedule = FAMILY.method("static_ring").load()(instance, RunOptions(method={})).solution
    assert "12 pairs, 0 B each" in load(FAMILY.describe)(instance, schedule)
    assert FAMILY.capability("frames")(instance, schedule) is not None
    load(FAMILY.plot)(instance, schedule, "title").savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_the_closed_form_of_no_bytes():
    """The reduce-scatter half of nothing on 8 GPUs: on one ring 1 + 2 + 4 hops; a ring each costs two changes."""
    given = {"algorithm": "recursive_doubling", "gpus": 8, "ports": 1, "message_bytes": 0, "half": "reduce_scatter"}
    for delay, expected in (("1e-3", 3 * 5e-7 + 7 * 5e-7), ("0", 3 * 5e-7 + 3 * 5e-7)):
        instance = made(**given, reconfiguration_delay=delay)
        assert closed_form.applies(instance)
        outcome = closed_form.solve(instance, RunOptions(method={}))
        assert check_schedule(instance, outcome.solution).value == pytest.approx(expected)


def test_heatmaps_of_crowded_steps_have_no_bvn():
    instance = made(algorithm="binary_broadcast", gpus=7, ports=1, message_bytes=1e6)
    rated = heatmaps.rates(instance, candidates(instance))
    found = heatmaps.grid(rated, np.array([1e6]), np.array([1e-5]), [0])
    assert rated.own.tolist() == [-1, -1]
    assert np.isinf(found.bvn).all()
    assert found.best[0, 0] == pytest.approx(synth.solve(instance, method="candidates").value)
    with pytest.raises(ValueError, match="not stated or 0"):
        heatmaps.message_bytes(made(algorithm="ring", gpus=4, ports=1, message_bytes=0))


def test_more_than_63_different_patterns_have_relabellings():
    """Patterns were once told apart by the bits of one 64-bit number."""
    blocks = [misocp_blocks.Block(((u, v),), 1.0) for u in range(9) for v in range(9) if u != v]
    found = misocp_blocks.relabellings(blocks, 9)
    assert [one.image for one in found] == [tuple(range(9))]


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_layered_routes_to_several_destinations_are_simple(seed):
    """A route of a merged flow once came by its own destination and back; its load is that of the route program."""
    random = np.random.default_rng(seed)
    for _ in range(12):
        gpus = int(random.integers(3, 7))
        every = np.array([(u, v) for u in range(gpus) for v in range(gpus) if u != v])
        pairs = every[np.sort(random.permutation(len(every))[: random.integers(1, len(every) + 1)])]
        counts = sum(np.eye(gpus, dtype=np.int64)[random.permutation(gpus)] for _ in range(3))
        np.fill_diagonal(counts, 0)
        src, dst = np.nonzero(counts)
        links = np.stack([src, dst, counts[src, dst]], axis=1)
        distance = _distances(links.tobytes(), gpus)
        least = int(distance[pairs[:, 0], pairs[:, 1]].max())
        for limit in range(least, gpus):
            found, share = layered_flow.solve(pairs, links, distance, limit, np.arange(len(links)), links[:, 2])
            load = np.bincount(found.link, np.repeat(share, np.diff(found.start)), len(links)) / links[:, 2]
            for pair, begin, end in zip(found.pair, found.start[:-1], found.start[1:], strict=True):
                stops = [links[found.link[begin], 0], *links[found.link[begin:end], 1]]
                assert len(set(stops)) == len(stops) <= limit + 1
                assert (stops[0], stops[-1]) == tuple(pairs[pair])
            listed = path_flow.list_routes(pairs, links, distance, limit)
            assert listed is not None
            shares = path_flow.solve(listed, np.ones(len(pairs)), np.arange(len(links)), links[:, 2])
            least_load = np.bincount(listed.link, np.repeat(shares, np.diff(listed.start)), len(links)) / links[:, 2]
            assert load.max() == pytest.approx(least_load.max(), rel=1e-7)


def test_misocp_hands_over_the_counting_bound_where_that_binds():
    """Steps that are their own best: each on its direct topology costs what counting says."""
    instance = instance_of(1, [{"bytes": 1e6, "shift": 1}, {"bytes": 1e6, "shift": 2}], reconfiguration_delay=0.0)
    options = RunOptions(time_limit_s=60, solver="highs", method=SWITCHES)
    outcome = misocp.solve(instance, options)
    assert outcome.certificate is not None
    assert outcome.bound == pytest.approx(22e-6, rel=1e-9)
    assert load(FAMILY.check_bound)(instance, outcome.bound, outcome.certificate) == []
    assert load(FAMILY.check_bound)(instance, outcome.bound * (1 + 1e-9), outcome.certificate) != []
    assert "highs" not in str(outcome.bound_proof)
    dear = instance_of(1, [{"bytes": 1e6, "shift": 1}, {"bytes": 1e6, "shift": 2}], reconfiguration_delay=1.0)
    solved = misocp.solve(dear, options)
    assert solved.certificate is None
    assert "highs" in str(solved.bound_proof)


@pytest.mark.parametrize("name", sorted(FAMILY.methods))
def test_a_bound_without_a_solver_has_a_certificate(name):
    method = FAMILY.method(name)
    instance = made(algorithm="recursive_doubling", gpus=4, ports=1, message_bytes=1e6)
    switches = SWITCHES if name == "misocp" else {}
    try:
        outcome = method.load()(instance, RunOptions(solver=(*solvers_for(method.needs), None)[0], method=switches))
    except UnsupportedError:
        return
    assert outcome.bound is None or outcome.certificate is not None or name == "misocp"
