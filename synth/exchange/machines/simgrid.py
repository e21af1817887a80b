"""SimGrid's platform XML (simgrid.org, version 4; ``AS`` of version 3): zones, hosts, links, routes, clusters.

Links have no ends there: routes give them some. A route of one link joins its two ends (a SHARED one of several pairs
is a group of links). In one of two or three links the first is the own link of one end, the last that of the other, and
they meet in a switch or over the link between. A link that every such route passes is a backbone: all go in at one side
and out at the other. A ``cluster`` (FLAT; :mod:`synth.exchange.machines.simgrid_clusters` lays others) and the
``host_link``s of a zone with ``backbone`` are the same; the router that joins it to others is behind the backbone. The
directions of a SHARED link take turns (a group), others are a link each way. What SimGrid's models take off a rate (its
factors) is not in the file. Class: link.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from xml.etree.ElementTree import Element

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines import simgrid_clusters
from synth.exchange.machines.hardened import root_name, xml_root
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Link, Machine, listed
from synth.network.links_table import LINK, MOST_NODES
from synth.text.amounts import duration, rate, scaled_rate
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


_End: TypeAlias = tuple[str, _Wire | None, _Wire | None]  # a node, its links up and down


@dataclass(frozen=True)
class _Route:
    """A route: where it stands, its ends, its wires, whether it is also the way back."""

    where: str
    src: str
    dst: str
    wires: tuple[_Wire, ...]
    both: bool


@dataclass
class _Platform:
    """What the elements say. ``nodes``: by name whether each is a switch. ``edges``: a wire, or None, between two nodes
    and whether it leads both ways. ``gateways``: of routers behind a backbone, where what comes in goes and what
    leaves comes from."""

    nodes: dict[str, bool] = field(default_factory=dict)
    wires: dict[str, _Wire] = field(default_factory=dict)
    edges: list[tuple[_Wire, str, str, bool]] = field(default_factory=list)
    routes: list[_Route] = field(default_factory=list)
    gateways: dict[str, tuple[str, str]] = field(default_factory=dict)
    laid: list[str] = field(default_factory=list)  # clusters of SimGrid's own routes
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
            tail, head = found.gateways.get(u, (u, u))[1], found.gateways.get(v, (v, v))[0]
            built.add(Link(number[tail], number[head], LINK, wire.bandwidth, wire.latency, group))
    if any(wire.fat for wire, *_ in found.edges):
        built.assumed.append("what passes a FATPIPE at once shares its rate, as on any other link")
    if found.laid:
        built.assumed.append(f"any route may be taken through {listed(found.laid)}, not SimGrid's own alone")
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
        _host_links(links, zone, zone.get("id") or where, found)


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
    if element.get("limiter_link"):
        found.faults.append(Fault(f"{where}@limiter_link", "is not read: what limits a host is no link of its own"))
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
    if kind != "FLAT":
        _laid(element, hosts, own, where, found)
        return
    router = element.get("router_id") or f"{element.get('prefix', '')}{name}_router{element.get('suffix', '')}"
    _star([(host, own, own) for host in hosts], backbone, router if backbone is None else name, found)
    if backbone is not None:
        found.gateways[router] = (f"{name}-in", f"{name}-out")


def _laid(element: Element, hosts: list[str], own: _Wire, where: str, found: _Platform) -> None:
    """The switches and cables of a cluster that is more than a star; several between two nodes are one link."""
    kind, parameters = element.get("topology", ""), element.get("topo_parameters", "")
    if element.get("bb_bw"):
        found.faults.append(Fault(f"{where}@bb_bw", f"has no meaning with {kind[:20]}"))
    try:
        switches, cables = simgrid_clusters.cables(kind, parameters[:400], len(hosts))
    except ValueError as error:
        key = "topo_parameters" if kind in simgrid_clusters.KINDS else "topology"
        found.faults.append(Fault(f"{where}@{key}", str(error), element.get(key, "")[:60], True))
        return
    name = element.get("id") or where
    nodes = [*hosts, *(found.node(f"{name}-switch{n}", True, where) for n in range(switches))]
    for n, (a, b, count) in enumerate(cables):
        wire = replace(own, name=f"{own.name}-{n}", bandwidth=scaled_rate(own.bandwidth, count))
        found.edges.append((wire, nodes[a], nodes[b], True))
    found.laid.append(f"{kind.replace('_', ' ').lower()} {name}")


def _host_links(links: list[Element], zone: Element, name: str, found: _Platform) -> None:
    """The hosts of a zone that are joined by ``host_link`` elements; a router of the zone that none of them joins is
    behind its backbone."""
    backbone = zone.find("backbone")
    ends: list[_End] = []
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
        if through is not None:
            _behind(zone, {host for host, _, _ in ends}, name, found)


def _behind(zone: Element, joined: set[str], name: str, found: _Platform) -> None:
    """Routers that no ``host_link`` joins are gateways."""
    for router in {router.get("id") or "" for router in zone.findall("router")} - joined:
        del found.nodes[router]
        found.gateways[router] = (f"{name}-in", f"{name}-out")


def _star(ends: list[_End], backbone: _Wire | None, name: str, found: _Platform) -> None:
    """Hosts with their links up and down (None: no such way), on a switch of this name or both sides of a backbone."""
    into = out = found.node(name if backbone is None else f"{name}-in", True, name)
    if backbone is not None:
        out = found.node(f"{name}-out", True, name)
        found.edges.append((backbone, into, out, False))
    for host, up, down in ends:
        if into == out and up == down and up is not None:
            found.edges.append((up, host, into, True))
            continue
        found.edges += [(up, host, into, False)] if up is not None else []
        found.edges += [(down, out, host, False)] if down is not None else []


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
    strange = [end for end in ends if end not in found.nodes and end not in found.gateways]
    if strange:
        found.faults.append(Fault(where, "names no host or router of the file", listed(strange), True))
    elif not 1 <= len(wires) <= MOST_HOPS and not found.faults:
        found.faults.append(Fault(where, f"has {len(wires)} links; routes of 1 to {MOST_HOPS} are read: {_OTHERWISE}"))
    elif ends[0] != ends[1]:
        both = element.get("symmetrical", "YES").upper() in ("YES", "TRUE", "1")
        found.routes.append(_Route(where, ends[0], ends[1], tuple(wires), both))


_OTHERWISE = "name routers, with a route of one link between neighbours"


def _join_routes(found: _Platform) -> None:
    """Edges from the routes."""
    own: dict[str, str] = {}  # whose own link a wire is
    ways: set[tuple[str, str]] = set()  # a wire and a node that it leads from (of own links: up from it, or to it)
    joined: nx.utils.UnionFind[str] = nx.utils.UnionFind()  # own links' far ends that are one
    middle: dict[str, tuple[str, str]] = {}
    direct: dict[str, dict[tuple[str, str], None]] = {}
    for one in found.routes:
        first, last = one.wires[0].name, one.wires[-1].name
        if len(one.wires) == 1:
            pairs = direct.setdefault(first, {})
            pairs |= dict.fromkeys([(one.src, one.dst), (one.dst, one.src)][: 2 if one.both else 1])
            continue
        if own.setdefault(first, one.src) != one.src or own.setdefault(last, one.dst) != one.dst or first == last:
            found.faults.append(Fault(one.where, f"{first} or {last} is another's own link: {_OTHERWISE}"))
            continue
        ways |= {(first, "up"), (last, "down")} | ({(first, "down"), (last, "up")} if one.both else set())
        if len(one.wires) == 2:
            joined.union(first, last)
        elif one.both:
            _between(joined, middle, one.wires[1].name, first, last)
        else:
            found.faults.append(Fault(one.where, f"a route of three links is read both ways alone: {_OTHERWISE}"))
    _check_direct(found, direct, set(own) | set(middle))
    if set(own) & set(middle):
        found.faults.append(Fault("routes", f"a link is a host's own in one route and not in another: {_OTHERWISE}"))
    if not found.faults:
        stars: dict[str, list[_End]] = {}
        for wire, node in own.items():
            up, down = (found.wires[wire] if (wire, way) in ways else None for way in ("up", "down"))
            stars.setdefault(joined[wire], []).append((node, up, down))
        _add_edges(found, stars, joined, middle)


def _check_direct(found: _Platform, direct: dict[str, dict[tuple[str, str], None]], others: set[str]) -> None:
    """The edges of routes of one link."""
    for wire, pairs in direct.items():
        ends = next(iter(pairs))
        apart = {frozenset(pair) for pair in pairs}
        if wire in others or (len(apart) > 1 and not found.wires[wire].shared):
            words = f"the link {wire} joins {ends[0]}-{ends[1]} and others too: {_OTHERWISE}"
            found.faults.append(Fault("routes", words))
            continue
        for a, b in pairs:
            if frozenset((a, b)) in apart:
                apart.remove(frozenset((a, b)))
                found.edges.append((found.wires[wire], a, b, (b, a) in pairs))


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
    found: _Platform,
    stars: dict[str, list[_End]],
    joined: nx.utils.UnionFind[str],
    middle: dict[str, tuple[str, str]],
) -> None:
    """Switches where own links meet, and the links between these; one whose ends meet is a backbone."""
    through = {joined[left]: wire for wire, (left, right) in middle.items() if joined[left] == joined[right]}
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
