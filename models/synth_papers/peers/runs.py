"""What we find on one instance: methods run within their limits, the best schedule and the bound published."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from synth.errors import InputError
from synth.records.optimality import gap
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth_models.fabric.family import FAMILY
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import knows
from synth_papers.fabric.grid import greatest_bound

TABLES = "tables"  # the part whose records stay where they were made
METHODS = ("bound", "pull", "forest", "flow")
TIME_LIMIT = 30.0
ALIKE = 5e-4
T = TypeVar("T")
AGAIN = 0.01  # from this gap on, the search in continuous time is tried too


@dataclass
class Found:
    """All records of one instance."""

    instance: FabricInstance
    records: dict[str, Record] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        """The greatest proven bound [s], 0 without one."""
        return greatest_bound(self.records)

    @property
    def best(self) -> Record | None:
        """The record with the least value, or one of up to :data:`ALIKE` more with fewer transfers: a page need not
        carry megabytes for less than a per mille."""
        held = [(record.value, record) for record in self.records.values() if record.value is not None]
        least = min((value for value, _ in held), default=0.0)
        alike = [record for value, record in held if value <= least * (1 + ALIKE)]
        return min(alike, key=lambda record: record["verified"]["facts"].get("transfers", 0), default=None)

    @property
    def value(self) -> float:
        """The value of the best record [s]. Raises ``RuntimeError`` where nothing was found."""
        if self.best is None or self.best.value is None:
            raise RuntimeError(f"no schedule of {self.instance.name} was found within the limit")
        return self.best.value

    @property
    def by(self) -> str:
        """Whose the best schedule is."""
        return "–" if self.best is None else self.best.lender or str(self.best["method"])

    @property
    def gap(self) -> float:
        """(best - bound) / best."""
        return gap(self.value, self.bound) or 0.0

    @property
    def seconds(self) -> float:
        """What all methods took together, bound included."""
        return sum(record.run_s for record in self.records.values())


def changed(instance: FabricInstance, **fields: Any) -> FabricInstance:
    """The instance with other fields, validated again."""
    return FabricInstance.model_validate(instance.model_dump(mode="json", exclude_none=True) | fields)


def solved(
    page: Reproduction,
    instance: FabricInstance,
    part: str,
    methods: Sequence[str] = METHODS,
    time_limit: float = TIME_LIMIT,
    kept: bool = True,
) -> Found:
    """Run the methods that know the instance; the best schedule and the bound are published in ``part`` (the bound
    alone without ``kept``), everything else stays in the part :data:`TABLES`."""
    here = page.keep(instance, TABLES)
    found = Found(here)
    for name in methods:
        if name in FAMILY.methods and knows(name, here.collective):
            for _, record in page.solve([here], [name], time_limit=time_limit, part=TABLES):
                found.records[name] = record
    if methods is METHODS and not page.quick and found.best is not None and found.gap > AGAIN:
        for _, record in page.solve([here], ["continuous"], time_limit=2 * time_limit, part=TABLES):
            found.records["continuous"] = record
    for quoted in (found.records.get("bound"), found.best if kept else None):
        if quoted is not None:
            page.publish(quoted, part)
    return found


def read_rows(path: Path, whose: str, read: Callable[[Mapping[str, str]], T]) -> list[T]:
    """The rows of a table of another tool's results. Raises :class:`InputError` naming the line that is none."""
    found = []
    with path.open(newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream), 2):
            try:
                found.append(read(row))
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise InputError(f"line {number} is no result of {whose}: {error}", str(path)) from None
    return found


def positive(text: str) -> float:
    """A positive, finite number. Raises ``ValueError`` for anything else."""
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError(f"{text!r} is not a positive number")
    return value
