"""The least load that whole links allow on any routes: by hand, against all topologies, and the check's own count."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from models.harvest import brute_force
from models.harvest.brute_force import random_one_to_many
from models.harvest.instances import made, stated

from synth.options import RunOptions
from synth_models.harvest.bounds.sequences import single_steps
from synth_models.harvest.bounds.sequences import solve as bound
from synth_models.harvest.check.certificate_rows import whole_routes_load
from synth_models.harvest.check.certificates import _with_parts, check_bound
from synth_models.harvest.parts.demands import pattern_degree, routed_load

CLOSE = Fraction(1, 1 << 30)


def shifts(gpus, *by):
    everyone = np.arange(gpus, dtype=np.int64)
    return np.concatenate([np.stack([everyone, (everyone + d) % gpus, np.ones_like(everyone)], axis=1) for d in by])


def test_three_partners_on_four_ports():
    """Two links to one partner and one to each other carry 1 + u + u directly at load u, the rest, 2 - 2u, makes two
    hops: 1 + 2u + 2 (2 - 2u) = 5 - 2u <= 4u, so u >= 5/6 (the ports alone say 3/4, one hop takes 1)."""
    found = routed_load(shifts(16, 1, 2, 3), 4, 16)
    assert Fraction(5, 6) * (1 - CLOSE) <= found <= Fraction(5, 6)
    step = made(algorithm="bruck_alltoall", gpus=16, radix=4, sends=3, ports=4, message_bytes=4194304)
    half = 5e-7 + 2 * 5e-7 + 5 / 6 * 1048576 / 1e11
    outcome = single_steps(step)
    assert outcome.bound == pytest.approx(2 * half, rel=1e-8)  # on one topology, without a change
    assert check_bound(step, outcome.bound, outcome.certificate) == []


def test_one_partner_needs_no_more_than_its_ports():
    for ports in (1, 2, 3):
        assert routed_load(shifts(8, 3), ports, 8) == Fraction(1, ports)


def test_two_partners_on_three_ports():
    """Two links to one partner, one to the other: 1 + u directly, 1 - u by two hops: 3 - u <= 3u, u >= 3/4 > 2/3."""
    found = routed_load(shifts(8, 1, 2), 3, 8)
    assert Fraction(3, 4) * (1 - CLOSE) <= found <= Fraction(3, 4)


@pytest.mark.parametrize("part", range(2))
def test_no_topology_has_a_smaller_load(part):
    for number in range(6 * part, 6 * part + 6):
        raw = random_one_to_many(number, sizes=(3,))
        instance = stated(**raw)
        for rows in instance.demands:
            pairs = tuple(map(tuple, rows.tolist()))
            least = min(
                brute_force.least_load(links, pairs, instance.gpus - 1)
                for links in brute_force.topologies(instance.gpus, instance.ports)
            )
            found = float(routed_load(rows, instance.ports, instance.gpus))
            assert pattern_degree(rows) / instance.ports * (1 - 1e-12) <= found <= least * (1 + 1e-9), raw


def test_it_is_where_the_hops_fit_on_the_links():
    """Against all ways to share ports out among partners, on dense and sparse demands, with and without ties:
    just below the stated load the hops do not fit, just above they do (for senders and for receivers)."""
    random = np.random.default_rng(3)

    def directly(sent, ports, load):
        ways = product(range(ports + 1), repeat=len(sent))
        return max(
            sum(min(Fraction(v), links * load) for v, links in zip(sent, way, strict=True))
            for way in ways
            if sum(way) <= ports
        )

    def fit(rows, ports, gpus, load):
        for side in (0, 1):
            sent = [[v for *ends, v in rows if ends[side] == u] for u in range(gpus)]
            hops = sum(2 * sum(one) - directly(one, ports, load) for one in sent if one)
            if hops > ports * gpus * load or any(sum(one) > ports * load for one in sent):
                return False
        return True

    for _ in range(60):
        gpus, ports, largest = random.integers(2, 6), int(random.integers(1, 5)), random.choice([1, 2, 5, 1 << 40])
        rows = [
            [u, v, int(random.integers(1, largest + 1))]
            for u in range(gpus)
            for v in range(gpus)
            if u != v and random.random() < 0.7
        ]
        if not rows:
            continue
        found = whole_routes_load(rows, ports, int(gpus))
        assert not fit(rows, ports, int(gpus), found * (1 - CLOSE))
        assert fit(rows, ports, int(gpus), found * (1 + CLOSE))
        assert routed_load(np.array(rows), ports, int(gpus)) <= found


def test_the_check_counts_the_same():
    """By code of its own, to more digits: what a method states the check proves."""
    for number in range(40):
        instance = stated(**random_one_to_many(number))
        for rows in instance.demands:
            ours = routed_load(rows, instance.ports, instance.gpus)
            theirs = whole_routes_load(rows.tolist(), instance.ports, instance.gpus)
            assert ours <= theirs <= ours * (1 + CLOSE)


def test_many_steps_are_bounded_by_their_short_intervals():
    """Direct all-to-all: with more patterns than the program over all takes, all neighbours are examined; the bound is
    verified, and better than that of single steps."""
    instance = made(algorithm="alltoall_direct", gpus=20, ports=1, message_bytes=4194304)
    outcome = bound(instance, RunOptions(time_limit_s=30))
    alone = single_steps(instance)
    assert outcome.bound is not None
    assert alone.bound is not None
    assert outcome.bound > 2 * alone.bound
    assert check_bound(instance, outcome.bound, outcome.certificate) == []


@pytest.mark.parametrize("unit", [1, 1 << 58, 1 << 61, 1 << 70])
def test_sums_over_parts_have_no_limit(unit):
    """What the check adds up is exact also beyond machine words: against every way of cutting."""
    random = np.random.default_rng(2)
    steps = 6
    least = np.zeros((steps, steps), dtype=object)
    for a in range(steps):
        for b in range(a, steps):
            least[a, b] = int(random.integers(0, 4)) * unit

    def best(a, b):
        return max([least[a, b], *(best(a, c) + best(c + 1, b) for c in range(a, b))])

    found = _with_parts(least.copy())
    assert all(int(found[a, b]) == best(a, b) for a in range(steps) for b in range(a, steps))
