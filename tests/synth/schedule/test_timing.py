"""Alpha-beta times: computed by hand, and against a slow second computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

import synth.schedule as collectives
from synth.network import Network
from synth.schedule import Collective, Schedule
from synth.schedule.timing import earliest_times
from synth_models.xtree.references import pull


def line3(second_bandwidth: float = 100.0, second_latency: float = 1.0) -> Network:
    """0 -> 1 -> 2 and back 2 -> 0; link 0 takes 1 + 100/100 = 2 s for a chunk of 100 bytes, link 1 as given."""
    links = [(0, 1), (1, 2), (2, 0)]
    return Network(3, links, [100.0, second_bandwidth, 100.0], [1.0, second_latency, 1.0])


PIPELINE = Schedule.of([1, 2, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1])  # two chunks from 0 to 1 and on to 2
BROADCAST = collectives.broadcast(3, 0, 2)


@pytest.mark.parametrize(
    ("bandwidth", "latency", "second_starts", "completion"),
    [
        (100.0, 1.0, [2.0, 4.0], 6.0),  # equal links: [0,2] [2,4] on the first, [2,4] [4,6] on the second
        (50.0, 1.0, [2.0, 5.0], 8.0),  # slow second link, 3 s: the second chunk arrives at 4 and waits for it until 5
        (200.0, 1.0, [2.0, 4.0], 5.5),  # fast second link, 1.5 s: free at 3.5, but the second chunk arrives at 4
        (100.0, 9.0, [2.0, 12.0], 22.0),  # latency occupies the link as well: 10 s each
        (math.inf, 0.0, [2.0, 4.0], 4.0),
    ],
)
def test_pipelining_by_hand(bandwidth: float, latency: float, second_starts: list[float], completion: float) -> None:
    network = line3(1e18 if math.isinf(bandwidth) else bandwidth, latency)
    timing = earliest_times(network, BROADCAST, PIPELINE, 100.0)
    assert timing.start == pytest.approx([0.0, 2.0, *second_starts])
    assert timing.completion == pytest.approx(completion)


def test_order_of_rows_does_not_matter() -> None:
    """Times belong to rows: the pipeline listed backwards has the same times backwards."""
    backwards = Schedule.of(PIPELINE.step[::-1], PIPELINE.link[::-1], PIPELINE.chunk[::-1])
    timing = earliest_times(line3(), BROADCAST, backwards, 100.0)
    assert timing.start == pytest.approx([4.0, 2.0, 2.0, 0.0])


def test_steps_do_not_synchronise() -> None:
    """0 -> 1 takes 2 s, 1 -> 2 takes 10 s. Step 1 sends chunk 0 over the first and chunk 1 (node 1's) over the second;
    in step 2 the first link goes on at once at 2 s although step 1 lasts until 10 s; the second one then at 10 s."""
    network = line3(100.0, 9.0)
    task = Collective("some", 3, np.array([0, 1, 0], np.int32), False, False, np.array([2, 2, 1], np.int32))
    schedule = Schedule.of([1, 1, 2, 2], [0, 1, 0, 1], [0, 1, 2, 0])
    timing = earliest_times(network, task, schedule, 100.0)
    assert timing.start == pytest.approx([0.0, 0.0, 2.0, 10.0])
    assert timing.completion == pytest.approx(20.0)


def test_a_sum_waits_for_its_last_contribution() -> None:
    """0 -> 2 in 2 s and 1 -> 2 in 5 s, both in step 1; 2 -> 3 in step 2 waits for both: starts at 5, ends at 7.

    Copies back in step 3 (3 -> 0) start at 7.
    """
    network = Network(4, [(0, 2), (1, 2), (2, 3), (3, 0), (0, 1)], [100.0, 25.0, 100.0, 100.0, 100.0], 1.0)
    task = Collective("reduce", 4, np.array([3], np.int32), True, False, np.array([3], np.int32))
    schedule = Schedule.of([1, 1, 2, 3], [0, 1, 2, 3], [0, 0, 0, 0], [True, True, True, False])
    timing = earliest_times(network, task, schedule, 100.0)
    assert timing.start == pytest.approx([0.0, 0.0, 5.0, 7.0])


def test_the_first_of_two_copies_counts() -> None:
    """Chunk 0 reaches node 2 over the slow link 0 -> 2 (step 1, 10 s) and over 1 (steps 1, 2: 4 s). What leaves 2 in
    step 3 may start at 4 s; what leaves in step 2 builds on the slow one, 10 s."""
    network = Network(4, [(0, 2), (0, 1), (1, 2), (2, 3)], [100.0, 100.0, 100.0, 100.0], [9.0, 1.0, 1.0, 1.0])
    task = collectives.broadcast(4, 0, 1)
    for step, start in ((3, 4.0), (2, 10.0)):
        schedule = Schedule.of([1, 1, 2, step], [0, 1, 2, 3], [0, 0, 0, 0])
        assert earliest_times(network, task, schedule, 100.0).start[3] == pytest.approx(start)


def test_parallel_links_of_different_speed() -> None:
    """Two links 0 -> 1 of 2 s and 5 s: each takes its own chunk from 0 s on."""
    network = Network(2, [(0, 1), (0, 1), (1, 0)], [100.0, 25.0, 100.0], 1.0)
    timing = earliest_times(network, collectives.broadcast(2, 0, 2), Schedule.of([1, 1], [0, 1], [0, 1]), 100.0)
    assert timing.end == pytest.approx([2.0, 5.0])


def test_empty_schedule_takes_no_time() -> None:
    assert earliest_times(line3(), BROADCAST, Schedule.of([], [], []), 100.0).completion == 0.0


@st.composite
def timed_cases(draw: st.DrawFn) -> tuple[Network, Collective, Schedule]:
    """Valid schedules on random strongly connected networks whose links differ in speed."""
    nodes = draw(st.integers(2, 5))
    order = draw(st.permutations(range(nodes)))
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    links = [*zip(order, [*order[1:], order[0]], strict=True), *draw(st.lists(st.sampled_from(pairs), max_size=5))]
    same = {"min_size": len(links), "max_size": len(links)}
    bandwidth = draw(st.lists(st.sampled_from([1.0, 3.0, 10.0]), **same))
    latency = draw(st.lists(st.sampled_from([0.0, 1.0, 7.0]), **same))
    network = Network(nodes, links, bandwidth, latency)
    seed = np.random.SeedSequence(draw(st.integers(0, 10**6)))
    gather = pull.allgather(network, 2, seed)
    scatter = pull.allgather(network.reversed(), 2, seed).reversed_in_time(adds=True)
    return draw(
        st.sampled_from(
            [
                (network, collectives.allgather(nodes, 2), gather),
                (network, collectives.reduce_scatter(nodes, 2), scatter),
                (network, collectives.allreduce(nodes, 2), scatter.then(gather)),
            ]
        )
    )


def slow_start(network: Network, schedule: Schedule, chunk_bytes: float) -> list[float]:
    """Start of every transfer by its definition. In these schedules no node gets a chunk's copy twice, so all that a
    transfer builds on are the earlier arrivals of its chunk at its sender: the copy if there is one, else all sums."""
    rows = list(zip(*(a.tolist() for a in (schedule.step, schedule.link, schedule.chunk, schedule.adds)), strict=True))
    start: dict[int, float] = {}

    def end(i: int) -> float:
        link = rows[i][1]
        return start[i] + float(network.latency[link]) + chunk_bytes / float(network.bandwidth[link])

    for i in sorted(range(len(rows)), key=lambda i: rows[i][0]):
        step, link, chunk, _ = rows[i]
        earlier = [j for j in start if rows[j][0] < step]
        arrived = [j for j in earlier if rows[j][2] == chunk and network.dst[rows[j][1]] == network.src[link]]
        copies = [j for j in arrived if not rows[j][3]]
        waits = [end(j) for j in copies or arrived] + [end(j) for j in earlier if rows[j][1] == link]
        start[i] = max(waits, default=0.0)
    return [start[i] for i in range(len(rows))]


@given(case=timed_cases(), chunk_bytes=st.sampled_from([1.0, 30.0]))
@settings(deadline=None, max_examples=some(60))
def test_earliest_times_against_the_definition(case: tuple[Network, Collective, Schedule], chunk_bytes: float) -> None:
    network, task, schedule = case
    timing = earliest_times(network, task, schedule, chunk_bytes)
    assert timing.start == pytest.approx(slow_start(network, schedule, chunk_bytes))
    duration = network.latency + chunk_bytes / network.bandwidth
    assert timing.end == pytest.approx(timing.start + duration[schedule.link])
    assert timing.completion == pytest.approx(timing.end.max())
