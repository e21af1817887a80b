"""Several methods on one instance as a table with units: what a notebook shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from synth.api import solve
from synth.family import get_family
from synth.instance import Instance
from synth.text.quantities import NOTHING, SCALES, percent, shown

if TYPE_CHECKING:
    import pandas as pd


def compare(instance: Instance, methods: Sequence[str], **options: Any) -> pd.DataFrame:
    """Solve ``instance`` by each of these methods and put the outcomes side by side.

    A row a method: value and bound with their unit, gap = (value - bound) / value to the best bound of all rows, who
    proves the row's bound, and how the run ended where it has no value. ``options`` as for :func:`synth.solve`. Raises
    :class:`InputError` as that does.
    """
    import pandas as pd

    from synth.records.optimality import gap

    records = [solve(instance, method, **options) for method in methods]
    unit = get_family(instance.family).objective.unit
    least = max((record.bound for record in records if record.bound is not None), default=None)

    def quantity(value: float | None) -> str:
        return NOTHING if value is None else shown(value, unit) + ("" if unit in SCALES else f" {unit}")

    rows = [
        {
            "value": record.words_of_end
            if record.value is None and record["kind"] != "bound"
            else quantity(record.value),
            "bound": quantity(record.bound),
            "gap": NOTHING if (left := gap(record.value, least)) is None else percent(left),
            "proof": record.proof or NOTHING,
        }
        for record in records
    ]
    return pd.DataFrame(rows, index=pd.Index(methods, name="method"))
