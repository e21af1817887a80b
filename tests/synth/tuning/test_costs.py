"""Which limit of an executor costs a schedule its time: limits made tight one by one are named, and no others."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.exchange import forms
from synth.exchange.forms import Lowered, limits_in
from synth.exchange.record_export import transfers_of
from synth.tuning import costs
from synth.tuning.costs import costing, tolerated

KEYS = {"network": "full", "nodes": 6, "bandwidth": "25GB/s", "latency": "0.7us"}


class Faked:
    """Stands for :class:`Lowered`: a schedule runs within the time once all limits that bind it are lifted."""

    binds: frozenset[str]

    def __init__(self, transfers: object, form: str, lifted: Any = ()) -> None:
        self.lifted = frozenset(lifted)

    def programs(self, spreads: object = None) -> list[Faked]:
        return [self]

    def seconds(self, instance: object) -> float:
        return 1.0 if self.lifted >= self.binds else 2.0

    def waiting_for_data_alone(self, size: int) -> object:
        return None


@pytest.mark.parametrize("form", ["mscclpp", "msccl:azure"])
def test_what_binds_is_what_is_named(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = limits_in(form)
    monkeypatch.setattr(costs, "Lowered", Faked)
    monkeypatch.setattr(costs, "in_seconds", lambda *_: 1.0)
    for binds in chain.from_iterable(combinations(names, count) for count in range(len(names) + 1)):
        monkeypatch.setattr(Faked, "binds", frozenset(binds), raising=False)
        said = costing(None, form, None, 1.5)  # type: ignore[arg-type]
        assert said == " and ".join(names[name] for name in binds)
    monkeypatch.setattr(Faked, "binds", frozenset({"no limit that can be lifted"}))
    assert costing(None, form, None, 1.5) == costs.BLOCKS  # type: ignore[arg-type]
    monkeypatch.setattr(costs, "in_seconds", lambda instance, moves: 1.0 if moves(1) == "moves" else 2.0)
    assert costing("moves", form, None, 1.5) == costs.LINKS  # type: ignore[arg-type]
    monkeypatch.setattr(costs, "in_seconds", lambda *_: 2.0)
    assert costing(None, form, None, 1.5) == costs.READY  # type: ignore[arg-type]
    assert costing(None, form, None, 2.0) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["operations", "channels"])
def test_a_limit_made_tight_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A direct allgather whose pieces need more of one thing than there is: only that one is named."""
    asked = synth.make("fabric", **KEYS, collective="allgather", bytes=6 * 2**20)
    transfers = transfers_of(synth.solve(asked, "direct"))
    least = min(program.seconds(asked) for program in Lowered(transfers, "mscclpp").programs())
    monkeypatch.setattr(forms, "EXECUTOR", replace(forms.EXECUTOR, **{name: 2}))
    tight = Lowered(transfers, "mscclpp")
    assert list(tight.programs()) == []
    assert {"operations": "MAX_OPERATION = 2", "channels": "MAX_CHANNEL = 2"}[name] in tight.refused
    assert costing(transfers, "mscclpp", asked, least) == limits_in("mscclpp")[name]


def test_small_sizes_may_cost_more() -> None:
    assert (tolerated(2**20), tolerated(2**30)) == (1.15, 1.05)
