"""Method ``imported`` (reference): what an executor's file does, on this machine.

The file is MSCCL XML (:mod:`synth.exchange.msccl_xml`) or an MSCCL++ plan (:mod:`synth.exchange.mscclpp`), by
whomever; its algorithm is checked first. Every message is kept, of MSCCL XML also every wait of the thread blocks (of a
plan those for data); routes and start times are found for it (:mod:`synth_models.fabric.parts.imported`).
Complexity: list scheduling of its messages. Guarantee: none; it is as good as its author made it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from synth.errors import InputError
from synth.exchange import msccl_xml, mscclpp, validity
from synth.exchange.checking import is_plan
from synth.exchange.transfers import Transfers
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.imported import from_algorithm, from_transfers, part_bytes


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``imported``. Raises :class:`InputError` for a file that cannot be read, is not valid, or is not for this
    instance."""
    name = options.method.get("file")
    if not name:
        return Outcome("unsupported", message="imported needs file=FILE.xml, an algorithm in MSCCL XML, or a plan")
    path = Path(name)
    if is_plan(path):
        return Outcome("finished", from_transfers(instance, _moves(instance, path)))
    algorithm = msccl_xml.read(path).algorithm
    faults = validity.check(algorithm).faults
    if faults:
        raise InputError(faults, str(path))
    return Outcome("finished", from_algorithm(instance, algorithm))


def _moves(instance: FabricInstance, path: Path) -> Transfers:
    """What a plan moves; it is for parts of any size, and takes that of the instance."""
    root = None if instance.the_root is None else instance.members.index(instance.the_root)
    found = mscclpp.transfers(mscclpp.read(path), instance.collective, root, 1)
    part = part_bytes(instance)
    units = found.part_bytes
    if part < units:
        raise InputError(f"parts of {part} bytes cannot be cut into the plan's {units} units", str(path))
    begin = part * found.piece_offset // units
    end = part * (found.piece_offset + found.piece_bytes) // units
    return replace(found, part_bytes=part, piece_offset=begin, piece_bytes=end - begin)
