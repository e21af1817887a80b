"""Faults of the nodes that keys of ``synth make fabric`` name, and of the tables that do, all before any is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from synth.errors import Fault
from synth.text.input_file import InputFile
from synth_models.fabric.problem import traffic_table
from synth_models.fabric.problem.failures import failures
from synth_models.fabric.problem.file_faults import guarded
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.node_words import node_meant, nodes_meant
from synth_models.fabric.problem.place_faults import Places, place_faults
from synth_models.fabric.problem.ready_keys import late_key, ready_rows
from synth_models.fabric.problem.reshard_keys import RESHARD, reshard_faults
from synth_models.fabric.problem.several import SEVERAL
from synth_models.fabric.problem.tables import collective_rows
from synth_models.fabric.problem.traffic import TRAFFIC

OF_ONE = ("bytes", "root", "ranks", "demand")  # what each of several collectives has for itself


def missing_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """What the collective needs and is not given, and what belongs elsewhere."""
    collective = values.get("collective")
    needed = {
        **dict.fromkeys(("demand", TRAFFIC), ("demand", ": demand=FILE.csv")),
        SEVERAL: ("collectives", ": collectives=FILE.csv"),
    }
    key, how = needed.get(str(collective), ("bytes", ""))
    if key not in values and collective != RESHARD:
        yield Fault(key, f"is missing{how}")
    if collective == SEVERAL:
        yield from (Fault(key, "belongs into the file of collectives") for key in OF_ONE if key in values)


def named_faults(values: Mapping[str, Any], machine: Machine | None) -> list[Fault]:
    """What is wrong with the nodes that keys and files name, and with all else in these files."""
    names, broken, group = None if machine is None else machine.names, set[int](), None
    faults: list[Fault] = []
    if values.get("failed") is not None:
        faults += guarded(lambda: broken.update(failures(values["failed"], machine).get("nodes", ())))
    named: dict[str, Any] = {}
    for key, meant in (("ranks", nodes_meant), ("root", node_meant)):
        if values.get(key) is not None:
            wrong = guarded(lambda key=key, meant=meant: named.update({key: meant(values[key], key, names)}))
            faults += (_of_part(fault, values[key]) for fault in wrong)
    if machine is not None:
        wrong = list(place_faults(named | {"failed": {"nodes": sorted(broken)}}, machine))
        group = set(named["ranks"]) if "ranks" in named and not wrong else None
        faults += wrong
    places = None if machine is None else Places(machine, broken, group)
    readers = {"demand": traffic_table.read_table, "collectives": collective_rows, "late": late_key}
    readers |= {"ready": ready_rows} if isinstance(values.get("ready"), InputFile) else {}
    for key, reader in readers.items():
        if values.get(key) is not None:
            faults += guarded(lambda key=key, reader=reader: reader(values[key], places))
    return [*faults, *reshard_faults(values, machine)]


def _of_part(fault: Fault, text: str) -> Fault:
    """The fault of a part of the text, which it names."""
    return fault if fault.value == text else replace(fault, message=f"{fault.value}: {fault.message}")
