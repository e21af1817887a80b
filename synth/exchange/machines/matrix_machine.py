"""The machine that a matrix of connections shows (:mod:`~synth.exchange.machines.device_matrix`).

``NV#`` and the like mean # bonded links of two devices, everything else the highest thing that the way over PCIe
passes: PIX one bridge, PXB several, PHB a host bridge, NODE the interconnect of host bridges within a NUMA node, SYS
that of NUMA nodes.

Bonded links are direct, unless those of a GPU add up to more than any GPU has: then a switch joins them, and a GPU has
as many as its cells say. PCIe is the tree that the words say: devices at level PIX share a switch, these at level PXB
the next, and so on; a link's class is the level of the switch it goes up to. The text holds no bandwidth and no latency
at all, and where every pair of GPUs shows bonded links it does not show how they hang on PCIe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import networkx as nx

from synth.errors import InputError
from synth.exchange.machines.device_matrix import LEVELS, NOT_SHOWN, Dialect, Matrix, parsed
from synth.exchange.machines.machine import Builder, Hints, Machine, Port, listed
from synth.text.quantities import counted


def read(dialect: Dialect, text: str, name: str, hints: Hints) -> Machine:
    """The machine: GPUs are ranks in their order. Raises :class:`InputError` with every fault by its line."""
    matrix = parsed(dialect, text)
    built = Builder()
    number = {gpu: built.rank(gpu.lower()) for gpu in matrix.gpus}
    for kind in dialect.bonds:
        before = len(built.assumed)
        _add_bonds(built, matrix, kind, number, hints)
        built.about |= dict.fromkeys(built.assumed[before:], (kind,))
    if not built.links and len(number) > 1:
        never = f" ({dialect.tree.removeprefix('nvidia-smi ')} never does)" if dialect.tree else ""
        built.unknown.append(f"whether there are {dialect.links}: no pair of GPUs shows any" + never)
    _add_pcie(built, matrix, number)
    built.boxes.append(tuple(number.values()))
    nics = len(matrix.devices) - len(matrix.gpus)
    gpus = counted(len(matrix.gpus), "NPU" if matrix.gpus[0].startswith(("NPU", "Phy")) else "GPU")
    words = f"{dialect.command}, {gpus}" + (f" and {counted(nics, 'NIC')}" if nics else "")
    return replace(built.machine(name, dialect.name, words), left_out=matrix.left_out)


def _add_bonds(built: Builder, matrix: Matrix, kind: str, number: Mapping[str, int], hints: Hints) -> None:
    """The bonded links of a class: direct, or an island's to a switch."""
    bonds, switches = _bonds(matrix, kind), 0
    called, limit = ("nvswitch" if kind == "NV" else f"{kind.lower()}-switch"), matrix.dialect.most
    for island in nx.connected_components(bonds):
        part = bonds.subgraph(sorted(island, key=lambda gpu: number[gpu]))
        most = max(total for _, total in part.degree(weight="count"))
        through = hints.nvlinks == "switch" or (hints.nvlinks is None and limit is not None and most > limit)
        if not through and kind not in matrix.dialect.switched:
            _join_directly(built, part, number, matrix.dialect, kind, most, hints)
            continue
        _join_by_switch(built, part, number, f"{called}{switches or ''}", matrix, kind, most)
        switches += 1
    if switches:
        built.assumed.append(
            f"the {'NVSwitches' if kind == 'NV' else 'switches'} of an {matrix.dialect.links.removesuffix('s')} domain "
            "are one switch that passes on all it gets"
        )


def _bonds(matrix: Matrix, kind: str) -> nx.Graph[str]:
    """GPUs that links of the class join, with how many."""
    bonds: nx.Graph[str] = nx.Graph()
    for a, b in combinations(matrix.gpus, 2):
        found = matrix.dialect.bond(matrix.cell(a, b))
        if found and found[0] == kind and found[1]:
            bonds.add_edge(a, b, count=found[1])
    return bonds


def _join_directly(
    built: Builder,
    part: nx.Graph[str],
    number: Mapping[str, int],
    dialect: Dialect,
    kind: str,
    most: int,
    hints: Hints,
) -> None:
    for a, b in combinations(sorted(part, key=lambda gpu: number[gpu]), 2):
        if part.has_edge(a, b):
            built.link(number[a], number[b], kind, lanes=part.edges[a, b]["count"])
    counts = {int(part.edges[edge]["count"]) for edge in part.edges}
    complete = part.number_of_edges() == len(part) * (len(part) - 1) // 2
    if dialect.most and hints.nvlinks is None and complete and len(counts) == 1 and len(part) > 2:
        built.assumed.append(
            f"GPUs are joined directly, {most} {dialect.links} a GPU; the same is printed where an NVSwitch joins GPUs "
            f"of {counts.pop()} {dialect.links} (then --nvlinks switch)"
        )


def _join_by_switch(
    built: Builder, part: nx.Graph[str], number: Mapping[str, int], name: str, matrix: Matrix, kind: str, most: int
) -> None:
    order, dialect = sorted(part, key=lambda gpu: number[gpu]), matrix.dialect
    own = {gpu: max(int(part.edges[edge]["count"]) for edge in part.edges(gpu)) for gpu in order}
    strange = [
        f"{a}-{b}"
        for a, b in combinations(order, 2)
        if (part.edges[a, b]["count"] != min(own[a], own[b]) if part.has_edge(a, b) else not _joined(matrix, a, b))
    ]
    if strange and dialect.most is None:
        raise InputError(f"cells say {kind}, through a switch, but not of all who are on it: {listed(strange)}")
    if strange:
        raise InputError(
            f"the {dialect.links} of a GPU add up to {most}, where a GPU has {dialect.most} at most, but are not those "
            f"of a switch either: {listed(strange)}; --nvlinks direct takes them as direct links"
        )
    switch = built.switch(name)
    for gpu in order:
        built.link(number[gpu], switch, kind, lanes=own[gpu])


def _joined(matrix: Matrix, a: str, b: str) -> bool:
    """Whether direct links of any class join two GPUs."""
    return matrix.dialect.bond(matrix.cell(a, b)) is not None


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
            f"how {listed(alone)} are connected by PCIe: all their cells show {matrix.dialect.links}"
            + (f" ({matrix.dialect.tree} shows it)" if matrix.dialect.tree else "")
        )
        built.about[built.unknown[-1]] = LEVELS
    place = dict(number)
    for nic in matrix.devices:
        if nic not in number:
            place[nic] = built.switch(nic)
            built.ports.append(Port(place[nic], matrix.called.get(nic, nic)))
    taken = _add_levels(built, matrix, known, place)
    if taken:
        built.assumed.append(
            f"the PCIe paths of {counted(taken, 'pair')} of GPUs with {matrix.dialect.links} are not in this file: "
            "taken from other cells" + (f"; {matrix.dialect.tree} shows them" if matrix.dialect.tree else "")
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
    pairs of GPUs with bonded links, which show no level, are joined at one above PIX."""
    top: dict[str, tuple[str, ...]] = {device: (device,) for device in matrix.devices}  # the cluster of each,
    node: dict[tuple[str, ...], int] = {(device,): place[device] for device in matrix.devices}  # and its node
    hidden_pairs = [pair for pair in combinations(matrix.gpus, 2) if matrix.dialect.bond(matrix.cell(*pair))]
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
