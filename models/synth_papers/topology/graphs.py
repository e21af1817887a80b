"""Graphs of a degree by their hops: those of the direct-connect paper, and orders of Graph Golf, beside ours."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from synth.api import make
from synth.records.record import Record
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent

PRINTED = printed.read(__file__)
LIMIT_S = 20.0
PART = "graphs"
MANY = {"moves": "1000000", "starts": "6"}
CONNECTED = "Graphs of the direct-connect paper and ours: hops of the farthest and of the mean pair"
GOLF = "Graph Golf 2016: average shortest path length"


class Row(NamedTuple):
    """Nodes of a degree with the methods that are tried, and the method whose depth the paper prints under a key."""

    nodes: int
    degree: int
    one_way: bool
    methods: tuple[str, ...]
    printed: dict[str, str]


ROWS = (
    Row(8, 4, False, ("complete_bipartite",), {"complete_bipartite": "k44"}),
    Row(16, 4, False, ("cartesian_power", "degree_expansion", "circulant"), {"cartesian_power": "torus-4x4"}),
    Row(64, 4, True, ("cartesian_power", "degree_expansion", "line_graph", "kautz"), {}),
    Row(1024, 4, True, ("line_graph", "kautz"), {"kautz": "kautz-1024x4"}),
    Row(1024, 4, False, ("cartesian_power", "degree_expansion", "circulant", "random_regular"), {}),
)


def direct_connect(page: Reproduction) -> str:
    """A row a graph; what is optimal by Moore's levels is called so."""
    rows = []
    for row in ROWS[:2] if page.quick else ROWS:
        bound, found = _solved(page, row.nodes, row.degree, row.one_way, row.methods)
        for method, record in found.items():
            facts = record["verified"]["facts"]
            if key := row.printed.get(method):
                page.compare(PRINTED[f"direct-connect.{key}"], facts["diameter"])
            depth = _least_depth(row)
            rows.append(
                {
                    "nodes": row.nodes,
                    "degree": row.degree,
                    "links": "one way" if row.one_way else "two-way",
                    "by": method,
                    "graph": record["message"] or "",
                    "farthest": facts["diameter"],
                    "at least": depth,
                    "mean": round(facts["average_hops"], 4),
                    "mean at least": round(bound / (row.nodes * (row.nodes - 1)), 4),
                    "optimal": " and ".join(
                        ["farthest"] * (facts["diameter"] == depth) + ["mean"] * (record.value == bound)
                    ),
                }
            )
    page.table(CONNECTED, pd.DataFrame(rows))
    return ""


def golf(page: Reproduction) -> str:
    """A row an order and degree, ours beside the best known and the bound by Moore's levels."""
    rows = []
    for key in list(PRINTED.within("golf"))[: 1 if page.quick else None]:
        nodes, degree = map(int, key.split("-"))
        stated = PRINTED.within("golf")[key]
        bound, found = _solved(page, nodes, degree, False, ())
        facts = found["search"]["verified"]["facts"]
        known, least = float(stated.number), bound / (nodes * (nodes - 1))
        rows.append(
            {
                "nodes": nodes,
                "degree": degree,
                "best known": known,
                "ours": round(facts["average_hops"], 4),
                "farthest": facts["diameter"],
                "at least": round(least, 4),
                "best known above it": percent(known / least - 1),
                "ours above it": percent(facts["average_hops"] / least - 1),
            }
        )
    page.table(GOLF, pd.DataFrame(rows))
    page.note("Graph Golf counts the farthest pair first and the mean after it; ours is searched by the mean alone.")
    return ""


def _solved(
    page: Reproduction, nodes: int, degree: int, one_way: bool, methods: tuple[str, ...]
) -> tuple[float, dict[str, Record]]:
    """The bound by levels, and the records by method, ours with many moves."""
    keys = {"nodes": nodes, "degree": degree, "objective": "hops", "one_way": "on" if one_way else "off"}
    instance, part = page.placed(make("topology", **keys), PART)
    asked = {name: dict[str, str]() for name in ("bound", *methods)} | {"search": MANY}
    found = {record["method"]: record for _, record in page.solve([instance], asked, time_limit=LIMIT_S, part=part)}
    return float(found.pop("bound").bound or 0), found


def _least_depth(row: Row) -> int:
    """The hops within which Moore's levels hold all nodes."""
    reached, new, depth = 1, row.degree, 0
    while reached < row.nodes:
        reached, new, depth = reached + new, new * (row.degree - (not row.one_way)), depth + 1
    return depth
