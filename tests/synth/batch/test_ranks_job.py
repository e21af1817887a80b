"""`synth batch run`: one schedule as a Slurm job; sbatch is a script of ours that keeps what it is given."""

from __future__ import annotations

import os
from pathlib import Path

from command import run
from exchange.by_hand import ring_allgather

from synth.exchange import transfers_csv


def with_sbatch(folder: Path, text: str) -> str:
    (folder / "bin").mkdir()
    sbatch = folder / "bin/sbatch"
    sbatch.write_text(f"#!/bin/sh\n{text}\n")
    sbatch.chmod(0o755)
    return f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"


def test_a_task_a_rank_and_the_options_behind_the_dashes(tmp_path: Path) -> None:
    transfers_csv.write(ring_allgather(5), tmp_path / "a ring.csv")
    words = ["batch", "run", "a ring.csv", "--partition", "p", "--nodes", 2]
    behind = ["--", "--collective", "allgather", "--bytes", "1MiB"]
    looked = run(*words, "--dry-run", *behind, cwd=tmp_path).stdout
    path = with_sbatch(tmp_path, "cat > job.sh; echo Submitted batch job 7")
    assert "Submitted batch job 7" in run(*words, *behind, cwd=tmp_path, PATH=path).stdout
    script = (tmp_path / "job.sh").read_text()
    assert script.split() == looked.split()
    assert {"#SBATCH --ntasks=5", "#SBATCH --nodes=2", "#SBATCH --partition=p"} <= set(script.splitlines())
    asked = f"synth run '{tmp_path / 'a ring.csv'}' --with mpi --collective allgather --bytes 1MiB"
    assert script.splitlines()[-1].startswith("srun --kill-on-bad-exit=1 ")
    assert script.splitlines()[-1].endswith(asked)


def test_what_sbatch_refuses_is_one_line(tmp_path: Path) -> None:
    transfers_csv.write(ring_allgather(3), tmp_path / "ring.csv")
    words = ["batch", "run", "ring.csv", "--", "--collective", "allgather"]
    path = with_sbatch(tmp_path, "echo 'sbatch: error: invalid partition' >&2; exit 1")
    assert run(*words, cwd=tmp_path, code=2, PATH=path).stderr == "synth: sbatch: error: invalid partition\n"
    error = run("batch", "run", "ring.csv", cwd=tmp_path, code=2).stderr
    assert "a table does not say of which collective it is" in error
