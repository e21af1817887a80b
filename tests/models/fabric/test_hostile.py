"""Odd numbers in every field of a stored schedule: nothing wrong passes, nothing crashes, nothing is faster than the
optimum. The oracle is the plain replay with numbers of any size."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.fabric.slow_replay import replay
from models.fabric.small_machines import Link, machine, random_schedule, schedule_of
from models.odd_values import ODD, mutants

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.check.route_hops import LONGEST
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.solution import pack, unpack

SWITCHED: list[Link] = [(u, v, 2.0, 0.5) for r in range(3) for u, v in ((r, 3), (3, r))]
DIRECT: list[Link] = [(u, v, 2.0, 0.5, "port" if u == 0 else None) for u in range(3) for v in range(3) if u != v]
CASES = {
    "allgather": machine(4, SWITCHED, [3], bytes=6),
    "broadcast": machine(4, SWITCHED, [3], bytes=6, collective="broadcast", switching={"multicast": True}),
    "alltoall": machine(4, SWITCHED, [3], bytes=6, collective="alltoall", switching={"mode": "store_and_forward"}),
    "allreduce": machine(3, DIRECT, bytes=6, collective="allreduce"),
    "reduce": machine(
        4, SWITCHED, [3], bytes=6, collective="reduce", switching={"mode": "store_and_forward", "copies": False}
    ),
}
LEAST_S = 1.0  # somebody must receive at least 2 bytes, over at most two links of 2 bytes/s


def judged(instance: FabricInstance, packed: Mapping[str, Any]) -> float | None:
    """What the family makes of stored data: the value if it accepts them. Only ``ValueError`` may end the reading,
    nothing the check."""
    try:
        schedule = unpack(instance, packed)
    except ValueError:
        return None
    verdict = check_schedule(instance, schedule)
    faults, ticks = replay(instance, schedule)
    assert bool(faults) == (not verdict.ok), (faults, verdict.faults)
    if not verdict.ok:
        assert verdict.value is None
        return None
    assert verdict.value == float_above(Fraction(ticks, schedule.ticks_per_s))
    return verdict.value


@pytest.mark.parametrize("collective", CASES)
def test_odd_numbers_in_a_stored_schedule(collective: str) -> None:
    instance = CASES[collective]
    packed = pack(random_schedule(random.Random(3), instance))
    assert judged(instance, packed) is not None
    full = dict(packed)
    full.setdefault("route_lengths", np.ones(len(packed["start_steps"]), dtype=np.int64))
    full.setdefault("adds", np.zeros(len(packed["start_steps"]), dtype=np.int8))
    for key in full:
        for mutant in mutants(full[key]):
            found = judged(instance, full | {key: mutant})
            assert found is None or found >= LEAST_S
        assert key in ("adds", "route_lengths") or judged(instance, {k: v for k, v in full.items() if k != key}) is None


@settings(derandomize=True, max_examples=some(300), deadline=None)
@given(st.data())
def test_any_columns_of_odd_numbers(data: st.DataObject) -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=2, collective="broadcast")
    numbers = st.sampled_from([*ODD[:9], 2, 2**48])
    count, pieces = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
    packed: dict[str, Any] = {
        key: data.draw(st.lists(numbers, min_size=count, max_size=count))
        for key in ("start_steps", "piece_steps", "link")
    }
    packed |= {
        key: data.draw(st.lists(numbers, min_size=pieces, max_size=pieces)) for key in ("piece_block", "piece_bytes")
    }
    judged(instance, packed | {"ticks_per_s": data.draw(st.sampled_from([1, 2, 10**9, 2**62]))})


def test_times_at_the_end_of_the_clock_do_not_wrap() -> None:
    """Starts of 2^62 and transfers of up to 2^61 ticks are added exactly; longer transfers are refused, also where
    only a sum of latencies is too long."""
    instance = machine(2, [(0, 1, 1.0, 0.5)], bytes=1, collective="broadcast")
    last = check_schedule(instance, schedule_of([(0, 1)], [(2**62, 0, [0])], 2**60))
    assert last.value == float_above(Fraction(2**62 + 2**60 + 2**59, 2**60))
    for ticks_per_s in (2**61, 2**62):
        verdict = check_schedule(instance, schedule_of([(0, 1)], [(0, 0, [0])], ticks_per_s))
        assert verdict.faults == [f"transfer 0, link 0 (0->1) at tick 0 (0 s): takes longer than {LONGEST} ticks"]
    far = machine(2, [(0, 1, 1e-3, 1e6)], bytes=1, collective="broadcast")
    assert "takes longer" in check_schedule(far, schedule_of([(0, 1)], [(0, 0, [0])], 2**50)).faults[0]
    chain = [(0, 2, 1e9, 1.0), (2, 3, 1e9, 1.0), (3, 1, 1e9, 1.0)]
    slow = machine(4, chain, [2, 3], bytes=2, collective="scatter")
    verdict = check_schedule(slow, schedule_of([(0, 1)], [(0, 0, [0, 1, 2])], 2**60))
    assert "takes longer" in verdict.faults[0]


def test_sums_of_bytes_do_not_wrap() -> None:
    """2^16 pieces of 2^48 bytes are 2^64 bytes, which is 0 in 64 bits; with 2 more bytes they would be the block."""
    instance = machine(2, [(0, 1, 1.0)], bytes=2, collective="broadcast")
    pieces = [(0, 2**48)] * 2**16 + [(0, 2)]
    verdict = check_schedule(instance, schedule_of(pieces, []))
    assert verdict.faults == [f"block 0 (of rank 0, for all): its pieces have {2**64 + 2} bytes, not 2"]


def test_a_schedule_that_no_file_has_gone_through_is_checked_too() -> None:
    """A method hands over its arrays directly."""
    instance = machine(2, [(0, 1, 1.0)], bytes=2, collective="broadcast")
    for pieces, rows, word in (
        ([(0, 2)], [(-1, 0, [0])], "start[0] is -1"),
        ([(0, 2)], [(2**62 + 1, 0, [0])], "start[0]"),
        ([(0, 2)], [(0, 1, [0])], "piece[0] is 1"),
        ([(0, 2)], [(0, 0, [5])], "link[0] is 5"),
        ([(3, 2)], [(0, 0, [0])], "piece_block[0] is 3"),
        ([(0, -2)], [(0, 0, [0])], "piece_bytes[0] is -2"),
        ([(0, 2)], [(0, 0, [])], "route_start does not cut"),
    ):
        assert word in check_schedule(instance, schedule_of(pieces, rows)).faults[0]
    short = schedule_of([(0, 2)], [(0, 0, [0])])
    assert (
        "piece has 0 entries, not 1"
        in check_schedule(instance, type(short)(**{**vars(short), "piece": short.piece[:0]})).faults
    )


def test_many_different_durations() -> None:
    """More sizes and bandwidths than a table is made for: 300 pieces of different sizes over 300 different links."""
    links = [(0, 1, 1.0 + e / 7) for e in range(300)]
    instance = machine(2, links, bytes=sum(range(1, 301)), collective="broadcast")
    schedule = schedule_of([(0, n + 1) for n in range(300)], [(0, n, [n]) for n in range(300)], 1000)
    verdict = check_schedule(instance, schedule)
    faults, ticks = replay(instance, schedule)
    assert (verdict.faults, faults) == ([], set())
    assert verdict.value == float_above(Fraction(ticks, 1000))


def test_differences_that_wrap_are_refused() -> None:
    """Three steps of 2^62 ticks are 3 * 2^62, not -2^62; there and back again is fine."""
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=3, collective="broadcast")
    three = {"ticks_per_s": 1, "piece_block": [0, 0, 0], "piece_bytes": [1, 1, 1], "link": [0, 0, 0]}
    three |= {"piece_steps": [0, 1, 1]}
    for steps in ([2**62] * 3, [2**62, 2**62, -(2**62)], [-1, 1, 1], [0, -1, 1]):
        with pytest.raises(ValueError, match="start_steps"):
            unpack(instance, three | {"start_steps": steps})
    there = unpack(instance, three | {"start_steps": [2**62, -(2**62), 2**62]})
    assert there.start.tolist() == [2**62, 0, 2**62]
