"""The network that a record's solution builds, for other families' problems on it."""

from __future__ import annotations

from synth.errors import InputError
from synth.family import get_family
from synth.network.links_table import LinksTable
from synth.records.record import read
from synth.records.verify import replay
from synth.text.input_file import InputFile


def table_of_record(file: InputFile) -> LinksTable:
    """Return the links of the record's solution, which is checked first. Raises :class:`InputError`."""
    record = read(file.path)
    family = get_family(record["family"])
    if not family.can("network"):
        raise InputError(f"a solution of family {family.name} builds no network", str(file))
    instance, solution = record.find_instance(), record.solution()
    verdict = replay(family, instance, solution)
    if verdict.faults:
        raise InputError(f"its solution is none: {verdict.faults[0]}", str(file))
    made: LinksTable = family.capability("network")(instance, solution)
    return made
