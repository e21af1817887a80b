"""The end of a run for a person and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from synth.ranks.outcome import Outcome
from synth.ranks.source import Task
from synth.text.quantities import NOTHING, shown

BACKENDS = ("processes", "mpi")


@dataclass(frozen=True)
class Report:
    """What was run, ``by`` what, how it ended, and what was wrong, a line a ``fault``."""

    task: Task
    by: str
    outcome: Outcome
    faults: list[str]

    @property
    def correct(self) -> bool:
        """Whether all ranks ended with what the collective promises."""
        return not self.faults and bool(self.outcome.seconds)

    def as_json(self) -> dict[str, Any]:
        """Plain values; times in seconds."""
        program, seconds = self.task.program, self.outcome.seconds
        return {
            "name": program.name, "collective": program.collective, "ranks": program.ranks, "by": self.by,
            "correct": self.correct, "transfers": program.transfers, "bytes_moved": program.bytes_moved,
            "bytes": self.task.size, "bytes_of_schedule": self.task.whole, "seconds": seconds,
            "median_s": median(seconds) if seconds else None, "model_s": self.task.model_s,
            "library_s": self.outcome.library_s, "faults": self.faults,
        }  # fmt: skip

    def row(self) -> dict[str, str]:
        """The row of the closing table: names of columns and what they hold."""
        program = self.task.program
        row = {
            "schedule": program.name,
            "collective": program.collective,
            "ranks": str(program.ranks),
            "by": self.by,
            "correct": "yes" if self.correct else "NO",
            "transfers": f"{program.transfers:,}",
            "moved": shown(program.bytes_moved, "bytes"),
            "time": _spread(self.outcome.seconds),
        }
        if self.outcome.library_s:
            row["MPI's own"] = _spread(self.outcome.library_s)
        return row | {"model": self.task.model or NOTHING}

    def note(self) -> str | None:
        """How the sizes differ from the schedule's, in words."""
        task = self.task
        if task.size == task.whole:
            return None
        ratio = task.whole / task.size
        return (
            f"pieces scaled down {ratio:,.4g} times, {shown(task.whole, 'bytes')} to {shown(task.size, 'bytes')} "
            f"(--bytes); the model's time is for the whole size"
        )


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return NOTHING
    middle = shown(median(seconds), "s")
    return middle if len(seconds) == 1 else f"{middle} ({shown(min(seconds), 's')} to {shown(max(seconds), 's')})"
