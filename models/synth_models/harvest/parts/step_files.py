"""Steps from files: a JSON list of steps, or a demand matrix, split into matchings (Birkhoff-von Neumann) or in one."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.instance import parse_json
from synth.text.amounts import amount
from synth.text.input_file import InputFile, as_input_file
from synth_models.harvest.instance import LARGEST_VOLUME

MAX_MATRIX = 256  # GPUs; a split takes up to (2n)^2 matchings
LARGEST_ENTRY, SMALLEST_ENTRY = 1e300, 1e-300  # bytes; times of others are beyond what a float can say

ExactMatrix = npt.NDArray[np.object_]  # of fractions


def read_steps(file: InputFile | Path, *, split: bool = True) -> tuple[int | None, list[dict[str, Any]]]:
    """The number of GPUs, where the file says it, and the steps. Raises :class:`InputError`.

    ``.json`` or ``.steps``, both JSON: a list of ``{"bytes": …, "shift": …}`` or ``{"bytes": …, "pairs": [[src, dst],
    …]}``, with or without ``volumes``, or an object with such a list under ``steps``. Anything else is read as a CSV
    matrix of bytes without a header: matchings whose sum it is or, without ``split``, one step.
    """
    file = as_input_file(file)
    if lists_steps(file):
        raw = parse_json(file.data, str(file))
        steps = raw.get("steps") if isinstance(raw, dict) else raw
        if not isinstance(steps, list):
            raise InputError("holds no list of steps")
        return None, steps
    demand = file.once(read_matrix)
    if not split:
        return len(demand), [one_step(demand)]
    return len(demand), [{"bytes": size, "pairs": pairs.tolist()} for size, pairs in birkhoff_von_neumann(demand)]


def lists_steps(file: InputFile) -> bool:
    """Whether the file lists steps: its name says so, or, of a pipe without a name, its first character does; else it
    is a matrix."""
    return file.suffix in (".json", ".steps") or (not file.suffix and file.text.lstrip()[:1] in ("[", "{"))


def read_matrix(file: InputFile | Path) -> ExactMatrix:
    """A square matrix of bytes >= 0, its diagonal zero, as exact fractions of what the file says, shape (gpus, gpus).
    Raises :class:`InputError` listing all faults."""
    rows = [row for row in csv.reader(as_input_file(file).text.splitlines()) if row]
    faults, values = [], np.full((len(rows), len(rows)), Fraction(0), dtype=object)
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            faults.append(Fault(f"row {i}", f"has {len(row)} numbers, the matrix has {len(rows)} rows"))
            continue
        for j, text in enumerate(row):
            where = f"row {i}, column {j}"
            try:
                values[i, j] = _exact(text)
            except OverflowError as error:
                faults.append(Fault(where, str(error), text, True))
            except ValueError:
                faults.append(Fault(where, "must be a finite number of bytes >= 0, such as 4096 or 64KB", text, True))
            if i == j and values[i, j] != 0:
                faults.append(Fault(where, "a GPU sends nothing to itself", text, True))
    if not 2 <= len(rows) <= MAX_MATRIX:
        faults.append(Fault("", f"the matrix has {len(rows)} rows; 2 to {MAX_MATRIX} are supported"))
    elif not faults and not values.any():
        faults.append(Fault("", "the matrix demands nothing"))
    if faults:
        raise InputError(faults)
    return values


def _exact(text: str) -> Fraction:
    """The number of bytes that a text says, with a unit where it has one. Raises ``ValueError`` where it is none,
    ``OverflowError`` out of range."""
    number = amount(text, "size")
    if number < 0:
        raise ValueError(text)
    if number > LARGEST_ENTRY:
        raise OverflowError(f"is larger than {LARGEST_ENTRY:g} bytes")
    if number and number < SMALLEST_ENTRY:
        raise OverflowError(f"is smaller than {SMALLEST_ENTRY:g} bytes, and not 0")
    return number


def one_step(demand: npt.ArrayLike) -> dict[str, Any]:
    """The step of the whole demand (gpus, gpus): every pair with its volume, in the largest unit of bytes of which all
    are whole multiples. A unit that is no float is rounded up. Raises :class:`InputError` where a volume is too large.
    """
    whole, scale = _scaled(np.asarray(demand))
    pairs = np.argwhere(whole)
    volumes = [int(whole[u, v]) for u, v in pairs]
    if max(volumes) > LARGEST_VOLUME:
        raise InputError(f"its numbers are no whole multiples, up to {LARGEST_VOLUME}, of one unit; round them")
    step: dict[str, Any] = {"bytes": _rounded_up(1 / scale), "pairs": pairs.tolist()}
    return step | ({"volumes": volumes} if max(volumes) > 1 else {})


def birkhoff_von_neumann(demand: npt.ArrayLike) -> list[tuple[float, IntArray]]:
    """Matchings (pairs, 2) with bytes per pair whose sum is the demand (gpus, gpus), the largest first.

    Exact: the demand (floats, whole numbers or fractions) is scaled to whole numbers, so nothing is left over. A
    matching's bytes that are no float are rounded up, so that every byte is served.

    The matrix D with largest row or column sum T is embedded in the doubly stochastic (times T) matrix
    ``[[D, diag(T - rows)], [diag(T - columns), D^T]]``; every matching of that is one of D and may leave GPUs idle. The
    bytes of all matchings sum to T at most. Each matching taken is one of largest smallest entry, which becomes zero:
    what is left has equal row and column sums again, hence a perfect matching (Birkhoff), and one more zero.
    """
    whole, scale = _scaled(np.asarray(demand))
    size = len(whole)
    rows, columns = whole.sum(axis=1), whole.sum(axis=0)
    largest = max(rows.max(), columns.max())
    left = np.block([[whole, np.diag(largest - rows)], [np.diag(largest - columns), whole.T]])
    if largest <= np.iinfo(np.int64).max:
        left = left.astype(np.int64)
    found: list[tuple[int, IntArray]] = []
    everyone = np.arange(2 * size)
    while left[:size, :size].any():
        matching = _bottleneck(left)
        units = left[everyone, matching].min()
        left[everyone, matching] -= units
        own = np.flatnonzero(matching[:size] < size)
        if len(own):
            found.append((int(units), np.stack([own, matching[own]], axis=1).astype(np.int64)))
    found.sort(key=lambda part: -part[0])
    return [(_rounded_up(units / scale), pairs) for units, pairs in found]


def _scaled(demand: npt.NDArray[Any]) -> tuple[npt.NDArray[np.object_], Fraction]:
    """The demand in whole units without a common divisor (Python's integers), and how many units make a byte."""
    exact = [Fraction(number) for number in demand.ravel().tolist()]
    if any(number < 0 for number in exact):
        raise ValueError("a demand is negative")
    scale = math.lcm(*(number.denominator for number in exact))
    units = [int(number * scale) for number in exact]
    common = math.gcd(*units) or 1
    whole = np.empty(demand.shape, dtype=object)
    whole.ravel()[:] = [number // common for number in units]
    return whole, Fraction(scale, common)


def _rounded_up(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _bottleneck(matrix: npt.NDArray[Any]) -> IntArray:
    """Columns of a perfect matching whose smallest entry is largest, by bisection over the positive entries. The matrix
    has equal row and column sums, so there is one."""
    values = np.unique(matrix[matrix > 0])
    low, high, best = 0, len(values) - 1, None
    while low <= high:
        middle = (low + high) // 2
        allowed = (matrix >= values[middle]).astype(bool)
        matching = maximum_bipartite_matching(csr_array(allowed), perm_type="column")
        if np.all(matching >= 0):
            best, low = matching.astype(np.int64), middle + 1
        else:
            high = middle - 1
    assert best is not None, "equal row and column sums have a perfect matching"
    return best
