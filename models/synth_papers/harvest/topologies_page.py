"""Harvest beyond its lists of topologies: do topologies made for intervals gain, and what holds at 1,024 GPUs?

The paper chooses candidate topologies by hand. Here ``column_generation`` makes its own beside them, for the shipped
instances whose gap is open, for every workload of Figures 5, 8, 9 and 10, and for the paper's eight collectives on
more GPUs than it evaluates, each beside ``candidates`` and the certified bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import comb
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from synth.instance import Instance
from synth.records import packed
from synth.records import record as records
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored, numbers
from synth.views.figure_style import legend_below
from synth_models.harvest.instance import HarvestInstance
from synth_papers.harvest import workloads as published
from synth_papers.harvest.workloads import MIB, Workload

OWN, LISTED, BOUND = "column_generation", "candidates", "bound"
OWN_US = "with topologies of its own (us)"
PART, KEPT, KEPT_LARGE, TREES = "runs", "published", "many-gpus", "trees-alone"
MESSAGE, DELAY = 4 * MIB, 1e-5  # bytes; seconds
DRAWN = "4 MiB, 10 us a reconfiguration"  # in the titles of the tables that the picture shows
OPEN = (
    "swing-64-p2",
    "bruck-alltoall-16-4-p4",
    "bruck-allgather-8-static-p2",
    "alltoall-direct-64-p1",
    "swing-torus-64-4x16-p4",
    "swing-torus-64-2x4x8-p6",
    "moe-8-p2",
    "demand-6-bulk-p2",
)
SECONDS_OPEN, SECONDS_64, SECONDS_256, SECONDS_1024 = (40.0, 120.0), (15.0, 60.0), (30.0, 240.0), (45.0, 240.0)
CASES = {  # bounds that divide intervals by hops, and their seconds
    "swing-64-p2": 240.0,
    "bruck-allgather-8-static-p2": 40.0,
    "swing-torus-64-4x16-p4": 120.0,
    "swing-torus-64-2x4x8-p6": 120.0,
    "swing-p2-256-gpus": 330.0,
    "bruck-allgather-r2-p2-256-gpus": 200.0,
    "swing-torus-8x8-p4-64-gpus": 60.0,
    "swing-torus-2x4x8-p6-64-gpus": 60.0,
    "swing-torus-4x16-p4-64-gpus": 240.0,
    "swing-torus-2x32-p4-64-gpus": 240.0,
    "swing-torus-2x2x16-p6-64-gpus": 240.0,
    "bruck-allgather-r2-p2-64-gpus": 120.0,
    "bruck-allgather-r4-p4-64-gpus": 60.0,
    "bruck-alltoall-r4-p4-64-gpus": 60.0,
    "bruck-alltoall-r2-p2-64-gpus": 60.0,
    "bruck-alltoall-r2-p2-256-gpus": 240.0,
    "bruck-alltoall-r2-p2-1024-gpus": 240.0,
    "swing-torus-16x16-p4-256-gpus": 150.0,
    "swing-p2-1024-gpus": 300.0,
    "bruck-allgather-r2-p2-1024-gpus": 300.0,
    "swing-torus-32x32-p4-1024-gpus": 900.0,
}
GOALS = {  # gaps in per cent that these are to come below, with their GPUs and ports
    "swing-64-p2": (8.0, 64, 2),
    "swing-p2-256-gpus": (10.0, 256, 2),
    "bruck-allgather-r2-p2-256-gpus": (10.0, 256, 2),
    "swing-torus-16x16-p4-256-gpus": (10.0, 256, 4),
    "swing-p2-1024-gpus": (15.0, 1024, 2),
    "bruck-allgather-r2-p2-1024-gpus": (15.0, 1024, 2),
    "swing-torus-32x32-p4-1024-gpus": (15.0, 1024, 4),
}
LONGER = {  # for the bound: hundreds of steps, all neighbours bounded
    "alltoall-p1-1024-gpus": 300.0,
}
OWN_LONGER = {  # for the schedules: hundreds of flows on general topologies, many Cayley graphs on many GPUs
    "alltoall-p4-64-gpus": 100.0,
    "alltoall-p6-64-gpus": 100.0,
    "swing-torus-2x2x16-p6-64-gpus": 60.0,
    "swing-p2-1024-gpus": 240.0,
    "bruck-allgather-r2-p2-1024-gpus": 240.0,
    "swing-torus-32x32-p4-1024-gpus": 400.0,
    "binary-broadcast-p2-1024-gpus": 100.0,
}
SHORTENED = ("bruck-allgather-r2-p2-256-gpus",)  # not by more time but by copies beside graphs off the list
SHIPPED = {"swing-64-p2": "swing-64-p2", "alltoall-64-p1": "alltoall-direct-64-p1"}  # workloads that are open instances
SMALL_ENOUGH, CLOSING = 150_000, 600_000  # bytes of a record that is kept; beyond 64 GPUs of one that proves gap 0
MANY = 64  # GPUs beyond which records are kept apart
PRICED, WITH_PRICES = 256, 1_500_000  # GPUs beyond which bounds with prices are kept, up to so many bytes
WITH_GOAL = 8_000_000  # bytes of a bound, and of a schedule by topologies of its own, kept where the gap has a goal
GAINS = 1e-6  # relative


def reproduce(page: Reproduction) -> None:
    """Three tables; ``--quick`` leaves out all but the two smallest open instances."""
    open_instances(page)
    if page.quick:
        page.skip("the workloads at 64 GPUs, 256 and 1,024 GPUs (--quick)")
    else:
        workloads_at_64(page)
        for gpus, seconds in ((256, SECONDS_256), (1024, SECONDS_1024)):
            collectives(page, gpus, seconds)
    for text in _REMARKS:
        page.note(" ".join(text.split()))
    for text in open_gaps((rows for _, rows in page.tables), trees_alone(page)):
        page.note(text)


def open_instances(page: Reproduction) -> None:
    """Shipped instances with a gap."""
    names = OPEN[-2:] if page.quick else OPEN
    found = _solved(page, [page.shipped("harvest", name) for name in names], SECONDS_OPEN)
    _table(page, "Shipped instances whose gap is open", found)


def workloads_at_64(page: Reproduction) -> None:
    """Every workload of the paper's figures, one size and delay."""
    found: list[tuple[Instance, Record]] = []
    for one in published.ALL:
        if one.name in SHIPPED:
            found += _solved(page, [page.shipped("harvest", SHIPPED[one.name])], SECONDS_OPEN)
        else:
            found += _solved(page, [page.keep(_instance(one, published.GPUS), PART)], SECONDS_64)
    title = "Every workload of Figures 5, 8, 9 and 10, 64 GPUs, 4 MiB, 10 us a reconfiguration"
    _table(page, title, found)


def collectives(page: Reproduction, gpus: int, seconds: tuple[float, float]) -> None:
    """The paper's eight collectives on that many GPUs, 4 MiB and 10 us."""
    made = [page.keep(_instance(one, gpus), PART) for one in eight(gpus)]
    found = _solved(page, made, seconds)
    _table(page, f"The paper's eight collectives on {gpus:,} GPUs, 4 MiB, 10 us a reconfiguration", found)


def _solved(
    page: Reproduction, instances: Iterable[Instance], seconds: tuple[float, float]
) -> list[tuple[Instance, Record]]:
    """The three methods on every instance, at most that many seconds for the schedules and for the bound."""
    found: list[tuple[Instance, Record]] = []
    for instance in instances:
        limit = OWN_LONGER.get(instance.name, seconds[0])
        found += page.solve([instance], (LISTED, OWN), part=PART, time_limit=limit)
        limit = CASES.get(instance.name, LONGER.get(instance.name, seconds[1]))
        given = {"cases": "on"} if instance.name in CASES else {}
        found += page.solve([instance], {BOUND: given}, part=PART, time_limit=limit)
    return found


def eight(gpus: int) -> list[Workload]:
    """The workloads of the paper's eight collectives, on the fewest ports that it evaluates; Swing also on a torus."""
    known = {one.name: one for one in published.ALL}
    side = round(gpus**0.5)
    torus = replace(
        known["swing-torus-8x8-p4"],
        name=f"swing-torus-{side}x{side}-p4",
        title=f"Swing on {side}x{side}, 4 ports",
        given=(("algorithm", "swing_torus"), ("torus", f"{side}x{side}")),
    )
    names = ("recursive-doubling-64-p1", "swing-64-p2", "bruck-allgather-r2-p2", "alltoall-64-p1")
    more = ("bruck-alltoall-r2-p2", "binomial-broadcast-p2", "binary-broadcast-p2")
    return [*(known[name] for name in names), *(known[name] for name in more), torus]


def _instance(one: Workload, gpus: int) -> Instance:
    name = f"{one.name.replace('-64-', '-')}-{gpus}-gpus"
    return one.instance(MESSAGE, DELAY, gpus).model_copy(update={"name": name})


def _table(page: Reproduction, title: str, found: Iterable[tuple[Instance, Record]]) -> None:
    rows = []
    for name, group in groupby(found, key=lambda one: one[0].name):
        by_method = {str(record["method"]): record for _, record in group}
        listed, own = by_method[LISTED].value, by_method[OWN].value
        bound = by_method[BOUND].bound
        assert listed is not None
        assert own is not None
        assert bound is not None
        closed = bound >= own * (1 - GAINS)
        kept = [method for method, record in by_method.items() if _keep(page, record, closed)]
        rows.append(
            {
                "instance": name,
                "candidates (us)": listed * 1e6,
                OWN_US: own * 1e6,
                "gain (%)": _gain(by_method[LISTED], listed, own),
                "certified bound (us)": bound * 1e6,
                "gap before (%)": f"{100 * max(0.0, 1 - bound / listed):.2f}",
                "gap (%)": f"{100 * max(0.0, 1 - bound / own):.2f}",
                "records kept": ", ".join(kept) or "–",
            }
        )
    page.table(title, pd.DataFrame(rows))


def _gain(candidates: Record, listed: float, own: float) -> str:
    """In per cent; none is claimed where time did not suffice for all candidates."""
    if "left out" in str(candidates["message"]):
        return "(candidates stopped)"
    return f"{100 * (listed - own) / listed:.2f}" if own < listed * (1 - GAINS) else "0"


def _keep(page: Reproduction, record: Record, closed: bool) -> bool:
    """Publish a record that is small enough for it."""
    instance = record.find_instance()
    assert isinstance(instance, HarvestInstance)
    gpus = instance.gpus
    many = gpus > PRICED or record["options"]["method"].get("cases") == "on"
    priced = many and bool((record.certificate or {}).get("bundles"))
    usual = WITH_PRICES if priced else CLOSING if closed and gpus > MANY else SMALL_ENOUGH
    wanted = instance.name in GOALS and record["method"] in (BOUND, OWN)
    kept = packed_bytes(record) <= (WITH_GOAL if wanted else usual)
    if kept:
        page.publish(record, KEPT_LARGE if gpus > MANY else KEPT)
    return kept


def packed_bytes(record: Record) -> int:
    """Bytes that a collection holds of it: its line with the instance's text, and its arrays."""
    data = {**records.plain_data(record, {}), "instance_text": record.find_instance().to_json()}
    made = packed.prepare(Path(packed.NAME), [("", data, records.split_arrays(record))])
    return len(made.text) + len(made.blob)


def trees_alone(page: Reproduction) -> dict[str, float]:
    """What the rows of trees alone prove (us), for the instances that have a goal."""
    found = {}
    for name, (_, gpus, _) in GOALS.items():
        if page.quick or (gpus == MANY and name not in OPEN):
            continue
        made = {one.name: one for one in (_instance(one, gpus) for one in eight(gpus))} if gpus > MANY else {}
        instance = page.keep(made[name], PART) if name in made else page.shipped("harvest", name)
        [(_, record)] = page.solve([instance], {BOUND: {"rates": "off"}}, part="trees", time_limit=60.0)
        if len(instance.to_json()) <= WITH_PRICES:
            page.publish(record, TREES)
        assert record.bound is not None
        found[name] = record.bound * 1e6
    return found


def open_gaps(tables: Iterable[pd.DataFrame], trees: Mapping[str, float]) -> list[str]:
    """A line for every gap that is above its goal: what was tried on either side, and what it gave. ``trees``: bounds
    (us) of the rows of trees alone."""
    rows = pd.concat([table.astype({"gap (%)": str}) for table in tables]).drop_duplicates("instance")
    by_name = {str(row["instance"]): row for _, row in rows.iterrows()}
    return [
        f"`{name}` is open by {by_name[name]['gap (%)']} % (goal: {goal:g} %). "
        + _tried(name, gpus, ports, by_name[name], trees[name])
        for name, (goal, gpus, ports) in GOALS.items()
        if name in by_name and name in trees and float(by_name[name]["gap (%)"]) > goal
    ]


def _tried(name: str, gpus: int, ports: int, row: pd.Series, trees: float) -> str:
    """The attempts on the schedule and on the bound of an instance, with what they gave."""
    listed, own, bound = (float(row[key]) for key in ("candidates (us)", OWN_US, "certified bound (us)"))
    graphs = f"{comb(gpus + ports - 1, ports):,} Cayley graphs were rated over few hops"
    rated = (
        f"{graphs}, then annealing sought" if ports <= 2 else "annealing sought Cayley graphs of several groups, then"
    )
    gained = "no more" if own >= listed * (1 - GAINS) else f"{own:.6g} us"
    with_prices = "Prices and cases of hops" if name in CASES else "Prices of one program an interval"
    loose = (
        "Either may be the loose side: the bound shares links in fractions, the schedule is what was found in its time"
        if name in {*OWN_LONGER, *SHORTENED}
        else "The bound is likely the loose side, as it shares links in fractions"
    )
    more = f"prove {bound:.6g} us" if bound > trees * (1 + GAINS) else "prove no more in their time"
    return (
        f"Schedule: the listed topologies take {listed:.6g} us. Topologies of its own give {gained}; {rated} "
        f"less symmetric ones. Bound: rows of trees alone prove {trees:.6g} us. {with_prices} {more}. "
        f"{loose}."
    )


def opening(found: Stored) -> Opening:
    """What topologies of its own gain, and what is left to the bound."""
    tables = {re.findall(r"[\d,]+ GPUs", title)[0]: found.table(title) for title in found.sections if DRAWN in title}
    rows = pd.concat([found.table("Shipped instances whose gap is open"), *tables.values()])
    rows = rows.drop_duplicates("instance").set_index("instance")
    gains, gaps = numbers(rows["gain (%)"]), numbers(rows["gap (%)"])
    medians = [f"{numbers(table['gap (%)']).median():.1f} % on {gpus}" for gpus, table in tables.items()]
    return Opening(
        (
            f"Topologies that `column_generation` makes of its own shorten {int((gains > 0).sum())} of {len(rows)} "
            f"schedules, by {gains.max():.0f} % at most (`{gains.idxmax()}`).",
            f"{int((gaps == 0).sum())} schedules are proven optimal to the digits printed; the widest gap is "
            f"{gaps.max():.1f} % (`{gaps.idxmax()}`).",
            f"The median of the gap is {', '.join(medians)}.",
        ),
        "gaps",
        [("gaps", "Gap to the certified bound with the listed topologies and with topologies of its own.",
          partial(_draw, tables))],
    )  # fmt: skip


def _draw(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """A row an instance, a panel a number of GPUs: the gap before and after."""
    figure = Figure(figsize=(9.5, 0.24 * sum(map(len, tables.values())) + 1.8), layout="constrained")
    heights = [len(table) for table in tables.values()]
    for axes, (name, table) in zip(
        figure.subplots(len(tables), 1, sharex=True, height_ratios=heights), tables.items(), strict=True
    ):
        before, after = numbers(table["gap before (%)"]), numbers(table["gap (%)"])
        places = range(len(table))
        axes.hlines(places, after, before, color="grey", linewidth=1)
        axes.plot(before, places, "o", color="black", markerfacecolor="none", markersize=5, label="listed topologies")
        axes.plot(after, places, "D", color="#1f6fb4", markersize=4, label="with topologies of its own")
        axes.set_yticks(places, [re.sub(r"-\d+-gpus$", "", one) for one in table["instance"]], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(name, fontsize=9, loc="left")
    axes.set_xlabel("gap to the certified bound, %")
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


_REMARKS = (
    """`column_generation` never takes longer schedules than `candidates`, from whose list it begins; what it proves is
    nothing. Gaps are against `bound`, which holds for every sequence of topologies of whole links.""",
    """Records above 150 kB with their instance, as they are packed, are not kept (600 kB where they prove gap 0
    beyond 64 GPUs). The limit is 1.5 MB of bounds with prices beyond 256 or with cases. It is 8 MB where the gap has a
    goal, of bounds and of schedules by topologies of its own. Bounds by rows of trees alone are kept where the instance
    has less than 1.5 MB. The command makes all others again below `runs`. All of them were verified when this page was
    made.""",
    """Where it is settled which side is loose, it is the bound: the schedule of `bruck-allgather-8-static-p2` is the
    best of all topologies (a test goes through them). A bound with cases (`-O cases=on`) counts hops as whole numbers,
    but still shares links in fractions.""",
)
