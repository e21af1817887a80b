"""Step 4: a lower bound, with the certificate that the check verifies."""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from toy_broadcast.instance import ToyInstance


def solve(instance: ToyInstance, options: RunOptions) -> Outcome:
    """``ceil(log2 nodes)``: the informed nodes at most double in a round."""
    doublings = (instance.nodes - 1).bit_length()
    proof = "informed nodes at most double in a round"
    return Outcome("finished", bound=float(doublings), bound_proof=proof, certificate={"doublings": doublings})
