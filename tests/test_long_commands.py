"""Commands on pages that ``test_page_commands.py`` only reads, because they take up to five minutes: here they run.

``pytest -m slow tests/test_long_commands.py`` runs them, each page in a new folder. What a command of a finding solves
must have the value and the bound that are published, and a whole page is made again.
"""

from __future__ import annotations

import math
import shlex
import subprocess
from pathlib import Path

import command
import pytest
import test_page_commands as pages
import test_site
from published import PUBLISHED, ROOT

from synth.errors import InputError
from synth.records import record as records
from synth.records.folder import beside, read_all
from synth.records.record import Record

FINDINGS = [lines[: pages.MOST] for lines in pages.of_findings().values()]
OTHERS = pages.WITH_COMMANDS
LIMIT_S = 1500  # by the clock, beside other work
ENDS = {"synth solve mine.json -m ilp -O horizon=4": 3}  # exit codes other than 0: infeasible, as the page says
OWN = {  # what a reader has of their own by then, by the beginning of the command that takes it
    "synth submit lib/equimesh-3x3-c2.json": (
        "synth solve lib/equimesh-3x3-c2.json -m pull",
        "synth show results/xtree/equimesh-3x3-c2/pull.json --csv > mine.csv",
    ),
    "synth pack results/mine": ("synth solve instances/xtree/ring-8-c1.json -m pull --results results/mine",),
    "synth study --compare results/studies/A": tuple(f"synth study {folder}.toml" for folder in "AB"),
}
STUDY = """name = "{name}"\ninstances = ["instances/xtree/ring-8-c1.json"]\n[[run]]\nmethods = ["bound", "pull"]\n"""


def run(words: list[str], folder: Path) -> None:
    """A command ends as it should; with code 1, or 2 where it shows a record, only if the clock of a busy machine has
    ended a run before it held a solution."""
    done = subprocess.run([command.SYNTH, *words[1:]], cwd=folder, text=True, capture_output=True, timeout=LIMIT_S)
    expected = {ENDS.get(shlex.join(words), 0)} | ({1} if any(map(by_the_clock, solved(folder))) else set())
    expected |= {2} if "holds no solution (time_limit)" in done.stderr else set()
    assert done.returncode in expected, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr


def by_the_clock(record: Record) -> bool:
    return record.data.get("stopped_by") == "clock" or record["termination"] == "time_limit"


def alike(one: float | None, other: float | None) -> bool:
    """The same but for rounding: records of older code sum in another order."""
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9))


def better(record: Record, known: Record) -> bool:
    """Whether a program has done better than it did with older code: nowhere worse, and a value or bound is better."""
    if record["kind"] != "program" or None in (record.value, known.value, record.bound, known.bound):
        return False
    values, bounds = (record.value, known.value), (known.bound, record.bound)
    return all(one <= other or alike(one, other) for one, other in (values, bounds))


def as_many(record: Record, known: Record) -> bool:
    """Whether two schedules made for the fewest epochs have as many, proven least; their seconds may differ."""
    facts = [one["verified"]["facts"] for one in (record, known)]
    counts = [(one.get("epochs"), one.get("epochs_least")) for one in facts]
    return record["method"] == "epochs" and counts[0] == counts[1] and None not in counts[0]


def solved(folder: Path) -> list[Record]:
    """The records that the commands have left in the folder, where some also leave pages and tables alone."""
    own = [place for place in (folder / "results").iterdir() if place.name != "published"]
    with_records = [place for place in own if any(place.rglob("*.json*"))]
    return [record for record in read_all(with_records) if isinstance(record, Record)]


def published(record: Record, folder: Path) -> Record:
    """The published record of the same run. Older ones do not bear the options of their question in their name."""
    assert record.path is not None
    place = PUBLISHED / record.path.relative_to(folder / "results")
    try:
        return records.read(place)
    except InputError:
        asked, same = record["options"]["method"], [record[key] for key in ("method", "solver")]
        there = [one for one in beside(place.parent) if [one[key] for key in ("method", "solver")] == same]
        [known] = [one for one in there if one["options"]["method"].items() <= asked.items()]
        return known


@pytest.mark.slow
@pytest.mark.parametrize("line", dict.fromkeys(line for lines in FINDINGS for line in lines))
def test_a_command_of_a_finding_gives_what_is_published(line: str, tmp_path: Path) -> None:
    test_site.prepare(tmp_path)
    run(shlex.split(line), tmp_path)
    found = solved(tmp_path)
    assert found
    for record in found:
        known = published(record, tmp_path)
        same = alike(record.value, known.value) and alike(record.bound, known.bound)
        told = record.path, record.value, known.value, record.bound, known.bound
        assert same or better(record, known) or as_many(record, known) or by_the_clock(record), told


@pytest.mark.slow
@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    pages.prepare(page, tmp_path)
    for name in "AB":
        (tmp_path / f"{name}.toml").write_text(STUDY.format(name=name))
    for words in pages.commands(page):
        line = shlex.join(words)
        if words[0] == "echo":
            (tmp_path / words[-1]).write_text(words[1])
        elif words[0] == "synth" and not pages.elsewhere(line):
            for before in next((own for begins, own in OWN.items() if line.startswith(begins)), ()):
                test_site.run_line(before, tmp_path)
            run(words, tmp_path)
    assert all(record.ok for record in solved(tmp_path))


@pytest.mark.slow
def test_a_page_that_holds_no_time_is_made_again_to_the_letter(tmp_path: Path) -> None:
    """As ``test_findings.py`` has it for the findings."""
    test_site.prepare(tmp_path)
    run(shlex.split("synth reproduce bine-jobs --out made"), tmp_path)
    assert (tmp_path / "made/bine-jobs.md").read_text() == (PUBLISHED / "bine-jobs.md").read_text()
