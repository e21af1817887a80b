"""Nodes of published profiles: kernels of one rank by moments, and AICB's workloads by sums of phases."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from synth.errors import InputError
from synth.text.csv import choice_cell, typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.step.instance import MOST_BYTES, MOST_NODES, MOST_SECONDS

KERNELS = ("stream", "start_us", "dur_us", "class")
SUMS = ("file", "compute_fwd_ms", "compute_input_grad_ms", "compute_weight_grad_ms", "phase", "collective", "bytes",
        "count")  # fmt: skip
COMMUNICATION = "27"  # the stream of DeepSeek's profile on which all communication runs
PHASES = {"fwd": "compute_fwd_ms", "ig": "compute_input_grad_ms", "wg": "compute_weight_grad_ms"}
LATEST = 1e12  # us
MOST_KERNELS = 4 * MOST_NODES
MOST_SUMMED = MOST_NODES // 2 - 4
NAMES = {"ALLREDUCE": "allreduce", "ALLGATHER": "allgather", "REDUCESCATTER": "reduce_scatter",
         "BROADCAST": "broadcast", "ALLTOALL": "alltoall"}  # fmt: skip


def kernel_nodes(file: InputFile) -> dict[str, Any]:
    """Links and nodes of a profile: spans in which kernels computed, and kernels that communicated, each chain in its
    order. A span comes after the last kernel of the other chain that had ended when it began, and the other way
    round. Communication is as long as measured. Raises :class:`InputError` with every faulty line."""
    spans, messages = list[list[float]](), list[tuple[float, float]]()
    for at, end, stream in _kernels(file):
        if stream == COMMUNICATION:
            messages.append((at, end))
        elif spans and at < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([at, end])
    marked = sorted([(at, end, "c") for at, end in spans] + [(at, end, "m") for at, end in messages])
    running: dict[str, list[tuple[float, int]]] = {"c": [], "m": []}
    count, ended = {"c": 0, "m": 0}, {"c": -1, "m": -1}  # so many of a chain, the last one that had ended
    nodes = []
    for at, end, kind in marked:
        other = "m" if kind == "c" else "c"
        while running[other] and running[other][0][0] <= at:
            ended[other] = max(ended[other], heapq.heappop(running[other])[1])
        before = [f"{other}{ended[other]}"] if ended[other] >= 0 else []
        before += [f"{kind}{count[kind] - 1}"] if count[kind] else []
        name = f"{kind}{count[kind]}"
        heapq.heappush(running[kind], (end, count[kind]))
        count[kind] += 1
        node = {"name": name, "seconds": (end - at) / 1e6, "after": before}
        nodes.append(
            node | ({"kind": "computation", "rank": 0} if kind == "c" else
                    {"kind": "operation", "collective": "alltoall", "bytes": 0, "ranks": [0], "group": 64,
                     "link": "nic"})
        )  # fmt: skip
    return {"links": [{"name": "nic", "bandwidth": 50e9}], "nodes": nodes}


def _kernels(file: InputFile) -> list[tuple[float, float, str]]:
    """Begin and end in microseconds and the stream of every kernel, in the order of time."""
    columns: dict[str, Callable[[str], Any]] = dict.fromkeys(("start_us", "dur_us"), _microseconds)
    columns |= {"stream": str, "class": str, "kernel": str}
    rows = typed_rows(file, columns, KERNELS, "kernel", most=MOST_KERNELS)
    return sorted((row["start_us"], row["start_us"] + row["dur_us"], row["stream"]) for row in rows)


def workload_nodes(file: InputFile, part: str, group: int) -> tuple[str, list[dict[str, Any]]]:
    """The workload whose name holds ``part``, as one chain: the collectives of each phase in the table's order, and
    between them the computation of the phase in equal parts. Nothing overlaps. Raises :class:`InputError` with every
    faulty line of the table."""
    rows = _sums(file)
    names = sorted({row["file"] for row in rows if part in row["file"]})
    if len(names) != 1:
        raise InputError(f"workload: {part!r} fits {len(names)} workloads, must fit one", str(file))
    rows = [row for row in rows if row["file"] == names[0]]
    nodes: list[dict[str, Any]] = []
    last: list[str] = []
    for phase, key in PHASES.items():
        all_ = [row for row in rows if row["phase"] == phase for _ in range(row["count"])]
        each = rows[0][key] / 1e3 / (len(all_) + 1)
        for i, row in enumerate([None, *all_]):
            if row is not None:
                name = f"{phase}.{row['collective'].lower()}.{i}"
                nodes.append({"kind": "operation", "name": name, "collective": NAMES[row["collective"]],
                              "bytes": row["bytes"], "ranks": [0], "group": group, "link": "net",
                              "after": last})  # fmt: skip
                last = [name]
            nodes.append({"kind": "computation", "name": f"{phase}.{i}", "rank": 0, "seconds": each, "after": last})
            last = [f"{phase}.{i}"]
    return names[0].removesuffix(".txt"), nodes


def _sums(file: InputFile) -> list[dict[str, Any]]:
    """The rows of all workloads. Raises :class:`InputError` with every faulty line."""
    columns: dict[str, Callable[[str], Any]] = dict.fromkeys(PHASES.values(), _milliseconds)
    columns |= {"file": str, "layers": str, "phase": choice_cell(*PHASES), "collective": choice_cell(*NAMES)}
    columns |= {"bytes": whole_cell(MOST_BYTES), "count": whole_cell(MOST_NODES)}
    first: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        of = first.setdefault(row.get("file", ""), dict(row))
        for key in PHASES.values():
            if key in row and key in of and row[key] != of[key]:
                yield key, f"is {of[key]:g} in line {of['line']} of the same workload"
        before = counts[row.get("file", "")]
        counts[row.get("file", "")] += row.get("count", 0)
        if before <= MOST_SUMMED < counts[row.get("file", "")]:
            yield "count", f"makes more than {MOST_SUMMED} collectives of a workload"

    return typed_rows(file, columns, SUMS, "sum", wrong, "line")


def _microseconds(text: str) -> float:
    """A moment or a duration in us. Raises ``ValueError``."""
    value = float(text)
    if not 0 <= value < LATEST:
        raise ValueError(f"must be in 0..{LATEST:g}")
    return value


def _milliseconds(text: str) -> float:
    """A duration in ms. Raises ``ValueError``."""
    value = float(text)
    if not 0 <= value <= 1e3 * MOST_SECONDS:
        raise ValueError(f"must be in 0..{1e3 * MOST_SECONDS:g}")
    return value
