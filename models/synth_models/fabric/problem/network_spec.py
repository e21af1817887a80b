"""The network of an instance file: a machine by name, a network by its shape, or links one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Annotated, Any, Literal, TypeGuard

import numpy as np
from pydantic import Field

from synth.errors import Fault
from synth.instance import Part
from synth.network import Network
from synth.network.builders import grid
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY
from synth.network.spec import (
    Bandwidth,
    HypercubeSpec,
    KautzSpec,
    Latency,
    LineSpec,
    RingSpec,
    Side,
)
from synth_models.fabric.problem.abilities import Ability
from synth_models.fabric.problem.box_data import MachineLink
from synth_models.fabric.problem.box_machine import MachineSpec
from synth_models.fabric.problem.link_rows import LinkRows
from synth_models.fabric.problem.machine import Machine

MOST_NODES, MOST_LINKS = 65_536, 4_000_000


class _Uniform(Part):
    bandwidth: Bandwidth = DEFAULT_BANDWIDTH
    latency: Latency = DEFAULT_LATENCY


class _GridSpec(_Uniform):
    """Nodes row-major at the places of a grid of two sides, or three (``layers``), neighbours joined both ways."""

    rows: Side
    cols: Side
    layers: Side | None = None

    @property
    def sides(self) -> tuple[int, ...]:
        """The two or three sides."""
        return (self.rows, self.cols) if self.layers is None else (self.rows, self.cols, self.layers)


class MeshSpec(_GridSpec):
    """A mesh of two or three dimensions."""

    kind: Literal["mesh"]

    def build(self) -> Network:
        return grid(self.sides, False, self.bandwidth, self.latency)


class TorusSpec(_GridSpec):
    """A torus of two or three dimensions."""

    kind: Literal["torus"]

    def build(self) -> Network:
        return grid(self.sides, True, self.bandwidth, self.latency)


class FullSpec(_Uniform):
    """Every rank joined to every other, both ways."""

    kind: Literal["full"]
    nodes: Annotated[int, Field(ge=2, le=2048)]

    def build(self) -> Machine:
        rows = LinkRows()
        for u, v in combinations(range(self.nodes), 2):
            rows.add(u, v, self, None, True)
        return rows.machine([str(v) for v in range(self.nodes)], set(), "full")


class StarSpec(_Uniform):
    """Every rank joined to one switch."""

    kind: Literal["star"]
    nodes: Annotated[int, Field(ge=2, le=MOST_NODES - 1)]

    def build(self) -> Machine:
        rows = LinkRows()
        for v in range(self.nodes):
            rows.add(v, self.nodes, self, None, True)
        return rows.machine([*(str(v) for v in range(self.nodes)), "switch"], {self.nodes}, "star")


class FatTreeSpec(_Uniform):
    """Two levels: ``leaves`` switches with ``hosts`` ranks each, every leaf joined to each of ``spines`` switches.

    Links of leaves and spines have ``uplink_bandwidth`` (default: as the ranks').
    """

    kind: Literal["fat_tree"]
    leaves: Annotated[int, Field(ge=1, le=4096)]
    hosts: Annotated[int, Field(ge=1, le=4096)]
    spines: Annotated[int, Field(ge=1, le=4096)] = 1
    uplink_bandwidth: Bandwidth | None = None

    def build(self) -> Machine:
        ranks = self.leaves * self.hosts
        names = [str(v) for v in range(ranks)]
        names += [f"leaf{i}" for i in range(self.leaves)] + [f"spine{i}" for i in range(self.spines)]
        rows, up = (
            LinkRows(),
            MachineLink(src="", dst="", bandwidth=self.uplink_bandwidth or self.bandwidth, latency=self.latency),
        )
        for v in range(ranks):
            rows.add(v, ranks + v // self.hosts, self, None, True)
        for leaf in range(self.leaves):
            for spine in range(self.spines):
                rows.add(ranks + leaf, ranks + self.leaves + spine, up, None, True)
        return rows.machine(names, set(range(ranks, len(names))), "fat_tree")


class DragonflySpec(_Uniform):
    """Dragonfly: ``groups`` groups of ``routers`` switches, all joined within a group, ``hosts`` ranks a router.

    Every pair of groups is joined by one link, dealt out to the routers in turn, which makes the canonical dragonfly
    where groups = routers * h + 1 (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology,
    2008). Links between groups have ``global_bandwidth`` (default: as the others).
    """

    kind: Literal["dragonfly"]
    groups: Annotated[int, Field(ge=2, le=512)]
    routers: Annotated[int, Field(ge=1, le=512)]
    hosts: Annotated[int, Field(ge=1, le=512)]
    global_bandwidth: Bandwidth | None = None

    def build(self) -> Machine:
        ranks = self.groups * self.routers * self.hosts
        names = [str(v) for v in range(ranks)]
        names += [f"router{g}.{r}" for g in range(self.groups) for r in range(self.routers)]
        rows, far = (
            LinkRows(),
            MachineLink(src="", dst="", bandwidth=self.global_bandwidth or self.bandwidth, latency=self.latency),
        )
        for v in range(ranks):
            rows.add(v, ranks + v // self.hosts, self, None, True)
        for g in range(self.groups):
            first = ranks + g * self.routers
            for u, v in combinations(range(first, first + self.routers), 2):
                rows.add(u, v, self, None, True)
        for g, other in combinations(range(self.groups), 2):
            u = ranks + g * self.routers + (other - 1) % self.routers
            v = ranks + other * self.routers + g % self.routers
            rows.add(u, v, far, None, True)
        return rows.machine(names, set(range(ranks, len(names))), "dragonfly")


class OwnLink(Part):
    """One directed link."""

    src: Annotated[int, Field(ge=0)]
    dst: Annotated[int, Field(ge=0)]
    bandwidth: Bandwidth
    latency: Latency = 0.0
    group: Annotated[str, Field(min_length=1)] | None = None


class OwnAbility(Ability):
    """What the switch of this number copies and adds."""

    switch: Annotated[int, Field(ge=0)]


class OwnInterval(Part):
    """What a fit leaves open of some links, by their numbers: the least and the most latency and bandwidth."""

    links: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    latency: tuple[Latency, Latency]
    bandwidth: tuple[Bandwidth, Bandwidth]


class OwnSpec(Part):
    """Any machine, link by link. ``switches`` are node numbers; all other nodes are ranks. ``abilities``: what single
    switches copy and add. ``boxes``: the ranks of every box (none: each is alone), of which ``domain`` that follow one
    another are one NVLink domain. ``intervals``: what measurements leave open; no schedule and no bound uses them."""

    kind: Literal["links"]
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)]
    switches: tuple[Annotated[int, Field(ge=0)], ...] = ()
    links: Annotated[tuple[OwnLink, ...], Field(min_length=1)]
    names: tuple[str, ...] | None = None
    positions: tuple[tuple[float, float], ...] | None = None
    abilities: tuple[OwnAbility, ...] | None = None
    boxes: tuple[Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)], ...] | None = None
    domain: Annotated[int, Field(ge=1, le=100_000)] | None = None
    intervals: tuple[OwnInterval, ...] | None = None

    def build(self) -> Machine:
        rows = LinkRows()
        for link in self.links:
            rows.add(link.src, link.dst, link, link.group, False)
        rows.abilities = {ability.switch: ability for ability in self.abilities or ()}
        names = list(self.names) if self.names else [str(v) for v in range(self.nodes)]
        return rows.machine(names, set(self.switches), "links", self.positions)


SHAPES: dict[str, type[Part]] = {
    "line": LineSpec,
    "ring": RingSpec,
    "mesh": MeshSpec,
    "torus": TorusSpec,
    "hypercube": HypercubeSpec,
    "kautz": KautzSpec,
    "full": FullSpec,
    "star": StarSpec,
    "fat_tree": FatTreeSpec,
    "dragonfly": DragonflySpec,
}
SPECS: dict[str, type[Part]] = {"machine": MachineSpec, **SHAPES, "links": OwnSpec}
FabricSpec = Annotated[
    MachineSpec
    | LineSpec
    | RingSpec
    | MeshSpec
    | TorusSpec
    | HypercubeSpec
    | KautzSpec
    | FullSpec
    | StarSpec
    | FatTreeSpec
    | DragonflySpec
    | OwnSpec,
    Field(discriminator="kind"),
]


def size_of(spec: Any) -> tuple[int, int]:
    """About how many nodes and links a spec makes, without building it."""
    match spec:
        case MachineSpec():
            return spec.size()
        case FullSpec():
            return spec.nodes, spec.nodes * (spec.nodes - 1)
        case StarSpec():
            return spec.nodes + 1, 2 * spec.nodes
        case FatTreeSpec():
            ranks = spec.leaves * spec.hosts
            return ranks + spec.leaves + spec.spines, 2 * (ranks + spec.leaves * spec.spines)
        case DragonflySpec():
            routers = spec.groups * spec.routers
            return routers * (spec.hosts + 1), routers * (2 * spec.hosts + spec.routers + spec.groups)
        case HypercubeSpec():
            return 2**spec.dimension, spec.dimension * 2**spec.dimension
        case MeshSpec() | TorusSpec():
            nodes = prod(spec.sides)
            return nodes, 2 * len(spec.sides) * nodes
        case KautzSpec():
            return spec.nodes, spec.nodes * spec.degree
        case OwnSpec():
            return spec.nodes, len(spec.links)
    return spec.nodes, 2 * spec.nodes


@lru_cache(maxsize=16)
def built(spec: Any) -> Machine:
    """The machine of a spec, built once. Raises ``ValueError``."""
    nodes, links = size_of(spec)
    if nodes > MOST_NODES or links > MOST_LINKS:
        raise ValueError(f"about {nodes} nodes and {links} links; at most {MOST_NODES} and {MOST_LINKS} are supported")
    made = spec.build()
    if isinstance(made, Network):
        none = np.full(made.links, -1, dtype=np.int64)
        names = tuple(str(v) for v in range(made.nodes))
        return Machine(made, np.zeros(made.nodes, dtype=bool), none, names)
    assert isinstance(made, Machine)
    return made


def own_faults(raw: dict[str, Any], path: str = "network") -> list[Fault]:
    """Faults of a raw ``links`` network that no single field shows: nodes out of range, self-loops, names, switches."""
    nodes = raw.get("nodes")
    if not _is_number(nodes) or nodes < 1:
        return []
    faults = [*_link_faults(raw.get("links"), nodes, path), *_switch_faults(raw.get("switches"), nodes, path)]
    faults += _ability_faults(raw.get("abilities"), raw.get("switches"), path)
    faults += _box_faults(raw.get("boxes"), raw.get("switches"), nodes, path)
    faults += _interval_faults(raw.get("intervals"), raw.get("links"), path)
    for key in ("names", "positions"):
        value = raw.get(key)
        if isinstance(value, (list, tuple)) and len(value) != nodes:
            faults.append(Fault(f"{path}.{key}", f"{len(value)} for {nodes} nodes"))
    return faults


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_numbers(value: Any) -> TypeGuard[Sequence[float]]:
    return isinstance(value, (list, tuple)) and all(isinstance(one, (int, float)) for one in value)


def _link_faults(links: Any, nodes: int, path: str) -> Iterator[Fault]:
    for i, link in enumerate(links if isinstance(links, (list, tuple)) else ()):
        if not isinstance(link, dict):
            continue
        for end in ("src", "dst"):
            node = link.get(end)
            if _is_number(node) and node >= nodes:
                message = f"link to nowhere: the network has nodes 0..{nodes - 1}"
                yield Fault(f"{path}.links[{i}].{end}", message, node, True)
        if isinstance(link.get("src"), int) and link.get("src") == link.get("dst"):
            yield Fault(f"{path}.links[{i}]", "goes from a node to itself", link.get("src"), True)


def _interval_faults(intervals: Any, links: Any, path: str) -> Iterator[Fault]:
    count = len(links) if isinstance(links, (list, tuple)) else 0
    for i, one in enumerate(intervals if isinstance(intervals, (list, tuple)) else ()):
        if not isinstance(one, dict):
            continue
        for key in ("latency", "bandwidth"):
            ends = one.get(key)
            if _are_numbers(ends) and len(ends) == 2 and ends[0] > ends[1]:
                yield Fault(f"{path}.intervals[{i}].{key}", "must be the least and the most", list(ends), True)
        numbers = one.get("links")
        for link in numbers if isinstance(numbers, (list, tuple)) else ():
            if _is_number(link) and link >= count:
                yield Fault(f"{path}.intervals[{i}].links", f"must be numbers of links, 0 to {count - 1}", link, True)


def _box_faults(boxes: Any, switches: Any, nodes: int, path: str) -> Iterator[Fault]:
    others = set(filter(_is_number, switches if isinstance(switches, (list, tuple)) else ()))
    seen: set[int] = set()
    for i, box in enumerate(boxes if isinstance(boxes, (list, tuple)) else ()):
        for node in filter(_is_number, box if isinstance(box, (list, tuple)) else ()):
            if node >= nodes or node in others:
                yield Fault(f"{path}.boxes[{i}]", "is no rank of the network", node, True)
            elif node in seen:
                yield Fault(f"{path}.boxes[{i}]", "is a rank that stands twice", node, True)
            seen.add(node)


def _ability_faults(abilities: Any, switches: Any, path: str) -> Iterator[Fault]:
    known = set(filter(_is_number, switches if isinstance(switches, (list, tuple)) else ()))
    seen: set[int] = set()
    for i, ability in enumerate(abilities if isinstance(abilities, (list, tuple)) else ()):
        node = ability.get("switch") if isinstance(ability, dict) else None
        if not _is_number(node):
            continue
        if node not in known:
            yield Fault(f"{path}.abilities[{i}].switch", "is none of the switches", node, True)
        if node in seen:
            yield Fault(f"{path}.abilities[{i}].switch", "stands twice", node, True)
        seen.add(node)


def _switch_faults(switches: Any, nodes: int, path: str) -> Iterator[Fault]:
    seen: set[int] = set()
    for i, node in enumerate(switches if isinstance(switches, (list, tuple)) else ()):
        if _is_number(node):
            if node >= nodes:
                yield Fault(f"{path}.switches[{i}]", f"the network has nodes 0..{nodes - 1}", node, True)
            if node in seen:
                yield Fault(f"{path}.switches[{i}]", "stands twice", node, True)
            seen.add(node)
