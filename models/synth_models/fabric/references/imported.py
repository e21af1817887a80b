"""Method ``imported`` (reference): what an executor's file does, on this machine.

The file is MSCCL XML (:mod:`synth.exchange.msccl_xml`) or a plan of MSCCL++ (:mod:`synth.exchange.mscclpp`), by
whomever; it is checked first. Every message and, of XML, every wait of its thread blocks is kept (of a plan, what the
message carries); routes and start times are found for it (:mod:`synth_models.fabric.scheduling.given_moves`).

Or it is a record of the mirrored collective on the same machine (reduce: broadcast; reduce_scatter: allgather; gather:
scatter, and the other way round), whose schedule is played backwards
(:func:`synth_models.fabric.scheduling.mirrored.backwards`). Links must come in equal opposite pairs.
Complexity: list scheduling of its messages. Guarantee: none; it is as good as its author made it.
"""

from __future__ import annotations

from pathlib import Path

from synth.errors import InputError
from synth.exchange import msccl_xml, mscclpp, validity
from synth.exchange.file_kinds import is_plan
from synth.method import Outcome
from synth.options import RunOptions
from synth.records.packed import is_record
from synth.records.record import read
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.given_moves import from_algorithm, from_transfers, part_bytes
from synth_models.fabric.scheduling.mirrored import backwards
from synth_models.fabric.solution import Schedule

GIVEN = "is an all-to-all of given parts, no schedule of a whole one: `synth check` and `synth run` take it"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``imported``. Raises :class:`InputError` for a file that cannot be read, is not valid, or is not for this
    instance."""
    name = options.method.get("file")
    if not name:
        needed = "file=FILE.xml (MSCCL XML), file=PLAN.json (MSCCL++) or file=RECORD.json (of the mirrored collective)"
        return Outcome("unsupported", message=f"imported needs {needed}")
    path = Path(name)
    if is_record(path):
        return _backwards(instance, path)
    if is_plan(path):
        return Outcome("finished", _planned(instance, path))
    algorithm = msccl_xml.read(path).algorithm
    faults = validity.check(algorithm).faults
    if faults:
        raise InputError(faults, str(path))
    if algorithm.wants is not None:
        raise InputError(GIVEN, str(path))
    return Outcome("finished", from_algorithm(instance, algorithm))


def _backwards(instance: FabricInstance, path: Path) -> Outcome:
    """The schedule of a record of the mirrored collective, with time reversed."""
    record = read(path)
    mirror, schedule = record.find_instance(), record.solution()
    if not isinstance(mirror, FabricInstance) or not isinstance(schedule, Schedule):
        raise InputError("holds no schedule of the fabric family", str(path))
    try:
        found = backwards(instance, mirror, schedule)
    except ValueError as error:
        raise InputError(f"is no mirror of {instance.name}: {error}", str(path)) from None
    return Outcome("finished", found, message=f"the schedule of {record['method']} for {mirror.name}, backwards")


def _planned(instance: FabricInstance, path: Path) -> Schedule:
    try:
        moves = mscclpp.transfers(mscclpp.read(path), part_bytes=part_bytes(instance))
    except InputError as error:
        raise InputError(error.faults, str(path)) from None
    if moves.wants is not None:
        raise InputError(GIVEN, str(path))
    return from_transfers(instance, moves)
