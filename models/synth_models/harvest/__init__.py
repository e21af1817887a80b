"""Reconfiguration schedules for a photonic fabric (Harvest)."""
