"""Method ``symmetric`` with ``quotient=on``: boxes and tori near their cuts, checked both ways, never N^2 arrays."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from examples import some_of
from models.fabric.small_machines import machine

import synth
from synth.options import RunOptions
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.symmetric import method as symmetric
from synth_models.fabric.solution import Quotient

EVERYONE = ("allgather", "reduce_scatter", "allreduce")
BOXES = {"machine": "dgx-h100", "boxes": 4}


def made(**keys: Any) -> FabricInstance:
    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def solved(instance: FabricInstance, quotient: bool | None = True) -> Any:
    options = RunOptions(time_limit_s=30.0, method={"quotient": quotient})
    return symmetric.solve(instance, options.started_now())


def replayed(instance: FabricInstance) -> float:
    """The time of a quotient that is right on the quotient and transfer by transfer."""
    found = solved(instance)
    assert isinstance(found.solution, Quotient)
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.facts["replayed_by"] == "quotient and transfers"
    assert verdict.value is not None
    if found.bound is not None:
        assert check_bound(instance, found.bound, found.certificate) == []
        assert found.bound <= verdict.value
    return verdict.value


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", some_of(EVERYONE))
@pytest.mark.parametrize(
    "keys",
    [
        {"machine": "dgx-h100", "boxes": 3},
        {"machine": "dgx-b200", "boxes": 5},
        {"machine": "dgx-h100"},
        {"network": "star", "nodes": 5},
        {"network": "ring", "nodes": 6},
        {"network": "torus", "rows": 3, "cols": 4},
        {"network": "torus", "rows": 2, "cols": 4, "layers": 3},
        {"network": "hypercube", "dimension": 3},
        {"machine": "dgx-h100", "boxes": 3, "ranks": "0-3,8-11,16-19"},
        {"machine": "dgx-h100", "boxes": 3, "ranks": "17,18,1,9,0,10,8,2,16"},
        {"machine": "dgx-h100", "boxes": 3, "ranks": "9,1,17"},
        {"network": "star", "nodes": 4, "ranks": "2,0,3,1"},
        {"network": "ring", "nodes": 5, "ranks": "3,1,0,4,2"},
        {"network": "torus", "rows": 2, "cols": 3, "layers": 3, "ranks": "13,2-12,0,1,17,16,14,15"},
    ],
)
def test_every_quotient_is_replayed(collective: str, keys: dict[str, Any]) -> None:
    """Of latency and of bytes, in even chunks and with a last one that is smaller."""
    for each in (16, 3 * 5 * 7 * 11 * 16 + 1):
        ranks = len(made(**keys, bytes=2**20).members)
        replayed(made(**keys, collective=collective, bytes=each * ranks))


@pytest.mark.long
@pytest.mark.parametrize(("collective", "least"), [("allgather", 1), ("reduce_scatter", 1), ("allreduce", 2)])
def test_sixteen_boxes_within_a_fiftieth(collective: str, least: int) -> None:
    """Every box takes in (or sends out) 120/128 of a GiB through eight ports of 50 GB/s; of an allreduce, twice."""
    value = replayed(made(machine="dgx-h100", boxes=16, collective=collective, bytes=2**30))
    assert value <= least * 1.02 * 2**30 * 120 / 128 / 400e9


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", EVERYONE)
def test_a_torus_as_good_as_with_all_transfers(collective: str) -> None:
    instance = made(network="torus", rows=4, cols=4, layers=4, bandwidth=50e9, collective=collective, bytes=2**28)
    listed = check_schedule(instance, solved(instance, False).solution).value
    assert listed is not None
    assert replayed(instance) <= 1.02 * listed


def test_on_by_itself_where_there_are_boxes() -> None:
    assert isinstance(solved(made(**BOXES, bytes=2**20), None).solution, Quotient)
    assert not isinstance(solved(made(network="ring", nodes=5, bytes=2**20), None).solution, Quotient)


@pytest.mark.parametrize(
    "lines", ["node 5", "link 0/gpu1 2/nic1 1/2", "link 0/gpu0 0/nvswitch", "link 1/nic0 -> rail0 11/12"]
)
def test_a_machine_that_has_lost_its_symmetry_is_refused(lines: str, tmp_path: Path) -> None:
    failed = tmp_path / "failed.txt"
    failed.write_text(lines.replace("0/gpu1 2/nic1", "0/gpu1 0/nic1") + "\n")
    record = synth.solve(made(**BOXES, bytes=2**20, failed=str(failed)), "symmetric")
    assert record["termination"] == "unsupported"
    assert "symmetry is broken" in record["message"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"machine": "dgx-h100", "boxes": 4, "leaf": 2, "rails": False}, "symmetry is broken"),
        ({"network": "mesh", "rows": 3, "cols": 3}, "symmetry is broken"),
        ({**BOXES, "collective": "alltoall"}, "no algorithm for alltoall"),
        ({**BOXES, "switching": "store_and_forward"}, "switches that cut through"),
        ({**BOXES, "collective": "broadcast"}, "no algorithm for broadcast"),
        ({**BOXES, "collective": "allreduce", "bytes": 2**20 + 1}, "not 32 equal shares"),
    ],
)
def test_one_refusal_in_words(keys: dict[str, Any], words: str) -> None:
    record = synth.solve(made(**{"bytes": 2**20} | keys), "symmetric", options={"quotient": True})
    assert record["termination"] == "unsupported"
    assert words in record["message"]


def test_a_link_for_several_ranks_is_refused() -> None:
    """Two switches of two ranks each, joined by one link: both ranks need it at once."""
    links = [(v, 4 + v % 2, 1.0) for v in range(4)] + [(4 + v % 2, v, 1.0) for v in range(4)]
    record = synth.solve(
        machine(6, [*links, (4, 5, 1.0), (5, 4, 1.0)], [4, 5], bytes=8), "symmetric", options={"quotient": True}
    )
    assert record["termination"] == "unsupported"
    assert "on the routes of several ranks at the same time" in record["message"]


@pytest.mark.long
@pytest.mark.parametrize("collective", EVERYONE)
def test_four_thousand_ranks_without_an_array_of_their_square(collective: str, tmp_path: Path) -> None:
    """Machine, schedule, bound, record, its check and its views, in less memory than 4,096^2 numbers of 4 bytes."""
    tracemalloc.start()
    try:
        instance = made(machine="dgx-h100", boxes=512, collective=collective, bytes=2**30)
        record = synth.solve(instance, "symmetric", results=tmp_path)
        assert record.path is not None
        assert synth.check(record.path, instance).ok
        assert tracemalloc.get_traced_memory()[1] < 4 * 4096**2
    finally:
        tracemalloc.stop()
    assert record["verified"]["facts"]["replayed_by"] == "quotient"
    value, bound = record["objective"]["value"], record["bound"]
    assert bound <= value <= 1.01 * bound
