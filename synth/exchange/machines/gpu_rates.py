"""What NCCL and RCCL reckon that one link between GPUs carries, one direction; they are not the data sheets' numbers.

NVLink by the GPU's sm (NCCL src/graph/topo.h @5067397c), XGMI by its gcn (RCCL src/graph/topo.h @0cbce2a7, where every
GPU but gfx90a and gfx94 counts as a Vega; here only those do that are ones).
"""

from __future__ import annotations

from synth.text.amounts import scaled_rate

NVLINK_GBPS = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (80, 20.0), (70, 20.0), (60, 18.0))  # from this sm on
XGMI_GBPS = (("gfx90a", 36.0), ("gfx94", 48.0), ("gfx906", 24.0), ("gfx908", 24.0))  # by the beginning of gcn
_OLD_GCN = {"906": "gfx906", "908": "gfx908", "910": "gfx90a", "940": "gfx940", "941": "gfx941", "942": "gfx942"}


def nvlink_rate(sm: int | None) -> float | None:
    """Bytes/s of one NVLink of a GPU, one direction; None for one that NCCL's table does not have."""
    gbps = next((rate for least, rate in NVLINK_GBPS if sm is not None and sm >= least), None)
    return None if gbps is None else scaled_rate(gbps, 10**9)


def gcn_name(gcn: str) -> str:
    """The architecture's name: ``gfx942`` for ``gfx942:sramecc+:xnack-`` and for the old ``942``."""
    name = gcn.partition(":")[0].strip().lower()
    return _OLD_GCN.get(name, name)


def xgmi_rate(gcn: str) -> float | None:
    """Bytes/s of one XGMI link of a GPU, one direction; None for an architecture that the table does not have."""
    gbps = next((rate for name, rate in XGMI_GBPS if gcn_name(gcn).startswith(name)), None)
    return None if gbps is None else scaled_rate(gbps, 10**9)
