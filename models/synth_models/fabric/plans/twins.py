"""Other questions, whose schedules can be timed again for an instance: plainer than its own where it has ready times.

* All ranks are ready at once, and links that late ranks leave are slower, in proportion to the time that is left.
* A broadcast from the rank that is ready last: with time reversed it sums up there, before that rank is ready.
* Links within boxes are slower, as an executor leaves them, so that less is planned for these and more for NICs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import permutations

from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance, Failed
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.routes.search import Routes

NEAR = Fraction(21, 20)  # times that bound
MUCH = Fraction(1, 5)  # of the time
FINEST = 1000  # a share's denominator
LEAST = Fraction(1, 50)  # of a rank's time: what is less is no reason to plan otherwise


def rooted_twins(incumbent: Incumbent) -> Iterator[FabricInstance]:
    """The broadcast from the one rank of an allreduce that is ready last, if much of the time is over by then."""
    instance, time = incumbent.instance, incumbent.time
    last = sorted(((moment, rank) for rank, moment in moments(instance.ready).items()), reverse=True)
    if instance.collective != "allreduce" or not time or not last or last[0][0] < time * MUCH:
        return
    if len(last) == 1 or last[1][0] < last[0][0]:
        values = {key: getattr(instance.on_time, key) for key in FabricInstance.model_fields}
        made = FabricInstance.model_construct(**values | {"collective": "broadcast", "root": last[0][1]})
        made.__dict__["machine"] = instance.machine
        yield made


def slower_twins(incumbent: Incumbent) -> Iterator[FabricInstance]:
    """None where no schedule is known yet, or one near the bound for ranks that are ready at once; where nobody is late
    for long, or some rank would be left with no time to send."""
    instance, time = incumbent.instance, incumbent.time
    if not time or time < NEAR * quick_bound(instance.on_time):
        return
    late = {rank: moment / time for rank, moment in moments(instance.ready).items() if moment > time * LEAST}
    if not late or max(late.values()) >= 1 - LEAST:
        return
    net = instance.machine.network
    pairs = [pair for pair in zip(net.src.tolist(), net.dst.tolist(), strict=True) if pair[0] in late]
    yield _slower(instance.on_time, {pair: (1 - late[pair[0]]).limit_denominator(FINEST) for pair in pairs})


def slower_inside(instance: FabricInstance, share: Fraction) -> FabricInstance:
    """The same with that share of the rates of all links on direct routes within boxes and on none between boxes; the
    same instance where there are no such links."""
    box = {rank: number for number, ranks in enumerate(instance.boxes) for rank in ranks}
    routes, net = Routes.of(instance, instance.bytes), instance.machine.network
    within, between = set[tuple[int, int]](), set[tuple[int, int]]()
    for u, v in permutations(instance.members, 2):
        pairs = {(int(net.src[e]), int(net.dst[e])) for e in routes.direct(u, v) or ()}
        (within if box[u] == box[v] else between).update(pairs)
    return _slower(instance, dict.fromkeys(within - between, share)) if within - between else instance


def _slower(instance: FabricInstance, left: Mapping[tuple[int, int], Fraction]) -> FabricInstance:
    """The instance with that much left of links, by their ends, of what is left of them already."""
    known = instance.failed.shares
    shares = known | {pair: known.get(pair, Fraction(1)) * share for pair, share in left.items()}
    reduced = tuple((u, v, f"{share.numerator}/{share.denominator}") for (u, v), share in sorted(shares.items()))
    values = {key: getattr(instance, key) for key in FabricInstance.model_fields}
    failed = Failed(links=instance.failed.links, nodes=instance.failed.nodes, reduced=reduced)
    return FabricInstance.model_construct(**values | {"failed": failed})
