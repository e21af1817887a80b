"""A bound beside the optimum of brute force: what every test of a bound on random machines asserts."""

from __future__ import annotations

import random
from fractions import Fraction

from models.fabric.brute_force import TooLarge, least_seconds

from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below


def least_above(instance: FabricInstance, found: Proven, chooser: random.Random) -> Fraction | None:
    """Assert that the certificate holds for the bound and for none a little higher, and that no schedule is faster, of
    whole blocks or of pieces of a byte; the least seconds, None where the search is too large."""
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    assert check_bound(instance, float(found.seconds) * (1 + 1e-4), found.certificate()) != []
    pieces = [[1] * int(n) if chooser.random() < 0.6 else [int(n)] for n in instance.blocks.bytes]
    try:
        least = least_seconds(instance, pieces, most_states=3000)
    except TooLarge:
        return None
    assert found.seconds <= least, (instance.collective, float(found.seconds), float(least))
    return least
