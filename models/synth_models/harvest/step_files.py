"""Steps from files: a JSON list of steps, or a demand matrix split into matchings (Birkhoff-von Neumann)."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from synth.errors import Fault, InputError
from synth.instance import read_json
from synth.textfile import read_text
from synth_models.harvest.plan import FloatArray, IntArray

MAX_MATRIX = 256  # GPUs; a split takes up to (2n)^2 matchings
LARGEST_ENTRY = 1e300  # bytes; the sums of larger ones overflow


def read_steps(path: Path) -> tuple[int | None, list[dict[str, Any]]]:
    """The number of GPUs, where the file says it, and the steps. Raises :class:`InputError`.

    ``.json``: a list of ``{"bytes": …, "shift": …}`` or ``{"bytes": …, "pairs": [[src, dst], …]}``, or an object with
    such a list under ``steps``. Anything else is read as a CSV matrix of bytes without a header.
    """
    if path.suffix.lower() == ".json":
        raw, _ = read_json(path)
        steps = raw.get("steps") if isinstance(raw, dict) else raw
        if not isinstance(steps, list):
            raise InputError("holds no list of steps")
        return None, steps
    demand = read_matrix(path)
    return len(demand), [{"bytes": size, "pairs": pairs.tolist()} for size, pairs in birkhoff_von_neumann(demand)]


def read_matrix(path: Path) -> FloatArray:
    """A square matrix of finite bytes >= 0, its diagonal zero. Raises :class:`InputError` listing all faults."""
    try:
        rows = [row for row in csv.reader(read_text(path).splitlines()) if row]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("is not a text") from None
    faults, values = [], np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            faults.append(Fault(f"row {i}", f"has {len(row)} numbers, the matrix has {len(rows)} rows"))
            continue
        for j, text in enumerate(row):
            try:
                values[i, j] = float(text)
            except ValueError:
                values[i, j] = math.nan
            if not (math.isfinite(values[i, j]) and values[i, j] >= 0):
                faults.append(Fault(f"row {i}, column {j}", "must be a finite number of bytes >= 0", text, True))
            elif i == j and values[i, j] != 0:
                faults.append(Fault(f"row {i}, column {j}", "a GPU sends nothing to itself", text, True))
    if not 2 <= len(rows) <= MAX_MATRIX:
        faults.append(Fault("", f"the matrix has {len(rows)} rows; 2 to {MAX_MATRIX} are supported"))
    elif not faults and not values.any():
        faults.append(Fault("", "the matrix demands nothing"))
    elif not faults and values.max() > LARGEST_ENTRY:
        faults.append(Fault("", f"an entry is larger than {LARGEST_ENTRY:g} bytes"))
    if faults:
        raise InputError(faults)
    return values


def birkhoff_von_neumann(demand: FloatArray) -> list[tuple[float, IntArray]]:
    """Matchings (pairs, 2) with bytes per pair whose sum is the demand, the largest first.

    The matrix D with largest row or column sum T is embedded in the doubly stochastic (times T) matrix
    ``[[D, diag(T - rows)], [diag(T - columns), D^T]]``; every matching of that is one of D and may leave GPUs idle. The
    bytes of all matchings sum to at most T. Each matching taken is one of largest smallest entry.
    """
    size = len(demand)
    largest = max(demand.sum(axis=0).max(), demand.sum(axis=1).max())
    left = np.block(
        [
            [demand, np.diag(largest - demand.sum(axis=1))],
            [np.diag(largest - demand.sum(axis=0)), demand.T],
        ]
    )
    tiny = largest * 1e-12
    found = []
    while left[:size, :size].max() > tiny:
        matching = _bottleneck(left, tiny)
        if matching is None:
            raise ArithmeticError("rounding has left a matrix without a perfect matching")
        rows = np.arange(2 * size)
        bytes_each = float(left[rows, matching].min())
        left[rows, matching] -= bytes_each
        left[left <= tiny] = 0.0
        own = np.flatnonzero(matching[:size] < size)
        if len(own):
            found.append((bytes_each, np.stack([own, matching[own]], axis=1).astype(np.int64)))
    return sorted(found, key=lambda part: -part[0])


def _bottleneck(matrix: FloatArray, tiny: float) -> IntArray | None:
    """Columns of a perfect matching whose smallest entry is largest, by bisection over the entries."""
    values = np.unique(matrix[matrix > tiny])
    low, high, best = 0, len(values) - 1, None
    while low <= high:
        middle = (low + high) // 2
        matching = maximum_bipartite_matching(csr_array(matrix >= values[middle]), perm_type="column")
        if np.all(matching >= 0):
            best, low = matching.astype(np.int64), middle + 1
        else:
            high = middle - 1
    return best
