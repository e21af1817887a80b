"""What ``nvidia-smi topo -m`` prints: a matrix of how every two devices (GPUs, NICs) are connected.

``NV#`` means # bonded NVLinks, everything else the highest thing that the way over PCIe passes: PIX one bridge, PXB
several, PHB a host bridge, NODE the interconnect of host bridges within a NUMA node, SYS that of NUMA nodes (SOC in old
drivers).

NVLinks are direct links, unless those of a GPU add up to more than any GPU has (18): then an NVSwitch joins them, and a
GPU has as many as its cells say. PCIe is the tree that the words say: devices at level PIX share a switch, these at
level PXB the next, and so on; a link's class is the level of the switch it goes up to. The text holds no bandwidth and
no latency at all, and where every pair of GPUs shows NVLinks it does not show how they hang on PCIe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine, Port, listed
from synth.text.quantities import counted

LEVELS = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS")
OLD_NAMES = {"SOC": "SYS"}
NOT_SHOWN = ("N/A", "UNK")
PEER_ACCESS = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")  # what topo -p2p prints
MOST_NVLINKS = 18  # of any GPU so far (H100, B200)
MOST_DEVICES = 512
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_NVLINKS = re.compile(r"NV([0-9]{1,4})")
_AFTER_DEVICES = ("CPU", "NUMA", "GPU")  # first words of the columns that follow


@dataclass(frozen=True)
class Matrix:
    """The devices in the order of the header, their cells by row and column, and the line of each row."""

    devices: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]

    @property
    def gpus(self) -> list[str]:
        """The GPUs, in order."""
        return [device for device in self.devices if _GPU.fullmatch(device)]

    def cell(self, a: str, b: str) -> str | None:
        """What joins two devices, from either row; None where no row shows it."""
        return self.cells.get((a, b), self.cells.get((b, a)))


def looks_like(text: str) -> bool:
    """Whether a text is such a matrix: a line whose first words are GPU0 and another device, or GPU0 alone and CPU."""
    return _header(_lines(text)) is not None


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine: GPUs are ranks in their order. Raises :class:`InputError` with every fault by its line."""
    matrix = parsed(text)
    built = Builder()
    number = {gpu: built.rank(gpu.lower()) for gpu in matrix.gpus}
    _add_nvlinks(built, matrix, number, hints)
    built.about |= dict.fromkeys(built.assumed, ("NV",))
    _add_pcie(built, matrix, number)
    built.boxes.append(tuple(number.values()))
    nics = len(matrix.devices) - len(matrix.gpus)
    words = f"nvidia-smi topo -m, {counted(len(matrix.gpus), 'GPU')}" + (f" and {counted(nics, 'NIC')}" if nics else "")
    return built.machine(name, "nvidia-smi", words)


def parsed(text: str) -> Matrix:
    """The matrix as printed. Raises :class:`InputError`."""
    lines = _lines(text)
    at = _header(lines)
    if at is None:
        raise InputError("no header line GPU0 GPU1 … is found")
    devices = _devices(lines[at])
    faults = [Fault(f"line {at + 1}", f"{device} stands twice") for device in devices if devices.count(device) > 1]
    if len(devices) > MOST_DEVICES:
        faults.append(Fault(f"line {at + 1}", f"{len(devices)} devices; at most {MOST_DEVICES} are supported"))
    if faults:
        raise InputError(faults)
    rows, cells = _rows(lines, at, devices, faults)
    faults += [
        Fault(f"line {at + 1}", f"the row {device} is missing")
        for device in devices
        if device not in rows and _GPU.fullmatch(device)
    ]
    faults += [
        Fault(f"line {rows[a]}", f"{b} is {cells[a, b]}, but {a} in the row {b} is {cells[b, a]} (line {rows[b]})")
        for a, b in combinations(devices, 2)
        if (a, b) in cells and (b, a) in cells and cells[a, b] != cells[b, a]
    ]
    if faults:
        raise InputError(faults)
    return Matrix(tuple(devices), cells)


def _rows(
    lines: list[str], header: int, devices: list[str], faults: list[Fault]
) -> tuple[dict[str, int], dict[tuple[str, str], str]]:
    """The line of each device's row, and the cells, below the header's line."""
    cells: dict[tuple[str, str], str] = {}
    rows: dict[str, int] = {}
    for n, line in enumerate(lines[header + 1 :], header + 2):
        words = line.split()
        if not words or words[0] not in devices:
            if rows and _GPU.fullmatch(words[0] if words else ""):
                faults.append(Fault(f"line {n}", f"the row {words[0]} has no column"))
            if len(rows) == len(devices) or (rows and words[:1] == ["Legend:"]):
                break
            continue
        if words[0] in rows:
            faults.append(Fault(f"line {n}", f"the row {words[0]} stands twice, first in line {rows[words[0]]}"))
            continue
        rows[words[0]] = n
        faults += _read_row(words[0], words[1:], devices, f"line {n}", cells)
    return rows, cells


def _lines(text: str) -> list[str]:
    return [_ESCAPES.sub("", line) for line in text.splitlines()]


def _header(lines: list[str]) -> int | None:
    for n, line in enumerate(lines):
        devices = _devices(line)
        if devices and devices[0] == "GPU0" and not any(_cell(word) for word in line.split()[1:]):
            return n
    return None


def _devices(line: str) -> list[str]:
    found: list[str] = []
    for word in line.split():
        if word in _AFTER_DEVICES:
            break
        found.append(word)
    return found


def _cell(word: str) -> str | None:
    """The word as a cell of the matrix, None where it is none."""
    word = OLD_NAMES.get(word, word)
    return word if word in (*LEVELS, *NOT_SHOWN, "X") or _NVLINKS.fullmatch(word) else None


def _read_row(
    row: str, words: list[str], devices: list[str], where: str, cells: dict[tuple[str, str], str]
) -> Iterator[Fault]:
    if len(words) < len(devices):
        yield Fault(where, f"the row {row} has {len(words)} cells, the header {len(devices)} devices")
        return
    if set(words[: len(devices)]) <= {"X", *PEER_ACCESS} and "X" in words and len(devices) > 1:
        yield Fault(where, "is of nvidia-smi topo -p2p, who may access whom; needed is what topo -m prints")
        return
    for column, word in zip(devices, words, strict=False):
        cell = _cell(word)
        if cell is None:
            known = ", ".join(("X", "NV#", *LEVELS))
            yield Fault(f"{where}, {row}-{column}", f"must be one of {known}", word, True)
        elif (cell == "X") != (row == column):
            yield Fault(f"{where}, {row}-{column}", "X stands for a device and itself, nowhere else", word, True)
        elif cell != "X":
            cells[row, column] = cell


def _add_nvlinks(built: Builder, matrix: Matrix, number: Mapping[str, int], hints: Hints) -> None:
    bonds: nx.Graph[str] = nx.Graph()
    for a, b in combinations(matrix.gpus, 2):
        found = _NVLINKS.fullmatch(matrix.cell(a, b) or "")
        if found and int(found[1]):
            bonds.add_edge(a, b, count=int(found[1]))
    if not bonds and len(number) > 1:
        built.unknown.append("whether there are NVLinks: no pair of GPUs shows any (topo -mp never does)")
    switches = 0
    for island in nx.connected_components(bonds):
        part = bonds.subgraph(sorted(island, key=lambda gpu: number[gpu]))
        most = max(total for _, total in part.degree(weight="count"))
        through = hints.nvlinks == "switch" or (hints.nvlinks is None and most > MOST_NVLINKS)
        if not through:
            _join_directly(built, part, number, most, hints)
            continue
        _join_by_switch(built, part, number, f"nvswitch{switches or ''}", most)
        switches += 1
    if switches:
        built.assumed.append("the NVSwitches of an NVLink domain are one switch that passes on all it gets")


def _join_directly(built: Builder, part: nx.Graph[str], number: Mapping[str, int], most: int, hints: Hints) -> None:
    for a, b in combinations(sorted(part, key=lambda gpu: number[gpu]), 2):
        if part.has_edge(a, b):
            built.link(number[a], number[b], "NV", lanes=part.edges[a, b]["count"])
    counts = {int(part.edges[edge]["count"]) for edge in part.edges}
    complete = part.number_of_edges() == len(part) * (len(part) - 1) // 2
    if hints.nvlinks is None and complete and len(counts) == 1 and len(part) > 2:
        built.assumed.append(
            f"GPUs are joined directly, {most} NVLinks a GPU; the same is printed where an NVSwitch joins GPUs of "
            f"{counts.pop()} NVLinks (then --nvlinks switch)"
        )


def _join_by_switch(built: Builder, part: nx.Graph[str], number: Mapping[str, int], name: str, most: int) -> None:
    order = sorted(part, key=lambda gpu: number[gpu])
    own = {gpu: max(int(part.edges[edge]["count"]) for edge in part.edges(gpu)) for gpu in order}
    strange = [
        f"{a}-{b}"
        for a, b in combinations(order, 2)
        if not part.has_edge(a, b) or part.edges[a, b]["count"] != min(own[a], own[b])
    ]
    if strange:
        raise InputError(
            f"the NVLinks of a GPU add up to {most}, where a GPU has {MOST_NVLINKS} at most, but are not those of a "
            f"switch either: {listed(strange)}; --nvlinks direct takes them as direct links"
        )
    switch = built.switch(name)
    for gpu in order:
        built.link(number[gpu], switch, "NV", lanes=own[gpu])


def _add_pcie(built: Builder, matrix: Matrix, number: Mapping[str, int]) -> None:
    """The tree of PCIe switches, bridges and interconnects, NICs as leaves with ports."""
    known, hidden = _pairs_by_level(matrix)
    if hidden:
        built.unknown.append(f"how {hidden} pairs of devices are connected: their cells are empty or N/A")
    against = _contradiction(known)
    if against:
        built.unknown.append(f"how devices hang on PCIe: the matrix fits no tree ({against})")
        built.about[built.unknown[-1]] = LEVELS
        return
    alone = [gpu for gpu in matrix.gpus if not any(gpu in pair for pairs in known.values() for pair in pairs)]
    if alone and len(matrix.gpus) > 1:
        built.unknown.append(
            f"how {listed(alone)} are connected by PCIe: all their cells show NVLinks (nvidia-smi topo -mp shows it)"
        )
        built.about[built.unknown[-1]] = LEVELS
    place = dict(number)
    for nic in matrix.devices:
        if nic not in number:
            place[nic] = built.switch(nic)
            built.ports.append(Port(place[nic], nic))
    taken = _add_levels(built, matrix, known, place)
    if taken:
        built.assumed.append(
            f"the PCIe paths of {counted(taken, 'pair')} of GPUs with NVLinks are not in this file: taken from other "
            "cells; nvidia-smi topo -mp shows them"
        )
        built.about[built.assumed[-1]] = LEVELS


def _pairs_by_level(matrix: Matrix) -> tuple[dict[str, list[tuple[str, str]]], int]:
    """The pairs of devices whose cells name each level, and how many pairs have no cell or one that says nothing."""
    known: dict[str, list[tuple[str, str]]] = {level: [] for level in LEVELS}
    hidden = 0
    for a, b in combinations(matrix.devices, 2):
        cell = matrix.cell(a, b)
        if cell in known:
            known[cell].append((a, b))
        elif cell in (None, *NOT_SHOWN):
            hidden += 1
    return known, hidden


def _add_levels(
    built: Builder, matrix: Matrix, known: Mapping[str, list[tuple[str, str]]], place: Mapping[str, int]
) -> int:
    """Join the devices, at their nodes in ``place``, by a switch for every cluster of each level. Returns how many
    pairs of GPUs with NVLinks, which show no level, are joined at one above PIX."""
    top: dict[str, tuple[str, ...]] = {device: (device,) for device in matrix.devices}  # the cluster of each,
    node: dict[tuple[str, ...], int] = {(device,): place[device] for device in matrix.devices}  # and its node
    hidden_pairs = [pair for pair in combinations(matrix.gpus, 2) if _NVLINKS.fullmatch(matrix.cell(*pair) or "")]
    taken = 0
    for level in LEVELS:
        joined: nx.Graph[tuple[str, ...]] = nx.Graph()
        joined.add_edges_from((top[a], top[b]) for a, b in known[level])
        for i, clusters in enumerate(map(list, nx.connected_components(joined))):
            switch = built.switch(f"{level.lower()}{i}")
            members = tuple(device for cluster in clusters for device in cluster)
            for cluster in sorted(clusters, key=lambda one: node[one]):
                built.link(node[cluster], switch, level)
            node[members] = switch
            top |= dict.fromkeys(members, members)
        apart = [(a, b) for a, b in hidden_pairs if top[a] != top[b]]
        taken += len(hidden_pairs) - len(apart) if level not in ("PSB", "PIX") else 0
        hidden_pairs = apart
    return taken


def _contradiction(known: Mapping[str, list[tuple[str, str]]]) -> str | None:
    """Two devices that lower levels join already although their own cell says a higher one."""
    joined: nx.utils.UnionFind[str] = nx.utils.UnionFind()
    for level in LEVELS:
        for a, b in known[level]:
            if joined[a] == joined[b]:
                return f"{a}-{b} is {level}, but both are closer to a third device"
        for a, b in known[level]:
            joined.union(a, b)
    return None
