"""The command as a person or a script meets it: a real process.

:func:`run` forks it from a process that has imported the command (:mod:`forked_command`), :func:`cold` starts a new
interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked_command

SYNTH = Path(sys.executable).with_name("synth")
RECORD = Path("results/xtree/ring4/pull.json")
BOUND = RECORD.with_name("bound.json")


def run(
    *words: object, cwd: Path, code: int = 0, new_guards: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`synth words…` in ``cwd``; must end with ``code`` and without a traceback (records may hold one). Guards of runs
    are forked too, unless ``new_guards`` asks for interpreters."""
    where = {**os.environ, **environment}
    if not forked_command.can_fork(where):
        return cold(*words, cwd=cwd, code=code, **environment)
    return _ended(forked_command.run([str(SYNTH), *map(str, words)], cwd, where, 300, new_guards), words, code)


def cold(*words: object, cwd: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in a new interpreter."""
    command, where = [SYNTH, *map(str, words)], {**os.environ, **environment}
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=300, env=where)
    return _ended(done, words, code)


def _ended(
    done: subprocess.CompletedProcess[str], words: tuple[object, ...], code: int
) -> subprocess.CompletedProcess[str]:
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + ("" if "--json" in words else done.stdout), done.stderr
    return done


def flat(text: str) -> str:
    """One line of text: where a table or a narrow terminal folds it does not matter."""
    return " ".join(text.split())


def write_ring(folder: Path, name: str = "ring4", nodes: int = 4, **other: Any) -> Path:
    """An instance of xtree on a ring, `<name>.json`."""
    data = {"format": "synth-instance/1", "family": "xtree", "name": name, "source": "test", "chunks": 1}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(data | {"network": {"kind": "ring", "nodes": nodes}} | other))
    return path


def alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
