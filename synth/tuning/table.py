"""What tuning says: a row a size, as CSV (exact) and as Markdown (to read), and the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter, PercentFormatter

from synth.records.optimality import gap
from synth.text.quantities import percent, shown
from synth.text.visible import in_cell
from synth.tuning.rows import Candidate, Row
from synth.views.figure_style import BOUND, current, legend_below, looks, size_axis

BESIDE = ("ring", "double_tree")
LINES = {"form_s": "tuned", "scheduled_s": "as scheduled", "ring_s": "ring", "double_tree_s": "double tree"}
MOST_TICKS = 6  # sizes named below a figure


class Chosen(NamedTuple):
    """The choice for a range of sizes: rows of one collective that follow each other and run the same program, and the
    least and the most bytes for which it stands."""

    rows: list[Row]
    best: Candidate
    least_bytes: int
    most_bytes: int


def ranges(rows: Sequence[Row]) -> list[Chosen]:
    """The ranges of one collective: two that meet do so at the geometric mean of their sizes, the first begins at its
    least size and the last ends at its greatest. There is no gap but beside what is left to the library, which is its
    size alone: a range ends at its last size before it, and begins at its first behind it."""
    groups: list[list[Row]] = []
    for row in rows:
        assert row.best is not None
        if groups and _is_one(groups[-1][-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
    lows, highs = [groups[0][0].instance_bytes], []
    for before, after in pairwise(groups):
        last, first = before[-1].instance_bytes, after[0].instance_bytes
        apart = before[-1].left or after[0].left
        highs.append(last if apart else math.isqrt(last * first))
        lows.append(first if apart else highs[-1] + 1)
    highs.append(groups[-1][-1].instance_bytes)
    found = []
    for group, low, high in zip(groups, lows, highs, strict=True):
        assert group[0].best is not None
        found.append(Chosen(group, group[0].best, low, high))
    return found


def _is_one(before: Row, row: Row) -> bool:
    """Whether two rows that follow each other run the same program, from one file."""
    assert before.best is not None
    assert row.best is not None
    program = row.best.program
    return program is not None and before.best.program is program and not (before.left or row.left)


def frame(chosen: Sequence[tuple[Chosen, str, str]], form: str, nodes: int) -> pd.DataFrame:
    """A row a size. ``chosen``: every range with the name of its file, and of that for calls in place (empty: none);
    ``chunks``: what a call's count must divide by (:mod:`synth.exchange.counts`); ``uneven_s``: the best of those that
    do not serve all sizes of whole 8 KiB a rank, None where none is quicker. Times are in seconds, bandwidths
    in bytes/s as nccl-tests count them (algbw, busbw); ``gap`` is (form_s - bound_s) / form_s, 0 where they meet;
    ``left``: that a size is left to the library, and why, so that it has no file."""
    rows = [_row(one, row, files, form, nodes) for one, *files in chosen for row in one.rows]
    return pd.DataFrame(rows)


def _row(one: Chosen, row: Row, files: Sequence[str], form: str, nodes: int) -> dict[str, Any]:
    best = row.best
    assert best is not None
    algbw = row.instance_bytes / best.seconds if best.seconds else None
    program = best.program
    reference = min(row.references, key=lambda name: row.references[name], default="")
    return {
        "collective": row.collective,
        "ranks": row.ranks,
        "nodes": nodes,
        "bytes": row.instance_bytes,
        "min_bytes": one.least_bytes,
        "max_bytes": one.most_bytes,
        "algorithm": files[0],
        "in_place": files[1],
        "method": best.method,
        "how": program.how if program is not None else "",
        "protocol": "Simple" if program is not None else "",
        "form": form,
        "chunks": program.chunks if program is not None else None,
        "form_s": best.seconds,
        "uneven_s": row.forgone.seconds if row.forgone is not None else None,
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": algbw * row.bus_factor if algbw and row.bus_factor else None,
        "scheduled_s": row.scheduled,
        "scheduled_method": row.scheduled_by,
        "form_over_scheduled": best.seconds / row.scheduled if row.scheduled else None,
        "bound_s": row.bound,
        "gap": gap(best.seconds, row.bound),
        **_beside(row),
        "bound_why": row.beside("bound") if row.bound is None else "",
        "reference": reference,
        "reference_s": row.references.get(reference),
        **({} if row.reach is None else {f"reach_{key}": value for key, value in row.reach._asdict().items()}),
        **({} if row.regret is None else {"worst_regret": row.regret}),
        **_within(row),
        **({"left": row.why_left} if row.reach is not None else {}),
        "limit": row.limit,
    }


def _beside(row: Row) -> dict[str, Any]:
    """The columns of the references that the table shows."""
    found: dict[str, Any] = {f"{name}_s": row.references.get(name) for name in BESIDE}
    return found | {f"{name}_why": "" if name in row.references else row.beside(name) for name in BESIDE}


def _within(row: Row) -> dict[str, Any]:
    """The columns of a row's interval on a fitted machine."""
    if (one := row.within) is None:
        return {}
    return {"least_s": one.least, "most_s": one.most, "rival": one.rival, "rival_lead": one.lead}


HEAD = ("collective", "size", "by", "time", "algbw", "busbw", "as scheduled", "bound", "gap", *BESIDE)


def cells(table: pd.DataFrame) -> tuple[tuple[str, ...], list[list[str]]]:
    """The table for a person: the head, and the cells of every row."""
    return HEAD, [_cells(row) for row in table.to_dict("records")]


def left_out(rows: Sequence[Row]) -> list[str]:
    """Sentences that name what was not tried or found nothing, methods and sizes of a collective together."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for collective in dict.fromkeys(row.collective for row in rows):
        these = [row for row in rows if row.collective == collective]
        said = {(name, why): None for row in these for name, why in row.untried.items()}
        for name, why in said:
            sizes = tuple(row.instance_bytes for row in these if row.untried.get(name) == why)
            groups.setdefault((collective, why, sizes if len(sizes) < len(these) else ()), []).append(name)
        none = tuple(row.instance_bytes for row in these if row.best is None)
        if none:
            groups[collective, "no schedule", none if len(none) < len(these) else ()] = ["not in the table"]
    found = []
    for (collective, why, sizes), names in groups.items():
        where = ", ".join(shown(size, "bytes") for size in sizes) or "all sizes"
        found.append(f"{collective}, {where}: {why}: {', '.join(names)}")
    return found


def markdown(table: pd.DataFrame, title: str, below: Sequence[str] = ()) -> str:
    """The same as a page; what costs a row more than its schedule stands below, and other sentences."""
    head, rows = cells(table)
    lines = [f"# {in_cell(title)}", "", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(map(in_cell, row))} |" for row in rows]
    costs = [f"* {shown(row['bytes'], 'bytes')} {row['collective']}, {row['form_over_scheduled']:.3g} times as long as "
             f"{row['scheduled_method']} as scheduled: {row['limit']}"
             for row in table.to_dict("records") if row["limit"]]  # fmt: skip
    said = table["left"].fillna("") if "left" in table else [""] * len(table)
    named = zip(table["bytes"], table["collective"], said, strict=True)
    left = [f"* {shown(size, 'bytes')} {collective}: {words}" for size, collective, words in named if words]
    return "\n".join([*lines, *(["", "Left to the library, without a file:", "", *left] if left else []),
                      *(["", "What limits of the executor cost:", "", *costs] if costs else []),
                      *(["", *(f"* {in_cell(words)}" for words in below)] if below else []), ""])  # fmt: skip


def _cells(row: Any) -> list[str]:
    def cell(key: str, unit: str) -> str:
        value = row[key]
        return "–" if value is None or pd.isna(value) else shown(float(value), unit)

    left = row.get("left")
    by = row["method"] + (" (no file)" if isinstance(left, str) and left else f" ({row['how']})" if row["how"] else "")
    rates = [cell(f"{key}_bytes_per_s", "bytes/s") for key in ("algbw", "busbw")]
    gap = "–" if row["gap"] is None or pd.isna(row["gap"]) else percent(float(row["gap"]))
    beside = [row.get(f"{name}_why") or cell(f"{name}_s", "s") for name in ("bound", *BESIDE)]
    times = [cell("form_s", "s"), *rates, cell("scheduled_s", "s"), beside[0], gap]
    return [row["collective"], cell("bytes", "bytes"), by, *times, *beside[1:]]


def figure(table: pd.DataFrame, title: str) -> Figure:
    """Two panels a collective: bus bandwidth over size (what is tuned, as scheduled, the bound, ring, double tree), and
    the share of the bound that each reaches."""
    parts = list(table.groupby("collective", sort=False))
    columns = 1 if current().narrow else 2
    drawn = Figure(figsize=(4.6 * columns, 3.1 * len(parts) * 2 / columns + 0.6), layout="constrained")
    drawn.suptitle(title, parse_math=False)
    styles = looks(list(LINES.values()))
    grid = drawn.subplots(len(parts) * 2 // columns, columns, squeeze=False).ravel()
    for left, right, (collective, rows) in zip(grid[::2], grid[1::2], parts, strict=True):
        _panels(left, right, str(collective), rows, styles)
    present = [name for column, name in LINES.items() if pd.to_numeric(table[column]).notna().any()]
    handles = [Line2D([], [], label=name, **styles[name]) for name in present]
    legend_below(drawn, [*handles, Line2D([], [], **BOUND)], 4, fontsize="small")
    return drawn


def _panels(left: Any, right: Any, collective: str, rows: pd.DataFrame, styles: dict[str, Any]) -> None:
    bound = pd.to_numeric(rows["bound_s"])
    factor = rows["busbw_bytes_per_s"].astype(float) * rows["form_s"] / rows["bytes"]
    for column, name in LINES.items():
        seconds = pd.to_numeric(rows[column])
        if seconds.notna().any():
            left.plot(rows["bytes"], factor * rows["bytes"] / seconds / 1e9, **styles[name])
            right.plot(rows["bytes"], bound / seconds, **styles[name])
    if bound.notna().any():
        left.plot(rows["bytes"], factor * rows["bytes"] / bound / 1e9, **BOUND)
        right.axhline(1.0, **BOUND)
    for axes in (left, right):
        size_axis(axes, rows["bytes"].tolist(), MOST_TICKS)
        axes.set_xlabel("size")
        axes.tick_params(labelsize="small")
        axes.grid(alpha=0.3)
    left.set(yscale="log", ylabel="busbw [GB/s]", title=collective)
    least, most = left.get_ylim()
    left.yaxis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if most > 10 * least else (1.0, 2.0, 3.0, 4.0, 6.0, 8.0))
    )
    left.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    left.yaxis.set_minor_formatter(NullFormatter())
    right.set(ylim=(0, 1.05), ylabel="share of the bound")
    right.yaxis.set_major_formatter(PercentFormatter(1.0))
