"""Step: computations and collectives in order, and what the least time of all of them is."""

from synth_models.step.family import FAMILY

__all__ = ["FAMILY"]
