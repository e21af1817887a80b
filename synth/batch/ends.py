"""How a job ended that left runs without a record: one kind, and the words of whoever knows it.

Asked in this order: Slurm's state of the job, the states of its steps, what the task wrote last, and the lines Slurm
left in the job's log since the task began. The log alone knows some ends: without the kernel's limits, Slurm itself
kills what holds too much memory and books the job as FAILED, its step as CANCELLED.
"""

from __future__ import annotations

import re
from pathlib import Path

from synth.batch.queue import JobState

KINDS = {
    "OUT_OF_MEMORY": "out_of_memory",
    "PREEMPTED": "preempted",
    "TIMEOUT": "job_time_limit",
    "DEADLINE": "job_time_limit",
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "CANCELLED": "cancelled",
}
LOST = "lost"  # the kind of an end nobody has a word for
TOO_OFTEN = "timed-out too many times"  # submitit's words
# what slurmstepd and srun write, the surer first; an aborted job has lines of several kinds
_LINES = (
    ("out_of_memory", re.compile(r"exceeded (job )?memory limit", re.IGNORECASE)),
    ("out_of_memory", _BY_KERNEL := re.compile(r"oom[-_ ]kill|out[- ]of[- ]memory", re.IGNORECASE)),
    ("preempted", re.compile(r"DUE TO PREEMPTION")),
    ("job_time_limit", re.compile(r"DUE TO TIME LIMIT")),
    ("node_failure", re.compile(r"DUE TO NODE FAILURE|node fail", re.IGNORECASE)),
)
_BY_SLURM = re.compile(r"^(slurmstepd|slurmd|srun)\b[^:]*: ")
READ_MOST = 100_000  # bytes of a log, from its end


def judge(state: JobState | None, finish: str | None, log: str) -> tuple[str, str]:
    """The kind, and the evidence where it is not the job's own state. ``finish`` is what the task wrote last, ``log``
    the part of the job's log that is the task's. A task that had a last word was not killed by the kernel, which then
    has killed one of its runs, and that has a record."""
    own = state.state if state else ""
    if own in KINDS and KINDS[own] != "cancelled":
        return KINDS[own], ""
    if state and "OUT_OF_MEMORY" in state.steps and finish is None:
        return "out_of_memory", "a step of it as OUT_OF_MEMORY"
    if finish and TOO_OFTEN in finish:
        return "job_time_limit", ""
    said = [line.strip() for line in log.splitlines() if _BY_SLURM.match(line)]
    for kind, pattern in _LINES:
        if pattern is _BY_KERNEL and finish is not None:
            continue
        found = next((line for line in said if pattern.search(line)), None)
        if found is not None:
            return kind, _BY_SLURM.sub("", found).removeprefix("error: ").strip("* ")
    return KINDS.get(own, LOST), ""


def log_of(folder: Path, job: str, start: int = 0) -> str:
    """What is in a job's error log (submitit's) from this byte on, or its last part; empty where there is none."""
    text = ""
    for path in sorted((folder / "slurm").glob(f"{job}_*_log.err")):
        try:
            with path.open("rb") as stream:
                stream.seek(max(start, path.stat().st_size - READ_MOST))
                text += stream.read(READ_MOST).decode(errors="replace")
        except OSError:
            continue
    return text


def log_size(folder: Path, job: str) -> int:
    """How much is in it now: what comes later is of the attempt that begins."""
    return sum(path.stat().st_size for path in (folder / "slurm").glob(f"{job}_*_log.err"))
