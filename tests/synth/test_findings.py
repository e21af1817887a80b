"""Findings: what they state is what the records hold, a broken or missing record is told, and nothing is typed."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.findings import finding as claims
from synth.findings import page
from synth.findings.command_line import commands
from synth.findings.evidence import Evidence, Held, exactly, numbers
from synth.findings.figure import draw_cases
from synth.findings.finding import Case, Finding
from synth.records import packed
from synth.records import record as records
from synth.reproduction.collect import Reproduction
from synth_papers.optree.findings import FINDINGS as OPTREE

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results" / "published"
RING = next(finding for finding in OPTREE if finding.name == "optical-ring")
RING = dataclasses.replace(RING, cases=tuple(RING.cases)[:2])  # type: ignore[arg-type]  # 1024 and 512 nodes, w = 64
RUN = CliRunner()


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The published records of optree, to be broken."""
    (tmp_path / "optree").mkdir()
    for file in (PUBLISHED / "optree").glob("records.*"):
        shutil.copy(file, tmp_path / "optree")
    file = tmp_path / "optree" / "records.jsonl"
    lines = [line for line in file.read_text().splitlines() if '"ring-1024-w64/' in line or '"ring-512-w64/' in line]
    file.write_text("\n".join(lines) + "\n")
    return tmp_path


def change(root: Path, place: str, what: Callable[[dict[str, Any]], None] | None) -> None:
    """Change one record, or (without a change) take it away."""
    file = root / "optree" / "records.jsonl"
    lines = []
    for line in file.read_text().splitlines():
        data = json.loads(line)
        if data["record_path"] == place:
            if what is None:
                continue
            what(data)
        lines.append(json.dumps(data))
    file.write_text("\n".join(lines) + "\n")


def faults(root: Path, finding: Finding = RING) -> str:
    return "\n".join(Evidence(root).shown(finding).faults)


def test_a_finding_says_what_its_records_hold() -> None:
    """19 steps for 70 at 1024 nodes and 64 wavelengths: both from the table of `synth reproduce optree`, by hand:
    ceil(1023 / 128) = 8 crossings at least, and the certified bound is 19."""
    shown = Evidence(PUBLISHED).shown(RING)
    assert not shown.faults
    first = shown.held[0]
    relay = records.read(PUBLISHED / "optree/ring-1024-w64/relay.json")
    bound = records.read(PUBLISHED / "optree/ring-1024-w64/bound.json")
    assert (first.value, first.least, first.printed) == (relay.value, bound.bound, 70.0) == (19.0, 19.0, 70.0)
    assert shown.grade == "certified"
    assert "takes 19 steps where OpTree prints 70 steps (N = 1024, w = 64), 72.9 % fewer" in shown.statement
    assert "2 of 2 rings" in shown.statement


def set_value(value: float) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["objective"]["value"] = value

    return change


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("place", "what", "told"),
    [
        ("ring-1024-w64/relay.json", set_value(18.0), "lies below the certified bound 19"),
        ("ring-1024-w64/relay.json", set_value(20.0), "the record states the value 20.0, the replay gives 19"),
        ("ring-1024-w64/relay.json", None, "no replayed schedule at optree/ring-1024-w64"),
        ("ring-1024-w64/bound.json", None, "does not hold: no schedule does better"),
        ("ring-1024-w64/bound.json", lambda data: data.update(bound=18.5), "bound.json is refused"),
        ("ring-512-w64/formula.json", None, "no record"),
        ("ring-512-w64/formula.json", set_value(10.0), "formula.json is refused"),
        ("ring-512-w64/relay.json", lambda data: data.update(instance_sha256="0" * 64), "records of several instances"),
        ("ring-1024-w64/relay.json", lambda data: data.update(solution_file=None), "is refused"),
    ],
)
def test_a_broken_or_missing_record_is_told(
    copy: Path, place: str, what: Callable[[dict[str, Any]], None] | None, told: str
) -> None:
    assert faults(copy) == ""
    change(copy, place, what)
    found = faults(copy)
    assert told in found
    assert f"optical-ring, N = {place.split('-')[1]}, w = {place.split('-w')[1].split('/')[0]}: " in found


def test_no_records_at_all_and_what_records_do_not_show_are_told(copy: Path) -> None:
    nowhere = Finding("none", "settles", "paper", "table", "", (Case("a", "optree/ring-3-w1"),), (claims.LEAST,))
    assert "none, a: no records at" in faults(copy, nowhere)
    wrong = Finding("wrong", "improves", "p", "t", "", (Case("a", "optree/ring-1024-w64", 19.0),), (claims.BELOW,))
    assert "wrong, a: does not hold: below the published figure (ours 19 steps" in faults(copy, wrong)
    assert "has no cases" in faults(copy, Finding("empty", "settles", "paper", "table", claims=(claims.LEAST,)))
    another = Case("a", "optree/ring-512-w64", published="optree/ring-1024-w64/formula")
    assert "is a record of another instance" in faults(copy, Finding("x", "improves", "p", "t", "", (another,)))


def test_the_command_leaves_no_page_and_ends_with_1(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "stated", lambda: {"optree": (RING,)})
    words = ["reproduce", "findings", "--records", str(copy), "--out", str(tmp_path / "out")]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out/findings.md").read_text()
    assert "| [optical-ring](#optical-ring) | improves |" in re.sub(" +", " ", text)
    assert "| N = 1024, w = 64 |" in re.sub(" +", " ", sections(text)["optical-ring"])
    data = (tmp_path / "out/findings/cases.csv").read_text()
    assert "optree/ring-1024-w64/relay.json" in data
    assert "synth solve instances/optree/ring-1024-w64.json -m relay" in data
    (tmp_path / "out/findings.md").unlink()
    gone = tmp_path / "out/findings/another.md"
    gone.write_text("of a finding that is no more")
    assert RUN.invoke(app, words).exit_code == 0
    assert not gone.exists()
    (tmp_path / "out/findings.md").unlink()
    change(copy, "ring-1024-w64/relay.json", None)
    done = RUN.invoke(app, words)
    assert done.exit_code == 1
    assert "the records do not carry these findings" in " ".join(done.output.split())
    assert not (tmp_path / "out/findings.md").exists()


def test_a_computation_that_states_nothing_or_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Reproduction) -> None:
        raise RuntimeError("the check refuses it")

    scratch = Reproduction(tmp_path / "scratch", True)
    for errata, told in ((fails, "the check refuses it"), (lambda _: None, "the computation states nothing")):
        finding = Finding("computed", "corrects", "paper", "table", errata=errata)
        monkeypatch.setattr(page, "stated", lambda finding=finding: {"optree": (finding,)})
        with pytest.raises(RuntimeError, match=f"computed: {told}"):
            page.make(tmp_path / "out", PUBLISHED, scratch)


def held(value: float | None, least: float | None, printed: float | None) -> Held:
    record = records.read(PUBLISHED / "optree/ring-1024-w64/relay.json")
    return Held(Case("a", "b"), "steps", record, value, None, least, "certified", None, printed, {})


@pytest.mark.long(after=4)
@pytest.mark.parametrize(
    ("value", "least", "printed", "true"),
    [  # which of the claims hold, from their words
        (5.0, 5.0, 7.0, {"LEAST", "BELOW", "NO_MORE", "NO_MORE_OR_BEYOND"}),
        (5.0, 4.0, 5.0, {"NO_MORE", "EQUAL", "NO_MORE_OR_BEYOND"}),
        (7.0, 6.0, 5.0, {"ABOVE", "BEYOND", "NO_MORE_OR_BEYOND"}),
        (7.0, 5.0, 5.0, {"ABOVE", "BOUND_EQUAL"}),
        (7.0, 4.0, 5.0, {"ABOVE"}),
        (None, 6.0, 5.0, {"BEYOND", "NO_MORE_OR_BEYOND"}),
        (5.0, None, 7.0, {"BELOW", "NO_MORE", "NO_MORE_OR_BEYOND"}),
        (5.0, 5.0, None, {"LEAST"}),
        (3.0, 5.0, None, set()),  # a value below its bound is no optimum
    ],
)
def test_claims_hold_where_their_words_do(
    value: float | None, least: float | None, printed: float | None, true: set[str]
) -> None:
    names = ("LEAST", "BELOW", "NO_MORE", "ABOVE", "EQUAL", "BOUND_EQUAL", "BEYOND", "NO_MORE_OR_BEYOND")
    assert {name for name in names if getattr(claims, name).holds(held(value, least, printed))} == true


def test_within_and_the_numbers_of_statements() -> None:
    cases = [held(10.0, 9.0, 20.0), held(8.0, 8.0, 8.0), held(9.0, 8.2, 6.0)]
    assert [claims.within(0.1).holds(case) for case in cases] == [True, True, True]
    assert [claims.within(0.09).holds(case) for case in cases] == [False, True, True]
    found = numbers(cases)
    assert [found[key] for key in ("cases", "met", "lower", "higher", "beyond")] == [3, 1, 1, 1, 1]
    assert (found["most_times"], found["least_times"], found["largest_gap"]) == ("2×", "0.667×", "10.00 %")
    assert exactly(0.00198399, "s") == "1.98399 ms"
    assert exactly(46 * 2.0**20, "bytes") == "46 MiB"
    assert exactly(19.0, "steps") == "19 steps"


def rows() -> list[dict[str, str]]:
    with (PUBLISHED / "findings/cases.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_row_names_records_that_hold_what_it_says() -> None:
    """The check accepts every published record (`tests/test_readme.py`); here: they are there, and say the same."""
    assert len(rows()) > 500
    for row in rows():
        found = []
        for address in row["records"].split():
            place = packed.holding(PUBLISHED / address)
            assert place is not None, address
            found.append(place[0].data(place[1]))
        assert all(data["verified"]["ok"] and data["instance_sha256"] == row["instance_sha256"] for data in found), row
        if row["unit"] == found[0]["objective"]["unit"]:
            assert not row["ours"] or float(row["ours"]) == found[0]["objective"]["value"]
            same = [data for data in found if row["bound"] and data["bound"] == float(row["bound"])]
            grades = ["certified" if data["kind"] == "bound" or data.get("certificate") else "solver" for data in same]
            assert not row["bound"] or grades
            assert row["grade"] != "certified" or "certified" in grades or not row["bound"]
            assert row["grade"] in ("certified", "replayed", "counted") or grades == ["solver"]


def sections(text: str | None = None) -> dict[str, str]:
    """What the page says of every finding, by its name."""
    text = (PUBLISHED / "findings.md").read_text() if text is None else text
    parts = re.split(r"^### (.+)\n", text.partition("\n## How to read this")[0], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_finding_has_a_line_and_a_section() -> None:
    text = (PUBLISHED / "findings.md").read_text()
    names = [finding.name for findings in page.stated().values() for finding in findings]
    assert list(sections()) == names, "`synth reproduce findings`"
    assert re.findall(r"^\| \[([\w-]+)\]\(#\1\)", text, re.MULTILINE) == names
    assert "](findings/ratios.png)" in text
    assert not list((PUBLISHED / "findings").glob("*.md"))


def test_a_section_shows_a_picture_or_its_cases() -> None:
    """Every picture of the folder stands in its section; a finding with a few cases and no picture lists them all."""
    drawn = {path.stem for path in (PUBLISHED / "findings").glob("*.png")} - {"ratios"}
    told, cases = sections(), {name: [row for row in rows() if row["finding"] == name] for name in sections()}
    assert {name for name, text in told.items() if f"](findings/{name}.png)" in text} == drawn
    listed = [name for name in told if name not in drawn and 0 < len(cases[name]) <= page.LISTED]
    assert len(listed) > 10
    assert [name for name in listed if not all(f"| {row['case']} " in told[name] for row in cases[name])] == []


@pytest.mark.slow
def test_every_row_passes_the_check_and_makes_the_page_again(tmp_path: Path) -> None:
    text, told = (PUBLISHED / "findings.md").read_text(), sections()
    again, shown = page.make(tmp_path, Path("results/published"), Reproduction(tmp_path / "scratch"))
    assert all(one.statement in told[one.finding.name] for group in shown.values() for one in group)
    if "Left out" not in again.read_text():  # with the real data
        assert again.read_text() == text
        assert (tmp_path / "findings/cases.csv").read_text() == (PUBLISHED / "findings/cases.csv").read_text()


def test_nothing_rests_on_a_solver_without_saying_so() -> None:
    """Of cases as they stand in the file, whether the page lists them or not; a value of a claim on no bound aside."""
    told = sections()
    assert len(told) > 40
    on_solver = {row["finding"] for row in rows() if re.match(r"(HiGHS|CP-SAT|SCIP|Gurobi) [\d.]+, seed", row["grade"])}
    assert on_solver
    for name in on_solver:
        assert re.search(r"rests? on a solver alone: (HiGHS|CP-SAT|SCIP|Gurobi)", told[name]), name


COVERED = {  # errata of the papers' pages that findings with records carry
    "TE-CCL, NDv2 with two chassis: node 0 is a switch": "te-ccl-fifteen",
    "TE-CCL, times below what its machine allows": "te-ccl-below-bound",
    "TE-CCL, its search for the fewest epochs": "te-ccl-epochs",
    "TE-CCL, finer epochs that give longer schedules": "te-ccl",  # a fact of its own results alone
}


def test_every_erratum_of_a_page_is_among_the_findings() -> None:
    told = sections()
    text = "\n".join(told.values())
    for path in PUBLISHED.glob("*.md"):
        errata = path.read_text().partition("\n## Errata\n")[2].partition("\n## ")[0]
        for where in re.findall(r"^\d+\. \*\*(.+?)\.\*\* ", errata, re.MULTILINE):
            assert f"* **{where}.** " in text or COVERED.get(where) in told, f"{path.name}: {where}"


def test_the_printed_command_makes_the_record_again(tmp_path: Path) -> None:
    place = "xtree/equimesh-2x3-c4/pull.json"
    record = records.read(Path("results/published") / place)
    [command] = commands([record], Path("results/published"))
    done = RUN.invoke(app, [*command.split()[1:], "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    made = records.read(tmp_path / place)
    assert (made.value, made["instance_sha256"]) == (record.value, record["instance_sha256"])


def test_commands_say_how_a_record_was_made() -> None:
    root = Path("results/published")
    program = records.read(root / "bine/groups-13-root5-broadcast/tree_ilp-highs.json")
    assert commands([program], root) == [
        "synth solve instances/bine/groups-13-root5-broadcast.json -m tree_ilp --solver highs --time-limit 20s"
    ]
    made = records.read(root / "peers/tacos/fabric/torus-32x32-allgather-1000KiB/pull.json")
    assert commands([made, made], root) == [
        "synth solve results/published/peers/tacos/fabric/torus-32x32-allgather-1000KiB/pull.json -m pull"
        " --results results/peers/tacos"
    ]


@pytest.mark.parametrize("family", sorted(page.stated()))
def test_a_finding_says_where_the_authors_state_theirs(family: str) -> None:
    """Figures are printed, or in the authors' data or code; a run of ours of their algorithm is our reading of it."""
    for finding in page.stated()[family]:
        cases = finding.cases(PUBLISHED) if callable(finding.cases) else finding.cases
        stated = {"printed", "data", "code"} & set(finding.sources)
        assert all(stated for case in cases if case.printed is not None), finding.name
        assert all("reading" in finding.sources for case in cases if case.published), finding.name
        assert bool(finding.sources) == bool(cases), finding.name
        assert finding.sources != ("open",) or finding.kind == "settles", finding.name


def test_names_are_unique_and_every_family_states_some() -> None:
    known = page.stated()
    assert set(known) == {"bine", "fabric", "harvest", "mlfm", "optree", "xtree"}
    assert all(finding.cases or finding.errata for group in known.values() for finding in group)


@pytest.mark.long
def test_the_cases_of_a_finding_are_drawn_as_shares_of_the_published() -> None:
    """19 steps of 70 at 1024 nodes and 64 wavelengths; of two cases the table is the picture."""
    whole = next(finding for finding in OPTREE if finding.name == "optical-ring")
    shown = Evidence(PUBLISHED).shown(whole)
    drawn = draw_cases(shown)
    assert drawn is not None
    (axes,) = drawn.axes
    ours, bound = (dict(zip(line.get_ydata(), line.get_xdata(), strict=True)) for line in axes.lines[:2])
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert ours[rows.index("N = 1024, w = 64")] == pytest.approx(19 / 70)
    assert list(ours.values()) == sorted(ours.values())
    assert bound == ours  # all six are optimal
    assert draw_cases(Evidence(PUBLISHED).shown(RING)) is None
