"""Folders of plans for tests: the toolkit's schedules of small machines, put in rounds."""

from __future__ import annotations

from pathlib import Path

import synth
from synth.errors import InputError
from synth.exchange.record_export import transfers_of
from synth.exchange.rounds import Entry, Table, in_rounds, joined, write, write_table
from synth.schedule.collective import NAMES, ROOTED

MACHINES = {
    "ring-4": {"network": "ring", "nodes": 4, "bandwidth": "25GB/s", "latency": "0.7us"},
    "ring-3": {"network": "ring", "nodes": 3, "bandwidth": "25GB/s", "latency": "0.7us"},
    "full-4": {"network": "full", "nodes": 4, "bandwidth": "25GB/s", "latency": "0.7us"},
    "mesh-2x2": {"network": "mesh", "rows": 2, "cols": 2, "bandwidth": "25GB/s", "latency": "0.7us"},
    "ring-6": {"network": "ring", "nodes": 6, "bandwidth": "25GB/s", "latency": "0.7us"},
    "line-5": {"network": "line", "nodes": 5, "bandwidth": "25GB/s", "latency": "0.7us"},
}
METHODS = ("ring", "pull", "binomial", "direct", "forest")
ROOT = 1


def folder_of(machine: str, folder: Path, collectives: tuple[str, ...] = NAMES) -> Path:
    """A folder with a plan a collective, for all sizes, of the first method that makes one."""
    entries = []
    for collective in collectives:
        keys = dict(MACHINES[machine]) | ({"root": ROOT} if collective in ROOTED else {})
        instance = synth.make("fabric", collective=collective, bytes="96KiB", **keys)
        rounds, method = next(_found(instance))
        path = folder / f"{collective}.rounds.json"
        write(rounds, path)
        entries.append(Entry(collective, rounds.ranks, 0, 2**40, path.name, method))
    write_table(Table(folder, machine, tuple(entries)))
    return folder


def _found(instance):
    for method in METHODS:
        try:
            record = synth.solve(instance, method)
            if record.value is not None:
                yield joined(in_rounds(transfers_of(record))), method
        except InputError:
            continue
