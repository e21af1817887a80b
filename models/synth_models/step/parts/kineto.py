"""The PyTorch profiler's (Kineto's) JSON of one rank as the nodes of a step: its kernels, and what they communicate.

Names of arguments are those of PyTorch (``torch/csrc/profiler/util.h`` at 035290b). A kernel comes after the one before
it on its stream and, of every other stream, after the last that had ended when it began. A collective whose bytes and
group are told takes what they take over the class of links; every other kernel takes as long as measured.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import parse_json
from synth.text.input_file import InputFile
from synth.text.visible import visible
from synth_models.step.instance import MOST_BYTES, MOST_NODES, MOST_SECONDS

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
WIDTHS = {"Double": 8, "Long": 8, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2, "Short": 2, "Byte": 1, "Char": 1,
          "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1}  # fmt: skip
COLLECTIVES = {"allreduce": "allreduce", "allreduce_coalesced": "allreduce", "allgather": "allgather",
               "_allgather_base": "allgather", "allgather_into_tensor_coalesced": "allgather",
               "reduce_scatter": "reduce_scatter", "_reduce_scatter_base": "reduce_scatter",
               "reduce_scatter_tensor_coalesced": "reduce_scatter", "broadcast": "broadcast", "all_to_all": "alltoall",
               "all_to_allv": "alltoall", "alltoall": "alltoall", "alltoall_base": "alltoall", "send": "send",
               "recv": "send"}  # fmt: skip
LATEST = 1e18  # us
SHORT = 40  # characters of a kernel's name that a fault tells


@dataclass
class _Trace:
    """``rank``: whose it is; what is wrong, what was left out, and what keeps its measured duration."""

    rank: int
    link: str
    faults: list[Fault] = field(default_factory=list)
    host: int = 0
    measured: Counter[str] = field(default_factory=Counter)
    alone: int = 0


def kineto_nodes(file: InputFile, link: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The nodes, and what was assumed, in words. Raises :class:`InputError` naming every faulty event."""
    raw = parse_json(file.data, str(file))
    events = raw.get("traceEvents") if isinstance(raw, dict) else None
    if not isinstance(events, list):
        raise InputError("has no list traceEvents, which the profiler of PyTorch writes", str(file))
    told = raw.get("distributedInfo")
    rank = told.get("rank", 0) if isinstance(told, dict) else 0
    if type(rank) is not int or not 0 <= rank < 1 << 20:
        raise InputError([Fault("distributedInfo.rank", "must be a rank", rank, True)], str(file))
    trace = _Trace(rank, link)
    kernels = [one for i, event in enumerate(events) if (one := _kernel(trace, i, event)) is not None]
    if trace.faults:
        raise InputError(trace.faults, str(file))
    if not 0 < len(kernels) <= MOST_NODES:
        raise InputError(f"has {len(kernels)} kernels: 1 to {MOST_NODES} are supported", str(file))
    return _in_order(kernels), _notes(trace)


def _kernel(trace: _Trace, number: int, event: Any) -> tuple[float, float, dict[str, Any]] | None:
    """Begin and end in us and the node of an event on the device; None of what runs on the host, or of no event."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    if event.get("cat") not in ON_DEVICE:
        trace.host += 1
        return None
    name = str(event.get("name", ""))
    here = f"traceEvents[{number}] ({visible(name[:SHORT])})"
    at, long, args = _number(event.get("ts")), _number(event.get("dur")), event.get("args")
    args = args if isinstance(args, dict) else {}
    if at is None or long is None:
        trace.faults.append(Fault(here, "ts and dur must be numbers"))
        return None
    if long < 0 or long / 1e6 > MOST_SECONDS:
        trace.faults.append(Fault(here, f"takes {long:g} us: must be in 0..{MOST_SECONDS * 1e6:g}"))
        return None
    node = {"kind": "computation", "name": f"k{number}", "rank": trace.rank, "seconds": long / 1e6,
            "stream": f"stream{_whole(args.get('stream', event.get('tid', 0)))}"}  # fmt: skip
    if "Collective name" in args or name.lower().startswith("nccl"):
        node = _collective(trace, here, args, node)
    return at, at + long, node


def _collective(trace: _Trace, here: str, args: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The operation that a kernel is part of; the kernel itself where that is not told."""
    said = str(args.get("Collective name", ""))
    kind, size = COLLECTIVES.get(said), args.get("Group size", 2 if said in ("send", "recv") else None)
    if kind is None or size is None:
        trace.measured[visible(said[:SHORT]) or "of no name"] += 1
        return node
    key = "Out msg nelems" if kind == "allgather" or said == "recv" else "In msg nelems"
    count, width = args.get(key), WIDTHS.get(str(args.get("dtype")))
    group = 2 if kind == "send" else size
    if type(count) is not int or count < 0 or width is None or count * width > MOST_BYTES:
        trace.faults.append(Fault(here, f"{key} and dtype must tell its bytes, {MOST_BYTES} at most"))
        return node
    if type(group) is not int or not 1 <= group <= 1 << 20:
        trace.faults.append(Fault(here, "Group size must be a number of ranks", group, True))
        return node
    if group == 1:
        trace.alone += 1
        return node | {"seconds": 0.0}
    return {"kind": "operation", "name": node["name"], "collective": kind, "bytes": count * width,
            "ranks": [trace.rank], "group": group, "link": trace.link, "stream": node["stream"]}  # fmt: skip


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and abs(value) < LATEST else None


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _in_order(kernels: list[tuple[float, float, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The nodes in the order in which they began, each with what it comes after."""
    kernels.sort(key=lambda one: (one[0], one[1]))
    ends = sorted(range(len(kernels)), key=lambda i: kernels[i][1])
    ended: dict[str, int] = {}  # of every stream the last that had ended
    last: dict[str, int] = {}  # of every stream the last that had begun
    done, nodes = 0, []
    for i, (at, _, node) in enumerate(kernels):
        while done < len(ends) and kernels[ends[done]][1] <= at and ends[done] < i:
            ended[kernels[ends[done]][2]["stream"]] = ends[done]
            done += 1
        stream = node["stream"]
        before = {one for other, one in ended.items() if other != stream}
        before |= {last[stream]} if stream in last else set()
        last[stream] = i
        nodes.append((node, sorted(before)))
    return [{key: value for key, value in node.items() if key != "stream" or node["kind"] == "computation"}
            | {"after": [nodes[k][0]["name"] for k in before]} for node, before in nodes]  # fmt: skip


def _notes(trace: _Trace) -> list[str]:
    notes = [f"One rank ({trace.rank}) is traced: the others of a group are taken to come when it does",
             "What had ended on another stream before a kernel began, goes before it"]  # fmt: skip
    if trace.host:
        notes.append(f"{trace.host} events of the host are left out, and what kernels waited for it")
    if trace.measured:
        told = ", ".join(f"{many} {kind}" for kind, many in trace.measured.most_common())
        notes.append(f"Communication of which bytes or group are not told takes as long as measured: {told}")
    if trace.alone:
        notes.append(f"{trace.alone} collectives of groups of one rank move nothing")
    return notes
