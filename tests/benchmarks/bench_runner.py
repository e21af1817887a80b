"""What one run costs beside its work, and where that goes: `pytest -s tests/benchmarks/bench_runner.py`.

The work is OpTree's formula (well under a millisecond). The ratios are within one process and one run of this file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.bench_start import REFERENCE, SYNTH, TOUR, processor_s

from synth.execution.pool import run_all
from synth.execution.runs import Run
from synth.family import get_family
from synth.instance import read
from synth.options import RunOptions

SHIPPED = Path(__file__).resolve().parents[2] / "instances/optree/ring-10-w2.json"
RUNS = 1000
SMALL = {"block-24": "closed_form", "dgx1-allgather": "direct", "groups-16-allreduce": "leaders", "ring-12": "relay"}


def runs_in(folder: Path, number: int, threads: int = 1) -> list[Run]:
    """That many instances of their own, each with one run."""
    data = json.loads(SHIPPED.read_text())
    method = get_family("optree").methods["formula"]
    options = RunOptions(threads=threads, method={p.name: p.default for p in method.parameters})
    made = []
    for i in range(number):
        path = folder / f"ring{i}.json"
        path.write_text(json.dumps(data | {"name": f"ring{i}"}))
        made.append(Run(read(path), method, options, folder / "results"))
    return made


def seconds_of(runs: Sequence[Run], **options: Any) -> float:
    started = time.perf_counter()
    assert all(record.value is not None for _, record, _ in run_all(runs, **options))
    return time.perf_counter() - started


def test_thousand_runs(benchmark: Any, tmp_path: Path) -> None:
    """Two at once, each in a process of its own; then all of them again with `resume`."""
    runs = runs_in(tmp_path, RUNS)
    seconds = benchmark.pedantic(seconds_of, (runs,), {"jobs": 2}, rounds=1)
    again = seconds_of(runs, jobs=2, resume=True)
    print(f"\n{RUNS} runs, 2 jobs: {seconds:.1f} s, {1000 * seconds / RUNS:.1f} ms a run; resumed: {again:.2f} s")


@pytest.mark.parametrize("name", SMALL)
def test_processor_time_of_a_thousand(benchmark: Any, tmp_path: Path, name: str) -> None:
    """The whole command on a thousand copies of a question of the tour: what a run costs over its solving, as a share
    of what ``import numpy, pandas`` costs. Seconds of solving are the clock's: they say so on an idle machine only."""
    data = json.loads((TOUR / f"{name}.json").read_text())
    for i in range(RUNS):
        path = tmp_path / "in" / f"copy{i}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data | {"name": path.stem}))
    command = (SYNTH, "solve", "in", "-m", SMALL[name], "--jobs", "2", "--results", "results")
    used = benchmark.pedantic(processor_s, (command, tmp_path), rounds=1)
    records = [json.loads(path.read_text()) for path in (tmp_path / "results").rglob("*.json")]
    assert len(records) == RUNS
    solving, reference = sum(record["seconds"]["solve"] for record in records), processor_s(REFERENCE, tmp_path)
    over, whole = (seconds / RUNS / reference for seconds in (used - solving, used))
    print(f"\n{name}: a run {whole:.3f} of the reference ({reference:.2f} s), {over:.3f} over its solving")


@pytest.mark.parametrize("path", ["interpreter", "import synth", "imports of a run", "new process", "forked"])
def test_where_it_goes(benchmark: Any, tmp_path: Path, path: str) -> None:
    """One after another: an interpreter, our package, all a run imports; a run in a new interpreter, a forked one."""
    number = 20
    statements = {
        "interpreter": "pass",
        "import synth": "import synth",
        "imports of a run": "from synth import api, record; from synth.family import get_family as g; "
        "g('optree').methods['formula'].load(); import synth_models.optree.check.replay",
    }
    if path in statements:
        command = [sys.executable, "-c", statements[path]]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        benchmark.pedantic(subprocess.run, (command,), {"check": True, "env": environment}, rounds=number)
        each = benchmark.stats.stats.median
    else:
        threads = 2 if path == "new process" else 1  # several threads: no fork
        warm, runs = runs_in(tmp_path, 3, threads), runs_in(tmp_path, number + 3, threads)[3:]
        whole = benchmark.pedantic(seconds_of, (warm + runs,), rounds=1)
        each = (whole - seconds_of(warm)) / number
    print(f"\n{path}: {1000 * each:.1f} ms")
