"""Flows between the leaves of a whole machine, as what follows what on its links; the replay names their servers.

A whole machine MLFM(d) has links ``leaf * (d + 1) + column of the spine's other end``, up and down. Every spine has
``2 d`` of each, and what its up-links are joined to in a group is a pattern; few are different. So the flows of 37.9
million transfers are stored in one to three megabytes, where their servers and routes would take 40.

By König every flow then gets its servers (``parts/server_names.py``). In a group no leaf starts or ends more flows than
it has servers, since it has as many cables. No leaf has more flows to another one than servers times runs of slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.mlfm.instance import Block
from synth_models.mlfm.parts.column_phases import NOTHING, ColumnPhases, Rows, some_twice
from synth_models.mlfm.parts.server_names import counted_before, receiving_runs, sending_slots

MOST_CELLS = 40_000_000  # links times groups of a solution that is read


@dataclass(frozen=True)
class LeafPhases:
    """Groups of ``length`` phases of MLFM(d), as :class:`ColumnPhases` of its leaves, whose servers are not stored.

    In a group the flow over an up-link x arrives by down-link ``to[x, group]``, -1 for none. Where ``onto[x, group]``
    is no -1, it goes on over that up-link of the leaf where it arrives. Shapes: (links, groups). Flows inside a leaf
    come in the first groups in which servers of it are idle.
    """

    d: int
    length: int
    to: Int32Array
    onto: Int32Array

    def __post_init__(self) -> None:
        links = self.leaves * (self.d + 1)
        if self.to.ndim != 2 or len(self.to) != links or self.onto.shape != self.to.shape:
            raise ValueError(f"to and onto have shape ({links}, groups)")
        if self.length < 1 or self.d % self.length:
            raise ValueError("slots come in runs as long as groups")

    @property
    def leaves(self) -> int:
        return self.d * (self.d + 1)

    @property
    def groups(self) -> int:
        return int(self.to.shape[1])

    @property
    def phases(self) -> int:
        return self.groups * self.length

    @property
    def ranks(self) -> int:
        return self.leaves * self.d

    def rows(self, block: int = 64) -> Iterator[Rows]:
        yield from self.named.rows(block)

    @cached_property
    def second(self) -> BoolArray:
        """Whether the flow of an up-link has come over another spine, shape (links, groups)."""
        first, group = np.nonzero(self.onto >= 0)
        second = np.zeros(self.to.shape, dtype=bool)
        second[self.onto[first, group], group] = True
        return second

    @cached_property
    def fault(self) -> str | None:
        """Why the flows cannot have servers; None where they can, by König."""
        each = self.d * self.d // self.length
        _, source, target, _ = self._between()
        if np.any(source == target):
            return "a flow ends at the leaf where it began"
        if np.bincount(source * self.leaves + target).max(initial=0) > each:
            return f"a leaf has more than {each} flows to another one"
        if np.any(np.sum(self.d - self._busy.max(axis=0), axis=1) < each):
            return "a leaf has too few idle servers for its own transfers"
        return None

    @cached_property
    def _busy(self) -> IntArray:
        """How many flows every leaf starts and ends in every group, shape (2, leaves, groups)."""
        busy = np.zeros((2, self.leaves, self.groups), dtype=np.int64)
        _ends(self.to, self.onto, self.second, busy, self.d + 1)
        return busy

    @property
    def inside(self) -> tuple[IntArray, IntArray]:
        """Groups and leaves of the flows inside leaves."""
        idle = self.d - self._busy.max(axis=0)
        before = np.cumsum(idle, axis=1) - idle
        taken = np.clip(self.d * self.d // self.length - before, 0, idle)
        leaf, group = np.nonzero(taken)
        return np.repeat(group, taken[leaf, group]), np.repeat(leaf, taken[leaf, group])

    @cached_property
    def named(self) -> ColumnPhases:
        """The flows with servers: leaves take the place of columns, in one layer. There is no :attr:`fault`."""
        columns, leaves, length, groups = self.d + 1, self.leaves, self.length, self.groups
        group, source, target, route = self._between()
        inside = self.inside
        none = np.full(len(inside[0]), NOTHING)
        group, source, target = (
            np.concatenate(part) for part in ((group, inside[0]), (source, inside[1]), (target, inside[1]))
        )
        spine, middle, second = (np.concatenate([part, none]) for part in route)
        block, runs = Block(layers=1, columns=leaves, servers=self.d), self.d // length
        copy = counted_before(source * leaves + target) // self.d
        slot = sending_slots(block, length, groups, group, source, target * runs + copy)
        run = receiving_runs(block, length, groups, group, target, source * self.d + slot)
        first = run * length + counted_before((group * leaves + target) * runs + run)
        arrays = (group, source, slot, target, first, np.zeros_like(group), spine, middle, second)
        return ColumnPhases(1, leaves, self.d, length, groups, columns, *(part.astype(np.int32) for part in arrays))

    def _between(self) -> tuple[IntArray, IntArray, IntArray, tuple[IntArray, IntArray, IntArray]]:
        """Groups, sources and targets of the flows between leaves, and their routes: spine, leaf between, spine."""
        columns = self.d + 1
        number = spine_numbers(columns)
        link, group = np.nonzero((self.to >= 0) & ~self.second)
        source, last = link // columns, self.to[link, group].astype(np.int64)
        onto = self.onto[link, group].astype(np.int64)
        two = onto >= 0
        middle, second = np.full(len(link), NOTHING), np.full(len(link), NOTHING)
        middle[two] = last[two] // columns
        second[two] = number[middle[two] % columns, onto[two] % columns]
        last[two] = self.to[onto[two], group[two]]
        return group, source, last // columns, (number[source % columns, link % columns], middle, second)


def spine_numbers(columns: int) -> IntArray:
    """The place of every two columns among the spines, shape (columns, columns), -1 on the diagonal."""
    number = np.full((columns, columns), NOTHING, dtype=np.int64)
    a, b = np.triu_indices(columns, 1)
    number[a, b] = number[b, a] = np.arange(len(a))
    return number


def spine_links(a: int, c: int, leaves: int, columns: int) -> IntArray:
    """The up-links of a spine, or its down-links."""
    first = np.arange(0, leaves, columns)
    return np.concatenate([(first + a) * columns + c, (first + c) * columns + a])


@jit
def _ends(to: Int32Array, onto: Int32Array, second: BoolArray, busy: IntArray, columns: int) -> None:
    """How many flows every leaf starts and ends in every group."""
    for link in range(to.shape[0]):
        for g in range(to.shape[1]):
            if to[link, g] >= 0:
                if not second[link, g]:
                    busy[0, link // columns, g] += 1
                if onto[link, g] < 0:
                    busy[1, to[link, g] // columns, g] += 1


def packed_links(phases: LeafPhases) -> dict[str, AnyIntArray]:
    """``to`` and ``onto`` in short: see models/formats/mlfm.md, form ``leaves``."""
    columns = phases.d + 1
    patterns, order = [], np.empty((len(_spines(columns)), phases.groups), dtype=np.int64)
    for spine, (a, b) in enumerate(_spines(columns)):
        links = spine_links(a, b, phases.leaves, columns)
        place = np.full(len(phases.to) + 1, NOTHING)
        place[links] = np.arange(len(links))
        found, at = np.unique(place[phases.to[links].T], axis=0, return_inverse=True)
        patterns.append(found)
        order[spine] = at.reshape(-1)
    group, first = np.nonzero(phases.onto.T >= 0)
    fresh = np.diff(group, prepend=-1) != 0
    return {
        "count": np.array([len(found) for found in patterns]),
        "pattern": np.concatenate(patterns),
        "order": order,
        "joined": np.bincount(group, minlength=phases.groups),
        "step": np.where(fresh, first, np.diff(first, prepend=0)),
        "over": phases.onto[first, group] % columns,
    }


def unpacked_links(d: int, length: int, stored: Mapping[str, IntArray]) -> LeafPhases:
    """Solution of :func:`packed_links`; the arrays have the right numbers of dimensions and no numbers below their
    least. Raises ``ValueError`` where they do not belong together, and where no servers can be named."""
    columns, leaves = d + 1, d * (d + 1)
    spines, groups, links = _spines(columns), stored["order"].shape[1], leaves * columns
    if groups * links > MOST_CELLS:
        raise ValueError(f"links times groups are more than {MOST_CELLS}")
    ends, pattern = np.cumsum(stored["count"]), stored["pattern"]
    if len(ends) != len(spines) or len(stored["order"]) != len(spines) or pattern.shape != (ends[-1], 2 * d):
        raise ValueError(f"there are {len(spines)} spines, and {2 * d} up-links of each in a pattern")
    if pattern.max(initial=0) >= 2 * d or np.any(stored["order"] >= stored["count"][:, None]):
        raise ValueError("a pattern, or a link in one, does not exist")
    placed = np.sort(pattern, axis=1)
    if np.any((placed[:, 1:] == placed[:, :-1]) & (placed[:, 1:] >= 0)):
        raise ValueError("a pattern uses a down-link twice")
    to, onto = (np.full((links, groups), NOTHING, dtype=np.int32) for _ in range(2))
    for (a, b), end, count, order in zip(spines, ends, stored["count"], stored["order"], strict=True):
        mine = spine_links(a, b, leaves, columns)
        to[mine] = np.append(mine, NOTHING)[pattern[end - count : end][order]].T
    _join(to, onto, stored, columns)
    phases = LeafPhases(d, length, to, onto)
    if phases.fault is not None:
        raise ValueError(phases.fault)
    return phases


def _join(to: Int32Array, onto: Int32Array, stored: Mapping[str, IntArray], columns: int) -> None:
    """Write to ``onto`` where first halves go on. Raises ``ValueError`` where a half is missing or stands in two."""
    joined, step, over = stored["joined"], stored["step"], stored["over"]
    if joined.shape != (to.shape[1],) or len(step) != len(over) or int(joined.sum()) != len(step):
        raise ValueError("joined says how many flows of every group have a step and an over")
    group = np.repeat(np.arange(len(joined)), joined)
    total = np.append(0, np.cumsum(step))
    first = total[1:] - np.repeat(total[np.cumsum(joined) - joined], joined)
    fresh = np.diff(group, prepend=-1) != 0
    if first.max(initial=0) >= len(to) or over.max(initial=0) >= columns or np.any((step == 0) & ~fresh):
        raise ValueError("a first half does not exist")
    onward = to[first, group] // columns * columns + over
    if np.any(to[first, group] < 0) or np.any(to[onward, group] < 0):
        raise ValueError("a flow over two spines lacks a half")
    onto[first, group] = onward
    halves = np.concatenate([first, onward]) * len(joined) + np.concatenate([group, group])
    if some_twice(halves):
        raise ValueError("a half stands in two flows")


def _spines(columns: int) -> list[tuple[int, int]]:
    """The two columns of every spine, in the order of their numbers."""
    return list(combinations(range(columns), 2))
