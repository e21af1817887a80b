"""Nothing is lost: crashes, hangs, memory blow-ups, kills and full disks beside good runs, with real processes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Pipe
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from command import alive
from faulty.files import record, start, synth, terminations, traced, within, write

from synth.clock import start_up_costs
from synth.execution import guard
from synth.execution.messages import Ending, Started, Task
from synth.options import RunOptions

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc (Linux)")
RESULTS = Path("results")
# Below, `own_thread` is for a command that has a thread: its guards are interpreters of their own, no forks of it.
forked_and_fresh = pytest.mark.parametrize("threads", [1, 2])  # a run of one thread is forked, of two a new interpreter
TASK = Task("a.json", "0f", "behave", RunOptions(5.0, 0.1, 2, 3, "highs", {"x": None}), "r.json", 100.0, 2.0, 0.5)


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]


def test_good_runs_beside_three_bad_ones(tmp_path: Path) -> None:
    """A crash, a hang in C and a memory blow-up take nothing else down, say what they were and leave no process.
    Forked and, fewer, fresh at a time; until it is killed, each run has long enough to start on a busy machine."""
    commands, good = {}, {1: 9, 2: 3}
    for threads in good:
        folder = tmp_path / str(threads)
        for i in range(good[threads]):
            write(folder, f"good{i:02}", number=i, trace=str(folder / "trace"))
        for bad in ("crash", "hang", "grow"):
            write(folder, bad, bad, trace=str(folder / "trace"))
        limits = ("--time-limit", "4s", "--grace", "6s", "--memory", "300M")
        commands[threads] = start("solve", ".", "-j", 3, *limits, "--json", "--threads", threads, cwd=folder)
    for threads, process in commands.items():
        folder = tmp_path / str(threads)
        stdout, _ = process.communicate(timeout=300)
        assert process.returncode == 1
        ended = terminations(folder / RESULTS)
        assert {name: end for name, end in ended.items() if end != "finished"} == {
            "crash": "error",
            "hang": "time_limit",
            "grow": "out_of_memory",
        }
        assert len(ended) == good[threads] + 3
        assert [json.loads(line)["instance"] for line in stdout.splitlines()] == sorted(ended)
        assert "signal 11" in record(folder / RESULTS, "crash")["message"]
        assert "killed 6 s after the time limit of 4 s" in record(folder / RESULTS, "hang")["message"]
        assert "over the memory limit of 300 MB" in record(folder / RESULTS, "grow")["message"]
        assert not any(alive(pid) for _, pid, _, _ in traced(folder / "trace"))
        assert leftovers(folder) == []
        synth("check", "results", cwd=folder)


def test_as_many_at_once_as_asked_and_never_more(tmp_path: Path) -> None:
    """Two go on together, as neither ends before both have started; of six, a third would come between them."""
    trace, gate = tmp_path / "trace", tmp_path / "gate"
    for i in range(6):
        write(tmp_path, f"run{i}", trace=str(trace), gate=str(gate))
    process = start("solve", ".", "--jobs", 2, cwd=tmp_path)
    within(60, lambda: len(traced(trace)) == 2)
    gate.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    going = most = 0
    for *_, event, _ in sorted(traced(trace), key=lambda line: line[3]):
        going += 1 if event == "start" else -1
        most = max(most, going)
    assert (going, most) == (0, 2)
    assert len(traced(trace)) == 12


@forked_and_fresh
def test_what_a_run_prints_is_kept(tmp_path: Path, threads: int) -> None:
    """The end of standard error stands in the record, whether the run ended well, by exit code or by an exception."""
    for name in ("noise", "exit", "raise", "good"):
        write(tmp_path, name, name)
    synth("solve", ".", "--threads", threads, cwd=tmp_path, code=1)
    kept = {name: record(tmp_path / RESULTS, name) for name in ("noise", "exit", "raise", "good")}
    assert kept["noise"]["stderr"].endswith("xxx\nlast words")
    assert len(kept["noise"]["stderr"]) <= 8000
    assert "exit code 7" in kept["exit"]["message"]
    assert kept["exit"]["message"].endswith(": the library gave up")
    assert kept["raise"]["message"].endswith("ValueError: the method has a fault")
    assert "synth_faulty.py" in kept["raise"]["stderr"]
    assert "stderr" not in kept["good"]
    assert kept["good"]["peak_memory_mb"] > 1


def test_one_name_in_two_families_are_two_problems(tmp_path: Path) -> None:
    """The ring is solved, its namesake is not: exit code 4."""
    write(tmp_path / "in", "same", "empty")
    ring = {
        "format": "synth-instance/1",
        "family": "xtree",
        "name": "same",
        "source": "test",
        "chunks": 1,
        "network": {"kind": "ring", "nodes": 4},
    }
    (tmp_path / "in" / "ring.json").write_text(json.dumps(ring))
    synth("solve", "in/ring.json", "-m", "pull", cwd=tmp_path)
    synth("solve", "in", cwd=tmp_path, code=4)


@forked_and_fresh
def test_thread_limit_reaches_the_libraries(tmp_path: Path, threads: int) -> None:
    """One thread: forked from the guard; several: an interpreter of its own. Both know the limit and end well."""
    for name in ("a", "b"):
        write(tmp_path, name, "environment")
    synth("solve", ".", "--threads", threads, "-j", 1, cwd=tmp_path)
    for name in ("a", "b"):
        assert record(tmp_path / RESULTS, name)["stderr"] == f"threads {threads} {threads}"


@forked_and_fresh
def test_processes_a_run_leaves_behind_are_ended(tmp_path: Path, threads: int) -> None:
    """In its group and out of it."""
    write(tmp_path, "stray", "stray")
    before = {pid for pid in os.listdir("/proc") if pid.isdigit()}
    synth("solve", ".", "--threads", threads, cwd=tmp_path)
    new = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid not in before]
    words = []
    for pid in new:
        try:
            words.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
    assert not [line for line in words if line.startswith(b"sleep\x0098")]


def test_resume_and_retry(tmp_path: Path) -> None:
    """`--resume` repeats errors and kills; `--retry failed` also what ran out of memory or, empty-handed, of time."""
    trace = tmp_path / "trace"
    for name in ("good", "raise", "grow", "empty", "limit"):
        write(tmp_path / "in", name, name, trace=str(trace))
    words = ("solve", "in", "--memory", "300M")

    def repeated(*more: str) -> set[str]:
        trace.unlink(missing_ok=True)
        synth(*words, *more, cwd=tmp_path, code=1)
        return {name for name, *_ in traced(trace)}

    assert repeated() == {"good", "raise", "grow", "empty", "limit"}
    assert repeated("--resume") == {"raise"}
    assert repeated("--resume", "--retry", "failed") == {"raise", "grow", "empty"}
    kept = record(tmp_path / RESULTS, "limit")  # stopped at its limit, it keeps its incumbent and its bound
    assert (kept["termination"], kept["objective"]["value"], kept["bound"]) == ("time_limit", 1.0, 0.0)
    assert "must be failed" in synth(*words, "--resume", "--retry", "all", cwd=tmp_path, code=2).stderr
    assert "needs --resume" in synth(*words, "--retry", "failed", cwd=tmp_path, code=2).stderr


def test_an_instance_that_changes_meanwhile(tmp_path: Path) -> None:
    """The run notices: it is another problem than the one planned."""
    write(tmp_path, "a", gate=str(tmp_path / "gate"), trace=str(tmp_path / "trace"))
    write(tmp_path, "b")
    process = start("solve", ".", "-j", 1, cwd=tmp_path)
    within(30, lambda: traced(tmp_path / "trace"))
    write(tmp_path, "b", number=5)
    (tmp_path / "gate").touch()
    process.communicate(timeout=60)
    assert terminations(tmp_path / RESULTS) == {"a": "finished", "b": "error"}
    assert "b.json: the instance file has changed" in record(tmp_path / RESULTS, "b")["message"]


@pytest.mark.parametrize(
    ("target", "threads", "own_thread"),
    [("run", 1, ""), ("run", 2, ""), ("guard", 1, ""), ("guard", 2, ""), ("guard", 1, "yes")],
    ids=["run-forked", "run-fresh", "guard-forked", "guard-fresh", "guard-fresh_guard"],
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_or_its_guard_is_killed(
    tmp_path: Path, target: str, number: signal.Signals, threads: int, own_thread: str
) -> None:
    """The record says `killed` and the others go on. (A guard does not mind SIGTERM: it ends with its supervisor.)"""
    trace = tmp_path / "trace"
    write(tmp_path, "a", gate=str(tmp_path / "gate"), trace=str(trace))
    write(tmp_path, "b")
    process = start("solve", ".", "-j", 1, "--threads", threads, cwd=tmp_path, FAULTY_THREAD=own_thread)
    within(30, lambda: traced(trace))
    pid = traced(trace)[0][1]
    guard = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert (b"synth.execution.guard" in Path(f"/proc/{guard}/cmdline").read_bytes()) == bool(own_thread)
    survives = target == "guard" and number == signal.SIGTERM
    os.kill(pid if target == "run" else guard, number)
    if survives:
        time.sleep(0.2)
    else:
        within(30, lambda: not alive(pid))  # before it may end well
    (tmp_path / "gate").touch()
    process.communicate(timeout=60)
    assert process.returncode == (0 if survives else 1)
    assert terminations(tmp_path / RESULTS) == {"a": "finished" if survives else "killed", "b": "finished"}
    assert not alive(pid)


def test_a_pause_is_not_the_runs_fault(tmp_path: Path) -> None:
    """Stopped all together, as a batch system suspends a job, for longer than the run may take at all. The run itself
    stops them when it begins, so that nothing of its limit is gone. Forked and fresh at a time."""
    commands, families = {}, []
    for threads in (1, 2):
        folder = tmp_path / str(threads)
        write(folder, "slow", "pause")
        limits = ("--time-limit", "1.5s", "--grace", "1.5s", "--threads", threads)
        commands[folder] = start("solve", ".", "-j", 1, *limits, cwd=folder)
    for process in commands.values():
        within(60, lambda pid=process.pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        parent = psutil.Process(process.pid)
        family = [parent, *parent.children(recursive=True)]
        within(10, lambda family=family: all(one.status() == psutil.STATUS_STOPPED for one in family))
        assert len(family) == 3
        families += family
    time.sleep(3.5)
    for one in families:
        one.resume()
    for folder, process in commands.items():
        process.communicate(timeout=60)
        assert terminations(folder / RESULTS) == {"slow": "finished"}, record(folder / RESULTS, "slow")["message"]


def test_compiling_is_not_the_runs_fault_either(tmp_path: Path) -> None:
    """Longer than the run may take at all; what hangs afterwards is killed all the same. Forked and fresh at a time."""
    commands = {}
    for threads in (1, 2):
        folder = tmp_path / str(threads)
        write(folder, "slow", "compile")
        write(folder, "stuck", "compile_and_hang")
        limits = ("--time-limit", "1s", "--grace", "5s", "--threads", threads)
        commands[folder] = start("solve", ".", "-j", 2, *limits, cwd=folder)
    for folder, process in commands.items():
        process.communicate(timeout=120)
        assert process.returncode == 4
        assert terminations(folder / RESULTS) == {"slow": "finished", "stuck": "time_limit"}
        assert record(folder / RESULTS, "stuck")["message"] == "killed 5 s after the time limit of 1 s"
        assert record(folder / RESULTS, "slow")["seconds"]["compile"] >= 7.0


@pytest.mark.parametrize(
    ("number", "threads", "own_thread"),
    [(signal.SIGINT, 1, ""), (signal.SIGINT, 2, ""), (signal.SIGINT, 1, "yes"), (signal.SIGTERM, 1, "")],
    ids=["forked", "fresh", "fresh_guard", "terminated"],
)
def test_interrupted_with_several_running(
    tmp_path: Path, number: signal.Signals, threads: int, own_thread: str
) -> None:
    trace = tmp_path / "trace"
    write(tmp_path, "a")
    for name in ("late", "late2", "hang"):
        write(tmp_path, name, name.rstrip("2"), trace=str(trace))
    process = start("solve", ".", "-j", 3, "--threads", threads, cwd=tmp_path, FAULTY_THREAD=own_thread)
    within(30, lambda: len(traced(trace)) == 3 and (tmp_path / "results/faulty/a/behave.json").exists())
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert terminations(tmp_path / RESULTS) == {"a": "finished"}
    assert not any(alive(pid) for _, pid, _, _ in traced(trace))
    assert leftovers(tmp_path) == []


def kill_and_resume(folder: Path, moment: float, expected: dict[str, str]) -> bool:
    """kill -9 of the command ``moment`` seconds after its start, then `--resume`; whether the kill met it at work."""
    process = start("solve", "instances", "-j", 2, "--resume", cwd=folder)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
    met = process.wait() == -signal.SIGKILL
    pids = {pid for _, pid, _, _ in traced(folder / "trace")}
    within(20, lambda: not any(alive(pid) for pid in pids))  # no orphans
    synth("solve", "instances", "-j", 2, "--resume", cwd=folder)
    assert terminations(folder / RESULTS) == expected
    assert leftovers(folder / RESULTS) == []
    return met


def killed_at_random_moments(folder: Path, times: int, seed: int) -> None:
    (folder / "instances").mkdir()
    names = [f"run{i:02}" for i in range(12)]
    for i, name in enumerate(names):
        write(folder / "instances", name, number=i, seconds=0.1 * (i % 3), trace=str(folder / "trace"))
    expected = dict.fromkeys(names, "finished")
    random.seed(seed)
    met = 0
    for _ in range(times):
        met += kill_and_resume(folder, random.uniform(0.2, 2.5), expected)
        for name in random.sample(names, 9):  # a part is done already, as in real life
            (folder / RESULTS / "faulty" / name / "behave.json").unlink()
        (folder / "trace").unlink(missing_ok=True)
    assert met  # else nothing was tested
    synth("solve", "instances", "--resume", cwd=folder)
    synth("check", "results", cwd=folder)


def test_kill_9_of_the_parent_twice(tmp_path: Path) -> None:
    killed_at_random_moments(tmp_path, 2, seed=1)


@pytest.mark.slow
def test_kill_9_of_the_parent_twenty_times(tmp_path: Path) -> None:
    """Always ends with the same complete set of valid records, no orphan, no temporary file."""
    killed_at_random_moments(tmp_path, 20, seed=2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.slow)])  # either writes its record itself
def test_full_disk(tmp_path: Path, small_disk: Path, threads: int) -> None:
    """One line, the records before it whole: exit code 1 where the room ends during a run, 2 where there was none
    before the first; with room again, `--resume` completes."""
    gate = tmp_path / "gate"
    for i in range(6):
        write(tmp_path / "in", f"run{i}", "noise" if i else "good", gate=str(gate) if i == 2 else None)
    synth("solve", "in/run0.json", "--results", small_disk, "--threads", threads, cwd=tmp_path)
    ballast = small_disk / "ballast"
    process = start("solve", "in", "--results", small_disk, "--resume", "--threads", threads, "-j", 1, cwd=tmp_path)
    within(60, lambda: "run1" in terminations(small_disk))  # run2 waits
    subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4k"], capture_output=True)  # until there is no room
    gate.touch()
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "No space left on device" in told
    assert terminations(small_disk) == {"run0": "finished", "run1": "finished"}
    done = synth("solve", "in", "--results", small_disk, "--resume", "--threads", threads, cwd=tmp_path, code=2)
    assert "cannot be written: No space left on device" in done.stderr
    assert terminations(small_disk) == {"run0": "finished", "run1": "finished"}
    assert leftovers(small_disk) == []
    ballast.unlink()
    synth("solve", "in", "--results", small_disk, "--resume", "--threads", threads, cwd=tmp_path)
    assert terminations(small_disk) == {f"run{i}": "finished" for i in range(6)}


@pytest.mark.parametrize(("share", "available", "stops"), [(0.0, 0.01, True), (0.99, 0.01, False), (0.0, 0.5, False)])
def test_when_the_machine_runs_out_of_memory(
    monkeypatch: pytest.MonkeyPatch, share: float, available: float, stops: bool
) -> None:
    """Without a limit of its own, a run is stopped when almost nothing is left and it holds more than its share."""
    total = psutil.virtual_memory().total
    left = SimpleNamespace(total=total, available=available * total)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: left)
    task = replace(TASK, options=RunOptions(None), memory_mb=None, share=share)
    watch = guard._Watch(os.getpid(), task, 0.0, bytearray(start_up_costs.ACCOUNT))
    assert watch.must_stop() is stops
    assert watch.cause == ("low_memory" if stops else None)
    assert watch.peak_mb > 1


@pytest.mark.parametrize("with_waitid", [True, False])
def test_an_end_is_seen_without_reaping(monkeypatch: pytest.MonkeyPatch, with_waitid: bool) -> None:
    """So that the id stays ours until the group is killed; also where the system has no `waitid`."""
    if not with_waitid:
        monkeypatch.delattr(os, "waitid")
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert not guard._has_ended(process.pid)
    process.stdin.close()
    within(10, lambda: guard._has_ended(process.pid))
    assert process.wait() == 0


def test_a_warm_guard_changes_no_result(tmp_path: Path) -> None:
    """One guard, four runs of one method: the first imports everything itself, the others find it there; all four, and
    one in an interpreter of its own (two threads), find the same schedule."""
    ring = {
        "format": "synth-instance/1",
        "family": "xtree",
        "source": "test",
        "chunks": 2,
        "network": {"kind": "torus", "rows": 3, "cols": 3},
    }
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / "in" / f"{name}.json").write_text(json.dumps({**ring, "name": name}))
    words = ("-m", "pull", "--seed", 3, "-O", "restarts=1", "-j", 1, "--json")
    lines = synth("solve", "in", *words, cwd=tmp_path).stdout.splitlines()
    lines += synth("solve", "in/a.json", *words, "--threads", 2, cwd=tmp_path).stdout.splitlines()
    solutions = [json.loads(line)["solution"] for line in lines]
    assert len(solutions) == 5
    assert all(solution == solutions[0] for solution in solutions)


@pytest.mark.parametrize(
    ("ending", "termination", "words"),
    [
        (Ending(-9, "time"), "time_limit", "killed 2 s after the time limit of 5 s"),
        (Ending(-9, "memory", 120.0), "out_of_memory", "limit of 100 MB: it held 120 MB"),
        (Ending(-9, "low_memory", 120.0), "out_of_memory", "machine's memory"),
        (Ending(-9, None, 120.0, kernel_killed=True), "out_of_memory", "by the kernel"),
        (Ending(-6, stderr="terminate called after throwing 'std::bad_alloc'"), "out_of_memory", "bad_alloc"),
        (Ending(1, stderr="Traceback\nMemoryError"), "out_of_memory", "MemoryError"),
        (Ending(-9), "killed", "signal 9"),
        (Ending(-15), "killed", "signal 15"),
        (Ending(-9, "guard"), "killed", "watched over the run"),
        (Ending(-11), "error", "signal 11"),
        (Ending(-6, stderr="assertion failed"), "error", "assertion failed"),
        (Ending(3, seconds=1.25), "error", "exit code 3 after 1.2 s"),
        (Ending(0), "error", "exit code 0"),
    ],
)
def test_how_an_end_is_told(ending: Ending, termination: str, words: str) -> None:
    found, message = ending.in_words(TASK)
    assert found == termination
    assert words in message


@pytest.mark.parametrize("message", [TASK, Started(7), Ending(-9, "memory", 1.5, True, 2.5, "a\nb – c")])
def test_a_message_arrives_as_it_was_sent(message: Task | Started | Ending) -> None:
    near, far = Pipe()
    near.send(message)
    assert far.recv() == message


def test_the_clock_of_a_run_starts_in_its_process() -> None:
    options = replace(TASK.options, started=0.0)
    options.progress.note(1.0)
    assert options.started_now() == options
    assert options.started_now().started > 0.0
    assert options.started_now().progress.rows == []
