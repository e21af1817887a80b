"""The pinned figures of the Leonardo trace, which lies outside the repository; and the published tables."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from synth_models.bine.making import hosts_of, read_node_map, to_runs
from synth_papers.bine import tables

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"
TRACE = DATA / "leonardo-jobs.csv.gz"
PUBLISHED = ROOT / "results" / "published" / "bine"

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason="needs ../shared/data/leonardo-jobs.csv.gz")


@pytest.fixture(scope="module")
def trace():
    return tables.Trace(TRACE)


@needs_trace
def test_large_allreduce_pinned_figures(trace):
    assert len(trace.jobs) == 2196
    assert int(trace.powers.sum()) == 1116
    table = tables.allreduce_table(trace).set_index("ranks").round(2)
    means = {4: 2.06, 8: -1.33, 16: -0.08, 32: 8.96, 64: 11.33, 128: 14.94, 256: 24.11, 0: 2.33}
    assert table["mean"].to_dict() == means
    assert table["max"][0] == 31.65
    assert table["min"][0] == -187.5
    assert table["max"].max() <= 33.4


@pytest.mark.long
@needs_trace
def test_256_node_broadcasts(trace):
    jobs = np.flatnonzero(trace.powers & (trace.groups >= 6) & (trace.ranks == 256)).tolist()
    table = tables.least_trees(trace, jobs)
    assert (table.tree_ilp == table.bound).all()
    four = table.iloc[:4]
    assert four.tree_ilp.tolist() == [13, 12, 15, 14]
    assert four.bine.tolist() == [15, 17, 18, 18]
    assert four.binomial_halving.tolist() == [25, 27, 26, 24]
    assert four.binomial_doubling.tolist() == [222, 240, 229, 220]


@needs_trace
def test_brackets_of_small_jobs(trace):
    jobs = np.flatnonzero(trace.powers & (trace.ranks == 16)).tolist()[::40]
    table = tables.brackets(trace, jobs)
    assert table.proven.all()
    assert (table.bound <= table.optimum + 1e-5).all()
    assert (table.optimum <= table.greedy + 1e-5).all()


@pytest.mark.long
@needs_trace
def test_published_trees_are_reproduced(trace):
    """A sample of the rows of trees.csv: solved, decoded, replayed again."""
    with (PUBLISHED / "trees.csv").open() as stream:
        rows = {row["job"]: row for row in csv.DictReader(stream)}
    jobs = np.flatnonzero(trace.powers & (trace.groups >= 3)).tolist()
    assert len(rows) == len(jobs)
    assert all(row["tree_ilp"] == row["bound"] for row in rows.values())
    assert {row["certified"] for row in rows.values()} == {"True"}
    for _, row in tables.least_trees(trace, jobs[::29]).iterrows():
        stored = rows[row.job]
        for name in ("ranks", "groups", "tree_ilp", "bound", "bine", "binomial_halving", "binomial_doubling"):
            assert int(stored[name]) == row[name]


@needs_trace
def test_published_allreduce_table_is_reproduced(trace):
    with (PUBLISHED / "allreduce.csv").open() as stream:
        stored = [tuple(map(float, row.values())) for row in csv.DictReader(stream)]
    made = [tuple(map(float, row)) for row in tables.allreduce_table(trace).round(2).itertuples(index=False)]
    assert stored == made


def test_published_tree_summary_follows_from_its_rows():
    made = tables.trees_summary(pd.read_csv(PUBLISHED / "trees.csv"))
    assert made.to_csv(index=False) == (PUBLISHED / "trees-summary.csv").read_text()


@needs_trace
@pytest.mark.parametrize(
    ("file", "make"),
    [
        ("tables", tables.collectives_table),
        ("allreduce", lambda trace: tables.allreduce_table(trace).round(2)),
        ("allreduce-other-p", lambda trace: tables.others_table(trace).round(2)),
        pytest.param("rounds", tables.rounds_table, marks=pytest.mark.slow),
    ],
)
def test_published_tables_are_reproduced(trace, file, make):
    """Made again, the same text."""
    assert make(trace).to_csv(index=False) == (PUBLISHED / f"{file}.csv").read_text()


@needs_trace
@pytest.mark.slow
def test_published_placements_are_reproduced(trace):
    """The brackets of all 1,116 placements."""
    table = tables.placements_summary(tables.brackets(trace, np.flatnonzero(trace.powers).tolist()))
    assert table.to_csv(index=False) == (PUBLISHED / "placements-summary.csv").read_text()
    assert (table.jobs == table.bracketed).all()
    assert table[table.ranks == 16].proven.tolist() == [251]


@needs_trace
def test_host_lists_give_the_trace_s_allocations(trace):
    table = read_node_map(DATA / "leonardo-nodes.csv.gz")
    runs = {job.name: job.allocation for job in trace.jobs}
    for path in sorted((DATA / "leonardo-hostlists").glob("*.txt")):
        assert to_runs([table[host] for host, _ in hosts_of(path, table)]) == runs[path.stem]


@needs_trace
@pytest.mark.slow
def test_every_tree_of_the_trace_is_proven(trace):
    started = time.monotonic()
    table = tables.least_trees(trace, np.flatnonzero(trace.powers & (trace.groups >= 3)).tolist())
    print(f"{len(table)} jobs in {time.monotonic() - started:.1f} s, worst {table.seconds.max()} s")
    assert len(table) == 585
    assert (table.tree_ilp == table.bound).all()


def test_tables_of_a_trace_of_our_own():
    trace = tables.Trace(ROOT / "instances" / "bine" / "allocations" / "synthetic-jobs.csv")
    jobs = np.flatnonzero(trace.powers).tolist()
    assert (
        len(jobs)
        == tables.allreduce_table(trace)["jobs"].iloc[-1]
        == sum(map(len, tables.savings_by_ranks(trace).values()))
    )
    trees = tables.trees_summary(tables.least_trees(trace, jobs))
    assert trees["proven"].iloc[-1] == trees["jobs"].iloc[-1] == len(jobs)


def test_partners_past_the_end_by_hand():
    """p = 6 in groups of 3: floor(log2 6) = 2 steps. Binomial step 0 pairs 0-1, 2-3, 4-5 (2-3 crosses: 2 messages of
    1/2); step 1 pairs 0-2, 1-3 (crosses: 2 messages of 1/4) and sends 4 and 5 to 6 and 7 (2 more): 1 + 1 = 2. Bine step
    0: 0-1, 2-3, 4-5: 1; step 1, rho = -1: even r meets r - 1: 0-5, 2-1, 4-3: 0-5 crosses: 2 messages of 1/4: 1.5."""
    trace = tables.Trace.__new__(tables.Trace)
    trace.allocations, trace.others = [np.array([0, 0, 0, 1, 1, 1])], np.array([True])
    [row] = tables.out_of_range_table(trace).itertuples(index=False)
    assert (row.ranks, row.messages, row.past_the_end) == (6, 12, 2)
    assert row.saved == pytest.approx(25.0)
