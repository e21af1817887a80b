"""Reconfiguration schedules for a photonic fabric (Harvest)."""

from synth_models.harvest.family import FAMILY

__all__ = ["FAMILY"]
