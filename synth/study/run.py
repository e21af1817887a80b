"""A study from Python: run it as ``synth study`` does, and hand back what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from synth.options import given_limit, given_megabytes
from synth.study.definition import PreparedStudy, Study, load

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.records.record import Record
    from synth.study.collect import Collected


def study(
    target: str | Path | Study,
    results: str | Path | None = None,
    jobs: int | None = None,
    *,
    time_limit: str | float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_mb: str | float | None = None,
    resume: bool = False,
    on_start: Callable[[Run], None] | None = None,
    on_end: Callable[[Run, Record, bool], None] | None = None,
) -> Collected:
    """Run a study as ``synth study`` does, every run in a process of its own, and write its table, figures and page.

    ``target`` is a family (its shipped instances, below the current folder), a TOML file or a :class:`Study`;
    ``results`` the folder of the studies' folders (default ``results/studies``); ``jobs`` the runs at once (default:
    processors / threads). ``time_limit`` (``"20s"``), ``seed`` and ``threads`` stand in place of the study's own;
    ``memory_mb`` limits each run (``"4G"``, or megabytes); with ``resume`` runs whose good record is there are not run
    again. ``on_start(run)`` and ``on_end(run, record, reused)`` are called as a run starts and ends.

    The result has the ``table`` (a :class:`synth.Frame`, a row per run), its ``summary()``, the ``folder`` and the
    ``report`` page. Raises
    :class:`InputError` listing every fault before anything runs; what happens during a run is in its row.
    """
    chosen = target if isinstance(target, Study) else load(target)
    given_limit(time_limit)
    limit = f"{time_limit}s" if isinstance(time_limit, (int, float)) else time_limit
    chosen, memory = chosen.with_options(limit, seed, threads), given_megabytes(memory_mb)
    prepared = chosen.prepare(Path(results or "results/studies") / chosen.name)
    run_study(prepared, jobs, resume, memory_mb=memory, on_start=on_start, on_end=on_end)
    from synth.study.collect import collect

    return collect(prepared)


def run_study(
    one: PreparedStudy,
    jobs: int | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    *,
    memory_mb: float | None = None,
    on_start: Callable[[Run], None] | None = None,
    on_end: Callable[[Run, Record, bool], None] | None = None,
) -> list[tuple[Run, Record]]:
    """Run what the study has to run; its records in the order of the runs. See :func:`study`."""
    from synth.execution.pool import run_all, slots

    threads = max((run.options.threads for run in one.runs), default=1)
    ended = {}
    for run, record, reused in run_all(
        one.runs, slots(jobs, threads), resume, retry_failed, on_start, memory_mb=memory_mb
    ):
        if on_end:
            on_end(run, record, reused)
        ended[run.path] = record
    return [(run, ended[run.path]) for run in one.runs if run.path in ended]
