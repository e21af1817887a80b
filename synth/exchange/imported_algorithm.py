"""An algorithm that came in, run on a machine of ours: a record like any method's, so that it can be compared.

A family that can do it has a method ``imported`` with a parameter ``file``. Its schedule keeps every message and every
wait of the thread blocks (of a plan of MSCCL++ every message and what it carries); routes and start times are found for
it. The family's check replays it, the family's bound stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from synth import api
from synth.errors import InputError, UnsupportedError
from synth.exchange import msccl_xml, mscclpp
from synth.exchange.block_costs import CostModel
from synth.exchange.file_kinds import HEAD, is_plan
from synth.exchange.programs import in_seconds
from synth.family import defaults_for, families, get_family
from synth.instance import Instance
from synth.instance import read as read_instance
from synth.making import make
from synth.records.record import Record
from synth.text.quantities import shown

METHOD = "imported"


def run(path: Path, instance: Instance) -> Record:
    """The record of the algorithm on the instance, checked, not yet written. Raises :class:`InputError` also where
    the algorithm is right and yet no schedule of ours: a rank here has one partial sum of a piece, to which all that
    arrives is added, and an executor may keep several apart."""
    record = api.solve(instance, METHOD, options={"file": path.as_posix()})
    faults = record["verified"]["faults"]
    if faults:
        raise InputError(
            f"keeps partial sums apart that a schedule adds as they arrive ({faults[0]}): its time is not known",
            str(path),
        )
    return record


def compared(path: Path, record: Record, costs: CostModel | None = None) -> str:
    """In words, what a schedule takes as it was exported, beside what it takes as the record has it: chunks of one size
    and connections that do one thing after another can cost time, and so do thread blocks (``costs``). Empty for
    families that take no algorithms."""
    if METHOD not in get_family(record["family"]).methods or record.value is None:
        return ""
    instance, unit = record.find_instance(), record["objective"]["unit"]
    try:
        found = run(path, instance).value if costs is None else _seconds(path, instance, costs)
    except InputError as error:
        return f"how long it takes as exported is not known: {error}"
    if found is None:
        return "how long it takes as exported is not known"
    return f"as exported it takes {shown(found, unit)} on {instance.name}, as scheduled {shown(record.value, unit)}"


def _seconds(path: Path, instance: Instance, costs: CostModel) -> float:
    """What the file takes on the instance, thread blocks included. Raises :class:`InputError`."""
    if not is_plan(path):
        return in_seconds(instance, msccl_xml.read(path).algorithm, costs=costs)
    plan, collective = mscclpp.read(path), str(getattr(instance, "collective", ""))
    return in_seconds(instance, lambda size: mscclpp.raised(plan, collective, part_bytes=size), costs=costs)


def compared_padded(path: Path, record: Record, costs: CostModel | None = None) -> str:
    """The same of a demand that was written as one all-to-all of given parts, with what its whole chunks move."""
    instance = record.find_instance()
    if record.value is None or not get_family(record["family"]).can("timing"):
        return ""
    try:
        if is_plan(path):
            found = mscclpp.replayed(mscclpp.read(path))
            part = found.plan.most_bytes // len(found.plan.gpus)
            seconds = in_seconds(instance, lambda _: mscclpp.raised_of(found, part), costs=costs)
        else:
            seconds = in_seconds(instance, msccl_xml.read(path).algorithm, costs=costs)
    except InputError as error:
        return f"how long it takes as exported is not known: {error}"
    times = f"{shown(seconds, 's')} on {instance.name}, as scheduled {shown(record.value, record['objective']['unit'])}"
    return f"padded and as exported it takes {times}"


def instance_for(path: Path, machine: str, given: Mapping[str, str]) -> Instance:
    """The instance that an algorithm is to be run on: a file of one, or made from a ``machine`` and keys as ``synth
    make`` takes them (the collective is the algorithm's). Raises :class:`InputError`."""
    if machine.endswith(".json") and is_instance(Path(machine)):
        if given:
            raise InputError(f"{', '.join(given)}: the instance says all; keys go with a machine", machine)
        return read_instance(Path(machine))
    family = next(family for family in families() if METHOD in family.methods)
    return make(family, {"machine": machine, "collective": collective_of(path), **given})


def collective_of(path: Path) -> str:
    """What a file's algorithm does. Raises :class:`InputError`."""
    if not is_plan(path):
        return msccl_xml.read(path).algorithm.collective
    try:
        return mscclpp.collective(mscclpp.read(path))
    except UnsupportedError as error:
        raise InputError(str(error), str(path)) from None


def is_instance(path: Path) -> bool:
    """Whether a file is an instance of ours, and not a machine."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return b'"synth-instance/' in stream.read(HEAD)


def bound_of(instance: Instance, seconds: float) -> Record | None:
    """The record of the family's first default bound, None for a family without one."""
    family = get_family(instance.family)
    name = next((name for name in defaults_for(family, instance) if family.methods[name].kind == "bound"), None)
    return None if name is None else api.solve(instance, name, time_limit=seconds)
