"""How every figure is drawn and written: sizes and fonts for a screen or a paper, lines that can be told apart in grey.

A paper's figure has the width that is asked for, type of at most eight points, fonts embedded as TrueType (venues
refuse Type 3), and text that stays text in SVG.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCREEN, PAPER = "screen", "paper"
STYLES = (SCREEN, PAPER)
COLUMN_IN = 3.5  # the width of one column of two
NARROW_IN = 5.0  # below it panels stand one below another
LEAST_IN, MOST_IN = 1.0, 50.0  # of a width
TALLEST_IN = 9.5  # of a paper's figure
LARGEST_PT, LEAST_PT = 8.0, 5.0  # of a paper's type
MOST_LINES = 6  # in one panel
SCREEN_DPI, PAPER_DPI = 150, 300
SUFFIXES = (".png", ".svg", ".pdf")
UNITS_IN = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o"},
    {"color": "#1f6fb4", "linestyle": (0, (5, 2)), "marker": "s"},
    {"color": "#c8500a", "linestyle": (0, (1, 1.2)), "marker": "^"},
    {"color": "#1f9a6b", "linestyle": (0, (5, 1.5, 1, 1.5)), "marker": "D"},
    {"color": "#a46fc9", "linestyle": (0, (8, 1.5)), "marker": "v"},
    {"color": "#d99a00", "linestyle": (0, (3, 1.2, 1, 1.2, 1, 1.2)), "marker": "X"},
)
BOUND: dict[str, Any] = {"color": "#767676", "linestyle": "--", "linewidth": 1.0, "label": "bound"}
BASE: dict[Any, Any] = {
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none",
    "text.hinting": "none",  # type is as wide in every file
}  # fmt: skip
PRINTED: dict[Any, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "figure.titlesize": 8, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 7, "lines.linewidth": 1.0, "lines.markersize": 3.0, "axes.linewidth": 0.6,
}  # fmt: skip


@dataclass(frozen=True)
class FigureStyle:
    """``name``: one of :data:`STYLES`; ``width_in``: in inches, None for the figure's own (on paper: one column)."""

    name: str = SCREEN
    width_in: float | None = None

    @property
    def printed(self) -> bool:
        """Whether it is for a paper."""
        return self.name == PAPER

    @property
    def narrow(self) -> bool:
        """Whether panels stand one below another."""
        return self.width_in is not None and self.width_in < NARROW_IN


SCREEN_STYLE = FigureStyle()
_current: ContextVar[FigureStyle | None] = ContextVar("figure_style", default=None)


def style_of(name: str | None, width: str | None) -> FigureStyle:
    """The style that two options name. Raises ``ValueError`` in words."""
    if name is not None and name not in STYLES:
        raise ValueError(f"must be one of {', '.join(STYLES)}")
    printed = name == PAPER
    return FigureStyle(name or SCREEN, read_width(width) if width is not None else COLUMN_IN if printed else None)


def read_width(text: str) -> float:
    """Inches from ``3.5in``, ``9cm``, ``88mm``, ``252pt`` or a plain number of inches. Raises ``ValueError`` in
    words."""
    found = re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})\s*(in|cm|mm|pt)?\s*", text)
    number, unit = found.groups() if found else ("0", None)
    inches = float(number) * UNITS_IN[unit or "in"]
    if not LEAST_IN <= inches <= MOST_IN:
        raise ValueError(f"must be a width such as 3.5in, 7in, 9cm or 88mm, from {LEAST_IN:g} to {MOST_IN:g} inches")
    return inches


@contextmanager
def drawing(style: FigureStyle) -> Iterator[None]:
    """Figures made in here have the style."""
    import matplotlib as mpl

    token = _current.set(style)
    try:
        with mpl.rc_context({**BASE, **(PRINTED if style.printed else {})}):
            yield
    finally:
        _current.reset(token)


def current() -> FigureStyle:
    """The style of figures that are drawn now."""
    return _current.get() or SCREEN_STYLE


def panels(figure: Any, count: int, **how: Any) -> list[Any]:
    """``count`` axes side by side; one below another, the figure higher, where the style is narrow. ``figure`` may be
    a part of one. ``how`` goes to matplotlib's ``subplots``, its ``width_ratios`` only for axes side by side."""
    if not current().narrow or count == 1:
        return list(figure.subplots(1, count, squeeze=False, **how)[0])
    how.pop("width_ratios", None)
    page = figure.figure if hasattr(figure, "figure") else figure
    width, height = page.get_size_inches()
    if page is figure:
        page.set_size_inches(width / count, height * count)
    else:  # others may need the width: as high as if it had been narrower
        page.set_size_inches(width, height * (1 + (count**2 - 1) * figure.bbox.height / page.bbox.height))
    return list(figure.subplots(count, 1, squeeze=False, **how)[:, 0])


def save(figure: Figure, *paths: Path, style: FigureStyle | None = None, **how: Any) -> None:
    """Write the figure as the style (default: the current one) wants it: ``.pdf`` with TrueType fonts, ``.svg`` with
    text, ``.png``. The same figure gives the same bytes. Raises ``OSError``."""
    import matplotlib as mpl

    style = style or current()
    fit(figure, style)
    metadata: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    how = {"dpi": PAPER_DPI if style.printed else SCREEN_DPI} | how
    with mpl.rc_context(BASE), laid_out(figure, how["dpi"]):
        for path in paths:
            with mpl.rc_context({"svg.hashsalt": path.stem}):
                figure.savefig(path, metadata=metadata.get(path.suffix.lower()), **how)


@contextmanager
def laid_out(figure: Figure, dpi: float) -> Iterator[None]:
    """The figure's layout is made once, for a PNG of ``dpi``, not again by whoever saves it in here, and again only
    where a text had no room (:mod:`synth.views.text_room`). For every file matplotlib would draw the whole figure for
    that first."""
    from synth.views.text_room import ROUNDS, make_room

    engine, before = figure.get_layout_engine(), figure.dpi
    if engine is None:
        yield
        return
    figure.dpi = dpi
    with catch_warnings():  # of a layout that is too small for its text, which is what is repaired
        simplefilter("ignore", UserWarning)
        for _ in range(ROUNDS):
            engine.execute(figure)
            if not make_room(figure):
                break
        else:
            engine.execute(figure)
    figure.dpi = before
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def fit(figure: Figure, style: FigureStyle) -> None:
    """Give the figure the style's width, its height in proportion but never so low that text overlaps, and on paper
    type between :data:`LEAST_PT` and :data:`LARGEST_PT`."""
    from matplotlib.text import Text

    if style.width_in is not None:
        width, height = figure.get_size_inches()
        higher = height * max(style.width_in / width, 0.55 if height > width else 0.0)
        figure.set_size_inches(style.width_in, min(higher, TALLEST_IN) if style.printed else higher)
    if style.printed:
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            text.set_fontsize(min(max(float(text.get_fontsize()), LEAST_PT), LARGEST_PT))


def looks(labels: Sequence[str], markersize: float = 4.0) -> dict[str, dict[str, Any]]:
    """Colour, dashes and marker of up to :data:`MOST_LINES` lines, which stay apart in grey. Raises ``ValueError`` for
    more."""
    if len(labels) > MOST_LINES:
        raise ValueError(f"{len(labels)} lines cannot be told apart in grey; at most {MOST_LINES}")
    return {
        label: {**look, "markersize": markersize, "linewidth": 1.2, "markerfacecolor": "none" if index % 2 else None}
        for index, (label, look) in enumerate(zip(labels, LOOKS, strict=False))
    }


def legend_below(figure: Any, handles: Sequence[Any], columns: int = 3, **how: Any) -> None:
    """A legend below all panels of the figure, beside no data; none without handles."""
    if not handles:
        return
    at: dict[str, Any] = dict(loc="outside lower center", framealpha=0)
    page = figure.figure if hasattr(figure, "figure") else figure
    legend_in(
        page, 0.98, min(columns, len(handles)), lambda wide: figure.legend(handles=handles, ncols=wide, **at, **how)
    )


def legend_in(figure: Any, share: float, columns: int, made: Callable[[int], Any]) -> None:
    """The legend that ``made`` puts into a figure with so many columns, or with fewer, such that it takes at most this
    share of the page's width."""
    room = share * (current().width_in or float(figure.get_figwidth())) * figure.dpi
    for wide in range(columns, 0, -1):
        legend = made(wide)
        if wide == 1 or legend.get_window_extent().width <= room:
            return
        legend.remove()


def plain_log(axis: Any, unit: str = "") -> None:
    """Ticks of a logarithmic axis as numbers with their unit (0.1, 10 s, 1,000×), none between the powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}{unit}"))
    axis.set_minor_locator(NullLocator())


def size_axis(axes: Any, sizes: Sequence[float], most: int = 7) -> None:
    """Make the x axis logarithmic with sizes in words as ticks (1 KiB, 32 KiB), at most so many of those given."""
    import numpy as np

    found = sorted({float(size) for size in sizes if size > 0})
    axes.set_xscale("log", base=2)
    apart = max(1, -(-len(found) // (min(most, 5) if current().narrow else most)))
    ticks = found[::apart]
    if found and np.isfinite(found[-1]):
        axes.set_xticks(ticks, [size_word(size) for size in ticks])
        axes.minorticks_off()


def size_word(size: float) -> str:
    """A size as short as it is exact: 1 KiB, 32 KiB, 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(abs(size)) < 1024:
            return f"{size:.3g} {unit}" if abs(size) < 1000 else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
