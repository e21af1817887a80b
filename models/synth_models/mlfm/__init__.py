"""MLFM: congestion-free all-to-all among any servers of a multi-layer full mesh, with or without failed parts."""

from synth_models.mlfm.family import FAMILY

__all__ = ["FAMILY"]
