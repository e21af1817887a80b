"""What the formats of plain graphs (CSV, node-link JSON, GraphML) share: nodes by name or number, links with numbers
and units, faults by where a link stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from synth.errors import Fault
from synth.exchange.machines.machine import Builder, Hints, Link, Machine, listed
from synth.network.links_table import LinksTable, Row, table_of
from synth.text.visible import visible


def machine_of(
    rows: Iterable[Row],
    nodes: Mapping[str, bool | None],
    hints: Hints,
    name: str,
    format_name: str,
    source: str,
    faults: list[Fault],
) -> Machine:
    """The machine of these links. ``nodes``: all nodes in their order, and whether each is a switch (None: not said).

    Raises :class:`InputError` with ``faults`` (found before) and all found here.
    """
    switches = switches_of(nodes, hints, faults)
    assumed = [] if switches else ["every node is a rank (--switches names those that are not)"]
    return machine_of_table(table_of(rows, nodes, faults), switches, name, format_name, source, assumed)


def machine_of_table(
    table: LinksTable, switches: set[str], name: str, format_name: str, source: str, assumed: Iterable[str]
) -> Machine:
    """The machine of a table of links whose ``switches`` have these names. Raises :class:`InputError`."""
    built, switches = Builder(), set(map(visible, switches))
    for node in table.names:
        built.switch(node) if node in switches else built.rank(node)
    for link in table.links:
        built.add(Link(link.src, link.dst, link.kind, link.bandwidth, link.latency, link.group))
    built.assumed += assumed
    built.boxes = boxes_by_name(table.names, switches)
    if built.boxes:
        built.assumed.append(f"{len(built.boxes)} boxes: the ranks whose names begin alike, up to the /, are one")
    return built.machine(name, format_name, source)


def boxes_by_name(names: Sequence[str], switches: Collection[str]) -> list[tuple[int, ...]]:
    """The ranks by box where every rank is called BOX/NAME, there are several boxes and one has several; else none."""
    found: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name not in switches:
            box, slash, _ = name.partition("/")
            found.setdefault(box if slash else "", []).append(number)
    several = len(found) > 1 and "" not in found and max(map(len, found.values())) > 1
    return [tuple(ranks) for ranks in found.values()] if several else []


def switches_of(nodes: Mapping[str, bool | None], hints: Hints, faults: list[Fault]) -> set[str]:
    """Names of the nodes that a file or a person calls switches."""
    found = {node for node, is_switch in nodes.items() if is_switch}
    for node in hints.switches:
        if node not in nodes:
            faults.append(Fault("--switches", f"no such node; there are {listed(nodes)}", node, True))
        found.add(node)
    return found
