"""Tori and meshes: instances, the check against a replay in plain Python, what the family says and draws."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.odd_values import mutants
from models.optree.cases import SHIPPED, TORUS, grid, limited, options, replayed, ring

import synth
from synth.errors import InputError
from synth.method import load
from synth_models.optree import FAMILY
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.references.grid_relay import grid_relay
from synth_models.optree.solution import COLUMNS, Circuits, Solution, StepCount

GOOD = {"format": "synth-instance/1", "family": "optree", "name": "x", "source": "test", "nodes": 12, "wavelengths": 2}


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"sides": [3, 4]}, "grid.kinds: is missing"),
        ({"sides": [3, 4], "kinds": ["ring"]}, "grid.kinds = ['ring']: must have a kind a side, 2"),
        ({"sides": [3, 5], "kinds": ["ring", "ring"]}, "nodes = 12: must be the product of the sides, 15"),
        ({"sides": [12, 1], "kinds": ["ring", "ring"]}, "grid.sides[1] = 1: must be >= 2"),
        ({"sides": [12], "kinds": ["ring"]}, "grid: one ring is written without a grid"),
        ({"sides": [], "kinds": []}, "grid.sides = []"),
        ({"sides": [2, 2, 3, 1], "kinds": ["ring"] * 4}, "grid.sides"),
        ({"sides": [3, 4], "kinds": ["ring", "star"]}, "grid.kinds[1] = 'star'"),
        ({"sides": [3, 4.5], "kinds": ["ring", "ring"]}, "grid.sides[1] = 4.5"),
        ({"sides": [3, 4], "kinds": ["ring", "ring"], "w": 1}, "grid.w: unknown key"),
    ],
)
def test_bad_grids(shape: dict[str, Any], message: str) -> None:
    from synth.instance import parse

    with pytest.raises(InputError) as caught:
        parse(GOOD | {"grid": shape}, OpTreeInstance, "x")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"wavelengths": 1}, "nodes: is missing; or give sides"),
        ({"sides": "4x", "wavelengths": 1}, "sides = '4x': must be whole numbers"),
        ({"sides": "4xq", "wavelengths": 1}, "must be whole numbers such as 4x8"),
        ({"sides": "4x4", "nodes": 16, "wavelengths": 1}, "give one of the two"),
        ({"sides": "4x4", "kinds": "ring,line,ring", "wavelengths": 1}, "one for all sides or one a side"),
        ({"sides": "4x4", "kinds": "star", "wavelengths": 1}, "must be ring or line"),
        ({"nodes": 16, "kinds": "ring", "wavelengths": 1}, "goes with sides"),
        ({"sides": "8", "wavelengths": 1}, "one ring is written without a grid"),
    ],
)
def test_bad_keys(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("optree", **keys)
    assert message in str(caught.value)


def test_a_grid_survives_its_file_and_a_ring_says_nothing_of_grids(tmp_path: Path) -> None:
    made = grid((4, 8), (True, False), 2)
    (tmp_path / "x.json").write_text(made.to_json())
    assert synth.read(tmp_path / "x.json").model_dump() == made.model_dump()
    assert (made.name, made.nodes, made.directed_links) == ("grid-4x8-w2", 32, 2 * 32 + 2 * 4 * 7)
    assert grid((4, 4, 2), (True,) * 3, 1).name == "torus-4x4x2-w1"
    assert grid((9,), (False,), 1).name == "mesh-9-w1"
    assert "grid" not in ring(8, 2).to_json()
    for file in SHIPPED:
        instance = synth.read(file)
        assert isinstance(instance, OpTreeInstance)
        if instance.grid is None:
            assert "grid" not in instance.to_json()


def test_places_by_hand() -> None:
    """3 rows of 4 nodes: node 6 is row 1, column 2; one up in dimension 0 is node 10, then round to 2."""
    rows, columns = grid((3, 4), (True, False), 1).dimensions
    assert (rows.place(6), columns.place(6)) == (1, 2)
    assert (rows.moved(6, 1), rows.moved(6, 2), columns.moved(6, 1), columns.moved(6, 2)) == (10, 2, 7, None)


def test_the_longest_circuit_is_that_of_the_longest_side() -> None:
    assert grid((3, 9), TORUS, 1).max_hops == 8
    assert grid((3, 9), TORUS, 1, hops=5).max_hops == 5
    assert grid((3, 9), TORUS, 1, hops=0).budget_fault is not None


def by_hand() -> Circuits:
    """A 2 x 2 mesh, one wavelength, two steps: all send their own item along both lines, then the row's other item
    along the column."""
    rows = [(1, v, v ^ 1, 2 + (v & 1), 0, v) for v in range(4)] + [(1, v, v ^ 2, v >> 1, 0, v) for v in range(4)]
    rows += [(2, v, v ^ 2, v >> 1, 0, v ^ 1) for v in range(4)]
    return Circuits.of(*zip(*rows, strict=True))


def test_a_schedule_by_hand() -> None:
    """12 circuits of one hop on 8 directed links in 2 steps: 75 % in use."""
    verdict = check_solution(grid((2, 2), (False, False), 1), by_hand())
    assert (verdict.value, verdict.faults) == (2, [])
    assert verdict.facts["wavelength_use"] == 0.75
    assert verdict.facts["redundant_circuits"] == 0


@pytest.mark.parametrize(
    ("row", "values", "words"),
    [
        (0, {"dst": 3}, "do not lie on one ring or line"),
        (0, {"direction": 3}, "a line does not go on beyond its end"),
        (0, {"direction": 4}, "out of range"),
        (0, {"direction": 0}, "do not lie on one ring or line"),
        (8, {"step": 1}, "does not hold the item before the step"),
        (8, {"origin": 0}, "misses the item of node 1"),
        (8, {"src": 1, "dst": 3}, "already used on the link at node 1"),
    ],
)
def test_mutations_are_caught(row: int, values: dict[str, int], words: str) -> None:
    columns = {name: getattr(by_hand(), name).copy() for name in COLUMNS}
    for name, value in values.items():
        columns[name][row] = value
    verdict = check_solution(grid((2, 2), (False, False), 1), Circuits.of(*(columns[name] for name in COLUMNS)))
    assert verdict.value is None
    assert any(words in fault for fault in verdict.faults), verdict.faults


def test_counts_of_a_ring_are_none_of_a_grid() -> None:
    verdict = check_solution(grid((4, 4), TORUS, 1), StepCount("ring"))
    assert verdict.faults == ["ring counts the steps of a ring, this is a grid"]


@pytest.mark.long
def test_odd_numbers_in_a_stored_schedule() -> None:
    """No odd number crashes the check or makes a schedule shorter than the optimum, 2 by brute force."""
    instance = grid((3, 3), TORUS, 1)
    packed = load(FAMILY.pack)(grid_relay(instance, options()))
    for key in packed:
        for mutant in mutants(packed[key]):
            try:
                solution: Solution = load(FAMILY.unpack)(instance, packed | {key: mutant})
            except (ValueError, KeyError):
                continue
            verdict = check_solution(instance, solution)
            assert not verdict.ok or (isinstance(solution, Circuits) and verdict.value == replayed(instance, solution))


@settings(derandomize=True, max_examples=some(150), deadline=None)
@given(st.data())
def test_any_change_is_judged_as_the_plain_replay_does(data: st.DataObject) -> None:
    sides, rings = data.draw(st.sampled_from([((3, 3), TORUS), ((2, 3), (True, False)), ((4,), (False,))]))
    instance = grid(sides, rings, 2)
    columns = {name: getattr(_relayed(sides, rings), name).copy() for name in COLUMNS}
    row = data.draw(st.integers(0, len(columns["step"]) - 1))
    for name in data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3)):
        columns[name][row] = data.draw(st.integers(-1, instance.nodes))
    replayed(instance, Circuits.of(*(columns[name] for name in COLUMNS)))


@cache
def _relayed(sides: tuple[int, ...], rings: tuple[bool, ...]) -> Circuits:
    return grid_relay(grid(sides, rings, 2), options())


@pytest.mark.parametrize(
    "method", sorted(set(FAMILY.methods) - {"bound", "composed", "optree", "relay", "time_expanded"})
)
def test_methods_of_one_ring_say_so(method: str) -> None:
    record = synth.solve(grid((4, 4), TORUS, 2), method)
    assert record["termination"] == "unsupported"
    assert "is stated for one ring" in record["message"]


@pytest.mark.parametrize("method", list(FAMILY.methods))
def test_a_budget_that_nobody_can_meet(method: str) -> None:
    assert synth.solve(grid((4, 4), TORUS, 2, hops=0), method)["termination"] == "infeasible"


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("sides", "rings"), [((3, 4), (True, False)), ((2, 3, 4), (True,) * 3), ((6,), (False,))])
def test_views(sides: tuple[int, ...], rings: tuple[bool, ...], tmp_path: Path) -> None:
    instance = grid(sides, rings, 2)
    circuits = grid_relay(instance, options())
    table = load(FAMILY.table)(instance, circuits)
    assert replayed(instance, Circuits.of(*(table[name].tolist() for name in COLUMNS))) == circuits.steps
    assert load(FAMILY.describe)(instance, circuits).startswith("step   1 (")
    load(FAMILY.plot)(instance, circuits, "relay").savefig(tmp_path / "x.png")
    frames = FAMILY.capability("frames")(instance, circuits)
    assert len({tuple(place) for place in frames.positions}) == instance.nodes
    assert 2 * len(frames.links) == instance.directed_links
    assert FAMILY.capability("export")(instance, circuits).ranks == instance.nodes


def test_hops_of_circuits() -> None:
    """3 rows of 4 on a torus: 1 -> 0 is one hop down in dimension 1, 3 up; 0 -> 8 is two up in dimension 0."""
    rows = [(1, 1, 0, 3, 0, 1), (1, 1, 0, 2, 0, 1), (1, 0, 8, 0, 0, 0)]
    assert Circuits.of(*zip(*rows, strict=True)).hops(grid((3, 4), TORUS, 1)).tolist() == [1, 3, 2]
    assert limited(8, 1, 3).directed_links == 16
