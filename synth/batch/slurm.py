"""Slurm: submission through submitit (what its queue says: :mod:`synth.batch.queue`).

Traps handled here: arrays longer than ``MaxArraySize`` are rejected, so they are split; limits are whole minutes;
``srun`` does not take over ``--cpus-per-task`` from Slurm 22.05 on, so it is told; submitit's four files for each task
go into one folder and are deleted once the task's runs are done.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from synth.batch.plan import Batch, Resources, Task
from synth.batch.queue import output
from synth.batch.task import ChunkTask
from synth.errors import InputError

if TYPE_CHECKING:
    from submitit import SlurmExecutor

SIGNAL_S = 30  # before a job's time limit, when submitit has it queued again
REQUEUES = 3  # how often a job that met its time limit is queued again
DEFAULT_MAX_ARRAY = 1001  # Slurm's own


def max_array_size() -> int:
    """The most tasks an array may have on this cluster (Slurm's default where it cannot be asked)."""
    text = output("scontrol", "show", "config")
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", text or "", re.MULTILINE)
    return max(1, int(found[1])) if found else DEFAULT_MAX_ARRAY


def _executor(batch: Batch, tasks: Sequence[Task], resources: Resources, dry: bool = False) -> SlurmExecutor:
    try:
        from submitit import SlurmExecutor
    except ImportError:
        raise InputError("the engine slurm needs submitit: pip install 'collective-synth[cluster]'") from None

    class Anywhere(SlurmExecutor):
        """Also where Slurm is not installed: a dry run submits nothing."""

        @classmethod
        def affinity(cls) -> int:
            return 1

    if not dry and (shutil.which("sbatch") is None or shutil.which("srun") is None):
        raise InputError("no sbatch and srun here: submit from a login node, or use --engine local")
    kind = Anywhere if dry else SlurmExecutor
    executor = kind(folder=batch.folder.resolve() / "slurm", max_num_timeout=REQUEUES)
    words: dict[str, Any] = {
        "job_name": f"synth-{batch.folder.name}",
        "time": tasks[0].time_min,
        "cpus_per_task": tasks[0].cpus,
        "signal_delay_s": SIGNAL_S,
        "srun_args": [f"--cpus-per-task={tasks[0].cpus}"],
        "array_parallelism": resources.array_parallelism or len(tasks),
        "additional_parameters": {"requeue": True, "chdir": batch.directory},
    }
    if resources.mem_mb is not None:
        words["additional_parameters"]["mem"] = f"{int(resources.mem_mb)}M"
    for name in ("partition", "account"):
        if getattr(resources, name) is not None:
            words[name] = getattr(resources, name)
    executor.update_parameters(**words)
    return executor


def submit(batch: Batch, tasks: Sequence[Task], resources: Resources) -> dict[str, str]:
    """Submit one array (or one job); the job id of each task by its name. Raises :class:`InputError` as sbatch says."""
    executor = _executor(batch, tasks, resources)
    folder = str(batch.folder.resolve())
    said = io.StringIO()  # submitit passes on what sbatch writes to standard error
    try:
        with contextlib.redirect_stderr(said), executor.batch():
            jobs = [executor.submit(ChunkTask(folder, task.name)) for task in tasks]
    except Exception as error:
        raise InputError(_reason(f"{error}\n{said.getvalue()}") or type(error).__name__) from None
    return {task.name: job.job_id for task, job in zip(tasks, jobs, strict=True)}


def script(batch: Batch, tasks: Sequence[Task], resources: Resources) -> str:
    """The script that :func:`submit` would hand to sbatch."""
    executor = _executor(batch, tasks, resources, dry=True)
    if len(tasks) > 1:
        executor.parameters["map_count"] = len(tasks)
    return executor._make_submission_file_text(executor._submitit_command_str, "dry-run")


def prune(batch: Batch, task: Task) -> None:
    """Delete submitit's files of a task whose runs are all done."""
    if task.job is not None:
        for path in (batch.folder / "slurm").glob(f"{task.job}_*"):
            path.unlink(missing_ok=True)


def _reason(text: str) -> str:
    """sbatch's own complaint among what submitit says, or the last line there is."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if line.startswith("sbatch: error")]
    return (found or lines or [""])[-1]
