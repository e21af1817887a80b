"""Looking for a proof by counting that a question has no answer; the check's arithmetic decides whether it is one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from synth.graph.max_flow import MaximumFlow
from synth.solvers.rows import Term
from synth.time_expanded.rows import sparse_rows
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_peers.sccl.check.counted_steps import Question, chunks_of_a_block, fault_of
from synth_peers.sccl.programs.lp_relaxation import Relaxed, certificates, lengths_of, relaxed
from synth_peers.sccl.programs.rank_arcs import RankArcs

FINEST = 2520  # prices of a linear program are rounded to multiples of this part of the largest
MOST_TIMED = 100  # steps up to which the relaxation is asked
MOST_CASES = 64  # ways to cut the rounds into steps up to which each is relaxed on its own
MOST_TABLES = 200_000  # prices that these may have together
MOST_SUBSETS = 12  # members up to which all cuts in two are tried for an allreduce

Certificate = Mapping[str, Any]


class Refuter:
    """Arguments for one instance, the useful ones kept for the next question."""

    def __init__(self, instance: FabricInstance, arcs: RankArcs) -> None:
        self.instance, self.arcs = instance, arcs
        self.known: list[Certificate] = [{"argument": "hops"}]
        self._relaxed: dict[tuple[int, int, tuple[int, ...] | None], Relaxed | None] = {}

    def refuted(self, question: Question) -> Certificate | None:
        """A certificate that the question has no answer, if one is found by counting."""
        for certificate in self._candidates(question):
            if fault_of(self.instance, question, certificate) is None:
                timed = "price" in certificate  # good for its number of steps only
                if not timed and not any(certificate is other for other in self.known):
                    self.known.insert(0, certificate)
                return certificate
        return None

    def _candidates(self, question: Question) -> Iterator[Certificate]:
        yield from list(self.known)
        if np.any((self.instance.blocks.goal == EVERYONE) | (self.instance.blocks.origin == EVERYONE)):
            yield from self._partitions
        if self.instance.collective != "allreduce":
            yield from self._cuts(question)
        if self._pairs:
            yield from self._prices(question)
        yield from self._timed(question)

    def _timed(self, question: Question) -> Iterator[Certificate]:
        """The relaxation's prices, if it says that fewer chunks fit."""
        steps, rounds, chunks = question
        if steps > MOST_TIMED or len(self.instance.blocks) == 0:
            return
        copies = chunks_of_a_block(self.instance, chunks)
        found = self._relaxation(steps, rounds, None)
        if found is not None and found.most < copies:
            yield from certificates([found], self.instance, self.arcs)
            return
        cases = math.comb(rounds - 1, steps - 1)
        if found is None or not 1 < cases <= MOST_CASES or found.prices.size * cases > MOST_TABLES:
            return
        each = []
        for lengths in lengths_of(steps, rounds):
            one = self._relaxation(steps, rounds, lengths)
            if one is None or one.most >= copies:
                return
            each.append(one)
        yield from certificates(each, self.instance, self.arcs)

    def _relaxation(self, steps: int, rounds: int, lengths: tuple[int, ...] | None) -> Relaxed | None:
        key = (steps, rounds, lengths)
        if key not in self._relaxed:
            self._relaxed[key] = relaxed(self.instance, self.arcs, steps, rounds, lengths)
        return self._relaxed[key]

    @cached_property
    def _pairs(self) -> bool:
        blocks = self.instance.blocks
        return bool(np.all((blocks.goal != EVERYONE) & (blocks.origin != EVERYONE)))

    @cached_property
    def _partitions(self) -> list[Certificate]:
        """Every member alone; for an allreduce also all cuts in two of a few members. Others go with the first."""
        members, nodes = self.instance.members, self.arcs.nodes
        alone = np.zeros(nodes, dtype=np.int64)
        alone[list(members)] = np.arange(len(members))
        found = [alone]
        if self.instance.collective == "allreduce" and len(members) <= MOST_SUBSETS:
            for bits in range(1, 2 ** (len(members) - 1)):
                part = np.zeros(nodes, dtype=np.int64)
                part[[v for k, v in enumerate(members[1:]) if bits >> k & 1]] = 1
                found.append(part)
        return [{"argument": "parts", "part": part} for part in found]

    def _windows(self, question: Question, origins: list[int], goals: list[int]) -> np.ndarray[Any, Any]:
        """Chunks that every arc carries in the steps between the origins' and the goals' distance."""
        steps, rounds, _ = question
        arcs = self.arcs
        lost = arcs.hops[origins][:, arcs.tail].min(axis=0) + arcs.hops[arcs.head][:, goals].min(axis=1)
        room = np.where(lost < steps, arcs.capacity * np.maximum(rounds - lost, 0), 0)
        return room.astype(np.int64)

    def _cuts(self, question: Question) -> Iterator[Certificate]:
        """Least cuts: for every rank that wants something from all over (or has something for all over), between it
        and the others, each with its share."""
        _, _, chunks = question
        copies = chunks_of_a_block(self.instance, chunks)
        everyone = list(self.instance.members)
        rows = list(zip(self.instance.blocks.origin.tolist(), self.instance.blocks.goal.tolist(), strict=True))
        wants: dict[int, dict[int, int]] = {}
        for origin, goal in rows:
            if origin != EVERYONE:
                for v in everyone if goal == EVERYONE else [goal]:
                    wants.setdefault(v, {})[origin] = wants.setdefault(v, {}).get(origin, 0) + copies
        has: dict[int, dict[int, int]] = {}
        for origin, goal in rows:
            if goal != EVERYONE:
                for u in everyone if origin == EVERYONE else [origin]:
                    has.setdefault(u, {})[goal] = has.setdefault(u, {}).get(goal, 0) + copies
        for shares, away in ((wants, False), (has, True)):
            for rank, share in shares.items():
                amounts = {v: n for v, n in share.items() if v != rank}
                if amounts:
                    ends = (list(amounts), [rank]) if not away else ([rank], list(amounts))
                    yield from self._cut(self._windows(question, *ends), amounts, rank, away)

    def _cut(
        self, room: np.ndarray[Any, Any], amounts: Mapping[int, int], rank: int, away: bool
    ) -> Iterator[Certificate]:
        """The least cut between a rank and the others, if less fits through it than has to pass."""
        arcs, others = self.arcs, np.array(list(amounts), dtype=np.int64)
        outside = np.full(len(others), arcs.nodes)
        tail = np.concatenate([arcs.tail, others if away else outside])
        head = np.concatenate([arcs.head, outside if away else others])
        capacity = np.concatenate([room, np.array(list(amounts.values()), dtype=np.int64)])
        ends = (rank, arcs.nodes) if away else (arcs.nodes, rank)
        flow = MaximumFlow(arcs.nodes + 1, tail, head, capacity, *ends)
        if flow.value < sum(amounts.values()):
            inside = ~flow.sink_side
            crossing = inside[arcs.tail] & ~inside[arcs.head]
            yield {"argument": "paths", "length": self._by_link(crossing.astype(np.int64))}

    def _prices(self, question: Question) -> Iterator[Certificate]:
        """The dual of the concurrent flow within the windows, in whole prices."""
        from synth.solvers.lp import linprog

        arcs, blocks = self.arcs, self.instance.blocks
        origins = sorted(set(blocks.origin.tolist()))
        room = self._windows(question, origins, sorted(set(blocks.goal.tolist())))
        nodes, count = arcs.nodes, arcs.count
        # variables: price of every arc, then distance from every origin to every node; at room prices sum to 1
        where = {u: count + k * nodes for k, u in enumerate(origins)}
        ends = list(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))
        rows: list[list[Term]] = [
            [(1, where[u] + head), (-1, where[u] + tail), (-1, e)]
            for u in origins
            for e, (tail, head) in enumerate(ends)
        ]
        size = count + len(origins) * nodes
        gain = np.zeros(size)
        for u, v in zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True):
            gain[where[u] + v] -= 1
        bounds: Any = [(0, None)] * count + [(0, 0) if v == u else (None, None) for u in origins for v in range(nodes)]
        paid = np.concatenate([np.maximum(room, 1e-3), np.zeros(size - count)])
        right: Any = [1.0]
        matrix = sparse_rows(rows, size)
        found: Any = linprog(gain, matrix, np.zeros(len(rows)), paid[None, :], right, bounds=bounds, method="highs")
        if found.status == 0:
            price = found.x[:count]
            for parts in (1, 2, 3, 4, 6, 12, FINEST):
                whole = np.round(price / max(price.max(), 1e-300) * parts).astype(np.int64)
                yield {"argument": "paths", "length": self._by_link(whole)}

    def _by_link(self, of_arc: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Prices of arcs as prices of their links."""
        length = np.zeros(self.instance.machine.links, dtype=np.int64)
        for e, links in enumerate(self.arcs.links):
            length[[link for link, _ in links]] = of_arc[e]
        return length
