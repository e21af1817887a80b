"""Loops of the local search over lifts (:mod:`synth_models.topology.parts.lifts`): sums of lengths, and random moves.

Which of :data:`BITS` positions of copy 0 a node reaches within a length is one whole number, so a step along an arc
serves them all.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit

BITS = 62  # of a whole number
UNREACHED = 1 << 60
TURNED, JOINED, LED = 0, 1, 2
"""What moves change: shifts alone; also which ports are each other's mates; also where one-way ports lead."""


@jit
def _ones(x: int) -> int:
    """How many of the :data:`BITS` bits are set."""
    x -= (x >> 1) & 0x5555555555555555
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    x += x >> 8
    x += x >> 16
    return (x + (x >> 32)) & 127


@jit
def length_sum(to: IntArray, shift: IntArray, length: IntArray, copies: int, most: int) -> int:
    """The sum of the least lengths from all nodes of a lift to those of copy 0, :data:`UNREACHED` where some node is
    out of reach or where the sum is beyond ``most``.

    ``to``, ``shift``, ``length``: shape (positions, ports): the position that a port leads to, -1 where to none, by how
    many copies further, and how long its link is, at least 1. O(positions / BITS * nodes * ports * longest way).
    """
    positions, ports = to.shape
    nodes = positions * copies
    kept = 1 + length.max()  # units of length that are remembered, the next among them
    beside, within = np.empty((nodes, ports), np.int64), np.empty((kept, nodes), np.int64)
    at = np.empty((positions, ports), np.int64)
    for position in range(positions):
        for port in range(ports):
            for copy in range(copies):
                node = copy * positions + position
                if to[position, port] < 0:
                    beside[node, port] = node
                else:
                    beside[node, port] = (copy + shift[position, port]) % copies * positions + to[position, port]
    total = 0
    for first in range(0, positions, BITS):
        wide = min(BITS, positions - first)
        full = (1 << wide) - 1
        within[:, :] = 0
        for bit in range(wide):
            within[0, first + bit] = 1 << bit
        missing, now, same = nodes * wide - wide, 0, 0
        while missing > 0:
            total += missing
            if total > most or same == kept:
                return UNREACHED
            now += 1
            for position in range(positions):
                for port in range(ports):
                    at[position, port] = (now - length[position, port]) % kept if length[position, port] <= now else -1
            left = 0
            for copy in range(copies):
                for position in range(positions):
                    node = copy * positions + position
                    reached = within[(now - 1) % kept, node]
                    if reached != full:
                        for port in range(ports):
                            if at[position, port] >= 0:
                                reached |= within[at[position, port], beside[node, port]]
                        left += _ones(full ^ reached)
                    within[now % kept, node] = reached
            same = same + 1 if left == missing else 0
            missing = left
    return total


@jit
def anneal(
    lift: IntArray,
    copies: int,
    movable: IntArray,
    moves: int,
    draws: FloatArray,
    slack: FloatArray,
    cut: IntArray,
    best: IntArray,
    costs: IntArray,
) -> None:
    """Make a random move for each row of ``draws``, shape (moves, 5), numbers from 0 to 1; take it back where its cost
    is beyond what it was times 1 + ``slack``, shape (moves,).

    ``lift`` and ``best``: shape (4, positions, ports): ``to``, ``shift``, ``mate``, ``length`` of every port, as they
    are and where the cost was least; ``costs``: these two costs, shape (2,). A cost is the sum of lengths and
    ``cut[1]`` for every port less than ``cut[0]`` of the ``movable`` ones that leads to another copy. ``moves``:
    :data:`TURNED`, :data:`JOINED` or :data:`LED`.
    """
    ports, count = lift.shape[2], len(movable)
    to, shift, mate = lift[0].ravel(), lift[1].ravel(), lift[2].ravel()
    changed, old = np.empty(4, np.int64), np.empty((3, 4), np.int64)
    for move in range(len(slack)):
        a, b = movable[int(draws[move, 0] * count)], movable[int(draws[move, 1] * count)]
        one, two = int(draws[move, 2] * copies), int(draws[move, 3] * copies)
        c, d = mate[a], mate[b]
        changed[0], changed[1], changed[2], changed[3] = a, b, c, d
        for i in range(4):
            if changed[i] >= 0:
                old[0, i], old[1, i], old[2, i] = to[changed[i]], shift[changed[i]], mate[changed[i]]
        if moves == 2:
            to[a], to[b] = to[b], to[a]
            shift[a] = one
            if draws[move, 4] < 0.5:
                shift[b] = two
        elif moves == 1 and draws[move, 4] < 0.7 and a not in (b, c, d) and b not in (c, d):
            mate[a], mate[b], mate[c], mate[d] = b, a, d, c
            to[a], to[b], to[c], to[d] = b // ports, a // ports, d // ports, c // ports
            shift[a], shift[b], shift[c], shift[d] = one, -one % copies, two, -two % copies
        else:
            if c != a:
                shift[a], shift[c] = one, -one % copies
            if draws[move, 4] > 0.85 and d != b:
                shift[b], shift[d] = two, -two % copies
        short = cut[0]
        for i in range(count if short > 0 else 0):
            short -= shift[movable[i]] != 0
        limit = int(costs[0] + costs[0] * slack[move])
        more = max(0, short) * cut[1]
        cost = more + length_sum(lift[0], lift[1], lift[3], copies, limit - more)
        if cost <= limit:
            costs[0] = cost
            if cost < costs[1]:
                costs[1] = cost
                best[:] = lift
        else:
            for i in range(3, -1, -1):
                if changed[i] >= 0:
                    to[changed[i]], shift[changed[i]], mate[changed[i]] = old[0, i], old[1, i], old[2, i]
