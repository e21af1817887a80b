"""Routes and wavelengths of one stage: exact programs, references, closed forms."""

from __future__ import annotations

import pytest
from models.optree.cases import options, ring

import synth
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.one_stage import load_bound, published_wavelengths
from synth_models.optree.programs.rwa.method import decide, fewest
from synth_models.optree.programs.rwa.model import StageProgram
from synth_models.optree.references.first_fit import first_fit
from synth_models.optree.references.optree import schedule


def test_closed_forms_by_hand() -> None:
    """Three nodes on a ring: each sends one hop each way, one wavelength; the paper's ceil(9/8) is 2. Four nodes: 16
    hops of shortest ways over 8 directed links: 2. Five: 5 * 6 = 30 over 10: 3, the paper's ceil(25/8) is 4.
    Segment of three: the middle of 0-1-2 has circuits 0->1, 0->2 on its first link: 2 = floor(9/4)."""
    assert [load_bound(m, "ring") for m in (3, 4, 5, 6)] == [1, 2, 3, 5]
    assert [published_wavelengths(m, "ring") for m in (3, 4, 5, 6)] == [2, 2, 4, 5]
    assert [load_bound(m, "segment") for m in (2, 3, 4)] == [1, 2, 4]


@pytest.mark.parametrize("m", range(2, 41))
def test_circles_reach_the_load_bound(m: int) -> None:
    """The construction of stage 1 colours every all-to-all on a ring with the load bound, which no colouring beats;
    so ceil(m^2/8) is right for even m and one too many for odd m."""
    bound = load_bound(m, "ring")
    assert check_solution(ring(m, bound), schedule(m, bound, (m,))).value == 1
    assert published_wavelengths(m, "ring") == bound + m % 2


@pytest.mark.parametrize("shape", ["ring", "segment"])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7, 8, 9])
def test_exact_by_cpsat(shape: str, m: int) -> None:
    outcome = fewest(m, shape, m, options(solver="cpsat"))
    assert outcome.termination == "optimal"
    assert outcome.solution.wavelengths == load_bound(m, shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["ring", "segment"])
@pytest.mark.parametrize("m", [10, 11, 12, 13, 14, 15, 16])
def test_exact_by_cpsat_up_to_sixteen(shape: str, m: int) -> None:
    outcome = fewest(m, shape, m, options(solver="cpsat", time_limit_s=120.0))
    assert outcome.solution.wavelengths == load_bound(m, shape)


@pytest.mark.parametrize("solver", ["highs", "gurobi", "scip"])
@pytest.mark.parametrize(("shape", "m"), [("ring", 4), ("ring", 5), ("segment", 4), ("segment", 6)])
def test_exact_by_integer_program(shape: str, m: int, solver: str) -> None:
    outcome = fewest(m, shape, m, options(solver=solver))
    assert outcome.termination == "optimal"
    assert outcome.solution.wavelengths == load_bound(m, shape)


def test_one_wavelength_less_is_infeasible() -> None:
    for solver in ("cpsat", "highs"):
        found = decide(StageProgram(5, "ring", 4, 2), options(solver=solver))
        assert (found.answer, found.solution) == ("infeasible", None)


@pytest.mark.parametrize("shape", ["ring", "segment"])
@pytest.mark.parametrize("longest_first", [False, True])
@pytest.mark.parametrize("m", range(2, 20))
def test_references_are_valid_and_not_better(shape: str, longest_first: bool, m: int) -> None:
    stage = first_fit(m, shape, longest_first)
    assert stage.wavelengths >= load_bound(m, shape)
    method = "longest_first" if longest_first else "first_fit"
    record = synth.solve(ring(m, stage.wavelengths), method, options={"shape": shape})
    assert record.ok
    assert record.value == 1


@pytest.mark.parametrize("shape", ["ring", "segment"])
@pytest.mark.parametrize("longest_first", [False, True])
@pytest.mark.parametrize("m", [2, 3, 6, 9, 16])
def test_every_circuit_has_the_first_wavelength_that_was_free(shape: str, longest_first: bool, m: int) -> None:
    seen: list[tuple[set[tuple[int, int]], int]] = []  # links (direction, the lower node) and wavelength of a circuit
    hops = []
    for u, v, direction, wavelength in first_fit(m, shape, longest_first).rows:
        step = 1 if direction == 0 else -1
        nodes = [(u + step * k) % m for k in range((step * (v - u)) % m + 1)]
        links = {(direction, node) for node in (nodes[:-1] if direction == 0 else nodes[1:])}
        held = {other for used, other in seen if used & links}
        assert wavelength == min(set(range(len(held) + 1)) - held)
        seen.append((links, wavelength))
        hops.append(len(links))
    assert len(seen) == m * (m - 1)
    assert hops == sorted(hops, reverse=True) or not longest_first


@pytest.mark.parametrize(("nodes", "wavelengths", "steps"), [(8, 2, 4), (7, 2, 3), (8, 3, 3)])
def test_method_rwa(nodes: int, wavelengths: int, steps: int) -> None:
    """8 nodes need 8 wavelengths, 7 need 6; the steps are those over w, rounded up."""
    record = synth.solve(ring(nodes, wavelengths), "rwa")
    assert record.ok
    assert record.value == steps
    assert record.bound is None
    assert "fewest for one stage" in record["message"]


def test_rwa_with_a_hint_and_as_a_segment() -> None:
    assert synth.solve(ring(9, 2), "rwa", options={"hint": "on"}).value == 5  # 10 wavelengths
    record = synth.solve(ring(6, 3), "rwa", options={"shape": "segment"})
    assert record.ok
    assert record.value == 3


def test_rwa_refuses_large_rings() -> None:
    assert synth.solve(ring(100, 2), "rwa")["termination"] == "unsupported"
    assert synth.solve(ring(600, 2), "first_fit")["termination"] == "unsupported"
