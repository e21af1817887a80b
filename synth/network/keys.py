"""The keys of ``synth make`` that describe a network; families on networks derive their keys from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from synth.errors import Fault, InputError
from synth.instance import Part
from synth.making import Count, Flag, Keys, Listed, NotNegative, Positive
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY
from synth.network.spec import SPECS, links_from_csv

BUILT = tuple(kind for kind in SPECS if kind != "links")
SIDES = ("top", "bottom", "left", "right")


def links_of(value: Any) -> Any:
    """A NetworkX graph or a table of links (from Python) as the network of an instance file; else a path."""
    if isinstance(value, (str, Path)) or value is None:
        return value
    if hasattr(value, "edges") and hasattr(value, "nodes"):
        return links_from_graph(value)
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return links_from_frame(value)
    raise ValueError("must be a file, a NetworkX graph or a pandas frame")


class NetworkKeys(Keys):
    """``network=KIND`` with the kind's own parameters, or ``links=FILE.csv``."""

    network: str | None = Field(None, description=f"one of {', '.join(BUILT)}")
    links: Annotated[Path | dict[str, Any] | None, BeforeValidator(links_of)] = Field(
        None,
        description="CSV file with the header src,dst[,bandwidth][,latency] (nodes from 0 on, one direction a line, "
        "bytes/s, seconds); from Python also a NetworkX graph or a pandas frame with such columns",
    )
    rows: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    cols: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    nodes: Count | None = Field(None, description="of a line, ring or Kautz network")
    dimension: Count | None = Field(None, description="of a hypercube of 2^dimension nodes")
    degree: Count | None = Field(None, description="of a Kautz network")
    bidirectional: Flag | None = Field(None, description="ring: links both ways (default on)")
    rings: Listed | None = Field(
        None, description="EquiMesh: even_up or odd_up, one for all edges or four (top,bottom,left,right)"
    )
    bandwidth: Positive | None = Field(
        None, description=f"of every link, bytes/s (default {DEFAULT_BANDWIDTH:g}); not with links"
    )
    latency: NotNegative | None = Field(
        None, description=f"of every link, seconds (default {DEFAULT_LATENCY:g}); not with links"
    )

    KINDS: ClassVar[Mapping[str, type[Part]]] = SPECS
    OF_SHAPE: ClassVar[tuple[str, ...]] = ("rows", "cols", "nodes", "dimension", "degree", "bidirectional", "rings")
    OF_NETWORK: ClassVar[tuple[str, ...]] = (*OF_SHAPE, "bandwidth", "latency")
    CHOSEN: ClassVar[tuple[str, ...]] = ()  # words for rings that the family itself turns into directions

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        return [*super().faults_in(values), *_network_faults(values, cls.OF_NETWORK, cls.KINDS, cls.CHOSEN)]

    def raw_network(self) -> dict[str, Any]:
        """The network as it stands in an instance file. Raises :class:`InputError` for a links file that is wrong."""
        if isinstance(self.links, dict):
            return self.links
        if self.links is not None:
            return _links(self.links)
        raw = {"kind": self.network} | {
            key: getattr(self, key) for key in self.given if key in self.OF_NETWORK and key != "rings"
        }
        if self.rings is not None:
            raw["rings"] = dict(zip(SIDES, self.directions(), strict=True))
        return raw

    def directions(self) -> list[str]:
        """The four directions that ``rings`` asks for. A family that knows a word of :attr:`CHOSEN` overrides this."""
        given = (self.rings or "").split(",")
        return given * (4 // len(given))


def network_name(raw: Mapping[str, Any]) -> str:
    """Kind and size: the first part of an instance's name."""
    size = "x".join(str(raw[key]) for key in ("rows", "cols", "nodes", "dimension", "degree") if key in raw)
    return f"{raw['kind']}-{size}"


def links_from_graph(graph: Any) -> dict[str, Any]:
    """A raw ``links`` network from a NetworkX graph: nodes numbered in the graph's order, an undirected edge a link
    each way, a multigraph's edges parallel links; edge attributes ``bandwidth`` (bytes/s), ``latency`` (s) if given."""
    number = {node: index for index, node in enumerate(graph.nodes)}
    links = []
    for tail, head, data in graph.edges(data=True):
        ends = [(tail, head)] if graph.is_directed() else [(tail, head), (head, tail)]
        own = {key: float(data[key]) for key in ("bandwidth", "latency") if key in data}
        links += [{"src": number[u], "dst": number[v], **own} for u, v in ends]
    return {"kind": "links", "nodes": len(number), "links": links}


def links_from_frame(frame: Any) -> dict[str, Any]:
    """A raw ``links`` network from a pandas frame with columns ``src,dst[,bandwidth][,latency][,group]`` (groups are
    for families that know them), missing values being the defaults. Raises ``ValueError``."""
    known = {"src", "dst", "bandwidth", "latency", "group"}
    columns = set(map(str, frame.columns))
    if not {"src", "dst"} <= columns <= known or not len(frame):
        raise ValueError("a table of links has the columns src,dst[,bandwidth][,latency][,group] and at least one row")
    links = []
    for row in frame.to_dict("records"):
        ends = {key: row[key] for key in ("src", "dst")}
        if any(value != int(value) for value in ends.values()):
            raise ValueError(f"src and dst are whole numbers, not {ends}")
        given = {key: value for key, value in row.items() if value is not None and value == value}
        own: dict[str, Any] = {key: float(given[key]) for key in ("bandwidth", "latency") if key in given}
        own |= {"group": str(given["group"])} if "group" in given else {}
        links.append({**{key: int(value) for key, value in ends.items()}, **own})
    return {"kind": "links", "nodes": 1 + max(max(link["src"], link["dst"]) for link in links), "links": links}


def _links(path: Path) -> dict[str, Any]:
    try:
        return links_from_csv(path)
    except InputError as error:
        where = f"links ({path.name})"
        faults = [replace(f, path=f"{where}, {f.path}" if f.path else where) for f in error.faults]
        raise InputError(faults) from None


def _network_faults(
    values: Mapping[str, Any], own: tuple[str, ...], kinds: Mapping[str, type[Part]], chosen: tuple[str, ...]
) -> list[Fault]:
    kind = values.get("network")
    shapes = [name for name in kinds if name != "links"]
    if "links" in values and "network" not in values:
        return [Fault(key, "has no meaning with links", values[key], True) for key in own if key in values]
    if kind not in shapes:
        return [Fault("network", f"must be one of {', '.join(shapes)}, or give links=FILE.csv", kind, kind is not None)]
    fields = kinds[kind].model_fields
    faults = [
        Fault(key, "unknown parameter of this network", values[key], True)
        for key in own
        if key in values and key not in fields
    ]
    faults += [
        Fault(key, f"is missing: network={kind} needs it")
        for key, info in fields.items()
        if info.is_required() and key != "kind" and key not in values
    ]
    if "links" in values:
        faults.append(Fault("links", "give network or links, one of the two", str(values["links"]), True))
    if "rings" in values and "rings" in fields and values["rings"] not in chosen:
        directions = values["rings"].split(",")
        if len(directions) not in (1, 4) or not set(directions) <= {"even_up", "odd_up"}:
            message = "one direction or four (top,bottom,left,right), each even_up or odd_up"
            message += "".join(f"; or {word}" for word in chosen)
            faults.append(Fault("rings", message, values["rings"], True))
    return faults
