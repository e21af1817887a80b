"""Rounds on tensors where messages arrive as early and leave as late as they may: what is sent is what was held."""

from __future__ import annotations

import importlib.util
import random
import sys
import threading
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is absent", allow_module_level=True)
import torch

from synth.exchange.rounds import Rounds, read, write
from synth.torch.execute import Scratch
from synth.torch.functions import run_by
from synth.torch.program import program_of

sys.path.insert(0, str(Path(__file__).parent))
from plans import MACHINES, folder_of


class Wire:
    """Messages between threads: each is copied as soon as both ends are posted, or only when one end waits."""

    def __init__(self, seed: int) -> None:
        self.changed, self.draw = threading.Condition(), random.Random(seed)
        self.sent: dict[tuple[int, int], deque] = defaultdict(deque)
        self.awaited: dict[tuple[int, int], deque] = defaultdict(deque)

    def post(self, ends: tuple[int, int], buffer: torch.Tensor, sends: bool) -> Work:
        with self.changed:
            mine, theirs = (self.sent, self.awaited) if sends else (self.awaited, self.sent)
            if theirs[ends]:
                work = theirs[ends].popleft()
                work.pair = (buffer, work.buffer) if sends else (work.buffer, buffer)
                if self.draw.random() < 0.5:
                    work.copy()
            else:
                work = Work(self, buffer)
                mine[ends].append(work)
            self.changed.notify_all()
            return work


class Work:
    def __init__(self, wire: Wire, buffer: torch.Tensor) -> None:
        self.wire, self.buffer, self.pair, self.done = wire, buffer, None, False

    def copy(self) -> None:
        if not self.done:
            self.done = True
            self.pair[1].copy_(self.pair[0])

    def wait(self) -> None:
        with self.wire.changed:
            assert self.wire.changed.wait_for(lambda: self.pair is not None, 20)
            self.copy()


class Group:
    def __init__(self, wire: Wire, rank: int) -> None:
        self.wire, self.own = wire, rank

    def rank(self) -> int:
        return self.own

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self.wire.post((self.own, peer), tensors[0], True)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self.wire.post((peer, self.own), tensors[0], False)


def doubling(ranks: int) -> Rounds:
    """All of it to a partner twice as far every round: what leaves is added to in the same round."""
    rows = [(k, rank, rank ^ 2**k) for k in range(ranks.bit_length() - 1) for rank in range(ranks)]
    at, src, dst = np.array(rows).T
    one = np.zeros(1, dtype=int)
    return Rounds("doubling", "allreduce", ranks, None, 1, one, one, one + 1, at, src, dst, 0 * at, at >= 0)


@pytest.mark.long
@pytest.mark.parametrize("machine", ["doubling", *MACHINES])
def test_an_allreduce_is_right_however_late_messages_leave(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "allreduce.rounds.json"
    if machine == "doubling":
        write(doubling(4), path)
    else:
        folder_of(machine, tmp_path, ("allreduce",))
    plan = read(path)
    for seed in range(8):
        wire, held = Wire(seed), [torch.arange(97) * (rank + 1) for rank in range(plan.ranks)]
        ended: list[int] = []

        def one(rank: int, wire: Wire = wire, held: list[torch.Tensor] = held, ended: list[int] = ended) -> None:
            scratch = Scratch()
            for _ in range(2):  # the second in the memory of the first
                run_by(Group(wire, rank), plan, program_of(plan, rank), [], [held[rank]], None, scratch)
            ended.append(rank)

        threads = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(plan.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        total = torch.arange(97) * (plan.ranks * (plan.ranks + 1) // 2) * plan.ranks
        assert len(ended) == plan.ranks
        assert all(torch.equal(one, total) for one in held), seed
