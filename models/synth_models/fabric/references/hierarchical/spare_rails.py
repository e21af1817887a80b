"""What rails take off the links inside boxes: some blocks of other boxes come to a rank over its own rail.

Allgather on B equal boxes of g ranks (:mod:`.box_sends`): a rank's block goes along its
rail to every other box and from there to the g - 1 others of that box. Rails carry one block for every g that links
inside a box carry, and are idle where these are less than g times as fast. So a share f of what the rank at the end of
a rail would hand out goes along the others' rails instead, from the ranks of the home box that have it by then. With
``rail[e]`` and ``inside[e]`` the routes over link e of one block along every rail, and of one to everybody in each box,
links work for

    max over e of  ((1 + f (g - 1)) rail[e] + (1 + (B - 1) (1 - f)) inside[e]) * block / bandwidth[e].

This is convex in f; the best f is taken among those that whole pieces allow.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.routes.box_routes import PairRoutes


def over_spare_rails(
    routes: PairRoutes, rails: Rails, bandwidth: FloatArray, holder: IntArray, chunk: IntArray
) -> BoolArray | None:
    """The ranks that get a piece of another box over their own rail from that box, shape (pieces, nodes); None where
    rails have no time to spare, or boxes or their rails are not all alike. ``holder`` and number ``chunk`` of every
    piece; ``bandwidth`` of links in bytes/s."""
    boxes, width = rails.rank.shape
    ranks = rails.rank.ravel()
    own = len(rails.in_turn) == 1 and bool(np.all(rails.leaves[ranks] == ranks[:, None]))
    if boxes < 2 or width < 2 or not own or np.any(rails.size != width):
        return None
    count = int(chunk.max()) + 1
    (boxes, width), uses = rails.rank.shape, (routes, rails, bandwidth)
    taken = _best(_rail_uses(*uses), _inside_uses(*uses), boxes, width, count)
    if not taken:
        return None
    found = np.zeros((len(holder), len(rails.box)), dtype=bool)
    for rank in rails.rank.ravel().tolist():
        ahead = (rails.number[holder] - rails.number[rank]) % width
        away = (rails.box[holder] != rails.box[rank]) & (ahead > 0)
        found[:, rank] = away & ((ahead - 1) * count + chunk < taken)
    return found


def _best(rail: FloatArray, inside: FloatArray, boxes: int, width: int, count: int) -> int:
    """How many of the (``width`` - 1) ``count`` pieces that a rank gets inside its box from the end of each rail come
    over its own rail instead."""
    most = (width - 1) * count
    share = np.arange(most + 1) / most
    over = np.outer(rail, 1 + share * (width - 1)) + np.outer(inside, 1 + (boxes - 1) * (1 - share))
    return int(over.max(axis=0).argmin())


def _rail_uses(routes: PairRoutes, rails: Rails, bandwidth: FloatArray) -> FloatArray:
    """Seconds of every link for a byte along every rail, shape (links,)."""
    source = np.repeat(rails.rank.ravel(), len(rails.size) - 1)
    boxes = np.arange(len(rails.size))
    target = np.concatenate([rails.enters[rank, boxes != rails.box[rank]] for rank in rails.rank.ravel().tolist()])
    return _uses(routes, source, target, bandwidth)


def _inside_uses(routes: PairRoutes, rails: Rails, bandwidth: FloatArray) -> FloatArray:
    """Seconds of every link for a byte from every rank to every other of its box, shape (links,)."""
    pairs = [(u, v) for box in rails.rank.tolist() for u in box for v in box if u != v]
    source, target = (np.array(part, dtype=np.int64) for part in zip(*pairs, strict=True))
    return _uses(routes, source, target, bandwidth)


def _uses(routes: PairRoutes, source: IntArray, target: IntArray, bandwidth: FloatArray) -> FloatArray:
    found: FloatArray = np.bincount(routes.of(source, target)[1], minlength=len(bandwidth)) / bandwidth
    return found
