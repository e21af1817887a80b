"""An allreduce by messages of whole pieces, which both partners of an exchange add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.search import Route, Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import arrivals
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.scheduling.transfers import Transfers
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
    sizes = chunks.cut(int(instance.blocks.bytes[0]), pieces)
    sent = [m for m in sent if m.piece < len(sizes)]
    moves = _over_direct_routes(instance, sent, sizes)
    if moves is None or meet_in_switches(instance, moves):
        return None
    schedule = timed(instance, moves)
    first = schedule.start
    if instance.switching.mode == "store_and_forward":
        first = first[moves.route_start[:-1]]
    came = arrivals(instance, moves, schedule)
    left: dict[tuple[int, int, int], int] = {}
    for i, m in enumerate(sent):
        key = m.piece, m.source, m.step
        left[key] = max(left.get(key, 0), int(first[i]))
    for i, m in enumerate(sent):
        if m.adds and any(left.get((m.piece, m.target, s), -1) >= came[i] for s in range(m.step + 1)):
            return None  # the target would send on what it is about to receive from another
    return schedule


def _over_direct_routes(instance: FabricInstance, sent: Sequence[Message], sizes: Sequence[int]) -> Transfers | None:
    """The messages as transfers, each after all of its piece that its source has received in earlier steps; None where
    one of them has no direct route."""
    members = instance.members
    routes = Routes.of(instance, max(sizes))
    links: list[Route] = []
    before: list[list[int]] = []
    received: dict[tuple[int, int], list[int]] = {}
    now: list[tuple[tuple[int, int], int]] = []  # piece and target, and number of the messages of this step
    step = 0
    for i, message in enumerate(sent):
        if message.step != step:
            for key, arrived in now:
                received.setdefault(key, []).append(arrived)
            now, step = [], message.step
        found = routes.hops(members[message.source], members[message.target])
        if len(found) > 1:
            return None
        routes.take(found[0])
        links.append(found[0])
        before.append(list(received.get((message.piece, message.source), ())))
        now.append(((message.piece, message.target), i))
    steps, adds, piece = [m.step for m in sent], [m.adds for m in sent], [m.piece for m in sent]
    return Transfers.of([0] * len(sizes), sizes, piece, links, before, steps, adds)
