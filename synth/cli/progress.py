"""Progress of many runs on standard error: how many run, are done and have failed, and the time left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from synth.cli.output import errors

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.record import Record


class Progress:
    """A bar on a terminal when there are several runs, nothing otherwise. Use as a context manager."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        from rich import progress as rich

        self._running: list[Run] = []
        self._failed = 0
        words, left = rich.TextColumn("{task.description}"), rich.TextColumn("left")
        times = rich.TimeElapsedColumn(), left, rich.TimeRemainingColumn()
        off = quiet or total < 2 or not sys.stderr.isatty()
        columns = words, rich.BarColumn(), rich.MofNCompleteColumn(), *times
        self._bar = rich.Progress(*columns, console=errors, transient=True, disable=off)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, run: Run) -> None:
        """A run starts."""
        self._running.append(run)
        self._show()

    def done(self, run: Run, record: Record) -> None:
        """A run has ended or was done before."""

        self._running = [other for other in self._running if other is not run]
        self._failed += record.fruitless
        self._bar.advance(self._task)
        self._show()

    def _show(self) -> None:
        words = f"{len(self._running)} running"
        if self._running:
            words += f" ({self._running[0].instance.name} {self._running[0].method.name}"
            words += ", …)" if len(self._running) > 1 else ")"
        self._bar.update(self._task, description=words + (f", {self._failed} failed" if self._failed else ""))
