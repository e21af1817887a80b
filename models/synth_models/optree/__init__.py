"""OpTree: allgather on an optical ring, torus or mesh, by stages, wavelengths and time-expanded schedules."""

from synth_models.optree.family import FAMILY

__all__ = ["FAMILY"]
