"""How long this process has spent compiling hot loops: a first run's cost, which no time limit of a run counts."""

from __future__ import annotations

seconds = 0.0
"""Seconds so far; :mod:`synth.kernels` adds to it."""
