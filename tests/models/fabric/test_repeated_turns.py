"""Long broadcasts and reductions over two trees: by repeating the middle of a short one as by timing all transfers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from models.fabric.making import made

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.references.hierarchical.box_sends import BoxStrategy
from synth_models.fabric.scheduling import repeated_turns
from synth_models.fabric.solution import Schedule

MACHINES: list[tuple[str, int, int, dict[str, Any]]] = [
    ("dgx-h100", 3, 2, {}),
    ("dgx-h100", 4, 2, {"ranks": "0-3,8-11,16-19,24-27"}),
    ("dgx-a100", 5, 1, {}),
    ("dgx-h100", 8, 1, {"leaf": 2, "oversubscription": 2}),
]


def in_rows(schedule: Schedule) -> list[Any]:
    """Piece, last link, start, what it does and its route of every transfer, in the order of the first two."""
    last = schedule.link[schedule.route_start[1:] - 1]
    order = np.lexsort((last, schedule.piece))
    first, end = schedule.route_start[:-1][order].tolist(), schedule.route_start[1:][order].tolist()
    routes = [tuple(schedule.link[a:b].tolist()) for a, b in zip(first, end, strict=True)]
    columns = (schedule.piece[order].tolist(), schedule.start[order].tolist(), schedule.adds[order].tolist(), routes)
    return [schedule.ticks_per_s, schedule.piece_bytes.tolist(), *columns]


@pytest.mark.long(after=4)
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("name", "boxes", "gates", "own"), MACHINES)
@pytest.mark.parametrize("count", [192, 211])
def test_as_by_timing_all_transfers(
    collective: str, name: str, boxes: int, gates: int, own: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """211 chunks leave a last piece that is smaller, and turns that are no whole number of periods."""
    instance = made(machine=name, boxes=boxes, collective=collective, bytes=2**30 + 8, **own)
    plan, calls = BoxStrategy(between="two trees", gates=gates), []
    repeated = repeated_turns.repeated

    def counted(*given: Any) -> Schedule:
        calls.append(given)
        return repeated(*given)

    monkeypatch.setattr(repeated_turns, "repeated", counted)
    long = hierarchical._made(instance, plan, count)
    assert long is not None
    assert len(calls) == 1
    monkeypatch.setattr(hierarchical, "of_many_turns", lambda *_: None)
    whole = hierarchical._made(instance, plan, count)
    assert whole is not None
    verdict = check_schedule(instance, long)
    assert verdict.faults == []
    assert verdict.value == check_schedule(instance, whole).value
    assert long.ends is not None
    assert float_above(Fraction(long.ends[1], long.ticks_per_s)) == verdict.value
    if collective == "broadcast":
        assert in_rows(long) == in_rows(whole)


def test_turns_that_are_not_alike_are_all_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with two gates: links between groups serve both trees in an order that has no period."""
    instance = made(machine="dgx-h100", boxes=8, collective="broadcast", bytes=2**30, leaf=2, oversubscription=2)
    monkeypatch.setattr(repeated_turns, "repeated", None)
    found = hierarchical._made(instance, BoxStrategy(between="two trees", gates=2), 192)
    assert found is not None
    assert check_schedule(instance, found).faults == []
