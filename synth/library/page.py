"""The library's page: how much is known, what is open, how to hand in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from synth.library import figure
from synth.library.best_known import CLASSES, Before, Row, size_class
from synth.text.quantities import percent, shown
from synth.text.visible import in_cell

NAME = "library.md"
MOST_OPEN = 40  # open instances that the page lists
HEAD = """# The library: best-known values, bounds and certificates

{closed} of {instances} instances are closed: the best value meets the best bound. {near} more have a gap below 1 %, and
{wide} one of 20 % or more, where gap = (value − bound) / value. {unknown} have no value or no bound yet.

![The share of every family's instances that are closed, or open with a gap of so much]({picture})

Every value is that of a schedule in our records, which the check replays. A bound marked `certified` follows from a
certificate; the others are claims of a solver. [`library.csv`](library.csv) has a row an instance.
`synth library --make results/published` makes it, the figure and this page again from the records.

```bash
synth library                                  # a row an instance; a family's name or --open: only those
synth library equimesh-3x3-c2                  # what is known of one instance, how it was reached, how to beat it
synth library --selection 1.0 --write lib      # the instances of synth-lib 1.0 as files
synth submit lib/equimesh-3x3-c2.json --schedule mine.csv --by "your name"   # or --xml, or --bound
synth library harvest --compose better --time-limit 20s        # what schedules of others make of the open ones
synth study instances/studies/synth-lib-solvers.toml           # four solvers side by side, on your machine
```

What schedules and certificates hold is written down in [models/formats](../../models/formats/README.md). A better
record takes the place of a worse one; [`library-history.csv`](library-history.csv) keeps what stood there before.
"""
SELECTION = """
## synth-lib 1.0

[`synth-lib-1.0.csv`](synth-lib-1.0.csv) selects {selected} instances: all six families, {least} to {most} ranks, named
machines, damaged ones and real jobs among them. The list does not change; a later one gets a version of its own. Its
column `data` says whose the data are, and under which licence:

{data}
"""


def text(rows: Sequence[Row], history: Sequence[Before]) -> str:
    """The page of a library."""
    classes = Counter(map(figure.gap_class, rows))
    head = HEAD.format(
        instances=len(rows), closed=classes[figure.CLOSED], near=classes[figure.GAPS[0][0]], wide=classes[figure.WIDER],
        unknown=classes[figure.UNKNOWN], picture=figure.NAME,
    )  # fmt: skip
    parts = [head, _families(rows), _sizes(rows)]
    selected = [row for row in rows if row.selection]
    if selected:
        sizes = [int(row.size) for row in selected]
        origins: dict[str, int] = {}
        for row in selected:
            origins[row.data] = origins.get(row.data, 0) + 1
        data = _table(("data", "instances"), ((in_cell(name), str(count)) for name, count in sorted(origins.items())))
        parts.append(
            SELECTION.format(selected=len(selected), least=min(sizes), most=max(sizes), data=data.rstrip("\n"))
        )
    parts.append(_open(selected or rows))
    if history:
        last = sorted(history, key=lambda one: one.when)[-MOST_OPEN:]
        units = {row.sha256: row.unit for row in rows}
        numbers = [shown(float(one.number), units.get(one.sha256, "")) for one in last]
        cells = (
            tuple(map(in_cell, (one.family, one.instance, one.what, number, one.by, one.when)))
            for one, number in zip(last, numbers, strict=True)
        )
        parts.append("\n## Replaced\n\n" + _table(("family", "instance", "what", "number", "by", "since"), cells))
    return "".join(parts)


def _families(rows: Sequence[Row]) -> str:
    cells = []
    for family in sorted({row.family for row in rows}):
        own = [row for row in rows if row.family == family]
        certified = [row for row in own if row.grade == "certified"]
        closed = [row for row in own if row.status == "closed"]
        sure = [row for row in closed if row.grade == "certified"]
        lacking = sum(not row.value or not row.bound for row in own)
        cells.append((f"`{family}`", *map(str, (len(own), len(certified), len(closed), len(sure), lacking))))
    columns = ("family", "instances", "certified bounds", "closed", "closed by a certificate", "without value or bound")
    return "\n## By family\n\n" + _table(columns, cells)


def _sizes(rows: Sequence[Row]) -> str:
    classes = [size_class(most) for most in (*CLASSES, CLASSES[-1] + 1)]
    cells = []
    for one in classes:
        own = [row for row in rows if row.size_class == one]
        cells.append((one, str(len(own)), str(sum(row.status == "closed" for row in own))))
    return "\n## By size\n\n" + _table(("ranks", "instances", "closed"), cells)


def _open(rows: Sequence[Row]) -> str:
    """The open instances with the widest gaps."""
    still = [row for row in rows if row.status == "open" and row.gap]
    still.sort(key=lambda row: (-float(row.gap), row.family, row.instance))
    cells = (
        (
            f"`{row.family}`", in_cell(row.instance), row.size, shown(float(row.value), row.unit), in_cell(row.by),
            shown(float(row.bound), row.unit), row.grade, percent(float(row.gap)),
        )
        for row in still[:MOST_OPEN]
    )  # fmt: skip
    columns = ("family", "instance", "ranks", "best", "by", "bound", "proof", "gap")
    return f"\n## The widest gaps of {len(still)} open instances\n\n" + _table(columns, cells)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
