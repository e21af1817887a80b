"""What the formats of plain graphs (CSV, node-link JSON, GraphML) share: nodes by name or number, links with numbers
and units, faults by where a link stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    return built.machine(name, format_name, source)


def switches_of(nodes: Mapping[str, bool | None], hints: Hints, faults: list[Fault]) -> set[str]:
    """Names of the nodes that a file or a person calls switches."""
    found = {node for node, is_switch in nodes.items() if is_switch}
    for node in hints.switches:
        if node not in nodes:
            faults.append(Fault("--switches", f"no such node; there are {listed(nodes)}", node, True))
        found.add(node)
    return found
