"""ForestColl: bounds and trees of its machines, and how long they take to find.

Its seconds are those of its published program (networkx), as recorded in the notes of this project; the machines are
given by rule. Ours: the method `bound` with its certificate, and what `forest` says of its trees. Bandwidths of meshes
and tori do not matter to either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent
from synth_papers.fabric.grid import name_of, without_latency
from synth_papers.peers.runs import made, solved

MIB = 2**20
MACHINES: tuple[tuple[Mapping[str, str], float | None, float | None], ...] = (  # theirs: s to the bound, s to the trees
    ({"machine": "dgx-a100", "boxes": "2"}, 0.6, 15.7),
    ({"network": "torus", "rows": "8", "cols": "8"}, 3.5, 177.0),
    ({"network": "mesh", "rows": "8", "cols": "8"}, 3.0, 90.0),
    ({"network": "torus", "rows": "16", "cols": "16"}, 38.0, None),
)
TREES = re.compile(r"(?P<trees>\d+) trees \((?P<per_root>\d+) a root with multiplicities\) of depth (?P<depth>\d+)")
SECONDS = re.compile(r"rate (?P<rate>[\d.]+), splitting (?P<splitting>[\d.]+), packing (?P<packing>[\d.]+)")


def machines(page: Reproduction) -> None:
    """Bound, trees and their depth, seconds of each part."""
    rows = []
    for keys, to_bound, to_trees in MACHINES[:1] if page.quick else MACHINES:
        size = 256 * MIB
        shape = {} if "machine" in keys else {"bandwidth": "1e9"}
        instance = without_latency(made(**keys, **shape, collective="allgather", bytes=str(size)))
        found = solved(page, instance, "forestcoll", ("bound", "forest"), 60.0, kept=False)
        words = str(found.records["forest"]["message"])
        trees, took = TREES.search(words), SECONDS.search(words)
        assert trees is not None
        assert took is not None
        seconds = {name: float(value) for name, value in took.groupdict().items()}
        proven = found.records["bound"]
        rows.append(
            {
                "machine": name_of(keys),
                "bound [GB/s]": round(size / found.bound / 1e9, 4),
                "ForestColl: bound [s]": to_bound,
                "ours, certified [s]": round(proven.run_s, 3),
                "ForestColl: trees [s]": to_trees,
                "ours: trees [s]": round(sum(seconds.values()), 2),
                "trees": int(trees["trees"]),
                "a root": int(trees["per_root"]),
                "depth": int(trees["depth"]),
                "finite schedule, 256 MiB": percent(1 - found.bound / found.value),
            }
        )
    page.table("ForestColl's machines: throughput bound and trees of an allgather", pd.DataFrame(rows), "forestcoll")
    page.note(
        "ForestColl: 'trees' are distinct out-trees of all roots together, 'a root' counts multiplicities; 'finite "
        "schedule' is what a schedule of 256 MiB in pieces loses against the bound, latency left out on both sides."
    )
