"""What a congested phase counts as: the congestion-free phases it splits into, by brute force and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models.mlfm.slow_replay import colours, least_phases, replay, routes, value

from synth.instance import parse
from synth_models.mlfm.check import congested_phases
from synth_models.mlfm.check.congested_phases import congestion_free_phases
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import PhaseTable


def job(servers: list[list[int]], d: int = 2, **changes: Any) -> MLFMInstance:
    raw = {"family": "mlfm", "name": "x", "source": "a test", "d": d, "subset": servers, "routes": "detour"}
    made = parse(raw | changes, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


def table(*parts: Any) -> PhaseTable:
    return PhaseTable(*(np.array(part, dtype=np.int32) for part in parts))


def test_three_flows_round_a_ring_of_leaves() -> None:
    """Servers 0, 1, 2 on leaves 0.0, 0.1, 0.2 of MLFM(2); spines 0-1, 0-2, 1-2 are 0, 1, 2. Phase 1 sends to the next
    server the long way round, over the third one's leaf: 0 -> 2 -> 1, 1 -> 0 -> 2, 2 -> 1 -> 0. Each of the six links
    of that way carries two flows, and any two flows meet on one: load 2, three phases. Phase 0 stays inside, phase 2
    goes the other way round, directly: 1 + 3 + 1 = 5, where the loads add up to 1 + 2 + 1 = 4."""
    instance = job([[0, 0, 0], [0, 1, 0], [0, 2, 0]])
    dest, none = [[0, 1, 2], [1, 2, 0], [2, 0, 1]], [-1, -1, -1]
    ring = table(dest, [none, [1, 0, 2], [1, 0, 2]], [none, [2, 0, 1], none], [none, [2, 1, 0], none])
    verdict = check_phases(instance, ring)
    assert (verdict.faults, verdict.value) == ([], 5)
    assert verdict.facts["worst_link_load"] == 2
    assert verdict.facts["time_s"] == pytest.approx(4 * 16 / 3770)  # links share their bandwidth, so that is by loads
    assert replay(instance, ring) == (True, [0, 2, 1])
    assert value(instance, ring) == 5


LINKS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2), st.integers(3, 5)),
        st.tuples(st.integers(0, 2), st.integers(6, 8), st.integers(0, 2), st.integers(3, 5)),
        st.just(()),
    ),
    min_size=1,
    max_size=8,
)


def padded(flows: list[tuple[int, ...]]) -> Any:
    return np.array([[*flow, *[-1] * (4 - len(flow))] for flow in flows])


def compared(flows: list[tuple[int, ...]]) -> None:
    assume(all(len(set(flow)) == len(flow) for flow in flows))
    assert congestion_free_phases(padded(flows)) == colours([set(flow) for flow in flows])


@pytest.mark.long
@pytest.mark.parametrize("examples", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_count_is_that_of_all_partitions(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(LINKS)(compared))()


@pytest.mark.parametrize("seed", range(5))
def test_one_spine_flows_need_as_many_as_the_worst_link_carries(seed: int) -> None:
    random = np.random.default_rng(seed)
    flows = np.stack([random.integers(0, 9, 200), random.integers(9, 20, 200)], axis=1)
    links = np.concatenate([flows, np.full((200, 2), -1)], axis=1)
    assert congestion_free_phases(links) == np.bincount(flows.ravel()).max()


def test_where_the_search_gives_up_the_colouring_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never too few: without work, and without search, still at least what all partitions need."""
    random = np.random.default_rng(0)
    cases = [np.array([random.permutation(7)[:4] for _ in range(7)]) for _ in range(60)]
    exact = [congestion_free_phases(links) for links in cases]
    assert exact == [colours([set(flow) for flow in links.tolist()]) for links in cases]
    for name in ("WORK", "LARGEST"):
        monkeypatch.setattr(congested_phases, name, 0)
        for links, fewest in zip(cases, exact, strict=True):
            assert congestion_free_phases(links) >= fewest
    many = np.stack([random.integers(100 * i, 100 * i + 100, 1500) for i in range(4)], axis=1)
    assert congestion_free_phases(many) >= np.bincount(many.ravel()).max()


@st.composite
def schedules(draw: st.DrawFn) -> tuple[MLFMInstance, PhaseTable]:
    """Two to four servers of MLFM(2), all shifts in some order, every transfer over any allowed route."""
    everyone = [[i, j, k] for i in range(2) for j in range(3) for k in range(2)]
    servers = draw(st.lists(st.sampled_from(everyone), min_size=2, max_size=4, unique_by=tuple))
    cables = [{"leaf": [i, j], "spine": sorted((j, o))} for i in range(2) for j in range(3) for o in range(3) if o != j]
    instance = job(servers, failed={"links": draw(st.lists(st.sampled_from(cables), max_size=2, unique_by=str))})
    spines = [frozenset(pair) for pair in itertools.combinations(range(3), 2)]
    parts: list[list[list[int]]] = [[], [], [], []]
    for shift in draw(st.permutations(range(len(servers)))):
        phase = []
        for x, (i, j, _) in enumerate(servers):
            y = (x + shift) % len(servers)
            allowed = routes(instance, (i, j), tuple(servers[y][:2]))
            assume(bool(allowed))
            route = draw(st.sampled_from(allowed))
            named = [spines.index(link[2]) for link in route[::2]] + [-1, -1]
            middle = route[1][1][0] * 3 + route[1][1][1] if len(route) == 4 else -1
            phase.append([y, named[0], middle, named[1]])
        for part, column in zip(parts, zip(*phase, strict=True), strict=True):
            part.append(list(column))
    return instance, table(*parts)


@settings(max_examples=some(25), deadline=None)
@given(schedules())
def test_no_value_lies_below_the_fewest_congestion_free_phases(made: tuple[MLFMInstance, PhaseTable]) -> None:
    """Random schedules, congested ones among them, against exhaustive search between servers."""
    instance, solution = made
    verdict = check_phases(instance, solution)
    assert verdict.ok
    assert verdict.value == value(instance, solution)
    assert verdict.value >= least_phases(instance, 12)
    assert verdict.value >= sum(max(1, load) for load in replay(instance, solution)[1])
