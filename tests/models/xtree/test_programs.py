"""The programs against brute force, against each other, and against the horizons the issue names."""

from __future__ import annotations

import numpy as np
import pytest
from hurried import hurry_cpsat
from models.xtree import brute_force
from models.xtree.cases import make

import synth
from synth.api import check
from synth.method import load
from synth.options import RunOptions
from synth.solvers.catalogue import known_solvers, solvers_for
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.certificates import check_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.programs import cpsat
from synth_models.xtree.programs.ilp import method as ilp
from synth_models.xtree.programs.time_expansion import all_generators

PROGRAMS = [("ilp", "highs"), ("ilp", "scip"), ("ilp", "gurobi"), ("cpsat", "cpsat")]
DECIDE = {"ilp": ilp.decide, "cpsat": cpsat.decide}
BARE = {"warm_start": "off", "relaxation": "off"}


def run_options(method: str, solver: str | None = None, **changed: object) -> RunOptions:
    solvers = solvers_for(FAMILY.method(method).needs)
    parameters = {parameter.name: parameter.default for parameter in FAMILY.method(method).parameters}
    return RunOptions(900.0, solver=solver or solvers[0], method=parameters | changed)


def by_the_program_alone(instance, method: str, horizon: int, solver: str | None = None) -> str:
    """What the program says of a horizon, without the bounds and the relaxation that go before it."""
    return DECIDE[method](instance, run_options(method, solver), horizon).answer


def needs(solver: str) -> None:
    if not known_solvers()[solver].installed:
        pytest.skip(f"{solver} is not installed")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("method", "solver"), PROGRAMS)
def test_equimesh_2x3_takes_five_timesteps_and_four_are_infeasible(method, solver):
    """Published: 2 x 3 with C = 4 takes 5 steps. Each node misses 5 * 4 = 20 chunks and has 4 in-links: 5 steps."""
    needs(solver)
    instance = make(network="equimesh", rows=2, cols=3, chunks=4)
    best = synth.solve(instance, method, solver=solver, options=BARE)
    assert (best["termination"], best.value, best.bound) == ("optimal", 5, 5)
    assert "incumbent" not in best["message"]  # the solver's own schedule, not a reference's
    assert check(best, instance).ok
    refuted = synth.solve(instance, method, solver=solver, options={"horizon": "4"})
    assert refuted["termination"] == "infeasible"
    assert refuted.value is None
    assert refuted.bound == 5
    assert by_the_program_alone(instance, method, 4, solver) == "infeasible"


SMALL = [
    dict(network="line", nodes=3),
    dict(network="ring", nodes=4),
    dict(network="ring", nodes=4, bidirectional="off"),
    dict(network="mesh", rows=2, cols=2),
    dict(network="kautz", nodes=4, degree=2),
    dict(network="line", nodes=2, chunks=2),
    dict(network="line", nodes=3, chunks=2),
    dict(network="equimesh", rows=2, cols=2),
]


@pytest.mark.parametrize(("method", "solver"), PROGRAMS[:2] + PROGRAMS[3:])
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
@pytest.mark.parametrize("parameters", SMALL, ids=str)
def test_programs_agree_with_brute_force(parameters, collective, method, solver):
    needs(solver)
    instance = make(**parameters, collective=collective)
    expected = brute_force.minimum_timesteps(instance.topology, collective, instance.chunks)
    for options in (BARE, {}):
        record = synth.solve(instance, method, solver=solver, options=options)
        assert (record["termination"], record.value, record.bound) == ("optimal", expected, expected)
    assert lower_bound(instance)[0] <= expected
    if expected > 1:
        refuted = synth.solve(instance, "ilp", options={"horizon": str(expected - 1)})
        assert refuted["termination"] == "infeasible"
    if expected > instance.topology.diameter:
        assert by_the_program_alone(instance, "ilp", expected - 1) == "infeasible"


JOINT = [
    dict(network="line", nodes=2),
    dict(network="line", nodes=3),
    dict(network="ring", nodes=3, bidirectional="off"),
    dict(network="ring", nodes=4),
    dict(network="line", nodes=2, chunks=2),
]


@pytest.mark.parametrize("parameters", JOINT, ids=str)
def test_joint_allreduce_against_brute_force(parameters):
    """The brute force searches all schedules, the program only rooted ones: it may need more, and says so."""
    instance = make(**parameters, collective="allreduce")
    expected = brute_force.minimum_timesteps(instance.topology, "allreduce", instance.chunks)
    for method in ("ilp", "cpsat"):
        record = synth.solve(instance, method, options={"warm_start": "off"})
        assert record.value is not None
        assert record.bound <= expected <= record.value
        assert check(record, instance).ok
        if record["termination"] == "optimal":
            assert record.value == expected


def test_joint_allreduce_overlaps_what_two_phases_cannot():
    """A row of 3 with C = 2: 6 chunks enter node 0 over one link, none with node 2's contribution before timestep 2: at
    least 7 timesteps. One half alone needs (3 - 1) * 2 / 1 = 4, so two halves one after the other take 8."""
    instance = make(network="line", nodes=3, chunks=2, collective="allreduce")
    record = synth.solve(instance, "cpsat", options={"warm_start": "off"})
    assert (record["termination"], record.value, record.bound) == ("optimal", 7, 7)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (dict(rows=3, cols=3, chunks=2), 4),
        (dict(rows=4, cols=4, chunks=1), 5),
        (dict(rows=5, cols=5, chunks=1), 7),
        pytest.param(dict(rows=5, cols=5, chunks=2), 12, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_open_questions_are_settled_by_the_program_alone(parameters, expected):
    """Where the receive bound is 4, 4, 6, 12: a schedule at the bound, or infeasible there and feasible one later."""
    instance = make(network="equimesh", **parameters)
    record = synth.solve(instance, "ilp", options=BARE, time_limit=300)
    assert (record["termination"], record.value, record.bound) == ("optimal", expected, expected)
    if expected > instance.topology.diameter:
        assert by_the_program_alone(instance, "ilp", expected - 1) == "infeasible"


@pytest.mark.slow
def test_equimesh_5x11_with_one_chunk_takes_14_timesteps():
    record = synth.solve(make(network="equimesh", rows=5, cols=11), "ilp", time_limit=300)
    assert (record["termination"], record.value, record.bound) == ("optimal", 14, 14)


@pytest.mark.parametrize("switch", ["break_chunks", "break_rotations", "relaxation"])
def test_switches_do_not_change_the_answer(switch):
    """3 x 3 with C = 2 needs 4 timesteps; 2 x 2 with C = 2 needs ceil(3 * 2 / 4) = 2."""
    for rows, expected in ((2, 2), (3, 4)):
        instance = make(network="equimesh", rows=rows, cols=rows, chunks=2)
        record = synth.solve(instance, "ilp", options={"warm_start": "off", switch: "off"})
        assert (record["termination"], record.value) == ("optimal", expected)


def test_folded_search_finds_symmetric_schedules_and_claims_nothing_else():
    """A torus 4 x 4 meets its bound of ceil(15 / 4) = 4 with a schedule that translations map onto itself."""
    torus = make(network="torus", rows=4, cols=4)
    record = synth.solve(torus, "ilp", options=BARE | {"fold": "on"})
    assert (record["termination"], record.value) == ("optimal", 4)
    assert check(record, torus).ok


@pytest.mark.parametrize("method", ["ilp", "cpsat"])
def test_a_class_without_schedules_is_no_time_limit_and_no_proof(method, monkeypatch):
    """On a square of 4 nodes no schedule is invariant under all reflections: the one that keeps two opposite corners
    brings a corner's chunk to the other over both sides at once. So nothing is found in any horizon, which excludes
    no other schedule: 2 timesteps suffice."""
    monkeypatch.setattr("synth_models.xtree.programs.fewest_timesteps.free_generators", all_generators)
    square = make(network="mesh", rows=2, cols=2)
    for horizon in (2, 3):
        found = synth.solve(square, method, options={"fold": "on", "horizon": str(horizon)})
        assert (found["termination"], found.value, found.bound) == ("finished", None, 2)
        words = f"no schedule of {horizon} timesteps is invariant under the network's symmetries"
        assert found["message"] == f"{words}; others are not excluded"
    assert synth.solve(square, method, options={"horizon": "2"}).value == 2


@pytest.mark.parametrize("method", ["ilp", "cpsat"])
def test_rooted_infeasibility_with_transfers_to_spare_proves_nothing(method):
    """EquiMesh 2 x 2, allreduce: 2 timesteps offer 2 * 16 slots for 2 * 3 * 4 = 24 transfers, so schedules that are not
    rooted are not excluded."""
    instance = make(network="equimesh", rows=2, cols=2, collective="allreduce")
    found = synth.solve(instance, method, options={"horizon": "2"})
    assert (found["termination"], found.value, found.bound) == ("finished", None, 2)
    assert "no rooted schedule has 2 timesteps" in found["message"]
    assert "others are not excluded" in found["message"]


@pytest.mark.parametrize("method", [pytest.param("ilp", marks=pytest.mark.slow), "cpsat"])
def test_rooted_infeasibility_without_a_transfer_to_spare_is_a_proof(method):
    """Kautz with 6 nodes and 12 links: 5 timesteps offer 60 slots, exactly the 2 * 5 * 6 transfers that are needed."""
    instance = make(network="kautz", nodes=6, degree=2, collective="allreduce")
    found = synth.solve(instance, method, options={"horizon": "5"})
    assert (found["termination"], found.value, found.bound) == ("infeasible", None, 6)
    assert "for all schedules" in found["bound_proof"]


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("method", ["ilp", "cpsat"])
def test_below_the_family_own_bound_is_infeasible_with_its_certificate(method, collective):
    """Every horizon below the counting bound; on these three networks a cut, late arrivals and the diameter bind."""
    for parameters in (
        dict(network="ring", nodes=6),
        dict(network="equimesh", rows=4, cols=4),
        dict(network="line", nodes=5),
    ):
        instance = make(**parameters, collective=collective)
        bound, proof, certificate = lower_bound(instance)
        for horizon in range(1, bound):
            outcome = FAMILY.method(method).load()(instance, run_options(method, horizon=horizon))
            assert (outcome.termination, outcome.solution, outcome.bound) == ("infeasible", None, bound)
            assert (outcome.bound_proof, outcome.certificate) == (proof, certificate)
            assert check_bound(instance, outcome.bound, outcome.certificate) == []


def test_a_horizon_that_the_relaxation_refutes_has_its_certificate():
    """Kautz network of 9 nodes and degree 2: counting proves 4, the relaxation refutes 4."""
    instance = make(network="kautz", nodes=9, degree=2)
    outcome = FAMILY.method("ilp").load()(instance, run_options("ilp", horizon=4))
    assert (outcome.termination, outcome.bound) == ("infeasible", 5)
    assert check_bound(instance, 5, outcome.certificate) == []
    found = FAMILY.method("ilp").load()(instance, run_options("ilp"))
    assert (found.termination, found.bound) == ("optimal", 5)
    assert check_bound(instance, 5, found.certificate) == []
    alone = FAMILY.method("ilp").load()(instance, run_options("ilp", relaxation=False))
    assert (alone.termination, alone.bound, alone.certificate) == ("optimal", 5, None)
    assert alone.bound_proof == "HiGHS proves 4 timesteps infeasible"


@pytest.mark.parametrize("method", ["ilp", "cpsat"])
def test_the_counting_bound_certificate_stays_when_it_binds(method):
    for collective in ("allgather", "reduce_scatter", "allreduce"):
        instance = make(network="ring", nodes=4, collective=collective)
        outcome = FAMILY.method(method).load()(instance, run_options(method))
        assert outcome.termination == "optimal"
        assert check_bound(instance, outcome.bound, outcome.certificate) == []


def test_a_horizon_below_the_diameter_is_refuted_without_a_solver():
    """A line of 4 has diameter 3."""
    record = synth.solve(make(network="line", nodes=4), "ilp", options={"horizon": "2"})
    assert (record["termination"], record.bound) == ("infeasible", 3)


def test_no_time_is_not_infeasible(monkeypatch):
    hurry_cpsat(monkeypatch)
    record = synth.solve(make(network="equimesh", rows=4, cols=4, chunks=2), "cpsat", options={"horizon": "8"})
    assert record["termination"] == "time_limit"
    assert record.value is None
    assert record.bound == 8  # ceil(30 / 4), by counting


@pytest.mark.long
def test_gurobi_over_its_licence_is_a_size_limit_that_names_the_way_out():
    needs("gurobi")
    record = synth.solve(make(network="equimesh", rows=4, cols=4, chunks=4), "ilp", solver="gurobi", options=BARE)
    assert record["termination"] == "size_limit"
    assert "HiGHS" in record["message"] or "highs" in record["message"]


def test_relabelling_nodes_keeps_the_optimum_and_another_link_never_hurts():
    rng = np.random.default_rng(7)
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (3, 1)]
    base = _optimum(5, links)
    for _ in range(3):
        order = rng.permutation(5)
        assert _optimum(5, [(int(order[u]), int(order[v])) for u, v in links]) == base
    for extra in ((0, 3), (2, 0), (4, 2)):
        assert _optimum(5, [*links, extra]) <= base


def _optimum(nodes: int, links: list[tuple[int, int]]) -> float:
    raw = {
        "family": "xtree",
        "name": "t",
        "source": "test",
        "network": {"kind": "links", "nodes": nodes, "links": [{"src": u, "dst": v} for u, v in links]},
        "chunks": 1,
    }
    instance = load(FAMILY.instance).model_validate(raw)
    record = synth.solve(instance, "ilp", options=BARE)
    assert record["termination"] == "optimal"
    assert check_schedule(instance, load(FAMILY.unpack)(instance, record.packed)).ok
    return record.value
