"""Trees over boxes by which a broadcast's pieces leave the root's box, one send of a box in each round."""

from __future__ import annotations

from synth_models.fabric.plans.double_trees import parents
from synth_models.fabric.plans.out_trees import Edge


def leader(others: int, on_the_way: int) -> list[Edge]:
    """From the root to box 1, from there to all others, one a round.

    The offset of the k-th that it sends to is such that no two leaders, who begin a round after each other, ever send
    to the same box in one round (an orthomorphism of the cyclic group: k and its offset differ by all but one), and the
    one that is left out is the box that the root sends to then.
    """
    odd = others % 2
    left_out = 0 if odd else others // 2
    shift = (left_out - on_the_way) % others
    offsets = {
        (k + shift) % others: 2 * k % others if odd or 2 * k < others else (2 * k + 1) % others
        for k in range(1, others)
    }
    return [(0, 1, 0), *((1, 1 + offsets[wait], on_the_way + wait) for wait in sorted(offsets))]


def trees_of(count: int) -> list[list[Edge]]:
    """Trees over boxes 0 (the root) to ``count - 1`` that pieces take in turn: from, to, rounds after the piece left
    the root; a box receives before it sends."""
    bits = count.bit_length() - 1
    if count == 1 << bits:
        return [_binomial(bits, dimension) for dimension in range(bits)]
    return [_binary(count, which) for which in (0, 1)]


def _binomial(bits: int, dimension: int) -> list[Edge]:
    """Johnsson and Ho's tree that leaves the root over ``dimension``, over the others in turn, and over it again at
    last to all that are on the root's side: in round r all boxes use dimension r, and each sends one piece."""
    edges, has = [(0, 1 << dimension, 0)], [1 << dimension]
    for wait in range(1, bits):
        bit = 1 << ((dimension + wait) % bits)
        edges += [(box, box ^ bit, wait) for box in has]
        has += [box ^ bit for box in has]
    return edges + [(box, box ^ (1 << dimension), bits) for box in has if box != 1 << dimension]


def _binary(count: int, which: int) -> list[Edge]:
    """One of the two binary trees, hung below box 0; a box sends to its children in two rounds of their own."""
    parent = [-1] + [p + 1 for p in parents(count - 1, which)]
    children: dict[int, list[int]] = {}
    for box, above in enumerate(parent[1:], 1):
        children.setdefault(above, []).append(box)
    edges, queue = [], [(0, 0)]
    for box, step in queue:  # which grows
        for k, child in enumerate(children.get(box, ())):
            edges.append((box, child, step + k))
            queue.append((child, step + k + 1))
    return edges
