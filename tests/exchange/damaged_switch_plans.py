"""What breaks operations over a switch in MSCCL++ plans: groups, what they reach, what comes before and after."""

from __future__ import annotations

from typing import Any

from exchange.damaged_plans import Edit, drop, find, gpu, ops
from exchange.plans_by_hand import NOP, Plan, data, local, over_switch


def group(plan: Plan, rank: int = 0, channel: int = 1) -> Any:
    """The first group of a GPU's switch channel."""
    return gpu(plan, rank)["channels"][channel]["rank_groups"][0]


# name -> (plan, edit, a part of what must be said, with the place)
SWITCH_DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "a group with a stranger": (
        "summed in switch",
        lambda p: group(p).update(ranks=[0, 2]),
        "gpu 0, channels[1], rank_groups[0]: ranks holds 2, not one of 0..1",
    ),
    "a group without itself": (
        "summed in switch",
        lambda p: group(p, 1).update(ranks=[0]),
        "gpu 1, channels[1], rank_groups[0]: ranks has fewer than two gpus",
    ),
    "a group that names one twice": (
        "summed in switch",
        lambda p: group(p).update(ranks=[0, 1, 1]),
        "gpu 0, channels[1], rank_groups[0]: ranks names a gpu twice",
    ),
    "a group that the other does not make": (
        "copied by switch",
        lambda p: (gpu(p, 1)["channels"].pop(), gpu(p, 1)["threadblocks"][0].update(channels=[], ops=[])),
        "gpu 0, switch channel 0: waits for ever for gpu 1, which must make the same group",
    ),
    "a group once more": (
        "copied by switch",
        lambda p: gpu(p)["channels"][1]["rank_groups"].append(group(p)),
        "gpu 0, switch channel 1: waits for ever for gpu 1",
    ),
    "two buffers at one address": (
        "copied by switch",
        lambda p: gpu(p, 1)["channels"][1].update(buffer_type="i"),
        "gpu 1, switch channel 0: binds its buffer i, gpu 0 its o",
    ),
    "more than there is room for": (
        "packets by switch",
        lambda p: gpu(p, 1).update(scratch_chunks=3),
        "gpu 1, switch channel 0: binds 3 chunks of s, gpu 0 makes room for 2",
    ),
    "a switch channel to nothing": (
        "copied by switch",
        lambda p: [gpu(p, r)["channels"][1].update(buffer_type="s") for r in (0, 1)],
        "gpu 0, switch channel 0: binds s, which has no chunks",
    ),
    "a switch channel that there is not": (
        "summed in switch",
        lambda p: find(p, "glres")["dst_buff"][0].update(switch_channel_id=1),
        "gpu 0, tb 0, op 3 (glres), dst_buff[0]: switch_channel_id = 1 is outside 0..0",
    ),
    "a thread block without switch channels": (
        "copied by switch",
        lambda p: gpu(p)["threadblocks"][0]["channels"].pop(),
        "op 3 (gstore), dst_buff[0]: switch_channel_id: the thread block has no channel over a switch",
    ),
    "a sum beyond the buffer": (
        "summed in switch",
        lambda p: find(p, "glres", 1)["src_buff"][0].update(index=2),
        "gpu 1, tb 0, op 3 (glres), src_buff[0]: i[2:3] of gpu 0, which has 2 chunks of i",
    ),
    "a sum of several places": (
        "summed in switch",
        lambda p: find(p, "glres")["src_buff"].append(over_switch(0, 1)),
        "gpu 0, tb 0, op 3 (glres): src_buff has 2 entries, not 1",
    ),
    "a sum over memory channels": (
        "summed in switch",
        lambda p: find(p, "glres").update(channel_type="memory"),
        "op 3 (glres): channel_type = 'memory' is none of switch",
    ),
    "a put over a switch": (
        "summed in switch",
        lambda p: find(p, "signal").update(channel_type="switch"),
        "op 5 (signal): channel_type = 'switch' is none of memory, port",
    ),
    "a sum that stays": (
        "summed in switch",
        lambda p: find(p, "glres").update(name="glre"),
        "gpu 0, tb 0, op 3: name = 'glre' is none of",
    ),
    "a store of another size": (
        "copied by switch",
        lambda p: find(p, "gstore")["dst_buff"][0].update(size=2),
        "gpu 0, tb 0, op 3 (gstore): sources and destinations are of different sizes",
    ),
    "two sums that are written over each other": (
        "summed in switch",
        lambda p: (
            find(p, "glres").update(src_buff=[over_switch(0, 0, 1)], dst_buff=[over_switch(0, 1, 1)]),
            find(p, "glres", 1).update(src_buff=[over_switch(0, 1, 1)], dst_buff=[over_switch(0, 0, 1)]),
        ),
        "op 3 (glres): reads i[0] of gpu 0, unordered with its writing by gpu 1, tb 0, op 3 (glres)",
    ),
    "summed before the others run": (
        "summed in switch",
        lambda p: (drop(p, "rlxsignal"), drop(p, "rlxwait", 1)),
        "gpu 1, tb 0, op 2 (glres): touches i[1] of gpu 0 without a signal that its kernel runs",
    ),
    "summed before the other has written": (
        "summed in switch",
        lambda p: ops(p).insert(0, data("copy", [local("i", 0)], [local("i", 1)])),
        "gpu 1, tb 0, op 3 (glres): reads i[1] of gpu 0, unordered with its writing by gpu 0, tb 0, op 0 (copy)",
    ),
    "overwritten before it is summed": (
        "summed in switch elsewhere",
        lambda p: ops(p).insert(4, data("copy", [local("i", 0)], [local("i", 1)])),
        "op 4 (copy): writes i[1] of gpu 0, unordered with its reading by gpu 1, tb 0, op 3 (glres)",
    ),
    "a sum of itself twice": (
        "summed in switch",
        lambda p: ops(p).extend([NOP, data("glres", [over_switch(0, 0)], [over_switch(0, 0)], "switch")]),
        "gpu 0, tb 0, op 8 (glres): adds gpu 1's contribution to a sum that holds it already",
    ),
    "a sum in an allgather": (
        "copied by switch",
        lambda p: find(p, "gstore").update(name="glres", src_buff=[over_switch(0, 0)]),
        "op 3 (glres): ",
    ),
    "stores that are not waited for": (
        "copied by switch",
        lambda p: (drop(p, "signal"), drop(p, "wait", 1)),
        "gpu 0, tb 0, op 3 (gstore): writes o[0] of gpu 1, whose kernel may have ended",
    ),
    "stores behind a relaxed signal": (
        "summed in switch",
        lambda p: find(p, "signal").update(name="rlxsignal"),
        "whose kernel may have ended: rlxsignal at op 5 does not order the store; use signal",
    ),
    "stores that are not over when it signals": (
        "copied by switch",
        lambda p: ops(p).pop(4),
        "gpu 0, tb 0, op 3 (gstore): writes o[0] of gpu 1, whose kernel may have ended",
    ),
    "two stores to one place": (
        "copied by switch",
        lambda p: find(p, "gstore", 1)["dst_buff"][0].update(index=0),
        "op 3 (gstore): writes o[0] of gpu 0, unordered with its writing by gpu 1, tb 0, op 3 (gstore)",
    ),
    "packets outside scratch over a switch": (
        "packets by switch",
        lambda p: [gpu(p, r)["channels"][1].update(buffer_type="o") for r in (0, 1)],
        "op 1 (gstorepkt), dst_buff[0]: packets lie in scratch",
    ),
}
