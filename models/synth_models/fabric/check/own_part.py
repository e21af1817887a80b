"""The argument ``own_part``: nothing that a rank contributes to a sum it wants is there before the rank is ready.

``rank``: a member that wants a sum, to which it contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.text import untrusted
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact


def own_part_bound(
    instance: FabricInstance, certificate: Mapping[str, Any], _: Callable[..., list[str]] | None = None
) -> Fraction:
    """When the rank is ready, seconds. Raises ``ValueError`` for one that wants no sum of its own."""
    rank = untrusted.whole(certificate, "rank", 0, instance.machine.nodes - 1)
    blocks = instance.blocks
    sums = blocks.goal[blocks.origin == EVERYONE]
    if rank not in instance.members or not np.any((sums == EVERYONE) | (sums == rank)) or len(instance.members) < 2:
        raise ValueError(f"rank {rank} wants no sum to which it contributes")
    return max((exact(seconds) for late, seconds in instance.ready or () if late == rank), default=Fraction(0))
