"""A mix on 64 nodes of degree 4: every published topology and ours, each with the best schedules that were found."""

from __future__ import annotations

import pandas as pd

from synth.api import make
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent
from synth_models.topology.family import FAMILY
from synth_models.topology.instance import TopologyInstance, suited

PART = "mixes"
NODES, DEGREE = 64, 4
LIMIT_S = 500.0
MIX = "allreduce:1GiB:60%,alltoall:64MiB:40%"
LINKS = {"latency": "50ns", "mix": MIX}
PLANTS = {
    "two-way": {"nodes": NODES, "degree": DEGREE, **LINKS},
    "two-way, on a grid": {"cubes": 1, "sides": "8x8", **LINKS},
    "one way": {"nodes": NODES, "degree": DEGREE, "one_way": "on", **LINKS},
}
TITLE = f"{MIX} on {NODES} nodes of degree {DEGREE}"


def tables(page: Reproduction) -> str:
    """A row a topology, with the gap to what no topology of its links can beat."""
    if page.quick:
        page.skip("the mix: not in the short form")
        return ""
    rows, bounds = list[dict[str, object]](), dict[str, float]()
    for links, keys in PLANTS.items():
        instance = page.keep(make("topology", **keys), PART)
        assert isinstance(instance, TopologyInstance)
        names = [name for name in (*FAMILY.published, "search") if suited(instance, name)]
        if links == "two-way, on a grid":
            names, bounds[links] = ["torus"], bounds["two-way"]  # a topology of 64 nodes and degree 4 as well
        found = list(page.solve([instance], ["bound", *names], time_limit=LIMIT_S, part=PART))
        bounds.setdefault(links, float(found[0][1].bound or 0))
        for _, record in found:
            if record.value is not None:
                rows.append(_row(links, record["method"], record.value, record["verified"]["facts"], bounds[links]))
    table = pd.DataFrame(rows).sort_values(["links", "value"], kind="stable")
    page.table(TITLE, _in_words(table))
    page.note(
        "A mix counts the time of each collective alone on the network, times its share. Bounds hold for every "
        "topology with as many links of a node; the torus on a grid stands beside the two-way ones."
    )
    ours, theirs = (table[(table["links"] != "one way") & (table["by"].eq("search") == own)] for own in (True, False))
    best, other = ours["value"].min(), theirs["value"].min()
    gap = 1 - bounds["two-way"] / best
    return (
        f"Of {NODES} nodes of degree {DEGREE} a mix of allreduce and all-to-all takes {1e3 * best:.3f} ms on ours, "
        f"{1e3 * other:.3f} ms on the best published one. No topology takes less by over {percent(gap)}."
    )


def _row(links: str, by: str, value: float, facts: dict[str, object], bound: float) -> dict[str, object]:
    times = facts["times_s"]
    assert isinstance(times, list)
    of = {"hops": facts["hops"], "diameter": facts["diameter"], "allreduce": times[0], "alltoall": times[1]}
    return {"links": links, "by": by, **of, "value": value, "bound": bound}


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    told = table[["links", "by", "hops", "diameter"]].copy()
    for name in ("allreduce", "alltoall", "value", "bound"):
        told[name] = [f"{1e6 * value:.3f} us" for value in table[name]]
    told["gap"] = [percent(1 - bound / value) for value, bound in zip(table["value"], table["bound"], strict=True)]
    return told
