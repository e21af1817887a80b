"""TE-CCL: all 154 results that it ships, ours on the same machines under the same switch rules.

Its sizes are decimal; a chunk is size / 16 on two NDv2 chassis, size / 32 on the others, and size / 16 for the DGX2
runs that stopped early (the stored epochs tell: epoch = chunk / fastest link). Every GPU has one chunk (allgather), or
one for every other GPU (alltoall); chunks that are no whole bytes are rounded up, against us.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from synth.reproduction.collect import Reproduction
from synth.reproduction.printed import below
from synth.text.quantities import percent, shown
from synth.views.figure_style import BOUND, legend_below, looks, plain_log
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made, without_latency
from synth_papers.peers.runs import METHODS, Found, changed, positive, read_rows, solved

RESULTS = "peers/teccl-results.csv"
SIZES = {f"{n}{unit}": n * factor for unit, factor in (("KB", 10**3), ("MB", 10**6), ("GB", 10**9))
         for n in (1, 4, 16, 64, 256)}  # fmt: skip
MACHINES = {("NDv2", 2): "teccl-ndv2-2", ("NDv2", 4): "teccl-ndv2-4", ("DGX2", 2): "teccl-dgx2-2"}
TRUE = {"teccl-ndv2-2": "teccl-ndv2-2-16"}
GPUS = {"teccl-ndv2-2": 15, "teccl-ndv2-2-16": 16, "teccl-ndv2-4": 32, "teccl-dgx2-2": 32}
QUICK = ("1GB",)
THRESHOLD = 0.1  # its alpha_threshold: a latency below this share of an epoch counts as none
WORDS = {"Fast": "fast", "Slow": "slow", "Fast_Early_Stop": "fast, stopped early"}


@dataclass(frozen=True)
class Question:
    """What one of its results is of."""

    machine: str
    collective: str
    mode: str
    size: str

    @property
    def cells(self) -> dict[str, Any]:
        """The first columns of a table's row."""
        machine, mode = self.machine.removeprefix("teccl-"), WORDS[self.mode]
        return {"machine": machine, "collective": self.collective, "size": self.size, "mode": mode}

    @property
    def words(self) -> str:
        """``ndv2-2 alltoall of 1GB (fast)``."""
        return "{machine} {collective} of {size} ({mode})".format(**self.cells)

    @property
    def chunk(self) -> int:
        """Bytes of a chunk, rounded up."""
        shares = 16 if self.machine == "teccl-ndv2-2" or self._coarse else 32
        return math.ceil(Fraction(SIZES[self.size], shares))

    @property
    def _coarse(self) -> bool:
        return self.machine == "teccl-dgx2-2" and self.mode == "Fast_Early_Stop"

    def bytes_on(self, machine: str) -> int:
        """What a rank ends with (allgather) or sends (alltoall, its own part included), as instances count."""
        return GPUS[machine] * self.chunk

    def instance(self, machine: str = "") -> FabricInstance:
        """On its machine or another, with the switch rules of TE-CCL: what enters a switch leaves it on arrival, on any
        of its links."""
        machine = machine or self.machine
        return made(machine=machine, collective=self.collective, bytes=str(self.bytes_on(machine)))


@dataclass(frozen=True)
class Result(Question):
    """One of its results; times in microseconds and (Gurobi's) seconds."""

    epoch_s: float
    epochs: int
    finish_us: float
    gurobi_s: float


@dataclass
class Row:
    """One result and what we found: on the machine as they ran it, and on the true one where that is another."""

    printed: Result
    ours: Found
    true: Found | None = None

    @property
    def ratio(self) -> float:
        """Our seconds over theirs."""
        return self.ours.value * 1e6 / self.printed.finish_us

    @property
    def within(self) -> bool:
        """Whether ours takes at most their time (values are floats: equal means equal to nine digits)."""
        return not below(self.printed.finish_us, self.ours.value * 1e6)

    @property
    def beyond(self) -> bool:
        """Whether the printed time is less than anything can take on the machine."""
        return below(self.printed.finish_us, self.ours.bound * 1e6)


@dataclass
class Results:
    """All rows, in the order of the file."""

    rows: list[Row] = field(default_factory=list)

    def find(self, machine: str, collective: str, size: str, mode: str | None = None) -> Row:
        """The row of this mode, or (without one) the row with the least printed time."""
        rows = [
            row for row in self.rows
            if (row.printed.machine, row.printed.collective, row.printed.size) == (machine, collective, size)
            and mode in (None, row.printed.mode)
        ]  # fmt: skip
        return min(rows, key=lambda row: row.printed.finish_us)


EVERY = "TE-CCL: every shipped result"
SUMMARY = "TE-CCL: ours against every shipped result, in continuous time"


def printed_results(path: Path) -> list[Result]:
    """The rows of the file. Raises :class:`InputError` on a file that is another."""

    def result(row: Mapping[str, str]) -> Result:
        found = Result(
            MACHINES[row["topology"], int(row["chassis"])], row["collective"].lower(), row["mode"], row["size"],
            positive(row["epoch_s"]), int(row["epochs"]), positive(row["finish_us"]), positive(row["solver_s"]),
        )  # fmt: skip
        if found.size not in SIZES or found.mode not in WORDS:
            raise ValueError(f"size {found.size!r}, mode {found.mode!r}")
        return found

    return read_rows(path, "TE-CCL", result)


def results(page: Reproduction) -> Results | None:
    """Every shipped result beside ours; None, and said so, where the file is not."""
    path = page.real_data(RESULTS, "TE-CCL's results")
    if path is None:
        return None
    rows = [row for row in printed_results(path) if not page.quick or _quick(row)]
    known: dict[tuple[str, str, int], Found] = {}

    def found(machine: str, printed: Result) -> Found:
        key = machine, printed.collective, printed.bytes_on(machine)
        if key not in known:
            known[key] = solved(page, printed.instance(machine), machine.removeprefix("teccl-"))
        return known[key]

    all_rows = Results()
    for printed in rows:
        true = TRUE.get(printed.machine)
        all_rows.rows.append(Row(printed, found(printed.machine, printed), found(true, printed) if true else None))
    page.say(f"TE-CCL: {len(all_rows.rows)} results, {len(known)} instances")
    return all_rows


def _quick(row: Result) -> bool:
    return row.machine == "teccl-ndv2-2" and row.size in QUICK


def tables(page: Reproduction, found: Results) -> None:
    """What the rows say: counted, by size, and one by one."""
    _summary(page, found)
    rows = [_cells(row) for row in found.rows]
    page.table(EVERY, pd.DataFrame(rows), "teccl", linked=True)


def _cells(row: Row) -> dict[str, Any]:
    printed, ours = row.printed, row.ours
    cells: dict[str, Any] = {
        **printed.cells,
        "theirs [us]": round(printed.finish_us, 4),
        "Gurobi [s]": round(printed.gurobi_s, 1),
        "ours [us]": _us(ours.value),
        "by": ours.by,
        "all our methods [s]": round(ours.seconds, 1),
        "ours / theirs": round(row.ratio, 4),
        "bound [us]": _us(ours.bound),
        "gap": percent(ours.gap),
    }
    true = row.true
    cells["16 GPUs [us]"] = None if true is None else _us(true.value)
    cells["bound of 16 [us]"] = None if true is None else _us(true.bound)
    return cells


def _us(seconds: float) -> float:
    return float(f"{seconds * 1e6:.7g}")


def _summary(page: Reproduction, found: Results) -> None:
    """At most theirs, how far below, and where not, by machine and collective."""
    rows = []
    for (machine, collective), group in _grouped(found.rows).items():
        ratios = sorted(row.ratio for row in group)
        missed = [row for row in group if not row.within]
        rows.append(
            {
                "machine": machine.removeprefix("teccl-"),
                "collective": collective,
                "results": len(group),
                "ours at most theirs": len(group) - len(missed),
                "theirs below the bound": sum(row.beyond for row in missed),
                "others": sum(not row.beyond for row in missed),
                "ours / theirs, least": round(ratios[0], 4),
                "median": round(ratios[len(ratios) // 2], 4),
                "largest": round(ratios[-1], 4),
                "largest gap": percent(max(row.ours.gap for row in group)),
                "Gurobi, all [s]": round(sum(row.printed.gurobi_s for row in group)),
                "ours, all [s]": round(sum(row.ours.seconds for row in _distinct(group)), 1),
            }
        )
    page.table(SUMMARY, pd.DataFrame(rows))
    within = sum(row.within for row in found.rows)
    beyond = [row for row in found.rows if row.beyond]
    others = [row for row in found.rows if not row.within and not row.beyond]
    page.note(
        f"TE-CCL: ours takes at most their time in {within} of {len(found.rows)} results. In {len(beyond)} their time "
        f"is below the certified bound of the machine that they state, so that nothing can reach it"
        + (f"; in {len(others)} others ours is longer: {'; '.join(map(_named, others))}." if others else ".")
    )


def _named(row: Row) -> str:
    printed = row.printed
    return f"{printed.machine}, {printed.collective} of {printed.size} ({WORDS[printed.mode]}): {row.ratio:.4f}"


def _grouped(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.printed.machine, row.printed.collective), []).append(row)
    return groups


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """One row an instance."""
    return list({row.ours.instance.name: row for row in rows}.values())


def beyond_the_bound(page: Reproduction, found: Results) -> None:
    """The printed times that nothing can reach on the machine, and ours on the machine that their epochs describe."""
    rows = []
    for row in found.rows:
        if not row.beyond:
            continue
        theirs = solved(page, as_counted(row), "as-counted", (*METHODS, "epochs"))
        rows.append(
            {
                **row.printed.cells,
                "theirs [us]": row.printed.finish_us,
                "epochs": f"{row.printed.epochs} of {shown(row.printed.epoch_s, 's')}",
                "bound [us]": _us(row.ours.bound),
                "ours [us]": _us(row.ours.value),
                "without what epochs leave out: bound [us]": _us(theirs.bound),
                "and ours [us]": _us(theirs.value),
                "ours at most theirs": not below(row.printed.finish_us, theirs.value * 1e6),
            }
        )
    if rows:
        page.table("TE-CCL: printed times below the bound of the machine", pd.DataFrame(rows), "teccl-below-bound")
        page.note(
            "Its epochs leave out latencies of less than a tenth of an epoch, and the time to enter a switch. The "
            "columns 'without what epochs leave out' are of the machine with those latencies 0, whose switches cut "
            "through and copy."
        )


def as_counted(row: Row) -> FabricInstance:
    """The instance that the epochs of the row describe."""
    instance = row.ours.instance
    least = THRESHOLD * row.printed.epoch_s
    network = without_latency(instance).model_dump(mode="json", exclude_none=True)["network"]
    for link, latency in zip(network["links"], instance.machine.network.latency.tolist(), strict=True):
        link["latency"] = latency if latency > least else 0.0
    rules = {"mode": "cut_through", "multicast": True}
    return changed(instance, network=network, switching=rules, name=f"{instance.name}-as-counted")


def figures(page: Reproduction, found: Results) -> None:
    """Time against size for each machine, and over the bound; solver seconds against theirs."""
    table = pd.DataFrame([_cells(row) for row in found.rows])
    page.figure(
        _draw_times(table), "teccl-time",
        "TE-CCL's machines: time against size in each of its modes, ours and the bound, and the same over the bound. "
        "Runs on two DGX2 that stopped early move twice the bytes and are compared with a bound of their own.",
    )  # fmt: skip
    caption = "TE-CCL's 154 results: seconds of its solver and of all our methods together."
    page.figure(_draw_seconds(table), "teccl-seconds", caption)


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """Time against size, and seconds."""
    table = pd.read_csv(folder / "teccl.csv")
    yield "teccl-time", _draw_times(table)
    yield "teccl-seconds", _draw_seconds(table)


def _draw_times(table: pd.DataFrame) -> Figure:
    """A column a machine and collective: time, and time over the bound, against size."""
    table = table.assign(bytes=table["size"].map(SIZES)).sort_values("bytes", kind="stable")
    order = sorted(table.groupby(["machine", "collective"], sort=False), key=lambda group: int(group[1].index.min()))
    figure = Figure(figsize=(3.4 * len(order), 6.4), layout="constrained")
    panels = figure.subplots(2, len(order), squeeze=False, sharex="col")
    styles = looks(["ours", *WORDS.values()])
    for (upper, lower), ((machine, collective), group) in zip(panels.T, order, strict=True):
        plain = group[group["mode"] == WORDS["Fast"]]
        upper.plot(plain["bytes"], plain["ours [us]"], label="ours", **styles["ours"])
        lower.plot(plain["bytes"], plain["ours [us]"] / plain["bound [us]"], **styles["ours"])
        for mode in WORDS.values():
            rows = group[group["mode"] == mode]
            upper.plot(rows["bytes"], rows["theirs [us]"], label=f"TE-CCL, {mode}", **{**styles[mode], "linestyle": ""})
            lower.plot(rows["bytes"], rows["theirs [us]"] / rows["bound [us]"], **styles[mode])
        upper.plot(plain["bytes"], plain["bound [us]"], **BOUND)
        lower.axhline(1.0, **BOUND)
        ticks = list(dict(zip(group["bytes"], group["size"], strict=True)).items())[::2]
        upper.set(xscale="log", yscale="log", title=f"{machine}, {collective}")
        lower.set(xlabel="size", xticks=[size for size, _ in ticks], ylim=(0.97, 1.6))
        lower.set_xticklabels([name for _, name in ticks], rotation=45)
        lower.minorticks_off()
        plain_log(upper.yaxis)
    panels[0][0].set_ylabel("time [us]")
    panels[1][0].set_ylabel("time / bound (1.6 and more cut off)")
    legend_below(figure, panels[0][-1].get_legend_handles_labels()[0], columns=5)
    return figure


def _draw_seconds(table: pd.DataFrame) -> Figure:
    """A mark a result: seconds of all our methods over those of Gurobi."""
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    groups = {
        ", ".join(map(str, names)): group for names, group in table.groupby(["machine", "collective"], sort=False)
    }
    for label, look in looks(list(groups)).items():
        ours = groups[label]["all our methods [s]"].clip(lower=1e-2)
        axes.plot(groups[label]["Gurobi [s]"], ours, label=label, **{**look, "linestyle": ""})
    low = min(*axes.get_xlim(), *axes.get_ylim(), 1.0)
    high = max(*axes.get_xlim(), *axes.get_ylim())
    axes.plot([low, high], [low, high], "k--", linewidth=1, label="equal")
    axes.set(xscale="log", yscale="log", xlabel="Gurobi, as printed", ylabel="all our methods together")
    plain_log(axes.xaxis, " s")
    plain_log(axes.yaxis, " s")
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure
