"""A Slurm job that runs one schedule with a task a rank: what ``synth batch run`` submits."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synth.errors import InputError


@dataclass(frozen=True)
class RanksJob:
    """``file`` and the ``words`` behind it as ``synth run`` takes them, ``ranks`` tasks, and what the job asks for;
    None for the cluster's default."""

    file: Path
    words: Sequence[str]
    ranks: int
    partition: str | None = None
    account: str | None = None
    nodes: int | None = None

    def script(self) -> str:
        """The job's script. A rank that ends badly ends the job."""
        asked = {
            "job-name": f"synth-run-{self.file.stem}",
            "ntasks": self.ranks,
            "nodes": self.nodes,
            "partition": self.partition,
            "account": self.account,
        }
        lines = [f"#SBATCH --{name}={shlex.quote(str(value))}" for name, value in asked.items() if value is not None]
        command = [str(Path(sys.executable).with_name("synth")), "run", str(self.file), "--with", "mpi", *self.words]
        return "\n".join(["#!/bin/sh", *lines, f"srun --kill-on-bad-exit=1 {shlex.join(command)}", ""])

    def submit(self) -> str:
        """Hand the script to sbatch; what it says. Raises :class:`InputError` as sbatch does, and without one."""
        if shutil.which("sbatch") is None:
            raise InputError("no sbatch here: submit from a login node, or look with --dry-run")
        done = subprocess.run(["sbatch"], input=self.script(), text=True, capture_output=True, check=False)
        if done.returncode:
            raise InputError((done.stderr.strip() or f"sbatch ended with exit code {done.returncode}").splitlines()[-1])
        return done.stdout.strip()
