"""The table with one row an instance says why no method has a value, whatever the methods and their ends are."""

from __future__ import annotations

import itertools
from pathlib import Path

import command
import pytest

import synth
from synth import api
from synth.family import get_family
from synth.method import Outcome, Verdict
from synth.options import RunOptions
from synth.records import summary
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
    """The cell has how the runs ended, in a word each; the line below the table why, and of which methods."""
    made = {name: record(name, outcome) for name, outcome, _ in ENDS}
    for some in itertools.combinations(ENDS, count):
        ends = list(dict.fromkeys(words.partition(":")[0] for _, _, words in some if words))
        [row] = rows_by_instance([made[name] for name, _, _ in some])
        assert row.cells()[1] == (", ".join(ends) or NO_VALUE)
        reasons: dict[str, list[str]] = {}
        for name, _, words in some:
            if ":" in words:
                reasons.setdefault(words, []).append("flow" if name == "flow" else name)
        assert row.reasons == "; ".join(f"{', '.join(names)}: {words}" for words, names in reasons.items())


def test_of_many_reasons_the_first_stand_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MOST_REASONS", 1)
    [row] = rows_by_instance([record(name, outcome) for name, outcome, _ in ENDS])
    assert row.reasons == f"bfb: unsupported: {SWITCHES}; and 2 more"
    assert row.cells()[1] == "unsupported, time_limit, size_limit"


def test_what_solve_prints(tmp_path: Path) -> None:
    """A machine with switches, which breadth-first broadcast does not take: a line says so, no cell of values; a bound
    alone is none."""
    instance = synth.make("fabric", machine="dgx-a100", collective="allgather", bytes="8MiB")
    alone = api.solve(instance, "bfb")
    [row] = rows_by_instance([alone, api.solve(instance, "bound")])
    assert (row.cells()[1], row.reasons) == ("unsupported", f"bfb: unsupported: {alone['message']}")
    assert "switches" in row.reasons
    [row] = rows_by_instance([api.solve(instance, "bound")])
    assert (row.cells()[1], row.reasons) == (NO_VALUE, "")
    [row] = rows_by_instance([alone, api.solve(instance, "ring")])
    assert row.cells()[1][0].isdigit()
    assert row.reasons == ""
    (tmp_path / "one.json").write_text(instance.to_json())
    (tmp_path / "two.json").write_text(instance.to_json().replace(instance.name, "two"))
    for files in (["one.json"], ["one.json", "two.json"]):
        done = command.run("solve", *files, "-m", "bfb", cwd=tmp_path, code=2).stdout
        cells = [[cell.strip() for cell in line.split("│")] for line in done.splitlines() if line.startswith("│")]
        assert {row[3 if len(row) > 10 else 2] for row in cells} <= {"–", "unsupported"}
        assert done.count("the machine has switches") == done.count("switches") == len(files)
