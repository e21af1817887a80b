"""What no time limit counts, a first run's cost: compiling kernels, kernels in plain Python instead, importing solvers.

:mod:`synth.kernels` keeps the account, options of runs read it. One run at a time.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ACCOUNT = 16
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
_account: Any = None
_before = 0.0  # seconds when the account was opened
_plain_thread = threading.main_thread().ident  # kernels run as plain Python in no other


def not_counted() -> float:
    """All seconds so far that no time limit counts, those of a plain call under way among them: a kernel's clock and
    the limit agree on whether it was over when the kernel ended."""
    return seconds + paused_s + plain_now()


def counted_now() -> float:
    """The monotonic clock without what no time limit counts, in seconds: what ends a search by it makes as many tries
    in a first run as later."""
    return time.monotonic() - not_counted()


def plain_now() -> float:
    """Processor seconds of the kernel now running as plain Python in this thread."""
    since = plain_since
    return 0.0 if since is None or threading.get_ident() != _plain_thread else max(0.0, time.thread_time() - since)


def begin(ends: bool = True) -> None:
    """A compilation starts, perhaps within another. ``ends``: sure to, so that whoever waits for this process may wait
    for it too, while it goes on; of an import they learn when it has ended."""
    global _depth, _began
    if _depth == 0:
        _began = time.monotonic()
        if ends:
            _tell(1, _began)
    _depth += 1


def end() -> None:
    """The compilation that started last has ended."""
    global _depth
    _depth -= 1
    if _depth == 0:
        spend(time.monotonic() - _began)
        _tell(1, 0.0)


def spend(more: float) -> None:
    """Add these seconds to the account."""
    global seconds
    seconds += more
    _tell(0, seconds - _before)


def open_account(memory: Any) -> None:
    """Keep the account from now on in this memory too, :data:`ACCOUNT` bytes shared with a process that waits for this
    one: the seconds spent, and when the compilation under way began (0: there is none)."""
    global _account, _before
    _account, _before = memory, seconds


def spent_by(memory: Any) -> float:
    """Seconds that the process whose account this is has spent, with the compilation that now goes on."""
    known, began = struct.unpack("dd", memory[:ACCOUNT])
    return float(known + (time.monotonic() - began if began else 0.0))


def _tell(place: int, value: float) -> None:
    if _account is not None:
        struct.pack_into("d", _account, 8 * place, value)


def going_on() -> bool:
    """Whether this process is compiling or importing a solver."""
    return _depth > 0


@contextmanager
def uncounted() -> Iterator[None]:
    """Count what happens here as compilation: for imports that take long."""
    begin(ends=False)
    try:
        yield
    finally:
        end()
