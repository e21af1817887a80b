"""The sixteen directions of EquiMesh's rings: classes, schedules carried over, and what ``rings=best`` takes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from models.xtree.cases import make

import synth
from synth.errors import InputError
from synth.network.builders import equimesh
from synth.schedule.replay import replay
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.parts.ring_directions import ALL, PHASES, best, carried, classes, cost, turned
from synth_models.xtree.references import pull

GRIDS = [(2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (4, 5)]
ODD, EVEN = ("odd_up",) * 4, ("even_up",) * 4


def arcs(network) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for u, v in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        found[u, v] = found.get((u, v), 0) + 1
    return found


def graph(network) -> nx.DiGraph:
    made = nx.DiGraph()
    made.add_weighted_edges_from((u, v, copies) for (u, v), copies in arcs(network).items())
    return made


@pytest.mark.parametrize("sides", GRIDS, ids=str)
def test_a_class_is_one_network_with_other_numbers(sides):
    grouped = classes(*sides)
    assert sorted(choice for members in grouped.values() for choice in members) == sorted(ALL)
    for first, members in grouped.items():
        assert members[0] == first
        for choice in members[1:]:
            one, other = graph(equimesh(*sides, first)), graph(equimesh(*sides, choice))
            assert nx.is_isomorphic(one, other, edge_match=lambda a, b: a["weight"] == b["weight"])


def test_classes_of_an_even_square_by_hand():
    """A flip keeps the direction of a ring of even length, so only which edges differ counts: none, one, two beside
    each other, two opposite, three, four. With odd sides a flip turns the rings along it."""
    assert sorted(len(members) for members in classes(6, 6).values()) == [1, 1, 2, 4, 4, 4]
    assert len(classes(5, 11)) == 5


@pytest.mark.parametrize("choice", ALL[::3], ids=str)
def test_turning_all_rings_reverses_the_network(choice):
    assert arcs(equimesh(4, 5, choice).reversed()) == arcs(equimesh(4, 5, turned(choice)))


@pytest.mark.parametrize("sides", [(3, 3), (4, 5)], ids=str)
def test_a_schedule_is_carried_to_every_network_of_its_class_and_to_no_other(sides):
    for first, members in classes(*sides).items():
        source = equimesh(*sides, first)
        schedule = pull.allgather(source, 1, np.random.SeedSequence(1))
        for choice in ALL:
            target = equimesh(*sides, choice)
            if choice in members:
                moved = carried(schedule, source, target)
                task = make(network="equimesh", rows=sides[0], cols=sides[1]).task
                assert replay(target, task, moved).ok
                assert moved.steps == schedule.steps
            else:
                with pytest.raises(ValueError, match="no rotation"):
                    carried(schedule, source, target)


@pytest.mark.parametrize("sides", [(3, 3), (4, 4), pytest.param((4, 6), marks=pytest.mark.slow)], ids=str)
def test_best_takes_the_fewest_timesteps_of_all(sides):
    """Each class solved to its proven optimum, then the choice compared with all of them."""
    rows, cols = sides
    optimum = {}
    for first, members in classes(rows, cols).items():
        record = synth.solve(make(network="equimesh", rows=rows, cols=cols, rings=list(first)), "ilp")
        assert record.gap == 0
        optimum |= dict.fromkeys(members, record.value)
    for collective, phases in PHASES.items():
        needs = {c: sum(optimum[turned(c) if backwards else c] for backwards in phases) for c in ALL}
        assert needs[best(rows, cols, 1, collective)] == min(needs.values())


def test_best_on_even_grids():
    for rows, cols in ((4, 4), (6, 6), (4, 8), (8, 8)):
        assert best(rows, cols, 1, "allgather") == ODD
        assert best(rows, cols, 1, "reduce_scatter") == EVEN
        assert best(rows, cols, 1, "allreduce") in (ODD, EVEN)


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_cost_states_a_proven_bound_where_no_corner_loses_a_link(chunks):
    for rows, cols in GRIDS[2:]:
        for choice in ALL:
            network = make(network="equimesh", rows=rows, cols=cols, chunks=chunks, rings=list(choice))
            timesteps, corners = cost(rows, cols, choice, chunks, "allgather")
            if not corners or chunks > 1:
                assert timesteps <= lower_bound(network)[0]


def test_make_takes_best():
    words = dict(network="equimesh", rows=4, cols=4)
    for collective, choice in (("allgather", ODD), ("reduce_scatter", EVEN)):
        made = make(**words, rings="best", collective=collective)
        same = make(**words, rings=list(choice), collective=collective)
        assert made.network == same.network
        assert "rings=best" in made.source


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (dict(network="equimesh", rows=1, cols=4, rings="best"), "rows"),
        (dict(network="equimesh", rows=1000, cols=1000, rings="best"), "at most"),
        (dict(network="equimesh", rows=4, cols=4, rings="good"), "or best"),
        (dict(network="mesh", rows=4, cols=4, rings="best"), "unknown parameter"),
    ],
    ids=str,
)
def test_wrong_keys_beside_best(words, message):
    with pytest.raises(InputError, match=message):
        make(**words)
