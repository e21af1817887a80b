"""Renumberings of tori: that they keep the patterns, join what they should, and leave bounds below every topology's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from models.harvest.bounds.test_bounds import made
from models.harvest.brute_force import optimum
from models.harvest.instances import stated

from synth.options import RunOptions
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.automorphisms import generators
from synth_models.harvest.bounds.interval import Patterns
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs import candidates


def torus(sides: str, gpus: int, ports: int) -> HarvestInstance:
    return made("swing_torus", gpus, ports, 1e-3, torus=sides)


def turned(sides: tuple[int, ...]) -> int:
    """Kinds of distance on a torus, whichever axis of equal sides it is along and whichever way."""
    found = set()
    for distance in np.ndindex(*sides):
        ways = [(side, min(along, side - along)) for side, along in zip(sides, distance, strict=True)]
        found.add(tuple(sorted(ways)))
    return len(found)


@pytest.mark.parametrize(
    ("sides", "ports"),
    [((2, 8), 4), ((4, 4), 4), ((8, 8), 4), ((2, 32), 4), ((4, 16), 4), ((2, 4, 8), 6), ((2, 2, 4), 6)],
)
def test_a_torus_of_any_sides_looks_the_same_from_every_gpu(sides: tuple[int, ...], ports: int) -> None:
    gpus = int(np.prod(sides))
    shared = Patterns(torus("x".join(map(str, sides)), gpus, ports), by_bytes=True)
    for moved in shared.group:
        assert sorted(moved.tolist()) == list(range(gpus))
        for rows in shared.pairs:
            pairs = {(u, v, volume) for u, v, volume in rows.tolist()}
            assert {(int(moved[u]), int(moved[v]), volume) for u, v, volume in pairs} == pairs
    assert shared.prices.alike
    assert shared.prices.count <= gpus
    if len(set(sides)) == 1:
        assert shared.prices.count == turned(sides)


def test_what_no_renumbering_keeps_is_left_apart() -> None:
    rows = np.array([[0, 1, 1], [1, 2, 2], [2, 3, 1]])
    assert generators([rows], 8) == []


@pytest.mark.long(after=2)
@pytest.mark.parametrize("cases", ["off", "on"])
@pytest.mark.parametrize(("sides", "gpus", "ports"), [("2x4", 8, 4), ("2x8", 16, 4), ("4x4", 16, 4), ("2x2x4", 16, 6)])
def test_bounds_on_tori_are_verified_and_below_schedules(sides: str, gpus: int, ports: int, cases: str) -> None:
    instance = torus(sides, gpus, ports)
    value = check_schedule(instance, candidates.solve(instance, RunOptions()).solution).value
    outcome = bound_method.solve(instance, RunOptions(10.0, method={"rates": "on", "cases": cases}))
    assert outcome.bound is not None
    assert value is not None
    stored = json.loads(json.dumps(outcome.certificate))
    assert check_bound(instance, outcome.bound, stored) == []
    assert check_bound(instance, outcome.bound * (1 + 1e-9), stored)
    assert outcome.bound <= value * (1 + 1e-12)


@pytest.mark.parametrize("cases", ["off", "on"])
@pytest.mark.parametrize("delay", [0.5, 100.0])
def test_four_gpus_in_a_square_never_above_brute_force(cases: str, delay: float) -> None:
    """Pairs along both axes, then across: the axes may be exchanged and turned round."""
    along = [[u, u ^ bit] for bit in (1, 2) for u in range(4)]
    across = [[u, u ^ 3] for u in range(4)]
    steps = [{"bytes": size, "pairs": pairs} for size, pairs in ((1e11, along), (4e11, across), (1e10, along))]
    times = {"alpha": 0.25, "delta": 1.0, "latency": "on", "reconfiguration_delay": delay}
    raw = {"gpus": 4, "ports": 2, "port_bandwidth": 1e11, "steps": steps, **times}
    outcome = bound_method.solve(stated(**raw), RunOptions(10.0, method={"rates": "on", "cases": cases}))
    assert outcome.bound is not None
    assert check_bound(stated(**raw), outcome.bound, outcome.certificate or {}) == []
    assert outcome.bound <= optimum(raw) * (1 + 1e-12)
