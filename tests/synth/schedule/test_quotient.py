"""Schedules that symmetry repeats: the check of the quotient against a full replay of all that it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import some_of

from synth.errors import InputError, UnsupportedError
from synth.network import Network
from synth.network.builders import grid, hypercube, ring
from synth.network.symmetry import translation, unit_translations
from synth.schedule import COLLECTIVES, Schedule
from synth.schedule.quotient import QuotientSchedule, listed
from synth.schedule.replay import replay
from synth.schedule.replay_every import replay_every
from synth.schedule.replay_quotient import replay_quotient
from synth.schedule.timing import completion_of_quotient, earliest_times
from synth_models.xtree.references.cycle import around
from synth_models.xtree.references.symmetric import one_node


def circulant(nodes: int, jumps: tuple[int, ...], copies: int = 1) -> Network:
    links = [(v, (v + jump) % nodes) for jump in jumps for v in range(nodes) for _ in range(copies)]
    return Network(nodes, links, grid=(nodes,))


NETWORKS = {
    "ring": ring(5),
    "one way": ring(4, bidirectional=False),
    "torus": grid((3, 4), wrap=True),
    "narrow": grid((2, 5), wrap=True),
    "hypercube": hypercube(3),
    "circulant": circulant(7, (1, 2, 4)),
    "parallel": circulant(5, (1, 3), copies=2),
}


def by_hand(network: Network, schedule: QuotientSchedule) -> Schedule:
    """Every transfer from the definition: all products of the generators, links told apart by copy."""
    within = range(network.links) if schedule.within is None else schedule.within.tolist()
    ends: dict[tuple[int, int], list[int]] = {}
    for e in sorted(within):
        ends.setdefault((int(network.src[e]), int(network.dst[e])), []).append(e)
    group = {tuple(range(network.nodes))}
    while True:
        more = group | {tuple(int(g[v]) for v in one) for one in group for g in schedule.generators}
        if more == group:
            break
        group = more
    assert sorted(g[0] for g in group) == list(range(network.nodes)), "the group is regular"
    chunks = 1 + int(schedule.part.chunk.max())
    rows = []
    for g in group:
        columns = (getattr(schedule.part, key).tolist() for key in ("step", "link", "chunk", "adds"))
        for step, e, chunk, adds in zip(*columns, strict=True):
            u, w = int(network.src[e]), int(network.dst[e])
            rows.append((step, ends[g[u], g[w]][ends[u, w].index(e)], g[0] * chunks + chunk, adds))
    return Schedule.of(*(np.array(column) for column in zip(*rows, strict=True)))


def as_set(schedule: Schedule) -> set[tuple[int, int, int, bool]]:
    return set(zip(*(getattr(schedule, k).tolist() for k in ("step", "link", "chunk", "adds")), strict=True))


def schedule_of(network: Network, chunks: int, collective: str, seed: int = 0) -> QuotientSchedule:
    def gather(net: Network) -> QuotientSchedule:
        return one_node(net, chunks, np.random.SeedSequence(seed), 0)

    scatter = gather(network.reversed())
    back = replace(scatter, part=scatter.part.reversed_in_time(adds=True))
    if collective == "reduce_scatter":
        return back
    return gather(network) if collective == "allgather" else replace(back, part=back.part.then(gather(network).part))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("name", some_of(NETWORKS))
def test_quotient_and_full_replay_agree(name, collective):
    network = NETWORKS[name]
    for chunks in (1, 3):
        task = COLLECTIVES[collective](network.nodes, chunks)
        schedule = schedule_of(network, chunks, collective)
        whole = listed(network, schedule)
        assert as_set(whole) == as_set(by_hand(network, schedule))
        small, full = replay_quotient(network, task, schedule), replay(network, task, whole)
        assert small.ok, small.faults
        assert full.ok, full.faults
        counts = full.steps, full.transfers, full.redundant
        assert (small.steps, small.transfers, small.redundant) == counts
        if collective == "allgather":
            every = replay_every(network, task, schedule)
            assert every.ok
            assert (every.steps, every.transfers, every.redundant) == counts
        seconds = earliest_times(network, task, whole, 1000.0).completion
        assert completion_of_quotient(network, task, schedule, 1000.0) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("sides", [(2, 2), (2, 3), (4, 5), (5, 4)], ids=str)
def test_a_cycle_within_a_mesh(sides):
    """The mesh itself has no translations; its cycle has."""
    network = grid(sides, wrap=False)
    for chunks in (1, 2, 3):
        task = COLLECTIVES["allgather"](network.nodes, chunks)
        schedule = around(network, chunks)
        whole = listed(network, schedule)
        assert as_set(whole) == as_set(by_hand(network, schedule))
        assert replay_quotient(network, task, schedule).ok
        assert replay(network, task, whole).ok
        assert schedule.steps == -(-chunks * (network.nodes - 1) // 2)
        if sides != (2, 2):  # which is nothing but a cycle
            assert "does not map the links" in replay_quotient(network, task, replace(schedule, within=None)).faults[0]


def mutated(network: Network, schedule: QuotientSchedule, random: np.random.Generator) -> QuotientSchedule:
    """One entry of the part changed at random: a step, a link, a chunk, a flag, or a transfer left out or doubled."""
    columns: dict[str, Any] = {k: getattr(schedule.part, k).copy() for k in ("step", "link", "chunk", "adds")}
    i = int(random.integers(len(schedule.part)))
    match random.integers(6):
        case 0:
            columns["step"][i] = random.integers(1, schedule.steps + 2)
        case 1:
            columns["link"][i] = random.integers(network.links)
        case 2:
            columns["chunk"][i] = random.integers(1 + int(columns["chunk"].max()))
        case 3:
            columns["adds"][i] = not columns["adds"][i]
        case 4:
            columns = {k: np.delete(column, i) for k, column in columns.items()}
        case _:
            columns = {k: np.append(column, column[i]) for k, column in columns.items()}
    return replace(schedule, part=Schedule.of(*columns.values()))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("name", NETWORKS)
def test_damaged_parts_get_the_verdict_of_a_full_replay(name, collective):
    """Whatever is done to the part, the quotient is right iff the whole is: the check is exact, both ways."""
    network, random = NETWORKS[name], np.random.default_rng(3)
    task = COLLECTIVES[collective](network.nodes, 2)
    good = schedule_of(network, 2, collective)
    verdicts = []
    for _ in range(25):
        bad = mutated(network, good, random)
        if random.random() < 0.3:
            bad = mutated(network, bad, random)
        if int(bad.part.chunk.max()) != 1:
            continue  # the number of chunks is told from the largest
        small, full = replay_quotient(network, task, bad), replay(network, task, by_hand(network, bad))
        assert small.ok == full.ok, (small.faults, full.faults)
        if collective == "allgather":
            every = replay_every(network, task, bad)
            assert every.ok == full.ok, every.faults
            assert not every.ok or every.redundant == full.redundant
        if small.ok:
            assert small.redundant == full.redundant
        verdicts.append(small.ok)
    assert not all(verdicts)


def test_symmetries_are_not_trusted():
    """Every way in which generators may be wrong, each refused, with the schedule itself in order."""
    network = NETWORKS["torus"]
    task = COLLECTIVES["allgather"](12, 1)
    good = schedule_of(network, 1, "allgather")
    assert replay_quotient(network, task, good).ok
    down, across = (np.asarray(g) for g in good.generators)
    flip = np.arange(12).reshape(3, 4)[:, ::-1].ravel()
    constant, beyond = np.zeros(12, dtype=np.int64), np.arange(1, 13)
    for generators, words in (
        ([np.roll(np.arange(12), 1)], "does not map the links"),
        ([down, across, flip], "do not commute"),
        ([down], "every node"),
        ([across, across], "every node"),
        ([], "every node"),
        ([down, constant], "no permutation"),
        ([down, beyond], "no permutation"),
        ([down, -across], "no permutation"),
        ([down, across] * 33, "at most 64"),
    ):
        wrong = replace(good, generators=np.array(generators, dtype=np.int64).reshape(-1, 12))
        assert words in replay_quotient(network, task, wrong).faults[0]
    short = replace(good, generators=np.array([np.arange(11)]))
    assert "shape" in replay_quotient(network, task, short).faults[0]


def test_unequal_links_are_no_symmetry():
    base = NETWORKS["ring"]
    ends = list(zip(base.src.tolist(), base.dst.tolist(), strict=True))
    task, good = COLLECTIVES["allgather"](5, 1), schedule_of(base, 1, "allgather")
    for key in ("bandwidth", "latency"):
        values = {"bandwidth": base.bandwidth.copy(), "latency": base.latency.copy()}
        values[key][2] *= 2
        uneven = Network(5, ends, values["bandwidth"], values["latency"])
        assert "bandwidth and latency" in replay_quotient(uneven, task, good).faults[0]


def test_parallel_links_of_two_speeds_keep_their_kind():
    """Two links a hop, a fast and a slow one, in another order at each node: images are told apart by speed."""
    links, speed = [], []
    for v in range(4):
        for fast in (v % 2, 1 - v % 2):
            links.append((v, (v + 1) % 4))
            speed.append(2e9 if fast else 1e9)
    network = Network(4, links, speed, grid=(4,))
    unit = np.stack(unit_translations(network))
    task = COLLECTIVES["allgather"](4, 1)
    of = {(u, s): e for e, ((u, _), s) in enumerate(zip(links, speed, strict=True))}
    part = Schedule.of([1, 2, 3], [of[0, 2e9], of[1, 2e9], of[2, 2e9]], [0, 0, 0])
    schedule = QuotientSchedule(part, unit)
    assert replay_quotient(network, task, schedule).ok
    whole = listed(network, schedule)
    assert replay(network, task, whole).ok
    assert set(network.bandwidth[whole.link]) == {2e9}
    assert completion_of_quotient(network, task, schedule, 8.0) == earliest_times(network, task, whole, 8.0).completion


def test_links_that_are_moved_are_checked():
    network = grid((2, 3), wrap=False)
    task, good = COLLECTIVES["allgather"](6, 1), around(network, 1)
    assert good.within is not None
    other = int(np.setdiff1d(np.arange(network.links), good.within)[0])
    part = Schedule.of(good.part.step, np.where(good.part.step == 1, other, good.part.link), good.part.chunk)
    for wrong, words in (
        (replace(good, within=np.append(good.within, good.within[0])), "told apart"),
        (replace(good, within=good.within + network.links), "does not exist"),
        (replace(good, within=good.within - network.links), "does not exist"),
        (replace(good, within=good.within[1:]), "does not map the links"),
        (replace(good, within=good.within[:0]), "do not move it"),
        (replace(good, part=part), "do not move it"),
    ):
        assert words in replay_quotient(network, task, wrong).faults[0]


def test_part_with_chunks_of_others():
    network = NETWORKS["ring"]
    task, good = COLLECTIVES["allgather"](5, 1), schedule_of(NETWORKS["ring"], 1, "allgather")
    for column in ("chunk", "step", "link"):
        for value in (-1, 10**9):
            values = {k: getattr(good.part, k).copy() for k in ("step", "link", "chunk")}
            values[column][1] = value
            result = replay_quotient(network, task, replace(good, part=Schedule.of(*values.values())))
            assert not result.ok
            assert "does not exist" in result.faults[0] or column == "step"


@pytest.mark.long
def test_a_long_list_is_refused():
    network = NETWORKS["torus"]
    with pytest.raises(InputError, match="132 transfers"):
        listed(network, schedule_of(network, 1, "allgather"), most=100)


def test_no_list_of_what_is_no_symmetry():
    network = NETWORKS["torus"]
    good = schedule_of(network, 1, "allgather")
    for generators in (good.generators[:1], translation((3, 4), (0, 1))[::-1].copy()[None, :]):
        with pytest.raises(InputError):
            replay_every(network, COLLECTIVES["allgather"](12, 1), replace(good, generators=generators))
        with pytest.raises(InputError):
            listed(network, replace(good, generators=generators))


def test_reductions_are_not_replayed_one_by_one():
    network = NETWORKS["ring"]
    schedule = schedule_of(network, 1, "allreduce")
    with pytest.raises(UnsupportedError):
        replay_every(network, COLLECTIVES["allreduce"](5, 1), schedule)
