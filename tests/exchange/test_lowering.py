"""The lowering against oracles in plain Python: the same messages, the whole collective, in any order of running."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from exchange.possession import Run, expected
from exchange.random_transfers import random_transfers

from synth.errors import InputError
from synth.exchange import validity
from synth.exchange.lowering import Limits, Wish, lower


def refused(call: Callable[[], Any], words: str) -> bool:
    """Whether it raises :class:`InputError` with these words in it."""
    try:
        call()
    except InputError as error:
        return words in str(error)
    return False


@pytest.mark.parametrize("seed", range(400))
def test_an_algorithm_sends_what_the_schedule_sends_and_ends_with_the_collective(seed: int) -> None:
    t = random_transfers(seed)
    copies, channels, fuse = 1 + seed // 16 % 2, 1 + seed // 32 % 2, bool(seed // 5 % 2)
    wish = Wish(in_place=bool(seed // 8 % 2), instances=copies, channels=channels, fuse=fuse)
    steps = [None, 8, 3][seed // 64 % 3]
    limits = Limits("tiny", steps=steps, count=[None, 3, 1][seed % 3])
    if steps == 3 and refused(lambda: lower(t, limits, wish), "tiny takes 3 steps"):
        return
    a, notes = lower(t, limits, wish)
    assert all("left out" in note for note in notes)
    assert validity.check(a).faults == ()
    run = Run(a, Random(seed))
    run.run()
    assert expected(t, a.chunks) <= run.messages <= expected(t, a.chunks, needed=False)
    if not fuse:
        Run(a, Random(seed), together=True).run()  # and where a connection holds nothing
    if steps:
        assert max(a.step_start[1:] - a.step_start[:-1], default=0) <= steps
