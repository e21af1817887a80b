"""How the bound's arguments share the time: the last has all that is left, and one that was cut short has another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds import strongest
from synth_models.fabric.bounds.proven import Proven

LIMIT_S = 1.0
Search = Callable[[Callable[[], bool], Proven], Proven]


@pytest.fixture
def instance() -> Any:
    return synth.make("fabric", network="ring", nodes=3, collective="allgather", bytes="3MiB")


def patient(told: list[float], needs_s: float) -> Search:
    """Proves a second more than what is known once it has had so many seconds; notes how long it ran."""

    def search(more: Callable[[], bool], best: Proven) -> Proven:
        began = time.monotonic()
        while more() and time.monotonic() - began < needs_s:
            time.sleep(0.01)
        told.append(time.monotonic() - began)
        return replace(best, seconds=best.seconds + 1) if told[-1] >= needs_s else best

    return search


def asked(monkeypatch: pytest.MonkeyPatch, instance: Any, *needed_s: float) -> tuple[Fraction, list[list[float]]]:
    """What is proven beyond cuts where further arguments need so many seconds, and how long each ran."""
    monkeypatch.setattr(strongest, "searches", lambda *_: [])
    cuts = strongest.strongest(instance, RunOptions(LIMIT_S)).seconds
    told: list[list[float]] = [[] for _ in needed_s]
    pairs = zip(told, needed_s, strict=True)
    monkeypatch.setattr(strongest, "searches", lambda *_: [patient(one, seconds) for one, seconds in pairs])
    return strongest.strongest(instance, RunOptions(LIMIT_S)).seconds - cuts, told


def test_the_last_has_all_that_is_left(monkeypatch: pytest.MonkeyPatch, instance: Any) -> None:
    """It needs 70 of 100 parts of the time, where a share is 40."""
    proven, told = asked(monkeypatch, instance, 0.0, 0.7 * LIMIT_S)
    assert proven == 2
    assert [len(one) for one in told] == [1, 1]


def test_what_was_cut_short_is_tried_again_in_what_others_left(monkeypatch: pytest.MonkeyPatch, instance: Any) -> None:
    """The first needs 45 parts and has 40, so 60 are left after the last, which needs none."""
    proven, told = asked(monkeypatch, instance, 0.45 * LIMIT_S, 0.0)
    assert proven == 2
    assert [len(one) for one in told] == [2, 1]


def test_nothing_is_tried_again_where_nothing_was_cut(monkeypatch: pytest.MonkeyPatch, instance: Any) -> None:
    proven, told = asked(monkeypatch, instance, 0.0, 0.0)
    assert proven == 2
    assert [len(one) for one in told] == [1, 1]


def test_a_second_try_that_proves_less_takes_nothing_back(monkeypatch: pytest.MonkeyPatch, instance: Any) -> None:
    """Of the cuts alone, say, which know of nothing proven before."""
    before: list[Proven] = []

    def forgetful(more: Callable[[], bool], best: Proven) -> Proven:
        before.append(best)
        while more():
            time.sleep(0.01)
        return replace(best, seconds=best.seconds + 1 if len(before) == 1 else Fraction(0))

    monkeypatch.setattr(strongest, "searches", lambda *_: [forgetful, lambda _, best: best])
    proven = strongest.strongest(instance, RunOptions(LIMIT_S))
    assert len(before) == 2
    assert proven.seconds == before[0].seconds + 1
