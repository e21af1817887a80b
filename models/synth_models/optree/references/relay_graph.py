"""The way of one item that uses every wavelength-hop: leaps ahead and fills behind, read off a graph.

**Theorem.** On a ring of ``N`` nodes with ``w >= 3`` wavelengths let ``T = ceil((N-1)/(w+1))``. If ``2T >= w - 1``
(and no circuit need be shorter than ``w - 1`` hops), an allgather takes ``T`` steps: this is what is built here, and
the leap bound (``bounds/steps.py``) shows that no schedule takes fewer. With ``w = 2`` the same holds for even ``N >
4``, with ``w = 1`` for every ``N`` (``T = floor(N/2)``, the ring algorithm in both directions).

**The way.** In step ``t`` the clockwise and the counterclockwise front each leap on by one circuit, and circuits of
one hop, the *fills*, go into the gaps that earlier leaps have left. A gap takes at most one fill a step from each
end; the gap of the step's own leap takes one at most, from the old front, in the direction of the leap. Draw a point
``(t, x)`` for every step and direction ``x``, and for a fill in step ``t``, direction ``y``, of the gap that the leap
``(s, x)`` left, an edge ``(s, x) - (t, y)``; the fill of the step's own gap is a loop. Then

* the leap ``(s, x)`` has ``1 + loop + edges to later points`` hops, as many as its gap has links, if all its nodes
  but the last are filled. The fills of step ``s`` in direction ``x`` are ``loop + edges to earlier points``. So one
  item uses ``1 + degree`` hops of a direction in a step, a loop counted twice: ``w`` is kept iff **no degree
  exceeds** ``w - 1``;
* the fronts cover ``2T + edges`` nodes, loops among the edges: the item goes round iff ``edges = N - 1 - 2T``;
* any simple graph will do (one edge between two points is one fill a step and end), if it joins no two points of one
  step. (A fill starts at a holder: each end of a gap moves inwards by one node a fill.)

With loops everywhere this asks for a graph on ``2T`` points that is regular of degree ``w - 3`` and joins no point
with its partner in the same step. There is one for every ``w - 3 <= 2T - 2``: a circulant (:func:`fills`), the
partners being opposite points. It has ``(w-3)T`` edges, with the loops ``(w-1)T``, so ``N = (w+1)T + 1`` nodes, the
most that the leap bound allows. For fewer nodes edges are left out. For ``w = 2`` degree ``w - 1 = 1`` is had without
loops.

**Wavelengths.** All items go this way, rotated, so in a step and direction one circuit of ``a`` hops and ``w - a`` of
one hop at most start at every node. The long ones get wavelengths in blocks if ``ceil(N / floor(N/a)) <= w``, the
short ones take what is left on their links. With ``N = q a + r``, ``r < a``, that is ``r <= q (w - a)``. For loops
everywhere ``a <= w - 1``. Let ``d = (w+1)T + 1 - N``, so ``0 <= d <= w <= 2T + 1``.

* ``a <= w - 2``: ``q >= T`` since ``(w-2)T <= N``, and ``r <= w - 3 <= 2T - 2 <= q (w - a)``.
* ``a = w - 1`` and ``d <= 1``: ``N = (w-1)T + 2T + 1 - d`` with ``2T + 1 - d = c (w-1) + r``, ``c >= 1``, so ``q = T
  + c``. For ``c = 1``, ``2q = 2T + 2 = w + r + d >= 2r``; for ``c >= 2``, ``q > T >= w - 2 >= r``.
* ``a = w - 1`` and ``d >= 2`` where the inequality fails: such points lose an edge each. These have a loop and no
  edge to an earlier point, in our graph the two of step 1 and, for even ``w`` and odd ``T``, one of step 2: three at
  most. If ``2T + 1 - d >= w - 1``, the inequality holds as before; otherwise ``d >= 2T + 3 - w``, for even ``w``
  (``2T >= w``) three at least. For ``w <= 4`` it always holds in the theorem's range (``w = 3``: ``r <= 1 <= q``; ``w
  = 4``: ``N >= 7``, so ``r <= 2 <= q``).

For other rings the same graphs, without the edges that would make circuits too long, give ways of more steps.
"""

from __future__ import annotations

from itertools import chain, count

from synth_models.optree.references.relay_pattern import Pattern, Reception
from synth_models.optree.references.relay_wavelengths import safe_load

Point = int  # step - 1 for a leap clockwise, steps + step - 1 for one counterclockwise
Edge = tuple[Point, Point]  # the gap's leap and the point in whose step and direction it is filled; equal: a loop


def graph_pattern(nodes: int, wavelengths: int, max_hops: int, most: int) -> Pattern | None:
    """The way with the fewest steps that the graphs here give, or None if that is more than ``most``.

    ``max_hops >= 1`` is the longest circuit. Time and memory O(nodes).
    """
    longest = min(max_hops, safe_load(nodes, wavelengths))
    least = max(-(-(nodes - 1) // (wavelengths + 1)), wavelengths // 2, 1)
    for steps in range(least, most + 1):
        needed = nodes - 1 - 2 * steps
        edges = _trimmed(fills(steps, wavelengths), steps, longest)
        if 0 <= needed <= len(edges):
            return _way(nodes, steps, _fewer(edges, steps, needed))
    return None


def fills(steps: int, wavelengths: int) -> list[Edge]:
    """The graph with as many edges as there can be, for ``2 steps >= wavelengths - 1``: every degree is ``w - 1``.

    Points lie on a circle, partners opposite each other. Odd ``w``: everyone joined with the ``(w-3)/2`` next ones on
    both sides. Even ``w``: points 0 and 1, 2 and 3, … joined (not in one step, where they are partners), and everyone
    with those 2 to ``(w-2)/2`` places away.
    """
    points = 2 * steps
    if wavelengths == 1:
        return []
    odd = wavelengths % 2
    near = range(1, (wavelengths - 3) // 2 + 1) if odd else range(2, (wavelengths - 2) // 2 + 1)
    pairs = [(p, (p + k) % points) for k in near for p in range(points)]
    if not odd and steps > 1:
        pairs += [(p, p + 1) for p in range(0, points, 2)]
    loops = [(p, p) for p in range(points)] if wavelengths >= 3 else []
    return loops + [(p, q) if p % steps < q % steps else (q, p) for p, q in pairs]


def _by_leap(edges: list[Edge], steps: int) -> list[list[Edge]]:
    """The edges of every leap, the one filled last at the end."""
    leaps: list[list[Edge]] = [[] for _ in range(2 * steps)]
    for edge in sorted(edges, key=lambda edge: (edge[1] % steps, edge[1])):
        leaps[edge[0]].append(edge)
    return leaps


def _trimmed(edges: list[Edge], steps: int, longest: int) -> list[Edge]:
    """Without the edges that would make a leap longer than ``longest``."""
    return list(chain.from_iterable(own[: longest - 1] for own in _by_leap(edges, steps)))


def _fewer(edges: list[Edge], steps: int, needed: int) -> list[Edge]:
    """``needed`` of the edges: the others are taken from the longest leaps."""
    leaps = _by_leap(edges, steps)
    surplus = len(edges) - needed
    for length in count(max(map(len, leaps), default=0), -1):
        for own in leaps:
            if surplus and len(own) == length:
                own.pop()
                surplus -= 1
        if not surplus:
            return list(chain.from_iterable(leaps))
    raise AssertionError("count does not end")


def _way(nodes: int, steps: int, edges: list[Edge]) -> Pattern:
    """The receptions that the leaps and fills are."""
    rows: list[Reception] = []
    front = [0, 0]  # how far the item is clockwise, counterclockwise
    for leap, own in enumerate(_by_leap(edges, steps)):
        side, sign = leap // steps, 1 if leap < steps else -1
        low = front[side]
        high = front[side] = low + 1 + len(own)
        rows.append(Reception(leap % steps + 1, sign * low % nodes, sign * high % nodes, high - low, sign > 0))
        for _, point in own:
            outwards = point // steps == side
            src, dst = (low, low + 1) if outwards else (high, high - 1)
            low, high = (dst, high) if outwards else (low, dst)
            rows.append(Reception(point % steps + 1, sign * src % nodes, sign * dst % nodes, 1, point < steps))
    return Pattern(nodes, rows, mirrored=False)
