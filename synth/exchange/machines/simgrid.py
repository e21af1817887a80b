"""SimGrid's platform XML (simgrid.org, version 4; ``AS`` of version 3): zones, hosts, links, routes, clusters.

Links have no ends there: routes give them some. A route of one link joins its two ends; in one of two or three links
the first is the own link of one end, the last that of the other, and they meet in a switch or over the link between. A
link that every such route passes is a backbone: all go in at one side and out at the other. A ``cluster`` (FLAT) and
the ``host_link``s of a zone with their ``backbone`` are the same. The directions of a SHARED link take turns (a group),
others are a link each way. What SimGrid's models take off a rate (its factors) is not in the file. Class: link.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines.hardened import root_name, xml_root
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Link, Machine, listed
from synth.network.links_table import LINK, MOST_NODES
from synth.text.amounts import duration, rate
from synth.text.hostlists import expanded
from synth.text.quantities import counted

ZONES = ("zone", "AS", "platform")
_ROUTES = ("route", "ASroute", "zoneRoute")
_SILENT = (
    "prop",
    "config",
    "trace",
    "trace_connect",
    "disk",
    "storage",
    "mount",
    "storage_type",
    "random",
    "bypassRoute",
)
_RADICAL = re.compile(r"[0-9,-]{1,200}")
MOST_HOPS = 3  # links of a route that are told apart


@dataclass(frozen=True)
class _Wire:
    """A link element: its name, bytes/s, seconds, whether both directions share it."""

    name: str
    bandwidth: float
    latency: float
    shared: bool
    fat: bool = False  # every flow gets the full rate


@dataclass
class _Platform:
    """What the elements say. ``nodes``: by name whether each is a switch. ``edges``: a wire, or None, between two nodes
    and whether it leads both ways. ``routes``: where, the two ends, the wires."""

    nodes: dict[str, bool] = field(default_factory=dict)
    wires: dict[str, _Wire] = field(default_factory=dict)
    edges: list[tuple[_Wire, str, str, bool]] = field(default_factory=list)
    routes: list[tuple[str, str, str, list[_Wire]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def node(self, name: str, switch: bool, where: str) -> str:
        """A new node."""
        if name in self.nodes or not name or len(name) > 100:
            self.faults.append(Fault(where, "must be a name of its own, of at most 100 characters", name[:60], True))
        if len(self.nodes) > MOST_NODES:
            raise InputError(f"holds more than {MOST_NODES:,} nodes")
        self.nodes[name] = switch
        return name


def looks_like(text: str) -> bool:
    """Whether a text is such a file: its root is ``platform``."""
    return root_name(text) == "platform"


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine: hosts are ranks. Raises :class:`InputError` with every fault by its place."""
    root = xml_root(text, names_dtd=True)
    if root.tag != "platform":
        raise InputError([Fault("", f"the root must be platform, not {root.tag[:40]}")])
    found = _Platform()
    _zone(root, "platform", found)
    if not found.faults:
        _join_routes(found)
    if found.faults:
        raise InputError(found.faults)
    hosts = len(found.nodes) - sum(found.nodes.values())
    words = f"SimGrid platform, {counted(hosts, 'host')}, {counted(len(found.edges), 'link')}"
    return _built(found).machine(name, "simgrid", words)


def _built(found: _Platform) -> Builder:
    """Nodes, hosts first, and links; directions of a shared link are a group."""
    built = Builder()
    number = {node: built.rank(node) for node, switch in found.nodes.items() if not switch}
    number |= {node: built.switch(node) for node, switch in found.nodes.items() if switch}
    times = Counter(wire.name for wire, _, _, both in found.edges for _ in range(2 if both else 1))
    for wire, a, b, both in found.edges:
        group = wire.name if wire.shared and times[wire.name] > 1 else None
        for u, v in ((a, b), (b, a))[: 2 if both else 1]:
            built.add(Link(number[u], number[v], LINK, wire.bandwidth, wire.latency, group))
    if any(wire.fat for wire, *_ in found.edges):
        built.assumed.append("what passes a FATPIPE at once shares its rate, as on any other link")
    built.assumed.append("links carry their full rates: the factors of SimGrid's models are not in the file")
    return built


def _zone(zone: Element, where: str, found: _Platform) -> None:
    """The elements of a zone and of zones in it; of the outermost the routes of all, which may name any of them."""
    for child in zone:
        at = f"{where}/{child.tag[:20]}[{(child.get('id') or '')[:40]}]"
        if child.tag in ZONES:
            _zone(child, at, found)
        elif child.tag in ("host", "router"):
            found.node(child.get("id") or "", child.tag == "router", at)
        elif child.tag in ("link", "backbone"):
            _wire(child, at, found)
        elif child.tag == "cluster":
            _cluster(child, at, found)
        elif child.tag not in (*_ROUTES, *_SILENT, "host_link"):
            found.faults.append(Fault(at, "is not read: give its hosts, links and routes"))
    for child in zone.iter():
        if child.tag in _ROUTES and zone.tag == "platform":
            _route(child, where, found)
    links = zone.findall("host_link")
    if links and not found.faults:
        _host_links(links, zone.find("backbone"), zone.get("id") or where, found)


def _wire(
    element: Element, where: str, found: _Platform, keys: tuple[str, str] = ("bandwidth", "latency")
) -> _Wire | None:
    """A link by its attributes."""
    values = []
    for key, reader, default in ((keys[0], rate, ""), (keys[1], duration, "0")):
        text = element.get(key, default)
        try:
            values.append(reader(text[:60]))
        except ValueError as error:
            found.faults.append(Fault(f"{where}@{key}", str(error), text[:60], bool(text)))
            return None
    name = (element.get("id") or where)[:100]
    policy = element.get("sharing_policy", "SHARED" if keys[0] == "bandwidth" else "SPLITDUPLEX")
    wire = _Wire(
        name if keys[0] == "bandwidth" else f"{name}.{keys[0]}",
        values[0],
        values[1],
        policy == "SHARED",
        policy == "FATPIPE",
    )
    if wire.name in found.wires:
        found.faults.append(Fault(where, "stands twice"))
    found.wires[wire.name] = wire
    return wire


def _cluster(element: Element, where: str, found: _Platform) -> None:
    """The hosts of a cluster on a switch, over its backbone where one is stated."""
    kind, radical = element.get("topology", "FLAT"), element.get("radical", "")
    if kind != "FLAT":
        found.faults.append(
            Fault(f"{where}@topology", "only FLAT is read: give hosts, links and routes", kind[:20], True)
        )
        return
    try:
        if not _RADICAL.fullmatch(radical):
            raise ValueError("must be numbers and ranges such as 0-15,20")
        numbers = [str(int(n)) for n in expanded(f"[{radical}]", MOST_NODES)]
    except ValueError as error:
        found.faults.append(Fault(f"{where}@radical", str(error), radical[:60], True))
        return
    own = _wire(element, where, found, ("bw", "lat"))
    backbone = _wire(element, where, found, ("bb_bw", "bb_lat")) if element.get("bb_bw") else None
    if own is None:
        return
    name = element.get("id") or where
    hosts = [found.node(f"{element.get('prefix', '')}{n}{element.get('suffix', '')}", False, where) for n in numbers]
    router = element.get("router_id") or f"{element.get('prefix', '')}{name}_router{element.get('suffix', '')}"
    _star([(host, own, own) for host in hosts], backbone, router if backbone is None else name, found)


def _host_links(links: list[Element], backbone: Element | None, name: str, found: _Platform) -> None:
    """The hosts of a zone that are joined by ``host_link`` elements."""
    ends = []
    for link in links:
        host, up, down = (link.get(key) or "" for key in ("id", "up", "down"))
        missing = [one for one in (up, down) if one not in found.wires]
        if missing or host not in found.nodes:
            words = "must name a host of the file, and a link up and down"
            found.faults.append(Fault(f"host_link[{host[:40]}]", words, listed(missing) or host[:40], True))
            continue
        ends.append((host, found.wires[up], found.wires[down]))
    through = None if backbone is None else found.wires.get(backbone.get("id") or "")
    if not found.faults:
        _star(ends, through, name, found)


def _star(ends: list[tuple[str, _Wire, _Wire]], backbone: _Wire | None, name: str, found: _Platform) -> None:
    """Hosts with their links up and down, on a switch of this name or on both sides of a backbone."""
    into = out = found.node(name if backbone is None else f"{name}-in", True, name)
    if backbone is not None:
        out = found.node(f"{name}-out", True, name)
        found.edges.append((backbone, into, out, False))
    for host, up, down in ends:
        if into == out and up == down:
            found.edges.append((up, host, into, True))
        else:
            found.edges += [(up, host, into, False), (down, out, host, False)]


def _route(element: Element, zone: str, found: _Platform) -> None:
    """A route's ends and links."""
    ends = [(element.get(f"gw_{key}") or element.get(key) or "")[:100] for key in ("src", "dst")]
    where = f"{zone}/{element.tag}[{ends[0]}-{ends[1]}]"
    wires: list[_Wire] = []
    for child in element:
        name = (child.get("id") or "")[:100]
        if name not in found.wires:
            found.faults.append(Fault(where, "names no link of the file", name, True))
        else:
            wires.append(found.wires[name])
    strange = [end for end in ends if end not in found.nodes]
    if strange:
        found.faults.append(Fault(where, "names no host or router of the file", listed(strange), True))
    elif not 1 <= len(wires) <= MOST_HOPS and not found.faults:
        found.faults.append(Fault(where, f"has {len(wires)} links; routes of 1 to {MOST_HOPS} are read: {_OTHERWISE}"))
    elif ends[0] != ends[1]:
        found.routes.append((where, ends[0], ends[1], wires))


_OTHERWISE = "name routers, with a route of one link between neighbours"


def _join_routes(found: _Platform) -> None:
    """Edges from the routes."""
    own: dict[str, str] = {}  # whose own link a wire is
    joined: nx.utils.UnionFind[str] = nx.utils.UnionFind()  # own links' far ends that are one
    middle: dict[str, tuple[str, str]] = {}
    direct: dict[str, tuple[str, str]] = {}
    for where, src, dst, wires in found.routes:
        if len(wires) == 1:
            ends = direct.setdefault(wires[0].name, (src, dst))
            if set(ends) != {src, dst}:
                found.faults.append(Fault(where, f"{wires[0].name} joins {ends[0]}-{ends[1]} too: {_OTHERWISE}"))
            continue
        first, last = wires[0].name, wires[-1].name
        if own.setdefault(first, src) != src or own.setdefault(last, dst) != dst or first == last:
            found.faults.append(Fault(where, f"{first} or {last} is another's own link: {_OTHERWISE}"))
        elif len(wires) == 2:
            joined.union(first, last)
        else:
            _between(joined, middle, wires[1].name, first, last)
    if set(own) & set(middle) or set(direct) & (set(own) | set(middle)):
        found.faults.append(Fault("routes", f"a link is a host's own in one route and not in another: {_OTHERWISE}"))
    if not found.faults:
        _add_edges(found, own, joined, middle)
        found.edges += [(found.wires[wire], *ends, True) for wire, ends in direct.items()]


def _between(joined: nx.utils.UnionFind[str], middle: dict[str, tuple[str, str]], wire: str, a: str, b: str) -> None:
    """A wire between the far ends of two own links; ends known before tell which is which."""
    left, right = middle.setdefault(wire, (a, b))
    if joined[a] in (joined[right], joined[left]) and joined[b] in (joined[right], joined[left]):
        if joined[a] == joined[b]:
            joined.union(left, right)
        return
    if joined[a] == joined[right] or joined[b] == joined[left]:
        left, right = right, left
    joined.union(left, a)
    joined.union(right, b)


def _add_edges(
    found: _Platform, own: dict[str, str], joined: nx.utils.UnionFind[str], middle: dict[str, tuple[str, str]]
) -> None:
    """Switches where own links meet, and the links between these; one whose ends meet is a backbone."""
    through = {joined[left]: wire for wire, (left, right) in middle.items() if joined[left] == joined[right]}
    stars: dict[str, list[tuple[str, _Wire, _Wire]]] = {}
    for wire, node in own.items():
        stars.setdefault(joined[wire], []).append((node, found.wires[wire], found.wires[wire]))
    names = {end: f"switch{i}" if f"switch{i}" not in found.nodes else f"switch {i}" for i, end in enumerate(stars)}
    for end, ends in stars.items():
        _star(ends, found.wires[through[end]] if end in through else None, names[end], found)
    for wire, (left, right) in middle.items():
        a, b = joined[left], joined[right]
        if a == b:
            continue
        if a in through or b in through:
            found.faults.append(Fault("routes", f"{wire} meets a backbone: {_OTHERWISE}"))
            return
        found.edges.append((found.wires[wire], names[a], names[b], True))
