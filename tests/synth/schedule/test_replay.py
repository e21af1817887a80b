"""The replay of schedules: hand-made schedules pass, every mutation that must break one is caught, and on random
schedules its verdict is that of a slow second replay written from the rules alone."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import synth.schedule as collectives
from synth.network import Network, builders
from synth.schedule import Collective, Schedule
from synth.schedule.replay import replay
from synth_models.xtree.references import pull

Transfer = tuple[int, int, int, bool]  # step, link, chunk, adds
PROPERTY = settings(
    derandomize=True, deadline=None, max_examples=some(60), suppress_health_check=[HealthCheck.too_slow]
)


def schedule_of(transfers: list[Transfer]) -> Schedule:
    columns = list(zip(*transfers, strict=True)) or [(), (), (), ()]
    return Schedule.of(columns[0], columns[1], columns[2], np.array(columns[3], dtype=bool))


def transfers_of(schedule: Schedule) -> list[Transfer]:
    columns = (schedule.step, schedule.link, schedule.chunk, schedule.adds)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def slow_replay(network: Network, task: Collective, transfers: list[Transfer]) -> bool:
    """The rules, with sets: (node, chunk) -> contributions in its sum; a gathered chunk is one indivisible item."""
    nodes, chunks = range(network.nodes), range(task.chunks)
    whole = set(nodes) if task.reduces else {0}
    held = {(v, k): {v} if task.reduces else {0} if task.owner[k] == v else set() for v in nodes for k in chunks}
    for step, e, k, adds in transfers:
        if step < 1 or e not in range(network.links) or k not in chunks or (adds and not task.reduces):
            return False
    if len({(step, e) for step, e, _, _ in transfers}) < len(transfers):
        return False  # a link carries one chunk per timestep
    for now in sorted({step for step, _, _, _ in transfers}):
        before = {key: set(value) for key, value in held.items()}  # what arrives now leaves later
        current = [(int(network.src[e]), int(network.dst[e]), k, adds) for step, e, k, adds in transfers if step == now]
        for u, v, k, _ in [move for move in current if not move[3]]:
            if before[u, k] != whole:
                return False  # only complete sums (held chunks) are copied
            held[v, k] = set(whole)
        for u, v, k, _ in [move for move in current if move[3]]:
            if before[u, k] & held[v, k]:
                return False  # a contribution would be added twice
            held[v, k] |= before[u, k]
    wanted = [(v, k) for v in nodes for k in chunks if task.to_all or (task.target is not None and task.target[k] == v)]
    return all(held[key] == whole for key in wanted)


def agree(network: Network, task: Collective, transfers: list[Transfer]) -> bool:
    """The verdict of both replays, which must be one, whatever the order in which transfers are listed."""
    slow = slow_replay(network, task, transfers)
    for listed in (transfers, transfers[::-1], sorted(transfers)):
        result = replay(network, task, schedule_of(listed))
        assert result.ok == slow, (result.faults, listed)
        assert result.ok == (result.faults == [])
    return slow


# --- by hand -----------------------------------------------------------------------------------------------------

LINE3 = builders.line(3)  # links: 0 is 0->1, 1 is 1->0, 2 is 1->2, 3 is 2->1


def test_link_ids_of_the_line() -> None:
    assert list(zip(LINE3.src.tolist(), LINE3.dst.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


# allgather on 0-1-2, one chunk each: ends send to the middle, the middle sends its own both ways; then it passes on
ALLGATHER = [(1, 0, 0, False), (1, 3, 2, False), (1, 1, 1, False), (1, 2, 1, False), (2, 2, 0, False), (2, 1, 2, False)]
# reduce-scatter: chunk 1's sum at node 1 takes both neighbours at once; the sums of 0 and 2 pass the middle one
# after the other: 2's contribution to chunk 0 reaches 1 in step 1, 1 adds its own and sends {1,2} to 0 in step 2
REDUCE_SCATTER = [(1, 3, 0, True), (1, 0, 2, True), (2, 1, 0, True), (2, 2, 2, True), (2, 0, 1, True), (2, 3, 1, True)]
# allreduce: the same, then the complete sums are copied out; chunk 1 is complete at node 1 after step 2
ALLREDUCE = [
    *REDUCE_SCATTER, (3, 0, 0, False), (4, 2, 0, False), (3, 3, 2, False), (4, 1, 2, False), (3, 1, 1, False),
    (3, 2, 1, False),
]  # fmt: skip
# broadcast of two chunks from node 0, pipelined: 2 hops + 1
BROADCAST = [(1, 0, 0, False), (2, 0, 1, False), (2, 2, 0, False), (3, 2, 1, False)]
# all-to-all: chunk 3s+d; 0->2 and 2->0 take two hops, everything else one: links 0->1 and 2->1 carry two chunks each,
# the middle's links two each: 2 steps would do for the ends, the passed-on chunks arrive in step 1 and leave in 2
ALLTOALL = [
    (1, 0, 2, False), (2, 0, 1, False), (1, 3, 6, False), (2, 3, 7, False), (1, 1, 3, False), (1, 2, 5, False),
    (2, 2, 2, False), (2, 1, 6, False),
]  # fmt: skip
BY_HAND = {
    "allgather": (collectives.allgather(3, 1), ALLGATHER, 2),
    "reduce_scatter": (collectives.reduce_scatter(3, 1), REDUCE_SCATTER, 2),
    "allreduce": (collectives.allreduce(3, 1), ALLREDUCE, 4),
    "broadcast": (collectives.broadcast(3, 0, 2), BROADCAST, 3),
    "alltoall": (collectives.alltoall(3), ALLTOALL, 2),
}


@pytest.mark.parametrize("name", list(BY_HAND))
def test_valid_by_hand(name: str) -> None:
    task, transfers, steps = BY_HAND[name]
    assert agree(LINE3, task, transfers)
    result = replay(LINE3, task, schedule_of(transfers))
    assert (result.steps, result.transfers, result.redundant, result.fault_count) == (steps, len(transfers), 0, 0)


@pytest.mark.parametrize("name", list(BY_HAND))
def test_every_transfer_by_hand_is_needed(name: str) -> None:
    """None of them can be left out, and none can come in the first step that was not there."""
    task, transfers, _ = BY_HAND[name]
    for i in range(len(transfers)):
        assert not agree(LINE3, task, transfers[:i] + transfers[i + 1 :])
    for i, (step, link, chunk, adds) in enumerate(transfers):
        if step > 1:  # the slot is taken or the chunk has not come: both are faults here
            assert not agree(LINE3, task, [*transfers[:i], (1, link, chunk, adds), *transfers[i + 1 :]])


@pytest.mark.parametrize(
    ("task", "transfers", "message"),
    [
        (collectives.allgather(3, 1), [(1, 0, 0, False),
        (1, 2, 0, False)], "node 1 sends chunk 0 before it has arrived"),
        (collectives.allgather(3, 1), [(1, 2, 0, False)], "node 1 sends chunk 0, which it never gets"),
        (collectives.allgather(3, 2), [(1, 0, 0, False), (1, 0, 1, False)], "step 1: link 0 (0->1) carries 2 chunks"),
        (collectives.allgather(3, 1), ALLGATHER[1:], "end: node 1 does not hold chunk 0"),
        (collectives.allgather(3, 1), [*ALLGATHER, (3, 4, 0, False)], "link 4 does not exist (0..3)"),
        (collectives.allgather(3, 1), [*ALLGATHER, (3, -1, 0, False)], "link -1 does not exist"),
        (collectives.allgather(3, 1), [*ALLGATHER, (3, 0, 3, False)], "chunk 3 does not exist (0..2)"),
        (collectives.allgather(3, 1), [*ALLGATHER, (0, 0, 0, False)], "step 0 does not exist"),
        (collectives.allgather(3, 1), [*ALLGATHER, (3, 0, 0, True)], "allgather has no sums"),
        (collectives.reduce_scatter(3, 1), [*REDUCE_SCATTER, (3, 3, 1, True)],
         "node 1 adds a contribution to chunk 1 that it already has"),
        (collectives.allreduce(3, 1), [*ALLREDUCE, (1, 1, 1, False)], "passes on chunk 1 as complete, but"),
        (collectives.allreduce(3, 1), REDUCE_SCATTER, "end: node 1 does not hold the complete sum of chunk 0"),
        (collectives.alltoall(3), ALLTOALL[:-1], "end: node 0 does not hold chunk 6"),
    ],
)  # fmt: skip
def test_faults_are_named(task: Collective, transfers: list[Transfer], message: str) -> None:
    assert not agree(LINE3, task, transfers)
    assert any(message in fault for fault in replay(LINE3, task, schedule_of(transfers)).faults)


def test_parallel_links_carry_one_chunk_each() -> None:
    """Two links 0->1: two chunks fit in one step over both, not over one of them."""
    network = Network(2, [(0, 1), (0, 1), (1, 0)])
    task = collectives.broadcast(2, 0, 2)
    assert agree(network, task, [(1, 0, 0, False), (1, 1, 1, False)])
    assert not agree(network, task, [(1, 0, 0, False), (1, 0, 1, False)])


def test_exchange_allreduce() -> None:
    """Two nodes swap contributions in one step: both sums hold both contributions once; a second swap adds twice.
    Four nodes in a ring: the same along two dimensions, {01}{23} and then {0123} everywhere."""
    pair = builders.ring(2)
    swap = [(step, e, k, True) for k, step in ((0, 1), (1, 2)) for e in (0, 1)]
    assert agree(pair, collectives.allreduce(2, 1), swap)
    assert not agree(pair, collectives.allreduce(2, 1), [*swap, (3, 0, 0, True)])
    ring = builders.ring(4)
    ids = {ends: e for e, ends in enumerate(zip(ring.src.tolist(), ring.dst.tolist(), strict=True))}
    first, second = [(0, 1), (1, 0), (2, 3), (3, 2)], [(1, 2), (2, 1), (3, 0), (0, 3)]
    moves = [
        (2 * k + half, ids[ends], k, True)
        for k in range(4)
        for half, pairs in ((1, first), (2, second))
        for ends in pairs
    ]
    assert agree(ring, collectives.allreduce(4, 1), moves)


def test_two_sums_that_share_a_contribution() -> None:
    """Diamond 0->1, 0->2, 1->3, 2->3: node 0's contribution arrives at 3 through both 1 and 2: counted twice, whether
    in one step or in two; through one of them it is right."""
    network = Network(4, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0)])
    task = Collective("reduce", 4, np.array([3], np.int32), True, False, np.array([3], np.int32))
    right = [(1, 0, 0, True), (2, 2, 0, True), (2, 3, 0, True)]
    assert agree(network, task, right)
    assert not agree(network, task, [*right, (1, 1, 0, True)])
    assert not agree(network, task, [(1, 0, 0, True), (1, 1, 0, True), (2, 2, 0, True), (3, 3, 0, True)])


def test_copy_and_add_into_one_node_in_one_step() -> None:
    """Node 2 receives the complete sum over one link and, in the same step, a contribution to add over another. The
    sum it ends with depends on which is done first, so the schedule is wrong in whatever order its rows stand."""
    network = Network(3, [(0, 1), (1, 0), (0, 2), (1, 2), (2, 0), (2, 1)])
    task = Collective("allreduce", 3, np.array([0], np.int32), True, True)
    gather = [(1, 4, 0, True), (2, 1, 0, True)]  # 2 -> 0, then 1 -> 0: node 0 is complete after step 2
    spread = [(3, 0, 0, False), (3, 2, 0, False)]  # 0 copies to 1 and 2
    assert agree(network, task, gather + spread)
    assert not agree(network, task, [*gather, *spread, (3, 3, 0, True)])  # 1 adds {1} into 2 meanwhile


def test_wrong_size_and_empty() -> None:
    assert not replay(LINE3, collectives.allgather(4, 1), schedule_of(ALLGATHER)).ok
    empty = replay(LINE3, collectives.allgather(3, 1), schedule_of([]))
    assert (empty.ok, empty.steps, empty.fault_count) == (False, 0, 6)
    assert replay(Network(1, []), collectives.allgather(1, 3), schedule_of([])).ok


@pytest.mark.parametrize("nodes", [63, 64, 65, 129])
@pytest.mark.parametrize("lose", [False, True])
def test_sums_of_many_nodes(nodes: int, lose: bool) -> None:
    """Contributions are bits of 64-bit words: sizes around the word length, one-way ring, chunk 0 summed along
    1, 2, ..., n-1, 0. Losing the contribution of node 1 (or adding it again at the end) must show."""
    network = builders.ring(nodes, False)
    task = Collective("reduce", nodes, np.array([0], np.int32), True, False, np.array([0], np.int32))
    chain = [(v, v, 0, True) for v in range(1, nodes)]
    assert replay(network, task, schedule_of(chain)).ok
    assert not replay(network, task, schedule_of(chain[1:] if lose else [*chain, (nodes, nodes - 1, 0, True)])).ok


def test_faults_are_all_counted() -> None:
    """Nothing is sent on a ring of 30: 30 * 29 missing chunks are counted, the first few described."""
    result = replay(builders.ring(30), collectives.allgather(30, 1), schedule_of([]), limit=7)
    assert (result.fault_count, len(result.faults)) == (870, 7)


def test_redundant_transfers_are_counted_not_refused() -> None:
    task = collectives.allgather(3, 1)
    result = replay(LINE3, task, schedule_of([*ALLGATHER, (3, 0, 0, False)]))
    assert (result.ok, result.redundant) == (True, 1)


def test_schedules_do_not_wrap_numbers() -> None:
    """2**32 + 1 is not step 1: numbers beyond 32 bits must not turn into others, nor may fractions be cut off."""
    for bad in (np.array([2**32 + 1]), np.array([1.5]), [1.5]):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            Schedule.of(bad, [0], [0])


def test_schedules_are_immutable() -> None:
    """A schedule keeps its own numbers: what happens to the arrays it was made from cannot change a checked one."""
    step = np.array([1, 1], np.int32)
    made = Schedule.of(step, [0, 1], [0, 1])
    step[0] = 99
    assert made.step.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        made.link[0] = 3


# --- properties --------------------------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn, most: int = 5) -> Network:
    """Strongly connected: a cycle through all nodes in random order plus random links, parallel ones included."""
    nodes = draw(st.integers(2, most))
    order = draw(st.permutations(range(nodes)))
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    extra = draw(st.lists(st.sampled_from(pairs), max_size=6))
    return Network(nodes, [*zip(order, [*order[1:], order[0]], strict=True), *extra])


@st.composite
def valid_cases(draw: st.DrawFn, *names: str) -> tuple[Network, Collective, list[Transfer]]:
    network, chunks = draw(networks()), draw(st.integers(1, 2))
    name = draw(st.sampled_from(names or ("allgather", "reduce_scatter", "allreduce")))
    seed = np.random.SeedSequence(draw(st.integers(0, 10**6)))
    gather = pull.allgather(network, chunks, seed)
    if name != "allgather":
        scatter = pull.allgather(network.reversed(), chunks, seed).reversed_in_time(adds=True)
        gather = scatter if name == "reduce_scatter" else scatter.then(gather)
    return network, collectives.COLLECTIVES[name](network.nodes, chunks), transfers_of(gather)


def refused(network: Network, task: Collective, transfers: list[Transfer], words: str) -> bool:
    """Both replays say no, and ours says why."""
    assert not agree(network, task, transfers)
    return any(words in fault for fault in replay(network, task, schedule_of(transfers), limit=10**6).faults)


@given(case=valid_cases())
@PROPERTY
def test_methods_make_valid_schedules(case: tuple[Network, Collective, list[Transfer]]) -> None:
    assert agree(*case)


@given(case=valid_cases(), data=st.data())
@PROPERTY
def test_a_dropped_transfer_is_missed(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    """No transfer of these schedules is redundant: without any one, something is missing at the end or before."""
    network, task, transfers = case
    i = data.draw(st.integers(0, len(transfers) - 1))
    assert refused(network, task, transfers[:i] + transfers[i + 1 :], "does not hold")


@given(case=valid_cases("allgather"), data=st.data())
@PROPERTY
def test_sent_in_the_step_it_arrives(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    """A forwarded chunk moved into the step of its arrival; over a new link, so that capacity is no other reason."""
    network, task, transfers = case
    owner = {k: int(task.owner[k]) for k in range(task.chunks)}
    forwarded = [i for i, (_, e, k, _) in enumerate(transfers) if network.src[e] != owner[k]]
    assume(forwarded)
    i = data.draw(st.sampled_from(forwarded))
    _, link, chunk, adds = transfers[i]
    sender = network.src[link]
    arrival = next(s for s, e, k, _ in transfers if k == chunk and network.dst[e] == sender)
    wider = Network(
        network.nodes,
        [*zip(network.src.tolist(), network.dst.tolist(), strict=True), (int(sender), int(network.dst[link]))],
    )
    moved = [*transfers[:i], (arrival, network.links, chunk, adds), *transfers[i + 1 :]]
    assert refused(wider, task, moved, "before it has arrived")


@given(case=valid_cases(), data=st.data())
@PROPERTY
def test_an_overfull_link(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    """Any transfer moved onto the slot of another one."""
    network, task, transfers = case
    i, j = data.draw(st.lists(st.integers(0, len(transfers) - 1), min_size=2, max_size=2, unique=True))
    step, link, _, _ = transfers[j]
    moved = [*transfers[:i], (step, link, *transfers[i][2:]), *transfers[i + 1 :]]
    assert refused(network, task, moved, "carries 2 chunks")


@given(case=valid_cases("reduce_scatter", "allreduce"), data=st.data())
@PROPERTY
def test_a_contribution_added_twice(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    """An adding transfer repeated later: in a new step at the end, or over a new parallel link at any later step."""
    network, task, transfers = case
    step, link, chunk, _ = data.draw(st.sampled_from([t for t in transfers if t[3]]))
    last = max(t[0] for t in transfers)
    assert refused(network, task, [*transfers, (last + 1, link, chunk, True)], "already has")
    ends = (int(network.src[link]), int(network.dst[link]))
    wider = Network(network.nodes, [*zip(network.src.tolist(), network.dst.tolist(), strict=True), ends])
    again = data.draw(st.integers(step, last + 1))
    assert refused(wider, task, [*transfers, (again, network.links, chunk, True)], "already has")


@given(case=valid_cases("reduce_scatter", "allreduce"), data=st.data())
@PROPERTY
def test_an_incomplete_sum_copied(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    """An adding transfer turned into a copy: what it carries is never a complete sum."""
    network, task, transfers = case
    i = data.draw(st.sampled_from([i for i, t in enumerate(transfers) if t[3]]))
    copied = [*transfers[:i], (*transfers[i][:3], False), *transfers[i + 1 :]]
    assert refused(network, task, copied, "its sum is not")


@given(case=valid_cases(), data=st.data())
@PROPERTY
def test_things_that_do_not_exist(case: tuple[Network, Collective, list[Transfer]], data: st.DataObject) -> None:
    network, task, transfers = case
    i = data.draw(st.integers(0, len(transfers) - 1))
    far = data.draw(st.integers(0, 2**31 - 1 - max(network.links, task.chunks)))
    for column, value, word in (
        (0, -far, "step"),
        (1, network.links + far, "link"),
        (1, -1 - far, "link"),
        (2, task.chunks + far, "chunk"),
        (2, -1 - far, "chunk"),
    ):
        broken = list(transfers[i])
        broken[column] = value
        assert refused(network, task, [*transfers[:i], tuple(broken), *transfers[i + 1 :]], f"{word} {value} does not")


@given(data=st.data(), network=networks(4))
@settings(derandomize=True, deadline=None, max_examples=some(300), suppress_health_check=[HealthCheck.too_slow])
def test_random_schedules_get_the_slow_verdict(data: st.DataObject, network: Network) -> None:
    """Mostly invalid schedules from the same slots, and valid ones with a few random changes."""
    task = data.draw(
        st.sampled_from(
            [
                *(make(network.nodes, 1) for make in collectives.COLLECTIVES.values()),
                collectives.broadcast(network.nodes, 0, 2),
                collectives.alltoall(network.nodes),
                Collective("reduce", network.nodes, np.array([0], np.int32), True, False, np.array([0], np.int32)),
                Collective("allreduce", network.nodes, np.array([0], np.int32), True, True),
            ]
        )
    )
    transfer = st.tuples(
        st.integers(1, 5),
        st.integers(0, network.links - 1),
        st.integers(0, task.chunks - 1),
        st.booleans() if task.reduces else st.just(False),
    )
    agree(network, task, data.draw(st.lists(transfer, max_size=25, unique_by=lambda t: t[:2])))


@given(case=valid_cases(), data=st.data())
@settings(derandomize=True, deadline=None, max_examples=some(150), suppress_health_check=[HealthCheck.too_slow])
def test_perturbed_schedules_get_the_slow_verdict(
    case: tuple[Network, Collective, list[Transfer]], data: st.DataObject
) -> None:
    """One or two changes to a valid schedule: the borderline between right and wrong."""
    network, task, transfers = case
    last = max(t[0] for t in transfers)
    for _ in range(data.draw(st.integers(1, 2))):
        i = data.draw(st.integers(0, len(transfers) - 1))
        step, link, chunk, adds = transfers[i]
        match data.draw(st.sampled_from(["step", "link", "chunk", "adds", "swap", "again"])):
            case "step":
                step = data.draw(st.integers(1, last + 1))
            case "link":
                link = data.draw(st.integers(0, network.links - 1))
            case "chunk":
                chunk = data.draw(st.integers(0, task.chunks - 1))
            case "adds":
                adds = task.reduces and not adds
            case "swap":
                j = data.draw(st.integers(0, len(transfers) - 1))
                other = transfers[j]
                transfers[j] = (step, *other[1:])
                step = other[0]
                if i == j:
                    step = transfers[j][0]
            case _:
                transfers = [*transfers, (data.draw(st.integers(1, last + 1)), link, chunk, adds)]
        transfers = [*transfers[:i], (step, link, chunk, adds), *transfers[i + 1 :]]
    agree(network, task, transfers)
