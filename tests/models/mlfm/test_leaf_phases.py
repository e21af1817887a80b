"""Flows between leaves as they are stored in short: what is wrong is refused, what is read is replayed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models.mlfm.damaged_machines import damaged
from models.mlfm.slow_replay import replay

import synth
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_phases import LeafPhases, packed_links, spine_numbers
from synth_models.mlfm.solution import unpack

ARRAYS = ("count", "pattern", "order", "joined", "step", "over")


@cache
def stored() -> tuple[MLFMInstance, dict[str, Any]]:
    """A schedule of MLFM(3) with flows over two spines."""
    instance = damaged(3, 3, 4, 3, links=[(0, 0, 1), (1, 2, 3)])
    packed = dict(synth.solve(instance, "spines").packed or {})
    assert packed["form"] == "leaves"
    assert len(packed["step"]) == 2 * 2 * 3 * 9 // packed["length"]  # each cable's leaf to and from three of its column
    return instance, packed


def changed(key: str, at: Any, value: Any) -> dict[str, Any]:
    """The schedule with an entry of an array replaced."""
    packed = stored()[1]
    array = np.array(packed[key], dtype=np.int64)
    array[at] = value
    return packed | {key: array}


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (lambda: changed("count", 0, 0), "6 spines"),
        (lambda: stored()[1] | {"count": np.ones(5, int)}, "6 spines"),
        (lambda: changed("pattern", (0, 0), 6), "does not exist"),
        (lambda: changed("pattern", (0, slice(None)), 2), "down-link twice"),
        (lambda: changed("order", (0, 0), 2**20), "does not exist"),
        (lambda: changed("joined", slice(0, 1), 2**20), "joined says"),
        (lambda: changed("step", 0, 2**20), "first half does not exist"),
        (lambda: changed("over", 0, 4), "first half does not exist"),
        (lambda: stored()[1] | {"step": stored()[1]["step"][:-1]}, "joined says"),
        (lambda: stored()[1] | {"length": 2}, "runs as long as groups"),
        (lambda: stored()[1] | {"length": 4}, "length"),
        (lambda: stored()[1] | {"order": np.zeros((6, 900_000), np.int8)}, "more than 40000000"),
    ],
)
def test_what_is_wrong_is_refused(packed: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        unpack(stored()[0], packed())


def test_a_flow_over_two_spines_needs_both_halves() -> None:
    instance, packed = stored()
    solution = unpack(instance, packed)
    assert isinstance(solution, LeafPhases)
    link, group = (int(part[0]) for part in np.nonzero(solution.onto >= 0))
    solution.to[link, group] = -1
    with pytest.raises(ValueError, match="lacks a half"):
        unpack(instance, {"form": "leaves", "length": solution.length} | packed_links(solution))


def test_a_half_stands_in_one_flow() -> None:
    """MLFM(2), links leaf * 3 + column: 0 sends over {0, 1} to 1, that over {1, 2} to 2, and that over {0, 2} to 0."""
    to, onto = (np.full((18, 1), -1, dtype=np.int32) for _ in range(2))
    to[[1, 5, 6], 0] = 3, 7, 2
    onto[1, 0] = 5
    packed = {"form": "leaves", "length": 1} | packed_links(LeafPhases(2, 1, to, onto))
    with pytest.raises(ValueError, match="too few idle servers"):
        unpack(damaged(2, 2, 3, 2), packed)  # nothing else is wrong
    onto[5, 0] = 6
    packed |= packed_links(LeafPhases(2, 1, to, onto))
    with pytest.raises(ValueError, match="stands in two flows"):
        unpack(damaged(2, 2, 3, 2), packed)


def test_no_servers_for_more_flows_than_transfers() -> None:
    """A leaf of MLFM(2) has four transfers to another one: a fifth in the same direction has no servers."""
    to = np.full((18, 7), -1, dtype=np.int32)
    to[1, :5] = 3
    onto = np.full_like(to, -1)
    assert LeafPhases(2, 1, to, onto).fault == "a leaf has more than 4 flows to another one"
    assert LeafPhases(2, 1, to[:, 1:], onto[:, 1:]).fault is None


def test_no_flow_comes_back_to_its_leaf() -> None:
    """Leaf 0 of MLFM(2) sends over the spine of columns 0 and 1 to itself."""
    to = np.full((18, 1), -1, dtype=np.int32)
    to[1, 0] = 1
    assert LeafPhases(2, 1, to, np.full_like(to, -1)).fault == "a flow ends at the leaf where it began"


def test_a_smaller_job_has_none() -> None:
    with pytest.raises(ValueError, match="all servers of the machine"):
        unpack(damaged(3, 2, 4, 3), stored()[1])


@settings(max_examples=some(200), deadline=None, derandomize=True)
@given(st.sampled_from(ARRAYS), st.integers(0, 2**30), st.integers(-1, 12))
@example("pattern", 6, 0)  # a flow back to its leaf
def test_one_entry_changed(key: str, place: int, value: int) -> None:
    """It is refused, or the check says of what is left what the slow replay says."""
    instance, packed = stored()
    array = np.array(packed[key], dtype=np.int64)
    array.ravel()[place % array.size] = value
    try:
        solution = unpack(instance, packed | {key: array})
    except ValueError:
        return
    verdict = check_phases(instance, solution)
    fine, loads = replay(instance, solution)
    assert fine == (not verdict.faults)
    assert not fine or verdict.value == len(loads)


def test_numbers_of_spines() -> None:
    assert np.array_equal(spine_numbers(4), stored()[0].spine_number)
