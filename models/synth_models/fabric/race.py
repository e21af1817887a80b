"""The race: which methods lend their schedules to which, how long each may take, and who is credited.

A method of :data:`ENTRIES` runs in a race of its own: those that lend it a schedule run first, it improves the best of
these or makes its own, and those that it is compared with run last. The quickest schedule wins, and the outcome's
``made_by`` names its maker. All others run alone. No other module calls a method; a method sees what others made as the
:class:`~synth_models.fabric.plans.incumbent.Incumbent` that it is handed.

The record of a race is that of the method that was asked for, so its address, ``--resume`` and studies are the same
whoever wins, and no run depends on what another has left on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, cast

from synth.clock.deadline import OutOfTime
from synth.errors import SizeLimitError, UnsupportedError
from synth.family import get_family
from synth.method import Method, Outcome, Target, load
from synth.options import RunOptions
from synth.plugins.returned import called, outcome
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.first_schedule import hold_first, unless_held_is_quicker
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.joint_timing import FOR_PARTS, solve_parts
from synth_models.fabric.plans.twins import rooted_twins, slower_inside, slower_twins
from synth_models.fabric.problem.reach import COLLECTIVES_OF, OF_READY, knows
from synth_models.fabric.routes.box_routes import boxes_are_alike
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.late_start import late_schedules
from synth_models.fabric.scheduling.mirrored import up_and_down
from synth_models.fabric.scheduling.one_plan import must_be_replayed, plans
from synth_models.fabric.scheduling.renumbered import slowed
from synth_models.fabric.solution import Schedule, expanded

UNLIMITED_S = 600.0  # of which a lender of a run without limit may take its share
WHOLE, THIRD, FIFTH, EACH = 1.0, 0.3, 0.2, 0.4  # of the time that is left, for a lender
OWN = 0.9  # of it, for a method that others are compared with
ON_TIME = 0.6  # of it, for a method's schedule of ranks that are all ready at once
BOUND = 0.15  # of it, for the bound at which a race with a certified one ends
MOST_DELIVERIES = 16_000  # beyond which only rings are compared with ``pull``: others take as long as all the rest
MOST_MEMBERS = 32  # up to which all that libraries run is quick
MOST_LAPPED = 128  # up to which rings are compared with ``symmetric``, trees with ``in_network``
MOST_UNLIKE = 128  # up to which two_level is where boxes do not see the same, as behind leaf switches
FAR = Fraction(5, 2)  # times a quick bound, from which on two_level is compared whatever the machine: GPUs share a NIC
TOGETHER = 30_000  # transfers of all collectives, so that they are timed again in many ways
NO_LIMIT = 10**12  # transfers
IN_USE = ("direct", "double_tree", "two_level", "recursive_doubling", "pat", "bruck", "ring")
OURS = ("hierarchical", "forest", "flow", "pull")
ALIKE_ONLY = "continuous knows switches that are all alike and add nothing"
Lenders = Callable[[Incumbent], Sequence[str]]


def _none(incumbent: Incumbent) -> Sequence[str]:
    return ()


def _beside_pull(incumbent: Incumbent) -> Sequence[str]:
    """What libraries run, so that ``pull`` is never slower; where schedules are large only the rings."""
    instance = incumbent.instance
    wide = (instance.blocks.goal < 0) | (instance.blocks.origin < 0)
    deliveries = int(wide.sum()) * (len(instance.members) - 1) + int((~wide).sum())
    usual = ("direct", "ring", "recursive_doubling", "double_tree", "bruck", "pat", "two_level")
    return usual if deliveries <= MOST_DELIVERIES else ("ring",)


def _before_hierarchical(incumbent: Incumbent) -> Sequence[str]:
    """``forest`` for an allreduce on few boxes of unequal size, which wait for the smallest if all sum up equal parts,
    as its NICs carry more than the buffer."""
    instance = incumbent.instance
    few = len(instance.members) <= MOST_MEMBERS
    unequal = len(set(map(len, instance.boxes))) > 1
    return ("forest",) if instance.collective == "allreduce" and few and unequal else ()


def _beside_hierarchical(incumbent: Incumbent) -> Sequence[str]:
    """What libraries run where that is quick or much may be won; all where there is nothing else."""
    instance = incumbent.instance
    if incumbent.best is None or len(instance.members) <= MOST_MEMBERS:
        return IN_USE
    unlike = len(instance.members) <= MOST_UNLIKE and not boxes_are_alike(instance.machine, instance.boxes)
    far = incumbent.time is not None and incumbent.time > FAR * quick_bound(instance)
    return ("two_level",) if unlike or far else ()


def _beside_symmetric(incumbent: Incumbent) -> Sequence[str]:
    """Rings, where once around takes less than what there is: of many bytes they end a few latencies sooner."""
    instance = incumbent.instance
    n, net = len(instance.members), instance.machine.network
    around = (n - 1) * float(net.latency.min(initial=0.0))
    short = incumbent.time is None or around < incumbent.time
    return ("ring",) if 1 < n <= MOST_LAPPED and instance.the_root is None and short else ()


def _beside_in_network(incumbent: Incumbent) -> Sequence[str]:
    """Trees between boxes, whose many pairs load NICs as evenly and fill sooner."""
    instance = incumbent.instance
    return ("nvls",) if 2 < len(instance.boxes) < len(instance.members) <= MOST_LAPPED else ()


@dataclass(frozen=True)
class Entry:
    """How a method takes part in its race.

    ``own`` takes the instance, the run's options and the incumbent. ``first`` lends it a schedule before the bound is
    looked for, ``before`` behind that, ``beside`` is compared with it; each lender has its ``share`` of the time left.
    ``certified``: the race ends at the strongest bound with a certificate instead of a quick one.
    ``waits``: the words for what did not end where a first schedule stands in. ``refuses``: why it does not take an
    instance at all.
    """

    own: Target
    first: tuple[str, ...] = ()
    before: Lenders = _none
    beside: Lenders = _none
    share: float = THIRD
    certified: bool = False
    waits: str = ""
    refuses: Callable[[FabricInstance], str | None] = lambda _: None


_HERE = "synth_models.fabric."
ENTRIES = {
    "pull": Entry(_HERE + "references.pull.method:propose", beside=_beside_pull, share=WHOLE, waits="the first search"),
    "hierarchical": Entry(
        _HERE + "references.hierarchical.method:propose", before=_before_hierarchical, beside=_beside_hierarchical
    ),
    "symmetric": Entry(_HERE + "references.symmetric.method:propose", beside=_beside_symmetric, share=WHOLE),
    "in_network": Entry(_HERE + "references.in_network.method:propose", beside=_beside_in_network, share=WHOLE),
    "continuous": Entry(
        _HERE + "programs.continuous.method:propose",
        ("pull",),
        before=lambda _: ("forest", "flow", "bfb", "epochs"),
        share=FIFTH,
        certified=True,
        refuses=lambda instance: ALIKE_ONLY if instance.special_switches else None,
    ),
    "flow": Entry(_HERE + "programs.flow.method:propose", ("slots",), waits="the flow"),
    "forest": Entry(_HERE + "programs.forest.method:propose", waits="the packing of trees"),
}


def call(name: str, instance: FabricInstance, options: RunOptions) -> Outcome:
    """Run the method of this name, with its own defaults for what the ``options`` do not say."""
    method = get_family("fabric").method(name)
    given = {one.name: options.method.get(one.name, one.default) for one in method.parameters}
    return method.load()(instance, replace(options, method=given, solver=None))


def race(name: str, instance: FabricInstance, options: RunOptions) -> Outcome:
    """The race of the method of this name. Raises :class:`UnsupportedError` where nobody has a schedule."""
    entry = ENTRIES[name]
    if instance.collectives is not None:
        return solve_parts(instance, options, name, partial(race, name))
    refused = entry.refuses(instance)
    if refused:
        return Outcome("unsupported", message=refused)
    if options.method.get("inner_rate"):
        return _balanced(name, instance, options)
    incumbent, lent = Incumbent(instance, options), list[Outcome]()
    if not len(instance.blocks) or not knows(name, instance.collective):
        return _own(entry, incumbent)
    if entry.waits:
        hold_first(instance, options, entry.waits)
    lent += _lent(incumbent, entry.first, WHOLE)
    if entry.certified:
        _prove(incumbent)
    lent += _lent(incumbent, entry.before(incumbent), entry.share)
    found, lacking = Outcome("unsupported"), None
    try:
        found = _own(entry, incumbent)
    except UnsupportedError as error:
        lacking = error
    if found.termination == "unsupported" and lacking is None:
        return found
    found = unless_held_is_quicker(instance, options, found) if entry.waits else found
    incumbent.offer(found.solution, found.message or name, found.made_by)
    lent += _lent(incumbent, entry.beside(incumbent), entry.share)
    if incumbent.best is None and lacking is not None:
        raise lacking
    return _ended(incumbent, found, lent)


def lifted(method: Method, own: Callable[..., Any]) -> Callable[[FabricInstance, RunOptions], Outcome]:
    """The method's ``own`` function, which may leave ready times to :func:`_late`."""
    return own if method.kind == "bound" else partial(_lifted, method, own)


def _lifted(method: Method, function: Callable[..., Any], instance: FabricInstance, options: RunOptions) -> Outcome:
    """What the method makes: of scenarios, and of ready times that it does not plan for, by :func:`_late`."""
    if instance.traffic is not None and not knows(method.name, instance.collective):
        takers = ", ".join(name for name, known in COLLECTIVES_OF.items() if instance.collective in known)
        return Outcome("unsupported", message=f"{method.name} takes no blocks with several holders; {takers} do")
    late = instance.ready is not None and method.name not in OF_READY and instance.traffic is None
    if instance.scenarios is None and not late:
        plain: Outcome = called(method, function, instance, options)
        return plain
    return _late(method, function, instance, options)


def _late(method: Method, function: Callable[..., Any], instance: FabricInstance, options: RunOptions) -> Outcome:
    """The method's schedules for plainer questions (:mod:`synth_models.fabric.plans.twins`), first that all ranks are
    ready at once, each timed again for when they are, or as the plan of all scenarios."""
    must_be_replayed(instance)
    incumbent, first = Incumbent(instance, options), Outcome("time_limit")
    for twin in chain([instance.on_time], rooted_twins(incumbent), slower_twins(incumbent)):
        own, found = options.part(ON_TIME), Outcome("time_limit", message="stopped at the time limit")
        try:
            with own.in_time():
                found = outcome(method, function, twin, own)
        except (UnsupportedError, SizeLimitError):
            if twin is instance.on_time:
                raise
            continue
        found.take_over(own.held)
        first = found if twin is instance.on_time else first
        for words, made in _again(instance, twin, found):
            incumbent.offer(made, f"{found.message or method.name}; {words}", found.made_by)
    ended, told = "finished" if first.termination == "optimal" else first.termination, incumbent.told or first.message
    return replace(
        first, termination=ended, solution=incumbent.best, message=told, made_by=incumbent.made_by, beaten=()
    )


def _again(instance: FabricInstance, twin: FabricInstance, found: Outcome) -> Iterator[tuple[str, Schedule]]:
    """What is made of a schedule for a plainer question, in words. Raises as :func:`plans`."""
    whole = None if found.solution is None else expanded(twin, found.solution)
    if whole is not None and twin.collective != instance.collective:
        twin, whole = instance.on_time, up_and_down(instance.on_time, whole)
    if whole is not None:
        yield from plans(instance, whole) if instance.scenarios else late_schedules(instance, whole, twin)


def _balanced(name: str, instance: FabricInstance, options: RunOptions) -> Outcome:
    """The race where links within boxes have ``inner_rate`` percent of their rates; what wins is timed again for those
    that they have, and what bounds were found there say nothing here."""
    percent, plain = options.method["inner_rate"], dict(options.method) | {"inner_rate": None}
    twin = slower_inside(instance, Fraction(percent, 100))
    if twin is instance:
        return race(name, instance, replace(options, method=plain))
    own, found = replace(options.part(OWN), method=plain), Outcome("time_limit", message="stopped at the time limit")
    with own.in_time():
        found = race(name, twin, own)
    found.take_over(own.held)
    whole = None if found.solution is None else expanded(twin, found.solution)
    made = None if whole is None else slowed(whole, twin, instance)
    ended = "finished" if found.termination == "optimal" else found.termination
    ended = "unsupported" if made is None and whole is not None else ended
    words = f"{found.message or name}; links within boxes planned at {percent} %"
    found = replace(found, bound=None, bound_proof=None, certificate=None, beaten=())
    return replace(found, termination=ended, solution=made, message=words)


def _own(entry: Entry, incumbent: Incumbent) -> Outcome:
    """What the method makes itself. Those that are compared with it have a part of the time left for them, whatever it
    takes."""
    propose, whole = load(entry.own), incumbent.options
    if not entry.beside(incumbent):
        alone: Outcome = propose(incumbent.instance, whole, incumbent)
        return alone
    incumbent.options = replace(whole.part(OWN), progress=whole.progress, held=whole.held)
    found = Outcome("time_limit", message="stopped at the time limit")
    try:
        with incumbent.options.in_time():
            found = propose(incumbent.instance, incumbent.options, incumbent)
    finally:
        incumbent.options = whole
    found.take_over(whole.held)
    incumbent.hurried = False
    return found


def _prove(incumbent: Incumbent) -> None:
    from synth_models.fabric.bounds.strongest import strongest

    incumbent.prove(strongest(incumbent.instance, incumbent.options.part(BOUND, most_s=UNLIMITED_S * BOUND)))


def _lent(incumbent: Incumbent, names: Sequence[str], share: float) -> Iterator[Outcome]:
    """Offer the schedule of each of these methods, until the incumbent is near enough to a bound, or out of time."""
    for name in names:
        if incumbent.best is not None and not incumbent.least:
            incumbent.least = quick_bound(incumbent.instance)
        if incumbent.over():
            return
        if not knows(name, incumbent.instance.collective) or name not in get_family("fabric").methods:
            continue  # a peer's method is there if its distribution is
        own, found = incumbent.options.part(share, most_s=UNLIMITED_S), Outcome("time_limit")
        try:
            with own.in_time():
                found = call(name, incumbent.instance, _asked(own))
        except (UnsupportedError, SizeLimitError):
            continue
        found.take_over(own.held)
        maker = found.made_by or (name,)
        incumbent.lent += [found, *found.beaten]
        incumbent.offer(found.solution, f"as {maker[0]}: {found.message}" if found.message else f"as {maker[0]}", maker)
        yield found


def _asked(options: RunOptions) -> RunOptions:
    """What a lender is asked too: no more transfers. All other options are the borrower's own."""
    asked = {key: value for key, value in options.method.items() if key == "transfers"}
    return replace(options, method=asked)


def _ended(incumbent: Incumbent, found: Outcome, lent: Sequence[Outcome]) -> Outcome:
    """The outcome with the quickest schedule, its maker, and the highest certified bound."""
    proven = [one for one in (found, *lent) if one.bound is not None and one.certificate is not None]
    highest = max(proven, key=lambda one: one.bound or 0.0, default=found)
    if found.bound is None and highest.bound is not None:
        found = replace(found, bound=highest.bound, bound_proof=highest.bound_proof, certificate=highest.certificate)
    found = replace(found, beaten=tuple(one for one in (found, *lent) if one.solution is not incumbent.best))
    if incumbent.best is None or incumbent.made_by is None:
        return found
    if found.solution is not None and found.made_by == incumbent.made_by:
        return found  # it improved nothing, and says so itself
    ended = "finished" if found.termination == "unsupported" else found.termination
    words = incumbent.told + (chunks.hurried(incumbent.options) if incumbent.hurried else "")
    return replace(found, termination=ended, solution=incumbent.best, message=words, made_by=incumbent.made_by)


pull, hierarchical, in_network, continuous, flow, forest = (
    partial(race, name) for name in ("pull", "hierarchical", "in_network", "continuous", "flow", "forest")
)


def symmetric(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``symmetric``: in a race, but for a quotient, which no other method makes."""
    if options.method.get("quotient") or load(_HERE + "references.symmetric.method:needs_quotient")(instance):
        alone: Outcome = load(_HERE + "references.symmetric.method:solve")(instance, options)
        return alone
    return race("symmetric", instance, options)


def raced(name: str) -> bool:
    """Whether a default method takes part in the race between methods, which ends when a schedule meets the bound. What
    ours are measured against does not: it always runs."""
    family = get_family("fabric")
    return family.methods[name].kind != "bound" and name not in family.published


def planner(machine: FabricInstance) -> Any:
    """The :class:`~synth_models.fabric.references.plan.method.Planner` of an instance's machine."""
    return load(_HERE + "references.plan.method:Planner")(machine, call)


def token_planner(machine: FabricInstance) -> Any:
    """The :class:`~synth_models.fabric.plans.tokens.planner.TokenPlanner` of an instance's machine."""
    return load(_HERE + "plans.tokens.planner:TokenPlanner")(machine)


def plan(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``plan``, whose planner has references make schedules where these may be quicker. Traffic is
    planned as tokens are."""
    if instance.traffic is not None:
        return cast(Outcome, load(_HERE + "plans.tokens.stated_traffic:propose")(instance, token_planner))
    found: Outcome = load(_HERE + "references.plan.method:propose")(instance, options, planner(instance))
    return found


class Part(NamedTuple):
    """A schedule of one of several collectives, its seconds, those that it counts as for its transfers, and whose it
    is."""

    counted: Fraction
    seconds: Fraction
    schedule: Schedule
    made_by: tuple[str, ...]


def _of_parts(name: str, most: int, instance: FabricInstance, options: RunOptions) -> Outcome:
    """A method that is handed the best schedule of each of several collectives alone."""
    if instance.collectives is None:
        return Outcome("unsupported", message="there is one collective only: nothing comes beside or after another")
    count, found = len(instance.parts), list[Part]()
    for number, part in enumerate(instance.parts):
        share = FOR_PARTS / (FOR_PARTS * (count - number) + 1 - FOR_PARTS)
        found.append(_best_alone(part, options.part(share), most // count))
    makers = tuple(dict.fromkeys(one.made_by[0] for one in found))
    made: Outcome = load(f"{_HERE}references.{name}:propose")(instance, options, [one.schedule for one in found])
    made.message = f"{made.message}; each by the best method for it ({', '.join(makers)})"
    return replace(made, made_by=(name, *makers))


def _best_alone(part: FabricInstance, options: RunOptions, most: int) -> Part:
    """The quickest schedule that is found for a collective alone; one of ``most`` transfers counts as if it took twice
    as long, for timing it again takes long. Raises :class:`UnsupportedError` where no method has a schedule,
    :class:`OutOfTime` where none is in time."""
    least = quick_bound(part)
    best: Part | None = None
    for name in (*OURS, *IN_USE):
        if best is not None and (options.out_of_time() or best.seconds * Fraction(1 - options.relative_gap) <= least):
            break
        if not knows(name, part.collective):
            continue
        own, found = options.part(EACH), Outcome("time_limit")
        try:
            with own.in_time():
                found = call(name, part, own)
        except UnsupportedError:
            continue
        found.take_over(own.held)
        if found.solution is not None:
            made = expanded(part, found.solution)
            seconds = chunks.seconds(part, made)
            counted = seconds * (1 + Fraction(made.transfers) / Fraction(most))
            one = Part(counted, seconds, made, found.made_by or (name,))
            best = min(best or one, one, key=lambda one: one.counted)
    if best is None and options.out_of_time():
        raise OutOfTime
    if best is None:
        raise UnsupportedError(f"no method has a schedule for {part.collective} alone")
    return best


one_after_another = partial(_of_parts, "one_after_another", NO_LIMIT)
together = partial(_of_parts, "together", TOGETHER)
