"""A guard forks its runs; nothing that a run imports or starts ends that."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty.files import record, synth, write

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="forks on Linux only")


def how_the_last_started(folder: Path, *before: dict[str, str], **environment: str) -> str:
    """`forked` or `fresh`: how one guard's last run started, after runs that do as these fields say."""
    for i, fields in enumerate(before):
        write(folder, f"run{i}", **fields)
    write(folder, "run_last", "process")
    synth("solve", ".", "-j", 1, cwd=folder, **environment)
    return str(record(folder / "results", "run_last")["stderr"]).splitlines()[-1]


@pytest.mark.parametrize("solver", ["highs", "cpsat", "scip", "gurobi"])
def test_after_a_run_of_each_solver(tmp_path: Path, solver: str) -> None:
    assert how_the_last_started(tmp_path, {"solver": solver}, {"solver": solver}) == "forked"


@pytest.mark.parametrize("module", ["pyarrow", "pandas", "numba", "matplotlib.pyplot"])
def test_after_an_import(tmp_path: Path, module: str) -> None:
    pytest.importorskip(module)
    assert how_the_last_started(tmp_path, {"imports": module}) == "forked"


def test_after_a_run_that_starts_a_thread(tmp_path: Path) -> None:
    assert how_the_last_started(tmp_path, {"behaviour": "thread"}) == "forked"
