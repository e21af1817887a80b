"""`synth solve` when it is interrupted, and when one of its runs is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import BOUND, RECORD, SYNTH, alive, flat, run, write_ring

from synth.cli import main

SHIPPED = Path(__file__).resolve().parents[3] / "instances"


# torus 64x64, pull, one restart: about a minute of work, which is never finished here
LONG = {"network": {"kind": "torus", "rows": 64, "cols": 64}}


def children_of(parent: int) -> list[int]:
    """Ids of the live children of a process (Linux)."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def workers_of(parent: int) -> list[int]:
    """Ids of the processes of runs: children of the keepers, which are the children of the command."""
    return [worker for keeper in children_of(parent) for worker in children_of(keeper)]


def start_long(folder: Path, *words: object) -> tuple[subprocess.Popen[str], int]:
    """A solve that takes long, and the id of its worker once that one is at work."""
    command = [SYNTH, "solve", *map(str, words), "-m", "pull"]
    process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = workers_of(process.pid)
        if found:
            time.sleep(1.5)  # past its imports, into its work
            return process, workers_of(process.pid)[0]
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"no worker appeared: {process.communicate()}")


children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
needs_proc = pytest.mark.skipif(not children.exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(copy: Path, number: signal.Signals) -> None:
    """Records finished before stay, the interrupted one leaves nothing, its process is gone, the message says so."""
    write_ring(copy, "zlong", **LONG)
    process, worker = start_long(copy, "ring4.json", "zlong.json", "--resume", "--time-limit", "60s")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stdout + stderr
    assert not alive(worker)
    assert [str(path.relative_to(copy)) for path in sorted((copy / "results").rglob("*")) if path.is_file()] == [
        str(BOUND),
        str(RECORD),
    ]
    run("check", "results", cwd=copy)


@needs_proc
def test_killed_worker(tmp_path: Path) -> None:
    """kill -9 of one run: its record says `killed`, the next file is solved, the exit code is 1."""
    write_ring(tmp_path, "along", **LONG)
    write_ring(tmp_path)
    process, worker = start_long(tmp_path, "along.json", "ring4.json", "--json")
    os.kill(worker, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in stderr
    first, second = map(json.loads, stdout.splitlines())
    assert (first["termination"], first["objective"]["value"]) == ("killed", None)
    assert "signal 9" in first["message"]
    assert (second["instance"], second["objective"]["value"]) == ("ring4", 2.0)
    stored = tmp_path / "results/xtree/along/pull.json"
    assert json.loads(stored.read_text()) == first
    assert sorted(path.name for path in stored.parent.iterdir()) == ["pull.json"]
    assert "killed, holds no solution" in flat(run("check", stored, cwd=tmp_path).stdout)


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interrupt_while_compiled_code_is_entered(interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter reports an exception that is set while a C function returns as SystemError, raised from it."""

    def stopped() -> None:
        try:
            try:
                raise KeyboardInterrupt if interrupted else ValueError
            except BaseException as error:
                raise SystemError("returned a result with an exception set") from error
        except SystemError as error:
            raise SystemError("another one") from error

    monkeypatch.setattr(main, "app", stopped)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit if interrupted else SystemError) as raised:
        main.run()
    if interrupted:
        assert raised.value.code == 130
