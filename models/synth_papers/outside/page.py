"""What other people's simulators say of our schedules: `synth reproduce outside`.

Measured rows are kept in ``runs.csv``: where a simulator is not there, its rows of an earlier run on the same schedule
are taken from it, and the page says of which version they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored, numbers
from synth.text.quantities import shown
from synth.views.figure_style import LOOKS
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.views.table import table
from synth_models.fabric.views.transfers import transfers
from synth_papers.fabric.grid import made
from synth_papers.outside import astra_sim, loggopsim, simgrid

MIB, GIB = 2**20, 2**30
SPEED = {"bandwidth": "25GB/s", "latency": "0.7us"}
NETWORKS: dict[str, Mapping[str, str]] = {
    "ring of 8": {"network": "ring", "nodes": "8"},
    "one-way ring of 8": {"network": "ring", "nodes": "8", "bidirectional": "off"},
    "full mesh of 8": {"network": "full", "nodes": "8"},
    "torus 4x4": {"network": "torus", "rows": "4", "cols": "4"},
    "8 on a switch": {"network": "star", "nodes": "8"},
}
BOXES: dict[str, Mapping[str, str]] = {
    "dgx-a100": {"machine": "dgx-a100"},
    "dgx-a100 x2": {"machine": "dgx-a100", "boxes": "2"},
}
METHODS = {
    "allgather": ("ring", "recursive_doubling", "direct", "hierarchical", "forest"),
    "allreduce": ("ring", "recursive_doubling", "direct", "hierarchical", "forest"),
    "alltoall": ("bruck", "direct", "flow"),
}
ONLY_BOXES = ("hierarchical", "forest", "flow")
MOST = 5000  # transfers of a schedule that is shown
TIME_LIMIT = 60.0
TOOLS = {  # column of the page: the simulator, and how it is asked
    "SimGrid": ("SimGrid", "one-at-a-time"),
    "SimGrid, whole routes": ("SimGrid", "whole-routes"),
    "SimGrid, shared": ("SimGrid", "fair"),
    "ASTRA-sim": ("ASTRA-sim", "analytical, congestion aware"),
    "LogGOPSim": ("LogGOPSim", "LogGP"),
}
NEAR = 1e-3
TITLE = "Time beyond ours, of ours"
EXPLAINED = {
    "ASTRA-sim": "It serves a link first come, first served, counts whole nanoseconds, and stores a message in a "
    "switch before it sends it on (ours cut through). Its backend has no torus and no machine of several levels.",
    "LogGOPSim": "It knows one port a rank, so only such machines are asked about. While a rank receives a message, "
    "its latency included, it begins no send: with every step it loses a latency that our schedules hide.",
}
KEY = ["machine", "collective", "bytes", "method"]
COLUMNS = [
    *KEY,
    "transfers",
    "ours, s",
    "simulator",
    "asked",
    "version",
    "seconds",
    "a transfer earlier by",
    "later by",
]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A schedule: where, of what, by which method."""

    machine: str
    instance: FabricInstance
    record: Record

    @property
    def row(self) -> Row:
        """The columns that name the case, and our time."""
        named = (self.machine, self.instance.collective, self.instance.bytes, self.record["method"])
        facts = self.record["verified"]["facts"]
        return dict(zip(KEY, named, strict=True)) | {"transfers": facts["transfers"], "ours, s": self.record.value}


def reproduce(page: Reproduction) -> None:
    """Run every simulator that is there on every schedule, then the table and what it says."""
    if page.quick:
        page.skip("all machines but the first (--quick)")
    cases = list(_cases(page))
    rows = pd.DataFrame(_measured(page, cases), columns=COLUMNS)
    page.table("", rows, file="runs", show=False)
    page.table(TITLE, _beside(rows))
    page.table("Versions", rows[["simulator", "version"]].drop_duplicates().reset_index(drop=True))
    for sentence in _in_words(rows):
        page.note(sentence)


def opening(found: Stored) -> Opening:
    """How often each simulator takes our time."""
    rows = found.table(TITLE)
    beyond = {name: numbers(rows[name]).dropna() for name in TOOLS}
    near = {name: int((part.abs() <= 100 * NEAR).sum()) for name, part in beyond.items()}
    astra, logp, same = (beyond[name] for name in ("ASTRA-sim", "LogGOPSim", "SimGrid"))
    return Opening(
        (
            f"SimGrid takes our replay's time within {100 * NEAR:g} % on {near['SimGrid']} of {len(same)} schedules "
            "when it serves each link in the schedule's order.",
            f"ASTRA-sim does on {near['ASTRA-sim']} of {len(astra)} and LogGOPSim on {near['LogGOPSim']} of "
            f"{len(logp)}; the farthest are {astra.abs().max():.1f} % and {logp.abs().max():.1f} % away.",
            "The remarks say which rule of each simulator makes the difference. Such rules are its order on a link, "
            "switches that store whole messages, and ranks that cannot send while they receive.",
        ),
        "beyond",
        [("beyond", "Every schedule: the simulator's time beyond ours, in percent of ours.", partial(_draw, beyond))],
    )


def _draw(beyond: Mapping[str, pd.Series]) -> Figure:
    """A row a simulator, a dot a schedule."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    for place, part in enumerate(beyond.values()):
        heights = [place + 0.5 * (index / max(len(part) - 1, 1) - 0.5) for index in range(len(part))]
        axes.plot(part, heights, "o", markersize=4, alpha=0.7, color=LOOKS[place]["color"])
    axes.set_yticks(range(len(beyond)), [f"{name} ({len(part)})" for name, part in beyond.items()])
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=0.1)
    axes.margins(x=0.05)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("time beyond ours, % (0: the same; linear up to 0.1, then logarithmic)")
    return figure


def _cases(page: Reproduction) -> Iterator[Case]:
    """The schedules, replayed by the check, of at most :data:`MOST` transfers."""
    machines = {**NETWORKS, **BOXES}
    for machine, (collective, methods) in product(list(machines)[:1] if page.quick else machines, METHODS.items()):
        size = MIB * 16 if machine in NETWORKS else GIB
        keys = {**machines[machine], **(SPEED if machine in NETWORKS else {})}
        instance = page.keep(made(**keys, collective=collective, bytes=str(size)), "records")
        asked = [name for name in methods if machine in BOXES or name not in ONLY_BOXES]
        for _, record in page.solve([instance], asked, part="records", time_limit=TIME_LIMIT):
            if record.value is not None and record["verified"]["facts"]["transfers"] <= MOST:
                yield Case(machine, instance, record)


def _measured(page: Reproduction, cases: list[Case]) -> list[Row]:
    """A row a case and simulator that knows its machine."""
    file = page.folder / "runs.csv"
    known = pd.read_csv(file).to_dict("records") if file.is_file() else []
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for why, simulator, run in (
            (simgrid.missing(), "SimGrid", _simgrid(folder)),
            (astra_sim.missing(), "ASTRA-sim", _astra_sim(folder)),
            (loggopsim.missing(), "LogGOPSim", _loggopsim(folder)),
        ):
            if why is None:
                found += [case.row | row for case in cases for row in run(case)]
                page.say(f"{simulator}: {len(found)} rows")
                continue
            ours = {tuple(case.row[key] for key in KEY): case.record.value for case in cases}
            kept = [row for row in known if row["simulator"] == simulator
                    and ours.get(tuple(row[key] for key in KEY)) == row["ours, s"]]  # fmt: skip
            found += [{str(key): value for key, value in row.items()} for row in kept]
            page.skip(f"{simulator}: {why}; {len(kept)} rows of an earlier run are shown")
    return found


def _simgrid(folder: Path) -> Callable[[Case], Iterator[Row]]:
    """What asks SimGrid in its three modes; the program is built when it is first needed."""
    programs: list[Path] = []

    def run(case: Case) -> Iterator[Row]:
        if not programs:
            programs.append(simgrid.build(folder))
        flat = table(case.instance, case.record.solution())
        ours = flat["end_tick"] / flat["ticks_per_s"]
        modes: tuple[simgrid.Mode, ...] = ("one-at-a-time", "whole-routes", "fair")
        for mode in modes:
            told = simgrid.replay(programs[0], case.instance, flat, mode, folder)
            apart = (told.times["end_s"] - ours) / ours.max()
            yield _row("SimGrid", mode, told.version, told.seconds, max(-apart.min(), 0.0), max(apart.max(), 0.0))

    return run


def _astra_sim(folder: Path) -> Callable[[Case], Iterator[Row]]:
    """What asks ASTRA-sim about the machines that it knows."""

    def run(case: Case) -> Iterator[Row]:
        if astra_sim.topology(case.instance) is not None:
            moves = transfers(case.instance, case.record.solution())
            seconds = astra_sim.replay(case.instance, moves, folder)
            yield _row(*TOOLS["ASTRA-sim"], astra_sim.version(), seconds)

    return run


def _loggopsim(folder: Path) -> Callable[[Case], Iterator[Row]]:
    """What asks LogGOPSim about the machines that LogGP describes."""

    def run(case: Case) -> Iterator[Row]:
        if loggopsim.parameters(case.instance) is not None:
            moves = transfers(case.instance, case.record.solution())
            seconds = loggopsim.replay(case.instance, moves, folder)
            yield _row(*TOOLS["LogGOPSim"], loggopsim.version(), seconds)

    return run


def _row(
    simulator: str, asked: str, version: str, seconds: float, early: float | None = None, late: float | None = None
) -> Row:
    """What a simulator says; ``early``, ``late``: by how much of our time a transfer ends before and after ours."""
    return dict(zip(COLUMNS[len(KEY) + 2 :], (simulator, asked, version, seconds, early, late), strict=True))


def _beyond(rows: pd.DataFrame) -> Any:
    """(theirs - ours) / ours."""
    return rows["seconds"] / rows["ours, s"] - 1


def _beside(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a schedule, a column a simulator: what its time is beyond ours, in percent of ours."""
    found = []
    for _, group in rows.groupby(KEY, sort=False):
        first = group.iloc[0]
        line: Row = {name: first[name] for name in KEY} | {"bytes": shown(float(first["bytes"]), "bytes")}
        line["ours"] = shown(float(first["ours, s"]), "s")
        for column, (simulator, asked) in TOOLS.items():
            asked_so = group[(group["simulator"] == simulator) & (group["asked"] == asked)]
            line[column] = "–" if asked_so.empty else percent_beyond(float(_beyond(asked_so).iloc[0]))
        found.append(line)
    return pd.DataFrame(found)


def percent_beyond(share: float) -> str:
    """A signed share in percent, three digits behind the point; 0 for what is below half of the last."""
    return "0" if abs(share) < 5e-6 else f"{100 * share:+.3f} %"


def _in_words(rows: pd.DataFrame) -> Iterator[str]:
    """What the columns mean, with the largest differences."""
    for asked, words in (
        ("one-at-a-time", "one transfer at a time on a link, hop by hop, in the schedule's order"),
        ("whole-routes", "the same, but a transfer takes all links of its route for the same time"),
    ):
        part = rows[(rows["simulator"] == "SimGrid") & (rows["asked"] == asked)]
        if len(part):
            end, late, early = _beyond(part).abs().max(), part["later by"].max(), part["a transfer earlier by"].max()
            yield (
                f"SimGrid, {words}: {len(part)} schedules, the time differs from ours by at most {end:.1e} of it; "
                f"no transfer ends later by more than {late:.1e} of it, none earlier by more than {early:.1e}."
            )
    part = rows[(rows["simulator"] == "SimGrid") & (rows["asked"] == "fair")]
    if len(part):
        worst = part.loc[_beyond(part).idxmax()]
        yield (
            "SimGrid, shared: whatever has what it needs begins at once, and links are shared out (max-min). No order "
            f"is kept, so what others wait for comes later: {worst['method']} {worst['collective']} on "
            f"{worst['machine']} takes {percent_beyond(_beyond(part).max())} of ours more."
        )
    for simulator, words in EXPLAINED.items():
        part = _beyond(rows[rows["simulator"] == simulator])
        if len(part):
            near = int((part.abs() <= NEAR).sum())
            most = percent_beyond(float(part[part.abs().idxmax()]))
            yield (
                f"{simulator}: {near} of {len(part)} schedules take our time within {100 * NEAR:g} %, the farthest is "
                f"{most}. {words}"
            )
    yield "Every schedule was replayed by our check; the simulators got its table, its traces and its GOAL file."
