"""What Slurm says of jobs: squeue for those it still knows, sacct for those that ended, scontrol for the one we are in.

Traps handled here: ids of jobs that ended long ago make ``squeue`` fail, so it is asked for everything of the batch's
owner (another user may ask); ``sacct`` may be there without accounting, lags by seconds, and calls a job RUNNING for
ever whose end it never heard of; a job whose step met the memory limit may have FAILED itself, so its steps are read
too.
"""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PENDING = frozenset(
    ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "SUSPENDED", "RESV_DEL_HOLD")
) | {"STOPPED"}
RUNNING = frozenset(("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"))
STUCK = ("held", "Held", "Never", "BadConstraints", "InvalidQOS", "InvalidAccount", "PartitionTimeLimit")


@dataclass(frozen=True)
class JobState:
    """A job's state in Slurm's word, why it waits (squeue's reason), and its steps' states (sacct's)."""

    state: str
    reason: str = ""
    steps: tuple[str, ...] = ()

    @property
    def stuck(self) -> bool:
        """Whether it waits for somebody to do something rather than for its turn."""
        return self.state in PENDING and any(word in self.reason for word in STUCK)


def states(jobs: Iterable[str], owner: str | None = None) -> dict[str, JobState] | None:
    """Slurm's state of each of these jobs that it still knows, from squeue and, for those that are over and where there
    is accounting, sacct. ``owner`` (default: this user) is whose jobs they are. None when squeue does not answer."""
    wanted = set(jobs)
    text = output("squeue", "-h", "-r", "-t", "all", "-u", owner or getpass.getuser(), "-o", "%i|%T|%r")
    if text is None:
        return None
    found: dict[str, JobState] = {}
    for line in text.splitlines():
        job, _, rest = line.strip().partition("|")
        state, _, reason = rest.partition("|")
        if job in wanted and state:
            found[job] = JobState(state.split()[0], "" if reason == "None" else reason)
    over = {job for job in wanted if job not in found or found[job].state not in PENDING | RUNNING}
    return {**found, **_accounts(over, found)}


def _accounts(jobs: set[str], known: dict[str, JobState]) -> dict[str, JobState]:
    """What accounting says of jobs that are over; nothing of those whose end it has not heard of."""
    if not jobs:
        return {}
    mains = sorted({job.partition("_")[0] for job in jobs})
    text = output("sacct", "-n", "-P", "-j", ",".join(mains), "-o", "JobID,State")
    own: dict[str, str] = {}
    steps: dict[str, list[str]] = {}
    for line in (text or "").splitlines():
        name, _, state = line.strip().partition("|")
        job, _, step = name.partition(".")
        if job in jobs and state:
            word = state.split()[0]  # of "CANCELLED by 0"
            if step:
                steps.setdefault(job, []).append(word)
            else:
                own[job] = word
    return {
        job: JobState(known[job].state if job in known else word, steps=tuple(steps.get(job, ())))
        for job, word in own.items()
        if word not in PENDING | RUNNING
    }


def is_giving_way(job: str) -> bool:
    """Whether this running job is in the grace period of a preemption: Slurm has told it to end, and says when."""
    text = output("scontrol", "show", "job", job) or ""
    facts = dict(re.findall(r"(\w+)=(\S+)", text))
    preempted, started = facts.get("PreemptTime", ""), facts.get("StartTime", "")
    # dates of one form, so that texts compare; the time may be that of an earlier start
    return facts.get("JobState") == "RUNNING" and preempted[:1].isdigit() and preempted >= started


def requeue(job: str) -> bool:
    """Have a job queued again; whether Slurm agreed."""
    return output("scontrol", "requeue", job) is not None


def owner(path: Path) -> str | None:
    """The user whose file this is; None where nobody knows."""
    try:
        return path.owner()
    except (OSError, KeyError, NotImplementedError):
        return None


def output(*command: str) -> str | None:
    """A command's output; None when it is not there, fails or does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
