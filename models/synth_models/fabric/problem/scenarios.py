"""One plan for ranks of which nobody knows who is late: ``scenarios`` of an instance, each a row of ready times.

A *plan* is what a schedule for ranks that are all ready at once says without its moments: its pieces, its transfers
with their routes, what each carries, and in which order each link (and group of links) serves them: by their starts,
those of one start as they are listed. All of that is the same whoever is late. In a scenario a transfer starts as soon
as

* all that it carries is where it starts: of a sum what had come there by then in the schedule, of any other block what
  came first;
* the ranks that it leaves with something of their own (any part of a sum, a block that begins there) are ready;
* all before it in the order of its links have left them to it.

What arrives too early for its place in a sum waits beside it. Every transfer is a path from a rank to a rank. A
scenario ends with the last arrival, and when every rank that wants a sum is ready. The objective is the end of the
worst scenario; ranks that are less late never make it later. ``late=any:300us`` of ``synth make`` means a scenario for
every rank, in which it alone is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from synth.errors import Fault
from synth_models.fabric.problem.ready import Ready, ready_faults

MOST_SCENARIOS = 1024
Scenarios = Annotated[tuple[Annotated[Ready, Field(min_length=1)], ...], Field(min_length=1, max_length=MOST_SCENARIOS)]


def scenario_faults(raw: Mapping[str, Any], members: Sequence[int]) -> Iterator[Fault]:
    """Rows that name a rank twice or one that takes no part, and ready times beside them."""
    rows = raw.get("scenarios")
    if rows is not None and raw.get("collective") == "traffic":
        yield Fault(
            "scenarios",
            "unsupported: one plan whoever is late is of collectives and pairs, not of blocks of several holders",
        )
    if rows is not None and raw.get("ready") is not None:
        yield Fault("ready", "has no meaning beside scenarios, each of which says who is ready when")
    for number, row in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        for fault in ready_faults({"ready": row}, members):
            yield replace(fault, path=fault.path.replace("ready", f"scenarios[{number}]", 1))


def refused(instance: Any) -> str | None:
    """Why no plan is replayed on a machine: its switches store what passes."""
    stores = instance.switching.mode == "store_and_forward" and bool(instance.machine.is_switch.any())
    return "one plan for several scenarios is for switches that cut through" if stores else None
