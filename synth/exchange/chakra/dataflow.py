"""What every node of a Chakra trace holds, told by its dependences alone: the kernels of the check.

They share no code with the writer. The rules stand in :mod:`synth.exchange.chakra.check`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray, WordArray
from synth.exchange.chakra.messages import COMP, ORDER, RECV, SEND
from synth.kernels import jit

NO_DATA, DOUBLE, SEVERAL, MIXED, PARTIAL = 1, 2, 3, 4, 5
MESSAGES = {
    NO_DATA: "sends piece {piece}, which the rank does not hold",
    DOUBLE: "adds to piece {piece} a contribution that is in it already",
    SEVERAL: "depends on several nodes that hold piece {piece}: which one is meant is open",
    MIXED: "adds nodes of different pieces, or none that was received",
    PARTIAL: "stores an incomplete sum of piece {piece} over the rank's own contribution",
}


class Nodes(NamedTuple):
    """The nodes of a trace as :class:`synth.exchange.chakra.trace.Trace` has them, to be replayed in ``order``; ``tag``
    is the piece of a send or a receive, else -1, ``match`` the send of a receive. Shape (nodes,); ``dep``:
    (dependences,), those of node k are ``dep[dep_start[k]:dep_start[k + 1]]``."""

    order: IntArray
    kind: IntArray
    rank: IntArray
    tag: IntArray
    dep_start: IntArray
    dep: IntArray
    match: IntArray


@jit
def replay(nodes: Nodes, owner: IntArray, words: int, ranks: int) -> tuple[IntArray, WordArray]:
    """What is wrong with every node, 0 for nothing, and the contributions of the ranks that it holds, a bit each (of
    what is no sum one bit), shape (nodes, words). ``owner`` of every piece: the rank that has it at first, -1 where all
    contribute."""
    sums = len(owner) == 0 or owner[0] < 0
    sets, wrong = np.zeros((len(nodes.kind), words), dtype=np.uint64), np.zeros(len(nodes.kind), dtype=np.int64)
    added = _flow(nodes, owner, sums, sets, wrong)
    _name_empty_sends(nodes, sets, wrong)
    if sums:
        _name_partial_sums(nodes, added, ranks, sets, wrong)
    return wrong, sets


@jit
def _flow(nodes: Nodes, owner: IntArray, sums: bool, sets: WordArray, wrong: IntArray) -> BoolArray:
    """Fill ``sets`` node by node, and ``wrong`` with what is wrong with the nodes that one depends on; which nodes a
    compute node depends on. Arrays out of named state are named once: each time counts references."""
    order, kind, rank, tag, dep_start, dep, match = nodes
    piece, added, words = tag.copy(), np.zeros(len(kind), dtype=np.bool_), sets.shape[1]
    for k in order:
        if kind[k] == RECV:
            for w in range(words):
                sets[k, w] = sets[match[k], w]
            continue
        if kind[k] == ORDER:
            continue
        adds, holders, received = kind[k] == COMP, 0, 0
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            if kind[d] == SEND or kind[d] == ORDER:
                continue
            if adds:
                added[d] = True
                piece[k] = piece[d] if piece[k] < 0 else piece[k]
            if piece[d] != piece[k]:
                wrong[k] = MIXED if adds else wrong[k]
                continue
            holders += 1
            received += kind[d] == RECV
            for w in range(words):
                if adds and sets[k, w] & sets[d, w]:
                    wrong[k] = DOUBLE
                sets[k, w] |= sets[d, w]
        if adds and holders > 0 and (received == 0 or not sums):
            wrong[k] = MIXED
        if holders > (2 if adds else 1):
            wrong[k] = SEVERAL
        if holders == (1 if adds else 0):
            if sums:
                w, bit = rank[k] // 64, np.uint64(1) << np.uint64(rank[k] % 64)
                if sets[k, w] & bit:
                    wrong[k] = DOUBLE
                sets[k, w] |= bit
            elif not adds and owner[tag[k]] == rank[k]:
                sets[k, 0] = np.uint64(1)
    return added


@jit
def _name_empty_sends(nodes: Nodes, sets: WordArray, wrong: IntArray) -> None:
    """Note the sends of what the rank does not hold."""
    kind = nodes.kind
    for k in range(len(kind)):
        if kind[k] == SEND and wrong[k] == 0:
            empty = True
            for w in range(sets.shape[1]):
                empty = empty and sets[k, w] == 0
            if empty:
                wrong[k] = NO_DATA


@jit
def _name_partial_sums(nodes: Nodes, added: BoolArray, ranks: int, sets: WordArray, wrong: IntArray) -> None:
    """Note the receives of incomplete sums that no compute node adds."""
    kind, full = nodes.kind, np.zeros(sets.shape[1], dtype=np.uint64)
    for r in range(ranks):
        full[r // 64] |= np.uint64(1) << np.uint64(r % 64)
    for k in range(len(kind)):
        if kind[k] == RECV and not added[k]:
            for w in range(len(full)):
                if sets[k, w] != full[w]:
                    wrong[k] = PARTIAL
                    break
