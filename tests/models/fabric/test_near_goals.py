"""Bounds by the last transfer from afar: below every schedule, what the check derives, and not to be forged."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from models.fabric.never_above import least_above
from models.fabric.small_machines import machine
from pydantic import ValidationError

import synth
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.near_goals import strongest_near_goals
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
COLLECTIVES = ("broadcast", "reduce", "allreduce")
DRAGONFLY = {"network": "dragonfly", "groups": 9, "routers": 4, "hosts": 2}


def tiny(chooser: random.Random) -> FabricInstance:
    """Three ranks in groups, each behind a switch or joined by links; the groups' switches, or a rank of each, in a row
    or all to all; one link may be missing."""
    groups = chooser.choice([[[0], [1, 2]], [[0, 1], [2]], [[0], [1], [2]]])
    ranks = sum(map(len, groups))
    bandwidths, latencies = chooser.choice([[1.0], [1.0, 2.0]]), [0.0, 1.0, 2.0]
    links: list[tuple[int, int, float, float]] = []

    def join(u: int, v: int, latency: float) -> None:
        links.extend((a, b, chooser.choice(bandwidths), latency) for a, b in ((u, v), (v, u)))

    gates, switches = [], []
    near, far = sorted(chooser.choices(latencies, k=2))
    for number, group in enumerate(groups):
        if chooser.random() < 0.6:
            gates.append(ranks + len(switches))
            switches.append(gates[-1])
            for v in group:
                join(v, gates[-1], near)
        else:
            gates.append(group[number % len(group)])
            if len(group) > 1:
                join(*group, near)
    for k in range(len(groups)):
        for other in range(k + 1, len(groups) if chooser.random() < 0.5 else min(k + 2, len(groups))):
            join(gates[k], gates[other], far)
    if len(links) > 8 and chooser.random() < 0.3:
        links.pop(chooser.randrange(len(links)))
    own = {"collective": chooser.choice(COLLECTIVES), "bytes": chooser.choice([1, 2])}
    if own["collective"] != "allreduce":
        own["root"] = chooser.randrange(ranks)
    try:
        return machine(ranks + len(switches), links, switches, **own)
    except ValidationError:  # without that link it is parted
        return tiny(chooser)


def found_for(instance: FabricInstance) -> Proven:
    return strongest_near_goals(Links.of(instance), lambda: True, NOTHING)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_is_faster(seed: int) -> None:
    """Against all schedules of tiny machines of two levels, of whole blocks or single bytes."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(30):
        instance = tiny(chooser)
        found = found_for(instance)
        if found is NOTHING:
            seen["nothing"] += 1
            continue
        least = least_above(instance, found, chooser)
        seen["searched"] += least is not None
        seen["tight"] += least == found.seconds
        seen["several"] += found.certificate()["reach"] > 0
    assert seen["searched"] >= 15, seen
    assert seen["tight"] >= 2, seen
    assert seen["several"] >= 1, seen


@pytest.mark.long
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("size", [72, 720])
def test_every_reach_proves_what_the_check_derives(collective: str, size: int) -> None:
    """The method's arithmetic is the check's, and no reach proves twice as much."""
    instance = synth.make("fabric", **DRAGONFLY, collective=collective, bytes=size)
    assert isinstance(instance, FabricInstance)
    found = found_for(instance)
    good = dict(found.certificate())
    assert found.seconds > Fraction(6, 10**8)  # the farthest rank is 100 ns away, others are near
    for reach in (0, 2, 3, 4, 5):
        for seconds, holds in ((found.seconds, reach == good["reach"]), (found.seconds * 2, False)):
            stated = float_below(seconds)
            faults = check_bound(instance, stated, good | {"reach": reach})
            assert not holds or faults == []
            assert seconds == found.seconds or faults != []


def test_forged_certificates() -> None:
    instance = synth.make("fabric", **DRAGONFLY, collective="broadcast", bytes=72)
    assert isinstance(instance, FabricInstance)
    found = found_for(instance)
    bound, good = float_below(found.seconds), dict(found.certificate())
    assert check_bound(instance, bound, good) == []
    odd: list[dict[str, Any]] = [{"root": value} for value in (1, -1, 10**9, None, 0.5, True)]
    odd += [{"reach": value} for value in (-1, 2**62, None, "3")] + [{"backwards": value} for value in (1, 2, None)]
    for forged in odd:
        assert check_bound(instance, bound, good | forged) != [], forged
    for missing in ("root", "reach", "backwards"):
        assert check_bound(instance, bound, {key: value for key, value in good.items() if key != missing}) != []
    for own in ({"collective": "allgather"}, {"collective": "broadcast", "multicast": True}):
        assert check_bound(synth.make("fabric", **DRAGONFLY, bytes=72, **own), bound, good) != []
