"""Symmetries that a network's grid coordinates suggest, each verified to be an automorphism before it is returned."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import Permutation, arc_images
from synth.network.network import Network


def is_automorphism(network: Network, image: Permutation) -> bool:
    """Whether moving node ``v`` to ``image[v]`` maps the links onto the links, with their bandwidth and latency."""
    return arc_images(image, network.src, network.dst, (network.bandwidth, network.latency)) is not None


def translation(sides: tuple[int, ...], by: tuple[int, ...]) -> Permutation:
    """The node permutation that adds ``by`` to the row-major coordinates, each modulo its side."""
    coordinates = np.unravel_index(np.arange(int(np.prod(sides))), sides)
    moved = tuple((c + b) % s for c, b, s in zip(coordinates, by, sides, strict=True))
    return np.ravel_multi_index(moved, sides).astype(np.int64)


def unit_translations(network: Network) -> list[Permutation]:
    """One step along each axis of the grid (axes of one position left out), which generate all translations. Empty
    unless the network has a grid and each is an automorphism (tori, rings, hypercubes)."""
    sides = network.grid
    if sides is None:
        return []
    units = [tuple(int(axis == j) for j in range(len(sides))) for axis, side in enumerate(sides) if side > 1]
    moves = [translation(sides, unit) for unit in units]
    return moves if all(is_automorphism(network, move) for move in moves) else []


def translations(network: Network) -> IntArray | None:
    """All translations of the grid, shape (nodes, nodes), row ``v`` being the one that carries node 0 to ``v``; None
    without :func:`unit_translations`."""
    sides = network.grid
    if sides is None or not unit_translations(network):
        return None
    targets = zip(*np.unravel_index(np.arange(network.nodes), sides), strict=True)
    return np.stack([translation(sides, tuple(int(x) for x in target)) for target in targets])


def point_symmetries(network: Network, limit: int = 64) -> list[Permutation]:
    """The rotations and reflections of the grid that are automorphisms, identity first, at most ``limit``.

    Candidates permute axes of equal length and flip axes; the result is a group because the candidates form one and
    automorphisms are closed under composition. Without a grid (or with too many axes) it is the identity alone.
    """
    identity = np.arange(network.nodes, dtype=np.int64)
    sides = network.grid
    if sides is None or len(sides) > 3:
        return [identity]
    found = [identity]
    ids = identity.reshape(sides)
    for order in permutations(range(len(sides))):
        if tuple(sides[axis] for axis in order) != tuple(sides):
            continue
        for flips in product((False, True), repeat=len(sides)):
            image = np.flip(ids.transpose(order), tuple(axis for axis, flip in enumerate(flips) if flip)).ravel()
            if not any(np.array_equal(image, g) for g in found) and is_automorphism(network, image):
                found.append(image)
    return found if len(found) <= limit else [identity]
