"""A kernel that is long in every process is compiled in the end; what a ledger's file holds never matters else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from synth.kernels import ledger

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

kernels.LOADING_S = kernels.LOADED_S = 1e-3
ledger.LONG_S = 0.02
if "share" not in sys.argv:
    ledger.LONG_SHARE = 0.0
of_count = sum(len(kernel.function.__code__.co_code) for kernel in count.callees)
kernels.COMPILING_S = (count.earlier_s if "impatient" in sys.argv else 10.0) / of_count
a = np.zeros(2, dtype=np.int64)
for _ in range(1 if "short" in sys.argv else 40):
    count(a, 10 if "short" in sys.argv else 5_000)
print(a[0], bool(count.signatures), count.plain_s > 0.0)
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

    def kept_s() -> float:
        return ledger.read(tmp_path.rglob("*.long"))

    plain, long, short = ["False", "True"], ["200000"], ["10", "False", "True"]
    assert run("short") == short
    assert run("share") == [*long, *plain]  # compiling would cost a thousand times as much
    assert not list(tmp_path.rglob("*.long"))
    assert run() == [*long, *plain]
    first = kept_s()
    assert first >= 0.02  # of many calls, each of them short
    assert run() == [*long, *plain]
    assert kept_s() >= first + 0.02
    assert run("impatient") == [*long, "True", "True"]  # as if many processes had been here; it began as plain Python
    kept = kept_s()
    assert run() == [*long, "True", "True"]
    assert kept_s() == kept  # compiled after a millisecond
    assert run("short") == short
    next(tmp_path.rglob("*.long")).write_bytes(b"nan\n")
    assert run("short") == short


@pytest.mark.parametrize(
    "content",
    [b"", b"nan\n", b"inf\n", b"1e9\n", b"-1.000\n", b"1.000", b"1.000\n" * 9, b"\xff" * 4096, "\u0661.000\n".encode()],
)
def test_what_is_no_ledger_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kernel.long"
    path.write_bytes(content)
    assert ledger.read([path]) == 0.0


def test_the_first_place_that_can_be_written_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    places = [tmp_path / "file" / "kernel.long", tmp_path / "new" / "kernel.long", tmp_path / "other.long"]
    assert ledger.read(places) == 0.0
    ledger.write(places, 0.75)
    assert ledger.read(places) == ledger.read(places[1:2]) == 0.75
    assert not places[2].exists()
    ledger.write(places, 1e9)
    assert ledger.read(places) == 1e5
    ledger.write(places[:1], 1.0)  # nowhere: as if nothing had been kept
