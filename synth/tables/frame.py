"""A pandas frame of numbers that is shown with units.

The rule for all frames of the toolkit: cells are numbers in SI, truth values and texts; what is missing is NaN or None.
``value`` and ``bound`` are in the row's ``unit``; where that is seconds, ``value_s`` and ``bound_s`` repeat them. The
ending of every other name says its unit: ``…_s`` seconds, ``…_bytes`` bytes, ``gap`` a part of the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from synth.text.quantities import NOTHING, count, named, percent
from synth.text.visible import visible

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

    from synth.records.record import Record

COLUMNS: dict[str, str] = {
    "value": "objective value recomputed by the check, missing where none is held [unit]",
    "bound": "proven lower bound [unit]",
    "unit": "unit of value and bound: s, bytes, timesteps, phases, steps",
    "value_s": "value where unit is s, else missing [s]",
    "bound_s": "bound where unit is s, else missing [s]",
    "gap": "(value - best bound of the instance) / value, a fraction [1]",
    "certified": "whether bound follows from a certificate: true or false",
    "proof": "what proves bound: certified, or the solver whose word it is",
    "seconds": "time to build and solve, not in the library [s]",
    "made_by": "the method that made the schedule, where another lent it: that one; or who handed it in",
}
IN_UNIT = ("value", "bound", "best_value", "best_bound")
OWN = "synth"  # the key of what a frame knows of itself in pandas' ``attrs``
VISIBLE_ROWS = 60  # that are shown where pandas' options set no limit


class Frame(pd.DataFrame):
    """A pandas frame of numbers that shows them with units, in notebooks and in a terminal.

    All that pandas can do works on the numbers: ``sort_values``, ``groupby``, ``pivot``, ``plot``, ``to_csv``,
    ``to_latex``. ``style`` is pandas' Styler with the units. A frame of many columns shows the most telling ones until
    columns are chosen or dropped; ``columns`` lists all.
    """

    @property
    def _constructor(self) -> Callable[..., Frame]:
        return Frame

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, object]] | pd.DataFrame,
        *,
        columns: list[str] | None = None,
        index: pd.Index[Any] | None = None,
        telling: Sequence[str] = (),
        note: str = "",
    ) -> Self:
        """The frame of these rows. ``telling``: the columns that are shown while all are there; ``note``: a line to
        show below."""
        made = cls(rows, columns=columns, index=index)
        units = set(made["unit"].dropna()) if "unit" in made.columns else set()
        made.attrs[OWN] = {
            "all": [str(name) for name in made.columns],
            "telling": list(telling),
            "unit": units.pop() if len(units) == 1 else None,
            "note": note,
        }
        return made

    def __repr__(self) -> str:
        """The frame as text, with units."""
        return "\n".join([repr(self._in_words()), *self._notes()])

    def _repr_html_(self) -> str:
        """The frame for a notebook, with units."""
        made: str | None = self._in_words()._repr_html_()  # type: ignore[operator]
        return (made or "") + "".join(f"<p>{escape(note)}</p>" for note in self._notes())

    @property
    def style(self) -> Styler:
        """Pandas' Styler of all columns, with the units."""
        styler = pd.DataFrame(self).style
        for name in self.columns:
            for unit, rows in self._units_of(name):
                styler = styler.format(partial(in_words, unit=unit), subset=(rows, [name]), escape="html")
        return styler

    def _units_of(self, name: object) -> Iterable[tuple[str | None, Any]]:
        """The units of a column, each with the labels of its rows."""
        unit = unit_of(name)
        if unit != "unit":
            return [(unit, self.index)]
        units = np.array(self._row_units(), dtype=object)
        return [(key, self.index[units == key]) for key in dict.fromkeys(units) if isinstance(key, str)]

    def _row_units(self) -> list[Any]:
        """The unit of every row's value and bound, as far as it is known."""
        if "unit" in self.columns and isinstance(units := self["unit"], pd.Series):
            return units.tolist()
        return [self._own("unit")] * len(self)

    def _own(self, what: str) -> Any:
        return self.attrs.get(OWN, {}).get(what)

    def _brief(self) -> bool:
        """Whether only the telling columns are shown."""
        return bool(self._own("telling")) and set(self._own("all")) <= set(self.columns)

    def _notes(self) -> list[str]:
        more = len(self._own("all")) - len(self._own("telling")) if self._brief() else 0
        left = f"and {more} more column{'s' if more > 1 else ''}, which .columns names" if more else ""
        return [note for note in (self._own("note"), left) if note]

    def _in_words(self) -> pd.DataFrame:
        """What is shown: texts in place of numbers. Rows that pandas leaves out stay empty."""
        places = list(range(len(self.columns)))
        if self._brief():
            hidden = set(self._own("all")) - set(self._own("telling"))
            places = [place for place in places if self.columns[place] not in hidden]
        most = pd.get_option("display.max_rows") or max(VISIBLE_ROWS, len(self))
        rows = [*range(len(self))] if len(self) <= most else [*range(most), *range(len(self) - most, len(self))]
        cells = np.full((len(self), len(places)), "", dtype=object)
        units = self._row_units()
        for at, place in enumerate(places):
            unit, column = unit_of(self.columns[place]), self.iloc[:, place].tolist()
            for row in rows:
                cells[row, at] = in_words(column[row], units[row] if unit == "unit" else unit)
        index = self.index if self.index.inferred_type != "string" else self.index.map(visible)
        return pd.DataFrame(cells, index=index, columns=self.columns[places])


def unit_of(column: object) -> str | None:
    """The unit of a column by its name; ``unit``: that of the row; None: a count, or no number."""
    name = str(column[0] if isinstance(column, tuple) and column else column)
    match name.rpartition("_")[2]:
        case _ if name in IN_UNIT:
            return "unit"
        case "s" if name.endswith("bytes_per_s"):
            return "bytes/s"
        case "s" | "seconds":
            return "s"
        case "bytes":
            return "bytes"
        case "gap":
            return "%"
    return "%" if name.startswith("gap_") else None


def in_words(cell: object, unit: str | None) -> str:
    """A cell as a person reads it: a number with its unit, a dash for what is missing."""
    if isinstance(cell, str):
        return visible(cell)
    if cell is None or cell is pd.NaT or cell is pd.NA:
        return NOTHING
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number):
        return visible(str(cell))
    number = float(cell)
    if not math.isfinite(number):
        return NOTHING if math.isnan(number) else str(number)
    if unit == "%":
        return percent(number)
    return named(number, unit) if isinstance(unit, str) else count(number)


def numbers(value: float | None, bound: float | None, unit: str) -> dict[str, float | str]:
    """The columns ``value``, ``bound``, ``unit``, ``value_s`` and ``bound_s`` of a row."""
    found = [math.nan if one is None else float(one) for one in (value, bound)]
    in_seconds = found if unit == "s" else [math.nan, math.nan]
    return {"value": found[0], "bound": found[1], "unit": unit, "value_s": in_seconds[0], "bound_s": in_seconds[1]}


def maker_of(record: Record) -> str | None:
    """The column ``made_by`` of a record; None without a value."""
    who = (record.data.get("submitted") or {}).get("by", record.lender or record["method"])
    return None if record.value is None else str(who)
