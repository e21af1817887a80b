"""Export, import, replay: the same algorithm, the same moves, the whole collective, on every shipped machine."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from examples import some_of
from exchange.possession import Run, expected

import synth
from synth.exchange import chakra, executors, msccl_xml, mscclpp, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.lowering import Wish
from synth.exchange.record_export import FORMATS, algorithm_of, transfers_of, write_schedule
from synth.exchange.transfers import Transfers
from synth.schedule.collective import NAMES

MACHINES = Path(__file__).resolve().parents[2] / "models/synth_models/fabric/machines"
SHAPES: list[dict[str, Any]] = [
    {"network": "line", "nodes": 4}, {"network": "ring", "nodes": 5}, {"network": "mesh", "rows": 2, "cols": 3},
    {"network": "torus", "rows": 3, "cols": 3}, {"network": "hypercube", "dimension": 3},
    {"network": "kautz", "nodes": 12, "degree": 3}, {"network": "full", "nodes": 4}, {"network": "star", "nodes": 5},
    {"network": "fat_tree", "leaves": 2, "hosts": 2, "spines": 2},
    {"network": "dragonfly", "groups": 2, "routers": 2, "hosts": 2},
]  # fmt: skip
EVERYWHERE = [{"machine": file.stem} for file in sorted(MACHINES.glob("*.json"))] + SHAPES
SAMPLE = [({"machine": "dgx1"}, "allgather"), ({"machine": "ndv2"}, "allreduce"), ({"machine": "dgx2"}, "alltoall"),
          (SHAPES[2], "reduce_scatter"), (SHAPES[5], "broadcast"), (SHAPES[8], "reduce"), (SHAPES[7], "gather"),
          (SHAPES[9], "scatter"), ({"machine": "teccl-ndv2-2"}, "allgather")]  # fmt: skip
PIECES = 4000  # moves up to which the oracles in plain Python run


def test_there_is_a_machine() -> None:
    assert len(EVERYWHERE) > len(SHAPES) + 5


@pytest.mark.long
@pytest.mark.parametrize(("where", "collective"), some_of(SAMPLE))
def test_round_trip(where: dict[str, Any], collective: str, tmp_path: Path) -> None:
    round_trip(where, collective, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("collective", NAMES)
@pytest.mark.parametrize("where", EVERYWHERE, ids=lambda where: "-".join(map(str, where.values())))
def test_round_trip_everywhere(where: dict[str, Any], collective: str, tmp_path: Path) -> None:
    round_trip(where, collective, tmp_path)


def round_trip(where: dict[str, Any], collective: str, folder: Path) -> None:
    t = schedule(where, collective)
    for name in executors.EXECUTORS:
        if collective not in executors.executor(name).collectives:
            continue
        for in_place in (False, True):
            wish = Wish(in_place=in_place, fuse=in_place, instances=1 + in_place)
            if in_place and collective in executors.executor(name).never_in_place:
                with pytest.raises(synth.errors.InputError, match="in place: it refuses"):
                    algorithm_of(t, name, wish)
                continue
            try:
                algorithm, notes = algorithm_of(t, name, wish)
            except synth.errors.InputError:
                wish = Wish(in_place=in_place, chunks=6)
                algorithm, notes = algorithm_of(t, name, wish)
            file = folder / f"{name}-{in_place}.xml"
            msccl_xml.write(algorithm, file, name)
            read = msccl_xml.read(file)
            assert read.modes == (in_place,)
            assert executors.faults(name, read.algorithm, read.written) == []
            same(read.algorithm, algorithm)
            assert validity.check(read.algorithm).ok
            if len(t.piece) <= PIECES and not any("rounded" in note for note in notes):
                run = Run(read.algorithm, Random(0))
                run.run()
                assert expected(t, algorithm.chunks) <= run.messages <= expected(t, algorithm.chunks, needed=False)


def schedule(where: dict[str, Any], collective: str) -> Transfers:
    """A fast method's schedule of a few pieces."""
    ranks = len(synth.make("fabric", collective="broadcast", bytes="1KiB", **where).members)
    instance = synth.make("fabric", collective=collective, bytes=str(12 * 1024 * ranks), **where)
    direct = collective in ("alltoall", "gather", "scatter")
    for method in ("direct", "ring", "pull") if direct else ("ring", "pull", "direct"):
        record = synth.solve(instance, method, time_limit=20)
        if record.value is not None:
            return transfers_of(record)
    pytest.fail(f"no method knows {collective} on {where}")


def same(one: Algorithm, other: Algorithm) -> None:
    """Nothing is lost on the way through a file."""
    for field in fields(Algorithm):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name not in ("line", "name", "most_bytes"):
            assert np.array_equal(a, b), field.name


@pytest.mark.long(after=4)
@pytest.mark.parametrize("collective", NAMES)
def test_plans_and_traces_hold_the_same_moves(collective: str, tmp_path: Path) -> None:
    t = schedule({"network": "full", "nodes": 4}, collective)
    write_schedule(t, FORMATS["chakra"], tmp_path / "trace")
    assert chakra.faults(chakra.read(tmp_path / "trace")) == []
    for in_place in (False, True):
        file = tmp_path / "plan.json"
        write_schedule(t, FORMATS["mscclpp"], file, wish=Wish(in_place=in_place, chunks=6))
        assert mscclpp.faults(mscclpp.read(file), collective, t.root) == []
