"""Topology: which circuits serve an all-to-all best, given fixed links and circuit switches or a degree."""

from synth_models.topology.family import FAMILY

__all__ = ["FAMILY"]
