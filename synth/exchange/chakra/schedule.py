"""The schedule of a Chakra trace: nodes of its files back to transfers among ranks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth.errors import InputError
from synth.exchange.chakra.check import faults, matched, ordered
from synth.exchange.chakra.messages import RECV
from synth.exchange.chakra.trace import Trace
from synth.exchange.dataflow import carried
from synth.exchange.transfers import Transfers
from synth.kernels import jit

IntArray = npt.NDArray[np.int64]


def transfers(trace: Trace) -> Transfers:
    """The schedule of a trace that :func:`synth.exchange.chakra.write` wrote; start and end are timesteps, counted as
    early as the dependences allow. Raises :class:`InputError` for a trace that does not pass :func:`faults`, does not
    say what its pieces are, or orders its nodes in a way that timesteps cannot tell."""
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
    holder, adder = _dataflow(order, trace.kind, trace.tag, trace.dep_start, trace.dep)
    level = _levels(order, trace.kind, trace.tag, trace.dep_start, trace.dep, match, adder)
    receives = np.flatnonzero(trace.kind == RECV)
    sends = match[receives]
    state = np.where(adder[receives] >= 0, adder[receives], receives)
    start, end = level[sends].astype(float), level[state].astype(float)
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
        piece=trace.tag[receives],
        src=trace.peer[receives],
        dst=trace.rank[receives],
        adds=adder[receives] >= 0,
        start_s=start[by],
        end_s=end[by],
        channel_hint=np.full(len(receives), -1, dtype=np.int64),
    )
    sent, _ = carried(found)
    if not np.array_equal(np.where(sent >= 0, state[sent], -1) if len(sent) else sent, holder[sends]):
        raise InputError(f"{trace.prefix}: timesteps cannot tell which partial sums are sent")
    return found


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
def _levels(
    order: IntArray, kind: IntArray, tag: IntArray, dep_start: IntArray, dep: IntArray, match: IntArray, adder: IntArray
) -> IntArray:
    """Timesteps: the start of a send, the end of a receive or compute node."""
    level = np.zeros(len(kind), dtype=np.int64)
    for k in order:
        least = 0
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            added = kind[k] == 4 and kind[d] == 6 and adder[d] == k
            behind = kind[k] == 5 and kind[d] == 5
            least = max(least, level[d] + (1 if behind or (kind[k] == 4 and not added) or kind[k] == 6 else 0))
        if kind[k] == 6:
            least = max(least, level[match[k]] + 1)
        level[k] = least
    return level
