"""A guard forks its runs; nothing that a run imports or starts ends that."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import write_ring
from faulty import files
from faulty.files import record, synth, terminations, traced, within, write

from synth import execution, family
from synth.execution import guard, supervisor
from synth.execution.pool import run_all
from synth.execution.runs import Request, plan
from synth.plugins import entry_points

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


def test_after_an_import_that_starts_a_thread(tmp_path: Path) -> None:
    """The guard finds it once, starts anew, and leaves that import to the runs; none of them is lost."""
    again = {"imports": "starts_a_thread"}
    assert how_the_last_started(tmp_path, again, again, {}, again, again) == "forked"
    ended = terminations(tmp_path / "results")
    assert len(ended) == 6
    assert set(ended.values()) == {"finished"}


@pytest.mark.parametrize(("how", "words"), [("crash", "signal 11"), ("exit", "exit code 7"), ("raise", "exit code 1")])
def test_an_import_that_fails_takes_only_its_own_runs_down(tmp_path: Path, how: str, words: str) -> None:
    for name in ("a", "z"):
        write(tmp_path, name)
    write_ring(tmp_path)
    synth("solve", ".", "-j", 1, cwd=tmp_path, code=1, FAULTY_IMPORT=how)
    for name in ("a", "z"):
        assert record(tmp_path / "results", name)["termination"] == "error"
        assert words in record(tmp_path / "results", name)["message"]
    for path in (tmp_path / "results/xtree/ring4").glob("*.json"):
        assert json.loads(path.read_text())["termination"] in ("finished", "optimal")


def test_an_import_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard is replaced, and the run itself meets its limit; the next run of another family is forked as ever."""
    monkeypatch.syspath_prepend(str(files.HERE))
    monkeypatch.setenv("PYTHONPATH", files.ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setenv("FAULTY_IMPORT", "hang")
    monkeypatch.setattr(supervisor, "IMPORT_S", 5.0)
    caches = (entry_points._by_name, family.get_family)
    for cache in caches:
        cache.cache_clear()
    try:
        runs = plan([write(tmp_path, "a")], Request(limits=("1s",)), tmp_path / "results")
        runs += plan([write_ring(tmp_path)], Request(["pull"]), tmp_path / "results")
        ended = {run.instance.name: record for run, record, _ in run_all(runs, grace_s=1.0)}
    finally:
        for cache in caches:
            cache.cache_clear()
    assert ended["a"]["message"] == "killed 1 s after the time limit of 1 s"
    assert ended["ring4"]["termination"] == "finished"


def test_a_forked_guard_has_nothing_of_the_command_open(tmp_path: Path) -> None:
    """Neither files nor locks nor the line to another guard: only its own line, its errors, and what runs share."""
    trace = tmp_path / "trace"
    for name in ("a", "b"):
        write(tmp_path, name, gate=str(tmp_path / "gate"), trace=str(trace))
    (tmp_path / "other").touch()
    with (tmp_path / "other").open() as other:
        process = files.start("solve", ".", "-j", 2, cwd=tmp_path, inherited=[other.fileno()])
    within(30, lambda: len(traced(trace)) == 2)
    lines = []
    for _, pid, *_ in traced(trace):
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        assert parent != str(process.pid)
        found = [os.readlink(place) for place in Path(f"/proc/{parent}/fd").iterdir()]
        lines += [place for place in found if place.startswith("socket:")]
        assert not [place for place in found if place.endswith("other") or place.startswith("pipe:")]
    (tmp_path / "gate").touch()
    process.communicate(timeout=60)
    assert len(lines) == len(set(lines)) == 2
    assert process.returncode == 0


def test_a_command_that_has_held_much_forks_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory would count as its runs'. Nor does a program that only imports the toolkit."""
    monkeypatch.setattr(guard, "threads", lambda: 1)
    assert not supervisor._can_fork()
    monkeypatch.setattr(execution, "may_fork", True)
    monkeypatch.setattr(supervisor, "peak_memory_mb", lambda: supervisor.FORKED_MB + 1)
    assert not supervisor._can_fork()
    monkeypatch.setattr(supervisor, "peak_memory_mb", lambda: 1.0)
    assert supervisor._can_fork()
    monkeypatch.setattr(guard, "threads", lambda: 2)
    assert not supervisor._can_fork()


def test_after_a_run_that_starts_a_thread(tmp_path: Path) -> None:
    assert how_the_last_started(tmp_path, {"behaviour": "thread"}) == "forked"
