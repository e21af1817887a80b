"""The lowering against oracles in plain Python: the same messages, the whole collective, in any order of running."""

from __future__ import annotations

from random import Random

import pytest

from exchange.possession import Run, expected
from exchange.random_transfers import random_transfers
from synth.errors import InputError
from synth.exchange import executors, validity
from synth.exchange.lowering import Limits, Wish, limits_of, lower


@pytest.mark.parametrize("seed", range(400))
def test_an_algorithm_sends_what_the_schedule_sends_and_ends_with_the_collective(seed: int) -> None:
    t = random_transfers(seed)
    wish = Wish(in_place=bool(seed // 8 % 2), instances=1 + seed // 16 % 2, channels=1 + seed // 32 % 2)
    steps = [None, 8, 3][seed // 64 % 3]
    try:
        a, notes = lower(t, Limits("tiny", steps=steps, count=[None, 3, 1][seed % 3]), wish)
    except InputError as error:
        assert steps == 3
        assert "takes 3 steps" in str(error)
        return
    assert all("left out" in note for note in notes)
    assert validity.check(a).faults == ()
    run = Run(a, Random(seed))
    run.run()
    assert expected(t, a.chunks) <= run.messages <= expected(t, a.chunks, needed=False)
    Run(a, Random(seed), together=True).run()  # and where a connection holds nothing
    if steps:
        assert max(a.step_start[1:] - a.step_start[:-1], default=0) <= steps
