"""Demands leave as CSV, Chakra and GOAL, padded as XML and plans, and are run; every part gets from its origin to its
goal, of whatever size."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import command
import numpy as np
import pytest
from examples import some_of

import synth
from synth.errors import InputError
from synth.exchange import chakra, transfers_csv
from synth.exchange.chakra.messages import GlobalMetadata, read_messages, write_message
from synth.exchange.record_export import moves_of, transfers_of
from synth.exchange.transfers import Transfers
from synth.records.record import Record


def solved(seed: int, folder: Path) -> Record:
    """A random demand on a random machine, some pairs twice, some ranks without any; by a random method."""
    rng = np.random.default_rng(seed)
    shapes = ({"network": "ring", "nodes": 5}, {"machine": "dgx-a100", "gpus": 4, "boxes": 2},
              {"network": "torus", "rows": 2, "cols": 3})  # fmt: skip
    shape = shapes[seed % len(shapes)]
    ranks = (5, 8, 6)[seed % len(shapes)]
    names = [f"{k // 4}/gpu{k % 4}" if "machine" in shape else str(k) for k in range(ranks)]
    rows = ["src,dst,bytes"]
    for _ in range(int(rng.integers(1, 12))):
        origin, goal = rng.choice(ranks, 2, replace=False)
        rows.append(f"{names[origin]},{names[goal]},{int(rng.choice([1, 7, 1000, 123457, 2**20]))}")
    (folder / "demand.csv").write_text("\n".join(rows) + "\n")
    speed = {} if "machine" in shape else {"bandwidth": 1e10, "latency": 1e-6}
    instance = synth.make("fabric", **shape, **speed, collective="demand", demand=folder / "demand.csv")
    (folder / "instance.json").write_text(instance.to_json())
    method = ("direct", "flow")[int(rng.integers(2))]
    record = synth.solve(synth.read(folder / "instance.json"), method, time_limit=20, results=folder / "results")
    assert record.value is not None, record["message"]
    return record


def delivered(rows: list[dict[str, int]], sizes: dict[tuple[int, int, int], int]) -> None:
    """Moves in time order: nobody sends a byte before it is there; in the end the goal has every byte of each part."""
    held: dict[int, dict[int, set[tuple[int, int, int]]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        held[row["part"]][row["origin"]].add((row["piece"], row["offset"], row["bytes"]))
    events = sorted([(row["end_tick"], 0, k) for k, row in enumerate(rows)]
                    + [(row["start_tick"], 1, k) for k, row in enumerate(rows)])  # fmt: skip
    for _, starts, k in events:
        row = rows[k]
        piece = (row["piece"], row["offset"], row["bytes"])
        if starts:
            assert piece in held[row["part"]][row["src"]], row
        else:
            held[row["part"]][row["dst"]].add(piece)
    found = {}
    for row in rows:
        reached = sorted(held[row["part"]][row["goal"]], key=lambda piece: piece[1])
        ends = np.cumsum([size for _, _, size in reached])
        assert [offset for _, offset, _ in reached] == [0, *ends[:-1]]
        found[row["origin"], row["goal"], row["part"]] = int(ends[-1])
    assert found == sizes


def parts(t: Transfers) -> dict[tuple[int, int, int], int]:
    assert t.demand is not None
    origin, goal, size = (column.tolist() for column in t.demand)
    return {(a, b, k): s for k, (a, b, s) in enumerate(zip(origin, goal, size, strict=True))}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(10)))
def test_a_demand_leaves_whole_and_comes_back(seed: int, tmp_path: Path) -> None:
    record = solved(seed, tmp_path)
    t = moves_of(record)
    wanted = parts(t)
    asked = (tmp_path / "demand.csv").read_text().split()[1:]
    assert sorted(wanted.values()) == sorted(int(line.split(",")[2]) for line in asked)
    transfers_csv.write(t, tmp_path / "moves.csv")
    with (tmp_path / "moves.csv").open() as file:
        rows = [{key: int(row[key]) for key in row if not key.endswith("_s") or key == "ticks_per_s"}
                for row in csv.DictReader(file)]  # fmt: skip
    delivered(rows, wanted)
    assert parts(transfers_csv.read(tmp_path / "moves.csv", "demand").transfers) == wanted
    chakra.write(t, tmp_path / "trace")
    trace = chakra.read(tmp_path / "trace")
    assert chakra.faults(trace) == []
    again = chakra.transfers(trace)
    assert parts(again) == wanted
    ours, theirs = (
        sorted(zip(one.piece.tolist(), one.src.tolist(), one.dst.tolist(), strict=True)) for one in (t, again)
    )
    assert ours == theirs


def test_commands_take_a_demand(tmp_path: Path) -> None:
    record = solved(1, tmp_path)
    path = record.path
    assert path is not None
    for name in ("moves.csv", "trace.et", "moves.goal"):
        command.run("export", path, "-o", name, cwd=tmp_path)
    done = command.run("run", "moves.csv", "--collective", "demand", "--bytes", "64KiB", cwd=tmp_path)
    assert "demand" in done.stdout
    for name in ("moves.xml", "moves.json"):
        with pytest.raises(InputError, match="chunks are of one size"):
            transfers_of(record)
        assert "padded" in command.run("export", path, "-o", name, cwd=tmp_path).stderr
        assert "yes" in command.run("run", name, "--bytes", "256KiB", "--repeat", 1, cwd=tmp_path).stdout


def test_a_table_that_disagrees_of_a_part_is_refused(tmp_path: Path) -> None:
    transfers_csv.write(moves_of(solved(0, tmp_path)), tmp_path / "moves.csv")
    head, first, *rest = (tmp_path / "moves.csv").read_text().splitlines()
    cells = first.split(",")
    twin = [*cells[:-1], str((int(cells[-1]) + 1) % 5)]
    for lines, words in (
        ([head, first, ",".join(twin), *rest], "line 3, goal"),
        ([head, ",".join([*cells[:-1], "-1"])], "line 2, goal"),
        ([head, ",".join([*cells[:3], "99", *cells[4:]])], "parts 0..0 at most"),
        ([head.removesuffix(",origin,goal"), ",".join(cells[:-2])], "needs a header line"),
    ):
        (tmp_path / "wrong.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises(InputError, match=words):
            transfers_csv.read(tmp_path / "wrong.csv", "demand")


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("demand_goal", [0], "three lists of one length"),
        ("demand_origin", None, "three lists of one length"),
        ("demand_goal", "far", "leaves ranks"),
        ("demand_bytes", "negative", "negative"),
    ],
)
def test_a_trace_whose_demand_is_none_is_refused(
    name: str, values: list[int] | str | None, words: str, tmp_path: Path
) -> None:
    t = moves_of(solved(0, tmp_path))
    assert t.demand is not None
    if len(t.demand.bytes) == 1 and values == [0]:
        values = [0, 0]
    first, *_ = chakra.write(t, tmp_path / "trace")
    with first.open("rb") as stream:
        metadata, *nodes = list(read_messages(stream, first.stat().st_size))
    kept = GlobalMetadata(version=metadata.version)
    for one in metadata.attr:
        if one.name != name:
            kept.attr.add().CopyFrom(one)
        elif values is not None:
            damaged = {"far": [99] * len(t.demand.bytes), "negative": [-1] * len(t.demand.bytes)}.get(
                str(values), values
            )
            kept.attr.add(name=name).int64_list.values.extend(damaged)
    with first.open("wb") as stream:
        for message in (kept, *nodes):
            write_message(stream, message)
    with pytest.raises(InputError, match=words):
        chakra.read(tmp_path / "trace")
