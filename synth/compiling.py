"""What kernels have cost this process: :mod:`synth.kernels` keeps the account, options of runs read it."""

from __future__ import annotations

import math

PLAIN_SHARE = 0.1  # of a run's time limit: not more of it goes to plain Python where a compiler would be faster

seconds = 0.0
"""Spent compiling so far: a first run's cost, which no time limit of a run counts."""
used = False
"""Whether a compiled kernel has run since a run began."""
plain_s = 0.0
"""Processor time kernels have taken so far as plain Python."""
plain_until_s = math.inf
"""The same at which the run under way has used its share."""


def begin(time_limit_s: float | None) -> None:
    """A run begins."""
    global used, plain_until_s
    used = False
    plain_until_s = math.inf if time_limit_s is None else plain_s + PLAIN_SHARE * time_limit_s
