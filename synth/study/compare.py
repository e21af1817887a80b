"""Two studies side by side: what got better and what got worse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from synth.arrays import SAME
from synth.errors import InputError
from synth.study.measures import geometric_mean, shifted_geometric_mean
from synth.study.table import WRONG, build, plain_name, read_records

OPTIONS = ("seed", "time_limit_s", "relative_gap", "threads", "options")  # all that a user asks of a run
SAME_RUN = ("family", "instance", "instance_sha256", "method", "solver", *OPTIONS)
OTHER_FILE = tuple(key for key in SAME_RUN if key != "instance_sha256")
OTHER_SOLVER = tuple(key for key in SAME_RUN if key != "solver")
COMPARED = ("status", "termination", "value", "bound", "proof", "solved", "total_s", "instance_sha256", "unit")
Row = dict[str, Any]
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
    """Compare the studies in two folders. Runs are matched one to one by instance file, method, solver and all options;
    of those left over, runs of another file of the same name (which are not compared), and then runs by another solver
    (``solver`` is then ``"highs / scip"``) where that is unique.

    A run regresses when B fails and A did not, its value is greater, its bound lower, it no longer proves its value,
    or it takes at least ``SLOWER`` times as long (and ``LEAST_S`` or more). Raises :class:`InputError`.
    """
    left, right = (_rows_of(folder) for folder in (first, second))
    runs = len(left), len(right)
    pairs = []
    for keys, one_only in ((SAME_RUN, False), (OTHER_FILE, True), (OTHER_SOLVER, True)):
        matched = list(_pairs(left, right, keys, one_only))
        pairs += matched
        left, right = (_without(rows, [pair[side] for pair in matched]) for side, rows in ((0, left), (1, right)))
    rows: Any = pd.DataFrame([_side_by_side(a, b) for a, b in pairs], columns=_columns())
    rows["value_ratio"] = rows["value_b"] / rows["value_a"].where(rows["value_a"] != 0)
    rows["time_ratio"] = rows["total_s_b"] / rows["total_s_a"].where(rows["total_s_a"] > 0)
    rows["why"] = [", ".join(_worse(row)) for row in rows.to_dict("records")]
    only = runs[0] - len(rows), runs[1] - len(rows)
    return Comparison(rows, rows[rows["why"] != ""].reset_index(drop=True), _summary(rows), only)


def _rows_of(folder: Path) -> list[Row]:
    records = read_records(folder)
    if not records:
        raise InputError("no records of a study here", str(folder / "records"))
    table: Any = build(folder.name, folder, records)
    table["time_limit_s"] = table["time_limit_s"].fillna(float("inf"))
    table["instance"] = table["instance"].map(plain_name)
    return list(table.sort_values("record", kind="stable").to_dict("records"))


def _pairs(left: list[Row], right: list[Row], keys: tuple[str, ...], one_only: bool) -> Iterator[tuple[Row, Row]]:
    """Rows of both studies with the same ``keys``, each in one pair at most. Where several are alike in them (limits of
    ``60s`` and ``1m``) they are taken in the order of their records, or with ``one_only`` not at all."""
    groups: list[dict[tuple[Any, ...], list[Row]]] = [defaultdict(list), defaultdict(list)]
    for group, rows in zip(groups, (left, right), strict=True):
        for row in rows:
            group[tuple(None if pd.isna(row[key]) else row[key] for key in keys)].append(row)
    for key, ours in groups[0].items():
        theirs = groups[1].get(key, [])
        if not one_only or len(ours) == len(theirs) == 1:
            yield from zip(ours, theirs, strict=False)


def _without(rows: list[Row], taken: list[Row]) -> list[Row]:
    gone = {id(row) for row in taken}
    return [row for row in rows if id(row) not in gone]


def _side_by_side(a: Row, b: Row) -> Row:
    solver = a["solver"] if a["solver"] == b["solver"] else f"{a['solver']} / {b['solver']}"
    shared = {key: a[key] for key in SAME_RUN if key != "instance_sha256"} | {"solver": solver}
    return shared | {f"{key}_{side}": row[key] for key in COMPARED for side, row in (("a", a), ("b", b))}


def _columns() -> list[str]:
    shared = [key for key in SAME_RUN if key != "instance_sha256"]
    return shared + [f"{key}_{side}" for key in COMPARED for side in "ab"]


def _worse(row: dict[str, Any]) -> list[str]:
    if row["instance_sha256_a"] != row["instance_sha256_b"]:
        return ["the instance file differs: not comparable"]
    if row["status_a"] in WRONG:
        return []
    match row["status_b"]:
        case "disproved":
            return ["value below a proven bound"]
        case "alarm":
            return ["value below a certified bound: ALARM"]
        case "bound disproved":
            return ["bound above a replayed value"]
        case "failed":
            return [f"fails ({row['termination_b']})"]
    why = []
    if pd.notna(row["value_a"]) and pd.isna(row["value_b"]):
        why.append("no value any more")
    elif row["value_b"] > row["value_a"] + SAME * abs(row["value_a"]):
        why.append("value worse")
    if pd.notna(row["bound_a"]) and pd.isna(row["bound_b"]):
        why.append("no bound any more")
    elif row["bound_b"] < row["bound_a"] - SAME * abs(row["bound_a"]):
        why.append("bound weaker")
    if row["solved_a"] and not row["solved_b"]:
        why.append("no longer proven")
    elif row["proof_a"] == "certified" and row["proof_b"] not in ("certified", ""):
        why.append("bound no longer certified")
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
