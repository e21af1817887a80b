"""A step for people: what its critical path waits for, its timeline, its table and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from synth.errors import InputError
from synth.instance import parse
from synth.options import RunOptions
from synth.text.input_file import InputFile
from synth_models.step.check.replay import check_step
from synth_models.step.instance import StepInstance
from synth_models.step.references.longest_tail import solve
from synth_models.step.solution import Timetable, table, timetable_of
from synth_models.step.views.describe import critical, describe
from synth_models.step.views.from_table import from_table
from synth_models.step.views.plot import plot


def computation(name: str, rank: int, seconds: float, *after: str) -> dict[str, Any]:
    return {"kind": "computation", "name": name, "rank": rank, "seconds": seconds, "after": after}


@pytest.fixture
def step() -> StepInstance:
    """Rank 0 computes 1 s, then both sum up 3 GB at 1 GB/s (3 s), then rank 1 computes 2 s, its own 1 s meanwhile."""
    rows = [
        computation("a", 0, 1.0),
        {"kind": "operation", "name": "sum", "collective": "allreduce", "bytes": 3 * 10**9, "ranks": [0, 1],
         "link": "net", "after": ["a"]},
        computation("aside", 1, 1.0),
        computation("b", 1, 2.0, "sum"),
    ]  # fmt: skip
    raw = {"format": "synth-instance/1", "family": "step", "name": "s", "source": "test", "nodes": rows,
           "links": [{"name": "net", "bandwidth": 1e9}]}  # fmt: skip
    return parse(raw, StepInstance, "s.json")


@pytest.fixture
def timetable(step: StepInstance) -> Timetable:
    found = solve(step, RunOptions()).solution
    assert isinstance(found, Timetable)
    return found


def test_the_critical_path_in_words(step: StepInstance, timetable: Timetable) -> None:
    """a, sum, b: 6 s, half of it for the sum; the busier rank computes 3 s of them."""
    assert [(step.nodes[i].name, long) for i, long in critical(step, timetable)] == [
        ("a", 10**12), ("sum", 3 * 10**12), ("b", 2 * 10**12)
    ]  # fmt: skip
    told = describe(step, timetable)
    assert "exposed communication: 3000 ms; the busiest of 2 ranks computes 3000 ms" in told
    assert "3 nodes, 6000 ms: 50.0 % computes, 50.0 % waits for collectives" in told
    assert "50.0 % waits for the allreduce sum" in told
    assert "aside" not in told


def test_a_path_over_a_stream(step: StepInstance) -> None:
    """Where b waits for what its stream does, and for nothing that it comes after, that is on the path; where nothing
    holds the first of it, that is said."""
    late = timetable_of([0, 10**12, 4 * 10**12, 5 * 10**12])
    assert [step.nodes[i].name for i, _ in critical(step, late)] == ["aside", "b"]
    assert "begins at 4000 ms, though nothing holds it" in describe(step, late)


def test_the_timeline(step: StepInstance, timetable: Timetable, tmp_path: Path) -> None:
    figure = plot(step, timetable, "a step")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "rank 0, compute", "rank 0, net", "rank 1, compute", "rank 1, net"
    ]  # fmt: skip
    bars = [[tuple(path.get_extents().intervalx) for path in one.get_paths()] for one in axes.collections]
    assert bars == [[(0, 1000)], [(1000, 4000)], [(0, 1000), (4000, 6000)], [(1000, 4000)]]


def test_the_table_and_back(step: StepInstance, timetable: Timetable, tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    table(step, timetable).iloc[::-1].to_csv(file, index=False)
    again = from_table(step, InputFile(file))
    assert again.start.tolist() == timetable.start.tolist()
    assert check_step(step, again).value == 6.0


def test_what_a_table_may_not_say(step: StepInstance, tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("node,algorithm,start\na,,-1\nz,,0\nsum,tree,nan\n")
    with pytest.raises(InputError) as raised:
        from_table(step, InputFile(file))
    told = str(raised.value)
    assert all(words in told for words in ("line 2, start", "line 3, node", "line 4, algorithm", "line 4, start"))
    file.write_text("node,start\na,0\na,1\nsum,1\n")
    with pytest.raises(InputError) as raised:
        from_table(step, InputFile(file))
    assert "a: stands 2 times" in str(raised.value)
    assert "has no row: aside, b" in str(raised.value)
