"""What a send and a receive say of the other end, as msccl-tools writes it.

An executor reads a send's source and a receive's destination; the other two name the place at the peer, for people and
for tools that compare both ends of a message (dromniscience/MSCCL-XML-Verifier).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth.exchange.algorithm import KINDS, Algorithm
from synth.exchange.order import messages
from synth.exchange.places import Steps, steps

SEND = KINDS.index("s")
TAKES = np.array([kind in ("r", "rcs") for kind in KINDS])  # reads nothing at its source
KEEPS = np.array([kind in ("r", "rrc", "rcs", "rrcs") for kind in KINDS])  # what arrives lies at the destination


def with_far_ends(algorithm: Algorithm) -> Algorithm:
    """The same algorithm; where the peer's place does not fit the rank's own buffer (parsers check it against that),
    a step keeps naming its own."""
    a, where = algorithm, steps(algorithm)
    ends = messages(a, where)
    dst_buffer, dst_offset, src_buffer, src_offset = (
        column.copy() for column in (a.dst_buffer, a.dst_offset, a.src_buffer, a.src_offset)
    )
    plain = (a.kind[ends.send] == SEND) & KEEPS[a.kind[ends.recv]]
    at, far = ends.send[plain], ends.recv[plain]
    fits = _fit(a, where, at, a.dst_buffer[far], a.dst_offset[far])
    dst_buffer[at[fits]], dst_offset[at[fits]] = a.dst_buffer[far[fits]], a.dst_offset[far[fits]]
    plain = TAKES[a.kind[ends.recv]] & ((a.kind[ends.send] == SEND) | KEEPS[a.kind[ends.send]])
    at, far = ends.recv[plain], ends.send[plain]
    own = a.kind[far] == SEND
    buffer = np.where(own, a.src_buffer[far], a.dst_buffer[far])
    offset = np.where(own, a.src_offset[far], a.dst_offset[far])
    fits = _fit(a, where, at, buffer, offset)
    src_buffer[at[fits]], src_offset[at[fits]] = buffer[fits], offset[fits]
    return replace(a, dst_buffer=dst_buffer, dst_offset=dst_offset, src_buffer=src_buffer, src_offset=src_offset)


def _fit(a: Algorithm, where: Steps, at: IntArray, buffer: IntArray, offset: IntArray) -> IntArray:
    room = a.buffer_chunks[where.rank[at], buffer]
    return np.flatnonzero((offset >= 0) & (offset + a.count[at] <= room)).astype(np.int64)
