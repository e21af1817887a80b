"""Links in a CSV file: the header ``src,dst[,bandwidth][,latency][,group][,class]``, one direction a line, as
:mod:`synth.network.links_table` reads it everywhere. Cells left empty are unknown."""

from __future__ import annotations

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine
from synth.exchange.machines.rows import machine_of_table, switches_of
from synth.network.links_table import columns_of, read_csv
from synth.text.quantities import counted

ALWAYS_READ = "a table with the first line src,dst,bandwidth (links CSV) always works"


def looks_like(text: str) -> bool:
    """Whether the first line is such a header, comments aside."""
    return {"src", "dst"} <= {name for name, _ in columns_of(text)}


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError` with every fault by its line."""
    table = read_csv(text)
    faults: list[Fault] = []
    switches = switches_of(dict.fromkeys(table.names), hints, faults)
    if faults:
        raise InputError(faults)
    assumed = table.parallel()
    if not switches:
        assumed.append("every node is a rank (--switches names those that are not)")
    source = f"links CSV, {counted(len(table.links), 'link')}"
    return machine_of_table(table, switches, name, "csv", source, assumed)
