"""All methods and the bound against enumeration, on small random steps."""

from __future__ import annotations

import random

import pytest
from models.step.brute_force import least_end, random_step

from synth.family import get_family
from synth.instance import parse
from synth.options import RunOptions
from synth_models.step.bounds.strongest import _window
from synth_models.step.bounds.strongest import solve as bound
from synth_models.step.check.certificates import check_bound
from synth_models.step.check.replay import check_step
from synth_models.step.instance import StepInstance
from synth_models.step.parts.lists import from_the_end
from synth_models.step.parts.prices import quickest
from synth_models.step.programs.order import solve as order
from synth_models.step.references import issued, longest_tail, search
from synth_models.step.solution import timetable_of

ROUNDED = 6e-12 * 6  # seconds: a picosecond a node up or down


def compare(seed: int) -> None:
    """Bound <= optimum <= references; program = optimum."""
    raw = random_step(seed)
    instance = parse(raw, StepInstance, "drawn")
    least = float(least_end(raw))
    found = bound(instance, RunOptions())
    assert found.bound is not None
    assert found.certificate is not None
    assert found.bound <= least + ROUNDED
    assert check_bound(instance, found.bound, found.certificate) == []
    assert check_bound(instance, found.bound * 1.001 + 1e-9, found.certificate) != []
    program = order(instance, RunOptions())
    assert program.termination == "optimal"
    assert check_step(instance, program.solution).value == pytest.approx(least, abs=ROUNDED)
    moves = get_family("step").method("search").parameters[0].default
    for method in (issued, longest_tail, search):
        verdict = check_step(instance, method.solve(instance, RunOptions(method={"moves": moves})).solution)
        assert verdict.faults == []
        assert verdict.value is not None
        assert verdict.value >= least - ROUNDED


@pytest.mark.parametrize("seed", range(40))
def test_small_steps(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
def test_five_hundred_steps() -> None:
    for seed in range(40, 540):
        compare(seed)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_window_is_the_best_of_all(seed: int) -> None:
    """Every head and every tail tried, on up to 40 nodes, many of them equal."""
    draw = random.Random(seed)
    heads, works, tails = ([draw.randrange(30) for _ in range(draw.randint(1, 40))] for _ in range(3))
    count = min(len(heads), len(works), len(tails))
    rows = list(zip(heads, works, tails, strict=False))
    best = max(
        r + q + sum(work for _, work, _ in inside)
        for r in heads[:count]
        for q in tails[:count]
        if (inside := [row for row in rows if row[0] >= r and row[2] >= q])
    )
    found, members = _window(heads[:count], works[:count], tails[:count])
    assert found == best
    assert min(heads[i] for i in members) + sum(works[i] for i in members) + min(tails[i] for i in members) == best


@pytest.mark.parametrize("seed", range(20))
def test_what_is_placed_from_the_end_keeps_the_rules(seed: int) -> None:
    """It begins at 0, and no order is quicker than the least of all."""
    raw = random_step(seed)
    instance = parse(raw, StepInstance, "drawn")
    long = quickest(instance)
    start = from_the_end(instance, long, [float(draw) for draw in random.Random(seed).choices(range(5), k=len(long))])
    assert min(start) == 0
    verdict = check_step(instance, timetable_of(start))
    assert verdict.faults == []
    assert verdict.value is not None
    assert verdict.value >= float(least_end(raw)) - ROUNDED
