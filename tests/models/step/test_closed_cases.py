"""Pipelines whose least end is known: bubbles of 1F1B, GPipe and zero-bubble schedules."""

from __future__ import annotations

import pytest

from synth import api
from synth.options import RunOptions
from synth_models.step.bounds.strongest import strongest
from synth_models.step.check.replay import check_step
from synth_models.step.instance import StepInstance
from synth_models.step.references import issued, search

P, M = range(2, 9), (4, 6, 8, 16, 32)
MS = 10**9  # picoseconds


def step(p: int, m: int, schedule: str) -> StepInstance:
    made = api.make("step", stages=p, microbatches=m, schedule=schedule)
    assert isinstance(made, StepInstance)
    return made


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("m", M)
def test_bubble(p: int, m: int, schedule: str) -> None:
    """Of stages that take 1 ms forward and 2 back, (p - 1)/(m + p - 1) of the step is idle: it ends after 3 (m + p - 1)
    ms. The stages' own order reaches it, where m >= p or all go forward first."""
    instance = step(p, m, schedule)
    assert strongest(instance)[0] == 3 * (m + p - 1) * MS
    found = issued.solve(instance, RunOptions()).solution
    assert check_step(instance, found).value == pytest.approx(3e-3 * (m + p - 1), abs=1e-11)


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("m", M)
def test_a_third_of_the_bubble(p: int, m: int) -> None:
    """With weight gradients apart, 1 ms each, the last stage waits p - 1 ms, where 1F1B waits 3 (p - 1). The first gets
    its first gradient after 2 p - 1 ms and has 2 m to do then, which is more where m < p."""
    instance = step(p, m, "zb")
    least = max(3 * m + p - 1, 2 * m + 2 * p - 1)
    assert strongest(instance)[0] == least * MS
    found = search.solve(instance, RunOptions(method={"moves": 20})).solution
    assert check_step(instance, found).value == pytest.approx(1e-3 * least, abs=1e-11)
