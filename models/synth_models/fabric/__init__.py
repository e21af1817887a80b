"""Any machine: collectives on heterogeneous networks of ranks and switches."""

from synth_models.fabric.family import FAMILY

__all__ = ["FAMILY"]
