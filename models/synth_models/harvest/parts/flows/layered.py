"""Hop-limited concurrent flow over a layered graph, aggregated by source; for when simple routes are too many to list.

Layer h holds the GPUs after h hops. For every source one commodity leaves it towards all its destinations:

    minimise u                                                                      over f, a >= 0
    (27) conservation   sum_{e into v} f_{s,h-1,e} - sum_{e out of v} f_{s,h,e} - a_{p,h}
                        = -[v = s, h = 0] sum_{p of s} w_p                          p being (s, v)
    (28) taken_out      sum_h a_{p,h} = w_p
    (29) load           sum_{s,h, e in o} f_{s,h,e} <= c_o u

=================  =======================  ================================  ==================================
page               code                     index set                         unit
=================  =======================  ================================  ==================================
f_{s,h,e}          ``move``                 source, hop, useful link          volumes of the pair with most
a_{p,h}            ``take``                 pair, layer of its destination    volumes of the pair with most
u                  last column              one number                        volumes of the pair with most
w_p                ``volume``               chosen pairs                      volumes of the pair with most
c_o                ``count``                orbits of links                   parallel links
=================  =======================  ================================  ==================================

Rows are sparse matrices from the start, as in :mod:`synth_models.harvest.parts.flows.path`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.parts.demands import relative_volumes
from synth_models.harvest.parts.flows.path import Routes, least_load


def solve(
    pairs: IntArray, links: IntArray, distance: IntArray, hop_limit: int, link_orbit: IntArray, count: IntArray
) -> tuple[Routes, FloatArray]:
    """Routes with the shares of smallest largest load; arguments as in :mod:`synth_models.harvest.parts.flows.path`."""
    net = _layers(pairs, links, distance, hop_limit)
    balance, right = conservation(net)
    value, row, column = (np.concatenate(two) for two in zip(balance, taken_out(net, len(right)), strict=True))
    right = np.concatenate([right, net.volume])
    equal = csr_array((value, (row, column)), shape=(len(right), net.columns))
    values = least_load(load(net, link_orbit, count), equal, right)
    found, share = _decompose(pairs, links, net.sources, net.move, net.take, values)
    found, share = _with_all(found, share, pairs, links, distance)
    share /= np.bincount(found.pair, share, len(pairs))[found.pair]
    return found, share


Terms = tuple[FloatArray, IntArray, IntArray]  # coefficients, their rows and columns


class _Layers(NamedTuple):
    """The program's columns: ``move``, rows (source number, hop, link), then ``take``, rows (pair, layer), then u.
    ``gpus`` and ``layers`` are numbers, ``volume`` is that of pairs, ``sources`` are GPUs."""

    pairs: IntArray
    links: IntArray
    volume: FloatArray
    sources: IntArray
    move: IntArray
    take: IntArray
    gpus: int
    layers: int

    @property
    def columns(self) -> int:
        return len(self.move) + len(self.take) + 1

    def place(self, number: IntArray, layer: IntArray, gpu: IntArray) -> IntArray:
        """A number for a source's commodity at a GPU of a layer."""
        return (number * self.layers + layer) * self.gpus + gpu


def _layers(pairs: IntArray, links: IntArray, distance: IntArray, hop_limit: int) -> _Layers:
    """Moves that lie on some route of at most ``hop_limit`` hops, and the layers where a pair can be taken out."""
    sources = np.unique(pairs[:, 0])
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
            takes += [(pair, layer) for layer in range(int(distance[source, end]), hop_limit + 1)]
    move, take = np.concatenate(moves), np.array(takes)
    return _Layers(pairs, links, relative_volumes(pairs), sources, move, take, len(distance), hop_limit + 1)


def conservation(net: _Layers) -> tuple[Terms, FloatArray]:
    """(27): what reaches a GPU in a layer goes on or is taken out there, and all leaves its source; a row a place that
    is met, with the right sides."""
    pairs, sources, move, take = net.pairs, net.sources, net.move, net.take
    taken_by = np.searchsorted(sources, pairs[take[:, 0], 0])
    entering = net.place(move[:, 0], move[:, 1] + 1, net.links[move[:, 2], 1])
    leaving = net.place(move[:, 0], move[:, 1], net.links[move[:, 2], 0])
    out = net.place(taken_by, take[:, 1], pairs[take[:, 0], 1])
    rows, at = np.unique(np.concatenate([entering, leaving, out]), return_inverse=True)
    column = np.concatenate([np.arange(len(move)), np.arange(len(move)), len(move) + np.arange(len(take))])
    sign = np.concatenate([np.ones(len(move)), -np.ones(len(move) + len(take))])
    starts = net.place(np.arange(len(sources)), np.zeros(len(sources), dtype=np.int64), sources)
    right = np.zeros(len(rows))
    right[np.searchsorted(rows, starts)] = -np.bincount(np.searchsorted(sources, pairs[:, 0]), net.volume)
    return (sign, at, column), right


def taken_out(net: _Layers, first_row: int) -> Terms:
    """(28): a pair's destination takes out its volume in all layers together; a row a pair from ``first_row`` on."""
    return np.ones(len(net.take)), first_row + net.take[:, 0], len(net.move) + np.arange(len(net.take))


def load(net: _Layers, link_orbit: IntArray, count: IntArray) -> Any:
    """(29): what moves over a link of an orbit is at most u a parallel link, as rows <= 0."""
    value = np.concatenate([np.ones(len(net.move)), -count.astype(float)])
    row = np.concatenate([link_orbit[net.move[:, 2]], np.arange(len(count))])
    column = np.concatenate([np.arange(len(net.move)), np.full(len(count), net.columns - 1)])
    return csr_array((value, (row, column)), shape=(len(count), net.columns))


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
