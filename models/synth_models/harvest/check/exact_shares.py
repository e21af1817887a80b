"""Exact sums of many shares, vectorised: a share is cut into whole numbers of 30 bits, whose sums fit 64 bits.

With shares in (0, 2) three such parts hold every bit down to 2^-90; what a smaller share has below that is cut off,
less than 2^-90 a share. Sums of up to 2^32 shares are exact but for that, in whatever order and however much cancels.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray

BITS, PARTS = 30, 3
CUT_OFF = 2.0 ** (-BITS * PARTS)


def parts_of(share: FloatArray) -> IntArray:
    """The shares, each in (0, 2), as whole multiples of 2^-30, 2^-60 and 2^-90; shape (3, shares)."""
    parts, rest = np.empty((PARTS, len(share)), dtype=np.int64), share
    for part in parts:
        rest = rest * float(1 << BITS)  # exact: a power of two
        part[:] = np.floor(rest)
        rest = rest - part  # exact: the bits that are left
    return parts


def sums(parts: IntArray, at: IntArray, size: int) -> IntArray:
    """Sums by place, ``at`` in 0..size - 1, shape (3, size); the lower two parts end in 0..2^30 - 1."""
    total = np.zeros((PARTS, size), dtype=np.int64)
    for row, part in zip(total, parts, strict=True):
        np.add.at(row, at, part)
    for lower in range(PARTS - 1, 0, -1):
        carried = total[lower] >> BITS
        total[lower] -= carried << BITS
        total[lower - 1] += carried
    return total


def value(total: IntArray) -> FloatArray:
    """Sums that are not negative, as floats."""
    high, middle, low = total
    found: FloatArray = (low * CUT_OFF + middle * 2.0 ** (-2 * BITS)) + high * 2.0**-BITS
    return found


def magnitude(total: IntArray) -> FloatArray:
    """Absolute values of sums that may be negative, to the last bit where they are below 2^-29."""
    high, middle, low = total
    near = (high >= -2) & (high < 2)
    exact = (np.where(near, high, 0) << 2 * BITS) + (middle << BITS) + low
    found: FloatArray = np.where(near, np.abs(exact) * CUT_OFF, np.abs(high.astype(np.float64)) * 2.0**-BITS)
    return found
