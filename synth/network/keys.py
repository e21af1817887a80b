"""The keys of ``synth make`` that describe a network; families on networks derive their keys from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from synth.errors import Fault, InputError
from synth.making import Count, Flag, Keys, NotNegative, Positive
from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY
from synth.network.spec import SPECS, links_from_csv

BUILT = tuple(kind for kind in SPECS if kind != "links")
SIDES = ("top", "bottom", "left", "right")


class NetworkKeys(Keys):
    """``network=KIND`` with the kind's own parameters, or ``links=FILE.csv``."""

    network: str | None = Field(None, description=f"one of {', '.join(BUILT)}")
    links: Path | None = Field(None, description="CSV file with the header src,dst[,bandwidth][,latency]")
    rows: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    cols: Count | None = Field(None, description="of a mesh, torus or EquiMesh")
    nodes: Count | None = Field(None, description="of a line, ring or Kautz network")
    dimension: Count | None = Field(None, description="of a hypercube of 2^dimension nodes")
    degree: Count | None = Field(None, description="of a Kautz network")
    bidirectional: Flag | None = Field(None, description="ring: links both ways (default on)")
    rings: str | None = Field(
        None, description="EquiMesh: even_up or odd_up, one for all edges or four (top,bottom,left,right)"
    )
    bandwidth: Positive | None = Field(
        None, description=f"of every link, bytes/s (default {DEFAULT_BANDWIDTH:g}); not with links"
    )
    latency: NotNegative | None = Field(
        None, description=f"of every link, seconds (default {DEFAULT_LATENCY:g}); not with links"
    )

    OF_SHAPE: ClassVar[tuple[str, ...]] = ("rows", "cols", "nodes", "dimension", "degree", "bidirectional", "rings")
    OF_NETWORK: ClassVar[tuple[str, ...]] = (*OF_SHAPE, "bandwidth", "latency")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        return [*super().faults_in(values), *_network_faults(values, cls.OF_NETWORK)]

    def raw_network(self) -> dict[str, Any]:
        """The network as it stands in an instance file. Raises :class:`InputError` for a links file that is wrong."""
        if self.links is not None:
            return _links(self.links)
        raw = {"kind": self.network} | {
            key: getattr(self, key) for key in self.given if key in self.OF_NETWORK and key != "rings"
        }
        if self.rings is not None:
            directions = self.rings.split(",")
            raw["rings"] = dict(zip(SIDES, directions * (4 // len(directions)), strict=True))
        return raw


def network_name(raw: Mapping[str, Any]) -> str:
    """Kind and size: the first part of an instance's name."""
    size = "x".join(str(raw[key]) for key in ("rows", "cols", "nodes", "dimension", "degree") if key in raw)
    return f"{raw['kind']}-{size}"


def _links(path: Path) -> dict[str, Any]:
    try:
        return links_from_csv(path)
    except InputError as error:
        where = f"links ({path.name})"
        faults = [replace(f, path=f"{where}, {f.path}" if f.path else where) for f in error.faults]
        raise InputError(faults) from None


def _network_faults(values: Mapping[str, Any], own: tuple[str, ...]) -> list[Fault]:
    kind = values.get("network")
    if "links" in values and "network" not in values:
        return [Fault(key, "has no meaning with links", values[key], True) for key in own if key in values]
    if kind not in BUILT:
        return [Fault("network", f"must be one of {', '.join(BUILT)}, or give links=FILE.csv", kind, kind is not None)]
    fields = SPECS[kind].model_fields
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
    if "rings" in values and "rings" in fields:
        directions = values["rings"].split(",")
        if len(directions) not in (1, 4) or not set(directions) <= {"even_up", "odd_up"}:
            message = "one direction or four (top,bottom,left,right), each even_up or odd_up"
            faults.append(Fault("rings", message, values["rings"], True))
    return faults
