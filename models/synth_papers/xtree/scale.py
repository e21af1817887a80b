"""How time and memory grow with the nodes: the page ``xtree-scale``.

TACOS's paper synthesises for 40,000 NPUs in 2.5 hours; here are schedules for as many and more, each with its bound,
and what they take. Measured rows are kept in ``growth.csv``: a second run takes them from there, as it takes records,
and measures what is missing. Records of schedules that symmetry repeats are small and kept; those that list every
transfer are not, at these sizes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from synth.making import make
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.growth import Growth
from synth.reproduction.stored import Opening, Stored
from synth.schedule.quotient import QuotientSchedule
from synth.schedule.replay_every import replay_every
from synth_models.xtree.family import FAMILY
from synth_models.xtree.instance import XTreeInstance

PLAN = {  # (method, network): sides of the squares
    ("symmetric", "torus"): (48, 64, 100, 128, 200, 256),
    ("cycle", "mesh"): (48, 64, 96, 128),
    ("pull", "mesh"): (8, 16, 24, 32, 48, 64),
    ("tacos", "mesh"): (8, 16, 24, 32, 48),
}
QUICK = 48  # largest side of the short form
KEPT = ("symmetric", "cycle")  # methods whose records are kept
WARM = 4  # side of a run before the first that is measured, in which loops are compiled
EVERY = {("cycle", 128), ("symmetric", 128), ("symmetric", 200)}  # replayed transfer by transfer, too
TIME_LIMIT = 600.0
FITTED = 1000  # nodes from which on a power of the nodes is fitted
COLUMNS = [
    "method", "network", "nodes", "transfers", "timesteps", "bound", "seconds", "of which check", "memory, MB",
    "record, kB", "every transfer replayed, s",
]  # fmt: skip
PRINTED = printed.read(__file__)


def reproduce(page: Reproduction) -> None:
    """Measure what is missing, then the table, the figure and the comparison."""
    table = _measured(page)
    growth = _growth(table)
    page.table("Time and memory by size, C = 1 (time includes the check; memory is the largest of the run)", table)
    page.figure(
        growth.draw(),
        "growth",
        "Time and memory over nodes, both axes logarithmic. Exponents are fitted to what comes on top of the smallest "
        f"run of all, which is mostly the start of Python, from {FITTED} nodes on.",
    )
    large = table[(table["method"] == "symmetric") & (table["nodes"] == 40_000)]
    if len(large):
        row = large.iloc[0]
        words = f"torus 200x200, {row['timesteps']} timesteps, bound {row['bound']}; {row['memory, MB']:.0f} MB"
        page.compare(PRINTED["tacos"], row["seconds"] / 3600, words)
    for sentence in growth.in_words():
        page.note(sentence)
    page.note(
        "`symmetric` and `cycle` store node 0's schedule and the permutations that carry it to all other nodes. The "
        "check verifies that these are symmetries of the links, commute and reach every node. It replays node 0's "
        "part and counts links of one orbit, which is exact (`synth/schedule/replay_quotient.py`). Where a time "
        "stands in the last column every transfer of the whole schedule was listed and replayed as well, one by one."
    )
    page.note(
        "Times are of one machine of two cores that other work shared, so their ratios say more than they do; delete "
        "`growth.csv` to measure again. TACOS's hours are its paper's, for its own networks and machine."
    )


def _growth(table: pd.DataFrame) -> Growth:
    line = [f"{method} ({network})" for method, network in zip(table["method"], table["network"], strict=True)]
    return Growth(table.assign(line=line), "line", "nodes", FITTED)


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """The page's picture."""
    yield "growth", _growth(pd.read_csv(folder / "growth.csv")).draw()


def opening(found: Stored) -> Opening:
    """What 40,000 nodes take, and how that grows."""
    table = found.table("Time and memory by size")
    [large] = table[(table["method"] == "symmetric") & (table["nodes"] == "40000")].to_dict("records")
    least = int((table["timesteps"] == table["bound"]).sum())
    grows = {name: found.note(rf"`{name} .*?time grows as (N\^[\d.]+)")[1] for name in ("symmetric", "pull")}
    printed = found.compared.iloc[0]
    return Opening(
        (
            f"An allgather on a torus of 40,000 nodes is made and checked in {large['seconds']} s with "
            f"{large['memory, MB']} MB, because the schedule of one node is repeated by symmetry; TACOS reports "
            f"{printed['paper']} {printed['unit']} for as many nodes of its own networks on its own machine.",
            f"{least} of {len(table)} schedules on this page take exactly as many timesteps as their bound.",
            f"Time grows as {grows['symmetric']} for `symmetric`, and as {grows['pull']} for `pull`, which lists every "
            "transfer.",
        ),
        "growth",
    )


def _measured(page: Reproduction) -> pd.DataFrame:
    """A row a run, from ``growth.csv`` where it is there."""
    file = page.folder / "growth.csv"
    known = pd.read_csv(file).to_dict("records") if file.is_file() else []
    rows = {(row["method"], row["nodes"]): row for row in known}
    for (method, network), sides in PLAN.items():
        with tempfile.TemporaryDirectory() as folder:
            elsewhere = replace(page, folder=Path(folder) / "xtree", proofs={})
            if any((method, side * side) not in rows for side in sides):
                _run(elsewhere, method, network, WARM)
            for side in sides:
                key, new = (method, side * side), (method, side * side) not in rows
                if (page.quick and side > QUICK) or (method not in KEPT and not new):
                    continue
                instance, record, bound = _run(page if method in KEPT else elsewhere, method, network, side)
                if new:
                    rows[key] = _row(instance, record, bound, (method, side) in EVERY)
                    page.say(f"{method} on {network} {side}x{side}: {rows[key]['seconds']} s")
                    page.table("", pd.DataFrame(rows.values(), columns=COLUMNS), file="growth", show=False)
    return pd.read_csv(file)


def _run(page: Reproduction, method: str, network: str, side: int) -> tuple[XTreeInstance, Record, Record]:
    """The method and the bound, in a process of its own each; records of earlier runs are taken as they are."""
    instance = page.keep(make(FAMILY, {"network": network, "rows": side, "cols": side}), "scale")
    assert isinstance(instance, XTreeInstance)
    words: dict[str, Any] = {"time_limit": TIME_LIMIT, "part": "scale", "apart": True}
    [(_, record)], [(_, bound)] = (page.solve([instance], [name], **words) for name in (method, "bound"))
    return instance, record, bound


def _row(instance: XTreeInstance, record: Record, bound: Record, every: bool) -> dict[Any, Any]:
    seconds, path = record["seconds"], record.path
    assert path is not None
    files = [path, *([path.parent / record["solution_file"]] if record["solution_file"] else [])]
    return dict(
        zip(
            COLUMNS,
            (
                record["method"],
                instance.topology.kind,
                instance.topology.nodes,
                record["verified"]["facts"]["transfers"],
                int(record.value or 0),
                int(bound.bound or 0),
                round(sum(seconds.values()), 2),
                round(seconds["check"], 2),
                record["peak_memory_mb"],
                round(sum(file.stat().st_size for file in files) / 1e3, 1),
                _every(instance, record) if every else None,
            ),
            strict=True,
        )
    )


def _every(instance: XTreeInstance, record: Record) -> float:
    """Seconds to replay all transfers one by one. Raises ``RuntimeError`` if that finds a fault."""
    schedule = record.solution()
    assert isinstance(schedule, QuotientSchedule)
    started = time.monotonic()
    result = replay_every(instance.topology, instance.task, schedule)
    if not result.ok or result.steps != record.value:
        raise RuntimeError(f"{record.path}: {result.faults}")
    return round(time.monotonic() - started, 1)
