"""GOAL, the input of LogGOPSim and ATLAHS, as text: what every rank sends, receives and adds, and what waits for what.

A transfer is a ``send`` of its rank and a ``recv`` of the other; where the receiver adds, a ``calc 0`` (no time) stands
behind the receive and requires it and the sum before it. A send requires the receive or the sum that made what it
sends, and what replaces a sum that nobody has sent requires that sum. It also begins no earlier than the rank's send
before it in time (``irequires``), so that what shares a NIC leaves in the schedule's order. All is on CPU 0 and NIC 0:
a schedule says nothing of either.

Limits, by reading ``txt2bin.re`` and ``Goal.hpp`` of LogGOPSim (76451de): a message has a byte or more, a tag 32 bits
of which all ones mean any tag, and ranks stand in their order. The text becomes the simulators' binary form by
``txt2bin -i FILE.goal -o FILE.bin``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import InputError
from synth.exchange.dataflow import carried
from synth.exchange.tags import tags
from synth.exchange.transfers import Transfers
from synth.text.files import replacing

ANY_TAG = 2**32 - 1


class _Flow(NamedTuple):
    """Per transfer, shape (transfers,): ``sent`` and ``prior`` of :func:`synth.exchange.dataflow.carried`, the ``tag``,
    the label of what ``made`` an arrival's state, -1 while unwritten, and whether it ``replaces`` a sum that no
    transfer carries, so that nothing else orders the two."""

    sent: IntArray
    prior: IntArray
    tag: IntArray
    made: IntArray
    replaces: BoolArray


def write(transfers: Transfers, path: Path) -> None:
    """Write the moves as GOAL's text, the file whole or not at all.

    Raises :class:`InputError` where the format cannot say them (a piece without a byte, too many tags), and
    ``OSError``."""
    t = transfers
    if len(t.piece_bytes) and t.piece_bytes.min() < 1:
        raise InputError("there is a piece without a byte; LogGOPSim sends none")
    sent, prior = carried(t)
    count = len(t.piece)
    unsent = np.append(t.adds & ~np.isin(np.arange(count), sent), False)  # the last of them for -1
    flow = _Flow(sent, prior, tags(t), np.full(count, -1, dtype=np.int64), ~t.adds & unsent[prior])
    if count and flow.tag.max() >= ANY_TAG:
        raise InputError(f"{flow.tag.max() + 1:,} tags; LogGOPSim has {ANY_TAG:,}")
    # the events of every rank: arrivals and starts in time, so that an operation stands behind all it requires
    rank = np.concatenate([t.dst, t.src])
    starts = np.repeat([False, True], count)
    order = np.lexsort((starts, np.concatenate([t.end_s, t.start_s]), rank))
    bounds = np.searchsorted(rank[order], np.arange(t.ranks + 1))
    with replacing(path) as stream:
        stream.write(f"num_ranks {t.ranks}\n".encode())
        for r in range(t.ranks):
            lines = _operations(t, flow, order[bounds[r] : bounds[r + 1]].tolist())
            stream.write("".join((f"\nrank {r} {{\n", *lines, "}\n")).encode())


def _operations(t: Transfers, flow: _Flow, events: list[int]) -> Iterator[str]:
    """The lines of one rank; ``events`` are transfers (arrivals) and transfers + count (starts)."""
    label, before, count = 0, -1, len(t.piece)
    for event in events:
        arrives = event < count
        k = event if arrives else event - count
        size, tag = t.piece_bytes[t.piece[k]], flow.tag[k]
        if arrives:
            yield f"l{label}: recv {size}b from {t.src[k]} tag {tag}\n"
            if flow.replaces[k]:
                yield f"l{label} requires l{flow.made[flow.prior[k]]}\n"
            if t.adds[k]:
                yield f"l{label + 1}: calc 0\nl{label + 1} requires l{label}\n"
                label += 1
                if flow.prior[k] >= 0:
                    yield f"l{label} requires l{flow.made[flow.prior[k]]}\n"
            flow.made[k] = label
        else:
            yield f"l{label}: send {size}b to {t.dst[k]} tag {tag}\n"
            if flow.sent[k] >= 0:
                yield f"l{label} requires l{flow.made[flow.sent[k]]}\n"
            if before >= 0:
                yield f"l{label} irequires l{before}\n"
            before = label
        label += 1
