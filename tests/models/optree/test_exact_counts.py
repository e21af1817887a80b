"""Powers, roots and logarithms of the published counts: decided in whole numbers, on both sides of the check.

The oracles are the definitions themselves ("the least whole number with ...", in whole numbers without any root) and
decimal arithmetic with more digits than two different numbers of these sizes can share.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext

import numpy as np
import pytest
from examples import some, some_of
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.cases import options, ring

import synth
from synth.errors import UnsupportedError
from synth_models.optree.check.certificates import _least_cost
from synth_models.optree.check.counts import count_steps
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.carrying_cost import price
from synth_models.optree.parts.stage_layout import ring_wavelengths, segment_wavelengths
from synth_models.optree.references.published_counts import (
    formula_hops,
    formula_steps,
    root_up,
    solve_formula,
    solve_wrht,
    wrht_hops,
)
from synth_papers.optree.page import algorithm_1, ceiling_depth


def test_longest_circuit_by_hand() -> None:
    """N = 16, k = 2: 16 - 4 = 12 hops, 13 interfaces. N = 15, k = 2: 15 - 3.87 = 11.13, so 12 hops, where rounding to
    the nearest gives 11. N = 27, k = 3: 27 - 9 = 18. N = 10, k = 3: 10 - 4.64 = 5.36, so 6."""
    assert [formula_hops(*pair) for pair in ((16, 2), (15, 2), (27, 3), (10, 3))] == [12, 12, 18, 6]


@pytest.mark.parametrize("part", some_of(range(5)))
@pytest.mark.parametrize("depths", [range(1, 9), range(9, 25), range(25, 65)], ids=str)
def test_formula_and_check_agree_on_every_pair(depths: range, part: int) -> None:
    """All N up to 800 and all depths that the check takes: the longest circuit h is the least whole number with
    (N-h)^k <= N^(k-1), the steps S the least with (8wS)^k >= (2k-1)^k N^(k+1)."""
    for nodes in range(2 + part, 801, 5):
        for depth in depths:
            hops, counted = formula_hops(nodes, depth), count_steps(nodes, 2, "formula", (depth,))
            steps = formula_steps(nodes, 2, depth)
            assert (hops, steps) == (counted.longest, counted.steps), (nodes, depth)
            if depth > 1:
                assert (nodes - hops) ** depth <= nodes ** (depth - 1) < (nodes - hops + 1) ** depth
                goal = (2 * depth - 1) ** depth * nodes ** (depth + 1)
                assert (16 * (steps - 1)) ** depth < goal <= (16 * steps) ** depth


@settings(derandomize=True, max_examples=some(300), deadline=None)
@given(st.integers(2, 10**7), st.integers(1, 10**6), st.integers(2, 64))
def test_formula_and_check_agree_on_large_rings(nodes: int, wavelengths: int, depth: int) -> None:
    counted = count_steps(nodes, wavelengths, "formula", (depth,))
    assert (formula_hops(nodes, depth), formula_steps(nodes, wavelengths, depth)) == (counted.longest, counted.steps)


def _ceiling(value: Decimal) -> int:
    """Rounded up, where less than 10^-60 above a whole number counts as that number."""
    near = value.to_integral_value()
    return int(near if abs(value - near) < Decimal(10) ** -60 else value.to_integral_value(ROUND_CEILING))


@pytest.mark.parametrize("depth", range(2, 13))
def test_formula_against_decimal_arithmetic(depth: int) -> None:
    """100 digits. N^(1-1/k) that is not whole is at least 1/(k N^(k-1)) > 10^-40 from any whole number, because its
    k-th power is whole; the steps likewise."""
    with localcontext() as context:
        context.prec = 100
        for nodes in [*range(2, 200, 3), 512, 729, 1024, 4096, 10_000]:
            root = (Decimal(nodes).ln() / depth).exp()
            assert formula_hops(nodes, depth) == _ceiling((root - 1) * nodes / root)
            for wavelengths in (1, 7, 64):
                work = (2 * depth - 1) * nodes * root / (8 * wavelengths)
                assert formula_steps(nodes, wavelengths, depth) == _ceiling(work)


@settings(derandomize=True, max_examples=some(300))
@given(st.integers(1, 10**40), st.integers(1, 70))
def test_root_up(number: int, degree: int) -> None:
    for exact in (number, number**degree - 1, number**degree, number**degree + 1):
        if exact >= 1:
            root = root_up(exact, degree)
            assert (root - 1) ** degree < exact <= root**degree


def test_a_budget_below_the_longest_circuit_is_unsupported() -> None:
    """12.5 dB at 1 dB an interface are 12 interfaces, 11 hops; depth 2, the best, needs 12 hops on 15 nodes."""
    instance = synth.make("optree", **{"nodes": "15", "wavelengths": "2", "laser_dbm": "12.5", "pass_loss_db": "1"})
    record = synth.solve(instance, "formula")
    assert record["termination"] == "unsupported"
    assert "needs circuits of 12 hops" in record["message"]
    assert "allows 11" in record["message"]


@pytest.mark.parametrize("solve", [solve_formula, solve_wrht])
def test_no_budget_lets_a_method_fail_its_own_check(solve: object) -> None:
    """Whatever a budget allows, the method either says that it is too tight or its count passes the check."""
    for nodes in range(2, 60):
        for tenths in range(15, 10 * nodes + 15, 13):
            instance = ring(nodes, 2, power={"laser_dbm": tenths / 10, "pass_loss_db": 1.0})
            try:
                outcome = solve(instance, options())  # type: ignore[operator]
            except UnsupportedError:
                continue
            if outcome.termination != "infeasible":
                assert check_solution(instance, outcome.solution).ok, instance


@pytest.mark.parametrize("wavelengths", [1, 2, 3, 7, 64])
def test_wrht_levels_are_the_whole_logarithm(wavelengths: int) -> None:
    """t levels: the least with (2w+1)^t >= N, tried one by one; at powers of the group and beside them, too."""
    group = 2 * wavelengths + 1
    for nodes in {*range(2, 801), *(group**k + d for k in range(1, 9) for d in (-1, 0, 1))} - {1}:
        if not 2 <= nodes <= 10**7:
            continue
        levels = next(t for t in range(1, 30) if group**t >= nodes)
        for variant in (1, 2):
            counted = count_steps(nodes, wavelengths, "wrht", (variant,))
            last = (levels - 2 + variant) * group ** (levels - 1)
            assert counted.steps == 1 + -(-(group**levels - group) // (group - 1)) + last
        assert counted.longest == wrht_hops(nodes, wavelengths)


@settings(derandomize=True, max_examples=some(40), deadline=None)
@given(st.integers(2, 60), st.lists(st.integers(0, 10**5), min_size=1, max_size=5), st.integers(1, 60))
def test_priced_gaps_are_exact_in_floats(nodes: int, weights: list[int], hops: int) -> None:
    """The recursion over whole-number prices stays below 2^53, so floats and the check's integers agree to the unit."""
    found = float(price(nodes, np.array(weights, dtype=float), hops)[0][0, nodes])
    exact = int(_least_cost(nodes, np.array(weights, dtype=np.int64), hops))
    assert found == exact or (found >= 1e18 and exact >= 4 * 10**18)


@settings(derandomize=True, max_examples=some(200), deadline=None)
@given(st.integers(2, 12), st.integers(1, 12), st.integers(0, 400))
def test_stage_wavelengths_are_the_heaviest_link(radix: int, size: int, more: int) -> None:
    """The closed form against loads counted circuit by circuit on a line of ``radix * size`` positions."""
    group = radix * size
    nodes = group + more
    load = np.zeros((2, group), dtype=int)
    for item in range(nodes):
        digit, place = divmod(item % group, size)
        for target in range(radix):
            ends = sorted((digit * size + place, target * size + place))
            load[int(target < digit), ends[0] : ends[1]] += 1
    assert segment_wavelengths(nodes, radix, size) == load.max()
    assert ring_wavelengths(radix, size) == -(-size * (radix * radix // 4) // 2)


def test_depths_and_algorithm_1_in_decimal_arithmetic() -> None:
    with localcontext() as context:
        context.prec = 80
        for nodes in [*range(8, 300), 512, 1024, 2048, 4096]:
            log = Decimal(nodes).ln()
            assert ceiling_depth(nodes)[1] == _ceiling((log + (log * (log - 2)).sqrt()) / 2)
            for depth in (1, 2, 3, 5, 8):
                branching = (log / depth).exp()
                groups = _ceiling(nodes / branching)
                needed = _ceiling(branching * branching / 8) * groups
                steps = -(-needed // 4) + (depth - 1) * -(-needed // 16) * groups
                assert algorithm_1(nodes, 4, depth) == steps
