"""Every method of every family on an instance too large for it: it ends with its limit, with the best it has.

Measured is processor time of the method alone, without what was compiled meanwhile: the limit itself is the contract.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import synth
from synth import compiling
from synth.family import Method, get_family
from synth.instance import Instance
from synth.options import RunOptions

LIMIT_S, OVER_S = 2.0, 1.0
H100 = {"machine": "dgx-h100", "boxes": 16, "bytes": "1GiB"}
PHOTONIC = {
    "ports": 4, "message_bytes": 4194304, "port_bandwidth": 100e9, "alpha": 500e-9, "delta": 500e-9,
    "reconfiguration_delay": 1e-5,
}  # fmt: skip
LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "machine-allgather": ("fabric", {**H100, "collective": "allgather"}),
    "machine-allreduce": ("fabric", {**H100, "collective": "allreduce"}),
    "machine-alltoall": ("fabric", {**H100, "collective": "alltoall"}),
    "machine-256": ("fabric", {**H100, "boxes": 32, "collective": "allgather"}),
    "torus": ("fabric", {"network": "torus", "rows": 10, "cols": 10, "collective": "allgather", "bytes": "100MB"}),
    "mesh": ("xtree", {"network": "mesh", "rows": 12, "cols": 12, "chunks": 4, "collective": "allreduce"}),
    "kautz": ("xtree", {"network": "kautz", "nodes": 24, "degree": 2, "chunks": 4}),
    "fragment": ("mlfm", {"name": "d18-n18l19m18"}),
    "pairs": ("mlfm", {"name": "d4-pairs-60-failed"}),
    "ring": ("optree", {"nodes": 700, "wavelengths": 16}),
    "narrow": ("optree", {"nodes": 48, "wavelengths": 3}),
    "grid": ("optree", {"sides": "24x24", "wavelengths": 16}),
    "trees": ("bine", {"groups": "17,33,62,41,59,88", "ranks_per_node": 4, "costs": "0,1,4", "rounds": 13}),
    "any": ("bine", {"groups": "40,56,64,96,33,77", "collective": "allreduce", "vector": "large"}),
    "butterfly": (
        "bine",
        {"groups": "16,16,32", "collective": "allreduce", "problem": "butterfly", "vector": "large"},
    ),
    "bruck": ("harvest", {"algorithm": "bruck_alltoall", "gpus": 256, **PHOTONIC}),
    "tori": ("harvest", {"algorithm": "swing_torus", "torus": "8x8", "gpus": 64, **PHOTONIC}),
}
HOLDS = {
    "fabric": ("forest", "flow", "epochs", "continuous", "pull"), "xtree": ("pull", "ilp", "cpsat"),
    "optree": ("relay",), "harvest": ("candidates", "column_generation"), "mlfm": ("cpsat", "ilp", "greedy"),
    "bine": ("tree_ilp", "placement", "placement_greedy"),
}  # fmt: skip  # methods that must hold a solution wherever the family has any
CASES = [
    pytest.param(where, name, id=f"{where}-{name}", marks=pytest.mark.slow)
    for where, (family, _) in LARGE.items()
    for name in get_family(family).methods
]
QUICK = [("machine-allgather", "forest"), ("machine-allgather", "epochs"), ("pairs", "bound"), ("kautz", "cpsat")]


def large(where: str) -> Instance:
    """The instance, made or shipped."""
    family, keys = LARGE[where]
    if family == "mlfm":
        return synth.read(f"instances/mlfm/{keys['name']}.json")
    return synth.make(family, **keys)


class Clock:
    """Processor time of the method's function, less what was spent on compiling."""

    seconds = 0.0

    def around(self, function: Callable[[Instance, RunOptions], Any]) -> Callable[[Instance, RunOptions], Any]:
        """The function, measured."""

        def measured(instance: Instance, options: RunOptions) -> Any:
            began, compiled = time.process_time(), compiling.seconds
            try:
                return function(instance, options)
            finally:
                self.seconds = time.process_time() - began - (compiling.seconds - compiled)

        return measured


def run_to_the_limit(where: str, name: str, limit_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run, and what must hold of it."""
    clock, load = Clock(), Method.load
    monkeypatch.setattr(Method, "load", lambda method: clock.around(load(method)))
    instance = large(where)
    record = synth.solve(instance, name, time_limit=limit_s)
    assert record.ok, record["verified"]["faults"]
    assert clock.seconds <= limit_s + OVER_S
    if record["termination"] == "time_limit":
        assert record["stopped_by"] == "clock"
    can = record["termination"] not in ("unsupported", "size_limit", "infeasible")
    had_the_processor = clock.seconds > limit_s / 2  # a run that other work kept waiting may hold nothing yet
    if can and had_the_processor and name in HOLDS[instance.family]:
        assert record.value is not None, record["message"]
    if can and had_the_processor and record["kind"] == "bound" and name == "bound":
        assert record.bound is not None, record["message"]


@pytest.mark.parametrize(("where", "name"), CASES)
def test_every_method_ends_with_its_limit(where: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds, and at most one more."""
    run_to_the_limit(where, name, LIMIT_S, monkeypatch)


@pytest.mark.parametrize(("where", "name"), QUICK)
def test_some_end_with_a_shorter_one(where: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, for every day."""
    run_to_the_limit(where, name, 1.0, monkeypatch)
