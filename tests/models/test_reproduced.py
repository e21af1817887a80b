"""A run that the clock did not end is reproduced by its seed, whatever its limit; one that it ended says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import synth
from synth.family import get_family
from synth.options import RunOptions
from synth.records.record import Record

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "ring": ("optree", {"nodes": 10, "wavelengths": 2}),
    "torus": ("optree", {"sides": "3x4", "wavelengths": 2}),
    "mesh": ("xtree", {"network": "mesh", "rows": 2, "cols": 3, "chunks": 1}),
    "sums": ("xtree", {"network": "mesh", "rows": 2, "cols": 2, "chunks": 2, "collective": "allreduce"}),
    "box": ("fabric", {"machine": "dgx1", "collective": "allgather", "bytes": "8KiB"}),
    "pairs": ("fabric", {"network": "ring", "nodes": 5, "collective": "alltoall", "bytes": "5KiB"}),
    "groups": ("bine", {"groups": "2,3,3", "collective": "broadcast"}),
    "butterfly": ("bine", {"groups": "3,3,2", "collective": "allgather", "problem": "butterfly"}),
}
CASES = [
    pytest.param(where, name, id=f"{where}-{name}", marks=pytest.mark.slow)
    for where, (family, _) in SMALL.items()
    for name in get_family(family).methods
]


def run(where: str, name: str, limit: float | None) -> Record:
    """One run with the first seed."""
    family, keys = SMALL[where]
    return synth.solve(synth.make(family, **keys), name, time_limit=limit)


def arrays(packed: Any) -> list[Any]:
    """Everything in a packed solution, flat."""
    if isinstance(packed, dict):
        return [item for key in sorted(packed) for item in (key, *arrays(packed[key]))]
    return [np.asarray(packed).tolist()]


def assert_alike(first: Record, second: Record) -> None:
    """The same solution, value and bound, unless the clock ended one of the two."""
    if "clock" in (first["stopped_by"], second["stopped_by"]):
        return
    assert (first.value, first.bound, first["termination"]) == (second.value, second.bound, second["termination"])
    assert arrays(dict(first.packed or {})) == arrays(dict(second.packed or {}))


@pytest.mark.parametrize(("where", "name"), CASES)
def test_the_limit_changes_nothing_in_what_ends_before_it(where: str, name: str) -> None:
    """Half a minute, and half as much again."""
    assert_alike(run(where, name, 30.0), run(where, name, 45.0))


@pytest.mark.parametrize(("nodes", "wavelengths"), [(39, 16), (39, 4), (25, 6), (64, 8)])
def test_relay_counts_work_and_not_seconds(nodes: int, wavelengths: int) -> None:
    """Nothing that relay does on a ring depends on the limit, but that it is reached; then the record says so."""
    instance = synth.make("optree", nodes=nodes, wavelengths=wavelengths)
    free = synth.solve(instance, "relay", time_limit=None)
    assert free["stopped_by"] is None
    limited = synth.solve(instance, "relay", time_limit=60.0)
    assert limited["stopped_by"] is None
    assert_alike(free, limited)
    hurried = synth.solve(instance, "relay", time_limit=1e-6)
    assert hurried["stopped_by"] == "clock" or hurried.value == free.value


def test_a_whole_number_program_that_the_clock_ends_is_told() -> None:
    """scipy hands over a point at its limit too: the run counts as cut."""
    from scipy.optimize import LinearConstraint

    from synth.solvers.whole_point import whole_point

    generator = np.random.default_rng(0)
    columns, options = 120, RunOptions(1000.0)
    weights = generator.integers(1000, 9999, (3, columns)).astype(float)
    rows = [LinearConstraint(weights, weights.sum(axis=1) / 2 - 0.5, weights.sum(axis=1) / 2 + 0.5)]
    whole_point(generator.random(columns), 1.0, rows, options, seconds=0.2)
    assert options.clock.cut
