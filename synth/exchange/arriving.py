"""An algorithm that came in, run on a machine of ours: a record like any method's, so that it can be compared.

The record's method is named ``imported``; its parameter ``file`` says where it came from. The schedule keeps every
message and every wait of the thread blocks; routes and start times are found for it. The family's check replays it, the
family's bound stands beside it.
"""

from __future__ import annotations

from pathlib import Path

from synth.api import execute
from synth.errors import InputError, UnsupportedError
from synth.exchange import msccl_xml, validity
from synth.family import Method, Outcome, get_family, load
from synth.instance import Instance
from synth.options import Parameter, RunOptions
from synth.record import Record

METHOD = Method(
    "imported", "reference", "an algorithm that came in, as its file has it", "synth.exchange.arriving:solve", (),
    (Parameter("file", str, None, "the algorithm's file", question=True),),
)  # fmt: skip


def solve(instance: Instance, options: RunOptions) -> Outcome:
    """Method ``imported``: the algorithm of the file ``options.method["file"]``. Raises :class:`InputError` for one
    that cannot be read, is not valid, or does not fit the instance."""
    path = Path(options.method["file"])
    family = get_family(instance.family)
    if family.from_algorithm is None:
        raise InputError(f"family {family.name} has no machines to run an algorithm on")
    algorithm = msccl_xml.read(path).algorithm
    faults = validity.check(algorithm).faults
    if faults:
        raise InputError(faults, str(path))
    try:
        return Outcome("finished", load(family.from_algorithm)(instance, algorithm))
    except UnsupportedError as error:
        return Outcome("unsupported", message=f"{path.name}: {error}")


def run(path: Path, instance: Instance) -> Record:
    """The record of the algorithm on the instance, checked, not yet written. Raises :class:`InputError`, also where
    the algorithm is right and yet no schedule of ours: a rank here has one partial sum of a piece, to which all that
    arrives is added, and an executor may keep several apart."""
    record = execute(instance, METHOD, RunOptions(method={"file": path.as_posix()}))
    faults = record["verified"]["faults"]
    if faults:
        raise InputError(
            f"keeps partial sums apart that a schedule adds as they arrive ({faults[0]}), so that its time is not known",
            str(path),
        )
    return record
