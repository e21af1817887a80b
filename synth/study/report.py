"""A study's report: one HTML file that needs nothing else and opens offline."""

from __future__ import annotations

import io
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

import synth
from synth.family import get_family
from synth.instance import Instance
from synth.method import load
from synth.records.contradictions import Standing, by_instance
from synth.records.record import Record
from synth.records.summary import FOOTNOTE, STATED, InstanceRow, closing_line, counted, rows_by_instance
from synth.study import animation, measures, rates, sizes
from synth.study.chart import natural
from synth.study.figures import by_family
from synth.study.table import COLUMNS, WRONG, baselines_of, place, plain_name
from synth.text.quantities import NOTHING, SCALES, percent, shown, times
from synth.text.visible import visible
from synth.views.figure_style import SCREEN_DPI, laid_out
from synth.views.frames import Frames

MOST_ANIMATIONS = 40
MOST_NODES = 2048
VERSIONS = ("pyomo", "highspy", "ortools", "numpy", "numba", "gurobipy", "pyscipopt")
SHOWN = (
    "instance", "label", "status", "termination", "evidence", "value", "bound", "proof", "best_bound",
    "best_proof", "gap", "ratio_to_best", "win", "solved", "total_s", "message", "faults",
)  # fmt: skip
VALUES = ("value", "bound", "best_value", "best_bound", "baseline_value")  # columns in the objective's unit
UNITS = {"size_bytes": "bytes", "bandwidth": "bytes/s"}
GAPS = ("gap", "gap_own", "mean_gap", "spread")
HEADINGS = {"total_s": "time", "time_s": "time", "to_gap_s": "to gap", "label": "method"}
INSTANCE_COLUMNS = {
    "instance": "the instance; the link shows its best schedule",
    "best": "least value of a replayed schedule over all methods",
    "bound": "greatest proven bound over all methods",
    "gap": "(best - bound) / best",
    "proof": "what proves the bound: a certificate that the check derived it from again, or a solver alone",
    "by": "the run that found the best value; of several one that is published",
    "published": "least value of the study's baselines, else of the methods that are published or in use, and whose",
    "ratio": "that over best: above 1 the best is better",
    "runs": "runs on the instance, and how many of them failed or are contradicted",
    "time": "of all runs, making the model and solving",
}


@dataclass(frozen=True)
class Ran:
    """What the report says about the study itself."""

    title: str
    command: str
    notes: Sequence[str] = ()
    study_file: str = ""


@dataclass(frozen=True)
class Cell:
    """A table's cell: ``text`` as a person reads it, ``title`` the exact value, ``sort`` what to sort by (a number, or
    empty for nothing; None: by the text), ``look`` its classes."""

    text: str
    sort: float | str | None = None
    title: str = ""
    look: str = ""
    link: str = ""


@dataclass(frozen=True)
class Row:
    """A table's row; ``look`` is its class."""

    cells: Sequence[Cell]
    look: str = ""


@dataclass(frozen=True)
class Part:
    """What the report says about one family. ``columns`` are pairs (heading, meaning)."""

    name: str
    title: str
    citation: str
    objective: str
    closing: str
    best: Sequence[Row]
    figures: Sequence[tuple[str, str]]
    method_columns: Sequence[tuple[str, str]]
    methods: Sequence[Row]
    run_columns: Sequence[tuple[str, str]]
    runs: Sequence[Row]
    size_columns: Sequence[tuple[str, str]]
    sizes: Sequence[Row]
    rates: str


def write(
    path: Path,
    ran: Ran,
    table: pd.DataFrame,
    figures: Sequence[tuple[str, Figure]],
    records: Sequence[Record],
    instances: Sequence[Instance],
) -> None:  # fmt: skip
    """Write the report to ``path``. The ``instances`` are needed to draw their best schedules. Where the study has
    several families, each gets its own of the named ``figures``."""
    from jinja2 import Environment, PackageLoader

    page = files("synth.study") / "page"
    environment = Environment(loader=PackageLoader("synth.study", "page"), autoescape=True, finalize=_one_line)
    template = environment.get_template("report.html")
    animations, undrawn = _animations(table, path.parent, records, instances)
    text = template.render(
        title=ran.title,
        command=ran.command,
        study_file=ran.study_file,
        style=(page / "report.css").read_text(),
        script=(page / "report.js").read_text(),
        facts=facts(table),
        alarms=alarms(table),
        skipped=ran.notes,
        parts=list(_parts(table, path.parent, figures, records, {one["key"] for one in animations})),
        instance_columns=list(INSTANCE_COLUMNS.items()),
        shift=shown(measures.SHIFT_S, "s"),
        animations=_json(animations),
        undrawn=undrawn,
        most_animations=MOST_ANIMATIONS,
        most_moves=f"{animation.MOST_MOVES:,}",
    )
    path.write_text(text, encoding="utf-8")


def _one_line(value: Any) -> Any:
    """What the page shows of a value: of a text one visible line; of what is HTML already, and of other text of ours
    that goes through ``safe``, all."""
    return visible(value) if type(value) is str else value


def _parts(
    table: pd.DataFrame, folder: Path, figures: Sequence[tuple[str, Figure]], records: Sequence[Record], drawn: set[str]
) -> Iterator[Part]:
    families: list[str] = sorted(table["family"].unique()) if len(table) else []
    of_family: dict[str, list[tuple[str, Figure]]] = {family: [] for family in families}
    for name, figure in figures:
        found = {families[0]: figure} if len(families) == 1 else by_family(name, table, records)
        for family_name, one in found.items():
            of_family[family_name].append((name, one))
    grouped, named = by_instance(records), baselines_of(table)
    for family_name in families:
        groups = [(sha, rows_by_instance(group, named)[0]) for (of, sha), group in grouped.items() if of == family_name]
        rows = table[table["family"] == family_name]
        yield _part(family_name, rows, groups, of_family[family_name], folder, drawn)


def _part(
    family_name: str,
    rows: Any,
    groups: Sequence[tuple[str, InstanceRow]],
    figures: Sequence[tuple[str, Figure]],
    folder: Path,
    drawn: set[str],
) -> Part:
    """One family's part: ``rows`` of the table, and its instances by the hashes of their files."""
    family = get_family(family_name)
    unit = family.objective.unit
    summary: Any = measures.summary(rows).drop(columns="family")
    by_size: Any = sizes.best_by_size(rows).drop(columns="family")
    runs = measures.over_seeds(rows)
    columns = [
        *SHOWN,
        *(measures.SEEDS if runs["seeds"].max() > 1 else ()),
        *(name for name in rows.columns if name.startswith("ratio_to_") and name not in SHOWN),
    ]
    columns = [name for name in columns if _filled(runs[name])]
    summary = summary[[name for name in summary.columns if _filled(summary[name])]]
    return Part(
        name=family_name,
        title=family.title,
        citation=family.citation,
        objective=family.objective.name,
        closing="; ".join([closing_line([row for _, row in groups]), *measures.stated_baselines(rows)]),
        best=sorted(_instance_rows(groups, rows, folder, drawn), key=lambda row: natural(row.cells[0].text)),
        figures=[(name, _svg(figure, f"{name}-{family_name}")) for name, figure in figures],
        method_columns=_headings(summary.columns),
        methods=_cells(summary, unit),
        run_columns=_headings(columns),
        runs=[
            Row([_cell(name, row[name], unit) for name in columns], str(row["status"]).replace(" ", "-"))
            for row in _rows(runs)
        ],
        size_columns=[(name.replace("_bytes", "").replace("_", " "), sizes.COLUMNS[name]) for name in by_size],
        sizes=_cells(by_size, unit),
        rates=rates.as_nccl_tests([(row.best, row.gap) for _, row in groups if row.best is not None]),
    )


def _cells(table: pd.DataFrame, unit: str) -> list[Row]:
    """Every row of a table with all its columns."""
    return [Row([_cell(str(name), value, unit) for name, value in row.items()]) for row in _rows(table)]


def _filled(column: Any) -> bool:
    return any(value == value and value is not None and value != "" for value in column)


def _headings(columns: Iterable[Any]) -> list[tuple[str, str]]:
    return [
        (HEADINGS.get(str(name), str(name).replace("_", " ")), {**COLUMNS, **measures.SEEDS}.get(str(name), ""))
        for name in columns
    ]


def _instance_rows(found: Iterable[tuple[str, InstanceRow]], rows: Any, folder: Path, drawn: set[str]) -> Iterator[Row]:
    """One row an instance (given by its file's hash); those of an alarm or a disproved bound are marked."""
    names = dict(zip(rows["instance_sha256"], rows["instance"], strict=True))
    labels = dict(zip(rows["record"], rows["label"], strict=True))
    runs = rows["instance_sha256"].value_counts()
    wrong = rows.loc[rows["status"].isin(WRONG), "instance_sha256"].value_counts()
    for sha, row in found:
        name, unit, best, standing = names[sha], get_family(row.family).objective.unit, row.best, row.standing
        key = f"{row.family}/{name}"
        marked = "alarm" if standing.alarms else "bound-disproved" if standing.disproved else ""
        none = Cell(row.ended if row.refuted else NOTHING, "", look="n")
        value = none if best is None else _cell("value", best.value, unit)
        if best is not None:
            value = replace(value, text=f"{value.text}{counted(best)}")
        gap = _cell("gap", row.gap, unit)
        cells = [
            Cell(name, link=key if key in drawn else ""),
            value,
            _cell("bound", standing.bound, unit),
            replace(gap, text=f"{gap.text} ✓", title=f"proven best; gap {gap.title}") if row.solved else gap,
            _grade(standing),
            Cell(row.label if (by := row.named) is None else by.lender or labels.get(place(by, folder), row.label)),
            _opponent(row, unit, labels, folder),
            _stated(_cell("ratio_to_best", row.ratio, unit), row),
            Cell(f"{runs[sha]:,}" + (f" ({wrong[sha]} failed)" if sha in wrong else ""), int(runs[sha]), look="n"),
            _cell("total_s", row.seconds, unit),
        ]
        yield Row(cells, marked)


def _opponent(row: InstanceRow, unit: str, labels: Mapping[str, str], folder: Path) -> Cell:
    """The least value of an opponent, and whose it is."""
    if row.published is None:
        return _cell("value", None, unit)
    cell, whose = _cell("value", row.published.value, unit), row.published.label
    whose = row.published.lender or labels.get(place(row.published, folder), whose)
    return _stated(replace(cell, text=f"{cell.text}{counted(row.published)} by {whose}"), row)


def _stated(cell: Cell, row: InstanceRow) -> Cell:
    """The cell, marked where the published record only states its method (the footnote closes the table)."""
    return replace(cell, text=f"{cell.text}{STATED}", title=f"{cell.title} {FOOTNOTE}") if row.stated else cell


def _grade(found: Standing) -> Cell:
    """By what an instance's bound is proven."""
    if found.best is None:
        return Cell(NOTHING)
    if found.best.grade == "certified":
        return Cell("certified", title="the check derived the bound again from its certificate", look="certified")
    return Cell(f"solver {found.proof}", title=f"the word of {found.best.words_of_grade}", look="solver")


def _cell(name: str, value: Any, unit: str) -> Cell:
    """A column's value as a person reads it; the exact number in the title."""
    if value is None or value != value:
        return Cell(NOTHING, "", look="n")
    if isinstance(value, bool):
        return Cell("yes" if value else "no", int(value))
    if not isinstance(value, int | float):
        return Cell(str(value), look=_look(value) if name in ("proof", "best_proof") and value else "")
    exact = f"{value:.17g}" if float(value).is_integer() else repr(float(value))
    if name in GAPS:
        return Cell(percent(value), value, exact, "n")
    if name.startswith("ratio") or name == "speedup":
        return Cell(times(value), value, exact, "n")
    of = UNITS.get(name) or (unit if name in VALUES else "s" if name.endswith("_s") else "")
    return Cell(shown(float(value), of), value, f"{exact} {of}".strip(), "n")


def _look(proof: str) -> str:
    return "certified" if proof == "certified" else "solver"


def alarms(table: pd.DataFrame) -> list[str]:
    """What must not be: schedules below certified bounds first, then solvers' bounds that a schedule disproves."""
    return [
        f"{row['instance']} {row['label']}: {row['faults']}"
        for status in ("alarm", "bound disproved")
        for row in (table[table["status"] == status].to_dict("records") if len(table) else ())
    ]


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def facts(table: pd.DataFrame) -> list[tuple[str, str]]:
    """When, with what and under which limits the runs were made, as pairs (what, text)."""
    installed = []
    for name in VERSIONS:
        try:
            installed.append(f"{name} {version(name)}")
        except Exception:
            installed.append(f"{name} not installed")
    good = int((table["status"] == "ok").sum()) if len(table) else 0
    failed = int(table["status"].isin(WRONG).sum()) if len(table) else 0
    empty = len(table) - good - failed
    used = table[table["solver"] != ""]
    solvers = [f"{solver} {version}" for solver, version in zip(used["solver"], used["solver_version"], strict=True)]
    limits = table["time_limit_s"].astype(float).map(lambda limit: shown(limit, "s") if limit == limit else "none")
    gaps = table["relative_gap"].astype(float).map(percent)
    toolkits = "; ".join(f"synth {_distinct([v])}" for v in sorted(set(table["toolkit_version"])))
    ended = f"{good:,} ok, {failed:,} failed, disproved or an alarm, {empty:,} with neither value nor bound"
    made = f"{datetime.now(UTC).isoformat(timespec='seconds')} by synth {synth.__version__}"
    return [
        ("runs", f"{len(table):,}: {ended}"),
        ("run on", _distinct(table["host"])),
        ("when", f"{table['created'].min()} to {table['created'].max()}" if len(table) else "–"),
        ("toolkit, solvers", f"{toolkits}; {_distinct(solvers)}"),
        ("limits", _distinct(limits)),
        ("seeds; threads; gaps", "; ".join(_distinct(values) for values in (table["seed"], table["threads"], gaps))),
        ("report made", f"{made}, Python {platform.python_version()}, {', '.join(installed)}"),
    ]


def _distinct(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in dict.fromkeys(sorted(values))) or "–"


def _svg(figure: Figure, name: str) -> str:
    """The figure as a part of the page: no background, and what is black takes the page's text colour."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}), laid_out(figure, SCREEN_DPI):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace("#000000", "currentColor")
    return re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)


def _json(data: Any) -> str:
    """The data for the page's script, every text in it as the page shows it."""
    return json.dumps(_in_view(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _in_view(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _in_view(value) for key, value in data.items()}
    return [_in_view(value) for value in data] if isinstance(data, list) else _one_line(data)


def _animations(
    table: pd.DataFrame, folder: Path, records: Sequence[Record], instances: Sequence[Instance]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The schedule of every instance's row, by family and instance, and which are not drawn and why."""
    of_record = {row["record"]: row for row in table.to_dict("records")}
    named = baselines_of(table)
    best = [row.best for group in by_instance(records).values() for row in rows_by_instance(group, named)]
    shown_ones = [
        (record, of_record[place(record, folder)])
        for record in best
        if record is not None and record.evidence == "replayed"
    ]
    by_name = {(instance.family, instance.name): instance for instance in instances}
    made: list[dict[str, Any]] = []
    undrawn = []
    for record, row in sorted(shown_ones, key=lambda pair: (pair[1]["family"], natural(pair[1]["instance"]))):
        instance = by_name.get((row["family"], plain_name(row["instance"])))
        found = _frames(record, instance) if len(made) < MOST_ANIMATIONS else "the page is full"
        if isinstance(found, str):
            undrawn.append(f"{row['instance']}: {found}")
            continue
        of = "" if row["unit"] in SCALES else f" {row['unit']}"
        title = f"{row['instance']}: {row['label']}, {shown(row['value'], row['unit'])}{of}"
        key = f"{row['family']}/{row['instance']}"
        words = {"title": title, "key": key, "family": row["family"], "sizes": _sizes(instance)}
        made.append(animation.as_data(found) | words)
    return made, undrawn


def _sizes(instance: Instance | None) -> str:
    """The sizes that an instance states for all its data alike: its numbers that are named ``…bytes``."""
    sizes = [] if instance is None else [(name, getattr(instance, name)) for name in type(instance).model_fields]
    return ", ".join(
        f"{name.removesuffix('bytes').rstrip('_').replace('_', ' ') or 'data'} {shown(size, 'bytes')}"
        for name, size in sizes
        if name.endswith("bytes") and isinstance(size, int | float)
    )


def _frames(record: Record, instance: Instance | None) -> Frames | str:
    """The record's solution as frames, or why it has none."""
    if instance is None:
        return "its instance is not in the study any more"
    if instance.sha256 != record["instance_sha256"]:
        return "its instance file has changed since"
    if record.packed is None:
        return "its record holds no solution"
    family = get_family(instance.family)
    found: Frames | None = None
    if family.can("frames"):
        found = family.capability("frames")(instance, load(family.unpack)(instance, record.packed))
    if found is None:
        return f"family {family.name} has no animation of it"
    if len(found.positions) > MOST_NODES:
        return f"{len(found.positions)} nodes, more than {MOST_NODES}"
    return found
