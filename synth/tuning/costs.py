"""Which limit of an executor costs a schedule its time: lowered again with limits lifted, and timed.

What a limit costs is what its lifting saves. Where none of them alone restores the time, the named ones are those
without any of which it does not come back: all are lifted but one, in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from synth.exchange.forms import Lowered, Program, in_seconds, limits_in
from synth.exchange.transfers import Transfers
from synth.instance import Instance

BLOCKS = "thread blocks that send and receive in one order"
LINKS = "thread blocks that share links in no order"
READY = "links that serve what is ready, where the schedule holds it back"
LONG = 2**26  # bytes from which bandwidth alone counts


def tolerated(size: int) -> float:
    """Time in a form over time as scheduled up to which a size in bytes needs no reason."""
    return 1.05 if size >= LONG else 1.15


def costing(
    transfers: Transfers, form: str, instance: Instance, most_s: float, goes_on: Callable[[], bool] = lambda: True
) -> str:
    """The limit of the form's executor that keeps a schedule above ``most_s`` seconds, in words; empty where nothing
    does, or where the time is over (``goes_on``) before that is known."""

    def seconds(lifted: Collection[str]) -> float:
        return min((took for took, _ in _programs(transfers, form, instance, lifted)), default=math.inf)

    names = limits_in(form)
    if seconds(()) <= most_s:
        return ""
    if in_seconds(instance, lambda _: transfers) > most_s:
        return READY
    for name in names:
        if not goes_on():
            return ""
        if seconds((name,)) <= most_s:
            return names[name]
    free = _programs(transfers, form, instance, tuple(names))
    if min((took for took, _ in free), default=math.inf) > most_s:
        apart = min((in_seconds(instance, program.waiting_for_data_alone) for _, program in free), default=math.inf)
        return BLOCKS if apart <= most_s else LINKS
    needed = [name for name in names if seconds([other for other in names if other != name]) > most_s]
    return " and ".join(names[name] for name in needed) or " or ".join(names.values())


def _programs(
    transfers: Transfers, form: str, instance: Instance, lifted: Collection[str]
) -> list[tuple[float, Program]]:
    """The programs without those limits, each with its seconds."""
    found = Lowered(transfers, form, lifted).programs()
    return [(program.seconds(instance), program) for program in found]
