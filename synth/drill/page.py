"""The drill's table, from the worst down, as rows, CSV and Markdown, and its picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from synth.drill.in_form import limit
from synth.drill.rings import unchanged
from synth.drill.search import Case, Drill
from synth.records.optimality import gap
from synth.text.files import write_atomically
from synth.text.quantities import percent, shown, times
from synth.text.visible import in_cell
from synth.views.figure_style import save

HEAD = ("failure", "alike", "time", "bound", "gap", "loss", "by", "rings lose")
EXPORTED = ("as scheduled", "ratio")  # columns more, of what an executor runs


def frame(drill: Drill) -> pd.DataFrame:
    """A row an orbit, the worst first, times in seconds, shares as numbers; ``rings_s``, ``rings_loss``: of the whole
    machine's rings, which go on unchanged. Of what an executor runs also the time of the best schedule
    (``scheduled_s``), the ``ratio`` to it, the ``program`` in words, and the ``limit`` of the executor that costs more
    than is tolerated."""
    rings = unchanged(drill)
    return pd.DataFrame([_row(drill, case, rings) for case in (*drill.ordered(), drill.whole)])


def head(drill: Drill) -> tuple[str, ...]:
    """The columns for a person."""
    return (*HEAD, *EXPORTED) if drill.question.exports else HEAD


def _row(drill: Drill, case: Case, rings: Mapping[str, float]) -> dict[str, Any]:
    best = case.best
    by = "" if best is None else best.whose
    if case.borrowed and case.borrowed_seconds is not None and case.seconds == case.borrowed_seconds:
        by = f"the schedule for {case.borrowed}"
    return {
        "failure": case.name,
        "kind": "" if case.orbit is None else case.orbit.representative.kind,
        "alike": 1 if case.orbit is None else len(case.orbit.members),
        "seconds": case.seconds,
        "bound_s": case.bound,
        "gap": gap(case.seconds, case.bound),
        "loss": None if case.orbit is None else drill.loss(case),
        "by": by,
        "parted": "" if case.cut is None else str(case.cut),
        "instance": "" if case.instance is None else case.instance.name,
        "rings_s": rings.get(case.name),
        "rings_loss": None if case.orbit is None or case.name not in rings else rings[case.name] / rings["nothing"] - 1,
        **(_in_form(drill, case) if drill.question.exports else {}),
    }


def _in_form(drill: Drill, case: Case) -> dict[str, Any]:
    """The columns of what an executor runs."""
    seconds, scheduled = case.seconds, case.scheduled_seconds
    asked, size = drill.question, int(getattr(drill.question.whole, "bytes", 0))
    return {
        "scheduled_s": scheduled,
        "ratio": None if seconds is None or not scheduled else seconds / scheduled,
        "program": "" if case.quickest is None else case.quickest.program.how,
        "limit": limit(case.records, asked.form, seconds, size, asked.costs, case.quickest) if seconds else "",
    }


def cells(table: pd.DataFrame) -> list[list[str]]:
    """The rows for a person."""
    return [
        [
            row["failure"], str(row["alike"]), _in("s", row["seconds"]), _in("s", row["bound_s"]), _share(row["gap"]),
            "parted" if row["parted"] else _share(row["loss"]), row["by"],
            _share(row["rings_loss"]), *_exported(row),
        ]
        for row in table.to_dict("records")
    ]  # fmt: skip


def _exported(row: Any) -> list[str]:
    """The columns of what an executor runs, if there are any."""
    if "ratio" not in row:
        return []
    return [_in("s", row["scheduled_s"]), "–" if pd.isna(row["ratio"]) else times(row["ratio"])]


def _in(unit: str, value: Any) -> str:
    return "–" if value is None or pd.isna(value) else shown(float(value), unit)


def _share(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else percent(float(value))


def parted(table: pd.DataFrame) -> list[str]:
    """A sentence for every failure that parts the ranks."""
    return [f"{row['failure']} ({row['alike']} alike): {row['parted']}" for row in table.to_dict("records")
            if row["parted"]]  # fmt: skip


def limits(table: pd.DataFrame) -> list[str]:
    """A sentence for every row whose exported time a limit of the executor makes longer than is tolerated."""
    return [f"{row['failure']}: as exported {_exported(row)[1]} of as scheduled; {row['limit']}"
            for row in table.to_dict("records") if row.get("limit")]  # fmt: skip


def markdown(table: pd.DataFrame, title: str) -> str:
    """The table as a page."""
    names = (*HEAD, *EXPORTED) if "ratio" in table else HEAD
    lines = [f"# {in_cell(title)}", "", f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += [f"| {' | '.join(map(in_cell, row))} |" for row in cells(table)]
    lines += [
        "",
        *(f"* {in_cell(words)}" for words in (*parted(table), *limits(table))),
        "",
        "![losses](losses.svg)",
        "",
    ]
    return "\n".join(lines)


def figure(drill: Drill, title: str) -> Any:
    """The machine, its links and switches coloured by what their loss costs."""
    orbits = [case.orbit for case in drill.cases if case.orbit is not None]
    losses = {case.name: loss for case in drill.cases if (loss := drill.loss(case)) is not None}
    return drill.breakable.plot(losses, orbits, title)


def write(drill: Drill, folder: Path, title: str) -> tuple[pd.DataFrame, list[Path]]:
    """``table.csv``, ``table.md`` and ``losses.svg`` in the folder. Raises ``OSError``."""
    table = frame(drill)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "table.csv", table.to_csv(index=False).encode())
    write_atomically(folder / "table.md", markdown(table, title).encode())
    save(figure(drill, title), folder / "losses.svg", bbox_inches="tight")
    return table, [folder / name for name in ("table.csv", "table.md", "losses.svg")]
