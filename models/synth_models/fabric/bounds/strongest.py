"""The strongest proven lower bound on the completion time (method ``bound``).

Throughput, latency and what is left after the first arrival (:mod:`synth_models.fabric.bounds.cuts`), concurrent flow
(:mod:`synth_models.fabric.bounds.concurrent_flow`), the messages of an allreduce
(:mod:`synth_models.fabric.bounds.gossip`), sums in switches that add slowly
(:mod:`synth_models.fabric.bounds.sum_rates`), direct and relayed deliveries of short messages
(:mod:`synth_models.fabric.bounds.deliveries`), the last transfers from afar
(:mod:`synth_models.fabric.bounds.near_goals`), what late ranks alone have
(:mod:`synth_models.fabric.bounds.late_cuts`), and flows over time (:mod:`synth_models.fabric.bounds.flow_moments`):
each is tried where it says something, every one starts from what the ones before have proven, and the best is handed
over with its certificate, which the check verifies with code of its own. What its share of the time ended is tried once
more in what the others left of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule.collective import REDUCING
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours, colours, finer
from synth_models.fabric.bounds.concurrent_flow import strongest_prices
from synth_models.fabric.bounds.cuts import strongest_cut
from synth_models.fabric.bounds.deliveries import strongest_deliveries
from synth_models.fabric.bounds.flow_moments import Arcs, strongest_moments
from synth_models.fabric.bounds.gossip import pays_its_way, strongest_gossip
from synth_models.fabric.bounds.late_cuts import strongest_late_cut
from synth_models.fabric.bounds.late_parts import strongest_late_parts
from synth_models.fabric.bounds.near_goals import strongest_near_goals
from synth_models.fabric.bounds.orbit_moments import strongest_orbit_moments
from synth_models.fabric.bounds.own_part import latest_own_part
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.scenarios import strongest_of_scenarios
from synth_models.fabric.bounds.senders import strongest_senders
from synth_models.fabric.bounds.several import strongest_of_several
from synth_models.fabric.bounds.sum_rates import strongest_sum_rates
from synth_models.fabric.bounds.traffic import shares_of_traffic
from synth_models.fabric.bounds.traffic_cuts import cuts_of_traffic
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.box_data import caution
from synth_models.fabric.problem.box_machine import MachineSpec
from synth_models.fabric.problem.exact import float_below

SHARE = 0.4  # of the time that is left, for every argument but the last
MANY = 256  # members from which on prices of deliveries take longer than there is time
UNLIMITED_S = 600.0  # each argument's time where the run has no limit

Search = Callable[[Callable[[], bool], Proven], Proven]


def strongest(instance: FabricInstance, options: RunOptions, loads: bool = False) -> Proven:
    """The strongest bound that is found within the time limit; of one that says how much links carry, from when on and
    until when, if only ``loads`` are asked for."""
    if instance.collectives is not None:
        return strongest_of_several(instance, options, strongest)
    if instance.scenarios is not None:
        return strongest_of_scenarios(instance, options, strongest)
    if not len(instance.blocks):
        return NOTHING
    links = Links.of(instance)
    if instance.traffic is not None:
        return _of_traffic(links, options)
    look = finer(links, colours(links))
    found: list[Search] = [lambda more, _: strongest_cut(links, look, more), *searches_of_loads(instance, links, look)]
    found += [] if loads else searches(instance, links, look)
    found.insert(1, lambda _, best: latest_own_part(links, best))
    if instance.ready is not None:
        found.insert(1, lambda more, best: strongest_late_cut(links, more, best))
    best, ended = NOTHING, list[Search]()
    for search in found:
        if best is not NOTHING and options.out_of_time():
            break
        part = options.part(1.0 if search is found[-1] else SHARE, most_s=UNLIMITED_S)
        best = _stronger(search, best, options, part)
        if part.remaining() == 0.0:
            ended.append(search)
    for search in ended if options.time_limit_s is not None else ():
        if options.out_of_time():
            break
        best = _stronger(search, best, options, options.part())
    return best


def _of_traffic(links: Links, options: RunOptions) -> Proven:
    """The strongest bound of blocks with several holders and wanters."""
    part = options.part(SHARE, most_s=UNLIMITED_S)
    best = _stronger(lambda more, _: cuts_of_traffic(links, more), NOTHING, options, part)
    rest = options.part(most_s=UNLIMITED_S)
    seconds = min(UNLIMITED_S, rest.remaining() or 0.0) if options.time_limit_s is not None else UNLIMITED_S
    return _stronger(lambda _, known: shares_of_traffic(links, seconds, known), best, options, rest)


def _stronger(search: Search, best: Proven, options: RunOptions, part: RunOptions) -> Proven:
    """The bound of this search if it proves more than ``best``, in a part of the run's time; the run holds it."""
    with part.in_time():
        found = search(lambda: not part.out_of_time(), best)
        best = found if found.seconds > best.seconds or best is NOTHING else best
        options.progress.note(None, float_below(best.seconds))
        options.held.offer_bound(float_below(best.seconds), str(best), best.certificate())
    return best


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``bound``: prove, schedule nothing."""
    began = time.monotonic()
    best = strongest(instance, options)
    return Outcome(
        "finished",
        bound=float_below(best.seconds),
        bound_proof=str(best),
        certificate=best.certificate(),
        message=_caution(instance),
        solve_s=time.monotonic() - began,
    )


def _caution(instance: FabricInstance) -> str | None:
    """What a named machine's file leaves out that would make a bound lower."""
    spec = instance.network
    return caution(spec.name) if isinstance(spec, MachineSpec) and not instance.special_switches else None


def searches_of_loads(instance: FabricInstance, links: Links, look: Colours) -> list[Search]:
    """What is tried behind cuts of what links carry: functions of ``more()`` and of what is known so far."""
    if instance.collective not in (*REDUCING, "allgather", "broadcast"):
        return [lambda more, best: strongest_prices(links, look, more, best)]
    if instance.collective != "allreduce":
        return []
    gossip = [lambda more, best: strongest_gossip(links, look, more, best)]
    rates = [lambda _, best: strongest_sum_rates(links, look, best)]
    late = [lambda _, best: strongest_late_parts(links, look, best)]
    return [*gossip, *rates, lambda _, best: strongest_senders(links, look, best), *late]


def searches(instance: FabricInstance, links: Links, look: Colours) -> list[Search]:
    """What is tried behind these of when it does."""
    found: list[Search] = []
    if instance.collective not in (*REDUCING, "allgather", "broadcast"):
        return found
    if pays_its_way(links) and links.delay.any():
        several = Arcs.of(links) is None  # distances, which single arrivals see less of
        found.append(lambda more, best: strongest_orbit_moments(links, more, best) if several else best)
        near = [lambda more, best: strongest_near_goals(links, more, best)]
        delivered = [lambda more, best: strongest_deliveries(links, look, more, best)]
        found += [*near, *delivered] if len(links.members) > MANY else [*delivered, *near]
        found.append(lambda more, best: strongest_moments(links, more, best))
        found.append(lambda more, best: best if several else strongest_orbit_moments(links, more, best))
    elif instance.switching.mode == "cut_through" and links.delay.any():
        found.append(lambda more, best: strongest_orbit_moments(links, more, best))
    return found
