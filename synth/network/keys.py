"""The keys of ``synth make`` that describe a network; families on networks derive their keys from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, InstanceOf

from synth.errors import Fault, InputError
from synth.instance import Part
from synth.making import Count, Flag, Keys, Listed, Rate, Seconds
from synth.network.links_table import HEADER, LinksTable, from_frame, from_graph, read_csv
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY
from synth.network.spec import SPECS
from synth.text.input_file import InputFile

BUILT = tuple(kind for kind in SPECS if kind != "links")
SIDES = ("top", "bottom", "left", "right")


def links_of(value: Any) -> Any:
    """A NetworkX graph or a pandas frame (from Python) as a table of links; what else there is stays."""
    try:
        if hasattr(value, "edges") and hasattr(value, "nodes"):
            return from_graph(value)
        if hasattr(value, "to_dict") and hasattr(value, "columns"):
            return from_frame(value)
    except InputError as error:
        raise ValueError("; ".join(map(str, error.faults))) from None
    if isinstance(value, (str, Path, InputFile)) or value is None:
        return value
    raise ValueError("must be a file, a NetworkX graph or a pandas frame")


def table_of_links(links: InputFile | LinksTable) -> LinksTable:
    """The table behind ``links=``, a file's read once. Raises :class:`InputError` naming the file."""
    return links if isinstance(links, LinksTable) else links.once(_read_links)


Links = Annotated[InputFile | InstanceOf[LinksTable] | None, BeforeValidator(links_of)]
LINKS_HELP = (
    f"CSV file with the header {HEADER}: nodes by number (from 0 on) or name, one direction a line, units as in 25GB/s "
    "and 0.7us (default bytes/s, seconds); rows with the same ends are parallel links; from Python also a NetworkX "
    "graph or a pandas frame with such columns"
)


class NetworkKeys(Keys):
    """``network=KIND`` with the kind's own parameters, or ``links=FILE.csv``."""

    network: str | None = Field(None, description=f"one of {', '.join(BUILT)}")
    links: Links = Field(None, description=LINKS_HELP)
    rows: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    cols: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    nodes: Count | None = Field(None, description="of a line, ring or Kautz network")
    dimension: Count | None = Field(None, description="of a hypercube of 2^dimension nodes")
    degree: Count | None = Field(None, description="of a Kautz network")
    bidirectional: Flag | None = Field(None, description="ring: links both ways (default on)")
    rings: Listed | None = Field(
        None, description="EquiMesh: even_up or odd_up, one for all edges or four (top,bottom,left,right)"
    )
    bandwidth: Rate | None = Field(
        None,
        description=f"of every link, bytes/s (default {DEFAULT_BANDWIDTH:g}); with links: of those that state none",
    )
    latency: Seconds | None = Field(
        None, description=f"of every link, seconds (default {DEFAULT_LATENCY:g}); with links: of those that state none"
    )

    KINDS: ClassVar[Mapping[str, type[Part]]] = SPECS
    OF_SHAPE: ClassVar[tuple[str, ...]] = ("rows", "cols", "nodes", "dimension", "degree", "bidirectional", "rings")
    OF_NETWORK: ClassVar[tuple[str, ...]] = (*OF_SHAPE, "bandwidth", "latency")
    GROUPS: ClassVar[bool] = False  # whether links may take turns
    SWITCHES: ClassVar[bool] = False  # whether nodes may be switches
    CHOSEN: ClassVar[tuple[str, ...]] = ()  # words for rings that the family itself turns into directions

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults = [*super().faults_in(values), *_network_faults(values, cls.OF_NETWORK, cls.KINDS, cls.CHOSEN)]
        return [*faults, *cls.links_faults(values)]

    @classmethod
    def links_faults(cls, values: Mapping[str, Any]) -> list[Fault]:
        """What is wrong with the table of links: its rows, and what it neither says nor the keys."""
        if values.get("links") is None or "network" in values:
            return []
        try:
            cls.table(values)
        except InputError as error:
            return list(error.faults)
        return []

    @classmethod
    def table(cls, values: Mapping[str, Any]) -> LinksTable:
        """The complete table of links. Raises :class:`InputError`."""
        table = table_of_links(values["links"])
        grouped = [] if cls.GROUPS else [link.where for link in table.links if link.group is not None]
        if grouped:
            words = "links that take turns are no part of this family's problem: leave the column empty"
            raise InputError([Fault(f"links, {where}, group", words) for where in grouped])
        if table.switches and not cls.SWITCHES:
            words = "switches are no part of this family's problem: leave the attribute out"
            raise InputError([Fault(f"links, node {node}", words) for node in table.switches])
        return table.completed(values.get("bandwidth"), values.get("latency"))

    def raw_network(self) -> dict[str, Any]:
        """The network as it stands in an instance file. Raises :class:`InputError` for a links file that is wrong."""
        if self.links is not None:
            return self.table({key: getattr(self, key) for key in ("links", "bandwidth", "latency")}).raw()
        raw = {"kind": self.network} | {
            key: getattr(self, key) for key in self.given if key in self.OF_NETWORK and key != "rings"
        }
        if self.rings is not None:
            raw["rings"] = dict(zip(SIDES, self.directions(), strict=True))
        return raw

    def network_notes(self) -> list[str]:
        """What the table of links means that its reader may not expect."""
        return [] if self.links is None else table_of_links(self.links).parallel()

    def directions(self) -> list[str]:
        """The four directions that ``rings`` asks for. A family that knows a word of :attr:`CHOSEN` overrides this."""
        given = (self.rings or "").split(",")
        return given * (4 // len(given))


def network_name(raw: Mapping[str, Any]) -> str:
    """Kind and size: the first part of an instance's name."""
    size = "x".join(str(raw[key]) for key in ("rows", "cols", "nodes", "dimension", "degree") if key in raw)
    return f"{raw['kind']}-{size}"


def _read_links(file: InputFile) -> LinksTable:
    where = f"links ({file.name})"
    try:
        return read_csv(file.text)
    except InputError as error:
        faults = [replace(f, path=f"{where}, {f.path}" if f.path else where) for f in error.faults]
        raise InputError(faults) from None


def _network_faults(
    values: Mapping[str, Any], own: tuple[str, ...], kinds: Mapping[str, type[Part]], chosen: tuple[str, ...]
) -> list[Fault]:
    kind = values.get("network")
    given = [key for key in own if key in values]
    shapes = [name for name in kinds if name != "links"]
    if "links" in values and "network" not in values:
        shape = [key for key in given if key not in ("bandwidth", "latency")]
        return [Fault(key, "has no meaning with links", values[key], True) for key in shape]
    if kind not in shapes:
        return [Fault("network", f"must be one of {', '.join(shapes)}, or give links=FILE.csv", kind, kind is not None)]
    fields = kinds[kind].model_fields
    needed = {key for key, info in fields.items() if info.is_required()} - {"kind"}
    faults = [Fault(key, "unknown parameter of this network", values[key], True) for key in given if key not in fields]
    faults += [Fault(key, f"is missing: network={kind} needs it") for key in fields if key in needed - values.keys()]
    if "links" in values:
        faults.append(Fault("links", "give network or links, one of the two", str(values["links"]), True))
    if "rings" in values and "rings" in fields:
        faults += _rings_faults(values["rings"], chosen)
    return faults


def _rings_faults(rings: str, chosen: tuple[str, ...]) -> list[Fault]:
    """What is wrong with directions of rings; ``chosen`` are words for directions that a family chooses itself."""
    directions = rings.split(",")
    if rings in chosen or (len(directions) in (1, 4) and set(directions) <= {"even_up", "odd_up"}):
        return []
    message = "one direction or four (top,bottom,left,right), each even_up or odd_up"
    message += "".join(f"; or {word}" for word in chosen)
    return [Fault("rings", message, rings, True)]
