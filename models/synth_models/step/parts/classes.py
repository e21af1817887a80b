"""Ranks that stand for others: what an instance says of them that cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth.errors import Fault


def class_faults(raw: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """What ``classes`` and ``groups`` say together, and with the nodes, that cannot be."""
    classes, groups = _table(raw.get("classes")), [_table(one) for one in raw.get("groups") or ()]
    if not classes:
        if raw.get("groups"):
            yield Fault("groups", "need classes")
        return
    if raw.get("alike", 1) != 1:
        yield Fault("alike", "must be 1 where classes are given", raw["alike"], True)
    of = {rank: one[0] for one in classes for rank in one}
    if len(of) < sum(map(len, classes)):
        yield Fault("classes", "a rank stands twice")
    yield from _of_nodes(rows, groups, of)


def _of_nodes(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[list[list[int]]], of: Mapping[int, int]
) -> Iterator[Fault]:
    """What nodes say of classes; ``of``: the first of every rank's class."""
    seen: dict[Any, str | None] = {}
    for i, row in enumerate(rows):
        own = _named(row)
        here = f"nodes[{i}] ({row.get('name')})"
        if any(of.get(rank) != rank for rank in own):
            yield Fault(f"{here}.rank", "names a rank that is the first of no class")
        elif row.get("among") is not None:
            among = row["among"]
            key = str(among), own, row.get("group") or len(own), row.get("collective") == "send"
            if key not in seen:
                known = type(among) is int and 0 <= among < len(groups)
                seen[key] = _wrong(groups[among], *key[1:], of) if known else "must be the number of its groups"
            if (words := seen[key]) is not None:
                yield Fault(f"{here}.among", words)


def _named(row: Mapping[str, Any]) -> tuple[int, ...]:
    """The ranks that a node names, none where they are of another kind."""
    own = row.get("ranks") if row.get("kind") == "operation" else [row.get("rank")]
    found = tuple(own) if isinstance(own, (list, tuple)) else ()
    return found if all(type(rank) is int for rank in found) else ()


def _wrong(
    groups: Sequence[Sequence[int]], own: tuple[int, ...], size: Any, sends: bool, of: Mapping[int, int]
) -> str | None:
    """What is wrong with the groups of an operation of these ranks."""
    met = sorted(rank for group in groups for rank in group)
    firsts = [tuple(of.get(rank, -1) for rank in group) for group in groups]
    if any(len(group) != size for group in groups):
        return f"has a group that is not of {size} ranks"
    if met != sorted(rank for rank, first in of.items() if first in own):
        return "has groups in which not every rank of its classes stands once"
    if len({tuple(sorted(row)) for row in firsts}) > 1:
        return "has groups of other classes than the first"
    if sends and set(firsts) != {own}:
        return "has a pair that does not go from the first class to the second"
    return None


def _table(value: Any) -> list[list[int]]:
    """Rows of ranks; none where it is of another kind."""
    rows = value if isinstance(value, (list, tuple)) else ()
    good = all(isinstance(row, (list, tuple)) and row and all(type(one) is int for one in row) for row in rows)
    return [list(row) for row in rows] if good else []
