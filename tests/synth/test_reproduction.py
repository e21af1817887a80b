"""Pages of printed numbers beside ours: what is collected, how it is written, and that a second run changes nothing."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import synth
from synth.cli import reproduce
from synth.cli.main import app
from synth.errors import InputError
from synth.family import family_names, get_family
from synth.method import Verdict
from synth.records.folder import read_all
from synth.records.record import Record
from synth.reproduction.collect import SOURCES, Reproduction
from synth.reproduction.page import comparisons_table, page_text, shown, write_page
from synth.reproduction.printed import Printed
from synth.reproduction.stored import GAP_LINE
from synth_papers.harvest import topologies_page

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results" / "published"
PAPERS = ROOT.parent / "shared" / "papers" / "README.md"
RUN = CliRunner()


def page(tmp_path: Path, **options: object) -> Reproduction:
    return Reproduction(tmp_path / "xtree", instances=ROOT / "instances", **options)  # type: ignore[arg-type]


def test_page_shows_everything_collected(tmp_path):
    made = page(tmp_path)
    steps = Printed(where="Table 1", of="steps", value=128, unit="steps", erratum="Table 1, one stage",
                    remark="their | misprint, {erratum}")  # fmt: skip
    made.compare(steps, 2048.0)
    made.beside(steps, "steps of ours", 19, "a schedule")
    made.compare(Printed(where="Figure 2", of="speedup", value="about 2", unit="x"), None)
    made.erratum("Table 1, one stage", "128.", "2048.", "1024^2 / 8 / 64 = 2048.")
    made.table("Steps", pd.DataFrame({"n": [1, 2], "ratio": [0.5, None]}), file="steps")
    figure = Figure()
    figure.subplots().plot([1, 2])
    made.figure(figure, "line", "A line.")
    made.note("A choice.")
    made.skip("no data")
    text = re.sub(" +", " ", page_text(made, get_family("xtree"), tmp_path))  # columns are padded
    assert "| Table 1 | steps | 128 | 2048 | +1500.00 % | steps | their \\| misprint, erratum 1 |" in text
    assert "| Table 1 | steps of ours | 128 | 19 | -85.16 % | steps | a schedule |" in text
    assert "| Figure 2 | speedup | about 2 | – | – | x | |" in text
    assert "Printed: 128. Corrected: 2048." in text
    assert "Computed: 1024^2 / 8 / 64 = 2048." in text
    assert "| 1 | 0.5 |\n| 2 | – |" in text
    assert "![A line.](xtree/line.png)" in text
    assert "* A choice." in text
    assert text.index("* no data") < text.index("## Printed numbers")
    assert (tmp_path / "xtree" / "steps.csv").read_text() == "n,ratio\n1,0.5\n2,\n"
    assert comparisons_table(made)["difference"].tolist()[0] == 15
    with pytest.raises(ValueError, match="Table 1, steps: is compared twice"):
        made.compare(steps, 2048.0)


def test_a_page_may_open_with_its_answer_and_picture(tmp_path):
    """Without an answer pictures stand behind the tables; with one right behind it, before any table, and once."""
    pages = []
    for answer in ("", "Forty-two."):
        made = Reproduction(tmp_path / "xtree")
        made.table("T", pd.DataFrame({"gap": ["0"]}))
        made.figure(Figure(), "f", "The caption.")
        if answer:
            made.opens(answer)
        pages.append(page_text(made, get_family("xtree"), tmp_path))
    without, opened = pages
    assert without.index("## T") < without.index("## Figures") < without.index("The caption.")
    assert opened.index("Forty-two.") < opened.index("(xtree/f.png)") < opened.index(GAP_LINE) < opened.index("## T")
    assert "## Figures" not in opened
    assert opened.count("(xtree/f.png)") == 1


def test_same_figure_same_bytes(tmp_path):
    for name in ("a", "b"):
        figure = Figure()
        figure.subplots().plot([3, 1, 2])
        made = page(tmp_path / name)
        made.figure(figure, "line", "")
        write_page(made, get_family("xtree"), tmp_path / name / "xtree.md")
    for file in ("xtree/line.png", "xtree.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (True, "yes"), (3.0, "3"), (0.123456789, "0.123457"), (4139120.4, "4 139 120"),
     ("x", "x"), (7, "7")],
)  # fmt: skip
def test_cells(value, text):
    assert shown(value) == text


def test_solve_keeps_records_and_takes_them_again(tmp_path):
    made = page(tmp_path)
    instance = made.shipped("xtree", "equimesh-2x3-c1")
    [(_, first)] = made.solve([instance], ["pull"])
    assert first.path == tmp_path / "xtree" / "equimesh-2x3-c1" / "pull.json"
    before = first.path.stat().st_mtime_ns
    [(_, again)] = made.solve([instance], ["pull"])
    assert again.path is not None
    assert again.path.stat().st_mtime_ns == before
    [(_, other)] = made.solve([instance], {"pull": {"restarts": "3"}})
    assert other["options"]["method"] == {"restarts": 3}


def test_the_page_says_what_its_bounds_rest_on(tmp_path):
    """A certified bound, one that is the solver's word (a second look at the record counts once), no bound: no word."""
    made = page(tmp_path, quick=True)
    assert made.grades() == ""
    job = made.shipped("bine", "groups-5-3-8-reduce")
    for methods in (["bound", "tree_ilp", "bine"], ["tree_ilp"]):
        assert all(record.ok for _, record in made.solve([job], methods))
    counted = "1 certified (the check derives them again from certificates). Stated by a solver alone: 1 HiGHS."
    assert counted in page_text(made, get_family("bine"), tmp_path)


def test_a_study_file_is_run_into_the_published_layout(tmp_path):
    folder = tmp_path / "instances" / "studies"
    folder.mkdir(parents=True)
    (folder / "two.toml").write_text(
        'name = "two"\n[[generate]]\nfamily = "xtree"\n'
        'parameters = { network = "ring", nodes = [4, 5], chunks = 1 }\n[[run]]\nmethods = ["bound", "pull"]\n'
    )
    made = Reproduction(tmp_path / "out" / "xtree", instances=tmp_path / "instances")
    found = {(instance.name, record["method"]): record for instance, record in made.study("two")}
    assert found["ring-4-c1", "bound"].bound == found["ring-4-c1", "pull"].value == 2
    assert found["ring-5-c1", "pull"].path == tmp_path / "out" / "xtree" / "ring-5-c1" / "pull.json"
    assert len(list(made.study("two"))) == 4
    (folder / "two.toml").write_text((folder / "two.toml").read_text() + "seeds = [0, 1]\n")
    with pytest.raises(InputError, match="several variants"):
        list(made.study("two"))


def test_a_failed_check_ends_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    verdict = Verdict(None, {}, ["a fault"])
    importlib.import_module("synth_papers.mlfm.page")  # else it would take the patched function for ever
    monkeypatch.setattr("synth_models.mlfm.check.replay.check_phases", lambda *_: verdict)
    done = RUN.invoke(app, ["reproduce", "mlfm", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "a fault" in done.output
    assert not (tmp_path / "mlfm.md").exists()


def test_an_instance_made_for_a_page_is_found_by_the_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = page(tmp_path)
    small = synth.make("xtree", **{"network": "ring", "nodes": "4"})
    [(_, record)] = made.solve([made.keep(small, "part")], ["pull"], part="part")
    assert record.path == tmp_path / "xtree" / "part" / "xtree" / small.name / "pull.json"
    assert synth.check(record.path).ok


def test_an_instance_is_the_shipped_one_where_there_is_one(tmp_path):
    """Its records then belong to no part; the page keeps one of another name in its own."""
    made = page(tmp_path)
    shipped, other = (synth.make("xtree", network="equimesh", rows="2", cols="3", chunks=c) for c in (1, 7))
    found, part = made.placed(shipped, "part")
    assert (found, part) == (made.shipped("xtree", "equimesh-2x3-c1"), "")
    found, part = made.placed(other, "part")
    assert (found.to_json(), part) == (other.to_json(), "part")
    assert [path.stem for path in (made.folder / "part").rglob("*.instance")] == ["equimesh-2x3-c7"]


def test_real_data_that_are_not_there_are_told(tmp_path):
    made = page(tmp_path, data=tmp_path)
    assert made.real_data("jobs.csv", "the jobs") is None
    assert made.skipped == ["the jobs: no jobs.csv in the data"]
    (tmp_path / "jobs.csv").touch()
    assert made.real_data("jobs.csv", "the jobs") == tmp_path / "jobs.csv"


def test_a_missing_instance_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json.*--instances"):
        page(tmp_path).shipped("xtree", "nothing")
    with pytest.raises(InputError, match=r"nothing\.toml.*--instances"):
        list(page(tmp_path).study("nothing"))


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "more_than"),
    [("bine", 5), pytest.param("mlfm", 20, marks=pytest.mark.slow), ("harvest-topologies", 5)],
)
def test_the_short_form_of_a_page_twice(tmp_path, monkeypatch, name, more_than):
    """A second run changes no byte of pages, tables and figures, and no record. Data that are missing are told of."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(topologies_page, "OPEN", ("binomial-broadcast-8-p2", "demand-6-bulk-p2"))  # quick ones
    contents = []
    for _ in range(2):
        words = ["--quick", "--out", str(tmp_path), "--data", str(tmp_path / "none")]
        done = RUN.invoke(app, ["reproduce", name, *words])
        assert done.exit_code == 0, done.output
        contents.append({path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
    assert contents[0] == contents[1]
    text = (tmp_path / f"{name}.md").read_text()
    assert "Left out of this run" in text
    assert "(--quick)" in done.output
    if name == "bine":
        assert "leonardo-jobs.csv.gz" in done.output
        assert "leonardo-jobs.csv.gz" in text
    assert {path.name for path in tmp_path.rglob("*.jsonl")} == {"records.jsonl"}
    assert not [*tmp_path.rglob("*.json"), *tmp_path.rglob("*.instance")]
    records = list(read_all([tmp_path]))
    assert len(records) > more_than
    assert all(isinstance(record, Record) and synth.check(record).ok for record in records)


def test_a_family_without_reproduction(monkeypatch, tmp_path):
    mlfm = dataclasses.replace(get_family("mlfm"), capabilities={})
    monkeypatch.setattr("synth.family.get_family", lambda name: mlfm)
    done = RUN.invoke(app, ["reproduce", "mlfm", "--out", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "mlfm has no reproduction" in str(done.exception)


def test_without_the_papers_the_command_says_where_they_are():
    """As from a wheel, in which they are not."""
    with pytest.raises(InputError, match=r"other_papers is not installed: .* in models/other_papers, not in its wheel"):
        reproduce._load_page("other_papers.mlfm.page:reproduce")


def test_an_unknown_paper_is_bad_input(tmp_path):
    done = RUN.invoke(app, ["reproduce", "nonsense", "--out", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "unknown page 'nonsense'; one of all, findings, " in str(done.exception)


SECTIONS = {"xtree": "xtree-equimesh.txt", "optree": "optree.txt", "mlfm": "mlfm.txt", "bine": "bine-trees.txt"}
NAMED = {  # what every erratum of ../shared/papers/README.md is about, as the page says it
    "xtree": ["all n positions are in the ring"],
    "mlfm": ["m <= l-1 <= d"],
    "bine": ["In their data: the per-job data", "57.14 %", "no outlier above the 33 %"],
    "optree": [
        "128 steps", "rounding up is not always best", "155 steps, 40.15 %", "depth 5, 6, 7 with 32 steps",
        "depth 6, 7 with 70 steps", "depth 8 with 340 steps", "is w = 128", "second count 100 steps", "ceil(m^2/(4w))",
    ],
}  # fmt: skip


@pytest.mark.parametrize("paper", sorted(SECTIONS))
def test_published_page_proves_every_erratum(paper):
    text = re.sub(r"\s+", " ", (PUBLISHED / f"{paper}.md").read_text())
    assert "Left out of this run" not in text
    errata = text.split("## Errata")[1].split(" ## ")[0]
    for words in NAMED[paper]:
        assert words in errata
    stated = sum(errata.count(f"{words}:") for words in SOURCES.values())
    assert errata.count("Computed:") == stated > 0


@pytest.mark.skipif(not PAPERS.exists(), reason="needs ../shared/papers")
def test_no_erratum_of_the_papers_is_forgotten():
    """Every section that states errata belongs to a paper whose page is tested above (harvest brings its own)."""
    sections = re.split(r"\n## ", PAPERS.read_text())[1:]
    stated = {section.split(".txt")[0] + ".txt" for section in sections if "**Errat" in section}
    assert stated - {"harvest.txt"} == set(SECTIONS.values())
    assert set(SECTIONS) <= set(family_names())
