"""Equations: every number on a family's page is a function of the program's model file, and the other way round; the
variables and rows of exported models are named for what they mean.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import highspy
import pytest
from exchange.test_export import asked

from synth.exchange.record_export import write_model

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
FAMILIES = sorted({page.stem.partition("-")[0] for page in MODELS.glob("*.md")} - {"README"})
LINK = r"\[`[^`]+`\]\((synth_(?:models|peers)/[^)]+\.py)\)"
FILES_HERE = re.compile(rf"numbered\s+as\s+in\s+((?:(?:,\s|\sand\s)?[^.:\[]*{LINK})+)")
STATED = re.compile(r"\\tag\{([^}]*)\}|^\| \((\d+)\) \|", re.MULTILINE)
CITED = re.compile(r"\((\d+)\)(?:, \((\d+)\))*")
PART = r"(?:[a-z]+\d+|[a-z]+)"


def stated(family: str) -> dict[str, list[str]]:
    """The numbers that a family's pages (``fabric.md``, ``fabric-methods.md``) state, by model file: those after
    "numbered as in" it, up to the next or a heading."""
    found: dict[str, list[str]] = {}
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(MODELS.glob(f"{family}*.md")))
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        marks = list(FILES_HERE.finditer(section))
        alone = section[: marks[0].start() if marks else len(section)]
        assert not STATED.search(alone), alone
        ends = [mark.start() for mark in marks[1:]] + [len(section)]
        for mark, end in zip(marks, ends, strict=False):
            text = section[mark.end() : end]
            numbers = [n.strip() for pair in STATED.findall(text) for n in (pair[0] or pair[1]).split(",")]
            for file in re.findall(LINK, mark.group()):
                found.setdefault(file, []).extend(numbers)
    return found


def programs() -> list[Path]:
    """The files of all programs, the peers' too."""
    return [file for folder in ("models", "peers") for file in MODELS.glob(f"synth_{folder}/*/programs/**/*.py")]


@cache
def functions(file: Path) -> list[tuple[str, str]]:
    """All functions and methods of a file with their docstrings."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [(node.name, ast.get_docstring(node) or "") for node in nodes if isinstance(node, ast.FunctionDef)]


def cited(file: Path) -> list[str]:
    """The numbers that the functions of a file cite, which their docstrings begin with."""
    heads = [CITED.match(words) for _, words in functions(file)]
    return [number for head in heads if head for number in re.findall(r"\d+", head.group())]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_and_the_model_file_state_the_same_equations(family: str) -> None:
    """Each number once on the family's pages for a file, and cited by exactly one function of it."""
    found = stated(family)
    assert found
    for file, numbers in found.items():
        assert Counter(cited(MODELS / file)) == Counter(numbers), file
        assert max(Counter(numbers).values()) == 1, file


def test_every_file_whose_functions_cite_equations_is_on_its_page() -> None:
    known = {file for family in FAMILIES for file in stated(family)}
    citing = {str(file.relative_to(MODELS)) for file in programs() if cited(file)}
    assert citing <= known


BARE = {"counting": "off", "warm_start": "off"}
WRITTEN = [
    ("xtree/equimesh-2x3-c2", "ilp", "highs", BARE | {"relaxation": "off"}), ("xtree/ring-8-c1", "ilp", "highs", BARE),
    ("xtree/mesh-2x3-c1-allreduce", "ilp", "highs", BARE), ("optree/ring-5-w2", "rwa", "highs", {}),
    ("optree/ring-8-w2", "stages", "highs", {"by": "program"}), ("mlfm/d4-n2l2m4-detour", "ilp", "highs", {}),
    ("mlfm/d3-n2l3m2", "ilp", "highs", {"decompose": "off"}), ("bine/groups-3-6-7-scatter", "tree_ilp", "highs", {}),
    ("bine/groups-4-4-8-broadcast-g2-roundrobin-costs-0-1-4", "tree_ilp", "highs", {}),
    ("bine/groups-2-3-3-allreduce-large-g2-costs-0-1-3-butterfly", "placement", "highs", {}),
    ("harvest/recursive-doubling-4-p1", "misocp", "highs", {}),
    ("harvest/recursive-doubling-8-p2", "misocp", "highs", {}),
    ("harvest/recursive-doubling-8-circuits-p1", "misocp", "highs", {}),
    ("fabric/star-6-scatter-6KiB", "flow", "highs", {}), ("fabric/kautz-12x3-alltoall-12MiB", "flow", "highs", {}),
    ("fabric/full-4-allgather-4KiB", "epochs", "highs", {"counting": "off", "start": "off", "chunks": "2"}),
    ("fabric/kautz-12x3-alltoall-12MiB", "epochs", "highs", {"counting": "off", "start": "off"}),
    ("fabric/full-4-allgather-4KiB", "steps", "highs", {"steps": "1", "rounds": "2"}),
    ("fabric/ring-5-allreduce-5MiB", "steps", "highs", {"steps": "3", "rounds": "3"}),
]  # fmt: skip


@cache
def equations() -> set[str]:
    """Names of the functions of all programs."""
    files = [*programs(), *MODELS.glob("synth_models/*/bounds/*.py")]
    return {name.lstrip("_") for file in files for name, _ in functions(file)}


@pytest.mark.parametrize(("instance", "method", "solver", "own"), WRITTEN)
@pytest.mark.parametrize("form", ["lp", "mps"])
def test_exported_names_say_what_they_mean(
    instance: str, method: str, solver: str, own: dict[str, str], form: Any, tmp_path: Path
) -> None:
    """``send_k3_a12_t2``: a name, then a letter and a number (or a word) a part of the index; a row's name is that of
    the function that states it. Unique, as a solver reads them."""
    path = tmp_path / f"model.{form}"
    write_model(asked(instance, method, solver), form, path, parameters=own)
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    lp = highs.getLp()
    for names in (list(lp.col_names_), list(lp.row_names_)):
        assert len(set(names)) == len(names)
        assert [name for name in names if not re.fullmatch(rf"_?{PART}(?:_{PART})*", name)] == []
    families = {re.sub(r"_[a-z]+\d+.*", "", name) for name in lp.row_names_}
    known = equations() | {"constant_one"}  # of an objective's constant
    assert [one for one in families if not any((one + "_").startswith(name + "_") for name in known)] == []
    assert any(re.search(r"\d", name) for name in lp.col_names_)


CP_SAT = [
    ("xtree/ring-8-c1", "cpsat", BARE | {"relaxation": "off"}), ("xtree/mesh-2x3-c1-allreduce", "cpsat", BARE),
    ("optree/ring-5-w2", "rwa", {}), ("optree/mesh-3x3-w1", "time_expanded", {}),
    ("mlfm/d4-n2l2m4-detour", "cpsat", {}),
    ("mlfm/d3-n2l3m2", "cpsat", {"decompose": "off"}), ("mlfm/d3-n2l4m3-spine", "columns", {}),
    ("bine/groups-2-3-3-allreduce-large-g2-costs-0-1-3-butterfly", "placement", {}),
    ("fabric/full-4-allgather-4KiB", "steps", {"steps": "1", "rounds": "2"}),
]  # fmt: skip


@pytest.mark.parametrize(("instance", "method", "own"), CP_SAT)
def test_variables_of_cp_sat_have_the_same_names(
    instance: str, method: str, own: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "model.pbtxt"
    write_model(asked(instance, method, "cpsat"), "cpsat", path, parameters=own)
    variables = path.read_text(encoding="utf-8").split("\nconstraints {")[0]
    names = re.findall(r'name: "([^"]*)"', variables)
    assert len(names) == len(set(names)) == variables.count("variables {")
    assert [name for name in names if not re.fullmatch(rf"{PART}(?:_{PART})*", name)] == []
