"""Two studies side by side: what got better and what got worse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import InputError
from synth.study.measures import geometric_mean, shifted_geometric_mean
from synth.study.table import MEETS, build, read_records

KEYS = ["family", "instance", "method", "solver", "seed", "time_limit_s", "options"]
SLOWER = 1.5  # a run that takes this many times longer is a regression, if it takes
LEAST_S = 1.0  # at least this long (timings below it are noise)


@dataclass(frozen=True)
class Comparison:
    """``rows``: one per run in both studies, columns of A and B and their ratios; ``regressions``: those of them where
    B is worse, with ``why``; ``only``: runs that only one of the studies has."""

    rows: pd.DataFrame
    regressions: pd.DataFrame
    summary: pd.DataFrame
    only: tuple[int, int]


def compare(first: Path, second: Path) -> Comparison:
    """Compare the studies in two folders. Runs are matched by instance, method, solver, seed, limit and parameters;
    what is left over, without the solver (``solver`` is then ``"highs / scip"``) where that is still unique.

    A run regresses when B fails and A did not, its value is greater, its bound lower, it no longer proves its value,
    or it takes at least ``SLOWER`` times as long (and ``LEAST_S`` or more). Raises :class:`InputError`.
    """
    tables = []
    for folder in (first, second):
        records = read_records(folder)
        if not records:
            raise InputError("no records of a study here", str(folder / "records"))
        table: Any = build(folder.name, folder, records)
        table["time_limit_s"] = table["time_limit_s"].fillna(float("inf"))
        tables.append(table)
    wanted = [*KEYS, "status", "termination", "value", "bound", "solved", "total_s", "instance_sha256", "unit"]
    a, b = (table[wanted] for table in tables)
    same: Any = a.merge(b, on=KEYS, suffixes=("_a", "_b"))
    other = [key for key in KEYS if key != "solver"]
    left, right = (_unmatched(table, same, other) for table in (a, b))
    swapped: Any = left.merge(right, on=other, suffixes=("_a", "_b"))
    swapped["solver"] = swapped.pop("solver_a") + " / " + swapped.pop("solver_b")
    rows: Any = pd.concat([same, swapped], ignore_index=True) if len(swapped) else same
    only = len(a) - len(rows), len(b) - len(rows)
    rows["value_ratio"] = rows["value_b"] / rows["value_a"].where(rows["value_a"] != 0)
    rows["time_ratio"] = rows["total_s_b"] / rows["total_s_a"].where(rows["total_s_a"] > 0)
    rows["why"] = [", ".join(_worse(row)) for row in rows.to_dict("records")]
    return Comparison(rows, rows[rows["why"] != ""].reset_index(drop=True), _summary(rows), only)


def _unmatched(table: Any, same: Any, keys: list[str]) -> Any:
    """The rows that are not in ``same`` and have their ``keys`` for themselves."""
    rest = table.merge(same[KEYS], on=KEYS, how="left", indicator=True)
    rest = rest[rest["_merge"] == "left_only"].drop(columns="_merge")
    return rest[~rest.duplicated(keys, keep=False)]


def _worse(row: dict[str, Any]) -> list[str]:
    if row["instance_sha256_a"] != row["instance_sha256_b"]:
        return ["the instance file differs: not comparable"]
    if row["status_a"] in ("failed", "disproved"):
        return []
    if row["status_b"] == "disproved":
        return ["value below a proven bound"]
    if row["status_b"] == "failed":
        return [f"fails ({row['termination_b']})"]
    why = []
    if pd.notna(row["value_a"]) and pd.isna(row["value_b"]):
        why.append("no value any more")
    elif row["value_b"] > row["value_a"] + MEETS * abs(row["value_a"]):
        why.append("value worse")
    if pd.notna(row["bound_a"]) and pd.isna(row["bound_b"]):
        why.append("no bound any more")
    elif row["bound_b"] < row["bound_a"] - MEETS * abs(row["bound_a"]):
        why.append("bound weaker")
    if row["solved_a"] and not row["solved_b"]:
        why.append("no longer proven")
    if row["total_s_b"] >= LEAST_S and row["total_s_b"] >= SLOWER * row["total_s_a"]:
        why.append(f"{row['time_ratio']:.1f} times slower")
    return why


def _summary(rows: Any) -> pd.DataFrame:
    """One row per family and method: runs, solved in A and B, geometric mean of value ratios, times, regressions."""
    made = []
    for (family, method, solver), group in rows.groupby(["family", "method", "solver"], sort=True):
        good = group[(group["status_a"] == "ok") & (group["status_b"] == "ok")]
        a, b = (shifted_geometric_mean(good[f"total_s_{x}"].to_numpy()) for x in "ab")
        made.append(
            {
                "family": family,
                "method": method + (f"-{solver}" if solver else ""),
                "runs": len(group),
                "solved_a": int(group["solved_a"].sum()),
                "solved_b": int(group["solved_b"].sum()),
                "value_b/a": geometric_mean(good["value_ratio"].dropna().to_numpy()),
                "time_a_s": a,
                "time_b_s": b,
                "regressions": int((group["why"] != "").sum()),
            }
        )
    return pd.DataFrame(made)
