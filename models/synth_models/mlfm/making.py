"""``synth make mlfm``: instances from ``key=value`` and from lists of servers, pairs and failures in files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from synth.errors import Fault, InputError
from synth.instance import parse_json
from synth.making import Bytes, Count, Keys, Rate, Seconds
from synth.text.input_file import InputFile
from synth_models.mlfm.instance import Failed, MLFMInstance

MOST_SHOWN = 6  # failed parts of a kind that a note names
_BLOCK = ("layers", "columns", "servers")
_FAILED = {"link": ("links", 4), "spine": ("spines", 2), "leaf": ("leaves", 2), "server": ("servers", 3)}


class MLFMKeys(Keys):
    """The machine, the job as a block or as a list of servers, and who sends to whom if not all to all.

    A ``subset`` file has one server a line (``layer column slot``, commas or spaces) or a JSON list of triples. A
    ``demand`` file has one pair of servers a line, the sender first: ``layer column slot  layer column slot [count]``,
    or is a JSON list of such rows or of objects with ``source``, ``target`` and ``count``; lines of the same pair add
    up. A ``failed`` file holds lines ``link LAYER COLUMN A B`` (the cable from a leaf to a spine by its columns, both
    directions), ``spine A B``, ``leaf LAYER COLUMN``, ``server LAYER COLUMN SLOT``, or the JSON object of an instance
    file.
    """

    examples = (
        "d=3 layers=2 columns=4 servers=3",
        "d=4 subset=servers.txt failed=broken.txt",
        "d=4 demand=pairs.csv",
    )
    d: Count = Field(description="machine MLFM(d): d layers, d + 1 columns, d servers a leaf")
    layers: Count | None = Field(None, description="of the block of servers")
    columns: Count | None = Field(None, description="of the block of servers")
    servers: Count | None = Field(None, description="of the block, on every leaf")
    subset: InputFile | None = Field(None, description="file with any servers, instead of a block")
    demand: InputFile | None = Field(
        None, description="file with the pairs of servers that send, alone or among the block's or subset's servers"
    )
    failed: InputFile | None = Field(
        None, description="file with failed cables (both directions), spines, leaves, servers"
    )
    routes: Literal["minimal", "detour"] | None = Field(
        None, description="one spine, or also two (default: detour when links, spines or leaves have failed)"
    )
    bandwidth: Rate | None = Field(None, description="of a link, bytes/s")
    message_bytes: Bytes | None = Field(None, description="of every transfer, bytes")
    latency: Seconds | None = Field(None, description="of a link, seconds")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults: list[Fault] = []
        if "subset" in values:
            faults += [
                Fault(key, "stands beside subset: the job is a block or a subset", str(values[key]), True)
                for key in _BLOCK
                if key in values
            ]
            _guarded(_subset, values["subset"], faults)
        elif "demand" not in values or any(key in values for key in _BLOCK):
            faults += [
                Fault(key, "is missing: layers, columns and servers, or subset=FILE, or demand=FILE")
                for key in _BLOCK
                if key not in values
            ]
        if "demand" in values:
            _guarded(_demand, values["demand"], faults)
        if "failed" in values:
            _guarded(_failed, values["failed"], faults)
        return faults


def make(keys: MLFMKeys) -> MLFMInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    raw: dict[str, Any] = {
        key: getattr(keys, key) for key in ("d", "routes", "bandwidth", "message_bytes", "latency") if key in keys.given
    }
    if keys.subset is not None:
        raw["subset"] = keys.subset.once(_subset)
    elif keys.layers is not None:
        raw["block"] = {key: getattr(keys, key) for key in _BLOCK}
    if keys.demand is not None:
        raw["demand"] = keys.demand.once(_demand)
    if keys.failed is not None:
        raw["failed"] = keys.failed.once(_failed)
    parts = raw.get("failed") or {}
    raw.setdefault("routes", "detour" if any(parts.get(key) for key in ("links", "spines", "leaves")) else "minimal")
    return keys.instance("mlfm", MLFMInstance, _name(keys, raw["routes"]), notes=_failed_words(parts), **raw)


def _failed_words(parts: Mapping[str, Any]) -> list[str]:
    """What fails, in one note; none where the file is wrong, which the instance then says."""
    try:
        failed = Failed.model_validate(parts)
    except ValidationError:
        return []
    ids = {
        "cables (both directions)": [
            f"leaf {_place(link.leaf)} <-> spine {_place(link.spine)}" for link in failed.links
        ],
        "spines": [*map(_place, failed.spines)],
        "leaves": [*map(_place, failed.leaves)],
        "servers": [*map(_place, failed.servers)],
    }
    words = [f"{what} {', '.join(every[:MOST_SHOWN])}{_more(every)}" for what, every in ids.items() if every]
    return [f"failed: {'; '.join(words)}"] if words else []


def _place(numbers: Sequence[int]) -> str:
    return ".".join(map(str, numbers))


def _more(every: Sequence[str]) -> str:
    return f", … ({len(every)})" if len(every) > MOST_SHOWN else ""


def _guarded(read: Callable[[InputFile], Any], file: InputFile, faults: list[Fault]) -> None:
    try:
        file.once(read)
    except InputError as error:
        faults += [
            Fault(f"{file}" + (f", {fault.path}" if fault.path else ""), fault.message) for fault in error.faults
        ]


def _lines(file: InputFile) -> list[tuple[int, list[str]]]:
    """Non-empty lines, numbered from 1, cut into words; ``#`` starts a comment."""
    cut = [
        (number, re.split(r"[,;\s]+", line.split("#")[0].strip()))
        for number, line in enumerate(file.text.splitlines(), 1)
    ]
    return [(number, words) for number, words in cut if words != [""]]


def _json(file: InputFile, bracket: str) -> Any:
    """The file's JSON when it starts with ``bracket``, else None."""
    return parse_json(file.data, str(file)) if file.text.lstrip()[:1] == bracket else None


def _subset(file: InputFile) -> list[Any]:
    listed = _json(file, "[")
    if listed is not None:
        return list(listed)
    faults, servers = list[Fault](), []
    for position, (number, words) in enumerate(_lines(file)):
        if position == 0 and words == ["layer", "column", "slot"]:
            continue
        if len(words) == 3 and all(re.fullmatch(r"\d+", word) for word in words):
            servers.append([int(word) for word in words])
        else:
            faults.append(Fault(f"line {number}", f"expected layer column slot, got {' '.join(words)!r}"))
    if faults:
        raise InputError(faults)
    return servers


def _demand(file: InputFile) -> list[dict[str, Any]]:
    """The pairs in the order of their first line, the counts of the same pair added up."""
    listed = _json(file, "[")
    rows = _pair_objects(listed) if listed is not None else _pair_lines(file)
    counts: dict[tuple[int, ...], int] = {}
    for *ends, count in rows:
        counts[tuple(ends)] = counts.get(tuple(ends), 0) + count
    return [{"source": [*ends[:3]], "target": [*ends[3:]], "count": count} for ends, count in counts.items()]


def _pair_lines(file: InputFile) -> list[tuple[int, ...]]:
    faults, rows = list[Fault](), list[tuple[int, ...]]()
    for position, (number, words) in enumerate(_lines(file)):
        if position == 0 and not any(re.search(r"\d", word) for word in words[:1]):
            continue  # a header
        if len(words) in (6, 7) and all(re.fullmatch(r"\d{1,9}", word) for word in words):
            rows.append((*map(int, words), 1)[:7])
        else:
            expected = "expected layer column slot layer column slot [count]"
            faults.append(Fault(f"line {number}", f"{expected}, got {' '.join(words)!r}"))
    if faults:
        raise InputError(faults)
    return rows


def _pair_objects(listed: list[Any]) -> list[tuple[int, ...]]:
    faults, rows = list[Fault](), list[tuple[int, ...]]()
    for index, item in enumerate(listed):
        flat = item
        if isinstance(item, dict) and {"source", "target"} <= item.keys() <= {"source", "target", "count"}:
            ends = (item["source"], item["target"])
            flat = [*ends[0], *ends[1], item.get("count", 1)] if all(isinstance(end, list) for end in ends) else None
        if (
            isinstance(flat, list)
            and len(flat) in (6, 7)
            and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 10**9 for n in flat)
        ):
            rows.append((*flat, 1)[:7])
        else:
            faults.append(Fault(f"[{index}]", "expected 6 or 7 whole numbers or an object with source, target, count"))
    if faults:
        raise InputError(faults)
    return rows


def _failed(file: InputFile) -> dict[str, Any]:
    listed = _json(file, "{")
    if listed is not None:
        return dict(listed)
    faults, parts = list[Fault](), dict[str, Any]()
    for number, (kind, *rest) in _lines(file):
        if kind not in _FAILED:
            faults.append(Fault(f"line {number}", f"expected link, spine, leaf or server, got {kind!r}"))
            continue
        key, count = _FAILED[kind]
        if len(rest) != count or not all(re.fullmatch(r"\d+", word) for word in rest):
            faults.append(Fault(f"line {number}", f"{kind} takes {count} whole numbers, got {' '.join(rest)!r}"))
            continue
        ids = [int(word) for word in rest]
        parts.setdefault(key, []).append({"leaf": ids[:2], "spine": ids[2:]} if kind == "link" else ids)
    if faults:
        raise InputError(faults)
    return parts


def _name(keys: MLFMKeys, routes: str) -> str:
    block = f"n{keys.layers}l{keys.columns}m{keys.servers}"
    name = f"d{keys.d}-" + (keys.subset.stem if keys.subset else block if keys.layers or not keys.demand else "")
    name += ("-" * (name[-1] != "-") + keys.demand.stem) if keys.demand else ""
    name += f"-{keys.failed.stem}" if keys.failed else ""
    expected = "detour" if keys.failed else "minimal"
    name += f"-{routes}" if routes != expected else ""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100]
