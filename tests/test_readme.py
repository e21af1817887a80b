"""The README says what the code does: its table is that of the published records, which pass the check."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import synth
from synth import record as records
from synth.execution.runs import Request, plan
from synth.record import Record, gap
from synth.results import read_all

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"
COLUMNS = ("xtree", "mirror_xtree", "tacos", "pull", "symmetric", "forest", "ilp-highs")
HEADER = (
    "| instance | bound | published greedy | tacos | `pull` | `symmetric` | `forest` | `ilp` (HiGHS) "
    "| gap of the best |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
)


@cache
def published() -> tuple[Record, ...]:
    """All published records, by path."""
    found = list(read_all([PUBLISHED]))
    assert all(isinstance(record, Record) for record in found), found
    return tuple(record for record in found if isinstance(record, Record))


def held_for(family: str, instance: str | None = None) -> dict[str, dict[str, Record]]:
    """The records of a family's shipped instances: by instance, then by the file's stem."""
    found: dict[str, dict[str, Record]] = {}
    for record in published():
        assert record.path is not None
        if record.path.parents[1] == PUBLISHED / family and instance in (None, record.path.parent.name):
            found.setdefault(record.path.parent.name, {})[record.path.stem] = record
    return found


def published_table(family: str = "xtree") -> str:
    """One line per published instance: values per method, the best bound, and the gap between best value and bound."""
    lines = []
    found = {name: held for name, held in held_for(family).items() if "bound" in held}
    for instance, held in sorted(found.items(), key=_natural):
        bound = max(record.bound for record in held.values() if record.bound is not None)
        value = {name: held[name].value for name in COLUMNS if name in held}
        best = min(v for v in (record.value for record in held.values()) if v is not None)
        shown = {name: "–" if v is None else f"{v:g}" for name, v in value.items()}
        greedy = shown.get("xtree", "–") if shown.get("xtree", "–") != "–" else shown.get("mirror_xtree", "–")
        left = gap(best, bound)
        cells = [instance, f"{bound:g}", greedy, *(shown.get(name, "–") for name in COLUMNS[2:])]
        lines.append("| " + " | ".join([*cells, "0" if left == 0 else f"{100 * left:.1f} %"]) + " |\n")
    return HEADER + "".join(lines)


def _natural(item: tuple[str, object]) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", item[0])]


PAGES = ["README.md", *(f"models/{family}.md" for family in ("xtree", "mlfm", "optree", "bine", "harvest", "fabric"))]
PAGES += ["models/README.md", "synth/study/README.md", "synth/batch/README.md", "CONTRIBUTING.md"]
PAGES += ["synth/exchange/machines/README.md"]


def readme(page: str = "README.md") -> str:
    return (ROOT / page).read_text()


def test_the_shipped_instances_are_over_a_thousand_runs():
    assert "All shipped instances (over a thousand runs;" in readme()
    assert len(plan([ROOT / "instances"], Request(limits=("20s",)), Path("results"))) > 1000


def test_the_table_is_that_of_the_published_records():
    block = readme("models/xtree.md").split("<!-- published: xtree -->\n")[1].split("<!-- end -->")[0]
    assert block.strip() == published_table().strip()


def test_every_published_record_passes_the_check():
    assert len(published()) > 1000
    for record in published():
        verdict = synth.check(record)
        assert verdict.ok, (record.path, verdict.faults)


def test_what_is_published_stays_small():
    """Records stand in collections; what is larger than a megabyte is named in the folder's README, with its reason."""
    files = [path for path in PUBLISHED.rglob("*") if path.is_file()]
    assert len(files) < 200
    assert not [path for path in files if path.suffix in (".json", ".instance")]
    said = (PUBLISHED / "README.md").read_text()
    for path in files:
        named = path.relative_to(PUBLISHED).parent / re.sub(r"^records\..+\.npz$", "records*.npz", path.name)
        assert path.stat().st_size <= 2**20 or f"`{named.as_posix()}`" in said, path


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        ("equimesh-2x3-c4", 5), ("equimesh-3x3-c4", 8), ("equimesh-4x4-c4", 15), ("equimesh-5x5-c4", 24),
        ("equimesh-8x8-c4", 63), ("equimesh-5x11-c4", 54), ("mesh-8x8-c4", 126), ("torus-8x8-c4", 63),
        ("equimesh-3x3-c2", 4), ("equimesh-4x4-c1", 5), ("equimesh-5x5-c1", 7), ("equimesh-5x5-c2", 12),
        ("equimesh-5x11-c1", 14), ("equimesh-8x8-c1", 17), ("equimesh-5x11-c2", 27), ("torus-4x16-c1", 16),
    ],
)  # fmt: skip
def test_settled_instances_have_a_record_with_gap_0(instance, value):
    held = held_for("xtree", instance)[instance].values()
    assert min(record.value for record in held if record.value is not None) == value
    assert max(record.bound for record in held if record.bound is not None) == value


def test_numbers_in_prose_are_those_of_the_records():
    """Each settled instance that the text names, with its timesteps."""
    text = prose("xtree")
    assert "C = 1 takes 5 timesteps at 4×4, 7 at 5×5 and 17 at 8×8, where the receive bounds are 4, 6 and 16" in text
    for side, value, receive in ((4, 5, 4), (5, 7, 6), (8, 17, 16)):
        folder = PUBLISHED / "xtree" / f"equimesh-{side}x{side}-c1"
        assert receive == -(-(side * side - 1) // 4)
        assert records.read(folder / "bound.json").bound == value
        assert records.read(folder / "pull.json").value == value
    assert "5×11 with C = 1 takes 14: HiGHS finds" in text
    for name in ("3x3-c2", "4x4-c1", "5x5-c1", "5x5-c2", "5x11-c1"):
        alone = records.read(PUBLISHED / "xtree" / "alone" / "xtree" / f"equimesh-{name}" / "ilp-highs.json")
        assert (alone["termination"], alone["options"]["method"]["warm_start"]) == ("optimal", False)
    for solver in ("ilp-highs", "ilp-scip", "ilp-gurobi", "cpsat-cpsat"):
        refuted = records.read(PUBLISHED / "xtree" / "four-steps" / "xtree" / "equimesh-2x3-c4" / f"{solver}.json")
        assert (refuted["termination"], refuted["options"]["method"]["horizon"]) == ("infeasible", 4)
    kautz = PUBLISHED / "xtree" / "kautz-9x2-c1"
    assert records.read(kautz / "bound.json").bound < records.read(kautz / "relaxation-highs.json").bound


def prose(family: str) -> str:
    return re.sub(r"\s+", " ", readme(f"models/{family}.md"))


def ours(paper: str, where: str, what: str) -> float:
    """Our number in the published table of comparisons."""
    table = pd.read_csv(PUBLISHED / paper / "comparisons.csv")
    [value] = table[(table["where"] == where) & (table["what"] == what)]["ours"]
    return float(value)


def value_of(family: str, instance: str, method: str) -> float | None:
    return records.read(PUBLISHED / family / instance / f"{method}.json").value


def test_numbers_of_the_xtree_paragraph():
    text = prose("xtree")
    assert "2.00 times the effective bandwidth of the best mesh baseline in an allgather and 1.18 times in an" in text
    assert f"{ours('xtree', 'Figure 7, 8x8 allgather', 'ours over the best mesh baseline'):.2f}" == "2.00"
    assert f"{ours('xtree', 'Figure 8, 8x8 allreduce', 'ours over the best mesh baseline'):.2f}" == "1.18"
    assert "at least 1.14 times that of any allreduce on the mesh" in text
    assert f"{ours('xtree', 'Figure 8, 8x8 allreduce', 'ours over any algorithm on the mesh, at least'):.2f}" == "1.14"
    assert (
        "`forest` reaches 99.5 % on both. Over a mesh that runs it XTree on EquiMesh keeps 1.10 times on both" in text
    )
    assert "our EquiMesh schedules 1.15 and 1.18" in text
    for mesh, gain in (("8x8", "1.15"), ("5x11", "1.18")):
        where, over = f"Figure 8, {mesh} allreduce", "over the best on the mesh, `forest` (ours) included"
        share = ours("xtree", where, "`forest` (ours) on the mesh, share of the bound's bandwidth")
        assert share >= 99
        assert f"{share:.1f}" == "99.5"
        assert f"{ours('xtree', where, f'XTree {over}'):.2f}" == "1.10"
        assert f"{ours('xtree', where, f'ours {over}'):.2f}" == gain


@pytest.mark.parametrize(
    ("mesh", "chunks", "value", "bound"),
    [
        ("8x8", 4, 161, 144), ("8x8", 16, 582, 576), ("8x8", 32, 1152, 1152), ("8x8", 64, 2304, 2304),
        ("5x11", 4, 144, 127), ("5x11", 16, 517, 506), ("5x11", 32, 1012, 1012), ("5x11", 64, 2023, 2023),
    ],
)  # fmt: skip
def test_allreduces_on_meshes_by_forest(mesh, chunks, value, bound):
    """The schedules that the text names are published, with certified bounds."""
    shipped = (mesh, chunks) == ("8x8", 4)
    folder = PUBLISHED / "xtree" if shipped else PUBLISHED / "xtree" / f"forest-{mesh}" / "xtree"
    record = records.read(folder / f"mesh-{mesh}-c{chunks}-allreduce" / "forest.json")
    assert (record.value, record.bound, record.grade) == (value, bound, "certified")
    if (mesh, chunks) == ("8x8", 32):
        assert record["verified"]["facts"]["transfers"] == 258_048 == 224 * value
    text = prose("xtree")
    assert "`forest` takes 161 timesteps on 8×8 with C = 4 (bound 144, the best other schedule 176) and 582" in text
    assert "on 5×11 it takes 144 (127) and 517 (506). With C = 32 and 64 it meets the bound: 1152 and 2304 on" in text
    assert "1012 and 2023 on 5×11" in text
    assert "in each of the 1152 timesteps, 258,048 transfers" in text


def test_numbers_of_the_mlfm_paragraph():
    text = prose("mlfm")
    assert "the whole machine of 6156 servers (37,896,336 transfers in 6156 phases)" in text
    whole = records.read(PUBLISHED / "mlfm" / "d18-n18l19m18" / "closed_form.json")
    assert (whole.value, whole["verified"]["facts"]["transfers"]) == (6156, 37_896_336)
    assert "on (2, 4, 3) `shift` takes 52 phases for 24, its mean worst link load is 2.17" in text
    shift = records.read(PUBLISHED / "mlfm" / "d3-n2l4m3" / "shift.json")
    assert (shift.value, round(shift["verified"]["facts"]["mean_worst_link_load"], 2)) == (52, 2.17)
    assert value_of("mlfm", "d3-n2l4m3", "cpsat-cpsat") == 24
    failures, blocks = (pd.read_csv(PUBLISHED / "mlfm" / f"{name}.csv") for name in ("single-failures", "blocks"))
    assert "| cable of the job's leaves; spine | 24 | 32 |" in text
    assert set(failures[failures.failed == "spine"]["phases"]) == {32}
    assert "All 54 single failures of the job (2, 4, 3) are solved to gap 0" in text
    assert "On all 65 blocks with $m \\gt l-1$, $d \\le 4$, `cpsat` proves the optimum with either route rule" in text
    assert (len(failures), len(blocks), set(blocks.groupby(["d", "n", "l", "m"]).size())) == (54, 130, {2})
    assert set(failures["gap"]) | set(blocks["gap"]) == {0}
    assert set(failures["verified"]) | set(blocks["verified"]) == {True}


def test_numbers_of_the_optree_paragraph():
    text = prose("optree")
    assert "OpTree's formula gives 70 steps and its best whole radices 68 (`stages`); `relay` (ours) takes 19" in text
    methods = ("formula", "stages-highs", "relay")
    assert [value_of("optree", "ring-1024-w64", method) for method in methods] == [70, 68, 19]
    assert records.read(PUBLISHED / "optree" / "ring-1024-w64" / "bound.json").bound == 19
    assert (
        "At 16 nodes and 2 wavelengths `time_expanded` proves 5 steps optimal where OpTree's worked example takes 12"
        in text
    )
    exact = records.read(PUBLISHED / "optree" / "ring-16-w2" / "time_expanded-cpsat.json")
    assert (exact["termination"], exact.value, exact.bound) == ("optimal", 5, 5)
    assert value_of("optree", "ring-16-w2", "optree") == 12
    assert "where OpTree (340) loses to WRHT's count (259), `relay` takes 63, the optimum" in text
    methods = ("formula", "wrht", "relay")
    assert [value_of("optree", "ring-4096-w64", method) for method in methods] == [340, 259, 63]
    assert records.read(PUBLISHED / "optree" / "ring-4096-w64" / "bound.json").bound == 63


def test_tori_and_meshes_of_the_optree_page():
    """The table of grids from the records, and the answer to ring or torus from the published table."""
    text, named = prose("optree"), 0
    for name, held in held_for("optree").items():
        if not name.startswith("ring"):
            named += 1
            best = max(record.bound for record in held.values() if record.bound is not None)
            program = held.get("time_expanded-cpsat")
            cells = [best, held["optree"].value, held["relay"].value, program.value if program else None]
            shown = " | ".join("–" if cell is None else f"{cell:g}" for cell in cells)
            assert re.search(rf"\| {name}[^|]* \| {shown} \|", text), name
    assert named == 12
    table = pd.read_csv(PUBLISHED / "optree" / "ring-or-torus.csv").set_index(["N", "w", "method"])
    many = {(w, method): table.loc[(1024, w, method)] for w in (16, 64) for method in ("optree", "relay", "bound")}
    assert "OpTree takes 266 steps on the ring and 132 on the 32×32 torus, `relay` 61 and 18 (bounds 61 and 17)" in text
    assert [many[16, method][shape] for method in ("optree", "relay", "bound") for shape in ("ring", "torus")] == [
        266, 132, 61, 18, 61, 17,
    ]  # fmt: skip
    assert "with 64 wavelengths 68 and 34, `relay` 19 and 6, both proven optimal" in text
    assert [many[64, method][shape] for method in ("optree", "relay", "bound") for shape in ("ring", "torus")] == [
        68, 34, 19, 6, 19, 6,
    ]  # fmt: skip
    assert "OpTree gains nothing (135 against 132)" in text
    assert "`relay` still takes 31 there against 18" in text
    assert [many[16, method]["ring, 2w"] for method in ("optree", "relay")] == [135, 31]
    assert "that ring is better (1 step against 2)" in text
    assert table.loc[(16, 16, "relay")][["ring, 2w", "torus"]].tolist() == [1, 2]


def test_numbers_of_the_bine_paragraph():
    text, folder = prose("bine"), PUBLISHED / "bine"
    assert "`tree_ilp` proves 46 crossings in 11 rounds; Bine has 66" in text
    job = synth.read(ROOT / "instances" / "bine" / "groups-24-groups-2048-broadcast.json")
    best = records.read(folder / job.name / "tree_ilp-highs.json")
    assert (best.value, best.bound) == (46 * job.bytes, 46 * job.bytes)
    assert value_of("bine", job.name, "bine") == 66 * job.bytes
    assert "| all powers of two | 2.33 % (−187.5 to 31.65 %) |" in text
    assert "| 256 | 24.11 % |" in text
    saved = pd.read_csv(folder / "allreduce.csv").set_index("ranks")
    assert (saved["mean"][0], saved["mean"][256], saved["min"][0]) == (2.33, 24.11, -187.5)
    trees = pd.read_csv(folder / "trees-summary.csv").set_index("ranks").loc[0]
    assert "All 585 power-of-two broadcasts over three or more groups are solved to proven optimality" in text
    assert "All of these optima are certified by prices of rounds" in text
    assert (trees["jobs"], trees["proven"], trees["certified"]) == (585, 585, 585)
    certified = records.read(folder / job.name / "bound.json")
    assert (certified.bound, certified.grade) == (46 * job.bytes, "certified")
    means = " | ".join(f"{trees[f'{name}_gap_mean']:.2f} %" for name in ("bine", "halving", "doubling"))
    assert f"| {means} | 585 |" in text
    placed = pd.read_csv(folder / "placements-summary.csv").set_index("ranks").loc[0]
    assert "all 923 jobs of up to 16 ranks are proven" in text
    assert (placed["exact"], placed["proven"]) == (923, 923)


def test_numbers_of_the_harvest_paragraph():
    text = prose("harvest")
    large = [
        ours("harvest", "6.2, over static, 1 GB, alpha_r = 10 us", what)
        for what in ("Recursive doubling, 1 port", "Swing, 2 ports", "All-to-all, direct, 1 port")
    ]
    assert "{:.2f}, {:.2f} and {:.1f} times as fast as a static ring".format(*large) in text
    both = ours("harvest", "abstract, over the better of static and BvN", "any algorithm of Figure 5")
    assert f"over the better of static and BvN it gains up to {both:.2f} times" in text
    assert "On tori of equal sides (8×8, 4×4×4) the mirrored Swing gains nothing over the better of the two" in text
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
    assert (len(left), list(left.values()).count(0.0)) == (21, 10)
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
    assert f"the slowest of these eight took {slowest:.0f} s" in text
    for name in ("recursive-doubling", "bruck-allgather", "binomial-broadcast", "swing"):
        for ports in (1, 2):
            exact = records.read(PUBLISHED / "harvest" / f"{name}-8-static-p{ports}" / "misocp-highs.json")
            assert (exact["termination"] == "optimal") == ((name, ports) != ("bruck-allgather", 2))
            if exact["termination"] != "optimal":
                assert f"{100 * (gap(exact.value, exact.bound) or 0):.1f} % open after five minutes" in text
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in (PUBLISHED / "harvest" / "benchmarks.md").read_text().splitlines()
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
    assert f"{gained['bruck-allgather-r2-p2-64-gpus']} % on Bruck's allgather with radix 2" in text
    assert f"{gained['swing-p2-256-gpus']} and {gained['bruck-allgather-r2-p2-256-gpus']} % on the last two" in text
    assert f"on 1,024 GPUs {gained['bruck-allgather-r2-p2-1024-gpus']} % on the last" in text
    assert f"bruck-alltoall-16-4-p4 to {gaps['bruck-alltoall-16-4-p4']} %" in text
    assert f"moe-8-p2 to {gaps['moe-8-p2']} %" in text
    assert f"swing-64-p2 to {float(rows['swing-64-p2'][3]):.2f} us ({gaps['swing-64-p2']} %)" in text
    assert f"{gaps['alltoall-p1-1024-gpus']} % for the direct all-to-all" in text
    assert f"{gaps['binomial-broadcast-p2-1024-gpus']} % for the binomial tree" in text
    assert gaps["recursive-doubling-p1-1024-gpus"] == gaps["binary-broadcast-p2-1024-gpus"] == "0.00"
    assert (
        sum(name.endswith("-1024-gpus") and 24 < float(gap) < 49 for name, gap in gaps.items() if "%" not in gap) == 4
    )


def test_numbers_of_delays_per_circuit_and_overlap():
    text, page = prose("harvest"), (PUBLISHED / "harvest-delays.md").read_text()
    rows = {
        (row["conclusion"], row["workload"]): (float(row["one delay"]), float(row["per circuit"]), row["survives"])
        for row in csv.DictReader((PUBLISHED / "harvest-delays" / "conclusions.csv").open())
    }
    share = "a regime between static and BvN (share of the heatmap)"
    one, circuit, _ = rows[share, "Recursive doubling, 1 port"]
    assert f"({circuit:.0f} instead of {one:.0f} % of the heatmap for recursive doubling, " in text
    one, circuit, _ = rows[share, "Swing, 2 ports"]
    assert f"{circuit:.0f} instead of {one:.0f} % for Swing)" in text
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
    held = held_for("harvest")["recursive-doubling-64-circuits-p1"]
    best = min(record.value for record in held.values() if record.value is not None)
    assert f"{1e6 * held['bound'].bound:.1f} against {1e6 * best:.1f} us on recursive-doubling-64-circuits-p1" in text


@pytest.mark.parametrize("family", ["xtree", "mlfm", "optree", "bine", "harvest", "fabric"])
def test_counts_of_instances_solved_to_optimality(family):
    """The table of models/README.md, counted again from the records: all, and those by a certificate."""
    files = sorted((ROOT / "instances" / family).glob("*.json"))
    closed = certified = 0
    for file in files:
        held = held_for(family).get(file.stem, {}).values()
        values = [record.value for record in held if record.value is not None]
        bounds = [record.bound for record in held if record.bound is not None]
        left = gap(min(values), max(bounds)) if values and bounds else None
        closed += left is not None and left <= (1e-4 if family in ("harvest", "fabric") else 0.0)
        sure = [record.bound for record in held if record.bound is not None and record.grade == "certified"]
        left = gap(min(values), max(sure)) if values and sure else None
        certified += left is not None and left <= (1e-4 if family in ("harvest", "fabric") else 0.0)
    row = f"| `{family}` | {closed} of {len(files)} | {certified} |"
    assert row in (ROOT / "models" / "README.md").read_text()


def test_every_page_of_a_paper_is_linked():
    for path in PUBLISHED.glob("*.md"):
        if path.stem not in ("benchmarks", "README"):
            assert f"(results/published/{path.name})" in readme()


@pytest.mark.parametrize("page", PAGES)
def test_paths_named_in_the_documents_exist(page):
    """Links lead from the page; paths in code spans start at the top folder."""
    text = readme(page)
    for link in re.findall(r"\]\(\s*([\w./-]+?)(?:#[\w-]*)?\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    for path in re.findall(r"`((?:instances|results/published|tests|models|synth)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


if __name__ == "__main__":  # prints the table for the README
    print(published_table())


def test_the_page_of_fabric_says_what_its_tables_say():
    """Gaps of small messages by machine, the largest gap at 1 GiB, the least speedup: from the published tables."""
    text = prose("fabric")
    small = pd.read_csv(PUBLISHED / "fabric/small.csv")
    of_machine = small.groupby("machine", sort=False)["gap"]
    for line, numbers in (("median gap, %", of_machine.median()), ("largest, %", of_machine.max())):
        assert f"| {line} | {' | '.join(f'{100 * gap:.2f}' for gap in numbers)} |" in text
    assert f"the median gap of {len(small)} instances is {100 * small['gap'].median():.2f} %" in text
    large = pd.read_csv(PUBLISHED / "fabric/large.csv")
    gaps = large["gap"].str.removesuffix(" %").astype(float)
    assert f"All {len(large)} instances are within {gaps.max():.2f} % of their bound" in text
    times = pd.read_csv(PUBLISHED / "fabric/times.csv")
    today = times[["ring", "double_tree", "recursive_doubling", "direct", "bruck"]].min(axis=1)
    ours = times[["forest", "flow", "pull"]].min(axis=1)
    assert (ours <= today).all()
    assert f"never slower on the {len(times)} instances" in text
