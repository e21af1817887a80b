"""`synth check` and `synth show`: real processes, their output and exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import BOUND, RECORD, SYNTH, flat, run, write_ring

from synth.cli import main

SHIPPED = Path(__file__).resolve().parents[3] / "instances"


def test_check(solved: Path, tmp_path: Path) -> None:
    text = flat(run("check", RECORD, BOUND, cwd=solved).stdout)
    assert "timesteps 2, replayed" in text
    assert "bound 2 follows from its certificate" in text
    assert run("check", "results", cwd=solved).stdout.count("ok ") == 2
    short = run("check", "--summary", "results", cwd=solved).stdout
    assert "ok " not in short
    assert "2 records hold" in flat(short)
    run("check", solved / RECORD, cwd=tmp_path)  # from anywhere: the instance is sought above the record
    assert run("check", "gone.json", cwd=solved, code=2).stderr
    assert run("check", "ring4.json", cwd=solved, code=2).stderr


def tamper(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def test_check_tells_tampered_records(copy: Path) -> None:
    """Exit 1 for a record that says what its solution does not do, 2 for one that cannot be checked, and the faults."""
    tamper(copy / RECORD, lambda data: data["objective"].update(value=1.0))
    done = run("check", "results", cwd=copy, code=1)
    assert "FAILED" in done.stdout
    assert "FAILED" in run("check", "--summary", "results", cwd=copy, code=1).stdout
    assert "the record states the value 1.0, the replay gives 2.0" in flat(done.stdout)
    assert "ok " in done.stdout  # the bound's record is still checked
    tamper(copy / RECORD, lambda data: data["objective"].update(value=2.0))
    run("check", "results", cwd=copy)
    tamper(copy / RECORD, lambda data: data["solution"]["step"].__setitem__(0, data["solution"]["step"][0] % 2 + 1))
    assert "FAILED" in run("check", "results", cwd=copy, code=1).stdout
    (copy / RECORD).write_text("{")
    done = run("check", "results", cwd=copy, code=2)
    assert "pull.json: not valid JSON" in flat(done.stderr)


def test_check_tells_a_bound_without_certificate(copy: Path) -> None:
    tamper(copy / BOUND, lambda data: data.update(solution=None, bound=99.0))
    done = run("check", BOUND, cwd=copy, code=1)
    assert "follows from its certificate" not in done.stdout


def test_check_and_show_need_the_instance_as_it_was(copy: Path) -> None:
    write_ring(copy, chunk_bytes=5.0)
    for words in (("check", RECORD), ("show", RECORD), ("show", RECORD, "--csv")):
        assert "ring4.json has changed since the run" in flat(run(*words, cwd=copy, code=2).stderr)
    (copy / "ring4.json").unlink()
    assert "is not found" in flat(run("check", RECORD, cwd=copy, code=2).stderr)


@pytest.mark.long
def test_records_with_wrong_types_are_no_tracebacks(copy: Path) -> None:
    """Records somebody edited by hand, all in one go: whatever the verdict on each, it comes in words and the check
    goes on to the last; `show` likewise (`run` forbids a traceback)."""
    whole = json.loads((copy / RECORD).read_text())
    keys = ["objective", "verified", "seconds", "options", "instance_file", "instance_sha256", "family", "bound"]
    for key in keys:
        for i, wrong in enumerate((None, [1], 5)):
            (copy / "results" / f"a-{key}-{i}.json").write_text(json.dumps(whole | {key: wrong}))
    for key in ("instance_file", "solution_file"):
        for i, name in enumerate(("x" * 5000, "a/" * 3000, "\0", "\ud800", "", "..", "/", "/dev/zero")):
            (copy / "results" / f"b-{key}-{i}.json").write_text(json.dumps(whole | {key: name}))
    (copy / "results" / "zlast.json").write_text(json.dumps(whole | {"objective": whole["objective"] | {"value": 7.0}}))
    done = subprocess.run([SYNTH, "check", "results"], cwd=copy, text=True, capture_output=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr[-300:]
    assert done.returncode == 1
    assert "FAILED results/zlast.json" in done.stdout
    for key in ("objective", "seconds"):
        command = [SYNTH, "show", f"results/a-{key}-1.json"]
        done = subprocess.run(command, cwd=copy, text=True, capture_output=True, timeout=60)
        assert "Traceback" not in done.stderr, done.stderr[-300:]
        assert done.returncode == 2


def test_show(solved: Path) -> None:
    text = run("show", RECORD, cwd=solved).stdout
    assert "timesteps: 2, proven bound 2, gap 0" in text
    assert "verified: yes" in text
    assert "step   1 (8 of 8 links)" in text
    assert "inside [0]" in flat(run("show", BOUND, cwd=solved).stdout)
    assert "holds no solution" in flat(run("show", BOUND, "--csv", cwd=solved, code=2).stderr)


def test_show_knows_the_bound_beside_it(copy: Path) -> None:
    """A schedule alone has no bound; the bound's record beside it counts, one of another instance does not."""
    run("solve", "ring4.json", "-m", "xtree", cwd=copy)
    record = Path(RECORD).with_name("xtree.json")
    said = run("show", record, cwd=copy).stdout
    assert f"proven bound 2, gap 0 (certified, {BOUND})" in said
    tamper(copy / BOUND, lambda data: data.update(instance_sha256="0" * 64))
    tamper(copy / RECORD, lambda data: data.update(instance_sha256="0" * 64))
    assert "proven bound –, gap –\n" in run("show", record, cwd=copy).stdout


def test_csv_replays_in_ten_lines(solved: Path) -> None:
    """Anybody can check an allgather from the flat table: nothing of ours is used here."""
    rows = list(csv.DictReader(io.StringIO(run("show", RECORD, "--csv", cwd=solved).stdout)))
    assert list(rows[0]) == ["step", "src", "dst", "link", "origin", "chunk"]
    held = {v: {(v, 0)} for v in range(4)}
    for step in range(1, 3):
        now = [{key: int(value) for key, value in row.items()} for row in rows if int(row["step"]) == step]
        assert len({row["link"] for row in now}) == len(now)
        assert all((row["dst"] - row["src"]) % 4 in (1, 3) for row in now)
        assert all((row["origin"], row["chunk"]) in held[row["src"]] for row in now)
        for row in now:
            held[row["dst"]].add((row["origin"], row["chunk"]))
    assert all(chunks == {(v, 0) for v in range(4)} for chunks in held.values())
    assert len(rows) == 12


def test_csv_of_reductions_names_the_phase(tmp_path: Path) -> None:
    write_ring(tmp_path, collective="allreduce")
    run("solve", "ring4.json", "-m", "pull", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO(run("show", RECORD, "--csv", cwd=tmp_path).stdout)))
    phases = [row["collective phase"] for row in rows]
    assert phases.count("reduce_scatter") == phases.count("allgather") == 12


def test_plot(solved: Path, tmp_path: Path) -> None:
    run("show", solved / RECORD, "--plot", tmp_path / "p.png", cwd=tmp_path)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plot_refuses(solved: Path, tmp_path: Path) -> None:
    for target, words in (("p.doc", ".png, .svg or .pdf"), ("no/p.png", "cannot be written")):
        done = run("show", solved / RECORD, "--plot", target, cwd=tmp_path, code=2)
        assert words in flat(done.stderr)


@pytest.mark.long
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_no_error(solved: Path, unbuffered: str) -> None:
    """`synth show --csv | head -1`: the reader goes away, nobody complains, whether output waits for the end or not."""
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    for words in (("show", RECORD, "--csv"), ("families",)):
        process = subprocess.Popen([SYNTH, *words], cwd=solved, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert "Traceback" not in errors
        assert "Exception ignored" not in errors
        assert process.wait(60) == 0


@pytest.mark.long(after=1)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_message(tmp_path: Path, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SYNTH, "families"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (2, "synth: the output: No space left on device\n")


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "{}"),
        ("solve", "ring4.json", "-m", "bound", "--results", "{}"),
        ("check", "{}"),
        ("show", "{}"),
        ("pack", "{}"),
        ("study", "{}"),
        ("study", "--compare", "{}", "{}"),
        ("instances", "--folder", "{}"),
        ("tour", "--results", "{}"),
        ("batch", "submit", "{}"),
        ("batch", "status", "{}"),
    ],
)
def test_a_path_that_no_system_takes(
    words: tuple[str, ...], solved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that is short enough to read, and 2."""
    monkeypatch.chdir(solved)
    monkeypatch.setattr(sys, "argv", ["synth", *(word.format("x" * 5000) for word in words)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # pytest keeps its own handlers
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 2
    told = f"--results = '{'x' * 58}…: cannot be written" if "--results" in words else f"{'x' * 59}…"
    assert capsys.readouterr().err == f"synth: {told}: File name too long\n"


def test_a_folder_where_a_file_should_be(solved: Path, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert "f is no folder" in run("tour", "--results", "f", cwd=tmp_path, code=2).stderr
    assert "no such folder" in run("pack", "none", cwd=tmp_path, code=2).stderr
