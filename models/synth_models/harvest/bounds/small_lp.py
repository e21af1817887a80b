"""Small linear programs by HiGHS that grow by rows, without a modelling layer (thousands of them make one bound)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray
from synth.clock.deadline import OutOfTime, left


@dataclass(frozen=True)
class Minimum:
    """An optimal point, its value and the multipliers (>= 0 for ``>=`` rows), in the order of the rows."""

    point: FloatArray
    value: float
    multipliers: FloatArray


class GrowingProgram:
    """Minimise ``cost @ x`` over ``x >= least`` and rows ``matrix @ x >= right`` that may be added between solves; each
    goes on from the basis of the one before."""

    def __init__(self, cost: FloatArray, least: FloatArray) -> None:
        highs: Any = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        none = np.zeros(0, dtype=np.int32)
        above = np.full(len(cost), highspy.kHighsInf)
        highs.addCols(len(cost), cost, least, above, 0, none, none, np.zeros(0))
        self._highs, self._columns = highs, np.arange(len(cost), dtype=np.int32)

    def add(
        self, matrix: csr_array[Any], right: FloatArray, *, equal: bool = False, above: FloatArray | None = None
    ) -> None:
        """Rows ``matrix @ x >= right``, or ``== right``, or at most ``above`` as well."""
        if above is None:
            above = right if equal else np.full(len(right), highspy.kHighsInf)
        start, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
        self._highs.addRows(len(right), right, above, matrix.nnz, start, index, matrix.data.astype(float))

    def aim(self, cost: FloatArray) -> None:
        """Another cost for all columns."""
        self._highs.changeColsCost(len(cost), self._columns, cost)

    def minimise(self, *, interior: bool = False) -> Minimum | None:
        """By the simplex method, or in the ``interior``.

        None where HiGHS does not end with an optimum, in finite numbers. Raises :class:`OutOfTime` at the limit."""
        if (seconds := left()) < math.inf:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(seconds, 0.01))
        if interior:
            self._highs.setOptionValue("solver", "ipm")
            self._highs.setOptionValue("run_crossover", "off")
        self._highs.run()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
            raise OutOfTime
        near = (highspy.HighsModelStatus.kUnknown,) if interior else ()  # nearly to the tolerance
        if self._highs.getModelStatus() not in (highspy.HighsModelStatus.kOptimal, *near):
            return None
        found, value = self._highs.getSolution(), self._highs.getInfo().objective_function_value
        point, multipliers = np.array(found.col_value), np.array(found.row_dual)
        finite = bool(np.isfinite(point).all() and np.isfinite(multipliers).all())
        return Minimum(point, float(value), multipliers) if finite else None


def centre(
    cost: FloatArray, matrix: csr_array[Any], right: FloatArray, above: FloatArray, least: FloatArray
) -> Minimum | None:
    """One program with rows ``right <= matrix @ x <= above`` by the interior-point method, without crossover: of many
    best multipliers those in their middle, to about the solver's tolerance. None as in :class:`GrowingProgram`."""
    program = GrowingProgram(cost, least)
    program.add(matrix, right, above=above)
    return program.minimise(interior=True)


def minimise(cost: FloatArray, matrix: csr_array[Any], right: FloatArray, least: FloatArray) -> Minimum | None:
    """One program, solved once."""
    program = GrowingProgram(cost, least)
    program.add(matrix, right)
    return program.minimise()
