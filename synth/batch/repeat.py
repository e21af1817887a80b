"""Sending runs again: what they had, and a word where they get no more of what they lacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synth.batch.plan import Batch, Submission
from synth.batch.status import RunStatus


@dataclass(frozen=True)
class Had:
    """The most that one of the jobs had; None where nobody knows."""

    mem_mb: float | None
    job_s: float | None


def had(runs: Sequence[RunStatus]) -> Had:
    """What the jobs of these runs had: the memory of those that ran out of it, if any did, and the time."""
    short = [run for run in runs if run.kind == "out_of_memory"] or runs
    return Had(
        max((run.mem_mb for run in short if run.mem_mb is not None), default=None),
        max((run.job_s for run in runs if run.job_s is not None), default=None),
    )


def the_same_again(before: Batch, batch: Batch, runs: Sequence[RunStatus], submission: Submission) -> Iterator[str]:
    """A line for each thing that some of the runs lacked and that ``submission`` gives them no more of. ``before`` is
    the batch with the time limits they had, ``batch`` that with those they get."""
    if short := [run for run in runs if run.kind == "out_of_memory" and _no_more_memory(run, submission)]:
        known = had(short).mem_mb
        yield _line(short, "out of memory" + (f" with {known:,.0f} MB for their job" if known else ""), "--mem")
    late = [run for run in runs if run.state == "failed" and run.kind == "time_limit"]
    if late := [run for run in late if _limit_s(batch, run) <= _limit_s(before, run)]:
        yield _line(late, "stopped by the time limit before they found a solution", "--time-limit")
    minutes = {index: task.time_min for task in submission.tasks for index in task.runs}
    if cut := [run for run in runs if run.kind == "job_time_limit" and minutes[run.index] * 60 <= (run.job_s or 0)]:
        yield _line(cut, "out of their job's time", "--time")


def _no_more_memory(run: RunStatus, submission: Submission) -> bool:
    """Whether the submission gives the run no more memory than its job had (without a limit: all of the machine's)."""
    memory = submission.resources.mem_mb
    if run.mem_mb is None:
        return submission.engine == "slurm"
    return memory is None or memory <= run.mem_mb


def _limit_s(batch: Batch, run: RunStatus) -> float:
    return batch.entries[run.index].limit_s or 0


def _line(runs: Sequence[RunStatus], what: str, option: str) -> str:
    number = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    tries = max(run.tries for run in runs)
    often = "once" if tries == 1 else f"{tries} times"
    return f"{number} ran {what} (sent {often} so far) and get no more now: {option} 2x gives twice as much"
