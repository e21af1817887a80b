"""Step 3: the solution type, its stored form and its flat table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from synth.text.untrusted import whole_numbers
from toy_broadcast.instance import ToyInstance

Solution = Sequence[tuple[int, int, int]]  # (round from 1, sender, receiver)


def pack(solution: Solution) -> dict[str, Any]:
    """One row a send."""
    return {"sends": [list(send) for send in solution]}


def unpack(instance: ToyInstance, packed: Mapping[str, Any]) -> Solution:
    """The inverse of :func:`pack`. Raises ``ValueError`` on what is no solution."""
    rows = whole_numbers(packed, "sends", 0, shape=(None, 3)).tolist()
    return [(step, sender, receiver) for step, sender, receiver in rows]


def table(instance: ToyInstance, solution: Solution) -> pd.DataFrame:
    """Columns ``round,src,dst``."""
    return pd.DataFrame(list(solution), columns=["round", "src", "dst"])
