"""Machines with failed parts, and what every schedule for one must be, by the slow replay."""

from __future__ import annotations

from typing import Any

from models.mlfm.slow_replay import replay, routes

from synth.instance import parse
from synth.method import load
from synth.records.record import Record
from synth_models.mlfm import FAMILY
from synth_models.mlfm.instance import MLFMInstance


def damaged(d: int, n: int, columns: int, m: int, links: Any = (), spines: Any = (), **changes: Any) -> MLFMInstance:
    raw = {
        "family": "mlfm", "name": "x", "source": "a test", "d": d, "routes": "detour",
        "block": {"layers": n, "columns": columns, "servers": m},
        "failed": {
            "links": [{"leaf": [i, j], "spine": sorted((j, c))} for i, j, c in links],
            "spines": [sorted(pair) for pair in spines],
        },
    } | changes  # fmt: skip
    made = parse(raw, MLFMInstance, "x.json")
    assert isinstance(made, MLFMInstance)
    return made


def cut_off(instance: MLFMInstance) -> bool:
    leaves = sorted({tuple(server)[:2] for server in instance.servers.tolist()})
    return any(not routes(instance, one, other) for one in leaves for other in leaves)


def holds_by_the_slow_replay(instance: MLFMInstance, record: Record) -> bool:
    """Assert that the record says infeasible exactly where leaves are cut off, and that else nobody meets, everything
    arrives over working parts, and the phases are no fewer than the bound; whether there is a schedule."""
    assert (record["termination"] == "infeasible") == cut_off(instance)
    if cut_off(instance):
        return False
    assert record.ok, record["verified"]["faults"]
    fine, loads = replay(instance, load(FAMILY.unpack)(instance, record.packed or {}))
    assert fine
    assert max(loads) <= 1
    assert record.value == len(loads)
    assert record.bound is not None
    assert record.bound <= record.value
    return True
