"""What rings lose that go on as before: the messages of the whole machine's rings, on the machine with a failure.

A message whose links failed takes the quickest way that is left; who sends what to whom, and after what, stays.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from synth.drill.search import Drill
from synth.errors import InputError
from synth.exchange.forms import in_seconds
from synth.exchange.record_export import transfers_of
from synth.family import defaults_for, get_family
from synth.options import read_limit
from synth.tuning.runs import RUN_S, recorded

RING = "ring"
MOST_MOVES = 2**18  # that are timed once a failure


class _Place(NamedTuple):
    """Where the record of the rings lies: see :class:`synth.tuning.runs.Place`."""

    folder: Path
    seed: int
    resume: bool = True


def unchanged(drill: Drill) -> dict[str, float]:
    """The seconds of the whole machine's rings by the name of the failure, "nothing" among them; without those under
    which a message has no way left. Empty where rings do not do the collective."""
    whole, found = drill.whole.instance, dict[str, float]()
    if whole is None or RING not in defaults_for(get_family(whole.family), whole):
        return found
    place = _Place(drill.question.folder, drill.question.seed)
    record = recorded(place, whole, RING, {}, min(RUN_S, read_limit(drill.question.limit) or RUN_S))
    with suppress(InputError):  # no schedule, or none that is right
        moves = transfers_of(record)
        for case in (drill.whole, *drill.cases) if len(moves.piece) <= MOST_MOVES else ():
            with suppress(InputError):
                if case.instance is not None:
                    found[case.name] = in_seconds(case.instance, lambda _: moves)
    return found
