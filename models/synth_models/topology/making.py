"""``synth make topology``: cubes and their switches, or nodes of a degree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError, one_of
from synth.instance import parse_json
from synth.making import Count, Flag, Keys, Listed, Rate, Seconds, Sides
from synth.options import read_int
from synth.schedule.collective import NAMES
from synth.text import amounts
from synth.text.input_file import InputFile
from synth_models.topology.instance import MAX_NODES, TopologyInstance

_NUMBER = re.compile(r"([0-9]{1,20}(?:[.][0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?)%?")
_OF_CUBES = ("sides", "failed_switches", "failed_cubes", "failed_links")
SIDES = "4x4x4"
_AS_THEY_ARE = ("objective", "bandwidth", "circuit_bandwidth", "latency", "circuit_latency")
_OF_A_DEGREE = ("degree", "one_way")


class TopologyKeys(Keys):
    """Cubes with their switches, nodes of a degree, or a file of nodes, links and switches; and what counts."""

    examples = (
        "cubes=2 sides=4x4x4",
        "nodes=64 degree=4 objective=hops",
        "nodes=32 degree=2 one_way=on",
        "plant=PLANT.json",
        "nodes=64 degree=4 mix=allreduce:1GiB:60%,alltoall:64MiB:40%",
    )
    cubes: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = Field(
        None, description="blocks of nodes, joined by circuit switches"
    )
    sides: Sides | None = Field(None, description="of a cube (default 4x4x4)")
    failed_switches: Listed | None = Field(None, description="numbers of switches that join nothing, such as 0,5")
    failed_cubes: Listed | None = Field(None, description="numbers of cubes that are gone; the rest is renumbered")
    failed_links: Listed | None = Field(None, description="links inside cubes that are gone, such as 0-1,5-6")
    nodes: Annotated[int, Field(ge=2)] | None = Field(None, description="nodes of a degree, instead of cubes")
    degree: Count | None = Field(None, description="most links of a node")
    one_way: Flag | None = Field(None, description="links lead one way (default off)")
    plant: InputFile | None = Field(None, description="JSON file with a plant as in an instance file, instead")
    objective: Literal["load", "hops", "mix"] | None = Field(
        None, description="largest link load of an all-to-all (default), the sum of hops, or the time of mix= (default)"
    )
    mix: Listed | None = Field(
        None, description="collectives with bytes and weights, such as allreduce:1GiB:60%,alltoall:64MiB:40%"
    )
    bandwidth: Rate | None = Field(None, description="bytes/s of a link in a direction (default 128 GB/s)")
    circuit_bandwidth: Rate | None = Field(None, description="bytes/s of a circuit (default: as a link)")
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
        for key, separator in (("sides", "x"), ("failed_switches", ","), ("failed_cubes", ",")):
            try:
                _numbers(values.get(key, ""), separator)
            except ValueError:
                faults.append(Fault(key, f"must be whole numbers with {separator} between them", values[key], True))
        try:
            _pairs(values.get("failed_links", ""))
        except ValueError:
            faults.append(Fault("failed_links", "must be pairs of nodes such as 0-1,5-6", values["failed_links"], True))
        _, wrong = _rows(values.get("mix", ""))
        return [*faults, *wrong, *(() if faults else _gone_faults(values))]


def make(keys: TopologyKeys) -> TopologyInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    notes = list[str]()
    if keys.plant is not None:
        plant, name = parse_json(keys.plant.data, str(keys.plant)), keys.plant.stem
        if not isinstance(plant, dict):
            raise InputError("a plant is one JSON object", str(keys.plant))
    elif keys.cubes is not None:
        plant, notes = _cubes(keys)
        broken = keys.failed_switches or keys.failed_cubes or keys.failed_links
        name = f"cubes-{keys.cubes}-{keys.sides or SIDES}" + ("-failed" if broken else "")
    else:
        plant = {"kind": "degree", "nodes": keys.nodes, "degree": keys.degree, "one_way": bool(keys.one_way)}
        name = f"n{keys.nodes}-d{keys.degree}" + ("-one-way" if keys.one_way else "")
    raw = {key: getattr(keys, key) for key in _AS_THEY_ARE}
    given = {key: value for key, value in raw.items() if value is not None}
    name += "-hops" if keys.objective == "hops" else ""
    if keys.mix is not None:
        given = {"objective": "mix", **given, "mix": _rows(keys.mix)[0]}
        name += "-mix"
    return keys.instance("topology", TopologyInstance, name, notes=notes, plant=plant, **given)


def _cubes(keys: TopologyKeys) -> tuple[dict[str, Any], list[str]]:
    """The plant of the cubes that are left, and how they are numbered."""
    sides, gone = _numbers(keys.sides or SIDES, "x"), set(_numbers(keys.failed_cubes or "", ","))
    left = [cube for cube in range(keys.cubes or 0) if cube not in gone]
    plant: dict[str, Any] = {"kind": "cubes", "sides": sides, "cubes": len(left)}
    plant |= {"failed": _numbers(keys.failed_switches, ",")} if keys.failed_switches else {}
    each, place = prod(sides), {cube: number for number, cube in enumerate(left)}
    links = [
        [place[node // each] * each + node % each if node // each in place else -1 for node in link]
        for link in _pairs(keys.failed_links or "")
        if not {node // each for node in link} & gone
    ]
    plant |= {"failed_links": links} if links else {}
    words = f"The cubes that are left, {', '.join(map(str, left))}, are numbered from 0 on"
    return plant, [words] if gone else []


def _gone_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Failed cubes and ends of failed links that are not there."""
    cubes, gone = values.get("cubes", 0), _numbers(values.get("failed_cubes", ""), ",")
    for cube in gone:
        if cube >= cubes:
            yield Fault("failed_cubes", f"there is no cube {cube}, the last is {cubes - 1}")
    if gone and len(set(gone)) != len(gone):
        yield Fault("failed_cubes", "a cube stands twice", values["failed_cubes"], True)
    if gone and not set(range(cubes)) - set(gone):
        yield Fault("failed_cubes", "leaves no cube", values["failed_cubes"], True)
    nodes = cubes * prod(_numbers(values.get("sides", SIDES), "x"))
    for node in {node for link in _pairs(values.get("failed_links", "")) for node in link}:
        if node >= nodes:
            yield Fault("failed_links", f"there is no node {node}, the last is {nodes - 1}")


def _rows(text: str) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The rows of a mix, and what is wrong with them: a collective, its bytes and its weight each."""
    rows, faults = list[dict[str, Any]](), list[Fault]()
    for part in text.split(",") if text else ():
        words = part.split(":")
        if len(words) != 3:
            faults.append(Fault("mix", f"{part!r} must be a collective, bytes and weight such as alltoall:64MiB:40%"))
            continue
        collective, size, weight = words
        row: dict[str, Any] = {"collective": collective}
        if collective not in NAMES:
            faults.append(Fault("mix", f"{part!r} has an unknown collective; {one_of(collective, NAMES)}"))
        for key, word, read in (("bytes", size, amounts.whole_bytes), ("weight", weight, _weight)):
            try:
                row[key] = read(word)
            except ValueError as error:
                faults.append(Fault("mix", f"{part!r}, {key}: {error}"))
        rows.append(row)
    return rows, faults


def _weight(text: str) -> float:
    """A number above 0, or percent."""
    number = _NUMBER.fullmatch(text)
    value = float(Fraction(number[1]) / (100 if text.endswith("%") else 1)) if number else 0.0
    if value <= 0:
        raise ValueError("must be a number above 0, or percent")
    return value


def _pairs(text: str) -> list[list[int]]:
    """Pairs of nodes. Raises ``ValueError`` for what is none."""
    found = [_numbers(part, "-") for part in text.split(",")] if text else []
    if any(len(pair) != 2 for pair in found):
        raise ValueError("no pair")
    return found


def _numbers(text: str, separator: str) -> list[int]:
    read = read_int(0)
    return [read(part) for part in text.split(separator)] if text else []
