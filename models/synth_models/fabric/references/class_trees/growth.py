"""Trees of pieces, grown one after the other at prices of what ports occupy, and grown again at the prices of all.

A piece enters every island (ranks that share a plane of their own) that wants it once, and spreads inside over the
island's own plane. Who sends and who receives is what costs least: seconds of every link or group on the way times its
price, which rises exponentially with its load (Garg and Könemann 1998). In each round every tree is taken out and grown
anew at the prices of the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit

STEEP = 24.0  # exponent of the price at the largest load
REPRICED = 32  # pieces after which prices are computed anew if loads have outgrown them
AWAY = 1.5  # times its cost is what a send to a port of another pair counts
DEPTH = 1e-4  # what each hop before adds to the cost of a send, as a share


class Plant(NamedTuple):
    """The ports of a machine (:class:`synth_models.fabric.references.class_trees.ports.Ports`) as flat arrays.

    ``rank``, ``plane``: shape (ports,); ``first``: (ranks + 1,); ``island``: (ranks,). ``resource``, ``seconds`` of a
    byte: shape (2, ports, longest), out and in, -1 behind the last. ``inside``: whether a plane leads to one island
    alone, shape (planes,). ``island_start``, ``in_island``: the ranks of every island. ``pair_out``: of every port the
    pair that it is in towards each island, shape (ports, islands); ``pair_in``: of every port in its own, shape
    (ports,).
    """

    rank: IntArray
    plane: IntArray
    first: IntArray
    island: IntArray
    resource: IntArray
    seconds: FloatArray
    inside: BoolArray
    island_start: IntArray
    in_island: IntArray
    pair_out: IntArray
    pair_in: IntArray


class Work(NamedTuple):
    """Pieces: ``size`` bytes; ranks in ``holder[holder_start[p]:holder_start[p + 1]]``, ``wanter`` likewise."""

    size: FloatArray
    holder_start: IntArray
    holder: IntArray
    wanter_start: IntArray
    wanter: IntArray


class State(NamedTuple):
    """Of the piece whose tree is grown: who ``has`` it, ``wants`` it, ``sends`` it on, after how many hops, and senders
    in turn, ``there``: shape (ranks,), as ``one``, who alone sends. ``counts``: of senders, of holders among them, of
    those who send to other islands, and of all that were looked at. By plane the cheapest ``port`` into an island and
    its cost; by island the ``giver`` at ``lowest`` cost."""

    has: BoolArray
    wants: BoolArray
    sends: BoolArray
    one: BoolArray
    depth: IntArray
    there: IntArray
    counts: IntArray
    least: FloatArray
    port: IntArray
    lowest: FloatArray
    giver: IntArray


class Rules(NamedTuple):
    """``forward``: wanters send on to other islands. ``relay``: ranks that neither hold nor want may pass a piece on
    in their island; else only for a sender that shares no plane with the target. ``one_holder``: the first holder
    alone sends, and its next neighbour that can relays. ``enter_once``: wanters send on in their island. ``rounds``: of
    growing again. ``senders``: looked at for each island, in turn."""

    forward: bool
    relay: bool
    one_holder: bool
    enter_once: bool
    rounds: int
    senders: int = 1 << 30


@jit
def price_at(load: float, top: float) -> float:
    """About exp(STEEP (load / top - 1)), by products alone: the same number on every machine."""
    power = max(1.0 + STEEP * (load / top - 1.0) / 64.0, 0.0)
    for _ in range(6):
        power *= power
    return min(power, 1e80) + 1e-9


@jit
def priced(load: FloatArray, price: FloatArray, top: float) -> None:
    """The prices at these loads."""
    for r in range(len(load)):
        price[r] = price_at(load[r], top)


@jit
def port_cost(plant: Plant, price: FloatArray, way: int, port: int) -> float:
    """What a byte costs at a port."""
    cost = 0.0
    for k in range(plant.resource.shape[2]):
        r = plant.resource[way, port, k]
        if r >= 0:
            cost += price[r] * plant.seconds[way, port, k]
    return float(cost)


@jit
def loaded(plant: Plant, load: FloatArray, price: FloatArray, sent: Any, bytes_: float, top: float) -> None:
    """Add the load of a send from port to port."""
    for way in range(2):
        for k in range(plant.resource.shape[2]):
            r = plant.resource[way, sent[way], k]
            if r >= 0:
                load[r] += bytes_ * plant.seconds[way, sent[way], k]
                price[r] = price_at(load[r], top)


@jit
def best_pair(
    plant: Plant, price: FloatArray, sends: BoolArray, depth: IntArray, target: int, low: int, high: int
) -> tuple[float, int, int]:
    """The cheapest ports to a rank from one that ``sends``, among those of the islands ``low`` to ``high``."""
    best, out, into = np.inf, -1, -1
    for q in range(plant.first[target], plant.first[target + 1]):
        enters = port_cost(plant, price, 1, q)
        for i in range(plant.island_start[low], plant.island_start[high]):
            u = plant.in_island[i]
            if u == target or not sends[u]:
                continue
            for p in range(plant.first[u], plant.first[u + 1]):
                if plant.plane[p] == plant.plane[q]:
                    cost = (port_cost(plant, price, 0, p) + enters) * (1.0 + DEPTH * depth[u])
                    if cost < best:
                        best, out, into = cost, p, q
    return best, out, into


@jit
def grow(plant: Plant, work: Work, rules: Rules, load: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """The sends of every piece, each behind the one that brings it to its sender: ports out and in, shape (sends,),
    and where a piece's begin, shape (pieces + 1,). A piece of which some wanter cannot be reached has too few."""
    pieces, ranks = len(work.size), len(plant.island)
    islands = len(plant.island_start) - 1
    start = np.zeros(pieces + 1, np.int64)
    for p in range(pieces):
        wanted = work.wanter_start[p + 1] - work.wanter_start[p]
        start[p + 1] = start[p] + 3 * wanted  # to a mate, into an island, and on in it
    out, into = np.full(start[pieces], -1, np.int64), np.full(start[pieces], -1, np.int64)
    used = np.zeros(pieces, np.int64)
    price = np.full(len(load), 1.0)
    flags = np.zeros((4, ranks), np.bool_)
    pairs = plant.pair_in.max() + 2
    state = State(
        flags[0], flags[1], flags[2], flags[3], np.zeros(ranks, np.int64), np.zeros(ranks, np.int64),
        np.zeros(4, np.int64), np.full((len(plant.inside), pairs), np.inf),
        np.zeros((len(plant.inside), pairs), np.int64), np.zeros(islands), np.zeros(islands, np.int64),
    )  # fmt: skip
    sent = np.zeros(2, np.int64)
    top: Any = 0.0
    for p in range(pieces):
        top += work.size[p]
    top = max(top * plant.seconds.max() / ranks, 1e-12)
    for turn in range(rules.rounds + 1):
        if turn:
            top = load.max()
        priced(load, price, top)
        for p in range(pieces):
            size = work.size[p]
            if p % REPRICED == 0 and load.max() > top:
                top = 1.25 * load.max()
                priced(load, price, top)
            for k in range(start[p], start[p] + used[p]):
                sent[0], sent[1] = out[k], into[k]
                loaded(plant, load, price, sent, -size, top)
            used[p] = tree(plant, work, rules, load, price, p, start[p], out, into, state, top)
    begins = np.zeros(pieces + 1, np.int64)
    for p in range(pieces):
        begins[p + 1] = begins[p] + used[p]
    kept_out, kept_into = np.zeros(begins[pieces], np.int64), np.zeros(begins[pieces], np.int64)
    for p in range(pieces):
        for k in range(used[p]):
            kept_out[begins[p] + k], kept_into[begins[p] + k] = out[start[p] + k], into[start[p] + k]
    return kept_out, kept_into, begins


@jit
def tree(
    plant: Plant, work: Work, rules: Rules, load: FloatArray, price: FloatArray, p: int, at: int,
    out: IntArray, into: IntArray, state: State, top: float,
) -> int:  # fmt: skip
    """Grow the tree of piece ``p`` from ``at`` on, and return the number of its sends."""
    has, wants, sends, depth = state.has, state.wants, state.sends, state.depth
    has[:], wants[:], sends[:] = False, False, False
    depth[:] = 0
    size, used, count = work.size[p], 0, state.counts
    count[:3] = 0
    for k in range(work.holder_start[p], work.holder_start[p + 1]):
        h = work.holder[k]
        if not rules.one_holder or count[0] == 0:
            state.there[count[0]], sends[h] = h, True
            count[0] += 1
        has[h] = True
    count[1] = count[0]
    begin, end = work.wanter_start[p], work.wanter_start[p + 1]
    for k in range(begin, end):
        wants[work.wanter[k]] = True
    sent = np.zeros(2, np.int64)
    for i in range(end - begin):
        target = work.wanter[begin + (i + p) % (end - begin)]
        if has[target]:
            continue
        home = plant.island[target]
        near = False
        for k in range(plant.island_start[home], plant.island_start[home + 1]):
            near = near or sends[plant.in_island[k]]
        if not near:
            count[2] = count[0] if rules.forward else count[1]
            used += entered(plant, rules, load, price, size, target, at + used, out, into, state, top)
        if not has[target]:
            _, a, b = best_pair(plant, price, sends, depth, target, home, home + 1)
            if a < 0:
                _, a, b = best_pair(plant, price, sends, depth, target, 0, len(plant.island_start) - 1)
            if a < 0:
                return used
            out[at + used], into[at + used] = a, b
            sent[0], sent[1] = a, b
            loaded(plant, load, price, sent, size, top)
            used += 1
            has[target], depth[target] = True, depth[plant.rank[a]] + 1
            if rules.enter_once:
                state.there[count[0]], sends[target] = target, True
                count[0] += 1
    return used


@jit
def entered(
    plant: Plant, rules: Rules, load: FloatArray, price: FloatArray, size: float, target: int, at: int,
    out: IntArray, into: IntArray, state: State, top: float,
) -> int:  # fmt: skip
    """Send into the target's island, and return with how many sends. A mate of a
    holder may take it over, and a mate of the target receive it, where their planes cost less or they share one."""
    home, depth, count = plant.island[target], state.depth, state.counts
    for k in range(plant.island_start[home], plant.island_start[home + 1]):
        v = plant.in_island[k]
        if v == target or (rules.enter_once and not state.has[v] and (state.wants[v] or rules.relay)):
            extra = 0.0 if state.wants[v] else inner_cost(plant, price, 0, v)
            for q in range(plant.first[v], plant.first[v + 1]):
                z, cost = plant.plane[q], port_cost(plant, price, 1, q) + extra
                if plant.inside[z]:
                    continue
                if cost < state.least[z, plant.pair_in[q]]:
                    state.least[z, plant.pair_in[q]], state.port[z, plant.pair_in[q]] = cost, q
                if cost * AWAY < state.least[z, -1]:
                    state.least[z, -1], state.port[z, -1] = cost * AWAY, q
    best, source, mate, enters = np.inf, -1, -1, -1
    state.lowest[:] = np.inf
    looked = min(count[2], rules.senders)
    for turn in range(looked):
        u = state.there[(count[3] + turn) % count[2]]
        far = 1.0 + DEPTH * depth[u]
        for p in range(plant.first[u], plant.first[u + 1]):
            for pair in (plant.pair_out[p, home], -1):
                cost = (port_cost(plant, price, 0, p) + state.least[plant.plane[p], pair]) * far
                if cost < best:
                    best, source, mate, enters = cost, p, -1, state.port[plant.plane[p], pair]
        hand = inner_cost(plant, price, 0, u)
        if hand < state.lowest[plant.island[u]]:
            state.lowest[plant.island[u]], state.giver[plant.island[u]] = hand, u
    for turn in range(looked if rules.relay or source < 0 else 0):
        i = (count[3] + turn) % count[2]
        island = plant.island[state.there[i]]
        if state.giver[island] != state.there[i] or state.lowest[island] >= best:
            continue
        if rules.rounds <= 1 and i >= count[1]:
            continue
        begin = plant.island_start[island]
        mates = plant.island_start[island + 1] - begin
        place = np.searchsorted(plant.in_island[begin : begin + mates], state.giver[island])
        for k in range(place + 1, place + mates):
            m = plant.in_island[begin + k % mates]
            if state.sends[m] or (rules.one_holder and source >= 0):
                continue
            hand = 0.0 if state.has[m] and depth[m] else state.lowest[island] + inner_cost(plant, price, 1, m)
            for p in range(plant.first[m], plant.first[m + 1]):
                for pair in (plant.pair_out[p, home], -1):
                    cost = port_cost(plant, price, 0, p) + state.least[plant.plane[p], pair] + hand
                    if cost < best:
                        best, source, mate = cost, p, state.giver[island]
                        enters = state.port[plant.plane[p], pair]
    count[3] += looked
    for k in range(plant.island_start[home], plant.island_start[home + 1]):
        v = plant.in_island[k]
        for q in range(plant.first[v], plant.first[v + 1]):
            state.least[plant.plane[q], plant.pair_in[q]] = np.inf
            state.least[plant.plane[q], -1] = np.inf
    if source < 0:
        return 0
    used = 0
    sent = np.zeros(2, np.int64)
    m = plant.rank[source]
    if mate >= 0 and not (state.has[m] and depth[m]):
        state.one[mate] = True
        _, a, b = best_pair(plant, price, state.one, depth, m, plant.island[m], plant.island[m] + 1)
        state.one[mate] = False
        out[at], into[at] = a, b
        sent[0], sent[1] = a, b
        loaded(plant, load, price, sent, size, top)
        used, state.has[m], depth[m] = 1, True, depth[mate] + 1
        if rules.enter_once:
            state.there[count[0]], state.sends[m] = m, True
            count[0] += 1
    out[at + used], into[at + used] = source, enters
    sent[0], sent[1] = source, enters
    loaded(plant, load, price, sent, size, top)
    v = plant.rank[enters]
    state.has[v], depth[v] = True, depth[m] + 1
    if rules.enter_once:
        state.there[count[0]], state.sends[v] = v, True
        count[0] += 1
    return used + 1


@jit
def inner_cost(plant: Plant, price: FloatArray, way: int, rank: int) -> float:
    """What it costs a rank to send (0) or receive (1) a byte within its island."""
    least = np.inf
    for q in range(plant.first[rank], plant.first[rank + 1]):
        if plant.inside[plant.plane[q]]:
            least = min(least, port_cost(plant, price, way, q))
    return least
