"""The check of a schedule: replay it step by step from nothing but the network and the collective.

Gather-like collectives track who holds which chunk; reductions track, per chunk and node, the set of nodes whose
contribution its partial sum contains, so that a contribution added twice or lost cannot pass. This module shares no
code with the methods that make schedules.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synth.arrays import BoolArray, Int8Array, Int32Array, IntArray
from synth.kernels import jit
from synth.network import Network
from synth.schedule.collective import Collective
from synth.schedule.schedule import Schedule

NEVER = np.iinfo(np.int32).max

# What a transfer can do wrong; the kernels report (index, code) pairs.
_NOT_HELD, _TOO_EARLY, _ADDED_TWICE, _INCOMPLETE_COPY = 1, 2, 3, 4


@dataclass
class Replay:
    """Outcome of a replay: ``faults`` are sentences (the first ``limit`` of ``fault_count``)."""

    steps: int
    transfers: int
    redundant: int = 0
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0

    @property
    def ok(self) -> bool:
        """Whether the schedule does what the collective asks and breaks no rule."""
        return self.fault_count == 0


class _Faults:
    def __init__(self, result: Replay, limit: int) -> None:
        self.result, self.limit = result, limit

    def add(self, text: str) -> None:
        self.result.fault_count += 1
        if len(self.result.faults) < self.limit:
            self.result.faults.append(text)


def replay(network: Network, collective: Collective, schedule: Schedule, limit: int = 20) -> Replay:
    """Replay ``schedule`` and list what is wrong with it.

    Rules: link, chunk and step exist (steps count from 1); a link carries one chunk per timestep; a chunk leaves a
    node only in a later timestep than it arrived; a reduction never adds a contribution a node already has, and
    copies only complete sums; at the end everything the collective promises is there.
    """
    result = Replay(steps=schedule.steps, transfers=len(schedule))
    faults = _Faults(result, limit)
    if collective.nodes != network.nodes:
        faults.add(f"the collective has {collective.nodes} nodes, the network {network.nodes}")
        return result
    if not _names_real_things(network, collective, schedule, faults):
        return result
    _link_capacity(network, schedule, faults)
    if collective.reduces:
        _contributions(network, collective, schedule, result, faults)
    else:
        _possession(network, collective, schedule, result, faults)
    return result


def _names_real_things(network: Network, collective: Collective, schedule: Schedule, faults: _Faults) -> bool:
    for name, column, least, most in (
        ("step", schedule.step, 1, NEVER - 1),
        ("link", schedule.link, 0, network.links - 1),
        ("chunk", schedule.chunk, 0, collective.chunks - 1),
    ):
        for i in np.flatnonzero((column < least) | (column > most)):
            faults.add(f"transfer {i}: {name} {column[i]} does not exist ({least}..{most})")
    if not collective.reduces:
        for i in np.flatnonzero(schedule.adds):
            faults.add(f"transfer {i}: adds to a partial sum, but {collective.name} has no sums")
    return faults.result.fault_count == 0


def _link_capacity(network: Network, schedule: Schedule, faults: _Faults) -> None:
    slot = schedule.step.astype(np.int64) * network.links + schedule.link
    slot.sort()
    repeated = np.unique(slot[1:][slot[1:] == slot[:-1]])
    for value in repeated:
        step, e = divmod(int(value), network.links)
        count = int(np.searchsorted(slot, value, "right") - np.searchsorted(slot, value, "left"))
        faults.add(f"step {step}: link {e} ({_ends(network, e)}) carries {count} chunks, at most 1 fits")


def _ends(network: Network, e: int) -> str:
    return f"{network.src[e]}->{network.dst[e]}"


def _describe(network: Network, schedule: Schedule, i: int, code: int) -> str:
    e, k, step = int(schedule.link[i]), int(schedule.chunk[i]), int(schedule.step[i])
    what = {
        _NOT_HELD: f"node {network.src[e]} sends chunk {k}, which it never gets",
        _TOO_EARLY: f"node {network.src[e]} sends chunk {k} before it has arrived",
        _ADDED_TWICE: f"node {network.dst[e]} adds a contribution to chunk {k} that it already has",
        _INCOMPLETE_COPY: f"node {network.src[e]} passes on chunk {k} as complete, but its sum is not",
    }[code]
    return f"step {step}, link {e} ({_ends(network, e)}): {what}"


def _possession(network: Network, collective: Collective, schedule: Schedule, result: Replay, faults: _Faults) -> None:
    order = np.argsort(schedule.step, kind="stable")
    held = np.full((collective.nodes, collective.chunks), NEVER, dtype=np.int32)
    held[collective.owner, np.arange(collective.chunks)] = 0
    bad, result.redundant = _replay_possession(
        schedule.step[order], schedule.link[order], schedule.chunk[order], network.src, network.dst, held
    )
    for i in np.flatnonzero(bad):
        # a chunk that arrives later in the schedule was sent too early; one that never arrives was never held
        sender, k = network.src[schedule.link[order[i]]], schedule.chunk[order[i]]
        code = _NOT_HELD if held[sender, k] == NEVER else _TOO_EARLY
        faults.add(_describe(network, schedule, int(order[i]), code))
    if collective.to_all:
        missing = np.argwhere(held == NEVER)
    else:
        assert collective.target is not None
        lost = np.flatnonzero(held[collective.target, np.arange(collective.chunks)] == NEVER)
        missing = np.stack([collective.target[lost], lost], axis=1)
    for node, k in missing[: faults.limit]:
        faults.add(f"end: node {node} does not hold chunk {k}")
    result.fault_count += max(0, len(missing) - faults.limit)


@jit
def _replay_possession(
    step: Int32Array, link: Int32Array, chunk: Int32Array, src: Int32Array, dst: Int32Array, held: Int32Array
) -> tuple[BoolArray, int]:
    """Fill ``held[node, chunk]`` with arrival steps; return which transfers were illegal and how many useless."""
    bad = np.zeros(len(step), np.bool_)
    redundant = 0
    for i in range(len(step)):
        k, u, v = chunk[i], src[link[i]], dst[link[i]]
        if held[u, k] >= step[i]:
            bad[i] = True
            continue
        if held[v, k] <= step[i]:
            redundant += 1
        else:
            held[v, k] = step[i]
    return bad, redundant


def _contributions(
    network: Network, collective: Collective, schedule: Schedule, result: Replay, faults: _Faults
) -> None:
    # within a step copies come first, so that adding to a sum that is being replaced is a fault in any stored order
    order = np.lexsort((schedule.adds, schedule.step, schedule.chunk))
    chunk = schedule.chunk[order]
    bounds = np.searchsorted(chunk, np.arange(collective.chunks + 1))
    sent = (schedule.step[order], schedule.link[order], schedule.adds[order], bounds)
    code, complete, result.redundant = _replay_contributions(
        network.nodes, collective.chunks, *sent, network.src, network.dst
    )
    for i in np.flatnonzero(code):
        faults.add(_describe(network, schedule, int(order[i]), int(code[i])))
    needed: BoolArray = np.full((collective.chunks, network.nodes), collective.to_all)
    if not collective.to_all:
        assert collective.target is not None
        needed[np.arange(collective.chunks), collective.target] = True
    missing = np.argwhere(needed & ~complete)
    for k, node in missing[: faults.limit]:
        faults.add(f"end: node {node} does not hold the complete sum of chunk {k}")
    result.fault_count += max(0, len(missing) - faults.limit)


@jit
def _replay_contributions(
    nodes: int,
    chunks: int,
    step: Int32Array,
    link: Int32Array,
    adds: BoolArray,
    bounds: IntArray,
    src: Int32Array,
    dst: Int32Array,
) -> tuple[Int8Array, BoolArray, int]:
    """Replay chunk by chunk one bit per (node, contribution); transfers come sorted by (chunk, step, copies first)."""
    words = (nodes + 63) // 64
    code = np.zeros(len(step), np.int8)
    complete = np.zeros((chunks, nodes), np.bool_)
    full = np.zeros(words, np.uint64)
    for v in range(nodes):
        full[v // 64] |= np.uint64(1) << np.uint64(v % 64)
    has = np.zeros((nodes, words), np.uint64)
    redundant = 0
    for k in range(chunks):
        has[:, :] = 0
        for v in range(nodes):
            has[v, v // 64] = np.uint64(1) << np.uint64(v % 64)
        begin = bounds[k]
        while begin < bounds[k + 1]:
            end = begin
            while end < bounds[k + 1] and step[end] == step[begin]:
                end += 1
            sent = np.empty((end - begin, words), np.uint64)  # senders' sums at the end of the step before
            for i in range(begin, end):
                sent[i - begin] = has[src[link[i]]]
            for i in range(begin, end):
                v, value = dst[link[i]], sent[i - begin]
                if adds[i]:
                    overlap = False
                    for w in range(words):
                        overlap = overlap or (has[v, w] & value[w]) != 0
                    if overlap:
                        code[i] = _ADDED_TWICE
                    else:
                        for w in range(words):
                            has[v, w] |= value[w]
                elif not np.array_equal(value, full):
                    code[i] = _INCOMPLETE_COPY
                else:
                    if np.array_equal(has[v], full):
                        redundant += 1
                    has[v, :] = full
            begin = end
        for v in range(nodes):
            complete[k, v] = np.array_equal(has[v], full)
    return code, complete, redundant
