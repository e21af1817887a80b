"""A GPU executor in miniature, written from MSCCL++'s kernel and not from our reader: it runs a plan's JSON on numbers,
thread blocks in random order, and in a segment between two meetings of a thread block's threads data chunk by chunk in
random order too, what is loaded before what is stored."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

Plan = dict[str, Any]


def outcome(
    plan: Plan, collective: str, seed: int, root: int = 0, chunk: int = 1, pace: int = 1, given_parts: Any = None
) -> bool:
    """Whether one random run ends, and with the collective's result. A chunk is ``chunk`` numbers, of which a pass of a
    loop takes ``pace``, the last one what is left. Of an all-to-all of ``given_parts`` only so many numbers, the first
    ones, must come from every GPU (row) to every other."""
    chance = random.Random(seed)
    plan = in_numbers(plan, chunk, pace)
    gpus = plan["gpus"]
    n = len(gpus)
    data = np.random.default_rng(seed)
    memory = {
        (r, b): np.full(g[k], np.nan)
        for r, g in enumerate(gpus)
        for b, k in (("i", "input_chunks"), ("o", "output_chunks"), ("s", "scratch_chunks"))
    }
    given = [data.integers(1, 2**40, g["input_chunks"]).astype(float) for g in gpus]
    if plan["inplace"]:
        _one_buffer(memory, collective, gpus)
    for r in range(n):
        if collective not in ("broadcast", "scatter") or r == root:
            memory[r, "i"][:] = given[r]
    if not _made(gpus):
        return False
    channels = [{kind: _ids(g, kind) for kind in ("memory", "port")} for g in gpus]
    signals: dict[tuple[int, str, int], int] = defaultdict(int)  # at the receiving end
    threads = [{"rank": r, "tb": tb, "next": 0, "data": []} for r, g in enumerate(gpus) for tb in g["threadblocks"]]
    barriers: dict[tuple[int, int], list[Any]] = defaultdict(list)

    def other(rank: int, kind: str, channel: int) -> tuple[int, str, int]:
        peer = channels[rank][kind][channel]
        turn = [c for c, p in enumerate(channels[rank][kind]) if p == peer].index(channel)
        return peer, kind, [c for c, p in enumerate(channels[peer][kind]) if p == rank][turn]

    def advance(t: dict[str, Any]) -> bool:
        if t["data"] and chance.random() < 0.7:
            t["data"].pop(chance.randrange(len(t["data"])))()
            return True
        tb, r = t["tb"], t["rank"]
        if t["next"] >= len(tb["ops"]):
            return False
        op = tb["ops"][t["next"]]
        name, kind = op["name"], op.get("channel_type")
        mine = [i for c in tb["channels"] if c["channel_type"] == kind for i in c["channel_ids"]]
        ids = [mine[i] for i in op.get("channel_ids", [])]
        if name == "nop":
            if t["data"]:
                return False
        elif name in ("signal", "rlxsignal"):
            for c in ids:
                signals[other(r, kind, c)] += 1
        elif name in ("wait", "rlxwait"):
            if any(signals[r, kind, c] < 1 for c in ids):
                return False
            for c in ids:
                signals[r, kind, c] -= 1
        elif name == "barrier":
            if t["data"]:
                return False
            there = barriers[r, op["barrier_id"]]
            if id(t) not in there:
                there.append(id(t))
            if len(there) < op["num_threadblocks"]:
                return False
            for x in threads:
                if id(x) in there:
                    x["next"] += 1
            there.clear()
            return True
        else:
            src, dst = ([y for x in op[key] for y in _places(x, tb, r, kind, gpus)] for key in ("src_buff", "dst_buff"))
            if name == "pwsf":  # the port has moved the data when it is done
                if t["data"]:
                    return False
                several = list(zip(src, dst, ids, strict=True))
                chance.shuffle(several)  # a thread each
                for s, d, c in several:
                    memory[d[0], d[1]][d[2] : d[2] + s[3]] = memory[s[0], s[1]][s[2] : s[2] + s[3]]
                    signals[other(r, kind, c)] += 1
            elif name in ("put", "copy"):
                for s, d in zip(src, dst, strict=True):
                    t["data"] += [_mover(t["data"], memory, [s], d, k) for k in range(s[3])]
            elif name in ("glres", "gstore"):
                for k in range(op["src_buff"][0]["size"]):
                    t["data"] += _over_switch(t["data"], memory, src, dst, k)
            elif name == "re":
                t["data"] += [_mover(t["data"], memory, src, dst[0], k) for k in range(src[0][3])]
            else:
                raise NotImplementedError(name)
        t["next"] += 1
        return True

    while True:
        chance.shuffle(threads)
        moved = [advance(t) for t in threads]
        if not any(moved) and not any(t["data"] for t in threads):
            break
    if any(t["next"] < len(t["tb"]["ops"]) for t in threads) or any(signals.values()):
        return False
    if given_parts is not None:
        each = len(given[0]) // n
        return all(
            np.array_equal(memory[r, "o"][q * each :][:size], given[q][r * each :][:size])
            for q in range(n) for r in range(n) for size in [given_parts[q][r]]
        )  # fmt: skip
    return all(_right(memory[r, "o"], given, r, n, collective, root) for r in range(n))


def in_numbers(plan: Plan, chunk: int, pace: int) -> Plan:
    """The plan in chunks of one number, as the kernel goes through it: a loop's operation begins ``offset`` behind its
    places and goes as far as the unit, or its own size, lets it."""
    plan = copy.deepcopy(plan)
    for gpu in plan["gpus"]:
        for key in ("input_chunks", "output_chunks", "scratch_chunks"):
            gpu[key] *= chunk
        for block in gpu["threadblocks"]:
            found = []
            for op in block["ops"]:
                if op["name"] != "pipeline":
                    found.append(_part(op, chunk, 0, None))
                    continue
                whole = op["iter_context"]["num_chunks"]
                unit = pace * whole
                for k in range((whole * chunk + unit - 1) // unit):
                    found += [_part(inner, chunk, k * unit, unit) for inner in op["ops"]]
            block["ops"] = found
    return plan


def _part(op: dict[str, Any], chunk: int, offset: int, unit: int | None) -> dict[str, Any]:
    op = copy.deepcopy(op)
    for place in (*op.get("src_buff", ()), *op.get("dst_buff", ())):
        size = place["size"] * chunk - offset
        place["index"] = place["index"] * chunk + offset
        place["size"] = size if unit is None else min(size, unit)
    return op


def _mover(left: list[Any], memory: dict[Any, Any], sources: list[Any], d: Any, k: int) -> Any:
    def load() -> None:
        value = sum(memory[s[0], s[1]][s[2] + k] for s in sources)
        left.append(lambda: memory[d[0], d[1]].__setitem__(d[2] + k, value))

    return load


def _over_switch(left: list[Any], memory: dict[Any, Any], sources: list[Any], ends: list[Any], k: int) -> list[Any]:
    """A switch reads the k-th chunk of every source at any time, then writes the sum to every end at any time."""
    found: list[float] = []

    def load(s: Any) -> None:
        found.append(memory[s[0], s[1]][s[2] + k])
        if len(found) == len(sources):
            left.extend(partial(memory[d[0], d[1]].__setitem__, d[2] + k, sum(found)) for d in ends)

    return [partial(load, s) for s in sources]


def _groups(gpu: dict[str, Any]) -> list[tuple[str, list[int]]]:
    return [
        (c["buffer_type"], sorted(g["ranks"]))
        for c in gpu["channels"]
        if c["channel_type"] == "switch"
        for g in c["rank_groups"]
    ]


def _made(gpus: list[Any]) -> bool:
    """Whether the GPUs come to make all their groups, each when all its members have made those before it, of a buffer
    that is no larger than that of the first."""
    todo = [_groups(g) for g in gpus]
    names = {"i": "input_chunks", "o": "output_chunks", "s": "scratch_chunks"}
    while any(todo):
        ready = [x[0] for x in todo if x and all(todo[r] and todo[r][0] == x[0] for r in x[0][1])]
        if not ready:
            return False
        buffer, ranks = ready[0]
        if any(gpus[r][names[buffer]] > gpus[ranks[0]][names[buffer]] for r in ranks):
            return False
        for r in ranks:
            todo[r].pop(0)
    return True


def _places(
    x: dict[str, Any], tb: dict[str, Any], rank: int, kind: str, gpus: list[Any]
) -> list[tuple[int, str, int, int]]:
    if "switch_channel_id" not in x:
        return [_place(x, tb, rank, kind, gpus)]
    mine = [i for c in tb["channels"] if c["channel_type"] == "switch" for i in c["channel_ids"]]
    buffer, ranks = _groups(gpus[rank])[mine[x["switch_channel_id"]]]
    return [(r, buffer, x["index"], x["size"]) for r in ranks]


def _place(x: dict[str, Any], tb: dict[str, Any], rank: int, kind: str, gpus: list[Any]) -> tuple[int, str, int, int]:
    if "type" in x:
        return rank, x["type"], x["index"], x["size"]
    refs = [i for b in tb["remote_buffer_refs"] if b["access_channel_type"] == kind for i in b["remote_buffer_ids"]]
    buffer = gpus[rank]["remote_buffers"][refs[x["buffer_id"]]]
    return buffer["rank"], buffer["type"], x["index"], x["size"]


def _ids(gpu: dict[str, Any], kind: str) -> list[int]:
    return [p for c in gpu["channels"] if c["channel_type"] == kind for p in c["connected_to"]]


def _one_buffer(memory: dict[Any, Any], collective: str, gpus: list[Any]) -> None:
    for r, g in enumerate(gpus):
        i, o = g["input_chunks"], g["output_chunks"]
        if i < o:
            memory[r, "i"] = memory[r, "o"][r * i : (r + 1) * i]
        elif o < i:
            memory[r, "o"] = memory[r, "i"][r * o : (r + 1) * o]
        else:
            memory[r, "o"] = memory[r, "i"]


def _right(out: Any, given: list[Any], r: int, n: int, collective: str, root: int) -> bool:
    if collective in ("reduce", "gather") and r != root:
        return True
    total = sum(given) if len({len(g) for g in given}) == 1 else None
    want = {
        "allgather": lambda: np.concatenate(given),
        "gather": lambda: np.concatenate(given),
        "allreduce": lambda: total,
        "reduce": lambda: total,
        "broadcast": lambda: given[root],
        "reduce_scatter": lambda: np.split(total, n)[r],
        "scatter": lambda: np.split(given[root], n)[r],
        "alltoall": lambda: np.concatenate([np.split(g, n)[r] for g in given]),
    }[collective]()
    return bool(np.array_equal(out, want))
