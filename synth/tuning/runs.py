"""Records of methods' runs, in the folder of a question of ``synth tune``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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
    family = get_family(instance.family)
    texts = {key: str(value) for key, value in options.items()}
    solver, _ = api.method_options(family, family.method(name), None, texts)
    folder = place.folder / "records" / "-".join(["by", *(f"{k}{v}" for k, v in options.items())])
    path = records.record_path(folder, family.name, instance.name, name, solver)
    if place.resume and path.is_file():
        with suppress(InputError):  # damaged, or of another version: made again
            found = records.read(path)
            if found["instance_sha256"] == instance.sha256 and found.is_done():
                return found
    return api.solve(instance, name, time_limit=seconds, seed=place.seed, options=texts, results=folder)


def kept(instance: Instance, folder: Path) -> Instance:
    """The instance in a file of its own, which its records name."""
    path = folder / f"{instance.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    text = instance.to_json().encode()
    if not path.is_file() or path.read_bytes() != text:
        write_atomically(path, text)
    return read_instance(path)
