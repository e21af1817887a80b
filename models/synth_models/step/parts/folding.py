"""Ranks of traces that are alike become one: the coarsest classes in which all do the same with ranks of the same
classes, found by refinement of colours (Weisfeiler and Leman 1968).

A timetable of the classes, given to every rank, is one of all ranks, and ends when it does. Every path through nodes of
the classes, and the work of their streams and ports, is found at some rank of each. So value and bound hold for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Folded:
    """``classes``: the ranks by their classes, least first; ``stands``: of every node the number of the one that stands
    for it; ``groups``: by the nodes that stand for others the ranks of each of those."""

    classes: list[list[int]]
    stands: list[int]
    groups: dict[int, list[tuple[int, ...]]]


def folded(
    own: Mapping[int, Sequence[int]], ranks_of: Sequence[Sequence[int]], looks: Mapping[int, Sequence[Hashable]]
) -> Folded:
    """The classes of ranks. ``own``: the nodes of each rank in the order of its file; ``ranks_of``: the ranks of each
    node, in their order; ``looks``: what each of ``own`` is by itself, what it comes after as places in ``own``."""
    seats: list[list[tuple[int, int]]] = [[] for _ in ranks_of]
    for rank, nodes in own.items():
        for place, node in enumerate(nodes):
            seats[node].append((rank, place))
    colour = _colours(own, seats, looks)
    classes: dict[int, list[int]] = defaultdict(list)
    for rank in sorted(own):
        classes[colour[rank]].append(rank)
    first: dict[Hashable, int] = {}
    stands, groups = [], dict[int, list[tuple[int, ...]]]()
    for node, seated in enumerate(seats):
        stands.append(first.setdefault(_sitting(seated, colour), node))
        groups.setdefault(stands[-1], []).append(tuple(ranks_of[node]))
    return Folded(sorted(classes.values()), stands, groups)


def _colours(
    own: Mapping[int, Sequence[int]],
    seats: Sequence[Sequence[tuple[int, int]]],
    looks: Mapping[int, Sequence[Hashable]],
) -> dict[int, int]:
    """The class of every rank; ``seats``: the ranks of every node, and its places in their files."""
    meeting = {node for node, seated in enumerate(seats) if len(seated) > 1}
    shared = {rank: [node for node in nodes if node in meeting] for rank, nodes in own.items()}
    colour = _numbered({rank: tuple(rows) for rank, rows in looks.items()})
    while True:
        kinds = _numbered({node: _sitting(seats[node], colour) for node in meeting})
        finer = _numbered({rank: (colour[rank], *(kinds[node] for node in nodes)) for rank, nodes in shared.items()})
        if len(set(finer.values())) == len(set(colour.values())):
            twice = [rank for rank, nodes in shared.items() if len(set(map(kinds.__getitem__, nodes))) < len(nodes)]
            if not twice:
                return colour
            met = colour[twice[0]]  # its ranks would sit at two places of one node: the class is taken apart
            finer = _numbered({rank: (one, rank if colour[rank] == met else -1) for rank, one in finer.items()})
        colour = finer


def _sitting(seats: Sequence[tuple[int, int]], colour: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """The colours of a node's ranks, and its places in their files."""
    return tuple(sorted((colour[rank], place) for rank, place in seats))


def _numbered(rows: Mapping[int, Any]) -> dict[int, int]:
    """The same number for equal rows."""
    number: dict[Any, int] = {}
    return {key: number.setdefault(row, len(number)) for key, row in rows.items()}
