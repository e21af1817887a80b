"""Count the steps of plans that come without circuits. Imports nothing from the methods.

Published closed forms are evaluated in whole numbers. The stages of an OpTree plan are counted link by link: with
every stage cut into groups of ``m * s`` positions (subgroups of ``s``), all loads on the links of one full group are
computed from how many items every position holds. That this is what the stage needs, and that a smaller last group
needs no more, is proven in ``parts/stage_layout.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Counted:
    """Steps, the most hops a circuit may need, and facts for the record."""

    steps: int
    longest: int
    facts: dict[str, Any] = field(default_factory=dict)


def count_steps(nodes: int, wavelengths: int, algorithm: str, numbers: tuple[int, ...]) -> Counted:
    """Count one plan. Raises ``ValueError`` naming what is wrong with it."""
    if any(number < 1 for number in numbers):
        raise ValueError(f"{algorithm}: numbers must be >= 1, got {list(numbers)}")
    expected = {"formula": 1, "ring": 0, "neighbor_exchange": 0, "wrht": 1, "one_stage": 0}
    if algorithm != "stages" and algorithm not in expected:
        raise ValueError(f"unknown algorithm {algorithm!r}")
    if algorithm != "stages" and len(numbers) != expected[algorithm]:
        raise ValueError(f"{algorithm} takes {expected[algorithm]} numbers, got {len(numbers)}")
    match algorithm:
        case "formula":
            return _formula(nodes, wavelengths, numbers[0])
        case "ring":
            return Counted(nodes - 1, 1)
        case "neighbor_exchange":
            if nodes % 2:
                raise ValueError(f"neighbor_exchange pairs the nodes up: {nodes} is odd")
            # all steps but the first exchange two items, which takes two wavelengths or, with one, two steps
            return Counted(1 + (nodes // 2 - 1) * -(-2 // wavelengths), 1)
        case "one_stage":
            return Counted(_ceil(_ceil(nodes * nodes, 8), wavelengths), nodes // 2)
        case "wrht":
            return _wrht(nodes, wavelengths, numbers[0])
        case _:
            return _stages(nodes, wavelengths, numbers)


def _ceil(number: int, by: int) -> int:
    return -(-number // by)


def _formula(nodes: int, wavelengths: int, depth: int) -> Counted:
    """Theorem 1: the least S with ``(8 w S)^k >= (2k-1)^k N^(k+1)``; depth 1 is the one-stage count.

    The longest path (the paper's Eq. 4) has ``L = 1 + (N^(1/k)-1) * N^(1-1/k)`` interfaces, ``N - N^(1-1/k)`` hops with
    the real root; a circuit has a whole number of them, the next one upwards.
    """
    if depth == 1:
        return Counted(_ceil(_ceil(nodes * nodes, 8), wavelengths), nodes // 2, {"depth": 1})
    if depth > 64:
        raise ValueError("formula: a depth beyond 64 makes no sense")
    goal = (2 * depth - 1) ** depth * nodes ** (depth + 1)
    low, high = 0, 1 + (2 * depth - 1) * nodes * nodes // (8 * wavelengths)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (8 * wavelengths * middle) ** depth >= goal else (middle, high)
    outer = _root(nodes ** (depth - 1), depth)  # floor of N^(1-1/k)
    return Counted(high, nodes - outer, {"depth": depth})


def _root(number: int, degree: int) -> int:
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle)
    return low


def _wrht(nodes: int, wavelengths: int, variant: int) -> Counted:
    """``1 + ceil((M^t - M)/(M-1)) + (t-1 or t) * M^(t-1)``, ``M = 2w+1``, ``t = ceil(log_M N)``."""
    if variant not in (1, 2):
        raise ValueError("wrht: the variant is 1 or 2")
    radix, depth, reach = 2 * wavelengths + 1, 1, 2 * wavelengths + 1
    while reach < nodes:
        depth, reach = depth + 1, reach * radix
    spacing = reach // radix
    steps = 1 + -(-(reach - radix) // (radix - 1)) + (depth - 2 + variant) * spacing
    longest = min(nodes // 2, max(wavelengths * (spacing // radix), (-(-nodes // spacing) // 2) * spacing, 1))
    return Counted(steps, longest, {"variant": variant, "group": radix, "levels": depth})


def _stages(nodes: int, wavelengths: int, radices: tuple[int, ...]) -> Counted:
    if not radices:
        raise ValueError("stages: a plan needs at least one radix")
    group = 1
    for radix in radices[1:]:
        group *= radix
        if group >= nodes:
            raise ValueError("stages: the groups of stage 1 must be smaller than the ring")
    if -(-nodes // group) != radices[0]:
        raise ValueError(
            f"stages: {nodes} nodes in groups of {group} make {-(-nodes // group)} groups, not {radices[0]}"
        )
    first = radices[0]
    needs = [-(-group * (first * first // 4) // 2)]
    longest = min(nodes - 1, (first // 2) * group)
    for radix in radices[1:]:
        size = group // radix
        needs.append(_heaviest_link(nodes, radix, size))
        longest = max(longest, (radix - 1) * size)
        group = size
    steps = [-(-need // wavelengths) for need in needs]
    facts = {"stages": len(radices), "stage_wavelengths": needs, "stage_steps": steps}
    return Counted(sum(steps), longest, facts)


def _heaviest_link(nodes: int, radix: int, size: int) -> int:
    """The most circuits over one directed link inside a full group of ``radix * size`` positions.

    Position ``(d, p)`` holds as many items as there are nodes ``x`` with ``x mod (radix*size) = d*size + p`` and sends
    each to position ``p`` of all other subgroups.
    """
    whole, rest = divmod(nodes, radix * size)
    items = np.full(radix * size, whole, dtype=np.int64)
    items[:rest] += 1
    grid = items.reshape(radix, size)
    zero = np.zeros((1, size), dtype=np.int64)
    before = np.concatenate([zero, np.cumsum(grid, axis=0)])  # items in subgroups < i, by position
    others = np.arange(radix, -1, -1)[:, None]
    heaviest = 0
    for across in (before * others, (before[-1] - before) * (radix - others)):  # clockwise, counterclockwise
        # cut p positions into subgroup i: positions below p see the border after subgroup i, the others the one before
        below = np.concatenate([np.zeros((radix, 1), dtype=np.int64), np.cumsum(across[1:], axis=1)], axis=1)
        above = across[:-1].sum(axis=1, keepdims=True) - np.concatenate(
            [np.zeros((radix, 1), dtype=np.int64), np.cumsum(across[:-1], axis=1)], axis=1
        )
        heaviest = max(heaviest, int((below + above).max()))
    return heaviest
