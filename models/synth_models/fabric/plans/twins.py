"""Plainer questions than an instance with ready times, whose schedules can be timed again for it.

* All ranks are ready at once, and links that late ranks leave are slower, in proportion to the time that is left.
* A broadcast from the rank that is ready last: with time reversed it sums up there, before that rank is ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance, Failed
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.ready import moments

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
    shares = instance.failed.shares
    net = instance.machine.network
    for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True):
        if u in late:
            share = (1 - late[u]).limit_denominator(FINEST)
            shares[u, v] = instance.failed.shares.get((u, v), Fraction(1)) * share
    reduced = tuple((u, v, f"{share.numerator}/{share.denominator}") for (u, v), share in sorted(shares.items()))
    values = {key: getattr(instance.on_time, key) for key in FabricInstance.model_fields}
    failed = Failed(links=instance.failed.links, nodes=instance.failed.nodes, reduced=reduced)
    yield FabricInstance.model_construct(**values | {"failed": failed})
