"""Whether two solutions are one, whatever their forms."""

from __future__ import annotations

import numpy as np

from synth_models.mlfm.solution import Phases


def same_transfers(one: Phases, other: Phases) -> bool:
    """Whether two solutions are the same, phase by phase."""
    if (one.phases, one.ranks) != (other.phases, other.ranks):
        return False
    pairs = zip(one.rows(), other.rows(), strict=True)
    return all(
        all(np.array_equal(getattr(a, key), getattr(b, key)) for key in ("dest", "spine", "middle", "second"))
        for a, b in pairs
    )
