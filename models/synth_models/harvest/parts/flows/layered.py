"""Hop-limited concurrent flow over a layered graph, aggregated by source; for when simple routes are too many to list.

Layer h holds the GPUs after h hops. For every source one commodity leaves it towards all its destinations:

    minimise u   subject to   what reaches (v, h) goes on or is taken out there, if v is a destination,
                              every destination takes out its volume in all its layers together,
                              load of a link orbit <= u * its parallel links.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.parts.demands import relative_volumes
from synth_models.harvest.parts.flows.path import Routes, least_load


def solve(
    pairs: IntArray, links: IntArray, distance: IntArray, hop_limit: int, link_orbit: IntArray, count: IntArray
) -> tuple[Routes, FloatArray]:
    """Routes with the shares of smallest largest load; arguments as in :mod:`synth_models.harvest.parts.flows.path`."""
    gpus, layers = len(distance), hop_limit + 1
    sources, volume = np.unique(pairs[:, 0]), relative_volumes(pairs)
    moves, takes = [], []  # (source number, hop, link) and (pair, layer)
    for number, source in enumerate(sources):
        mine = np.flatnonzero(pairs[:, 0] == source)
        ends = pairs[mine, 1]
        near = distance[:, ends].min(axis=1)
        for hop in range(hop_limit):
            useful = (distance[source, links[:, 0]] <= hop) & (near[links[:, 1]] < hop_limit - hop)
            useful &= (links[:, 0] == source) == (hop == 0)
            if len(ends) == 1:
                useful &= links[:, 0] != ends[0]
            at = np.flatnonzero(useful & (links[:, 1] != source))
            moves.append(np.stack([np.full(len(at), number), np.full(len(at), hop), at], axis=1))
        for pair, end in zip(mine.tolist(), ends.tolist(), strict=True):
            takes += [(pair, layer) for layer in range(int(distance[source, end]), layers)]
    move, take = np.concatenate(moves), np.array(takes)
    taken_by = np.searchsorted(sources, pairs[take[:, 0], 0])

    def place(number: IntArray, layer: IntArray, gpu: IntArray) -> IntArray:
        return (number * layers + layer) * gpus + gpu

    variables = len(move) + len(take) + 1
    entering = place(move[:, 0], move[:, 1] + 1, links[move[:, 2], 1])
    leaving = place(move[:, 0], move[:, 1], links[move[:, 2], 0])
    out = place(taken_by, take[:, 1], pairs[take[:, 0], 1])
    rows, at = np.unique(np.concatenate([entering, leaving, out]), return_inverse=True)
    column = np.concatenate([np.arange(len(move)), np.arange(len(move)), len(move) + np.arange(len(take))])
    sign = np.concatenate([np.ones(len(move)), -np.ones(len(move) + len(take))])
    starts = place(np.arange(len(sources)), np.zeros(len(sources), dtype=np.int64), sources)
    right = np.zeros(len(rows) + len(pairs))
    right[np.searchsorted(rows, starts)] = -np.bincount(np.searchsorted(sources, pairs[:, 0]), volume)
    equal = csr_array(
        (
            np.concatenate([sign, np.ones(len(take))]),
            (np.concatenate([at, len(rows) + take[:, 0]]), np.concatenate([column, len(move) + np.arange(len(take))])),
        ),
        shape=(len(right), variables),
    )
    right[len(rows) :] = volume
    load = csr_array(
        (
            np.concatenate([np.ones(len(move)), -count.astype(float)]),
            (
                np.concatenate([link_orbit[move[:, 2]], np.arange(len(count))]),
                np.concatenate([np.arange(len(move)), np.full(len(count), variables - 1)]),
            ),
        ),
        shape=(len(count), variables),
    )
    values = least_load(load, equal, right)
    found, share = _decompose(pairs, links, sources, move, take, values)
    found, share = _with_all(found, share, pairs, links, distance)
    share /= np.bincount(found.pair, share, len(pairs))[found.pair]
    return found, share


def _decompose(
    pairs: IntArray, links: IntArray, sources: IntArray, move: IntArray, take: IntArray, values: FloatArray
) -> tuple[Routes, FloatArray]:
    """Peel routes off the layered flow, each from where a pair's share is taken out back to its source.

    A flow to several destinations may come by one of them and return to it; such detours are cut out, which loads no
    link more.
    """
    left = {
        (int(s), int(h), int(e)): float(value)
        for (s, h, e), value in zip(move, values[: len(move)], strict=True)
        if value > 1e-12
    }
    into: dict[tuple[int, int, int], list[int]] = {}
    for s, h, e in left:
        into.setdefault((s, h + 1, int(links[e, 1])), []).append(e)
    of_pair: list[int] = []
    paths: list[list[int]] = []
    shares: list[float] = []
    for (pair, layer), amount in zip(take.tolist(), values[len(move) : -1].tolist(), strict=True):
        number, end = int(np.searchsorted(sources, pairs[pair, 0])), int(pairs[pair, 1])
        while amount > 1e-10:
            path: list[int] = []
            at, flow = end, amount
            for hop in range(layer - 1, -1, -1):
                best = max(into.get((number, hop + 1, at), []), key=lambda e: left[number, hop, e], default=None)
                if best is None or left[number, hop, best] <= 0.0:
                    path = []
                    break
                path.append(best)
                flow = min(flow, left[number, hop, best])
                at = int(links[best, 0])
            if not path or flow <= 1e-12:
                break
            for hop, edge in enumerate(reversed(path)):
                left[number, hop, edge] -= flow
            of_pair.append(pair)
            paths.append(_without_loops(links, path[::-1]))
            shares.append(flow)
            amount -= flow
    start = np.cumsum([0, *map(len, paths)], dtype=np.int64)
    link = np.array([edge for path in paths for edge in path], dtype=np.int64)
    return Routes(np.array(of_pair, dtype=np.int64), start, link), np.array(shares)


def _with_all(
    found: Routes, share: FloatArray, pairs: IntArray, links: IntArray, distance: IntArray
) -> tuple[Routes, FloatArray]:
    """The routes, and a shortest one for every pair whose volume is so small beside the others that the program's
    precision lost it."""
    lost = np.setdiff1d(np.arange(len(pairs)), found.pair)
    paths: list[list[int]] = []
    for source, end in pairs[lost, :2].tolist():
        path: list[int] = []
        while source != end:
            near = distance[links[:, 1], end] + 1 == distance[source, end]
            path.append(int(np.flatnonzero((links[:, 0] == source) & near)[0]))
            source = int(links[path[-1], 1])
        paths.append(path)
    start = np.concatenate([found.start, found.start[-1] + np.cumsum([len(path) for path in paths], dtype=np.int64)])
    link = np.concatenate([found.link, np.array([edge for path in paths for edge in path], dtype=np.int64)])
    return Routes(np.concatenate([found.pair, lost]), start, link), np.concatenate([share, np.ones(len(lost))])


def _without_loops(links: IntArray, path: list[int]) -> list[int]:
    """The route without what lies between two visits of one GPU."""
    kept: list[int] = []
    seen = {int(links[path[0], 0]): 0}  # GPU: how many of the kept links lead up to it
    for edge in path:
        kept.append(edge)
        at = int(links[edge, 1])
        if at in seen:
            kept = kept[: seen[at]]
            seen = {gpu: place for gpu, place in seen.items() if place <= seen[at]}
        else:
            seen[at] = len(kept)
    return kept
