"""SCCL's question: against its published table, and every claim damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.fabric.small_machines import machine

import synth
from synth.family import get_family
from synth.options import RunOptions
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule, pack, unpack
from synth_peers.sccl.check.counted_steps import fault_of
from synth_peers.sccl.programs.method import solve
from synth_peers.sccl.programs.one_question import Decider
from synth_peers.sccl.programs.plan import schedule_of, synchronous_seconds

ROOT = Path(__file__).parents[3]
TABLE = ROOT.parent / "shared/data/peers/sccl-dgx1.json"
COLLECTIVES = (
    "allgather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "alltoall", "allreduce",
)  # fmt: skip
DGX1 = {"kind": "machine", "name": "dgx1", "boxes": 1}


def dgx1(collective: str, size: int = 8 * 48 * 1000) -> FabricInstance:
    return FabricInstance.model_validate(
        {"name": "t", "source": "test", "network": DGX1, "collective": collective, "bytes": size}
    )


def options(instance: FabricInstance, solver: str = "cpsat", limit: float = 60.0, **asked: Any) -> RunOptions:
    method = {parameter.name: parameter.default for parameter in get_family("fabric").method("steps").parameters}
    return RunOptions(time_limit_s=limit, solver=solver, method=method | asked)


@pytest.mark.long
def test_dgx1_allgather_of_sccls_documentation() -> None:
    """(2,2,1) and (2,3,2) exist, (2,4,3) does not, (3,7,6) does, and 7 chunks in 7 rounds cannot enter a rank:
    7 x 7 = 49 > 7 x 6 links. SYNTHESIS.md prints unsat for (2,4,3) as Z3's word; here prices in time certify it."""
    instance = dgx1("allgather")
    decider = Decider(instance, options(instance))
    for question in ((2, 2, 1), (2, 3, 2), (3, 7, 6)):
        decided = decider.decide(question)
        assert decided.plan is not None
        assert decided.plan.question == question
        assert check_schedule(instance, schedule_of(instance, decider.arcs, decided.plan, {})).ok
    for question in ((2, 4, 3), (3, 7, 7), (7, 7, 7), (2, 2, 2), (2, 3, 3)):
        decided = decider.decide(question)
        assert decided.certificate is not None
        assert fault_of(instance, question, decided.certificate) is None


def published() -> list[tuple[str, int, int, int]]:
    """Rows (collective, steps, rounds, chunks) of the table; those without a chunk number or unsat are left out."""
    if not TABLE.is_file():
        return []
    data = json.loads(TABLE.read_text())
    found = {(row["coll"].lower(), row["S"], row["R"], row["C"]) for row in data["published"]
             if "C" in row and row.get("result") != "unsat"}  # fmt: skip
    named = {"reducescatter": "reduce_scatter"}
    for name, rows in data["published_table_unconfirmed"].items():
        for collective in name.lower().split("_"):
            found |= {(named.get(collective, collective), s, r, c) for c, s, r in rows}
    return sorted(found)


@pytest.mark.slow
@pytest.mark.skipif(not TABLE.is_file(), reason="needs ../shared/data/peers")
@pytest.mark.parametrize("row", published() or [None], ids=str)
def test_every_published_row_has_a_plan(row: tuple[str, int, int, int]) -> None:
    collective, *question = row
    instance = dgx1(collective)
    steps, rounds, chunks = question
    outcome = solve(instance, options(instance, steps=steps, rounds=rounds, chunks=chunks))
    assert outcome.termination == "finished", outcome.message
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    assert [verdict.facts[key] for key in ("steps", "rounds", "chunks")] == question


def test_the_table_counts_alltoalls_chunks_for_all_ranks() -> None:
    """(24, 8, 8) is 3 chunks a pair: a chunk a pair costs 8/3 rounds (prices), so 24 a pair would take 64 of them."""
    instance = dgx1("alltoall")
    decider = Decider(instance, options(instance))
    assert decider.decide((2, 8, 24)).plan is not None
    assert decider.decide((8, 8, 24)).plan is not None
    refuted = decider.decide((8, 8, 32))
    assert refuted.certificate is not None
    assert fault_of(instance, (8, 8, 32), refuted.certificate) is None


def test_broadcast_carries_a_chunk_more_than_published() -> None:
    """Published are 6 chunks in 3 steps and rounds; 7 fit, and prices in time certify that 8 do not."""
    instance = dgx1("broadcast")
    outcome = solve(instance, options(instance, steps=3, rounds=3))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok
    assert verdict.facts["chunks"] == 7
    assert verdict.facts["refuted"] == ["3 steps, 3 rounds, 8 chunks: timed"]
    assert not verdict.unverified


@pytest.mark.long
def test_allreduce_in_two_steps() -> None:
    """Sums in place take 2 steps on a DGX-1, the composition 4; two chunks go at once."""
    instance = dgx1("allreduce")
    outcome = solve(instance, options(instance, steps=2, rounds=2, chunks=2))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok
    assert verdict.facts["steps"] == 2


def test_allreduce_on_a_ring_of_five_ends() -> None:
    """msccl-tools asks for 2, 3, … steps and never stops: with additions alone, 20 steps are as good as any number
    (each that is of use lets one of 5 sums grow, from 1 contribution to 5 at most), and 20 are impossible. With copies
    of complete sums 4 steps do, 3 do not."""
    instance = synth.read(ROOT / "instances/fabric/ring-5-allreduce-5MiB.json")
    assert isinstance(instance, FabricInstance)
    added = solve(instance, options(instance, steps=20, rounds=20, chunks=1, copies=False))
    assert added.termination == "infeasible"
    assert added.message
    assert "any number of steps" in added.message
    three = solve(instance, options(instance, steps=3, rounds=12, chunks=1))
    assert three.termination == "infeasible"
    four = solve(instance, options(instance, steps=4, rounds=4))
    verdict = check_schedule(instance, four.solution)
    assert verdict.ok
    assert verdict.facts["chunks"] == 5
    assert verdict.facts["refuted"] == ["4 steps, 4 rounds, 6 chunks: parts"]


def test_ring_of_four_needs_no_copies() -> None:
    """What msccl-tools does find: 2 steps of additions on a ring of four."""
    instance = machine(4, [(u, (u + d) % 4, 1.0) for u in range(4) for d in (1, 3)], collective="allreduce", bytes=64)
    outcome = solve(instance, options(instance, steps=2, rounds=2, chunks=1, copies=False))
    assert check_schedule(instance, outcome.solution).facts["steps"] == 2


SLOW_FRONTS = [pytest.param(name, marks=pytest.mark.slow) for name in ("allgather", "reduce_scatter")]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", [*SLOW_FRONTS, "alltoall", "gather", "scatter"])
def test_front_of_a_dgx1(collective: str) -> None:
    """The front ends at the least rounds a chunk, every corner is replayed, and every refutation certified or said."""
    instance = dgx1(collective)
    outcome = solve(instance, options(instance, pareto=True))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    ratio = {"allgather": "7/6", "reduce_scatter": "7/6", "alltoall": "1/3", "gather": "7/6", "scatter": "7/6"}
    assert outcome.message
    assert f"no number of steps has fewer than {ratio[collective]}" in outcome.message
    assert outcome.termination == "finished"
    assert len(verdict.facts["refuted"]) + len(verdict.unverified) >= 3


@pytest.mark.parametrize("asked", [{"chunks": 2}, {"steps": 3, "chunks": 3}, {"rounds": 4, "chunks": 3}])
def test_what_is_left_out_is_searched(asked: dict[str, int]) -> None:
    instance = dgx1("allgather")
    outcome = solve(instance, options(instance, **asked))
    facts = check_schedule(instance, outcome.solution).facts
    expected = {2: (2, 3), 3: (3, 4)}[asked["chunks"]]
    assert (facts["steps"], facts["rounds"]) == expected


@settings(max_examples=some(25), deadline=None, derandomize=True)
@given(st.data())
def test_schedules_are_never_slower_than_their_steps(data: st.DataObject) -> None:
    pairs = list(permutations(range(4), 2))
    links = [(u, v, data.draw(st.sampled_from([1, 2, 3]))) for u, v in pairs if data.draw(st.booleans())]
    collective = data.draw(st.sampled_from([name for name in COLLECTIVES if name != "allreduce"]))
    rows = [(u, v, 10.0 * c, data.draw(st.sampled_from([0.0, 0.5]))) for u, v, c in links]
    try:
        instance = machine(4, rows, collective=collective, bytes=4 * data.draw(st.integers(3, 30)))
    except ValueError:
        return
    decider = Decider(instance, options(instance))
    decided = decider.decide((decider.fewest_steps, 3 + decider.fewest_steps, 2 * decider.unit))
    if decided.plan is not None:
        schedule = schedule_of(instance, decider.arcs, decided.plan, {})
        verdict = check_schedule(instance, schedule)
        assert verdict.ok
        assert verdict.value is not None
        assert verdict.value <= float(synchronous_seconds(instance, decider.arcs, decided.plan)) * (1 + 1e-12)


def test_parallel_links_add_up() -> None:
    """Two links of 1 and one of 2 from rank to rank carry 4 chunks a round; the plan is dealt out to them."""
    rows = [(0, 1, 10.0), (0, 1, 10.0), (0, 1, 20.0), (1, 0, 10.0)]
    instance = machine(2, rows, collective="broadcast", root=0, bytes=40)
    outcome = solve(instance, options(instance, steps=1, rounds=1))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok
    assert verdict.facts["chunks"] == 4


@pytest.fixture(scope="module")
def planned() -> tuple[FabricInstance, Schedule]:
    """The front of an allgather on a ring of five that is faster one way: (2, 2, 1), (3, 3, 2), (4, 4, 3)."""
    links = [(u, (u + d) % 5, 20.0 if d == 1 else 10.0) for u in range(5) for d in (1, 4)]
    instance = machine(5, links, collective="allgather", bytes=300)
    return instance, solve(instance, options(instance, pareto=True, extra=2)).solution


def damaged(schedule: Schedule, **changes: Any) -> Schedule:
    return replace(schedule, plan=dict(schedule.plan) | changes)


def test_stored_plans_come_back(planned: tuple[FabricInstance, Schedule]) -> None:
    instance, schedule = planned
    verdict = check_schedule(instance, schedule)
    assert len(verdict.facts["front"]) == 3
    assert any("timed" in text for text in verdict.facts["refuted"])
    assert not verdict.unverified
    assert any("lengths" in text for text in verdict.facts["refuted"])
    assert check_schedule(instance, unpack(instance, pack(schedule))).facts == verdict.facts


def test_every_damage_of_a_plan_is_caught(planned: tuple[FabricInstance, Schedule]) -> None:
    instance, schedule = planned
    plan = {key: np.asarray(value) for key, value in schedule.plan.items() if key not in ("kind", "chunks")}
    late = np.flatnonzero(plan["step"] == 1)[0]
    tables = {
        "a send fewer": {key: plan[key][1:] for key in ("step", "piece", "link")},
        "sent too early": {"step": np.where(np.arange(len(plan["step"])) == late, 0, plan["step"])},
        "all at once": {"step": np.zeros_like(plan["step"])},
        "more than links carry": {key: np.repeat(plan[key], 2) for key in ("step", "piece", "link")},
        "no rounds": {"rounds": plan["rounds"] * 0},
        "more chunks": {"chunks": int(schedule.plan["chunks"]) + 1},
        "another link": {"link": (plan["link"] + 1) % instance.machine.links},
        "another piece": {"piece": np.roll(plan["piece"], 1)},
        "adds without sums": {"adds": np.ones(len(plan["step"]), dtype=np.int8)},
        "a link that is none": {"link": plan["link"] + instance.machine.links},
        "a negative step": {"step": plan["step"] - 1},
        "sends of unlike number": {"piece": plan["piece"][1:]},
        "no steps": {"rounds": plan["rounds"][:0]},
        "a front of more chunks": {"front_chunks": plan["front_chunks"] + 1},
        "a front of fewer sends": {"front_sends": plan["front_sends"] - 1},
        "a front without rounds": {"front_rounds": plan["front_rounds"][1:]},
        "refuted what exists": {"refuted": np.array([[4, 4, 3, 3]]), "refuted_part": plan["refuted_part"][:1]},
        "refuted by nothing": {"refuted_part": plan["refuted_part"] * 0},
        "refuted by no argument": {"refuted": plan["refuted"] * [1, 1, 1, 9]},
        "refuted without prices": {"refuted_price": plan["refuted_price"][:-1]},
        "refuted for no price": {"refuted_price": plan["refuted_price"] * 0},
        "refuted by ways of another": {"refuted_of": plan["refuted_of"] * 0 + 10**6},
        "text": {"step": np.array(["a"] * len(plan["step"]))},
        "fractions": {"step": plan["step"] + 0.5},
        "a huge number of rounds": {"rounds": plan["rounds"] + 2**40},
        "of no kind": {"kind": "strides"},
    }
    assert check_schedule(instance, schedule).ok
    for name, changes in tables.items():
        assert not check_schedule(instance, damaged(schedule, **changes)).ok, name


def test_a_refutation_alone_is_checked_again() -> None:
    """A question without an answer, refuted by counting: the record's certificate holds, and for 0 s only."""
    instance = dgx1("broadcast")
    outcome = solve(instance, options(instance, steps=2, rounds=2, chunks=3))
    assert outcome.termination == "infeasible"
    assert outcome.certificate is not None
    assert outcome.bound == 0
    certificate = dict(outcome.certificate)
    assert check_bound(instance, 0.0, certificate) == []
    assert check_bound(instance, 1e-9, certificate)
    assert check_bound(instance, 0.0, certificate | {"chunks": 2})
    assert check_bound(instance, 0.0, certificate | {"by": "hops"})
    assert check_bound(instance, 0.0, certificate | {"by": "faith"})
    assert check_bound(instance, 0.0, certificate | {"steps": 0})


def test_sums_are_checked_as_of_the_steps_beginning() -> None:
    """0 adds to 1 and 1 to 2 in one step: 2 gets 1's own contribution alone; a copy of what is not complete is none."""
    instance = machine(3, [(0, 1, 1.0), (1, 2, 1.0)], collective="reduce", root=2, bytes=3)
    good = solve(instance, options(instance, steps=2, rounds=2, chunks=1)).solution
    assert check_schedule(instance, good).ok
    for changes in ({"step": np.zeros(2, dtype=np.int64)}, {"adds": np.zeros(2, dtype=np.int8)}):
        faults = check_schedule(instance, damaged(good, **changes)).faults
        assert faults
        assert all("plan" in fault for fault in faults)


@pytest.mark.parametrize(
    ("own", "word"),
    [
        ({"switches": [2], "links": [(0, 2, 1.0), (2, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)]}, "switches"),
        ({"switches": [], "links": [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 3.3333), (2, 0, 1.0000007)]}, "measure"),
    ],
)
def test_machines_that_steps_do_not_know(own: dict[str, Any], word: str) -> None:
    from synth.errors import UnsupportedError

    instance = machine(3, own["links"], own["switches"], collective="allgather", bytes=6)
    with pytest.raises(UnsupportedError, match=word):
        solve(instance, options(instance))
