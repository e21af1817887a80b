"""`synth export -f csv`: the exact columns suffice for a replay where seconds as floats do not."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some_of
from exchange.by_hand import ring_allgather
from exchange.possession import begins, needs, owners
from models.fabric.flat_replay import replay as flat_replay
from models.fabric.test_flat_table import drawn

import synth
from synth.errors import InputError
from synth.exchange import transfers_csv
from synth.exchange.record_export import transfers_of
from synth.exchange.transfers import Ticks, Transfers
from synth_models.fabric.views import table
from synth_models.fabric.views.transfers import transfers

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
OLD = ["start_s", "end_s", "piece", "part", "offset", "bytes", "src", "dst", "adds"]
EXACT = ["start_tick", "end_tick", "ticks_per_s"]


def rows_of(t: Transfers, path: Path) -> list[dict[str, str]]:
    transfers_csv.write(t, path)
    return list(csv.DictReader(path.open(encoding="utf-8")))


def replay(rows: list[dict[str, str]], t: Transfers) -> Fraction:
    """Nobody sends what it does not hold, sums are complete in the end; the last arrival in seconds. Of the transfers
    only the collective is looked at."""
    own = t.collective, t.ranks, t.root
    part = {int(row["piece"]): int(row["part"]) for row in rows}
    held = {(p, r): begins(*own, of, r) for p, of in part.items() for r in range(t.ranks)}
    events = [(int(row["start_tick"]), 2, n) for n, row in enumerate(rows)]
    events += [(int(row["end_tick"]), int(row["adds"]), n) for n, row in enumerate(rows)]
    brought: dict[int, Any] = {}
    for _, kind, n in sorted(events):
        piece, src, dst, adds = (int(rows[n][key]) for key in ("piece", "src", "dst", "adds"))
        if kind == 2:
            brought[n] = held[piece, src]
            assert brought[n]
        else:
            assert not adds or not held[piece, dst] & brought[n]
            held[piece, dst] = brought[n] | (held[piece, dst] if adds else frozenset())
    for (p, r), has in held.items():
        assert has == owners(*own, part[p]) or not needs(*own, part[p], r)
    return max(Fraction(int(row["end_tick"]), int(row["ticks_per_s"])) for row in rows)


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_a_replay_from_the_file_alone(seed: int, tmp_path: Path) -> None:
    """Random schedules, clocks finer than floats: exact times, those of the flat table, in an order that suffices."""
    chooser, seen, fine = random.Random(f"moves {seed}"), 0, 0
    while seen < 25:
        instance, schedule, features = drawn(chooser)
        try:
            t = transfers(instance, schedule)
        except InputError:  # a demand, or a rank outside the group that forwards
            continue
        if "sums in switches" in features:  # parts of sums that meet in switches are no moves from rank to rank
            continue
        seen, fine = seen + 1, fine + ("huge ticks" in features)
        rows = rows_of(t, tmp_path / "moves.csv")
        assert list(rows[0]) == [*OLD, *EXACT]
        assert {int(row["ticks_per_s"]) for row in rows} == {schedule.ticks_per_s}
        assert {int(row["start_tick"]) for row in rows} <= set(schedule.start.tolist())
        text = table.table(instance, schedule).to_csv(index=False)
        assert replay(rows, t) == flat_replay(text, instance.model_dump(mode="json"))
        for row in rows:
            assert float(row["start_s"]) == pytest.approx(int(row["start_tick"]) / schedule.ticks_per_s)
    assert fine


def test_neighbours_that_share_a_float_have_ticks_of_their_own(tmp_path: Path) -> None:
    t = ring_allgather(4)
    late = 2**60 + np.array(t.start_s, dtype=np.int64)
    fine = replace(t, start_s=late.astype(float), end_s=late + 1.0, ticks=Ticks(late, late + 1, 1))
    rows = rows_of(fine, tmp_path / "fine.csv")
    assert [int(row["start_tick"]) for row in rows] == late.tolist()
    assert replay(rows, t) == 2**60 + 3
    assert rows_of(fine.taken([0, 5]), tmp_path / "two.csv")[1]["start_tick"] == str(late[5])


@pytest.mark.parametrize(
    ("name", "method"),
    [("xtree/ring-8-c1", "pull"), ("optree/ring-8-w2", "relay"), ("harvest/alltoall-direct-16-p2", "greedy")],
)
def test_timesteps_are_ticks_where_a_family_has_no_clock(name: str, method: str, tmp_path: Path) -> None:
    t = transfers_of(synth.solve(synth.read(INSTANCES / f"{name}.json"), method, time_limit=20))
    rows = rows_of(t, tmp_path / "moves.csv")
    assert [(int(row["start_tick"]), int(row["end_tick"])) for row in rows] == [
        (int(float(row["start_s"])), int(float(row["end_s"]))) for row in rows
    ]
    assert {row["ticks_per_s"] for row in rows} == {"1"}


def test_times_that_no_clock_says_are_left_out(tmp_path: Path) -> None:
    t = ring_allgather(3)
    rows = rows_of(replace(t, start_s=t.start_s / 3, end_s=t.end_s / 3), tmp_path / "moves.csv")
    assert {row[name] for row in rows for name in EXACT} == {""}


@pytest.mark.parametrize("collective", ["alltoall", "allgather", "reduce"])
def test_the_table_of_a_demand_is_no_other_collective(collective: str, tmp_path: Path) -> None:
    """One message, whatever else would be wrong."""
    path = tmp_path / "moves.csv"
    head = "start_s,end_s,piece,part,offset,bytes,src,dst,adds,origin,goal"
    path.write_text(f"{head}\n0,1,0,0,0,8,0,1,0,0,1\n0,1,1,1,0,24,1,2,0,1,2\n")
    with pytest.raises(InputError) as error:
        transfers_csv.read(path, collective)
    [line] = str(error.value).splitlines()
    assert f"of a demand, which is no {collective}: name it with --collective demand" in line
    assert transfers_csv.read(path, "demand").transfers.demand is not None
