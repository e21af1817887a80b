"""What `synth run` reaches: 1 GiB through an allgather of 8 ranks, beside plain copies between as many processes.

``pytest tests/benchmarks/bench_ranks.py -s`` prints both rates and their ratio, of one run. The memory it takes is that
of the ranks' buffers, 8 GiB; ``SYNTH_BENCH_BYTES`` sets another size of the gathered data.
"""

from __future__ import annotations

import mmap
import os
import time
from statistics import median

import numpy as np
import pytest

from synth.exchange.transfers import Transfers
from synth.ranks.crew import Crew
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.program import WORD
from synth.text.quantities import percent, shown

RANKS, REPEAT = 8, 3
BYTES = int(os.environ.get("SYNTH_BENCH_BYTES", 2**30))


def ring(part_bytes: int) -> Transfers:
    """A ring of 8 ranks, one piece a part."""
    step, rank = (grid.reshape(-1) for grid in np.meshgrid(np.arange(RANKS - 1), np.arange(RANKS), indexing="ij"))
    part = np.arange(RANKS)
    count = len(step)
    return Transfers(
        "ring", "allgather", RANKS, None, part_bytes, part, np.zeros_like(part), np.full_like(part, part_bytes),
        (rank - step) % RANKS, rank, (rank + 1) % RANKS, np.zeros(count, dtype=bool), step.astype(float),
        step + 1.0, np.full(count, -1),
    )  # fmt: skip


def direct(part_bytes: int) -> Transfers:
    """Every rank hands its own part to each other."""
    t = ring(part_bytes)
    src = t.piece
    keep = np.argsort(t.start_s, kind="stable")
    return Transfers(**{**vars(t), "src": src, "dst": t.dst}).taken(keep)


def plain_copies(part_bytes: int) -> float:
    """Bytes/s that 8 processes reach who each copy 7 parts out of the others' memory, nothing said
    between them, all pages touched before."""
    words = part_bytes // WORD
    memory = [np.frombuffer(mmap.mmap(-1, RANKS * part_bytes), dtype=np.uint64) for _ in range(RANKS)]
    ends = np.frombuffer(mmap.mmap(-1, 2 * RANKS * WORD), dtype=np.float64).reshape(RANKS, 2)
    for one in memory:
        one[:] = 1
    (gate, opener), (ready, sayer) = os.pipe(), os.pipe()
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if not child:
            os.close(opener)
            for measured in range(2):  # the first time, every page of the mapping is new to the process
                if measured:
                    os.write(sayer, b".")
                    os.read(gate, 1)  # all at once, when the gate is closed
                ends[rank, 0] = time.monotonic()
                for step in range(1, RANKS):
                    other = (rank - step) % RANKS
                    place = slice(other * words, (other + 1) * words)
                    memory[rank][place] = memory[other][place]
                ends[rank, 1] = time.monotonic()
            os._exit(0)
        children.append(child)
    for _ in range(RANKS):
        os.read(ready, 1)
    for end in (gate, opener, ready, sayer):
        os.close(end)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    return RANKS * (RANKS - 1) * part_bytes / float(ends[:, 1].max() - ends[:, 0].min())


@pytest.mark.parametrize("schedule", [ring, direct])
def test_an_allgather_beside_plain_copies(schedule) -> None:
    part = BYTES // RANKS
    program = program_of(schedule(part))
    plain = [plain_copies(part)]
    with Crew() as crew:
        done = crew.run(Job(program, repeat=REPEAT))
    plain.append(plain_copies(part))
    assert not done.wrong
    rate, copies = program.bytes_moved / median(done.seconds), median(plain)
    print(
        f"\n{schedule.__name__}: {shown(BYTES, 'bytes')} gathered by {RANKS} ranks, {shown(rate, 'bytes/s')}; plain "
        f"copies {shown(copies, 'bytes/s')}; ratio {percent(rate / copies)}"
    )
