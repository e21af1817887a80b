"""The table that a paper prints: a row a size (or an instance), a column a method, then bound and gap.

One column of a page of two wide, with the rules of ``booktabs``. Widths are those of Computer Modern, which matplotlib
brings along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from synth.arrays import SAME
from synth.family import get_family
from synth.study.bandwidth_figure import GIGA, leading, title_of
from synth.study.chart import natural
from synth.study.latex import escaped
from synth.study.table import VALUE_COUNTS, baselines_of
from synth.text.quantities import counted, scaled
from synth.views.figure_style import MOST_LINES, size_word

COLUMNS: dict[str, str] = {
    "size": "bytes of the instance; of instances that differ in more than their size their names stand here",
    "a method's name": "of the sized bandwidth, size / value [GB/s], of others the value [in the head]; the mean over "
    "seeds; best in bold; † published, or a baseline of the study; ⋆ any other method; italic: counted, not replayed",
    "bound": "of the greatest proven bound, the same",
    "gap": "(value - bound) / value of the best value [%]",
}
WIDTH_PT = 3.4 * 72.27  # of one column
SEPARATION_PT = 3.0  # on either side of a column
SIZES_PT = {"footnotesize": 8.0, "scriptsize": 7.0}
WIDER = 1.23  # bold small type is than Computer Modern of ten points set as small
LONGEST_ROW = 26  # characters of a row's name in one line
PUBLISHED, OURS = r"$^{\dagger}$", r"$^{\star}$"
NONE = "--"


@dataclass(frozen=True)
class Block:
    """Rows of one series, or of instances without any: ``title`` (of the instances ''), the rows' names, and per row
    the numbers of the methods, the bound's and the gap [%]."""

    title: str
    names: list[str]
    numbers: list[list[float | None]]
    bounds: list[float | None]
    gaps: list[float | None]
    best: list[set[int]]


@dataclass(frozen=True)
class Sheet:
    """A family's table: what its numbers are (``bandwidth [GB/s]``), the methods, each with whether it is published and
    whether its values are counted, how many were left out, and the blocks."""

    what: str
    methods: list[tuple[str, bool, bool]]
    left: int
    blocks: list[Block]


def as_latex(table: pd.DataFrame, most: int = MOST_LINES) -> str:
    """A ``tabular`` a family, with at most so many methods, those that are best in some row first, then those that are
    nearest to the best; '' without values."""
    rows: Any = table[table["status"].isin(VALUE_COUNTS) & table["value"].notna() & table["value"].gt(0)]
    parts = [_fitted(name, rows[rows["family"] == name], most) for name in sorted(rows["family"].unique())]
    head = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}; one column wide\n"
    return head + "\n\n".join(parts) + "\n" if parts else ""


def _fitted(family: str, rows: Any, most: int) -> str:
    """The family's table in the largest type, with the most methods, that one column holds."""
    for count in range(most, 0, -1):
        sheet = _sheet(family, rows, count)
        for size, upright in (("footnotesize", False), ("footnotesize", True), ("scriptsize", True)):
            if sum(_widths(sheet, size, upright)) <= WIDTH_PT or (count == 1 and size == "scriptsize"):
                return _text(sheet, size, upright)
    raise AssertionError("one method is always set")


def _sheet(family: str, rows: Any, most: int) -> Sheet:
    sized = rows[rows["series"].ne("") & rows["size_bytes"].notna()]
    sized = sized[sized.groupby("series")["size_bytes"].transform("nunique") > 1]
    rated = len(sized) > 0
    rows = sized if rated else rows
    opponents = {*get_family(family).published, *baselines_of(rows)}
    of_label = rows.drop_duplicates("group").set_index("group")
    series = sorted(rows["series"].unique(), key=natural) if rated else [""]
    key = "size_bytes" if rated else "instance"
    grids = [(name, _grid(rows[rows["series"] == name] if rated else rows, key)) for name in series]
    only_counted = {label for label, group in rows.groupby("group") if (group["evidence"] == "counted").all()}
    kept = sorted(leading([values for _, (values, _) in grids], most, only_counted))
    factor, unit = (GIGA, "GB/s") if rated else scaled(str(rows["unit"].iloc[0]), float(rows["value"].max()))
    name = "bandwidth" if rated else get_family(family).objective.name
    what = name if name == unit else f"{name} [{unit}]"
    blocks = []
    for name, (values, bounds) in grids:
        title = title_of(name, rows.loc[rows["series"] == name, "instance"]) if rated else ""
        least = values.drop(columns=list(only_counted), errors="ignore").min(axis=1)
        blocks.append(_block(title, values.reindex(columns=kept), least, bounds, factor))
    methods = [(label, of_label.loc[label, "method"] in opponents, label in only_counted) for label in kept]
    return Sheet(what, methods, len(of_label) - len(kept), blocks)


def _grid(rows: Any, key: str) -> tuple[Any, Any]:
    """Values by row and method, and the bounds by row, in the order of sizes, or of names."""
    values = rows.pivot_table(index=key, columns="group", values="value", aggfunc="mean")
    values = values.loc[sorted(values.index, key=natural if key == "instance" else float)]
    return values, rows.groupby(key)["best_bound"].max().reindex(values.index)


def _block(title: str, values: Any, least: Any, bounds: Any, factor: float) -> Block:
    """``least``: the least replayed value of every row, over all methods."""
    rated = title != ""

    def number(value: Any, name: Any) -> float | None:
        if pd.isna(value) or value <= 0:
            return None
        return float(name / value / factor if rated else value / factor)

    names = list(values.index)
    gaps = 100 * (least - bounds) / least
    return Block(
        title,
        [size_word(float(name)) if rated else str(name) for name in names],
        [[number(value, name) for value in values.loc[name]] for name in names],
        [number(bounds[name], name) for name in names],
        [None if pd.isna(gaps[name]) else float(gaps[name]) for name in names],
        [{i for i, value in enumerate(values.loc[name]) if value <= least[name] * (1 + SAME)} for name in names],
    )


def _text(sheet: Sheet, size: str, upright: bool) -> str:
    count = len(sheet.methods)
    first = "size" if sheet.blocks[0].title else "instance"
    heads = [_head(method, upright) for method in sheet.methods]
    widths = _widths(sheet, size, upright)
    lines = [
        rf"{{\{size}\setlength{{\tabcolsep}}{{{SEPARATION_PT:g}pt}}%",
        rf"\begin{{tabular}}{{@{{}}l{'r' * (count + 2)}@{{}}}}",
        r"\toprule",
        rf" & \multicolumn{{{count + 1}}}{{c}}{{{escaped(sheet.what)}}} & gap \\",
        rf"\cmidrule(lr){{2-{count + 2}}}",
        f"{first} & {' & '.join(heads)} & bound & [\\%] \\\\",
    ]
    for block in sheet.blocks:
        lines.append(r"\midrule")
        if len(sheet.blocks) > 1 and block.title:
            lines.append(rf"\multicolumn{{{count + 3}}}{{@{{}}l@{{}}}}{{\emph{{{escaped(block.title)}}}}} \\")
        lines += [" & ".join(cells) + r" \\" for cells in _rows(sheet, block)]
    lines += [
        r"\bottomrule",
        rf"\multicolumn{{{count + 3}}}{{@{{}}p{{{int(sum(widths))}pt}}@{{}}}}{{\scriptsize {_note(sheet)}}} \\",
        r"\end{tabular}}",
    ]
    return "\n".join(lines)


def _head(method: tuple[str, bool, bool], upright: bool) -> str:
    name, published, _ = method
    text = f"{escaped(name)}{PUBLISHED if published else OURS}"
    return rf"\rotatebox{{90}}{{{text}}}" if upright else text


def _note(sheet: Sheet) -> str:
    marks = {published for _, published, _ in sheet.methods}
    words = [f"{PUBLISHED} published"] * (True in marks) + [f"{OURS} ours"] * (False in marks) + [r"\textbf{best}"]
    words += [r"\textit{counted}, not replayed"] * any(formula for _, _, formula in sheet.methods)
    words += [f"{counted(sheet.left, 'further method')} ran"] * (sheet.left > 0)
    return "; ".join(words)


def _rows(sheet: Sheet, block: Block) -> Iterator[list[str]]:
    for name, numbers, bound, gap, best in zip(
        block.names, block.numbers, block.bounds, block.gaps, block.best, strict=True
    ):
        cells = [_number(number) for number in numbers]
        for place, (_, _, formula) in enumerate(sheet.methods):
            if formula and numbers[place] is not None:
                cells[place] = rf"\textit{{{cells[place]}}}"
            elif place in best:
                cells[place] = rf"\textbf{{{cells[place]}}}"
        yield [_name(name), *cells, _number(bound), NONE if gap is None else f"{max(gap, 0.0):.1f}"]


def _number(value: float | None) -> str:
    """A whole number as one, others with three digits: 3, 0.100, 12.3, 1,230."""
    if value is None:
        return NONE
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:#.3g}" if value >= 1e-3 else f"{value:.1e}"


def _name(name: str) -> str:
    """A row's name, a long one in lines parted behind its hyphens."""
    lines = _lines(name)
    if len(lines) == 1:
        return escaped(name).replace(" ", "~")
    return r"\shortstack[l]{" + r"\\".join(map(escaped, lines)) + "}"


def _lines(name: str) -> list[str]:
    lines = [""]
    for word in re.findall(r"[^-]*-?", name):
        if lines[-1] and len(lines[-1]) + len(word) > LONGEST_ROW:
            lines.append("")
        lines[-1] += word
    return lines


def _widths(sheet: Sheet, size: str, upright: bool) -> list[float]:
    """The width of every column in points, with what separates it from the next."""
    points = SIZES_PT[size] * WIDER
    widths = [max(map(_wide, column)) * points + 2 * SEPARATION_PT for column in _columns(sheet, upright)]
    widths[0] += max(0.0, _wide(sheet.what) * points - sum(widths[1:-1]))
    if len(sheet.blocks) > 1:
        widths[0] += max(0.0, max(_wide(block.title) for block in sheet.blocks) * points - sum(widths))
    return [*widths[:-1], widths[-1] - 2 * SEPARATION_PT]


def _columns(sheet: Sheet, upright: bool) -> list[list[str]]:
    """The texts of every column, those that decide how wide it is."""
    blocks = sheet.blocks
    found = [["instance", *(line for block in blocks for name in block.names for line in _lines(name))]]
    for place, (name, _, _) in enumerate(sheet.methods):
        found.append(["M" if upright else f"{name}*", *(_number(row[place]) for one in blocks for row in one.numbers)])
    found.append(["bound", *(_number(bound) for block in blocks for bound in block.bounds)])
    return [*found, ["gap", *(f"{gap:.1f}" for block in blocks for gap in block.gaps if gap is not None)]]


@cache
def _wide(text: str) -> float:
    """How wide the text is in Computer Modern, over its type's size; signs that it has not are as wide as an x."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    plain = "".join(sign if sign.isascii() and sign.isalnum() else "x" for sign in text)
    font = FontProperties(family="cmr10", size=100)
    return float(text_to_path.get_text_width_height_descent(plain, font, False)[0]) / 100
