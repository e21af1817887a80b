"""NetworkX node-link JSON (``networkx.node_link_data``): nodes with an ``id``, links (or ``edges``) with source and
target.

Edge attributes: ``bandwidth`` (bytes/s, or with a unit), ``latency`` (s, or with a unit), ``group``, ``class``; node
attributes: ``switch`` (true) or ``kind``/``type`` ("switch", "rank", "gpu"), ``name`` or ``label``, ``pos`` or ``x``
and ``y`` (where it is drawn). An undirected edge is a link each way, the edges of a multigraph are parallel links.
Other attributes are not read, and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines.hardened import json_object, looks_like_json
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine, listed
from synth.exchange.machines.rows import machine_of
from synth.network.links_table import Row, is_switch, position
from synth.text.quantities import counted
from synth.text.visible import visible

OF_EDGES = ("bandwidth", "latency", "group", "class")
OF_NODES = ("switch", "kind", "type", "name", "label", "pos", "x", "y")
ENDS = ("source", "target", "key", "id")


def looks_like(text: str) -> bool:
    """Whether a text is JSON with the keys ``nodes`` and ``links`` or ``edges``."""
    return looks_like_json(text) and '"nodes"' in text and ('"links"' in text or '"edges"' in text)


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError` with every fault by its place."""
    raw = json_object(text)
    key = "links" if "links" in raw else "edges"
    faults = [
        Fault(one, "must be a list of objects", raw.get(one) if one in raw else None, one in raw)
        for one in ("nodes", key)
        if not isinstance(raw.get(one), list) or not all(isinstance(item, dict) for item in raw[one])
    ]
    for flag in ("directed", "multigraph"):
        if not isinstance(raw.get(flag, False), bool):
            faults.append(Fault(flag, "must be true or false", raw[flag], True))
    if faults:
        raise InputError(faults)
    return graph_machine(
        {f"nodes[{i}]": node for i, node in enumerate(raw["nodes"])},
        {f"{key}[{i}]": edge for i, edge in enumerate(raw[key])},
        bool(raw.get("directed", False)),
        name,
        "node-link",
        "NetworkX node-link JSON",
        hints,
    )


def graph_machine(
    nodes: Mapping[str, Mapping[str, Any]],
    edges: Mapping[str, Mapping[str, Any]],
    directed: bool,
    name: str,
    format_name: str,
    words: str,
    hints: Hints,
) -> Machine:
    """The machine of a graph: nodes and edges by where they stand, with ``id`` and ``source``, ``target``.

    Raises :class:`InputError`.
    """
    faults: list[Fault] = []
    names, kinds = _nodes(nodes, faults)
    drawn = {where: position(node, where, faults) for where, node in nodes.items()}
    rows = []
    for where, edge in edges.items():
        ends = []
        for end in ("source", "target"):
            tip = edge.get(end)
            if not _hashable(tip) or tip not in names:
                faults.append(Fault(f"{where}.{end}", "is no node of the file", tip, tip is not None))
            else:
                ends.append(names[tip])
        if len(ends) == 2:
            rows.append(Row(where, ends[0], ends[1], edge, both=not directed))
    if not nodes or not edges:
        faults.append(Fault("", "holds no node" if not nodes else "holds no link"))
    way = "directed" if directed else "undirected"
    source = f"{words}, {counted(len(nodes), 'node')}, {counted(len(edges), f'{way} edge')}"
    machine = machine_of(rows, kinds, hints, name, format_name, source, faults)
    places = {visible(names[node["id"]]): place for where, node in nodes.items() if (place := drawn[where]) is not None}
    return _with_unread(replace(machine, places=places), nodes, edges)


def _nodes(
    nodes: Mapping[str, Mapping[str, Any]], faults: list[Fault]
) -> tuple[dict[Any, str], dict[str, bool | None]]:
    """The names of the nodes by id, and by name whether each is a switch (None: the file does not say)."""
    names: dict[Any, str] = {}
    kinds: dict[str, bool | None] = {}
    for where, node in nodes.items():
        own = node.get("id")
        if not _hashable(own):
            faults.append(Fault(f"{where}.id", "must be a text or a number", own, own is not None))
            continue
        if own in names:
            faults.append(Fault(f"{where}.id", "stands twice", own, True))
            continue
        called = str(node.get("name") or node.get("label") or own)[:100]
        names[own] = called if called not in kinds else f"{called} ({own})"[:110]
        kinds[names[own]] = is_switch(node, where, faults)
    return names, kinds


def _with_unread(
    machine: Machine, nodes: Mapping[str, Mapping[str, Any]], edges: Mapping[str, Mapping[str, Any]]
) -> Machine:
    words = []
    for what, items, known in (("nodes", nodes, (*OF_NODES, "id")), ("edges", edges, (*OF_EDGES, *ENDS))):
        others = dict.fromkeys(str(key)[:40] for item in items.values() for key in item if key not in known)
        if others:
            words.append(f"what these attributes of {what} mean, which are not read: {listed(others)}")
    return replace(machine, unknown=machine.unknown + tuple(words))


def _hashable(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
