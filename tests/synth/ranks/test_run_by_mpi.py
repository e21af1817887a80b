"""`synth run --with mpi` under Open MPI and MPICH, where they are: right ends, errors, killed ranks, who waits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pytest
import test_site
from command import SYNTH, alive
from exchange.by_hand import direct_alltoall, ring_allgather
from exchange.random_transfers import random_transfers

from synth.exchange import transfers_csv
from synth.exchange.transfers import Transfers


class Library(NamedTuple):
    """An MPI: what starts its processes, and what mpi4py is to be told."""

    launcher: str
    environment: dict[str, str]


LIBRARIES = {
    "Open MPI": Library(
        "mpirun.openmpi",
        {
            "MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "libmpi.so.40", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        },
    ),
    "MPICH": Library("mpirun.mpich", {"MPI4PY_MPIABI": "mpich"}),
}  # fmt: skip


def with_debians_name(library: Library, folder: Path) -> Library:
    """Debian calls MPICH's library otherwise than mpi4py's wheel, which asks for libmpi.so.12: a link in ``folder``."""
    there = next(iter(glob("/usr/lib/*/libmpich.so.12")), None)
    if library.launcher != "mpirun.mpich" or there is None:
        return library
    (folder / "libmpi.so.12").symlink_to(there)
    return Library(library.launcher, {**library.environment, "LD_LIBRARY_PATH": str(folder)})


def missing(library: Library) -> str | None:
    """Why a library cannot be tried."""
    if shutil.which(library.launcher) is None:
        return f"{library.launcher} is not installed"
    words = [library.launcher, "-n", "1", sys.executable, "-c", "from mpi4py import MPI"]
    done = subprocess.run(words, env={**os.environ, **library.environment}, capture_output=True, text=True, timeout=60)
    return None if done.returncode == 0 else f"mpi4py does not run under {library.launcher}: {done.stderr[-200:]}"


@pytest.fixture(scope="module", params=["Open MPI", pytest.param("MPICH", marks=pytest.mark.slow)])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    found = with_debians_name(LIBRARIES[request.param], tmp_path_factory.mktemp("lib"))
    if why := missing(found):
        pytest.skip(why)
    return found


def started(library: Library, ranks: int, folder: Path, *words: object) -> subprocess.Popen[str]:
    command = [library.launcher, "-n", str(ranks), str(SYNTH), "run", *map(str, words), "--with", "mpi"]
    pipe = subprocess.PIPE
    where = {**os.environ, **library.environment}
    return subprocess.Popen(command, cwd=folder, env=where, stdout=pipe, stderr=pipe, text=True)


def run(library: Library, ranks: int, folder: Path, *words: object) -> tuple[int, str, str]:
    with started(library, ranks, folder, *words) as process:
        out, error = process.communicate(timeout=240)
    return process.returncode, out, error


def table(t: Transfers, folder: Path) -> list[str]:
    transfers_csv.write(t, folder / "moves.csv")
    root = [] if t.root is None else ["--root", str(t.root)]
    return ["moves.csv", "--collective", t.collective, *root]


@pytest.mark.long
@pytest.mark.parametrize("seed", [10, *(pytest.param(k, marks=pytest.mark.slow) for k in (5, 6, 7, 8, 9, 11, 12))])
def test_random_schedules_end_right_beside_the_librarys_own(seed: int, library: Library, tmp_path: Path) -> None:
    """One process more than there are ranks."""
    t = random_transfers(seed)
    words = [*table(t, tmp_path), "--repeat", "3", "--json"]
    ended, out, error = run(library, t.ranks + 1, tmp_path, *words)
    assert (ended, error) == (0, "")
    found = json.loads(out)
    assert (found["correct"], found["by"], len(found["seconds"]), len(found["library_s"])) == (True, "mpi", 3, 3)
    assert found["transfers"] == len(t.piece)


@pytest.mark.long
def test_a_dropped_transfer_is_caught(library: Library, tmp_path: Path) -> None:
    t = ring_allgather(3)
    ended, out, _ = run(library, 3, tmp_path, *table(t.taken(np.arange(1, len(t.piece))), tmp_path), "--repeat", 1)
    assert ended == 1
    assert "words are wrong" in out


@pytest.mark.long
def test_ranks_that_wait_for_each_other_are_named(library: Library, tmp_path: Path) -> None:
    t = direct_alltoall(3)
    t = replace(t, start_s=t.start_s + 10, end_s=t.end_s + 10)
    at = [int(np.flatnonzero((t.src == a) & (t.dst == b))[0]) for a, b in ((0, 2), (2, 0))]
    t.end_s[at], t.start_s[at] = 1.0, 2.0
    ended, _, error = run(library, 3, tmp_path, *table(t, tmp_path), "--patience", "2s")
    assert ended != 0
    for rank, other, k in ((2, 0, at[0]), (0, 2, at[1])):
        assert f"rank {rank} waits for rank {other} to send transfer {k}, piece " in error


@pytest.mark.long
def test_bad_input_is_one_line(library: Library, tmp_path: Path) -> None:
    words = table(ring_allgather(3), tmp_path)
    ended, _, error = run(library, 2, tmp_path, *words)
    assert ended != 0
    assert error.count("synth: ") == 1
    assert "synth: 2 processes of MPI, the schedule has 3 ranks: mpirun -n 3 synth run" in error
    ended, _, error = run(library, 2, tmp_path, "absent.csv", "--collective", "allgather")
    assert ended != 0
    assert error.count("synth: ") == 1
    assert "absent.csv: no such file" in error


@pytest.mark.long
def test_a_killed_rank_ends_the_others_with_a_message(library: Library, tmp_path: Path) -> None:
    words = [*table(ring_allgather(4), tmp_path), "--repeat", "10000", "--bytes", "1MiB"]
    with started(library, 4, tmp_path, *words) as process:
        ranks: list[psutil.Process] = []
        until = time.monotonic() + 100
        while len(ranks) < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
            below = psutil.Process(process.pid).children(recursive=True)
            ranks = [child for child in below if "libmpi" in maps_of(child)]
        assert len(ranks) == 4
        before = [busy_s(rank) for rank in ranks]  # half a second of work later MPI_Init is over
        while any(busy_s(rank) < spent + 0.5 for rank, spent in zip(ranks, before, strict=True)):
            assert time.monotonic() < until
            time.sleep(0.05)
        ranks[2].send_signal(signal.SIGKILL)
        out, error = process.communicate(timeout=100)
    assert process.returncode != 0
    assert "signal 9" in out + error or "EXIT CODE: 9" in out + error
    until = time.monotonic() + 30  # mpirun does not wait for what it has killed
    while any(alive(rank.pid) for rank in ranks) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [rank.pid for rank in ranks if alive(rank.pid)]


def busy_s(process: psutil.Process) -> float:
    """Processor time of a process, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def maps_of(process: psutil.Process) -> str:
    """The files that a process has mapped, in one text."""
    try:
        return Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return ""


@pytest.mark.slow
def test_sixteen_ranks_and_120000_transfers(library: Library, tmp_path: Path) -> None:
    t = ring_allgather(16, split=500)
    assert len(t.piece) == 120_000
    ended, out, error = run(library, 16, tmp_path, *table(t, tmp_path), "--repeat", 1, "--json")
    assert (ended, error) == (0, "")
    found = json.loads(out)
    assert found["correct"]
    print(f"{library.launcher}: {found['seconds'][0]:.1f} s; the library's own {found['library_s'][0]:.3f} s")


@pytest.mark.long
def test_without_mpi_one_line_says_what_is_missing(tmp_path: Path) -> None:
    """A library that cannot be loaded."""
    words = [SYNTH, "run", *table(ring_allgather(3), tmp_path), "--with", "mpi"]
    where = {**os.environ, "MPI4PY_MPIABI": "mpich", "MPI4PY_LIBMPI": "libnone.so.1"}
    done = subprocess.run(words, cwd=tmp_path, env=where, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert done.stderr.startswith("synth: --with mpi needs mpi4py and an MPI: pip install")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_the_command_of_the_page_runs(library: Library, tmp_path: Path) -> None:
    """`mpirun -n 4 synth run … --with mpi`, behind the commands that the page shows before it."""
    page = test_site.PAGES / "how-to/run.md"
    test_site.follow(page, tmp_path)
    [line] = [line for line in page.read_text().splitlines() if line.startswith("mpirun -n ")]
    _, _, ranks, _, _, *words = line.removesuffix(" --with mpi").split()
    ended, _, error = run(library, int(ranks), tmp_path, *words)
    assert (ended, error) == (0, "")
