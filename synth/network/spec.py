"""The network as it stands in an instance file: a builder with its parameters, or an explicit list of links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from synth.errors import Fault
from synth.instance import Part
from synth.network import builders
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, Network

MAX_NODES = 65_536  # beyond it not even the distances fit into memory

Bandwidth = Annotated[float, Field(gt=0, description="bytes/s")]
Latency = Annotated[float, Field(ge=0, description="seconds per hop")]
Side = Annotated[int, Field(ge=1, le=100_000)]
Direction = Literal["even_up", "odd_up"]


class _Uniform(Part):
    """All links alike."""

    bandwidth: Bandwidth = DEFAULT_BANDWIDTH
    latency: Latency = DEFAULT_LATENCY

    def build(self) -> Network:
        """The network; the builder may raise ``ValueError``."""
        raise NotImplementedError


class LineSpec(_Uniform):
    """Nodes in a row."""

    kind: Literal["line"]
    nodes: Side

    def build(self) -> Network:
        return builders.line(self.nodes, self.bandwidth, self.latency)


class RingSpec(_Uniform):
    """A ring, both ways unless ``bidirectional`` is false."""

    kind: Literal["ring"]
    nodes: Side
    bidirectional: bool = True

    def build(self) -> Network:
        return builders.ring(self.nodes, self.bidirectional, self.bandwidth, self.latency)


class MeshSpec(_Uniform):
    """A 2-D mesh."""

    kind: Literal["mesh"]
    rows: Side
    cols: Side

    def build(self) -> Network:
        return builders.grid((self.rows, self.cols), False, self.bandwidth, self.latency)


class TorusSpec(_Uniform):
    """A 2-D torus."""

    kind: Literal["torus"]
    rows: Side
    cols: Side

    def build(self) -> Network:
        return builders.grid((self.rows, self.cols), True, self.bandwidth, self.latency)


class RingDirections(Part):
    """Direction of the ring along each edge of an EquiMesh."""

    top: Direction = "even_up"
    bottom: Direction = "even_up"
    left: Direction = "even_up"
    right: Direction = "even_up"


class EquimeshSpec(_Uniform):
    """An EquiMesh; every ring may take either direction."""

    kind: Literal["equimesh"]
    rows: Annotated[int, Field(ge=2, le=100_000)]
    cols: Annotated[int, Field(ge=2, le=100_000)]
    rings: RingDirections = RingDirections()

    def build(self) -> Network:
        r = self.rings
        directions = (r.top, r.bottom, r.left, r.right)
        return builders.equimesh(self.rows, self.cols, directions, self.bandwidth, self.latency)


class HypercubeSpec(_Uniform):
    """A hypercube of 2**dimension nodes."""

    kind: Literal["hypercube"]
    dimension: Annotated[int, Field(ge=1, le=16)]

    def build(self) -> Network:
        return builders.hypercube(self.dimension, self.bandwidth, self.latency)


class KautzSpec(_Uniform):
    """A generalised Kautz network."""

    kind: Literal["kautz"]
    nodes: Annotated[int, Field(ge=2, le=100_000)]
    degree: Annotated[int, Field(ge=1)]

    def build(self) -> Network:
        return builders.kautz(self.nodes, self.degree, self.bandwidth, self.latency)


class LinkSpec(Part):
    """One directed link."""

    src: Annotated[int, Field(ge=0)]
    dst: Annotated[int, Field(ge=0)]
    bandwidth: Bandwidth = DEFAULT_BANDWIDTH
    latency: Latency = DEFAULT_LATENCY


class LinksSpec(Part):
    """Any network, link by link; ``names`` (what people call the nodes) are shown instead of numbers, ``positions``
    (x, y per node) are used only for drawing."""

    kind: Literal["links"]
    nodes: Side
    links: Annotated[tuple[LinkSpec, ...], Field(min_length=1)]
    names: tuple[str, ...] | None = None
    positions: tuple[tuple[float, float], ...] | None = None

    def build(self) -> Network:
        return Network(
            self.nodes,
            [(link.src, link.dst) for link in self.links],
            [link.bandwidth for link in self.links],
            [link.latency for link in self.links],
        ).shown_as(self.names, self.positions)


NetworkSpec = Annotated[
    LineSpec | RingSpec | MeshSpec | TorusSpec | EquimeshSpec | HypercubeSpec | KautzSpec | LinksSpec,
    Field(discriminator="kind"),
]
SPECS: Mapping[str, type[Part]] = {
    "line": LineSpec,
    "ring": RingSpec,
    "mesh": MeshSpec,
    "torus": TorusSpec,
    "equimesh": EquimeshSpec,
    "hypercube": HypercubeSpec,
    "kautz": KautzSpec,
    "links": LinksSpec,
}


@lru_cache(maxsize=16)
def built(spec: Any) -> Network:
    """The network of a spec. The same spec gives the same network (nothing of it can be changed), so the check of a
    file and all that is solved on it afterwards build it once. Raises ``ValueError``."""
    network: Network = spec.build()
    return network


def node_count(raw: Mapping[str, Any]) -> int | None:
    """Number of nodes of a raw network without building it; None where the network is faulty."""
    kind = raw.get("kind")
    if not isinstance(kind, str) or kind not in SPECS:
        return None
    try:
        spec = SPECS[kind].model_validate(raw)
    except ValidationError:
        return None
    if isinstance(spec, HypercubeSpec):
        return int(2**spec.dimension)
    return math.prod(int(getattr(spec, key, 1)) for key in ("nodes", "rows", "cols"))


def _links_faults(links: Sequence[Any], nodes: int, path: str) -> Iterator[Fault]:
    """Links whose ends are out of range or the same."""
    for i, link in enumerate(links):
        if not isinstance(link, dict):
            continue
        for end in ("src", "dst"):
            node = link.get(end)
            if isinstance(node, int) and not isinstance(node, bool) and node >= nodes:
                message = f"node out of range, the network has nodes 0..{nodes - 1}"
                yield Fault(f"{path}.links[{i}].{end}", message, node, True)
        if isinstance(link.get("src"), int) and link.get("src") == link.get("dst"):
            yield Fault(f"{path}.links[{i}]", "goes from a node to itself", link, True)


def network_faults(raw: Any, path: str = "network") -> list[Fault]:
    """Faults of a raw network that no single field shows: nodes out of range, self-loops, no strong connection."""
    if not isinstance(raw, dict):
        return []
    return list(_parts_faults(raw, path)) or _whole_faults(raw, path)


def _parts_faults(raw: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """What the parts of a network link by link are that its number of nodes forbids."""
    nodes, links = raw.get("nodes"), raw.get("links")
    if raw.get("kind") == "links" and isinstance(nodes, int) and nodes > 0 and isinstance(links, list):
        yield from _links_faults(links, nodes, path)
        for key in ("positions", "names"):
            each = raw.get(key)
            if isinstance(each, list) and len(each) != nodes:
                yield Fault(f"{path}.{key}", f"{len(each)} {key} for {nodes} nodes")


def _whole_faults(raw: Mapping[str, Any], path: str) -> list[Fault]:
    """Too many nodes, what the builder refuses, no strong connection."""
    kind = raw.get("kind")
    if not isinstance(kind, str) or kind not in SPECS:
        return []
    try:
        spec = SPECS[kind].model_validate(raw)
    except ValidationError:
        return []  # reported field by field elsewhere
    count = node_count(raw)
    if count is not None and count > MAX_NODES:
        return [Fault(path, f"has {count} nodes, at most {MAX_NODES} are supported")]
    try:
        cut_off = built(spec).cut_off_pair()
    except ValueError as error:
        return [Fault(path, str(error))]
    if cut_off is None:
        return []
    source, target = cut_off
    return [Fault(path, f"disconnected: node {target} cannot be reached from node {source}")]
