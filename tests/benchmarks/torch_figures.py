"""``python tests/benchmarks/torch_figures.py``: an allreduce of ``synth.torch`` over loopback beside gloo's own ring.

In turns, in one run: gloo's allreduce, the same ring as a plan, the toolkit's ring of two directions, and all to all at
once. Prints medians of seconds and processor seconds of a rank with their ratios to gloo's, then what a round and a
message cost: least squares over the plans at 4 KiB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from synth.exchange.rounds import Rounds, read, write

Message = tuple[int, int, int, int, bool]  # round, from, to, piece, whether it adds
SMALL, LARGE = 2**12, 2**20


def ring(ranks: int, directions: int) -> list[Message]:
    """A ring, or two that turn against each other with half of the data each."""
    return [
        (r, i, (i + way) % ranks, directions * ((i - way * r) % ranks) + k, r < ranks - 1)
        for r in range(2 * ranks - 2) for i in range(ranks) for k, way in enumerate((1, -1)[:directions])
    ]  # fmt: skip


def at_once(ranks: int) -> list[Message]:
    """Every rank sums its share of all, and sends it to all."""
    return [
        (r, i, k, i if r else k, not r) for r in range(2) for i in range(ranks) for k in range(ranks) if i != k
    ]  # fmt: skip


def rounds_of(name: str, ranks: int, messages: list[Message]) -> Rounds:
    """The plan of an allreduce in equal pieces."""
    columns = [np.array(column) for column in zip(*sorted(messages), strict=True)]
    pieces = int(columns[3].max()) + 1
    every = np.arange(pieces)
    ones = np.ones(pieces, dtype=int)
    return Rounds(name, "allreduce", ranks, None, pieces, 0 * every, every, ones, *columns)


def plans(ranks: int) -> list[Rounds]:
    """Those that are measured."""
    made = {"the same ring": ring(ranks, 1), "two directions": ring(ranks, 2), "at once": at_once(ranks)}
    return [rounds_of(name, ranks, messages) for name, messages in made.items()]


def rank_main(rank: int, ranks: int, folder: Path, turns: int) -> None:
    """What one process does; rank 0 prints."""
    import torch
    import torch.distributed as dist

    from synth.torch.backend import SynthGroup
    from synth.torch.chosen import Plans
    from synth.torch.functions import run_by
    from synth.torch.program import program_of

    torch.set_num_threads(1)
    limit = timedelta(seconds=60)
    store = dist.FileStore(str(folder / "store"), ranks)
    gloo = dist.ProcessGroupGloo(store, rank, ranks, timeout=limit)
    group = SynthGroup(gloo, store, Plans([]), rank, ranks, limit)
    known = [read(folder / f"{k}.json") for k in range(3)]
    programs = {plan.name: program_of(plan, rank) for plan in known}
    for size in (LARGE, SMALL):
        it = torch.ones(size // 4)

        def planned(plan: Rounds, it: torch.Tensor = it) -> None:
            do = partial(run_by, gloo, plan, programs[plan.name], [], [it], group._fail, group.scratch)
            group._run(do, [it], it).wait()

        def own(it: torch.Tensor = it) -> None:
            gloo.allreduce([it]).wait()

        ways: dict[str, Callable[[], None]] = {"gloo": own}
        ways |= {plan.name: partial(planned, plan) for plan in known}
        took = _took(ways, it, gloo, turns)
        if rank == 0:
            _tell(size, took, known, ranks)
    gloo.barrier().wait()
    sys.stdout.flush()
    os._exit(0)


def _took(ways: dict[str, Callable[[], None]], it: Any, gloo: Any, turns: int) -> dict[str, list[list[float]]]:
    """Seconds and processor seconds by way."""
    took: dict[str, list[list[float]]] = {name: [[], []] for name in ways}
    for turn in range(turns + 5):
        for name, do in ways.items():
            it.fill_(1.0)
            gloo.barrier().wait()
            begun = time.perf_counter(), time.process_time()
            do()
            ended = time.perf_counter(), time.process_time()
            if turn >= 5:
                for column, a, b in zip(took[name], begun, ended, strict=True):
                    column.append(b - a)
    return took


def _tell(size: int, took: dict[str, list[list[float]]], known: list[Rounds], ranks: int) -> None:
    middle = {name: [statistics.median(column) for column in columns] for name, columns in took.items()}
    for name, (wall, busy) in middle.items():
        ratios = f"ratio {wall / middle['gloo'][0]:.2f}, of the processor's {busy / middle['gloo'][1]:.2f}"
        print(f"{size:,} bytes among {ranks}, {name}: {wall * 1e3:.3f} ms, processor {busy * 1e3:.3f} ms; {ratios}")
    if size == SMALL:
        rows = [[1, plan.rounds, np.bincount(plan.src).max()] for plan in known]
        call, one, message = np.linalg.lstsq(rows, [middle[plan.name][1] for plan in known], rcond=None)[0]
        print(f"of a rank's processor a call takes {call * 1e6:.0f} us, a round {one * 1e6:.0f} us, a message "
              f"{message * 1e6:.0f} us")  # fmt: skip


def main() -> None:
    """Start the ranks and wait."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--ranks", type=int, default=4)
    asked.add_argument("--turns", type=int, default=60)
    asked.add_argument("--rank", type=int)
    asked.add_argument("--folder", type=Path)
    words = asked.parse_args()
    if words.rank is not None:
        rank_main(words.rank, words.ranks, words.folder, words.turns)
    with tempfile.TemporaryDirectory() as folder:
        for k, plan in enumerate(plans(words.ranks)):
            write(plan, Path(folder) / f"{k}.json")
        command = [sys.executable, "-W", "ignore", __file__, "--folder", folder, "--ranks", str(words.ranks)]
        command += ["--turns", str(words.turns), "--rank"]
        started = [subprocess.Popen([*command, str(rank)], stderr=subprocess.DEVNULL) for rank in range(words.ranks)]
        sys.exit(max(process.wait() for process in started))


if __name__ == "__main__":
    main()
