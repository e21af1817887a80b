"""The bound of flows over time: never above the optimum, and the optimum where ranks are few."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from models.fabric.never_above import least_above
from models.fabric.small_machines import Link, machine

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.flow_moments import Arcs, _within, demands_of, strongest_moments
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
TO_ALL = ("broadcast", "reduce", "allreduce", "allgather", "reduce_scatter", "alltoall", "gather", "scatter")


def equally_far(chooser: random.Random) -> FabricInstance:
    """Two or three ranks, joined directly or over a switch in the middle."""
    while True:
        ranks, star = chooser.choice([2, 3, 3]), chooser.random() < 0.3
        speeds = chooser.choice([[1.0], [1.0, 2.0]])
        links: list[Link]
        if star:
            links = [(v, ranks, chooser.choice(speeds), 0.5) for v in range(ranks)]
            links += [(ranks, v, chooser.choice(speeds), 0.5) for v in range(ranks)]
        else:
            pairs = [(u, v) for u in range(ranks) for v in range(ranks) if u != v]
            drawn = chooser.sample(pairs, chooser.randint(min(ranks, len(pairs)), len(pairs)))
            links = [(u, v, chooser.choice(speeds), 1.0) for u, v in drawn]
        collective = chooser.choice(TO_ALL)
        size = chooser.choice([1, 2, 3]) if collective in TO_ALL[:3] else ranks * chooser.choice([1, 2])
        try:
            return machine(ranks + star, links, [ranks] if star else [], collective=collective, bytes=size)
        except ValueError:
            continue


def alone(instance: FabricInstance) -> Proven | None:
    """The bound without the help of any other."""
    links = Links.of(instance)
    arcs = Arcs.of(links)
    assert arcs is not None
    for hops in range(2, 12):
        found = _within(links, arcs, demands_of(links), hops)
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_is_faster(seed: int) -> None:
    """Whole blocks and pieces of a byte. Where pieces are bytes, it is often the optimum but for a tick."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(20):
        instance = equally_far(chooser)
        found = alone(instance)
        if found is None:
            continue
        least = least_above(instance, found, chooser)
        if least is None:
            continue
        seen["tight" if least - found.seconds < Fraction(1, 1000) else "below"] += 1
    assert seen["tight"] >= 5


def test_two_ranks_over_a_link() -> None:
    """5 bytes at 1 byte/s with 1 s of latency: 6 s, but for the tick by which it is less."""
    found = alone(machine(2, [(0, 1, 1.0, 1.0), (1, 0, 1.0, 1.0)], collective="broadcast", bytes=5))
    assert found is not None
    assert 6 - Fraction(1, 10**5) < found.seconds < 6


def test_it_is_the_strongest_on_machines_that_exist() -> None:
    """A broadcast of 64 KiB in a DGX A100, T = 2 a + x. What leaves the root until x leaves once at least and may be
    passed on, all else leaves 7 times until x + a: 7 (M - b x) + b x = b (x + a), so x = (7 M / b - a) / 7."""
    instance = synth.make("fabric", machine="dgx-a100", collective="broadcast", bytes="64KiB")
    found = strongest(instance, RunOptions())
    assert found.argument == "moments"
    x = (7 * 65536 / 300e9 - 0.7e-6) / 7
    assert abs(float(found.seconds) - (1.4e-6 + x)) < 1e-12
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []


def test_where_it_says_nothing() -> None:
    """Groups, several latencies, two switches, switches that copy, and machines that are too large."""
    two = [(0, 1, 1.0, 1.0), (1, 0, 1.0, 1.0)]
    grouped = machine(2, [(0, 1, 1.0, 1.0, "g"), (1, 0, 1.0, 1.0, "g")], bytes=2)
    unlike = machine(2, [(0, 1, 1.0, 1.0), (1, 0, 1.0, 2.0)], bytes=2)
    still = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=2)
    for instance in (grouped, unlike, still):
        assert Arcs.of(Links.of(instance)) is None
        assert strongest_moments(Links.of(instance), lambda: True, NOTHING) is NOTHING
    star: list[Link] = [(v, 2, 1.0, 0.5) for v in range(2)] + [(2, v, 1.0, 0.5) for v in range(2)]
    copying = machine(3, star, [2], bytes=2, switching={"multicast": True})
    assert strongest_moments(Links.of(copying), lambda: True, NOTHING) is NOTHING
    found = alone(machine(2, two, bytes=2))
    assert found is not None
    assert any("switches copy" in fault for fault in check_bound(copying, 1.0, found.certificate()))
