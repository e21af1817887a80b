"""Collectives that take what records of a machine take: schedules of the race or the library inside a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synth.api import check
from synth.errors import InputError
from synth.instance import Instance
from synth.records.folder import read_all
from synth.records.record import Record

MACHINE = ("network", "switching", "failed")  # the fields of a machine
SHOWN = 4  # kinds of collectives that a note names
Key = tuple[str, int, int]  # collective, bytes, ranks


def priced(raw: dict[str, Any], source: Path) -> tuple[dict[str, Any], list[str]]:
    """The raw step in which every collective that has a record takes its value, and what was taken, in words. Of
    several records of a collective, its bytes and its number of ranks the least value counts; each is checked again.
    Raises :class:`InputError` for faulty records, those of several machines, and where none fits."""
    operations = [row for row in raw["nodes"] if row["kind"] == "operation" and row.get("seconds") is None]
    wanted = {_key(row) for row in operations}
    best = _best(source, wanted)
    for row in operations:
        row["seconds"] = best.get(_key(row))
    without = [f"{kind} of {size} bytes among {ranks}" for kind, size, ranks in sorted(wanted - set(best))]
    notes = [f"{len(best)} kinds of collectives take what records take, and the bound holds for their schedules"]
    if without:
        more = f" and {len(without) - SHOWN} more" if len(without) > SHOWN else ""
        notes.append(f"Without a record, so by the two algorithms: {', '.join(without[:SHOWN])}{more}")
    return raw, notes


def _best(source: Path, wanted: set[Key]) -> dict[Key, float]:
    """The least value of each wanted collective [s], checked again."""
    best: dict[Key, tuple[float, Record, Instance]] = {}
    for key, record, instance in _fitting(source, wanted):
        if record.value is not None and (key not in best or record.value < best[key][0]):
            best[key] = record.value, record, instance
    if not best:
        raise InputError("has no record of a collective of this step: of its kind, bytes and ranks", str(source))
    machines = {instance.model_dump_json(include=set(MACHINE)): instance.name for _, _, instance in best.values()}
    if len(machines) > 1:
        raise InputError(f"has records of several machines ({', '.join(machines.values())}): name one's", str(source))
    for _, record, _ in best.values():
        if faults := check(record).faults:
            raise InputError(f"{record.path}: {faults[0]}", str(source))
    return {key: value for key, (value, _, _) in best.items()}


def _key(row: dict[str, Any]) -> Key:
    return row["collective"], row["bytes"], row.get("group") or len(row["ranks"])


def _fitting(source: Path, wanted: set[Key]) -> Iterator[tuple[Key, Record, Instance]]:
    """The records of a wanted collective, at whose beginning all ranks are ready."""
    for record in read_all([source]):
        if isinstance(record, InputError):
            raise record
        if record["family"] != "fabric" or record.value is None or not record.ok:
            continue
        instance: Any = record.find_instance()
        key = instance.collective, instance.bytes, len(instance.members)
        if key in wanted and instance.ready is None:
            yield key, record, instance
