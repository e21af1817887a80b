"""Tori and meshes: rows then columns, relay and the exact program against brute force and counting by hand."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.cases import TORUS, grid, options, replayed, ring
from models.optree.grid_brute_force import fewest_steps

import synth
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.certificates import check_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.passing_on import passing_on
from synth_models.optree.parts.radices import best_radices, count_steps
from synth_models.optree.programs.time_expanded.method import decide
from synth_models.optree.references.grid_relay import grid_relay, unfold
from synth_models.optree.references.grid_stages import best_phases, circuits_of
from synth_models.optree.solution import Circuits

TINY = [
    ((3, 3), TORUS, 1, 9),
    ((3, 3), TORUS, 1, 1),
    ((2, 2), (False, False), 1, 9),
    ((2, 2), TORUS, 1, 9),
    ((2, 2), TORUS, 2, 9),
    ((2, 3), TORUS, 1, 9),
    ((2, 3), (False, True), 1, 9),
    ((2, 3), (False, False), 1, 9),
    ((3, 2), (False, False), 2, 9),
    ((3, 2), (False, False), 2, 1),
    ((3,), (False,), 1, 1),
    ((4,), (False,), 1, 9),
    ((4,), (False,), 2, 1),
]


@pytest.mark.long(after=7)
@pytest.mark.parametrize(("sides", "rings", "wavelengths", "hops"), TINY)
def test_against_brute_force(sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int, hops: int) -> None:
    """bound <= optimum = the program's <= relay <= optree, every schedule replayed."""
    instance = grid(sides, rings, wavelengths, hops)
    best = fewest_steps(sides, rings, wavelengths, hops, 4)
    assert best is not None
    steps, _, certificate = lower_bound(instance, options())
    assert steps <= best
    assert check_bound(instance, steps, certificate) == []
    record = synth.solve(instance, "time_expanded", options={"warm_start": "off"})
    assert (record["termination"], record.value, record.bound) == ("optimal", best, best)
    relay = replayed(instance, grid_relay(instance, options()))
    assert relay is not None
    assert best <= relay
    if (phases := best_phases(instance)) is not None:
        optree = replayed(instance, circuits_of(instance, phases))
        assert optree is not None
        assert relay <= optree == sum(phase.steps for phase in phases)


def test_three_by_three_with_one_wavelength() -> None:
    """Brute force: 2 steps. Rows then columns: 1 for 3 nodes with an item, 3 for 3 nodes with 3 items."""
    instance = grid((3, 3), TORUS, 1)
    assert fewest_steps((3, 3), TORUS, 1, 2, 3) == 2
    assert replayed(instance, grid_relay(instance, options())) == 2
    assert [phase.steps for phase in best_phases(instance) or []] == [1, 3]


@pytest.mark.parametrize(
    ("sides", "rings", "wavelengths", "horizon"), [((2, 3), (False, False), 1, 2), ((5,), (False,), 1, 3)]
)
def test_the_program_refutes_one_step_less(
    sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int, horizon: int
) -> None:
    instance = grid(sides, rings, wavelengths)
    assert decide(instance, options(solver="cpsat"), horizon).answer == "infeasible"
    assert decide(instance, options(solver="cpsat"), horizon + 1).answer == "feasible"


def loads(nodes: int, radix: int, size: int, closed: bool) -> int:
    """Wavelengths of one item a node, circuit by circuit: the heaviest link of a full group of ``radix * size``
    positions; for stage 1 on a ring the hops of the shortest ways over the links."""
    if closed:
        hops = size * sum(min(d, radix - d) for d in range(1, radix))
        return -(-hops // 2)
    group = radix * size
    load = np.zeros((2, group), dtype=int)
    for item in range(nodes):
        digit, place = divmod(item % group, size)
        for target in range(radix):
            ends = sorted((digit * size + place, target * size + place))
            load[int(target < digit), ends[0] : ends[1]] += 1
    return int(load.max())


@cache
def counted(nodes: int, wavelengths: int, items: int, closed: bool) -> int:
    """The fewest steps of all chains of stages for nodes that hold ``items`` items each, one by one."""

    def inner(group: int) -> int:
        """Stages inside groups of ``group`` positions."""
        if group == 1:
            return 0
        return min(
            -(-items * loads(nodes, group // size, size, False) // wavelengths) + inner(size)
            for size in range(1, group)
            if group % size == 0
        )

    best = math.inf
    for size in range(1, nodes):
        groups = -(-nodes // size)
        first = loads(nodes, groups, size * items, True) if closed else items * loads(nodes, groups, size, False)
        best = min(best, -(-first // wavelengths) + inner(size))
    return int(best)


@settings(derandomize=True, max_examples=some(60), deadline=None)
@given(st.integers(2, 14), st.integers(1, 9), st.integers(1, 12), st.booleans())
def test_stages_for_several_items(nodes: int, wavelengths: int, items: int, closed: bool) -> None:
    """The dynamic program's plan has the steps of the best of all chains."""
    radices = best_radices(nodes, wavelengths, None, items, closed)
    assert radices is not None
    assert count_steps(nodes, wavelengths, radices, items, closed) == counted(nodes, wavelengths, items, closed)


@pytest.mark.parametrize(("side", "wavelengths"), [(3, 1), (4, 2), (5, 3), (8, 4), (12, 7), (32, 64)])
def test_a_square_torus(side: int, wavelengths: int) -> None:
    """Rows then columns: the ring's count for n nodes plus that for n nodes with n items; one after the other n + 1
    times the ring's count. Explicit circuits, replayed."""
    instance = grid((side, side), TORUS, wavelengths)
    one = synth.solve(ring(side, wavelengths), "optree").value
    shared, apart = synth.solve(instance, "optree"), synth.solve(instance, "optree", options={"sharing": "off"})
    assert shared.ok
    assert apart.ok
    assert apart.value == (side + 1) * one
    assert shared.value <= apart.value
    if side <= 12:
        assert one == counted(side, wavelengths, 1, True)
        assert shared.value == one + counted(side, wavelengths, side, True)


@settings(derandomize=True, max_examples=some(40), deadline=None)
@given(st.lists(st.tuples(st.integers(2, 6), st.booleans()), min_size=1, max_size=3), st.integers(1, 6), st.booleans())
def test_any_grid_dimension_by_dimension(shape: list[tuple[int, bool]], wavelengths: int, sharing: bool) -> None:
    """All orders are considered, the best one is counted as it is replayed."""
    if shape[0][1] and len(shape) == 1:
        shape = [(shape[0][0], False)]
    instance = grid(tuple(n for n, _ in shape), tuple(kind for _, kind in shape), wavelengths)
    phases = best_phases(instance, sharing)
    assert phases is not None
    circuits = circuits_of(instance, phases)
    assert check_solution(instance, circuits).value == sum(phase.steps for phase in phases)
    assert len(circuits) == instance.nodes * (instance.nodes - 1)
    if instance.nodes <= 36:
        replayed(instance, circuits)
    if sharing and len(shape) == 2:
        (m, a), (n, b) = shape
        orders = [((m, a), (n, b)), ((n, b), (m, a))]
        fewest = min(counted(x, wavelengths, 1, p) + counted(y, wavelengths, x, q) for (x, p), (y, q) in orders)
        assert sum(phase.steps for phase in phases) == fewest


def test_radices_belong_to_one_ring() -> None:
    record = synth.solve(grid((4, 4), TORUS, 1), "optree", options={"radices": "4,4"})
    assert record["termination"] == "unsupported"
    assert "every dimension takes its best ones" in record["message"]


@settings(derandomize=True, max_examples=some(30), deadline=None)
@given(
    st.lists(st.tuples(st.integers(2, 6), st.booleans()), min_size=1, max_size=3),
    st.integers(1, 8),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_relay_on_any_grid(shape: list[tuple[int, bool]], wavelengths: int, hops: int | None) -> None:
    """bound <= relay <= optree; circuits keep to the budget; the certificate is verified."""
    if shape[0][1] and len(shape) == 1:
        shape = [(shape[0][0], False)]
    instance = grid(tuple(n for n, _ in shape), tuple(kind for _, kind in shape), wavelengths, hops)
    steps, _, certificate = lower_bound(instance, options())
    assert check_bound(instance, steps, certificate) == []
    circuits = grid_relay(instance, options())
    verdict = check_solution(instance, circuits)
    assert verdict.ok, verdict.faults
    assert verdict.value is not None
    assert steps <= verdict.value
    if instance.nodes <= 36:
        assert replayed(instance, circuits) == verdict.value
    phases = best_phases(instance)
    if phases is not None:
        assert verdict.value <= sum(phase.steps for phase in phases)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sides", "rings", "wavelengths"), [((8, 8), TORUS, 4), ((4, 4, 4), (True,) * 3, 4), ((4, 4), (False, False), 2)]
)
def test_relay_meets_the_bound(sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int) -> None:
    instance = grid(sides, rings, wavelengths)
    assert grid_relay(instance, options()).steps == lower_bound(instance, options())[0]


def test_more_wavelengths_than_anybody_needs() -> None:
    """A million of them: a circuit per dimension and item, 2 steps on a torus."""
    for rings in (TORUS, (False, False)):
        instance = grid((5, 6), rings, 10**6)
        assert replayed(instance, grid_relay(instance, options())) == 2


@pytest.mark.parametrize("side", range(2, 12))
def test_a_folded_ring_lies_within_its_line(side: int) -> None:
    """Hops of one direction of the ring use no link of the line twice in one direction, and the straight way between
    two nodes uses only links that the way round the ring uses."""
    places = unfold(grid((side,), (False,), 1).dimensions[0])
    assert sorted(places) == list(range(side))

    def links(a: int, b: int) -> set[tuple[int, int]]:
        turn = 1 if b > a else -1
        return {(v, v + turn) for v in range(a, b, turn)}

    for turn in (1, -1):
        hops = [links(places[p], places[(p + turn) % side]) for p in range(side)]
        assert sum(map(len, hops)) == len(set().union(*hops)) == 2 * (side - 1)
        for p in range(side):
            round_trip: set[tuple[int, int]] = set()
            for h in range(1, side):
                round_trip |= hops[(p + turn * (h - 1)) % side]
                straight = links(places[p], places[(p + turn * h) % side])
                assert straight <= round_trip
                assert len(straight) <= 2 * h


@pytest.mark.parametrize("closed", [True, False])
def test_passing_on(closed: bool) -> None:
    """Every node gets every item of the others once; a line of n nodes with c items over one wavelength takes at least
    c (n - 1) steps, a ring c floor(n/2), and queues in order of arrival take no more."""
    for side in range(2, 8):
        for items in (1, 2, 5):
            step, src, dst, direction, wavelength, origin, copy = passing_on(side, 1, items, closed)
            assert sorted(zip(dst, origin, copy, strict=True)) == sorted(
                (v, o, c) for v in range(side) for o in range(side) for c in range(items) if o != v
            )
            assert step.max() == items * (side // 2 if closed else side - 1)
            assert wavelength.max() == 0
            if items == 1 and not closed:
                replayed(grid((side,), (False,), 1), Circuits.of(step, src, dst, direction, wavelength, origin))


def test_short_circuits_only() -> None:
    """A 4 x 4 mesh whose budget allows one hop: no folded rings, items are passed on."""
    instance = grid((4, 4), (False, False), 1, hops=1)
    assert best_phases(instance) is None
    assert synth.solve(instance, "optree")["termination"] == "unsupported"
    record = synth.solve(instance, "relay")
    assert record.ok
    assert record.value == 3 + 12
