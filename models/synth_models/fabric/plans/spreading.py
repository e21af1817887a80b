"""How data spread from one of n places in a row to all others, whatever the places are: ranks, boxes, leaders.

Every function returns edges (from, to, step) with senders after they have received; ``first`` is the place where the
data begin. Places count around: after the last comes the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from synth_models.fabric.plans.out_trees import Edge

Pattern = Callable[[int, int], list[Edge]]  # from the number of places and the first one


def over(members: Sequence[int], pattern: Pattern) -> Callable[[int, int], list[Edge]]:
    """A pattern as the edges of :class:`~synth_models.fabric.plans.out_trees.Trees` of one variant over ranks."""
    place = {rank: k for k, rank in enumerate(members)}

    def edges(holder: int, variant: int) -> list[Edge]:
        return [(members[u], members[v], step) for u, v, step in pattern(len(members), place[holder])]

    return edges


def chain(n: int, first: int) -> list[Edge]:
    """From each place to the next: a ring's way."""
    return [((first + k) % n, (first + k + 1) % n, k) for k in range(n - 1)]


def star(n: int, first: int) -> list[Edge]:
    """From the first to all others, the next one first."""
    return [(first, (first + k) % n, k - 1) for k in range(1, n)]


def doubling(n: int, first: int, order: Sequence[int] | None = None) -> list[Edge]:
    """Recursive doubling: in step s whoever has the data sends them to the place whose number differs in bit s - 1, or
    in the bit that ``order`` has in that place.

    With n no power of two the last places fold: the last n - p of p = 2^floor(log2 n) hand theirs to place r - p in
    step 0, and get the others' at last.
    """
    half = 1 << (n.bit_length() - 1)
    edges: list[Edge] = []
    start = first
    if start >= half:
        start -= half
        edges.append((first, start, 0))
    has, step = [start], 1
    for place in order if order is not None else range(half.bit_length() - 1):
        edges += [(k, k ^ 1 << place, step) for k in has]
        has += [k ^ 1 << place for k in has]
        step += 1
    return edges + [(k - half, k, step) for k in range(half, n) if k != first]


def bruck(n: int, first: int, radix: int = 2) -> list[Edge]:
    """Bruck's: in step s the r^s places that have the data, r the ``radix``, send them 1, 2, … r - 1 times r^s places
    back, to the nearest first."""
    edges, have, step = [], 1, 0
    while have < n:
        for ahead in range(have, min(radix * have, n), have):
            edges += [((first - k) % n, (first - k - ahead) % n, step) for k in range(min(have, n - ahead))]
        have, step = min(radix * have, n), step + 1
    return edges


def far_first(n: int, first: int, together: int | None = None) -> list[Edge]:
    """Bruck's tree with the farthest step first (PAT's): log2 n steps, in the last of which every place sends n / 2
    blocks to its neighbour.

    ``together``: the most blocks of different places, a power of two A, that one message takes: then log2 A steps to
    places at least n / A away, and n / A - 1 for all nearer ones, in the order of a depth-first walk, so that what is
    on its way in between is of few blocks.
    """
    width = 1 << (n - 1).bit_length()
    near = max(1, width // (together or width))
    edges: list[Edge] = []
    has, distance, step = [0], width // 2, 0
    while distance >= near:
        edges += [(place, place + distance, step) for place in has if place + distance < n]
        has += [place + distance for place in has]
        distance, step = distance // 2, step + 1
    for number, (low, high) in enumerate(_depth_first(0, near // 2)):
        edges += [(place + low, place + high, step + number) for place in has if place + high < n]
    return [((first - u) % n, (first - v) % n, s) for u, v, s in edges]


def _depth_first(place: int, distance: int) -> list[tuple[int, int]]:
    """The edges of a binomial tree below ``place``, the farthest child and all below it first."""
    if not distance:
        return []
    beyond = _depth_first(place + distance, distance // 2)
    return [(place, place + distance), *beyond, *_depth_first(place, distance // 2)]
