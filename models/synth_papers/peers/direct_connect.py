"""Breadth-first broadcast of the direct-connect paper: steps T_L and load T_B, in units of M / B."""

from __future__ import annotations

import re
from fractions import Fraction

import networkx as nx
import pandas as pd

from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made
from synth_papers.peers.runs import changed, solved

KIB = 2**10
PRINTED = printed.read(__file__)
NETWORKS = {"k44": "K4,4", "hypercube-4": "hypercube of 16", "torus-4x4": "torus 4x4", "kautz-1024x4": "Pi(4, 1024)"}
DEGREE = 4  # links of a node, of all of them
SAID = re.compile(r"T_L (?P<steps>\d+), T_B (?P<load>[\d/]+) M/B with B = (?P<rate>[\d.]+) GB/s")


def networks(page: Reproduction) -> None:
    """Printed numbers beside those of our `bfb`, and the certified bound of the network."""
    rows = []
    for name in list(NETWORKS)[:3] if page.quick else NETWORKS:
        stated = PRINTED.within(f"direct-connect.{name}")
        instance = _instance(name)
        found = solved(page, instance, "direct-connect", ("bound", "bfb"), 120.0)
        said = SAID.match(str(found.records["bfb"]["message"]))
        assert said is not None
        ours = Fraction(said["load"]) * DEGREE / Fraction(said["rate"])  # B of a node with all its links
        page.compare(stated["steps"], int(said["steps"]))
        page.compare(stated["load"], float(ours), f"exactly {ours}, printed {stated['load'].value}")
        unit = instance.bytes / (DEGREE * 1e9)
        rows.append(
            {
                "network": NETWORKS[name],
                "ranks": len(instance.members),
                "T_L": int(said["steps"]),
                "T_B [M/B]": str(ours),
                "replayed [M/B]": round(found.value / unit, 6),
                "bound [M/B]": round(found.bound / unit, 6),
                "all our methods [s]": round(found.seconds, 2),
            }
        )
    page.table("Breadth-first broadcast, without latency", pd.DataFrame(rows))


def _instance(name: str) -> FabricInstance:
    shared = {"collective": "allgather", "bandwidth": "1e9", "latency": "0"}
    match name:
        case "hypercube-4":
            return made(network="hypercube", dimension="4", bytes=str(1024 * KIB), **shared)
        case "torus-4x4":
            return made(network="torus", rows="4", cols="4", bytes=str(1024 * KIB), **shared)
        case "kautz-1024x4":
            return made(network="kautz", nodes="1024", degree="4", bytes=str(1024 * KIB), **shared)
    ring = made(network="ring", nodes="8", bytes=str(1024 * KIB), **shared)
    links = [{"src": u, "dst": v, "bandwidth": 1e9, "latency": 0.0}
             for a, b in nx.complete_bipartite_graph(4, 4).edges for u, v in ((a, b), (b, a))]  # fmt: skip
    network = {"kind": "links", "nodes": 8, "switches": [], "links": links}
    return changed(ring, network=network, name="k44-allgather-1MiB")
