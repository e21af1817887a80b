"""A study's report: one HTML file that needs nothing else and opens offline."""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import synth
from synth.family import get_family, load
from synth.frames import Frames
from synth.instance import Instance
from synth.record import Record
from synth.study import measures
from synth.study.table import COLUMNS, VALUE_COUNTS, WRONG, place, plain_name

MOST_MOVES = 4000  # of one animation; the steps beyond are left out and the page says so
MOST_ANIMATIONS = 40
MOST_NODES = 256
LONGEST = 7  # digits before the point that a table shows without a power of ten
VERSIONS = ("pyomo", "highspy", "ortools", "numpy", "numba", "gurobipy", "pyscipopt")
SHOWN = (
    *("family", "instance", "label", "status", "termination", "evidence", "value", "bound", "proof", "best_bound"),
    *("best_proof", "gap", "ratio_to_best", "win", "solved", "total_s", "message", "faults"),
)


@dataclass(frozen=True)
class Ran:
    """What the report says about the study itself."""

    title: str
    command: str
    notes: Sequence[str] = ()
    study_file: str = ""


def write(
    path: Path,
    ran: Ran,
    table: pd.DataFrame,
    figures: Sequence[tuple[str, Figure]],
    records: Sequence[Record],
    instances: Sequence[Instance],
) -> None:
    """Write the report to ``path``. The ``instances`` are needed to draw their best schedules."""
    from jinja2 import Environment, PackageLoader

    page = files("synth.study") / "page"
    environment = Environment(loader=PackageLoader("synth.study", "page"), autoescape=True)
    environment.filters["for_people"] = for_people
    template = environment.get_template("report.html")
    best = measures.best_of_instances(table) if len(table) else pd.DataFrame()
    animations, undrawn = _animations(table, {place(record, path.parent): record for record in records}, instances)
    text = template.render(
        title=ran.title,
        command=ran.command,
        study_file=ran.study_file,
        style=(page / "report.css").read_text(),
        script=(page / "report.js").read_text(),
        facts=_facts(table),
        alarms=alarms(table),
        skipped=ran.notes,
        summary=_rows(measures.summary(table)) if len(table) else [],
        best=_rows(best),
        columns=_shown(table),
        rows=_rows(table[_shown(table)]),
        meanings=COLUMNS,
        shift=measures.SHIFT_S,
        figures=[(name, _svg(figure, name)) for name, figure in figures],
        animations=_json(animations),
        undrawn=undrawn,
        most_animations=MOST_ANIMATIONS,
        most_moves=MOST_MOVES,
    )
    path.write_text(text, encoding="utf-8")


def alarms(table: pd.DataFrame) -> list[str]:
    """What must not be: schedules below certified bounds first, then solvers' bounds that a schedule disproves."""
    return [
        f"{row['instance']} {row['label']}: {row['faults']}"
        for status in ("alarm", "bound disproved")
        for row in (table[table["status"] == status].to_dict("records") if len(table) else ())
    ]


def for_people(value: float) -> str:
    """A number of a table: whole numbers in full, others to four digits."""
    if float(value).is_integer() and abs(value) < 10**12:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) < 10**LONGEST else f"{value:.6g}"


def _shown(table: pd.DataFrame) -> list[str]:
    first = SHOWN[1:] if table["family"].nunique() == 1 else SHOWN
    return [*first, *(name for name in table.columns if name.startswith("ratio_to_") and name not in SHOWN)]


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def _facts(table: pd.DataFrame) -> list[tuple[str, str]]:
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
    limits = table["time_limit_s"].astype(float).map(lambda limit: f"{limit:g} s" if limit == limit else "none")
    toolkits = "; ".join(f"synth {_distinct([v])}" for v in sorted(set(table["toolkit_version"])))
    made = f"{datetime.now(UTC).isoformat(timespec='seconds')} by synth {synth.__version__}"
    return [
        ("runs", f"{len(table)}: {good} ok, {failed} failed, disproved or an alarm, {empty} without value and bound"),
        ("run on", _distinct(table["host"])),
        ("when", f"{table['created'].min()} to {table['created'].max()}" if len(table) else "–"),
        ("toolkit, solvers", f"{toolkits}; {_distinct(solvers)}"),
        ("limits", _distinct(limits)),
        ("seeds, threads, gaps", "; ".join(_distinct(table[name]) for name in ("seed", "threads", "relative_gap"))),
        ("report made", f"{made}, Python {platform.python_version()}, {', '.join(installed)}"),
    ]


def _distinct(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in dict.fromkeys(sorted(values))) or "–"


def _svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _json(data: Any) -> str:
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")


def _animations(
    table: pd.DataFrame, records: Mapping[str, Record], instances: Sequence[Instance]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The best schedule of every instance (least value, then least time), and which are not drawn and why. ``records``
    are by the table's column ``record``."""
    by_name = {(instance.family, instance.name): instance for instance in instances}
    good: Any = table[table["status"].isin(VALUE_COUNTS) & (table["evidence"] == "replayed")]
    firsts = good.sort_values(["value", "total_s"], kind="stable").groupby(["family", "instance"], sort=True).head(1)
    made: list[dict[str, Any]] = []
    undrawn = []
    for row in firsts.sort_values(["family", "instance"]).to_dict("records"):
        instance = by_name.get((row["family"], plain_name(row["instance"])))
        found = _frames(records[row["record"]], instance) if len(made) < MOST_ANIMATIONS else "the page is full"
        if isinstance(found, str):
            undrawn.append(f"{row['instance']}: {found}")
            continue
        title = f"{row['instance']}: {row['label']}, {for_people(row['value'])} {row['unit']}"
        made.append(animation(found) | {"title": title})
    return made, undrawn


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
    if family.frames is not None:
        found = load(family.frames)(instance, load(family.unpack)(instance, record.packed))
    if found is None:
        return f"family {family.name} has no animation of it"
    if len(found.positions) > MOST_NODES:
        return f"{len(found.positions)} nodes, more than {MOST_NODES}"
    if int((found.step == 1).sum()) > MOST_MOVES:
        return f"its first step alone has more than {MOST_MOVES} transfers"
    return found


def animation(found: Frames) -> dict[str, Any]:
    """Frames as plain data for the page's script, cut to whole steps of at most ``MOST_MOVES`` moves in all."""
    steps = int(found.step.max(initial=0))
    shown = int((np.cumsum(np.bincount(found.step, minlength=1)[1:]) <= MOST_MOVES).sum())
    keep = found.step <= shown
    low = found.positions.min(axis=0)
    span = max(float((found.positions.max(axis=0) - low).max()), 1e-9)
    places = [[round(float(x), 4), round(1 - float(y), 4)] for x, y in (found.positions - low) / span]
    moves: list[list[list[int]]] = [[] for _ in range(shown)]
    columns = (column[keep].tolist() for column in (found.step, found.src, found.dst, found.item))
    for step, src, dst, item in zip(*columns, strict=True):
        moves[step - 1].append([src, dst, item])
    return {
        "places": places,
        "names": list(found.names),
        "links": found.links.tolist(),
        "moves": moves,
        "items": list(found.items),
        "groups": found.groups.tolist(),
        "held": found.held.tolist(),
        "titles": list(found.titles),
        "steps": steps,
        "aspect": min(1.0, max(0.25, max(y for _, y in places) - min(y for _, y in places))),
    }
