"""Method ``sharp`` (reference): allreduce over one aggregation tree of switches (SHARP; NCCL's CollNet).

Graham et al.: "Scalable Hierarchical Aggregation Protocol (SHArP)", COM-HPC 2016; the streaming trees of SHARP 2 are
what NCCL's CollNet algorithms use. All ranks' data go up a tree of switches that add, to its root, and the sum down
the same tree, at once: ``M / b`` and the latencies of the way up and down, b being the least bandwidth on it. The root
is the switch with the quickest tree. Where ranks have NICs on several rails, trees that share no link carry a part of
the data each, as a channel of CollNet a rail does: the quickest so many of them. Complexity: a search a switch.
Guarantee: none; other switches' links are idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.switch_trees import hub_routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allreduce",)
LACKING = "sharp needs a switch joined to all ranks over switches that add and copy"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``sharp``."""
    refused = refusal(instance, KNOWN, "sharp")
    if refused is not None:
        return refused
    if len(instance.members) == 1:
        return empty(instance)
    able = instance.machine.abilities.any and instance.switching.mode == "cut_through"
    routes = hub_routes(instance) if able else []
    if not routes:
        return Outcome("unsupported", message=LACKING)
    alone = [(chunks.seconds(instance, _made(instance, [route])), route) for route in routes]
    apart: list[list[int]] = []
    for _, route in sorted(alone):
        if not any(set(route) & set(other) for other in apart):
            apart.append(route)
    made = [_made(instance, apart[:count]) for count in range(1, len(apart) + 1)]
    best = min(made, key=lambda schedule: chunks.seconds(instance, schedule))
    count = len(best.piece_bytes)
    words = f"{count} trees that share no link" if count > 1 else "one tree"
    return Outcome("finished", best, message=f"{words}, the best of {len(routes)}")


def _made(instance: FabricInstance, routes: Sequence[Sequence[int]]) -> Schedule:
    """The data over these trees at once, to each what its slowest link can carry of it."""
    net = instance.machine.network
    rates = [Fraction(float(min(net.bandwidth[e] for e in route))) for route in routes]
    ends = [instance.bytes * rate // sum(rates) for rate in accumulate(rates, initial=Fraction(0))]
    parts = [(end - begin, list(route)) for (begin, end), route in zip(pairwise(ends), routes, strict=True)]
    size, kept = zip(*(part for part in parts if part[0]), strict=True)
    count = len(size)
    return timed(instance, Transfers.of([0] * count, size, range(count), kept, [[]] * count))
