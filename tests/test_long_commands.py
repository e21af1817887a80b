"""Commands on pages that ``test_page_commands.py`` only reads, because they take up to five minutes: here they run.

``pytest -m slow tests/test_long_commands.py`` runs them, each page in a new folder. What a command of a finding solves
must have the value and the bound that are published, and a whole page is made again. ``LEFT`` says what is not run,
and why.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from pathlib import Path

import command
import pytest
import test_page_commands as pages
import test_site
from published import PUBLISHED, ROOT

from synth.records import record as records
from synth.records.folder import read_all
from synth.records.record import Record

FINDINGS = sorted((PUBLISHED / "findings").glob("*.md"))
OTHERS = [page for page in pages.WITH_COMMANDS if page not in FINDINGS]
LIMIT_S = 1500  # by the clock, beside other work
ENDS = {"synth solve mine.json -m ilp -O horizon=4": 3}  # exit codes other than 0: infeasible, as the page says
LEFT = {  # patterns of what is not run, and why
    r"synth reproduce (?!several$)\S+": "it takes from minutes to hours; `.ci/run` makes all pages in their short form",
    r"synth study instances/studies/synth-lib-solvers.toml": "it takes more than five minutes",
    r"synth batch ": "it needs Slurm",
    r".* (NAME|INSTANCE|STUDY.toml|results/mine|results/studies/A)\b": "the reader fills in a name",
}


def left(line: str) -> str | None:
    """Why a command is not run, or None."""
    return next((why for pattern, why in LEFT.items() if re.match(pattern, line)), None)


def run(words: list[str], folder: Path) -> None:
    """A command ends as it should; with code 1 only where the clock of a busy machine has ended a run."""
    done = subprocess.run([command.SYNTH, *words[1:]], cwd=folder, text=True, capture_output=True, timeout=LIMIT_S)
    expected = {ENDS.get(shlex.join(words), 0)} | ({1} if any(map(by_the_clock, solved(folder))) else set())
    assert done.returncode in expected, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr


def by_the_clock(record: Record) -> bool:
    return record.data.get("stopped_by") == "clock" or record["termination"] == "time_limit"


def alike(one: float | None, other: float | None) -> bool:
    """The same but for rounding: records of older code sum in another order."""
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9))


def solved(folder: Path) -> list[Record]:
    """What the commands have left in the folder."""
    own = [place for place in (folder / "results").iterdir() if place.name != "published"]
    return [record for record in read_all(own) if isinstance(record, Record)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", dict.fromkeys(shlex.join(words) for page in FINDINGS for words in pages.commands(page))
)
def test_a_command_of_a_finding_gives_what_is_published(line: str, tmp_path: Path) -> None:
    if why := left(line):
        pytest.skip(why)
    test_site.prepare(tmp_path)
    run(shlex.split(line), tmp_path)
    found = solved(tmp_path)
    assert found or " check " in line
    for record in found:
        assert record.path is not None
        known = records.read(PUBLISHED / record.path.relative_to(tmp_path / "results"))
        same = alike(record.value, known.value) and alike(record.bound, known.bound)
        assert same or by_the_clock(record), (record.path, record.value, known.value, record.bound, known.bound)


@pytest.mark.slow
@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    pages.prepare(page, tmp_path)
    for words in pages.commands(page):
        if words[0] == "echo":
            (tmp_path / words[-1]).write_text(words[1])
        elif words[0] == "synth" and not left(shlex.join(words)):
            run(words, tmp_path)
    assert all(record.ok for record in solved(tmp_path))


@pytest.mark.slow
def test_a_page_that_holds_no_time_is_made_again_to_the_letter(tmp_path: Path) -> None:
    """As ``test_findings.py`` has it for the findings."""
    test_site.prepare(tmp_path)
    run(shlex.split("synth reproduce bine-jobs --out made"), tmp_path)
    assert (tmp_path / "made/bine-jobs.md").read_text() == (PUBLISHED / "bine-jobs.md").read_text()


def test_what_is_left_out_is_little() -> None:
    """Of some two hundred commands; each reason stands for some."""
    lines = {shlex.join(words) for page in pages.WITH_COMMANDS for words in pages.commands(page) if words[0] == "synth"}
    why = {line: left(line) for line in lines}
    assert {reason for reason in why.values() if reason} == set(LEFT.values())
    assert sum(reason is None for reason in why.values()) > 200
