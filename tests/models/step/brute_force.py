"""Steps by enumeration, from the statement alone: nodes in every order, each as early as its place in that order lets
it. A least end is among these: starts of any timetable, sorted, give an order whose ends are no later."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations
from typing import Any


def duration(node: dict[str, Any], links: dict[str, dict[str, Any]]) -> Fraction:
    """Seconds; a collective's by pieces straight to their ranks."""
    if node["kind"] == "computation":
        return Fraction(node["seconds"])
    link, n = links[node["link"]], len(node["ranks"])
    one = Fraction(node["bytes"]) / Fraction(link["bandwidth"])
    alpha, part = Fraction(link["latency"]), Fraction(n - 1, n)
    if node["collective"] == "send" or (node["collective"] == "broadcast" and n == 2):
        return one + alpha
    if node["collective"] in ("allreduce", "broadcast"):
        return 2 * (one * part + alpha)
    return one * part + alpha


def least_end(raw: dict[str, Any]) -> Fraction:
    """The least end of the step in seconds."""
    links = {link["name"]: link for link in raw["links"]}
    nodes = {node["name"]: node for node in raw["nodes"]}
    long = {name: duration(node, links) for name, node in nodes.items()}
    best = sum(long.values(), Fraction(0))
    for order in permutations(nodes):
        end: dict[str, Fraction] = {}
        free: dict[tuple[Any, ...], Fraction] = {}
        for name in order:
            node = nodes[name]
            if any(other not in end for other in node["after"]):
                break
            if node["kind"] == "computation":
                places = [("stream", node["rank"], node["stream"])]
            else:
                places = [("port", rank, node["link"]) for rank in node["ranks"]]
            start = max([Fraction(0), *(end[k] for k in node["after"]), *(free.get(p, Fraction(0)) for p in places)])
            end[name] = start + long[name]
            free |= dict.fromkeys(places, end[name])
        else:
            best = min(best, max(end.values()))
    return best


def random_step(seed: int) -> dict[str, Any]:
    """A step of 2 or 3 ranks, 2 to 6 nodes, of numbers that are whole in picoseconds or nearly so."""
    draw = random.Random(seed)
    ranks = draw.choice((2, 3))
    links = [{"name": name, "bandwidth": draw.choice((1e9, 3e9)), "latency": draw.choice((0.0, 1e-6))} for name in "ab"]
    nodes: list[dict[str, Any]] = []
    for i in range(draw.randint(2, 6)):
        node: dict[str, Any] = {"name": f"n{i}"}
        if draw.random() < 0.5:
            node |= {"kind": "computation", "rank": draw.randrange(ranks), "stream": draw.choice("xy")}
            node |= {"seconds": draw.choice((1, 2, 3, 5, 8)) * 1e-6}
            own = {node["rank"]}
        else:
            kinds = ("allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "send")
            collective = draw.choice(kinds)
            many = 2 if collective == "send" else draw.randint(2, ranks)
            node |= {"kind": "operation", "collective": collective, "bytes": draw.randrange(0, 12000, 600)}
            node |= {"ranks": sorted(draw.sample(range(ranks), many)), "link": draw.choice("ab")}
            own = set(node["ranks"])
        near = [k for k in nodes if own & set(k.get("ranks", [k.get("rank")]))]
        node["after"] = [k["name"] for k in near if draw.random() < 0.3]
        nodes.append(node)
    return {"format": "synth-instance/1", "family": "step", "name": f"s{seed}", "source": "drawn", "links": links,
            "nodes": nodes}  # fmt: skip
