"""``synth batch run``: one schedule as a Slurm job, a task a rank."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import typer

from synth.cli.common import checked
from synth.cli.output import console


def run(
    context: typer.Context,
    path: Path = typer.Argument(..., metavar="FILE", help="As `synth run` takes it; its options behind it."),
    ranks: int = typer.Option(None, "--ranks", min=1, help="Tasks of the job. Default: the schedule's ranks."),
    nodes: int = typer.Option(None, "--nodes", min=1, help="Nodes. Default: as Slurm has it."),
    partition: str = typer.Option(None, help="Slurm partition."),
    account: str = typer.Option(None, help="Slurm account."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the script; submit nothing."),
) -> None:
    """Submit `srun synth run FILE --with mpi` as a Slurm job with a task a rank. What stands behind `--` goes to
    `synth run`: `-- --bytes 1GiB`. Times and memory are sbatch's own (SBATCH_TIMELIMIT, SBATCH_MEM_PER_NODE)."""
    from synth.batch.ranks_job import RanksJob
    from synth.ranks.source import Sizes, Stated, read

    words = list(context.args)
    if ranks is None:
        given = dict(pairwise(words))
        root = checked("--root", int, given["--root"]) if "--root" in given else None
        ranks = read(path, Stated(given.get("--collective"), root), Sizes()).program.ranks
    job = RanksJob(path.resolve(), words, ranks, partition, account, nodes=nodes)
    console.lines(job.script() if dry_run else job.submit())
