"""What is left of a schedule without its times: routes, who waits for whom, and the order on every link.

An order gives start times (:meth:`Order.timed`), the best sizes of the pieces (:mod:`.sizes`), and the same with
pieces cut in two (:meth:`Order.halved`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers

Pair = tuple[int, int, int]  # a transfer, one that comes later, and a leaf of the one whose arrival counts


@dataclass(frozen=True, eq=False)
class Order:
    """``needs``: (i, j, leaf of i): transfer j starts when i is at that leaf, or later. ``misses``: (i, j, leaf of j):
    j comes there after i has started. ``before``: (i, j, leaf of j), i adds and j copies: the same, but after i has
    arrived. ``turns``: the transfers of every link and group, in order."""

    problem: Problem
    rows: tuple[Row, ...]
    needs: tuple[Pair, ...]
    misses: tuple[Pair, ...]
    before: tuple[tuple[int, int, int, int], ...]
    turns: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, problem: Problem, rows: Sequence[Row]) -> Order:
        """Of a valid schedule."""
        came: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for i, row in enumerate(rows):
            found = problem.timing(row.route, row.piece, False)
            for leaf, (v, _) in enumerate(problem.routes.all[row.route].leaves):
                came.setdefault((row.piece, v), []).append((row.starts[0] + found.arrival[leaf], i, leaf))
        needs: list[Pair] = []
        misses: list[Pair] = []
        for j, row in enumerate(rows):
            source = problem.routes.all[row.route].source
            there = came.get((row.piece, source), [])
            ready = [(when, i, leaf) for when, i, leaf in there if when <= row.starts[0]]
            if problem.origin[row.piece] >= 0:
                needs += [(i, j, leaf) for _, i, leaf in sorted(ready)[:1] if source != problem.origin[row.piece]]
                continue
            needs += [(i, j, leaf) for _, i, leaf in ready]
            misses += [(j, i, leaf) for when, i, leaf in there if when > row.starts[0] and row.adds]
        before = tuple(
            (i, k, j, leaf)
            for several in came.values()
            for _, i, k in several
            for _, j, leaf in several
            if rows[i].adds and not rows[j].adds
        )
        return cls(problem, tuple(rows), tuple(needs), tuple(misses), before, _turns(problem, rows))

    def spans(self, i: int, resource: int) -> list[tuple[int, int]]:
        """When transfer i occupies a resource, from its start."""
        problem, row = self.problem, self.rows[i]
        found = problem.timing(row.route, row.piece, False)
        return [
            (found.offset[k], found.offset[k] + found.duration[k])
            for k, e in enumerate(problem.routes.all[row.route].links)
            if resource in problem.resources_of[e]
        ]

    def arrival(self, i: int, leaf: int) -> int:
        """Ticks from the start of transfer i until it is at a leaf."""
        row = self.rows[i]
        return self.problem.timing(row.route, row.piece, False).arrival[leaf]

    def edges(self) -> list[tuple[int, int, int]]:
        """Rows (i, j, ticks): j starts at least so many ticks after i."""
        found = [(i, j, self.arrival(i, leaf)) for i, j, leaf in self.needs]
        found += [(i, j, 1 - self.arrival(j, leaf)) for i, j, leaf in self.misses]
        found += [(i, j, 1 + self.arrival(i, k) - self.arrival(j, leaf)) for i, k, j, leaf in self.before]
        for resource, turn in self.turns.items():
            spans = [self.spans(i, resource) for i in turn]
            for a in range(len(turn) - 1):
                apart = max(end - begin for _, end in spans[a] for begin, _ in spans[a + 1])
                found.append((turn[a], turn[a + 1], apart))
        return found

    def timed(self) -> list[Row] | None:
        """Everything as early as the order allows; None if it allows nothing."""
        count, edges = len(self.rows), self.edges()
        start = np.zeros(count, dtype=np.int64)
        if edges:
            tail, head, ticks = (np.array(column, dtype=np.int64) for column in zip(*edges, strict=True))
            for _ in range(count + 1):
                new = start.copy()
                np.maximum.at(new, head, start[tail] + ticks)
                if np.array_equal(new, start):
                    break
                start = new
            else:
                return None
        return [replace(row, starts=(int(s),)) for row, s in zip(self.rows, start, strict=True)]

    def listed(self, priority: Sequence[int]) -> list[Row]:
        """Times by list scheduling: a link takes the most urgent of what is there, whatever the order said. Not for
        sums that miss something."""
        problem = self.problem
        before: list[list[int]] = [[] for _ in self.rows]
        for i, j, _ in self.needs:
            before[j].append(i)
        routes = [problem.routes.all[row.route].links for row in self.rows]
        pieces = [row.piece for row in self.rows]
        transfers = Transfers.of(
            problem.block, problem.size, pieces, routes, before, priority, [row.adds for row in self.rows]
        )
        schedule = timed(problem.instance, transfers, problem.ticks)
        start = schedule.start
        if len(start) > len(self.rows):  # hop by hop
            start = start[transfers.route_start[:-1]]
        return [replace(row, starts=(int(s),)) for row, s in zip(self.rows, start, strict=True)]

    def with_sizes(self, size: Sequence[int]) -> Order:
        """The same with other sizes of the pieces."""
        problem = self.problem
        return replace(self, problem=Problem.of(problem.instance, problem.routes, problem.block, size))

    def halved(self, most: int) -> Order:
        """Every piece of two bytes or more in two, one behind the other; the largest ones only, where all would be over
        ``most`` transfers."""
        problem = self.problem
        block: list[int] = []
        size: list[int] = []
        first: list[int] = []
        parts = self._parts(most)
        for b, n, count in zip(problem.block, problem.size, parts, strict=True):
            first.append(len(size))
            block += [b] * count
            size += [n - n // 2, n // 2] if count == 2 else [n]
        number: list[list[int]] = []
        rows: list[Row] = []
        for row in self.rows:
            number.append(list(range(len(rows), len(rows) + parts[row.piece])))
            rows += [replace(row, piece=first[row.piece] + k) for k in range(parts[row.piece])]

        def both(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
            return tuple((a, b, leaf) for i, j, leaf in pairs for a, b in zip(number[i], number[j], strict=True))

        before = tuple((a, k, b, x) for i, k, j, x in self.before for a, b in zip(number[i], number[j], strict=True))
        turns = {r: tuple(a for i in turn for a in number[i]) for r, turn in self.turns.items()}
        finer = Problem.of(problem.instance, problem.routes, block, size)
        return Order(finer, tuple(rows), both(self.needs), both(self.misses), before, turns)

    def _parts(self, most: int) -> list[int]:
        """Of every piece, in how many :meth:`halved` cuts it."""
        size, room = self.problem.size, most - len(self.rows)
        parts = [1] * len(size)
        moves = np.bincount([row.piece for row in self.rows], minlength=len(size)).tolist()
        for p in sorted(range(len(size)), key=lambda p: -size[p]):
            if size[p] > 1 and moves[p] <= room:
                parts[p] = 2
                room -= moves[p]
        return parts


def _turns(problem: Problem, rows: Sequence[Row]) -> dict[int, tuple[int, ...]]:
    when: dict[int, dict[int, int]] = {}
    for i, row in enumerate(rows):
        found = problem.timing(row.route, row.piece, False)
        for e, offset in zip(problem.routes.all[row.route].links, found.offset, strict=True):
            for r in problem.resources_of[e]:
                at = when.setdefault(r, {})
                at[i] = min(at.get(i, row.starts[0] + offset), row.starts[0] + offset)
    return {r: tuple(sorted(at, key=lambda i: (at[i], i))) for r, at in when.items()}
