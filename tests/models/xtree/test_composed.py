"""`composed`: networks under other numbers against all permutations, schedules carried, reversed and shifted, the
library's own allreduces on EquiMesh."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.xtree.cases import make
from published import PUBLISHED

from synth.errors import UnsupportedError
from synth.library.best_known import instance_of as instance_in
from synth.library.best_known import read
from synth.network import Network
from synth.network.builders import equimesh
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.schedule.collective import allgather, allreduce, reduce_scatter
from synth.schedule.replay import replay
from synth_models.xtree.parts.isomorphic import carried, renumberings
from synth_models.xtree.references import composed, pull
from synth_models.xtree.references.shifted import shifted

LIBRARY = str(PUBLISHED / "library.csv")


@st.composite
def networks(draw: st.DrawFn, nodes: int = 5) -> Network:
    """A ring both ways round, which may lack a link back, and a few links more, parallel ones among them."""
    count = draw(st.integers(3, nodes))
    links = [(v, (v + 1) % count) for v in range(count)] + [((v + 1) % count, v) for v in range(count - 1)]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(1, count - 1))
    return Network(count, links + [(v, (v + by) % count) for v, by in draw(st.lists(pairs, max_size=4))])


def matrix(network: Network, image: tuple[int, ...]) -> list[list[int]]:
    """Links from node to node where node v is called ``image[v]``."""
    found = [[0] * network.nodes for _ in range(network.nodes)]
    for u, v in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        found[image[u]][image[v]] += 1
    return found


@given(networks(), st.randoms(use_true_random=False))
def test_renumberings_are_those_of_all_permutations_that_fit(network: Network, random: object) -> None:
    order = list(range(network.nodes))
    random.shuffle(order)  # type: ignore[attr-defined]
    links = [(order[u], order[v]) for u, v in zip(network.src.tolist(), network.dst.tolist(), strict=True)]
    other = Network(network.nodes, links[::-1])
    plain = tuple(range(network.nodes))
    wanted = [image for image in permutations(plain) if matrix(network, image) == matrix(other, plain)]
    assert [tuple(image.tolist()) for image in renumberings(network, other)] == wanted
    assert tuple(order) in wanted


@given(networks(), st.integers(1, 2))
def test_carried_and_reversed_schedules_replay(network: Network, chunks: int) -> None:
    """On the network under other numbers an allgather is one; backwards it is a reduce-scatter of the reversed one."""
    image = np.roll(np.arange(network.nodes), 1)
    links = np.stack([image[network.src], image[network.dst]], axis=1)[::-1]
    other, own = Network(network.nodes, links), allgather(network.nodes, chunks)
    made = pull.allgather(network, chunks, np.random.SeedSequence(0))
    moved = carried(made, network, other, image, chunks)
    assert replay(other, own, moved).faults == []
    back = moved.reversed_in_time(adds=~moved.adds)
    assert replay(other.reversed(), reduce_scatter(network.nodes, chunks), back).faults == []
    assert moved.steps == back.steps == made.steps


@given(networks(), st.integers(1, 2), st.integers(1, 3))
def test_shifts_take_out_what_was_put_in(network: Network, chunks: int, slower: int) -> None:
    """An allreduce whose timesteps are ``slower`` apart gets no longer, and never loses anything."""
    halves = [pull.allgather(one, chunks, np.random.SeedSequence(1)) for one in (network.reversed(), network)]
    both = halves[0].reversed_in_time(adds=True).then(halves[1])
    apart = Schedule.of(both.step * slower, both.link, both.chunk, both.adds)
    found = shifted(network, apart, 0, 5, RunOptions(None), np.random.default_rng(0))
    assert replay(network, allreduce(network.nodes, chunks), found).faults == []
    assert len(found) == len(both)
    assert found.steps <= both.steps


def test_a_sum_that_leaves_early_is_not_shifted() -> None:
    """0 -> 1 -> 2: node 1 sends its own part on before node 0's comes, which is a fault that shifts would hide."""
    line = Network(3, [(0, 1), (1, 0), (1, 2), (2, 1)])
    early = Schedule.of([2, 1], [0, 2], [2, 2], True)
    assert shifted(line, early, 0, 3, RunOptions(None), np.random.default_rng(0)) is early


@pytest.mark.parametrize(("rows", "cols", "timesteps"), [(8, 8, 33), (5, 11, 28)])
def test_an_allreduce_on_equimesh_is_two_allgathers(rows: int, cols: int, timesteps: int) -> None:
    """17 + 16 timesteps, the reversed network's allgather being that of other ring directions; 14 + 14."""
    name = f"equimesh-{rows}x{cols}-c1-allreduce"
    row = next(row for row in read(PUBLISHED / "library.csv") if row.instance == name)
    instance = instance_in(row, PUBLISHED)
    outcome = composed.solve(instance, RunOptions(None, method={"library": LIBRARY, "passes": 0}))
    found = replay(instance.topology, instance.task, outcome.solution)
    assert found.faults == []
    assert found.steps == timesteps
    assert outcome.made_by is not None
    assert outcome.made_by[0] == "composed"
    assert len(outcome.made_by) > 1


def test_turned_rings_are_the_reversed_network() -> None:
    turned = equimesh(4, 4, ("odd_up",) * 4)
    assert next(renumberings(equimesh(4, 4, ("even_up",) * 4).reversed(), turned), None) is not None
    assert next(renumberings(equimesh(4, 4, ("even_up",) * 4), turned), None) is None


def test_nothing_fits_a_network_that_the_library_does_not_have() -> None:
    with pytest.raises(UnsupportedError, match="no schedule of the same network"):
        composed.solve(make(network="ring", nodes=9), RunOptions(None, method={"library": LIBRARY, "passes": 0}))
