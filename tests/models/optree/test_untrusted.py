"""Odd numbers in every field of a stored plan or schedule and of both certificates: nothing wrong passes, nothing
crashes.

The oracle for circuits is a replay in plain Python sets, for certificates the optimum by exhaustive search: no
certificate whatever may carry a bound above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.odd_values import ODD, mutants
from models.optree.brute_force import fewest_steps
from models.optree.cases import limited, options, ring

from synth.method import load
from synth_models.optree import FAMILY
from synth_models.optree.check.certificates import check_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.references.relay import relay
from synth_models.optree.solution import COLUMNS, Circuits, StepCount


def plain_replay(instance: OpTreeInstance, rows: list[tuple[int, ...]]) -> int | None:
    """Steps of a valid schedule, None for any other; numbers of any size, the longest circuit left aside."""
    nodes = instance.nodes
    held = {v: {v} for v in range(nodes)}
    taken = set()
    for step in sorted({row[0] for row in rows}):
        before = {v: set(items) for v, items in held.items()}
        for _, src, dst, direction, wave, item in (row for row in rows if row[0] == step):
            ends = all(0 <= number < nodes for number in (src, dst, item))
            if step < 1 or not ends or direction not in (0, 1) or not 0 <= wave < instance.wavelengths or src == dst:
                return None
            if item not in before[src]:
                return None
            at = src
            while at != dst:
                following = (at + (1 if direction == 0 else -1)) % nodes
                slot = (step, direction, at if direction == 0 else following, wave)
                if slot in taken:
                    return None
                taken.add(slot)
                at = following
            held[dst].add(item)
    return max(row[0] for row in rows) if rows and all(len(items) == nodes for items in held.values()) else None


def judged(instance: OpTreeInstance, packed: Mapping[str, Any]) -> float | None:
    """What the family makes of stored data: the value if it accepts them. Only ``ValueError`` and ``KeyError`` may end
    the reading, nothing the check."""
    try:
        solution = load(FAMILY.unpack)(instance, packed)
    except (ValueError, KeyError):
        return None
    verdict = check_solution(instance, solution)
    if not verdict.ok:
        assert verdict.value is None
        return None
    if isinstance(solution, Circuits):
        rows = list(zip(*(getattr(solution, name).tolist() for name in COLUMNS), strict=True))
        assert verdict.value == plain_replay(instance, rows)
    return verdict.value


@pytest.mark.parametrize(("nodes", "wavelengths", "optimum"), [(2, 1, 1), (4, 1, 2), (5, 2, 2)])
def test_odd_numbers_in_a_stored_schedule(nodes: int, wavelengths: int, optimum: int) -> None:
    """The optima by :mod:`models.optree.brute_force`."""
    instance = ring(nodes, wavelengths)
    packed = load(FAMILY.pack)(relay(instance, options()))
    assert judged(instance, packed) == optimum
    for key in packed:
        for mutant in mutants(packed[key]):
            found = judged(instance, packed | {key: mutant})
            assert found is None or found >= optimum
        assert judged(instance, {k: v for k, v in packed.items() if k != key}) is None
    steps = packed["step"].astype(np.int64)
    late = packed | {"step": np.where(steps == steps.max(), 2**31 - 1, steps)}
    assert judged(instance, late) == 2**31 - 1


@settings(derandomize=True, max_examples=some(300), deadline=None)
@given(st.data())
def test_any_columns_of_odd_numbers(data: st.DataObject) -> None:
    numbers = st.sampled_from([*ODD[:9], 2, 2**31 - 1])
    count = data.draw(st.integers(0, 4))
    packed = {key: data.draw(st.lists(numbers, min_size=count, max_size=count)) for key in COLUMNS}
    judged(ring(2, 1), packed)


def test_steps_far_apart_are_put_in_order() -> None:
    """Differences of 32 bits wrap between the largest step and the least, and hid that the rows are out of order."""
    rows = [(2**31 - 1, 1, 0, 1, 0, 1), (-(2**31), 0, 1, 0, 0, 0)]
    assert not check_solution(ring(2, 1), Circuits.of(*zip(*rows, strict=True))).ok


def test_what_no_replay_has_the_memory_for_is_refused() -> None:
    instance = ring(10_000, 1_000_000)
    verdict = check_solution(instance, Circuits.of(*([value] for value in (1, 0, 1, 0, 999_999, 0))))
    assert "replayed up to" in verdict.faults[0]


COUNTED = [
    StepCount("formula", (2,)),
    StepCount("wrht", (1,)),
    StepCount("stages", (4, 4)),
    StepCount("ring"),
    StepCount("one_stage"),
    StepCount("neighbor_exchange"),
]


@pytest.mark.parametrize("plan", COUNTED, ids=str)
def test_odd_numbers_in_a_stored_plan(plan: StepCount) -> None:
    """16 nodes, 2 wavelengths: 5 steps bound every schedule, and no closed form gets below them."""
    instance = ring(16, 2)
    packed = load(FAMILY.pack)(plan)
    assert judged(instance, packed) is not None
    for key in packed:
        for mutant in mutants(packed[key]):
            found = judged(instance, packed | {key: mutant})
            assert found is None or found >= 5
        assert judged(instance, {k: v for k, v in packed.items() if k != key}) is None


@pytest.mark.parametrize(("nodes", "wavelengths", "hops"), [(4, 1, 3), (4, 2, 1), (5, 2, 1), (5, 1, 2), (2, 1, 1)])
def test_no_odd_number_in_a_certificate_lifts_a_bound_above_the_optimum(
    nodes: int, wavelengths: int, hops: int
) -> None:
    instance = limited(nodes, wavelengths, hops)
    optimum = fewest_steps(nodes, wavelengths, hops)
    assert optimum is not None
    for count in range(1, 2 * nodes):
        certificate = {"binding": "reach", "weights": [10**9] * count}
        for mutant in mutants(certificate["weights"]):
            assert check_bound(instance, optimum + 1, certificate | {"weights": mutant})
    for key, value in (("binding", "reach"), ("binding", "receive"), ("weights", [1])):
        for mutant in mutants(value):
            assert check_bound(instance, optimum + 1, {"binding": "reach", "weights": [1]} | {key: mutant})
    assert check_bound(instance, 1, {"weights": [1]})
    assert check_bound(instance, 1, {})


@settings(derandomize=True, max_examples=some(100), deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 10**9 - 1, 10**9]), min_size=1, max_size=4), st.booleans())
def test_extreme_prices_on_a_ring_of_five(weights: list[int], short: bool) -> None:
    """5 nodes, 2 wavelengths: 2 steps (with circuits of one hop, too): only horizons of one step may be refuted."""
    instance = limited(5, 2, 1 if short else 4)
    faults = check_bound(instance, len(weights) + 1, {"binding": "reach", "weights": weights})
    assert faults or len(weights) == 1
