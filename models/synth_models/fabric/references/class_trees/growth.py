"""Trees of pieces, grown one after the other at prices of what ports occupy, and grown again at the prices of all.

A piece enters every island (ranks that share a plane of their own) that wants it once, and spreads inside over the
island's own plane. Who sends and who receives is what costs least: seconds of every link or group on the way times its
price, which rises exponentially with its load (Garg and Könemann 1998). In each round every tree is taken out and grown
again at the prices of the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit

REPRICED = 32  # pieces after which prices are computed again if loads have outgrown them
DEPTH = 1e-4  # what each hop before adds to the cost of a send, as a share
SENDERS, HOLDERS, LOOKED, SENDS = 0, 1, 2, 3  # places in the counts of a State


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


class Prices(NamedTuple):
    """``load`` in seconds, and the ``price`` of a second, of every link or group; ``top``: the load at which a price is
    about one, the largest or more; ``steep``: the exponent there."""

    load: FloatArray
    price: FloatArray
    top: float
    steep: float


class State(NamedTuple):
    """Of the piece whose tree is grown: who ``has`` it, ``wants`` it, ``sends`` it on, after how many hops (``depth``),
    and the senders in turn, ``there``: shape (ranks,) each. By plane and pair the cheapest ``port`` into an island and
    its cost (``least``); by island the ``giver`` at ``lowest`` cost. The ports ``out`` and ``into`` of the sends of all
    pieces. ``counts``: of senders, of holders among them, of senders of all pieces that were looked at, and the place
    of the next send."""

    has: BoolArray
    wants: BoolArray
    sends: BoolArray
    depth: IntArray
    there: IntArray
    least: FloatArray
    port: IntArray
    lowest: FloatArray
    giver: IntArray
    out: IntArray
    into: IntArray
    counts: IntArray


class Way(NamedTuple):
    """Into an island at a ``cost``, from the port ``source`` (-1: none) to the port ``enters``; ``mate``: who hands the
    piece to the source's rank, -1: nobody has to be looked for."""

    cost: float
    source: int
    mate: int
    enters: int


class Rules(NamedTuple):
    """``forward``: wanters send on to other islands. ``relay``: ranks that neither hold nor want may pass a piece on
    in their island; else only for a sender that shares no plane with the target. ``one_holder``: the first holder
    alone sends, and its next neighbour that can relays. ``enter_once``: wanters send on in their island. ``rounds``: of
    growing again. ``senders``: looked at for each island, in turn. ``steep``: the exponent of prices at the largest
    load. ``away``: times its cost is what a send to a port of another pair counts."""

    forward: bool
    relay: bool
    one_holder: bool
    enter_once: bool
    rounds: int
    senders: int = 1 << 30
    steep: float = 4.0
    away: float = 1.2


@jit
def price_at(load: float, top: float, steep: float) -> float:
    """About exp(steep (load / top - 1)), by products alone: the same number on every machine."""
    power = max(1.0 + steep * (load / top - 1.0) / 64.0, 0.0)
    for _ in range(6):
        power *= power
    return min(power, 1e80) + 1e-9


@jit
def priced(prices: Prices) -> None:
    """Set the prices at these loads."""
    for r in range(len(prices.load)):
        prices.price[r] = price_at(prices.load[r], prices.top, prices.steep)


@jit(inlined=True)
def port_cost(plant: Plant, price: FloatArray, way: int, port: int) -> float:
    """What a byte costs at a port."""
    cost = 0.0
    for k in range(plant.resource.shape[2]):
        r = plant.resource[way, port, k]
        if r >= 0:
            cost += price[r] * plant.seconds[way, port, k]
    return float(cost)


@jit(inlined=True)
def inner_cost(plant: Plant, price: FloatArray, way: int, rank: int) -> float:
    """What it costs a rank to send (0) or receive (1) a byte within its island."""
    least = np.inf
    for q in range(plant.first[rank], plant.first[rank + 1]):
        if plant.inside[plant.plane[q]]:
            least = min(least, port_cost(plant, price, way, q))
    return least


@jit(inlined=True)
def loaded(plant: Plant, prices: Prices, out: int, into: int, bytes_: float) -> None:
    """Add the load of a send from port to port."""
    for way in range(2):
        port = into if way else out
        for k in range(plant.resource.shape[2]):
            r = plant.resource[way, port, k]
            if r >= 0:
                prices.load[r] += bytes_ * plant.seconds[way, port, k]
                prices.price[r] = price_at(prices.load[r], prices.top, prices.steep)


@jit(inlined=True)
def best_pair(plant: Plant, price: FloatArray, state: State, target: int, begin: int, end: int) -> tuple[int, int]:
    """The cheapest ports to a rank from one of ``in_island[begin:end]`` that sends; -1 where there is none."""
    best, out, into = np.inf, -1, -1
    sends, depth = state.sends, state.depth
    for q in range(plant.first[target], plant.first[target + 1]):
        enters = port_cost(plant, price, 1, q)
        for i in range(begin, end):
            u = plant.in_island[i]
            if u == target or not sends[u]:
                continue
            for p in range(plant.first[u], plant.first[u + 1]):
                if plant.plane[p] == plant.plane[q]:
                    cost = (port_cost(plant, price, 0, p) + enters) * (1.0 + DEPTH * depth[u])
                    if cost < best:
                        best, out, into = cost, p, q
    return out, into


@jit
def new_state(plant: Plant, sends: int) -> State:
    """Room for so many sends, of no piece yet."""
    ranks, islands = len(plant.island), len(plant.island_start) - 1
    planes, pairs = len(plant.inside), plant.pair_in.max() + 2
    return State(
        has=np.zeros(ranks, np.bool_),
        wants=np.zeros(ranks, np.bool_),
        sends=np.zeros(ranks, np.bool_),
        depth=np.zeros(ranks, np.int64),
        there=np.zeros(ranks, np.int64),
        least=np.full((planes, pairs), np.inf),
        port=np.zeros((planes, pairs), np.int64),
        lowest=np.zeros(islands),
        giver=np.zeros(islands, np.int64),
        out=np.full(sends, -1, np.int64),
        into=np.full(sends, -1, np.int64),
        counts=np.zeros(4, np.int64),
    )


@jit
def grow(plant: Plant, work: Work, rules: Rules, load: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """The sends of every piece, each behind the one that brings it to its sender: ports out and in, shape (sends,),
    and where a piece's begin, shape (pieces + 1,). A piece of which some wanter cannot be reached has too few."""
    pieces = len(work.size)
    start, used = np.zeros(pieces + 1, np.int64), np.zeros(pieces, np.int64)
    for p in range(pieces):
        wanted = work.wanter_start[p + 1] - work.wanter_start[p]
        start[p + 1] = start[p] + 3 * wanted  # to a mate, into an island, and on in it
    state = new_state(plant, start[pieces])
    top: Any = 0.0
    for p in range(pieces):
        top += work.size[p]
    top = max(top * plant.seconds.max() / len(plant.island), 1e-12)
    prices = Prices(load, np.full(len(load), 1.0), top, rules.steep)
    for turn in range(rules.rounds + 1):
        if turn:
            prices = Prices(load, prices.price, load.max(), rules.steep)
        priced(prices)
        for p in range(pieces):
            if p % REPRICED == 0 and load.max() > prices.top:
                prices = Prices(load, prices.price, 1.25 * load.max(), rules.steep)
                priced(prices)
            for k in range(start[p], start[p] + used[p]):
                loaded(plant, prices, state.out[k], state.into[k], -work.size[p])
            state.counts[SENDS] = start[p]
            tree(plant, work, rules, prices, state, p)
            used[p] = state.counts[SENDS] - start[p]
    begins = np.zeros(pieces + 1, np.int64)
    begins[1:] = np.cumsum(used)
    out, into = np.zeros(begins[pieces], np.int64), np.zeros(begins[pieces], np.int64)
    for p in range(pieces):
        for k in range(used[p]):
            out[begins[p] + k], into[begins[p] + k] = state.out[start[p] + k], state.into[start[p] + k]
    return out, into, begins


@jit(inlined=True)
def planted(work: Work, rules: Rules, state: State, p: int) -> None:
    """Begin the tree of piece ``p``, of its holders alone."""
    state.has[:], state.wants[:], state.sends[:] = False, False, False
    state.depth[:] = 0
    senders = 0
    for k in range(work.holder_start[p], work.holder_start[p + 1]):
        h = work.holder[k]
        if not rules.one_holder or senders == 0:
            state.there[senders], state.sends[h] = h, True
            senders += 1
        state.has[h] = True
    state.counts[SENDERS], state.counts[HOLDERS] = senders, senders
    for k in range(work.wanter_start[p], work.wanter_start[p + 1]):
        state.wants[work.wanter[k]] = True


@jit(inlined=True)
def tree(plant: Plant, work: Work, rules: Rules, prices: Prices, state: State, p: int) -> None:
    """Grow the tree of piece ``p``, as far as wanters can be reached."""
    planted(work, rules, state, p)
    begin, end = work.wanter_start[p], work.wanter_start[p + 1]
    for i in range(end - begin):
        target = work.wanter[begin + (i + p) % (end - begin)]
        if state.has[target]:
            continue
        home = plant.island[target]
        low, high = plant.island_start[home], plant.island_start[home + 1]
        near = False
        for k in range(low, high):
            near = near or state.sends[plant.in_island[k]]
        if not near:
            entered(plant, rules, prices, state, work.size[p], target)
        if not state.has[target]:
            out, into = best_pair(plant, prices.price, state, target, low, high)
            if out < 0:
                out, into = best_pair(plant, prices.price, state, target, 0, len(plant.in_island))
            if out < 0:
                return
            send(plant, rules, prices, state, work.size[p], out, into)


@jit(inlined=True)
def send(plant: Plant, rules: Rules, prices: Prices, state: State, size: float, out: int, into: int) -> None:
    """Send the piece from port to port."""
    count, source, target = state.counts, plant.rank[out], plant.rank[into]
    state.out[count[SENDS]], state.into[count[SENDS]] = out, into
    count[SENDS] += 1
    loaded(plant, prices, out, into, size)
    state.has[target], state.depth[target] = True, state.depth[source] + 1
    if rules.enter_once:
        state.there[count[SENDERS]], state.sends[target] = target, True
        count[SENDERS] += 1


@jit(inlined=True)
def entered(plant: Plant, rules: Rules, prices: Prices, state: State, size: float, target: int) -> None:
    """Send into the target's island, if there is a way. A mate of a holder may take the piece over, and a mate of the
    target receive it, where their planes cost less or they share one."""
    home, count = plant.island[target], state.counts
    among = count[SENDERS] if rules.forward else count[HOLDERS]
    looked = min(among, rules.senders)
    opened(plant, rules, prices.price, state, target)
    way = from_senders(plant, prices.price, state, home, among, looked)
    if rules.relay or way.source < 0:
        for turn in range(looked):
            i = (count[LOOKED] + turn) % among
            giver = state.there[i]
            island = plant.island[giver]
            cheapest = state.giver[island] == giver and state.lowest[island] < way.cost
            if cheapest and (rules.rounds > 1 or i < count[HOLDERS]):
                way = from_mates(plant, rules, prices.price, state, home, giver, way)
    count[LOOKED] += looked
    closed(plant, state, home)
    if way.source < 0:
        return
    m = plant.rank[way.source]
    if way.mate >= 0 and not (state.has[m] and state.depth[m]):
        island = plant.island[m]
        low, high = plant.island_start[island], plant.island_start[island + 1]
        at = low + np.searchsorted(plant.in_island[low:high], way.mate)
        out, into = best_pair(plant, prices.price, state, m, at, at + 1)
        send(plant, rules, prices, state, size, out, into)
    send(plant, rules, prices, state, size, way.source, way.enters)


@jit(inlined=True)
def opened(plant: Plant, rules: Rules, price: FloatArray, state: State, target: int) -> None:
    """Find the cheapest ports into the target's island, of every plane and pair; in the last column of any pair."""
    home = plant.island[target]
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
                if cost * rules.away < state.least[z, -1]:
                    state.least[z, -1], state.port[z, -1] = cost * rules.away, q


@jit(inlined=True)
def closed(plant: Plant, state: State, home: int) -> None:
    """Forget the ports into an island."""
    for k in range(plant.island_start[home], plant.island_start[home + 1]):
        v = plant.in_island[k]
        for q in range(plant.first[v], plant.first[v + 1]):
            state.least[plant.plane[q], plant.pair_in[q]] = np.inf
            state.least[plant.plane[q], -1] = np.inf


@jit(inlined=True)
def from_senders(plant: Plant, price: FloatArray, state: State, home: int, among: int, looked: int) -> Way:
    """The cheapest way into an island from those that are ``looked`` at ``among`` the first senders; also who of every
    island gives to a mate at the lowest cost."""
    way = Way(np.inf, -1, -1, -1)
    state.lowest[:] = np.inf
    for turn in range(looked):
        u = state.there[(state.counts[LOOKED] + turn) % among]
        cost, source, enters = across(plant, price, state, home, u, 1.0 + DEPTH * state.depth[u], 0.0, way.cost)
        if source >= 0:
            way = Way(cost, source, -1, enters)
        hand = inner_cost(plant, price, 0, u)
        if hand < state.lowest[plant.island[u]]:
            state.lowest[plant.island[u]], state.giver[plant.island[u]] = hand, u
    return way


@jit(inlined=True)
def from_mates(plant: Plant, rules: Rules, price: FloatArray, state: State, home: int, giver: int, way: Way) -> Way:
    """A cheaper way into an island from a mate of the giver, its next ones first; else the same."""
    island = plant.island[giver]
    begin = plant.island_start[island]
    mates = plant.island_start[island + 1] - begin
    place = np.searchsorted(plant.in_island[begin : begin + mates], giver)
    for k in range(place + 1, place + mates):
        m = plant.in_island[begin + k % mates]
        if state.sends[m] or (rules.one_holder and way.source >= 0):
            continue
        got = state.has[m] and state.depth[m] > 0
        hand = 0.0 if got else state.lowest[island] + inner_cost(plant, price, 1, m)
        cost, source, enters = across(plant, price, state, home, m, 1.0, hand, way.cost)
        if source >= 0 and (got or best_pair(plant, price, state, m, begin + place, begin + place + 1)[0] >= 0):
            way = Way(cost, source, giver, enters)
    return way


@jit(inlined=True)
def across(
    plant: Plant, price: FloatArray, state: State, home: int, rank: int, far: float, hand: float, best: float
) -> tuple[float, int, int]:
    """What a rank's cheapest way into an island costs, ``far`` times its ports' and ``hand``, and the ports; -1 where
    none costs less than ``best``."""
    source, enters = -1, -1
    for p in range(plant.first[rank], plant.first[rank + 1]):
        z, leaves = plant.plane[p], port_cost(plant, price, 0, p)
        for pair in (plant.pair_out[p, home], -1):
            cost = (leaves + state.least[z, pair]) * far + hand
            if cost < best:
                best, source, enters = cost, p, state.port[z, pair]
    return best, source, enters
