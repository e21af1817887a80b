"""Every family and method is whole: docstring, loadable target, instances that it solves."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import pytest

import synth
from synth.family import family_names, get_family
from synth.instance import read

ROOT = Path(__file__).resolve().parents[2]
METHODS = [(family, method) for family in family_names() for method in get_family(family).methods]
NEEDS_A_FILE = {("fabric", "imported")}  # tests/models/fabric/test_imported.py
FAT_TREE = synth.make("fabric", network="fat_tree", leaves=2, hosts=2, spines=2, collective="alltoall", bytes=2**20)
LATE = synth.make(
    "fabric",
    network="star",
    nodes=5,
    bandwidth="1GB/s",
    latency="1us",
    collective="allreduce",
    bytes=4096,
    late="2:1ms",
)
BLOCKS = get_family("fabric").capability("with_traffic")(
    synth.make("fabric", machine="dgx-a100", boxes=2, collective="broadcast", bytes=1),
    "blocks", "test", [(4096, (0, 1), (8, 9)), (1024, (2,), (8, 10))],
)  # fmt: skip
HALVES = synth.make("topology", nodes=8, degree=4)
MADE = {  # no shipped instance is on a balanced fat tree or dragonfly, has late ranks, several holders or halves
    ("fabric", "slots"): [FAT_TREE], ("fabric", "late_rank"): [LATE], ("fabric", "class_trees"): [BLOCKS],
    ("topology", "complete_bipartite"): [HALVES],
}  # fmt: skip


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_method_is_loadable_and_documented(family, method):
    found = get_family(family).methods[method]
    function = found.load()
    assert inspect.getdoc(function)
    assert inspect.getdoc(inspect.getmodule(function))
    assert found.kind in ("program", "reference", "bound")
    assert (found.kind == "program") <= bool(found.needs)
    assert list(inspect.signature(function).parameters) == ["instance", "options"]


@cache
def shipped(family):
    """The family's instances, smallest first: by the links and ranks of a machine, which three words of a file may
    name, else by the file."""
    files = sorted((ROOT / "instances" / family).glob("*.json"), key=lambda file: (file.stat().st_size, file.name))
    return sorted(
        map(read, files), key=lambda one: one.machine.network.links * len(one.members) if family == "fabric" else 0
    )


@pytest.mark.long(after=13)
@pytest.mark.parametrize(("family", "method"), [one for one in METHODS if one not in NEEDS_A_FILE])
def test_method_solves_the_smallest_shipped_instance_it_is_for(family, method):
    """Smaller ones it must refuse as `unsupported`, saying why; its record holds something and passes the check."""
    for instance in MADE.get((family, method)) or shipped(family):
        record = synth.solve(instance, method, time_limit=20.0)
        if record["termination"] != "unsupported":
            break
        assert record["message"]
    assert record["termination"] in ("finished", "optimal"), record["message"]
    assert record.ok, record["verified"]["faults"]
    kind = get_family(family).methods[method].kind
    assert (record.bound if kind == "bound" else record.value) is not None
    again = synth.check(record, instance)
    assert again.ok, again.faults
    assert kind == "bound" or again.value == record.value


@pytest.mark.parametrize("family", family_names())
def test_family_ships_instances_that_name_their_source(family):
    files = sorted((ROOT / "instances" / family).glob("*.json"))
    assert files
    for file in files:
        instance = read(file)
        assert instance.family == family
        assert instance.name == file.stem
        assert instance.source


@pytest.mark.parametrize("family", family_names())
def test_default_methods_exist_and_hold_a_bound(family):
    found = get_family(family)
    assert set(found.default_methods) <= set(found.methods)
    assert any(found.methods[name].kind != "reference" for name in found.default_methods)
