"""The inverse of the flat table: ``node,algorithm,start`` (seconds) to a timetable, for ``synth submit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from synth.errors import Fault, InputError
from synth.text.csv import choice_cell, typed_rows
from synth.text.input_file import InputFile
from synth_models.step.instance import TICKS, StepInstance
from synth_models.step.solution import LATEST, NAMES, Timetable, timetable_of


def from_table(instance: StepInstance, file: InputFile) -> Timetable:
    """Return the timetable of a table in any order; ``kind`` and ``place`` are not needed, without ``algorithm`` all
    collectives run by the first. Raises :class:`InputError` with every faulty line and every node that lacks."""
    names = {node.name: i for i, node in enumerate(instance.nodes)}

    def known(text: str) -> str:
        if text not in names:
            raise ValueError("is no node")
        return text

    columns: dict[str, Callable[[str], Any]]
    columns = {"node": known, "kind": str, "place": str, "algorithm": choice_cell(*NAMES), "start": _picoseconds}
    rows = typed_rows(file, columns, ("node", "start"), "node")
    stands = Counter(row["node"] for row in rows)
    faults = [Fault(name, f"stands {many} times") for name, many in stands.items() if many > 1]
    lacking = [name for name in names if name not in stands]
    if lacking:
        told = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        faults.append(Fault("node", f"has no row: {told}"))
    if faults:
        raise InputError(faults, str(file))
    start, how = [0] * len(names), [0] * len(names)
    for row in rows:
        i = names[row["node"]]
        start[i], how[i] = row["start"], NAMES.index(row.get("algorithm", NAMES[0]))
    return timetable_of(start, how)


def _picoseconds(text: str) -> int:
    """Seconds as whole picoseconds. Raises ``ValueError``."""
    try:
        value = Decimal(text.strip()) * TICKS
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not value.is_finite() or not 0 <= value <= LATEST:
        raise ValueError(f"must be in 0..{LATEST / TICKS:g}")
    return round(value)
