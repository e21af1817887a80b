"""Sends over one link in the schedule's order: what is exported then takes no longer than the schedule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from models.fabric.test_forest import instance, machine, random_network

from synth.exchange import validity
from synth.exchange.algorithm import KINDS
from synth.exchange.executors import EXECUTORS
from synth.exchange.forms import in_seconds, refusal
from synth.exchange.lowering import Wish, limits_of, lower
from synth.exchange.transfers import Transfers
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.race import forest as solve
from synth_models.fabric.views.transfers import transfers


def both(made: FabricInstance, most: int) -> tuple[float, float, float]:
    """Seconds as scheduled, as exported in turn, and as exported in no order between thread blocks."""
    schedule = solve(made, RunOptions(method={"transfers": most})).solution
    assert schedule is not None
    moves = transfers(made, schedule)
    took = float(Fraction(int(moves.ticks.end.max()), moves.ticks.per_s)) if moves.ticks is not None else np.nan
    limits = limits_of(EXECUTORS["azure"])
    exported = [in_seconds(made, lower(moves, limits, Wish(in_turn=turn))[0]) for turn in (True, False)]
    return took, exported[0], exported[1]


SLACK = 1 + 1e-4  # pieces that differ by a byte count as equal


@pytest.mark.long(after=5)
@pytest.mark.parametrize("collective", ["allgather", "broadcast", "reduce", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("seed", range(40))
def test_in_turn_takes_no_longer_than_the_schedule(collective: str, seed: int) -> None:
    """Where links join ranks alone, so that nothing of several ranks meets on a link."""
    rng = np.random.default_rng((30, seed))
    made = instance(random_network(rng, int(rng.integers(3, 6)), 0, True), collective, 2**16 * 15)
    took, in_turn, _ = both(made, 400)
    assert in_turn <= took * SLACK


@pytest.mark.long
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
def test_what_a_gpu_sends_to_several_peers_of_another_box_keeps_its_order(collective: str) -> None:
    """Every GPU of two boxes sends all that leaves its box over one port: thread blocks of several peers meet there. At
    the port that it comes to, what two GPUs send may meet, too: that costs less than a percent here."""
    took, in_turn, in_no_order = both(instance(machine("mi250", 2), collective, 2**30), 31_744)
    assert in_turn <= took * 1.01
    assert in_turn < in_no_order


def test_by_arrival_no_sum_waits_for_what_is_long_on_its_way() -> None:
    """Two ranks send their contribution to a third, the first to begin over a slow link: it is added last."""
    moves = slow_first()
    for by_arrival, first in ((False, 0), (True, 1)):
        made, _ = lower(moves, limits_of(EXECUTORS["azure"]), Wish(by_arrival=by_arrival))
        assert not validity.check(made).faults
        adds = np.flatnonzero(made.kind == KINDS.index("rrc"))
        block = np.searchsorted(made.step_start, adds, side="right") - 1
        [waits] = [at for at in adds.tolist() if made.dep_tb[at] >= 0]
        assert made.tb_recv[block[adds == waits][0]] == 1 - first


def slow_first() -> Transfers:
    """A reduce to rank 2 of one piece: rank 0 sends from 0 s to 9 s, rank 1 from 1 s to 2 s."""
    zero = np.zeros(1, dtype=np.int64)
    return Transfers(
        name="slow-first", collective="reduce", ranks=3, root=2, part_bytes=64, piece_part=zero, piece_offset=zero,
        piece_bytes=zero + 64, piece=np.zeros(2, dtype=np.int64), src=np.array([0, 1]), dst=np.array([2, 2]),
        adds=np.ones(2, dtype=bool), start_s=np.array([0.0, 1.0]), end_s=np.array([9.0, 2.0]),
        channel_hint=np.full(2, -1),
    )  # fmt: skip


AZURE = "azure: 65,521 moves among 32 gpus: 4,095 sends and receives a gpu, at most 4,095 elements"
PLAN = "110,593 moves among 32 gpus: 6,912 puts and waits a gpu, where 108 thread blocks of 64 operations run at once"


@pytest.mark.parametrize(
    ("form", "moves", "words"),
    [
        ("msccl:azure", 65_521, AZURE),
        ("msccl:azure", 65_520, "65,520 moves among 32 gpus are too many to lower"),
        ("mscclpp", 110_593, PLAN),
        ("mscclpp", 110_592, "110,592 moves among 32 gpus are too many to lower"),
    ],
)
def test_refusals_name_the_limit_of_the_executor_where_it_is_one(form: str, moves: int, words: str) -> None:
    """32 gpus of 4,095 elements hold both ends of 65,520 moves, of 108 x 64 operations those of 110,592."""
    assert refusal(form, moves, 32) == words
