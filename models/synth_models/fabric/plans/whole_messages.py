"""An allreduce by messages of whole pieces, which both partners of an exchange add up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from synth.errors import InputError, UnsupportedError
from synth.schedule.moves import Moves
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.stated_moves import schedule
from synth_models.fabric.solution import Schedule


class Message(NamedTuple):
    """A whole piece, from a member to a member (their places among the members): added there, or instead of what is
    there. Messages of one step go at once."""

    source: int
    target: int
    step: int
    adds: bool
    piece: int = 0


def messages(n: int) -> list[Message]:
    """Folding, log2 n exchanges, unfolding."""
    half = 1 << (n.bit_length() - 1)
    found = [Message(k, k - half, 0, True) for k in range(half, n)]
    bit, step = 1, 1
    while bit < half:
        found += [Message(k, k ^ bit, step, True) for k in range(half)]
        bit, step = 2 * bit, step + 1
    return found + [Message(k - half, k, step, False) for k in range(half, n)]


def to_all(n: int) -> list[Message]:
    """Everybody's whole buffer to everybody, to the next first, in one step."""
    return [Message(k, (k + ahead) % n, 0, True) for ahead in range(1, n) for k in range(n)]


def exchanged(instance: FabricInstance, sent: Sequence[Message], pieces: int = 1) -> Schedule | None:
    """Allreduce by these messages of whole pieces, in the order of their steps; None where a rank would receive before
    it has sent, where partners have no direct route, or one over switches that store and add."""
    members, count = instance.members, min(pieces, int(instance.blocks.bytes[0]))
    moves = Moves(instance, count)
    received: dict[tuple[int, int], list[int]] = {}
    for _, together in groupby((m for m in sent if m.piece < count), key=attrgetter("step")):
        came: list[tuple[tuple[int, int], int]] = []
        for m in together:
            after = received.get((m.piece, m.source), ())
            number = moves.send(members[m.source], members[m.target], piece=m.piece, adds=m.adds, after=tuple(after))
            came.append(((m.piece, m.target), number))
        for place, number in came:
            received.setdefault(place, []).append(number)
    try:
        return schedule(instance, moves, plain=True)
    except (InputError, UnsupportedError):
        return None
