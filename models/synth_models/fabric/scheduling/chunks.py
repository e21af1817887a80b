"""How many chunks: cutting bytes into whole ones, and the search for the number that makes a schedule quickest."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import completion
from synth_models.fabric.solution import Schedule

WORTH = Fraction(1, 100)  # doublings must save at least this part of the time to go on


def cut(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces of nearly equal size, none empty: fewer where bytes are fewer."""
    count = min(parts, size)
    return [size * (k + 1) // count - size * k // count for k in range(count)] if count else []


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
    tried: dict[int, Fraction] = {}
    best: tuple[int, Schedule] | None = None

    def time_of(count: int) -> Fraction | None:
        nonlocal best
        if count in tried:
            return tried[count]
        schedule = make(count)
        if schedule is None:
            return None
        tried[count] = seconds(instance, schedule)
        if best is None or tried[count] < tried[best[0]]:
            best = count, schedule
            options.held.offer(lambda: schedule, float(tried[count]), in_words(count))
        return tried[count]

    count, worse = first, 0
    while count <= most and worse < 2 and not (best and options.out_of_time()):
        before = tried[best[0]] if best else None
        found = time_of(count)
        if found is None:
            break
        worse = 0 if before is None or found < before * (1 - WORTH) else worse + 1
        count *= 2
    for _ in range(3):
        if best is None or options.out_of_time():
            break
        at = best[0]
        below = max((n for n in tried if n < at), default=at)
        above = min((n for n in tried if n > at), default=at)
        ends = {(at + other) // 2: tried[other] for other in (above, below) if tried[other] * (1 - WORTH) > tried[at]}
        fresh = [n for n in ends if n not in tried]
        if not fresh:
            break
        for number in fresh:
            time_of(number)
    return best
