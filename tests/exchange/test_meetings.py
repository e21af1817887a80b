"""Thread blocks of a plan meet, so that what the schedule puts sooner goes first; plans stay right in every order."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from examples import some_of
from exchange.by_hand import EVERY, direct_alltoall
from exchange.plan_runner import outcome
from exchange.plans_by_hand import two_blocks
from exchange.random_transfers import random_transfers

from synth.exchange import mscclpp
from synth.exchange.mscclpp.dealing import Dealing
from synth.exchange.mscclpp.meetings import MOST, meetings
from synth.exchange.transfers import Transfers


def barriers(plan: dict[str, object]) -> int:
    text = json.dumps(plan)
    return text.count('"barrier"')


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_plans_with_meetings_run_in_every_order(name: str, in_place: bool) -> None:
    t = EVERY[name]
    plan = mscclpp.plan(t, in_place=in_place, dealt=Dealing(meetings=MOST))
    assert mscclpp.faults(mscclpp.parse(json.dumps(plan)), root=t.root) == []
    for seed in range(3):
        assert outcome(plan, t.collective, seed, t.root or 0)


@pytest.mark.parametrize("seed", some_of(range(20)))
def test_random_schedules_with_meetings_run_in_every_order(seed: int) -> None:
    t = random_transfers(seed)
    for by, most in (("time", 15), ("place", 3)):
        plan = mscclpp.plan(t, thread_blocks=4, dealt=Dealing(by, most))
        assert outcome(plan, t.collective, seed, t.root or 0)


def one_by_one(ranks: int) -> Transfers:
    """An alltoall in which every rank sends its parts one after the other, the farthest first."""
    t = direct_alltoall(ranks)
    turn = (ranks - (t.dst - t.src) % ranks).astype(float)
    order = np.argsort(turn, kind="stable")
    return replace(t, start_s=turn, end_s=turn + 0.5, ticks=None).taken(order)


def test_puts_of_many_thread_blocks_keep_the_order_of_the_schedule() -> None:
    """A thread block a part: without meetings all begin at one step, with them each behind the one before it."""
    t = one_by_one(6)
    for most, distinct in ((0, 1), (2, 3), (MOST, 5)):
        moved = mscclpp.transfers(
            mscclpp.parse(json.dumps(mscclpp.plan(t, thread_blocks=99, dealt=Dealing(meetings=most))))
        )
        for rank in range(6):
            mine = moved.src == rank
            turn = np.argsort((rank - moved.dst[mine]) % 6)
            steps = moved.start_s[mine][turn]
            assert len(set(steps.tolist())) == distinct
            assert np.all(np.diff(steps) >= 0)


def test_those_meet_that_put_before_or_behind() -> None:
    """Five puts of five thread blocks: after the k-th, the k-th meets the next one, and nobody else."""
    t = one_by_one(6)
    group = np.arange(len(t.piece_part))
    found = meetings(t, group, np.ones(len(t.piece), dtype=bool), MOST)
    for rank in range(6):
        numbers: dict[int, set[float]] = {}
        for (_, other), some in found.items():
            for one in some if other == rank else ():
                assert one.parties == 2
                numbers.setdefault(one.number, set()).add(one.time_s)
        assert numbers == {k: {k + 1.0} for k in range(1, 5)}
    assert barriers(mscclpp.plan(t, thread_blocks=1, dealt=Dealing(meetings=MOST))) == 0  # nobody to meet


@pytest.mark.parametrize("how", ["barrier", "semaphore"])
def test_what_another_thread_block_has_waited_for_is_waited_for(how: str) -> None:
    """On the second GPU one thread block waits for the first GPU's chunk before it lets the other put its own."""
    plan = two_blocks(how)
    found = mscclpp.raised(mscclpp.parse(json.dumps(plan)))
    assert len(found.wait) == 0  # nothing is waited for but the copies of one's own
    first, second = plan["gpus"][1]["threadblocks"]  # its first thread block takes what the first GPU puts
    moved = [op for op in second["ops"] if op["name"] in ("rlxwait", "wait")]
    second["ops"] = [op for op in second["ops"] if op not in moved]
    first["ops"][-1:-1] = moved
    first["channels"] = second["channels"]
    raised = mscclpp.raised(mscclpp.parse(json.dumps(plan)))
    t, rows = raised.transfers, np.split(raised.wait, raised.wait_start[1:-1])
    waits = {int(t.src[k]): {int(t.src[j]) for j in row} for k, row in enumerate(rows)}
    assert waits == {0: set(), 1: {0}}
