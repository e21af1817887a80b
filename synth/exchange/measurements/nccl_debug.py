"""NCCL's debug output (``NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING``): the algorithm and protocol of a call.

Lines ``AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE …`` (NVIDIA/nccl @5067397c, src/enqueue.cc), in older
versions with numbers (plugins/tuner/example/nccl/tuner.h) and without the collective. The bytes are those that a rank
hands in (newer versions) or the larger of its two buffers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

FUNCTIONS = {
    "allreduce": "allreduce", "allgather": "allgather", "reducescatter": "reduce_scatter", "broadcast": "broadcast",
    "reduce": "reduce",
}  # fmt: skip
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")  # by NCCL's numbers
PROTOCOLS = ("LL", "LL128", "Simple")
_LINE = re.compile(r"(?:\b(\w{1,20}): )?\b(\d{1,18}) Bytes -> Algo (\w{1,20}) proto (\w{1,20})\b")


def choices(text: str, collective: str, size: Sequence[int], ranks: int) -> dict[int, tuple[str, str]]:
    """Algorithm and protocol by size in bytes, as nccl-tests count it, of a collective; the last line of a size counts.
    Empty where no line names one of the sizes."""
    found: dict[int, tuple[str, str]] = {}
    for match in _LINE.finditer(text):
        function, count, algorithm, protocol = match.groups()
        if function is None or FUNCTIONS.get(function.lower()) == collective:
            way = _word(algorithm, ALGORITHMS), _word(protocol, PROTOCOLS)
            if all(way):
                found[int(count)] = way
    factors = (1, ranks) if collective in ("allgather", "reduce_scatter") else (1,)
    named = [{count * factor: way for count, way in found.items() if count * factor in set(size)} for factor in factors]
    return max(named, key=len)


def _word(cell: str, names: Sequence[str]) -> str:
    """The name that a cell means, by number or word; empty where it means none."""
    if cell.isdigit():
        return names[int(cell)] if int(cell) < len(names) else ""
    plain = cell.lower().replace("_", "")
    return next((name for name in names if name.lower().replace("_", "") == plain), "")
