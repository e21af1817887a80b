"""Column routes counted and packed where spines have failed, against a slow replay and what ``cpsat`` proves least."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from models.mlfm.damaged_machines import cut_off, damaged, holds_by_the_slow_replay
from models.mlfm.same_transfers import same_transfers

import synth
from synth.family import defaults_for
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import ColumnPhases
from synth_models.mlfm.parts.leaf_problem import working
from synth_models.mlfm.programs.columns.model import column_problem
from synth_models.mlfm.solution import pack, unpack


def damaged_spines(instance: MLFMInstance) -> MLFMInstance:
    """The same job where the spines of failed cables have failed."""
    block, failed = instance.block, instance.failed
    assert block is not None
    spines = {tuple(sorted(pair)) for pair in (*failed.spines, *(link.spine for link in failed.links))}
    return damaged(
        instance.d, block.layers, block.columns, block.servers, spines=sorted(spines), routes=instance.routes
    )


@st.composite
def blocks_without_spines(draw: st.DrawFn) -> MLFMInstance:
    """Blocks of any shape up to d = 4, also where the published rule does not hold, with up to four failed spines, and
    in every other one up to two failed cables."""
    d = draw(st.integers(2, 4))
    n, columns, m = draw(st.integers(1, d)), draw(st.integers(1, d + 1)), draw(st.integers(1, min(d, 3)))
    spines = draw(st.lists(st.sampled_from([(a, b) for a in range(d + 1) for b in range(a)]), max_size=4, unique=True))
    cables = st.tuples(st.integers(0, d - 1), st.integers(0, d), st.integers(0, d)).filter(lambda one: one[1] != one[2])
    links = draw(st.one_of(st.just([]), st.lists(cables, max_size=2, unique=True)))
    return damaged(d, n, columns, m, links=links, spines=spines, routes=draw(st.sampled_from(["detour", "minimal"])))


@settings(max_examples=some(25), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(blocks_without_spines())
def test_schedules_by_the_slow_replay(instance: MLFMInstance) -> None:
    """Nobody meets, everything arrives over working parts, and the phases are no fewer than the bound asks for."""
    record = synth.solve(instance, "columns")
    if instance.failed.links and "which columns leaves out, some pair" in record["message"]:
        assert cut_off(damaged_spines(instance))
        assert record.value is None
        return
    assume(holds_by_the_slow_replay(instance, record))


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("servers", "spines"), [(2, []), (2, [(0, 1)]), (2, [(0, 1), (2, 3)]), (3, [(0, 1), (0, 2)])])
def test_what_is_proven_least(servers: int, spines: list[tuple[int, int]]) -> None:
    """MLFM(3) with all its layers: as few phases as ``cpsat`` proves least, also where they are no multiple of m."""
    instance = damaged(3, 3, 4, servers, spines=spines)
    least = synth.solve(instance, "cpsat")
    assert least["termination"] == "optimal"
    assert synth.solve(instance, "columns").value == least.value


def test_column_routes_are_those_of_the_definition() -> None:
    """Direct, over a third column, inside a column; with two or four column links, each a place of its own."""
    instance = damaged(4, 4, 4, 2, spines=[(0, 1), (2, 4), (1, 3)])
    assert instance.block is not None
    problem, alive = column_problem(instance, instance.block, 2), working(instance)[:5]
    expected = {}
    for a, b, c in product(range(4), range(4), range(5)):
        if a == b and alive[a, c]:
            expected[a, b, c] = {("up", a, c), ("down", a, c)}
        if a != b and c == b and alive[a, b]:
            expected[a, b, c] = {("up", a, b), ("down", b, a)}
        if len({a, b, c}) == 3 and alive[a, c] and alive[c, b]:
            expected[a, b, c] = {("up", a, c), ("down", c, a), ("up", c, b), ("down", b, c)}
    routes = list(zip(problem.source.tolist(), problem.target.tolist(), problem.between.tolist(), strict=True))
    assert sorted(routes) == sorted(expected)
    through = {frozenset(routes[r] for r in row.nonzero()[0]) for row in problem.through.toarray()}
    links = set().union(*expected.values())
    assert len(through) == problem.through.shape[0] == len(links)
    assert through == {frozenset(route for route, used in expected.items() if link in used) for link in links}


def found_columns() -> tuple[MLFMInstance, ColumnPhases]:
    instance = damaged(3, 3, 4, 2, spines=[(0, 1), (0, 2)])
    found = load(FAMILY.unpack)(instance, synth.solve(instance, "columns").packed or {})
    assert isinstance(found, ColumnPhases)
    return instance, found


def test_packed_and_read_back() -> None:
    instance, found = found_columns()
    assert same_transfers(unpack(instance, pack(found)), found)
    assert sum(len(rows.dest) for rows in found.rows()) == found.phases
    assert check_phases(instance, found).faults == []


@pytest.mark.long(after=3)
@pytest.mark.parametrize("name", ["group", "source", "slot", "target", "first", "shift", "spine", "middle", "second"])
def test_the_check_sees_every_damaged_column(name: str) -> None:
    """One flow changed in one place (also left out): the replay names a fault, or the file is refused."""
    instance, found = found_columns()
    two = int(np.flatnonzero(found.middle >= 0)[0])
    for value in range(-1, 4):
        values = getattr(found, name).copy()
        if values[two] == value:
            continue
        values[two] = value
        try:
            changed = replace(found, **{name: values})
        except ValueError:
            continue
        assert check_phases(instance, changed).faults != []
    keep = np.arange(len(found.group)) != two
    fewer = replace(found, **{key: values[keep] for key, values in found.arrays().items()})
    assert check_phases(instance, fewer).faults != []


HOSTILE: list[tuple[str, Any]] = [
    ("groups", 1), ("groups", 2**40), ("groups", 2**20), ("length", 0), ("length", 4), ("slots", 0), ("slots", 3),
    ("layers", 2**19), ("columns", 5), ("stride", -1), ("length", 2**63 - 1), ("groups", -0.5),
    ("first", np.zeros(0, np.int8)),
    ("stride", 3), ("group", -1), ("source", 4), ("slot", 2), ("target", 4), ("first", 2), ("shift", 3),
    ("spine", 2**21), ("slot", np.zeros(3, np.int8)), ("middle", np.zeros((2, 2), np.int8)),
]  # fmt: skip


@pytest.mark.long(after=9)
@pytest.mark.parametrize(("key", "value"), HOSTILE)
def test_hostile_files_are_refused(key: str, value: Any) -> None:
    instance, found = found_columns()
    packed = pack(found)
    if isinstance(value, int) and isinstance(packed[key], np.ndarray):
        value = np.full(len(found.group), value)
    with pytest.raises(ValueError, match=r"\w"):
        unpack(instance, packed | {key: value})


def test_the_job_in_another_shape_is_refused() -> None:
    """As many servers in one leaf, in groups as long as that, would ask for a table of servers squared."""
    instance, found = found_columns()
    flat = {"layers": 1, "columns": 1, "slots": instance.ranks, "length": instance.ranks, "groups": 1}
    zeros = {name: np.zeros(1, np.int8) for name in found.arrays()}
    with pytest.raises(ValueError, match="not for the job's"):
        unpack(instance, pack(found) | flat | zeros)


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (damaged(3, 2, 4, 3, failed={"leaves": [[0, 0]]}), "nothing but spines and cables may have failed"),
        (damaged(3, 2, 4, 3, block=None, subset=[[0, 0, 0]]), "columns needs a block of servers"),
    ],
)
def test_what_it_is_not_for(instance: MLFMInstance, words: str) -> None:
    record = synth.solve(instance, "columns")
    assert record["termination"] == "unsupported"
    assert words in record["message"]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "phases", "length"), [(100, 27_621, 9), (30, 8_685, 9), (1, 6_500, 2)])
def test_failed_spines_of_the_whole_machine(count: int, phases: int, length: int) -> None:
    """MLFM(18) with 71, 141, 170 of 171 spines left. 341 * 18 * 18 flows over the four up-links of a leaf are 27,621
    phases, over 17 they are 6,500; 8,685 come from weights on many links."""
    spines = [(a, b) for a in range(19) for b in range(a + 1, 19)]
    dead = [spines[number] for number in np.random.default_rng(0).permutation(171)[:count]]
    instance = damaged(18, 18, 19, 18, spines=dead)
    assert defaults_for(FAMILY, instance) == ("bound", "columns")
    record = synth.solve(instance, "columns")
    assert (record["termination"], record.value, record.bound, record.ok) == ("optimal", phases, phases, True)
    assert record.grade == "certified"
    found = load(FAMILY.unpack)(instance, record.packed or {})
    assert isinstance(found, ColumnPhases)
    assert found.length == length


@pytest.mark.slow
def test_a_failed_cable_of_the_whole_machine() -> None:
    """Its spine left out, the fewest phases that the machine with the cable gone allows: 6,500 again."""
    instance = damaged(18, 18, 19, 18, links=[(3, 4, 11)])
    assert defaults_for(FAMILY, instance) == ("bound", "repair", "columns")
    record = synth.solve(instance, "columns")
    assert (record["termination"], record.value, record.bound, record.grade) == ("optimal", 6_500, 6_500, "certified")
    assert record.ok
