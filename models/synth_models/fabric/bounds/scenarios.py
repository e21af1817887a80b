"""Lower bounds on the worst scenario of one plan (:mod:`synth_models.fabric.problem.scenarios`).

**Each scenario** is bounded as an instance with these ready times. That also holds for schedules that know who is late.

**Whoever is late.** What a link carries is the same in all scenarios, and the first of it has some rank's own part; so
some scenario has it begin as much later as the least late of all ranks ever is. A bound that only says how much links
carry, from when on and until when, for ranks that are all ready at once, rises by that
(:mod:`synth_models.fabric.check.scenarios` has the argument in full).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from synth.options import RunOptions
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.problem.several import with_ready

WHOEVER = 0.4  # of the time, for what holds whoever is late


def strongest_of_scenarios(instance: FabricInstance, options: RunOptions, strongest: Callable[..., Proven]) -> Proven:
    """The stronger of both kinds; scenarios the latest first, as long as there is time. ``strongest``: of one instance,
    of its ``loads`` only where that is asked for."""
    best = _whoever(instance, strongest(instance.on_time, options.part(WHOEVER), loads=True))
    rows = list(enumerate(instance.scenarios or ()))
    rows.sort(key=lambda row: -max(moments(row[1]).values(), default=Fraction(0)))
    for position, (number, row) in enumerate(rows):
        if options.out_of_time():
            break
        share = options.part(1 / (len(rows) - position))
        found = strongest(with_ready(instance.on_time, row), share)
        if found.seconds > best.seconds:
            best = _of_one(number, found)
    return best


def least_late(instance: FabricInstance) -> Fraction:
    """The moment by which every rank with something of its own is not ready yet, each in some scenario; seconds."""
    late = [moments(row) for row in instance.scenarios or ()]
    origins = set(instance.blocks.origin.tolist())
    own = instance.members if EVERYONE in origins else sorted(origins)
    return min((max(row.get(rank, Fraction(0)) for row in late) for rank in own), default=Fraction(0))


def _whoever(instance: FabricInstance, alone: Proven) -> Proven:
    later = least_late(instance) if alone.argument != "nothing" else Fraction(0)
    return Proven(
        Fraction(float_below(alone.seconds)) + later,
        "whoever",
        lambda: f"every rank is {shown(float(later), SECONDS)} late in some scenario, and then {alone}",
        lambda: _certificate("whoever", alone) if alone.argument != "nothing" else {"argument": "nothing"},
    )


def _of_one(number: int, alone: Proven) -> Proven:
    words = f"in scenario {number} {alone}"
    return Proven(alone.seconds, "scenario", lambda: words, lambda: _certificate("scenario", alone) | {"of": number})


def _certificate(argument: str, alone: Proven) -> dict[str, Any]:
    return {"argument": argument, "bound": float_below(alone.seconds), "certificate": alone.certificate()}
