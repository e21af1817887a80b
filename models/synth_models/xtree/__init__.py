"""XTree: link allocation for allgather, reduce-scatter and allreduce on EquiMesh and any other network."""

from synth_models.xtree.family import FAMILY

__all__ = ["FAMILY"]
