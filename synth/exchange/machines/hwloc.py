"""hwloc's XML of one box (``lstopo --of xml``): GPUs, NICs, PCI bridges, matrices of distances.

GPUs are ranks, in the order of their PCI addresses. A PCI device or bridge is joined to what it hangs on at the rate
that ``pci_link_speed`` states (GB/s, one direction; 0 is unknown), the devices of all host bridges of one object (a
package, a NUMA node, the machine) at one node. Matrices of bandwidth between GPUs (``NVLinkBandwidth``,
``XGMIBandwidth``, ``XeLinkBandwidth``, MB/s) are links of the classes NV, XGMI, XL. Classes of the others: PCI, SYS
(between packages or NUMA nodes). No latency is in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from xml.etree.ElementTree import Element

from synth.errors import Fault, InputError
from synth.exchange.machines.hardened import root_name, whole_attribute, xml_root
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine, Port
from synth.network.links_table import MOST_NODES
from synth.text.amounts import scaled_rate
from synth.text.quantities import counted

MOST_IN_MATRIX = 1024
_BUS = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_GPU_CLASSES, _DISPLAY, _NIC_CLASS = ("0302", "0380", "1200"), "0300", "02"
_GPU_DEVICES = re.compile(r"(?:nvml|cuda|rsmi|ze|opencl)[0-9]")
_MATRICES = {"NVLinkBandwidth": "NV", "XGMIBandwidth": "XGMI", "XeLinkBandwidth": "XL"}
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,12})?")


@dataclass(frozen=True)
class _Device:
    """A PCI device or bridge: its address, what it hangs on (an address, or a place), bytes/s up."""

    name: str
    above: str
    rate: float | None
    inner: tuple[str, ...] = ()  # names of the devices of the operating system


@dataclass
class _Found:
    gpus: list[_Device] = field(default_factory=list)
    nics: list[_Device] = field(default_factory=list)
    bridges: dict[str, _Device] = field(default_factory=dict)
    owner: dict[int, str] = field(default_factory=dict)  # address of the PCI device by the number of an object
    faults: list[Fault] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Whether a text is such a file: its root is ``topology``, and objects with types are in it."""
    return root_name(text) == "topology" and "<object type=" in text


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError` with every fault by its place."""
    root = xml_root(text, names_dtd=True)
    if root.tag != "topology":
        raise InputError([Fault("", f"the root must be topology, not {root.tag[:40]}")])
    found = _Found()
    for child in root:
        if child.tag == "object":
            _object(child, "machine", found)
    if not found.gpus and not found.faults:
        found.faults.append(Fault("", "holds no GPU: no PCI device of class 0302, 0380, 1200 (lstopo --whole-io?)"))
    if len(found.gpus) + len(found.nics) + len(found.bridges) > MOST_NODES:
        found.faults.append(Fault("", f"more than {MOST_NODES:,} nodes"))
    if found.faults:
        raise InputError(found.faults)
    return _machine(root, found, name)


def _object(element: Element, place: str, found: _Found) -> None:
    """An object and those in it; ``place``: the normal object that it is near, or the bridge that it hangs on."""
    kind, own = element.get("type", ""), place
    if kind == "PCIDev" or (kind == "Bridge" and not (element.get("bridge_type") or "").startswith("0-")):
        own = _pci(element, place, found)
    elif kind in ("Package", "Die", "Group", "NUMANode"):
        own = f"{kind.lower()}{element.get('os_index', element.get('logical_index', ''))[:10]}"
    for child in element:
        if child.tag == "object":
            _object(child, own, found)


def _pci(element: Element, place: str, found: _Found) -> str:
    bus = (element.get("pci_busid") or "").lower()
    if not _BUS.fullmatch(bus):
        found.faults.append(Fault("object@pci_busid", "must be a PCI address such as 0000:18:00.0", bus, True))
        return place
    if bus in found.owner.values():
        found.faults.append(Fault(f"object[{bus}]", "stands twice"))
    inside = sorted((child for child in element if child.get("type") == "OSDev"), key=_is_fabric)
    inner = tuple((child.get("name") or "")[:60] for child in inside)
    device = _Device(bus, place, _rate(element, bus, found), inner)
    for child in (element, *element):
        number = _number(child, found)
        if number is not None:
            found.owner[number] = bus
    kind = (element.get("pci_type") or "")[:4]
    if element.get("type") == "Bridge":
        found.bridges[bus] = device
    elif kind in _GPU_CLASSES or (kind == _DISPLAY and any(map(_GPU_DEVICES.match, inner))):
        found.gpus.append(device)
    elif kind.startswith(_NIC_CLASS):
        found.nics.append(device)
    return bus


def _is_fabric(device: Element) -> bool:
    """Whether a device of the operating system is OpenFabrics' (``mlx5_0``), by which cables are named."""
    return device.get("osdev_type") in ("3", "OpenFabrics")


def _number(element: Element, found: _Found) -> int | None:
    if element.get("gp_index") is None:
        return None
    try:
        return whole_attribute(element, "gp_index", 0, 10**15)
    except ValueError as error:
        found.faults.append(Fault("object@gp_index", str(error), element.get("gp_index"), True))
        return None


def _rate(element: Element, bus: str, found: _Found) -> float | None:
    """Bytes/s of a device's link up; hwloc writes 0 where it does not know."""
    text = element.get("pci_link_speed", "0")
    if not _SPEED.fullmatch(text):
        found.faults.append(Fault(f"object[{bus}]@pci_link_speed", "must be a number of GB/s", text[:40], True))
        return None
    return scaled_rate(float(text), 10**9) if float(text) else None


def _machine(root: Element, found: _Found, name: str) -> Machine:
    built = Builder()
    order = sorted(found.gpus, key=lambda gpu: [int(part, 16) for part in re.split("[:.]", gpu.name)])
    number = {gpu.name: built.rank(f"gpu{i}") for i, gpu in enumerate(order)}
    built.boxes.append(tuple(number.values()))
    _add_matrices(built, root, found, number)
    for nic in found.nics:
        number[nic.name] = built.switch(nic.name)
        built.ports.append(Port(number[nic.name], nic.inner[-1] if nic.inner else nic.name))
    _add_pci(built, [*order, *found.nics], found.bridges, number)
    words = f"hwloc XML, {counted(len(order), 'GPU')} and {counted(len(found.nics), 'NIC')}"
    return built.machine(name, "hwloc", words)


def _add_pci(built: Builder, leaves: list[_Device], bridges: Mapping[str, _Device], number: dict[str, int]) -> None:
    """The links of devices, of the bridges above them, and between the nodes of host bridges."""
    above = {device.name: device.above for device in (*leaves, *bridges.values())}
    needed = dict.fromkeys(place for device in leaves for place in _ways(device.name, above))
    number |= {place: built.switch(place) for place in needed}
    for device in (*leaves, *(bridges[place] for place in needed if place in bridges)):
        built.link(number[device.name], number[device.above], "PCI", device.rate)
    for a, b in combinations([place for place in needed if place not in bridges], 2):
        built.link(number[a], number[b], "SYS")
    if any(link.kind == "PCI" and link.bandwidth is not None for link in built.links):
        built.assumed.append("PCIe carries what hwloc states for its lanes, after line coding")


def _ways(name: str, above: Mapping[str, str]) -> Iterator[str]:
    """What a device hangs on, up to the node of its host bridge."""
    while name in above:
        name = above[name]
        yield name


def _add_matrices(built: Builder, root: Element, found: _Found, number: Mapping[str, int]) -> None:
    """Links between GPUs from the matrices of bandwidths."""
    matrices = [
        one for one in (*root.iter("distances2"), *root.iter("distances2hetero")) if one.get("name") in _MATRICES
    ]
    for matrix in matrices:
        ends, cells = _values(matrix)
        places = [number.get(found.owner.get(end, "")) for end in ends]
        rows = [cells[i * len(ends) : (i + 1) * len(ends)] for i in range(len(ends))]
        _add_matrix(built, _MATRICES[matrix.get("name", "")], places, rows)
    if matrices:
        built.assumed.append("links between GPUs carry what the driver states, not what is reached")
    elif len(number) > 1:
        built.unknown.append("links between GPUs: the file has no matrix of them (hwloc built without NVML or RSMI)")


def _add_matrix(built: Builder, kind: str, places: list[int | None], rows: list[list[int]]) -> None:
    """The links of a matrix, MB/s; what leads to no GPU (ports of NVSwitches) goes to one switch."""
    switch = None
    for u, row in zip(places, rows, strict=True):
        if u is None:
            continue
        for v, value in zip(places, row, strict=True):
            if v not in (None, u) and value:
                built.link(u, v or 0, kind, scaled_rate(float(value), 10**6), both=False)
        through = sum(value for v, value in zip(places, row, strict=True) if v is None)
        if through:
            switch = built.switch("nvswitch") if switch is None else switch
            built.link(u, switch, kind, scaled_rate(float(through), 10**6))


def _values(matrix: Element) -> tuple[list[int], list[int]]:
    """The objects' numbers and the cells, row by row. Raises :class:`InputError`."""
    where = f"distances2[{matrix.get('name', '')[:40]}]"
    try:
        count = whole_attribute(matrix, "nbobjs", 1, MOST_IN_MATRIX)
    except ValueError as error:
        raise InputError([Fault(f"{where}@nbobjs", str(error))]) from None
    ends, cells = (
        [word.rpartition(":")[2] for child in matrix if child.tag == tag for word in (child.text or "").split()]
        for tag in ("indexes", "u64values")
    )
    wrong = next((word for word in (*ends, *cells) if not word.isascii() or not word.isdigit() or len(word) > 15), None)
    if wrong is not None or len(ends) != count or len(cells) != count**2:
        words = f"must hold {count} whole indexes and {count**2} whole values"
        raise InputError([Fault(where, words, wrong and wrong[:40], wrong is not None)])
    return [int(word) for word in ends], [int(word) for word in cells]
