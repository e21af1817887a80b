"""Trees and placements on the jobs of any machine: ``synth reproduce bine-jobs --data FILE``.

FILE holds lines ``job,nodes,groups`` (:func:`synth_models.bine.making.read_trace`). For every job in several groups:
crossings of a broadcast by the least tree, Bine's and the binomial trees; for 2^k ranks the large allreduce on the best
hypercube positions found, by Bine and recursive doubling; and how their gaps are distributed over the jobs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from synth.errors import InputError
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored
from synth_papers.bine import tables
from synth_papers.bine.tables import TREES

SHIPPED = Path("bine", "allocations", "synthetic-jobs.csv")  # below the folder of instances
MOST_RANKS, QUICK_RANKS = 4096, 64  # of a tree
MOST_GROUPS = 64  # of a tree: the flow has a variable for every group and round
PLACED, QUICK_PLACED = 256, 16  # ranks of a placement
EXACT = 16  # ranks up to which placements are settled
SECONDS = 20.0  # for the flow of one multiset of group sizes
SHOWN = 30  # jobs on the page; all are in the table
ALLREDUCES = {"bine": "Bine", "recursive": "recursive doubling"}
POINTS = (5, 25, 50, 75, 95)  # per cent of the jobs


def reproduce(page: Reproduction) -> None:
    """Tables and the figure of one file of jobs. Raises :class:`InputError` where the file is wrong (every fault with
    its line) or no job lies in several groups."""
    path = _file(page)
    trace = tables.Trace(path, QUICK_RANKS if page.quick else MOST_RANKS)
    several = trace.groups > 1
    _left_out(page, trace)
    if not several.any():
        raise InputError("holds no job in several groups to count: nothing crosses", str(path))
    page.say(f"{path.name}: {int(several.sum())} jobs in several groups of {len(trace.jobs)}")
    trees = _trees(page, trace, np.flatnonzero(several & (trace.groups <= MOST_GROUPS)).tolist())
    most = QUICK_PLACED if page.quick else PLACED
    placed = _placements(page, trace, np.flatnonzero(trace.powers & (trace.ranks <= most)).tolist())
    gaps = {f"broadcast, {label}": trees[f"{name}_gap"] for name, label in TREES.items()}
    gaps |= {f"large allreduce, {label}": placed[f"{name}_gap"] for name, label in ALLREDUCES.items()}
    page.table(
        "Gaps over the jobs, per cent: (algorithm - best) / algorithm; best: the least tree, the best placement",
        distribution(gaps),
        file="distribution",
    )
    page.figure(_drawn(trees, placed), "gaps", "How many of the jobs have at most this gap, per algorithm.")
    for text in _REMARKS:
        page.note(" ".join(text.split()))


def opening(found: Stored) -> Opening:
    """How far the published trees and placements are from the best, in the mean over the jobs."""
    trees = found.table("Broadcast trees in the fewest rounds").set_index("ranks").loc["all"]
    placed = found.table("Large allreduce: bytes between groups").set_index("ranks").loc["all"]
    return Opening(
        (
            f"A broadcast on {trees['jobs']} jobs in several groups needs {trees['least']} crossings between groups in "
            f"the mean ({trees['certified']} certified as the least); Bine's tree takes {trees['bine']}, the binomial "
            f"trees {trees['binomial_halving']} (halving) and {trees['binomial_doubling']} (doubling).",
            f"A large allreduce on the {placed['jobs']} jobs of 2^k ranks sends {placed['placement']} bytes between "
            f"groups per byte of the vector in the best placement found. Bine sends {placed['bine']}, "
            f"recursive doubling {placed['recursive']}.",
            "To have this page for your own machine, name a file of its jobs with `--data`.",
        ),
        "gaps",
    )


def _file(page: Reproduction) -> Path:
    """The file of jobs: what ``--data`` names, or the shipped one of our own making."""
    if page.data != Reproduction.data and not page.data.is_dir():
        return page.data
    page.skip(
        "jobs of a machine: name a file of lines job,nodes,groups with --data; these are the shipped, made-up ones"
    )
    return page.instances / SHIPPED


def _left_out(page: Reproduction, trace: tables.Trace) -> None:
    """Say which jobs are too large to count."""
    most, placed = (QUICK_RANKS, QUICK_PLACED) if page.quick else (MOST_RANKS, PLACED)
    why = " (--quick)" if page.quick else ""
    wide, unplaced = int((trace.groups > MOST_GROUPS).sum()), int((trace.powers & (trace.ranks > placed)).sum())
    if trace.larger:
        page.skip(f"{trace.larger} jobs of more than {most} nodes{why}")
    if wide:
        page.skip(f"trees of {wide} jobs in more than {MOST_GROUPS} groups")
    if unplaced:
        page.skip(f"placements of {unplaced} jobs of more than {placed} nodes{why}")


def _trees(page: Reproduction, trace: tables.Trace, jobs: list[int]) -> pd.DataFrame:
    """A row a job: ``least`` crossings, their proof, those of the published trees and their gaps in per cent."""
    found = tables.least_trees(trace, jobs, time_limit=SECONDS)
    least = found.tree_ilp.astype(float)
    by_solver = np.where(least == found.bound.astype(float), "HiGHS", "–")
    table = found[["job", "ranks", "groups"]].assign(
        least=least,
        bound=found.bound,
        proof=np.where(found.certified.astype(bool), "prices of rounds, certified", by_solver),
    )
    for name in TREES:
        table[name], table[f"{name}_gap"] = found[name], gap(found[name], least)
    page.table("Trees", table, file="trees", show=False)
    page.say(f"{len(table)} trees, {int(found.certified.sum())} certified")
    page.table(
        "Broadcast trees in the fewest rounds: crossings, mean over the jobs, by number of ranks", _by_ranks(table)
    )
    widest = table.sort_values(["bine_gap", "ranks"], ascending=False, kind="stable").head(SHOWN)
    title = "Broadcast trees, every job" if len(table) <= SHOWN else f"Broadcast trees, the {SHOWN} jobs widest of Bine"
    columns = ["job", "ranks", "groups", "least", "proof", *TREES, "bine_gap"]
    page.table(f"{title}: crossings; gap in per cent", (table if len(table) <= SHOWN else widest)[columns].round(2))
    return table


def _by_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Means of crossings by number of ranks, between one power of two and the next; the last row is over all jobs."""
    upper = np.array([1 << (int(ranks) - 1).bit_length() for ranks in table.ranks], dtype=np.int64)
    rows = []
    for size in (*np.unique(upper).tolist(), 0):
        part = table[upper == size] if size else table
        row: dict[str, Any] = {"ranks": f"{size // 2 + 1}–{size}" if size > 2 else str(size) if size else "all"}
        row |= {"jobs": len(part), "proven": int((part.proof != "–").sum())}
        row |= {"certified": int(part.proof.str.endswith("certified").sum())}
        row |= {name: round(float(part[name].mean()), 2) for name in ("least", *TREES)}
        rows.append(row | {f"{name}_gap": round(float(part[f"{name}_gap"].mean()), 2) for name in TREES})
    return pd.DataFrame(rows)


def _placements(page: Reproduction, trace: tables.Trace, jobs: list[int]) -> pd.DataFrame:
    """A row a job of 2^k ranks: bytes between groups per byte of the vector; ``placement`` is the best one found."""
    found = tables.brackets(trace, jobs, EXACT)
    least = found.optimum.astype(float).fillna(found.greedy.astype(float))
    met = (found.bound >= least - 1e-6).to_numpy()
    settled = found.proven.to_numpy(dtype=bool)
    table = found[["job", "ranks", "groups", "bound"]].assign(
        placement=least, proof=np.where(met, "isoperimetric count", np.where(settled, "all placements counted", "–"))
    )
    for name in ALLREDUCES:
        table[name], table[f"{name}_gap"] = found[name], gap(found[name], least)
    page.table("Placements", table, file="placements", show=False)
    if len(table):
        title = "Large allreduce: bytes between groups per byte of the vector, mean over the jobs of 2^k ranks"
        page.table(title, _by_size(table))
    return table


def _by_size(table: pd.DataFrame) -> pd.DataFrame:
    """Means of :func:`_placements` by number of ranks; the last row is over all jobs."""
    rows = []
    for size in (*sorted(table.ranks.unique()), 0):
        part = table[table.ranks == size] if size else table
        row: dict[str, Any] = {"ranks": str(size) if size else "all", "jobs": len(part)}
        row |= {"proven": int((part.proof != "–").sum())}
        means = {name: round(float(part[name].mean()), 3) for name in ("bound", "placement", *ALLREDUCES)}
        rows.append(row | means | {f"{name}_gap": round(float(part[f"{name}_gap"].mean()), 2) for name in ALLREDUCES})
    return pd.DataFrame(rows)


def gap(value: pd.Series[Any], least: pd.Series[Any]) -> pd.Series[Any]:
    """``(value - least) / value`` in per cent; 0 where both are 0."""
    value, least = value.astype(float), least.astype(float)
    return 100 * (value - least) / value.where(value > 0, 1.0)


def distribution(gaps: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    """One row a series of gaps in per cent: how many jobs, the share of them without a gap in per cent, mean, least,
    :data:`POINTS` of the jobs and most. Jobs without a number (no least was found) are not counted."""
    rows = []
    for name, series in gaps.items():
        known = series.dropna().to_numpy(dtype=float)
        if not len(known):
            continue
        row: dict[str, Any] = {"algorithm": name, "jobs": len(known), "no_gap": 100 * float((known <= 1e-9).mean())}
        row |= {"mean": float(known.mean()), "least": float(known.min())}
        row |= {f"p{point}": float(np.percentile(known, point)) for point in POINTS} | {"most": float(known.max())}
        rows.append(row)
    return pd.DataFrame(rows).round(2)


def _drawn(trees: pd.DataFrame, placed: pd.DataFrame) -> Figure:
    """The share of jobs with at most so large a gap, a panel for broadcasts and one for large allreduces."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels: Any = figure.subplots(1, 2, sharey=True)
    what = (
        ("Broadcast: crossings above the least tree's", trees, TREES),
        ("Large allreduce: bytes above the best placement's", placed, ALLREDUCES),
    )
    for axes, (title, table, names) in zip(panels, what, strict=True):
        for place, (name, label) in enumerate(names.items()):
            known = np.sort(table[f"{name}_gap"].dropna().to_numpy(dtype=float))
            share = 100 * np.arange(1, len(known) + 1) / max(len(known), 1)
            axes.step(
                [min([0.0, *known[:1]]), *known, 100.0],
                [0.0, *share, 100.0],
                where="post",
                color=f"C{place}",
                linestyle=("-", "--", ":")[place],
                label=label,
            )
        axes.set_title(f"{title} ({len(table)} jobs)", fontsize=10)
        axes.set_xlabel("gap, % of the algorithm's")
        axes.set_xlim(right=100)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    panels[0].set_ylabel("jobs with at most this gap, %")
    return figure


_REMARKS = (
    """A job's ranks are its nodes in the file's order, one rank a node; the broadcast starts at the first. A
    message crosses where its two nodes lie in different groups, once whatever lies between them.""",
    """Trees have the fewest rounds, ceil(log2 p). The check replays each least tree and each greedy placement.
    `certified` means that it derives the same number as a lower bound, from prices of rounds. `HiGHS` means that only
    the solver states it.""",
    f"""Placements are of jobs of 2^k ranks: up to {EXACT} ranks all placements are counted, exactly. Above that stands
    the best that swaps and annealing find, between the isoperimetric count (bound) and the number shown. The count is
    of hypercube butterflies; Bine is none and may send less.""",
)
