"""`synth batch` on a real Slurm with accounting, preemption and memory limits (`cluster.py`, started here and ended).
Skipped where that cannot be started, with the reason.

With SYNTH_RECORD=FILE in the environment, what Slurm said at the end of each test goes into that file:
`tests/synth/batch/recorded.json`, with which `test_ends.py` there asks the same without a Slurm.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import alive
from faulty.files import synth, terminations, traced, write
from slurm import cluster
from slurm.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(cluster.cannot() is not None, reason=str(cluster.cannot()))]
SUBMIT = ("batch", "submit", "in", "--engine", "slurm", "--folder", "b", "--time-limit", "60s")


class Bench:
    """A folder with a batch on a cluster, and what happens to it."""

    def __init__(self, on: Cluster, folder: Path) -> None:
        self.on = on
        self.folder = folder
        self.trace = folder / "trace"
        self.gate = folder / "gate"

    def synth(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        return synth(*words, cwd=self.folder, code=code, **self.on.environment)

    def write(self, name: str, **other: Any) -> None:
        write(self.folder / "in", name, trace=str(self.trace), **other)

    def three(self, *words: object, **second: Any) -> None:
        """Runs a, b and c in one job, which is in b and stays there until the gate opens."""
        self.write("a")
        self.write("b", **{"gate": str(self.gate), **second})
        self.write("c")
        self.synth(*SUBMIT, "--chunk", 3, *words)
        self.within(60, lambda: self.started() == ["a", "b"])

    def started(self) -> list[str]:
        return [name for name, _, event, _ in traced(self.trace) if event == "start"]

    def status(self) -> dict[str, dict[str, str]]:
        found = json.loads(self.synth("batch", "status", "b", "--json").stdout)["runs"]
        return {run.pop("run").split()[0]: run for run in found}

    def states(self) -> dict[str, str]:
        return {name: run["state"] for name, run in self.status().items()}

    def until(self, reached: Callable[[dict[str, str]], bool], seconds: float = 90) -> None:
        self.within(seconds, lambda: reached(self.states()))

    def within(self, seconds: float, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, (self.status(), self.on.ask("squeue", "-r", "-t", "all"))
            time.sleep(0.2)

    def over(self, *done: str) -> dict[str, dict[str, str]]:
        """Wait until nothing is queued or running and accounting knows every job's end; these runs must be done."""
        self.until(lambda now: not {"queued", "running"} & set(now.values()))
        ids = ",".join(self.jobs())
        self.within(30, lambda: self._booked(ids))
        found = self.status()
        assert {name for name, run in found.items() if run["state"] == "done"} == set(done), found
        self.nothing_half_done()
        return found

    def _booked(self, ids: str) -> bool:
        states = (self.on.ask("sacct", "-n", "-P", "-X", "-j", ids, "-o", "State") or "").split()
        return bool(states) and not {"RUNNING", "PENDING", "REQUEUED"} & set(states)

    def jobs(self) -> list[str]:
        sent = json.loads((self.folder / "b/batch.json").read_text())["submissions"]
        return list(dict.fromkeys(task["job"].partition("_")[0] for one in sent for task in one["tasks"]))

    def job(self, run: int = 0) -> str:
        sent = json.loads((self.folder / "b/batch.json").read_text())["submissions"]
        return next(str(task["job"]) for one in reversed(sent) for task in one["tasks"] if run in task["runs"])

    def nothing_half_done(self) -> None:
        """No process is left, every record is whole, none was written beside its name."""
        self.within(20, lambda: not any(alive(pid) for _, pid, _, _ in traced(self.trace)))
        files = [path for path in (self.folder / "b/records").rglob("*") if path.is_file()]
        assert all(path.suffix == ".json" for path in files), files
        if files:
            self.synth("check", "b/records")

    def preempt(self, seconds: int = 6) -> None:
        """A job that takes the whole node, as the batch's job must first give way."""
        words = ("-p", "high", "-n2", "--mem=100", "-o", "/dev/null", "--wrap", f"sleep {seconds}")
        assert self.on.ask("sbatch", *words)
        self.within(30, lambda: "R" in (self.on.ask("squeue", "-h", "-p", "high", "-o", "%t") or ""))

    def keep(self, name: str) -> None:
        """Record what Slurm said, without the file names of this machine."""
        if "SYNTH_RECORD" not in os.environ:
            return
        file = Path(os.environ["SYNTH_RECORD"])
        held = json.loads(file.read_text()) if file.exists() else {}
        logs: dict[str, str] = {}
        tasks: dict[str, str] = {}
        for path in sorted((self.folder / "b/tasks").iterdir()):
            tasks[path.stem] = path.read_text().replace(platform.node(), "node")
            events = [json.loads(line) for line in tasks[path.stem].splitlines() if line]
            begin = [event for event in events if event["event"] == "begin"][-1]
            (log,) = (self.folder / "b/slurm").glob(f"{begin['job']}_*_log.err")
            text = log.read_bytes()[begin["log_bytes"] :].decode()
            logs[begin["job"]] = "".join(f"{x}\n" for x in text.splitlines() if re.match("slurmstepd|srun", x))
        ids = ",".join(self.jobs())
        held[name] = {
            "squeue": self.on.ask("squeue", "-h", "-r", "-t", "all", "-n", "synth-b", "-o", "%i|%T|%r"),
            "sacct": self.on.ask("sacct", "-n", "-P", "-j", ids, "-o", "JobID,State"),
            "logs": logs,
            "tasks": tasks,
            "jobs": [self.job(run) for run in range(len(self.status()))],
            "status": self.status(),
        }
        file.write_text(json.dumps(held, indent=1) + "\n")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("slurm")) as one:
        yield one


@pytest.fixture
def bench(started: Cluster, tmp_path: Path) -> Iterator[Bench]:
    yield Bench(started, tmp_path)
    started.ask("scancel", "-u", "root")  # of a test that failed


@pytest.mark.parametrize("partition", ["low", "low-grace", "low-end-grace"])
def test_who_gives_way_goes_on_by_himself(bench: Bench, partition: str) -> None:
    """Preempted in its second run: by requeueing, and with ten seconds of grace before requeueing or cancelling. The
    first run is not done again, the others once each."""
    bench.three("--partition", partition)
    first = (bench.folder / "b/records/faulty/a/behave.json").stat()
    interrupted = traced(bench.trace)[-1][1]
    bench.preempt()
    bench.within(10, lambda: not alive(interrupted))
    bench.until(lambda now: now == {"a": "done", "b": "queued", "c": "queued"})
    bench.keep(f"preempted-{partition}")
    assert "nothing to send again" in bench.synth("batch", "resubmit", "b").stdout
    bench.gate.touch()
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "b", "c"]
    assert (bench.folder / "b/records/faulty/a/behave.json").stat().st_mtime_ns == first.st_mtime_ns


def test_who_is_cancelled_for_another_is_sent_again(bench: Bench) -> None:
    """PreemptMode=CANCEL without grace: `status` says so, `resubmit` sends the two that are missing, once."""
    bench.three("--partition", "low-end")
    bench.preempt()
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"preempted"}
    bench.keep("preempted-low-end")
    bench.gate.touch()
    assert "2 runs, engine slurm" in bench.synth("batch", "resubmit", "b").stdout
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "b", "c"]


def test_one_of_an_array_gives_way(bench: Bench) -> None:
    """Two jobs of an array run when one processor is asked for from above: one starts again, the other stays."""
    for name in "ab":
        bench.write(name, gate=str(bench.gate))
    bench.synth(*SUBMIT, "--chunk", 1, "--partition", "low-grace")
    bench.within(60, lambda: sorted(bench.started()) == ["a", "b"])
    words = ("-p", "high", "-n1", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 3")
    assert bench.on.ask("sbatch", *words)
    bench.until(lambda now: sorted(now.values()) == ["queued", "running"])
    bench.gate.touch()
    bench.over("a", "b")
    assert len(bench.started()) == 3


def test_a_cancelled_job_stays_cancelled(bench: Bench) -> None:
    """Also one that had given way before and was queued again."""
    bench.three("--partition", "low-grace")
    bench.preempt(2)
    bench.within(60, lambda: bench.started() == ["a", "b", "b"])
    bench.on.ask("scancel", bench.job())
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"cancelled"}
    bench.keep("cancelled")


def test_queued_again_and_held(bench: Bench) -> None:
    """`scontrol requeuehold`: queued, but `status` says that it does not start by itself; it does when released."""
    bench.three()
    bench.on.ask("scontrol", "requeuehold", bench.job())
    bench.until(lambda now: now == {"a": "done", "b": "queued", "c": "queued"})
    bench.within(20, lambda: "does not start by itself" in bench.status()["b"]["why"])
    assert "2 of the queued: job" in bench.synth("batch", "status", "b").stdout
    bench.keep("held")
    bench.gate.touch()
    bench.on.ask("scontrol", "release", bench.job())
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "b", "c"]


def test_a_suspended_job_goes_on(bench: Bench) -> None:
    """For longer than its run may take at all (6 s): the pause is not the run's."""
    bench.three("--time-limit", "4s", "--grace", "2s")
    bench.on.ask("scontrol", "suspend", bench.job())
    bench.until(lambda now: now == {"a": "done", "b": "queued", "c": "queued"})
    time.sleep(8)
    bench.gate.touch()
    bench.on.ask("scontrol", "resume", bench.job())
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "c"]


@pytest.mark.skipif(not cluster.kernel_limits(), reason="no control groups that limit memory can be made here")
def test_a_run_that_the_kernel_kills(bench: Bench) -> None:
    """Without --mem only the kernel knows the limit (500 MB). The job's other runs go on; more memory brings it."""
    bench.write("a")
    bench.write("b", megabytes=800)
    bench.write("c")
    bench.synth(*SUBMIT, "--chunk", 3)
    found = bench.over("a", "c")["b"]
    assert (found["state"], found["kind"]) == ("failed", "out_of_memory")
    assert "by the kernel" in found["why"]
    again = bench.synth("batch", "resubmit", "b").stderr
    assert "1 run ran out of memory with 500 MB for their job (sent once so far) and get no more now: --mem 2x" in again
    bench.over("a", "c")
    again = bench.synth("batch", "resubmit", "b", "--mem", "4x").stderr
    assert "ran out of memory" not in again
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "c", "b", "b"]


@pytest.mark.skipif(not cluster.kernel_limits(), reason="no control groups that limit memory can be made here")
def test_a_supervisor_that_the_kernel_kills(bench: Bench) -> None:
    """The kernel is told to take the supervisor first when another process of the job wants too much. There is no
    record then, and the job has FAILED: only its step is OUT_OF_MEMORY."""
    bench.three()
    supervisor = json.loads((bench.folder / "b/tasks/1-0.jsonl").read_text().splitlines()[1])["pid"]
    Path(f"/proc/{supervisor}/oom_score_adj").write_text("1000")
    (group,) = re.findall(r":memory:/(\S+)", Path(f"/proc/{supervisor}/cgroup").read_text())
    join = f"import os; open('{cluster.CGROUPS}/memory/{group}/cgroup.procs', 'w').write(str(os.getpid()))"
    want = "x = bytearray(900 << 20); x[::4096] = b'x' * len(x[::4096])"
    subprocess.run(["python3", "-c", f"{join}; {want}"], timeout=60)
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"out_of_memory"}, found
    bench.keep("kernel")


def test_a_node_that_goes_dark(bench: Bench) -> None:
    """Every process of it ends at once, and comes back half a minute later: the job starts again."""
    bench.three()
    bench.on.crash_node()
    bench.within(60, lambda: "down" in (bench.on.ask("sinfo", "-h", "-p", "low", "-o", "%T") or ""))
    bench.gate.touch()
    bench.on.start_node()
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "b", "c"]


def test_a_node_that_goes_dark_with_a_job_that_is_not_queued_again(bench: Bench) -> None:
    bench.three()
    bench.on.ask("scontrol", "update", f"JobId={bench.job()}", "Requeue=0")
    bench.on.crash_node()
    bench.within(60, lambda: "lost" in bench.states().values())
    bench.on.start_node()
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"node_failure"}
    bench.keep("node-failure")
    bench.gate.touch()
    bench.synth("batch", "resubmit", "b")
    bench.over("a", "b", "c")
    assert bench.started() == ["a", "b", "b", "c"]


def test_a_job_beyond_its_time(bench: Bench) -> None:
    """Its limit is cut below what it has used, and it may not be queued again: Slurm kills it."""
    bench.three()
    bench.on.ask("scontrol", "update", f"JobId={bench.job()}", "Requeue=0")
    bench.within(90, lambda: (bench.on.ask("squeue", "-h", "-j", bench.job(), "-o", "%M") or "").strip() > "1:02")
    bench.on.ask("scontrol", "update", f"JobId={bench.job()}", "TimeLimit=1")
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"job_time_limit"}
    bench.keep("time")
    bench.gate.touch()
    again = bench.synth("batch", "resubmit", "b")
    assert "2 runs ran out of their job's time (sent once so far) and get no more now: --time 2x" in again.stderr
    bench.over("a", "b", "c")


def test_a_job_that_meets_its_time_limit_too_often(bench: Bench) -> None:
    """Queued again three times, half a minute each, it ends and says so; nothing goes on for ever."""
    bench.three("--time-limit", "100s")
    bench.on.ask("scontrol", "update", f"JobId={bench.job()}", "TimeLimit=1")
    bench.until(lambda now: now["b"] == "lost", 400)
    found = bench.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"job_time_limit"}
    assert bench.started() == ["a", *"bbbb"]
    bench.keep("time-too-often")


def test_killed_while_writing(bench: Bench) -> None:
    """Twenty jobs' worth of short runs, whose job is killed at six arbitrary moments without a warning and queued again
    by hand: every record is whole, none is written twice after it was good."""
    for i in range(60):
        bench.write(f"r{i:02}", number=i)
    bench.synth(*SUBMIT, "--chunk", 60)
    for kill in range(6):
        bench.within(60, lambda so_far=5 * (kill + 1): len(bench.started()) >= so_far)  # type: ignore[misc]
        bench.on.ask("scancel", "--signal=KILL", f"{bench.job()}.0")
        bench.until(lambda now: "running" not in now.values() and "queued" not in now.values())
        done = {name for name, state in bench.states().items() if state == "done"}
        assert set(terminations(bench.folder / "b/records")) == done
        bench.synth("batch", "resubmit", "b")
    bench.over(*(f"r{i:02}" for i in range(60)))
    twice = len(bench.started()) - 60
    assert 0 <= twice <= 6  # the one run that each kill met


@pytest.fixture
def polled(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "slurm").mkdir()
    with Cluster(tmp_path / "slurm", kernel=False) as one:
        yield Bench(one, tmp_path)


def test_memory_that_slurm_itself_looks_at(polled: Bench) -> None:
    """Without the kernel's limits Slurm kills the whole job and books it as FAILED: only its log knows why."""
    polled.three(megabytes=900)
    found = polled.over("a")
    assert {found[name]["kind"] for name in "bc"} == {"out_of_memory"}
    assert "memory limit" in found["b"]["why"]
    polled.keep("polled")
    polled.gate.touch()
    again = polled.synth("batch", "resubmit", "b", "--mem", "4x")
    assert "ran out of memory" not in again.stderr
    polled.over("a", "b", "c")


def test_giving_way_five_times(bench: Bench) -> None:
    """More often than a job may meet its time limit: nobody counts these."""
    bench.three("--partition", "low-grace")
    for i in range(5):
        bench.within(60, lambda so_far=i: bench.started() == ["a", *"b" * (so_far + 1)])  # type: ignore[misc]
        bench.preempt(1)
        bench.until(lambda now: now == {"a": "done", "b": "queued", "c": "queued"})
    bench.gate.touch()
    bench.over("a", "b", "c")
    assert bench.started() == ["a", *"bbbbbb", "c"]
