"""A study's report: one HTML file that needs nothing else and opens offline."""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

import synth
from synth.family import get_family
from synth.frames import Frames
from synth.instance import Instance
from synth.record import Record
from synth.study import measures
from synth.study.table import COLUMNS

MOST_MOVES = 4000  # of one animation; the steps beyond are left out and the page says so
MOST_ANIMATIONS = 40
MOST_NODES = 256
VERSIONS = ("collective-synth", "pyomo", "highspy", "ortools", "numpy", "numba", "gurobipy", "pyscipopt")
SHOWN = (
    "family", "instance", "label", "status", "termination", "value", "bound", "best_bound", "gap", "ratio_to_best",
    "win", "solved", "total_s", "message",
)  # fmt: skip


def write(
    path: Path, title: str, command: str, table: pd.DataFrame, skipped: Sequence[str],
    figures: Sequence[tuple[str, Figure]], records: Sequence[Record], instances: dict[tuple[str, str], Instance],
) -> None:  # fmt: skip
    """Write the report to ``path``. ``instances`` by (family, name) are needed to draw their best schedules."""
    from jinja2 import Environment, PackageLoader

    page = files("synth.study") / "page"
    template = Environment(loader=PackageLoader("synth.study", "page"), autoescape=True).get_template("report.html")
    best = measures.best_of_instances(table) if len(table) else pd.DataFrame()
    text = template.render(
        title=title,
        command=command,
        style=(page / "report.css").read_text(),
        script=(page / "report.js").read_text(),
        facts=_facts(table),
        skipped=skipped,
        summary=_rows(measures.summary(table)) if len(table) else [],
        best=_rows(best),
        columns=_shown(table),
        rows=_rows(table[_shown(table)]),
        meanings=COLUMNS,
        shift=measures.SHIFT_S,
        figures=[(name, _svg(figure, name)) for name, figure in figures],
        animations=_json(_animations(table, records, instances)),
        most_animations=MOST_ANIMATIONS,
        most_moves=MOST_MOVES,
    )
    path.write_text(text, encoding="utf-8")


def _shown(table: pd.DataFrame) -> list[str]:
    return [*SHOWN, *(name for name in table.columns if name.startswith("ratio_to_") and name not in SHOWN)]


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
    failed = int((table["status"] == "failed").sum()) if len(table) else 0
    hosts = ", ".join(sorted(set(table["host"]))) if len(table) else ""
    return [
        ("runs", f"{len(table)}: {good} ok, {failed} failed, {len(table) - good - failed} without value and bound"),
        ("run on", hosts or "–"),
        ("report made", f"{datetime.now(UTC).isoformat(timespec='seconds')} with Python {platform.python_version()}"),
        ("toolkit", f"synth {synth.__version__}; {'; '.join(installed)}"),
        ("limits", ", ".join(f"{limit:g} s" if limit == limit else "none"
                             for limit in sorted(set(table["time_limit_s"].astype(float)))) if len(table) else "–"),
        ("seeds", ", ".join(str(seed) for seed in sorted(set(table["seed"]))) if len(table) else "–"),
    ]  # fmt: skip


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
    table: pd.DataFrame, records: Sequence[Record], instances: dict[tuple[str, str], Instance]
) -> list[dict[str, Any]]:
    """The best schedule of every instance: least value, then least time."""
    if table.empty:
        return []
    good: Any = table[(table["status"] == "ok") & table["value"].notna()]
    firsts = good.sort_values(["value", "total_s"], kind="stable").groupby(["family", "instance"], sort=True).head(1)
    by_path = {record.path.as_posix(): record for record in records if record.path is not None}
    made: list[dict[str, Any]] = []
    for row in firsts.sort_values(["family", "instance"]).to_dict("records"):
        if len(made) == MOST_ANIMATIONS:
            break
        record = next(record for path, record in by_path.items() if path.endswith("/" + row["record"]))
        instance = instances.get((row["family"], row["instance"]))
        if instance is None or record.packed is None:
            continue
        family = get_family(row["family"])
        found = family.frames(instance, family.unpack(instance, record.packed))
        if found is None or len(found.positions) > MOST_NODES:
            continue
        data = animation(found)
        made.append(data | {"title": f"{row['instance']}: {row['label']}, {row['value']:.6g} {row['unit']}"})
    return made


def animation(found: Frames) -> dict[str, Any]:
    """Frames as plain data for the page's script, cut to whole steps of at most ``MOST_MOVES`` moves in all."""
    steps = int(found.step.max(initial=0))
    counts = [int(n) for n in (found.step[:, None] == range(1, steps + 1)).sum(axis=0)] if steps else []
    shown = total = 0
    while shown < steps and (shown == 0 or total + counts[shown] <= MOST_MOVES):
        total += counts[shown]
        shown += 1
    keep = found.step <= shown
    low, span = (
        found.positions.min(axis=0),
        max(float((found.positions.max(axis=0) - found.positions.min(axis=0)).max()), 1e-9),
    )
    places = [[round(float(x), 4), round(1 - float(y), 4)] for x, y in (found.positions - low) / span]
    moves: list[list[list[int]]] = [[] for _ in range(shown)]
    for step, src, dst, item in zip(found.step[keep].tolist(), found.src[keep].tolist(), found.dst[keep].tolist(),
                                    found.item[keep].tolist(), strict=True):  # fmt: skip
        moves[step - 1].append([src, dst, item])
    return {
        "places": places, "names": list(found.names), "links": found.links.tolist(), "moves": moves,
        "items": list(found.items), "held": found.held.tolist(), "titles": list(found.titles), "steps": steps,
        "aspect": min(1.0, max(0.25, max(y for _, y in places) - min(y for _, y in places))),
    }  # fmt: skip
