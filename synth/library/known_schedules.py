"""The schedules that the library has of a family: what a method may make others of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from synth.errors import InputError, UnsupportedError
from synth.family import get_family
from synth.instance import Instance
from synth.library import best_known
from synth.library.best_known import Row
from synth.records import record as records


@dataclass(frozen=True)
class Known:
    """The best schedule known of an instance; instance and solution are read when they are asked for."""

    row: Row
    folder: Path

    @property
    def value(self) -> float:
        """Its objective value, as its record's check found it."""
        return float(self.row.value)

    @cached_property
    def makers(self) -> list[str]:
        """The methods that made it, as its record says."""
        record = records.read(self.folder / self.row.record)
        return list(record.data.get("made_by") or [record["method"]])

    @cached_property
    def instance(self) -> Instance:
        """Raises :class:`InputError` where the record does not say which it is."""
        return best_known.instance_of(self.row, self.folder)

    def packed(self) -> Mapping[str, Any]:
        """The solution as it is stored. Raises :class:`InputError` where it cannot be read."""
        return records.read(self.folder / self.row.record).packed or {}

    def solution(self) -> Any:
        """Raises :class:`InputError` where it cannot be read."""
        return records.read(self.folder / self.row.record).solution()


def of_others(instance: Instance, library: str | None) -> list[Known]:
    """What the library knows of all other instances of the family that have as many ranks; ``library``: the table, by
    default the one that is found here or above. Raises :class:`InputError` where there is no such file, and
    :class:`UnsupportedError` where none is found."""
    family = get_family(instance.family)
    size = str(int(family.capability("size")(instance)))
    try:
        found = best_known.demand(None if library is None else Path(library), "library=FILE")
    except InputError as error:
        if library is not None:
            raise
        raise UnsupportedError("; ".join(fault.words for fault in error.faults)) from None
    everything = _known(found, found.stat().st_mtime_ns)
    own = instance.sha256
    near = [one for one in everything if (one.row.family, one.row.size) == (instance.family, size)]
    return list(_readable(one for one in near if one.row.sha256 != own))


@lru_cache(maxsize=4)
def _known(file: Path, _: int) -> tuple[Known, ...]:
    return tuple(Known(row, file.parent) for row in best_known.read(file) if row.value and row.record)


def _readable(known: Iterator[Known]) -> Iterator[Known]:
    """Those whose instance can be read."""
    for one in known:
        try:
            assert one.instance is not None
        except InputError:
            continue
        yield one
