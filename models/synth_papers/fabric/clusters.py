"""Clusters of 72 to 1,056 GPUs, each schedule beside its bound and what it took to find: the page ``clusters``.

Measured rows are kept in ``runs.csv``: a second run takes them from there and measures what is missing. Records of up
to :data:`KEPT` ranks are kept, larger ones are not (a million transfers each); the page's command makes them again.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from synth.records.optimality import gap
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.growth import Growth
from synth.reproduction.stored import Opening, Stored, numbers
from synth.text.quantities import percent, shown, times
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import TODAY, made

KIB, MIB, GIB = 2**10, 2**20, 2**30
ALL = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
SPREAD = ("allgather", "broadcast", "allreduce")  # what references of today are run for
H100 = {f"dgx-h100 x{boxes}": {"machine": "dgx-h100", "boxes": str(boxes)} for boxes in (16, 32, 64, 128)}
TREES, LARGE_TREES = (
    {
        f"dgx-h100 x{boxes}, leaf={leaf}, oversubscription={factor}": {
            **{"machine": "dgx-h100", "boxes": str(boxes), "leaf": str(leaf), "oversubscription": str(factor)}
        }
        for boxes, leaf, factor in sides
    }
    for sides in (((16, 4, 1), (16, 4, 2)), ((32, 8, 2), (64, 8, 1), (128, 8, 1)))
)
POD = {"network": "torus", "bandwidth": "50GB/s", "latency": "1us"}
TORI = {
    f"torus {rows}x{cols}x{layers}": {**POD, "rows": str(rows), "cols": str(cols), "layers": str(layers)}
    for rows, cols, layers in ((4, 4, 8), (8, 8, 16))
}
DRAGONFLIES = {
    f"dragonfly {groups}x{routers}x{hosts}": {
        **{"network": "dragonfly", "groups": str(groups), "routers": str(routers), "hosts": str(hosts)}
    }
    for groups, routers, hosts in ((9, 4, 2), (33, 8, 4))
}
GROUPS = {machine: int(keys["groups"]) for machine, keys in DRAGONFLIES.items()}
PAIRS = ("alltoall", "gather", "scatter")  # what is asked from rank to rank
SMALL = (KIB, 64 * KIB, MIB, 16 * MIB)
BESIDE = (MIB, GIB)  # sizes at which what users have today is run too
QUICK_ON = "dgx-h100 x16"
BESIDE_ON = ("dgx-h100 x16", "dgx-h100 x16, leaf=4, oversubscription=2", "torus 4x4x8")
SMALL_ON = (*H100, *TREES, *TORI, "dragonfly 33x8x4")
SHORT = tuple(product(SMALL_ON, (*ALL, *PAIRS)))  # machines and collectives at small sizes
KEPT = 128  # ranks up to which records are kept; of short messages those of SPREAD
OURS = ("hierarchical", "symmetric", "flow")
TIME_LIMIT = 60.0
NEAR = 1.0  # per cent above the bound
LOOSE = (
    "Where gaps at small sizes elsewhere are wide: a rank holds one partial sum of a piece, so that none passes on "
    "another's unadded. On a torus an allreduce over one root so takes two diameters, over two halves one and a half; "
    "the bound is one. On dragonflies routes from near and from afar meet on every link; pieces whose time there is a "
    "whole part of the latencies leave no gaps too short for one. Long blocks of an alltoall go there in slots that "
    "want no link twice. In these, short blocks would wait for the latencies of others, and are placed one by one. "
    "Behind leaf and spine switches without oversubscription an alltoall goes in slots too, each rank through a spine "
    "of its own."
)
BY_SIZE, SPREAD_OF_GAPS = "Gap by size", "Median and largest gap of each machine up to 16 MiB"
FITTED = 128  # GPUs from which on a power is fitted
PRINTED = printed.read(__file__)
COLUMNS = [
    "machine", "GPUs", "collective", "bytes", "method", "time, us", "bound, us", "gap", "transfers", "seconds",
    "of which check", "memory, MB", "made by",
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    """One run: a machine (its name here and the keys that make it), a collective, bytes and a method."""

    machine: str
    keys: Mapping[str, str]
    collective: str
    size: int
    method: str = "hierarchical"

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What a row of ``runs.csv`` is found by."""
        return self.machine, self.collective, self.size, self.method


def questions() -> Iterator[Question]:
    """All that the page asks, smallest machines first."""
    machines = {**H100, **TREES, **LARGE_TREES, **TORI, **DRAGONFLIES}
    for machine, keys in machines.items():
        for collective in ALL:
            yield _ours(machine, keys, collective, GIB)
        if machine in (*SMALL_ON, *LARGE_TREES, *DRAGONFLIES):
            yield from (_ours(machine, keys, collective, GIB) for collective in PAIRS)
    for (machine, collective), size in product(SHORT, SMALL):
        yield _ours(machine, machines[machine], collective, size)
    for machine, collective, size, method in product(BESIDE_ON, SPREAD, BESIDE, TODAY):
        yield Question(machine, machines[machine], collective, size, method)


def _ours(machine: str, keys: Mapping[str, str], collective: str, size: int) -> Question:
    """By our method for the machine; on dragonflies a little more, which their ranks divide."""
    if machine in GROUPS:
        size = size // (GROUPS[machine] - 1) * GROUPS[machine]
    method = "flow" if collective in PAIRS else "symmetric" if machine in TORI else "hierarchical"
    return Question(machine, keys, collective, size, method)


def reproduce(page: Reproduction) -> None:
    """Measure what is missing, then the tables and the figure."""
    table = _measured(page)
    ours = table[table["method"].isin(OURS)]
    large, small = ours[ours["bytes"] >= GIB], ours[ours["bytes"] < GIB]
    page.table(
        "1 GiB (dragonflies 1,056 and 1,152 MiB): gap to the certified bound, and what the run took, check included",
        _in_words(large.drop(columns=["bytes"])),
    )
    if len(small):
        page.table(f"{BY_SIZE} (dragonflies: 1,056 for 1,024 bytes)", _by_size(ours))
        page.table(SPREAD_OF_GAPS, _spread_of_gaps(small))
        page.note(LOOSE)
        page.table("Time of the best that users have today over ours", _against_today(table))
    rows = large[(large["collective"] == "alltoall") & (large["GPUs"] == 512)]
    if len(rows):
        row = rows.iloc[0]
        words = f"{row['machine']}, 1 GiB, gap {percent(row['gap'])}, with its check; {row['memory, MB']:.0f} MB"
        page.compare(PRINTED["pccl"], row["seconds"] / 60, words)
    growth = _growth(table)
    page.figure(
        growth.draw(),
        "growth",
        "Time and memory of a synthesis with its check, dgx-h100, 1 GiB; gather and scatter are in the table. "
        f"Exponents are fitted from {FITTED} GPUs on to what comes on top of the smallest run.",
    )
    for sentence in growth.in_words():
        page.note(sentence)
    page.note(
        f"Every schedule was replayed transfer by transfer. The limit of a run is {TIME_LIMIT:.0f} s, the check not "
        "counted; what is still searching then hands over its best. "
        "Times are of one machine of two cores that other work shared; delete `runs.csv` to measure again."
    )


def _growth(table: pd.DataFrame) -> Growth:
    """Time and memory of 1 GiB on boxes of H100."""
    large = table[table["method"].isin(OURS) & (table["bytes"] >= GIB) & table["machine"].isin(list(H100))]
    return Growth(large, "collective", "GPUs", FITTED)


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """The page's picture."""
    yield "growth", _growth(_in_order(_known(folder / "runs.csv"))).draw()


def opening(found: Stored) -> Opening:
    """How near its bound every collective is on large machines, and what a schedule takes to make."""
    large, spread = found.table("1 GiB ("), found.table(SPREAD_OF_GAPS)
    gaps, medians, widest = numbers(large["gap"]), numbers(spread["median"]), numbers(spread["largest"])
    worst, last = large.iloc[int(gaps.argmax())], spread.iloc[int(widest.argmax())]
    near, ranks = int((gaps <= NEAR).sum()), numbers(large["GPUs"]).astype(int)
    least, most = (spread.iloc[int(place)]["median"] for place in (medians.argmin(), medians.argmax()))
    return Opening(
        (
            f"At 1 GiB, on machines of {ranks.min():,} to {ranks.max():,} GPUs, "
            f"{near} of {len(large)} schedules are at most {NEAR:g} % from their certified bound. The largest gap is "
            f"{worst['gap']} ({worst['collective']} on {worst['machine']}).",
            f"Up to 16 MiB the median gap of a machine is {least} to {most}. The largest is {last['largest']} "
            f"({last['where']} on {last['machine']}).",
            f"To make and check a schedule of 1 GiB takes at most {numbers(large['seconds']).max():.0f} s and "
            f"{numbers(large['memory, MB']).max():,.0f} MB on two cores.",
        ),
        "growth",
    )


def _measured(page: Reproduction) -> pd.DataFrame:
    """A row a run, from ``runs.csv`` where it is there."""
    file = page.folder / "runs.csv"
    rows = _known(file) if file.is_file() else {}
    asked = [one for one in questions() if not page.quick or one.key == (QUICK_ON, "allgather", GIB, "hierarchical")]
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = replace(page, folder=Path(folder) / "fabric", proofs={})
        for question in asked:
            kept = len(_asked(question).members) <= KEPT and (question.collective in SPREAD or question.size >= GIB)
            new = question.key not in rows
            if not new and not (kept and question.method in OURS):
                continue
            record, bound = _run(page if kept else elsewhere, question)
            if new:
                rows[question.key] = _row(question, record, bound)
                page.say(f"{', '.join(map(str, question.key))}: {rows[question.key]['seconds']} s")
                page.table("", pd.DataFrame(rows.values(), columns=COLUMNS), file="runs", show=False)
    return _in_order(rows)


def _known(file: Path) -> dict[Any, Any]:
    """The rows of ``runs.csv`` by what they answer."""
    rows = pd.read_csv(file).to_dict("records")
    return {(row["machine"], row["collective"], row["bytes"], row["method"]): row for row in rows}


def _in_order(rows: Mapping[Any, Any]) -> pd.DataFrame:
    """The rows in the order of the questions."""
    return pd.DataFrame([rows[one.key] for one in questions() if one.key in rows], columns=COLUMNS)


def _asked(question: Question) -> FabricInstance:
    return made(**question.keys, collective=question.collective, bytes=str(question.size))


def _run(page: Reproduction, question: Question) -> tuple[Record, Record]:
    """The method and the bound, in a process of its own each; records of earlier runs are taken as they are."""
    part = "records" if question.method in OURS else "tables"
    asked = _asked(question)
    words: dict[str, Any] = {"time_limit": TIME_LIMIT, "apart": True}
    [(_, record)] = page.solve([page.keep(asked, part)], [question.method], part=part, **words)
    [(_, bound)] = page.solve([page.keep(asked, "records")], ["bound"], part="records", **words)
    return record, bound


def _row(question: Question, record: Record, bound: Record) -> dict[Any, Any]:
    instance, seconds, value = record.find_instance(), record["seconds"], record.value
    assert isinstance(instance, FabricInstance)
    return dict(
        zip(
            COLUMNS,
            (
                question.machine,
                len(instance.members),
                question.collective,
                question.size,
                question.method,
                None if value is None else round(value * 1e6, 4),
                round((bound.bound or 0.0) * 1e6, 4),
                gap(value, bound.bound),  # of the numbers as they are, not as rounded here
                (record["verified"]["facts"] or {}).get("transfers"),
                round(sum(seconds.values()) - seconds.get("compile", 0.0), 2),
                round(seconds.get("check", 0.0), 2),
                record.data.get("peak_memory_mb"),
                record.lender or None,
            ),
            strict=True,
        )
    )


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Gaps as percent; a method whose schedule is another's names it."""
    lent = zip(table["method"], table["made by"], strict=True)
    methods = [method if pd.isna(lender) else f"{method}, as {lender}" for method, lender in lent]
    return table.assign(gap=[percent(value) for value in table["gap"]], method=methods).drop(columns="made by")


def _size(size: int) -> str:
    """Bytes in words; those of a dragonfly as the whole of which they are a little more."""
    whole = next((size // groups * (groups - 1) for groups in GROUPS.values() if size % groups == 0), size)
    return shown(float(whole), "bytes")


def _by_size(ours: pd.DataFrame) -> pd.DataFrame:
    """A row a machine and collective, a column a size."""
    rows = []
    for machine, collective in SHORT:
        here = ours[(ours["machine"] == machine) & (ours["collective"] == collective)]
        rows.append(
            {"machine": machine, "collective": collective}
            | dict(zip(map(_size, here["bytes"]), map(percent, here["gap"]), strict=True))
        )
    sizes = [shown(float(size), "bytes") for size in (*SMALL, GIB)]
    return pd.DataFrame(rows, columns=["machine", "collective", *sizes])


def _spread_of_gaps(small: pd.DataFrame) -> pd.DataFrame:
    """A row a machine: the median gap over its collectives and sizes, the largest and where that is."""
    rows = []
    for machine, here in small.groupby("machine", sort=False):
        widest = here.iloc[int(here["gap"].to_numpy().argmax())]
        where = f"{widest['collective']} of {_size(widest['bytes'])}"
        rows.append((machine, percent(statistics.median(here["gap"])), percent(widest["gap"]), where))
    return pd.DataFrame(rows, columns=["machine", "median", "largest", "where"])


def _against_today(table: pd.DataFrame) -> pd.DataFrame:
    """The least time of :data:`TODAY` over that of ours, and whose it is: a row a machine and collective, a column a
    size."""
    rows = []
    for machine, collective in product(BESIDE_ON, SPREAD):
        row = {"machine": machine, "collective": collective}
        for size in BESIDE:
            here = table[(table["machine"] == machine) & (table["collective"] == collective) & (table["bytes"] == size)]
            time = {method: value for method, value in zip(here["method"], here["time, us"], strict=True) if value > 0}
            ours = min((time[name] for name in OURS if name in time), default=None)
            best, who = min(((time[name], name) for name in TODAY if name in time), default=(None, ""))
            row[shown(float(size), "bytes")] = "–" if ours is None or best is None else f"{times(best / ours)} {who}"
        rows.append(row)
    return pd.DataFrame(rows)
