"""Breadth-first broadcast of the direct-connect paper: steps T_L and load T_B, in units of M / B."""

from __future__ import annotations

import re
from fractions import Fraction

import networkx as nx
import pandas as pd

from synth.reproduction.collect import Reproduction
from synth_models.fabric.instance import FabricInstance
from synth_papers.peers.runs import changed, made, solved

KIB = 2**10
WHERE = "direct-connect (NSDI 2025)"
PRINTED = (  # name, T_L, T_B, links of a node
    ("K4,4", 2, Fraction(7, 8), 4),
    ("hypercube of 16", 4, Fraction(15, 16), 4),
    ("torus 4x4", 4, Fraction(15, 16), 4),
    ("Pi(4, 1024)", 5, Fraction(341, 256), 4),
)
SAID = re.compile(r"T_L (?P<steps>\d+), T_B (?P<load>[\d/]+) M/B with B = (?P<rate>[\d.]+) GB/s")


def networks(page: Reproduction) -> None:
    """Printed numbers beside those of our `bfb`, and the certified bound of the network."""
    rows = []
    for name, steps, load, degree in PRINTED[:3] if page.quick else PRINTED:
        instance = _instance(name)
        found = solved(page, instance, "direct-connect", ("bound", "bfb"), 120.0)
        said = SAID.match(str(found.records["bfb"]["message"]))
        assert said is not None
        ours = Fraction(said["load"]) * degree / Fraction(said["rate"])  # B of a node with all its links
        page.compare(WHERE, f"{name}: T_L", steps, int(said["steps"]), "steps")
        page.compare(WHERE, f"{name}: T_B", float(load), float(ours), "M/B", f"exactly {ours}, printed {load}")
        unit = instance.bytes / (degree * 1e9)
        rows.append(
            {
                "network": name,
                "ranks": len(instance.members),
                "T_L": int(said["steps"]),
                "T_B [M/B]": str(ours),
                "replayed [M/B]": round(found.value / unit, 6),
                "bound [M/B]": round(found.bound / unit, 6),
                "all our methods [s]": round(found.seconds, 2),
            }
        )
    page.table("Breadth-first broadcast, without latency", pd.DataFrame(rows), "direct-connect")


def _instance(name: str) -> FabricInstance:
    shared = {"collective": "allgather", "bandwidth": "1e9", "latency": "0"}
    match name:
        case "hypercube of 16":
            return made(network="hypercube", dimension="4", bytes=str(1024 * KIB), **shared)
        case "torus 4x4":
            return made(network="torus", rows="4", cols="4", bytes=str(1024 * KIB), **shared)
        case "Pi(4, 1024)":
            return made(network="kautz", nodes="1024", degree="4", bytes=str(1024 * KIB), **shared)
    ring = made(network="ring", nodes="8", bytes=str(1024 * KIB), **shared)
    links = [{"src": u, "dst": v, "bandwidth": 1e9, "latency": 0.0}
             for a, b in nx.complete_bipartite_graph(4, 4).edges for u, v in ((a, b), (b, a))]  # fmt: skip
    network = {"kind": "links", "nodes": 8, "switches": [], "links": links}
    return changed(ring, network=network, name="k44-allgather-1MiB")
