"""ForestColl: bounds and trees of its machines, and how long they take to find.

Its seconds are those of its published program (networkx), as recorded in the notes of this project; the machines are
given by rule. Ours: the method `bound` with its certificate, and what `forest` says of its trees. Bandwidths of meshes
and tori do not matter to either.
"""

from __future__ import annotations

import re

import pandas as pd

from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent
from synth_papers.fabric.grid import made, name_of, without_latency
from synth_papers.peers.runs import solved

MIB = 2**20
PRINTED = printed.read(__file__)
MACHINES = {
    "dgx-a100-x2": {"machine": "dgx-a100", "boxes": "2"},
    "torus-8x8": {"network": "torus", "rows": "8", "cols": "8"},
    "mesh-8x8": {"network": "mesh", "rows": "8", "cols": "8"},
    "torus-16x16": {"network": "torus", "rows": "16", "cols": "16"},
}
TREES = re.compile(r"(?P<trees>\d+) trees \((?P<per_root>\d+) a root with multiplicities\) of depth (?P<depth>\d+)")
SECONDS = re.compile(r"rate (?P<rate>[\d.]+), splitting (?P<splitting>[\d.]+), packing (?P<packing>[\d.]+)")


def machines(page: Reproduction) -> None:
    """Bound, trees and their depth, seconds of each part."""
    rows = []
    for name, keys in list(MACHINES.items())[:1] if page.quick else MACHINES.items():
        theirs, size = PRINTED.within(f"forestcoll.{name}"), 256 * MIB
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
                "ForestColl: bound [s]": theirs["bound"].number,
                "ours, certified [s]": round(proven.run_s, 3),
                "ForestColl: trees [s]": theirs["trees"].number if "trees" in theirs else None,
                "ours: trees [s]": round(sum(seconds.values()), 2),
                "trees": int(trees["trees"]),
                "a root": int(trees["per_root"]),
                "depth": int(trees["depth"]),
                "finite schedule, 256 MiB": percent(1 - found.bound / found.value),
            }
        )
    page.table("ForestColl's machines: throughput bound and trees of an allgather", pd.DataFrame(rows))
    page.note(
        "ForestColl: 'trees' are distinct out-trees of all roots together, 'a root' counts multiplicities. The "
        "column 'finite schedule' is what a schedule of 256 MiB in pieces loses against the bound, latency left out on "
        "both sides."
    )
