"""What a command costs before and beside its work: `pytest -s tests/benchmarks/bench_start.py`.

Processor time of the whole command with all its processes, the least of some repetitions, and its ratio to a fixed
reference, `python -c "import numpy, pandas"`, measured between them. Warm: kernels compiled before are on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "instances/tour"
SYNTH = str(Path(sys.executable).with_name("synth"))
REFERENCE = (sys.executable, "-c", "import numpy, pandas")
REPEATED = 3
COMMANDS: dict[str, tuple[str, ...]] = {
    "import synth": (sys.executable, "-c", "import synth"),
    "help": (SYNTH, "--help"),
    "families": (SYNTH, "families"),
    "completion": (SYNTH, "solve"),
}
SOLVED = {
    "alltoall-16": "dp_k",
    "block-24": "closed_form",
    "dgx1-allgather": "pull",
    "equimesh-3x3": "pull",
    "groups-16-allreduce": "leaders",
    "ring-12": "relay",
}


def processor_s(command: tuple[str, ...], folder: Path, **environment: str) -> float:
    """Processor time of a command and of all processes it has waited for, in seconds."""
    program = (
        "import json, resource, subprocess, sys; "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, done.stderr.decode()]))"
    )
    words = [sys.executable, "-c", program, *command]
    out = subprocess.run(words, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=True)
    code, seconds, errors = json.loads(out.stdout)
    assert code == 0, errors
    return float(seconds)


def compare(name: str, command: tuple[str, ...], folder: Path, repeated: int = REPEATED, **environment: str) -> None:
    """Measure a command and the reference in turn; print both and their ratio."""
    reference, own = [], []
    for _ in range(repeated):
        reference.append(processor_s(REFERENCE, folder))
        own.append(processor_s(command, folder, **environment))
    ratio = min(own) / min(reference)
    print(f"\n{name}: {min(own):.2f} s of processor time, {ratio:.2f} of the reference ({min(reference):.2f} s)")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_compute_nothing(benchmark: Any, tmp_path: Path, name: str) -> None:
    completing = {"_SYNTH_COMPLETE": "complete_bash", "COMP_WORDS": "synth solve -m ", "COMP_CWORD": "3"}
    environment = completing if name == "completion" else {}
    command = COMMANDS[name][:1] if name == "completion" else COMMANDS[name]
    benchmark.pedantic(compare, (name, command, tmp_path), environment, rounds=1)


@pytest.mark.parametrize("name", SOLVED)
def test_solving_and_checking_a_small_question(benchmark: Any, tmp_path: Path, name: str) -> None:
    solve = (SYNTH, "solve", str(TOUR / f"{name}.json"), "-m", SOLVED[name], "--results", "results")
    print(f"\n{name} with kernels as they are found: {processor_s(solve, tmp_path):.2f} s of processor time")
    compare(f"solve {name}", solve, tmp_path)
    benchmark.pedantic(compare, (f"check {name}", (SYNTH, "check", "results"), tmp_path), rounds=1)


def test_the_tour(benchmark: Any, tmp_path: Path) -> None:
    benchmark.pedantic(compare, ("the tour", (SYNTH, "tour", "--results", "tour"), tmp_path), {"repeated": 1}, rounds=1)


@pytest.mark.parametrize("network", ["torus", "mesh"])
def test_a_collective_of_256_nodes(benchmark: Any, tmp_path: Path, network: str) -> None:
    """16 x 16, one chunk, by `xtree`, with the replay."""
    keys = (f"network={network}", "rows=16", "cols=16", "chunks=1", "-o", "large.json")
    subprocess.run([SYNTH, "make", "xtree", *keys], cwd=tmp_path, check=True, capture_output=True)
    solve = (SYNTH, "solve", "large.json", "-m", "xtree")
    processor_s(solve, tmp_path)
    benchmark.pedantic(compare, (f"{network} 16 x 16", solve, tmp_path), rounds=1)
