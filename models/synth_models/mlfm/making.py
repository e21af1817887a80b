"""``synth make mlfm``: instances from ``key=value`` texts and from lists of servers and failures in files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import parse, read_json
from synth.options import read_choice, read_float, read_int
from synth.textfile import read_text
from synth_models.mlfm.instance import MLFMInstance

_BLOCK = ("layers", "columns", "servers")
_READERS = {
    "d": read_int(1), "layers": read_int(1), "columns": read_int(1), "servers": read_int(1),
    "routes": read_choice("minimal", "detour"), "bandwidth": read_float(0, exclusive=True),
    "message_bytes": read_float(0, exclusive=True), "latency": read_float(0),
}  # fmt: skip
_FAILED = {"link": ("links", 4), "spine": ("spines", 2), "leaf": ("leaves", 2), "server": ("servers", 3)}


def make(parameters: Mapping[str, str]) -> MLFMInstance:
    """An instance from texts. Raises :class:`InputError` listing every fault.

    ``d=3 layers=2 columns=4 servers=3``, or ``d=4 subset=FILE`` with one server a line (``layer column slot``, commas
    or spaces) or a JSON list of triples. ``failed=FILE`` holds lines ``link LAYER COLUMN A B`` (leaf, then the
    spine's columns), ``spine A B``, ``leaf LAYER COLUMN``, ``server LAYER COLUMN SLOT``, or the JSON object of an
    instance file. Other keys: ``routes=minimal|detour`` (default: detour when links, spines or leaves have failed),
    ``bandwidth``, ``message_bytes``, ``latency``, ``name``.
    """
    source = "synth make mlfm"
    given, faults = dict(parameters), list[Fault]()
    raw: dict[str, Any] = {
        "family": "mlfm",
        "source": f"{source} " + " ".join(f"{k}={v}" for k, v in parameters.items()),
    }
    name, subset, failed = (given.pop(key, None) for key in ("name", "subset", "failed"))
    values: dict[str, Any] = {}
    for key, read in _READERS.items():
        if key in given:
            text = given.pop(key)
            try:
                values[key] = read(text)
            except ValueError as error:
                faults.append(Fault(key, str(error), text, True))
    known_keys = ", ".join((*_READERS, "subset", "failed", "name"))
    faults += [Fault(key, f"unknown parameter; one of {known_keys}", value, True) for key, value in given.items()]
    if "d" not in parameters:
        faults.append(Fault("d", "is missing"))
    named = [key for key in _BLOCK if key in parameters]
    if subset is not None:
        faults += [
            Fault(key, "stands beside subset: the job is a block or a subset", parameters[key], True) for key in named
        ]
        raw["subset"] = _guarded(_subset, subset, faults)
    else:
        missing = [key for key in _BLOCK if key not in parameters]
        faults += [Fault(key, "is missing: layers, columns and servers, or subset=FILE") for key in missing]
        raw["block"] = {key: values[key] for key in _BLOCK if key in values}
    if failed is not None:
        raw["failed"] = _guarded(_failed, failed, faults)
    raw |= {key: value for key, value in values.items() if key not in _BLOCK}
    parts = raw.get("failed") or {}
    raw.setdefault("routes", "detour" if any(parts.get(key) for key in ("links", "spines", "leaves")) else "minimal")
    raw["name"] = name or _default_name(raw, subset, failed)
    if faults:
        # what can still be judged on the rest is reported along with these
        known = {fault.path for fault in faults}
        faults += [fault for fault in MLFMInstance.faults_in(raw) if fault.path.split(".")[-1] not in known
                   and not fault.message.startswith("is missing")]  # fmt: skip
        raise InputError(faults, source)
    instance = parse(raw, MLFMInstance, source)
    assert isinstance(instance, MLFMInstance)
    return instance


def _guarded(read: Any, file: str, faults: list[Fault]) -> Any:
    try:
        return read(Path(file))
    except InputError as error:
        faults += [
            Fault(f"{file}" + (f", {fault.path}" if fault.path else ""), fault.message) for fault in error.faults
        ]
        return None


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Non-empty lines, numbered from 1, cut into words; ``#`` starts a comment."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    cut = [
        (number, re.split(r"[,;\s]+", line.split("#")[0].strip())) for number, line in enumerate(text.splitlines(), 1)
    ]
    return [(number, words) for number, words in cut if words != [""]]


def _json(path: Path, bracket: str) -> Any:
    """The file's JSON when it starts with ``bracket``, else None."""
    try:
        start = read_text(path).lstrip()[:1]
    except (OSError, UnicodeDecodeError):
        return None
    return read_json(path)[0] if start == bracket else None


def _subset(path: Path) -> list[Any]:
    listed = _json(path, "[")
    if listed is not None:
        return list(listed)
    faults, servers = list[Fault](), []
    for position, (number, words) in enumerate(_lines(path)):
        if position == 0 and words == ["layer", "column", "slot"]:
            continue
        if len(words) == 3 and all(re.fullmatch(r"\d+", word) for word in words):
            servers.append([int(word) for word in words])
        else:
            faults.append(Fault(f"line {number}", f"expected layer column slot, got {' '.join(words)!r}"))
    if faults:
        raise InputError(faults)
    return servers


def _failed(path: Path) -> dict[str, Any]:
    listed = _json(path, "{")
    if listed is not None:
        return dict(listed)
    faults, parts = list[Fault](), dict[str, Any]()
    for number, (kind, *rest) in _lines(path):
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


def _default_name(raw: Mapping[str, Any], subset: str | None, failed: str | None) -> str:
    block = raw.get("block") or {}
    name = f"d{raw.get('d')}-" + (
        Path(subset).stem if subset else "n{layers}l{columns}m{servers}".format_map(_Known(block))
    )
    name += f"-{Path(failed).stem}" if failed else ""
    expected = "detour" if failed else "minimal"
    name += f"-{raw['routes']}" if raw["routes"] != expected else ""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100]


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "0"
