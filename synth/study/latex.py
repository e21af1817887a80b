"""The summary of a study for a paper: a row per method, as CSV (exact) and as a LaTeX table (``booktabs``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from synth.study.measures import summary
from synth.study.names import label_of
from synth.text.files import write_atomically
from synth.text.quantities import NOTHING, percent, shown, times

NAMES = {
    "label": "method",
    "with_value": "values",
    "mean_gap": "mean gap",
    "time_s": "time",
    "to_gap_s": "to 1 \\% gap",
}
NO_LABELS: Mapping[str, str] = MappingProxyType({})
LEFT = ("family", "label", "kind")
_PERCENT = ("mean_gap", "spread")


def write(table: pd.DataFrame, folder: Path, labels: Mapping[str, str] = NO_LABELS) -> list[Path]:
    """Write ``summary.csv`` and ``summary-methods.tex`` (with ``labels``: names for print) into the folder; their
    paths."""
    rows = summary(table)
    for_print = rows.assign(label=[label_of(str(label), labels) for label in rows["label"]])
    written = {folder / "summary.csv": rows.to_csv(index=False), folder / "summary-methods.tex": as_latex(for_print)}
    for path, text in written.items():
        write_atomically(path, text.encode())
    return list(written)


def as_latex(rows: pd.DataFrame) -> str:
    """A ``tabular`` with the rules of ``booktabs``; every text escaped, columns without any number left out."""
    if rows["family"].nunique() == 1:
        rows = rows.drop(columns="family")
    kept = [
        name for name in rows.columns if rows[name].notna().any() and not (name == "seeds" and rows[name].max() < 2)
    ]
    lines = [r"% needs \usepackage{booktabs}"]
    lines += [rf"\begin{{tabular}}{{{''.join('l' if name in LEFT else 'r' for name in kept)}}}", r"\toprule"]
    lines += [
        " & ".join(NAMES.get(str(name), escaped(str(name).replace("_", " "))) for name in kept) + r" \\",
        r"\midrule",
    ]
    for row in rows.to_dict("records"):
        lines.append(" & ".join(escaped(_cell(str(name), row[name])) for name in kept) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escaped(text: str) -> str:
    """The text with every character that TeX would read as a command written as itself."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
               "×": r"$\times$",
               "<": r"\textless{}", ">": r"\textgreater{}", "≤": r"$\le$", "≥": r"$\ge$"}  # fmt: skip
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(special.get(sign, sign) for sign in text)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return NOTHING
    if name in _PERCENT:
        return percent(float(value))
    if name.startswith("ratio"):
        return times(float(value))
    return shown(float(value), "s" if name.endswith("_s") else "")
