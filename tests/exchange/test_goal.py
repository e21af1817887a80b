"""GOAL for LogGOPSim and ATLAHS: read back by a reader of its own, executed, and damaged."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import some_of
from exchange.by_hand import EVERY, ring_allgather, schedule
from exchange.goal_reader import Operation, read, run
from exchange.possession import begins, needs
from exchange.random_transfers import random_transfers

from synth.errors import InputError
from synth.exchange import goal
from synth.exchange.transfers import Transfers

LOGGOPSIM = os.environ.get("SYNTH_LOGGOPSIM")  # a folder with txt2bin and LogGOPSim


def written(t: Transfers, folder: Path) -> str:
    goal.write(t, folder / "a.goal")
    return (folder / "a.goal").read_text()


def arrives(ranks: list[list[Operation]], t: Transfers) -> None:
    """By the dependences alone every rank ends with what the collective gives it, and no contribution counts twice.

    A send carries what the one receive or sum of its piece holds that it requires, or its rank's own data; a sum what
    the receive and the sum that it requires hold, or with one receive also the rank's own contribution."""
    pieces = max(len(t.piece_part), 1)
    carried = dict[tuple[int, int, int], frozenset[int]]()
    held = dict[tuple[int, int], tuple[int, frozenset[int]]]()  # by operation: piece, whose data or contributions
    last = dict[tuple[int, int], frozenset[int]]()  # by rank and piece

    def own(rank: int, piece: int) -> frozenset[int]:
        part = int(t.piece_part[piece])
        there = t.reduces or (
            t.demand.origin[part] == rank if t.demand else begins(t.collective, t.ranks, t.root, part, rank)
        )
        return frozenset([rank if t.reduces else 0] if there else [])

    for r, place in run(ranks):
        one = ranks[r][place]
        piece = one.tag % pieces
        if one.kind == "send":
            assert one.size == t.piece_bytes[piece]
            of_piece = [held[r, other][1] for other in one.requires if held[r, other][0] == piece]
            assert len(of_piece) == len(one.requires) <= 1
            carried[r, one.peer, one.tag] = of_piece[0] if of_piece else own(r, piece)
            assert carried[r, one.peer, one.tag]
        elif one.kind == "recv":
            held[r, place] = piece, carried[one.peer, r, one.tag]
            last[r, piece] = held[r, place][1]
        else:
            [piece] = {held[r, other][0] for other in one.requires}
            parts = [held[r, other][1] for other in one.requires]
            parts += [own(r, piece)] * (len(parts) == 1)
            assert sum(map(len, parts)) == len(frozenset().union(*parts))
            held[r, place] = piece, frozenset().union(*parts)
            last[r, piece] = held[r, place][1]
    everything = frozenset(range(t.ranks) if t.reduces else [0])
    for piece, part in enumerate(t.piece_part.tolist()):
        for r in range(t.ranks):
            if t.demand.goal[part] == r if t.demand else needs(t.collective, t.ranks, t.root, part, r):
                assert last.get((r, piece), own(r, piece)) == everything


@pytest.mark.parametrize("name", EVERY)
def test_what_is_written_does_what_the_schedule_does(name: str, tmp_path: Path) -> None:
    t = EVERY[name]
    ranks = read(written(t, tmp_path))
    assert len(ranks) == t.ranks
    arrives(ranks, t)
    messages = sorted((one.tag % max(len(t.piece_part), 1), r, one.peer) for r, of in enumerate(ranks) for one in of
                      if one.kind == "send")  # fmt: skip
    assert messages == sorted(zip(t.piece.tolist(), t.src.tolist(), t.dst.tolist(), strict=True))


@pytest.mark.parametrize("seed", some_of(range(90)))
def test_random_schedules(seed: int, tmp_path: Path) -> None:
    """Relays, exchanges, pieces of unequal size, pieces that one rank sends another twice, ranks that do nothing."""
    t = random_transfers(seed)
    arrives(read(written(t, tmp_path)), t)


def test_a_finished_sum_comes_after_what_nobody_asked_for(tmp_path: Path) -> None:
    """Rank 1's sum leaves for rank 0 at 0, rank 2's contribution comes to it at 1, and the finished sum at 3: nothing
    but a requirement of its own keeps the copy behind the sum that it replaces."""
    rows = [(0, 0, 1, 0, True), (0, 0, 2, 1, True), (1, 0, 2, 0, True), (2, 0, 0, 1, False), (2, 0, 0, 2, False)]
    t = schedule("allreduce", 3, rows, [0])
    one = read(written(t, tmp_path))[1]
    [copy] = [operation for operation in one if operation.kind == "recv" and operation.peer == 0]
    assert [one[place].kind for place in copy.requires] == ["calc"]
    arrives(read(written(t, tmp_path)), t)


@pytest.mark.parametrize("seed", some_of(range(10)))
def test_sends_of_a_rank_begin_in_the_schedules_order(seed: int, tmp_path: Path) -> None:
    """Each send but a rank's first may not begin before the one before it in time has; the chain leaves none out."""
    t = random_transfers(seed)
    for r, operations in enumerate(read(written(t, tmp_path))):
        sends = [place for place, one in enumerate(operations) if one.kind == "send"]
        assert [operations[place].irequires for place in sends] == [[], *([place] for place in sends[:-1])][
            : len(sends)
        ]
        by_start = sorted(np.flatnonzero(t.src == r).tolist(), key=lambda k: t.start_s[k])
        starts = [t.start_s[k] for k in by_start]
        peers = [(t.piece[k], t.dst[k]) for k in by_start]
        pieces = max(len(t.piece_part), 1)
        told = [(operations[place].tag % pieces, operations[place].peer) for place in sends]
        assert sorted(zip(starts, told, strict=True)) == sorted(zip(starts, peers, strict=True))


@pytest.mark.parametrize(("change", "by"), [
    (r"tag 1\b", "tag 77"), (r"send 64b", "send 63b"), (r"l2 requires l1\n", ""), (r"\}", ""), (r"64b", "64 bytes"),
    (r"rank 1 \{", "rank 2 {"), (r"l2 requires l1", "l1 requires l2\nl2 requires l1"),
])  # fmt: skip
def test_the_reader_refuses_what_is_damaged(change: str, by: str, tmp_path: Path) -> None:
    """A ring of three: another tag or size, no wait for what is sent on, no end, other words, ranks, a circle."""
    t = ring_allgather(3)
    text = written(t, tmp_path)
    damaged = re.sub(change, by, text, count=1)
    assert damaged != text
    with pytest.raises((AssertionError, IndexError)):
        arrives(read(damaged), t)


def test_a_rank_without_anything_to_do_is_there(tmp_path: Path) -> None:
    t = schedule("gather", 3, [(0, 1, 1, 0, False), (0, 2, 2, 0, False)], [1, 2], root=0)
    ranks = read(written(replace(t, ranks=4), tmp_path))
    assert [len(of) for of in ranks] == [2, 1, 1, 0]


def test_what_cannot_be_said_is_refused(tmp_path: Path) -> None:
    t = ring_allgather(3)
    with pytest.raises(InputError, match="a piece without a byte"):
        goal.write(replace(t, piece_bytes=t.piece_bytes * 0), tmp_path / "a.goal")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(LOGGOPSIM is None, reason="SYNTH_LOGGOPSIM names no folder with txt2bin and LogGOPSim")
@pytest.mark.parametrize("name", EVERY)
def test_loggopsim_runs_what_is_written(name: str, tmp_path: Path) -> None:
    """It reads all, nothing is left waiting: only then it prints when each rank has ended."""
    written(EVERY[name], tmp_path)
    folder = Path(str(LOGGOPSIM))
    subprocess.run([folder / "txt2bin", "-i", "a.goal", "-o", "a.bin"], cwd=tmp_path, check=True, timeout=60)
    done = subprocess.run(
        [folder / "LogGOPSim", "-f", "a.bin"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert re.search(r"Host 0: \d+|finishing time", done.stdout), done.stdout
