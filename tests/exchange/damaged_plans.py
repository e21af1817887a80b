"""What breaks MSCCL++ plans, and what must be said of it, with the place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from exchange.plans_by_hand import NOP, Plan, data, local, remote, sync

Edit = Callable[[Plan], object]


def ops(plan: Plan, rank: int = 0, block: int = 0) -> list[Any]:
    found: list[Any] = plan["gpus"][rank]["threadblocks"][block]["ops"]
    return found


def find(plan: Plan, name: str, rank: int = 0, block: int = 0) -> Any:
    return next(op for op in ops(plan, rank, block) if op["name"] == name)


def drop(plan: Plan, name: str, rank: int = 0, block: int = 0, last: bool = False) -> None:
    mine = ops(plan, rank, block)
    places = [k for k, op in enumerate(mine) if op["name"] == name]
    del mine[places[-1 if last else 0]]


def gpu(plan: Plan, rank: int = 0) -> Any:
    return plan["gpus"][rank]


def swap(ops: list[Any], a: int, b: int) -> None:
    ops[a], ops[b] = ops[b], ops[a]


# name -> (plan, edit, a part of what must be said, with the place)
DAMAGE: dict[str, tuple[str, Edit, str]] = {
    # ------------------------------------------------------------------------------------- the file and its fields
    "no name": ("allgather", lambda p: p.pop("name"), "name: name is missing"),
    "no collective": ("allgather", lambda p: p.pop("collective"), "collective is missing"),
    "another protocol": ("allgather", lambda p: p.update(protocol="LL128"), "'LL128' is none of Simple, LL"),
    "inplace as a text": ("allgather", lambda p: p.update(inplace="no"), "inplace is not true or false"),
    "no gpus": ("allgather", lambda p: p.update(gpus=[]), "gpus: there are 0"),
    "alignment of 8": ("allgather", lambda p: p.update(buffer_alignment=8), "buffer_alignment: 8: the kernel adds"),
    "2048 threads": ("allgather", lambda p: p.update(num_threads_per_block=2048), "is outside 1..1024"),
    "sizes the wrong way round": (
        "allgather",
        lambda p: p.update(min_message_size=8, max_message_size=4),
        "max_message_size: is less than",
    ),
    "gpus in another order": ("allgather", lambda p: p["gpus"].reverse(), "gpu 0: id = 1, but it is entry 0"),
    "no scratch_chunks": ("allgather", lambda p: gpu(p).pop("scratch_chunks"), "gpu 0: scratch_chunks is missing"),
    "no output": (
        "allgather",
        lambda p: gpu(p).update(output_chunks=0),
        "gpu 0: output_chunks = 0 is outside 1..",
    ),
    "sizes of another collective": (
        "allgather",
        lambda p: gpu(p, 1).update(output_chunks=3),
        "gpu 1: 1 input and 3 output chunks are not those",
    ),
    "connected to itself": (
        "allgather",
        lambda p: gpu(p)["channels"][0].update(connected_to=[0]),
        "gpu 0, channels[0]: is connected to gpu 0",
    ),
    "connected to nobody": (
        "allgather",
        lambda p: gpu(p)["channels"][0].update(connected_to=[7]),
        "gpu 0, channels[0]: connected_to holds 7",
    ),
    "a channel of no type": (
        "allgather",
        lambda p: gpu(p)["channels"][0].update(channel_type="x"),
        "gpu 0, channels[0]: channel_type = 'x'",
    ),
    "a remote buffer of its own": (
        "allgather",
        lambda p: gpu(p)["remote_buffers"][0].update(rank=0),
        "gpu 0, remote_buffers[0]: is a buffer of gpu 0",
    ),
    "a remote buffer over nothing": (
        "allgather",
        lambda p: gpu(p)["remote_buffers"][0].update(access_channel_types=[]),
        "access_channel_types holds",
    ),
    "a thread block's id": (
        "allgather",
        lambda p: gpu(p, 1)["threadblocks"][0].update(id=1),
        "gpu 1, tb 0: its id is not its place",
    ),
    "a channel that there is not": (
        "allgather",
        lambda p: gpu(p)["threadblocks"][0]["channels"][0].update(channel_ids=[1]),
        "gpu 0, tb 0, channels",
    ),
    "a reference over another type": (
        "ports",
        lambda p: gpu(p)["threadblocks"][0]["remote_buffer_refs"][0].update(access_channel_type="memory"),
        "gpu 0, tb 0, remote_buffer_refs: remote buffer 0 is not accessed over a memory channel",
    ),
    # --------------------------------------------------------------------------------------------- limits
    "17 channels": (
        "allgather",
        lambda p: gpu(p)["threadblocks"][0]["channels"][0].update(channel_ids=[0] * 17),
        "gpu 0, tb 0: 17 memory channels, more than MAX_CHANNEL = 16",
    ),
    "17 remote buffers": (
        "allgather",
        lambda p: gpu(p)["threadblocks"][0]["remote_buffer_refs"][0].update(remote_buffer_ids=[0] * 17),
        "gpu 0, tb 0: 17 memory remote buffers, more than MAX_CHANNEL = 16",
    ),
    "9 channels of an operation": (
        "allgather",
        lambda p: find(p, "signal").update(channel_ids=[0] * 9),
        "9 channels, more than MAX_CHANNEL_PER_OP",
    ),
    "65 operations": (
        "allgather",
        lambda p: ops(p, 1).extend([NOP] * 57),
        "gpu 1, tb 0: 65 operations, more than MAX_OPERATION = 64",
    ),
    "11 sources": (
        "allreduce",
        lambda p: find(p, "re")["src_buff"].extend([local("s", 0, 2)] * 9),
        "gpu 0, tb 0, op 8 (re): src_buff has 11 entries, more than 10",
    ),
    "barrier 16": (
        "barrier",
        lambda p: find(p, "barrier").update(barrier_id=16),
        "barrier_id = 16 is outside 0..15",
    ),
    "17 semaphores": (
        "semaphore",
        lambda p: gpu(p).update(semaphores=[{"init_value": 0}] * 17),
        "MAX_DEVICE_SEMAPHORES = 16",
    ),
    # ------------------------------------------------------------------------------------------- operations
    "an operation that there is not": (
        "allgather",
        lambda p: find(p, "put").update(name="push"),
        "gpu 0, tb 0, op 4: name = 'push' is none of",
    ),
    "an index beyond": (
        "allgather",
        lambda p: find(p, "copy")["dst_buff"][0].update(index=2),
        "op 3 (copy), dst_buff[0]: o[2:3] of gpu 0",
    ),
    "a size beyond, at the other": (
        "allgather",
        lambda p: [b[0].update(size=3) for b in (find(p, "put")["src_buff"], find(p, "put")["dst_buff"])],
        "op 4 (put), dst_buff[0]: o[0:3] of gpu 1, which has 2 chunks of o",
    ),
    "a negative index": (
        "allgather",
        lambda p: find(p, "copy")["src_buff"][0].update(index=-1),
        "index = -1 is outside 0..",
    ),
    "nothing to copy": (
        "allgather",
        lambda p: find(p, "copy").update(src_buff=[]),
        "src_buff has 0 entries, not 1",
    ),
    "two sizes": (
        "allreduce",
        lambda p: find(p, "re")["src_buff"][1].update(size=1),
        "gpu 0, tb 0, op 8 (re): sources and destinations are of different sizes",
    ),
    "a remote buffer that is not referred to": (
        "allgather",
        lambda p: find(p, "put")["dst_buff"][0].update(buffer_id=1),
        "dst_buff[0]: buffer_id = 1 is outside 0..0",
    ),
    "a wait for no channel": (
        "allgather",
        lambda p: find(p, "wait").update(channel_ids=[]),
        "channel_ids is empty",
    ),
    "a channel twice": (
        "allgather",
        lambda p: find(p, "wait").update(channel_ids=[0, 0]),
        "(wait): one channel twice",
    ),
    "get with two offsets": (
        "reading",
        lambda p: ops(p).insert(3, data("get", [remote(0, 0)], [local("i", 1)], "memory")),
        "gpu 0, tb 0, op 3 (get): the executor swaps the offsets",
    ),
    "put with signal over memory": (
        "allgather",
        lambda p: find(p, "put").update(name="pws"),
        "op 4 (pws): over memory channels the executor puts, but",
    ),
    "puts from two buffers": (
        "allgather",
        lambda p: find(p, "put").update(src_buff=[local("i", 0), local("o", 0)], dst_buff=[remote(0, 0), remote(0, 1)]),
        "op 4 (put): sources in different buffers",
    ),
    "a port put without a channel": (
        "ports",
        lambda p: find(p, "put").pop("channel_ids"),
        "op 3 (put): channel_ids is missing",
    ),
    "reading over a port": (
        "ports",
        lambda p: ops(p).insert(3, data("rre", [local("i", 0), remote(0, 0)], [local("o", 0)], "port", [0])),
        "op 3 (rre): the executor does this over memory channels only",
    ),
    "packets outside scratch": (
        "packets",
        lambda p: find(p, "upkt", block=1)["src_buff"][0].update(type="o"),
        "packets lie in scratch",
    ),
    # ------------------------------------------------------------------------------------------ order and deadlock
    "no signal": (
        "allgather",
        lambda p: drop(p, "signal"),
        "gpu 1, tb 0, op 7 (wait): waits for ever for a signal from gpu 0",
    ),
    "no wait": (
        "allgather",
        lambda p: drop(p, "wait"),
        "gpu 1: 1 signals over memory channel 0 that gpu 0 does not wait",
    ),
    "both wait first": (
        "allgather",
        lambda p: [swap(ops(p, r), 0, 1) for r in (0, 1)],
        "gpu 0, tb 0, op 0 (rlxwait): waits for ever for a signal from gpu 1 over memory channel 0",
    ),
    "no channel back": (
        "allgather",
        lambda p: gpu(p, 1)["channels"][0].update(connected_to=[]),
        "gpu 1, tb 0, channels (memory): channel_ids",
    ),
    "touched before it runs": (
        "allgather",
        lambda p: (drop(p, "rlxsignal"), drop(p, "rlxwait", 1)),
        "gpu 1, tb 0, op 3 (put): touches o[1] of gpu 0 without",
    ),
    "signalled before all threads have put": (
        "allreduce",
        lambda p: ops(p).pop(4),
        "gpu 1, tb 0, op 8 (re): reads s[0] of gpu 1, unordered with its writing by gpu 0",
    ),
    "added before all threads know": (
        "allreduce",
        lambda p: ops(p).pop(7),
        "gpu 0, tb 0, op 7 (re): reads s[0] of gpu 0, unordered with its writing by gpu 1",
    ),
    "a relaxed signal for data": (
        "allreduce",
        lambda p: find(p, "signal").update(name="rlxsignal"),
        "gpu 0, tb 0, op 3 (put), where rlxsignal at op 5 does not order the store; use signal",
    ),
    "a relaxed wait for data": (
        "allreduce",
        lambda p: find(p, "wait").update(name="rlxwait"),
        "gpu 1, tb 0, op 3 (put), where rlxwait at gpu 0, tb 0, op 6 (rlxwait) does not order the store; use wait",
    ),
    "the reader does not say that it is done": (
        "reading",
        lambda p: (drop(p, "signal"), drop(p, "wait", 1)),
        "gpu 0, tb 0, op 3 (rre): reads i[0] of gpu 1, whose kernel may have ended",
    ),
    "the writer is not waited for": (
        "allgather",
        lambda p: (drop(p, "wait"), drop(p, "signal", 1)),
        "op 4 (put): writes o[1] of gpu 0, whose kernel may have",
    ),
    "a put over a port is not waited for": (
        "ports",
        lambda p: (find(p, "pwsf").update(name="put"), drop(p, "wait", 1)),
        "gpu 0, tb 0, op 6 (put): writes o[1] of gpu 1, whose kernel may have ended",
    ),
    "a put whose source is used again": (
        "ports",
        lambda p: ops(p).insert(5, data("copy", [local("i", 1)], [local("i", 0)])),
        "gpu 0, tb 0, op 5 (copy): writes i[0] of gpu 0, unordered with its reading by gpu 0, tb 0, op 3 (put)",
    ),
    "one thread block does not come to the barrier": (
        "barrier",
        lambda p: drop(p, "barrier", block=0),
        "gpu 0, tb 1, op 3 (barrier): waits for ever at barrier 3: 1 of 2",
    ),
    "a barrier that counts others": (
        "barrier",
        lambda p: find(p, "barrier").update(num_threadblocks=3),
        "barrier 3 counts 3 thread blocks, 2 have it",
    ),
    "no barrier at all": (
        "barrier",
        lambda p: [drop(p, "barrier", block=b) for b in (0, 1)],
        "gpu 0, tb 1, op 4 (put): reads s[0] of gpu 0, unordered with its writing by gpu 0, tb 0, op 0 (copy)",
    ),
    "a semaphore that nobody releases": (
        "semaphore",
        lambda p: drop(p, "sem_release"),
        "gpu 0, tb 1, op 3 (sem_acquire): waits for ever for a semaphore",
    ),
    "a semaphore that is open": (
        "semaphore",
        lambda p: gpu(p)["semaphores"][0].update(init_value=1),
        "gpu 0, tb 1, op 5 (put): reads s[0] of gpu 0, unord",
    ),
    "a semaphore that there is not": (
        "semaphore",
        lambda p: find(p, "sem_release").update(semaphore_ids=[1]),
        "gpu 0, tb 0, op 3 (sem_release): semaphore_ids",
    ),
    "two thread blocks signal over one channel": (
        "allgather",
        lambda p: gpu(p)["threadblocks"].append(
            {**copy.deepcopy(gpu(p)["threadblocks"][0]), "id": 1, "ops": [sync("signal", 0)]}
        ),
        "gpu 0: thread blocks 0, 1 all signal over memory channel 0",
    ),
    "packets that nobody writes": (
        "packets",
        lambda p: ops(p, 1).clear(),
        "gpu 0, tb 1, op 0 (upkt): waits for ever for packets",
    ),
    "packets written twice": (
        "packets",
        lambda p: ops(p).extend([NOP, ops(p)[0]]),
        "op 2 (ppkt): writes packets to s[0] of gpu 1, whose flag",
    ),
    # ------------------------------------------------------------------------------------------------ contents
    "the own part is not copied": (
        "allgather",
        lambda p: drop(p, "copy"),
        "gpu 0, o[0]: ends with nothing, not i[0] of gpu 0",
    ),
    "a wrong place": (
        "allgather",
        lambda p: find(p, "put")["dst_buff"][0].update(index=1),
        "gpu 0, tb 0, op 4 (put): writes o[1] of gpu 1, un",
    ),
    "a wrong source": (
        "ports",
        lambda p: find(p, "pwsf")["src_buff"][0].update(index=0),
        "gpu 1, o[1]: ends with i[0] of gpu 0, not i[1] of gpu 0",
    ),
    "nothing was written there": (
        "barrier",
        lambda p: drop(p, "copy"),
        "gpu 0, tb 1, op 5 (put): reads s[0] of gpu 0, where nothing has been written",
    ),
    "added twice": (
        "allreduce",
        lambda p: find(p, "re")["src_buff"].append(local("s", 0, 2)),
        "gpu 0, tb 0, op 8 (re): adds gpu 1's contribution to a sum that holds it already",
    ),
    "other chunks added": (
        "reading",
        lambda p: [b.update(index=1) for b in find(p, "rre")["src_buff"][1:]],
        "gpu 0, tb 0, op 3 (rre): adds chunks that do not belong together",
    ),
    "not added": (
        "allreduce",
        lambda p: drop(p, "re", 1),
        "gpu 1, o[0]: ends with nothing, not the sum of i[0] of 2 gpus",
    ),
    "destinations that overlap": (
        "allreduce",
        lambda p: find(p, "put").update(src_buff=[local("i", 0, 2)] * 2, dst_buff=[remote(0, 0, 2)] * 2),
        "gpu 0, tb 0, op 3 (put): writes s of gpu 1 twice where its destinations overlap",
    ),
    "two chunks added": (
        "allreduce",
        lambda p: ops(p).extend([NOP, data("re", [local("i", 0), local("i", 1)], [local("i", 1)])]),
        "gpu 0, tb 0, op 10 (re): adds chunks that do not belong together",
    ),
    "two copies to one place": (
        "allreduce",
        lambda p: ops(p).extend([NOP, *(data("copy", [local("i", k)], [local("o", 0)]) for k in (0, 1))]),
        "op 11 (copy): writes o[0] of gpu 0, unordered with its writing by gpu 0, tb 0, op 10 (copy): a nop must",
    ),
}
