"""The seconds of every step on every candidate topology, found as far as they are needed.

The seconds of a step on a topology come from a maximum concurrent flow (:mod:`synth_models.harvest.parts.flows`). Where
that takes a linear program, a lower estimate stands in for it until a search wants that step on that topology; the
search is repeated until all it uses is settled, so the result is the same as if everything had been rated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.flow_rows import Profile
from synth_models.harvest.parts.flows.forced import one_way_profile, pattern_shift, shift_counts
from synth_models.harvest.parts.flows.profiles import profile, quick_profile, step_time
from synth_models.harvest.parts.kept_topologies import tried_topologies
from synth_models.harvest.parts.routing import route_steps
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.solution import Schedule

Found = TypeVar("Found")


class Ratings:
    """Candidates with the seconds of every step on each, ``cost`` (steps, topologies), settled or estimated low."""

    def __init__(
        self, instance: HarvestInstance, options: RunOptions, topologies: list[Topology] | None = None
    ) -> None:
        self.instance, self.options = instance, options
        self.topologies = tried_topologies(instance) if topologies is None else topologies
        patterns = {pairs.tobytes(): pairs for pairs in instance.demands}
        numbers = {key: number for number, key in enumerate(patterns)}
        self.patterns = list(patterns.values())
        self.pattern_of = np.array([numbers[pairs.tobytes()] for pairs in instance.demands])
        self.shifts = [pattern_shift(pairs, instance.gpus) for pairs in self.patterns]
        quick = [self._quick(topology) for topology in self.topologies]
        self.profiles = [[column[k][0] for column in quick] for k in range(len(self.patterns))]
        self.settled = np.array([[column[k][1] for column in quick] for k in range(len(self.patterns))])
        self.left_out = 0
        self.cost: FloatArray = np.array([[self._time(i, t) for t in range(len(self.topologies))] for i in self._steps])

    @property
    def _steps(self) -> range:
        return range(len(self.instance.steps))

    def _quick(self, topology: Topology) -> list[tuple[Profile, bool]]:
        """:func:`quick_profile` of every pattern; shifts on one-way rings, of which there may be a million, at once."""
        gpus = self.instance.gpus
        counts = shift_counts(topology.links, gpus)
        found = []
        for pairs, shift in zip(self.patterns, self.shifts, strict=True):
            known = None
            if shift is not None and counts is not None and pairs[0, 2] == 1:
                known = one_way_profile(shift, counts, gpus)
            found.append((known, True) if known is not None else quick_profile(pairs, topology.links, gpus))
        return found

    def _time(self, step: int, topology: int) -> float:
        return step_time(self.instance, step, self.profiles[self.pattern_of[step]][topology])[0]

    def settle(self, search: Callable[[FloatArray], tuple[Found, Iterable[tuple[int, int]]]]) -> Found:
        """``search`` on the costs, repeated until every (step, topology) that it used is settled.

        Once the time limit has passed, what is not settled counts as impossible and is left out. Raises
        :class:`UnsupportedError` when a step can run on no topology.
        """
        while True:
            if not np.all(np.isfinite(self.cost).any(axis=1)):
                raise UnsupportedError("a step cannot run on any of the topologies")
            found, used = search(self.cost)
            todo = {(int(self.pattern_of[step]), topology) for step, topology in used}
            todo = {entry for entry in todo if not self.settled[entry]}
            if not todo:
                return found
            for pattern, topology in sorted(todo):
                if self.options.out_of_time() and not self._needed(pattern, topology):
                    self._leave_out()
                    break
                links = self.topologies[topology].links
                self.profiles[pattern][topology] = profile(self.patterns[pattern], links, self.instance.gpus)
                self.settled[pattern, topology] = True
                for step in np.flatnonzero(self.pattern_of == pattern):
                    self.cost[step, topology] = self._time(int(step), topology)

    def add(self, topology: Topology, steps: tuple[int, int], price: float) -> bool:
        """Put one more topology on the list if it takes less than ``price`` seconds for the steps from ``steps[0]`` to
        ``steps[1]``; whether it does. Their patterns are rated one by one as long as it may."""
        quick = self._quick(topology)
        found, exact = [one for one, _ in quick], [settled for _, settled in quick]
        wanted = range(steps[0], steps[1] + 1)
        for k in [-1, *sorted({int(self.pattern_of[step]) for step in wanted})]:
            if k >= 0 and not exact[k]:
                found[k], exact[k] = profile(self.patterns[k], topology.links, self.instance.gpus), True
            if sum(step_time(self.instance, step, found[self.pattern_of[step]])[0] for step in wanted) >= price:
                return False
        self.topologies.append(topology)
        for row, one in zip(self.profiles, found, strict=True):
            row.append(one)
        self.settled = np.concatenate([self.settled, np.array(exact)[:, None]], axis=1)
        last = len(self.topologies) - 1
        self.cost = np.concatenate([self.cost, [[self._time(i, last)] for i in self._steps]], axis=1)
        return True

    def _needed(self, pattern: int, topology: int) -> bool:
        """Whether the pattern can run on nothing else that is settled."""
        others = np.isfinite(self.cost[int(np.argmax(self.pattern_of == pattern))]) & self.settled[pattern]
        return not others.any()

    def _leave_out(self) -> None:
        waiting = ~self.settled
        for pattern in range(len(self.patterns)):
            if not (self.settled[pattern] & np.isfinite(self.cost[int(np.argmax(self.pattern_of == pattern))])).any():
                waiting[pattern] = False
        self.left_out += int(waiting.sum())
        self.cost[waiting[self.pattern_of]] = np.inf
        self.settled |= waiting

    def schedule(self, chosen: IntArray, topologies: list[Topology] | None = None) -> Schedule:
        """The schedule that runs step i on topology ``chosen[i]``, of the list as it is or was."""
        known = [self.profiles[self.pattern_of[step]][chosen[step]] for step in self._steps]
        listed = self.topologies if topologies is None else topologies
        return route_steps(self.instance, [listed[number] for number in chosen], known)

    def tried(self) -> str:
        """What was looked at, in words."""
        more = f"; {self.left_out} ratings left out for lack of time" if self.left_out else ""
        return f"{len(self.topologies)} candidate topologies{more}"
