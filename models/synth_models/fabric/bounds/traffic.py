"""Bounds on blocks with several holders and wanters: prices that come out of a flow.

Let a byte of block b cross link e ``y_be`` times. For every wanter w some path from a holder leads there,
of a sum from every holder: a flow of one that no ``y_be`` is less than. The least T for which all links carry this is
a linear program; its dual has a price for every link and of every price a share for every wanter (of a sum: and
holder), and the shortest paths under the shares add up to what a byte pays. Whole prices are made of it, rounded down,
so that the certificate (argument ``shares``) holds exactly; links are paid only within their windows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.text.quantities import BYTES, shown
from synth_models.fabric.bounds.arrays import Links, group_rows
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.gossip import counts_each
from synth_models.fabric.bounds.link_prices import resources_of, time_to_pay
from synth_models.fabric.bounds.paths import distances, earliest
from synth_models.fabric.bounds.proven import Proven

MOST_VARIABLES = 150_000  # of the flow's program
HIGHEST = 2**24  # price of a byte


class Class(NamedTuple):
    """Blocks of the same holders and wanters: the first of them, the bytes of all, and what a flow of one leads from
    and to: holders (all of them, or one of a sum), wanter."""

    block: int
    bytes: int
    flows: list[tuple[list[int], int]]


def classes(links: Links) -> list[Class]:
    """The blocks by who holds and who wants them."""
    blocks, members = links.instance.blocks, links.instance.members
    kinds = np.stack([blocks.origin, blocks.goal, blocks.sums.astype(np.int64)])
    _, first, which = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
    found = []
    for k, b in enumerate(first.tolist()):
        holders, wanters = (blocks.ranks(int(codes[b]), members) for codes in (blocks.origin, blocks.goal))
        sources = [[h] for h in holders] if blocks.sums[b] else [list(holders)]
        flows = [(source, w) for source in sources for w in wanters if w not in source]
        found.append(Class(b, sum(blocks.bytes[which.reshape(-1) == k].tolist()), flows))
    return found


class Fluid(NamedTuple):
    """An optimal flow. ``seconds``: its time without latencies. ``shares``: of every flow of every class the share of
    every link's price, shape (links,); ``use``: how often a byte of each class crosses every link, shape (classes,
    links)."""

    seconds: float
    shares: list[list[FloatArray]]
    use: FloatArray


def shares_of_traffic(links: Links, seconds: float, known: Proven) -> Proven:
    """What the prices of the flow, found in so many seconds, prove, or ``known`` if that is more."""
    kinds = classes(links)
    fluid = fluid_traffic(links, kinds, seconds)
    return known if fluid is None else proven_by(links, kinds, fluid, known)


def proven_by(links: Links, kinds: list[Class], fluid: Fluid, known: Proven) -> Proven:
    """What the prices of this flow prove, or ``known`` if that is more."""
    top = max(float(np.sum(rows, axis=0).max(initial=0.0)) for rows in fluid.shares)
    if top <= 0:
        return known
    whole = [[np.floor(row * (HIGHEST / top)).astype(np.int64) for row in rows] for rows in fluid.shares]
    length: IntArray = np.maximum.reduce([np.sum(rows, axis=0) for rows in whole])
    needed, rows = 0, []
    origins, goals = np.zeros(links.nodes, dtype=bool), np.zeros(links.nodes, dtype=bool)
    for one, parts in zip(kinds, whole, strict=True):
        for (sources, wanter), part in zip(one.flows, parts, strict=True):
            pays = int(distances(links, part, sources)[wanter])
            if not 0 < pays < UNREACHABLE:
                continue
            needed += pays * one.bytes
            origins[sources], goals[wanter] = True, True
            rows.append((one, sources, wanter, part))
    if not needed:
        return known
    seconds = _until_paid(links, length, origins, goals, needed)
    if seconds <= known.seconds:
        return known
    words = f"prices of which wanters share {shown(sum(one.bytes for one in kinds), BYTES)} on {links.links} links"
    return Proven(seconds, "shares", lambda: words, lambda: _certificate(links, length, rows))


def _until_paid(links: Links, length: IntArray, origins: BoolArray, goals: BoolArray, needed: int) -> Fraction:
    begin, left = earliest(links, origins)[links.src], earliest(links.reverse, goals)[links.dst]
    left = np.where(left < UNREACHABLE, left + links.delay, UNREACHABLE)
    every = Colours(np.arange(links.nodes), np.arange(links.links), links.members, np.ones_like(links.members))
    resources = resources_of(links, every, begin, left, each=counts_each(links))
    return time_to_pay([resources], [length], needed)


def _certificate(links: Links, length: IntArray, rows: list[tuple[Class, list[int], int, IntArray]]) -> dict[str, Any]:
    listed = []
    for one, sources, wanter, part in rows:
        holder = {"holder": sources[0]} if links.instance.blocks.sums[one.block] else {}
        listed.append({"of": one.block, "wanter": wanter, "length": part.tolist()} | holder)
    return {"argument": "shares", "length": length.tolist(), "rows": listed}


def fluid_traffic(links: Links, kinds: list[Class], seconds: float) -> Fluid | None:
    """The quickest flow; None where the program is too large, or not solved in time."""
    if not kinds or sum(len(one.flows) + 1 for one in kinds) * links.links > MOST_VARIABLES:
        return None
    edges, every = links.links, np.arange(links.links)
    flows = [(c, *flow) for c, one in enumerate(kinds) for flow in one.flows]
    first = 1 + len(kinds) * edges  # column of the first flow, behind T and how often bytes cross links
    columns = first + len(flows) * edges
    resource, resources = group_rows(links, np.ones(edges, dtype=bool))
    rate, scale = links.rate / float(links.rate.max()), float(sum(one.bytes for one in kinds))
    least: list[tuple[Any, Any, Any]] = [
        (np.arange(resources), np.zeros(resources, dtype=np.int64), -np.ones(resources))
    ]
    for c, one in enumerate(kinds):
        least.append((resource, 1 + c * edges + every, one.bytes / scale / rate))
    equal: list[tuple[Any, Any, Any]] = []
    wanted, at = np.zeros(sum(links.nodes - len(sources) for _, sources, _ in flows)), 0
    for number, (c, sources, wanter) in enumerate(flows):
        row, column = resources + number * edges + every, first + number * edges + every
        least += [(row, column, np.ones(edges)), (row, 1 + c * edges + every, -np.ones(edges))]
        inner = np.ones(links.nodes, dtype=bool)
        inner[sources] = False
        place = at + np.cumsum(inner) - 1
        for ends, sign in ((links.dst, 1.0), (links.src, -1.0)):
            kept = inner[ends]
            equal.append((place[ends[kept]], column[kept], np.full(int(kept.sum()), sign)))
        wanted[place[wanter]] = 1.0
        at += int(inner.sum())
    rows = resources + len(flows) * edges
    found: Any = linprog(
        np.concatenate([[1.0], np.zeros(columns - 1)]),
        A_ub=_matrix(least, rows, columns), b_ub=np.zeros(rows), A_eq=_matrix(equal, at, columns), b_eq=wanted,
        method="highs", options={"time_limit": max(seconds, 0.1)},
    )  # fmt: skip
    if found.status != 0:
        return None
    dual = np.maximum(-found.ineqlin.marginals[resources:].reshape(-1, edges), 0.0)
    shares: list[list[FloatArray]] = [[] for _ in kinds]
    for (c, _, _), row in zip(flows, dual, strict=True):
        shares[c].append(row * (scale / kinds[c].bytes))
    use = found.x[1:first].reshape(len(kinds), edges)
    return Fluid(float(found.x[0]) * scale / float(links.rate.max() * links.unit), shares, use)


def _matrix(parts: list[tuple[Any, Any, Any]], rows: int, columns: int) -> Any:
    row, column, value = (np.concatenate(rows_of) for rows_of in zip(*parts, strict=True))
    return csr_array((value, (row, column)), shape=(rows, columns))
