# ruff: noqa: E501
"""Incumbents and bounds over time: the log readers and the rows of real solves."""

import pytest

import synth
from synth.progress import MOST_ROWS, Progress

HIGHS = """
        Nodes      |    B&B Tree     |            Objective Bounds              |  Dynamic Constraints |       Work
Src  Proc. InQueue |  Leaves   Expl. | BestBound       BestSol              Gap |   Cuts   InLp Confl. | LpIters     Time

 J       0       0         0   0.00%   -inf            14                 Large        0      0      0         0     0.0s
         0       0         0   0.00%   10.5            14                25.00%        0      0      0       120     0.4s
 T      12       0         6   1.00%   11              12                 8.33%      148     12      0       320     1.2s
"""
SCIP = """
 time | node  | left  |LP iter|LP it/n|mem/heur|mdpt |vars |cons |rows |cuts |sepa|confs|strbr|  dualbound   | primalbound  |  gap   | compl.
* 0.1s|     1 |     0 |    51 |     - |    LP  |   0 |  84 | 112 |  74 |   0 |  0 |   0 |   0 | 2.000000e+00 | 7.000000e+00 | 250.00%| unknown
  0.3s|     9 |     0 |    77 |     - |  1234k |   0 |  84 | 112 |  74 |   0 |  0 |   0 |   0 | 5.000000e+00 | 6.000000e+00 |  20.00%| unknown
"""
GUROBI = """
    Nodes    |    Current Node    |     Objective Bounds      |     Work
 Expl Unexpl |  Obj  Depth IntInf | Incumbent    BestBd   Gap | It/Node Time

H    0     0                      11.0000000    2.50000  77.3%     -    0s
     0     0    3.00000    0   12   11.00000    3.00000  72.7%     -    1s
*   25     4              12       5.0000000    4.00000  20.0%   3.1    2s
"""


@pytest.mark.parametrize(
    ("solver", "log", "rows"),
    [
        ("highs", HIGHS, [(1.0, 14.0, None), (1.4, 14.0, 10.5), (2.2, 12.0, 11.0)]),
        ("scip", SCIP, [(1.1, 7.0, 2.0), (1.3, 6.0, 5.0)]),
        ("gurobi", GUROBI, [(1.0, 11.0, 2.5), (2.0, 11.0, 3.0), (3.0, 5.0, 4.0)]),
    ],
)
def test_logs_are_read(solver, log, rows):
    progress = Progress()
    progress.note_log(solver, log, 1.0)
    assert [tuple(round(x, 6) if x is not None else None for x in row) for row in progress.rows] == rows


def test_rows_only_improve_and_stay_few():
    progress = Progress()
    progress.note(10.0, 1.0, at=0.0)
    progress.note(12.0, 0.5, at=1.0)  # worse on both sides: no row
    progress.note(float("nan"), float("-inf"), at=2.0)
    assert progress.rows == [(0.0, 10.0, 1.0)]
    for k in range(3 * MOST_ROWS):
        progress.note(10.0, 1.0 + k / (3 * MOST_ROWS), at=float(k))
    assert len(progress.rows) <= MOST_ROWS
    assert progress.rows[0] == (0.0, 10.0, 1.0)
    assert progress.rows[-1][2] == pytest.approx(1.0 + (3 * MOST_ROWS - 1) / (3 * MOST_ROWS))


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_a_solve_leaves_its_progress(solver):
    pytest.importorskip({"highs": "highspy", "scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    record = synth.solve(synth.read("instances/bine/groups-7-6-3-gather.json"), "tree_ilp", solver=solver)
    rows = record["progress"]
    assert rows[-1][1:] == [record.value, record.bound]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_cpsat_leaves_its_progress():
    record = synth.solve(
        synth.read("instances/bine/groups-7-6-3-reducescatter-butterfly.json"), "placement", solver="cpsat"
    )
    rows = record["progress"]
    assert len(rows) >= 2  # the greedy placement first, then the proof
    assert rows[-1][1:] == [record.value, record.bound]
