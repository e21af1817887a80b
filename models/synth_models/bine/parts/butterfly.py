"""Partners, classes and folding: what trees and butterflies of binomial, Bine and Swing have in common.

A butterfly on k bits is a sequence of k pairings of 2^k units. Bine (De Sensi et al., section 3.1): at distance index s
even units meet ``u + rho_s`` and odd ones ``u - rho_s`` modulo 2^k, ``rho_s = (1 - (-2)^(s+1)) / 3``; recursive
doubling pairs ``u`` with ``u xor 2^s``. *Doubling* order runs s upwards, *halving* order downwards.
Swing has Bine's partners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray


def partners(kind: str, order: str, bits: int) -> IntArray:
    """Partner of every unit in every step, shape (bits, 2**bits), steps in the order they are taken."""
    units = np.arange(1 << bits, dtype=np.int64)
    steps = range(bits) if order == "doubling" else range(bits - 1, -1, -1)
    rows = []
    for s in steps:
        if kind == "recursive":
            rows.append(units ^ (1 << s))
        else:
            rho = (1 - (-2) ** (s + 1)) // 3
            rows.append((units + np.where(units % 2 == 0, rho, -rho)) % len(units))
    return np.array(rows, dtype=np.int64).reshape(bits, len(units))


def torus_partners(torus: list[int], first: int, mirrored: bool) -> IntArray:
    """Bine pairings of a torus with sides 2^a, one dimension after the other from ``first`` on, doubling order.

    Even coordinates meet ``c + rho_s`` (``c - rho_s`` when mirrored) in their own dimension; shape (bits, ranks).
    """
    ranks = np.arange(int(np.prod(torus)), dtype=np.int64)
    place = np.array(np.unravel_index(ranks, torus))
    dimensions = [(first + i) % len(torus) for i in range(len(torus))]
    rows = []
    for s in range(max(torus).bit_length()):
        for d in dimensions:
            if (1 << s) >= torus[d]:
                continue
            rho = (1 - (-2) ** (s + 1)) // 3 * (-1 if mirrored else 1)
            met = place.copy()
            met[d] = (place[d] + np.where(place[d] % 2 == 0, rho, -rho)) % torus[d]
            rows.append(np.ravel_multi_index(tuple(met), tuple(torus)))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(ranks))


def classes(pairing: IntArray) -> tuple[IntArray, IntArray]:
    """Places of the units, shape (2**bits,), and where the class of a unit begins, shape (bits+1, 2**bits).

    The class of a unit in step i is what it reaches by taking or leaving steps i, i+1, … in turn, 2**(bits-i) units. In
    that order of places every class is an interval, possibly around the end. Two cases: the classes of a step are
    disjoint (binomial; Bine doubling) and get aligned intervals; or they overlap but are runs of units (Bine halving).
    """
    bits, size = pairing.shape
    units = np.arange(size)
    place = _aligned(pairing)
    low = np.empty((bits + 1, size), dtype=np.int64)
    if np.array_equal(np.sort(place), units):
        for i in range(bits + 1):
            low[i] = place >> (bits - i) << (bits - i)
        return place, low
    low[bits] = units
    for i in range(bits - 1, -1, -1):
        mine, other, width = low[i + 1], low[i + 1][pairing[i]], 1 << (bits - i - 1)
        before = (other + width) % size == mine
        assert np.all(before | ((mine + width) % size == other)), "the classes are no runs of units"
        low[i] = np.where(before & (i > 0), other, mine)
    return units, low


def _aligned(pairing: IntArray) -> IntArray:
    """Places that put units together that the last steps connect; no permutation if these steps connect too many."""
    bits, size = pairing.shape
    least = np.arange(size)
    place = np.zeros(size, dtype=np.int64)
    for i in range(bits - 1, -1, -1):
        merged = np.minimum(least, least[pairing[i]])
        place += (least != merged).astype(np.int64) << (bits - 1 - i)
        least = merged
    return place


@dataclass(frozen=True)
class Folding:
    """p ranks as 2^bits units: the first p - 2^bits units are pairs of neighbours, of which ``rep`` takes part.

    ``rep`` (units,) is the rank that acts for a unit, ``partner`` (pairs,) the one that waits. Standard folding as in
    MPICH's allreduce; pairs are (2u, 2u+1) and the second one acts, or the first one in trees (so the root acts).
    """

    rep: IntArray
    partner: IntArray

    @property
    def bits(self) -> int:
        """log2 of the number of units."""
        return len(self.rep).bit_length() - 1

    def layout(self, place: IntArray) -> tuple[IntArray, IntArray]:
        """Ranks in the order of their units' places, and where the unit at each place begins, shape (units+1,)."""
        pairs, size = len(self.partner), len(self.rep)
        unit_at = np.empty(size, dtype=np.int64)
        unit_at[place] = np.arange(size)
        begins = np.concatenate([[0], np.cumsum(np.where(unit_at < pairs, 2, 1))])
        order = np.empty(begins[-1], dtype=np.int64)
        order[begins[:-1]] = self.rep[unit_at]
        double = unit_at < pairs
        order[begins[:-1][double] + 1] = self.partner[unit_at[double]]
        return order, begins


def fold(ranks: int, first_acts: bool = False) -> Folding:
    """The folding of ``ranks`` ranks onto the largest power of two below or at it."""
    size = 1 << (ranks.bit_length() - 1)
    pairs = ranks - size
    units = np.arange(size, dtype=np.int64)
    one = np.where(units < pairs, 2 * units, units + pairs)
    other = 2 * units[:pairs] + 1
    if first_acts:
        return Folding(one, other)
    return Folding(np.where(units < pairs, 2 * units + 1, units + pairs), other - 1)
