"""What went wrong in a run, a line a fault: the rank, the piece, its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from synth.arrays import IntArray
from synth.exchange.transfers import Transfers
from synth.ranks.data import UNWRITTEN, Data
from synth.ranks.outcome import Blocked, Outcome, Wrong
from synth.ranks.program import Program

MOST_LINES = 20


class Names(Protocol):
    """What things are called in the file that is run."""

    def message(self, number: int) -> str:
        """A message, by the schedule's number for it."""

    def operation(self, number: int) -> str:
        """An operation of a rank; empty where only its message has a name."""

    def region(self, piece: int, part: int) -> str:
        """A piece (-1: none) of a part."""


class TransferNames:
    """Names in a schedule. ``pieces``: what its file calls its pieces, where these are not 0, 1, …"""

    def __init__(self, transfers: Transfers, pieces: IntArray | None = None) -> None:
        self.transfers = transfers
        self.pieces = np.arange(len(transfers.piece_part)) if pieces is None else pieces

    def message(self, number: int) -> str:
        piece = int(self.transfers.piece[number])
        return f"transfer {number}, {self.region(piece, int(self.transfers.piece_part[piece]))}"

    def operation(self, number: int) -> str:
        return ""

    def region(self, piece: int, part: int) -> str:
        if piece < 0:
            return f"part {part}, bytes that no transfer moves"
        return f"piece {self.pieces[piece]} (part {part}, offset {self.transfers.piece_offset[piece]})"


def faults(program: Program, outcome: Outcome, names: Names, data: Data) -> list[str]:
    """All that is wrong, a line each, the first :data:`MOST_LINES` and how many more."""
    lines = list(_lines(program, outcome, names, data))
    more = len(lines) - MOST_LINES + outcome.wrong_regions - len(outcome.wrong)
    return lines[:MOST_LINES] + ([f"and {more:,} more"] if more > 0 else [])


def _lines(program: Program, outcome: Outcome, names: Names, data: Data) -> Iterator[str]:
    if outcome.died is not None:
        yield f"rank {outcome.died.rank} {outcome.died.how}; the other ranks were ended"
        return
    for blocked in outcome.blocked:
        yield blocked_in_words(program, blocked, names)
    for wrong in outcome.wrong:
        yield _holds(program, wrong, names, data)
    if len(outcome.seconds) and not np.array_equal(outcome.received, program.bytes_by_pair()):
        for src, dst in zip(*np.nonzero(outcome.received != program.bytes_by_pair()), strict=True):
            asked = program.bytes_by_pair()[src, dst]
            yield f"rank {dst} received {outcome.received[src, dst]:,} bytes of rank {src}, the schedule says {asked:,}"


def blocked_in_words(program: Program, blocked: Blocked, names: Names) -> str:
    """Who waits for whom, and for what."""
    rank, operation, why, what = blocked
    here = names.operation(operation)
    here = f"rank {rank}, {here}," if here else f"rank {rank}"
    if why == "step":
        return f"{here} waits for {names.operation(what)}"
    if what < 0:
        return f"{here} waits for a message that nobody sends"
    message = program.messages
    words = names.message(int(message.number[what]))
    if why == "read":
        return f"{here} waits for rank {message.dst[what]} to take {words}"
    return f"{here} waits for rank {message.src[what]} to send {words}"


def _holds(program: Program, wrong: Wrong, names: Names, data: Data) -> str:
    ends = program.ends
    part, place = int(ends.part[wrong.region]), int(ends.first[wrong.region]) + wrong.first
    count = int(ends.count[wrong.region])
    where = f"rank {wrong.rank}, {names.region(int(ends.piece[wrong.region]), part)}"
    some = f"{wrong.words:,} of {count:,} words are wrong, the first is word {wrong.first}"
    return f"{where}: {some}: {_found(program, wrong.found, part, place, data)}"


def _found(program: Program, bits: int, part: int, place: int, data: Data) -> str:
    """What the word at a place of a part is instead of what it must be."""
    if bits == int(UNWRITTEN):
        return "nothing was written there"
    word = np.array([bits], dtype=np.uint64).view(data.dtype)
    origin = int(program.goals.origin[part])
    if origin >= 0:
        return f"it is not rank {origin}'s"
    own = [(rank, data.own(part, rank, place, 1)) for rank in data.adding(part)]
    total = data.total(part, place, 1)
    for rank, one in own:
        if _same(word, total - one):
            return f"the contribution of rank {rank} is missing"
        if _same(word, total + one):
            return f"the contribution of rank {rank} is counted twice"
        if _same(word, one):
            return f"it is the contribution of rank {rank} alone"
    return "it is not the sum of all contributions"


def _same(one: Any, other: Any) -> bool:
    return bool(np.all(np.isclose(one, other, rtol=1e-9)) if one.dtype.kind == "f" else np.all(one == other))
