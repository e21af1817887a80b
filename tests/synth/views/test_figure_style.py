"""Figures as venues and people want them: read from the bytes of the files, and from the figures themselves."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from figures_apart import can_be_told_apart
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from typer.testing import CliRunner

from synth.cli.main import app
from synth.views import figure_style
from synth.views.discrete_colours import discrete, ink
from synth.views.figure_style import (
    MOST_LINES,
    SUFFIXES,
    FigureStyle,
    drawing,
    looks,
    read_width,
    save,
    size_axis,
    size_word,
)

ROOT = Path(__file__).resolve().parents[3]
RECORD = "results/published/xtree/equimesh-3x3-c2/pull.json"
POINTS = 72


def fonts(pdf: bytes) -> set[bytes]:
    """The types of all fonts of a PDF, those in compressed streams too."""
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return {
        kind for part in parts for kind in re.findall(rb"/Subtype\s*/(Type3|Type0|Type1|TrueType|CIDFontType2)", part)
    }


@pytest.mark.long(after=1)
@pytest.mark.parametrize("style", [FigureStyle(), FigureStyle("paper", 3.5)])
def test_a_pdf_has_no_type_3_font(tmp_path: Path, style: FigureStyle) -> None:
    with drawing(style):
        figure = Figure(layout="constrained")
        figure.subplots().set(title="α β → ≤ ×", xlabel="size [MiB]")
        save(figure, tmp_path / "a.pdf", style=style)
    found = fonts((tmp_path / "a.pdf").read_bytes())
    assert b"Type3" not in found
    assert b"CIDFontType2" in found or b"TrueType" in found
    with mpl.rc_context({"pdf.fonttype": 3}):  # what matplotlib does by itself, and this test sees
        figure.savefig(tmp_path / "b.pdf")
    assert b"Type3" in fonts((tmp_path / "b.pdf").read_bytes())


@pytest.mark.long
def test_files_written_together_are_those_written_alone(tmp_path: Path) -> None:
    """Byte for byte, and the PNG is matplotlib's own with type as in a PDF: one layout is as good as three."""

    def drawn() -> Figure:
        figure = Figure(layout="constrained")
        for axes in figure.subplots(1, 2):
            axes.set(title="α β → ≤ ×", xlabel="size [MiB]", ylabel="a long name of an axis", xlim=(-0.1, 1.1))
        return figure

    together, alone = ([tmp_path / how / f"a{suffix}" for suffix in SUFFIXES] for how in ("together", "alone"))
    for folder in ("together", "alone"):
        (tmp_path / folder).mkdir()
    figure, again = drawn(), drawn()
    engine = figure.get_layout_engine()
    save(figure, *together)
    assert figure.get_layout_engine() is engine
    for path in alone:
        save(again, path)
    assert [path.read_bytes() for path in together] == [path.read_bytes() for path in alone]
    with mpl.rc_context(figure_style.BASE):
        drawn().savefig(tmp_path / "a.png", dpi=figure_style.SCREEN_DPI)
    assert together[SUFFIXES.index(".png")].read_bytes() == (tmp_path / "a.png").read_bytes()


def test_every_figure_is_written_by_save() -> None:
    """So that no PDF has another font; the report's SVG is part of a page and keeps text, too."""
    files = [file for folder in ("synth", "models") for file in (ROOT / folder).rglob("*.py")]
    alone = {file.relative_to(ROOT).as_posix() for file in files if ".savefig(" in file.read_text()}
    assert alone == {"synth/views/figure_style.py", "synth/study/report.py"}


@pytest.mark.long
@pytest.mark.parametrize("width", ["3.5in", "7in"])
def test_the_command_draws_at_the_width_of_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.chdir(ROOT)
    for suffix in ("pdf", "svg", "png"):
        file = tmp_path / f"a.{suffix}"
        done = CliRunner().invoke(app, ["show", RECORD, "--plot", str(file), "--style", "paper", "--width", width])
        assert done.exit_code == 0, done.output
    inches = float(width.removesuffix("in"))
    pdf = (tmp_path / "a.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box
    assert float(box[1]) == pytest.approx(inches * POINTS, abs=0.5)
    assert float(box[2]) <= figure_style.TALLEST_IN * POINTS + 0.5
    assert b"Type3" not in fonts(pdf)
    svg = (tmp_path / "a.svg").read_text()
    assert ">timestep</text>" in svg  # text, not outlines
    png = (tmp_path / "a.png").read_bytes()
    assert struct.unpack(">I", png[16:20])[0] == round(inches * figure_style.PAPER_DPI)


def test_faults_of_the_options_come_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from synth.errors import InputError

    monkeypatch.chdir(ROOT)
    for words, said in (
        (["--style", "poster"], "--style = 'poster': must be one of screen, paper"),
        (["--width", "0in"], "--width = '0in': must be a width such as 3.5in"),
        (["--width", "nan"], "--width = 'nan': must be a width such as 3.5in"),
    ):
        done = CliRunner().invoke(app, ["show", RECORD, "--plot", str(tmp_path / "a.png"), *words])
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)
    done = CliRunner().invoke(app, ["show", RECORD, "--style", "paper"])
    assert "go with --plot" in str(done.exception)


@given(st.floats(1.1, 49), st.sampled_from(["in", "cm", "mm", "pt", ""]))
def test_a_width_in_any_unit(inches: float, unit: str) -> None:
    of = {"in": 1.0, "": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.27}[unit]
    assert read_width(f"{inches * of:.6f}{unit}") == pytest.approx(inches, rel=1e-5)


@given(st.text(max_size=12))
def test_no_text_is_a_width_out_of_range(text: str) -> None:
    try:
        width = read_width(text)
    except ValueError:
        return
    assert 1 <= width <= 50


def test_six_lines_are_apart_in_grey() -> None:
    figure = Figure()
    axes = figure.subplots()
    for label, look in looks([f"m{k}" for k in range(MOST_LINES)]).items():
        axes.plot([1, 2, 3], [1, 2, 3], label=label, **look)
    can_be_told_apart(figure)
    with pytest.raises(ValueError, match="at most 6"):
        looks([str(k) for k in range(MOST_LINES + 1)])


def test_what_the_helper_refuses() -> None:
    """Two lines that differ in colour alone, and a legend over data."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2], [1, 2], color="#1f77b4", label="a")
    axes.plot([1, 2], [2, 1], color="#2ca02c", label="b")
    with pytest.raises(AssertionError):
        can_be_told_apart(figure)
    axes.lines[1].set_marker("s")
    can_be_told_apart(figure)
    axes.legend(loc="center")
    with pytest.raises(AssertionError, match="legend"):
        can_be_told_apart(figure)


@given(st.lists(st.integers(1, 2**42), min_size=2, max_size=60, unique=True))
def test_ticks_of_sizes_are_sizes_that_were_run(sizes: list[int]) -> None:
    axes = Figure().subplots()
    axes.plot(sizes, sizes)
    size_axis(axes, sizes)
    ticks = [tick for tick in axes.get_xticks() if min(sizes) <= tick <= max(sizes)]
    assert 1 <= len(ticks) <= 7
    assert set(ticks) <= {float(size) for size in sizes}


def test_sizes_in_words() -> None:
    assert [size_word(2**k) for k in (0, 9, 10, 15, 20, 30, 41)] == [
        "1 B", "512 B", "1 KiB", "32 KiB", "1 MiB", "1 GiB", "2 TiB",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 9, 10, 11, 20, 21, 64, 200])
def test_every_origin_has_a_colour_of_its_own_and_ink_is_read_on_it(count: int) -> None:
    cmap, norm = discrete(count)
    colours = [tuple(np.round(cmap(norm(number)), 6)) for number in range(count)]
    assert len(set(colours)) == count
    for colour in colours:
        light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        cell = float(np.dot(light, (0.2126, 0.7152, 0.0722)))
        paper = 1.0 if ink(colour) == "#ffffff" else 0.003
        assert (max(cell, paper) + 0.05) / (min(cell, paper) + 0.05) >= 4.3
