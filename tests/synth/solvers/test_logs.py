"""Solvers' logs, as they were written: what the curve of incumbents and bounds reads out of them.

The logs are real: a covering program that is solved (98.3000685911), and the market split of ``solver_programs`` which
ends at its limit of one second without a point. What is expected was read off the logs by eye.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synth.clock.progress import MOST_ROWS, Progress
from synth.solvers import gurobi, highs, scip
from synth.solvers.logs import note_log

LOGS = Path(__file__).with_name("logs")
OPTIMUM = 98.3000685911


READERS = {"highs": highs.log_row, "scip": scip.log_row, "gurobi": gurobi.log_row}


def rows_of(solver: str, name: str, **more: float) -> list[tuple[float, float | None, float | None]]:
    progress = Progress()
    note_log(progress, READERS[solver], (LOGS / f"{solver}-{name}.log").read_text(), **{"offset": 0.0, **more})
    return progress.rows


@pytest.mark.parametrize(
    ("solver", "name", "expected"),
    [
        ("highs", "optimal", [
            (0.0, 6172.651617, None), (0.0, 5993.316573, None), (0.0, 105.3562239, 0), (0.0, 105.3562239, 93.79764153),
            (0.0, 98.30006859, 98.30006859),
        ]),
        ("highs", "nopoint", [(0.0, None, 0), (0.0, None, 40.65201734), (1.0, None, 40.72205151)]),
        ("scip", "optimal", [
            (0.0, 98.30007, 0), (0.0, 98.30007, 93.79764), (0.0, 98.30007, 95.30354), (0.0, 98.30007, 95.79768),
            (0.0, 98.30007, 95.83986), (0.0, 98.30007, 96.88168), (0.0, 98.30007, 98.30007),
        ]),
    ],
)  # fmt: skip
def test_every_row(solver: str, name: str, expected: list[tuple[float, float | None, float | None]]) -> None:
    assert rows_of(solver, name) == expected


@pytest.mark.parametrize(
    ("solver", "name", "number", "first", "last"),
    [
        ("scip", "nopoint", 16, (0.0, None, 40.65202), (0.6, None, 40.73321)),
        ("gurobi", "optimal", 20, (0.0, 653.37994, 93.79764), (0.0, 98.3000686, 98.30007)),
        ("gurobi", "nopoint", 20, (0.0, None, 40.65202), (0.0, None, 40.72097)),
    ],
)
def test_first_and_last(solver: str, name: str, number: int, first: object, last: object) -> None:
    rows = rows_of(solver, name)
    assert (len(rows), rows[0], rows[-1]) == (number, first, last)


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_incumbents_by_heuristics_are_seen(solver: str) -> None:
    """Whatever letter stands before the row: every one of the table's incumbents is in the curve."""
    text = (LOGS / f"{solver}-optimal.log").read_text()
    table = text[text.index({"highs": "Src ", "scip": " time |", "gurobi": " Expl "}[solver]) :]
    marked = re.findall(r"^[ ]?([A-Za-z*])[ \d]", table, re.MULTILINE)
    incumbents = {value for _, value, _ in rows_of(solver, "optimal")}
    assert len(incumbents) >= len(marked) >= 1


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_a_rounded_number_claims_nothing(solver: str) -> None:
    """SCIP and Gurobi print 98.30007 as bound, above the optimum: no row says more than the unrounded result."""
    rows = rows_of(solver, "optimal", offset=2.0, factor=10.0, value=OPTIMUM, bound=OPTIMUM)
    assert all(bound is None or bound <= 10 * OPTIMUM for _, _, bound in rows)
    assert all(value is None or value >= 10 * OPTIMUM for _, value, _ in rows)
    assert all(at >= 2.0 for at, _, _ in rows)
    assert rows[-1][1:] == (pytest.approx(10 * OPTIMUM, rel=1e-6), pytest.approx(10 * OPTIMUM, rel=1e-6))


def test_large_counts_are_abbreviated() -> None:
    """As HiGHS writes from ten million on."""
    progress = Progress()
    line = " L  12345k  12m  1234   0.00%   40.5            61          33.61%      376     15      2     45m   812.3s"
    note_log(progress, highs.log_row, line, 1.0)
    assert progress.rows == [(813.3, 61.0, 40.5)]


@pytest.mark.parametrize(
    "line",
    [
        "Explored 1537 nodes (7761 simplex iterations) in 0.99 seconds (0.50 work units)",
        "Presolved: 10 rows, 100 columns, 813 nonzeros",
        "  Gap               0% (tolerance: 0.01%)",
        "Solving Time (sec) : 0.01",
        "25 rows, 60 cols, 1452 nonzeros  0s",
        "       0      handle free variables                          0s",
        "      10    4.0000000e+00   0.000000e+00   0.000000e+00      0s",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    for solver in READERS:
        progress = Progress()
        note_log(progress, READERS[solver], line, 0.0)
        assert progress.rows == []


def test_what_is_no_number_or_no_better_is_not_noted() -> None:
    progress = Progress()
    for value, bound in ((None, None), (float("inf"), float("-inf")), (1e20, -1e20), (float("nan"), None)):
        progress.note(value, bound)
    assert progress.rows == []
    for value, bound in ((5, 1), (6, 0), (5, 2), (4, 2)):
        progress.note(value, bound, at=1.0)
    assert progress.rows == [(1.0, 5, 1), (1.0, 5, 2), (1.0, 4, 2)]
    progress.note(3, at=0.5)  # the clock does not run backwards
    assert progress.rows[-1] == (1.0, 3, 2)


def test_the_curve_stays_short_and_keeps_its_ends() -> None:
    progress = Progress()
    for i in range(3 * MOST_ROWS):
        progress.note(value=1e6 - i, at=float(i))
    assert len(progress.rows) <= MOST_ROWS
    assert (progress.rows[0][0], progress.rows[-1][0]) == (0.0, 3 * MOST_ROWS - 1)
