"""Permutations that keep a graph as it is: what they do to arcs, the groups that they generate, orbits.

A permutation of ``count`` things is an array ``image``, shape (count,): thing i goes to ``image[i]``. Checks of
schedules that symmetry repeats (:mod:`synth.schedule.replay_quotient`) share none of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import AnyIntArray, IntArray
from synth.clock.start_up_costs import uncounted

Permutation = IntArray
Column = npt.NDArray[Any]


def arc_images(
    image: Permutation,
    tail: AnyIntArray,
    head: AnyIntArray,
    kinds: Sequence[Column] = (),
    moved_kinds: Sequence[Column] | None = None,
) -> IntArray | None:
    """Return the arc to which each goes when the nodes move by ``image``, shape (arcs,); None if some goes to none.

    Arcs lead from ``tail`` to ``head`` and are of one kind where they agree in every column of ``kinds``, shape (arcs,)
    each; an arc that moves is of the kind ``moved_kinds`` (default: the one it was). Of several arcs between two nodes
    that are of one kind, the i-th goes to the i-th.
    """
    moved = (*(kinds if moved_kinds is None else moved_kinds), image[head], image[tail])
    there = (*kinds, head, tail)
    from_order, to_order = np.lexsort(moved), np.lexsort(there)
    if any(not np.array_equal(a[from_order], b[to_order]) for a, b in zip(moved, there, strict=True)):
        return None
    found = np.empty(len(tail), dtype=np.int64)
    found[from_order] = to_order
    return found


def row_images(images: Sequence[Permutation] | IntArray, rows: IntArray) -> list[IntArray]:
    """Return, for each permutation, the row to which each row goes when its entries move, shape (rows,) each.

    ``rows``: distinct, shape (rows, columns), mapped onto themselves by the permutations.
    """
    count = len(images[0]) if len(images) else 1
    weights = count ** np.arange(rows.shape[1] - 1, -1, -1)
    keys = rows @ weights
    order = np.argsort(keys).astype(np.int64)
    ordered = keys[order]
    return [order[np.searchsorted(ordered, image[rows] @ weights)] for image in images]


def orbits(count: int, generators: Sequence[AnyIntArray]) -> IntArray:
    """Return the least member of the orbit of each of ``count`` things under what the permutations generate."""
    with uncounted():
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

    here = np.tile(np.arange(count), len(generators))
    there = np.concatenate(generators) if len(generators) else here
    graph = coo_array((np.ones(len(here), dtype=np.int8), (here, there)), shape=(count, count))
    label = connected_components(graph.tocsr(), directed=False)[1]
    least = np.full(int(label.max(initial=-1)) + 1, count, dtype=np.int64)
    np.minimum.at(least, label, np.arange(count))
    return least[label]


def orbits_of_group(elements: AnyIntArray) -> IntArray:
    """Return the least member of the orbit of each thing, from all elements of a group, shape (elements, count)."""
    found: IntArray = elements.min(axis=0).astype(np.int64)
    return found


def generated(generators: Sequence[Permutation], count: int, most: int, told_apart: int = 0) -> IntArray | None:
    """Return the group that permutations of ``count`` things generate, shape (elements, count), the identity first.

    None if it has more than ``most`` elements. Elements that agree on all things from ``told_apart`` on are one.
    """
    elements = [np.arange(count, dtype=np.int64)]
    known = {elements[0][told_apart:].tobytes()}
    for element in elements:  # which grows
        for generator in generators:
            product = generator[element]
            key = product[told_apart:].tobytes()
            if key not in known:
                if len(elements) == most:
                    return None
                known.add(key)
                elements.append(product)
    return np.array(elements, dtype=np.int64)


def isomorphisms(colour: Column, target: Column) -> Iterator[tuple[int, ...]]:
    """Yield the permutations with ``target[image[u], image[v]] == colour[u, v]`` for all u, v, in ascending order.

    ``colour``, ``target``: shape (count, count), what joins every ordered pair. Backtracking, for small counts.
    """
    return _extended(colour, target, [])


def _extended(colour: Column, target: Column, image: list[int]) -> Iterator[tuple[int, ...]]:
    u = len(image)
    if u == len(colour):
        yield tuple(image)
        return
    for v in range(len(colour)):
        if v in image or colour[u, u] != target[v, v]:
            continue
        if all(colour[u, w] == target[v, x] and colour[w, u] == target[x, v] for w, x in enumerate(image)):
            yield from _extended(colour, target, [*image, v])
