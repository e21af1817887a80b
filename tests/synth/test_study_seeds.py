"""Seeds belong together in a study, and what no seed changes runs once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.family import Family, families
from synth.study import load, measures

ROOT = Path(__file__).resolve().parents[2]


@cache
def file_of(module: str) -> Path | None:
    for base in (ROOT, ROOT / "models"):
        path = base.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def reached(module: str, seen: set[Path]) -> set[Path]:
    """The files of our families that a module imports, over all ways."""
    file = file_of(module)
    if file is None or file in seen:
        return seen
    seen.add(file)
    for node in nodes_of(file):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("synth_models", "synth_peers")):
            for name in ("", *(f".{alias.name}" for alias in node.names)):
                reached(f"{node.module}{name}", seen)
    return seen


@cache
def nodes_of(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text())))


@cache
def draws_at_random(file: Path) -> bool:
    nodes = nodes_of(file)
    return any(isinstance(node, ast.Attribute) and node.attr in ("seed", "default_rng", "random") for node in nodes)


@pytest.mark.parametrize("family", list(families()), ids=lambda family: family.name)
def test_what_is_called_seedless_reads_no_seed(family: Family) -> None:
    """By the source of all that a method imports of its family, whatever the family's data say."""
    for name in family.seedless:
        method = family.methods[name]
        assert method.kind == "reference"
        assert not any(draws_at_random(file) for file in reached(method.target.partition(":")[0], set())), name


@pytest.mark.long
def test_a_study_over_seeds_runs_what_is_deterministic_once(tmp_path: Path) -> None:
    """Three seeds: bound and ring once, tacos thrice; one row each, with the mean, spread and wins by hand."""
    ring = ROOT / "instances/xtree/ring-8-c1.json"
    file = tmp_path / "s.toml"
    file.write_text(
        f'name = "s"\ninstances = ["{ring}"]\n[[run]]\nmethods = ["bound", "tacos", "multitree"]\nseeds = [5, 6, 7]\n'
    )
    prepared = load(file).prepare(tmp_path / "s")
    runs = [(run.method.name, run.options.seed) for run in prepared.runs]
    assert sorted(runs) == [("bound", 5), ("multitree", 5), ("tacos", 5), ("tacos", 6), ("tacos", 7)]
    done = CliRunner().invoke(app, ["study", str(file), "--results", str(tmp_path), "-j", "1"])
    assert done.exit_code == 0, done.output
    assert "all runs: limit 60.0 s, gap 0.01 %, threads 1" in done.output
    table = pd.read_csv(tmp_path / "s" / "table.csv", keep_default_na=False, na_values=[""])
    assert sorted(table["label"]) == ["bound", "multitree", "tacos seed5", "tacos seed6", "tacos seed7"]
    rows = {row["label"]: row for row in measures.over_seeds(table).to_dict("records")}
    assert sorted(rows) == ["bound", "multitree", "tacos"]
    values = table.loc[table["method"] == "tacos", "value"]
    assert rows["tacos"]["value"] == pytest.approx(sum(values) / 3)
    assert rows["tacos"]["spread"] == pytest.approx((max(values) - min(values)) / min(values))
    assert rows["tacos"]["wins"] == sum(value == min(table["value"].dropna()) for value in values)
    page = (tmp_path / "s" / "report.html").read_text()
    assert "tacos seed5" not in page
    assert (tmp_path / "s" / "summary-methods.tex").read_text().count("\\\\") == 4  # the head and three methods
    for suffix in ("pdf", "svg", "png"):
        assert (tmp_path / "s" / "figures" / f"gaps.{suffix}").is_file()
    words = ["study", str(file), "--results", str(tmp_path), "--collect", "--each-seed", "--style", "paper"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "tacos seed5" in (tmp_path / "s" / "report.html").read_text()


def test_labels_carry_only_what_differs() -> None:
    from types import SimpleNamespace

    from synth.study.table import _told_apart

    variants = pd.Series(["seed0-20s-fold=on", "seed0-60s-fold=on", "seed0-20s-fold=on", "seed0-20s"])
    table = pd.DataFrame({"family": "f", "instance": "i", "method": ["a", "a", "b", "c"], "solver": ""})
    found = [SimpleNamespace(label=name) for name in "aabc"]
    assert _told_apart(table, found, variants) == ["a 20s", "a 60s", "b", "c"]  # type: ignore[arg-type]
