"""Chunks that go from rank to rank: alltoall, gather and scatter as whole flows over the steps.

Chunks for one goal are interchangeable until they arrive, so they are counted, not named: a whole multicommodity flow
in the network of ranks and steps, one commodity a goal. (SCCL names every chunk, and its users wait for days.) A flow
comes apart into chunks again by letting any chunk for the goal take the arc.

| paper | here | index | unit |
|---|---|---|---|
| c | commodity ``d``, ``supply[d][u]`` at rank u | goals; ranks | chunks |
| snd, time | ``send[d, e, s]`` | chunks for d that cross arc e in step s | chunks |
| r_s | ``rounds[s]`` | steps | rounds |
| b(L) | ``capacity[e]`` | arcs | chunks a round |

    (1) all arrive       sum_{e into d, s} send[d,e,s] = sum_u supply[d][u]
    (2) sent when there  sum_{e out of u, t <= s} send[d,e,t] - sum_{e into u, t < s} send[d,e,t] <= supply[d][u]
    (3) arc capacity    sum_d send[d,e,s] <= capacity[e] rounds[s]
    (4) all rounds       sum_s rounds[s] = R

A scatter is a gather on the reversed machine, played backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.solvers.program import Program
from synth.solvers.rows import Row, ones
from synth.time_expanded.rows import by_place_and_time, over
from synth.time_expanded.windows import TimedIndex, Windows, on_arcs
from synth_peers.sccl.programs.rank_arcs import RankArcs
from synth_peers.sccl.programs.trees import Send


@dataclass
class Flows:
    """The variables: ``send[d, e, s]`` and ``rounds[s]``. ``chunks[d][u]`` are the numbers of the chunks of u for d."""

    arcs: RankArcs
    chunks: Mapping[int, Mapping[int, Sequence[int]]]
    steps: int
    total: int
    program: Program = field(default_factory=Program)
    send: dict[TimedIndex, int] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)

    def sends(self, value: Sequence[int]) -> list[Send]:
        """The flow of a point, taken apart into chunks."""
        arcs, found = self.arcs, []
        tails, heads = arcs.tail.tolist(), arcs.head.tolist()
        amount = {key: value[x] for key, x in self.send.items() if value[x]}
        for d, supply in self.chunks.items():
            held = {u: list(numbers) for u, numbers in supply.items()}
            for s in range(self.steps):
                moving = []
                for e in range(arcs.count):
                    for _ in range(amount.get((d, e, s), 0)):
                        moving.append((held[tails[e]].pop(0), e))
                for chunk, e in moving:
                    held.setdefault(heads[e], []).append(chunk)
                    found.append((s, chunk, e))
        return sorted(found)


def build(arcs: RankArcs, chunks: Mapping[int, Mapping[int, Sequence[int]]], steps: int, total: int) -> Flows:
    """The program: can all chunks get to their goals in ``steps`` steps and ``total`` rounds? Calls no solver."""
    flows = Flows(arcs, chunks, steps, total)
    variables(flows)
    flows.program.add("all_arrive", "d", all_arrive(flows))
    flows.program.add("sent_when_there", "d v s", sent_when_there(flows))
    flows.program.add("arc_capacity", "e s", arc_capacity(flows))
    flows.program.add("all_rounds", "", all_rounds(flows))
    return flows


def variables(flows: Flows) -> None:
    """No variable where nothing for the goal can be by then, from where it cannot be reached in time, and out of it."""
    longest = flows.total - flows.steps + 1
    flows.rounds = [flows.program.variable(longest, 1) for _ in range(flows.steps)]
    capacity, windows = flows.arcs.capacity.tolist(), sending(flows)
    for i, (d, supply) in enumerate(flows.chunks.items()):
        total = sum(map(len, supply.values()))
        for e, times in windows.of_item(i):
            most = min(total, capacity[e] * longest)
            flows.send.update({(d, e, s): flows.program.variable(most) for s in times})
    flows.program.names = [("rounds", "s", dict(enumerate(flows.rounds))), ("send", "d e s", flows.send)]


def sending(flows: Flows) -> Windows:
    """The steps in which chunks for every goal, in the order of ``flows.chunks``, can be of use on every arc."""
    arcs, goals = flows.arcs, np.array(list(flows.chunks), dtype=np.int64)
    origins = [[u for u, numbers in supply.items() if numbers] for supply in flows.chunks.values()]
    ready = np.array([arcs.hops[some].min(axis=0) for some in origins])
    in_time = on_arcs(ready, flows.steps - arcs.hops[:, goals].T, arcs.tail, arcs.head)
    return in_time.only(arcs.tail != goals[:, None])


def all_arrive(flows: Flows) -> Iterator[tuple[int, Row]]:
    """(1): everything for a goal enters it."""
    for d, supply in flows.chunks.items():
        got = over(flows.send, d, flows.arcs.into[d], range(flows.steps))
        yield d, (ones(got), "==", sum(map(len, supply.values())))


def sent_when_there(flows: Flows) -> Iterator[tuple[TimedIndex, Row]]:
    """(2): until the end of a step no more has left a rank than it had at first and got in earlier steps."""
    arcs = flows.arcs
    for d, supply in flows.chunks.items():
        for u in range(arcs.nodes):
            if u == d or not arcs.out_of[u]:
                continue
            for s in range(flows.steps):
                if not over(flows.send, d, arcs.out_of[u], range(s, s + 1)):
                    continue
                out = over(flows.send, d, arcs.out_of[u], range(s + 1))
                got = over(flows.send, d, arcs.into[u], range(s))
                yield (d, u, s), ([*ones(out), *ones(got, -1)], "<=", len(supply.get(u, ())))


def arc_capacity(flows: Flows) -> Iterator[tuple[tuple[int, int], Row]]:
    """(3): in a step of r rounds an arc of capacity c carries at most c r chunks."""
    for (e, s), row in by_place_and_time(flows.send).items():
        yield (e, s), ([*ones(row), (-int(flows.arcs.capacity[e]), flows.rounds[s])], "<=", 0)


def all_rounds(flows: Flows) -> Iterator[tuple[None, Row]]:
    """(4): the steps' rounds make up R."""
    yield None, (ones(flows.rounds), "==", flows.total)
