"""Slurm's commands as shell lines: what `synth batch` makes of an answer, where no Slurm is."""

from __future__ import annotations

import os
from pathlib import Path


def fake_slurm(folder: Path, squeue: str, sacct: str = "exit 1", scontrol: str = "exit 1") -> str:
    """A folder for PATH in which `squeue`, `sacct` and `scontrol` are these shell lines."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, line in (("squeue", squeue), ("sacct", sacct), ("scontrol", scontrol)):
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def says(folder: Path, name: str, text: str) -> str:
    """The shell line that prints this text."""
    (folder / name).write_text(text)
    return f"cat {folder / name}"
