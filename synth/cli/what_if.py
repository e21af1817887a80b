"""``synth show RECORD --what-if``: what each change of an instance would buy, by value and by bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from synth.cli.output import console, table
from synth.text.quantities import percent, shown

if TYPE_CHECKING:
    from synth.family import Family
    from synth.instance import Instance
    from synth.records.record import Record

HEAD = ("change", "value", "bound", "gains", "at most", "by")
LIMIT_S = 20.0  # of every method


def tell(record: Record, changes: str) -> None:
    """Print a row a change: the best value and bound of the family's methods, and which share of the value as it is
    the change gains, by its value and at most. Raises :class:`InputError`."""
    from synth.errors import InputError
    from synth.family import get_family

    family = get_family(record["family"])
    if not family.can("what_if"):
        raise InputError(f"--what-if: family {family.name} knows no changes of its instances")
    instance = record.find_instance()
    changed: dict[str, Instance] = family.capability("what_if")(instance, changes)
    unit, rows = record["objective"]["unit"], []
    held = record.value if record["kind"] != "bound" else None
    now, bound, by = best(family, instance, held, record["method"])
    for words, (value, least, who) in [
        ("as it is", (now, bound, by)), *((words, best(family, one)) for words, one in changed.items())
    ]:  # fmt: skip
        gains = [percent(1 - least_of / now) if now else "" for least_of in (value, least)]
        rows.append((words, shown(value, unit), shown(least, unit), *gains, who))
    console.print(table(*HEAD, rows=rows, right=HEAD[1:5]))


def best(family: Family, instance: Instance, value: float | None = None, by: str = "") -> tuple[float, float, str]:
    """The least value, the greatest bound and whose value it is, of the methods that run by default; ``value``: one
    that is known, of method ``by``."""
    from synth import api
    from synth.family import defaults_for

    found, bound = math.inf if value is None else value, 0.0
    for name in defaults_for(family, instance):
        if bound and found <= bound * (1 + 1e-9):
            break
        record = api.solve(instance, name, time_limit=LIMIT_S)
        if record.bound is not None:
            bound = max(bound, record.bound)
        if family.methods[name].kind != "bound" and record.value is not None and record.value < found:
            found, by = record.value, name
    return found, bound, by
