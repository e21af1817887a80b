"""What the peers print and what it should be, each with the computation that shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import networkx as nx

from synth.arrays import SAME
from synth.errors import InputError
from synth.reproduction.collect import Reproduction
from synth.reproduction.printed import below
from synth.text.quantities import shown
from synth_papers.peers.teccl import WORDS, Results

TOPOLOGIES = "peers/topologies.json"
SMALL_SWITCHES, AMD_GPUS = 8, 16  # of a chassis


def te_ccl(page: Reproduction, found: Results) -> None:
    """What its own results and our schedules and bounds say of its results."""
    _fifteen(page, found)
    _too_short(page, found)
    _slower_than_slow(page, found)
    _ended_early(page, found)


def _fifteen(page: Reproduction, found: Results) -> None:
    rows = [row for row in found.rows if row.true is not None and row.printed.size == "1GB"
            and row.printed.collective == "alltoall" and row.printed.mode in ("Fast", "Slow")]  # fmt: skip
    if not rows:
        return
    true = rows[0].true
    assert true is not None
    printed = " and ".join(f"{row.printed.finish_us / 1e3:g} ms ({WORDS[row.printed.mode]})" for row in rows)
    record = true.records["bound"]
    page.erratum(
        "TE-CCL, NDv2 with two chassis: node 0 is a switch",
        f"alltoall of 1GB in {printed}, for two chassis, which have 16 GPUs.",
        f"15 GPUs take part. With all 16, nothing takes less than {true.bound * 1e3:.6g} ms; ours takes "
        f"{true.value * 1e3:.6g} ms there, and {rows[0].ours.value * 1e3:.6g} ms on its 15.",
        f"The certified bound of the 16 GPUs on the same links: `{record['bound_proof']}`. By hand: 8 x 8 pairs of "
        f"62.5 MB leave a chassis at 12.5 GB/s, 320 ms.",
        "data",
    )


def _too_short(page: Reproduction, found: Results) -> None:
    rows = [row for row in found.rows if row.beyond]
    if not rows:
        return
    row = min(rows, key=lambda row: row.printed.finish_us / (row.ours.bound * 1e6))
    page.erratum(
        "TE-CCL, times below what its machine allows",
        f"{row.printed.words} in {row.printed.finish_us:g} us, and {len(rows) - 1} more (see the table).",
        f"At least {row.ours.bound * 1e6:.6g} us; ours takes {row.ours.value * 1e6:.6g} us.",
        f"Epochs count a latency of less than a tenth of an epoch as none, here {row.printed.epochs} x "
        f"{shown(row.printed.epoch_s, 's')}. The certified bound with the latencies of its own machine file: "
        f"{row.ours.records['bound']['bound_proof']}.",
        "data",
    )


def _slower_than_slow(page: Reproduction, found: Results) -> None:
    """Fast epochs, which allow more, give longer schedules than slow ones."""
    worse = []
    for row in found.rows:
        if row.printed.mode != "Fast":
            continue
        slow = found.find(row.printed.machine, row.printed.collective, row.printed.size, "Slow")
        times = slow.printed.epoch_s / row.printed.epoch_s  # whole: what slow epochs allow, fast ones do
        if below(slow.printed.finish_us, row.printed.finish_us) and abs(times - round(times)) < SAME:
            worse.append((row.printed.finish_us / slow.printed.finish_us, row, slow))
    if not worse:
        return
    told = "; ".join(
        f"{row.printed.words}: {row.printed.epochs} epochs, {row.printed.finish_us:g} us after "
        f"{row.printed.gurobi_s:.0f} s, slow {slow.printed.finish_us:g} us after {slow.printed.gurobi_s:.0f} s, "
        f"ours {row.ours.value * 1e6:.6g} us"
        for _, row, slow in worse
    )
    ratio, row, _ = max(worse, key=lambda entry: entry[0])
    page.erratum(
        "TE-CCL, finer epochs that give longer schedules",
        f"{len(worse)} results in fast epochs are longer than the same in slow ones.",
        f"Fast epochs allow what slow ones do, apart from latencies that are left out because an epoch is long beside "
        f"them. Theirs is up to {100 * (ratio - 1):.0f} % longer ({row.printed.words}).",
        f"From its own results: {told}.",
        "data",
    )


def _ended_early(page: Reproduction, found: Results) -> None:
    """Searches whose solver was stopped, and the plans of fewer epochs that they missed."""
    told = []
    for row in found.rows:
        record = row.ours.records.get(f"epochs-{row.printed.mode.lower()}")
        facts = {} if record is None else record["verified"]["facts"]
        if (
            record is not None
            and row.printed.size == "1GB"
            and facts.get("epochs", row.printed.epochs) < row.printed.epochs
        ):
            proof = "the fewest" if facts["epochs"] == facts.get("epochs_least") else "open whether fewer"
            told.append(
                f"{row.printed.words}: {row.printed.epochs} epochs after {row.printed.gurobi_s:.0f} s, "
                f"ours {facts['epochs']} ({proof}) after {record.run_s:.1f} s"
            )
    if not told:
        return
    page.erratum(
        "TE-CCL, its search for the fewest epochs",
        "the number of epochs at which the search ends.",
        "When the solver finds nothing in its time, the search goes on as if that number of epochs were infeasible. "
        "(`get_schedules` in `teccl/scheduler.py` @c128bf2 raises the lower bound whenever there is no schedule.) So "
        "the last number is no minimum.",
        f"Plans of fewer epochs under its own rules, which a check of its own replays: {'; '.join(told)}.",
        "data",
    )


def topologies(page: Reproduction) -> None:
    """TE-CCL's machines as its rules build them."""
    path = page.real_data(TOPOLOGIES, "errata of topologies")
    if path is None:
        return
    try:
        known: Mapping[str, Any] = json.loads(path.read_text())
        mesh = str(known["teccl-Mesh"]["source"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is no list of topologies: {error}", str(path)) from None
    built, right = te_ccl_mesh(4), nx.grid_2d_graph(4, 4)
    page.erratum(
        f"TE-CCL, Mesh ({mesh})",
        "a mesh of side n.",
        "Row ends are joined to the next row's beginning: node i has a link to i + 1 for every i.",
        f"Its rule at n = 4: {built.number_of_edges()} pairs of neighbours where a mesh has "
        f"{right.number_of_edges()}, diameter {nx.diameter(built)} instead of {nx.diameter(right)}. It also joins "
        f"{', '.join(f'{i} and {i + 1}' for i in range(3, 15, 4))}.",
        "code",
    )
    used, meant = amd_switches(2)
    page.erratum(
        "TE-CCL, AMD with several chassis (teccl/topologies/amd.py)",
        "16 GPUs and 8 small switches a chassis.",
        "The indices of switches overlook that node 0 is the main switch. So one GPU of each chassis is taken for a "
        "switch, and one small switch for a GPU.",
        f"Two chassis, chassis c at nodes 24c + 1 to 24c + 24, GPUs first. Switches by its rule 24c + 16 to 24c + 23 "
        f"are {_ranges(used)}; the small switches are {_ranges(meant)}. Taken for switches: {sorted(used - meant)}; "
        f"for GPUs: {sorted(meant - used)}.",
        "code",
    )


def _ranges(nodes: set[int]) -> str:
    """Whole numbers in order, each run of them as its first and last: ``16 to 23 and 40 to 47``."""
    firsts = sorted(node for node in nodes if node - 1 not in nodes)
    lasts = sorted(node for node in nodes if node + 1 not in nodes)
    return " and ".join(f"{first} to {last}" for first, last in zip(firsts, lasts, strict=True))


def te_ccl_mesh(side: int) -> nx.Graph[int]:
    """The rule of its Mesh: i is joined to i + 1 and to i + side."""
    count = side * side
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((i, j) for i in range(count) for j in (i + 1, i + side) if j < count)
    return graph


def amd_switches(chassis: int) -> tuple[set[int], set[int]]:
    """Nodes that are switches by its rule (left out: + 1 for node 0), and the small switches."""
    size = AMD_GPUS + SMALL_SWITCHES
    used = {size * c + AMD_GPUS + k for c in range(chassis) for k in range(SMALL_SWITCHES)}
    return used, {node + 1 for node in used}
