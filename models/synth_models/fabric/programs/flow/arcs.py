"""The graph a flow runs on: the machine's links, with switches told apart by the groups a transfer already holds.

A group carries one transfer at a time, but one transfer may cross two links of a group at once (into a bus and out of
it). Bytes that come through a switch over a group's link therefore cost that group nothing more on their way out over
another of its links of at least the same bandwidth. Such switches are split into states, one per set of groups held;
everywhere else an arc is a link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import IntArray
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.flow.tuned import MOST_STATES


@dataclass(frozen=True, eq=False)
class Arcs:
    """States and arcs. State v < ``machine.nodes`` is node v (for a split switch: with no group held).

    ``tail``, ``head`` (states) and ``link``: shape (arcs,). ``use``: shape (resources, arcs), seconds per byte;
    resource e < links is link e, resource links + g is group g. ``exact`` is False where splitting was given up.
    """

    machine: Machine
    states: int
    tail: IntArray
    head: IntArray
    link: IntArray
    use: csr_array[Any]
    exact: bool = True

    @cached_property
    def resources(self) -> int:
        """Links and groups."""
        return self.machine.links + len(self.machine.group_names)


def arcs_of(machine: Machine, mode: str) -> Arcs:
    """The arcs of a machine whose switches forward in this way (where they store and forward, every link is a transfer
    of its own and uses its group in full)."""
    twice = _crossed_twice(machine) if mode == "cut_through" else set[int]()
    if not twice:
        return _plain(machine, True)
    return _split(machine, twice) or _plain(machine, False)


def _plain(machine: Machine, exact: bool) -> Arcs:
    net, links = machine.network, machine.links
    every = np.arange(links, dtype=np.int64)
    grouped = np.flatnonzero(machine.group >= 0)
    cost = 1.0 / net.bandwidth
    use = csr_array(
        (
            np.concatenate([cost, cost[grouped]]),
            (np.concatenate([every, links + machine.group[grouped]]), np.concatenate([every, grouped])),
        ),
        shape=(links + len(machine.group_names), links),
    )
    return Arcs(machine, machine.nodes, net.src.astype(np.int64), net.dst.astype(np.int64), every, use, exact)


def _crossed_twice(machine: Machine) -> set[int]:
    """Groups of which one transfer can cross two links: from the head of one, over switches, to the tail of another."""
    net, found = machine.network, set[int]()
    out: dict[int, list[int]] = {}
    for e, u in enumerate(net.src.tolist()):
        out.setdefault(u, []).append(e)
    head, group, is_switch = net.dst.tolist(), machine.group.tolist(), machine.is_switch.tolist()
    for first in np.flatnonzero((machine.group >= 0) & machine.is_switch[net.dst]).tolist():
        g = group[first]
        if g in found:
            continue
        seen, stack = {head[first]}, [head[first]]
        while stack:
            for e in out.get(stack.pop(), ()):
                if group[e] == g and e != first:
                    found.add(g)
                if is_switch[head[e]] and head[e] not in seen:
                    seen.add(head[e])
                    stack.append(head[e])
    return found


def _split(machine: Machine, twice: set[int]) -> Arcs | None:
    net, links = machine.network, machine.links
    out: dict[int, list[int]] = {}
    for e, u in enumerate(net.src.tolist()):
        out.setdefault(u, []).append(e)
    heads, groups = net.dst.tolist(), machine.group.tolist()
    seconds = (1.0 / net.bandwidth).tolist()
    Held = frozenset[tuple[int, float]]
    number: dict[tuple[int, Held], int] = {(v, frozenset()): v for v in range(machine.nodes)}
    stack = list(number)
    rows: list[tuple[int, int, int]] = []
    uses: list[tuple[int, int, float]] = []
    while stack:
        node, held = stack.pop()
        before = dict(held)
        for e in out.get(node, ()):
            g, after = groups[e], held
            if g >= 0:
                uses.append((links + g, len(rows), max(0.0, seconds[e] - before.get(g, 0.0))))
            if machine.is_switch[heads[e]]:
                if g in twice:
                    after = frozenset({**before, g: max(before.get(g, 0.0), seconds[e])}.items())
                state = (heads[e], after)
            else:
                state = (heads[e], frozenset())
            if state not in number:
                if len(number) - machine.nodes >= MOST_STATES:
                    return None
                number[state] = len(number)
                stack.append(state)
            uses.append((e, len(rows), seconds[e]))
            rows.append((number[node, held], number[state], e))
    tail, head, link = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    row, column, value = zip(*uses, strict=True)
    use = csr_array((value, (row, column)), shape=(links + len(machine.group_names), len(rows)))
    return Arcs(machine, len(number), tail, head, link, use)
