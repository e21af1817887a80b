"""MSCCL++ plans written by hand, two GPUs each, as JSON has them."""

from __future__ import annotations

import json
from typing import Any

Plan = dict[str, Any]


def local(buffer: str, index: int, size: int = 1) -> dict[str, Any]:
    return {"type": buffer, "index": index, "size": size}


def remote(number: int, index: int, size: int = 1) -> dict[str, Any]:
    return {"buffer_id": number, "index": index, "size": size}


def sync(name: str, *ids: int, kind: str = "memory") -> dict[str, Any]:
    return {"name": name, "channel_ids": list(ids), "channel_type": kind}


def data(name: str, src: list[Any], dst: list[Any], kind: str = "", ids: list[int] | None = None) -> dict[str, Any]:
    op: dict[str, Any] = {"name": name, "src_buff": src, "dst_buff": dst}
    if kind:
        op["channel_type"] = kind
    if ids is not None:
        op["channel_ids"] = ids
    return op


NOP = {"name": "nop"}
READY = [sync("rlxsignal", 0), sync("rlxwait", 0), NOP]
DONE = [NOP, sync("signal", 0), sync("wait", 0)]


def block(number: int, ops: list[Any], kind: str = "memory", channels: int = 1) -> dict[str, Any]:
    return {
        "id": number,
        "ops": ops,
        "channels": [{"channel_type": kind, "channel_ids": list(range(channels))}],
        "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": [0]}],
    }


def gpu(rank: int, sizes: tuple[int, int, int], to: str, blocks: list[Any], kind: str = "memory") -> dict[str, Any]:
    return {
        "id": rank,
        "input_chunks": sizes[0],
        "output_chunks": sizes[1],
        "scratch_chunks": sizes[2],
        "channels": [{"channel_type": kind, "connected_to": [1 - rank]}],
        "remote_buffers": [{"rank": 1 - rank, "type": to, "access_channel_types": [kind]}],
        "semaphores": [],
        "threadblocks": blocks,
    }


def plan(collective: str, gpus: list[Any], in_place: bool = False, protocol: str = "Simple") -> Plan:
    whole = {"name": "by hand", "collective": collective, "protocol": protocol, "inplace": in_place, "gpus": gpus}
    made: Plan = json.loads(json.dumps(whole))  # nothing shared
    return made


def allgather() -> Plan:
    """Both copy their own chunk and put it into the other's output."""

    def ops(r: int) -> list[Any]:
        own = data("copy", [local("i", 0)], [local("o", r)])
        return [*READY, own, data("put", [local("i", 0)], [remote(0, r)], "memory"), *DONE]

    return plan("allgather", [gpu(r, (1, 2, 0), "o", [block(0, ops(r))]) for r in range(2)])


def allreduce() -> Plan:
    """Out of place: both put their input into the other's scratch, and add it to their own."""

    def ops(r: int) -> list[Any]:
        put = data("put", [local("i", 0, 2)], [remote(0, 0, 2)], "memory")
        return [*READY, put, *DONE, NOP, data("re", [local("i", 0, 2), local("s", 0, 2)], [local("o", 0, 2)])]

    return plan("allreduce", [gpu(r, (2, 2, 2), "s", [block(0, ops(r))]) for r in range(2)])


def reading() -> Plan:
    """Reduce-scatter by reading: both read the other's contribution to their own chunk."""

    def ops(r: int) -> list[Any]:
        return [*READY, data("rre", [local("i", r), remote(0, r)], [local("o", 0)], "memory"), *DONE]

    return plan("reducescatter", [gpu(r, (2, 1, 0), "i", [block(0, ops(r))]) for r in range(2)])


def ports() -> Plan:
    """Allgather over port channels: a put, a signal, then put with signal and flush."""

    def ops(r: int) -> list[Any]:
        return [
            sync("rlxsignal", 0, kind="port"),
            sync("rlxwait", 0, kind="port"),
            NOP,
            data("put", [local("i", 0)], [remote(0, 2 * r)], "port", [0]),
            NOP,
            sync("signal", 0, kind="port"),
            data("pwsf", [local("i", 1)], [remote(0, 2 * r + 1)], "port", [0]),
            sync("wait", 0, kind="port"),
            sync("wait", 0, kind="port"),
            data("copy", [local("i", 0, 2)], [local("o", 2 * r, 2)]),
        ]

    return plan("allgather", [gpu(r, (2, 4, 0), "o", [block(0, ops(r), "port")], "port") for r in range(2)])


def two_blocks(how: str = "barrier") -> Plan:
    """Allgather in which one thread block stages the chunk in scratch and another, behind a barrier or a semaphore,
    puts it."""
    meet = [{"name": "barrier", "barrier_id": 3, "num_threadblocks": 2}] * 2
    if how == "semaphore":
        meet = [{"name": "sem_release", "semaphore_ids": [0]}, {"name": "sem_acquire", "semaphore_ids": [0]}]

    def blocks(r: int) -> list[Any]:
        copies = [data("copy", [local("i", 0)], [local(b, k)]) for b, k in (("s", 0), ("o", r))]
        put = data("put", [local("s", 0)], [remote(0, r)], "memory")
        first = {"id": 0, "ops": [*copies, NOP, meet[0]], "channels": []}
        return [first, block(1, [*READY, meet[1], NOP, put, *DONE])]

    made = plan("allgather", [gpu(r, (1, 2, 1), "o", blocks(r)) for r in range(2)])
    for one in made["gpus"] if how == "semaphore" else []:
        one["semaphores"] = [{"init_value": 0}]
    return made


def packets() -> Plan:
    """Allgather in place with packets: no signals at all."""

    def blocks(r: int) -> list[Any]:
        put = block(0, [data("ppkt", [local("o", r)], [remote(0, r)], "memory")])
        return [put, {"id": 1, "ops": [data("upkt", [local("s", 1 - r)], [local("o", 1 - r)])], "channels": []}]

    return plan("allgather", [gpu(r, (1, 2, 2), "s", blocks(r)) for r in range(2)], in_place=True, protocol="LL")


def over_switch(number: int, index: int, size: int = 1) -> dict[str, Any]:
    return {"switch_channel_id": number, "index": index, "size": size}


def joined(made: Plan, *buffers: str) -> Plan:
    """With a switch channel to both GPUs' buffer for every one named, in the first thread block."""
    for one in made["gpus"]:
        ends = [{"size": 2, "ranks": [0, 1]}]
        one["channels"] += [{"channel_type": "switch", "buffer_type": b, "rank_groups": ends} for b in buffers]
        mine = {"channel_type": "switch", "channel_ids": list(range(len(buffers)))}
        one["threadblocks"][0]["channels"].append(mine)
    return made


def summed_in_switch() -> Plan:
    """Allreduce in place as the executor's own sample has it: each loads the sum of its half and stores it to both."""

    def ops(r: int) -> list[Any]:
        return [*READY, data("glres", [over_switch(0, r)], [over_switch(0, r)], "switch"), *DONE]

    return joined(plan("allreduce", [gpu(r, (2, 2, 0), "o", [block(0, ops(r))]) for r in range(2)], in_place=True), "i")


def summed_in_switch_elsewhere() -> Plan:
    """The same out of place, over two channels, from one buffer to the other."""

    def ops(r: int) -> list[Any]:
        return [*READY, data("glres", [over_switch(0, r)], [over_switch(1, r)], "switch"), *DONE]

    return joined(plan("allreduce", [gpu(r, (2, 2, 0), "o", [block(0, ops(r))]) for r in range(2)]), "i", "o")


def copied_by_switch() -> Plan:
    """Allgather: each stores its chunk to both outputs, its own among them."""

    def ops(r: int) -> list[Any]:
        return [*READY, data("gstore", [local("i", 0)], [over_switch(0, r)], "switch"), *DONE]

    return joined(plan("allgather", [gpu(r, (1, 2, 0), "o", [block(0, ops(r))]) for r in range(2)]), "o")


def packets_by_switch() -> Plan:
    """Allgather in place with packets that a switch copies, onto themselves too: no signals at all."""

    def blocks(r: int) -> list[Any]:
        pack = data("cpkt", [local("o", r)], [local("s", r)])
        store = data("gstorepkt", [local("s", r)], [over_switch(0, r)], "switch")
        return [block(0, [pack, store]), {"id": 1, "ops": [data("upkt", [local("s", 1 - r)], [local("o", 1 - r)])],
                                          "channels": []}]  # fmt: skip

    gpus = [gpu(r, (1, 2, 2), "s", blocks(r)) for r in range(2)]
    return joined(plan("allgather", gpus, in_place=True, protocol="LL"), "s")


VALID = {
    "allgather": allgather,
    "allreduce": allreduce,
    "reading": reading,
    "ports": ports,
    "barrier": two_blocks,
    "semaphore": lambda: two_blocks("semaphore"),
    "packets": packets,
    "summed in switch": summed_in_switch,
    "summed in switch elsewhere": summed_in_switch_elsewhere,
    "copied by switch": copied_by_switch,
    "packets by switch": packets_by_switch,
}
