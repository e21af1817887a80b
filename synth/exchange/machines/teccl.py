"""TE-CCL's input files (JSON with ``TopologyParams``): a name and a few numbers; the links are rules of its program.

Rules as in microsoft/TE-CCL:teccl/topologies/*.py @c128bf2 (by reading), machines *as TE-CCL runs them*, slips
included and told under ``assumed``: NDv2 of two chassis makes GPU 0 a switch; AMD of several has its switch numbers
off by one; DGX2 always has two chassis; its Mesh joins the ends of rows. GPUs are called by its node numbers. DGX1,
AMD and Mesh take their latencies from ``alpha`` (seconds; 0 where the file has none, as there). Sizes, collective
and solver options are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines import cube_mesh
from synth.exchange.machines.hardened import json_object, looks_like_json
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine
from synth.network.links_table import too_large
from synth.text.untrusted import number, whole

KEYS = ("name", "chassis", "chunk_size", "alpha", "side_length", "option")
AMD_LINKS = (  # GPU, GPU, units of 50 GB/s
    (0, 1, 4), (0, 4, 2), (0, 8, 1), (1, 5, 1), (1, 9, 1), (1, 10, 1), (2, 3, 4), (2, 6, 1), (2, 9, 1), (2, 10, 1),
    (3, 7, 2), (3, 11, 1), (4, 5, 4), (4, 6, 1), (5, 6, 1), (5, 7, 1), (6, 7, 4), (8, 9, 4), (8, 12, 2), (9, 13, 1),
    (10, 11, 4), (10, 14, 1), (11, 15, 2), (12, 13, 4), (12, 14, 1), (13, 14, 1), (13, 15, 1), (14, 15, 4),
)  # fmt: skip
Edge = tuple[int, int, float, float]  # from, to, GB/s, seconds


@dataclass(frozen=True)
class Params:
    """What ``TopologyParams`` says."""

    chassis: int
    alpha: tuple[float, float]
    side: int


@dataclass(frozen=True)
class Rules:
    """One topology of TE-CCL: its size, switches and links as functions of the parameters, and what is odd in it."""

    nodes: Callable[[Params], int]
    switches: Callable[[Params], set[int]]
    edges: Callable[[Params], Iterator[Edge]]
    odd: Callable[[Params], str | None] = lambda params: None
    own_alpha: bool = False


def looks_like(text: str) -> bool:
    """Whether a text is such a file."""
    return looks_like_json(text) and '"TopologyParams"' in text


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine as TE-CCL runs it. Raises :class:`InputError` with every fault by its key."""
    raw = json_object(text).get("TopologyParams")
    if not isinstance(raw, dict):
        raise InputError([Fault("TopologyParams", "must be an object", raw, raw is not None)])
    rules, params = _params(raw)
    nodes = rules.nodes(params)
    faults = too_large(nodes, 4 * nodes)
    if faults:
        raise InputError(faults)
    switches = rules.switches(params)
    ranks = [v for v in range(nodes) if v not in switches]
    built = Builder()
    place = {v: built.rank(f"gpu{v}") for v in ranks} | {v: built.switch(f"switch{v}") for v in sorted(switches)}
    for src, dst, rate, latency in rules.edges(params):
        built.link(place[src], place[dst], f"{rate:g}GB/s", rate * 1e9, latency, both=False)
    odd = rules.odd(params)
    if odd:
        built.assumed.append(f"as TE-CCL runs it: {odd}")
    if rules.own_alpha and "alpha" not in raw:
        built.assumed.append("latency 0, TE-CCL's default: TopologyParams has no alpha")
    words = f"TE-CCL {raw['name']}, chassis {params.chassis}" + (
        f", side {params.side}" if raw["name"] == "Mesh" else ""
    )
    return built.machine(name, "teccl", words, "store_and_forward" if switches else "cut_through")


def _params(raw: Mapping[str, Any]) -> tuple[Rules, Params]:
    faults: list[Fault] = [Fault(f"TopologyParams.{str(key)[:40]}", "unknown key") for key in raw if key not in KEYS]
    rules = RULES.get(raw["name"]) if isinstance(raw.get("name"), str) else None
    if rules is None:
        faults.append(
            Fault("TopologyParams.name", f"must be one of {', '.join(RULES)}", raw.get("name"), "name" in raw)
        )
    found = {"chassis": 1, "side_length": 4}
    for key, least, most in (("chassis", 1, 1000), ("side_length", 2, 255)):
        if key in raw:
            try:
                found[key] = whole(raw, key, least, most)
            except ValueError as error:
                faults.append(Fault(f"TopologyParams.{key}", str(error).removeprefix(f"{key} "), raw[key], True))
    alpha = raw.get("alpha", [0.0, 0.0])
    seconds = _latencies(alpha, faults)
    if raw.get("name") == "AMD" and found["chassis"] > 1 and isinstance(alpha, list) and len(alpha) == 1:
        faults.append(Fault("TopologyParams.alpha", "must be a list of two latencies (links, switches)", alpha, True))
    if faults or rules is None:
        raise InputError(faults)
    return rules, Params(found["chassis"], (seconds[0], seconds[1]), found["side_length"])


def _latencies(alpha: Any, faults: list[Fault]) -> list[float]:
    """The latencies of links and of switches in seconds."""
    seconds = [0.0, 0.0]
    if not isinstance(alpha, list) or not 1 <= len(alpha) <= 2:
        faults.append(Fault("TopologyParams.alpha", "must be a list of two latencies (links, switches)", alpha, True))
        return seconds
    for i, value in enumerate(alpha):
        try:
            seconds[i] = number({"value": value}, "value", 0, 1e6)
        except ValueError as error:
            path = f"TopologyParams.alpha[{i}]"
            faults.append(Fault(path, str(error).removeprefix("value "), value, True))
    return seconds


def _both(u: int, v: int, rate: float, latency: float) -> Iterator[Edge]:
    yield u, v, rate, latency
    yield v, u, rate, latency


def _cube_mesh(first: int, latency: float) -> Iterator[Edge]:
    for pairs, rate in ((cube_mesh.DOUBLE, 50.0), (cube_mesh.SINGLE, 25.0)):
        for u, v in pairs:
            yield from _both(first + u, first + v, rate, latency)


def _dgx1(params: Params) -> Iterator[Edge]:
    yield from _cube_mesh(0, params.alpha[0])


def _ndv2(params: Params) -> Iterator[Edge]:
    if params.chassis == 2:
        yield from _cube_mesh(0, 0.7e-6)
        yield from _cube_mesh(8, 0.7e-6)
        yield 8, 1, 12.5, 1.3e-6
        yield 0, 9, 12.5, 1.3e-6
        return
    for c in range(params.chassis):
        yield from _cube_mesh(8 * c + 1, 0.7e-6)
        yield 8 * c + 1, 0, 12.5, 1.3e-6
        yield 0, 8 * c + 2, 12.5, 1.3e-6


def _dgx2(params: Params) -> Iterator[Edge]:
    for first in (0, 17):
        for gpu in range(first + 1, first + 17):
            yield from _both(gpu, first, 125.0, 0.35e-6)
    for first, other in ((1, 18), (18, 1)):
        for odd in range(1, 16, 2):
            yield first + odd, other + odd - 1, 12.5, 2.6e-6


def _amd(params: Params) -> Iterator[Edge]:
    near, far = params.alpha
    several = params.chassis > 1
    for c in range(params.chassis):
        first = 24 * c + 1 if several else 0
        for u, v, units in AMD_LINKS:
            yield from _both(first + u, first + v, 50.0 * units, near)
        for k in range(8 if several else 0):
            rate, latency = (50.0, near) if k == 0 else (25.0, far)
            for gpu in (2 * k, 2 * k + 1):
                yield from _both(first + 16 + k, first + gpu, rate, latency)
            yield from _both(first + 15 + k, 0, 25.0, far)


def _amd_switches(params: Params) -> set[int]:
    return {0} | {24 * c + 16 + k for c in range(params.chassis) for k in range(8)} if params.chassis > 1 else set()


def _mesh(params: Params) -> Iterator[Edge]:
    nodes = params.side**2
    for v in range(nodes):
        for other in dict.fromkeys((v + 1, v + params.side)):
            if other < nodes:
                yield from _both(v, other, 100.0, params.alpha[0])


RULES: Mapping[str, Rules] = {
    "DGX1": Rules(lambda p: 8, lambda p: set(), _dgx1, lambda p: "one box, whatever chassis says"
                  if p.chassis > 1 else None, True),
    "NDv2": Rules(
        lambda p: 16 if p.chassis == 2 else 8 * p.chassis + 1, lambda p: {0}, _ndv2,
        lambda p: "node 0, a GPU, is a switch: 15 GPUs take part" if p.chassis == 2
        else "GPU 1 of a box sends to the one switch, GPU 2 receives from it",
    ),
    "DGX2": Rules(lambda p: 34, lambda p: {0, 17}, _dgx2,
                  lambda p: "two chassis, whatever chassis says" if p.chassis != 2 else None),
    "AMD": Rules(
        lambda p: 24 * p.chassis + 1 if p.chassis > 1 else 16, _amd_switches, _amd,
        lambda p: "switch numbers are off by one: the last GPU of a box is a switch, its last small switch a GPU"
        if p.chassis > 1 else None, True,
    ),
    "Mesh": Rules(lambda p: p.side**2, lambda p: set(), _mesh,
                  lambda p: "the end of a row is joined to the beginning of the next", True),
}  # fmt: skip
