"""OpTree: allgather on an optical ring, by stages, wavelengths and time-expanded schedules."""

from synth_models.optree.family import OpTreeFamily

FAMILY = OpTreeFamily()

__all__ = ["FAMILY", "OpTreeFamily"]
