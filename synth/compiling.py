"""What kernels have cost this process: :mod:`synth.kernels` keeps the account, options of runs read it."""

from __future__ import annotations

seconds = 0.0
"""Spent compiling so far, or in plain Python instead: a first run's cost, which no time limit of a run counts."""
plain_s = 0.0
"""Processor time kernels have taken so far as plain Python."""
used = False
"""Whether a compiled kernel has run since this was last set to False."""
