"""What `models/harvest.md` says is what the published records and tables say."""

from __future__ import annotations

import csv
import re

import pytest
from command import flat
from published import PUBLISHED, held_for, ours, prose, readme

from synth.records import record as records
from synth.records.optimality import gap


def test_the_page_of_gaps_counts_its_rows():
    """Those of `candidates` in the first table: a row for each sequence of steps, and how many meet the bound."""
    lines = (PUBLISHED / "harvest/gaps.txt").read_text().splitlines()
    gaps = [line.split("│")[5].strip() for line in lines if "│ candidates (" in line]
    met = sum(not text.endswith("%") and float(text) < 1e-12 for text in gaps)
    assert f"On {met} of {len(gaps)} sequences of steps the schedule" in flat(
        readme("results/published/harvest/gaps.md")
    )


def test_numbers_of_the_harvest_paragraph():
    text = prose("harvest")
    large = [
        ours("harvest", "6.2, over static, 1 GB, alpha_r = 10 us", what)
        for what in ("Recursive doubling, 1 port", "Swing, 2 ports", "All-to-all, direct, 1 port")
    ]
    assert "{:.2f}, {:.2f} and {:.1f} times as fast as a static ring".format(*large) in text
    both = ours("harvest", "abstract, over the better of static and BvN", "any algorithm of Figure 5")
    assert f"Over the better of static and BvN it gains up to {both:.2f} times" in text
    over_both = {
        what: ours("harvest", "6.2, Figure 8, over static and over BvN", f"Swing on {what}")
        for what in ("8x8, 4 ports", "4x4x4, 6 ports")
    }
    assert list(over_both.values()) == pytest.approx([1, 1])
    left = {}
    for name, held in held_for("harvest").items():
        if "bound" in held:
            bounds = [record.bound for record in held.values() if record.bound is not None]
            left[name] = gap(min(record.value for record in held.values() if record.value is not None), max(bounds))
    assert (len(left), list(left.values()).count(0.0)) == (21, 4)
    assert sum(gap is not None and gap <= 1e-9 for gap in left.values()) == 11
    for name in ("recursive-doubling", "bruck-allgather", "binomial-broadcast", "swing"):
        for ports in (1, 2):
            exact = records.read(PUBLISHED / "harvest" / f"{name}-8-p{ports}" / "misocp-highs.json")
            proven = gap(exact.value, exact.bound)
            assert exact["termination"] == "optimal"
            assert proven is not None
            assert proven <= 1e-4
    for name in ("recursive-doubling", "bruck-allgather", "binomial-broadcast", "swing"):
        for ports in (1, 2):
            exact = records.read(PUBLISHED / "harvest" / f"{name}-8-static-p{ports}" / "misocp-highs.json")
            assert (exact["termination"] == "optimal") == ((name, ports) != ("bruck-allgather", 2))


def test_numbers_of_delays_per_circuit_and_overlap():
    page = (PUBLISHED / "harvest-delays.md").read_text()
    rows = {
        (row["conclusion"], row["workload"]): (float(row["one delay"]), float(row["per circuit"]), row["survives"])
        for row in csv.DictReader((PUBLISHED / "harvest-delays" / "conclusions.csv").open())
    }
    figure_5 = ("Recursive doubling, 1 port", "Swing, 2 ports", "All-to-all, direct, 1 port")
    assert all(kept == "yes" for (_, workload), (*_, kept) in rows.items() if workload in figure_5)
    assert re.search(
        r"\| 16MiB, 10 us +\| +428\.544 \| +412\.816 \| +412\.816 \| +412\.816 \| 8, 8 +\| +15\.7286", page
    )
