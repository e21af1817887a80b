"""How a tensor lies on one mesh, as words of a table's cell.

    pp=2               only ranks with this coordinate of axis pp have it (pp=0,3: with one of these)
    tp:0               sharded along dimension 0 in equal parts, one a coordinate of axis tp
    tp:0(3,3,2)        in parts of so many rows, one a coordinate
    tp:0/up            in parts of the quotient rounded up, the last ones smaller or empty
    tp:0[4096,512*2]   rows are fused of 4,096 and 512: each is sharded alone, the second with 2 coordinates a part
    -                  no rank of the mesh has it

Axes that are not named replicate. Of two axes on one dimension the first is the outer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NOWHERE = "-"
_WORD = re.compile(r"([A-Za-z_]\w*)(?:=(\d[\d,]*)|:(\d+)(?:\(([\d,]+)\)|\[([\d,*]+)\]|(/up))?)$")
Coordinates = Mapping[str, frozenset[int]]


class Interval(NamedTuple):
    """Entries ``begin`` to ``end`` of a dimension, and the coordinates that have them, by axis."""

    begin: int
    end: int
    at: Coordinates


@dataclass(frozen=True)
class Layout:
    """``fixed``: coordinates by axis. ``dims``: of every dimension its intervals, ascending. ``nowhere``: no rank has
    it."""

    fixed: Coordinates
    dims: tuple[tuple[Interval, ...], ...]
    nowhere: bool = False


def layout_of(text: str, shape: Sequence[int], axes: Mapping[str, int]) -> Layout:
    """The layout in words. Raises ``ValueError`` saying all that is wrong with them."""
    if text.strip() == NOWHERE:
        return Layout({}, tuple((Interval(0, size, {}),) for size in shape), True)
    fixed: dict[str, frozenset[int]] = {}
    dims = [[Interval(0, size, {})] for size in shape]
    wrong, seen = list[str](), set[str]()
    for word in text.split():
        found = _WORD.match(word)
        axis = "" if found is None else found.group(1)
        if found is None or axis not in axes or axis in seen:
            lacks = (
                f"there is no axis {axis}: {', '.join(axes)}" if found else "no axis=coordinate, axis:dimension or -"
            )
            wrong.append(f"{word}: {'names its axis twice' if axis in seen else lacks}")
            continue
        seen.add(axis)
        try:
            if found.group(2) is not None:
                fixed[axis] = _coordinates(found.group(2), axes[axis])
            elif int(found.group(3)) >= len(shape):
                raise ValueError(f"there is no dimension {found.group(3)} of {len(shape)}")
            else:
                dim = int(found.group(3))
                dims[dim] = _sharded(dims[dim], axis, axes[axis], found.groups()[3:])
        except ValueError as error:
            wrong.append(f"{word}: {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return Layout(fixed, tuple(map(_ascending, dims)))


def _ascending(rows: Sequence[Interval]) -> tuple[Interval, ...]:
    return tuple(sorted(rows, key=lambda row: row.begin))


def _strange(axis: str, axes: Mapping[str, int], seen: set[str]) -> str:
    if not axis:
        return "is no axis=number, axis:dimension or -"
    return "names its axis twice" if axis in seen else f"there is no axis {axis}: {', '.join(axes)}"


def _coordinates(text: str, size: int) -> frozenset[int]:
    if any(not word or len(word) > 9 or int(word) >= size for word in text.split(",")):
        raise ValueError(f"coordinates are 0 to {size - 1}")
    return frozenset(map(int, text.split(",")))


def _sharded(rows: Sequence[Interval], axis: str, size: int, how: Sequence[str | None]) -> list[Interval]:
    """Every shard that there is by now, in parts over the axis."""
    shards: dict[tuple[tuple[str, frozenset[int]], ...], list[Interval]] = {}
    for row in rows:
        shards.setdefault(tuple(row.at.items()), []).append(row)
    found = list[Interval]()
    for shard in shards.values():
        parts = list(_parts(sum(row.end - row.begin for row in shard), size, how))
        found += _cut(shard, axis, parts)
    return found


def _parts(length: int, size: int, how: Sequence[str | None]) -> Iterator[tuple[int, frozenset[int]]]:
    """Lengths in their order, and the coordinates that have each."""
    stated, fused, rounded = how
    if stated is not None:
        sizes = [int(word) for word in stated.split(",") if word]
        if len(sizes) != size or sum(sizes) != length:
            raise ValueError(f"needs {size} parts that add up to {length}")
        yield from ((each, frozenset([k])) for k, each in enumerate(sizes))
    elif rounded is not None:
        each = -(-length // size)
        yield from ((max(0, min(each, length - k * each)), frozenset([k])) for k in range(size))
    else:
        yield from _even([f"{length}"] if fused is None else fused.split(","), length, size)


def _even(words: Sequence[str], length: int, size: int) -> Iterator[tuple[int, frozenset[int]]]:
    """Equal parts of everything that is fused."""
    rows = [_fused(word) for word in words]
    if sum(whole for whole, _ in rows) != length:
        raise ValueError(f"what is fused adds up to {sum(whole for whole, _ in rows)}, not {length}")
    for part, times in rows:
        shards = size // times
        if size % times or part % shards:
            hint = "say how: (sizes), /up or [fused parts]"
            raise ValueError(f"{part} does not divide among {size} coordinates, {times} a part; {hint}")
        for k in range(shards):
            yield part // shards, frozenset(range(k * times, (k + 1) * times))


def _fused(word: str) -> tuple[int, int]:
    """Of what is fused its length, and how many coordinates have each part."""
    whole, star, copies = word.partition("*")
    if not whole or "*" in copies or (star and not int(copies or 0)):
        raise ValueError("fused parts are lengths, or length*copies")
    return int(whole), int(copies or 1)


def _cut(shard: Sequence[Interval], axis: str, parts: Sequence[tuple[int, frozenset[int]]]) -> Iterator[Interval]:
    """The intervals of a shard, one behind the other, cut into parts of these lengths."""
    rows = iter(shard)
    begin, end, at = next(rows, Interval(0, 0, {}))
    for length, coordinates in parts:
        left = length
        while left:
            if begin == end:
                begin, end, at = next(rows)
            step = min(left, end - begin)
            yield Interval(begin, begin + step, {**at, axis: coordinates})
            begin, left = begin + step, left - step
