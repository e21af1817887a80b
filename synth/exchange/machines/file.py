"""Machine files (``synth-machine/1``): a machine that was imported, complete, as ``synth make`` takes it.

JSON with the keys ``format``, ``name``, ``source`` (file and format), ``given``, ``assumed``, ``unknown`` and
``left_out`` (lists of texts), ``switching``, ``classes`` (a class of link for each link) and ``network``: ``kind``
"links", ``nodes``, ``names``, ``switches``, ``links`` with ``src``, ``dst``, ``bandwidth`` (bytes/s), ``latency``
(s) and perhaps ``group``, and ``boxes`` (the ranks of every box) where the file knows them. Perhaps also ``box``: the
one box that it is made of, whose ``ports`` are its ways out. It has ``names``, ``switches``, ``links`` with ``class``,
and ``ports`` with ``node`` and ``name``; a bandwidth or latency that nobody stated is not there, ``lanes`` are bonded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from synth.errors import Fault, InputError
from synth.exchange.machines.hardened import unknown_keys
from synth.exchange.machines.machine import Link, Machine, Port, Switching
from synth.instance import parse_json
from synth.text.files import dumps
from synth.text.input_file import InputFile

FORMAT = "synth-machine/1"
MOST_RANKS = 2**20
_TEXTS = ("name", "source", "switching")
_LISTS = ("given", "assumed", "unknown", "left_out")


def as_raw(machine: Machine) -> dict[str, Any]:
    """The machine file's data. Raises ``ValueError`` where a bandwidth or latency is unknown."""
    links: list[dict[str, Any]] = []
    for link in machine.links:
        if link.bandwidth is None or link.latency is None:
            raise ValueError(f"unknown numbers of class {link.kind}: see completion.missing()")
        group = {} if link.group is None else {"group": link.group}
        links.append({"src": link.src, "dst": link.dst, "bandwidth": link.bandwidth, "latency": link.latency, **group})
    return {
        "format": FORMAT,
        "name": machine.name,
        "source": machine.source,
        **{key: list(getattr(machine, key)) for key in _LISTS},
        "switching": machine.switching,
        "classes": [link.kind for link in machine.links],
        "network": {
            "kind": "links",
            "nodes": machine.nodes,
            "names": list(machine.names),
            "switches": sorted(machine.switches),
            "links": links,
            **_positions(machine),
            **({"boxes": [list(ranks) for ranks in machine.boxes]} if machine.boxes else {}),
        },
        **({} if machine.box is None else {"box": _box(machine.box)}),
    }


def _positions(machine: Machine) -> dict[str, Any]:
    """Where the nodes are drawn, if that is known of all."""
    found = [machine.places[name] for name in machine.names if name in machine.places]
    return {"positions": [list(place) for place in found]} if len(found) == machine.nodes else {}


def _box(box: Machine) -> dict[str, Any]:
    """One box and its ways out."""
    return {
        "names": list(box.names),
        "switches": sorted(box.switches),
        "links": [
            {"src": link.src, "dst": link.dst, "class": link.kind, **_numbers(link)}
            | ({} if link.lanes == 1 else {"lanes": link.lanes})
            | ({} if link.group is None else {"group": link.group})
            for link in box.links
        ],
        "ports": [{"node": port.node, "name": port.name, **_numbers(port)} for port in box.ports],
    }


def _numbers(row: Link | Port) -> dict[str, float]:
    """What is known of bandwidth and latency."""
    both = {"bandwidth": row.bandwidth, "latency": row.latency}
    return {key: value for key, value in both.items() if value is not None}


def to_text(machine: Machine) -> str:
    """The machine file's text."""
    return dumps(as_raw(machine)) + "\n"


def read_machine_file(file: InputFile) -> dict[str, Any]:
    """The file's data, its frame checked; the network is the instance's to check. Raises :class:`InputError`."""
    return checked(parse_json(file.data, str(file)), str(file))


def checked(raw: Any, source: str) -> dict[str, Any]:
    """The data of a machine file, its frame checked. Raises :class:`InputError`."""
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(f"is no machine file: format must be {FORMAT!r} (synth import makes them)", source)
    faults = [Fault(key, "must be a text", raw.get(key), key in raw) for key in _TEXTS if not _text(raw.get(key))]
    if _text(raw.get("switching")) and raw["switching"] not in get_args(Switching):
        faults.append(Fault("switching", f"must be one of {', '.join(get_args(Switching))}", raw["switching"], True))
    for key in _LISTS:
        if not isinstance(raw.get(key), list) or not all(isinstance(word, str) for word in raw[key]):
            faults.append(Fault(key, "must be a list of texts", raw.get(key), key in raw))
    network = raw.get("network")
    if not isinstance(network, dict) or network.get("kind") != "links":
        faults.append(Fault("network", "must be an object of the kind links"))
    elif not _rows_of_ranks(network.get("boxes", [])):
        faults.append(Fault("network.boxes", "must be a list of lists of ranks", network["boxes"], True))
    if "box" in raw:
        faults += _box_faults(raw["box"])
    if faults:
        raise InputError(faults, source)
    return raw


def _rows_of_ranks(boxes: Any) -> bool:
    """Whether these are lists of ranks; which there are, the network's own check knows."""
    return isinstance(boxes, list) and all(isinstance(row, list) and all(map(_rank, row)) for row in boxes)


def _rank(value: Any) -> bool:
    return _whole(value, MOST_RANKS)


def _box_faults(box: Any) -> Iterator[Fault]:
    """What is wrong with a box."""
    if not isinstance(box, dict):
        yield Fault("box", "must be an object")
        return
    names, switches = box.get("names"), box.get("switches")
    if not isinstance(names, list) or not all(map(_text, names)) or len(set(names)) < len(names) or not names:
        yield Fault("box.names", "must be a list of texts, each once")
        return
    if not isinstance(switches, list) or not all(_whole(v, len(names)) for v in switches):
        yield Fault("box.switches", f"must be numbers of nodes below {len(names)}")
    for key, ends, word in (("links", ("src", "dst"), "class"), ("ports", ("node",), "name")):
        rows = box.get(key)
        if not isinstance(rows, list) or not rows:
            yield Fault(f"box.{key}", "must be a list of objects")
            continue
        for i, row in enumerate(rows):
            yield from _row_faults(row, f"box.{key}[{i}]", ends, word, len(names))


def _row_faults(row: Any, path: str, ends: tuple[str, ...], word: str, nodes: int) -> Iterator[Fault]:
    if not isinstance(row, dict):
        yield Fault(path, "must be an object")
        return
    yield from unknown_keys(row, (*ends, word, "bandwidth", "latency", "lanes", "group"), f"{path}.")
    for end in ends:
        if not _whole(row.get(end), nodes):
            yield Fault(f"{path}.{end}", f"must be the number of a node below {nodes}", row.get(end), end in row)
    if not _text(row.get(word)):
        yield Fault(f"{path}.{word}", "must be a text", row.get(word), word in row)
    if "group" in row and not _text(row["group"]):
        yield Fault(f"{path}.group", "must be a text", row["group"], True)
    if "lanes" in row and (not _whole(row["lanes"], 2**20) or not row["lanes"]):
        yield Fault(f"{path}.lanes", "must be a whole number", row["lanes"], True)
    for key, least in (("bandwidth", 1e-3), ("latency", 0.0)):
        value = row.get(key, 1.0)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not least <= value <= 1e18:
            yield Fault(f"{path}.{key}", f"must be a number from {least:g} on", value, True)


def _whole(value: Any, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def provenance(raw: dict[str, Any]) -> str:
    """Where a machine comes from, what was given, assumed, unknown and left out, as one text."""
    words = [str(raw["source"])]
    words += [f"{key.replace('_', ' ')}: {'; '.join(raw[key])}" for key in _LISTS if raw.get(key)]
    return ". ".join(words)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
