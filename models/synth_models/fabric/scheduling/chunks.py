"""How many chunks: cutting bytes into whole ones, and the search for the number that makes a schedule quickest."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from synth.clock.deadline import stopping
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.scheduling.list_scheduling import completion
from synth_models.fabric.solution import Schedule

WORTH = Fraction(1, 100)  # doublings must save at least this part of the time to go on
SLOWER = 1.5  # times as long as in proportion to the last number of chunks is what another may take
NEAR = 1.05  # times the best variant's seconds, within which a variant's numbers of chunks are looked at more closely
ROUNDS = 3  # of that
NOTICEABLE = Fraction(1, 400)  # of the time: a gap below is not worth making a large schedule for
ALMOST = Fraction(1, 50)  # of the time: a gap below is not worth beginning with another kind of large schedule
FEW = 10_000  # transfers up to which a schedule is made in no time
SOME = 100_000  # transfers from which on a first schedule is large
LARGE = 300_000  # transfers from which on a schedule takes seconds to make
SURELY = Fraction(5, 4)  # times what is to be reached
CHECKED = 2e-6  # seconds a transfer that are left for the check
LARGER = 1.25  # times as many chunks, below which it is not worth while to go to the largest number


def cut(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces of nearly equal size, none empty: fewer where bytes are fewer."""
    count = min(parts, size)
    return [size * (k + 1) // count - size * k // count for k in range(count)] if count else []


def equal(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces, all equal but for the last, which may be smaller: pieces that differ
    by a byte would not take turns."""
    each = -(-size // parts)
    return [each] * (size // each) + ([size % each] if size % each else [])


def in_step(instance: FabricInstance, size: int, parts: int) -> list[int]:
    """``size`` bytes in about so many equal pieces, or up to half as many, that fit between each other on every link
    after whichever latencies: a piece takes a whole part, or a multiple, of what all latencies have in common. Other
    pieces leave gaps, between what comes from near and from afar, that are too short for one."""
    machine, least = instance.machine, -(-size // parts)
    ticks = clock.ticks_per_second(machine, 1.0)
    common = Fraction(math.gcd(*clock.latencies(machine, ticks).tolist()), ticks)
    whole = common * exact(float(machine.network.bandwidth.min()))
    if not whole or whole.denominator > 1 or np.ptp(machine.network.bandwidth):
        return equal(size, parts)
    sizes = [int(whole) // k for k in range(int(whole) // least, 0, -1) if int(whole) % k == 0]
    each = next((each for each in sizes if each >= least), -(-least // int(whole)) * int(whole))
    return [each] * (size // each) + ([size % each] if size % each else [])


def seconds(instance: FabricInstance, schedule: Schedule) -> Fraction:
    """Completion time of a schedule of ours: what two are compared by, whatever their ticks."""
    return Fraction(completion(instance, schedule), schedule.ticks_per_s)


def in_words(count: int) -> str:
    """``1 chunk``, ``2 chunks``."""
    return f"{count} chunk{'s' if count > 1 else ''}"


def hurried(options: RunOptions) -> str:
    """What a message ends with where the time limit cut the search for chunks and alternatives short."""
    ended = "the time limit ended the search, so that another run may find another schedule"
    return f"; {ended}" if options.out_of_time() else ""


@dataclass
class Variant:
    """One kind of schedule in so many chunks: ``make`` returns None for a number that it cannot be made in.

    ``first`` to ``most``: the numbers that are tried, ``first`` below the best. ``transfers``: how many a number has;
    with more than ``most_transfers`` it is not tried. ``tried``: the seconds of the schedules so far.
    """

    make: Callable[[int], Schedule | None]
    first: int
    most: int
    transfers: Callable[[int], int] = lambda count: count
    most_transfers: float = math.inf
    tried: dict[int, Fraction] = field(default_factory=dict)
    over: bool = False  # no larger number is tried
    worse: int = 0  # doublings in a row that saved next to nothing

    @property
    def next(self) -> int:
        """The number to be tried next."""
        return 2 * max(self.tried) if self.tried else self.first

    def allows(self, count: int) -> bool:
        """Whether a number of chunks may be tried at all: the first always may."""
        return count == self.first or (count <= self.most and self.transfers(count) <= self.most_transfers)

    def largest(self, above: int) -> int:
        """The largest number that may be tried from ``above``, which may, up to twice as many."""
        below = 2 * above
        while below - above > 1:
            middle = (above + below) // 2
            above, below = (middle, below) if self.allows(middle) else (above, middle)
        return above

    def expected(self, count: int, least: Fraction) -> Fraction:
        """The seconds of a schedule in so many chunks, more than were tried, at best: what is above ``least`` halves
        with every doubling, as the time to fill a pipeline does."""
        if not self.tried:
            return least
        last = max(self.tried)
        return least + (self.tried[last] - least) * last / count

    def foreseen(self, count: int, least: Fraction) -> Fraction:
        """The same after two numbers of which one is half the other, as a pipeline takes a constant and a part that
        halves with every doubling."""
        last = max(self.tried, default=1)
        if 2 * (last // 2) != last or last // 2 not in self.tried:
            return self.expected(count, least)
        filled = self.tried[last // 2] - self.tried[last]
        return max(least, self.tried[last] - filled + filled * last / count)

    def cannot_reach(self, goal: Fraction) -> bool:
        """Whether no number of chunks comes below ``goal`` seconds, by what each of the last two doublings foresees, or
        one by :data:`SURELY` as much: what it takes to fill a pipeline halves with every doubling, the rest stays."""
        last = max(self.tried, default=1)
        if last % 2 or last // 2 not in self.tried:
            return False
        rest = [
            2 * self.tried[n] - self.tried[n // 2] for n in (last, last // 2) if n % 2 == 0 and n // 2 in self.tried
        ]
        return rest[0] >= SURELY * goal or (len(rest) > 1 and min(rest) >= goal)

    def promised(self, least: Fraction) -> Fraction:
        """What the next doubling is expected to take if it saves half as much as the one before."""
        if not self.tried:
            return least
        last = max(self.tried)
        if 2 * (last // 2) != last or last // 2 not in self.tried:
            return self.expected(2 * last, least)
        return max(least, self.tried[last] - (self.tried[last // 2] - self.tried[last]) / 2)


def most_promising(
    instance: FabricInstance,
    options: RunOptions,
    variants: Sequence[Variant],
    least: Fraction = Fraction(0),
    beat: Fraction | None = None,
    after: Callable[[Schedule], float] = lambda _: 0.0,
) -> tuple[int, int, Schedule] | None:
    """The quickest schedule found: the number of its variant among ``variants``, its chunks and itself.

    Always the one goes on whose next doubling promises the least time, until two doublings of it in a row save less
    than :data:`WORTH`, or it cannot catch up with what is there; the next one begins when no other promises anything.
    Then numbers between good ones are tried. A variant other than the best's makes large schedules if it is foreseen to
    gain :data:`NOTICEABLE`.
    With the parameter ``transfers`` none of more transfers is looked for (one chunk always may have them).
    Once a schedule takes less than :data:`ALMOST` more than ``least``, no other variant begins with more than
    :data:`SOME` transfers.
    Once a schedule takes less than :data:`WORTH` more than ``least``, a lower bound, only its variant goes on, and
    others while their schedules have at most :data:`FEW` transfers; once it takes less than :data:`NOTICEABLE` more, no
    schedule of more than :data:`LARGE` transfers is made. Ends where one takes ``least`` but for the gap asked for; at
    the time limit with the best so far. Raises :class:`UnsupportedError` where every variant does. ``beat``: the
    seconds of a schedule that there is already; what cannot reach them by :meth:`Variant.cannot_reach` does not go on.
    ``after``: seconds that are left for what the caller does with the best.
    """
    race = _Race(instance, options, variants, least, beat, after)
    while (variant := race.ahead()) is not None:
        before = min(variant.tried.values(), default=None)
        found = race.time_of(variant, variant.next)
        if found is None:
            variant.over = True
            continue
        variant.worse = 0 if before is None or found < before * (1 - WORTH) else variant.worse + 1
        variant.over = variant.worse == 2
    for variant in race.near():
        for _ in range(ROUNDS):
            fresh = (
                [] if race.ended() else [number for number in race.between(variant) if race.may_gain(variant, number)]
            )
            for number in fresh:
                race.time_of(variant, number)
            if not fresh:
                break
    if race.best is None and race.lacking is not None:
        raise race.lacking
    return race.best


def best_number(
    instance: FabricInstance,
    options: RunOptions,
    make: Callable[[int], Schedule | None],
    most: int,
    first: int = 1,
    beat: Fraction | None = None,
) -> tuple[int, Schedule] | None:
    """The number of chunks from ``first`` to ``most``, and its schedule; None if ``make`` returns None for the first.
    Found as :func:`most_promising` does of one variant."""
    found = most_promising(instance, options, [Variant(make, first, most)], beat=beat)
    return None if found is None else found[1:]


class _Race:
    """Variants, the ``best`` schedule so far (with its variant's number and its chunks), and the seconds that making a
    transfer of the largest one has taken: a first, small one may have waited for routes."""

    def __init__(
        self,
        instance: FabricInstance,
        options: RunOptions,
        variants: Sequence[Variant],
        least: Fraction,
        beat: Fraction | None,
        after: Callable[[Schedule], float],
    ) -> None:
        self.instance, self.options, self.variants, self.least = instance, options, variants, least
        self._beat, self._after = beat, after
        self.best: tuple[int, int, Schedule] | None = None
        self.seconds: Fraction | None = None  # of the best
        self.lacking: UnsupportedError | None = None
        self._each, self._largest = 0.0, 0
        self._most: int | None = options.method.get("transfers")
        if self._most is not None:
            for variant in variants:
                variant.first = 1  # what is below the best without that may be above it
        # by variant: the transfers that were made last, and in which time
        self._took: dict[int, tuple[int, float]] = {}

    def ended(self) -> bool:
        """Whether there is a schedule, and no reason or no time to look for another."""
        if self.seconds is None:
            return False
        enough = self.seconds * Fraction(1 - self.options.relative_gap) <= self.least
        return enough or self.options.out_of_time()

    def ahead(self) -> Variant | None:
        """The variant to go on with: the most promising, where one that was not tried promises what there is."""
        if self.ended():
            return None
        going = [variant for variant in self.variants if not variant.over and self._may_go_on(variant)]
        if self.best is not None and self._is_within(WORTH):
            leader = self.variants[self.best[0]]
            going = [variant for variant in going if variant is leader or variant.transfers(variant.next) <= FEW]
        best = self.least if self.seconds is None else self.seconds
        return min(going, key=lambda variant: variant.promised(self.least) if variant.tried else best, default=None)

    def _may_go_on(self, variant: Variant) -> bool:
        """Whether a variant that is not over may lead to something better than what there is."""
        if self._beat is not None and variant.cannot_reach(self._beat):
            return False
        if self.best is None:
            return True
        large = not variant.tried and variant.transfers(variant.first) > SOME
        if large and self._is_within(ALMOST):
            return False
        return self._may_lead(variant) and self._is_noticed(variant.next, variant)

    def may_gain(self, variant: Variant, count: int) -> bool:
        """Whether a number of chunks that was not tried may be better than the best so far, if what is above the bound
        falls as the chunks do from the next smaller number that was tried."""
        below = max((other for other in variant.tried if other < count), default=None)
        if below is None or self.seconds is None:
            return True
        expected = self.least + (variant.tried[below] - self.least) * below / count
        return expected < self.seconds and self._is_noticed(count, variant)

    def _is_within(self, share: Fraction) -> bool:
        """Whether at most this share of the best schedule's time is above the lower bound."""
        return self.seconds is not None and self.seconds * (1 - share) <= self.least

    def _is_noticed(self, count: int, variant: Variant) -> bool:
        """Whether what can still be gained is worth making a schedule of so many chunks."""
        return variant.transfers(count) <= LARGE or not self._is_within(NOTICEABLE)

    def near(self) -> list[Variant]:
        """The variants whose best is near the best of all, the best first."""
        if self.seconds is None:
            return []
        best = self.seconds if self._beat is None else min(self.seconds, self._beat)
        found = [(min(variant.tried.values()), number) for number, variant in enumerate(self.variants) if variant.tried]
        return [self.variants[number] for seconds, number in sorted(found) if seconds <= NEAR * best]

    def _may_lead(self, variant: Variant) -> bool:
        """Whether it may become quicker than the best with some number of chunks: noticeably, if that makes a large
        schedule and the best is another variant's; up to :data:`LARGE` transfers, unless two doublings foresee that it
        does not, as one alone may be of chunks that happen to fit each other badly."""
        if not variant.tried:
            return True
        most = max(variant.next, variant.most)
        if variant.most_transfers < math.inf:
            most = min(most, int(variant.next * variant.most_transfers / max(1, variant.transfers(variant.next))))
        most = max(most, variant.next)
        assert self.seconds is not None
        assert self.best is not None
        small = variant.transfers(most) <= LARGE or variant.transfers(variant.next) <= FEW
        if not small and variant.transfers(variant.next) <= LARGE:
            small = not variant.cannot_reach(self.seconds * (1 - NOTICEABLE))
        if small or variant is self.variants[self.best[0]]:
            return variant.expected(most, self.least) < self.seconds
        return variant.foreseen(most, self.least) < self.seconds * (1 - NOTICEABLE)

    def time_of(self, variant: Variant, count: int) -> Fraction | None:
        """Try a number unless it was tried; None where there is no schedule, or no time or room for it."""
        if count in variant.tried:
            return variant.tried[count]
        if not variant.allows(count):
            return None
        number, amount = self.variants.index(variant), variant.transfers(count)
        made, took = self._took.get(number, (1, self._each))
        if self.best is not None:
            after_s = self._after(self.best[2])
            if not self.options.fits((SLOWER * took / made + CHECKED) * amount + after_s):
                return None
        began = time.monotonic()
        try:
            schedule = self._made(variant, count)
        except UnsupportedError as error:
            self.lacking = error
            return None
        took = time.monotonic() - began
        self._took[number] = amount, took
        if amount >= self._largest:
            self._each, self._largest = took / max(1, amount), amount
        if schedule is None or (self._most is not None and self.best is not None and schedule.transfers > self._most):
            return None
        found = variant.tried[count] = seconds(self.instance, schedule)
        if self.seconds is None or found < self.seconds:
            self.best, self.seconds = (number, count, schedule), found
            self.options.held.offer(lambda: schedule, float(found), in_words(count))
        return found

    def _made(self, variant: Variant, count: int) -> Schedule | None:
        """The schedule; None where it is not done when the check of the best so far, or what comes before, has to
        begin."""
        if self.best is None:
            return variant.make(count)
        best, left, made = self.best[2], self.options.remaining, None
        reserve = CHECKED * best.transfers + self._after(best)
        with stopping(lambda: None if (seconds := left()) is None else seconds - reserve, self.options.clock):
            made = variant.make(count)
        return made

    def between(self, variant: Variant) -> list[int]:
        """Numbers between the variant's best and its neighbours that take clearly longer, as far as they were not
        tried; also where one is the largest that may be tried, less than twice as many. Where the best is the largest
        that was tried, the largest that may be tried instead, if it is clearly larger."""
        tried = variant.tried
        best = min(tried, key=lambda count: (tried[count], count))
        below = max((n for n in tried if n < best), default=best)
        above = min((n for n in tried if n > best), default=best)
        if above == best and variant.over and not variant.allows(2 * best) and variant.worse < 2:
            largest = variant.largest(best)
            if largest > LARGER * best:
                return [largest]
        last, worse = max(tried), []
        for other in (above, below):
            capped = last in (best, other) and LARGER <= max(best, other) / min(best, other) < 2
            if tried[other] * (1 - WORTH) > tried[best] or capped:
                worse.append(other)
        return [n for n in dict.fromkeys((best + other) // 2 for other in worse) if n not in tried]
