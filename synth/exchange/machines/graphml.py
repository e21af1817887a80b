"""GraphML, as NetworkX, yEd and Gephi write it; attributes as in :mod:`~synth.exchange.machines.node_link`.

The text is first read by a parser that refuses DTDs and entities, then by NetworkX.
"""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx

from synth.errors import InputError, abridged
from synth.exchange.machines.hardened import root_name, xml_root
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine
from synth.exchange.machines.node_link import graph_machine


def looks_like(text: str) -> bool:
    """Whether a text is such a file: its root is ``graphml``."""
    return root_name(text) == "graphml"


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError`."""
    xml_root(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an attribute without a type is a text
            graph: Any = nx.parse_graphml(text)
    except (nx.NetworkXError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"not valid GraphML: {abridged(str(error) or type(error).__name__, 200)}") from None
    nodes = {f"node {node}": {**data, "id": node} for node, data in graph.nodes(data=True)}
    edges: dict[str, dict[str, Any]] = {}
    for u, v, data in graph.edges(data=True):
        where = f"edge {u}-{v}"
        where = where if where not in edges else f"{where} ({len(edges)})"
        edges[where] = {**data, "source": u, "target": v}
    return graph_machine(nodes, edges, graph.is_directed(), name, "graphml", "GraphML", hints)
