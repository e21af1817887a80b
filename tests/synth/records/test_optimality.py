"""`0`, `proven best` and `optimal` are said only of values that meet their bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

import synth
from synth import api
from synth.records.optimality import exceeds, gap, meets
from synth.records.record import Record
from synth.records.summary import closing_line, rows_by_instance
from synth.text.quantities import percent

SHIPPED = Path(__file__).resolve().parents[3] / "instances"
VALUES = (1e-6, 3.0, 144.0, 2.0**53, 1.68e-6, 1e15)


@pytest.mark.parametrize("value", VALUES)
def test_a_gap_is_zero_only_where_no_double_lies_between(value: float) -> None:
    below = math.nextafter(value, 0)
    assert gap(value, value) == gap(value, below) == 0.0
    assert percent(gap(value, value)) == "0"
    bound = math.nextafter(below, 0)
    while bound > value / 2:
        left = gap(value, bound)
        assert left == float((Fraction(value) - Fraction(bound)) / Fraction(value)) or left == pytest.approx(
            (value - bound) / value, rel=1e-12
        )
        assert left > 0
        assert not meets(value, bound)
        assert percent(left) not in ("0", "0.00 %")
        bound -= (value - bound) * 3
    above = value * (1 + 1e-9)
    assert not exceeds(above, value)
    assert gap(value, above) != 0.0


def test_tiny_gaps_are_printed_as_they_are() -> None:
    assert percent(3e-11) == "3e-11"
    assert percent(4.9e-5) == "5e-05"
    assert percent(5.1e-5) == "0.01 %"
    assert percent(0.0) == "0"


def test_proven_best_counts_only_what_meets_its_bound() -> None:
    """One solved instance, its bound lowered by ever more: in the table, the closing line and the end of the run."""
    record = api.solve(synth.read(SHIPPED / "bine" / "groups-5-3-8-reduce.json"), "tree_ilp")
    assert record.value is not None
    assert record.words_of_end == "optimal"
    for share, text, words in (
        (0.0, "0", "1 instance: proven best"),
        (3e-11, "3e-11", "1 instance: within 1e-09 of the bound, which is rounding;"),
        (3e-5, "3e-05", "1 instance: within 0.01 % of the bound;"), (2e-4, "0.02 %", "1 instance: open (gap 0.02 %);"),
    ):  # fmt: skip
        lower = Record({**record.data, "bound": record.value * (1 - share)}, record.packed, None, record.instance)
        [row] = rows_by_instance([lower])
        assert row.cells()[4] == text
        assert row.solved is (share == 0)
        assert closing_line([row]).startswith(words)
        assert (lower.words_of_end == "optimal") is (share == 0)


def test_the_closing_line_counts_every_instance_once() -> None:
    """Four instances that differ in their gaps, and one without a bound."""
    solved = api.solve(synth.read(SHIPPED / "bine" / "groups-5-3-8-reduce.json"), "tree_ilp")
    assert solved.value is not None
    shares = (0.0, 3e-11, 2e-4, 4e-4, None)
    bounds = [None if share is None else solved.value * (1 - share) for share in shares]
    made = [
        Record({**solved.data, "bound": bound, "instance_sha256": str(i)}, solved.packed, None, solved.instance)
        for i, bound in enumerate(bounds)
    ]
    words = "5 instances: 1 proven best (by a solver alone), 1 within 1e-09 of the bound, which is rounding, "
    words += "2 open (gaps up to 0.04 %, median 0.03 %), 1 without a bound; "
    assert closing_line(rows_by_instance(made)).startswith(words)
