"""Which schedules count as solutions of a problem: the tree rule and the butterfly rule. Imports no method."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.instance import BineInstance

FORWARDS = ("broadcast", "scatter")


def problem_faults(
    instance: BineInstance, job: int, step: IntArray, src: IntArray, dst: IntArray, count: IntArray
) -> list[str]:
    """Faults of one job's rows against the instance's problem (``any`` has no rule)."""
    ranks = len(instance.allocations[job])
    if instance.problem == "tree":
        return _tree_faults(instance, ranks, step, src, dst)
    if instance.problem == "butterfly":
        return _butterfly_faults(instance, ranks, step, src, dst, count)
    return []


def _messages(ranks: int, step: IntArray, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    keys = np.unique((step * ranks + src) * ranks + dst)
    return keys // (ranks * ranks), keys // ranks % ranks, keys % ranks


def _tree_faults(instance: BineInstance, ranks: int, step: IntArray, src: IntArray, dst: IntArray) -> list[str]:
    """Every rank but the root is reached by one message (backwards: sends one), the other end handles one a round."""
    step, src, dst = _messages(ranks, step, src, dst)
    many, once = (src, dst) if instance.collective in FORWARDS else (dst, src)
    verb = ("is sent", "sends") if instance.collective in FORWARDS else ("sends", "receives")
    limit = instance.round_limit(ranks)
    faults = []
    if len(step) and step.max() >= limit:
        faults.append(f"takes {step.max() + 1} rounds, {limit} are allowed")
    times = np.bincount(once, minlength=ranks)
    expected = np.ones(ranks, dtype=np.int64)
    expected[instance.root] = 0
    for r in np.flatnonzero(times != expected)[:5]:
        faults.append(f"rank {r} {verb[0]} {times[r]} messages, in a tree {expected[r]}")
    keys, uses = np.unique(step * ranks + many, return_counts=True)
    for key, n in list(zip(keys[uses > 1], uses[uses > 1], strict=True))[:5]:
        faults.append(f"round {key // ranks}: rank {key % ranks} {verb[1]} {n} messages, one is allowed")
    return faults


def _butterfly_faults(
    instance: BineInstance, ranks: int, step: IntArray, src: IntArray, dst: IntArray, count: IntArray
) -> list[str]:
    """Every round pairs all ranks; pairings commute, so that with a correct replay they are a hypercube's dimensions;
    every message of a round has the volume of the pattern. (Bine's pairings do not commute for p >= 8.)"""
    bits = ranks.bit_length() - 1
    volumes = volumes_by_round(instance, ranks)
    if len(step) and step.max() >= len(volumes):
        return [f"takes {step.max() + 1} rounds, the butterfly {len(volumes)}"]
    pairing = np.full((len(volumes), ranks), -1)
    volume = np.zeros((len(volumes), ranks), dtype=np.int64)
    np.add.at(volume, (step, src), count)
    pairing[step, src] = dst
    if np.any(pairing[step, src] != dst):
        return ["a rank sends to two partners in one round"]
    for i, expected in enumerate(volumes):
        if np.any(pairing[i] < 0) or np.any(pairing[i][pairing[i]] != np.arange(ranks)):
            return [f"round {i} does not pair all ranks"]
        if np.any(volume[i] != expected):
            return [f"round {i}: a message has {volume[i][np.argmax(volume[i] != expected)]} blocks, not {expected}"]
    if len(volumes) > bits and not np.array_equal(pairing[bits:], pairing[:bits][::-1]):
        return ["the second half does not go back through the pairings of the first"]
    for i in range(bits):
        for k in range(i):
            if not np.array_equal(pairing[i][pairing[k]], pairing[k][pairing[i]]):
                return [f"rounds {k} and {i} are not dimensions of one hypercube"]
    return []


def volumes_by_round(instance: BineInstance, ranks: int) -> list[int]:
    """Blocks of every message in every round of a butterfly on ``ranks`` ranks."""
    bits = ranks.bit_length() - 1
    down = [ranks >> (i + 1) for i in range(bits)]
    match instance.collective:
        case "reduce_scatter":
            return down
        case "allgather":
            return down[::-1]
        case "alltoall":
            return [ranks // 2] * bits
        case _:
            return [1] * bits if instance.vector == "small" else down + down[::-1]
