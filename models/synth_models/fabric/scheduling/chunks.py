"""How many chunks: cutting bytes into whole ones, and the search for the number that makes a schedule quickest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import completion
from synth_models.fabric.solution import Schedule

WORTH = Fraction(1, 100)  # doublings must save at least this part of the time to go on
SLOWER = 1.5  # times as long as in proportion to the last number of chunks is what another may take


def cut(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces of nearly equal size, none empty: fewer where bytes are fewer."""
    count = min(parts, size)
    return [size * (k + 1) // count - size * k // count for k in range(count)] if count else []


def equal(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces, all equal but for the last, which may be smaller: pieces that differ
    by a byte would not take turns."""
    each = -(-size // parts)
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


def limited(
    make: Callable[[int], Schedule | None],
    transfers: Callable[[int], int],
    most: int,
    options: RunOptions,
    sure: int | None = None,
) -> Callable[[int], Schedule | None]:
    """``make`` for :func:`best_number`, but None for a number of chunks with more than ``most`` ``transfers``, or for
    which the last one's time suggests that the limit will come first. The number ``sure`` is made all the same."""
    last = [1, 0.0]  # a number of chunks and the seconds that it took

    def made(count: int) -> Schedule | None:
        tried, took = last
        if count != sure and (transfers(count) > most or not options.fits(SLOWER * took * count / tried)):
            return None
        began = time.monotonic()
        schedule = make(count)
        last[:] = count, time.monotonic() - began
        return schedule

    return made


def best_number(
    instance: FabricInstance,
    options: RunOptions,
    make: Callable[[int], Schedule | None],
    most: int,
    first: int = 1,
) -> tuple[int, Schedule] | None:
    """The number of chunks from ``first`` to ``most``, and its schedule.

    Tried are doublings until two in a row save less than :data:`WORTH` of the time, then numbers between the best and
    its neighbours. ``make`` returns None for a number that it will not try; None if it never returns a schedule. Stops
    at the time limit with the best so far.
    """
    search = _Numbers(instance, options, make)
    count, worse = first, 0
    while count <= most and worse < 2 and not (search.best and options.out_of_time()):
        before = search.tried[search.best[0]] if search.best else None
        found = search.time_of(count)
        if found is None:
            break
        worse = 0 if before is None or found < before * (1 - WORTH) else worse + 1
        count *= 2
    for _ in range(3):
        if search.best is None or options.out_of_time():
            break
        fresh = search.between(search.best[0])
        if not fresh:
            break
        for number in fresh:
            search.time_of(number)
    return search.best


@dataclass
class _Numbers:
    """Numbers of chunks that were ``tried``, each with its schedule's seconds, and the ``best`` with its schedule."""

    instance: FabricInstance
    options: RunOptions
    make: Callable[[int], Schedule | None]
    tried: dict[int, Fraction] = field(default_factory=dict)
    best: tuple[int, Schedule] | None = None

    def time_of(self, count: int) -> Fraction | None:
        """Try a number unless it was tried."""
        tried = self.tried
        if count in tried:
            return tried[count]
        schedule = self.make(count)
        if schedule is None:
            return None
        tried[count] = seconds(self.instance, schedule)
        if self.best is None or tried[count] < tried[self.best[0]]:
            self.best = count, schedule
            self.options.held.offer(lambda: schedule, float(tried[count]), in_words(count))
        return tried[count]

    def between(self, best: int) -> list[int]:
        """Numbers between the best and its neighbours that take clearly longer, as far as they were not tried."""
        tried = self.tried
        below = max((n for n in tried if n < best), default=best)
        above = min((n for n in tried if n > best), default=best)
        worse = [other for other in (above, below) if tried[other] * (1 - WORTH) > tried[best]]
        return [n for n in dict.fromkeys((best + other) // 2 for other in worse) if n not in tried]
