"""Chunks that are spread from one rank to all: SCCL's program, its equations one function each.

Cai et al., PPoPP 2021, section 3.3, for allgather and broadcast, and by reversal for reduce-scatter and reduce. SCCL
asks an SMT solver with a time of arrival ``time(c, n)`` and a flag ``snd(n, c, n')``; here both are one 0/1 variable a
chunk, arc and step, so that SAT-based and linear solvers take the same rows.

| paper | here | index | unit |
|---|---|---|---|
| c | ``i`` | chunks, each with its origin | – |
| n, n' | ``tail``, ``head`` of arc ``e`` | ranks | – |
| snd, time | ``send[i, e, s]`` | 1 if chunk i crosses arc e in step s | – |
| r_s | ``rounds[s]`` | steps | rounds |
| b(L) | ``capacity[e]`` | arcs; links from one rank to another add up | chunks a round |
| S, R | ``steps``, ``total`` | – | steps, rounds |

    (1) received once    sum_{e into v, s} send[i,e,s] + root[i,v] = 1 (<= 1 where v is no member), sum_v root[i,v] = 1
    (2) sent when there  send[i,(u,v),s] <= sum_{e into u, t < s} send[i,e,t] + root[i,u]
    (3) arc capacity    sum_i send[i,e,s] <= capacity[e] rounds[s]
    (4) all rounds       sum_s rounds[s] = R
    (5) order of chunks  sum_{e out of the origin, s} code(e) (send[i,e,s] - send[i-1,e,s]) <= 0

Deviations: arcs that a chunk cannot reach in time have no variable; ``root`` lets the program choose a chunk's origin
(an allreduce's pieces have none of their own). A symmetry is broken by :func:`order_of_chunks`, which can be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.solvers.program import Program
from synth.solvers.rows import Row, ones
from synth.time_expanded.rows import by_place_and_time, over
from synth.time_expanded.windows import TimedIndex, Windows, on_arcs
from synth_peers.sccl.programs.rank_arcs import RankArcs

Send = tuple[int, int, int]
"""Step, chunk, arc."""


@dataclass
class Trees:
    """The variables: ``send[i, e, s]``, ``root[i, v]`` (only for chunks of free origin), ``rounds[s]``."""

    arcs: RankArcs
    origin: Sequence[int | None]
    members: Sequence[int]
    steps: int
    total: int
    program: Program = field(default_factory=Program)
    send: dict[TimedIndex, int] = field(default_factory=dict)
    root: dict[tuple[int, int], int] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)

    def sends(self, value: Sequence[int]) -> list[Send]:
        """What a point says is sent, without what brings a chunk to a rank that neither wants it nor sends it on."""
        found = sorted((s, i, e) for (i, e, s), x in self.send.items() if value[x])
        return useful(self.arcs, self.members, found)


def build(
    arcs: RankArcs, origin: Sequence[int | None], members: Sequence[int], steps: int, total: int, ordered: bool = True
) -> Trees:
    """The program: can every chunk i get from ``origin[i]`` (None: from any member) to all members in ``steps`` steps
    and ``total`` rounds? Calls no solver."""
    trees = Trees(arcs, origin, members, steps, total)
    variables(trees)
    program = trees.program
    program.add("received_once", "i v", received_once(trees))
    program.add("sent_when_there", "i e s", sent_when_there(trees))
    program.add("arc_capacity", "e s", arc_capacity(trees))
    program.add("all_rounds", "", all_rounds(trees))
    if ordered:
        program.add("order_of_chunks", "i", order_of_chunks(trees))
    return trees


def variables(trees: Trees) -> None:
    """No variable where a chunk cannot be in time, where it would go home, and at last for who does not want it."""
    trees.rounds = [trees.program.variable(trees.total - trees.steps + 1, 1) for _ in range(trees.steps)]
    windows = sending(trees)
    for i, origin in enumerate(trees.origin):
        if origin is None:
            trees.root.update({(i, v): trees.program.variable() for v in trees.members})
        for e, times in windows.of_item(i):
            trees.send.update({(i, e, s): trees.program.variable() for s in times})
    trees.program.names = [
        ("rounds", "s", dict(enumerate(trees.rounds))), ("root", "i v", trees.root), ("send", "i e s", trees.send)
    ]  # fmt: skip


def sending(trees: Trees) -> Windows:
    """The steps in which a chunk can be of use on every arc: a rank that is no member needs one more to send it on."""
    arcs, here = trees.arcs, np.zeros(trees.arcs.nodes, dtype=np.int64)
    due = np.full(arcs.nodes, trees.steps - 1)
    due[list(trees.members)] = trees.steps
    ready = np.array([here if origin is None else arcs.hops[origin] for origin in trees.origin])
    in_time = on_arcs(ready, np.tile(due, (len(ready), 1)), arcs.tail, arcs.head)
    return in_time.only(arcs.head != np.array([-1 if v is None else v for v in trees.origin])[:, None])


def received_once(trees: Trees) -> Iterator[tuple[tuple[int, int | str], Row]]:
    """(1), SCCL's C1 and C2: every member gets every chunk, and nobody gets it twice; a free chunk has one origin."""
    arcs, members = trees.arcs, set(trees.members)
    for i, origin in enumerate(trees.origin):
        if origin is None:
            yield (i, "origin"), (ones(trees.root[i, v] for v in trees.members), "==", 1)
        for v in range(arcs.nodes):
            if v == origin or not arcs.into[v]:
                if v != origin and v in members and origin is not None:
                    yield (i, v), ([], "==", 1)
                continue
            got = over(trees.send, i, arcs.into[v], range(trees.steps))
            if (i, v) in trees.root:
                got.append(trees.root[i, v])
            yield (i, v), (ones(got), "==" if v in members else "<=", 1)


def sent_when_there(trees: Trees) -> Iterator[tuple[TimedIndex, Row]]:
    """(2), SCCL's C3: a chunk crosses an arc only in a later step than that in which it came to the arc's start."""
    arcs, tails = trees.arcs, trees.arcs.tail.tolist()
    for (i, e, s), x in trees.send.items():
        u = tails[e]
        if u == trees.origin[i]:
            continue
        before = over(trees.send, i, arcs.into[u], range(s))
        if (i, u) in trees.root:
            before.append(trees.root[i, u])
        yield (i, e, s), ([(1, x), *ones(before, -1)], "<=", 0)


def arc_capacity(trees: Trees) -> Iterator[tuple[tuple[int, int], Row]]:
    """(3), SCCL's C5: in a step of r rounds an arc of capacity c carries at most c r chunks."""
    for (e, s), row in by_place_and_time(trees.send).items():
        yield (e, s), ([*ones(row), (-int(trees.arcs.capacity[e]), trees.rounds[s])], "<=", 0)


def all_rounds(trees: Trees) -> Iterator[tuple[None, Row]]:
    """(4), SCCL's C6: the steps' rounds make up R."""
    yield None, (ones(trees.rounds), "==", trees.total)


def order_of_chunks(trees: Trees) -> Iterator[tuple[int, Row]]:
    """(5), symmetry breaking: the chunks of one origin can be swapped, so let them leave it over arcs of descending
    code, ``2^j`` for its arc number j in ``out_of`` (16 arcs at most)."""
    arcs = trees.arcs
    for i in range(1, len(trees.origin)):
        origin = trees.origin[i]
        if origin is None or trees.origin[i - 1] != origin:
            continue
        row: list[tuple[float, int]] = []
        for place, e in enumerate(arcs.out_of[origin][:16]):
            for s in range(trees.steps):
                if (i, e, s) in trees.send and (i - 1, e, s) in trees.send:
                    row += [(2**place, trees.send[i, e, s]), (-(2**place), trees.send[i - 1, e, s])]
        yield i, (row, "<=", 0)


def useful(arcs: RankArcs, members: Sequence[int], sends: Sequence[Send]) -> list[Send]:
    """Sends in order of steps, without those to a rank that is no member and sends the chunk on to nobody."""
    tails, heads, wanted = arcs.tail.tolist(), arcs.head.tolist(), set(members)
    needed: set[tuple[int, int]] = set()
    kept = []
    for s, i, e in reversed(sends):
        if heads[e] in wanted or (i, heads[e]) in needed:
            kept.append((s, i, e))
            needed.add((i, tails[e]))
    return kept[::-1]
