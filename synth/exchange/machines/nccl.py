"""NCCL's and RCCL's topology files (``NCCL_TOPO_DUMP_FILE``): system > cpu > pci > gpu > nvlink or xgmi, nic > net.

Bandwidths are those that NCCL and RCCL reckon with (src/graph/topo.h, topo.cc, by reading): of one NVLink or XGMI link
by :mod:`~synth.exchange.machines.gpu_rates`, of PCIe by ``link_speed`` times ``link_width``, of a port ``speed`` in
Mbit/s. What they fill in where a file is silent (PCIe of generation 3, ports of 10 Gbit/s, a bandwidth between CPUs by
their vendor) is unknown here, as are all latencies but those of ports that state one. Classes: NV, XGMI, PCI, C2C (GPU
to CPU), SYS (between CPUs), NET (out of the box).

A file may hold no NVLinks at all, GPUs may be PCI devices of class 0x03 and no more: the machine then has none
either, and what is missing is said. A cloud's file may name a GPU as the target of its own NVLinks: where they lead is
then unknown, whatever class of target it states. A GPU or port without a rank or number is one that NCCL does not use;
it is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeVar
from xml.etree.ElementTree import Element

from synth.errors import Fault, InputError
from synth.exchange.machines.gpu_rates import gcn_name, nvlink_rate, xgmi_rate
from synth.exchange.machines.hardened import attribute, root_name, whole_attribute, xml_root
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine, Port, listed
from synth.network.links_table import MOST_NODES
from synth.text.amounts import scaled_duration, scaled_rate
from synth.text.quantities import counted

T = TypeVar("T")
PCI_LANE_MBPS = {"2.5": 1500, "5": 3000, "8": 6000, "16": 12_000, "32": 24_000, "64": 48_000}  # by GT/s
_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?) GT/s(?: PCIe)?")
_BUS = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-9a-fA-F]")
_GPUS, _NIC, _NVSWITCH, _CPU_BRIDGE = ("0x03", "0x12"), "0x02", "0x068000", "0x068001"
_BONDS = {"nvlink": "NV", "xgmi": "XGMI"}  # class of link by the element
_READ = ("system", "cpu", "pci", "gpu", *_BONDS, "nic", "net", "c2c", "pcilink")


def looks_like(text: str) -> bool:
    """Whether a text is such a file: its root is ``system``."""
    return root_name(text) == "system"


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine: GPUs are ranks in the order of their rank (or as they stand). Raises :class:`InputError`."""
    root = xml_root(text)
    if root.tag != "system":
        raise InputError([Fault("", f"the root must be system, not {root.tag[:40]}")])
    found = _Found()
    for i, cpu in enumerate(root):
        if cpu.tag == "cpu":
            _cpu(cpu, i, found)
        else:
            found.faults.append(Fault(f"system/{cpu.tag[:40]}", "must be cpu"))
    _same_twice(found)
    if len(found.gpus) + len(found.inner) > MOST_NODES:
        found.faults.append(Fault("", f"more than {MOST_NODES:,} nodes"))
    if found.faults:
        raise InputError(found.faults)
    return _Assembly(found).machine(name)


@dataclass(frozen=True)
class _Bond:
    """Links of a GPU as an element states them: their class, what the target is, its address, how many."""

    kind: str
    target_kind: str
    target: str
    count: int


@dataclass(frozen=True)
class _Gpu:
    bus: str
    host: str
    rank: int | None
    sm: int | None
    gcn: str | None
    parent: str
    pci_rate: float | None
    path: str
    bonds: tuple[_Bond, ...]
    c2c: float | None
    astray: int = 0  # links whose target is the GPU itself

    def rate(self, kind: str) -> float | None:
        """Bytes/s of one link of this class, None where it is in no table."""
        return nvlink_rate(self.sm) if kind == "NV" else None if self.gcn is None else xgmi_rate(self.gcn)

    @property
    def links(self) -> str:
        """What its maker calls the links between GPUs."""
        return "NVLinks" if self.gcn is None else "XGMI links"


@dataclass
class _Found:
    """What the elements say. Nodes are called by their paths: ``host/cpu0``, ``host/0000:18:00.0``."""

    faults: list[Fault] = field(default_factory=list)
    gpus: list[_Gpu] = field(default_factory=list)
    inner: dict[str, str] = field(default_factory=dict)  # path of a CPU, PCI bridge or NIC: its name
    links: list[tuple[str, str, float | None]] = field(default_factory=list)  # PCI
    ports: list[tuple[str, str, float | None, float | None]] = field(default_factory=list)  # NIC, name, rate, latency
    sides: list[tuple[str, str]] = field(default_factory=list)  # pcilink
    left_out: list[str] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    strange: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)  # paths of bridges and NICs, how often each stands

    def new(self, node: str, name: str) -> str:
        """The path of a bridge or NIC that is added; one whose address stands before is a device of its own."""
        times = self.repeated[node] = self.repeated[node] + 1
        if times > 1:
            node, name = f"{node} ({times})", f"{name} ({times})"
        self.inner[node] = name
        return node

    def value(self, path: str, key: str, element: Element, read: Callable[[Element, str], T]) -> T | None:
        """An attribute as read, or None and a fault."""
        try:
            return read(element, key)
        except ValueError as error:
            text = element.get(key)
            self.faults.append(Fault(f"{path}@{key}", str(error), text, text is not None))
            return None


def _whole(least: int, most: int) -> Callable[[Element, str], int]:
    return lambda element, key: whole_attribute(element, key, least, most)


def _cpu(cpu: Element, place: int, found: _Found) -> None:
    where = f"cpu[{place}]"
    numa = found.value(where, "numaid", cpu, _whole(-1, 10**6))
    host = cpu.get("host_hash", "")[:40]
    node = f"{host}/cpu{numa}"
    if node in found.inner:
        found.faults.append(Fault(f"{where}@numaid", "stands twice", numa, True))
    found.inner[node] = f"cpu{numa}"
    for child in cpu:
        _device(child, node, host, where, found)


def _device(element: Element, parent: str, host: str, above: str, found: _Found) -> None:
    """A PCI device, or the NICs of a CPU's own."""
    where = f"{above}/{element.tag[:40]}"
    if element.tag == "nic":
        _nic(element, parent, where, found)
    elif element.tag == "pci":
        _pci(element, parent, host, where, found)
    elif element.tag == "pcilink":
        found.sides.append((parent, f"{host}/{element.get('target', '')[:40]}"))
    elif element.tag not in _READ:
        found.strange[element.tag[:40]] += 1
    else:
        found.faults.append(Fault(where, "does not belong here"))


def _pci(element: Element, parent: str, host: str, above: str, found: _Found) -> None:
    bus = found.value(above, "busid", element, _bus) or "?"
    where = f"{above}[{bus}]"
    kind = element.get("class", "")
    if not kind and not len(element):
        found.nameless.append(bus)
    rate = found.value(where, "link_speed", element, lambda e, _: _pci_rate(e))
    gpus = element.findall("gpu")
    if gpus or (kind.startswith(_GPUS) and not len(element)):
        if len(gpus) > 1:
            found.faults.append(Fault(where, f"{len(gpus)} gpu elements of one device: partitions are not read"))
        found.strange.update(child.tag[:40] for child in element if child.tag != "gpu")
        _gpu(gpus[0] if gpus else None, bus, host, parent, rate, where, found)
        return
    node = found.new(f"{host}/{bus}", bus)
    found.links.append((parent, node, rate))
    if kind.startswith(_NIC) and not len(element):
        found.ports.append((node, bus, None, None))
    for child in element:
        _device(child, node, host, where, found)


def _bus(element: Element, key: str) -> str:
    text = attribute(element, key)
    if not _BUS.fullmatch(text):
        raise ValueError("must be a PCI address such as 0000:18:00.0")
    return text.lower()


def _pci_rate(element: Element) -> float | None:
    """Bytes/s of a PCIe link; None where no speed is stated. Raises ``ValueError``."""
    text = element.get("link_speed", "").strip()
    if not text or text.lower().startswith("unknown"):
        return None
    speed = _SPEED.fullmatch(text)
    lane = PCI_LANE_MBPS.get(speed[1].removesuffix(".0")) if speed else None
    if lane is None:
        known = ", ".join(f"{value} GT/s" for value in PCI_LANE_MBPS)
        raise ValueError(f"must be one of {known}, or empty")
    try:
        width = whole_attribute(element, "link_width", 0, 64)
    except ValueError as error:
        raise ValueError(f"needs a link_width, which {error}") from None
    return scaled_rate(float(lane), Fraction(width * 10**6, 8)) if width else None


def _gpu(
    element: Element | None, bus: str, host: str, parent: str, rate: float | None, where: str, found: _Found
) -> None:
    if element is None:
        found.gpus.append(_Gpu(bus, host, None, None, None, parent, rate, where, (), None))
        return
    where = f"{where}/gpu"
    rank = found.value(where, "rank", element, _whole(-1, 10**7)) if element.get("rank") is not None else -1
    if rank == -1:
        found.left_out.append(f"GPU {bus}, which has no rank")
        return
    sm = found.value(where, "sm", element, _whole(1, 10_000)) if element.get("sm") is not None else None
    bonds, c2c, astray = [], None, 0
    for child in element:
        if child.tag in _BONDS:
            bond = _bond(child, f"{where}/{child.tag}", found)
            if bond is not None and bond.target == bus:
                astray += bond.count
            elif bond is not None:
                bonds.append(bond)
        elif child.tag == "c2c":
            links = found.value(f"{where}/c2c", "count", child, _whole(1, 1000))
            rate_mb = found.value(f"{where}/c2c", "bw", child, _whole(1, 10**7))
            c2c = float((links or 1) * (rate_mb or 1) * 10**6)
        else:
            found.strange[child.tag[:40]] += 1
    gcn = element.get("gcn")
    gcn = None if gcn is None else gcn_name(gcn[:40])
    found.gpus.append(_Gpu(bus, host, rank, sm, gcn, parent, rate, where, tuple(bonds), c2c, astray))


def _bond(element: Element, where: str, found: _Found) -> _Bond | None:
    count = found.value(where, "count", element, _whole(1, 1000))
    target = (found.value(where, "target", element, attribute) or "").lower()
    stated = element.get("tclass", "")
    known = next((one for one in (_NVSWITCH, _CPU_BRIDGE, *_GPUS) if stated.startswith(one)), None)
    if known is None:
        words = f"must be {'…, '.join(_GPUS)}… (a GPU), {_NVSWITCH} (an NVSwitch) or {_CPU_BRIDGE} (a CPU)"
        found.faults.append(Fault(f"{where}@tclass", words, stated, True))
    return None if count is None or known is None else _Bond(_BONDS[element.tag], known, target, count)


def _nic(element: Element, node: str, above: str, found: _Found) -> None:
    for i, net in enumerate(element):
        where = f"{above}/net[{i}]"
        if net.tag != "net":
            found.strange[net.tag[:40]] += 1
            continue
        name = net.get("name", f"net{i}")[:60]
        if net.get("dev") is None:
            found.left_out.append(f"port {name}, which has no dev")
            continue
        speed = found.value(where, "speed", net, _whole(-(10**9), 10**9)) if net.get("speed") is not None else None
        rate = scaled_rate(float(speed), Fraction(10**6, 8)) if speed and speed > 0 else None
        found.ports.append((node, name, rate, found.value(where, "latency", net, _latency)))


def _latency(element: Element, key: str) -> float | None:
    """Seconds; 0 or nothing is what NCCL writes where it does not know. Raises ``ValueError``."""
    text = element.get(key, "0")[:40]
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number (us)") from None
    if not 0 <= value < 1e9:
        raise ValueError("must be a time in us, 0 or more")
    return scaled_duration(value, Fraction(1, 10**6)) or None


def _same_twice(found: _Found) -> None:
    for what, values in (
        ("address", [(gpu.host, gpu.bus) for gpu in found.gpus]),
        ("rank", [gpu.rank for gpu in found.gpus if gpu.rank is not None]),
    ):
        for value, times in Counter[Any](values).items():
            if times > 1:
                text = value[1] if isinstance(value, tuple) else value
                found.faults.append(Fault("gpu", f"{times} GPUs have the same {what}", text, True))
    if not found.gpus and not found.faults:
        words = "holds no GPU: no gpu element with a rank (NCCL uses no other), no PCI device of class 0x03 without one"
        if found.nameless:
            words += f"; {len(found.nameless)} PCI devices have no class at all (NCCL asks the machine it runs on)"
        found.faults.append(Fault("", words))


class _Assembly:
    """The machine from what was found."""

    def __init__(self, found: _Found) -> None:
        self.found, self.built = found, Builder()
        hosts = list(dict.fromkeys(gpu.host for gpu in found.gpus))
        self.gpus = sorted(found.gpus, key=lambda gpu: (gpu.rank is None, gpu.rank or 0, hosts.index(gpu.host)))
        self.number = {(gpu.host, gpu.bus): self.built.rank(f"gpu{i}") for i, gpu in enumerate(self.gpus)}
        self.several = len({path.partition("/")[0] for path in found.inner}) > 1
        self.hosts = list(dict.fromkeys(path.partition("/")[0] for path in found.inner))
        self.inner = {path: self.built.switch(self._name(path, name)) for path, name in found.inner.items()}

    def machine(self, name: str) -> Machine:
        """Links class by class, then what is to be said of them."""
        self._bonds()
        self._pci()
        for node, port, rate, latency in self.found.ports:
            self.built.ports.append(Port(self.inner[node], port, rate, latency))
        ranks = [(gpu.host, self.number[gpu.host, gpu.bus]) for gpu in self.gpus]
        every = [tuple(rank for own, rank in ranks if own == host) for host in self.hosts]
        self.built.boxes += [box for box in every if box]
        self._words()
        return replace(self.built.machine(name, "nccl", self._source()), left_out=tuple(self.found.left_out))

    def _name(self, path: str, name: str) -> str:
        return f"{self.hosts.index(path.partition('/')[0])}/{name}" if self.several else name

    def _bonds(self) -> None:
        """Links between GPUs, to an NVSwitch and to CPUs."""
        built, switch = self.built, None
        for gpu in self.gpus:
            own = self.number[gpu.host, gpu.bus]
            through: Counter[str] = Counter()
            for bond in gpu.bonds:
                if bond.target_kind in _GPUS:
                    self._direct(gpu, own, bond)
                elif bond.target_kind == _CPU_BRIDGE:
                    self._join(gpu, self.inner[self._cpu_of(gpu)], bond.kind, bond.count)
                else:
                    through[bond.kind] += bond.count
            for kind, count in through.items():
                if switch is None:
                    switch = built.switch("nvswitch")
                self._join(gpu, switch, kind, count)
            if gpu.c2c is not None:
                built.link(own, self.inner[self._cpu_of(gpu)], "C2C", gpu.c2c)
        if switch is not None:
            built.assumed.append("all NVSwitches are one switch that passes on all it gets, as NCCL has it")

    def _join(self, gpu: _Gpu, other: int, kind: str, count: int, both: bool = True) -> None:
        rate = gpu.rate(kind)
        total = None if rate is None else scaled_rate(rate, count)
        self.built.link(self.number[gpu.host, gpu.bus], other, kind, total, lanes=count, both=both)

    def _direct(self, gpu: _Gpu, own: int, bond: _Bond) -> None:
        other = self.number.get((gpu.host, bond.target))
        if other is None:
            self.built.unknown.append(
                f"what {bond.target} is, to which {bond.count} {gpu.links} of gpu{own} lead: no GPU of the file"
            )
        else:
            self._join(gpu, other, bond.kind, bond.count, both=False)

    def _cpu_of(self, gpu: _Gpu) -> str:
        above = {child: parent for parent, child, _ in self.found.links}
        node = gpu.parent
        while node in above:
            node = above[node]
        return node

    def _pci(self) -> None:
        built = self.built
        for gpu in self.gpus:
            built.link(self.number[gpu.host, gpu.bus], self.inner[gpu.parent], "PCI", gpu.pci_rate)
        for parent, child, rate in self.found.links:
            built.link(self.inner[parent], self.inner[child], "PCI", rate)
        for parent, target in self.found.sides:
            if target in self.inner:
                built.link(self.inner[parent], self.inner[target], "PCILINK", both=False)
            else:
                built.unknown.append(
                    f"what {target.partition('/')[2]} is, a pcilink's target: no PCI device of the file"
                )
        for host in self.hosts:
            cpus = [path for path in self.inner if path.startswith(f"{host}/cpu")]
            for a, b in combinations(cpus, 2):
                built.link(self.inner[a], self.inner[b], "SYS")

    def _words(self) -> None:
        """What the file leaves open, and what is taken for granted."""
        self._words_of_bonds()
        self._words_of_rates()
        if self.found.nameless:
            words = "the file states no class; NCCL asks the machine it runs on"
            self.built.unknown.append(f"what the PCI devices {listed(self.found.nameless)} are: {words}")
        twice = [path.partition("/")[2] for path, times in self.found.repeated.items() if times > 1]
        if twice:
            words = f"PCI devices of one address ({listed(twice)}) are devices of their own, as NCCL has them"
            self.built.assumed.append(words)
        if self.found.strange:
            every = listed(f"{tag} ({count})" for tag, count in self.found.strange.items())
            self.built.unknown.append(f"what these elements mean, which are not read: {every}")

    def _words_of_bonds(self) -> None:
        built = self.built
        links = Counter((link.src, link.dst) for link in built.links if link.kind in _BONDS.values())
        astray = [f"gpu{i} ({gpu.astray})" for i, gpu in enumerate(self.gpus) if gpu.astray]
        every = next((gpu.links for gpu in self.gpus), "NVLinks")
        if astray:
            tool = "nvidia-smi topo -m" if every == "NVLinks" else "rocm-smi --showtopo"
            built.unknown.append(
                f"where {every} of {listed(astray)} lead: the file names the GPU itself as their target; what "
                f"`{tool}` prints on the machine says it"
            )
        bare = [f"gpu{i}" for i, gpu in enumerate(self.gpus) if not gpu.bonds and not gpu.astray]
        if bare:
            element = "nvlink" if every == "NVLinks" else "xgmi"
            built.unknown.append(
                f"{every} of {listed(bare)}: the file has no {element} element for them"
                + (", nor a gpu element" if all(gpu.rank is None for gpu in self.gpus) else "")
            )
        one_way = [f"gpu{u}-gpu{v}" for (u, v) in links if (v, u) not in links]
        if one_way:
            built.unknown.append(f"{every} back of {listed(one_way)}: the file has one direction only")

    def _words_of_rates(self) -> None:
        built = self.built
        for kind, link, who in (("NV", "NVLink", "NCCL"), ("XGMI", "XGMI link", "RCCL")):
            own = (gpu for gpu in self.gpus if any(bond.kind == kind for bond in gpu.bonds))
            rates = {(f"sm {gpu.sm}" if kind == "NV" else gpu.gcn): rate for gpu in own if (rate := gpu.rate(kind))}
            words = ", ".join(f"{rate / 1e9:g} GB/s ({gpu})" for gpu, rate in sorted(rates.items(), key=str))
            if rates:
                built.assumed.append(f"one {link} carries {words}: what {who} reckons with, not the data sheet")
                built.about[built.assumed[-1]] = (kind,)
        if any(link.kind == "PCI" and link.bandwidth is not None for link in built.links):
            built.assumed.append("PCIe carries what NCCL reckons with, 12 GB/s for 16 lanes of 8 GT/s")
            built.about[built.assumed[-1]] = ("PCI",)

    def _source(self) -> str:
        hosts = f", {len(self.hosts)} hosts" if self.several else ""
        who = "RCCL" if any(gpu.gcn is not None for gpu in self.gpus) else "NCCL"
        return f"{who} topology, {counted(len(self.gpus), 'GPU')}, {counted(len(self.found.ports), 'port')} out{hosts}"
