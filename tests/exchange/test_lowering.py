"""The lowering against oracles in plain Python: the same messages, the whole collective, in any order of running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import some_of
from exchange.by_hand import schedule
from exchange.possession import Run, expected
from exchange.random_transfers import random_transfers

from synth.errors import InputError
from synth.exchange import validity
from synth.exchange.algorithm import KINDS
from synth.exchange.lowering import Limits, Wish, lower
from synth.exchange.lowering.channels import lanes


def refused(call: Callable[[], Any], words: str) -> bool:
    """Whether it raises :class:`InputError` with these words in it."""
    try:
        call()
    except InputError as error:
        return words in str(error)
    return False


@pytest.mark.parametrize("collective", ["allgather", "alltoall", "gather", "scatter", "broadcast"])
def test_every_copy_of_the_algorithm_copies_its_share_of_own_parts(collective: str) -> None:
    """In a thread block of its own: one block would take as long for it as all others for what moves."""
    seed = next(k for k in range(1000) if random_transfers(k).collective == collective)
    t = random_transfers(seed)
    for instances in (1, 4):
        a, _ = lower(t, Limits("any"), Wish(instances=instances))
        rows = np.flatnonzero((a.tb_send < 0) & (a.tb_recv < 0))
        owner = np.repeat(np.arange(len(a.tb_rank)), np.diff(a.step_start))
        copied: dict[int, list[int]] = {}
        for tb in rows.tolist():
            copied.setdefault(int(a.tb_rank[tb]), []).append(int(a.count[owner == tb].sum()))
        assert copied
        assert all(shares == [a.chunks // instances] * instances for shares in copied.values())
        assert validity.check(a).faults == ()


@pytest.mark.long(after=36)
@pytest.mark.parametrize("seed", some_of(range(1000, 1500)))
def test_an_algorithm_sends_what_the_schedule_sends_and_ends_with_the_collective(seed: int) -> None:
    t, random = random_transfers(seed), Random(seed)
    wish = Wish(
        in_place=random.random() < 0.5,
        instances=random.choice([1, 1, 2, 3]),
        channels=random.choice([1, 2, 3]),
        fuse=random.random() < 0.5,
        join=random.random() < 0.5,
        by_time=seed % 3 == 0,
        blocks=(None, 1, 4)[seed // 3 % 3],
        slices=(1, 1, 2, 3)[seed % 4],
    )
    limits = Limits("tiny", random.choice([None, 3, 8]), random.choice([None, 1, 2, 5]), random.choice([None, 32]))
    if limits.steps and refused(lambda: lower(t, limits, wish), "tiny takes"):
        return
    a, notes = lower(t, limits, wish)
    assert all("left out" in note for note in notes)
    verdict = validity.check(a)
    assert verdict.faults == ()
    run = Run(a, random)
    run.run()
    assert expected(t, a.chunks) <= run.messages <= expected(t, a.chunks, needed=False)
    if not wish.fuse:
        assert verdict.facts["sends_to_hold"] <= 1
        Run(a, random, together=True).run()  # and where a connection holds nothing
    assert max(np.diff(a.step_start), default=0) <= (limits.steps or a.steps)


@pytest.mark.parametrize("seed", range(6))
def test_slices_are_more_steps_of_the_same_thread_blocks(seed: int) -> None:
    t = random_transfers(seed)
    (whole, _), (cut, _) = (lower(t, Limits("any"), Wish(slices=slices)) for slices in (1, 3))
    assert cut.chunks == 3 * whole.chunks
    columns = ("tb_rank", "tb_send", "tb_recv", "tb_channel")
    assert all(np.array_equal(getattr(cut, name), getattr(whole, name)) for name in columns)
    moved = [int(np.isin(a.kind, [KINDS.index("s"), KINDS.index("r"), KINDS.index("rrc")]).sum()) for a in (whole, cut)]
    assert moved[1] == 3 * moved[0]
    assert validity.check(cut).faults == ()


@pytest.mark.parametrize("in_place", [False, True])
def test_a_finished_sum_replaces_what_still_waits_to_be_added(in_place: bool) -> None:
    """Rank 1's sum leaves for rank 0 at 3, before rank 2's contribution comes at 5 (on a slow link since 0), which
    nobody asks for: rank 0 has the whole sum at 4, and its copy comes to rank 1 at 7."""
    rows = [(0, 0, 2, 1, True), (0, 0, 2, 0, True), (3, 0, 1, 0, True), (6, 0, 0, 1, False), (6, 0, 0, 2, False)]
    t = schedule("allreduce", 3, rows, [0])
    slow = (t.src == 2) & (t.dst == 1)
    assert slow.sum() == 1
    algorithm, _ = lower(replace(t, end_s=np.where(slow, 5.0, t.end_s)), Limits("any"), Wish(in_place=in_place))
    assert validity.check(algorithm).faults == ()
    Run(algorithm, Random(0)).run()


def test_a_send_and_a_receive_share_a_thread_block_where_there_would_be_too_many() -> None:
    """Never more thread blocks than without; where there are fewer, some both send and receive; all of it valid."""
    saved = 0
    for seed in range(1000, 1060):
        t, limits = random_transfers(seed), Limits("tiny", 8)
        if refused(lambda t=t, limits=limits: lower(t, limits, Wish()), "tiny takes"):  # type: ignore[misc]
            continue
        alone, _ = lower(t, limits, Wish())
        most = int(np.bincount(alone.tb_rank).max()) - 1
        a, _ = lower(t, limits, Wish(blocks=most))
        assert validity.check(a).faults == ()
        assert len(a.tb_rank) <= len(alone.tb_rank)
        saved += len(alone.tb_rank) - len(a.tb_rank)
        both = (a.tb_send >= 0) & (a.tb_recv >= 0)
        assert both.any() == (len(a.tb_rank) < len(alone.tb_rank))
    assert saved


def test_lanes_by_time_follow_each_other() -> None:
    """Equally many moves a lane, and none of a later lane starts sooner, whatever pieces they are of."""
    t = random_transfers(3)
    which = lanes(t, np.zeros(len(t.piece), dtype=np.int64), 3, by_time=True)
    assert set(which) == {0, 1, 2}
    assert max(np.bincount(which)) - min(np.bincount(which)) <= 1
    for lane in (1, 2):
        assert t.start_s[which < lane].max() <= t.start_s[which >= lane].min()


@pytest.mark.parametrize("seed", range(0, 400, 7))
def test_no_dependence_says_what_others_say(seed: int) -> None:
    """Without any one of them the step that it leads to could start before the step that it waits for has ended."""
    a, _ = lower(random_transfers(seed), Limits("any", steps=8), Wish(in_place=bool(seed % 2), join=bool(seed % 3)))
    block = np.repeat(np.arange(len(a.tb_rank)), np.diff(a.step_start))
    arrows = nx.DiGraph()
    arrows.add_nodes_from(range(a.steps))
    arrows.add_edges_from((i - 1, i) for i in range(1, a.steps) if block[i] == block[i - 1])
    first = np.searchsorted(a.tb_rank, a.tb_rank)
    dependences = {
        i: int(a.step_start[first[block[i]] + a.dep_tb[i]] + a.dep_step[i]) for i in range(a.steps) if a.dep_tb[i] >= 0
    }
    arrows.add_edges_from((target, i) for i, target in dependences.items())
    assert set(dependences.values()) == set(np.flatnonzero(a.has_dependents).tolist())
    for i, target in dependences.items():
        real = next(k for k in range(i, a.steps) if KINDS[a.kind[k]] != "nop")
        arrows.remove_edge(target, i)
        assert not nx.has_path(arrows, target, real)
        arrows.add_edge(target, i)


@pytest.mark.parametrize("seed", range(60))
def test_both_ends_of_a_message_name_the_same_places(seed: int) -> None:
    """A send's destination is where its receive puts it, a receive's source where its send takes it from, as
    msccl-tools writes them; but for places that the rank itself has not, which a parser would refuse."""
    t = random_transfers(seed)
    a, _ = lower(t, Limits("none"), Wish(in_place=bool(seed // 8 % 2)))
    ends: dict[tuple[int, int, int], list[list[int]]] = {}
    for block in range(len(a.tb_rank)):
        rank, send, recv, channel = (int(column[block]) for column in (a.tb_rank, a.tb_send, a.tb_recv, a.tb_channel))
        for step in range(int(a.step_start[block]), int(a.step_start[block + 1])):
            kind = KINDS[int(a.kind[step])]
            if kind == "s":
                ends.setdefault((rank, send, channel), [[], []])[0].append(step)
            elif kind in ("r", "rrc"):
                ends.setdefault((recv, rank, channel), [[], []])[1].append(step)
    named = 0
    for (src, dst, _), (sends, receives) in ends.items():
        for s, r in zip(sends, receives, strict=True):
            far = int(a.dst_buffer[r]), int(a.dst_offset[r])
            if far[1] + a.count[s] <= a.buffer_chunks[src, far[0]]:
                assert (int(a.dst_buffer[s]), int(a.dst_offset[s])) == far
                named += 1
            far = int(a.src_buffer[s]), int(a.src_offset[s])
            if KINDS[int(a.kind[r])] == "r" and far[1] + a.count[s] <= a.buffer_chunks[dst, far[0]]:
                assert (int(a.src_buffer[r]), int(a.src_offset[r])) == far
    assert named or not ends or t.collective in ("gather", "scatter")
