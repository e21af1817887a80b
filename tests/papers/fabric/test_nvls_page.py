"""What the page `nvls` promises of its tables, and that its published schedules have the values that it prints."""

from __future__ import annotations

import csv
import statistics
from itertools import product

import pandas as pd
import pytest
from published import PUBLISHED, below

from synth.records.optimality import gap
from synth.records.record import Record
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.nvls import ADD_RATES, MACHINES, MANY, MEASURED, MOST_KEPT, RINGS, SIZES, TODAY
from synth_papers.fabric.nvls_tables import on_many_ranks


def tables() -> dict[str, list[dict[str, str]]]:
    """The page's tables by their headings, cells as texts."""
    found: dict[str, list[dict[str, str]]] = {}
    for part in (PUBLISHED / "nvls.md").read_text().split("\n## ")[1:]:
        heading, _, rest = part.partition("\n")
        lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in rest.splitlines() if line.startswith("|")
        ]
        if lines:
            found[heading] = [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]
    return found


def percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


def test_gaps_are_what_was_asked() -> None:
    """1 GiB: 1 % on one and two boxes and fat trees, 3 % on 16 and 64 boxes; 15 % in the median of short messages, on
    every machine. All bounds are certified."""
    large = tables()["1 GiB: best schedule, bound and gap"]
    most = {"x1": 0.01, "x2": 0.01, "levels": 0.01, "x4": 0.03, "x16": 0.03, "x64": 0.03}
    assert {row["machine"].split()[-1] for row in large} == set(most)
    for row in large:
        assert row["certified"] == "yes"
        assert percent(row["gap"]) <= most[row["machine"].split()[-1]], row
    small = [
        percent(cell)
        for row in tables()["Gap of short messages, by size"]
        for name, cell in row.items()
        if name not in ("machine", "collective") and cell != "–"
    ]
    assert len(small) > 80
    assert statistics.median(small) <= 0.15
    machines = tables()["Gap of short messages, by machine"]
    assert {row["machine"] for row in machines} == set(MACHINES)
    assert all(percent(row["median"]) <= 0.15 for row in machines)


@pytest.mark.long
def test_published_schedules_are_those_of_the_table() -> None:
    """Each has a certified bound, none below it, and few transfers; no algorithm of today is quicker than the best."""
    values: dict[str, list[Record]] = {}
    bounds = {}
    for record in below("nvls"):
        instance = record.find_instance()
        assert isinstance(instance, FabricInstance)
        if record["method"] == "bound":
            bounds[instance.name] = record
            assert record.proof == "certified"
        else:
            values.setdefault(instance.name, []).append(record)
            assert (record["verified"]["facts"] or {})["transfers"] <= MOST_KEPT
    assert set(values) <= set(bounds)
    assert len(values) > 150
    for name, records in values.items():
        gaps = [gap(record.value, bounds[name].bound) for record in records]
        assert all(value is not None and value >= 0 for value in gaps), name
    beside = [row for heading, rows in tables().items() if heading.startswith("Allreduce as NCCL") for row in rows]
    told = [cell for row in beside for cell in row.values() if cell.endswith("×")]
    assert len(told) > 25
    assert all(float(cell.removesuffix("×")) >= 1 for cell in told)


def test_rings_and_trees_on_many_boxes_have_a_time_at_every_size_asked() -> None:
    """A time for every collective that one is run for, none below ours; and the page counts them."""
    with (PUBLISHED / "nvls" / "beside.csv").open() as file:
        rows = {(row["machine"], row["collective"], int(row["bytes"])): row for row in csv.DictReader(file)}
    many = {key: row for key, row in rows.items() if key[0].split()[-1] in MANY}
    machines = {name: MANY[name.split()[-1]] for name in MACHINES if name.split()[-1] in MANY}
    asked = {
        (*key, name)
        for machine, sizes in machines.items()
        for name in RINGS
        for key in product([machine], TODAY[name], sizes)
    }
    assert len(asked) >= 2 * 5 * 4
    times = {(*key, name): float(row[name]) for key, row in many.items() for name in RINGS if row[name]}
    assert set(times) == asked
    assert all(seconds >= float(many[key[:3]]["ours"]) for key, seconds in times.items())
    said = f"were run {len(times)} times; {len(times)} have a time."
    assert said in (PUBLISHED / "nvls.md").read_text()


def test_what_has_no_time_is_named_with_the_reason() -> None:
    """Each run once, under how it ended; sizes by boxes."""
    rows = [
        ("m x16", "allreduce", "a", 2**10, 1.0, "finished", 9),
        ("m x16", "allreduce", "a", 2**20, None, "failed", 0),
    ]
    rows += [("m x64", method, "b", 2**10, None, "time_limit", 0) for method in ("allgather", "reduce")]
    names = ["machine", "collective", "method", "bytes", "value", "ended", "transfers"]
    assert on_many_ranks(pd.DataFrame(rows, columns=names)) == (
        "On 16 and 64 boxes `a` and `b` were run 4 times; 1 have a time. Run on 16 boxes: 1.00 KiB, 1.00 MiB, up to 9 "
        "transfers. Run on 64 boxes: 1.00 KiB, up to 0 transfers. Without a schedule on m x16, failed: `a`, allreduce "
        "(1.00 MiB). Without a schedule on m x64, time limit: `b`, allgather (1.00 KiB); `b`, reduce (1.00 KiB)."
    )


def test_worth_is_told_on_every_machine_at_every_size() -> None:
    worth = tables()["What copies and sums in switches are worth: allreduce"]
    told = {row["machine"]: sum(cell.endswith("×") for cell in row.values()) for row in worth}
    assert told == dict.fromkeys(MACHINES, len(SIZES))


def test_no_bound_of_the_machine_with_nvls_lies_below_a_measurement() -> None:
    """In time; the bound of the file without NVLS does, for 7 and 8 GPUs, which is why it says what it leaves out."""
    [rows] = [rows for heading, rows in tables().items() if heading.startswith("Algorithm bandwidth as measured")]
    assert [row["GPUs"] for row in rows] == list(MEASURED)
    rates = [{name: float(cell.split()[0]) for name, cell in row.items() if cell.endswith("GB/s")} for row in rows]
    assert all(row["bound"] >= row["measured"] for row in rates)
    assert [row["bound of dgx-h100"] < row["measured"] for row in rates] == [False, False, True, True]
    fits, consistent = (f"bound, sums at {rate} GB/s a port" for rate in ADD_RATES)
    assert [row[fits] < row["measured"] for row in rates] == [False, False, True, False]
    assert all(row[consistent] >= row["measured"] for row in rates)
