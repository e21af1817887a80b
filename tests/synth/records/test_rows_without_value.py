"""The table with one row an instance says why no method has a value, whatever the methods and their ends are."""

from __future__ import annotations

import itertools

import pytest

import synth
from synth import api
from synth.family import get_family
from synth.method import Outcome, Verdict
from synth.options import RunOptions
from synth.records.record import Record
from synth.records.summary import NO_VALUE, rows_by_instance

LINKS, SWITCHES = "more than 200 links", "the machine has switches"
ENDS: list[tuple[str, Outcome, str]] = [
    ("bfb", Outcome("unsupported", message=SWITCHES), f"unsupported: {SWITCHES}"),
    ("ring", Outcome("unsupported", message=LINKS), f"unsupported: {LINKS}"),
    ("tacos", Outcome("unsupported", message=LINKS), f"unsupported: {LINKS}"),
    ("direct", Outcome("unsupported"), "unsupported"),
    ("pull", Outcome("time_limit"), "time_limit"),
    ("flow", Outcome("size_limit", message="too large"), "size_limit: too large"),
    ("bruck", Outcome("finished", message="nothing found"), ""),
]


def record(name: str, outcome: Outcome) -> Record:
    instance = synth.make("fabric", network="torus", rows=2, cols=3, collective="allgather", bytes="6MiB")
    method = get_family("fabric").methods[name]
    verdict = Verdict(None, {"replayed": False})
    return Record(api._record_data(instance, method, RunOptions(), outcome, verdict, 0.0))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_reason_stands_once(count: int) -> None:
    made = {name: record(name, outcome) for name, outcome, _ in ENDS}
    for some in itertools.combinations(ENDS, count):
        reasons = list(dict.fromkeys(words for _, _, words in some if words))
        [row] = rows_by_instance([made[name] for name, _, _ in some])
        assert row.cells()[1] == ("; ".join(reasons) or NO_VALUE)


def test_of_many_reasons_the_first_stand_there() -> None:
    [row] = rows_by_instance([record(name, outcome) for name, outcome, _ in ENDS])
    assert row.cells()[1] == f"unsupported: {SWITCHES}; unsupported: {LINKS}; unsupported; and 2 more"


def test_what_solve_prints() -> None:
    """A machine with switches, which breadth-first broadcast does not take: the row says so; a bound alone is none."""
    instance = synth.make("fabric", machine="dgx-a100", collective="allgather", bytes="8MiB")
    alone = api.solve(instance, "bfb")
    [row] = rows_by_instance([alone, api.solve(instance, "bound")])
    assert row.cells()[1] == f"unsupported: {alone['message']}"
    assert "switches" in row.cells()[1]
    [row] = rows_by_instance([api.solve(instance, "bound")])
    assert row.cells()[1] == NO_VALUE
    [row] = rows_by_instance([alone, api.solve(instance, "ring")])
    assert row.cells()[1][0].isdigit()
