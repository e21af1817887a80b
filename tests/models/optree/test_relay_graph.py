"""The graph of leaps and fills: its degrees, the ways it gives, and the theorem on every small ring."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from examples import some, some_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models.optree.brute_force import fewest_steps
from models.optree.cases import followed, limited, options, replayed, ring

from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.leaps import leaps_suffice
from synth_models.optree.references.relay import relay
from synth_models.optree.references.relay_graph import fills, graph_pattern
from synth_models.optree.references.relay_two import odd_ring
from synth_models.optree.references.relay_wavelengths import blocks_needed, colour_rotations


@pytest.mark.parametrize("wavelengths", range(2, 24))
def test_every_degree_is_one_less_than_the_wavelengths(wavelengths: int) -> None:
    """Simple, no partners joined, a loop counted twice: as the theorem wants it, from the fewest steps on."""
    for steps in range(max(wavelengths // 2, 2), wavelengths + 4):
        edges = fills(steps, wavelengths)
        assert len({frozenset(edge) for edge in edges}) == len(edges)
        assert len(edges) == (wavelengths - 1) * steps
        degrees = Counter(point for edge in edges for point in edge)
        assert all(degrees[point] == wavelengths - 1 for point in range(2 * steps))
        assert all(p == q or p % steps < q % steps for p, q in edges)


@pytest.mark.long
@pytest.mark.parametrize(("wavelengths", "part"), some_of(product(range(1, 13), range(2))))
def test_the_theorem_on_every_small_ring(wavelengths: int, part: int) -> None:
    """The plain replay's count is ``ceil((N-1)/(w+1))`` wherever the theorem says so; elsewhere no ring is claimed."""
    step = 1 if wavelengths < 4 else 3
    for nodes in range(3 + part * step, 61, 2 * step):
        steps = -(-(nodes - 1) // (wavelengths + 1))
        within = 2 * steps >= wavelengths - 1 and (wavelengths != 2 or nodes % 6 != 1)
        assert leaps_suffice(nodes, wavelengths, nodes - 1) == within
        if within:
            instance = ring(nodes, wavelengths)
            assert replayed(instance, relay(instance, options())) == steps
            assert lower_bound(instance, options())[0] == steps


@pytest.mark.parametrize(("nodes", "wavelengths"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3)])
def test_the_theorem_against_exhaustive_search(nodes: int, wavelengths: int) -> None:
    assert leaps_suffice(nodes, wavelengths, nodes - 1)
    assert fewest_steps(nodes, wavelengths, nodes - 1) == relay(ring(nodes, wavelengths), options()).steps


@settings(derandomize=True, max_examples=some(150), deadline=None)
@given(st.integers(3, 40), st.data())
def test_ways_of_any_size(wavelengths: int, data: st.DataObject) -> None:
    """One item's way, followed here: from holders only, to every node once, at most ``w`` hops a step and direction,
    and at most one circuit among them that has more than one hop, which fits in blocks: so all get wavelengths."""
    steps = data.draw(st.integers(max(1, wavelengths // 2), wavelengths + 20))
    nodes = (wavelengths + 1) * steps + 1 - data.draw(st.integers(0, wavelengths))
    assume(nodes - 1 >= 2 * steps)
    pattern = graph_pattern(nodes, wavelengths, nodes - 1, nodes)
    assert pattern is not None
    rows = pattern.whole()
    assert followed(rows, nodes, wavelengths) == steps == -(-(nodes - 1) // (wavelengths + 1))
    long: Counter[tuple[int, bool]] = Counter()
    for step, _, _, hops, clockwise in rows:
        long[step, clockwise] += hops > 1
        assert hops == 1 or blocks_needed(nodes, hops) <= wavelengths
    assert max(long.values()) <= 1


@settings(derandomize=True, max_examples=some(40), deadline=None)
@given(st.integers(2, 70), st.integers(1, 14), st.integers(1, 14))
def test_short_circuits_only(nodes: int, wavelengths: int, hops: int) -> None:
    """Under a budget of a few hops the ways keep to it, and relay never needs more steps than they."""
    instance = limited(nodes, wavelengths, hops)
    pattern = graph_pattern(nodes, wavelengths, instance.max_hops, nodes // 2)
    if pattern is not None:
        assert all(row[3] <= hops for row in pattern.whole())
        steps = replayed(instance, relay(instance, options()))
        assert steps is not None
        assert steps <= pattern.steps


def test_the_loss_budget_by_hand() -> None:
    """64 nodes, 8 wavelengths: 63 = 9 * 7, so 7 steps, and no circuit has more than 7 hops."""
    instance = limited(64, 8, 7)
    circuits = relay(instance, options())
    assert replayed(instance, circuits) == 7
    assert int(circuits.hops(instance).max()) == 7


@pytest.mark.parametrize(("nodes", "wavelengths", "steps"), [(782, 10, 71), (4096, 64, 63)])
def test_every_hop_is_used(nodes: int, wavelengths: int, steps: int) -> None:
    """Where ``N - 1 = (w+1) T`` one item uses all ``2w`` hops of all ``T`` steps, so no wavelength ever rests.
    781 = 11 * 71; 4095 = 65 * 63."""
    pattern = graph_pattern(nodes, wavelengths, nodes - 1, nodes)
    assert pattern is not None
    assert pattern.steps == steps
    assert sum(row[3] for row in pattern.whole()) == 2 * wavelengths * steps


def test_too_few_steps_for_the_theorem() -> None:
    """1025 nodes, 63 wavelengths: T = 1024 / 64 = 16, but 32 < 62; the graphs start at 62 / 2 = 31 steps."""
    assert not leaps_suffice(1025, 63, 1024)
    pattern = graph_pattern(1025, 63, 1024, 1025)
    assert pattern is not None
    assert pattern.steps == 31


@pytest.mark.slow
def test_4096_nodes() -> None:
    instance = ring(4096, 64)
    verdict = check_solution(instance, relay(instance, options()))
    assert verdict.ok
    assert verdict.value == lower_bound(instance, options())[0] == 63


@pytest.mark.long
@settings(derandomize=True, max_examples=some(60), deadline=None)
@given(st.integers(2, 90), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 4))
def test_wavelengths_of_all_rotations(nodes: int, hops: list[int], spare: int) -> None:
    """Whatever is coloured is coloured rightly: followed link by link, in range, none twice."""
    hops = [min(length, nodes - 1) for length in hops]
    wavelengths = sum(hops) + spare
    colours = colour_rotations(nodes, hops, wavelengths, 0)
    assume(colours is not None)
    assert colours is not None
    taken = np.zeros((nodes, wavelengths), dtype=bool)
    for i, length in enumerate(hops):
        for v in range(nodes):
            for back in range(length):
                assert not taken[(v + back) % nodes, colours[i, v]]
                taken[(v + back) % nodes, colours[i, v]] = True


@pytest.mark.parametrize("nodes", [*range(3, 40, 2), 101])
def test_two_wavelengths_on_odd_rings(nodes: int) -> None:
    """A third of the nodes, rounded up: the leap bound, or one more where 6 divides ``N - 1`` (7 nodes: 3 for 2)."""
    steps = replayed(ring(nodes, 2), odd_ring(nodes))
    assert steps == relay(ring(nodes, 2), options()).steps == -(-nodes // 3)
    assert steps == -(-(nodes - 1) // 3) + (nodes % 6 == 1)
    assert relay(limited(nodes, 2, 1), options()).steps == nodes // 2


def test_groups_by_hand() -> None:
    """96 nodes: 42 + 5 + 1 = 48 and 31 + 15 + 2 = 48 divide 96, 22 + 10 = 32 does, too: 128 wavelengths for 128 hops,
    where one arc of 128 hops does not even fit round the ring."""
    hops = [42, 5, 1, 31, 15, 2, 22, 10]
    assert sum(hops) == 128
    assert colour_rotations(96, hops, 128, 0) is not None
