"""Switches that copy and add, beside the same machines without: the page ``nvls``.

The best schedule of every row with at most :data:`MOST_KEPT` transfers, its bound and what stands beside it are
published, but for rings and trees on more than :data:`MOST_FEW` ranks; a second run takes them as they are. Records of
all runs lie below ``nvls/tables``, numbers of those on more than :data:`KEPT` ranks in ``runs.csv`` too, and are taken
from there.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from synth.records.folder import read_all
from synth.records.optimality import gap
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown, times
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric import nvls_tables
from synth_papers.fabric.grid import made

KIB, MIB, GIB = 2**10, 2**20, 2**30
ALL = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce")
SMALL = (KIB, 64 * KIB, MIB, 16 * MIB)
SIZES = (*SMALL, GIB)
KEPT = 16  # ranks up to which numbers stand in records alone
MOST_KEPT = 5_000_000  # transfers up to which schedules are published
TIME_LIMIT = 60.0
LONG_LIMIT = 600.0  # of rings and trees on many ranks: they are to be as quick as they can
COMPARED = (MIB, GIB)  # sizes at which what users have today is run
MOST_FEW = 32  # ranks up to which rings and trees are published
TODAY = {"nvls": ALL[:1], "sharp": ALL[:1], "ring": ALL, "double_tree": ALL[:1]}  # for which collectives
RINGS = ("ring", "double_tree")  # of which on more ranks only times are kept
MANY = {"x16": SIZES, "x64": SIZES}  # how many boxes have more, and at which sizes they are run there
FAT_TREES = (
    "On fat trees the schedules of allgather and reduce_scatter were the loose side: sent in the order of distance, "
    "data leave a port idle until the farthest arrive. Where switches copy or add, `in_network` places trees to the "
    "farthest ranks first and fills the gaps with what is nearer. What is left are gaps that no piece fits."
)
ABSENT = (
    "Where `sharp` and `nvls` have no time: SHARP's tree needs a switch that all ranks reach over switches that add, "
    "which boxes on rails have not, and NVLS needs boxes, which these fat trees have not. `double_tree` "
    "stands beside allreduce alone, for which NCCL uses trees."
)
LOOSE = (
    "Which side of a short message's gap was loose: between boxes the bound. A cut sees what one box takes in, not "
    "that what all others take in comes out of one box until it can come over two hops. Flows over time see it, and "
    "hold where boxes multiply data as long as the rails between them do not. Bounds on 4 boxes, and of reduce on more "
    "B200 boxes, are of a later state of that argument than the others. Where broadcast and reduce of one machine "
    "differ, the narrower gap is what the other would have too."
)
PRINTED = printed.read(__file__)
MEASURED = ("5", "6", "7", "8")  # GPUs
ADD_RATES = ("72.74", "79.5")  # GB/s of a sum out of a port: NVLS as measured on 8 GPUs; the least above all measured
BOXES = (1, 2, 4, 16, 64)
Maker = Callable[[str, int, bool], FabricInstance]


@dataclass(frozen=True)
class Question:
    """A row: a machine (its name here and what makes it with or without copies and sums), a collective, bytes."""

    machine: str
    make: Maker
    collective: str
    size: int
    able: bool = True

    @property
    def instance(self) -> FabricInstance:
        """What is asked."""
        return self.make(self.collective, self.size, self.able)

    def methods(self, boxes: int) -> list[str]:
        """What is tried, for so many boxes of several ranks (0: ranks behind switches alone); allreduce is also asked
        of the algorithms that it is compared with."""
        adds = ["in_network"] if self.able and self.collective == "allreduce" else []
        gathers = self.collective in ("allgather", "reduce_scatter")
        if boxes == 1:
            return [*adds, *(["steiner"] if self.able and not adds else []), "forest"]
        if boxes == 0:
            return ["hierarchical"] if not self.able else ["in_network"] if adds or gathers else ["steiner"]
        if boxes == 2 and gathers and self.size == GIB:
            return ["forest"]
        return adds if adds and self.size == GIB else [*adds, "hierarchical"]


def _boxes(name: str, boxes: int) -> Maker:
    def make(collective: str, size: int, able: bool) -> FabricInstance:
        return made(machine=f"{name}-nvls" if able else name, boxes=str(boxes), collective=collective, bytes=str(size))

    return make


def _two_levels(collective: str, size: int, able: bool) -> FabricInstance:
    """16 ranks behind four leaf and two spine switches, all of which copy and add."""
    keys = {"network": "fat_tree", "leaves": "4", "hosts": "4", "spines": "2", "bandwidth": "50GB/s"}
    keys |= {"uplink_bandwidth": "100GB/s", "latency": "1us", "collective": collective, "bytes": str(size)}
    return made(**keys, **({"multicast": "on", "adds": "on"} if able else {}))


def _three_levels(collective: str, size: int, able: bool) -> FabricInstance:
    """16 ranks: two pods of two leaf and two middle switches, and two switches above, all of which copy and add."""
    ranks, leaves, middle, top = range(16), range(16, 20), range(20, 24), range(24, 26)
    pairs = [(v, leaves[v // 4], 50e9) for v in ranks]
    pairs += [(leaf, m, 100e9) for k, leaf in enumerate(leaves) for m in middle[k // 2 * 2 : k // 2 * 2 + 2]]
    pairs += [(m, t, 100e9) for m in middle for t in top]
    both = [pair for u, v, rate in pairs for pair in ((u, v, rate), (v, u, rate))]
    switches = list(range(16, 26))
    network: dict[str, Any] = {
        "kind": "links", "nodes": 26, "switches": switches,
        "links": [{"src": u, "dst": v, "bandwidth": rate, "latency": 1e-6} for u, v, rate in both],
    }  # fmt: skip
    if able:
        network["abilities"] = [{"switch": s, "copies": True, "adds": True} for s in switches]
    name = f"fat-tree{'-sharp' if able else ''}-3-{collective}-{size}".replace("_", "")
    source = "made for the page nvls: 50 GB/s a host, 100 GB/s between switches, 1 us a hop"
    return FabricInstance.model_validate(
        {"name": name, "source": source, "network": network, "collective": collective, "bytes": size}
    )


MACHINES: dict[str, Maker] = {
    **{f"dgx-h100-nvls x{boxes}": _boxes("dgx-h100", boxes) for boxes in BOXES},
    **{f"dgx-b200-nvls x{boxes}": _boxes("dgx-b200", boxes) for boxes in BOXES},
    "fat-tree-sharp, 2 levels": _two_levels,
    "fat-tree-sharp, 3 levels": _three_levels,
}


def questions() -> Iterator[Question]:
    """All rows, the smallest machines first."""
    for machine, make in MACHINES.items():
        yield from (Question(machine, make, collective, GIB) for collective in ALL)
        yield from (Question(machine, make, collective, size) for collective in ALL for size in SMALL)


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """The page's picture."""
    yield "worth", nvls_tables.drawn(pd.read_csv(folder / "worth.csv"))


def reproduce(page: Reproduction) -> None:
    """Run what is missing, then the answer, the tables and the figure."""
    asked = [one for one in questions() if not page.quick or one.machine == "dgx-h100-nvls x1"]
    rows = pd.DataFrame([_row(page, question) for question in asked])
    worth = pd.DataFrame(list(_worth(page)))
    _answer(page, rows, worth)
    page.figure(
        nvls_tables.drawn(worth),
        "worth",
        "Allreduce of 1 GiB: time of the best schedule where switches only forward over that where they copy and add.",
    )
    large = rows[rows["bytes"] == GIB]
    page.table("1 GiB: best schedule, bound and gap", nvls_tables.in_words(large))
    small = rows[rows["bytes"] < GIB]
    page.table("Gap of short messages, by machine", nvls_tables.by_machine(small))
    page.table("Gap of short messages, by size", nvls_tables.by_size(small))
    page.table("What copies and sums in switches are worth: allreduce", nvls_tables.by_size(worth, "worth", times))
    page.table("Of that, proven", nvls_tables.by_size(worth, "proven worth", times))
    page.table("Times with and without, and the least time without", worth, file="worth", linked=True)
    beside = _beside_today(page, rows)
    page.table("Allreduce as NCCL does it, beside ours", nvls_tables.beside_ours(beside))
    page.table("Seconds of these, by collective", beside, file="beside", linked=True)
    _measurements(page)
    page.note(
        f"The limit of a run is {TIME_LIMIT:.0f} s, of rings and trees on 16 and 64 boxes {LONG_LIMIT:.0f} s. "
        f"Schedules on up to {KEPT} ranks and of up to {MOST_KEPT:,} transfers are published with their bounds, of "
        "rings and trees on 16 and 64 boxes the times."
    )
    page.note(ABSENT)
    if not page.quick:
        page.note(nvls_tables.on_many_ranks(pd.DataFrame(list(_on_many_ranks(page)))))
    page.note(LOOSE)
    page.note(FAT_TREES)
    page.note(
        "`dgx-h100` and `dgx-b200` describe switches that forward; a bound of theirs says nothing of hardware with "
        "NVLS switched on, and `bound` says so in its message."
    )


class Run(NamedTuple):
    """What a run found; its record where that is kept."""

    method: str
    value: float | None
    bound: float | None
    certified: bool
    transfers: int
    ended: str  # empty where an earlier state of the page did not keep it
    record: Record | None


def _row(page: Reproduction, question: Question) -> dict[str, Any]:
    """Best value, bound and gap of a question."""
    best, bound = _best(page, question)
    return {
        "machine": question.machine,
        "collective": question.collective,
        "bytes": question.size,
        "method": best.method,
        "time": best.value,
        "bound": bound.bound,
        "gap": gap(best.value, bound.bound),
        "certified": bound.certified,
    }


def _best(page: Reproduction, question: Question) -> tuple[Run, Run]:
    """The quickest of our methods, and the bound."""
    instance = question.instance
    ranks, boxes = len(instance.members), len(instance.boxes)
    methods = question.methods(boxes if boxes < ranks else 0)
    ours = [name for name in methods if (instance.name, name) in _published(page.folder)]
    runs = _solved(page, instance, [*(ours or methods), *_beside(question)])
    best = min(runs, key=lambda run: float("inf") if run.value is None else run.value)
    if question.able and best.record is None and best.transfers <= MOST_KEPT:  # its numbers alone
        [best] = _solved(page, instance, [best.method], again=True)
    [bound] = _solved(page, instance, ["bound"])
    if question.able:
        kept = [name for name in TODAY if ranks <= MOST_FEW or name not in RINGS]
        beside = [run for run in runs if run.method in kept and run.value is not None]
        _publish(page, instance, _part(question, instance), [best, bound, *beside])
    page.say(f"{question.machine}, {question.collective}, {question.size}: {percent(gap(best.value, bound.bound))}")
    return best, bound


def _part(question: Question, instance: FabricInstance) -> str:
    """The folder of a row's records, about a megabyte each: by the number of boxes, 64 also by what they are."""
    boxes = len(instance.boxes)
    if boxes == len(instance.members):
        return "fat-trees"
    if boxes == max(BOXES):
        return f"boxes-{boxes}-{question.machine.split('-')[1]}"
    return "boxes-1-2" if boxes <= 2 else f"boxes-{boxes}"


def _publish(page: Reproduction, instance: FabricInstance, part: str, runs: Sequence[Run]) -> None:
    """Publish the records that are not yet, but those of too many transfers."""
    for run in {run.method: run for run in runs}.values():
        known = (instance.name, run.method) in _published(page.folder)
        if run.record is not None and not known and run.transfers <= MOST_KEPT:
            page.publish(run.record, part)


def _beside(question: Question) -> Sequence[str]:
    """What users have today, where it is run beside ours."""
    if not question.able:
        return ()
    many = MANY.get(question.machine.split()[-1], COMPARED)
    names = [name for name, known in TODAY.items() if question.collective in known]
    return [name for name in names if question.size in (many if name in RINGS else COMPARED)]


@cache
def _published(folder: Path) -> dict[tuple[str, str], Record]:
    """The published records by instance and method, as they were when the page began."""
    packs = sorted(folder.glob("*/records.jsonl"))
    found = [record for record in read_all([pack.parent for pack in packs]) if isinstance(record, Record)]
    return {(str(record["instance"]), str(record["method"])): record for record in found}


def _solved(page: Reproduction, instance: FabricInstance, methods: Sequence[str], again: bool = False) -> list[Run]:
    """The runs of methods on an instance: published ones; on more than :data:`KEPT` ranks without a record those in
    ``runs.csv``, but ``again``."""
    file = page.folder / "runs.csv"
    table = pd.read_csv(file) if file.is_file() else pd.DataFrame(columns=["instance", *Run._fields[:-1]])
    found = []
    for method in methods:
        known = _published(page.folder).get((instance.name, method))
        if known is not None and known["instance_sha256"] == instance.sha256:
            if known.stated_bound is not None and known.path is not None:
                page.proofs[known.path] = known.proof
            found.append(_run(known))
            continue
        if len(instance.members) <= KEPT:
            [(_, record)] = page.solve([page.keep(instance, "tables")], [method], **_words(instance, method))
            found.append(_run(record))
            continue
        here = (table["instance"] == instance.name) & (table["method"] == method)
        rows = table[here].to_dict("records")
        if again or not rows or (page.folder / "tables" / "fabric" / instance.name / f"{method}.json").is_file():
            [(_, record)] = page.solve([page.keep(instance, "tables")], [method], **_words(instance, method))
            found.append(_run(record))
            row = {"instance": instance.name} | found[-1]._asdict()
            table = pd.DataFrame([*table[~here].to_dict("records"), row]).drop(columns="record")
            page.table("", table, file="runs", show=False)
            continue
        told = {name: None if pd.isna(value) else value for name, value in rows[0].items()}
        sure, many, ended = bool(told["certified"]), int(told["transfers"] or 0), str(told.get("ended") or "")
        found.append(Run(method, told["value"], told["bound"], sure, many, ended, None))
    return found


def _words(instance: FabricInstance, method: str) -> dict[str, Any]:
    """How a method is run."""
    long = method in RINGS and len(instance.members) > MOST_FEW
    return {"time_limit": LONG_LIMIT if long else TIME_LIMIT, "part": "tables"}


def _run(record: Record) -> Run:
    transfers = (record["verified"]["facts"] or {}).get("transfers") or 0
    certified, ended = record.proof == "certified", str(record["termination"])
    return Run(record["method"], record.value, record.bound, certified, transfers, ended, record)


def _worth(page: Reproduction) -> Iterator[dict[str, Any]]:
    """Allreduce with and without copies and sums."""
    for machine, make in _machines(page).items():
        for size in SIZES:
            able, _ = _best(page, Question(machine, make, "allreduce", size))
            plain, least = _best(page, Question(machine, make, "allreduce", size, able=False))
            assert able.value is not None
            assert plain.value is not None
            assert least.bound is not None
            quickest = min(able.value, plain.value)  # nobody has to copy or add
            yield {
                "machine": machine,
                "bytes": size,
                "with": quickest,
                "without": plain.value,
                "least without": least.bound,
                "worth": plain.value / quickest,
                "proven worth": max(1.0, least.bound / quickest),
            }


def _machines(page: Reproduction) -> dict[str, Maker]:
    """The page's machines; in the short form one."""
    return {"dgx-h100-nvls x1": MACHINES["dgx-h100-nvls x1"]} if page.quick else MACHINES


def _answer(page: Reproduction, rows: pd.DataFrame, worth: pd.DataFrame) -> None:
    """Three sentences."""
    one = worth[(worth["machine"] == "dgx-h100-nvls x1") & (worth["bytes"] == GIB)].iloc[0]
    rates = [shown(GIB / one[name], "bytes/s") for name in ("with", "without")]
    large = rows[rows["bytes"] == GIB]
    near = large[large["machine"].str.contains(r"x1$|x2$|levels")]["gap"].max()
    small = rows[rows["bytes"] < GIB]
    page.opens(
        f"On one box of 8 H100, sums and copies in the NVSwitch take an allreduce of 1 GiB from {rates[1]} to "
        f"{rates[0]}, {times(one['worth'])}. {nvls_tables.crossover(worth)} At 1 GiB the largest gap is "
        f"{percent(near)} on one and two boxes and fat trees and {percent(large['gap'].max())} on all machines. From 1 "
        f"KiB to 16 MiB the median is {percent(statistics.median(small['gap']))}."
    )


def _beside_today(page: Reproduction, rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds of ring, double tree, NVLS and one SHARP tree beside ours, None where one has no schedule."""
    found = []
    for row in rows.to_dict("records"):
        question = Question(row["machine"], MACHINES[row["machine"]], row["collective"], row["bytes"])
        told = {name: row[name] for name in ("machine", "collective", "bytes")} | {"ours": row["time"]}
        instance = question.instance
        runs = _solved(page, instance, _beside(question))
        if runs:
            found.append(told | {run.method: run.value for run in runs})
    return pd.DataFrame(found)


def _on_many_ranks(page: Reproduction) -> Iterator[dict[str, Any]]:
    """How every run of rings and trees on 16 and 64 boxes ended."""
    for machine, collective, method in product(MACHINES, ALL, RINGS):
        for size in MANY.get(machine.split()[-1], ()) if collective in TODAY[method] else ():
            [run] = _solved(page, Question(machine, MACHINES[machine], collective, size).instance, [method])
            told = {"machine": machine, "collective": collective, "method": method, "bytes": size}
            yield told | {"value": run.value, "ended": run.ended, "transfers": run.transfers}


def _measurements(page: Reproduction) -> None:
    """What users measured beside the model with and without a rate of adding."""
    rows = []
    nvls = {"machine": "dgx-h100-nvls"}
    columns: list[tuple[str, dict[str, str], str]] = [
        ("bound", nvls, "bound"), ("`nvls`", nvls, "nvls"), ("bound of dgx-h100", {"machine": "dgx-h100"}, "bound"),
    ]  # fmt: skip
    for rate in ADD_RATES:
        keys = nvls | {"adds": "on", "multicast": "on", "add_rate": f"{rate}GB/s"}
        columns.append((f"bound, sums at {rate} GB/s a port", keys, "bound"))
    for gpus in MEASURED:
        ask = {"ranks": f"0-{int(gpus) - 1}", "collective": "allreduce", "bytes": str(4 * GIB)}
        told: dict[str, Any] = {"GPUs": int(gpus), "measured": f"{PRINTED[f'nccl-1455.{gpus}'].value} GB/s"}
        for words, keys, method in columns:
            [run] = _solved(page, made(**keys, **ask), [method])
            told[words] = shown(4 * GIB / ((run.bound if method == "bound" else run.value) or 1.0), "bytes/s")
        rows.append(told)
    where = PRINTED["nccl-1455.8"].where
    page.table(f"Algorithm bandwidth as measured, {where}, and in the model", pd.DataFrame(rows))
    fits, consistent = ADD_RATES
    page.note(
        "What was measured lies above what switches that only forward allow (dgx-h100) for 7 and 8 GPUs, and below "
        f"the bound of the machine with NVLS for all. Sums at {fits} GB/s out of a port explain the 8 GPUs. But then "
        "the bound of 7 lies below their measurement, so a rate of adding alone does not explain the figures. From "
        f"{consistent} GB/s on no bound lies below any. What lies between stays unexplained by the model."
    )
    page.note(
        "Cuts take no notice of `add_rate`: valid, but loose. For an allreduce the argument `sum_rates` does; other "
        "collectives are bounded as if switches added at the links' rate. No machine of the first tables states one."
    )
    page.note(
        "The NVSwitch reads a GPU's own part too, and stores the sum at the GPU that made it: N + 1 parts over a port "
        "in the place of N. The model leaves that out."
    )
