"""Records of methods' runs, in the folder of a question of ``synth tune``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from synth import api
from synth.errors import InputError
from synth.family import get_family
from synth.instance import Instance
from synth.instance import read as read_instance
from synth.records import record as records
from synth.records.record import Record
from synth.text.files import write_atomically

RUN_S = 20.0  # of a method's run


class Place(Protocol):
    """Where records lie: ``resume`` to take over those that are there, the ``seed`` of runs."""

    @property
    def folder(self) -> Path: ...
    @property
    def resume(self) -> bool: ...
    @property
    def seed(self) -> int: ...


def recorded(place: Place, instance: Instance, name: str, options: Mapping[str, int], seconds: float = RUN_S) -> Record:
    """The record of a method's run, taken over where the place resumes and one is there, else made in so many seconds
    at most."""
    found = taken_over(place, instance, name, options, seconds)
    if found is not None:
        return found
    folder, solver, texts = _where(place, instance, name, options)
    return api.solve(instance, name, solver=solver, time_limit=seconds, seed=place.seed, options=texts, results=folder)


def taken_over(
    place: Place, instance: Instance, name: str, options: Mapping[str, int], seconds: float = 0.0
) -> Record | None:
    """The record of an earlier run where the place resumes and one is there that passed its check, None otherwise;
    not one that less than half of so many ``seconds`` had cut."""
    folder, solver, _ = _where(place, instance, name, options)
    path = records.record_path(folder, instance.family, instance.name, name, solver)
    if place.resume and path.is_file():
        with suppress(InputError):  # damaged, or of another version: made again
            found = records.read(path)
            cut = found["termination"] == "time_limit" and (found["options"]["time_limit_s"] or seconds) < seconds / 2
            if found["instance_sha256"] == instance.sha256 and found.is_done() and not cut:
                return found
    return None


def _where(
    place: Place, instance: Instance, name: str, options: Mapping[str, int]
) -> tuple[Path, str | None, dict[str, str]]:
    """The folder of a run's record, its solver, and its options as texts."""
    family = get_family(instance.family)
    texts = {key: str(value) for key, value in options.items()}
    solver, _ = api.method_options(family, family.method(name), None, texts)
    return place.folder / "records" / "-".join(["by", *(f"{k}{v}" for k, v in options.items())]), solver, texts


def small(record: Record) -> Record:
    """A record that is on disk without its schedule, which may be a million transfers."""
    return record if record.path is None or record["kind"] == "bound" else replace(record, packed=None)


def whole(record: Record) -> Record:
    """The same with its schedule, read again where it was left out."""
    return record if record.packed is not None or record.path is None else records.read(record.path)


def kept(instance: Instance, folder: Path) -> Instance:
    """The instance in a file of its own, which its records name."""
    path = folder / f"{instance.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    text = instance.to_json().encode()
    if not path.is_file() or path.read_bytes() != text:
        write_atomically(path, text)
    return read_instance(path)
