"""The array types of the house: what a kernel or a function over arrays takes and returns; and its tolerances."""

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]  # codes of a kernel's findings
Int32Array = npt.NDArray[np.int32]  # large tables, where half the memory counts
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]  # bit sets and hashes
AnyIntArray = npt.NDArray[np.integer[Any]]  # as a caller hands it over, of any width

SAME = 1e-9
"""Relative difference up to which two floats are the same number: what rounding leaves, on this or another machine."""
SOLVED = 1e-6
"""How far a solver's values, rows and bounds may be off: relatively, and absolutely where they are about 1."""
