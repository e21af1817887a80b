"""Every search over a count begins where the family's bounds end: the first horizon that a solver gets is the bound."""

from __future__ import annotations

import math
from typing import Any

import pytest

import synth
from synth.api import method_options
from synth.family import get_family
from synth.options import RunOptions
from synth.solvers import horizon
from synth.solvers.horizon import Decision

XTREE = {"network": "mesh", "rows": 3, "cols": 3, "chunks": 2}
SEARCHES: list[tuple[str, dict[str, Any], str, dict[str, str]]] = [
    ("xtree", XTREE, "ilp", {"warm_start": "off", "relaxation": "off"}),
    ("xtree", XTREE, "cpsat", {"warm_start": "off", "relaxation": "off"}),
    ("xtree", {"network": "torus", "rows": 3, "cols": 4}, "cpsat", {"warm_start": "off"}),
    ("optree", {"nodes": 12, "wavelengths": 2}, "time_expanded", {"warm_start": "off"}),
    ("optree", {"nodes": 9, "wavelengths": 1}, "time_expanded", {"warm_start": "off"}),
    ("mlfm", {"d": 3, "servers": 2, "layers": 3, "columns": 2}, "cpsat", {}),
    ("mlfm", {"d": 3, "servers": 2, "layers": 3, "columns": 2}, "cpsat", {"decompose": "off"}),
    ("mlfm", {"d": 3, "servers": 2, "layers": 3, "columns": 2}, "ilp", {}),
]


class Asked(Exception):
    """The first question to a solver, which is not answered."""


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The horizons of which a program is asked; the first ends the search."""
    asked: list[int] = []

    def ask(search: Any, count: int) -> Decision:
        asked.append(count)
        raise Asked

    monkeypatch.setattr(horizon._Search, "ask", ask)
    return asked


def run(family: str, instance: Any, method: str, texts: dict[str, str]) -> None:
    known = get_family(family)
    solver, own = method_options(known, known.method(method), None, texts)
    options = RunOptions(time_limit_s=60.0, solver=solver, method=own).started_now()
    with pytest.raises(Asked):
        known.method(method).load()(instance, options)


@pytest.mark.parametrize(("family", "keys", "method", "texts"), SEARCHES, ids=str)
def test_the_first_horizon_is_the_bound(
    family: str, keys: dict[str, Any], method: str, texts: dict[str, str], first: list[int]
) -> None:
    instance = synth.make(family, **keys)
    proven = get_family(family).method("bound").load()(instance, RunOptions(time_limit_s=60.0).started_now())
    run(family, instance, method, texts)
    assert proven.bound is not None
    assert first == [math.ceil(proven.bound)]


@pytest.mark.parametrize("tau", ["fast", "slow", "0.0005"])
@pytest.mark.parametrize(
    "keys",
    [
        {"machine": "dgx1", "collective": "alltoall", "bytes": 10**9},
        {"network": "mesh", "rows": 3, "cols": 3, "collective": "alltoall", "bytes": 9 * 10**8, "latency": 0},
        {"machine": "dgx1", "collective": "allgather", "bytes": 10**9},
    ],
    ids=str,
)
def test_epochs_begin_where_bandwidth_without_latency_ends(keys: dict[str, Any], tau: str, first: list[int]) -> None:
    """An epoch's capacities are those of its seconds: where a bound needs no latency, its seconds are epochs, rounded
    up. For DGX-1's all-to-all of 1 GB it is 13.33 ms: 6 epochs of 2.5 ms, where cuts prove 3."""
    from synth_models.fabric.instance import FabricInstance
    from synth_peers.teccl.programs.grid import epoch_seconds

    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    proven = get_family("fabric").method("bound").load()(instance, RunOptions(time_limit_s=60.0).started_now())
    run("fabric", instance, "epochs", {"tau": tau, "start": "off"})
    assert first[0] >= math.ceil(proven.bound / float(epoch_seconds(instance, tau)) * (1 - 1e-9))
