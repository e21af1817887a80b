"""The rule repaired on damaged blocks, and bounds of machines whose routes are too many to list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import examples
import numpy as np
import pytest
from examples import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from models.mlfm.damaged_machines import cut_off, damaged, holds_by_the_slow_replay
from models.mlfm.same_transfers import same_transfers
from models.mlfm.slow_replay import asked, proves

import synth
from synth.family import defaults_for
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.bounds.load import lower_bound
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.check.certificates import check_bound
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import leaf_problem
from synth_models.mlfm.solution import RepairedPhases, pack, unpack


@st.composite
def damaged_blocks(draw: st.DrawFn) -> MLFMInstance:
    """Blocks on which the rule holds, up to d = 4 (3 where only some examples are asked for), with up to five failed
    cables and two failed spines."""
    d = draw(st.integers(2, 4 if examples.whole else 3))
    columns = draw(st.integers(2, d + 1))
    n, m = draw(st.integers(1, d)), draw(st.integers(1, min(columns - 1, 3)))
    cables = [(i, j, c) for i in range(d) for j in range(d + 1) for c in range(d + 1) if c != j]
    spines = [(a, b) for a in range(d + 1) for b in range(a)]
    links = draw(st.lists(st.sampled_from(cables), max_size=5, unique=True))
    return damaged(d, n, columns, m, links, draw(st.lists(st.sampled_from(spines), max_size=2, unique=True)))


@pytest.mark.long
@settings(max_examples=some(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_blocks(), st.integers(0, 3))
def test_repaired_schedules_by_the_slow_replay(instance: MLFMInstance, seed: int) -> None:
    record = synth.solve(instance, "repair", seed=seed)
    assume(holds_by_the_slow_replay(instance, record))
    assert record["termination"] == "finished"


@settings(max_examples=some(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_blocks())
def test_bounds_without_routes_hold(instance: MLFMInstance) -> None:
    """Never above the bound by all routes, whose linear program includes theirs; and certified."""
    bound, reason = machine_bound(instance)
    assert (bound is None) == cut_off(instance) == (reason is not None)
    assume(bound is not None)
    assert bound is not None
    assert bound.phases <= lower_bound(instance, leaf_problem(instance)).phases
    assert check_bound(instance, bound.phases, bound.certificate) == []
    if bound.certificate["binding"] == "links":
        assert check_bound(instance, bound.phases + 1, bound.certificate) != []
        weights = {}
        for (leaf, c, way), weight in zip(bound.certificate["links"], bound.certificate["weights"], strict=True):
            i, j = divmod(leaf, instance.columns)
            weights[("up", "down")[way], (i, j), frozenset((j, c))] = weight
        assert bound.phases == proves(instance, weights)


def test_columns_prove_more_than_leaves() -> None:
    """MLFM(3) without spines 0-1 and 0-2: column 0 keeps one spine, to column 3. Its leaves send 3 * 33 flows each over
    one up-link, 99 phases; and all that enters or leaves column 0 goes over the leaves of column 3, or through them:
    the 108 + 108 flows between each leaf and columns 1, 2 cross two of their links more."""
    instance = damaged(3, 3, 4, 3, spines=[(0, 1), (0, 2)])
    bound, _ = machine_bound(instance)
    by_routes = lower_bound(instance, leaf_problem(instance))
    assert bound is not None
    assert bound.phases == by_routes.phases >= 99
    record = synth.solve(instance, "repair")
    assert record.ok
    assert record.value is not None
    assert bound.phases <= record.value


def test_a_cable_of_2_4_3_by_hand() -> None:
    """32 phases are the least (63 flows over two up-links); groups of three make it 33."""
    record = synth.solve(damaged(3, 2, 4, 3, links=[(0, 0, 1)]), "repair")
    assert (record.value, record.bound, record.ok) == (33, 32, True)
    assert record.grade == "certified"


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (damaged(3, 3, 3, 3, links=[(0, 0, 1)]), "repair needs a block with m <= l-1 <= d"),
        (damaged(3, 2, 4, 3, failed={"leaves": [[0, 0]]}), "of which no leaf or server has failed"),
        (damaged(3, 2, 4, 3, routes="minimal"), "repair needs routes = detour"),
        (damaged(3, 2, 4, 3, block=None, subset=[[0, 0, 0]]), "repair needs a block of servers"),
    ],
)
def test_what_it_is_not_for(instance: MLFMInstance, words: str) -> None:
    record = synth.solve(instance, "repair")
    assert record["termination"] == "unsupported"
    assert words in record["message"]


def repaired() -> tuple[MLFMInstance, RepairedPhases]:
    instance = damaged(3, 2, 4, 3, links=[(0, 0, 1)])
    record = synth.solve(instance, "repair")
    found = load(FAMILY.unpack)(instance, record.packed or {})
    assert isinstance(found, RepairedPhases)
    return instance, found


def test_packed_and_read_back() -> None:
    instance, found = repaired()
    assert same_transfers(unpack(instance, pack(found)), found)
    assert found.phases == 33
    assert sum(len(rows.dest) for rows in found.rows()) == 33


def test_the_check_sees_a_damaged_repair() -> None:
    """A flow left out is missing (three servers), elsewhere it is not asked for, over the failed cable it is caught."""
    instance, found = repaired()
    moved = found.moved
    assert check_phases(instance, found).faults == []

    def judged(**changes: Any) -> list[str]:
        return check_phases(instance, replace(found, moved=replace(moved, **changes))).faults

    keep = np.arange(moved.group.size) != 0
    fewer = replace(found, moved=replace(moved, **{key: values[keep] for key, values in vars(moved).items()}))
    assert check_phases(instance, fewer).faults != []
    other = moved.dest.copy()
    other[0] = (other[0] + 3) % instance.ranks
    assert judged(dest=other) != []
    dead = instance.spine_number[0, 1]
    over = np.where((moved.source == 0) & (moved.spine >= 0), dead, moved.spine).astype(np.int32)
    assert any("has failed" in fault or "does not join" in fault for fault in judged(spine=over))


HOSTILE: list[tuple[str, Any]] = [
    ("groups", 1), ("groups", -1), ("groups", 2**40), ("slots", 0), ("slots", 5), ("moved_group", np.array([2**20])),
    ("moved_source", None), ("moved_dest", np.array([-1])), ("moved_spine", np.zeros((2, 2), np.int8)),
    ("layers", 2**19),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), HOSTILE)
def test_hostile_files_are_refused(key: str, value: Any) -> None:
    instance, found = repaired()
    packed = pack(found) | {key: value}
    if value is None:
        packed[key] = np.full_like(packed[key], instance.ranks)
    elif isinstance(value, np.ndarray) and value.ndim == 1:
        packed[key] = np.full(len(found.moved.group), value[0])
    with pytest.raises(ValueError):  # noqa: PT011
        unpack(instance, packed)
    packed = pack(found)
    packed["moved_group"] = np.zeros_like(packed["moved_group"])  # a rank twice in one group
    with pytest.raises(ValueError, match="two moved flows"):
        unpack(instance, packed)


@pytest.mark.slow
def test_the_whole_machine_with_a_failed_cable() -> None:
    """6156 servers: 341 * 18 * 18 flows over 17 up-links are at least 6500 phases, 6516 in groups of 18."""
    instance = damaged(18, 18, 19, 18, links=[(3, 5, 7)])
    assert defaults_for(FAMILY, instance) == ("bound", "repair", "columns")
    record = synth.solve(instance, "repair")
    assert (record.value, record.bound, record.ok) == (6516, 6500, True)
    assert synth.solve(instance, "bound").bound == 6500
    assert sum(asked(damaged(3, 2, 4, 3)).values()) == 24**2
