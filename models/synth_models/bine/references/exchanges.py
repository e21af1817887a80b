"""Butterfly collectives: reduce-scatter, allgather, allreduce (small, large), alltoall, large broadcast and reduce.

``pairing`` is the sequence of pairings of the reduce-scatter (:func:`butterfly.partners`); in step i a unit sends away
all blocks of the units that its partner still reaches in later steps (half of what is left). The allgather is its
reverse, so that for a doubling order the large volumes travel short distances in both halves. Every class is an
interval of the layout, so permuted blocks make one piece (De Sensi et al., section 4.3.1), or two if it wraps around.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.parts.butterfly import Folding, classes, fold
from synth_models.bine.parts.steps import Rows
from synth_models.bine.solution import Steps


class Exchange:
    """A folded butterfly with its layout; the methods append the rounds of one half and return the next round."""

    def __init__(self, pairing: IntArray, folding: Folding, rotation: int = 0, ranks: int | None = None) -> None:
        self.pairing, self.bits = pairing, len(pairing)
        total = ranks or len(folding.rep) + len(folding.partner)
        self.rep, self.partner = (folding.rep + rotation) % total, (folding.partner + rotation) % total
        self.place, self.low = classes(pairing)
        self.order, self.begins = Folding(self.rep, self.partner).layout(self.place)
        self.total = total
        self.rows = Rows()

    def send(self, when: int, src: IntArray, dst: IntArray, units: IntArray, step: int, adds: bool = False) -> None:
        """Rows that carry the blocks of the classes that ``units`` reach in steps ``step``, step+1, …"""
        for first, count in self.intervals(units, step):
            self.rows.add(when, src, dst, first, count, adds)

    def intervals(self, units: IntArray, step: int) -> list[tuple[IntArray, IntArray]]:
        """First position and number of blocks of those classes; what passes the last position goes on at the first."""
        size = 1 << self.bits
        low = self.low[step][units]
        high = low + (1 << (self.bits - step))
        head, tail = self.begins[np.minimum(high, size)], self.begins[np.maximum(high - size, 0)]
        return [(self.begins[low], head - self.begins[low]), (np.zeros_like(low), tail)]

    def reduce_scatter(self, start: int, adds: bool = True) -> int:
        """Every unit ends with the blocks of its own ranks."""
        for i in range(self.bits):
            partner = self.pairing[i]
            self.send(start + i, self.rep, self.rep[partner], partner, i + 1, adds)
        return start + self.bits

    def allgather(self, start: int) -> int:
        """Every unit begins with the blocks of its own ranks and ends with all."""
        for done, i in enumerate(range(self.bits - 1, -1, -1)):
            own = np.arange(1 << self.bits)
            self.send(start + done, self.rep, self.rep[self.pairing[i]], own, i + 1)
        return start + self.bits

    def fold_in(self, start: int) -> int:
        """Waiting ranks hand their whole vector to the one that acts for them."""
        if len(self.partner):
            self.rows.add(start, self.partner, self.rep[: len(self.partner)], 0, self.total, True)
        return start + (len(self.partner) > 0)

    def fold_out(self, start: int) -> int:
        """Waiting ranks receive everything."""
        if len(self.partner):
            self.rows.add(start, self.rep[: len(self.partner)], self.partner, 0, self.total)
        return start + (len(self.partner) > 0)

    def own_blocks(self, start: int, inwards: bool) -> int:
        """Waiting ranks hand in their own block, or receive it; it is the second one of their unit."""
        pairs = len(self.partner)
        if pairs:
            at = self.begins[self.place[:pairs]] + 1
            ends = (self.partner, self.rep[:pairs]) if inwards else (self.rep[:pairs], self.partner)
            self.rows.add(start, *ends, at, 1)
        return start + (pairs > 0)


def run(pairing_of: object, ranks: int, collective: str, vector: str, root: int = 0) -> Steps:
    """The butterfly collective on any number of ranks; ``pairing_of(bits)`` gives the reduce-scatter's pairings."""
    assert callable(pairing_of)
    rooted = collective in ("broadcast", "reduce")
    folding = fold(ranks, first_acts=rooted)
    exchange = Exchange(pairing_of(folding.bits), folding, root if rooted else 0, ranks)
    match collective:
        case "reduce_scatter":
            exchange.own_blocks(exchange.reduce_scatter(exchange.fold_in(0)), inwards=False)
        case "allgather":
            begin = exchange.allgather(exchange.own_blocks(0, inwards=True))
            exchange.fold_out(begin)
        case "allreduce" if vector == "small":
            return _small_allreduce(exchange)
        case "allreduce":
            exchange.fold_out(exchange.allgather(exchange.reduce_scatter(exchange.fold_in(0))))
        case "broadcast":
            exchange.fold_out(exchange.allgather(_restricted(exchange, 0, scatter=True)))
        case "reduce":
            _restricted(exchange, exchange.reduce_scatter(exchange.fold_in(0)), scatter=False)
        case _:
            return _alltoall(exchange, ranks)
    return exchange.rows.finish(exchange.order)


def _restricted(exchange: Exchange, start: int, scatter: bool) -> int:
    """The scatter from unit 0 (or the gather to it): only units that hold something to pass on take part."""
    informed = np.zeros(1, dtype=np.int64)
    for i in range(exchange.bits):
        reached = exchange.pairing[i][informed]
        step = start + i if scatter else start + exchange.bits - 1 - i
        ends = (informed, reached) if scatter else (reached, informed)
        exchange.send(step, exchange.rep[ends[0]], exchange.rep[ends[1]], reached, i + 1)
        informed = np.concatenate([informed, reached])
    return start + exchange.bits


def _small_allreduce(exchange: Exchange) -> Steps:
    exchange.total = 1
    step = exchange.fold_in(0)
    for i in range(exchange.bits):
        exchange.rows.add(step + i, exchange.rep, exchange.rep[exchange.pairing[i]], 0, 1, True)
    exchange.fold_out(step + exchange.bits)
    return exchange.rows.finish(np.zeros(1, dtype=np.int64))


def _alltoall(exchange: Exchange, ranks: int) -> Steps:
    """Blocks (origin, destination) in the layout origin-major, both in butterfly order: in step i a unit passes on what
    the units merged with it so far have for the units that its partner still reaches, one piece per origin."""
    rows, pairs = exchange.rows, len(exchange.partner)
    seat = np.empty(ranks, dtype=np.int64)
    seat[exchange.order] = np.arange(ranks)
    step = 0
    if pairs:
        rows.add(0, exchange.partner, exchange.rep[:pairs], seat[exchange.partner] * ranks, ranks)
        step = 1
    held = [[u] for u in range(1 << exchange.bits)]  # units whose blocks unit u passes on
    members = [[int(r)] for r in exchange.rep]
    for u in range(pairs):
        members[u].append(int(exchange.partner[u]))
    for i in range(exchange.bits):
        partner = exchange.pairing[i]
        pieces = exchange.intervals(partner, i + 1)
        for u in range(len(held)):
            origins = seat[np.array([r for o in held[u] for r in members[o]], dtype=np.int64)]
            for first, count in pieces:
                rows.add(step + i, exchange.rep[u], exchange.rep[partner[u]], origins * ranks + first[u], count[u])
        held = [held[u] + held[int(partner[u])] for u in range(len(held))]
    step += exchange.bits
    for u in range(pairs):
        rows.add(step, exchange.rep[u], exchange.partner[u], np.arange(ranks) * ranks + seat[exchange.partner[u]], 1)
    layout = (exchange.order[:, None] * ranks + exchange.order[None, :]).ravel()
    return rows.finish(layout)
