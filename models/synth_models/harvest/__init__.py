"""Reconfiguration schedules for a photonic fabric (Harvest)."""

from synth_models.harvest.family import HarvestFamily

FAMILY = HarvestFamily()

__all__ = ["FAMILY", "HarvestFamily"]
