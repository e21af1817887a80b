"""`synth submit` in every family: a worse, an equal, a better and a false schedule, and a false bound."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from handed_in import JANE, in_a_file, published, tables

import synth
from synth.errors import InputError
from synth.family import family_names
from synth.library import submission
from synth.library.submission import RefusedError, compared
from synth.records.record import Record
from synth.text.input_file import InputFile

PAIRS = [  # two published schedules of one instance: the better one, the worse one
    ("xtree/mesh-4x4-c1/ilp-highs", "xtree/mesh-4x4-c1/tto"),
    ("fabric/dgx1-allreduce-64KiB/pull", "fabric/dgx1-allreduce-64KiB/forest-highs"),
    ("harvest/demand-6-bulk-p2/misocp-highs", "harvest/demand-6-bulk-p2/candidates-highs"),
    ("mlfm/d3-n2l3m2/greedy", "mlfm/d3-n2l3m2/pairwise"),
    ("optree/ring-7-w2/time_expanded-cpsat", "optree/ring-7-w2/relay"),
    ("bine/groups-3-6-7-scatter/tree_ilp-highs", "bine/groups-3-6-7-scatter/binomial_halving"),
    ("step/zb-p4-m8/search", "step/zb-p4-m8/issued"),
    ("topology/cubes-2-4x4x4/search", "topology/cubes-2-4x4x4/twisted"),
]


class Pair(NamedTuple):
    """An instance in a file of its own, its two published records, and both handed in again."""

    instance: synth.Instance
    better: Record
    worse: Record
    better_again: Record
    worse_again: Record


@pytest.fixture(params=PAIRS, ids=lambda pair: str(pair[0].partition("/")[0]))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    better, worse = (published(case) for case in request.param)
    assert better.value is not None
    assert worse.value is not None
    assert better.value < worse.value
    instance = in_a_file(better, tmp_path)
    again = [submission.schedule(instance, tables(record, tmp_path), JANE) for record in (better, worse)]
    return Pair(instance, better, worse, *again)


def test_every_family_is_here() -> None:
    ours = {name for name in family_names() if name not in ("faulty", "toy_broadcast")}
    assert {better.partition("/")[0] for better, _ in PAIRS} == ours


@pytest.mark.long(after=1)
def test_worse_equal_and_better(pair: Pair) -> None:
    assert (pair.better_again.value, pair.worse_again.value) == (pair.better.value, pair.worse.value)
    assert compared(pair.worse_again, [pair.better, pair.worse])[0].startswith("worse than the best value known")
    assert compared(pair.better_again, [pair.better, pair.worse])[0].startswith("equals the best value known")
    assert compared(pair.better_again, [pair.worse])[0].startswith("BETTER than the best value known")


@pytest.mark.long(after=1)
def test_a_schedule_without_one_of_its_rows_is_refused(pair: Pair, tmp_path: Path) -> None:
    """The first, the middle and the last transfer: each of them somebody needs."""
    first, *others = tables(pair.better, tmp_path)
    rows = list(csv.reader(first.text.splitlines()))
    for left_out in {1, len(rows) // 2, len(rows) - 1}:
        path = tmp_path / "false.csv"
        path.write_text("".join(",".join(row) + "\n" for number, row in enumerate(rows) if number != left_out))
        with pytest.raises((InputError, RefusedError)) as refused:
            submission.schedule(pair.instance, [InputFile(path), *others], JANE)
        assert "false.csv" in str(refused.value)


def test_a_bound_above_a_replayed_schedule_is_refused(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its certificate; and if the check of certificates were wrong and accepted it, by the schedule."""
    assert pair.better.value is not None
    certified = synth.solve(pair.instance, "bound")
    assert certified.certificate is not None
    above: dict[str, Any] = {"bound": 1.5 * pair.better.value, "certificate": dict(certified.certificate)}
    path = tmp_path / "bound.json"
    path.write_text(json.dumps(above, default=lambda array: array.tolist()))
    with pytest.raises(RefusedError):
        submission.bound(pair.instance, path, JANE)
    monkeypatch.setattr("synth.api.certify", lambda *_: [])
    accepted = submission.bound(pair.instance, path, JANE)
    with pytest.raises(RefusedError, match="ALARM"):
        compared(accepted, [pair.better_again])
