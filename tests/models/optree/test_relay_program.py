"""The whole-number program for one item's way: what it finds is followed, what it denies is refuted otherwise."""

from __future__ import annotations

import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.cases import followed, options, ring

from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.references.relay import relay
from synth_models.optree.references.relay_pattern import Pattern
from synth_models.optree.references.relay_program import MOST_STEPS, program_pattern


def anything(pattern: Pattern) -> set[tuple[int, bool]]:
    """No wavelengths asked for."""
    return set()


@pytest.mark.long
@pytest.mark.parametrize(("nodes", "wavelengths", "steps"), [(128, 24, 6), (192, 32, 7)])
def test_rings_that_the_planner_does_not_settle(nodes: int, wavelengths: int, steps: int) -> None:
    instance = ring(nodes, wavelengths)
    verdict = check_solution(instance, relay(instance, options()))
    assert verdict.ok
    assert verdict.value == lower_bound(instance, options())[0] == steps


@settings(derandomize=True, max_examples=some(25), deadline=None)
@given(st.integers(3, 60), st.integers(1, 16), st.integers(1, 6), st.integers(1, 20))
def test_ways_are_ways(nodes: int, wavelengths: int, steps: int, max_hops: int) -> None:
    """What is found takes at most the steps asked for, and circuits keep to their limit."""
    max_hops = min(max_hops, nodes - 1)
    pattern = program_pattern(nodes, wavelengths, max_hops, steps, anything, options())
    if pattern is not None:
        assert followed(pattern.whole(), nodes, wavelengths) <= steps
        assert max(row[3] for row in pattern.whole()) <= max_hops


def test_by_hand() -> None:
    """Seven nodes, two wavelengths, two steps: 0 leaps to 2 both ways, then one fill and one hop on each way. In one
    step 1 + 2 + 3 hops each way take six wavelengths, five are too few."""
    pattern = program_pattern(7, 2, 6, 2, anything, options())
    assert pattern is not None
    assert followed(pattern.whole(), 7, 2) == 2
    assert program_pattern(7, 5, 6, 1, anything, options()) is None
    pattern = program_pattern(7, 6, 6, 1, anything, options())
    assert pattern is not None
    assert sorted(row[3] for row in pattern.whole()) == [1, 1, 2, 2, 3, 3]


def test_gives_up() -> None:
    """Too many steps for it, or a check of wavelengths that nothing passes."""
    assert program_pattern(20, 1, 19, MOST_STEPS + 1, anything, options()) is None
    assert program_pattern(7, 2, 6, 2, lambda _: {(1, True), (1, False)}, options()) is None


def test_leaps_of_the_direction_that_fits_are_kept() -> None:
    """If only step 1 counterclockwise is unfit while its leaps differ from those clockwise, the next try repeats those
    clockwise, so it is fit."""

    def leaps(pattern: Pattern, clockwise: bool) -> list[int]:
        return sorted(row[3] for row in pattern.whole() if row[0] == 1 and row[4] == clockwise)

    tried = []

    def unlike(pattern: Pattern) -> set[tuple[int, bool]]:
        tried.append(leaps(pattern, True))
        return set() if leaps(pattern, True) == leaps(pattern, False) else {(1, False)}

    pattern = program_pattern(61, 9, 60, 6, unlike, options(seed=3))
    assert pattern is not None
    assert leaps(pattern, True) == leaps(pattern, False) == tried[0]
    assert followed(pattern.whole(), 61, 9) == 6
