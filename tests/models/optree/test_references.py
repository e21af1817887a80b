"""Published counts, OpTree's plans and circuits, the stages program."""

from __future__ import annotations

import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.cases import limited, options, ring

import synth
from synth.errors import UnsupportedError
from synth_models.optree import FAMILY
from synth_models.optree.check.counts import count_steps
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.parts.stage_layout import longest_hops
from synth_models.optree.programs.stages import solve
from synth_models.optree.references.optree import fitted, schedule
from synth_models.optree.references.published_counts import best_depths, formula_steps
from synth_models.optree.solution import Circuits, StepCount


@pytest.mark.parametrize(
    ("nodes", "wavelengths", "method", "steps"),
    [
        (16, 2, "one_stage", 16),  # ceil(256/8) = 32 wavelengths, two at a time
        (16, 2, "formula", 12),  # 3 * 16^(3/2) / 16 = 3 * 64 / 16
        (1024, 64, "ring", 1023),
        (1024, 64, "neighbor_exchange", 512),
        (1024, 64, "wrht", 259),  # M = 129, t = 2: 1 + 129 * 128 / 128 + 129
        (1024, 64, "one_stage", 2048),  # 131072 / 64; printed as 128 in the paper
        (1024, 64, "formula", 70),
        (8, 1, "neighbor_exchange", 7),  # 1 + 3 * 2: two items over one wavelength take two steps
        (1024, 16, "wrht", 67),  # M = 33, t = 2: 1 + 33 + 33
    ],
)
def test_published_counts(nodes: int, wavelengths: int, method: str, steps: int) -> None:
    record = synth.solve(ring(nodes, wavelengths), method)
    assert record.ok
    assert record.value == steps


@pytest.mark.parametrize(("nodes", "wavelengths"), [(2, 1), (4, 1), (4, 2), (6, 2), (8, 1), (8, 3), (30, 2), (64, 64)])
@pytest.mark.parametrize("method", ["ring", "neighbor_exchange"])
def test_published_schedules_take_their_counts(nodes: int, wavelengths: int, method: str) -> None:
    record = synth.solve(ring(nodes, wavelengths), method, options={"circuits": "on"})
    assert record.ok, record["verified"]["faults"]
    assert isinstance(record.solution(), Circuits)
    assert record.value == count_steps(nodes, wavelengths, method, ()).steps


def test_a_ring_of_any_size_is_replayed() -> None:
    assert synth.solve(ring(7, 2), "ring", options={"circuits": "on"}).value == 6


def test_second_wrht_variant() -> None:
    """t * M^(t-1) instead of (t-1) * M^(t-1): 1 + 33 + 66 = 100, the paper's figure at w = 16."""
    assert synth.solve(ring(1024, 16), "wrht", options={"variant": "2"}).value == 100


@pytest.mark.parametrize(
    ("nodes", "steps", "depths"), [(512, 32, [5, 6, 7]), (1024, 70, [6, 7]), (2048, 155, [7]), (4096, 340, [8])]
)
def test_best_depths(nodes: int, steps: int, depths: list[int]) -> None:
    assert best_depths(nodes, 64) == (steps, depths)


def test_formula_at_its_given_depth() -> None:
    """Lemma 3's ceiling: k = 8 at N = 2048 gives 156, k = 3 at (16, 2) gives ceil(5 * 16^(4/3) / 16) = 13."""
    assert formula_steps(2048, 64, 8) == 156
    assert synth.solve(ring(16, 2), "formula", options={"depth": "3"}).value == 13


@settings(derandomize=True)
@given(st.integers(2, 5000), st.integers(1, 300), st.integers(1, 12))
def test_formula_agrees_with_the_check(nodes: int, wavelengths: int, depth: int) -> None:
    assert formula_steps(nodes, wavelengths, depth) == count_steps(nodes, wavelengths, "formula", (depth,)).steps


def test_odd_rings_have_no_neighbor_exchange() -> None:
    record = synth.solve(ring(7, 2), "neighbor_exchange")
    assert record["termination"] == "unsupported"
    assert "7 is odd" in record["message"]


def test_worked_example() -> None:
    """N = 16, w = 2, two 4-ary stages: 8 wavelengths and 16 wavelengths, 4 + 8 = 12 steps (the paper's Figure 2)."""
    verdict = check_solution(ring(16, 2), StepCount("stages", (4, 4)))
    assert verdict.facts["stage_wavelengths"] == [8, 16]
    assert verdict.facts["stage_steps"] == [4, 8]
    assert check_solution(ring(16, 2), schedule(16, 2, (4, 4))).value == 12
    assert synth.solve(ring(16, 2), "optree", options={"radices": "4,4"}).value == 12


@pytest.mark.long
@settings(derandomize=True, max_examples=some(150), deadline=None)
@given(st.integers(2, 70), st.integers(1, 8), st.lists(st.integers(2, 6), max_size=4))
def test_circuits_have_the_counted_steps(nodes: int, wavelengths: int, later: list[int]) -> None:
    """Any radices on any number of nodes: the schedule replays and has exactly the steps counted link by link."""
    while later and _product(later) >= nodes:
        later = later[1:]
    radices = (-(-nodes // _product(later)), *later)
    counted = check_solution(ring(nodes, wavelengths), StepCount("stages", radices))
    verdict = check_solution(ring(nodes, wavelengths), schedule(nodes, wavelengths, radices))
    assert verdict.ok, verdict.faults
    assert verdict.value == counted.value
    assert (
        verdict.facts["longest_circuit_hops"] <= longest_hops(nodes, radices) == counted.facts["longest_circuit_hops"]
    )


def _product(numbers: list[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _all_plans(nodes: int, size: int = 1) -> list[tuple[int, ...]]:
    """Every chain of radices, as brute force."""
    plans = [(-(-nodes // size),)]
    for radix in range(2, (nodes - 1) // size + 1):
        plans += [(*plan, radix) for plan in _all_plans(nodes, size * radix)]
    return plans


@pytest.mark.parametrize("nodes", [2, 3, 7, 12, 16, 23, 30, 36])
@pytest.mark.parametrize("wavelengths", [1, 2, 5])
@pytest.mark.parametrize("hops", [1000, 12])
def test_stages_against_brute_force(nodes: int, wavelengths: int, hops: int) -> None:
    possible = [plan for plan in _all_plans(nodes) if longest_hops(nodes, plan) <= hops]
    found = best_radices(nodes, wavelengths, hops)
    if not possible:
        assert found is None
        return
    best = min(count_steps(nodes, wavelengths, "stages", plan).steps for plan in possible)
    assert found in possible
    assert count_steps(nodes, wavelengths, "stages", found).steps == best


@pytest.mark.parametrize("solver", ["highs", "gurobi", "scip"])
@pytest.mark.parametrize(("nodes", "wavelengths"), [(16, 2), (100, 3), (225, 5)])
def test_integer_program_agrees_with_the_dynamic_program(nodes: int, wavelengths: int, solver: str) -> None:
    program = synth.solve(ring(nodes, wavelengths), "stages", solver=solver, options={"by": "program"})
    dynamic = synth.solve(ring(nodes, wavelengths), "stages")
    assert program.ok
    assert dynamic.ok
    assert program.value == dynamic.value


@pytest.mark.long
def test_integer_program_at_1024() -> None:
    program = synth.solve(ring(1024, 64), "stages", options={"by": "program"})
    assert program.value == synth.solve(ring(1024, 64), "stages").value == 68


def test_integer_program_with_a_length_limit() -> None:
    """16 nodes, 6 hops: one stage needs 8, so does (4, 4); the program and the dynamic program find the same plan."""
    instance = limited(16, 2, 6)
    program = solve(instance, options(solver="highs", method={"by": "program"}))
    dynamic = solve(instance, options(method={"by": "dynamic"}))
    values = [check_solution(instance, outcome.solution).value for outcome in (program, dynamic)]
    assert values[0] == values[1]
    assert values[0] is not None


def test_integer_program_size_limit() -> None:
    record = synth.solve(ring(30_000, 64), "stages", options={"by": "program"})
    assert record["termination"] == "size_limit"


@pytest.mark.long
def test_stages_of_a_million_nodes() -> None:
    """Radices 6, 3, …, 3; checked by counting loads link by link."""
    record = synth.solve(ring(1_000_000, 64), "stages")
    assert record.ok
    assert record.value == 127_832


@pytest.mark.parametrize(("nodes", "wavelengths"), [(16, 2), (100, 7), (1000, 64), (1024, 64), (4096, 64)])
def test_stages_never_need_more_than_the_formula(nodes: int, wavelengths: int) -> None:
    assert synth.solve(ring(nodes, wavelengths), "stages").value <= best_depths(nodes, wavelengths)[0]


@pytest.mark.parametrize(
    ("text", "message"), [("4,x", "must be whole numbers with commas"), ("1,4", "every radix must be >= 2")]
)
def test_bad_radices(text: str, message: str) -> None:
    with pytest.raises(synth.InputError, match=message):
        synth.solve(ring(16, 2), "optree", options={"radices": text})


def test_radices_that_do_not_fit() -> None:
    with pytest.raises(UnsupportedError, match="reach 12 nodes only, the ring has 16"):
        fitted(16, (4, 3))
    with pytest.raises(UnsupportedError, match="cover 16 nodes already"):
        fitted(16, (2, 4, 4))
    assert fitted(16, (9, 2)) == (8, 2)


@pytest.mark.parametrize(
    "method", ["optree", "stages", "one_stage", "formula", "wrht", "rwa", "first_fit", "longest_first"]
)
def test_methods_that_need_long_circuits_say_so(method: str) -> None:
    record = synth.solve(limited(64, 2, 3), method)
    assert record["termination"] == "unsupported"
    assert "power budget" in record["message"]


def test_every_method_is_described_and_imports() -> None:
    for method in FAMILY.methods.values():
        assert method.load().__doc__
        assert method.summary
