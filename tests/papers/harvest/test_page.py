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
    assert "On tori of equal sides (8×8, 4×4×4) the mirrored Swing gains nothing over the better of static" in text
    over_both = {
        what: ours("harvest", "6.2, Figure 8, over static and over BvN", f"Swing on {what}")
        for what in ("8x8, 4 ports", "4x4x4, 6 ports")
    }
    assert list(over_both.values()) == pytest.approx([1, 1])
    uneven = [
        ours("harvest", "6.2, Figure 8, over static and over BvN", f"Swing on {what}")
        for what in ("2x32, 4 ports", "2x2x16, 6 ports", "2x4x8, 6 ports", "4x16, 4 ports")
    ]
    assert "up to {:.2f} times (2×32), {:.2f} (2×2×16), {:.2f} (2×4×8) and {:.2f} (4×16)".format(*uneven) in text
    left = {}
    for name, held in held_for("harvest").items():
        if "bound" in held:
            bounds = [record.bound for record in held.values() if record.bound is not None]
            left[name] = gap(min(record.value for record in held.values() if record.value is not None), max(bounds))
    assert (len(left), list(left.values()).count(0.0)) == (21, 4)
    assert sum(gap is not None and gap <= 1e-9 for gap in left.values()) == 11
    for name in ("alltoall-direct-64-p1", "swing-64-p2", "bruck-alltoall-16-4-p4"):
        assert re.search(rf"\| {name} \| [\d.]+ \| {100 * left[name]:.2f} % \|", text), name
    for name in ("swing-torus-64-4x16-p4", "swing-torus-64-2x4x8-p6"):
        assert re.search(rf"\| {name} \| [\d.]+ \| {100 * left[name]:.2f} % \|", text), name
    demands = [held_for("harvest")[name]["misocp-highs"].value for name in ("demand-6-bulk-p2", "demand-6-p2")]
    assert (
        f"takes {1e6 * demands[0]:.1f} us (proven by `misocp`), split into matchings {1e6 * demands[1]:.1f} us" in text
    )
    slowest = 0.0
    for name in ("recursive-doubling", "bruck-allgather", "binomial-broadcast", "swing"):
        for ports in (1, 2):
            exact = records.read(PUBLISHED / "harvest" / f"{name}-8-p{ports}" / "misocp-highs.json")
            proven = gap(exact.value, exact.bound)
            assert exact["termination"] == "optimal"
            assert proven is not None
            assert proven <= 1e-4
            slowest = max(slowest, exact["seconds"]["build"] + exact["seconds"]["solve"])
    assert f"The slowest of these eight took {slowest:.0f} s" in text
    for name in ("recursive-doubling", "bruck-allgather", "binomial-broadcast", "swing"):
        for ports in (1, 2):
            exact = records.read(PUBLISHED / "harvest" / f"{name}-8-static-p{ports}" / "misocp-highs.json")
            assert (exact["termination"] == "optimal") == ((name, ports) != ("bruck-allgather", 2))
            if exact["termination"] != "optimal":
                assert f"{100 * (gap(exact.value, exact.bound) or 0):.1f} % open after five minutes" in text
    rows = [
        [cell.strip() for cell in line.split("|")] for line in (PUBLISHED / "benchmarks.md").read_text().splitlines()
    ]
    compiled = next(row for row in rows if "test_closed_form_compiled" in row)
    assert (
        f"in about {1e6 * float(compiled[4]):.1f} us, {float(compiled[5]):.0f} times faster than plain Python" in text
    )


def test_numbers_of_topologies_of_their_own():
    text = prose("harvest")
    page = (PUBLISHED / "harvest-topologies.md").read_text().splitlines()
    rows = {cells[1]: cells for line in page if len(cells := [cell.strip() for cell in line.split("|")]) > 8}
    gained = {name: cells[4] for name, cells in rows.items() if re.fullmatch(r"[\d.]+", cells[4]) and cells[4] != "0"}
    gaps = {name: cells[7] for name, cells in rows.items()}
    for name in ("bruck-allgather-r4-p4-64-gpus", "bruck-alltoall-r4-p4-64-gpus", "swing-64-p2"):
        assert f"{gained[name]} %" in text
    alltoall = [gained[f"alltoall-p{ports}-64-gpus"] for ports in (4, 2)]
    assert f"{' and '.join(alltoall)} % on the direct all-to-all on four and two ports" in text
    assert f"{gained['bruck-allgather-r2-p2-64-gpus']} % on Bruck's allgather with radix 2" in text
    tori = [gained[f"swing-torus-{name}-64-gpus"] for name in ("2x2x16-p6", "2x32-p4")]
    assert f"on Swing, {' and '.join(tori)} % on its 2×2×16 and 2×32 tori" in text
    assert "nothing on the other ten workloads" in text
    assert len([name for name in gained if name.endswith("64-gpus") or name == "swing-64-p2"]) == 18 - 10
    assert f"on 256, {gained['swing-p2-256-gpus']} % on Swing and {gained['bruck-allgather-r2-p2-256-gpus']} %" in text
    assert f"on 1,024, {gained['swing-p2-1024-gpus']} and {gained['bruck-allgather-r2-p2-1024-gpus']} %" in text
    assert f"{gained['swing-torus-32x32-p4-1024-gpus']} % on its 32×32 torus" in text
    assert f"bruck-alltoall-16-4-p4 to {gaps['bruck-alltoall-16-4-p4']} %" in text
    assert f"moe-8-p2 to {gaps['moe-8-p2']} %" in text
    assert f"swing-64-p2 to {float(rows['swing-64-p2'][3]):.2f} us ({gaps['swing-64-p2']} %" in text
    assert f"{gaps['alltoall-p1-1024-gpus']} % for the direct all-to-all" in text
    assert f"{gaps['binomial-broadcast-p2-1024-gpus']} % for the binomial tree" in text
    for name in ("recursive-doubling-p1", "bruck-alltoall-r2-p2", "binary-broadcast-p2"):
        assert gaps[f"{name}-1024-gpus"] == "0.00"
    for gpus, torus, least, most in ((1024, "32x32", 20, 23), (256, "16x16", 6, 17)):
        names = ("swing-p2", "bruck-allgather-r2-p2", f"swing-torus-{torus}-p4")
        shown = [float(gaps[f"{name}-{gpus}-gpus"]) for name in names]
        assert (round(min(shown)), round(max(shown))) == (least, most)
        assert f"{least} to {most} %" in text


def test_numbers_of_delays_per_circuit_and_overlap():
    text, page = prose("harvest"), (PUBLISHED / "harvest-delays.md").read_text()
    rows = {
        (row["conclusion"], row["workload"]): (float(row["one delay"]), float(row["per circuit"]), row["survives"])
        for row in csv.DictReader((PUBLISHED / "harvest-delays" / "conclusions.csv").open())
    }
    share = "a regime between static and BvN (share of the heatmap)"
    one, circuit, _ = rows[share, "Recursive doubling, 1 port"]
    assert f"more room: {circuit:.0f} instead of {one:.0f} % of the heatmap for recursive doubling, " in text
    one, circuit, _ = rows[share, "Swing, 2 ports"]
    assert f"{circuit:.0f} instead of {one:.0f} % for Swing." in text
    trees = [rows["over BvN, 1-256 KB, 100 us (mean)", f"{name} broadcast, 2 ports"] for name in ("Binomial", "Binary")]
    assert f"100 us: {trees[0][1]:.1f} instead of {trees[0][0]:.0f} times, " in text
    assert f"{trees[1][1]:.1f} instead of {trees[1][0]:.0f})" in text
    figure_5 = ("Recursive doubling, 1 port", "Swing, 2 ports", "All-to-all, direct, 1 port")
    assert all(kept == "yes" for (_, workload), (*_, kept) in rows.items() if workload in figure_5)
    lost = re.search(r"\|\s+64 \|\s+([\d.]+) \|", page[page.index("## Observation 4") :])
    assert lost is not None
    assert f"up to {float(lost[1]):.0f} % faster than any of rings" in text
    assert re.search(
        r"\| 16MiB, 10 us +\| +428\.544 \| +412\.816 \| +412\.816 \| +412\.816 \| 8, 8 +\| +15\.7286", page
    )
    assert "hide 15.7 us of the eight changes" in text
    assert "412.8 instead of 428.5 us, certified optimal" in text
    listed, least = (
        1e6 * value
        for value in (
            held_for("harvest")["binomial-broadcast-16-circuits-p2"]["candidates-highs"].value,
            held_for("harvest")["binomial-broadcast-16-circuits-p2"]["bound"].bound,
        )
    )
    assert f"`candidates` {listed:.2f} us, `bound` {least:.2f} us)" in text
    held = held_for("harvest")["recursive-doubling-64-circuits-p1"]
    best = min(record.value for record in held.values() if record.value is not None)
    assert f"{1e6 * held['bound'].bound:.1f} against {1e6 * best:.1f} us on recursive-doubling-64-circuits-p1" in text
