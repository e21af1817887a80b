"""``synth study``: what is run, what is written, and the comparison of two studies."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.errors import InputError
from synth.study import load
from synth.study.collect import collect
from synth.study.compare import compare

STUDY = """
name = "small"
title = "Small <b>networks</b>"
instances = ["{instances}/equimesh-2x3-c1.json", "{instances}/ring-8-c1.json"]
baselines = ["xtree"]

[[generate]]
family = "xtree"
parameters = {{ network = "torus", rows = [2, 3], cols = 3, chunks = 1 }}

[[run]]
methods = ["bound", "xtree", "pull"]
seeds = [0, 1]

[[run]]
methods = ["ilp"]
solvers = ["highs", "cpsat"]
time_limits = ["20s"]
options = {{ warm_start = false }}
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(STUDY.format(instances=Path("instances/xtree").resolve()))
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    path = folder / "small.toml"
    path.write_text(STUDY.format(instances=Path("instances/xtree").resolve()))
    result = run("study", path, "--results", folder / "results", "--jobs", 2)
    assert result.exit_code == 0, result.output
    return folder / "results" / "small", result.output


def test_runs_are_the_product(file, tmp_path):
    study = load(file)
    prepared = study.prepare(tmp_path / "out")
    runs = prepared.runs
    assert len(runs) == 4 * (1 + 2 * 2 + 1)  # no seed changes the bound; ilp does not run with cpsat
    assert prepared.left_out == ("xtree ilp does not run with cpsat",)
    assert len({one.path for one in runs}) == len(runs)
    ilp = [one for one in runs if one.method.name == "ilp"]
    assert {one.options.method["warm_start"] for one in ilp} == {False}
    assert {one.options.time_limit_s for one in ilp} == {20.0}
    assert {one.instance.name for one in runs} >= {"torus-2x3-c1", "torus-3x3-c1", "ring-8-c1"}
    assert {one.options.time_limit_s for one in study.with_options("5s").prepare(tmp_path / "out").runs} == {5.0}


def test_a_family_is_a_study_of_its_instances(tmp_path):
    runs = load("optree").prepare(tmp_path).runs
    assert {one.instance.name for one in runs} == {path.stem for path in Path("instances/optree").glob("*.json")}


SHIPPED = sorted(Path("instances/studies").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_study_has_runs(tmp_path, path):
    study = load(path).prepare(tmp_path)
    assert study.runs
    families = {instance.family for instance in study.instances}
    if path.stem == "synth-lib-solvers":  # of the library, whatever the family
        assert families == {"bine", "harvest", "mlfm", "optree", "xtree"}
        assert {run.options.solver for run in study.runs} == {None, "highs", "scip", "gurobi", "cpsat"}
    else:
        assert families == {path.stem.split("-")[0]}


def test_shipped_studies_differ_in_name():
    names = [tomllib.loads(path.read_text())["name"] for path in SHIPPED]
    assert names
    assert len(set(names)) == len(names)


def test_every_fault_of_a_study_file_is_named(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        'name = "a b"\ninstances = ["nothing-here.json"]\ncolour = 1\nfigures = ["pie"]\n[[run]]\nseeds = [-1]\n'
    )
    with pytest.raises(InputError) as caught:
        load(path)
    text = str(caught.value)
    for part in ("name", "colour: unknown key", "figures[0]", "run[0].seeds[0]"):
        assert part in text
    path.write_text('name = "b"\ninstances = ["nothing-here.json"]\n[[run]]\ntime_limits = ["soon"]\n')
    with pytest.raises(InputError) as caught:
        load(path)
    assert "nothing-here.json" in str(caught.value)
    assert "time_limits" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not valid TOML"),
        ('name = "x"\ninstances = ["{i}"]\n[[run]]\nonly = ["torus-*"]\n', "torus-"),
        ('name = "x"\n', "needs instances"),
        ('name = "x"\ninstances = ["{i}"]\nbaselines = ["magic"]\n', "baselines = 'magic'"),
        ('name = "x"\ninstances = ["{i}"]\n[[run]]\nmethods = ["magic"]\n', "magic"),
        ('name = "x"\ninstances = ["{i}"]\n[[run]]\nsolvers = ["cplex"]\n', "cplex"),
        ('name = "x"\ninstances = ["{i}"]\n[[run]]\nmethods = ["ilp"]\noptions = {{ horizon = 0 }}\n', "horizon"),
        ('name = "x"\ninstances = ["{i}"]\n[[run]]\noptions = {{ depth_of_field = 1 }}\n', "depth_of_field"),
        ('name = "x"\n[[generate]]\nfamily = "xtree"\nparameters = {{ network = "moebius" }}\n', "moebius"),
    ],
)
def test_a_bad_study_runs_nothing(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text.format(i=Path("instances/xtree/ring-8-c1.json").resolve()))
    with pytest.raises(InputError, match=message):
        load(path).prepare(tmp_path / "out")
    assert not (tmp_path / "out" / "records").exists()


def test_no_study_of_that_name():
    with pytest.raises(InputError, match="families: "):
        load("no-such-family")


@pytest.mark.long
def test_a_study_writes_table_figures_and_report(finished):
    folder, output = finished
    table = pd.read_csv(folder / "table.csv")
    assert len(table) == 24
    assert list(pd.read_parquet(folder / "table.parquet").columns) == list(table.columns)
    assert set(table["status"]) == {"ok"}
    assert (table["best_bound"] <= table["best_value"]).all()
    assert (folder / "figures" / "gaps.svg").stat().st_size > 1000
    assert (folder / "figures" / "gaps.png").stat().st_size > 1000
    assert "24/24" in output
    [row] = [line for line in output.splitlines() if line.startswith("│ xtree  │ pull")][:1]
    assert re.fullmatch(r"[0-9.]+ (us|ms|s)", row.strip("│").split("│")[-1].strip())  # time in a unit one reads
    assert "left out: xtree ilp does not run with cpsat" in output
    [names] = [line.partition(": ")[2] for line in output.splitlines() if line.startswith(f"{folder}: ")]
    assert "figures/gaps.pdf" in names
    assert all((folder / name).is_file() for name in names.split(", "))
    page = (folder / "report.html").read_text()
    assert "<b>networks</b>" not in page  # a title is text
    assert "Small &lt;b&gt;networks" in page
    for forbidden in ('src="http', "@import", 'href="http', "cdn"):
        assert forbidden not in page.replace("http://www.w3.org", "")


@pytest.mark.long
def test_resume_runs_nothing_again(finished):
    folder, _ = finished
    before = {path: path.stat().st_mtime_ns for path in (folder / "records").rglob("*.json")}
    result = run("study", folder.parents[1] / "small.toml", "--results", folder.parent, "--resume")
    assert result.exit_code == 0
    runs = len(before)
    assert f"kept {runs} of {runs} runs as they were" in result.output
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "records").rglob("*.json")}


@pytest.mark.long
def test_comparison_names_every_regression(finished, tmp_path):
    folder, _ = finished
    other = tmp_path / "B"
    shutil.copytree(folder, other)
    assert compare(folder, other).regressions.empty
    change = {
        "seed0-60s/xtree/ring-8-c1/pull.json": lambda data: data["objective"].update(value=9.0),
        "seed0-60s/xtree/ring-8-c1/bound.json": lambda data: data.update(bound=3.0),
        "seed1-60s/xtree/ring-8-c1/pull.json": lambda data: data["seconds"].update(solve=1000.0),
        "seed0-60s/xtree/equimesh-2x3-c1/xtree.json": lambda data: data.update(termination="killed"),
        "seed1-60s/xtree/equimesh-2x3-c1/xtree.json": lambda data: data.update(instance_sha256="0" * 64),
    }
    for name, edit in change.items():
        path = other / "records" / name
        data = json.loads(path.read_text())
        edit(data)
        path.write_text(json.dumps(data))
    (other / "records/seed1-60s/xtree/torus-2x3-c1/pull.json").unlink()
    found = compare(folder, other)
    why = {(r["instance"], r["method"], r["seed"]): r["why"] for r in found.regressions.to_dict("records")}
    assert "value worse" in why["ring-8-c1", "pull", 0]
    assert why["ring-8-c1", "bound", 0] == "bound weaker"
    assert "times slower" in why["ring-8-c1", "pull", 1]
    assert why["equimesh-2x3-c1", "xtree", 0] == "fails (killed)"
    assert "not comparable" in why["equimesh-2x3-c1", "xtree", 1]
    assert len(why) == 5
    assert found.only == (1, 0)
    result = run("study", "--compare", folder, other)
    assert result.exit_code == 0
    assert "5 of 23 runs are worse in B" in result.output
    assert run("study", "--compare", folder).exit_code != 0


@pytest.mark.long
def test_comparison_of_two_solvers(finished, tmp_path):
    """Study B has the programs by another solver: they are matched all the same, and a value worse is seen."""
    folder, _ = finished
    other = tmp_path / "B"
    shutil.copytree(folder, other)
    for path in sorted((other / "records").rglob("ilp-highs.json")):
        data = json.loads(path.read_text())
        data["solver"] = "scip"
        if data["instance"] == "ring-8-c1":
            data["objective"]["value"] += 1
        path.with_name("ilp-scip.json").write_text(json.dumps(data))
        path.unlink()
    found = compare(folder, other)
    assert found.only == (0, 0)
    assert len(found.rows) == 24
    ilp = found.rows[found.rows["method"] == "ilp"]
    assert set(ilp["solver"]) == {"highs / scip"}
    assert found.regressions["instance"].to_list() == ["ring-8-c1"]
    assert found.regressions["why"].str.contains("value worse").all()


@pytest.mark.long
def test_a_failed_run_is_shown_and_ends_with_1(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "results" / "small")
    path = tmp_path / "results/small/records/seed0-60s/xtree/ring-8-c1/pull.json"
    data = json.loads(path.read_text())
    data["verified"] = {"ok": False, "facts": {}, "faults": ["made to fail"]}
    data["objective"]["value"] = None
    path.write_text(json.dumps(data))
    study = tmp_path / "small.toml"
    study.write_text((folder.parents[1] / "small.toml").read_text())
    result = run("study", study, "--results", tmp_path / "results", "--collect")
    assert result.exit_code == 1
    assert "made to fail" in result.output
    assert '<tr class="failed">' in (tmp_path / "results/small/report.html").read_text()


@pytest.mark.long
def test_the_report_says_which_runs_are_missing_or_others(finished, tmp_path):
    """One record is taken away, and the study is read with another limit: those runs are all still to come."""
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "small")
    (tmp_path / "small/records/seed0-60s/xtree/ring-8-c1/pull.json").unlink()
    study = load(folder.parents[1] / "small.toml")
    collect(study.prepare(tmp_path / "small"))
    page = (tmp_path / "small/report.html").read_text()
    assert "1 of the study&#39;s 24 runs have no record yet" in page
    assert "with other limits" not in page
    collect(study.with_options("7s").prepare(tmp_path / "small"))
    page = (tmp_path / "small/report.html").read_text()
    assert "24 of the study&#39;s 24 runs have no record yet" in page
    assert "23 records are of runs with other limits" in page


@pytest.mark.long
def test_schedules_that_are_too_large_are_named(finished, monkeypatch):
    from synth.study import animation, report, table

    folder, _ = finished
    study = load(folder.parents[1] / "small.toml")
    instances = study.prepare(folder).instances
    found = table.read_records(folder)
    rows = table.build("small", folder, found)
    monkeypatch.setattr(report, "MOST_NODES", 6)
    drawn, undrawn = report._animations(rows, folder, found, instances)
    assert [one["title"].split(":")[0] for one in drawn] == ["equimesh-2x3-c1", "torus-2x3-c1"]
    assert undrawn == ["ring-8-c1: 8 nodes, more than 6", "torus-3x3-c1: 9 nodes, more than 6"]
    [first_one] = [one for one in instances if one.name == "equimesh-2x3-c1"]
    pulled = next(r for r in found if (r["method"], r["instance"]) == ("pull", first_one.name))
    whole = report._frames(pulled, first_one)
    assert not isinstance(whole, str)
    for most in (3, len(whole.step) // 2, len(whole.step) - 1):
        monkeypatch.setattr(animation, "MOST_MOVES", most)
        some = animation.as_data(whole)
        assert 0 < sum(map(len, some["moves"])) <= most
        assert some["sample"] == f"{sum(map(len, some['moves']))} of {len(whole.step)}"
    assert "not in the study any more" in report._animations(rows, folder, found, [])[1][0]


def test_nothing_collected_without_records(file, tmp_path):
    with pytest.raises(InputError, match="no records"):
        collect(load(file).prepare(tmp_path / "empty"))


def test_a_study_of_questions(tmp_path):
    """Each horizon is a run of its own, in the folder of the ordinary runs. What it found holds for the instance: on a
    ring of 8 no schedule has 3 timesteps (7 chunks over 2 links), one has 4."""
    ring = Path("instances/xtree/ring-8-c1.json").resolve()
    runs = "".join(f'[[run]]\nmethods = ["ilp"]\noptions = {{ horizon = {h} }}\n' for h in (3, 4))
    (tmp_path / "q.toml").write_text(f'name = "q"\ninstances = ["{ring}"]\n{runs}')
    result = run("study", tmp_path / "q.toml", "--results", tmp_path)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "q" / "table.csv")
    assert list(table["label"]) == ["ilp-highs-horizon=3", "ilp-highs-horizon=4"]
    assert set(table["variant"]) == {"seed0-60s"}
    assert list(table["termination"]) == ["infeasible", "optimal"]
    assert set(table["best_value"]) == set(table["best_bound"]) == {4}
