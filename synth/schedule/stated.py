"""Moves as somebody states them, understood: ends, pieces and waits as numbers.

What is wrong is said of all moves at once, each by its number in the order of
:meth:`synth.schedule.moves.Moves.send` and its line in the user's file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synth.errors import Fault, InputError, did_you_mean
from synth.schedule.moves import Move, Moves, fault
from synth.schedule.waits import SHOWN, Sent, Waits
from synth.text.amounts import duration

ROUNDS = 50  # in which sums that come too early are held back
MOST_TIME = 1e9  # seconds, or timesteps
NOBODY = -1  # holds a block at first that is a sum: everybody has a contribution


@dataclass(frozen=True)
class Ground:
    """What moves are about, as the family has it.

    ``names``: of all nodes. ``ranks``: which of them may send and receive. ``block``: from the key that the user gives
    (its nodes as numbers) to the block's number; raises ``ValueError`` in words. ``holder``: who holds each block at
    first, :data:`NOBODY` for a sum. ``pieces``: of each block. ``adds``: what moves do that do not say.
    """

    names: Sequence[str]
    ranks: frozenset[int]
    block: Callable[[Any], int]
    holder: Sequence[int]
    pieces: Sequence[int]
    adds: bool


@dataclass
class Stated:
    """Moves that have been understood: a list entry each. ``piece``: (block, number). ``path``: the nodes from source
    to target, only these two where nothing is said between. ``waits``: the moves that each waits for; ``order``: all
    moves, each behind those that it waits for."""

    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    piece: list[tuple[int, int]] = field(default_factory=list)
    adds: list[bool] = field(default_factory=list)
    path: list[tuple[int, ...]] = field(default_factory=list)
    links: list[tuple[int, ...] | None] = field(default_factory=list)
    after: list[tuple[int, ...] | None] = field(default_factory=list)
    start: list[float | None] = field(default_factory=list)
    waits: list[list[int]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def leaving_early(self, came: Sequence[float], left: Sequence[float]) -> Iterator[tuple[int, int]]:
        """Pairs of moves (k, i): the sum that k brings is there when i leaves with the same piece, though i does not
        wait for it. ``came``, ``left``: when each arrives and starts."""
        there = defaultdict[tuple[Hashable, int], list[tuple[float, int]]](list)
        for k, adds in enumerate(self.adds):
            if adds:
                there[self.piece[k], self.target[k]].append((came[k], k))
        for arrivals in there.values():
            arrivals.sort()
        for i in range(len(self.source)):
            if not self.adds[i]:
                continue
            arrivals = there.get((self.piece[i], self.source[i]), [])
            early = [k for _, k in arrivals[: bisect_right(arrivals, (left[i], len(came)))]]
            if not set(early) <= set(self.waits[i]):
                known = self._before(i)
                yield from ((k, i) for k in early if k not in known)

    def _before(self, i: int) -> set[int]:
        """All moves that a move waits for, those of others too."""
        known, left = set[int](), list(self.waits[i])
        while left:
            if (k := left.pop()) not in known:
                known.add(k)
                left += self.waits[k]
        return known


def understood(moves: Moves, ground: Ground) -> Stated:
    """The moves by numbers, with what each waits for. Raises :class:`InputError` with all faults."""
    faults: list[Fault] = []
    named: dict[str, int] = {}
    for i, move in enumerate(moves.stated):
        if isinstance(move.name, str) and named.setdefault(move.name, i) != i:
            faults.append(fault(moves, i, "name", f"move {named[move.name]} has this name already", move.name))
    reader = _Reader(moves, ground, named, {name: node for node, name in reversed([*enumerate(ground.names)])}, faults)
    for i in range(len(moves)):
        reader.read(i)
    if faults:
        raise InputError(faults)
    found = reader.found
    waits = Waits(Sent(found.piece, found.source, found.target, found.adds, found.after), ground.holder)
    if waits.missing:
        raise InputError(list(_stuck(moves, ground, waits)))
    found.waits, found.order = waits.waits, waits.order
    return found


def _stuck(moves: Moves, ground: Ground, waits: Waits) -> Iterator[Fault]:
    """Why some moves never begin."""
    for i, ((block, piece), rank) in waits.never_there():
        sums = ground.holder[block] == NOBODY
        name = ground.names[rank]
        never = f"piece {piece} of this block never comes to rank {name}"
        yield fault(moves, i, "", f"nothing is added at rank {name}, which has no sum to copy" if sums else never)
    for circle in waits.circles():
        told = ", ".join(map(str, circle[:SHOWN])) + (", …" if len(circle) > SHOWN else "")
        words = f"moves {told} wait for each other" if len(circle) > 1 else "waits for itself"
        yield fault(moves, circle[0], "", words)


def demand_arrived(moves: Moves, stated: Stated, came: Sequence[float], left: Sequence[float]) -> None:
    """Raises :class:`InputError` for moves whose given start is before what they wait for has arrived. ``came``,
    ``left``: when each arrives and starts."""
    faults = []
    for i, start in enumerate(stated.start):
        late = None if start is None else next((k for k in stated.waits[i] if came[k] > left[i]), None)
        if late is not None:
            faults.append(fault(moves, i, "start", f"is before move {late}, which it waits for, has arrived", start))
    if faults:
        raise InputError(faults)


Hops = list[tuple[int, int]]  # of a move, hop after hop: its step, and what else a family keeps of it


def settled(
    moves: Moves, ground: Ground, stated: Stated, placed: Callable[[Sequence[int]], list[Hops]], first: int
) -> list[Hops]:
    """The hops of every move in steps, where every partial sum leaves without what it does not wait for. ``placed``:
    the hops of all moves, none before these steps, of which there is one for every move (at the least ``first``).
    Raises :class:`InputError` where that cannot be had."""
    earliest = [first] * len(stated.source)
    early: list[tuple[int, int]] = []
    for _ in range(ROUNDS):
        hops = placed(earliest)
        left, came = [row[0][0] for row in hops], [row[-1][0] + 1 for row in hops]
        demand_arrived(moves, stated, came, left)
        early = list(stated.leaving_early(came, left))
        if not early:
            return hops
        if any(stated.start[k] is not None for k, _ in early):
            break
        for k, i in early:
            earliest[k] = max(earliest[k], left[i])
    raise InputError([early_fault(moves, ground, stated, k, i) for k, i in early])


def early_fault(moves: Moves, ground: Ground, stated: Stated, k: int, i: int) -> Fault:
    """That move k brings a sum before move i has left without it."""
    words = f"brings its sum to rank {ground.names[stated.target[k]]} before move {i} has left without it"
    return fault(moves, k, "", f"{words}: let one wait for the other (after), or start it later")


@dataclass
class _Reader:
    """Reads one move after the other; what is wrong goes to ``faults``. ``moves_named``, ``nodes_named``: numbers."""

    moves: Moves
    ground: Ground
    moves_named: Mapping[str, int]
    nodes_named: Mapping[str, int]
    faults: list[Fault]
    found: Stated = field(default_factory=Stated)

    def read(self, i: int) -> None:
        move, found = self.moves.stated[i], self.found
        ends = [self._attempt(i, key, self._rank, getattr(move, key)) for key in ("source", "target")]
        if None not in ends and ends[0] == ends[1]:
            self.faults.append(fault(self.moves, i, "target", "is the source", move.target))
        via = self._attempt(i, "via", self._nodes, move.via) or ()
        block = self._attempt(i, "block", self._block, move.block)
        if block is not None:
            self._piece(i, move, block)
        found.source.append(0 if ends[0] is None else ends[0])
        found.target.append(0 if ends[1] is None else ends[1])
        found.path.append((found.source[-1], *via, found.target[-1]))
        found.links.append(self._attempt(i, "links", _numbers, move.links))
        found.after.append(self._attempt(i, "after", self._others, move.after))
        found.start.append(self._attempt(i, "start", _time, move.start))

    def _attempt(self, i: int, key: str, read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            self.faults.append(fault(self.moves, i, key, str(error), value))
            return None

    def _piece(self, i: int, move: Move, block: int) -> None:
        """Which piece of the block, and whether it is added."""
        count = self.ground.pieces[block]
        if not _is_number(move.piece) or not 0 <= int(move.piece) < count:
            self.faults.append(fault(self.moves, i, "piece", f"the block has pieces 0..{count - 1}", move.piece))
        sums = self.ground.holder[block] == NOBODY
        adds = (self.ground.adds and sums) if move.adds is None else bool(move.adds)
        if adds and not sums:
            self.faults.append(fault(self.moves, i, "adds", "this collective sums nothing up", move.adds))
        self.found.piece.append((block, int(move.piece) if _is_number(move.piece) else 0))
        self.found.adds.append(adds)

    def _node(self, value: Any) -> int:
        if isinstance(value, str):
            if value not in self.nodes_named:
                raise ValueError(f"no node has this name; {did_you_mean(value, self.nodes_named)}".rstrip("; "))
            return self.nodes_named[value]
        if not _is_number(value) or not 0 <= int(value) < len(self.ground.names):
            raise ValueError(f"must be one of the nodes 0..{len(self.ground.names) - 1}, or a name")
        return int(value)

    def _rank(self, value: Any) -> int:
        node = self._node(value)
        if node not in self.ground.ranks:
            raise ValueError("is no rank that takes part")
        return node

    def _nodes(self, value: Any) -> tuple[int, ...]:
        return tuple(self._node(node) for node in _several(value, "nodes"))

    def _block(self, key: Any) -> int:
        if isinstance(key, (tuple, list)):
            return self.ground.block(tuple(self._node(node) for node in key))
        return self.ground.block(key if key is None else self._node(key))

    def _others(self, value: Any) -> tuple[int, ...] | None:
        if value is None:
            return None
        found = []
        for one in [value] if isinstance(value, str) or _is_number(value) else _several(value, "moves"):
            if isinstance(one, str) and one not in self.moves_named:
                raise ValueError(f"no move is named {one!r}")
            number = self.moves_named[one] if isinstance(one, str) else one
            if not _is_number(number) or not 0 <= int(number) < len(self.moves):
                raise ValueError(f"there are moves 0..{len(self.moves) - 1}")
            found.append(int(number))
        return tuple(found)


def _is_number(value: Any) -> bool:
    """Whether it is a whole number, numpy's too."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _several(value: Any, what: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ValueError(f"must be a list of {what}")
    return list(value)


def _numbers(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    found = _several(value, "numbers of links")
    if not found or not all(map(_is_number, found)):
        raise ValueError("must be a list of numbers of links")
    return tuple(map(int, found))


def _time(value: Any) -> float | None:
    if value is None:
        return None
    try:
        time = duration(value) if isinstance(value, str) else float(value)
    except TypeError:
        raise ValueError("must be a time") from None
    if isinstance(value, bool) or not 0 <= time <= MOST_TIME:
        raise ValueError(f"must be a time in 0..{MOST_TIME:g}")
    return time
