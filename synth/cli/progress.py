"""Progress of many runs on standard error: how many run, are done and have failed, and the time left."""

from __future__ import annotations

import sys
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from synth.cli.output import errors
from synth.text.quantities import shown
from synth.text.visible import visible

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.records.record import Record


LOG = "runs.log"
MANY = 40  # runs, from which on not each has a line
COUNTS = 20  # counters that are printed in all then
LAST = 10  # runs whose lines are printed at the end then


class Progress:
    """A bar on a terminal when there are several runs; elsewhere, or with ``lines``, a line per finished run on
    standard error. From :data:`MANY` runs on a counter stands in their place, and the last lines follow at the end; all
    lines are in ``runs.log`` in the folder ``log``, if one is given. Use as a context manager."""

    def __init__(self, total: int, quiet: bool = False, lines: bool = False, log: Path | None = None) -> None:
        from rich import progress as rich

        self._running: list[Run] = []
        self._failed = self._done = 0
        self._total, self._lines = total, lines or not sys.stderr.isatty()
        self._log = None if log is None or total < MANY else log / LOG
        self._last: deque[str] = deque(maxlen=LAST)
        words, left = rich.TextColumn("{task.description}", markup=False), rich.TextColumn("left")
        times = rich.TimeElapsedColumn(), left, rich.TimeRemainingColumn()
        off = quiet or total < 2 or not sys.stderr.isatty()
        columns = words, rich.BarColumn(), rich.MofNCompleteColumn(), *times
        self._bar = rich.Progress(
            *columns, console=errors, transient=True, disable=off, redirect_stdout=sys.stdout.isatty()
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._last:
            for line in self._last:
                errors.print(line)
            if self._log is not None:
                errors.print(f"a line for every run: {self._log}")

    def start(self, run: Run) -> None:
        """A run starts."""
        self._running.append(run)
        self._show()

    def done(self, run: Run, record: Record, reused: bool = False) -> None:
        """A run has ended, or (``reused``) was done before."""
        self._done += 1
        self._failed += record.fruitless
        if self._lines and not reused:
            self._tell(self._line(run, record))
        self._running = [other for other in self._running if other is not run]
        self._bar.advance(self._task)
        self._show()

    def _tell(self, line: str) -> None:
        """Print a run's line; of many runs only a counter now and then, the lines into the log."""
        if self._total < MANY:
            errors.print(line)
            return
        self._last.append(line)
        if self._log is not None:
            try:
                self._log.parent.mkdir(parents=True, exist_ok=True)
                with self._log.open("a", encoding="utf-8") as stream:
                    stream.write(visible(line) + "\n")
            except OSError:  # a full disk: what matters is whether records can be written
                self._log = None
        if self._done * COUNTS // self._total != (self._done - 1) * COUNTS // self._total:
            failed = f", {self._failed} failed" if self._failed else ""
            errors.print(f"{datetime.now():%H:%M:%S} {self._done}/{self._total} runs done{failed}")

    def _line(self, run: Run, record: Record) -> str:
        """Time, done of all, instance, method, value and bound, how it ended, seconds."""
        from synth.family import get_family

        unit = get_family(run.instance.family).objective.unit
        state = record.words_of_end if record.ok else "CHECK FAILED"
        state += f" ({record['message']})" if state == "unsupported" and record["message"] else ""
        proof = "" if record.bound is None else f" ({record.proof})"
        found = f"value {shown(record.value, unit)}, bound {shown(record.bound, unit)}{proof}"
        place = f"{datetime.now():%H:%M:%S} {self._done}/{self._total} {run.instance.name} {record.label}"
        return f"{place}: {found}, {state}, {shown(record.run_s, 's')}"

    def _show(self) -> None:
        words = f"{len(self._running)} running"
        if self._running:
            words += f" ({self._running[0].instance.name} {self._running[0].method.name}"
            words += ", …)" if len(self._running) > 1 else ")"
        words += f", {self._failed} failed" if self._failed else ""
        self._bar.update(self._task, description=visible(words))
