"""What our records say of the peers' published figures; `synth reproduce findings` shows it.

The printed figures are those of the tables that `synth reproduce peers` publishes beside its page, read from there;
ours in these tables are not looked at.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synth.findings.evidence import Held
from synth.findings.finding import (
    BELOW,
    BEYOND,
    BOUND_EQUAL,
    EQUAL,
    LEAST,
    NO_MORE,
    NO_MORE_OR_BEYOND,
    Case,
    Claim,
    Finding,
    within,
)
from synth.reproduction.collect import Reproduction
from synth.text.quantities import count, percent
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.page import PRINTED
from synth_papers.peers import errata, taccl, tacos, teccl
from synth_papers.peers.tacos import PRINTED as THEIRS

TE_CCL, TACCL, SCCL = "TE-CCL (SIGCOMM 2024)", "TACCL (NSDI 2023)", "SCCL (PPoPP 2021)"
TACOS, DIRECT, FORESTCOLL = "TACOS (MICRO 2024)", "direct-connect (NSDI 2025)", "ForestColl (NSDI 2026)"
MODES = {words: mode for mode, words in teccl.WORDS.items()}
US, GIB = 1e-6, 2**30
LOOSE = "allreduce, S = 4, R = 4, C = 8"
REFUTED = re.compile(r"(?P<steps>\d+) steps, (?P<rounds>\d+) rounds, (?P<chunks>\d+) chunks")


def _rows(root: Path, name: str) -> list[dict[str, str]]:
    with (root / "peers" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def _question(row: Mapping[str, str]) -> teccl.Question:
    return teccl.Question(f"teccl-{row['machine']}", row["collective"], MODES[row["mode"]], row["size"])


def _result(row: Mapping[str, str], part: str, suffix: str = "", ours: str = "") -> Case:
    """One of TE-CCL's results beside the records of a part of the page."""
    asked = _question(row)
    folder = f"peers/{part}/fabric/{asked.instance().name}{suffix}"
    return Case(asked.words, folder, float(row["theirs [us]"]) * US, ours=ours)


def _te_ccl(root: Path) -> Sequence[Case]:
    """All of its shipped results."""
    return [_result(row, row["machine"]) for row in _rows(root, "teccl")]


def _beyond(root: Path) -> Sequence[Case]:
    """Those whose printed time is below what the machine allows, as the table of them says."""
    return [_result(row, row["machine"], ours="bound") for row in _rows(root, "teccl-below-bound")]


def _as_counted(root: Path) -> Sequence[Case]:
    """The same on the machine that its epochs describe."""
    return [_result(row, "as-counted", "-as-counted") for row in _rows(root, "teccl-below-bound")]


def _sixteen(root: Path) -> Sequence[Case]:
    """Its all-to-all of 1 GB on two NDv2, as all 16 GPUs have it."""
    return [
        Case(f"{asked.words}, all 16 GPUs", f"peers/ndv2-2-16/fabric/{asked.instance('teccl-ndv2-2-16').name}",
             float(row["theirs [us]"]) * US, ours="bound")
        for row in _rows(root, "teccl")
        if (asked := _question(row)).words in ("ndv2-2 alltoall of 1GB (fast)", "ndv2-2 alltoall of 1GB (slow)")
    ]  # fmt: skip


def _epochs(root: Path) -> Sequence[Case]:
    """Epochs, counted as it counts: our plan's number and the number below which the check refutes every plan."""
    cases = []
    for row in _rows(root, "epochs"):
        asked = _question(row)
        folder = f"peers/epochs-{row['mode']}/fabric/{asked.instance().name}"
        found = sorted(path.stem for path in _records(root / folder) if path.stem.startswith("epochs-highs-tau"))
        cases.append(Case(asked.words, folder, float(row["printed"]), ours=found[0] if found else "epochs-highs",
                          measure="epochs", proof="epochs_least"))  # fmt: skip
    return cases


def _records(folder: Path) -> Sequence[Path]:
    from synth.records.folder import beside

    return [record.path for record in beside(folder) if record.path is not None]


def _taccl(root: Path) -> Sequence[Case]:
    cases = []
    for row in _rows(root, "taccl"):
        if row["TACCL [us]"]:
            folder = f"peers/ndv2-2-16/fabric/{taccl.instance_of(row['collective'], row['size']).name}"
            cases.append(Case(f"{row['collective']} of {row['size']}", folder, float(row["TACCL [us]"]) * US))
    return cases


def _sccl(root: Path, answer: str) -> Sequence[Case]:
    """Its printed rows with this answer, ``plan`` or ``none``: the most chunks for as many steps and rounds."""
    return [
        Case(f"{row['collective']}, S = {row['S']}, R = {row['R']}, C = {row['C']}",
             f"peers/sccl/fabric/dgx1-{row['collective']}-315KiB", float(row["C"]),
             ours=f"steps-cpsat-steps={row['S']}-rounds={row['R']}", measure="chunks", proof="refuted")
        for row in _rows(root, "sccl") if row["SCCL"] == answer
    ]  # fmt: skip


def _impossible(held: Held) -> int | None:
    """The fewest chunks that the check refutes for the steps and rounds of the case."""
    texts = held.facts.get("refuted", ())
    rows = [match for text in texts if (match := REFUTED.match(text))]
    same = [int(row["chunks"]) for row in rows
            if (int(row["steps"]), int(row["rounds"])) == (held.facts["steps"], held.facts["rounds"])]  # fmt: skip
    return min(same, default=None)


def _unit(held: Held) -> int:
    """Chunks come by the eight in an alltoall, one for every rank."""
    assert isinstance(held.instance, FabricInstance)
    return len(held.instance.members) if held.instance.collective == "alltoall" else 1


MOST = Claim(
    "as many chunks as printed, and more are impossible by counting",
    lambda held: held.value == held.printed and _impossible(held) == (held.value or 0) + _unit(held),
    True,
)
MORE = Claim("more chunks than printed", lambda held: (held.value or 0) > (held.printed or 0))
REFUTES = Claim(
    "a plan of the printed chunks is impossible by counting",
    lambda held: (found := _impossible(held)) is not None and held.printed is not None and found <= held.printed,
    True,
)


def _share(held: Sequence[Held]) -> Mapping[str, Any]:
    """Of all TE-CCL's results: at most theirs, and theirs below the bound."""
    no_more = sum(NO_MORE.holds(one) for one in held)
    least = 1 / max(one.ratio or 0.0 for one in held)
    met = sum(one.gap is not None and one.gap <= 1e-4 for one in held)
    return {"no_more": no_more, "met_4": met, "share": percent(least)}


def _steps(held: Sequence[Held]) -> Mapping[str, Any]:
    """Steps of one chunk each: the 1000 bytes of a rank at 1 GB/s."""
    step = 1e-6
    one = held[0]
    return {
        "steps": round((one.value or 0) / step),
        "printed_steps": round((one.printed or 0) / step),
        "transfers": count(one.facts["transfers"]),
    }


def _direct(network: str, ranks: int, degree: int = 4) -> Case:
    """T_B in units of M / B, as seconds of 1 MiB over nodes of ``degree`` links of 1 GB/s."""
    load = THEIRS[f"direct-connect.{network}.load"].exact
    return Case(f"{ranks} ranks, T_B = {load}", f"peers/direct-connect/fabric/{network}-allgather-1MiB",
                float(load) * 2**20 / (degree * 1e9), ours="bfb")  # fmt: skip


def _anchor(boxes: str, key: str) -> Case:
    stated = PRINTED[f"anchors.{key}"]
    folder = f"fabric/anchors/fabric/{key}-allgather-1GiB-no-latency"
    return Case(f"{boxes} DGX A100, {stated.text}", folder, float(GIB / (stated.exact * 10**9)), ours="bound")


def _causality(page: Reproduction) -> None:
    """One run of its rule on its own mesh of unequal links, given to the check."""
    schedule, early = tacos.by_the_rule(tacos.unequal_mesh(), 0)
    faults = check_schedule(tacos.unequal_mesh(), schedule).faults
    if not faults:
        raise RuntimeError("the check finds no fault in the schedule of TACOS's rule")
    page.erratum(
        "TACOS, links of unequal speed",
        "the times of its rule as times of schedules.",
        "By its rule, as we read it, some transfers carry a piece that the sender did not have when they began.",
        f"its rule run once (seed 0): {early} of {schedule.transfers} transfers. The check refuses it: `{faults[0]}`.",
        "code",
    )


FINDINGS = (
    Finding(
        "te-ccl", "improves", TE_CCL, "its 154 shipped results (examples/experiments/output_provided, @c128bf2)",
        "Ours takes at most TE-CCL's time on {no_more} of its {cases} results, down to {share} of it. On the other "
        "{beyond} its time is below the certified bound of its own machine. On {met_4} ours is within 0.01 % of the "
        "bound, on all within {largest_gap}.",
        _te_ccl, (NO_MORE_OR_BEYOND,), _share, quick=False, sources=("data",),
    ),
    Finding(
        "te-ccl-below-bound", "corrects", TE_CCL, "two DGX2, allgather in fast epochs",
        "{cases} times of its results are below what the machine allows by its own file: {printed} where at least "
        "{least} is needed ({c[0].case.what}). Its epochs leave out latencies of less than a tenth of an epoch.",
        _beyond, (BEYOND,), sources=("data",),
    ),
    Finding(
        "te-ccl-as-counted", "settles", TE_CCL, "two DGX2, allgather in fast epochs",
        "On the machine that its epochs describe, these {cases} times are the least possible.",
        _as_counted, (EQUAL, LEAST), quick=False, sources=("data",),
    ),
    Finding(
        "te-ccl-fifteen", "corrects", TE_CCL, "NDv2, two chassis, alltoall of 1 GB",
        "Node 0, a GPU, is taken for a switch, so it takes no part. With all GPUs nothing takes less than {least}, "
        "where its result says {printed}.",
        _sixteen, (BEYOND,), sources=("data",),
    ),
    Finding(
        "te-ccl-epochs", "settles", TE_CCL, "number of epochs of the shipped results, 256 KB to 1 GB",
        "By its own count of epochs, the fewest are settled on {settled} of {cases} results; its search ended above "
        "them on {lower}.",
        _epochs, (NO_MORE, LEAST), lambda held: {"settled": sum(one.met for one in held)}, unit="epochs", quick=False,
        sources=("data",),
    ),
    Finding(
        "te-ccl-topologies", "corrects", TE_CCL, "teccl/topologies/mesh.py and amd.py",
        errata=errata.topologies, page="peers",
    ),
    Finding(
        "taccl", "improves", TACCL, "two NDv2, its times as TE-CCL recorded them (teccl/examples/experiments_output)",
        "Ours takes at most TACCL's recorded time on all {cases} results: TACCL takes {least_times} to {most_times} as "
        "long. Ours is within {largest_gap} of the least possible.",
        _taccl, (NO_MORE, within(0.05)), quick=False, sources=("data",),
    ),
    Finding(
        "sccl-most-chunks", "settles", SCCL, "DGX-1, rows of SYNTHESIS.md and its threads",
        "All its rows with a plan but one (`sccl-more-chunks`), {cases} rows, have the most chunks that fit into their "
        "steps and rounds. The plans are replayed, and counting refutes more chunks.",
        lambda root: [case for case in _sccl(root, "plan") if case.what != LOOSE], (MOST,), unit="chunks",
        sources=("printed",),
    ),
    Finding(
        "sccl-more-chunks", "improves", SCCL, "DGX-1, allreduce, (S, R, C) = (4, 4, 8)",
        "Its steps and rounds carry {ours} where {printed} are printed. The fewest that counting refutes: {least}.",
        lambda root: [case for case in _sccl(root, "plan") if case.what == LOOSE], (MORE,), unit="chunks",
        sources=("printed",),
    ),
    Finding(
        "sccl-none", "settles", SCCL, "DGX-1, (S, R, C) = (2, 4, 3)",
        "That no plan exists was proven by Z3 alone; now counting certifies it.",
        lambda root: _sccl(root, "none"), (REFUTES,), unit="chunks", sources=("printed",),
    ),
    Finding(
        "sccl-ring-5", "settles", SCCL, "msccl-tools#47: allreduce on a ring of five",
        "A plan of {ours} exists where the search never ended for the user who asked.",
        (Case("ring of 5, one chunk", "peers/sccl/fabric/ring-5-allreduce-5KiB", ours="steps-cpsat-chunks=1",
              measure="steps"),),
        unit="steps", sources=("open",),
    ),
    Finding(
        "forestcoll-bounds", "settles", FORESTCOLL, "throughput of an allgather on DGX A100",
        "The printed throughputs on one and two boxes are upper limits of every schedule: certified bounds, equal.",
        (_anchor("one", "dgx-a100"), _anchor("two", "dgx-a100-x2")),
        (BOUND_EQUAL,), sources=("printed",),
    ),
    Finding(
        "forestcoll-schedule", "settles", FORESTCOLL, "throughput of an allgather on two DGX A100",
        "With latencies and in whole pieces, 1 GiB takes {ours}, at most {largest_gap} above the least possible: the "
        "throughput is within reach of a finite schedule.",
        (Case("two DGX A100, 1 GiB", "fabric/dgx-a100-x2-allgather-1GiB"),),
        (within(0.005),), sources=("printed",),
    ),
    Finding(
        "direct-connect", "settles", DIRECT, "T_B of breadth-first broadcast",
        "The printed loads of its schedules are the least possible on all {cases} networks.",
        (_direct("k44", 8), _direct("hypercube-4", 16), _direct("torus-4x4", 16), _direct("kautz-1024x4", 1024)),
        (EQUAL, LEAST), sources=("printed",),
    ),
    Finding(
        "tacos-torus", "improves", TACOS, "allgather on a 32x32 torus",
        "{steps} steps where it prints {printed_steps}, a gap of at most {largest_gap}; {transfers} "
        "transfers, replayed.",
        (Case("32x32 torus, steps of 1 us", "peers/tacos/fabric/torus-32x32-allgather-1000KiB",
              float(THEIRS["tacos.steps"].exact / 10**6)),),
        (BELOW, within(0.005)), _steps, sources=("printed",),
    ),
    Finding(
        "tacos-unequal-links", "corrects", TACOS, "tests/test_tacos_mesh_2d_hetero.cpp, 5x5 mesh of 50 and 75 GiB/s",
        "The rule behind the {printed} of its test, as we read its code, sends pieces before they have arrived: that "
        "is the time of no schedule. Ours takes {ours}, and nothing takes less than {least}.",
        (Case("5x5 mesh of unequal links, 1 GiB", "peers/tacos/fabric/tacos-mesh-5x5-hetero",
              float(THEIRS["tacos.unequal-mesh"].exact / 10**6)),),
        (BELOW, within(1e-6)), errata=_causality, page="peers", sources=("code",),
    ),
)  # fmt: skip
