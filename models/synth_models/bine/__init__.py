"""Bine trees: traffic of collectives on global links, measured on real allocations and minimised as a program."""

from synth_models.bine.family import FAMILY

__all__ = ["FAMILY"]
