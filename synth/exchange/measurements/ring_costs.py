"""What a thread block's steps and a launch cost, from logs of rings: ``synth fit`` says it as ``--cost`` takes it.

A ring of one channel takes ``launch + steps * step + share * size / rate``: one log says the sum of the first two (as
its latency times its steps), logs of two numbers of ranks tell them apart. Intervals are those of the fits, joined by
their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from synth.exchange.measurements.fitting import Interval, fitted
from synth.exchange.measurements.series import PAIRS, Series, cost
from synth.text.quantities import shown


class RingCosts(NamedTuple):
    """Seconds of a ``step`` and of a ``launch`` (None where nothing tells it from steps, which then hold it), and the
    ``rate`` in bytes/s of all channels together (None where the sizes do not tell)."""

    step: Interval
    launch: Interval | None
    rate: Interval | None

    @property
    def words(self) -> str:
        """As ``--cost`` takes them, with their intervals."""
        launch = "0s" if self.launch is None else f"{self.launch.value:.3g}s"
        rate = "" if self.rate is None else f",block={self.rate.value:.4g}"
        said = [("a step", self.step, "s"), ("a launch", self.launch, "s"), ("one channel", self.rate, "bytes/s")]
        ends = [f"{name} {shown(one.value, unit)} ({shown(one.low, unit)} to {shown(one.high, unit)})"
                for name, one, unit in said if one is not None]  # fmt: skip
        return f"--cost step={self.step.value:.3g}s,launch={launch}{rate}: {', '.join(ends)}"


def ring_costs(series: Sequence[Series]) -> RingCosts | None:
    """The costs by logs of rings, None where there are none. Raises :class:`synth.errors.InputError` as
    :func:`synth.exchange.measurements.fitting.fitted`."""
    sums: dict[float, Interval] = {}  # launch and steps together, by steps
    rate: Interval | None = None
    for one in series:
        price = None if one.test in PAIRS or one.test == "alltoall" else cost(one.test, one.ranks, "ring")
        fit = None if price is None else fitted([one], "ring")
        if price is None or fit is None or fit.latency is None:
            continue
        sums[price.steps] = Interval(*(price.steps * end for end in fit.latency))
        rate = fit.bandwidth if rate is None else rate
    if not sums:
        return None
    if len(sums) == 1:
        ((steps, total),) = sums.items()
        return RingCosts(Interval(*(end / steps for end in total)), None, rate)
    few, many = min(sums), max(sums)
    span = many - few
    step = Interval(
        (sums[many].value - sums[few].value) / span,
        max((sums[many].low - sums[few].high) / span, 0.0),
        max((sums[many].high - sums[few].low) / span, 0.0),
    )
    launch = Interval(
        max(sums[few].value - few * step.value, 0.0),
        max(sums[few].low - few * step.high, 0.0),
        max(sums[few].high - few * step.low, 0.0),
    )
    return RingCosts(step._replace(value=max(step.value, 0.0)), launch, rate)
