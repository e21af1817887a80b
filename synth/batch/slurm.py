"""Slurm: submission through submitit (what its queue says: :mod:`synth.batch.queue`).

Traps handled here: arrays longer than ``MaxArraySize`` are rejected, so they are split; limits are whole minutes;
``srun`` does not take over ``--cpus-per-task`` from Slurm 22.05 on, so it is told; submitit's four files for each task
go into one folder and are deleted once the task's runs are done.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
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


def _directives(batch: Batch, tasks: Sequence[Task], resources: Resources) -> dict[str, Any]:
    """What submitit is told of an array (or one job): its parameters, those that are None left out."""
    more: dict[str, Any] = {"requeue": True, "chdir": batch.directory}
    if resources.mem_mb is not None:
        more["mem"] = f"{int(resources.mem_mb)}M"
    words: dict[str, Any] = {
        "job_name": f"synth-{batch.folder.name}",
        "time": tasks[0].time_min,
        "cpus_per_task": tasks[0].cpus,
        "signal_delay_s": SIGNAL_S,
        "srun_args": [f"--cpus-per-task={tasks[0].cpus}"],
        "array_parallelism": resources.array_parallelism or len(tasks),
        "additional_parameters": more,
    }
    return words | {name: value for name in ("partition", "account") if (value := getattr(resources, name)) is not None}


def _executor(batch: Batch, tasks: Sequence[Task], resources: Resources) -> SlurmExecutor:
    try:
        from submitit import SlurmExecutor
    except ImportError:
        raise InputError("the engine slurm needs submitit: pip install 'collective-synth[cluster]'") from None
    if shutil.which("sbatch") is None or shutil.which("srun") is None:
        raise InputError("no sbatch and srun here: submit from a login node, or use --engine local")
    executor = SlurmExecutor(folder=_logs(batch), max_num_timeout=REQUEUES)
    executor.update_parameters(**_directives(batch, tasks, resources))
    return executor


def _logs(batch: Batch) -> Path:
    return batch.folder.resolve() / "slurm"


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
    """The script that :func:`submit` hands to sbatch, as submitit writes it; neither submitit nor Slurm is needed."""
    words, logs = _directives(batch, tasks, resources), _logs(batch)
    count, job = len(tasks), "%A_%a" if len(tasks) > 1 else "%j"
    asked: dict[str, Any] = {
        **{key: words[key] for key in ("job_name", "time", "cpus_per_task", "partition", "account") if key in words},
        "nodes": 1,
        "wckey": "submitit",
        "signal": f"USR2@{SIGNAL_S}",
        "output": f"{logs}/{job}_0_log.out",
        "error": f"{logs}/{job}_0_log.err",
        "open-mode": "append",
        **({"array": f"0-{count - 1}%{min(count, words['array_parallelism'])}"} if count > 1 else {}),
        **words["additional_parameters"],
    }
    lines = [f"#SBATCH --{key.replace('_', '-')}{_value(asked[key])}" for key in sorted(asked)]
    files = ["--output", f"{logs}/{job}_%t_log.out", "--error", f"{logs}/{job}_%t_log.err"]
    srun = shlex.join(["srun", "--unbuffered", *files, *words["srun_args"]])
    python = f"{shlex.quote(sys.executable)} -u -m submitit.core._submit {shlex.quote(str(logs))}"
    head = ["#!/bin/bash", "", "# Parameters", *lines]
    return "\n".join([*head, "", "# command", "export SUBMITIT_EXECUTOR=slurm", f"{srun} {python}", ""])


def _value(value: object) -> str:
    return "" if value is True else f"={shlex.quote(str(value))}"


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
