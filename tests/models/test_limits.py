"""Every method of every family on an instance too large for it: it ends with its limit, with the best it has.

The clock is the run's own: wall time without compilation and without what the main thread waited for a processor that
other work had (``/proc/self/schedstat``), which the limit does not count here either. On an idle machine both are wall
time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.clock import start_up_costs
from synth.family import get_family
from synth.instance import Instance
from synth.method import Method
from synth.options import RunOptions

LIMIT_S, OVER_S = 2.0, 1.0
EVERY_DAY_OVER_S = 30.0  # other work on the machine never takes that long from a run of a second
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
    "wide-butterfly": (
        "bine",
        {"groups": ",".join(["256"] * 16), "collective": "allreduce", "problem": "butterfly", "vector": "large"},
    ),
    "bruck": ("harvest", {"algorithm": "bruck_alltoall", "gpus": 256, **PHOTONIC}),
    "tori": ("harvest", {"algorithm": "swing_torus", "torus": "8x8", "gpus": 64, **PHOTONIC}),
}
NOTHING_BEFORE_THE_END = {
    ("fabric", "direct"): "a published algorithm hands over its own schedules alone; the first needs every route",
    ("fabric", "bruck"): "as direct",
    ("fabric", "tacos"): "as direct; one run of its greedy matching",
    ("mlfm", "min_congestion"): "it asks about one number of phases; CP-SAT's first point is the first answer",
    ("harvest", "static_kautz"): "one topology, whose value is that of linear programs for every step",
}
CASES = [
    pytest.param(where, name, id=f"{where}-{name}", marks=pytest.mark.slow)
    for where, (family, _) in LARGE.items()
    for name in get_family(family).methods
]
QUICK = [
    ("machine-allgather", "forest"),
    ("machine-allgather", "epochs"),
    ("pairs", "bound"),
    ("kautz", "cpsat"),
    ("narrow", "rwa"),
    ("torus", "steps"),
    ("wide-butterfly", "swing"),
]


def large(where: str) -> Instance:
    """The instance, made or shipped."""
    family, keys = LARGE[where]
    if family == "mlfm":
        return synth.read(f"instances/mlfm/{keys['name']}.json")
    return synth.make(family, **keys)


def waited_s() -> float:
    """Seconds for which the main thread has waited for a processor, its virtual machine's included; 0 where the system
    does not say."""
    try:
        *_, stolen, _, _ = Path("/proc/stat").read_text().splitlines()[0].split()
        queued = int(Path("/proc/self/schedstat").read_text().split()[1]) * 1e-9
        return queued + int(stolen) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


class Clock:
    """Seconds that the method's function took by the clock of the run."""

    seconds = 0.0

    def around(self, function: Callable[[Instance, RunOptions], Any]) -> Callable[[Instance, RunOptions], Any]:
        """The function, measured."""

        def measured(instance: Instance, options: RunOptions) -> Any:
            began = time.monotonic() - start_up_costs.not_counted()
            try:
                return function(instance, options)
            finally:
                self.seconds = time.monotonic() - start_up_costs.not_counted() - began

        return measured


def run_to_the_limit(where: str, name: str, limit_s: float, over_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run, and what must hold of it."""
    clock, load, not_counted = Clock(), Method.load, start_up_costs.not_counted
    monkeypatch.setattr(Method, "load", lambda method: clock.around(load(method)))
    monkeypatch.setattr(start_up_costs, "not_counted", lambda: not_counted() + waited_s())
    instance = large(where)
    record = synth.solve(instance, name, time_limit=limit_s)
    assert record.ok, record["verified"]["faults"]
    assert clock.seconds <= limit_s + over_s
    if record["termination"] == "time_limit":
        assert record["stopped_by"] == "clock"
    if record["termination"] in ("unsupported", "size_limit"):
        return
    assert record["termination"] in ("finished", "optimal", "time_limit"), record["message"]
    stopped = record["termination"] == "time_limit"
    if not (stopped and (instance.family, name) in NOTHING_BEFORE_THE_END):
        assert (record.bound if record["kind"] == "bound" else record.value) is not None, record["message"]


@pytest.mark.parametrize(("where", "name"), CASES)
def test_every_method_ends_with_its_limit(where: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds, and at most one more."""
    run_to_the_limit(where, name, LIMIT_S, OVER_S, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize(("where", "name"), QUICK)
def test_some_end_with_a_shorter_one(where: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, for every day and a busy machine."""
    run_to_the_limit(where, name, 1.0, EVERY_DAY_OVER_S, monkeypatch)
