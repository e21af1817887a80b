"""The schedule of a Chakra trace: nodes of its files back to transfers among ranks."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.chakra.check import faults, matched, ordered
from synth.exchange.chakra.messages import COMP, ORDER, RECV, SEND
from synth.exchange.chakra.trace import Trace
from synth.exchange.dataflow import carried
from synth.exchange.transfers import Transfers
from synth.kernels import jit


def transfers(trace: Trace) -> Transfers:
    """The schedule of a trace that :func:`synth.exchange.chakra.write` wrote; start and end count arrivals, in one
    order that the trace allows. Raises :class:`InputError` for a trace that does not pass :func:`faults`, does not say
    what its pieces are, or sends a sum that several nodes have made."""
    pieces = trace.pieces
    if pieces is None:
        raise InputError(f"{trace.prefix}: the metadata does not say what the tags stand for")
    wrong = faults(trace)
    if wrong:
        raise InputError(wrong)
    position, _ = ordered(trace, np.full(len(trace.kind), -1, dtype=np.int64))
    match, _ = matched(trace, position)
    position, _ = ordered(trace, match)
    order = np.argsort(position)
    holder, adder = _dataflow(order, trace.kind, trace.piece, trace.dep_start, trace.dep)
    receives = np.flatnonzero(trace.kind == RECV)
    time = _times(trace.kind, *_before_sums(trace, *_data_only(trace), holder, adder), match, adder)
    sends = match[receives]
    state = np.where(adder[receives] >= 0, adder[receives], receives)
    start, end = time[sends].astype(float), time[state].astype(float)
    by = np.lexsort((receives, start))
    receives, sends, state = receives[by], sends[by], state[by]
    found = Transfers(
        name=pieces.name,
        collective=pieces.collective,
        ranks=trace.ranks,
        root=pieces.root,
        part_bytes=pieces.part_bytes,
        piece_part=pieces.piece_part,
        piece_offset=pieces.piece_offset,
        piece_bytes=pieces.piece_bytes,
        piece=trace.piece[receives],
        src=trace.peer[receives],
        dst=trace.rank[receives],
        adds=adder[receives] >= 0,
        start_s=start[by],
        end_s=end[by],
        channel_hint=np.full(len(receives), -1, dtype=np.int64),
        demand=pieces.demand,
    )
    sent, _ = carried(found)
    found_holder = np.append(state, -1)[sent]  # the last of them for -1
    if found.adds.any() and not np.array_equal(found_holder, holder[sends]):
        raise InputError(f"{trace.prefix}: no order of its arrivals tells which partial sums are sent")
    return found


def _data_only(trace: Trace) -> tuple[IntArray, IntArray]:
    """Where every node's dependences begin, and these, without those on nodes that only order."""
    kept = trace.kind[trace.dep] != ORDER
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return before[trace.dep_start], trace.dep[kept]


def _before_sums(
    trace: Trace, dep_start: IntArray, dep: IntArray, holder: IntArray, adder: IntArray
) -> tuple[IntArray, IntArray]:
    """The dependences, and of every compute node that adds also the sends of the sum as it was before: what nobody
    asks for might otherwise be added before they start."""
    nodes, sends = len(trace.kind), np.flatnonzero((trace.kind == SEND) & (holder != -2))
    receives = np.flatnonzero(adder >= 0)
    own = nodes + trace.rank * (int(trace.piece.max(initial=0)) + 1) + trace.piece  # the rank's own data
    row, at = np.repeat(np.arange(nodes), np.diff(dep_start)), adder[receives]
    other = np.full(nodes, -1, dtype=np.int64)  # of a node that adds: what made the sum before
    kept = (adder[dep] != row) & (trace.kind[row] == COMP)
    other[row[kept]] = dep[kept]
    key = np.where(holder[sends] >= 0, holder[sends], own[sends])
    wanted = np.where(other[at] >= 0, other[at], own[receives])
    order = np.argsort(key, kind="stable")
    low, high = (np.searchsorted(key[order], wanted, side) for side in ("left", "right"))
    count = high - low
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    more = sends[order[np.repeat(low, count) + nth]]
    rows = np.concatenate([row, np.repeat(at, count)])
    by_row = np.argsort(rows, kind="stable")
    start = np.searchsorted(rows[by_row], np.arange(nodes + 1)).astype(np.int64)
    return start, np.concatenate([dep, more])[by_row]


@jit
def _dataflow(
    order: IntArray, kind: IntArray, tag: IntArray, dep_start: IntArray, dep: IntArray
) -> tuple[IntArray, IntArray]:
    """For a send the node that holds what it carries (-1: the rank's own data, -2: several); for a receive the compute
    node that adds it (-1: none)."""
    nodes = len(kind)
    holder = np.full(nodes, -1, dtype=np.int64)
    adder = np.full(nodes, -1, dtype=np.int64)
    piece = tag.copy()
    for k in order:
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            if kind[k] == 4:
                if piece[k] < 0:
                    piece[k] = piece[d]
                if kind[d] == 6 and adder[d] < 0:
                    adder[d] = k
            elif kind[k] == 5 and kind[d] != 5 and piece[d] == tag[k]:
                holder[k] = d if holder[k] == -1 else -2
    return holder, adder


@jit
def _times(kind: IntArray, dep_start: IntArray, dep: IntArray, match: IntArray, adder: IntArray) -> IntArray:
    """Arrivals so far, when a send starts; with it, when a receive or compute node ends. Nodes come in an order that
    the trace allows, sends as soon as they can: nothing arrives between what a send carries and its start."""
    nodes = len(kind)
    out = np.zeros(nodes + 1, dtype=np.int64)
    waits = np.zeros(nodes, dtype=np.int64)
    for k in range(nodes):
        waits[k] = dep_start[k + 1] - dep_start[k] + (1 if kind[k] == 6 else 0)
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            out[d + 1] += 1
        if kind[k] == 6:
            out[match[k] + 1] += 1
    for k in range(nodes):
        out[k + 1] += out[k]
    child = np.empty(out[nodes], dtype=np.int64)
    fill = out[:-1].copy()
    for k in range(nodes):
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            child[fill[d]] = k
            fill[d] += 1
        if kind[k] == 6:
            child[fill[match[k]]] = k
            fill[match[k]] += 1
    sends = np.empty(nodes, dtype=np.int64)
    others = np.empty(nodes, dtype=np.int64)
    ready, head, tail = 0, 0, 0
    for k in range(nodes):
        if waits[k] == 0:
            if kind[k] == 5:
                sends[ready] = k
                ready += 1
            else:
                others[tail] = k
                tail += 1
    time = np.zeros(nodes, dtype=np.int64)
    now = 0
    while ready > 0 or head < tail:
        if ready > 0:
            ready -= 1
            k = sends[ready]
        else:
            k = others[head]
            head += 1
            if kind[k] == 4 or adder[k] < 0:
                now += 1
        time[k] = now
        for c in child[out[k] : out[k + 1]]:
            waits[c] -= 1
            if waits[c] == 0 and kind[c] == 5:
                sends[ready] = c
                ready += 1
            elif waits[c] == 0:
                others[tail] = c
                tail += 1
    return time
