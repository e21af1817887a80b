"""Every spine coloured alone and halves joined, against a slow replay and the certified bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import examples
import numpy as np
import pytest
from examples import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from models.mlfm.damaged_machines import damaged, holds_by_the_slow_replay
from models.mlfm.same_transfers import same_transfers

import synth
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_phases import LeafPhases, spine_links
from synth_models.mlfm.parts.leaf_problem import working
from synth_models.mlfm.references.spine_counts import counted
from synth_models.mlfm.references.spine_timetable import timetable
from synth_models.mlfm.solution import pack, unpack


@st.composite
def damaged_machines(draw: st.DrawFn) -> MLFMInstance:
    """Whole machines up to d = 4 (3 where only some examples are asked for) with up to five failed cables and, in every
    other one, a failed spine."""
    d = draw(st.integers(2, 4 if examples.whole else 3))
    cables = [(i, j, c) for i in range(d) for j in range(d + 1) for c in range(d + 1) if c != j]
    spines = [(a, b) for a in range(d + 1) for b in range(a)]
    links = draw(st.lists(st.sampled_from(cables), max_size=5, unique=True))
    return damaged(d, d, d + 1, d, links, draw(st.lists(st.sampled_from(spines), max_size=1)))


@settings(max_examples=some(20), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(damaged_machines(), st.integers(0, 3))
def test_schedules_by_the_slow_replay(instance: MLFMInstance, seed: int) -> None:
    """Nobody meets, everything arrives over working parts, and the phases are no fewer than the bound asks for."""
    record = synth.solve(instance, "spines", seed=seed)
    assume(record["termination"] != "time_limit")
    assume(holds_by_the_slow_replay(instance, record))
    assert (record["termination"] == "optimal") == (record.value == record.bound)


def test_one_cable_of_each_of_three_leaves() -> None:
    """A leaf of MLFM(3) sends 3 * (36 - 3) = 99 transfers; over two cables that takes 50 phases, which all get by with,
    though two of the leaves lack cables to each other's columns."""
    instance = damaged(3, 3, 4, 3, links=[(0, 0, 1), (1, 1, 0), (2, 2, 3)])
    record = synth.solve(instance, "spines")
    assert (record.value, record.bound, record["termination"]) == (50, 50, "optimal")
    assert holds_by_the_slow_replay(instance, record)


def test_halves_are_joined_in_one_group() -> None:
    """Every up-link's flow has one down-link, and a first half goes on from the leaf that it came to."""
    instance = damaged(4, 4, 5, 4, links=[(0, 0, 1), (1, 2, 3), (3, 1, 2)])
    usable, groups, each = working(instance), 51, 8
    found = counted(usable, each, groups, 0)
    assert found is not None
    made = timetable(usable, found, each, groups, 0)
    assert made is not None
    link, group = np.nonzero(made.to >= 0)
    assert np.array_equal(made.came[made.to[link, group], group], link)
    first, at = np.nonzero(made.onto >= 0)
    onward = made.onto[first, at]
    assert np.array_equal(made.to[first, at] // 5, onward // 5)
    assert made.second[onward, at].all()
    assert len(first) == made.second.sum() == found.joins[:, 4].sum() == 3 * 2 * 4 * 8
    phases = LeafPhases(4, 2, made.to, made.onto)
    assert phases.fault is None
    assert np.array_equal(phases.second, made.second)
    assert np.array_equal(np.bincount(phases.inside[1]), np.full(20, each))


def test_links_of_a_spine() -> None:
    """Spine {0, 1} of MLFM(2), whose leaves are 0, 3 (column 0) and 1, 4 (column 1), links leaf * 3 + column."""
    assert spine_links(1, 0, 6, 3).tolist() == [3, 12, 1, 10]


@pytest.mark.long
def test_too_few_groups() -> None:
    """A leaf with a failed cable has more flows than the cables left carry in 48 phases."""
    assert counted(working(damaged(3, 3, 4, 3, links=[(0, 0, 1)])), 3, 16, 0) is None


def test_the_same_transfers_packed() -> None:
    instance = damaged(3, 3, 4, 3, links=[(0, 0, 1)])
    record = synth.solve(instance, "spines")
    solution = load(FAMILY.unpack)(instance, record.packed or {})
    assert same_transfers(unpack(instance, pack(solution)), solution)
    assert same_transfers(unpack(instance, pack(solution.named)), solution)  # as such schedules were stored before
    idle = np.full((len(solution.to), 1), -1, dtype=np.int32)
    longer = replace(solution, **{name: np.append(getattr(solution, name), idle, axis=1) for name in ("to", "onto")})
    assert (solution.phases, longer.phases, longer.fault) == (50, 50 + solution.length, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block": {"layers": 2, "columns": 4, "servers": 3}}, "the whole machine"),
        ({"routes": "minimal"}, "routes = detour"),
        ({"failed": {"leaves": [[0, 1]]}}, "nothing but spines and cables"),
    ],
)
def test_other_jobs(changes: Any, words: str) -> None:
    record = synth.solve(damaged(3, 3, 4, 3, **changes), "spines")
    assert record["termination"] == "unsupported"
    assert words in record["message"]
