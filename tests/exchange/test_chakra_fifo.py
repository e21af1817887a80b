"""Exported traces take the schedule's time where links serve first come, first served."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from examples import some, some_of
from exchange import fifo
from published import below, whole

import synth
from synth.exchange import chakra
from synth.exchange.forms import in_form
from synth.exchange.record_export import transfers_of
from synth.family import get_family

ROOT = Path(__file__).resolve().parents[2]
RATE, LATENCY = 50e9, 7e-7
SPEED = {"bandwidth": "25GB/s", "latency": "0.7us"}  # of the page `outside`
SHAPES = {
    "ring": {"network": "ring", "nodes": 8},
    "full mesh": {"network": "full", "nodes": 8},
    "torus": {"network": "torus", "rows": 4, "cols": 4},
}
QUICK = ("ring", "recursive_doubling", "direct", "bruck", "pull")
SLOW = ("pat", "double_tree", "bfb", "symmetric", "tacos", "forest", "flow", "two_level", "hierarchical", "spread_out",
        "plan", "fast", "two_step", "steiner", "epochs", "continuous", "steps")  # fmt: skip
ELSEWHERE = (
    "imported",
    "one_after_another",
    "together",
    "in_network",
    "nvls",
    "sharp",
    "slots",
    "late_rank",
    "composed",
    "class_trees",
)
# for files, several collectives, switches that copy or add, balanced fat trees and dragonflies, a rank that is late,
# what the library holds, blocks of several holders
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall")
CASES = [
    pytest.param(shape, collective, method, marks=[pytest.mark.slow] if method in SLOW else [])
    for shape in SHAPES for collective in COLLECTIVES for method in (*QUICK, *SLOW)
]  # fmt: skip


@pytest.mark.long(after=4)
@pytest.mark.parametrize(("shape", "collective", "method"), some_of(CASES))
def test_a_trace_takes_the_time_of_the_schedule(shape: str, collective: str, method: str, tmp_path: Path) -> None:
    """Within 0.1 %, in whatever order nodes are issued that can be at the same moment: what reaches a link before its
    turn waits for those that the schedule has first."""
    keys = {**SHAPES[shape], "bandwidth": RATE, "latency": LATENCY, "collective": collective, "bytes": 2**24}
    instance = synth.make("fabric", **keys)
    (tmp_path / "instance.json").write_text(instance.to_json())
    instance = synth.read(tmp_path / "instance.json")
    record = synth.solve(instance, method, time_limit=20)
    if record.value is None:
        pytest.skip(f"{method}: {record['message']}")
    found = transfers_of(record)
    chakra.write(found, tmp_path / "trace")
    assert chakra.faults(chakra.read(tmp_path / "trace")) == []
    for taken in fifo.finished(tmp_path / "trace", found.ranks, RATE, LATENCY, range(some(3))):
        assert taken == pytest.approx(record.value, rel=1e-3)
        assert in_form(record, "chakra-fifo").seconds == pytest.approx(taken, rel=1e-3)


def test_all_methods_are_tried_but_those_for_other_machines() -> None:
    """Every method of the family that makes schedules is in the lists above; those of the last have none here."""
    family = get_family("fabric")
    made = {name for name, method in family.methods.items() if method.kind != "bound"}
    assert made == {*QUICK, *SLOW, *ELSEWHERE}
    for method in ELSEWHERE:
        for shape in SHAPES.values() if method != "imported" else ():
            for collective in COLLECTIVES:
                keys = {**shape, "bandwidth": RATE, "latency": LATENCY, "collective": collective, "bytes": 2**20}
                record = synth.solve(synth.make("fabric", **keys), method, time_limit=20)
                assert record.value is None, (method, shape, collective)


def recorded() -> list[dict[str, str]]:
    """ASTRA-sim's times of traces on machines of direct links, as the page `outside` has published them."""
    with (ROOT / "results/published/outside/runs.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["simulator"] == "ASTRA-sim"]
    return [row for row in rows if row["machine"] in ("ring of 8", "full mesh of 8")]


@pytest.mark.parametrize("row", recorded(), ids=lambda row: f"{row['machine']}-{row['collective']}-{row['method']}")
def test_the_replay_agrees_with_the_simulator(row: dict[str, str], tmp_path: Path) -> None:
    """Of the schedule that ASTRA-sim ran: where it took its time (within 0.1 %; it counts whole ns), the replay
    takes ASTRA-sim's; where it took longer, for want of an order, today's trace takes no longer than the schedule."""
    name = f"{row['machine'].split()[0]}-8-{row['collective']}-16MiB"
    [record] = [whole(one) for one in below("outside") if (one["instance"], one["method"]) == (name, row["method"])]
    assert record.value == pytest.approx(float(row["ours, s"]), rel=1e-9)
    found = transfers_of(record)
    chakra.write(found, tmp_path / "trace")
    [taken] = fifo.finished(tmp_path / "trace", 8, 25e9, 7e-7, [0])
    theirs, ours = float(row["seconds"]), float(row["ours, s"])
    if abs(theirs / ours - 1) <= 1e-3:
        assert taken == pytest.approx(theirs, rel=1e-3)
    else:
        assert taken == pytest.approx(ours, rel=1e-3)
        assert taken < theirs
