"""What a schedule loses on machines it was not made for: its regret there, against the best that is known there.

A machine is drawn by factors for the bandwidth and the latency of every link (the family's ``varied``), all of them
from the seed. On it a schedule keeps its moves, their order and their waits, as an executor would (the family's
``timing``). The regret is its time over the best time − 1: of the other schedules, and of methods that know the
machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth import api
from synth.arrays import FloatArray
from synth.errors import InputError
from synth.exchange.algorithm import Algorithm
from synth.exchange.block_costs import CostModel
from synth.exchange.forms import in_seconds
from synth.exchange.transfers import Raised, Transfers
from synth.family import defaults_for, get_family
from synth.instance import Instance

Moves = (
    Algorithm | Callable[[int], Raised | Transfers]
)  # what runs: an algorithm, or the moves for parts of so many bytes
RUN_S = 20.0
MOST_SAMPLES = 10_000
_VARY = re.compile(r"(bandwidth|latency)\s*=\s*(?:±|\+/?-)?\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")


def as_moves(transfers: Transfers) -> Moves:
    """Transfers as what runs, whatever the size of parts."""
    return lambda _: transfers


@dataclass(frozen=True)
class Variation:
    """By which part of itself a bandwidth and a latency may be more or less, below 1; ``samples`` machines, from the
    ``seed``."""

    bandwidth: float = 0.0
    latency: float = 0.0
    samples: int = 10
    seed: int = 0


@dataclass(frozen=True)
class Regrets:
    """Of schedules by name: ``nominal`` seconds on the machine itself, ``seconds`` and ``regret`` on every machine
    drawn, shape (samples,); ``best``: the best time there, and ``by`` whom."""

    nominal: Mapping[str, float]
    seconds: Mapping[str, FloatArray]
    regret: Mapping[str, FloatArray]
    best: FloatArray
    by: tuple[str, ...]

    @property
    def robust(self) -> str:
        """The schedule of the least worst regret, of several the quickest on the machine itself."""
        return min(self.regret, key=lambda name: (float(self.regret[name].max()), self.nominal[name]))


def read_variation(texts: Sequence[str], samples: int = 10, seed: int = 0) -> Variation:
    """``bandwidth=±10%``, ``latency=30%`` as a variation. Raises ``ValueError`` in words."""
    found: dict[str, float] = {}
    for text in texts:
        match = _VARY.fullmatch(text.strip())
        if match is None or float(match.group(2)) >= 100:
            raise ValueError("must be bandwidth=±10% or latency=±30%, less than 100 %")
        name, percent = match.groups()
        if name in found:
            raise ValueError(f"{name} is said twice")
        found[name] = float(percent) / 100
    if not 1 <= samples <= MOST_SAMPLES:
        raise ValueError(f"samples must be 1 to {MOST_SAMPLES}")
    return Variation(found.get("bandwidth", 0.0), found.get("latency", 0.0), samples, seed)


def machines(instance: Instance, variation: Variation) -> Iterator[Instance]:
    """The instance on every machine drawn. Raises :class:`InputError` for families whose machines cannot be varied."""
    family = get_family(instance.family)
    if not family.can("varied"):
        raise InputError(f"machines of family {family.name} are not varied")
    vary = family.capability("varied")
    for sample in range(variation.samples):
        yield vary(instance, variation.bandwidth, variation.latency, variation.seed + sample)


def rivals(instance: Instance) -> tuple[str, ...]:
    """Methods that are run on a machine drawn where none are named: those in use today that suit it."""
    family = get_family(instance.family)
    suited = defaults_for(family, instance)
    return tuple(name for name in family.today if name in suited)


def regrets(
    schedules: Mapping[str, Moves],
    instance: Instance,
    variation: Variation,
    methods: Sequence[str] | None = None,
    costs: CostModel | None = None,
) -> Regrets:
    """The regrets of the schedules, which are for this instance. ``methods``: whose schedules, made for the machine
    drawn, they are compared with (default: :func:`rivals`); ``costs`` of those that are programs. Raises
    :class:`InputError`."""
    if not schedules:
        raise InputError("there is no schedule to evaluate")
    against = rivals(instance) if methods is None else tuple(methods)
    nominal = {name: in_seconds(instance, moves, costs=costs) for name, moves in schedules.items()}
    seconds: dict[str, list[float]] = {name: [] for name in schedules}
    best: list[float] = []
    by: list[str] = []
    for drawn in machines(instance, variation):
        there = {name: in_seconds(drawn, moves, costs=costs) for name, moves in schedules.items()}
        for name, value in there.items():
            seconds[name].append(value)
        there |= {f"{name} made for it": _seconds(drawn, name) for name in against}
        quickest = min(there, key=lambda name: there[name])
        best.append(there[quickest])
        by.append(quickest)
    least: FloatArray = np.array(best)
    times: dict[str, FloatArray] = {name: np.array(values) for name, values in seconds.items()}
    regret: dict[str, Any] = {name: values / least - 1 for name, values in times.items()}
    return Regrets(nominal, times, regret, least, tuple(by))


def _seconds(instance: Instance, method: str) -> float:
    """The time of a method's schedule; infinite where it has none."""
    value = api.solve(instance, method, time_limit=RUN_S).value
    return math.inf if value is None else float(value)
