"""The formats of topology that are read: names, how each is told by its content, and the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO

from synth.errors import Fault, InputError
from synth.exchange.machines import (
    astra_sim,
    graphml,
    hardened,
    hwloc,
    infiniband,
    links_csv,
    matrix_tools,
    nccl,
    node_link,
    other_texts,
    rocm_smi,
    simgrid,
    slurm_topology,
    taccl,
    teccl,
)
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine, listed
from synth.exchange.machines.pasted import MOST_BYTES, Part, element, parts, plain, trimmed
from synth.text.csv import MOST_FAULTS
from synth.text.files import decode
from synth.text.visible import visible


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


def _format(
    name: str, module: ModuleType | matrix_tools.Tool | infiniband.Dump, most_bytes: int, summary: str
) -> TopologyFormat:
    return TopologyFormat(name, summary, most_bytes, module.looks_like, module.read)


_MIB = 2**20
FORMATS = (
    _format(
        "nvidia-smi",
        matrix_tools.nvidia_smi,
        4 * _MIB,
        "what nvidia-smi topo -m prints: NVLinks, PCIe levels, NICs; no numbers",
    ),
    _format("nccl", nccl, 8 * _MIB, "NCCL's and RCCL's topology XML (NCCL_TOPO_DUMP_FILE, cloud images); no latencies"),
    _format("rocm-smi", rocm_smi, 4 * _MIB, "rocm-smi --showtopo or --showtopoweight, amd-smi topology: XGMI, PCIe"),
    _format("mthreads-gmi", matrix_tools.mthreads_gmi, 4 * _MIB, "mthreads-gmi topo -m: MTLinks, PCIe levels, NICs"),
    _format("npu-smi", matrix_tools.npu_smi, 4 * _MIB, "npu-smi info -t topo: HCCS, SIO, PCIe levels"),
    _format("xpu-smi", matrix_tools.xpu_smi, 4 * _MIB, "xpu-smi topology -m: Xe Links, dies of a card, PCIe levels"),
    _format("ibnetdiscover", infiniband.ibnetdiscover, 64 * _MIB, "ibnetdiscover, also -p: hosts, switches, 4xHDR"),
    _format("iblinkinfo", infiniband.iblinkinfo, 64 * _MIB, "iblinkinfo, also -l: the same"),
    _format("subnet-lst", infiniband.subnet_list, 64 * _MIB, "opensm-subnet.lst, ibdiagnet2.lst: the same"),
    _format("slurm", slurm_topology, 4 * _MIB, "Slurm's topology.conf (tree, block) and topology.yaml; no numbers"),
    _format(
        "hwloc", hwloc, 16 * _MIB, "hwloc's XML of a box (lstopo --of xml): GPUs, NICs, PCIe, NVLink and XGMI matrices"
    ),
    _format("simgrid", simgrid, 64 * _MIB, "SimGrid's platform XML: hosts, routers, links, routes, clusters"),
    _format(
        "teccl", teccl, 4 * _MIB, "TE-CCL's input JSON (TopologyParams): DGX1, NDv2, DGX2, AMD, Mesh as it runs them"
    ),
    _format(
        "taccl", taccl, 64 * _MIB, "TACCL's topology JSON, known or custom; relative numbers (--chunk, --time-unit)"
    ),
    _format("astra-sim", astra_sim, 2**14, "ASTRA-sim analytical YAML: Ring, FullyConnected, Switch, a dimension each"),
    _format(
        "node-link", node_link, 512 * _MIB, "NetworkX node-link JSON with edge attributes bandwidth, latency, group"
    ),
    _format("graphml", graphml, 64 * _MIB, "GraphML with the same attributes (NetworkX, yEd, Gephi)"),
    _format("csv", links_csv, 512 * _MIB, "links CSV: src,dst,bandwidth[,latency][,group][,class], units allowed"),
)


_NOT_MACHINES = {
    "graphs": "NCCL's search result (NCCL_GRAPH_FILE): channels",
    "algo": "an MSCCL algorithm: steps of a schedule",
}  # by the root of an XML file
_OURS = {
    '"synth-machine/1"': "a machine file already: synth make fabric machine=FILE …",
    '"synth-instance/1"': "an instance already: synth solve FILE",
    '"synth-record/1"': "a record: synth show FILE, synth export FILE",
}
_HEAD = 1000
_NAMES = f"--format names one of {', '.join(one.name for one in FORMATS)}"
TOLD_BY = 2**20  # characters by which a text's format is told
_JSON = ("node-link", "teccl", "taccl")
_AS_THEY_ARE = ("csv", "node-link", "graphml", "teccl", "taccl")  # formats of files, whose names are not a terminal's


def format_named(name: str) -> TopologyFormat | None:
    """The format of that name."""
    return next((one for one in FORMATS if one.name == name), None)


def recognised(text: str) -> TopologyFormat | None:
    """The format that a text looks like, by its first characters; JSON, whose keys have no order, by all of it."""
    return next((one for one in FORMATS if one.looks_like(text[: _told_by(one)])), None)


def _told_by(one: TopologyFormat) -> int:
    return one.most_bytes if one.name in _JSON else min(one.most_bytes, TOLD_BY)


def text_of(path: Path) -> str:
    """The file's text. Raises :class:`InputError` where it cannot be read or is larger than any format allows."""
    try:
        with path.open("rb") as stream:
            return text_in(stream, str(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None


def text_in(stream: IO[bytes], source: str) -> str:
    """The text of an open file. Raises :class:`InputError` where it is none or is larger than any format allows."""
    most = max(one.most_bytes for one in FORMATS)
    data = stream.read(most + 1)
    if len(data) > most:
        raise InputError(f"is larger than {most:,} bytes, the most that is read", source)
    try:
        return decode(data).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"is no text: {error.reason} at byte {error.start}", source) from None


def read(path: str | Path, format_name: str | None = None, hints: Hints = NO_HINTS) -> Machine:
    """The machine in a file of any of the formats, told by its content unless named.

    Raises :class:`InputError` naming the file and every fault in it.
    """
    path = Path(path)
    return read_text(text_of(path), path.name, format_name, hints, str(path))


def _told(text: str, source: str) -> tuple[TopologyFormat, list[Part]]:
    """The format as the content tells it, and the parts that hold it: the whole text, or what each writer wrote once
    prefixes and prompts are away. Raises :class:`InputError` with what the text is, if it is known."""
    if not text or text.isspace():
        raise InputError(f"is empty; {_NAMES}; {links_csv.ALWAYS_READ}", source)
    own = next((words for mark, words in _OURS.items() if mark in text[:_HEAD]), None)
    if own is not None:
        raise InputError(f"is {own}", source)
    if found := recognised(text):
        return found, [Part("", text if found.name in _AS_THEY_ARE else trimmed(text))]
    if hardened.root_name(text) in _NOT_MACHINES:
        raise InputError(f"is {_NOT_MACHINES[hardened.root_name(text)]}, no machine", source)
    written = parts(text)
    known = [(one, part) for part in written if (one := recognised(part.text))]
    if known:
        return known[0][0], [part for one, part in known if one is known[0][0]]
    inside = element(text)
    if inside is not None and (found := recognised(inside)):
        return found, [Part("", inside)]
    bare = (plain(text[:TOLD_BY]), *(part.text for part in written))
    other = next(filter(None, map(other_texts.known, bare)), None)
    if other is not None:
        raise InputError(f"is {other}; {links_csv.ALWAYS_READ}", source)
    words = f"is of no topology format that is known{_read_of(text)}"
    raise InputError(f"{words}; {_NAMES}; {links_csv.ALWAYS_READ}", source)


def _read_of(text: str) -> str:
    """How much of a long text was looked at."""
    if len(text) <= MOST_BYTES:
        return ""
    return f" by its first {TOLD_BY:,} characters; lines of launchers are parted in texts of up to {MOST_BYTES:,} alone"


def _named(name: str) -> TopologyFormat:
    found = format_named(name)
    if found is None:
        known = ", ".join(one.name for one in FORMATS)
        raise InputError([Fault("--format", f"unknown; one of {known}", name, True)])
    return found


def read_text(
    text: str, file_name: str, format_name: str | None = None, hints: Hints = NO_HINTS, source: str | None = None
) -> Machine:
    """As :func:`read`, from a text; the machine is named after the file."""
    source = source or file_name
    if format_name is None:
        chosen, pieces = _told(text, source)
    else:
        chosen = _named(format_name)
        found = [] if chosen.looks_like(text) else [part for part in parts(text) if chosen.looks_like(part.text)]
        pieces = found or [Part("", text)]
    if len(text) > chosen.most_bytes:
        raise InputError(f"is larger than {chosen.most_bytes:,} characters, the most for {chosen.name}", source)
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(file_name).stem).strip("-")[:60] or "machine"
    try:
        machine = _one_of([(part, chosen.read(part.text, name, hints)) for part in pieces])
    except InputError as error:
        faults = error.faults[: MOST_FAULTS + 1]
        shown = InputError([replace(f, path=visible(f.path), message=visible(f.message)) for f in faults], source)
        shown.hint = f"read as {chosen.name} ({chosen.summary}); {links_csv.ALWAYS_READ}"
        raise shown from None
    return replace(
        machine,
        source=visible(machine.source),
        unknown=tuple(map(visible, machine.unknown)),
        assumed=tuple(map(visible, machine.assumed)),
        left_out=tuple(map(visible, machine.left_out)),
        about={visible(text): kinds for text, kinds in machine.about.items()},
    )


def _one_of(found: list[tuple[Part, Machine]]) -> Machine:
    """The machine that all writers show. Raises :class:`InputError` where they differ."""
    (part, machine), others = found[0], found[1:]
    for other, another in others:
        if (another.names, another.links, another.ports) != (machine.names, machine.links, machine.ports):
            words = (
                f"what {other.writer or 'no prefix'} wrote is another machine than {part.writer or 'no prefix'} shows"
            )
            raise InputError([Fault(f"line {_first_line(other.text)}", f"{words}: one machine a file")])
    writers = [*part.same, *(writer for other, _ in others for writer in (other.writer, *other.same))]
    said = (f"what {listed(writers)} wrote: the same machine",) if writers else ()
    return replace(machine, left_out=machine.left_out + said)


def _first_line(text: str) -> int:
    return next((n for n, line in enumerate(text.split("\n"), 1) if line.strip()), 1)
