"""ASTRA-sim's analytical network files (YAML): building blocks Ring, FullyConnected and Switch, one a dimension.

NPU numbers: the first dimension runs fastest; a block joins the NPUs that differ in its dimension alone
(MultiDimTopology.cpp). A ring has links both ways, of two NPUs one each way (Ring.cpp); a switch is a node of its
own, so that its latency is paid twice (Switch.cpp). Bandwidth counts 2^30 bytes a "GB", latency nanoseconds
(NetworkFunction.cpp). Read from astra-sim/astra-network-analytical @599a047; the congestion-aware backend simulates
one dimension only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines.hardened import yaml_value
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine
from synth.network.links_table import too_large
from synth.text.amounts import scaled_duration, scaled_rate
from synth.text.untrusted import choice, number, whole

BLOCKS = ("Ring", "FullyConnected", "Switch")
KEYS = ("topology", "npus_count", "bandwidth", "latency")
MOST_DIMENSIONS = 16
MOST_BRACKETS = 256


def looks_like(text: str) -> bool:
    """Whether a text is such a file: its two first keys at the beginning of lines."""
    lines = text.splitlines()
    return all(any(line.startswith(f"{key}:") for line in lines) for key in KEYS[:2])


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError` with every fault."""
    blocks, counts, rates, latencies = _dimensions(_parsed(text))
    npus = math.prod(counts)
    links = sum(
        npus * (count - 1 if block == "FullyConnected" else 2) for block, count in zip(blocks, counts, strict=True)
    )
    faults = too_large(npus + sum(npus // n for b, n in zip(blocks, counts, strict=True) if b == "Switch"), links)
    if faults:
        raise InputError(faults)
    built = Builder()
    for npu in range(npus):
        built.rank(f"npu{npu}")
    stride = 1
    for dim, (block, count) in enumerate(zip(blocks, counts, strict=True)):
        for first in (v for v in range(npus) if v // stride % count == 0):
            _join(built, block, [first + i * stride for i in range(count)], dim, rates[dim], latencies[dim])
        stride *= count
    built.assumed.append("1 GB/s is 2^30 bytes/s, as ASTRA-sim's analytical backend has it")
    words = " x ".join(f"{block} of {count}" for block, count in zip(blocks, counts, strict=True))
    return built.machine(name, "astra-sim", f"ASTRA-sim analytical network, {words}")


def _join(built: Builder, block: str, npus: list[int], dim: int, rate: float, latency: float) -> None:
    kind = f"dim{dim}"
    if block == "Switch":
        switch = built.switch(f"dim{dim}.switch{npus[0]}")
        for npu in npus:
            built.link(npu, switch, kind, rate, latency)
    elif block == "FullyConnected" or len(npus) == 2:
        for u, v in combinations(npus, 2):
            built.link(u, v, kind, rate, latency)
    else:
        for u, v in zip(npus, npus[1:] + npus[:1], strict=True):
            built.link(u, v, kind, rate, latency)


def _parsed(text: str) -> Mapping[str, Any]:
    if any(text.count(sign) > MOST_BRACKETS for sign in ("[", "{", "- ", "? ")):
        raise InputError("holds more lists than such a file needs")  # PyYAML's time grows with the square of the depth
    raw = yaml_value(text)
    if not isinstance(raw, dict):
        raise InputError(f"must hold the keys {', '.join(KEYS)}")
    return raw


def _dimensions(raw: Mapping[str, Any]) -> tuple[list[str], list[int], list[float], list[float]]:
    lists = _lists(raw)
    faults: list[Fault] = []
    found: dict[str, list[Any]] = {key: [] for key in KEYS}
    for dim in range(len(lists["topology"])):
        for key in KEYS:
            try:
                found[key].append(_entry(key, lists[key][dim]))
            except ValueError as error:
                words = str(error).removeprefix("value ")
                faults.append(Fault(f"{key}[{dim}]", words, lists[key][dim], True))
    if faults:
        raise InputError(faults)
    return found["topology"], found["npus_count"], found["bandwidth"], found["latency"]


def _lists(raw: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of the file, by key, of equal length. Raises :class:`InputError`."""
    faults = [Fault(key, "is missing") for key in KEYS if key not in raw]
    faults += [Fault(str(key)[:40], "unknown key") for key in raw if key not in KEYS]
    lists = {key: raw[key] for key in KEYS if key in raw}
    for key, values in lists.items():
        if not isinstance(values, list) or not values:
            faults.append(Fault(key, "must be a list with an entry a dimension, such as [8]", values, True))
        elif len(values) > MOST_DIMENSIONS:
            faults.append(Fault(key, f"has {len(values)} entries; at most {MOST_DIMENSIONS} dimensions are supported"))
    if faults:
        raise InputError(faults)
    if len({len(values) for values in lists.values()}) > 1:
        words = ", ".join(f"{key} {len(values)}" for key, values in lists.items())
        raise InputError(f"the lists must be of equal length, one entry a dimension: {words}")
    return lists


def _entry(key: str, value: Any) -> Any:
    one = {"value": value}
    match key:
        case "topology":
            return choice(one, "value", *BLOCKS)
        case "npus_count":
            return whole(one, "value", 2, 10**6)
        case "bandwidth":
            return scaled_rate(number(one, "value", 1e-9, 1e9), 2**30)
    return scaled_duration(number(one, "value", 0, 1e15), Fraction(1, 10**9))
