"""What no time limit counts, a first run's cost: compiling kernels, kernels in plain Python instead, importing solvers.

:mod:`synth.kernels` keeps the account, options of runs read it. One run at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

seconds = 0.0
"""Spent compiling so far, or in plain Python instead: a first run's cost, which no time limit of a run counts."""
paused_s = 0.0
"""For which this process was suspended past a time limit, as a batch system does; no limit counts it either."""
plain_s = 0.0
"""Processor time kernels have taken so far as plain Python."""
plain_since: float | None = None
"""Processor time of this thread at which the kernel now running as plain Python began."""
used = False
"""Whether a compiled kernel has run since this was last set to False."""
_depth, _began = 0, 0.0
_plain_thread = threading.main_thread().ident  # kernels run as plain Python in no other


def not_counted() -> float:
    """All seconds so far that no time limit counts, those of a plain call under way among them: a kernel's clock and
    the limit agree on whether it was over when the kernel ended."""
    return seconds + paused_s + plain_now()


def plain_now() -> float:
    """Processor seconds of the kernel now running as plain Python in this thread."""
    since = plain_since
    return 0.0 if since is None or threading.get_ident() != _plain_thread else max(0.0, time.thread_time() - since)


def begin() -> None:
    """A compilation starts, perhaps within another."""
    global _depth, _began
    if _depth == 0:
        _began = time.monotonic()
    _depth += 1


def end() -> None:
    """The compilation that started last has ended."""
    global _depth, seconds
    _depth -= 1
    if _depth == 0:
        seconds += time.monotonic() - _began


def going_on() -> bool:
    """Whether this process is compiling or importing a solver."""
    return _depth > 0


@contextmanager
def uncounted() -> Iterator[None]:
    """Count what happens here as compilation: for imports that take long."""
    begin()
    try:
        yield
    finally:
        end()
