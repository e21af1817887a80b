"""Commands at once in one folder lose no record, wherever one of them is halted or killed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from interleaving import FIRST, SCENARIOS, pack, read_everything, write
from typer.testing import CliRunner

from synth.cli.main import app
from synth.records import folder as results
from synth.records import lock


@pytest.mark.long
@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_no_interleaving_and_no_crash_loses_a_record(tmp_path: Path, stride: int) -> None:
    """The first of two processes is halted (or killed) at each of its file operations, or at every 29th, while the
    second runs; then four at once with random pauses."""
    script = Path(__file__).parents[2] / "interleaving.py"
    words = [sys.executable, str(script), str(tmp_path), str(stride), "3" if stride > 1 else "0"]
    done = subprocess.run(words, text=True, capture_output=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    found = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {*SCENARIOS, "storm"}
    assert {name: line["lost"] for name, line in found.items() if line["lost"]} == {}, done.stderr
    assert all(line["tried"] for line in found.values())
    assert stride > 1 or found["pack-pack"]["tried"] > 60


@contextmanager
def holder(folder: Path, purpose: str) -> Iterator[int]:
    """Another process that holds a lock."""
    code = (
        "import sys; from pathlib import Path; from synth.records import lock\n"
        f"with lock.held(Path(sys.argv[1]), {purpose!r}): print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate()


@pytest.mark.parametrize("purpose", ["packing", "writing"])
def test_who_holds_a_lock_for_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, purpose: str) -> None:
    monkeypatch.setattr(lock, "wait_s", 0.2)
    write(tmp_path, FIRST, "old")
    with holder(tmp_path, purpose) as process:
        done = CliRunner().invoke(app, ["pack", str(tmp_path)])
        assert done.exit_code == 1
        assert len(done.output.splitlines()) == 1
        assert f"(process {process} on " in done.output
        assert str(tmp_path) in done.output
        if purpose == "writing":
            with pytest.raises(lock.LockedError, match=f"process {process} on "):
                write(tmp_path, FIRST, "new")
        assert not read_everything(tmp_path, {FIRST: {"old"}})
    pack(tmp_path)
    assert not list(tmp_path.rglob("*.lock"))


def test_a_killed_holder_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "wait_s", 5.0)
    with holder(tmp_path, "packing") as process:
        os.kill(process, 9)
    write(tmp_path, FIRST, "old")
    assert results.pack(tmp_path) == 1


def test_without_locks_runs_write_and_pack_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that answers ENOLCK."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    write(tmp_path, FIRST, "new")
    assert not read_everything(tmp_path, {FIRST: {"new"}})
    done = CliRunner().invoke(app, ["pack", str(tmp_path)])
    assert done.exit_code == 1
    assert "has no locks" in done.output
    assert not read_everything(tmp_path, {FIRST: {"new"}})


def test_a_page_is_made_by_one_command_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one ends at once, says who makes it, and has written nothing; `pack` leaves the page's instances."""
    monkeypatch.setattr("synth.cli.reproduce.PAGE_WAIT_S", 0.2)
    (tmp_path / "mlfm" / "instances").mkdir(parents=True)
    instance = tmp_path / "mlfm" / "instances" / "a.instance"
    instance.write_text("{}")
    with holder(tmp_path / "mlfm", "page") as process:
        done = CliRunner().invoke(app, ["reproduce", "mlfm", "--quick", "--results", str(tmp_path)])
        assert done.exit_code == 1
        assert f"(process {process} on " in " ".join(done.output.split())
        assert not (tmp_path / "mlfm.md").exists()
        write(tmp_path / "mlfm", FIRST, "old")
        pack(tmp_path / "mlfm")
        assert instance.is_file()
