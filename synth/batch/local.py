"""The engine ``local``: the tasks of a batch one after another on this machine, in the same folder layout."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import chdir

from synth.batch import task as tasks
from synth.batch.plan import Batch
from synth.execution.pool import slots
from synth.execution.runs import Run
from synth.records.record import Record


def run(
    batch: Batch,
    jobs: int | None,
    on_start: Callable[[Run], None] | None = None,
    on_end: Callable[[Run, Record], None] | None = None,
) -> None:
    """Do the batch's last submission here, ``jobs`` runs at a time (default: processors / threads).

    Raises ``WriteFailedError`` as :func:`synth.execution.pool.run_all`; an interruption ends the runs and loses none.
    """
    submission = batch.submissions[-1]
    tasks.Events(batch.folder, f"local-{submission.created:.0f}").add("begin", **tasks.identity())
    with chdir(os.getcwd()):  # a task goes to the batch's directory
        folder = batch.folder.resolve()
        for item in submission.tasks:
            threads = batch.entries[item.runs[0]].threads
            tasks.run_task(folder, item.name, slots(jobs, threads, item.cpus), on_start, on_end)
