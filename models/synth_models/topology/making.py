"""``synth make topology``: cubes and their switches, or nodes of a degree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.instance import parse_json
from synth.making import Count, Flag, Keys, Listed, Rate, Seconds, Sides
from synth.options import read_int
from synth.text.input_file import InputFile
from synth_models.topology.instance import TopologyInstance

_OF_CUBES = ("sides", "failed_switches")
_OF_A_DEGREE = ("degree", "one_way")


class TopologyKeys(Keys):
    """Cubes with their switches, nodes of a degree, or a file of nodes, links and switches; and what counts."""

    examples = (
        "cubes=2 sides=4x4x4",
        "nodes=64 degree=4 objective=hops",
        "nodes=32 degree=2 one_way=on",
        "plant=PLANT.json",
    )
    cubes: Count | None = Field(None, description="blocks of nodes, joined by circuit switches")
    sides: Sides | None = Field(None, description="of a cube (default 4x4x4)")
    failed_switches: Listed | None = Field(None, description="numbers of switches that join nothing, such as 0,5")
    nodes: Annotated[int, Field(ge=2)] | None = Field(None, description="nodes of a degree, instead of cubes")
    degree: Count | None = Field(None, description="most links of a node")
    one_way: Flag | None = Field(None, description="links lead one way (default off)")
    plant: InputFile | None = Field(None, description="JSON file with a plant as in an instance file, instead")
    objective: Literal["load", "hops"] | None = Field(
        None, description="largest link load of an all-to-all (default), or the sum of hops"
    )
    bandwidth: Rate | None = Field(None, description="bytes/s of a link in a direction (default 128 GB/s)")
    latency: Seconds | None = Field(None, description="seconds, of a fixed link (default 75 ns)")
    circuit_latency: Seconds | None = Field(None, description="seconds, of a circuit (default 50 ns)")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        sources = [key for key in ("cubes", "nodes", "plant") if key in values]
        if len(sources) != 1:
            return [Fault("", "give cubes=, nodes= or plant=, one of the three")]
        others = {"cubes": _OF_A_DEGREE, "nodes": _OF_CUBES, "plant": (*_OF_CUBES, *_OF_A_DEGREE)}[sources[0]]
        faults = [
            Fault(key, f"has no meaning with {sources[0]}=", values[key], True) for key in others if key in values
        ]
        if sources[0] == "nodes" and "degree" not in values:
            faults.append(Fault("degree", "is missing: nodes= needs degree="))
        for key, separator in (("sides", "x"), ("failed_switches", ",")):
            try:
                _numbers(values.get(key, ""), separator)
            except ValueError:
                faults.append(Fault(key, f"must be whole numbers with {separator} between them", values[key], True))
        return faults


def make(keys: TopologyKeys) -> TopologyInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    if keys.plant is not None:
        plant, name = parse_json(keys.plant.data, str(keys.plant)), keys.plant.stem
        if not isinstance(plant, dict):
            raise InputError("a plant is one JSON object", str(keys.plant))
    elif keys.cubes is not None:
        sides = keys.sides or "4x4x4"
        plant = {"kind": "cubes", "sides": _numbers(sides, "x"), "cubes": keys.cubes}
        plant |= {"failed": _numbers(keys.failed_switches, ",")} if keys.failed_switches else {}
        name = f"cubes-{keys.cubes}-{sides}" + ("-failed" if keys.failed_switches else "")
    else:
        plant = {"kind": "degree", "nodes": keys.nodes, "degree": keys.degree, "one_way": bool(keys.one_way)}
        name = f"n{keys.nodes}-d{keys.degree}" + ("-one-way" if keys.one_way else "")
    raw = {key: getattr(keys, key) for key in ("objective", "bandwidth", "latency", "circuit_latency")}
    given = {key: value for key, value in raw.items() if value is not None}
    name += "-hops" if keys.objective == "hops" else ""
    return keys.instance("topology", TopologyInstance, name, plant=plant, **given)


def _numbers(text: str, separator: str) -> list[int]:
    read = read_int(0)
    return [read(part) for part in text.split(separator)] if text else []
