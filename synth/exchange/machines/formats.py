"""The formats of topology that are read: names, how each is told by its content, and the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synth.errors import Fault, InputError
from synth.exchange.machines import astra_sim, nvidia_smi
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine
from synth.textfile import decode


@dataclass(frozen=True)
class TopologyFormat:
    """One format: its name for ``--format``, what it is, how large a file may be, and its functions.

    ``looks_like`` tells from the text alone; ``read`` takes the text, the machine's name and the hints, and raises
    :class:`InputError` without a source.
    """

    name: str
    summary: str
    most_bytes: int
    looks_like: Callable[[str], bool]
    read: Callable[[str, str, Hints], Machine]


FORMATS = (
    TopologyFormat(
        "nvidia-smi",
        "what nvidia-smi topo -m prints: NVLinks, PCIe levels, NICs; no numbers (--bandwidth, --latency)",
        4 * 2**20,
        nvidia_smi.looks_like,
        nvidia_smi.read,
    ),
    TopologyFormat(
        "astra-sim",
        "ASTRA-sim analytical network (YAML): Ring, FullyConnected, Switch, a dimension each",
        64 * 2**10,
        astra_sim.looks_like,
        astra_sim.read,
    ),
)


def format_named(name: str) -> TopologyFormat | None:
    """The format of that name."""
    return next((one for one in FORMATS if one.name == name), None)


def recognised(text: str) -> TopologyFormat | None:
    """The format that a text looks like."""
    return next((one for one in FORMATS if one.looks_like(text)), None)


def text_of(path: Path) -> str:
    """The file's text. Raises :class:`InputError` where it cannot be read or is larger than any format allows."""
    most = max(one.most_bytes for one in FORMATS)
    try:
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    if len(data) > most:
        raise InputError(f"is larger than {most:,} bytes, the most that is read", str(path))
    try:
        return decode(data).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"is no text: {error.reason} at byte {error.start}", str(path)) from None


def read(path: str | Path, format_name: str | None = None, hints: Hints = NO_HINTS) -> Machine:
    """The machine in a file of any of the formats, told by its content unless named.

    Raises :class:`InputError` naming the file and every fault in it.
    """
    path = Path(path)
    return read_text(text_of(path), path.name, format_name, hints, str(path))


def read_text(
    text: str, file_name: str, format_name: str | None = None, hints: Hints = NO_HINTS, source: str | None = None
) -> Machine:
    """As :func:`read`, from a text; the machine is named after the file."""
    source = source or file_name
    known = ", ".join(one.name for one in FORMATS)
    chosen = recognised(text) if format_name is None else format_named(format_name)
    if chosen is None and format_name is None:
        raise InputError(f"is of no topology format that is known; --format names one of {known}", source)
    if chosen is None:
        raise InputError([Fault("--format", f"unknown; one of {known}", format_name, True)])
    if len(text) > chosen.most_bytes:
        raise InputError(f"is larger than {chosen.most_bytes:,} characters, the most for {chosen.name}", source)
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(file_name).stem).strip("-")[:60] or "machine"
    try:
        return chosen.read(text, name, hints)
    except InputError as error:
        raise error if error.source else InputError(error.faults, source) from None
