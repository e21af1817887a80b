"""The replay on schedules worked out by hand: one byte a second, one tick a second, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from models.fabric.small_machines import machine, schedule_of

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance

STORES = {"mode": "store_and_forward"}
VIA = [(0, 2, 1.0, 1.0), (2, 1, 2.0, 3.0)]  # rank 0 to rank 1 through switch 2
STAR = [(u, v, 1.0) for r in range(3) for u, v in ((r, 3), (3, r))]  # link 2r goes up from rank r, 2r + 1 down to it


def value(instance: FabricInstance, pieces: Sequence[tuple[int, int]], transfers: Sequence[tuple[Any, ...]]) -> float:
    verdict = check_schedule(instance, schedule_of(pieces, transfers))
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def faults(instance: FabricInstance, pieces: Sequence[tuple[int, int]], transfers: Sequence[tuple[Any, ...]]) -> str:
    verdict = check_schedule(instance, schedule_of(pieces, transfers))
    assert verdict.value is None
    assert verdict.faults
    return "\n".join(verdict.faults)


def full(ranks: int, **own: Any) -> FabricInstance:
    """A link from every rank to every other; link (ranks - 1) * u + (v if v < u else v - 1) from u to v."""
    return machine(ranks, [(u, v, 1.0) for u in range(ranks) for v in range(ranks) if u != v], **own)


def test_two_ranks_exchange() -> None:
    """2 bytes each way over latency 3: 2 + 3 = 5 s; 4 bytes in 5 s are 0.8 bytes/s, half of it on the bus."""
    instance = machine(2, [(0, 1, 1.0, 3.0), (1, 0, 1.0, 3.0)], bytes=4)
    verdict = check_schedule(instance, schedule_of([(0, 2), (1, 2)], [(0, 0, [0]), (0, 1, [1])]))
    assert verdict.value == 5.0
    assert verdict.facts == {
        "transfers": 2,
        "pieces": 2,
        "algbw_bytes_per_s": 0.8,
        "busbw_bytes_per_s": 0.4,
        "longest_chain": 1,
        "redundant_arrivals": 0,
    }


def test_nothing_to_move() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=4, ranks=[0])
    verdict = check_schedule(instance, schedule_of([], []))
    assert verdict.value == 0.0
    assert verdict.faults == []


def test_numbers_mean_their_decimals_and_round_up() -> None:
    """1 byte over 0.3 bytes/s is 10/3 s: 4 ticks of a second, 34 of a tenth; a latency of 0.7 is 1 and 7."""
    instance = machine(2, [(0, 1, 0.3, 0.7)], collective="broadcast", bytes=1)
    for ticks_per_s, ticks in ((1, 5), (10, 41), (30, 121)):
        verdict = check_schedule(instance, schedule_of([(0, 1)], [(0, 0, [0])], ticks_per_s))
        assert verdict.value == pytest.approx(ticks / ticks_per_s, rel=1e-15)


def test_cut_through_overlaps_its_links() -> None:
    """4 bytes: 4 ticks on the first link and 2 on the second, one tick later; there at 1 + 3 + 4 = 8. In two pieces
    the same, the second from 2 on; earlier the first link is taken."""
    instance = machine(3, VIA, [2], collective="scatter", bytes=8)
    assert value(instance, [(0, 4)], [(0, 0, [0, 1])]) == 8
    assert value(instance, [(0, 2), (0, 2)], [(0, 0, [0, 1]), (2, 1, [0, 1])]) == 8
    told = faults(instance, [(0, 2), (0, 2)], [(0, 0, [0, 1]), (1, 1, [0, 1])])
    assert told == "transfer 1, link 0 (0->2) at tick 1 (1.00 s): the link carries transfer 0 until tick 2 (2.00 s)"


def test_the_second_link_may_be_the_narrow_one() -> None:
    """Two bytes over 2 and then 1 byte/s, latency 1: the second link is taken in [1, 3) and [3, 5); a start at 1
    would find it taken from tick 2 to 3."""
    instance = machine(3, [(0, 2, 2.0, 1.0), (2, 1, 1.0)], [2], collective="scatter", bytes=8)
    two = [(0, 2), (0, 2)]
    assert value(instance, two, [(0, 0, [0, 1]), (2, 1, [0, 1])]) == 5
    assert "link 1 (2->1) at tick 2 (2.00 s): the link carries transfer 0 until tick 3" in faults(
        instance, two, [(0, 0, [0, 1]), (1, 1, [0, 1])]
    )


def test_store_and_forward() -> None:
    """At the switch at 1 + 4 = 5, from there 2 + 3: at rank 1 at 10; one tick later only with a buffer."""
    piece = [(0, 4)]
    own = dict(collective="scatter", bytes=8)
    instance = machine(3, VIA, [2], switching=STORES, **own)
    buffered = machine(3, VIA, [2], switching=STORES | {"buffer": True}, **own)
    for one in (instance, buffered):
        assert value(one, piece, [(0, 0, [0]), (5, 0, [1])]) == 10
        assert "before it has arrived there (tick 5 (5.00 s))" in faults(one, piece, [(0, 0, [0]), (4, 0, [1])])
        assert "has a route of 2 links" in faults(one, piece, [(0, 0, [0, 1])])
    assert value(buffered, piece, [(0, 0, [0]), (6, 0, [1])]) == 11
    assert "came at tick 5 (5.00 s): the switch has no buffer" in faults(instance, piece, [(0, 0, [0]), (6, 0, [1])])
    assert "starts at the switch 2" in faults(machine(3, VIA, [2], **own), piece, [(0, 0, [0]), (5, 0, [1])])


@pytest.mark.parametrize("buffer", [False, True])
def test_copies_in_a_switch_that_stores(buffer: bool) -> None:
    """A broadcast of 2 bytes over a star: up at 0, at the switch at 2, down twice at once. Without copies it has to
    come up twice."""
    hops = [(0, 0, [0]), (2, 0, [3]), (2, 0, [5])]
    again = [(0, 0, [0]), (2, 0, [3]), (2, 0, [0]), (4, 0, [5])]
    for copies in (True, False):
        switching = STORES | {"copies": copies, "buffer": buffer}
        instance = machine(4, STAR, [3], collective="broadcast", bytes=2, switching=switching)
        if copies:
            assert value(instance, [(0, 2)], hops) == 4
        else:
            assert "has left the switch 3 already" in faults(instance, [(0, 2)], hops)
        assert value(instance, [(0, 2)], again) == 6


def test_multicast() -> None:
    """A tree over the star takes 2 ticks; the same links are no path, nor a tree in another order, and every branch
    ends at a rank."""
    tree = [(0, 0, [0, 3, 5])]
    own = dict(collective="broadcast", bytes=2)
    instance = machine(4, STAR, [3], switching={"multicast": True}, **own)
    assert value(instance, [(0, 2)], tree) == 2
    assert value(instance, [(0, 2)], [(0, 0, [0, 3]), (2, 0, [0, 5])]) == 4
    assert "no out-tree" in faults(instance, [(0, 2)], [(0, 0, [0, 3, 0])])
    assert "starts at the switch 3" in faults(instance, [(0, 2)], [(0, 0, [3, 0, 5])])
    assert "ends at the switch 3" in faults(instance, [(0, 2)], [(0, 0, [0])])
    assert "reaches node 0 twice" in faults(instance, [(0, 2)], [(0, 0, [0, 3, 1])])
    assert "no path" in faults(machine(4, STAR, [3], **own), [(0, 2)], tree)


def test_each_leaf_has_its_own_time() -> None:
    """The branch over the slow link arrives at 1 + 8, that over the fast one at 1 + 2: from there on at 3."""
    links = [(0, 3, 1.0, 1.0), (3, 1, 1.0), (3, 2, 0.25), (1, 2, 1.0)]
    instance = machine(4, links, [3], collective="broadcast", bytes=2, switching={"multicast": True})
    assert value(instance, [(0, 2)], [(0, 0, [0, 1, 2])]) == 9
    assert value(instance, [(0, 2)], [(0, 0, [0, 1]), (3, 0, [3])]) == 5
    assert "before it has arrived" in faults(instance, [(0, 2)], [(0, 0, [0, 1]), (2, 0, [3])])


def test_a_route_passes_only_through_switches() -> None:
    instance = machine(3, [(0, 1, 1.0), (1, 2, 1.0)], collective="broadcast", bytes=2)
    assert value(instance, [(0, 2)], [(0, 0, [0]), (2, 0, [1])]) == 4
    assert "passes through rank 1" in faults(instance, [(0, 2)], [(0, 0, [0, 1])])


def test_a_group_carries_one_transfer_at_a_time() -> None:
    """Two links out of rank 0 behind one port: one after the other, though they are different links."""
    links = [(0, 1, 1.0, 0.0, "nic"), (0, 2, 1.0, 0.0, "nic")]
    instance = machine(3, links, collective="scatter", bytes=6)
    blocks = [(0, 2), (1, 2)]
    assert value(instance, blocks, [(0, 0, [0]), (2, 1, [1])]) == 4
    assert "group nic carries transfer 0 until tick 2" in faults(instance, blocks, [(0, 0, [0]), (1, 1, [1])])


def test_a_transfer_may_use_two_links_of_a_group_at_once() -> None:
    """Through the switch, both links behind one bus: a transfer holds the bus until its second link is free, at 3; a
    transfer in between would be a second one on the bus."""
    links = [(0, 2, 1.0, 1.0, "bus"), (2, 1, 1.0, 0.0, "bus")]
    instance = machine(3, links, [2], collective="scatter", bytes=8)
    two = [(0, 2), (0, 2)]
    assert value(instance, two, [(0, 0, [0, 1]), (3, 1, [0, 1])]) == 6
    assert "group bus" in faults(instance, two, [(0, 0, [0, 1]), (2, 1, [0, 1])])


def test_reduce_scatter_and_its_contributions() -> None:
    """Three ranks in a ring, a byte each: the sum for rank r goes r+1 -> r+2 -> r in two steps."""
    instance = machine(3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], collective="reduce_scatter", bytes=3)
    pieces = [(r, 1) for r in range(3)]
    ring = [(t, r, [(r + 1 + t) % 3], True) for t in range(2) for r in range(3)]
    assert value(instance, pieces, ring) == 2
    told = faults(instance, pieces, [(0, *row[1:]) if row == ring[3] else row for row in ring])
    assert "link" in told
    told = faults(instance, pieces, ring[:3] + ring[4:])
    assert told == (
        "end: rank 0 does not hold the complete sum of piece 0 of block 0: 2 contributions lack, first rank 1's"
    )
    assert "as complete, but its sum is not" in faults(instance, pieces, [(*row[:3], False) for row in ring])


def test_recursive_doubling_exchanges_partial_sums() -> None:
    """Four ranks, 4 bytes: both exchange in each of two rounds of 4 ticks. Exchanging again adds twice."""
    instance = full(4, collective="allreduce", bytes=4)

    def link(u: int, v: int) -> int:
        return 3 * u + (v if v < u else v - 1)

    rounds = [(4 * t, 0, [link(r, r ^ (1 << t))], True) for t in range(2) for r in range(4)]
    assert value(instance, [(0, 4)], rounds) == 8
    told = faults(instance, [(0, 4)], [*rounds, (8, 0, [link(0, 2)], True)])
    assert told == (
        f"transfer 8, link {link(0, 2)} (0->2) at tick 8 (8.00 s): adds a contribution to piece 0 that its receiver "
        "already has"
    )
    # what has arrived at the tick of a start goes with it, what comes a tick later does not
    early = [row if row[0] == 0 else (row[0] - 1, *row[1:]) for row in rounds]
    assert "complete sum" in faults(instance, [(0, 4)], early)


def test_allreduce_copies_complete_sums() -> None:
    """Reduce to rank 0 at 2 and copy back; the copy of a partial sum is refused; copying over is no doubling."""
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="allreduce", bytes=2)
    assert value(instance, [(0, 2)], [(0, 0, [1], True), (2, 0, [0], False)]) == 4
    assert "as complete" in faults(instance, [(0, 2)], [(0, 0, [1], True), (1, 0, [0], False)])
    assert "already has" in faults(instance, [(0, 2)], [(0, 0, [1], True), (2, 0, [0], True)])
    verdict = check_schedule(
        instance, schedule_of([(0, 2)], [(0, 0, [1], True), (2, 0, [0], False), (4, 0, [0], False)])
    )
    assert verdict.value == 6
    assert verdict.facts["redundant_arrivals"] == 1
    assert verdict.facts["longest_chain"] == 2


def test_a_copy_and_an_addition_at_one_tick_are_a_doubling_in_any_order() -> None:
    """Rank 2 gets the complete sum and rank 1's contribution at tick 4."""
    links = [(1, 0, 1.0), (2, 0, 1.0), (0, 2, 1.0), (1, 2, 1.0)]
    instance = machine(3, [*links, (0, 1, 1.0)], collective="allreduce", bytes=2)
    rows = [(0, 0, [0], True), (0, 0, [1], True), (2, 0, [2], False), (2, 0, [3], True), (2, 0, [4], False)]
    for order in (rows, rows[::-1]):
        assert "already has" in faults(instance, [(0, 2)], order)


def test_sums_through_switches_that_store() -> None:
    """A reduction over the star. Both contributions are in the switch at tick 2, which adds nothing: a hop out of it
    carries on what the last transfer listed before it brought there."""
    links = [*STAR, (3, 0, 1.0)]
    instance = machine(4, links, [3], collective="reduce", bytes=2, switching=STORES)
    both = [(0, 0, [2], True), (2, 0, [1], True), (0, 0, [4], True), (2, 0, [6], True)]
    assert value(instance, [(0, 2)], both) == 4
    assert "already has" in faults(instance, [(0, 2)], [both[2], *both[:2], both[3]])
    assert "2 contributions lack" in faults(instance, [(0, 2)], [])
    assert "1 contributions lack" in faults(instance, [(0, 2)], [both[2], both[0], both[1]])


def test_process_group_and_relay() -> None:
    """Ranks 0 and 2 of a line: rank 1 forwards only as a relay, and contributes nothing."""
    links = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)]
    instance = machine(3, links, ranks=[2, 0], relay=True, collective="reduce", bytes=2)
    assert value(instance, [(0, 2)], [(0, 0, [0], True), (2, 0, [2], True)]) == 4
    told = faults(instance, [(0, 2)], [(0, 0, [2], True)])
    assert "node 1 sends piece 0, which it never gets" in told
    own = machine(3, [*links, (0, 2, 1.0), (2, 0, 1.0)], ranks=[2, 0], collective="reduce", bytes=2)
    assert own.machine.links == 2
    assert value(own, [(0, 2)], [(0, 0, [0], True)]) == 2


def test_pieces_make_up_their_blocks() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=4)
    for pieces in ([(0, 1), (1, 2)], [(0, 3), (1, 2)], [(0, 2)], [(0, 2), (0, 2)]):
        assert "its pieces have" in faults(instance, pieces, [(0, 0, [0])])
    assert "block 1 (of rank 1, for all): its pieces have 0 bytes, not 2" in faults(instance, [(0, 2)], [(0, 0, [0])])


def test_additions_belong_to_reductions() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=4)
    told = faults(instance, [(0, 2), (1, 2)], [(0, 0, [0], True), (0, 1, [1])])
    assert told == "transfer 0: adds to a partial sum, but allgather has no sums"


def test_what_nobody_brings_is_told_with_its_place() -> None:
    instance = machine(3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], bytes=3)
    told = faults(instance, [(0, 1), (1, 1), (2, 1)], [(0, 0, [0]), (0, 0, [1]), (0, 2, [2])])
    assert told.splitlines() == [
        "transfer 1, link 1 (1->2) at tick 0 (0 s): node 1 sends piece 0 before it has arrived there (tick 1 (1.00 s))",
        "end: rank 0 does not hold piece 1 of block 1 (of rank 1, for all)",
        "end: rank 2 does not hold piece 1 of block 1 (of rank 1, for all)",
        "end: rank 1 does not hold piece 2 of block 2 (of rank 2, for all)",
    ]


def test_the_first_faults_and_how_many_more() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], bytes=100)
    verdict = check_schedule(instance, schedule_of([(b, 1) for b in range(2) for _ in range(50)], []))
    assert len(verdict.faults) == 21
    assert verdict.faults[-1] == "and 80 more faults"
