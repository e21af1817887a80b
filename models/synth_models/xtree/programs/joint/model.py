"""Allreduce as one joint program: both halves share the links (a program file: it builds and solves nothing).

Every chunk is reduced along a tree of its own into a root and spread from there along another; the program chooses
the roots, both trees and all timesteps. The root may have a *mate*: in the step in which the mate's partial sum
completes the root's, the root's may complete the mate's, and both spread the sum from then on.

Restriction: such rooted schedules only. At a horizon whose links leave no transfer to spare it loses nothing, because
a schedule that uses only 2(N-1) transfers for a chunk, the least possible, is of this form. Proof: let r be among the
first nodes to be complete, in step t. N-1 transfers form an in-tree that brings everything to r; the other N-1 nodes
receive exactly once outside it, and that transfer completes them. Whoever becomes complete after t can get a copy. If
u != r becomes complete in step t too, the sender w of its last transfer held, as r and u did, only what the in-tree
had brought: w had all that u lacked. r's own contribution has not left r (in the in-tree only others send), so w = r,
and r held the complement of u's sum. A second such node u' would have held the same set as u, each the other's
contribution, though in-tree paths run one way; so there is at most one mate. With transfers to spare, infeasibility
is a statement about rooted schedules only.

=================  ==================  ============================================================  ====
symbol             code                index set                                                     unit
=================  ==================  ============================================================  ====
y[k,a,t]           ``up``              chunk, arc, timestep: partial sum sent                        0/1
x[k,a,t]           ``down``            chunk, arc, timestep: complete sum sent                       0/1
r[k,v]             ``root``            chunk, node                                                   0/1
s[k,v,t]           ``settled``         chunk, node, timestep: v is the root or has sent its sum      0/1
b[k,v,t]           ``start``           chunk, node, timestep: root v has everything, first so in t   0/1
m[k,a,t]           ``mate``            chunk, arc out of the root, timestep: the mate's last addend  0/1
h[k,v,t]           ``held``            chunk, node, timestep: v holds the complete sum               0/1
c[a]               ``capacity``        arc                                                           chunks
=================  ==================  ============================================================  ====

    (1) one root          sum_v r[k,v] = 1
    (2) link capacity     sum_k y[k,a,t] + x[k,a,t] + m[k,a,t] <= c[a]
    (3) one partial sum   s[k,v,t-1] + sum_{a out of v} y[k,a,t] = s[k,v,t],  s[k,v,0] = r[k,v],  s[k,v,T] = 1
    (4) sum is complete   y[k,(u,v),t] + s[k,v,t] <= 1 + r[k,v]     (nothing arrives after v has sent)
    (5) root is complete  b[k,v,t] <= s[k,w,t] for all w;  sum_t b[k,v,t] = r[k,v]
    (6) conservation      h[k,v,t-1] + b[k,v,t] + sum_{a into v} x[k,a,t] + m[k,a,t] = h[k,v,t],  h[k,v,T] = 1
    (7) causality         x[k,(u,v),t] <= h[k,u,t-1]
    (8) mates             m[k,(u,v),t] <= r[k,u],  b[k,u,t],  sum_{a from v to u} y[k,a,t],  s[k,w,t-1] for w not u, v
    (9) symmetry          sum_v v r[k,v] <= sum_v v r[k+1,v]        (all N*C chunks are interchangeable)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.rows import lists_by
from synth.network import Network
from synth.schedule import Schedule
from synth.solvers.program import Program
from synth.solvers.rows import Row, ones
from synth_models.xtree.programs.time_expansion import links_taken

Indexed = tuple[Any, Row]
"""A row and its index."""


@dataclass
class JointModel:
    """A 0/1 program as rows over variable numbers, which the method hands to Pyomo or CP-SAT.

    ``up``, ``down`` and ``mate`` have shape (chunks, arcs, T), the others (chunks, nodes, T) or (chunks, nodes);
    entries are variable numbers, step t at index t - 1. They are lists, which single numbers come out of faster.
    """

    network: Network
    chunks: int
    horizon: int
    program: Program = field(default_factory=Program)

    def __post_init__(self) -> None:
        tail, head, capacity, _ = self.network.arcs
        self.tail, self.head, self.capacity = tail.tolist(), head.tolist(), capacity.tolist()
        nodes, arcs = self.network.nodes, len(self.tail)
        self.out_of, self.into = lists_by(tail, nodes), lists_by(head, nodes)
        self.up = self._new("up", "k a t", self.chunks, arcs, self.horizon)
        self.down = self._new("down", "k a t", self.chunks, arcs, self.horizon)
        self.mate = self._new("mate", "k a t", self.chunks, arcs, self.horizon)
        self.root = self._new("root", "k v", self.chunks, nodes)
        self.settled = self._new("settled", "k v t", self.chunks, nodes, self.horizon)
        self.start = self._new("start", "k v t", self.chunks, nodes, self.horizon)
        self.held = self._new("held", "k v t", self.chunks, nodes, self.horizon)
        one_root(self)
        link_capacity(self)
        for k in range(self.chunks):
            for v in range(nodes):
                one_partial_sum(self, k, v)
                root_is_complete(self, k, v)
                conservation(self, k, v)
            for a in range(arcs):
                sum_is_complete(self, k, a)
                causality(self, k, a)
                mates(self, k, a)
        order_of_roots(self)

    def _new(self, name: str, letters: str, *shape: int) -> Any:
        """The numbers of new variables, nested lists of this shape."""
        numbers = np.array(self.program.variables(int(np.prod(shape)))).reshape(shape)
        self.program.names.append((name, letters, _Indexed(numbers)))
        return numbers.tolist()

    def schedule(self, chosen: BoolArray) -> Schedule:
        """The schedule of a point, given as a truth value per variable: on every arc sums that add come first."""
        adding = np.argwhere(chosen[np.array(self.up)] | chosen[np.array(self.mate)])
        copied = np.argwhere(chosen[np.array(self.down)])
        chunk, arc, timestep = np.concatenate([adding, copied]).T
        adds = np.arange(len(chunk)) < len(adding)
        link = links_taken(self.network, arc, timestep)
        order = np.lexsort((adds, chunk, link, timestep))
        return Schedule.of(timestep[order] + 1, link[order], chunk[order], adds[order])


class _Indexed(Mapping[tuple[int, ...], int]):
    """An array of variables by index, the last of three counted from 1 as timesteps are."""

    def __init__(self, numbers: IntArray) -> None:
        self.numbers, self.first = numbers, (0, 0, 1)[: numbers.ndim]

    def __getitem__(self, index: tuple[int, ...]) -> int:
        return int(self.numbers[tuple(i - first for i, first in zip(index, self.first, strict=True))])

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(*(range(first, first + n) for first, n in zip(self.first, self.numbers.shape, strict=True)))

    def __len__(self) -> int:
        return int(self.numbers.size)


def one_root(model: JointModel) -> None:
    """(1): every chunk has one root."""
    model.program.add("one_root", "k", ((k, (ones(roots), "==", 1)) for k, roots in enumerate(model.root)))


def link_capacity(model: JointModel) -> None:
    """(2): partial and complete sums share the links."""
    rows: list[Indexed] = []
    for a, capacity in enumerate(model.capacity):
        for t in range(model.horizon):
            users = [sent[k][a][t] for sent in (model.up, model.down, model.mate) for k in range(model.chunks)]
            rows.append(((a, t + 1), (ones(users), "<=", capacity)))
    model.program.add("link_capacity", "a t", rows)


def one_partial_sum(model: JointModel, k: int, v: int) -> None:
    """(3): every node but the root sends its partial sum once."""
    sends = [model.up[k][a] for a in model.out_of[v]]
    settled = [model.root[k][v], *model.settled[k][v]]
    rows: list[Indexed] = []
    for t in range(model.horizon):
        sent = ones([settled[t], *[up[t] for up in sends]])
        rows.append(((k, v, t + 1), ([*sent, (-1, settled[t + 1])], "==", 0)))
    rows.append(((k, v, "end"), (ones(settled[-1:]), "==", 1)))
    model.program.add("one_partial_sum", "k v t", rows)


def sum_is_complete(model: JointModel, k: int, a: int) -> None:
    """(4): what arrives at v in step t was not missing from the sum that v sent in step t or before."""
    v = model.head[a]
    rows: list[Indexed] = []
    for t, (up, settled) in enumerate(zip(model.up[k][a], model.settled[k][v], strict=True), 1):
        rows.append(((k, a, t), ([(1, up), (1, settled), (-1, model.root[k][v])], "<=", 1)))
    model.program.add("sum_is_complete", "k a t", rows)


def root_is_complete(model: JointModel, k: int, v: int) -> None:
    """(5): the root has the sum once everybody else has sent."""
    once: Row = [*ones(model.start[k][v]), (-1, model.root[k][v])], "==", 0
    model.program.add("root_is_complete", "k v", [((k, v), once)])
    rows: list[Indexed] = []
    for w, settled in enumerate(model.settled[k]):
        if w != v:
            for t, (start, sent) in enumerate(zip(model.start[k][v], settled, strict=True), 1):
                rows.append(((k, v, w, t), _implies(start, sent)))
    model.program.add("root_is_complete", "k v w t", rows)


def conservation(model: JointModel, k: int, v: int) -> None:
    """(6): every node gets the complete sum exactly once, the root by completing it."""
    arriving = [sent[k][a] for sent in (model.down, model.mate) for a in model.into[v]]
    held = model.held[k][v]
    rows: list[Indexed] = []
    for t in range(model.horizon):
        arrivals = [model.start[k][v][t], *[sent[t] for sent in arriving]]
        before = held[t - 1 : t] if t else []
        rows.append(((k, v, t + 1), ([*ones(arrivals + before), (-1, held[t])], "==", 0)))
    rows.append(((k, v, "end"), (ones(held[-1:]), "==", 1)))
    model.program.add("conservation", "k v t", rows)


def causality(model: JointModel, k: int, a: int) -> None:
    """(7): a complete sum leaves a node only in a later timestep than it got there."""
    down, held = model.down[k][a], model.held[k][model.tail[a]]
    rows: list[Indexed] = [((k, a, 1), (ones(down[:1]), "==", 0))]
    for t in range(1, model.horizon):
        rows.append(((k, a, t + 1), _implies(down[t], held[t - 1])))
    model.program.add("causality", "k a t", rows)


def mates(model: JointModel, k: int, a: int) -> None:
    """(8): the root completes its mate in the step in which the mate completes the root, all others having sent."""
    u, v = model.tail[a], model.head[a]
    back = [model.up[k][b] for b in model.into[u] if model.tail[b] == v]
    others = [(w, settled) for w, settled in enumerate(model.settled[k]) if w not in (u, v)]
    rows: list[Indexed] = []
    for t, mate in enumerate(model.mate[k][a]):
        rows.append(((k, a, t + 1, "root"), _implies(mate, model.root[k][u])))
        rows.append(((k, a, t + 1, "start"), _implies(mate, model.start[k][u][t])))
        rows.append(((k, a, t + 1, "up"), _implies(mate, *[up[t] for up in back])))
        for w, settled in others:
            rows.append(((k, a, t + 1, w), _implies(mate, settled[t - 1]) if t else _implies(mate)))
    model.program.add("mates", "k a t w", rows)


def order_of_roots(model: JointModel) -> None:
    """(9): any schedule's chunks can be renumbered so that their roots do not decrease."""
    rows: list[Indexed] = []
    for k in range(model.chunks - 1):
        mine = list(enumerate(model.root[k]))
        theirs = [(-v, variable) for v, variable in enumerate(model.root[k + 1])]
        rows.append((k, (mine + theirs, "<=", 0)))
    model.program.add("order_of_roots", "k", rows)


def _implies(variable: int, *others: int) -> Row:
    """Where ``variable`` is 1 one of the others is; without others it is 0."""
    return [(1, variable), *[(-1, other) for other in others]], "<=", 0
