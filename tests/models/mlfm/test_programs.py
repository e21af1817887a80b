"""The programs: hand-solved jobs, exhaustive search, all solvers alike, the decomposition against one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some, some_of
from hurried import hurry_cpsat
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from models.mlfm.slow_replay import least_phases, replay, routes

import synth
from synth.family import defaults_for
from synth.instance import parse
from synth.method import load
from synth.records.record import Record
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.certificates import check_bound
from synth_models.mlfm.instance import MLFMInstance
from synth_papers.mlfm.problems import single_failures

SHIPPED = [path for path in sorted(Path("instances/mlfm").glob("*.json")) if not path.stem.startswith("d18")]
LONG = ("d4-n4l3m4-detour", "d4-n4l5m4-spine", "d4-pairs-60", "d4-pairs-60-failed")  # `cpsat` takes 5 to 20 s


def job(d: int, **changes: Any) -> MLFMInstance:
    made = parse({"family": "mlfm", "name": "x", "source": "a test", "d": d} | changes, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


def block(d: int, n: int, columns: int, m: int, **changes: Any) -> MLFMInstance:
    return job(d, block={"layers": n, "columns": columns, "servers": m}, **changes)


def optimal(instance: MLFMInstance, method: str = "cpsat", **options: Any) -> float:
    """The proven optimum, with all that must hold of its record."""
    record = synth.solve(instance, method, **options)
    assert record.ok, record["verified"]["faults"]
    assert record["termination"] == "optimal", record["message"]
    assert record.value == record.bound
    assert record["verified"]["facts"]["worst_link_load"] <= 1
    assert record.value is not None
    return record.value


@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_two_full_leaves_by_hand(method: str) -> None:
    """Leaves 0.0 and 0.1 of MLFM(3), three servers each: N = 6, but 3 * 3 = 9 flows go up from 0.0 to spine 0-1,
    which is the only minimal route: 9 phases. With detours over leaves of columns 2 and 3 the 3 up-links share them:
    6."""
    assert optimal(block(3, 1, 2, 3), method) == 9
    assert optimal(block(3, 1, 2, 3, routes="detour"), method) == 6


@pytest.mark.long(after=1)
@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_one_cable_less_by_hand(method: str) -> None:
    """(2, 4, 3) without the cable 0.0 to 0-1: leaf 0.0 sends 3 * 21 = 63 flows to other leaves over two up-links, at
    least 31.5 phases, so 32; N is 24."""
    failed = {"links": [{"leaf": [0, 0], "spine": [0, 1]}]}
    assert optimal(block(3, 2, 4, 3, failed=failed, routes="detour"), method) == 32


@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_same_column_flows_take_the_spare_spines(method: str) -> None:
    """(3, 3, 3) on d = 3, where the printed rule fails. Up-link 0.0 to 0-1 carries 3 * 9 = 27 flows to column 1,
    which is N = 27; the 3 * 6 = 18 flows to the column's other layers fit on the spine to the unused column 3: 27
    phases. On d = 2 there is no such spine for (2, 3, 2)'s m = 2 = l-1 either, but its links carry 2 * 4 + 2 = 10 <
    12 = N."""
    assert optimal(block(3, 3, 3, 3), method) == 27
    assert optimal(block(2, 2, 3, 2), method) == 12


@pytest.mark.parametrize(("method", "decompose"), [("cpsat", "off"), ("ilp", "off"), ("cpsat", "on"), ("ilp", "on")])
def test_horizon_below_the_optimum_is_infeasible_and_at_it_feasible(method: str, decompose: str) -> None:
    instance = block(3, 1, 2, 3)
    options = {"decompose": decompose}
    below = synth.solve(instance, method, options=options | {"horizon": "8"})
    assert below["termination"] == "infeasible"
    assert below.value is None
    at = synth.solve(instance, method, options=options | {"horizon": "9"})
    assert (at.value, at.ok) == (9, True)
    above = synth.solve(instance, method, options=options | {"horizon": "11"})
    assert (above.value, above.ok) == (11, True)


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.parametrize("decompose", ["on", "off"])
def test_every_solver_agrees(solver: str, decompose: str) -> None:
    pytest.importorskip({"highs": "highspy", "scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    servers = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    instance = job(2, subset=servers, failed={"links": [{"leaf": [0, 0], "spine": [0, 2]}]}, routes="detour")
    assert optimal(instance, "ilp", solver=solver, options={"decompose": decompose}) == optimal(instance, "cpsat") == 6


@pytest.mark.long
def test_the_pip_licence_of_gurobi_is_a_size_limit() -> None:
    pytest.importorskip("gurobipy")
    record = synth.solve(synth.read("instances/mlfm/d4-n4l5m4-spine.json"), "ilp", solver="gurobi")
    assert record["termination"] == "size_limit"


@st.composite
def tiny_jobs(draw: st.DrawFn) -> MLFMInstance:
    """Up to four servers of MLFM(2), up to two failed cables or a spine, either route rule."""
    everyone = [[i, j, k] for i in range(2) for j in range(3) for k in range(2)]
    servers = draw(st.lists(st.sampled_from(everyone), min_size=2, max_size=4, unique_by=tuple))
    cables = [{"leaf": [i, j], "spine": sorted((j, o))} for i in range(2) for j in range(3) for o in range(3) if o != j]
    links = draw(st.lists(st.sampled_from(cables), max_size=2, unique_by=str))
    spines = draw(st.lists(st.sampled_from([[0, 1], [0, 2], [1, 2]]), max_size=1))
    routes = draw(st.sampled_from(["minimal", "detour"]))
    return job(2, subset=servers, failed={"links": links, "spines": spines}, routes=routes)


def cut_off(instance: MLFMInstance) -> bool:
    """Whether some pair of servers has no route, by listing them all."""
    leaves = [tuple(server)[:2] for server in instance.servers.tolist()]
    return any(not routes(instance, start, end) for start in leaves for end in leaves)


@settings(max_examples=some(40), deadline=None)
@given(tiny_jobs())
def test_infeasible_is_what_has_a_pair_without_a_route(instance: MLFMInstance) -> None:
    record = synth.solve(instance, "bound")
    assert (record["termination"] == "infeasible") == cut_off(instance)
    assert (record["message"] is not None and "is cut off from server" in record["message"]) == cut_off(instance)


@settings(max_examples=some(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tiny_jobs())
def test_the_optimum_is_that_of_exhaustive_search(instance: MLFMInstance) -> None:
    assume(not cut_off(instance))
    record = synth.solve(instance, "cpsat")
    assert record.value == record.bound == least_phases(instance, 12)
    assert replay(instance, load(FAMILY.unpack)(instance, record.packed or {}))[0]


@settings(max_examples=some(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tiny_jobs())
def test_one_model_and_the_decomposition_agree(instance: MLFMInstance) -> None:
    whole, parts = (synth.solve(instance, "cpsat", options={"decompose": way}) for way in ("off", "on"))
    assert whole["termination"] == parts["termination"]
    assert whole.value == parts.value


def relabelled(instance: MLFMInstance, seed: int) -> MLFMInstance:
    """The same job with layers, columns, slots and ranks renamed at random."""
    random = np.random.default_rng(seed)
    d = instance.d
    layer, column, slot = (random.permutation(n).tolist() for n in (d, d + 1, d))
    servers = [[layer[i], column[j], slot[k]] for i, j, k in instance.servers.tolist()]
    failed = {
        "spines": [[column[a], column[b]] for a, b in instance.failed.spines],
        "links": [
            {"leaf": [layer[f.leaf[0]], column[f.leaf[1]]], "spine": [column[c] for c in f.spine]}
            for f in instance.failed.links
        ],
    }
    return job(d, subset=random.permutation(servers).tolist(), failed=failed, routes=instance.routes)


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_renaming_changes_nothing_and_repairs_never_hurt(seed: int) -> None:
    """Random jobs on MLFM(3) and MLFM(4): renamed, the optimum stays; with a part repaired, it does not grow."""
    random = np.random.default_rng(seed)
    d = 3 + seed % 2
    everyone = [[i, j, k] for i in range(d) for j in range(d + 1) for k in range(d)]
    servers = [everyone[x] for x in random.choice(len(everyone), int(random.integers(4, 25)), replace=False)]
    failed = {"spines": [[0, 1]], "links": [{"leaf": [0, 2], "spine": [2, 3]}]}
    broken = job(d, subset=servers, failed=failed, routes="detour")
    least = optimal(broken)
    assert optimal(relabelled(broken, seed)) == least
    assert optimal(job(d, subset=servers, failed={"spines": [[0, 1]]}, routes="detour")) <= least
    assert optimal(job(d, subset=servers, routes="detour")) <= optimal(job(d, subset=servers))


@pytest.mark.parametrize(
    "path",
    [
        *some_of(path for path in SHIPPED if path.stem not in LONG),
        *(pytest.param(path, marks=pytest.mark.slow) for path in SHIPPED if path.stem in LONG),
    ],
    ids=lambda path: path.stem,
)
def test_bound_optimum_reference_on_shipped_instances(path: Path) -> None:
    """bound <= optimum <= every reference, and the bound's certificate holds on its own."""
    instance = synth.read(path)
    assert isinstance(instance, MLFMInstance)
    bound = synth.solve(instance, "bound")
    assert bound.ok
    assert bound.bound is not None
    assert check_bound(instance, bound.bound, bound.packed or {}) == []
    assert check_bound(instance, bound.bound + 1, bound.packed or {}) != []
    least = optimal(instance)
    assert bound.bound <= least
    for method in ("closed_form", "shift", "pairwise", "greedy"):
        record = synth.solve(instance, method)
        assert record.ok
        assert (record.value is None) == (record["termination"] == "unsupported")
        assert record.value is None or record.value >= least


def test_ilp_reaches_the_optima_of_cpsat_on_some_shipped_instances() -> None:
    for name, phases in (("d3-n2l4m3-spine", 32), ("d4-fragment-20", 20), ("d4-n2l2m4", 32)):
        instance = synth.read(f"instances/mlfm/{name}.json")
        assert isinstance(instance, MLFMInstance)
        assert optimal(instance, "ilp") == phases


def test_min_congestion_by_hand() -> None:
    """Two leaves with three servers each, 9 flows on a link: in 6 phases some phase carries 2 of them; in 9 phases 1 is
    enough; in 5 phases 6 servers cannot send 6 transfers each."""
    instance = block(3, 1, 2, 3)
    six = synth.solve(instance, "min_congestion")
    assert six.ok
    assert (six["verified"]["facts"]["phases"], six["verified"]["facts"]["worst_link_load"]) == (6, 2)
    assert "worst link load 2 in 6 phases, proven smallest: links: 9 flows must use" in six["message"]
    nine = synth.solve(instance, "min_congestion", options={"phases": "9"})
    assert (nine.value, nine["verified"]["facts"]["worst_link_load"]) == (9, 1)
    five = synth.solve(instance, "min_congestion", options={"phases": "5"})
    assert five["termination"] == "infeasible"
    assert "5 phases are too few" in five["message"]


def test_min_congestion_with_a_failure() -> None:
    """(2, 4, 3) with a failed cable needs 32 phases without congestion, so 24 phases need load 2."""
    record = synth.solve(synth.read("instances/mlfm/d3-n2l4m3-link.json"), "min_congestion")
    assert record.ok
    assert (record["verified"]["facts"]["phases"], record["verified"]["facts"]["worst_link_load"]) == (24, 2)


def test_bound_names_what_binds() -> None:
    def words(instance: MLFMInstance) -> str:
        record: Record = synth.solve(instance, "bound")
        assert record.ok
        return f"{record.bound:g} {record['bound_proof']}"

    assert words(block(3, 2, 4, 3)) == "24 ranks: every server sends 24 transfers, one a phase"
    assert words(block(3, 1, 2, 3)) == "9 links: 9 flows must use up-link 0.0 to 0-1"
    cable = {"links": [{"leaf": [0, 0], "spine": [0, 1]}]}
    text = words(block(3, 2, 4, 3, failed=cable, routes="detour"))
    assert text.startswith(
        "32 links: weighted flow 63 over weight 2 of 2 links (up-link 0.0 to 0-2, up-link 0.0 to 0-3)"
    )


@pytest.mark.long
def test_a_run_out_of_time_says_so_and_hands_out_the_greedy_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry_cpsat(monkeypatch)
    record = synth.solve(synth.read("instances/mlfm/d4-n4l5m4-spine.json"), "cpsat", time_limit=None)
    assert record["termination"] == "time_limit"
    assert record.ok
    assert record.bound is not None
    assert record.value is not None
    assert record.value > record.bound
    assert "the schedule is the greedy's" in record["message"]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["link", "spine", "leaf"])
def test_every_single_failure_of_2_4_3(part: str) -> None:
    """As published: 24 cables at leaves of the job make it 32 phases, 12 others no more; spines 32; leaves 21."""
    counts: dict[float, int] = {}
    for kind, _, failed in single_failures():
        if kind == part:
            value = optimal(block(3, 2, 4, 3, failed=failed, routes="detour"))
            counts[value] = counts.get(value, 0) + 1
    assert counts == {"link": {32: 24, 24: 12}, "spine": {32: 6}, "leaf": {21: 8, 24: 4}}[part]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3, 4])
def test_every_block_beyond_the_condition_is_solved(d: int) -> None:
    """m > l-1: by minimal routes the phases are max(N, n * m * m) for l > 1, with detours N."""
    for n, c, m in np.ndindex(d, d + 1, d):
        if m + 1 > c:
            sizes = (d, n + 1, c + 1, m + 1)
            ranks = (n + 1) * (c + 1) * (m + 1)
            flows = (n + 1) * (m + 1) ** 2 if c else 0
            assert optimal(block(*sizes)) == max(ranks, flows)
            assert optimal(block(*sizes, routes="detour")) == ranks


def test_default_methods_fit_the_job() -> None:
    assert defaults_for(FAMILY, block(3, 2, 4, 3)) == ("bound", "closed_form", "shift", "cpsat")
    assert defaults_for(FAMILY, block(3, 2, 4, 3, failed={"spines": [[0, 1]]})) == ("bound", "shift", "cpsat")
    assert defaults_for(FAMILY, job(3, subset=[[0, 0, 0], [1, 1, 1]])) == ("bound", "shift", "cpsat")
    assert defaults_for(FAMILY, block(18, 18, 19, 18)) == ("bound", "closed_form")
