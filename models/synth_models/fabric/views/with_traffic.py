"""Blocks with holders and wanters on the machine of another instance."""

from __future__ import annotations

import json
from collections.abc import Sequence

from synth.errors import Fault, InputError
from synth.instance import parse
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.traffic import TRAFFIC

DROPPED = ("root", "demand", "ready", "scenarios", "collectives", "objective")


def with_traffic(
    instance: FabricInstance, name: str, source: str, rows: Sequence[tuple[int, Sequence[int], Sequence[int]]]
) -> FabricInstance:
    """The machine with these blocks: rows of bytes, holders, wanters, which are the process group. Raises
    :class:`InputError`, for ranks that are not there before all else."""
    ranks = sorted({rank for _, holders, wanters in rows for rank in (*holders, *wanters)})
    known = set(instance.members)
    missing = [rank for rank in ranks if rank not in known]
    if missing:
        raise InputError([Fault("ranks", f"rank {rank} is none of the machine's {len(known)}") for rank in missing])
    data = {key: value for key, value in json.loads(instance.to_json()).items() if key not in DROPPED}
    blocks = [{"bytes": size, "holders": list(holders), "wanters": list(wanters)} for size, holders, wanters in rows]
    own = {"name": name, "source": source, "collective": TRAFFIC, "ranks": ranks, "traffic": blocks}
    return parse(data | own | {"bytes": sum(size for size, _, _ in rows)}, FabricInstance, source)
