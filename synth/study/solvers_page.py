"""A study of solvers as a page in Markdown, with its figures and its table of runs beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from synth.records.record import Record
from synth.solvers.catalogue import known_solvers
from synth.study import figures, measures
from synth.study.report import facts
from synth.text.quantities import NOTHING, percent, shown
from synth.text.visible import in_cell
from synth.views.figure_style import save

OWN = ("host", "record")  # columns of the table that only mean something where the study ran
HEADINGS = {"time_s": "time", "to_gap_s": "time to 1 %", "mean_gap": "mean gap", "with_value": "with value"}
CAPTIONS = {
    "gaps": "Gap to the best proven bound of any run, per instance.",
    "profile": "Performance profiles by family: the share of cases proven within a factor of the least time.",
    "progress": "Value and bound over time, on the instances that took longest.",
}
OF_METHODS = """Runs that differ in their seed only are one row. `wins`: the value is the best of all runs.
`reached`: runs that held a value within 1 % of the best bound, after `time to 1 %`.
`time` is over all runs of the row that ended well.
"""
METHODS = ("label", "runs", "with_value", "wins", "solved", "certified", "mean_gap", "time_s", "reached", "to_gap_s")


def write(path: Path, title: str, command: str, table: pd.DataFrame, records: Sequence[Record]) -> list[Path]:
    """Write the page to ``path``; into the folder of its name ``profile-all.png``, a PNG a figure and ``table.csv``.
    Return all of them.

    Raises ``ValueError`` where the table has no two solvers that were given the same instance."""
    compared = measures.by_solver(table)
    if len(compared) < 2:
        raise ValueError("no instance was given to two solvers")
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "table.csv"]
    table.drop(columns=list(OWN)).to_csv(written[0], index=False)
    together = measures.solvers_rows(table).assign(family="all", group=lambda rows: rows["solver"])
    drawn = {"profile-all": figures.draw("profile", together, records)}
    drawn |= {name: figures.draw(name, table, records) for name in CAPTIONS}
    for name, figure in drawn.items():
        if figure is not None:
            written.append(folder / f"{name}.png")
            save(figure, written[-1], dpi=110)
    made = {file.stem for file in written}
    parts = [f"# {title}\n", _answer(compared, table), f"Made by `{command}`.\n"]
    if "profile-all" in made:
        parts.append(
            _picture(folder, "profile-all", "Performance profiles over the cases that every solver was given.")
        )
    parts += [
        "## By solver\n",
        by_solver_table(compared),
        f"## By family and method\n\n{OF_METHODS}",
        by_family_tables(table),
    ]
    parts += [_picture(folder, name, caption) for name, caption in CAPTIONS.items() if name in made]
    parts += ["## How it ran\n", _how(table)]
    path.write_text("\n".join(parts), encoding="utf-8")
    return [path, *written]


def _answer(compared: pd.DataFrame, table: pd.DataFrame) -> str:
    """What the study says, in three sentences."""
    rows = measures.solvers_rows(table)
    cases, common = len(rows[["instance_sha256", "seed"]].drop_duplicates()), int(compared["common"].iloc[0])
    most = compared["solved"].max()
    first = _words(_named(compared[compared["solved"] == most]["solver"]))
    text = (
        f"Every solver was given {cases} cases (an instance with a seed). The most proven within the gap are {most}, by"
    )
    text += f" {first}."
    timed = compared.sort_values("time_s")
    if common:
        order = (f"{name} {shown(t, 's')}" for name, t in zip(_named(timed["solver"]), timed["time_s"], strict=True))
        text += f" On the {common} that all of them prove, the shifted geometric mean of the time is {_words(order)}."
    refused = compared[compared["refused"] > 0]
    if len(refused):
        runs = (f"{name} {count}" for name, count in zip(_named(refused["solver"]), refused["refused"], strict=True))
        text += f" Runs refused for the size of their model (a licence, a limit of the method): {_words(runs)}."
    return f"{text}\nThe gap is (value − bound) / value, the bound being the best that any run proved.\n"


def _named(solvers: Iterable[str]) -> list[str]:
    known = known_solvers()
    return [known[solver].title if solver in known else solver for solver in solvers]


def _words(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def by_solver_table(compared: pd.DataFrame) -> str:
    """One table over all families, with what its columns mean."""
    rows = compared.assign(solver=_named(compared["solver"]))
    return _table(rows, list(rows.columns)) + (
        "\n`solved`: cases proven within the gap asked for; `certified`: of these, by a certificate. "
        "`common`: cases that all solvers solved; `time` is the shifted geometric mean over them "
        f"(shift {shown(measures.SHIFT_S, 's')}), `quickest` how many of them this solver solved first. "
        "`time to 1 %`: until a value within 1 % of the best bound was held.\n"
    )


def by_family_tables(table: pd.DataFrame) -> str:
    """Every method with every solver, on the instances of its own; runs that differ in their seed only are one row."""
    summary = measures.summary(table[table["solver"] != ""])
    parts = []
    for family, rows in summary.groupby("family", sort=True):
        parts.append(f"### {family}\n\n{_table(rows, [name for name in METHODS if name in rows])}")
    return "\n".join(parts)


def _table(rows: pd.DataFrame, columns: Sequence[str]) -> str:
    lines = [[HEADINGS.get(name, name) for name in columns], ["---", *["---:"] * (len(columns) - 1)]]
    lines += [[_cell(name, row[name]) for name in columns] for row in rows.to_dict("records")]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return in_cell(value)
    if value != value:
        return NOTHING
    if name.endswith("_s"):
        return shown(float(value), "s")
    return percent(float(value)) if name == "mean_gap" else f"{value:,}"


def _picture(folder: Path, name: str, caption: str) -> str:
    return f"![{caption}]({folder.name}/{name}.png)\n\n*{caption}*\n"


def _how(table: pd.DataFrame) -> str:
    """Limits, versions and licences."""
    lines = [f"* {what}: {text}" for what, text in facts(table) if what not in ("run on", "report made")]
    known = known_solvers()
    used = [known[name] for name in sorted(set(table["solver"]) - {""}) if name in known]
    lines.append(f"* licences: {'; '.join(f'{one.title}: {one.licence}' for one in used)}")
    lines.append("* times are wall times of building and solving, on one core of a machine that others used meanwhile")
    return "\n".join(lines) + "\n"
