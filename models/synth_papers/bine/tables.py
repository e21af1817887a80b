"""Tables of a trace of jobs: traffic of all algorithms, proven least trees, brackets of placements.

Every tree and placement is replayed by the check before it counts. ``synth reproduce bine`` shows them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synth.options import RunOptions
from synth.reproduction import printed
from synth_models.bine.bounds.positions import Positions
from synth_models.bine.bounds.round_prices import SCALE, best_prices
from synth_models.bine.check.certificates import check_bound
from synth_models.bine.check.replay import check_messages
from synth_models.bine.instance import MAX_RANKS, BineInstance, Job, parse_runs
from synth_models.bine.making import read_trace
from synth_models.bine.parts.trees import on_tree
from synth_models.bine.parts.units import units_of
from synth_models.bine.parts.weights import dimension_weights, isoperimetric_bytes, isoperimetric_cut
from synth_models.bine.programs.placement import method as placement
from synth_models.bine.programs.tree import method as tree_ilp
from synth_models.bine.references import placement_greedy as greedy
from synth_models.bine.solution import join
from synth_papers.bine.traffic import global_traffic

PRINTED = printed.read(__file__)
TREES = {"bine": "Bine", "binomial_halving": "halving (MPICH)", "binomial_doubling": "doubling (Open MPI)"}
MACHINES = ("lumi", "leonardo", "marenostrum5")
# collective, its form, the baseline the paper names, and Bine's own parameters
COMPARED = (
    ("allreduce", "large", "recursive"),
    ("allgather", "large", "recursive"),
    ("reduce_scatter", "large", "recursive"),
    ("alltoall", "large", "bruck"),
    ("broadcast", "large", "binomial_halving"),
    ("broadcast", "small", "binomial_halving"),
    ("reduce", "small", "binomial_halving"),
    ("reduce", "large", "binomial_halving"),
    ("reduce", "large", "binomial_doubling"),
    ("gather", "small", "binomial_halving"),
    ("scatter", "small", "binomial_halving"),
)


class Trace:
    """Jobs of a trace with masks: ``powers`` (2^k ranks in several groups) and ``others`` (several groups, not 2^k).

    Jobs of more than ``most`` nodes are not laid out: ``larger`` counts them. Raises :class:`InputError`."""

    def __init__(self, path: Path, most: int = MAX_RANKS) -> None:
        read = read_trace(path)
        self.jobs = [Job(name=name, allocation=runs) for name, runs in read if sum(parse_runs(runs)[1]) <= most]
        self.larger = len(read) - len(self.jobs)
        self.allocations = [job.groups for job in self.jobs]
        self.ranks = np.array([len(groups) for groups in self.allocations], dtype=np.int64)
        self.groups = np.array([int(groups.max()) + 1 for groups in self.allocations], dtype=np.int64)
        power = (self.ranks & (self.ranks - 1)) == 0
        self.powers, self.others = power & (self.groups > 1), ~power & (self.groups > 1)


def reduction(ours: npt.NDArray[Any], baseline: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Per cent by which ``ours`` is less than ``baseline``; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(baseline > 0, 100 * (1 - ours / baseline), 0.0)


def allreduce_table(trace: Trace) -> pd.DataFrame:
    """Reduction of Bine against recursive for the large allreduce by number of ranks, powers of two only.

    Columns ``ranks,jobs,mean,max,min`` in per cent; the last row (ranks 0) is over all jobs."""
    chosen = np.flatnonzero(trace.powers)
    allocations = [trace.allocations[j] for j in chosen]
    saved = reduction(global_traffic(allocations, "bine"), global_traffic(allocations, "recursive"))
    rows = []
    for size in (*np.unique(trace.ranks[chosen]).tolist(), 0):
        part = saved[trace.ranks[chosen] == size] if size else saved
        rows.append((size, len(part), part.mean(), part.max(), part.min()))
    return pd.DataFrame(rows, columns=["ranks", "jobs", "mean", "max", "min"])


def others_table(trace: Trace) -> pd.DataFrame:
    """The same for all other numbers of ranks, folded: one row ``jobs of,jobs,mean,max,min`` in per cent."""
    allocations = [trace.allocations[j] for j in np.flatnonzero(trace.others)]
    saved = reduction(global_traffic(allocations, "bine"), global_traffic(allocations, "recursive"))
    row = ("folded, p not a power of two", len(saved), saved.mean(), saved.max(), saved.min())
    return pd.DataFrame([row], columns=["jobs of", "jobs", "mean", "max", "min"])


def savings_by_ranks(trace: Trace) -> dict[int, npt.NDArray[Any]]:
    """Per cent of global bytes that Bine saves on every power-of-two job, by number of ranks (their figure 5)."""
    chosen = np.flatnonzero(trace.powers)
    allocations = [trace.allocations[j] for j in chosen]
    saved = reduction(global_traffic(allocations, "bine"), global_traffic(allocations, "recursive"))
    return {int(size): saved[trace.ranks[chosen] == size] for size in np.unique(trace.ranks[chosen])}


def collectives_table(trace: Trace) -> pd.DataFrame:
    """Average and maximum reduction per collective beside the printed ones, on jobs of 16 or more ranks in 3 or more
    groups (powers of two)."""
    chosen = np.flatnonzero(trace.powers & (trace.ranks >= 16) & (trace.groups >= 3))
    allocations = [trace.allocations[j] for j in chosen]
    rows = []
    for collective, vector, baseline in COMPARED:
        ours = global_traffic(allocations, "bine", collective, vector)
        theirs = global_traffic(allocations, baseline, collective, vector)
        saved = reduction(ours, theirs)
        found = (len(chosen), round(saved.mean(), 1), round(saved.max(), 1))
        rows.append((collective, vector, baseline, *found, *(_printed(machine, collective) for machine in MACHINES)))
    columns = ["collective", "vector", "baseline", "jobs", "ours_mean", "ours_max", *MACHINES]
    return pd.DataFrame(rows, columns=columns)


def _printed(machine: str, collective: str) -> str:
    """Average and maximum that a table prints: ``11/20``."""
    return "/".join(str(one.value) for one in PRINTED.within(f"traffic.{machine}.{collective}").values())


def least_trees(
    trace: Trace, jobs: Sequence[int], collective: str = "broadcast", time_limit: float = 60.0
) -> pd.DataFrame:
    """Proven least crossings per job and those of the published trees, in messages; one row a job. ``certified`` says
    whether prices of rounds prove the least, by the check. ``time_limit`` is of each multiset of group sizes, seconds;
    where it ends before a tree is found ``tree_ilp`` is None."""
    rows = []
    known: dict[tuple[Any, ...], tuple[tree_ilp.Flow, bool, float]] = {}
    ours = [trace.allocations[j] for j in jobs]
    published = {name: global_traffic(ours, name, collective, "small") for name in TREES}
    for i, j in enumerate(jobs):
        groups = trace.allocations[j]
        ordered, sizes = tree_ilp.canonical(groups, 0)
        rounds = (len(groups) - 1).bit_length()
        if (key := tuple(sizes)) not in known:
            started = time.monotonic()
            flow = tree_ilp.best_flow(sizes, rounds, False, RunOptions(time_limit, solver="highs"))
            known[key] = flow, _certified(trace.jobs[j], sizes, rounds, flow), time.monotonic() - started
        flow, certified, seconds = known[key]
        if flow.value is not None:
            _verify(trace.jobs[j], groups, ordered, flow)
        found = [int(published[name][i]) for name in TREES]
        proven = (flow.value, flow.bound, certified)
        rows.append((trace.jobs[j].name, len(groups), len(sizes), *proven, *found, round(seconds, 2)))
    names = ["job", "ranks", "groups", "tree_ilp", "bound", "certified", *TREES, "seconds"]
    return pd.DataFrame(rows, columns=names)


def _certified(job: Job, sizes: Sequence[int], rounds: int, flow: tree_ilp.Flow) -> bool:
    """Whether the check accepts the crossings of the flow as a bound, by prices of rounds (root's group first)."""
    least, prices = best_prices(np.array(sizes), 0, rounds, RunOptions(60.0))
    instance = _alone(job, problem="tree")
    certificate = {"binding": "prices", "scale": SCALE, "prices": prices}
    return flow.value == least and not check_bound(instance, float(least), certificate)


def _alone(job: Job, **words: Any) -> BineInstance:
    """The instance of one job and one byte."""
    return BineInstance(family="bine", name="job", source="study", jobs=[job], bytes=1.0, **words)


def _verify(job: Job, groups: Any, ordered: list[int], flow: tree_ilp.Flow) -> None:
    """Replay the decoded tree; raises ``RuntimeError`` if the check finds a fault or another value."""
    instance = _alone(job, problem="tree")
    verdict = check_messages(instance, join([on_tree(tree_ilp.decode(groups, ordered, flow, 0), "broadcast")]))
    if not verdict.ok or verdict.value != flow.value:
        raise RuntimeError(f"job {job.name}: the tree fails its check: {verdict.faults or verdict.value}")


def trees_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Gaps of the published trees to the least one, (tree - least) / tree in per cent, by ranks (0: all)."""
    rows = []
    for size in (*sorted(table.ranks.unique()), 0):
        part = table[table.ranks == size] if size else table
        proven = int((part.tree_ilp == part.bound).sum())
        row: list[Any] = [size, len(part), proven, int(part.certified.sum())]
        for name in TREES:
            gap = 100 * (part[name] - part.tree_ilp) / part[name]
            row += [round(gap.mean(), 2), round(gap.median(), 2), round(gap.max(), 2)]
        rows.append(row)
    columns = ["ranks", "jobs", "proven", "certified"]
    columns += [f"{n}_gap_{s}" for n in ("bine", "halving", "doubling") for s in ("mean", "median", "max")]
    return pd.DataFrame(rows, columns=columns)


def brackets(trace: Trace, jobs: Sequence[int], exact: int = 16) -> pd.DataFrame:
    """Large allreduce: isoperimetric bound, optimum (up to ``exact`` ranks), greedy, in vectors per job."""
    rows = []
    known: dict[tuple[int, ...], tuple[float, float, float | None, bool]] = {}
    ours = [trace.allocations[j] for j in jobs]
    recursive, bine = global_traffic(ours, "recursive"), global_traffic(ours, "bine")
    for i, j in enumerate(jobs):
        groups = trace.allocations[j]
        key = tuple(int(n) for n in np.bincount(groups))
        instance = _alone(trace.jobs[j], collective="allreduce", vector="large", problem="butterfly")
        if key not in known:
            weights = dimension_weights(instance, len(groups))
            units, count = units_of(instance, 0), isoperimetric_cut(instance, 0, weights)
            placed = greedy.best_placement(units, np.array(weights), count, 0, 8)
            verdict = check_messages(instance, greedy.on_positions(instance, [placed]))
            if not verdict.ok or verdict.value is None:
                raise RuntimeError(f"job {trace.jobs[j].name}: the placement fails its check: {verdict.faults}")
            best: float | None = None
            proven = False
            if len(groups) <= exact:
                least = Positions().least(instance, 0, weights) or count
                _, value, least = placement.place(units, weights, least, RunOptions(60.0, solver="cpsat"))
                best, proven = 2 * value / len(groups), least >= value
            known[key] = isoperimetric_bytes(instance), verdict.value, best, proven
        least_value, greedy_value, best, proven = known[key]
        published = (round(float(recursive[i]), 6), round(float(bine[i]), 6))
        found = (round(least_value, 6), best, proven, round(greedy_value, 6))
        rows.append((trace.jobs[j].name, len(groups), len(key), *found, *published))
    names = ["job", "ranks", "groups", "bound", "optimum", "proven", "greedy", "recursive", "bine"]
    return pd.DataFrame(rows, columns=names)


def placements_summary(table: pd.DataFrame) -> pd.DataFrame:
    """How tight the brackets of :func:`brackets` are, by ranks (0: all)."""
    rows = []
    for size in (*sorted(table.ranks.unique()), 0):
        part = table[table.ranks == size] if size else table
        known = part[part.optimum.notna()]
        upper = part.optimum.fillna(part.greedy)
        holds = ((part.bound <= upper + 1e-5) & (upper <= part.greedy + 1e-5)).sum()
        proven, met = int(known.proven.sum()), int((part.greedy <= part.bound + 1e-5).sum())
        ratios = (part.bound / part.greedy, part.greedy / part.recursive, part.greedy / part.bine)
        means = [round((100 * (1 - ratio)).mean(), 2) for ratio in ratios]
        rows.append((size, len(part), int(holds), len(known), proven, met, *means))
    columns = ["ranks", "jobs", "bracketed", "exact", "proven", "greedy_meets_bound"]
    columns += ["gap_mean", "below_recursive_mean", "below_bine_mean"]
    return pd.DataFrame(rows, columns=columns)


def rounds_table(trace: Trace) -> pd.DataFrame:
    """Least crossings against rounds for the largest power-of-two jobs, until more rounds save nothing."""
    jobs = np.flatnonzero(trace.powers & (trace.ranks == trace.ranks[trace.powers].max())).tolist()
    rows = []
    for j in jobs:
        groups = trace.allocations[j]
        sizes = tree_ilp.canonical(groups, 0)[1]
        for rounds in range((len(groups) - 1).bit_length(), 2 * len(groups).bit_length()):
            flow = tree_ilp.best_flow(sizes, rounds, False, RunOptions(60.0, solver="highs"))
            rows.append((trace.jobs[j].name, len(groups), len(sizes), rounds, flow.value, flow.bound))
            if flow.value == len(sizes) - 1:
                break
    names = ["job", "ranks", "groups", "rounds", "tree_ilp", "bound"]
    return pd.DataFrame(rows, columns=names)


def out_of_range_table(trace: Trace) -> pd.DataFrame:
    """The large allreduce's reduce-scatter on other p as a binomial of floor(log2 p) steps without folding, partners
    past the last rank counted as global: one row a job, ``ranks,messages,past_the_end,saved`` (per cent by Bine)."""
    rows = []
    for j in np.flatnonzero(trace.others):
        groups = trace.allocations[j]
        size = len(groups)
        ranks, bits = np.arange(size), size.bit_length() - 1
        binomial = bine = 0.0
        beyond = 0
        for s in range(bits):
            partner, rho = ranks ^ (1 << s), (1 - (-2) ** (s + 1)) // 3
            valid = partner < size
            beyond += int((~valid).sum())
            crossed = (groups[ranks[valid]] != groups[partner[valid]]).sum() + (~valid).sum()
            theirs = (ranks + np.where(ranks % 2 == 0, rho, -rho)) % size
            binomial += crossed / 2 ** (s + 1)
            bine += (groups[ranks] != groups[theirs]).sum() / 2 ** (s + 1)
        rows.append((size, size * bits, beyond, 100 * (1 - bine / binomial) if binomial else 0.0))
    return pd.DataFrame(rows, columns=["ranks", "messages", "past_the_end", "saved"])
