"""Collective algorithms as step patterns: for every step its pairs (or shift) and the bytes of each pair.

Volumes: an allreduce is a reduce-scatter (step i moves m/2^i where partners double) and the allgather that reverses it;
``half`` keeps one of the two. All-to-all: every GPU holds m bytes, m/n for each. Broadcast: m bytes on every pair. The
tests replay every algorithm's data movement. Functions raise ``ValueError`` naming the parameter: "gpus: …".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

RawStep = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """What an algorithm is asked for; each algorithm uses some of the fields.

    ``half``: both, reduce_scatter or allgather. ``direction`` of the allgather half around the ring: with forwards its
    steps go the same way as those of the reduce-scatter, so that a one-port ring serves both. ``sends``: partners a
    GPU may send to in one step (Bruck). ``order``: how the distances of the binomial tree (halving unless said) or of
    Bine's reduce-scatter (doubling unless said) follow each other.
    """

    gpus: int
    message_bytes: float
    half: str | None = None
    direction: str = "forwards"
    radix: int = 2
    sends: int = 1
    root: int = 0
    order: str | None = None
    torus: tuple[int, ...] = ()
    mirrored: bool = True


def _bits(gpus: int) -> int:
    if gpus < 2 or gpus & (gpus - 1):
        raise ValueError("gpus: must be a power of two for this algorithm")
    return gpus.bit_length() - 1


def _halves(wish: Wish, scatter: list[RawStep], gather: list[RawStep], usual: str = "both") -> list[RawStep]:
    half = wish.half or usual
    return (scatter if half != "allgather" else []) + (gather if half != "reduce_scatter" else [])


def _shift(wish: Wish, distance: int, size: float, *, backwards: bool = False) -> RawStep:
    return {"bytes": size, "shift": (-distance if backwards else distance) % wish.gpus}


def recursive_doubling(wish: Wish) -> list[RawStep]:
    """Cyclic form: ``u -> u + 2^(i-1)`` with m/2^i bytes, then the distances in reverse (Harvest, section 5)."""
    back = wish.direction == "backwards"
    sizes = [(1 << i, wish.message_bytes / (2 << i)) for i in range(_bits(wish.gpus))]
    gather = [_shift(wish, distance, size, backwards=back) for distance, size in reversed(sizes)]
    return _halves(wish, [_shift(wish, distance, size) for distance, size in sizes], gather)


def swing_partners(gpus: int, mirrored: bool = False) -> list[list[int]]:
    """Partner of every GPU in the steps of Swing's reduce-scatter: even ones meet ``u + rho_s``, odd ones
    ``u - rho_s``, ``rho_s = (1 - (-2)^(s+1)) / 3``; the other way round when mirrored."""
    steps = []
    for s in range(_bits(gpus)):
        rho = (1 - (-2) ** (s + 1)) // 3 * (-1 if mirrored else 1)
        steps.append([(u + (rho if u % 2 == 0 else -rho)) % gpus for u in range(gpus)])
    return steps


def swing(wish: Wish) -> list[RawStep]:
    """Swing on a 1-D ring: pairwise exchanges of m/2^i bytes, then in reverse."""
    return _butterfly(wish, swing_partners(wish.gpus))


def bine(wish: Wish) -> list[RawStep]:
    """Bine's allreduce of large vectors (De Sensi et al., 3.1 and 4.4): a reduce-scatter on the butterfly whose
    distances double, an allgather back. Even ranks meet ``u + rho_s``, odd ones ``u - rho_s``, rho_s being s + 1
    negabinary ones, 1 - 2 + 4 - …: step for step Swing's pattern. ``order=halving`` is the other butterfly, with far
    partners first; it moves the same bytes between other pairs."""
    partners = swing_partners(wish.gpus)
    return _butterfly(wish, partners[::-1] if wish.order == "halving" else partners)


def _butterfly(wish: Wish, partners: list[list[int]]) -> list[RawStep]:
    """Pairwise exchanges of m/2^i bytes with these partners, then in reverse."""
    scatter = [
        {"bytes": wish.message_bytes / (2 << i), "pairs": [[u, v] for u, v in enumerate(partner)]}
        for i, partner in enumerate(partners)
    ]
    return _halves(wish, scatter, scatter[::-1])


def swing_torus_partners(torus: tuple[int, ...], mirrored: bool = True) -> list[list[list[int]]]:
    """Partners of the concurrent Swing collectives on a torus, [collective][step][GPU], GPUs row-major.

    One collective begins in each dimension, and its mirror image runs at the same time when ``mirrored``; a collective
    takes the dimensions in turn, each with Swing's distances, and leaves a dimension out that has no distances left.
    """
    if not 1 <= len(torus) <= 3 or any(side < 2 or side & (side - 1) for side in torus):
        raise ValueError("torus: give one to three sides, powers of two")
    ids = np.arange(prod(torus))
    place = np.array(np.unravel_index(ids, torus))
    collectives = []
    for first in range(len(torus)):
        for mirror in (False, True) if mirrored else (False,):
            steps = []
            for s in range(max(torus).bit_length() - 1):
                for turn in range(len(torus)):
                    axis = (first + turn) % len(torus)
                    if 2 << s > torus[axis]:
                        continue
                    met = place.copy()
                    met[axis] = np.array(swing_partners(torus[axis], mirror)[s])[place[axis]]
                    steps.append(np.ravel_multi_index(tuple(met), torus).tolist())
            collectives.append(steps)
    return collectives


def swing_torus(wish: Wish) -> list[RawStep]:
    """Multi-port Swing: a collective per dimension and (mirrored) direction, each on its share of the vector.

    On a side of 2 a collective and its mirror image meet the same partner, and once the shorter sides are used up all
    run in the longest one: pairs then stand several times in a step, and their bytes add up."""
    if prod(wish.torus) != wish.gpus:
        raise ValueError(f"torus: its sides multiply to {prod(wish.torus)}, there are {wish.gpus} GPUs")
    collectives = swing_torus_partners(wish.torus, wish.mirrored)
    share = wish.message_bytes / len(collectives)
    scatter = []
    for i in range(len(collectives[0])):
        pairs = [[u, partners[i][u]] for partners in collectives for u in range(wish.gpus)]
        scatter.append({"bytes": share / (2 << i), "pairs": pairs})
    return _halves(wish, scatter, scatter[::-1])


def ring(wish: Wish) -> list[RawStep]:
    """n - 1 steps of m/n bytes to the next GPU, for each half."""
    step = _shift(wish, 1, wish.message_bytes / wish.gpus)
    back = _shift(wish, 1, wish.message_bytes / wish.gpus, backwards=wish.direction == "backwards")
    return _halves(wish, [step] * (wish.gpus - 1), [back] * (wish.gpus - 1))


def _radix(wish: Wish) -> int:
    if not 2 <= wish.radix <= wish.gpus:
        raise ValueError(f"radix: must be in 2..gpus = {wish.gpus}")
    return wish.radix


def _grouped(wish: Wish, moves: list[tuple[int, int]], block: float, *, backwards: bool = False) -> list[RawStep]:
    """Steps of (distance, blocks) moves that may run at once, up to ``sends`` of equal volume together."""
    steps: list[RawStep] = []
    while moves:
        alike = next((i for i, move in enumerate(moves) if move[1] != moves[0][1]), len(moves))
        now, moves = moves[: min(alike, wish.sends)], moves[min(alike, wish.sends) :]
        sign = -1 if backwards else 1
        size = now[0][1] * block
        if len(now) == 1:
            steps.append({"bytes": size, "shift": sign * now[0][0] % wish.gpus})
        else:
            pairs = [[u, (u + sign * distance) % wish.gpus] for distance, _ in now for u in range(wish.gpus)]
            steps.append({"bytes": size, "pairs": pairs})
    return steps


def bruck_allgather(wish: Wish) -> list[RawStep]:
    """Bruck's concatenation, any n: once every GPU holds the blocks of h GPUs, it sends them h, 2h, … (radix - 1)h
    GPUs on, the last round only what is missing. ``half=both`` puts the reverse, a reduce-scatter, before it."""
    held, rounds = 1, []
    while held < wish.gpus:
        moves = [(j * held, min(held, wish.gpus - j * held)) for j in range(1, _radix(wish)) if j * held < wish.gpus]
        rounds.append(moves)
        held = min(held * wish.radix, wish.gpus)
    block = wish.message_bytes / wish.gpus
    back = wish.direction == "backwards"
    gather = [step for moves in rounds for step in _grouped(wish, moves, block, backwards=back)]
    scatter = [step for moves in rounds for step in _grouped(wish, moves, block)][::-1]
    return _halves(wish, scatter, gather, usual="allgather")


def bruck_alltoall(wish: Wish) -> list[RawStep]:
    """Bruck's index algorithm, any n: in the round of digit position p every GPU sends, for each digit z, the blocks
    whose distance to go has that digit, z * radix^p GPUs on."""
    radix, weight, steps = _radix(wish), 1, []
    distances = np.arange(1, wish.gpus)
    while weight < wish.gpus:
        digit = distances // weight % radix
        moves = [(z * weight, int((digit == z).sum())) for z in range(1, radix) if (digit == z).any()]
        steps += _grouped(wish, moves, wish.message_bytes / wish.gpus)
        weight *= radix
    return steps


def alltoall_direct(wish: Wish) -> list[RawStep]:
    """n - 1 shifts of m/n bytes."""
    return [_shift(wish, k, wish.message_bytes / wish.gpus) for k in range(1, wish.gpus)]


def _rooted(wish: Wish, pairs: list[tuple[int, int]]) -> RawStep:
    moved = [[(u + wish.root) % wish.gpus, (v + wish.root) % wish.gpus] for u, v in pairs]
    return {"bytes": wish.message_bytes, "pairs": moved}


def binomial_broadcast(wish: Wish) -> list[RawStep]:
    """Binomial tree, any n: in every step all informed GPUs pass the message on, over distances that halve (MPICH) or
    double."""
    bits = (wish.gpus - 1).bit_length()
    if wish.order == "doubling":
        levels = [[(u, u + (1 << s)) for u in range(1 << s) if u + (1 << s) < wish.gpus] for s in range(bits)]
    else:
        levels = [
            [(u, u + (1 << s)) for u in range(0, wish.gpus, 2 << s) if u + (1 << s) < wish.gpus]
            for s in range(bits - 1, -1, -1)
        ]
    return [_rooted(wish, level) for level in levels]


def binary_broadcast(wish: Wish) -> list[RawStep]:
    """Binary tree in level order, any n: u sends to 2u + 1 and 2u + 2 at once, level by level (two ports)."""
    steps, low = [], 0
    while 2 * low + 1 < wish.gpus:
        level = range(low, 2 * low + 1)
        steps.append(_rooted(wish, [(u, v) for u in level for v in (2 * u + 1, 2 * u + 2) if v < wish.gpus]))
        low = 2 * low + 1
    return steps


ALGORITHMS = {
    function.__name__: function
    for function in (
        recursive_doubling,
        swing,
        bine,
        bruck_allgather,
        bruck_alltoall,
        alltoall_direct,
        binomial_broadcast,
        binary_broadcast,
        swing_torus,
        ring,
    )
}
USES = {
    "recursive_doubling": ("half", "direction"),
    "swing": ("half",),
    "bine": ("half", "order"),
    "swing_torus": ("half", "torus", "mirrored"),
    "ring": ("half", "direction"),
    "bruck_allgather": ("half", "direction", "radix", "sends"),
    "bruck_alltoall": ("radix", "sends"),
    "alltoall_direct": (),
    "binomial_broadcast": ("root", "order"),
    "binary_broadcast": ("root",),
}
