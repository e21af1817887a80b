"""Method ``composed`` (ours): a schedule made of those that the library has of other instances.

Of use is whatever moves blocks between the same ranks over links that this machine has, too, and

* does the same: of a twin machine (with a failure more, or without switches that add), or of another size, whose pieces
  are cut at the same shares; of a fraction of the size it is run several times;
* does the mirrored collective, and is played backwards;
* does more: an allreduce holds a reduce, an allgather a gather, an all-to-all a scatter;
* does a half: reduce-scatter and allgather, or reduce and broadcast, are an allreduce in a row.

What these give is checked, timed again and, as long as that saves time, timed backwards and forwards
(:mod:`synth_models.fabric.scheduling.back_and_forth`), so that two halves may overlap.
Complexity: that of timing ``tries`` schedules a few times. Guarantee: of the same machine and size, never slower than
what the library has, one half behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError, UnsupportedError
from synth.library.known_schedules import Known, of_others
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.blocks import EVERYONE, Blocks, blocks_of
from synth_models.fabric.scheduling import carried_over
from synth_models.fabric.scheduling.back_and_forth import TIMED_AGAIN, again
from synth_models.fabric.solution import Schedule, expanded

MOST_TRANSFERS = 300_000  # of a schedule that is taken
MOST_REPEATED = 5_000_000  # of one that is repeated
NEAR = 1.25  # times the best by its parts' times, within which others are tried
MIRRORS = {
    "allgather": "reduce_scatter", "reduce_scatter": "allgather", "broadcast": "reduce", "reduce": "broadcast",
    "gather": "scatter", "scatter": "gather", "alltoall": "alltoall",
}  # fmt: skip
COLLECTIVES = (*MIRRORS, "allreduce")
SUMS = ("reduce_scatter", "reduce")
HOLDING = {"reduce": ("allreduce",), "gather": ("allgather", "alltoall"), "scatter": ("alltoall",)}
HALVES = (("reduce_scatter", "allgather"), ("reduce", "broadcast"))


@dataclass(frozen=True)
class Way:
    """A way to a schedule of some collective on this machine: the ``seconds`` that its parts say it takes, in words
    what it is, the methods that made its parts, the blocks that it moves, and what makes it."""

    seconds: float
    words: str
    makers: tuple[str, ...]
    blocks: Blocks
    make: Callable[[], Schedule]


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``composed``. Stops at a bound, at the time limit or after ``tries``. Raises :class:`InputError` without a
    library, and :class:`UnsupportedError` where it has nothing that fits."""
    if instance.collectives is not None or instance.ready or instance.collective not in COLLECTIVES:
        raise UnsupportedError("this takes one collective of several ranks that are all ready at once")
    least = quick_bound(instance)
    incumbent = Incumbent(instance, options, least)
    ways = sorted(_Library(instance, options.method.get("library")).ways(), key=lambda way: way.seconds)
    near = [way for way in ways if way.seconds <= NEAR * ways[0].seconds]
    for way in islice(near, int(options.method["tries"])):
        if incumbent.over():
            break
        _try(incumbent, way)
    if incumbent.best is None:
        raise UnsupportedError("the library has no schedule of the same ranks on the same machine that could be used")
    return Outcome("finished", incumbent.best, message=incumbent.told, made_by=incumbent.made_by)


def _try(incumbent: Incumbent, way: Way) -> None:
    """Offer a way's schedule as it is, timed again, and backwards and forwards; of each what the check accepts."""
    instance, makers = incumbent.instance, ("composed", *dict.fromkeys(way.makers))
    try:
        plain = way.make()
    except (ValueError, InputError):  # a route branches, a link leads one way, what is stored is no schedule
        return
    found = []
    for words in ("", ", timed again"):
        if incumbent.over():
            return
        try:
            made = carried_over.timed_again(instance, plain) if words else plain
        except ValueError:
            continue
        if not check_schedule(instance, made).faults:
            found.append(made)
            incumbent.offer(made, way.words + words, makers)
    for made in found[-1:]:
        after = again(instance, incumbent.options, made, incumbent.least)
        if after is not made and not check_schedule(instance, after).faults:
            incumbent.offer(after, way.words + TIMED_AGAIN, makers)


class _Library:
    """What the library has of other instances of the same ranks on links that are all in this instance's machine."""

    def __init__(self, instance: FabricInstance, file: str | None) -> None:
        self.instance = instance
        self.found = [(one, links) for one in of_others(instance, file) if (links := self._links(one)) is not None]

    def _links(self, known: Known) -> IntArray | None:
        source, instance = known.instance, self.instance
        assert isinstance(source, FabricInstance)
        if source.collectives is not None or source.ready or source.members != instance.members:
            return None
        if source.switching.mode != instance.switching.mode or source.collective not in COLLECTIVES:
            return None
        if source.machine.abilities.any and not instance.machine.abilities.any:
            return None
        return carried_over.links_in(source.machine, instance.machine)

    def ways(self) -> Iterator[Way]:
        """All ways to the instance's collective."""
        wanted = self.instance.collective
        yield from self._full(wanted)
        if wanted == "allreduce":
            for halves in HALVES:
                both = [min(self._full(half), key=lambda way: way.seconds, default=None) for half in halves]
                if both[0] is not None and both[1] is not None:
                    yield self._in_a_row(both[0], both[1])

    def _full(self, collective: str) -> Iterator[Way]:
        """Ways to a collective of the instance's bytes by schedules that do it, its mirror, or more."""
        yield from self._pure(collective)
        for more in HOLDING.get(collective, ()):
            yield from (self._held(way, collective) for way in self._pure(more))
        mirror = MIRRORS.get(collective, "")
        for more in HOLDING.get(mirror, ()):
            yield from (self._mirror(self._held(way, mirror), collective) for way in self._pure(more))

    def _pure(self, collective: str) -> Iterator[Way]:
        """Ways by schedules of a collective or its mirror."""
        yield from self._direct(collective)
        if collective in MIRRORS:
            yield from (self._mirror(way, collective) for way in self._direct(MIRRORS[collective]))

    def _blocks(self, collective: str) -> Blocks:
        instance = self.instance
        root = instance.members[0] if instance.the_root is None else instance.the_root
        return blocks_of(collective, instance.members, instance.bytes, root, ())

    def _direct(self, collective: str) -> Iterator[Way]:
        """Ways by schedules of a collective, of the instance's bytes or not."""
        wanted = self._blocks(collective)
        for known, links in self.found:
            source = known.instance
            assert isinstance(source, FabricInstance)
            if source.collective != collective or not _same_places(source.blocks, wanted):
                continue
            times = -(-self.instance.bytes // source.bytes)
            make = partial(self._resized, known, links, wanted, times)
            often = f"{times} times " if times > 1 else ""
            by = known.makers
            yield Way(known.value * times, f"{often}{known.row.instance} by {by[0]}", tuple(by), wanted, make)

    def _resized(self, known: Known, links: IntArray, wanted: Blocks, times: int) -> Schedule:
        source = known.instance
        assert isinstance(source, FabricInstance)
        own = expanded(source, known.solution(), MOST_TRANSFERS)
        made = carried_over.on_links(own, links)
        if times * made.transfers > max(MOST_REPEATED, made.transfers):
            raise ValueError("too many transfers")
        if times > 1:
            made = carried_over.repeated(self.instance, made, times)
        return carried_over.resized(made, source.blocks.bytes * times, wanted.bytes)

    def _mirror(self, way: Way, collective: str) -> Way:
        """A way to the mirrored collective, backwards."""
        wanted = self._blocks(collective)
        number = _numbers(Blocks(wanted.goal, wanted.origin, wanted.bytes), way.blocks)

        def make() -> Schedule:
            return carried_over.backwards(self.instance, way.make(), number, collective in SUMS)

        return Way(way.seconds, f"{way.words}, backwards", way.makers, wanted, make)

    def _held(self, way: Way, collective: str) -> Way:
        """What a way to more has of a collective."""
        wanted = self._blocks(collective)
        number = _numbers(wanted, way.blocks)

        def make() -> Schedule:
            return carried_over.restricted(self.instance, wanted, way.make(), number)

        return Way(way.seconds, f"{way.words}, what a {collective} needs of it", way.makers, wanted, make)

    def _in_a_row(self, up: Way, down: Way) -> Way:
        def make() -> Schedule:
            return carried_over.in_a_row(self.instance, up.make(), down.make())

        words, makers = f"{up.words}, then {down.words}", (*up.makers, *down.makers)
        return Way(up.seconds + down.seconds, words, makers, self._blocks("allreduce"), make)


def _same_places(one: Blocks, other: Blocks) -> bool:
    """Whether blocks lead from and to the same ranks, in the same order."""
    return np.array_equal(one.origin, other.origin) and np.array_equal(one.goal, other.goal)


def _numbers(wanted: Blocks, given: Blocks) -> IntArray:
    """For each of the blocks ``given`` the block ``wanted`` that it is, or that is a part of it; -1 for none."""
    places = {place: i for i, place in enumerate(zip(wanted.origin.tolist(), wanted.goal.tolist(), strict=True))}
    root = next(iter(wanted.goal.tolist()), EVERYONE)
    found = [
        places.get((u, v), places.get((u, root), -1) if v == EVERYONE else -1)
        for u, v in zip(given.origin.tolist(), given.goal.tolist(), strict=True)
    ]
    return np.array(found, dtype=np.int64)
