"""The solution type: phases of transfers between ranks, each transfer with its route.

The stored forms share one way to be read, block by block, so that 37.9 million transfers never lie in memory at once:

* :class:`PhaseTable`: dense arrays, one row per phase.
* :class:`RepairedPhases`: such phases with some transfers moved to other routes and phases, because of failures.
* ``ColumnPhases`` (``parts/column_phases.py``): for a block, flows between columns that all layers make alike, in
  groups of phases; or flows between leaves, as columns of a single layer.
* ``LeafPhases`` (``parts/leaf_phases.py``): for the whole machine, what follows what on its links, group by group.
* :class:`ProductPhases`: for a block of n layers, l columns and m servers, phases that act on each coordinate on its
  own: the layer and the slot are shifted, the column follows a small table. n*l*m phases then need l*l*m numbers and
  three per phase (31 thousand instead of 76 million for d = 18).

A route is up to two spines and the leaf between them, as the numbers of :class:`MLFMInstance`: ``spine`` = -1 inside
a leaf, ``middle`` = ``second`` = -1 when one spine is crossed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from synth.arrays import Int32Array
from synth.errors import InputError
from synth.text.untrusted import choice, whole, whole_numbers
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import NOTHING, ColumnPhases, Rows
from synth_models.mlfm.parts.leaf_phases import LeafPhases, packed_links, unpacked_links

if TYPE_CHECKING:
    import pandas as pd

MOST = 2**20  # of every number in a solution: above all ids and ranks, and sums of two fit 32 bits
MAX_ROWS = 40_000_000  # of the flat table
_SIZES = ("layers", "columns", "slots", "length", "groups", "stride")


class Phases(Protocol):
    """What every stored form offers."""

    @property
    def phases(self) -> int:
        """Number of phases."""

    @property
    def ranks(self) -> int:
        """Number of ranks N."""

    def rows(self, block: int = 64) -> Iterator[Rows]:
        """All phases in order, ``block`` at a time."""


@dataclass(frozen=True)
class PhaseTable:
    """Dense phases; the arrays of :class:`Rows`, shape (phases, ranks). ``middle`` and ``second`` may be None."""

    dest: Int32Array
    spine: Int32Array
    middle: Int32Array | None = None
    second: Int32Array | None = None

    def __post_init__(self) -> None:
        shape = self.dest.shape
        if len(shape) != 2 or self.spine.shape != shape:
            raise ValueError("dest and spine have shape (phases, ranks)")
        if (self.middle is None) != (self.second is None):
            raise ValueError("middle and second stand together")
        if self.middle is not None and self.second is not None and not self.middle.shape == self.second.shape == shape:
            raise ValueError("middle and second have shape (phases, ranks)")

    @property
    def phases(self) -> int:
        return int(self.dest.shape[0])

    @property
    def ranks(self) -> int:
        return int(self.dest.shape[1])

    def rows(self, block: int = 64) -> Iterator[Rows]:
        for first in range(0, self.phases, block):
            part = slice(first, first + block)
            none = np.full(self.dest[part].shape, NOTHING, np.int32)
            middle = none if self.middle is None else self.middle[part]
            second = none if self.second is None else self.second[part]
            yield Rows(first, self.dest[part], self.spine[part], middle, second)


@dataclass(frozen=True)
class ProductPhases:
    """Phases of a block whose rank ``(i * l + j) * m + k`` is server (i, j, k).

    In phase ``p`` with ``t = pattern[p]`` that rank sends to layer ``(i + layer_shift[p]) mod n``, column
    ``column[t, j, k]`` and slot ``(k + slot_shift[p]) mod m`` through ``spine[t, j, k]``; inside a leaf through none.
    Shapes: ``pattern``, ``layer_shift``, ``slot_shift`` (phases,), ``column`` and ``spine`` (patterns, l, m).
    """

    layers: int
    pattern: Int32Array
    layer_shift: Int32Array
    slot_shift: Int32Array
    column: Int32Array
    spine: Int32Array

    def __post_init__(self) -> None:
        if self.column.ndim != 3 or self.spine.shape != self.column.shape or min(self.column.shape) < 1:
            raise ValueError("column and spine have shape (patterns, columns, servers)")
        if self.pattern.ndim != 1 or not self.pattern.shape == self.layer_shift.shape == self.slot_shift.shape:
            raise ValueError("pattern, layer_shift and slot_shift have shape (phases,)")
        if self.pattern.size and not 0 <= self.pattern.min() <= self.pattern.max() < len(self.column):
            raise ValueError("pattern holds a number that is no pattern")
        if self.layers < 1:
            raise ValueError("there is at least one layer")

    @property
    def phases(self) -> int:
        return int(self.pattern.size)

    @property
    def ranks(self) -> int:
        return self.layers * int(np.prod(self.column.shape[1:]))

    def rows(self, block: int = 64) -> Iterator[Rows]:
        _, columns, slots = self.column.shape
        n = self.layers
        layer = np.arange(n, dtype=np.int32)[:, None, None]
        own_column = np.arange(columns, dtype=np.int32)[None, :, None]
        slot = np.arange(slots, dtype=np.int32)[None, None, :]
        for first in range(0, self.phases, block):
            part = slice(first, first + block)
            shape = (len(self.pattern[part]), self.ranks)
            to_layer = (layer + self.layer_shift[part, None, None, None]) % n
            to_column = self.column[self.pattern[part]][:, None]
            to_slot = (slot + self.slot_shift[part, None, None, None]) % slots
            valid = (to_column >= 0) & (to_column < columns)
            dest = np.where(valid, (to_layer * columns + to_column) * slots + to_slot, np.int32(self.ranks))
            local = (to_layer == layer) & (to_column == own_column)
            spine = np.where(local, np.int32(NOTHING), self.spine[self.pattern[part]][:, None])
            none = np.full(shape, NOTHING, np.int32)
            yield Rows(first, dest.reshape(shape), np.broadcast_to(spine, dest.shape).reshape(shape), none, none)


@dataclass(frozen=True)
class Flows:
    """Transfers (F,) in groups of phases: in the first phase of ``group`` rank ``source`` sends to ``dest``, in the
    next ones to the next servers of the same leaf (cyclically), always by the same route."""

    group: Int32Array
    source: Int32Array
    dest: Int32Array
    spine: Int32Array
    middle: Int32Array
    second: Int32Array

    def __post_init__(self) -> None:
        if any(values.shape != (self.group.size,) for values in vars(self).values()):
            raise ValueError("flows are lists of one length")


@dataclass(frozen=True)
class RepairedPhases:
    """The phases of a rule with some flows moved, for a job of which rank ``q * slots + k`` is server k of its leaf q.

    ``slots`` phases in a row are a group. What a rank sends to a leaf in the rule is left out where ``moved`` holds a
    flow of that rank to that leaf; this flow takes its place, in a group of the rule or in one after the last.
    """

    rule: ProductPhases
    slots: int
    groups: int
    moved: Flows

    def __post_init__(self) -> None:
        moved, ranks = self.moved, self.rule.ranks
        if self.slots < 1 or ranks % self.slots or self.rule.phases % self.slots:
            raise ValueError("ranks and phases of the rule come in groups of slots")
        if self.groups < self.rule.phases // self.slots:
            raise ValueError("there are no fewer groups than the rule has")
        for name, values, most in (("group", moved.group, self.groups), ("source", moved.source, ranks)):
            if values.size and not 0 <= values.min() <= values.max() < most:
                raise ValueError(f"a flow's {name} does not exist")
        if moved.dest.size and not 0 <= moved.dest.min() <= moved.dest.max() < ranks:
            raise ValueError("a flow's dest does not exist")
        if len(np.unique(moved.group.astype(np.int64) * ranks + moved.source)) < moved.group.size:
            raise ValueError("a rank sends two moved flows in one group")

    @property
    def phases(self) -> int:
        return self.groups * self.slots

    @property
    def ranks(self) -> int:
        return self.rule.ranks

    def rows(self, block: int = 64) -> Iterator[Rows]:
        elsewhere = np.zeros((self.ranks, self.ranks // self.slots + 1), dtype=bool)  # one more for dest = ranks
        elsewhere[self.moved.source, self.moved.dest // self.slots] = True
        order = np.argsort(self.moved.group, kind="stable")
        begins = np.searchsorted(self.moved.group[order], np.arange(self.groups + 1))
        everyone, first = np.arange(self.ranks), 0
        for rows in self.rule.rows(self.slots):
            away = elsewhere[everyone, np.clip(rows.dest, 0, self.ranks) // self.slots]
            parts = [np.where(away, np.int32(NOTHING), part) for part in (rows.dest, rows.spine)]
            yield self._with_moved(first, parts, order[begins[first] : begins[first + 1]])
            first += 1
        for group in range(first, self.groups):
            parts = [np.full((self.slots, self.ranks), NOTHING, np.int32) for _ in range(2)]
            yield self._with_moved(group, parts, order[begins[group] : begins[group + 1]])

    def _with_moved(self, group: int, parts: list[Any], flows: Any) -> Rows:
        """The phases of a group with its moved flows put in; these win over what the rule has there."""
        dest, spine = parts
        middle, second = (np.full(dest.shape, NOTHING, np.int32) for _ in range(2))
        source, turn = self.moved.source[flows], np.arange(len(dest))[:, None]
        leaf, slot = np.divmod(self.moved.dest[flows], self.slots)
        dest[:, source] = leaf * self.slots + (slot + turn) % self.slots
        for table, values in ((spine, self.moved.spine), (middle, self.moved.middle), (second, self.moved.second)):
            table[:, source] = values[flows]
        return Rows(group * self.slots, dest, spine, middle, second)


def pack(solution: Phases) -> dict[str, Any]:
    if isinstance(solution, RepairedPhases):
        moved = {f"moved_{key}": _narrow(values) for key, values in vars(solution.moved).items()}
        counts = {"form": "repaired", "slots": solution.slots, "groups": solution.groups}
        return counts | _packed_product(solution.rule) | moved
    if isinstance(solution, ColumnPhases):
        sizes = {name: getattr(solution, name) for name in _SIZES}
        return {"form": "columns"} | sizes | {name: _narrow(values) for name, values in solution.arrays().items()}
    if isinstance(solution, LeafPhases):
        links = {name: _narrow(values.astype(np.int32)) for name, values in packed_links(solution).items()}
        return {"form": "leaves", "length": solution.length} | links
    if isinstance(solution, ProductPhases):
        return {"form": "product"} | _packed_product(solution)
    assert isinstance(solution, PhaseTable)
    packed: dict[str, Any] = {"form": "table", "dest": _narrow(solution.dest), "spine": _narrow(solution.spine)}
    if solution.middle is not None and solution.second is not None:
        packed |= {"middle": _narrow(solution.middle), "second": _narrow(solution.second)}
    return packed


def _packed_product(solution: ProductPhases) -> dict[str, Any]:
    names = ("pattern", "layer_shift", "slot_shift", "column", "spine")
    return {"layers": solution.layers} | {key: _narrow(getattr(solution, key)) for key in names}


def unpack(instance: MLFMInstance, packed: Mapping[str, Any]) -> Phases:
    """Raises ``ValueError`` for data of a wrong kind, shape or range; what the numbers mean is the check's."""
    form = choice(packed, "form", "product", "table", "repaired", "columns", "leaves")
    if form == "table":
        names = ("dest", "spine") + (("middle", "second") if "middle" in packed or "second" in packed else ())
        return PhaseTable(*(_table(packed, key, (None, None)) for key in names))
    if form == "columns":
        return _unpacked_columns(instance, packed)
    if form == "leaves":
        return _unpacked_leaves(instance, packed)
    shifts = (_table(packed, key, (None,), 0) for key in ("pattern", "layer_shift", "slot_shift"))
    tables = (_table(packed, key, (None, None, None)) for key in ("column", "spine"))
    rule = ProductPhases(whole(packed, "layers", 1, MOST), *shifts, *tables)
    if form == "product":
        return rule
    moved = (_table(packed, f"moved_{field.name}", (None,)) for field in fields(Flows))
    counts = whole(packed, "slots", 1, MOST), whole(packed, "groups", 1, MOST)
    if rule.ranks != instance.ranks:  # before anything of its square is made
        raise ValueError(f"the phases are for {rule.ranks} servers, the job has {instance.ranks}")
    return RepairedPhases(rule, *counts, Flows(*moved))


def _unpacked_columns(instance: MLFMInstance, packed: Mapping[str, Any]) -> ColumnPhases:
    layers, columns, slots, length, groups, stride = (whole(packed, name, 1, MOST) for name in _SIZES)
    block = instance.block  # of any other shape, a group's phases might not fit into memory
    sides = [] if block is None else [(block.layers, block.columns, block.servers)]
    if block is not None and block.columns == instance.columns:  # every leaf on its own
        sides.append((1, block.layers * block.columns, block.servers))
    own = (layers, columns, slots) in sides and stride == instance.columns
    if not own or slots * columns * layers != instance.ranks:
        raise ValueError(f"the phases are for {layers} * {columns} * {slots} servers, not for the job's")
    if groups * length > MOST:
        raise ValueError(f"there are more than {MOST} phases")
    names = [field.name for field in fields(ColumnPhases) if field.name not in _SIZES]
    flows = (_table(packed, name, (None,)) for name in names)
    return ColumnPhases(layers, columns, slots, length, groups, stride, *flows)


def _unpacked_leaves(instance: MLFMInstance, packed: Mapping[str, Any]) -> LeafPhases:
    d = instance.d
    if instance.ranks != d * d * (d + 1):
        raise ValueError("the phases are for all servers of the machine, the job has fewer")
    ranks = {"count": 1, "pattern": 2, "order": 2, "joined": 1, "step": 1, "over": 1}
    stored = {
        key: whole_numbers(packed, key, NOTHING if key == "pattern" else 0, MOST, (None,) * number)
        for key, number in ranks.items()
    }
    return unpacked_links(d, whole(packed, "length", 1, d), stored)


def _narrow(values: Int32Array) -> Int32Array:
    """In the smallest signed type that holds them."""
    for kind in (np.int8, np.int16):
        if values.size == 0 or (values.min() >= np.iinfo(kind).min and values.max() <= np.iinfo(kind).max):
            return values.astype(kind)
    return values


def _table(packed: Mapping[str, Any], key: str, shape: tuple[None, ...], least: int = NOTHING) -> Int32Array:
    return whole_numbers(packed, key, least, MOST, shape).astype(np.int32)


def via(instance: MLFMInstance, start: int, spine: int, middle: int, second: int, end: int) -> str:
    """Leaves (``layer.column``) and spines (``column-column``) along a route, e.g. ``0.1 1-3 2.3``."""
    words = [instance.leaf_name(start)]
    if spine >= 0:
        words.append(instance.spine_name(spine))
        if middle >= 0:
            words += [instance.leaf_name(middle), instance.spine_name(second)]
        words.append(instance.leaf_name(end))
    return " ".join(words)


def table(instance: MLFMInstance, solution: Phases) -> pd.DataFrame:
    """Columns ``phase,src,dst,via``; equal texts are stored once. Raises :class:`InputError` beyond ``MAX_ROWS``."""
    import pandas as pd

    if solution.phases * solution.ranks > MAX_ROWS:
        raise InputError(f"the table would have more than {MAX_ROWS} rows")
    names = [instance.server_name(rank) for rank in range(instance.ranks)]
    routes: dict[int, int] = {}
    texts: dict[str, int] = {}  # wrong routes may share one
    columns: list[list[Int32Array]] = [[], [], [], []]
    for rows in solution.rows():
        phase, src = np.nonzero(rows.dest >= 0)
        key, inverse = _route_keys(instance, rows, phase, src)
        for one, parts in zip(*key, strict=True):
            if one not in routes:
                routes[one] = texts.setdefault(via(instance, *parts), len(texts))
        number = np.array([routes[one] for one in key[0]], dtype=np.int32)
        for column, values in zip(
            columns, (phase + rows.first, src, rows.dest[phase, src], number[inverse]), strict=True
        ):
            column.append(values.astype(np.int32))
    whole: list[Any] = [np.concatenate(c) if c else np.zeros(0, np.int32) for c in columns]
    coded: Any = zip(("src", "dst", "via"), whole[1:], (names, names, list(texts)), strict=True)
    text: dict[str, Any] = {key: pd.Categorical.from_codes(codes, categories) for key, codes, categories in coded}
    return pd.DataFrame({"phase": whole[0]} | text)


def _route_keys(instance: MLFMInstance, rows: Rows, phase: Any, src: Any) -> tuple[tuple[Any, Any], Any]:
    """The different routes among some transfers: (whole-number keys, their parts), and each transfer's place."""
    dest = rows.dest[phase, src]
    parts = np.stack(
        [
            instance.server_leaf[src],
            rows.spine[phase, src],
            rows.middle[phase, src],
            rows.second[phase, src],
            instance.server_leaf[dest],
        ],
        axis=1,
    ).astype(np.int64)
    leaves, spines = instance.leaves, len(instance.spine_columns) + 1
    key = parts[:, 0]
    for column, size in ((1, spines), (2, leaves + 1), (3, spines), (4, leaves)):
        key = key * size + parts[:, column] + (column < 4)
    different, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return (different.tolist(), parts[first].tolist()), inverse
