"""What is known of throughput and what users run today, beside ours: `synth reproduce fabric`.

The page has no single paper. Printed numbers are facts from ForestColl (throughput bounds of DGX machines), the
direct-connect paper (steps and load of breadth-first broadcast) and from the arithmetic of the networks.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from synth.records.optimality import gap
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored, numbers
from synth.schedule.collective import NAMES
from synth.study.chart import natural
from synth.text.amounts import real
from synth.text.quantities import percent, shown, times
from synth.views.figure_style import BOUND, legend_below, looks, size_axis
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import knows
from synth_papers.fabric.grid import EVERYONE, MACHINES, OURS, PEERS, TODAY, Cell, cells, made, name_of, without_latency

GIB, MIB, KIB = 2**30, 2**20, 2**10
SMALL = (KIB, 8 * KIB, 64 * KIB)
CURVES, CHOICE = ("allgather", "allreduce", "alltoall"), "Two DGX A100: what to choose by size"
CURVE = tuple(KIB * 4**k for k in range(12))  # 1 KiB to 4 GiB
PRINTED = printed.read(__file__)
ANCHORS = {  # key of the printed number: machine, collective, bytes
    "dgx-a100": ({"machine": "dgx-a100"}, "allgather", GIB),
    "dgx-a100-x2": ({"machine": "dgx-a100", "boxes": "2"}, "allgather", GIB),
    "dgx1-allgather": ({"machine": "dgx1"}, "allgather", GIB),
    "dgx1-alltoall": ({"machine": "dgx1"}, "alltoall", 10**9),
    "mesh": ({"network": "mesh", "rows": "8", "cols": "8", "bandwidth": "1e9"}, "allreduce", 64 * 10**6),
}
ONE_BOX, EXACT_LIMIT = ("dgx1", "dgx-a100"), 40.0
TRIED_LIMIT = 20.0
TRIED = {  # methods beside ours on shipped instances, and which side of a wide gap is loose
    "dgx-h100-nvls-allreduce-1GiB": (("in_network",), ""),
    "dgx1-broadcast-16KiB": (("continuous",), "none beyond 0.1 %, with uneven pieces"),
    "dgx2-x2-allgather-64MiB": (
        ("hierarchical",),
        "the schedule: trees reach the bound without latency, also over the port that two GPUs share",
    ),
    "mi250-x2-reduce-16MiB": ((), "the schedule: trees reach the bound without latency"),
}
WIDE = (  # instances that are not shipped, more methods for them, and which side of their gap is loose
    (
        {"machine": "ndv2", "boxes": "2", "collective": "allreduce", "bytes": str(64 * KIB)},
        ("hierarchical", "continuous", "tacos"),
        "open: `pull` and `continuous` end at one value, TACOS's rule next to it",
    ),
    (
        dict(network="dragonfly", groups="9", routers="4", hosts="2", collective="alltoall", bytes=str(72 * MIB)),
        ("plan",),
        "open: the bound is 71 blocks over a link, `flow` goes in 72 slots of a block",
    ),
)
MIRRORS = {"reduce_scatter": "allgather", "reduce": "broadcast"}
GOAL_SMALL, GOAL_LARGE = 0.25, 0.01  # median gap at 1-64 KiB; gap at 1 GiB


def reproduce(page: Reproduction) -> None:
    """Everything that the page states, a record behind every number of ours."""
    _anchors(page)
    machines = MACHINES[3:4] if page.quick else MACHINES
    collectives = NAMES[:2] if page.quick else NAMES
    large = list(cells(page, machines, collectives, [GIB]))
    small = list(cells(page, machines, collectives, SMALL[-1:] if page.quick else SMALL))
    _large(page, large)
    _small(page, small)
    _against_today(page, small + large)
    _shipped(page)
    if page.quick:
        page.skip("all machines but one, six collectives, sizes below 64 KiB, the curves and the failures (--quick)")
        page.skip("exact schedules on one box (--quick)")
    else:
        _one_box(page)
        _curves(page)
        _failures(page)
    page.note(
        "Times are those of the check's replay in continuous time; bounds hold for every schedule on the machine. "
        "`ring`, `double_tree`, `recursive_doubling`, `direct` and `bruck` are what NCCL and MPI run. They "
        "stand on the same machine under the same replay, with the number of chunks that suits them best. Kernel "
        "launches and protocol overheads are left out."
    )


def _anchors(page: Reproduction) -> None:
    """Bounds on machines whose latencies are left out, so that throughput alone is left."""
    for key, (machine, collective, size) in ANCHORS.items():
        stated, keys = PRINTED[f"anchors.{key}"], {**machine, "collective": collective, "bytes": str(size)}
        instance = page.keep(without_latency(made(**keys)), "anchors")
        [(_, record)] = page.solve([instance], ["bound"], part="anchors")
        ours = None
        if record.bound:
            ours = record.bound * 1e3 if stated.unit == "ms" else size / record.bound / 1e9
        page.compare(stated, ours, f"exactly {stated.text}")


def _large(page: Reproduction, found: Sequence[Cell]) -> None:
    rows = []
    for cell in found:
        best = cell.best(EVERYONE)
        if best is None:
            continue
        rows.append(
            {
                "machine": cell.machine,
                "collective": cell.collective.replace("_", "-"),
                "bound [GB/s]": round(cell.size / cell.bound / 1e9, 2),
                "best [GB/s]": round(cell.size / best[0] / 1e9, 2),
                "gap": percent(cell.gap),
                "by": best[1],
                **{name: _ratio(cell, name) for name in ("ring", "double_tree", "direct")},
            }
        )
    page.table("1 GiB: bytes over time, and the time of what users have today over ours", pd.DataFrame(rows), "large")
    gaps = [cell.gap for cell in found if cell.gap is not None]
    within = sum(gap <= GOAL_LARGE for gap in gaps)
    page.note(f"At 1 GiB {within} of {len(gaps)} instances are within {percent(GOAL_LARGE)} of their bound.")


def _ratio(cell: Cell, method: str) -> str:
    ours, theirs = cell.best(OURS), cell.best([method])
    return "–" if ours is None or theirs is None else times(theirs[0] / ours[0])


def _small(page: Reproduction, found: Sequence[Cell]) -> None:
    of_machine: dict[str, list[float]] = defaultdict(list)
    for cell in found:
        if cell.gap is not None:
            of_machine[cell.machine].append(cell.gap)
    rows = [
        {
            "machine": machine,
            "instances": len(gaps),
            "median gap": percent(statistics.median(gaps)),
            "largest": percent(max(gaps)),
        }
        for machine, gaps in of_machine.items()
    ]
    everything = [gap for gaps in of_machine.values() for gap in gaps]
    median = statistics.median(everything)
    rows.append(
        {
            "machine": "all",
            "instances": len(everything),
            "median gap": percent(median),
            "largest": percent(max(everything)),
        }
    )
    page.table("Small messages, 1 to 64 KiB: gap between the best schedule and the bound", pd.DataFrame(rows))
    detail = [
        {
            "machine": cell.machine,
            "collective": cell.collective,
            "bytes": cell.size,
            "bound_s": cell.bound,
            "best_s": best[0],
            "by": best[1],
            "gap": cell.gap,
        }
        for cell in found
        if (best := cell.best(EVERYONE)) is not None
    ]
    page.table("Small messages", pd.DataFrame(detail), "small", show=False)
    page.note(f"Small messages: the median gap is {percent(median)} (aim: at most {percent(GOAL_SMALL)}).")


def _against_today(page: Reproduction, found: Sequence[Cell]) -> None:
    ratios = [(cell.speedup, cell) for cell in found if cell.speedup is not None]
    rows = []
    for machine in dict.fromkeys(cell.machine for _, cell in ratios):
        row: dict[str, str] = {"machine": machine}
        for collective in dict.fromkeys(cell.collective for _, cell in ratios):
            of = [ratio for ratio, cell in ratios if (cell.machine, cell.collective) == (machine, collective)]
            row[collective.replace("_", "-")] = f"{statistics.geometric_mean(of):.2f} ({min(of):.2f})" if of else "–"
        rows.append(row)
    page.table(
        "The best that users have today over ours, geometric mean over the sizes (least)", pd.DataFrame(rows), "today"
    )
    least, cell = min(ratios, key=lambda pair: pair[0])
    where = f"{cell.machine}, {cell.collective}, {shown(cell.size, 'bytes')}"
    page.note(
        f"Ours against the best of {', '.join(TODAY)}: at least {times(least)} as fast on {len(ratios)} instances "
        f"(least: {where})."
    )
    detail = [
        {
            "machine": cell.machine,
            "collective": cell.collective,
            "bytes": cell.size,
            **{
                name: None if name not in cell.records else cell.records[name].value for name in (*TODAY, *PEERS, *OURS)
            },
            "bound": cell.bound,
        }
        for cell in found
    ]
    page.table("All times", pd.DataFrame(detail), "times", show=False)


def _shipped(page: Reproduction) -> None:
    """The shipped instances, schedules of ours published whole; where gaps are wide, by more methods."""
    rows, tried = [], []
    for path in sorted((page.instances / "fabric").glob("*.json"), key=lambda path: natural(path.stem)):
        if page.quick and not path.stem.startswith("dgx1-"):
            continue
        instance = page.shipped("fabric", path.stem)
        assert isinstance(instance, FabricInstance)
        cell = Cell("", instance.collective, instance.bytes, instance)
        names = [name for name in ("bound", *OURS) if knows(name, instance.collective)]
        for _, record in page.solve([instance], names, time_limit=20.0):
            cell.records[record["method"]] = record
        more, loose = TRIED.get(path.stem, ((), ""))
        for _, record in page.solve([instance], more, time_limit=TRIED_LIMIT):
            cell.records[record["method"]] = record
        best = cell.best((*OURS, *more))
        if best is not None:
            left = percent(gap(best[0], cell.bound))
            rows.append((path.stem, shown(best[0], "s"), shown(cell.bound, "s"), left, best[1]))
            tried += [(path.stem, cell.bound * 1e6, left, _values(cell), loose)] if loose else []
    tried += [] if page.quick else [_wide(page, *one) for one in WIDE]
    page.table("Shipped instances", pd.DataFrame(rows, columns=["instance", "best", "bound", "gap", "by"]), "shipped")
    columns = ["instance", "bound (us)", "gap", "tried (us)", "the loose side"]
    page.table("Instances whose gap is wide: what was tried", pd.DataFrame(tried, columns=columns))


def _wide(
    page: Reproduction, keys: dict[str, str], more: Sequence[str], loose: str
) -> tuple[str, float, str, str, str]:
    """The row of an instance that is not shipped: what ours and more methods found."""
    instance = page.keep(made(**keys), "wide")
    cell = Cell("", instance.collective, instance.bytes, instance)
    names = [name for name in ("bound", *OURS, *more) if knows(name, instance.collective)]
    for _, record in page.solve([instance], names, time_limit=TRIED_LIMIT, part="wide"):
        cell.records[record["method"]] = record
    best = cell.best((*OURS, *more))
    assert best is not None
    return instance.name, cell.bound * 1e6, percent(gap(best[0], cell.bound)), _values(cell), loose


def _values(cell: Cell) -> str:
    """What every method found (us), the best first."""
    found = sorted((record.value, name) for name, record in cell.records.items() if record.value is not None)
    return ", ".join(f"{name} {value * 1e6:.6g}" for value, name in found)


def _one_box(page: Reproduction) -> None:
    """`continuous` on one box at small sizes: proven, or with what gap; reductions are its schedules backwards."""
    rows, found = [], dict[tuple[str, str, int], Record]()
    for machine in ONE_BOX:
        for collective in ("allgather", "broadcast", "allreduce", *MIRRORS):
            for size in (KIB * 4**k for k in range(6)):
                asked = page.keep(made(machine=machine, collective=collective, bytes=str(size)), "exact")
                mirror = found.get((machine, MIRRORS.get(collective, ""), size))
                backwards: dict[str, dict[str, str]] = {"imported": {"file": str(mirror.path)}} if mirror else {}
                methods = {"bound": {}, **(backwards or {"continuous": {}})}
                (_, bound), (_, record) = page.solve([asked], methods, time_limit=EXACT_LIMIT, part="exact")
                found[machine, collective, size] = record
                if (value := record.value) is not None:
                    proven = max(bound.bound or 0.0, record.bound or 0.0)
                    told = f"{MIRRORS[collective]} backwards" if mirror else record.words_of_end
                    left, seconds = gap(value, proven), shown(record.run_s, "s")
                    cells = (round(value * 1e6, 5), round(proven * 1e6, 5), percent(left), told, seconds)
                    rows.append((machine, collective, shown(size, "bytes"), *cells))
    columns = ["machine", "collective", "size", "continuous [us]", "bound [us]", "gap", "ended", "run"]
    page.table("One box, exactly: `continuous` at 1 KiB to 1 MiB", pd.DataFrame(rows, columns=columns), "one-box")
    gaps = [left for _, collective, _, _, _, left, *_ in rows if collective not in MIRRORS]
    proven_ones = gaps.count(percent(0.0))
    page.note(f"One box: `continuous` is proven optimal on {proven_ones} of {len(gaps)}, {EXACT_LIMIT:g} s each.")


def _curves(page: Reproduction) -> None:
    """What to choose by size, which the page's picture shows."""
    rows = []
    for collective in CURVES:
        for cell in cells(page, [{"machine": "dgx-a100", "boxes": "2"}], [collective], CURVE):
            best, today = cell.best(OURS), cell.best(TODAY)
            if best is not None and today is not None:
                left = percent(gap(best[0], cell.bound))
                rows.append((collective, shown(cell.size, "bytes"), *_won(best), *_won(today), left))
    columns = ["collective", "size", "best of ours", "time", "best of today", "its time", "gap"]
    page.table(CHOICE, pd.DataFrame(rows, columns=columns), "curves")


def opening(found: Stored) -> Opening:
    """How close to the bound, and how far ahead of what users run today."""
    large: Any = found.table("1 GiB: bytes over time")
    small: Any = found.table("Small messages").set_index("machine")
    today = found.table("The best that users have today").set_index("machine")
    ratios: Any = today.apply(numbers).stack()
    place: Any = ratios.idxmax()
    least, instances = found.note(r"at least ([\d.]+)× as fast on (\d+) instances").groups()
    ahead = "slower on none" if float(least) >= 1 else f"at least {least} times as fast on all"
    gaps = percent_of(large["gap"])
    caption = (
        "Two DGX A100: bytes over time, and the share of the bound that is reached. No schedule is above the bound."
    )
    return Opening(
        (
            f"At 1 GiB our schedules are within {gaps.max():.2f} % of the bound on all {len(large)} pairs of machine "
            f"and collective. From 1 to 64 KiB the gap is {small.loc['all', 'median gap']} in the median and "
            f"{small.loc['all', 'largest']} at most.",
            f"The best of what NCCL and MPI run takes up to {ratios.max():.2f} times as long ({place[1]} on "
            f"{place[0]}, mean over the sizes). Ours is {ahead} of {instances} instances, to three digits.",
            "Everything is replayed on the same model of the machine, without kernel launches and protocol overheads.",
        ),
        "bandwidth",
        [("bandwidth", caption, partial(_draw, found.table(CHOICE)))],
    )


def percent_of(cells: pd.Series) -> pd.Series:
    """Gaps as pages show them, in percent: ``0.29 %`` and ``1e-08``, which is of 1."""
    return numbers(cells) * cells.str.endswith("%").map({True: 1.0, False: 100.0})


def _draw(table: pd.DataFrame) -> Figure:
    """A column a collective: bytes over time above, share of the bound below."""
    figure = Figure(figsize=(11, 5.4), layout="constrained")
    grid = figure.subplots(2, len(CURVES), sharex=True, sharey="row")
    for (above, below), (collective, part) in zip(grid.T, table.groupby("collective", sort=False), strict=True):
        sizes = part["size"].map(lambda cell: real(cell, "size"))
        seconds = {name: part[column].map(lambda cell: real(cell, "time"))
                   for name, column in (("best of ours", "time"), ("best of today", "its time"))}  # fmt: skip
        bound = seconds["best of ours"] * (1 - percent_of(part["gap"]) / 100)
        for name, look in looks(list(seconds)).items():
            above.plot(sizes, sizes / seconds[name] / 1e9, label=name, **look)
            below.plot(sizes, 100 * bound / seconds[name], **look)
        above.plot(sizes, sizes / bound / 1e9, **BOUND)
        below.axhline(100, **BOUND)
        above.set(title=collective, yscale="log")
        above.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        size_axis(below, sizes.tolist(), 5)
    grid[0, 0].set_ylabel("bytes / time, GB/s")
    grid[1, 0].set(ylabel="share of the bound, %", ylim=(0, 105))
    legend_below(figure, grid[0, 0].get_legend_handles_labels()[0])
    return figure


def _won(best: tuple[float, str]) -> tuple[str, str]:
    return best[1], shown(best[0], "s")


def _failures(page: Reproduction) -> None:
    """Every kind of single failed link, solved again."""
    rows = []
    for machine in (
        {"machine": "dgx-a100", "boxes": "2"},
        {"network": "mesh", "rows": "8", "cols": "8"},
        {"network": "torus", "rows": "8", "cols": "8"},
    ):
        whole = made(**machine, collective="allgather", bytes=str(64 * MIB))
        gaps, seconds, slower = [], [], []
        healthy = None
        for pair in [None, *_kinds(whole)]:
            failed = {} if pair is None else {"failed": {"links": [list(pair), list(pair[::-1])], "nodes": []}}
            name = "whole" if pair is None else f"failed-{pair[0]}-{pair[1]}"
            instance = page.keep(whole.model_copy(update={**failed, "name": f"{whole.name}-{name}"}), "failures")
            bound = value = 0.0
            for _, record in page.solve([instance], ["bound", "forest"], time_limit=20.0, part="failures"):
                bound, value = max(bound, record.bound or 0.0), record.value or value
                seconds.append(record.run_s)
            gaps.append(1 - bound / value)
            healthy = value if pair is None else healthy
            slower.append(value / (healthy or value))
        rows.append(
            {
                "machine": name_of(machine),
                "failures": len(gaps) - 1,
                "gap whole": percent(gaps[0]),
                "largest gap": percent(max(gaps)),
                "slower by at most": times(max(slower)),
                "longest run": shown(max(seconds), "s"),
            }
        )
    page.table("One failed link (both directions), allgather of 64 MiB by `forest`", pd.DataFrame(rows))


def _kinds(instance: FabricInstance) -> Iterable[tuple[int, int]]:
    """A pair of joined nodes of every kind: ends of like kind and degree, and bandwidth, tell kinds apart."""
    machine = instance.machine
    net = machine.network
    degree = net.out_degree
    seen = set()
    for u, v, b in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True):
        kind = (machine.is_switch[u], int(degree[u]), machine.is_switch[v], int(degree[v]), b)
        if u < v and kind not in seen:
            seen.add(kind)
            yield u, v
