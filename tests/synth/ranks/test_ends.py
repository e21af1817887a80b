"""How a run ends that does not end well: a killed rank, a killed launcher, an interruption; nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from command import SYNTH, alive, run
from exchange.by_hand import ring_allgather

from synth.exchange import transfers_csv

RANKS = 5
SHARED = "/dev/shm/"


class Run(NamedTuple):
    """The command, its launcher, and the ranks."""

    command: subprocess.Popen[str]
    launcher: psutil.Process
    ranks: list[psutil.Process]

    def gone(self) -> bool:
        return not any(alive(process.pid) for process in (self.launcher, *self.ranks))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Run]:
    """A run that goes on for long, with all its ranks at work."""
    transfers_csv.write(ring_allgather(RANKS), tmp_path / "ring.csv")
    words = ["run", "ring.csv", "--collective", "allgather", "--repeat", "10000"]
    pipe = subprocess.PIPE
    with subprocess.Popen([SYNTH, *words], cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as command:
        ranks: list[psutil.Process] = []
        until = time.monotonic() + 60
        while len(ranks) < RANKS and command.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
            ranks = [r for child in psutil.Process(command.pid).children() for r in child.children()]
        assert len(ranks) == RANKS
        yield Run(command, ranks[0].parent() or ranks[0], sorted(ranks, key=lambda rank: rank.pid))
        if command.poll() is None:
            command.kill()


def wait_until_gone(run: Run) -> None:
    until = time.monotonic() + 20
    while not run.gone() and time.monotonic() < until:
        time.sleep(0.05)
    assert run.gone()


@pytest.mark.long
def test_a_killed_rank_ends_the_others_with_a_message(running: Run) -> None:
    running.ranks[2].send_signal(signal.SIGKILL)
    said, _ = running.command.communicate(timeout=60)
    assert running.command.returncode == 1
    assert "rank 2 was killed by signal 9 (SIGKILL); the other ranks were ended" in said
    wait_until_gone(running)


@pytest.mark.long
def test_a_killed_launcher_ends_its_ranks_with_a_message(running: Run) -> None:
    running.launcher.send_signal(signal.SIGKILL)
    _, said = running.command.communicate(timeout=60)
    assert running.command.returncode == 2
    assert "the process that started the ranks was ended (exit code -9), and they with it" in said
    wait_until_gone(running)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_an_interruption_leaves_nothing_behind(running: Run, number: signal.Signals, code: int) -> None:
    shared = {m.path for rank in running.ranks for m in rank.memory_maps() if m.path.startswith(SHARED)}
    running.command.send_signal(number)
    _, said = running.command.communicate(timeout=60)
    assert running.command.returncode == code
    assert "Traceback" not in said
    wait_until_gone(running)
    assert not any(map(os.path.exists, shared))


def test_ranks_that_wait_for_each_other_are_named(tmp_path: Path) -> None:
    """Each is to receive before it sends: rank 0 from 1, rank 1 from 0."""
    head = "start_s,end_s,piece,part,offset,bytes,src,dst,adds\n"
    (tmp_path / "moves.csv").write_text(head + "2,1,70,0,0,64,0,1,0\n2,1,71,1,0,64,1,0,0\n")
    words = ["run", "moves.csv", "--collective", "allgather", "--patience", "0.5s"]
    said = run(*words, cwd=tmp_path, code=1).stdout
    assert "rank 0 waits for rank 1 to send transfer 1, piece 71 (part 1, offset 0)" in said
    assert "rank 1 waits for rank 0 to send transfer 0, piece 70 (part 0, offset 0)" in said


def test_buffers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    head = "start_s,end_s,piece,part,offset,bytes,src,dst,adds\n"
    size = 2**50
    (tmp_path / "moves.csv").write_text(head + f"0,1,0,0,0,{size},0,1,0\n0,1,1,1,0,{size},1,0,0\n")
    words = ["run", "moves.csv", "--collective", "allgather", "--bytes", f"{2**47}"]
    error = run(*words, cwd=tmp_path, code=2).stderr
    assert len(error.splitlines()) == 1
    assert "the buffers of 2 ranks take 256 TiB, of" in error


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0,1,0,0,0,64,0,0,0", "line 2, dst = '0': is the sender itself"),
        ("0,1,0,9,0,64,0,1,0", ""),
        ("0,1,0,0,0,0,0,1,0", "line 2, bytes = '0': must be in 1.."),
        ("0,1,0,0,-8,64,0,1,0", "line 2, offset = '-8': must be in 0.."),
        ("nan,1,0,0,0,64,0,1,0", "line 2, start_s = 'nan': must be a time"),
        ("0,1e999,0,0,0,64,0,1,0", "line 2, end_s = '1e999': must be a time"),
        ("0,1,0,0,0,64,0,99999999,0", "line 2, dst = '99999999': must be in 0..65535"),
        ("0,1,0,0,0,64,0,1,2", "line 2, adds = '2': must be in 0..1"),
        ("0,1,0,0,0,64,0,1", "line 2, adds: is missing"),
        ("0,1,0,0,0,64,0,1,0\n0,1,0,1,0,64,0,1,0", "line 3, part = 1: in line 2 the same piece has 0"),
        ("0,1,0,0,0,64,0,1,0\n0,1,1,0,32,64,0,1,0", "piece 1: overlaps another piece of its part"),
        ("0,1,0,0,0,4611686018427387904,0,1,0", "line 2, bytes = "),
    ],
)
def test_a_broken_table_is_refused_by_its_line(row: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "moves.csv").write_text(f"start_s,end_s,piece,part,offset,bytes,src,dst,adds\n{row}\n")
    words = ["run", "moves.csv", "--collective", "allgather", "--repeat", 1]
    error = run(*words, cwd=tmp_path, code=2 if said else 1).stderr
    assert said in error
    assert all(line.startswith("synth: moves.csv: ") for line in error.splitlines())
