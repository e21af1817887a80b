"""The two forms of a solution: explicit circuits, and a plan whose steps are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import Int32Array
from synth.errors import InputError
from synth.text.untrusted import whole_numbers
from synth_models.optree.instance import OpTreeInstance

if TYPE_CHECKING:
    import pandas as pd


CLOCKWISE, COUNTERCLOCKWISE = 0, 1
COLUMNS = ("step", "src", "dst", "direction", "wavelength", "origin")
EXPLICIT_NODES = 4096
"""Networks up to this size get explicit schedules (16.8 million circuits); beyond it methods count steps only."""


@dataclass(frozen=True)
class Circuits:
    """An explicit schedule: one row per circuit, arrays of shape (circuits,).

    In ``step`` (from 1) the item of node ``origin`` goes from ``src`` to ``dst``, clockwise (0: towards higher
    numbers) or counterclockwise (1), on ``wavelength`` (from 0) of every link in between. On a grid ``direction`` is
    ``2 k`` towards higher coordinates of dimension ``k``, ``2 k + 1`` towards lower ones.
    """

    step: Int32Array
    src: Int32Array
    dst: Int32Array
    direction: Int32Array
    wavelength: Int32Array
    origin: Int32Array

    @classmethod
    def of(cls, *columns: Any) -> Circuits:
        """From six array-likes in the order of ``COLUMNS``. Raises ``ValueError`` when their lengths differ."""
        arrays = [np.ascontiguousarray(column, dtype=np.int32) for column in columns]
        if len(arrays) != len(COLUMNS) or any(a.ndim != 1 or len(a) != len(arrays[0]) for a in arrays):
            raise ValueError("six columns of the same length")
        return cls(*arrays)

    def __len__(self) -> int:
        return len(self.step)

    @property
    def steps(self) -> int:
        """Number of the last step."""
        return int(self.step.max()) if len(self) else 0

    def hops(self, instance: OpTreeInstance) -> Int32Array:
        """Links each circuit of a valid schedule runs over, shape (circuits,)."""
        result: Int32Array = np.zeros(len(self), dtype=np.int32)
        for k, dimension in enumerate(instance.dimensions):
            up = (self.dst // dimension.stride - self.src // dimension.stride) % dimension.side
            result = np.where(self.direction == 2 * k, up, result)
            result = np.where(self.direction == 2 * k + 1, (dimension.side - up) % dimension.side, result)
        return result.astype(np.int32)


@dataclass(frozen=True)
class StepCount:
    """A plan without its circuits: the check counts its steps itself.

    ``algorithm`` is ``formula`` (``numbers`` = the depth k), ``ring``, ``neighbor_exchange``, ``wrht`` (``numbers`` =
    the variant, 1 or 2), ``one_stage`` or ``stages`` (``numbers`` = the radices of stages 1..k).
    """

    algorithm: str
    numbers: tuple[int, ...] = ()


Solution = Circuits | StepCount


def pack(solution: Solution) -> dict[str, Any]:
    """Plain values and arrays, the arrays as narrow as their numbers allow."""
    if isinstance(solution, StepCount):
        return {"algorithm": solution.algorithm, "numbers": list(solution.numbers)}
    return {name: _narrow(getattr(solution, name)) for name in COLUMNS}


def _narrow(values: Int32Array) -> Any:
    if not len(values) or (values.min() >= 0 and values.max() < 128):
        return values.astype(np.int8)
    return values.astype(np.int16) if values.min() >= 0 and values.max() < 2**15 else values


def table(instance: OpTreeInstance, solution: Solution) -> pd.DataFrame:
    """Columns ``step,src,dst,direction,wavelength,origin``; direction 0 is clockwise (towards higher numbers), ``2 k``
    on a grid towards higher coordinates of dimension ``k``, and one more towards lower ones.

    A plan that only counts steps has no circuits: :class:`InputError`.
    """
    import pandas as pd

    if isinstance(solution, StepCount):
        raise InputError(f"{solution.algorithm} counts steps and has no circuits; optree and relay make them")
    order = np.lexsort((solution.src, solution.wavelength, solution.direction, solution.step))
    return pd.DataFrame({name: getattr(solution, name)[order] for name in COLUMNS})


def unpack(instance: OpTreeInstance, packed: Mapping[str, Any]) -> Solution:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no solution."""
    if "algorithm" in packed:
        if not isinstance(packed["algorithm"], str):
            raise ValueError("algorithm must be a text")
        numbers = whole_numbers(packed, "numbers")
        return StepCount(packed["algorithm"], tuple(int(number) for number in numbers))
    return Circuits.of(*(whole_numbers(packed, name) for name in COLUMNS))
