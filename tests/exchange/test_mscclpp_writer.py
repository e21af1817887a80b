"""MSCCL++ plans out: what is written runs in every order, gives the schedule back, and keeps the executor's limits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from examples import some_of
from exchange.by_hand import EVERY, direct_alltoall, ring_allgather, ring_allreduce, schedule
from exchange.plan_runner import outcome
from exchange.random_transfers import random_transfers

import synth
from synth.errors import InputError, LimitError
from synth.exchange import imported_algorithm, mscclpp
from synth.exchange.mscclpp.plan import Limits
from synth.exchange.transfers import Transfers

MODES = [(in_place, node) for in_place in (False, True) for node in (None, 2)]


@pytest.mark.parametrize("name", some_of(EVERY))
@pytest.mark.parametrize(("in_place", "node"), MODES)
def test_what_is_written_runs_in_every_order_and_is_the_schedule(name: str, in_place: bool, node: int | None) -> None:
    t = EVERY[name]
    plan = mscclpp.plan(t, in_place=in_place, ranks_per_node=node)
    read = mscclpp.parse(json.dumps(plan))
    assert mscclpp.faults(read, root=t.root) == []
    assert _moves(mscclpp.transfers(read, root=t.root)) == _moves(t)
    for seed in range(5):
        assert outcome(plan, t.collective, seed, t.root or 0)


def _moves(t: Transfers) -> set[tuple[float, float, int, int, bool]]:
    """Moves by the place of their piece in the data, neighbouring pieces of one move as one."""
    at = t.piece_part + t.piece_offset / t.part_bytes
    end = at + t.piece_bytes / t.part_bytes
    rows = sorted((s, d, a, at[p], end[p]) for p, s, d, a in zip(t.piece, t.src, t.dst, t.adds, strict=True))
    found: list[list[float]] = []
    for s, d, a, low, high in rows:
        if found and found[-1][:3] == [s, d, a] and abs(found[-1][4] - low) < 1e-9:
            found[-1][4] = high
        else:
            found.append([s, d, a, low, high])
    return {(round(low, 9), round(high, 9), int(s), int(d), bool(a)) for s, d, a, low, high in found}


@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_what_ranks_do_side_by_side_has_the_same_numbers(ranks: int) -> None:
    """In a ring every rank's k-th move begins at the same step, however the GPUs are listed, after it was received."""
    moved = mscclpp.transfers(mscclpp.parse(json.dumps(mscclpp.plan(ring_allgather(ranks), thread_blocks=1))))
    starts = [sorted(moved.start_s[moved.src == r]) for r in range(ranks)]
    assert starts == [starts[0]] * ranks
    assert len(set(starts[0])) == ranks - 1
    for p, src, start in zip(moved.piece, moved.src, moved.start_s, strict=True):
        into = (moved.piece == p) & (moved.dst == src)
        assert (moved.end_s[into] <= start).all()


@pytest.mark.parametrize("instances", [2, 3])
@pytest.mark.parametrize("name", ["allgather", "alltoall", "allreduce", "scatter", "reduce_scatter in pieces"])
def test_instances_cut_every_piece(name: str, instances: int) -> None:
    t = EVERY[name]
    plan = mscclpp.plan(t, instances=instances)
    assert plan["gpus"][0]["input_chunks"] == instances * mscclpp.plan(t)["gpus"][0]["input_chunks"]
    assert _moves(mscclpp.transfers(mscclpp.parse(json.dumps(plan)), root=t.root)) == _moves(t)
    assert outcome(plan, t.collective, 1, t.root or 0)


def test_uneven_pieces_lie_on_the_coarsest_grid_that_fits() -> None:
    """Parts of 96 bytes in pieces of 24, 72 bytes: chunks of 24, four a part."""
    t = ring_allgather(3, split=2)
    uneven = Transfers(
        **{
            **t.__dict__,
            "part_bytes": 96,
            "piece_offset": np.tile([0, 24], 3),
            "piece_bytes": np.tile([24, 72], 3),
        }
    )
    plan = mscclpp.plan(uneven)
    assert [plan["gpus"][0][key] for key in ("input_chunks", "output_chunks", "scratch_chunks")] == [4, 12, 0]
    assert outcome(plan, "allgather", 0)


def test_a_file_is_read_back(tmp_path: Path) -> None:
    mscclpp.write(EVERY["allreduce"], tmp_path / "plan.json", in_place=True)
    plan = mscclpp.read(tmp_path / "plan.json")
    assert (plan.collective, plan.in_place, len(plan.gpus)) == ("allreduce", True, 4)
    assert mscclpp.faults(plan) == []


def test_one_thread_block_runs_a_ring_step_in_five_operations() -> None:
    """Three ranks, one piece a part, one group: ready, own copy, then put, signal, wait in turn; hand-counted."""
    plan = mscclpp.plan(ring_allgather(3), thread_blocks=1)
    names = [op["name"] for op in plan["gpus"][0]["threadblocks"][0]["ops"]]
    step = ["put", "nop", "signal", "wait", "nop"]
    assert names == ["rlxsignal", "rlxwait", "nop", *step, *step, "copy"]


def test_groups_grow_where_a_thread_block_would_pass_a_limit() -> None:
    """A ring of 16 ranks in one thread block would take 15 times 7 operations and more."""
    plan = mscclpp.plan(ring_allreduce(16), thread_blocks=1)
    blocks = plan["gpus"][0]["threadblocks"]
    assert len(blocks) > 1
    assert max(len(block["ops"]) for block in blocks) <= 64


def test_limits_that_cannot_be_kept_are_named() -> None:
    star = schedule("broadcast", 18, [(0, 0, 0, r, False) for r in range(1, 18)], [0], root=0)
    with pytest.raises(InputError, match=r"gpu 0 has more than MAX_CHANNEL = 16 memory channels"):
        mscclpp.plan(star)
    with pytest.raises(InputError, match="MAX_OPERATION = 64"):
        mscclpp.plan(ring_allreduce(16), thread_blocks=1, limits=Limits(blocks=1))
    with pytest.raises(InputError, match="instances"):
        mscclpp.plan(star, instances=0)


def test_schedules_that_are_none_are_refused() -> None:
    t = ring_allgather(3)
    lost = Transfers(**{**t.__dict__, **{k: getattr(t, k)[:-1] for k in _PER_TRANSFER}})
    with pytest.raises(InputError, match="ends with nothing, not"):
        mscclpp.plan(lost)


_PER_TRANSFER = ("piece", "src", "dst", "adds", "start_s", "end_s", "channel_hint")


def test_what_arrives_out_of_order_on_one_channel() -> None:
    """Two pieces over two parallel links of one pair, the later start arriving first and going on at once."""
    t = schedule("broadcast", 3, [(0, 0, 0, 1, False), (5, 0, 1, 2, False)], [0], root=0, split=2)
    start, end = np.array([0.0, 1.0, 3.0, 12.0]), np.array([10.0, 2.0, 4.0, 13.0])
    t = Transfers(**{**t.__dict__, "piece": np.array([0, 1, 1, 0]), "start_s": start, "end_s": end})
    plan = mscclpp.plan(t, thread_blocks=1)
    assert all(outcome(plan, "broadcast", seed) for seed in range(10))


def test_what_a_rank_has_already_is_left_out() -> None:
    """Rank 3 gets the whole from 1 and from 2, at once: two puts to one place would be a race."""
    moves = [(0, 0, 0, 1, False), (0, 0, 0, 2, False), (1, 0, 1, 3, False), (1, 0, 2, 3, False)]
    plan = mscclpp.plan(schedule("broadcast", 4, moves, [0], root=0))
    assert len(mscclpp.transfers(mscclpp.parse(json.dumps(plan))).piece) == 3
    assert all(outcome(plan, "broadcast", seed) for seed in range(5))


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_random_schedules_run(seed: int) -> None:
    """Every collective thrice: pieces of unequal bytes, overlapping moves, relays, exchanges, waste."""
    t = random_transfers(seed)
    for in_place, node in MODES:
        plan = mscclpp.plan(
            t, in_place=in_place, ranks_per_node=node, thread_blocks=1 + seed % 5, instances=1 + seed % 2
        )
        assert all(outcome(plan, t.collective, run, t.root or 0) for run in range(2))


def test_thirty_two_ranks_in_little_time() -> None:
    plan = mscclpp.plan(direct_alltoall(32))
    assert len(plan["gpus"]) == 32


def test_parts_of_any_size_are_cut_at_whole_bytes() -> None:
    """Two chunks a part of seven bytes: 3 and 4; of one byte: none left for the first."""
    plan = mscclpp.parse(json.dumps(mscclpp.plan(ring_allgather(3, split=2))))
    moved = mscclpp.transfers(plan, part_bytes=7)
    assert sorted(set(zip(moved.piece_offset.tolist(), moved.piece_bytes.tolist(), strict=True))) == [(0, 3), (3, 4)]
    with pytest.raises(InputError, match="2 chunks of a part that has 1 bytes"):
        mscclpp.transfers(plan, part_bytes=1)


def test_a_plan_that_comes_in_is_timed_on_a_machine(tmp_path: Path) -> None:
    """A ring over four fully connected ranks: the family's own check has replayed it, the bound is not above it."""
    instance = synth.read(str(Path(__file__).resolve().parents[2] / "instances/fabric/full-4-allgather-4KiB.json"))
    mscclpp.write(ring_allgather(4), tmp_path / "plan.json")
    record = imported_algorithm.run(tmp_path / "plan.json", instance)
    assert record["verified"]["ok"]
    assert record.value is not None
    bound = imported_algorithm.bound_of(instance, 10.0)
    assert bound is not None
    assert bound.bound <= record.value


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("syncs.MOST_CLOCKS", "thread blocks are more than can be replayed"),
        ("replay.MOST_UNITS", "chunks are more than can be replayed"),
    ],
)
def test_a_plan_too_large_to_be_replayed_is_a_limit(
    limit: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever exports or tunes meets it as any limit of an executor; nothing is written."""
    monkeypatch.setattr(f"synth.exchange.mscclpp.{limit}", 3)
    for one in (ring_allgather(4), ring_allreduce(4), direct_alltoall(3)):
        with pytest.raises(LimitError, match=f"the plan is too large to be checked: .*{words}"):
            mscclpp.write(one, tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())
