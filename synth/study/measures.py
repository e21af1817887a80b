"""Statistics over the table's verified rows. Rows that failed enter none of them; what is missing is never 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from synth.arrays import FloatArray
from synth.study.table import ONLY_STATED, VALUE_COUNTS, WRONG, baselines_of
from synth.text.quantities import percent, shown

SEEDS: dict[str, str] = {
    "seeds": "runs of the instance that differ in their seed only; the row's numbers are their means",
    "spread": "(worst - best) / best value over them [1]",
    "wins": "how many of them are best",
}
SUMMARY: dict[str, str] = {
    "family": "problem class",
    "label": "the runs' label, without what is only their seed",
    "kind": "program, reference or bound",
    "runs": "how many",
    "seeds": "how many",
    "failed": "runs in which something is not as stated: see status",
    "with_value": "runs with a value that stands",
    "wins": "runs whose value is the best of the instance",
    "solved": "runs that proved their value within the gap",
    "certified": "of these, by a certificate; the others as their solver states",
    "mean_gap": "mean gap to the best bound [1]",
    "spread": "of instances run with several seeds, the mean of (worst - best) / best value [1]",
    "ratio_to_best": "geometric mean of value over best value [1]",
    "ratio_to_<baseline>": "the same over the baseline's value [1]",
    "time_s": "shifted geometric mean of build + solve over runs that ended well, shift 1 s [s]",
    "reached": "runs that held a value within 1 % of the best bound",
    "to_gap_s": "after how long, shifted geometric mean over these [s]",
}
SHIFT_S = 1.0  # of the shifted geometric mean of times


def geometric_mean(values: Sequence[float] | FloatArray) -> float:
    """``(x1 ... xn)^(1/n)``; NaN without values or with one that is not positive."""
    array = np.asarray(values, dtype=float)
    if not array.size or not (array > 0).all():
        return float("nan")
    return float(np.exp(np.log(array).mean()))


def shifted_geometric_mean(seconds: Sequence[float] | FloatArray, shift: float = SHIFT_S) -> float:
    """``prod(x + s)^(1/n) - s``: a mean of times in which very short ones do not dominate. NaN without values."""
    array = np.asarray(seconds, dtype=float)
    return geometric_mean(array + shift) - shift if array.size else float("nan")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row per family and group of runs that differ in their seed only, named by their label without it; columns:
    :data:`SUMMARY`, a ratio per baseline. Ratios are over a method's own instances: compare methods only where
    ``with_value`` agrees.
    """
    baselines = [f"ratio_to_{name}" for name in baselines_of(table)]
    rows = []
    for (family, label), group in table.groupby(["family", "group"], sort=True):
        good = group[group["status"].isin(VALUE_COUNTS)]
        held = good[good["value"].notna()]
        row = {
            "family": family,
            "label": label,
            "kind": group["kind"].iloc[0],
            "runs": len(group),
            "seeds": int(group["seed"].nunique()),
            "failed": int(group["status"].isin(WRONG).sum()),
            "with_value": len(held),
            "wins": int(held["win"].sum()),
            "solved": int(held["solved"].sum()),
            "certified": int((held["solved"].astype(bool) & (held["proof"] == "certified")).sum()),
            "mean_gap": float(held["gap"].mean()) if held["gap"].notna().any() else float("nan"),
            "spread": _spread(held),
            "ratio_to_best": geometric_mean(held["ratio_to_best"].dropna().to_numpy()),
        }
        for name in baselines:
            row[name] = geometric_mean(held[name].dropna().to_numpy())
        row["time_s"] = shifted_geometric_mean(good["total_s"].to_numpy())
        reached = good["to_gap_s"].dropna()
        row |= {"reached": len(reached), "to_gap_s": shifted_geometric_mean(reached.to_numpy())}
        rows.append(row)
    return pd.DataFrame(rows)


def solvers_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The runs with a solver on those instances that every solver of the table was given."""
    rows = table[table["solver"] != ""]
    given = rows.groupby("instance_sha256")["solver"].transform("nunique")
    return rows[given == rows["solver"].nunique()]


def by_solver(table: pd.DataFrame) -> pd.DataFrame:
    """One row per solver over :func:`solvers_rows`, all its methods together; a case is an instance with a seed.

    ``runs``; ``with_value``; ``solved`` cases (proven within the gap by the run itself), ``certified`` of these by a
    certificate; ``refused`` runs (over a solver's licence or the method's limit of size); ``mean_gap`` to the best
    bound; ``time_s`` (shifted geometric mean over the ``common`` cases that every solver solved), ``quickest`` (on how
    many of these); ``to_gap_s`` (to within 1 % of the best bound, shifted geometric mean over the runs that got there).
    """
    rows = solvers_rows(table)
    good = rows[rows["status"].isin(VALUE_COUNTS) & rows["value"].notna()]
    times = good[good["solved"].astype(bool)].pivot_table(
        index=["instance_sha256", "seed"], columns="solver", values="total_s", aggfunc="min"
    )
    times = times.reindex(columns=sorted(rows["solver"].unique()))
    common = times.dropna()
    found = []
    for solver in times.columns:
        own, held = rows[rows["solver"] == solver], good[good["solver"] == solver]
        proven = held[held["solved"].astype(bool)]
        found.append(
            {
                "solver": solver,
                "runs": len(own),
                "with_value": len(held),
                "solved": int(times[solver].notna().sum()),
                "certified": int((proven["proof"] == "certified").sum()),
                "refused": int(own["termination"].isin(("size_limit", "unsupported")).sum()),
                "mean_gap": float(held["gap"].mean()),
                "common": len(common),
                "time_s": shifted_geometric_mean(common[solver].to_numpy()),
                "quickest": int((common[solver] == common.min(axis=1)).sum()),
                "reached": int(held["to_gap_s"].notna().sum()),
                "to_gap_s": shifted_geometric_mean(held["to_gap_s"].dropna().to_numpy()),
            }
        )
    return pd.DataFrame(found)


def over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """The table with one row for all runs of an instance that differ in their seed only: its ``value``, ``gap``,
    ``gap_own``, ratios and times are means over the runs whose value stands, ``seeds`` counts the runs, ``spread`` is
    (worst - best) / best value, ``wins`` counts those that are best; all else is that of the best run, or of the first
    with something wrong. Rows alone stay as they are."""
    rows = []
    keys = ["family", "instance", "instance_sha256", "kind", "group"]
    means = [name for name in table.columns if str(name).startswith(("ratio_to_", "gap"))]
    means += ["value", "total_s", "build_s", "solve_s", "check_s", "to_gap_s"]
    for _, group in table.groupby(keys, sort=False, dropna=False):
        wrong = group[group["status"].isin(WRONG)]
        held = group[group["status"].isin(VALUE_COUNTS) & group["value"].notna()]
        first = wrong if len(wrong) else held.sort_values("value", kind="stable") if len(held) else group
        row = first.iloc[0].to_dict() | {"seeds": len(group), "wins": int(held["win"].sum()), "spread": _spread(held)}
        if len(group) > 1:
            row["label"] = row["group"]
            row |= {str(name): float(held[name].mean()) for name in means if len(held)}
        rows.append(row)
    return pd.DataFrame(rows, columns=[*table.columns, *SEEDS])


def options_in_common(table: pd.DataFrame) -> str:
    """The options that all runs share, in words: ``limit 60 s, gap 0.01 %, threads 1, seed 0``; empty without any."""
    limit = table["time_limit_s"].map(lambda value: shown(float(value), "s") if value == value else "none")
    columns = {
        "limit": limit,
        "gap": table["relative_gap"].map(lambda value: percent(float(value))),
        "threads": table["threads"],
        "seed": table["seed"],
    }
    return ", ".join(f"{name} {values.iloc[0]}" for name, values in columns.items() if values.nunique() == 1)


def _spread(held: pd.DataFrame) -> float:
    """Mean over instances with values of several seeds of (worst - best) / best; NaN where there is none."""
    of = held[held["value"] > 0].groupby(["instance", "instance_sha256"])["value"].agg(["min", "max", "count"])
    several = of[of["count"] > 1]
    return float(((several["max"] - several["min"]) / several["min"]).mean()) if len(several) else float("nan")


def stated_baselines(table: pd.DataFrame) -> list[str]:
    """Per baseline whose ratios rest on records that only state their method: a footnote that says how many."""
    notes = []
    for method in baselines_of(table):
        theirs = table.loc[(table["method"] == method) & (table["method_proof"] != ""), "method_proof"]
        count = int((theirs == ONLY_STATED).sum())
        if count:
            words = f"{count} of {len(theirs)} records name {method}, which was not run again to confirm it"
            notes.append(f"ratio_to_{method}: {words}")
    return notes


def performance_profile(costs: pd.DataFrame) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Dolan and Moré: per column (label) the share of rows (instances) whose cost is within a factor tau of the
    row's least. ``costs`` has NaN where a label did not solve an instance; rows that nobody solved count for none.

    Returns label → (tau ascending from 1, share of all rows).
    """
    solved = costs.dropna(how="all")
    ratios = solved.div(solved.min(axis=1), axis=0)
    profiles = {}
    for label in ratios.columns:
        taus = np.sort(ratios[label].dropna().to_numpy(dtype=float))
        steps = np.arange(1, len(taus) + 1) / max(len(solved), 1)
        start = float((taus <= 1.0).sum()) / max(len(solved), 1)
        profiles[str(label)] = (np.concatenate([[1.0], taus]), np.concatenate([[start], np.maximum(steps, start)]))
    return profiles
