"""Solvers that run out of time on any machine: each call gets so little that none can end by itself.

The run around them has all the time it wants, so how busy the machine is changes nothing but what a solver finds.
"""

from __future__ import annotations

from typing import Any

import pytest

from synth.options import RunOptions
from synth.solvers import cpsat


def hurry_cpsat(patch: pytest.MonkeyPatch, seconds: float = 0.001) -> None:
    """From now on CP-SAT has so long for a model, whatever is left of the run."""
    whole = cpsat.solve

    def hurried(model: Any, options: RunOptions, **named: Any) -> Any:
        return whole(model, options.part(most_s=seconds), **named)

    patch.setattr(cpsat, "solve", hurried)
