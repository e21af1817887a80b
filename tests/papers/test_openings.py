"""Published pages open with their answer and a picture; every number in the answer comes from what stands below."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from figures_apart import can_be_told_apart
from published import PUBLISHED
from typer.testing import CliRunner

from synth.cli.main import app
from synth.cli.reproduce import _load_page
from synth.errors import InputError
from synth.family import reproduced
from synth.reproduction.page import opened
from synth.reproduction.stored import number, parse
from synth.views.figure_style import SCREEN_STYLE

PAGES = {name: getattr(sys.modules[_load_page(page.target).__module__], "opening", None)
         for name, page in reproduced().items() if page.target.startswith("synth_papers.")}  # fmt: skip
REDRAWN = {name: module.redrawn for name, page in reproduced().items() if page.target.startswith("synth_papers.")
           and hasattr(module := sys.modules[_load_page(page.target).__module__], "redrawn")}  # fmt: skip
OPENED = {name: opening for name, opening in PAGES.items() if opening is not None}


def above(text: str) -> str:
    return text.split("\n## ")[0]


@pytest.mark.parametrize("name", sorted({*OPENED, "peers"}))
def test_a_page_opens_with_three_sentences_and_a_picture(name: str) -> None:
    """The line that names the command, a paragraph of two to four sentences, a picture; then anything else."""
    blocks = (PUBLISHED / f"{name}.md").read_text().split("\n\n")
    assert blocks[1].startswith("Made by `synth reproduce")
    assert not blocks[2].startswith(("Where this page", "#", "|", "*"))
    assert 2 <= len(re.findall(r"\.(?= |$)", blocks[2])) <= 5
    assert blocks[3].startswith("![")
    assert (PUBLISHED / blocks[3].split("](")[1].rstrip(")")).is_file()


@pytest.mark.long(after=3)
@pytest.mark.parametrize("name", sorted(OPENED))
def test_the_answer_is_made_of_the_tables_below(name: str, tmp_path: Path) -> None:
    """Laid out again from the file, every byte is the same; without one of its tables there is no answer."""
    text = (PUBLISHED / f"{name}.md").read_text()
    assert opened(text, OPENED[name], tmp_path / name, SCREEN_STYLE) == text
    for drawn in (tmp_path / name).glob("*"):
        assert drawn.stat().st_size > 5000
    with pytest.raises(InputError, match="the page has no"):
        opened(above(text), OPENED[name], tmp_path / name, SCREEN_STYLE)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", sorted(REDRAWN))
def test_the_pictures_of_a_page_can_be_told_apart(name: str) -> None:
    """Those that its tables draw again: few lines, apart in grey, no legend over data, no axis in powers of ten."""
    for _, figure in REDRAWN[name](PUBLISHED / name):
        can_be_told_apart(figure)


@pytest.mark.parametrize(
    ("name", "stated", "other", "word"),
    [
        ("optree", "| relay | – | 19 |", "| relay | – | 23 |", "takes 23 steps"),
        ("fabric", "| 342.86 | 342.47 | 0.11 %", "| 342.86 | 342.47 | 7.77 %", "within 7.77 %"),
        ("outside", "| 0 | 0 | +1.427 %", "| +9 % | 0 | +1.427 %", "on 53 of 54"),
    ],
)
def test_another_number_in_a_table_is_another_answer(
    name: str, stated: str, other: str, word: str, tmp_path: Path
) -> None:
    text = (PUBLISHED / f"{name}.md").read_text()
    squeezed = re.sub(" +", " ", text)
    assert stated in squeezed
    assert word not in above(squeezed)
    assert word in above(opened(squeezed.replace(stated, other, 1), OPENED[name], tmp_path / name, SCREEN_STYLE))


@pytest.mark.parametrize(
    ("cell", "value"),
    [("–", None), ("4 139 116", 4139116), ("+0.99 %", 0.99), ("1.62×", 1.62), ("*OpTree*", None), ("1e-08", 1e-8),
     ("1.04 (1.00)", 1.04), ("-187.5", -187.5), ("", None)],
)  # fmt: skip
def test_numbers_of_cells(cell: str, value: float | None) -> None:
    assert number(cell) == value


def test_what_cannot_be_laid_out_again_is_said(tmp_path: Path) -> None:
    def asked(*words: str) -> str:
        done = CliRunner().invoke(app, ["reproduce", *words, "--from-stored", "--out", str(tmp_path)])
        assert isinstance(done.exception, InputError)
        return str(done.exception)

    assert "no such page" in asked("mlfm")
    assert "several cannot be laid out again" in asked("several")
    (tmp_path / "peers.md").touch()
    assert "peers/teccl.csv: no such table of the page" in asked("peers")
    (tmp_path / "mlfm.md").write_text("# Something else\n")
    assert "mlfm.md: was not made by synth reproduce" in asked("mlfm")
    with pytest.raises(InputError, match="no one table"):
        parse("# T\n\nMade by `synth reproduce x`.\n\n## A\n\nwords\n").table("A")
