"""Phases as rows, and flows in groups of phases, the form in which servers of flows are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.arrays import Int32Array, IntArray

NOTHING = -1


@dataclass(frozen=True)
class Rows:
    """Some consecutive phases from ``first`` on. All arrays have shape (phases, ranks).

    ``dest`` is the rank that each rank sends to, -1 when it is idle; the others are the route's parts, -1 when absent.
    """

    first: int
    dest: Int32Array
    spine: Int32Array
    middle: Int32Array
    second: Int32Array


@dataclass(frozen=True)
class ColumnPhases:
    """Flows of a block whose rank ``(i * columns + j) * slots + k`` is server (i, j, k); all layers i make the same.

    ``length`` phases in a row are a group, and so many slots in a row a run of slots. In a group's first phase server
    (i, ``source``, ``slot``) sends to (i + ``shift``, ``target``, ``first``), layers cyclically, in the next ones to
    the next slots of the run, cyclically too, always over ``spine`` and, if it crosses two, leaf (i, ``middle``) and
    ``second``. Leaves are numbered with ``stride`` columns a layer, those of the machine. All arrays have shape (F,),
    -1 where there is none. Where the block has all columns of the machine, its leaves may stand as the ``columns`` of
    one layer.
    """

    layers: int
    columns: int
    slots: int
    length: int
    groups: int
    stride: int
    group: Int32Array
    source: Int32Array
    slot: Int32Array
    target: Int32Array
    first: Int32Array
    shift: Int32Array
    spine: Int32Array
    middle: Int32Array
    second: Int32Array

    def __post_init__(self) -> None:
        if any(values.shape != self.group.shape or values.ndim != 1 for values in self.arrays().values()):
            raise ValueError("flows are lists of one length")
        if self.length < 1 or self.slots % self.length:
            raise ValueError("slots come in runs as long as groups")
        ends = {"group": self.groups, "source": self.columns, "target": self.columns, "shift": self.layers}
        for name, most in (ends | {"slot": self.slots, "first": self.slots}).items():
            values = getattr(self, name)
            if values.size and not 0 <= values.min() <= values.max() < most:
                raise ValueError(f"a flow's {name} does not exist")
        key = (self.group.astype(np.int64) * self.columns + self.source) * self.slots + self.slot
        if some_twice(key):
            raise ValueError("a server sends two flows in one group")

    def arrays(self) -> dict[str, Int32Array]:
        """The columns of the flows by name."""
        return {name: values for name, values in vars(self).items() if isinstance(values, np.ndarray)}

    @property
    def phases(self) -> int:
        return self.groups * self.length

    @property
    def ranks(self) -> int:
        return self.layers * self.columns * self.slots

    def rows(self, block: int = 64) -> Iterator[Rows]:
        order = np.argsort(self.group, kind="stable")
        begins = np.searchsorted(self.group[order], np.arange(self.groups + 1))
        turn, layer = np.arange(self.length)[:, None, None], np.arange(self.layers)[None, :, None]
        for group in range(self.groups):
            flows = order[begins[group] : begins[group + 1]]
            size = (self.length, self.layers, self.columns, self.slots)
            dest, spine, middle, second = (np.full(size, NOTHING, np.int32) for _ in range(4))
            at = (slice(None), slice(None), self.source[flows], self.slot[flows])
            leaf = (layer + self.shift[flows]) % self.layers * self.columns + self.target[flows]
            run, place = np.divmod(self.first[flows], self.length)
            dest[at] = leaf * self.slots + run * self.length + (place + turn) % self.length
            spine[at], second[at] = self.spine[flows], self.second[flows]
            over = self.middle[flows]
            middle[at] = np.where(over < 0, NOTHING, layer * self.stride + over)
            tables = (part.reshape(self.length, self.ranks) for part in (dest, spine, middle, second))
            yield Rows(group * self.length, *tables)


def some_twice(values: IntArray) -> bool:
    """Whether a number stands there twice. Of many millions, numpy's ``unique`` takes ten times as long."""
    ordered = np.sort(values)
    return bool(np.any(ordered[1:] == ordered[:-1]))
