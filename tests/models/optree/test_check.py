"""The check: hand-made schedules, every way to break one, counted plans."""

from __future__ import annotations

import numpy as np
import pytest
from models.optree.cases import limited, ring

from synth_models.optree.check.replay import check_solution
from synth_models.optree.solution import COLUMNS, Circuits, StepCount, pack, unpack


def both_ways() -> Circuits:
    """Four nodes, one wavelength, two steps, by hand.

    Step 1: every node sends its own item one hop both ways (8 circuits fill all 8 directed links). Step 2: every node
    passes the item of its counterclockwise neighbour on clockwise (4 circuits): now everybody holds 1 + 2 + 1 = 4.
    """
    rows = [(1, v, (v + 1) % 4, 0, 0, v) for v in range(4)]
    rows += [(1, v, (v - 1) % 4, 1, 0, v) for v in range(4)]
    rows += [(2, v, (v + 1) % 4, 0, 0, (v - 1) % 4) for v in range(4)]
    return Circuits.of(*zip(*rows, strict=True))


def changed(row: int, **values: int) -> Circuits:
    columns = {name: getattr(both_ways(), name).copy() for name in COLUMNS}
    for name, value in values.items():
        columns[name][row] = value
    return Circuits.of(*(columns[name] for name in COLUMNS))


def test_hand_made_schedule() -> None:
    """Two steps, 12 circuits of one hop on 2*8 wavelength-hops: use 0.75; 2 steps of 1 s + 0.5 s are 3 s."""
    instance = ring(4, 1, item_bytes=10, wavelength_bandwidth=10, step_overhead=0.5)
    verdict = check_solution(instance, both_ways())
    assert verdict.ok
    assert verdict.value == 2
    assert verdict.facts["seconds"] == 3.0
    assert verdict.facts["wavelength_use"] == 0.75
    assert verdict.facts["longest_circuit_hops"] == 1
    assert verdict.facts["redundant_circuits"] == 0


def test_rows_may_come_in_any_order() -> None:
    order = np.random.default_rng(0).permutation(12)
    shuffled = Circuits.of(*(getattr(both_ways(), name)[order] for name in COLUMNS))
    assert check_solution(ring(4, 1), shuffled).value == 2


@pytest.mark.parametrize(
    ("row", "values", "words"),
    [
        (8, {"step": 1}, "does not hold the item before the step"),  # node 0 gets item 3 in step 1 only
        (8, {"step": 0}, "out of range"),
        (0, {"dst": 2}, "already used on the link at node 1"),  # two hops, over the link of the circuit 1->2
        (0, {"dst": 0}, "starts and ends at the same node"),
        (0, {"dst": 4}, "out of range"),
        (0, {"src": -1}, "out of range"),
        (0, {"direction": 1}, "already used"),  # three hops the other way round
        (0, {"direction": 2}, "out of range"),
        (0, {"wavelength": 1}, "out of range"),
        (0, {"origin": 2}, "does not hold"),
        (0, {"origin": 4}, "out of range"),
        (8, {"origin": 0}, "misses the item of node 3"),  # a copy that is there already instead of a missing one
        (8, {"src": 1, "dst": 2}, "already used on the link at node 1"),
    ],
)
def test_mutations_are_caught(row: int, values: dict[str, int], words: str) -> None:
    verdict = check_solution(ring(4, 1), changed(row, **values))
    assert not verdict.ok
    assert verdict.value is None
    assert any(words in fault for fault in verdict.faults), verdict.faults


@pytest.mark.parametrize("row", range(12))
def test_every_circuit_is_needed(row: int) -> None:
    kept = np.arange(12) != row
    verdict = check_solution(ring(4, 1), Circuits.of(*(getattr(both_ways(), name)[kept] for name in COLUMNS)))
    assert not verdict.ok


def test_same_wavelength_both_directions_and_different_wavelengths_do_not_clash() -> None:
    """Four nodes, two wavelengths, one step: one hop both ways on wavelength 0, and on wavelength 1 each node two hops,
    0 and 2 clockwise (they fill the ring), 1 and 3 counterclockwise."""
    rows = [(1, v, (v + 1) % 4, 0, 0, v) for v in range(4)] + [(1, v, (v - 1) % 4, 1, 0, v) for v in range(4)]
    rows += [(1, v, (v + 2) % 4, v % 2, 1, v) for v in range(4)]
    assert check_solution(ring(4, 2), Circuits.of(*zip(*rows, strict=True))).value == 1


def test_length_limit_names_the_budget() -> None:
    rows = [(1, v, (v + 1) % 4, 0, 0, v) for v in range(4)] + [(1, v, (v - 1) % 4, 1, 0, v) for v in range(4)]
    rows += [(1, v, (v + 2) % 4, v % 2, 1, v) for v in range(4)]
    verdict = check_solution(limited(4, 2, 1), Circuits.of(*zip(*rows, strict=True)))
    assert any("2 hops, but the power budget" in fault and "allows 1" in fault for fault in verdict.faults)


def test_many_faults_are_summed_up() -> None:
    wrong = Circuits.of(*([value] * 30 for value in (1, 0, 0, 0, 0, 0)))
    verdict = check_solution(ring(6, 1), wrong)
    assert "and 10 more faults" in verdict.faults
    assert "and 10 more missing items" in verdict.faults


def test_no_circuits_at_all() -> None:
    assert len(check_solution(ring(2, 1), Circuits.of(*[[]] * 6)).faults) == 2


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (StepCount("magic"), "unknown algorithm 'magic'"),
        (StepCount("formula"), "formula takes 1 numbers, got 0"),
        (StepCount("formula", (0,)), "numbers must be >= 1"),
        (StepCount("formula", (65,)), "beyond 64"),
        (StepCount("wrht", (3,)), "the variant is 1 or 2"),
        (StepCount("stages"), "at least one radix"),
        (StepCount("stages", (4, 16)), "smaller than the ring"),
        (StepCount("stages", (3, 4)), "16 nodes in groups of 4 make 4 groups, not 3"),
    ],
)
def test_malformed_plans(plan: StepCount, words: str) -> None:
    verdict = check_solution(ring(16, 2), plan)
    assert verdict.value is None
    assert words in verdict.faults[0]


def test_a_plan_beyond_the_length_limit() -> None:
    """One stage on 16 nodes needs 8 hops."""
    verdict = check_solution(limited(16, 2, 7), StepCount("one_stage"))
    assert "one_stage needs circuits of 8 hops: the power budget" in verdict.faults[0]


def test_pack_and_unpack() -> None:
    again = unpack(ring(4, 1), pack(both_ways()))
    assert isinstance(again, Circuits)
    assert all(np.array_equal(getattr(again, name), getattr(both_ways(), name)) for name in COLUMNS)
    assert unpack(ring(4, 1), pack(StepCount("stages", (4, 4)))) == StepCount("stages", (4, 4))
    with pytest.raises(ValueError, match="step does not hold whole numbers"):
        unpack(ring(4, 1), pack(both_ways()) | {"step": [0.5] * 12})
    with pytest.raises(ValueError, match="src holds 1099511627776, more than"):
        unpack(ring(4, 1), pack(both_ways()) | {"src": [2**40] * 12})
    with pytest.raises(ValueError, match="same length"):
        unpack(ring(4, 1), pack(both_ways()) | {"dst": [1]})
    with pytest.raises(ValueError, match="numbers does not hold whole numbers"):
        unpack(ring(4, 1), {"algorithm": "stages", "numbers": [1.5]})
    with pytest.raises(ValueError, match="algorithm must be a text"):
        unpack(ring(4, 1), {"algorithm": 3, "numbers": []})
    with pytest.raises(ValueError, match="src is missing"):
        unpack(ring(4, 1), {"step": [1]})
