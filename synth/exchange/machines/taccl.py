"""TACCL's topology files (JSON): ``gpus_per_node``, ``alpha``, and betas by kind of link or by pair of GPUs.

*Custom* files hold matrices ``links``, ``betas``, ``invbws``, row the receiver, column the sender. *Known* ones hold
``node_betas_list`` only; which links there are is chosen on TACCL's command line. One beta means all pairs (its DGX2
and HubAndSpoke), two the hybrid cube mesh of its NDv2 (the first beta for pairs with two NVLinks); anything else is
refused.

Numbers are relative: a beta is the time of a chunk, times in a unit that grows as chunks shrink, and the file states
neither (its name may: ``NDv2_1KB``). They are ``--chunk`` and ``--time-unit``; bandwidth = chunk / (beta * unit).
Links between boxes depend on TACCL's sketch, which is another file. ``invbws`` serve its routing and are not read.
By reading microsoft/taccl:taccl/topologies/generic.py @426bd1e, whose own reader of custom files cannot work as
shipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import permutations
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines import cube_mesh
from synth.exchange.machines.hardened import json_object, looks_like_json, unknown_keys
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine
from synth.text.amounts import LEAST_RATE, MOST_RATE, scaled_duration
from synth.text.untrusted import number, whole

COMMON = ("name", "gpus_per_node", "alpha")
REMOTE = ("nics_per_node", "remote_alpha", "remote_beta", "remote_invbw", "remote_invbws")
LISTS = ("node_betas_list", "node_invbws_list")
MATRICES = ("links", "betas", "invbws")
MOST_GPUS = 1024
MOST_TIME = 1e9


def looks_like(text: str) -> bool:
    """Whether a text is such a file."""
    return looks_like_json(text) and '"gpus_per_node"' in text


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine, one box. Raises :class:`InputError` with every fault by its key."""
    raw = json_object(text)
    custom = any(key in raw for key in MATRICES)
    faults = unknown_keys(raw, (*COMMON, *REMOTE, *LISTS, *MATRICES))
    faults += [Fault(key, "has no meaning beside links, betas, invbws") for key in LISTS if custom and key in raw]
    gpus = _taken(faults, raw, "gpus_per_node", lambda: whole(raw, "gpus_per_node", 1, MOST_GPUS), 0)
    alpha = _taken(faults, raw, "alpha", lambda: number(raw, "alpha", 0, MOST_TIME), 0.0)
    if not isinstance(raw.get("name"), str):
        faults.append(Fault("name", "must be a text", raw.get("name"), "name" in raw))
    for key in REMOTE:
        if key in raw:
            _taken(faults, raw, key, lambda key=key: number(raw, key, -1, MOST_TIME), 0.0)
    betas = list((_custom if custom else _known)(raw, gpus, faults)) if gpus else []
    if faults:
        raise InputError(faults)
    built = Builder()
    for gpu in range(gpus):
        built.rank(f"gpu{gpu}")
    latency = _latency(alpha, hints)
    for src, dst, beta in betas:
        built.link(src, dst, f"beta{beta:g}", _rate(beta, hints), latency, both=False)
    _words(built, raw, custom, hints)
    kind = "custom" if custom else f"known, {len(raw['node_betas_list'])} beta" + "s"[: len(raw["node_betas_list"]) - 1]
    return built.machine(name, "taccl", f"TACCL {raw['name'][:60]} ({kind}), one box")


def _taken(faults: list[Fault], raw: Mapping[str, Any], key: str, take: Any, otherwise: Any) -> Any:
    try:
        return take()
    except ValueError as error:
        faults.append(Fault(key, str(error).removeprefix(f"{key} "), raw.get(key), key in raw))
        return otherwise


def _custom(raw: Mapping[str, Any], gpus: int, faults: list[Fault]) -> Iterator[tuple[int, int, float]]:
    for key in MATRICES:
        rows = raw.get(key)
        if not isinstance(rows, list) or [len(row) if isinstance(row, list) else -1 for row in rows] != [gpus] * gpus:
            faults.append(Fault(key, f"must be {gpus} rows of {gpus} numbers, a row a receiver"))
    if faults:
        return
    for dst in range(gpus):
        for src in range(gpus):
            where = f"[{dst}][{src}]"
            there = _entry(raw["links"][dst][src], f"links{where}", 0, faults)
            beta = _entry(raw["betas"][dst][src], f"betas{where}", 0, faults)
            if not there:
                continue
            if src == dst:
                faults.append(Fault(f"links{where}", "goes from a GPU to itself", there, True))
            elif not beta:
                faults.append(Fault(f"betas{where}", "must be > 0 where there is a link", beta, True))
            else:
                yield src, dst, beta


def _known(raw: Mapping[str, Any], gpus: int, faults: list[Fault]) -> Iterator[tuple[int, int, float]]:
    for key in LISTS:
        if not isinstance(raw.get(key), list) or not raw[key]:
            faults.append(Fault(key, "must be a list of numbers", raw.get(key), key in raw))
    if faults:
        return
    betas = [_entry(beta, f"node_betas_list[{i}]", 1e-12, faults) for i, beta in enumerate(raw["node_betas_list"])]
    if faults:
        return
    if len(betas) == 1:
        for src, dst in permutations(range(gpus), 2):
            yield src, dst, betas[0]
    elif len(betas) == 2 and gpus == cube_mesh.GPUS:
        for pairs, beta in ((cube_mesh.DOUBLE, betas[0]), (cube_mesh.SINGLE, betas[1])):
            for u, v in pairs:
                yield u, v, beta
                yield v, u, beta
    else:
        words = (
            f"{len(betas)} betas for {gpus} GPUs: which links there are is not in the file (one beta: all pairs; two "
        )
        faults.append(Fault("node_betas_list", words + "for 8 GPUs: TACCL's NDv2); write them as links, betas, invbws"))


def _entry(value: Any, path: str, least: float, faults: list[Fault]) -> float:
    try:
        return number({"value": value}, "value", least, MOST_TIME)
    except ValueError as error:
        faults.append(Fault(path, str(error).removeprefix("value "), value, True))
        return 0.0


def _latency(alpha: float, hints: Hints) -> float | None:
    if hints.time_unit_s is None:
        return None
    try:
        return scaled_duration(alpha, Fraction(str(hints.time_unit_s)))
    except ValueError as error:
        raise InputError([Fault("--time-unit", f"times alpha {error}", hints.time_unit_s, True)]) from None


def _rate(beta: float, hints: Hints) -> float | None:
    if hints.chunk_bytes is None or not hints.time_unit_s:
        return None
    rate = float(Fraction(hints.chunk_bytes) / (Fraction(str(beta)) * Fraction(str(hints.time_unit_s))))
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise InputError([Fault("--chunk, --time-unit", f"make a bandwidth of {rate:g} bytes/s, beyond any machine")])
    return rate


def _words(built: Builder, raw: Mapping[str, Any], custom: bool, hints: Hints) -> None:
    size = re.search(r"[0-9]+ ?[KMG]i?B", raw["name"])
    if hints.chunk_bytes is None:
        like = f"; its name says {size[0]}" if size else ""
        built.unknown.append(f"the size of the chunk whose time a beta is (--chunk{like})")
    if hints.time_unit_s is None:
        built.unknown.append("the unit of alpha and beta (--time-unit, such as 1us)")
    if not custom and len(raw["node_betas_list"]) == 1:
        built.assumed.append("every pair of GPUs has a link of its own, as TACCL takes it without a sketch")
    if not custom and len(raw["node_betas_list"]) == 2:
        built.assumed.append("the hybrid cube mesh of TACCL's NDv2, the first beta for pairs with two NVLinks")
    if any(key in raw for key in REMOTE):
        built.unknown.append("which GPUs reach the ports between boxes: that is in TACCL's sketch, not here")
