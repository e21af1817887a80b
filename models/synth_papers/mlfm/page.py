"""The printed numbers of the MLFM paper beside ours: its four experiments, figure 3, the condition on the block; and
what the paper leaves to future work: failures, and blocks on which its rule does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from synth.records import optimality
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored, numbers
from synth.views.figure_style import legend_below
from synth_models.mlfm.check import replay
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.references.closed_form import printed_rule
from synth_models.mlfm.solution import unpack
from synth_papers.mlfm import problems

TIME_LIMIT = 120.0
DAMAGED_LIMIT = 60.0  # for a whole machine with failures
SPINES_LIMIT = 900.0  # and for 19 million flows of it
LINK_MIB = 3770  # MiB/s, their ping-pong bandwidth
SIZES_MIB = (16, 64, 256)
PRINTED = printed.read(__file__)
COMPARED = {"closed_form": "published rule", "cpsat": "cpsat (ours)", "shift": "shift"}


BARS: tuple[dict[str, Any], ...] = (  # apart in grey
    {"color": "#1b3a5c"},
    {"color": "#8fbbe6", "hatch": "//", "edgecolor": "#1b3a5c"},
    {"color": "#f2d7a6", "hatch": "..", "edgecolor": "#7a5a1e"},
)


def reproduce(page: Reproduction) -> None:
    """Everything of the paper that our models compute."""
    _machine(page)
    _experiments(page)
    condition(page)
    _failures(page)
    _blocks(page)
    _demands(page)
    if page.quick:
        page.skip("the whole machine with failures (--quick)")
    else:
        _damaged(page)
        _gaps(page)
    page.note(
        "Their throughput is measured on InfiniBand; ours is bandwidth only, by replay: equal messages, every phase as "
        "long as its most loaded link takes. Start-up times and the switches' own limits are not in it."
    )


def _machine(page: Reproduction) -> None:
    [(_, record)] = page.solve([page.shipped("mlfm", "d18-n18l19m18")], ["closed_form"], time_limit=TIME_LIMIT)
    facts = record["verified"]["facts"]
    how = f"the rule on the whole machine: {facts['transfers']} transfers in {record.value:g} phases, replayed"
    page.compare(PRINTED["servers.mlfm"], record.value, how)
    ports = 36
    assert _fat_tree_load(ports) == 1
    how = "two levels; the shift order crosses every link once a phase"
    page.compare(PRINTED["servers.fat-tree"], ports * ports // 2, how)
    testbed = page.shipped("mlfm", "d3-testbed-32")
    held = {record["method"]: record for _, record in page.solve([testbed], ["cpsat", "shift"], time_limit=TIME_LIMIT)}
    load = held["shift"]["verified"]["facts"]["mean_worst_link_load"]
    how = f"no block: cpsat takes {held['cpsat'].value:g} phases, proven; shift's mean load is {load:.3g}"
    page.compare(PRINTED["servers.testbed"], held["cpsat"].value, how)


def _fat_tree_load(ports: int) -> int:
    """The most flows on a link of a two-level fat tree in any phase of shift, routed by the destination's slot."""
    half = ports // 2
    servers, worst = np.arange(ports * half), 0
    for phase in servers:
        target = (servers + phase) % len(servers)
        leaf, other, spine = servers // half, target // half, target % half
        across = leaf != other
        for end in (leaf, other):
            worst = max(worst, int(np.bincount((end * half + spine)[across], minlength=1).max(initial=0)))
    return worst


def _experiments(page: Reproduction) -> None:
    """The four jobs of section 3: phases, and throughput as figure 3 shows it."""
    rows = []
    for n, columns, m in problems.BLOCKS:
        job = page.shipped("mlfm", f"d3-n{n}l{columns}m{m}")
        assert isinstance(job, MLFMInstance)
        name = f"n{n}l{columns}m{m}"
        held = {record["method"]: record for _, record in page.solve([job], list(COMPARED), time_limit=TIME_LIMIT)}
        how = f"proven optimal ({held['cpsat']['bound_proof']})"
        page.compare(PRINTED[f"phases.{name}"], held["closed_form"].value, how)
        load = {method: record["verified"]["facts"]["mean_worst_link_load"] for method, record in held.items()}
        stated = PRINTED[f"throughput.{name}"]
        how = "shift's mean worst link load" + ("; theirs is measured" if stated.comparable else "")
        page.compare(stated, load["shift"] / load["closed_form"], how)
        rows += list(_throughputs(job, held))
    table = pd.DataFrame(rows, columns=["job", "method", "MiB", "MiB/s", "mean worst load"])
    page.table("Throughput per server", table, file="figure3", show=False)
    page.figure(_draw_figure_3(table), "figure-3", "All-to-all throughput by replay (the paper's figure 3, measured).")


def _throughputs(job: MLFMInstance, held: dict[str, Record]) -> Iterator[tuple[str, str, int, float, float]]:
    for method, record in held.items():
        solution = unpack(job, record.packed or {})
        for size in SIZES_MIB:
            facts = replay.check_phases(job.model_copy(update={"message_bytes": size * 2.0**20}), solution).facts
            assert job.block is not None
            name = f"{job.ranks} servers ({job.block.layers},{job.block.columns},{job.block.servers})"
            rate = round(facts["throughput_bytes_per_s"] / 2**20, 1)
            yield name, method, size, rate, facts["mean_worst_link_load"]


def _draw_figure_3(table: pd.DataFrame) -> Figure:
    """One panel per job: bars for the rule, ours and shift at every message size, a line at the link's bandwidth."""
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    jobs = list(dict.fromkeys(table["job"]))
    for axes, job in zip(figure.subplots(1, len(jobs), sharey=True), jobs, strict=True):
        mine = table[table["job"] == job]
        for place, (method, label) in enumerate(COMPARED.items()):
            values = mine[mine["method"] == method]["MiB/s"].to_numpy()
            x = np.arange(len(values)) + 0.27 * (place - 1)
            axes.bar(x, values, width=0.25, label=label, zorder=2, **BARS[place])
            for at, value in zip(x, values, strict=True):
                axes.text(at, value - 90, f"{value:,.0f}", rotation=90, ha="center", va="top", fontsize=7, zorder=3,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
        axes.axhline(LINK_MIB, color="black", linestyle="--", linewidth=1, label=f"link bandwidth, {LINK_MIB} MiB/s")
        axes.set_xticks(range(len(SIZES_MIB)), [str(size) for size in SIZES_MIB])
        axes.set_xlabel("MiB to each server")
        load = float(mine[mine["method"] == "shift"]["mean worst load"].iloc[0])
        axes.set_title(f"{job}\nshift's mean worst load {load:.3g}", fontsize=10)
    figure.axes[0].set_ylabel("throughput per server, MiB/s")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    return figure


def condition(page: Reproduction) -> None:
    """The printed rule on every block of small machines, judged by the check."""
    largest = 3 if page.quick else 4
    blocks = []
    for d in range(1, largest + 1):
        for n, columns, m in 1 + np.array(list(np.ndindex(d, d + 1, d))):
            block = problems.block(int(n), int(columns), int(m))
            made = problems.instance("block", "synth reproduce mlfm", d=d, block=block)
            verdict = replay.check_phases(made, printed_rule(made, n, columns, m))
            holds = verdict.ok and verdict.facts["mean_worst_link_load"] <= 1
            blocks.append((m <= columns - 1, 1 <= columns - 1 <= m, n == columns == 1, holds))
    table = pd.DataFrame(blocks, columns=["corrected", "printed", "one leaf", "holds"], dtype=bool)
    good, other = table[table.corrected], table[~table.corrected]
    trivial, allowed = other[other["one leaf"]], table[table.printed]
    page.erratum(
        "Section 2, condition on the block",
        "1 <= l-1 <= m <= d.",
        "m <= l-1 <= d.",
        f"the printed rule replayed on all {len(table)} blocks of d <= {largest}: with m <= l-1 it is complete and "
        f"free of congestion on {good.holds.sum()} of {len(good)}. With m > l-1 it is on {other.holds.sum()} of "
        f"{len(other)}, {trivial.holds.sum()} of them a single leaf, where no link is used. Of the {len(allowed)} "
        f"blocks that the text allows it fails on {(~allowed.holds).sum()}. Their own experiment (3, 4, 2) has "
        "l-1 = 3 > m = 2 and violates the text's condition.",
    )


def _failures(page: Reproduction) -> None:
    """Every single failure of the (2, 4, 3) job; in the short form a few."""
    cases = list(problems.failures())
    if page.quick:
        page.skip(f"single failures: 6 of {len(cases)} (--quick)")
        cases = cases[:: len(cases) // 5][:6]
    solved = _solved(page, [made for _, _, made in cases], "single-failures")
    named = [{"failed": kind, "part": part} for kind, part, _ in cases]
    table = pd.DataFrame([names | found for names, found in zip(named, solved, strict=True)])
    page.table("Single failures", table, file="single-failures", show=False)
    page.table(
        "Single failures of the job (2, 4, 3), 24 phases without", _summary(table, ["failed", "servers", "phases"])
    )


def _blocks(page: Reproduction) -> None:
    """Every block with m > l-1 on small machines, minimal routes and detours."""
    largest = 2 if page.quick else 4
    cases = list(problems.irregular_blocks(largest))
    solved = _solved(page, [made for _, made in cases], "blocks")
    table = pd.DataFrame([sizes | found for (sizes, _), found in zip(cases, solved, strict=True)])
    page.table("Blocks", table, file="blocks", show=False)
    kind = np.where(table["l"] == 1, "l = 1", np.where(table["m"] == table["l"], "m = l", "m > l"))
    formula = np.maximum(table["servers"], table["n"] * table["m"] ** 2)
    expected = np.where((table["routes"] == "minimal") & (table["l"] > 1), formula, table["servers"])
    table = table.assign(block=kind, **{"as expected": table["phases"] == expected})
    shown = _summary(table, ["routes", "block", "as expected"])
    page.table(f"Blocks with m > l-1 on d <= {largest}", shown)
    page.note(
        "Blocks with m > l-1: 'as expected' means max(N, n m²) phases with minimal routes for l > 1, and N in all "
        "other cases. With detours over a third column N phases always suffice."
    )
    if page.quick:
        page.skip("blocks with m > l-1: d <= 2 only; the table of gaps (--quick)")


def _demands(page: Reproduction) -> None:
    """Random partial all-to-alls: whether as many phases as the bound asks for suffice."""
    cases = list(problems.random_demands(2 if page.quick else 15))
    kept = [page.keep(made, "demands") for _, made in cases]
    methods = ["cpsat", "greedy", "shift"]
    held: dict[str, dict[str, Record]] = {}
    for asked, limit in ((methods[1:], DAMAGED_LIMIT), (methods[:1], TIME_LIMIT)):  # a run's time counts from here
        for made, record in page.solve(kept, asked, time_limit=limit, part="demands"):
            held.setdefault(made.name, {})[record["method"]] = record
    rows = []
    for what, made in cases:
        best = held[made.name]["cpsat"]
        values = {method: held[made.name][method].value for method in methods}
        sizes = {"servers": made.ranks, "transfers": made.transfers, "busiest": made.busiest}
        rows.append({"name": made.name} | what | sizes | {"bound": best.bound, "proof": best.grade} | values)
    table = pd.DataFrame(rows)
    page.table("Random demands", table, file="demands", show=False)
    table = table.assign(
        proven=table["cpsat"] == table["bound"],
        crowded=table["bound"] > table["busiest"],
        greedy=table["greedy"] / table["cpsat"],
        shift=table["shift"] / table["cpsat"],
    )
    grouped = table.groupby(["targets", "failed"], sort=False)
    shown = grouped.agg(
        cases=("cpsat", "size"), transfers=("transfers", "mean"), proven=("proven", "sum"), links=("crowded", "sum"),
        greedy=("greedy", "mean"), shift=("shift", "mean"),
    )  # fmt: skip
    names = {"proven": "proven optimal", "links": "bound by links", "shift": "shift over best"}
    page.table(
        "Partial all-to-all: 24 servers of MLFM(3), each to random others, one to three times",
        shown.reset_index().rename(columns=names | {"greedy": "greedy over best"}).round(3),
    )


def _damaged(page: Reproduction) -> None:
    """The whole machine with random failures: phases against the bound, as a table and a figure."""
    cases = list(problems.damaged_machines())
    kept = [page.keep(made, "damaged") for *_, made in cases]
    rows = []
    for (kind, count, seed, _), made in zip(cases, kept, strict=True):
        # one by one: a run's time counts from when it was asked for
        whole = kind == "cables" and count > 1
        method, limit = ("spines", SPINES_LIMIT) if whole else ("columns", DAMAGED_LIMIT)
        [(_, record)] = page.solve([made], [method], time_limit=limit, part="damaged")
        if whole and seed == 0:
            page.publish(record, "blocks")
        seconds = round(sum(record["seconds"].values()), 1)
        gap = optimality.gap(record.value, record.bound)
        names = {"failed": kind, "count": count, "seed": seed, "method": record["method"]}
        rows.append(names | {"phases": record.value, "bound": record.bound, "gap": gap, "seconds": seconds})
    table = pd.DataFrame(rows)
    page.table("The whole machine of 6156 servers with failures (6156 phases without)", table, file="damaged")
    page.figure(_draw_damage(table), "damaged", "Phases of the whole machine with failures, and the certified bound.")
    lost = [sum(not problems.all_joined(18, count, seed) for seed in range(problems.DRAWS)) for count in (60, 100)]
    page.note(
        "The whole machine with failures: draws that leave some pair without a route of two spines are left out: "
        f"{lost[0]} of {problems.DRAWS} with 60 failed spines, {lost[1]} with 100. Seconds are solving and replay on a "
        "shared machine. The schedules of the first draws of 10 and 100 cables are kept below `blocks`, as flows "
        "between leaves: the check names their servers and replays all transfers. The records of the other draws and "
        "of the random demands are too large to be kept here; they were checked, and `synth reproduce mlfm` makes them "
        "again."
    )


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """Figure 3 and the machine with failures."""
    yield "figure-3", _draw_figure_3(pd.read_csv(folder / "figure3.csv"))
    yield "damaged", _draw_damage(pd.read_csv(folder / "damaged.csv"))


def _draw_damage(table: pd.DataFrame) -> Figure:
    """Phases and bounds over the number of failed parts, one panel a kind."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    kinds = list(dict.fromkeys(table["failed"]))
    for axes, kind in zip(figure.subplots(1, len(kinds), sharey=True), kinds, strict=True):
        mine = table[table["failed"] == kind]
        axes.axhline(6156, color="black", linestyle="--", linewidth=1, label="no failures")
        axes.scatter(mine["count"], mine["phases"], marker="o", label="ours", zorder=3)
        axes.scatter(mine["count"], mine["bound"], marker="_", s=120, color="tab:red", label="bound", zorder=4)
        means = mine.groupby("count")["phases"].mean()
        axes.plot(means.index, means, linewidth=1)
        axes.set_xscale("log")
        axes.set_xticks(sorted(set(mine["count"])), [str(count) for count in sorted(set(mine["count"]))])
        axes.minorticks_off()
        axes.set_xlabel(f"failed {kind}, three draws each")
    figure.axes[0].set_ylabel("phases, 6156 servers")
    legend_below(figure, figure.axes[0].get_legend_handles_labels()[0])
    return figure


def _summary(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    grouped = table.groupby(keys, sort=False, dropna=False)
    counted = grouped.agg(
        cases=("phases", "size"), gap_0=("gap", lambda g: int((g == 0).sum())), share=("share of bandwidth", "min")
    )
    return counted.reset_index().rename(columns={"gap_0": "proven optimal", "share": "least share of bandwidth"})


def _solved(page: Reproduction, jobs: list[MLFMInstance], part: str) -> Iterator[dict[str, object]]:
    """What the tables say about every job, solved by ``cpsat``."""
    kept = [page.keep(made, part) for made in jobs]
    for made, (_, record) in zip(jobs, page.solve(kept, ["cpsat"], time_limit=TIME_LIMIT, part=part), strict=True):
        facts = record["verified"]["facts"]
        yield {
            "servers": made.ranks,
            "phases": record.value,
            "bound": record.bound,
            "gap": optimality.gap(record.value, record.bound),
            "ended": record["termination"],
            "verified": record.ok,
            "two-spine transfers": facts.get("two_spine_transfers"),
            "share of bandwidth": facts.get("share_of_bandwidth"),
            "bound by": record["bound_proof"],
        }


def opening(found: Stored) -> Opening:
    """Where the published rule is best, where it fails, and what failures cost."""
    printed = found.compared
    rule = printed[printed["what"] == "phases of the published rule"]
    best = int(rule["remark"].str.startswith("proven optimal").sum())
    holds = found.note(r"with m <= l-1 it is complete .*? on (\d+ of \d+)\. With m > l-1 it is on (\d+ of \d+)")
    whole = found.table("Phases by method").set_index("instance").loc["d18-n18l19m18"]
    least = "the fewest possible, " if whole["closed_form"] == whole["bound"] else ""
    failed = found.table("The whole machine of 6156 servers with failures")
    gaps, phases = numbers(failed["gap"]), numbers(failed["phases"])
    return Opening(
        (
            f"The published rule takes the fewest phases possible on {best} of the paper's {len(rule)} blocks, and "
            f"{least}{whole['closed_form']}, on the whole machine of {whole['servers']} servers.",
            f"Its condition is printed the wrong way round. On all blocks of d <= 4 the rule works on {holds[1]} with "
            f"m <= l-1, and on {holds[2]} with m > l-1.",
            f"With cables or spines failed, our schedules of the whole machine take {phases.min():,.0f} to "
            f"{phases.max():,.0f} phases; {_proven(gaps)}.",
        ),
        "figure-3",
    )


def _proven(gaps: pd.Series[float]) -> str:
    """How many gaps are 0, and the largest of the others."""
    if (gaps == 0).all():
        return f"all {len(gaps)} are proven optimal"
    proven = int((gaps == 0).sum())
    return f"{proven} of {len(gaps)} are proven optimal, and the largest gap is {100 * gaps.max():.2f} %"


def _gaps(page: Reproduction) -> None:
    """Value, best bound and gap of every method on every shipped instance, from the records."""
    held = sorted(page.study("mlfm-published"), key=lambda pair: (pair[0].name, pair[1]["method"]))
    best: dict[str, float] = {}
    for job, record in held:
        best[job.name] = max(best.get(job.name, 0.0), record.bound or 0.0)
    rows = []
    for job, record in held:
        if record["kind"] != "bound" and isinstance(job, MLFMInstance):
            facts, bound = record["verified"]["facts"], best[job.name] or None
            ran = (job.name, job.ranks, record["method"], record["solver"], record.value, bound)
            gap, ended = optimality.gap(record.value, bound), record["termination"]
            rows.append((*ran, gap, facts.get("phases"), facts.get("mean_worst_link_load"), ended))
    columns = ["instance", "servers", "method", "solver", "value", "bound", "gap", "phases", "mean worst load", "ended"]
    table = pd.DataFrame(rows, columns=columns)
    page.table("Every method on every shipped instance", table, file="gaps", show=False)
    wide = table.pivot(index=["instance", "servers", "bound"], columns="method", values="value").reset_index()
    page.table(
        "Phases by method on the shipped instances (congested ones count as the congestion-free ones they split into)",
        wide,
    )
