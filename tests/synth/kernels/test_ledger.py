"""A kernel that is long in every process is compiled in the end; what a ledger's file holds never matters else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from synth.kernels import ledger
from synth.kernels.ledger import LongCalls

ROOT = Path(__file__).resolve().parents[3]
COUNTING = """
import sys
import numpy as np
from synth import kernels
from synth.kernels import jit, ledger

@jit
def count(a, turns):
    total = 0
    for _ in range(turns):
        a[0] += 1
        total += a[0] % 7
    return total

kernels.LOADING_S = 1e-3
ledger.LONG_S = 0.02
of_count = sum(len(kernel.function.__code__.co_code) for kernel in count.callees)
short = "short" in sys.argv
kernels.COMPILING_S = 10.0 / of_count
if "impatient" in sys.argv:  # as if many processes had been here
    kernels.COMPILING_S = count.earlier.seconds / of_count
a = np.zeros(2 if short else 50, dtype=np.int64)
print(count(a, 10 if short else 200_000), a[0], bool(count.signatures), count.plain_s > 0.0)
"""


@pytest.mark.parametrize("beside_the_source", [True, False])
def test_a_kernel_that_is_long_in_every_process_is_compiled(tmp_path: Path, beside_the_source: bool) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "counting.py").write_text(COUNTING)
    environment = {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    if not beside_the_source:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "chosen")

    def run(*words: str) -> list[str]:
        command = [sys.executable, "-c", "import counting", *words]
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.split()

    assert run("short") == ["27", "10", "False", "True"]
    assert not list(tmp_path.rglob("*.long"))
    found = ["599997", "200000"]
    assert run() == [*found, "False", "True"]
    first = ledger.read(tmp_path.rglob("*.long"))
    assert first.seconds >= 0.02
    assert first.entries == 50
    assert run() == [*found, "False", "True"]
    both = ledger.read(tmp_path.rglob("*.long"))
    assert both.seconds >= first.seconds + 0.02
    assert run("impatient") == [*found, "True", "True"]  # it began as plain Python and was given up
    assert run() == [*found, "True", "False"]  # a call of that size is compiled from the first moment on
    assert run("short") == ["27", "10", "False", "True"]
    next(tmp_path.rglob("*.long")).write_bytes(b"nan s 0 entries\n")
    assert run("short") == ["27", "10", "False", "True"]


@pytest.mark.parametrize(
    "content",
    [b"", b"nan s 0 entries\n", b"1e9 s 3 entries\n", b"-1.000 s 3 entries\n", b"1.000 s -3 entries\n",
     b"1.000 s 3 entries", b"1.000 s 3 entries\n" * 9, b"\xff" * 4096, "\u0661.000 s 3 entries\n".encode()],
)  # fmt: skip
def test_what_is_no_ledger_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kernel.long"
    path.write_bytes(content)
    assert ledger.read([path]) == LongCalls()


def test_the_first_place_that_can_be_written_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    places = [tmp_path / "file" / "kernel.long", tmp_path / "new" / "kernel.long", tmp_path / "other.long"]
    assert ledger.read(places) == LongCalls()
    ledger.write(places, LongCalls().and_one(0.75, 40).and_one(1.5, 30).and_one(1e9, 70))
    assert ledger.read(places) == ledger.read(places[1:2]) == LongCalls(1e5, 30)
    assert not places[2].exists()
    ledger.write(places[:1], LongCalls(1.0, 1))  # nowhere: as if nothing had been kept


def test_only_calls_as_large_as_a_long_one_are_expected_to_be_long() -> None:
    assert not LongCalls().expect(10**9)
    assert [LongCalls(1.0, 30).expect(entries) for entries in (29, 30, 31)] == [False, True, True]
