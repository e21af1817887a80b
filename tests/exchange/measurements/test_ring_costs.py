"""Costs of steps and launches from logs of rings: what made the logs comes back."""

from __future__ import annotations

import numpy as np
import pytest

from synth.exchange.block_costs import read_given
from synth.exchange.measurements import Series
from synth.exchange.measurements.ring_costs import ring_costs

SIZES = 2 ** np.arange(8, 28, 2)
LAUNCH, STEP, RATE = 8.4e-6, 3.4e-6, 38.7e9


def log(ranks: int, seed: int = 0, test: str = "allreduce") -> Series:
    """A ring of one channel, with noise of a percent."""
    rounds = {"allreduce": 2, "allgather": 1}[test]
    seconds = LAUNCH + rounds * (ranks - 1) * (STEP + SIZES / ranks / RATE)
    noises = np.exp(0.01 * np.random.default_rng((ranks, seed)).standard_normal(len(SIZES)))
    return Series(f"log{ranks}", test, ranks, SIZES, seconds * noises, SIZES, f"log{ranks}")


def test_two_numbers_of_ranks_tell_steps_from_the_launch() -> None:
    """Nine of ten intervals of 95 % hold the truth, at the least."""
    held = 0
    for seed in range(10):
        found = ring_costs([log(2, seed), log(8, seed)])
        assert found is not None
        assert found.launch is not None
        assert found.rate is not None
        for interval, true in ((found.step, STEP), (found.launch, LAUNCH), (found.rate, RATE)):
            held += interval.low <= true <= interval.high
            assert interval.value == pytest.approx(true, rel=0.1)
    assert held >= 27


def test_one_number_of_ranks_says_both_together() -> None:
    found = ring_costs([log(4, test="allgather")])
    assert found is not None
    assert found.launch is None
    assert found.step.value == pytest.approx(STEP + LAUNCH / 3, rel=0.05)


def test_what_is_said_is_what_cost_takes() -> None:
    found = ring_costs([log(2), log(8)])
    assert found is not None
    given = read_given(found.words.removeprefix("--cost ").partition(":")[0])
    assert given["step"] == pytest.approx(found.step.value, rel=0.01)
    assert set(given) == {"step", "launch", "block"}


def test_pairs_say_nothing_of_rings() -> None:
    assert ring_costs([Series("log", "sendrecv", 2, SIZES, 1e-6 + SIZES / RATE, SIZES, "log")]) is None
