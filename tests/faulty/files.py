"""What the tests of runner, batches and Slurm share: instance files of the faulty family and the command."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command import SYNTH, run

HERE = Path(__file__).resolve().parent
PATHS = (str(HERE), os.environ.get("PYTHONPATH", ""))  # the caller's own too: in a second worktree, its toolkit
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, PATHS))}


def write(folder: Path, name: str, behaviour: str = "good", **other: Any) -> Path:
    """An instance file `<name>.json`."""
    data = {
        "format": "synth-instance/1",
        "family": "faulty",
        "name": name,
        "source": "test",
        "behaviour": behaviour,
        **other,
    }
    path = folder / f"{name}.json"
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def synth(*words: object, cwd: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """`synth words…` with the faulty family; must end with ``code`` and without a traceback of its own. What
    is tested with it are guards, so each starts as the command starts it."""
    return run(*words, cwd=cwd, code=code, new_guards=True, **{**ENVIRONMENT, **environment})


def start(*words: object, cwd: Path, inherited: Sequence[int] = (), **environment: str) -> subprocess.Popen[str]:
    """The same in the background, by a new interpreter."""
    where = {**ENVIRONMENT, **environment}
    return subprocess.Popen(
        [SYNTH, *map(str, words)], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=where,
        pass_fds=inherited,
    )  # fmt: skip


def record(folder: Path, name: str) -> dict[str, Any]:
    """The record of an instance below a results folder."""
    data: dict[str, Any] = json.loads((folder / "faulty" / name / "behave.json").read_text())
    return data


def terminations(folder: Path) -> dict[str, str]:
    """How each run ended, by the instance's name."""
    return {
        path.parent.name: json.loads(path.read_text())["termination"]
        for path in sorted((folder / "faulty").glob("*/behave.json"))
    }


def traced(path: Path) -> list[tuple[str, int, str, float]]:
    """The lines `(name, pid, event, time)` of a trace."""
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(name, int(pid), event, float(time)) for name, pid, event, time in rows]


def within(seconds: float, reached: Any) -> None:
    """Wait for something that another process brings about."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)
