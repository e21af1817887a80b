"""Two TPU v4 cubes: tori and ours beside what is printed of them and of TONS, whose circuits are here as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from synth.arrays import IntArray
from synth.options import RunOptions
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.schedule.on_links import OnLinks
from synth.text.quantities import percent
from synth_models.topology.check.replay import check_topology
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.parts.links import links_of
from synth_models.topology.parts.routing import routed

PRINTED = printed.read(__file__)
PART = "two-cubes"
LIMIT_S, TIMES_S = 60.0, 240.0
METHODS = ("bound", "torus", "twisted", "search")
ASKED = {"alltoall": (2**28, ("flow",)), "allreduce": (2**20, ("bound", "bfb", "forest"))}
# e2e_tons at aa4dd42, topology_fixtures/tons_128/topo_maps/asc_lp_sym_2c_128r_6p_4x4x8_4x4x4.map: by dimension (theirs
# from the last on) and line, whether the switch joins each cube to the other one
SWAPPED = ("1111 0101 1010 0111", "1101 1011 1101 1110", "1111 0101 1010 1111")


def tables(page: Reproduction) -> str:
    """The loads of an all-to-all beside the printed ones, and the times of two collectives on ours and on TONS's."""
    instance = page.shipped("topology", "cubes-2-4x4x4")
    assert isinstance(instance, TopologyInstance)
    records = {record["method"]: record for _, record in page.solve([instance], METHODS, time_limit=LIMIT_S)}
    value = {name: record.value for name, record in records.items() if record.value is not None}
    bound = float(records["bound"].bound or 0)
    best = min(value.values())
    value["TONS's circuits, our routing"] = theirs = _load(instance, tons())
    for key, ours in (("torus", value["torus"]), ("twisted", value["twisted"]), ("tons", theirs)):
        page.beside(PRINTED[f"load.{key}"], "by our routing", ours)
    rows = [(name, load, percent(1 - bound / load)) for name, load in value.items()]
    page.table("Two cubes: the largest load of an arc", pd.DataFrame(rows, columns=["by", "load", "gap"]))
    if not page.quick:
        circuits = {"ours": records["search"].solution().circuits, "tons": tons()}
        page.table("Two cubes: two collectives", pd.DataFrame(_times(page, instance, circuits)))
        page.note(
            "Their collectives ran in a simulator, over routes without deadlocks and with a delay at each sender; ours "
            "are schedules that the check replays on the links alone."
        )
    return f"Of two TPU v4 cubes ours loads an arc with {best:.4f}, and no topology with less than {bound:.4f}."


def tons() -> IntArray:
    """TONS's circuits, shape (circuits, 3)."""
    swaps = [int(bit) for bit in "".join(SWAPPED) if bit != " "]
    return np.array([(switch, cube, cube ^ swap) for switch, swap in enumerate(swaps) for cube in (0, 1)])


def _load(instance: TopologyInstance, circuits: IntArray) -> float:
    """The load of these circuits by our routing, which the check accepts."""
    found = routed(instance, circuits, RunOptions(TIMES_S))
    verdict = check_topology(instance, found[1]) if found is not None else None
    assert verdict is not None
    assert verdict.value is not None
    return verdict.value


def _times(page: Reproduction, instance: TopologyInstance, of: dict[str, IntArray]) -> Iterator[dict[str, Any]]:
    """A row a network and collective, beside what is printed of TONS."""
    for network, circuits in of.items():
        table = links_of(instance, circuits)
        for collective, (size, methods) in ASKED.items():
            made = OnLinks.of(table, f"two-cubes-{network}-{collective}", collective, size).instance
            kept = page.keep(made, PART)
            found = [one for _, one in page.solve([kept], methods, time_limit=TIMES_S, part=PART)]
            bound, value = max(one.bound or 0.0 for one in found), min(one.value for one in found if one.value)
            said = PRINTED[f"time.{collective}"]
            page.beside(said, f"on {network}", round(1e9 * value, 1))
            yield {
                "circuits": network, "collective": collective, "bytes": size, "time": f"{1e6 * value:.3f} us",
                "bound": f"{1e6 * bound:.3f} us", "gap": percent(1 - bound / value),
                "printed of TONS": f"{said.number / 1e3:.3f} us",
            }  # fmt: skip
