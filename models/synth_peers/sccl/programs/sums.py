"""Allreduce as one program: sums that grow in place, and complete ones that are copied, in the same steps.

SCCL composes its allreduce of a reduce-scatter and an allgather; asked for it directly, its tool only ever adds (a
contribution comes to a rank once, and goes on with all that the rank has added to it), which no ring of five or more
ranks can do in any number of steps. Here a rank holds one sum a chunk; in a step it may send it along an arc either to
be added there (the two must have no contribution in common) or, if it is complete, as a copy in place of what is there.
Trees to a root and back are a part of this, and so is recursive doubling.

| symbol | here | index | unit |
|---|---|---|---|
| H | ``held[i, v, u, s]`` | 1 if rank v's sum of chunk i has u's contribution after s steps | – |
| A | ``add[i, e, s]`` | 1 if chunk i crosses arc e in step s to be added | – |
| K | ``copy[i, e, s]`` | 1 if it crosses as a complete sum | – |
| P | ``bring[i, e, u, s]`` | 1 if u's contribution crosses with A: the product of A and H | – |
| r_s | ``rounds[s]`` | steps | rounds |

    (1) complete at last      sum_u H[i,v,u,S] = members
    (2) carried along         P <= H[i,tail(e),u,s],  P <= A[i,e,s],  H + A <= 1 + P
    (3) grows by what comes   H[i,v,u,s] is at most H[i,v,u,s-1] + sum_{e into v} P[i,e,u,s-1] + K[i,e,s-1], and at
                              least each of these
    (4) never twice           H[i,v,u,s] + sum_{e into v} P[i,e,u,s] <= 1,  A[i,f,s] + sum_{e into v} K[i,e,s] <= 1,
                              sum_{e into v} K[i,e,s] <= 1
    (5) only complete copies  K[i,e,s] <= H[i,tail(e),u,s]
    (6) arc capacity         sum_i A[i,e,s] + K[i,e,s] <= capacity[e] r_s
    (7) all rounds            sum_s r_s = R
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from synth.solvers.program import Program
from synth.solvers.rows import Row, ones
from synth_peers.sccl.programs.rank_arcs import RankArcs

SumSend = tuple[int, int, int, bool]
"""Step, chunk, arc, whether it adds."""


@dataclass
class Sums:
    """The variables, by the indices of the table above."""

    arcs: RankArcs
    members: Sequence[int]
    chunks: int
    steps: int
    total: int
    copies: bool = True
    program: Program = field(default_factory=Program)
    held: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    add: dict[tuple[int, int, int], int] = field(default_factory=dict)
    copy: dict[tuple[int, int, int], int] = field(default_factory=dict)
    bring: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)

    def sends(self, value: Sequence[int]) -> list[SumSend]:
        """What a point says is sent, without additions of nothing."""
        brought = {(i, e, s) for (i, e, _, s), x in self.bring.items() if value[x]}
        adding = [(s, i, e, True) for (i, e, s), x in self.add.items() if value[x] and (i, e, s) in brought]
        return sorted(adding + [(s, i, e, False) for (i, e, s), x in self.copy.items() if value[x]])


def build(arcs: RankArcs, members: Sequence[int], chunks: int, steps: int, total: int, copies: bool = True) -> Sums:
    """The program: can the sums of ``chunks`` chunks be everywhere after ``steps`` steps and ``total`` rounds?
    Without ``copies`` sums are only ever added, as msccl-tools' direct encoding has it. Calls no solver."""
    sums = Sums(arcs, members, chunks, steps, total, copies)
    variables(sums)
    add = sums.program.add
    add("complete_at_last", "i v", complete_at_last(sums))
    add("carried_along", "i e u s part", carried_along(sums))
    add("grows_by_what_comes", "i v u s part", grows_by_what_comes(sums))
    add("never_twice", "i v s u", never_twice(sums))
    add("only_complete_copies", "i e s u", only_complete_copies(sums))
    add("arc_capacity", "e s", arc_capacity(sums))
    add("all_rounds", "", all_rounds(sums))
    return sums


def variables(sums: Sums) -> None:
    """What a rank holds at first is fixed; nothing comes from farther than the steps so far."""
    arcs, program, steps = sums.arcs, sums.program, sums.steps
    tails = arcs.tail.tolist()
    ranks = [v for v in range(arcs.nodes) if v in set(sums.members) or arcs.into[v]]
    sums.rounds = [program.variable(sums.total - steps + 1, 1) for _ in range(steps)]
    for i in range(sums.chunks):
        for s in range(steps + 1):
            for v in ranks:
                for u in sums.members:
                    own = int(u == v)
                    most = 0 if s < arcs.hops[u, v] else 1
                    sums.held[i, v, u, s] = program.variable(own if s == 0 else most, own)
        for s in range(steps):
            for e in range(arcs.count):
                sums.add[i, e, s] = program.variable()
                if sums.copies:
                    sums.copy[i, e, s] = program.variable(int(s > 0))
                for u in sums.members:
                    if s >= arcs.hops[u, tails[e]]:
                        sums.bring[i, e, u, s] = program.variable()
    program.names = [
        ("rounds", "s", dict(enumerate(sums.rounds))), ("held", "i v u s", sums.held), ("add", "i e s", sums.add),
        ("copy", "i e s", sums.copy), ("bring", "i e u s", sums.bring),
    ]  # fmt: skip


Indexed = Iterator[tuple[tuple[int | str, ...], Row]]
"""Rows by index."""


def complete_at_last(sums: Sums) -> Indexed:
    """(1): every member holds every contribution in the end."""
    for i in range(sums.chunks):
        for v in sums.members:
            yield (i, v), (ones(sums.held[i, v, u, sums.steps] for u in sums.members), "==", len(sums.members))


def carried_along(sums: Sums) -> Indexed:
    """(2), P = A H: a sum that is sent to be added goes with all its contributions as of the step's beginning."""
    tails = sums.arcs.tail.tolist()
    for (i, e, u, s), x in sums.bring.items():
        there, sent = sums.held[i, tails[e], u, s], sums.add[i, e, s]
        yield (i, e, u, s, "there"), ([(1, x), (-1, there)], "<=", 0)
        yield (i, e, u, s, "sent"), ([(1, x), (-1, sent)], "<=", 0)
        yield (i, e, u, s, "both"), ([(1, there), (1, sent), (-1, x)], "<=", 1)


def grows_by_what_comes(sums: Sums) -> Indexed:
    """(3): a rank holds after a step what it held before and what came, and no more."""
    for (i, v, u, s), x in sums.held.items():
        if s == 0:
            continue
        before = sums.held[i, v, u, s - 1]
        came = _arriving(sums, i, v, u, s - 1)
        yield (i, v, u, s, "most"), ([(1, x), (-1, before), *ones(came, -1)], "<=", 0)
        yield (i, v, u, s, "kept"), ([(1, before), (-1, x)], "<=", 0)
        for number, y in enumerate(came):
            yield (i, v, u, s, number), ([(1, y), (-1, x)], "<=", 0)


def never_twice(sums: Sums) -> Indexed:
    """(4): no contribution is added that is there already or comes twice; a copy comes alone."""
    for (i, v, u, s), x in sums.held.items():
        if s < sums.steps:
            coming = [y for e in sums.arcs.into[v] if (y := sums.bring.get((i, e, u, s))) is not None]
            if coming:
                yield (i, v, s, u), ([(1, x), *ones(coming)], "<=", 1)
    if sums.copies:
        for i in range(sums.chunks):
            for s in range(sums.steps):
                for v, arcs in enumerate(sums.arcs.into):
                    copied = [sums.copy[i, e, s] for e in arcs]
                    if copied:
                        yield (i, v, s, "copies"), (ones(copied), "<=", 1)
                    for e in arcs:
                        yield (i, v, s, f"e{e}"), ([(1, sums.add[i, e, s]), *ones(copied)], "<=", 1)


def only_complete_copies(sums: Sums) -> Indexed:
    """(5): what is copied is complete at the step's beginning."""
    tails = sums.arcs.tail.tolist()
    for (i, e, s), x in sums.copy.items():
        for u in sums.members:
            yield (i, e, s, u), ([(1, x), (-1, sums.held[i, tails[e], u, s])], "<=", 0)


def arc_capacity(sums: Sums) -> Indexed:
    """(6): in a step of r rounds an arc of capacity c carries at most c r chunks."""
    for e in range(sums.arcs.count):
        for s in range(sums.steps):
            row = [sums.add[i, e, s] for i in range(sums.chunks)]
            row += [sums.copy[i, e, s] for i in range(sums.chunks) if sums.copies]
            yield (e, s), ([*ones(row), (-int(sums.arcs.capacity[e]), sums.rounds[s])], "<=", 0)


def all_rounds(sums: Sums) -> Indexed:
    """(7): the steps' rounds make up R."""
    yield (), (ones(sums.rounds), "==", sums.total)


def _arriving(sums: Sums, chunk: int, rank: int, contributor: int, step: int) -> list[int]:
    """The variables that bring a contribution to a rank in a step."""
    into = sums.arcs.into[rank]
    added = [y for e in into if (y := sums.bring.get((chunk, e, contributor, step))) is not None]
    return added + [sums.copy[chunk, e, step] for e in into if sums.copies]
