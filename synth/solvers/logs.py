"""Solvers' logs: the rows of their tables of incumbents and bounds, for a run's progress."""

from __future__ import annotations

from collections.abc import Callable

from synth.clock.progress import Progress

LogRow = tuple[float, float | None, float | None]
"""Seconds since the solver began, incumbent and bound of the model."""


def note_log(
    progress: Progress,
    reader: Callable[[str], LogRow | None],
    log: str,
    offset: float,
    factor: float = 1.0,
    value: float | None = None,
    bound: float | None = None,
) -> None:
    """Add the rows of a solver's log, each line read by ``reader``; ``offset`` is the second of the run at which the
    solver began, ``factor`` turns the model's objective into the instance's. ``value`` and ``bound`` are the model's in
    the end, unrounded: no row claims more, which a log's few digits would (98.30007 for a bound of 98.300069)."""
    for seconds, incumbent, proven in filter(None, map(reader, log.splitlines())):
        if incumbent is not None and value is not None:
            incumbent = max(incumbent, value)
        if proven is not None and bound is not None:
            proven = min(proven, bound)
        known, least = (None if number is None else number * factor for number in (incumbent, proven))
        progress.note(known, least, offset + seconds)


def number(text: str) -> float | None:
    """What stands in a log's column, or None where that is no number."""
    try:
        return float(text)
    except ValueError:
        return None
