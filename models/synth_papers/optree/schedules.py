"""Ring, NE and WRHT as circuits that the check replays, beside the steps that are printed for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pandas as pd

from synth.reproduction.collect import Reproduction
from synth_models.optree.check.counts import count_steps
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.leaps import leap_bound
from synth_models.optree.references.published_counts import best_depths
from synth_models.optree.references.published_schedules import exchange_circuits, ring_circuits
from synth_models.optree.references.wrht_schedule import Stages, least_steps, wrht_circuits

NEIGHBOURS = ((16, 1), (16, 2), (64, 64), (512, 64), (1024, 64))
ROUTED = ((5, 2), (7, 1), (16, 2), (64, 4), (64, 64))
TABLES = ((512, 64), (1024, 4), (1024, 16), (1024, 64), (1024, 256), (2048, 64), (4096, 64))
RECORDS_UP_TO = 64  # nodes; larger schedules are replayed here and not kept
CIRCUITS = {"circuits": "on"}
PART = "replayed"
Count = Callable[[str, int, int], int | None]


def ring(nodes: int, wavelengths: int) -> OpTreeInstance:
    """A ring with the paper's times: 4 MiB items, 40 Gbit/s per wavelength, 25 us per step."""
    name = f"ring-{nodes}-w{wavelengths}"
    return OpTreeInstance(name=name, source="synth reproduce optree", nodes=nodes, wavelengths=wavelengths)


def reproduce(page: Reproduction, steps: Count, titles: dict[str, str]) -> None:
    """Both tables; ``steps`` are the counted ones, ``titles`` the names of the methods."""
    _neighbours(page, steps, titles)
    _wrht(page)


def _neighbours(page: Reproduction, steps: Count, titles: dict[str, str]) -> None:
    """Ring and neighbor exchange as circuits, beside their counts."""
    rows = []
    methods = {"ring": CIRCUITS, "neighbor_exchange": CIRCUITS}
    for nodes, wavelengths in NEIGHBOURS:
        here = ring(nodes, wavelengths)
        if nodes <= RECORDS_UP_TO:
            records = page.solve([page.keep(here, PART)], methods, part=PART)
            found = {str(record["method"]): record.value for _, record in records}
        else:
            made = {"ring": ring_circuits(nodes), "neighbor_exchange": exchange_circuits(nodes, wavelengths)}
            found = {method: check_solution(here, circuits).value for method, circuits in made.items()}
        rows += [
            (titles[method], nodes, wavelengths, nodes * (nodes - 1), steps(method, nodes, wavelengths), value)
            for method, value in found.items()
        ]
    columns = ["algorithm", "nodes", "wavelengths", "circuits", "counted steps", "replayed steps"]
    page.table("Ring and NE as schedules", pd.DataFrame(rows, columns=columns))


def _wrht(page: Reproduction) -> None:
    """WRHT's routing as circuits, with the steps of its stages and what its routing takes at least."""
    rows = []
    for nodes, wavelengths in (*ROUTED, *TABLES):
        if nodes <= RECORDS_UP_TO:
            [(_, record)] = page.solve([page.keep(ring(nodes, wavelengths), PART)], {"wrht": CIRCUITS}, part=PART)
            value = round(record.value or 0)
        else:
            value = routed(nodes, wavelengths)[0]
        printed = [count_steps(nodes, wavelengths, "wrht", (variant,)).steps for variant in (1, 2)]
        least = least_steps(nodes, wavelengths, 1) or leap_bound(nodes, wavelengths)
        formula = best_depths(nodes, wavelengths)[0]
        stages = routed(nodes, wavelengths)[1]
        rows.append((nodes, wavelengths, *printed, *stages, value, least, f"{100 * (1 - formula / value):.2f} %"))
    columns = ["nodes", "wavelengths", "printed count", "second count", "collect", "exchange", "broadcast"]
    columns += ["replayed steps", "its routing at least", "OpTree's formula below it"]
    page.table("WRHT's routing as schedules", pd.DataFrame(rows, columns=columns))


@cache
def routed(nodes: int, wavelengths: int) -> tuple[int, Stages]:
    """WRHT's steps as the check replays them (with an exchange at the top), and by stage. Raises ``RuntimeError``
    where the check finds a fault."""
    circuits, stages = wrht_circuits(nodes, wavelengths, 1)
    verdict = check_solution(ring(nodes, wavelengths), circuits)
    if verdict.value is None or verdict.value != sum(stages):
        raise RuntimeError(f"WRHT on {nodes} nodes, {wavelengths} wavelengths: {verdict.faults or stages}")
    return round(verdict.value), stages


def wrht_steps(nodes: int, wavelengths: int) -> tuple[int, int | None, str]:
    """WRHT's steps, replayed; what its routing takes at least; and the steps of its stages in words."""
    value, stages = routed(nodes, wavelengths)
    words = f"{stages.collect} to collect, {stages.exchange} to exchange, {stages.broadcast} to broadcast"
    return value, least_steps(nodes, wavelengths, 1), words


def errata(page: Reproduction) -> None:
    """WRHT's printed count against what its own routing takes, with the smallest rings that show it."""
    value, least, words = wrht_steps(1024, 64)
    printed = count_steps(1024, 64, "wrht", (1,)).steps
    page.erratum(
        "Table 1, WRHT",
        f"1 + ceil((M^t-M)/(M-1)) + (t-1) M^(t-1) steps, M = 2w+1, t levels: {printed} at N = 1024, w = 64.",
        "A level of the broadcast sends a member all N items but its own, not M^(t-1). Where N > M, WRHT's routing "
        "takes N + 1 steps at least, in whatever order: more than Ring (proof in "
        "`synth_models.optree.references.wrht_schedule`).",
        f"N = 1024, w = 64: at least {least} steps; replayed {value}, of these {words}. Smallest rings below what is "
        f"possible: {'; '.join(_smallest())}.",
    )


def _smallest() -> list[str]:
    """The smallest ring, then the fewest wavelengths, on which each printed count is below a proven bound."""
    found = []
    for variant, name, several in ((1, "first count", False), (1, "first count", True), (2, "second count", False)):
        for nodes, wavelengths in ((n, w) for n in range(2, 64) for w in range(1, n)):
            levels = nodes > 2 * wavelengths + 1
            least = least_steps(nodes, wavelengths, variant) or leap_bound(nodes, wavelengths)
            counted = count_steps(nodes, wavelengths, "wrht", (variant,)).steps
            if levels == several and counted < least:
                whose = "its routing" if levels or variant == 2 else "any schedule"
                group = "several groups" if levels else "one group"
                found.append(f"{name}, {group}: N = {nodes}, w = {wavelengths}, {counted} against {least} of {whose}")
                break
    return found
