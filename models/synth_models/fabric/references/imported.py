"""Method ``imported`` (reference): what an executor's file does, on this machine.

The file is MSCCL XML (:mod:`synth.exchange.msccl_xml`), by whomever; its algorithm is checked first
(:mod:`synth.exchange.validity`). Every message and every wait of its thread blocks is kept; routes and start times are
found for it (:mod:`synth_models.fabric.parts.imported`). Complexity: list scheduling of its messages. Guarantee: none;
it is as good as its author made it.
"""

from __future__ import annotations

from pathlib import Path

from synth.errors import InputError
from synth.exchange import msccl_xml, validity
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.imported import from_algorithm


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``imported``. Raises :class:`InputError` for a file that cannot be read, is not valid, or is not for this
    instance."""
    name = options.method.get("file")
    if not name:
        return Outcome("unsupported", message="imported needs file=FILE.xml, an algorithm in MSCCL XML")
    path = Path(name)
    algorithm = msccl_xml.read(path).algorithm
    faults = validity.check(algorithm).faults
    if faults:
        raise InputError(faults, str(path))
    return Outcome("finished", from_algorithm(instance, algorithm))
