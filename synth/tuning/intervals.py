"""What a fitted machine's intervals leave open of times, and whether the choice among schedules stands within them.

A schedule keeps its moves, their order and their waits, and is timed at the corners of the intervals (the family's
``corners``): all latencies at one end, all bandwidths at one. Each interval holds its truth in 95 % of logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synth.exchange.block_costs import CostModel
from synth.exchange.forms import in_seconds
from synth.family import get_family
from synth.instance import Instance
from synth.text.quantities import percent, shown
from synth.tuning.robustness import Moves

LEAST_LEAD = 1e-3  # relative: what is quicker by less is as quick


@dataclass(frozen=True)
class Within:
    """``least`` and ``most`` seconds of the schedule chosen; ``rival``: who is quicker at a corner, ``where`` and by
    what part of the time (``lead``), empty where nobody is."""

    least: float
    most: float
    rival: str = ""
    where: str = ""
    lead: float = 0.0

    @property
    def words(self) -> str:
        """The interval, and whether the choice stands."""
        stands = f"{self.rival} is {percent(self.lead)} quicker at {self.where}" if self.rival else "the choice stands"
        return f"{shown(self.least, 's')} to {shown(self.most, 's')}, {stands}"


def has_intervals(instance: Instance) -> bool:
    """Whether the instance's machine was fitted, with intervals."""
    return bool(getattr(getattr(instance, "network", None), "intervals", None))


def within(
    schedules: Mapping[str, Moves], chosen: str, instance: Instance, costs: CostModel | None = None
) -> Within | None:
    """The times of the schedule ``chosen``, and who of the others beats it, where the machine has intervals; None
    where it has none; ``costs`` of thread blocks and steps. Raises :class:`InputError` as
    :func:`synth.exchange.forms.in_seconds` does."""
    family = get_family(instance.family)
    corners = family.capability("corners")(instance) if family.can("corners") else {}
    if not corners:
        return None
    times = {
        words: {name: in_seconds(there, moves, costs=costs) for name, moves in schedules.items()}
        for words, there in corners.items()
    }
    own = [seconds[chosen] for seconds in times.values()]
    leads = [(1 - seconds[name] / seconds[chosen], name, words) for words, seconds in times.items()
             for name in seconds if seconds[chosen] > 0]  # fmt: skip
    lead, rival, where = max(leads, default=(0.0, "", ""))
    if lead < LEAST_LEAD:
        return Within(min(own), max(own))
    return Within(min(own), max(own), rival, where, lead)
