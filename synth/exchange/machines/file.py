"""Machine files (``synth-machine/1``): a machine that was imported, complete, as ``synth make`` takes it.

JSON with the keys ``format``, ``name``, ``source`` (file and format), ``given``, ``assumed``, ``unknown`` and
``left_out`` (lists of texts), ``switching``, ``classes`` (a class of link for each link) and ``network``: ``kind``
"links", ``nodes``, ``names``, ``switches``, ``links`` with ``src``, ``dst``, ``bandwidth`` (bytes/s), ``latency``
(s) and perhaps ``group``.
"""

from __future__ import annotations

from typing import Any, get_args

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import Machine, Switching
from synth.instance import parse_json
from synth.text.files import dumps
from synth.text.input_file import InputFile

FORMAT = "synth-machine/1"
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
        },
    }


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
    if faults:
        raise InputError(faults, source)
    return raw


def provenance(raw: dict[str, Any]) -> str:
    """Where a machine comes from, what was given, assumed, unknown and left out, as one text."""
    words = [str(raw["source"])]
    words += [f"{key.replace('_', ' ')}: {'; '.join(raw[key])}" for key in _LISTS if raw.get(key)]
    return ". ".join(words)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
