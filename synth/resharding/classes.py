"""Classes of bytes: all that the same ranks hold and the same ranks want, over all tensors.

Along every dimension the shards of both meshes cut a tensor into intervals; a cell is a product of intervals, one a
dimension. All entries of a cell have the same holders and wanters. Work: cells of tensors that differ in shape, type
or layout; tensors alike are looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import NamedTuple

from synth.errors import InputError
from synth.resharding.layout import Coordinates, Interval
from synth.resharding.mesh import Mesh
from synth.resharding.tensors import Tensor

MOST_CELLS = 1 << 20  # of a tensor
Box = tuple[tuple[int, int], ...]


class Cell(NamedTuple):
    """A part of a tensor with one set of holders and one of wanters: entries ``begin`` to ``end`` of every
    dimension."""

    holders: tuple[int, ...]
    wanters: tuple[int, ...]
    box: Box
    bytes: int


@dataclass
class Class:
    """``bytes`` in all; ``parts``: the tensor's number and cell of each part, in the order of the class's bytes."""

    holders: tuple[int, ...]
    wanters: tuple[int, ...]
    bytes: int = 0
    parts: list[tuple[int, Cell]] = field(default_factory=list)

    @property
    def lacking(self) -> tuple[int, ...]:
        """The wanters that hold it not."""
        has = set(self.holders)
        return tuple(rank for rank in self.wanters if rank not in has)


def classes_of(tensors: Sequence[Tensor], source: Mesh, target: Mesh) -> list[Class]:
    """The classes of which something has to move, in the order in which they come first. Raises :class:`InputError`
    for a tensor in too many cells."""
    kinds: dict[tuple[object, ...], list[Cell]] = {}
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Class] = {}
    ranks = _Ranks(source), _Ranks(target)
    for number, tensor in enumerate(tensors):
        if tensor.wanted.nowhere or tensor.held.nowhere:
            continue
        kind = tensor.shape, tensor.entry_bytes, id(tensor.held), id(tensor.wanted)
        if kind not in kinds:
            kinds[kind] = list(_cells(tensor, *ranks))
        for cell in kinds[kind]:
            key = cell.holders, cell.wanters
            if key not in found:
                found[key] = Class(*key)
            one = found[key]
            one.bytes += cell.bytes
            one.parts.append((number, cell))
    return [one for one in found.values() if one.lacking]


class _Ranks:
    """The ranks of coordinates, each set looked up once, so that equal sets are one tuple."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._known: dict[frozenset[tuple[str, frozenset[int]]], tuple[int, ...]] = {}

    def at(self, fixed: Coordinates, intervals: Sequence[Interval]) -> tuple[int, ...]:
        chosen = dict(fixed)
        for interval in intervals:
            chosen.update(interval.at)
        key = frozenset(chosen.items())
        if key not in self._known:
            self._known[key] = self._mesh.at(chosen)
        return self._known[key]


def _cells(tensor: Tensor, source: _Ranks, target: _Ranks) -> Iterator[Cell]:
    """The cells of a tensor, the last dimension fastest."""
    common = [list(_common(*rows)) for rows in zip(tensor.held.dims, tensor.wanted.dims, strict=True)]
    if prod(len(rows) for rows in common) > MOST_CELLS:
        raise InputError(f"tensor {tensor.name} has more than {MOST_CELLS} parts of different holders or wanters")
    for chosen in product(*common):
        box = tuple((begin, end) for begin, end, _, _ in chosen)
        size = tensor.entry_bytes * prod(end - begin for begin, end in box)
        holders = source.at(tensor.held.fixed, [held for _, _, held, _ in chosen])
        wanters = target.at(tensor.wanted.fixed, [wanted for _, _, _, wanted in chosen])
        yield Cell(holders, wanters, box, size)


def _common(held: Sequence[Interval], wanted: Sequence[Interval]) -> Iterator[tuple[int, int, Interval, Interval]]:
    """The intervals between all ends of two rows of intervals, each with those that it is part of."""
    a = b = 0
    while a < len(held) and b < len(wanted):
        begin, end = max(held[a].begin, wanted[b].begin), min(held[a].end, wanted[b].end)
        if begin < end:
            yield begin, end, held[a], wanted[b]
        if held[a].end == end:
            a += 1
        if b < len(wanted) and wanted[b].end == end:
            b += 1
