"""`--help` of every command on a terminal of 80 columns, and what a shell completes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from synth.cli.main import app
from synth.family import family_names, get_family
from synth.method import load

WIDTH = 80
LEAST = 44  # columns for the words that explain an option
SHIPPED = Path(__file__).resolve().parents[3] / "instances"


def commands() -> Iterator[tuple[str, ...]]:
    top = get_command(app)
    for name, command in top.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        yield from ((name, sub) for sub in inner) if inner else iter([(name,)])
    yield ()


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_fits_and_explains(words: tuple[str, ...]) -> None:
    """No line is wider, in a pipe too, no name is cut, explanations have room."""
    text = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(WIDTH)}).output
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " object at 0x" not in " ".join(text.split())  # what is required has no default
    options = [line for line in lines if re.match(r"  -", line)]
    assert options
    for line in options:
        assert not re.match(r"\s+\S*--?[a-z-]+…", line), line
        found = re.match(r"  (-\S, )?--[a-z-]+( \S+| <\w+ \w+>)?\s{2,}(?=\S)", line)
        if found:  # else the explanation begins on the next line
            assert WIDTH - found.end() >= LEAST, line


@pytest.mark.parametrize("family", family_names())
def test_the_keys_of_a_family_fit_and_its_examples_can_be_pasted(family: str) -> None:
    """The help of ``synth make FAMILY`` ends with every key and with the examples, folded as a shell takes it."""
    text = CliRunner().invoke(app, ["make", family, "--help"]).output
    assert max(map(len, text.splitlines())) <= WIDTH
    head, _, rest = text.partition(f"\nKeys of {family}:\n")
    keys, _, examples = rest.partition("\nExamples:\n")
    assert head.startswith("Usage:")
    assert "Options:" in head
    known = load(get_family(family).keys)
    assert set(re.findall(r"^  ([a-z]\S*)(?:  |$)", keys, re.MULTILINE)) == set(known.names())
    whole = [" ".join(line.split()) for line in examples.replace("\\\n", "").splitlines()]
    assert whole == [f"synth make {family} {example}" for example in known.examples]


def completed(*words: str) -> list[str]:
    """What bash would be offered for the last word."""
    line = " ".join(["synth", *words])
    env = {"_SYNTH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    return CliRunner().invoke(app, [], env=env, prog_name="synth").output.split()


@pytest.mark.parametrize("family", [name for name in family_names() if (SHIPPED / name).is_dir()])
def test_methods_of_the_instances_family_alone(family: str) -> None:
    own = set(get_family(family).methods)
    file = next((SHIPPED / family).glob("*.json"))
    assert set(completed("solve", str(file), "-m", "")) == own
    assert set(completed("solve", str(SHIPPED / family), "-m", "")) == own


def test_records_of_other_families_where_results_go_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a tour the folder ``results``, which an option has by default, holds records of all families."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "record.json").write_text(json.dumps({"family": "mlfm"}))
    monkeypatch.chdir(tmp_path)
    file = next((SHIPPED / "xtree").resolve().glob("*.json"))
    assert set(completed("solve", str(file), "-m", "")) == set(get_family("xtree").methods)


def test_methods_of_two_families_and_of_none(tmp_path: Path) -> None:
    files = [str(next((SHIPPED / name).glob("*.json"))) for name in ("xtree", "mlfm")]
    both = set(get_family("xtree").methods) | set(get_family("mlfm").methods)
    assert set(completed("solve", *files, "-m", "")) == both
    assert set(completed("solve", "-m", "")) > both
    (tmp_path / "odd.json").write_text("[" * 5000)
    (tmp_path / "wrong.json").write_text(json.dumps({"family": ["xtree"]}))
    for name in ("odd.json", "wrong.json"):  # completes all, and breaks nothing
        assert set(completed("solve", str(tmp_path / name), "-m", "")) > both
