"""Numbers and shapes that nobody expects in a stored array: what every reader of a file is tried with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

ODD = [0, 1, -1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), math.nan, math.inf, -math.inf, -0.0]
MORE = [2, 2**31 - 1, 2**40, -(2**40), 2**40 + 1, 2**63, 2**64, 10**400, 0.5, 1.0, True, None, "1", "ring"]
ODDER = [*ODD, *MORE, [], [1], [[1]], {}]


def mutants(value: Any) -> Iterator[Any]:
    """Every odd value in place of the field, of one entry in the middle, of all entries; shorter, longer, nested."""
    yield from ODDER
    if isinstance(value, str):
        return
    array = np.asarray(value)
    for odd in ODD:
        for dtype in (object, None):
            filled = np.full(array.shape, odd, dtype=dtype)
            yield filled.tolist()
            if dtype is None:
                yield filled
        if array.size:
            for place in {0, array.size // 2, array.size - 1}:
                mixed = array.astype(object)
                mixed.flat[place] = odd
                yield mixed.tolist()
                if isinstance(odd, int):
                    whole = array.astype(np.int64)
                    whole.flat[place] = odd
                    yield whole
    if array.ndim:
        yield array[:-1]
        yield np.concatenate([array, array])
        yield array[None]
        yield array.astype(float)
        yield array.astype(np.uint64)
