"""Moves of pieces from rank to rank, as somebody states them.

A family that can make a schedule of moves says so by its capability ``moves``; nothing here knows a family.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from synth.errors import Fault, UnsupportedError

if TYPE_CHECKING:
    from synth.instance import Instance

Node = int | str
Waits = Iterable[int | str] | int | str


class Move(NamedTuple):
    """One call of :meth:`Moves.send`, as it stood, with its file and line."""

    source: Any
    target: Any
    block: Any
    piece: Any
    via: Any
    links: Any
    adds: Any
    after: Any
    start: Any
    name: Any
    file: str
    line: int


class Moves:
    """What a method of your own sends, in the order in which it is to go where several want a link.

    ``pieces``: equal pieces that every block is cut into (default 1; in family ``xtree`` the instance's chunks). Return
    the moves from your method, or make a solution of them at once by :meth:`schedule`. Families ``fabric``, ``xtree``
    and ``bine`` take them.

    >>> import synth
    >>> instance = synth.make("xtree", network="ring", nodes=3, chunks=1)
    >>> moves = synth.Moves(instance)
    >>> for rank in range(3):
    ...     first = moves.send(rank, (rank + 1) % 3, block=rank)
    ...     second = moves.send((rank + 1) % 3, (rank + 2) % 3, block=rank)
    >>> moves.schedule().steps
    2
    """

    def __init__(self, instance: Instance, pieces: int | None = None) -> None:
        from synth.instance import demand_one

        demand_one(instance)
        self.instance, self.pieces = instance, pieces
        self.stated: list[Move] = []

    def __len__(self) -> int:
        """How many moves there are by now."""
        return len(self.stated)

    def send(
        self, source: Node, target: Node, block: Any = None, piece: int = 0, *, via: Sequence[Node] = (),
        links: Sequence[int] | None = None, adds: bool | None = None, after: Waits | None = None,
        start: float | str | None = None, name: str | None = None,
    ) -> int:  # fmt: skip
        """Send one piece of a block from a rank to a rank, and return the number of this move, from 0 on.

        ``source``, ``target``: numbers or names of ranks. ``block``: whose data it is: the rank that holds it
        (allgather, gather) or is to get it (reduce_scatter, scatter), the pair (from, to) in an alltoall or demand,
        nothing where there is one block. In an allreduce a rank has its share of the buffer; in ``fabric`` no move need
        say one, and ``pieces`` are of the whole then; ``bine`` numbers its blocks, of an alltoall they are pairs.
        ``piece``: which piece of the block, from 0 on.

        ``via``: the nodes between, in order; or ``links``: the numbers of all links. Without either the quickest route
        over switches is found, over ranks where there is no other: these store the piece and send it on.

        ``adds``: the target adds what comes to its own partial sum; by default so in a reduce and a reduce_scatter,
        while in an allreduce a copy of the sum is sent. ``after``: numbers or names of moves that must have arrived. By
        default a copy waits for what brings it, and a partial sum for all that is added at its source; where ranks
        exchange sums, for what was stated before and is not at the target by then. ``start``: seconds, or
        their text with a unit; in ``xtree`` the timestep from 1 on, in ``bine`` the round from 0 on. It is kept
        exactly, and moves without one are fitted in.
        """
        frame = sys._getframe(1)
        here = frame.f_code.co_filename, frame.f_lineno
        self.stated.append(Move(source, target, block, piece, via, links, adds, after, start, name, *here))
        return len(self.stated) - 1

    def schedule(self) -> Any:
        """Return the family's solution. Raises :class:`InputError` with all that is wrong, a line each, and
        :class:`UnsupportedError` for a family that takes no moves."""
        from synth.family import get_family

        family = get_family(self.instance.family)
        if not family.can("moves"):
            raise UnsupportedError(f"family {family.name} takes no moves: return its table (synth.from_table)")
        return family.capability("moves")(self.instance, self)


def fault(moves: Moves, i: int, key: str, words: str, value: Any = None) -> Fault:
    """What is wrong with a move, by its number and its line."""
    move = moves.stated[i]
    place = f"move {i} ({file_name(move.file)}, line {move.line})"
    return Fault(f"{place}, {key}" if key else place, words, value, bool(key))


def file_name(path: str) -> str:
    """A file of code without the folders of this machine."""
    name = path.replace("\\", "/").rpartition("/")
    notebook = name[0].rpartition("/")[2].startswith("ipykernel_")
    return "the notebook" if notebook else path if path[:1] == "<" else name[2]
