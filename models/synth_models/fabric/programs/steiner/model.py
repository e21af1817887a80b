"""The packing of Steiner trees as a linear program over the trees at hand.

| in the equations | here | indexed by | unit |
|---|---|---|---|
| x | ``share`` | column k, a tree of a block | of the block |
| T | the last column | – | ``unit_s`` |
| B | ``block_bytes`` | block b | bytes |
| u | ``Column.load`` | (resource r, column k) | s per byte |

    (1) every block is packed   sum_{k of b} x[k] = 1                       for every block b
    (2) link capacity           sum_k B[b(k)] u[r,k] x[k] <= T              for every link and group r

The multipliers of (2) are prices of links. At any prices every tree packing takes at least what the blocks' least
trees cost over what the links can be paid in a second (:func:`proven`), computed in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth.solvers.lp import linprog
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.steiner.tree_transfers import Hop

SCALE = 2**30  # the largest price


@dataclass(frozen=True, eq=False)
class Column:
    """A tree of a block; ``load``: seconds a byte, by resource (links, then groups)."""

    block: int
    hops: tuple[Hop, ...]
    load: dict[int, float]


@dataclass(frozen=True, eq=False)
class Packing:
    """``share``: shape (columns,); ``seconds``: T; ``price``: multipliers of (2), shape (resources,), which sum to
    1."""

    share: FloatArray
    seconds: float
    price: FloatArray


def packed(columns: Sequence[Column], block_bytes: IntArray, resources: int) -> Packing:
    """The best packing of these trees."""
    unit_s = max(float(block_bytes[c.block]) * value for c in columns for value in c.load.values())
    loads, room = link_capacity(columns, block_bytes, resources, unit_s)
    blocks, whole = every_block_is_packed(columns, len(block_bytes))
    cost = np.append(np.zeros(len(columns)), 1.0)
    found = linprog(cost, loads, room, blocks, whole, method="highs")
    price = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0)
    share = np.maximum(np.asarray(found.x[:-1]), 0.0)
    return Packing(share, float(found.x[-1]) * unit_s, price / max(float(price.sum()), 1e-300))


def every_block_is_packed(columns: Sequence[Column], blocks: int) -> tuple[csr_array, FloatArray]:
    """(1) The shares of a block's trees are all of it."""
    rows = np.array([column.block for column in columns])
    ones = (np.ones(len(columns)), (rows, np.arange(len(columns))))
    return csr_array(ones, shape=(blocks, len(columns) + 1)), np.ones(blocks)


def link_capacity(
    columns: Sequence[Column], block_bytes: IntArray, resources: int, unit_s: float
) -> tuple[csr_array, FloatArray]:
    """(2) No link or group is occupied for longer than T."""
    entries = [
        (value * float(block_bytes[column.block]) / unit_s, resource, k)
        for k, column in enumerate(columns)
        for resource, value in column.load.items()
    ]
    entries += [(-1.0, resource, len(columns)) for resource in range(resources)]
    value, row, at = zip(*entries, strict=True)
    return csr_array((value, (row, at)), shape=(resources, len(columns) + 1)), np.zeros(resources)


def whole_prices(machine: Machine, price: FloatArray) -> IntArray:
    """Prices of a byte on every link, of which the largest is about :data:`SCALE` and none is 0, so that no tree goes
    round in circles."""
    paid = price[: machine.links].copy()
    grouped = machine.group >= 0
    paid[grouped] += price[machine.links + machine.group[grouped]]
    paid /= machine.network.bandwidth
    found: IntArray = np.rint(paid / max(float(paid.max()), 1e-300) * SCALE).astype(np.int64) + 1
    return found


def proven(machine: Machine, prices: IntArray, least: Sequence[int], block_bytes: IntArray) -> Fraction:
    """Seconds that every packing of trees takes at least, if a byte's trees of each block cost ``least``."""
    needed = sum(int(size) * cost for size, cost in zip(block_bytes.tolist(), least, strict=True))
    rate = [exact(float(value)) for value in machine.network.bandwidth]
    paid, most = Fraction(0), dict[int, Fraction]()
    for e, price in enumerate(prices.tolist()):
        g = int(machine.group[e])
        if g < 0:
            paid += price * rate[e]
        else:
            most[g] = max(most.get(g, Fraction(0)), price * rate[e])
    return needed / (paid + sum(most.values(), Fraction(0)))
