"""Method ``chunk_count`` (ours): the number of chunks in which a node's data is moved soonest, in seconds.

XTree's "chunk-count adaptation" (Section IV-A and its conclusion): small chunks keep all links busy, but a timestep
costs a latency. The paper's rule is a multiple of the least degree, 4 on EquiMesh. Here the numbers from 1 on are
tried. For each that its bound in seconds leaves open ``pull`` makes a schedule (``forest`` too where it applies), and
``synth.schedule.timing`` says when it ends. The search ends where no larger number can be quicker, or at ``most``.

The record is of the instance as it is: a schedule for its own number of chunks, with the certified bound on its
timesteps. Beside these the certificate has ``chunk_times``, a lower bound on the seconds of every number of chunks
(theorem in ``check/chunk_times.py``, which verifies it), and the message the best number found and its seconds.

Complexity: a ``pull`` for each number that is tried. No random choice but ``pull``'s, by the seed.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.schedule.timing import earliest_times
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.chunk_times import at_count, beyond, cut_into, least_seconds, node_bytes
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references import forest, pull

Bound = tuple[int, str, dict[str, Any]]
_RELAXED: dict[tuple[str, int], Bound] = {}  # by network and collective, and chunks


@dataclass
class Choice:
    """What is known of the numbers of chunks 1 to K: bounds on the timesteps, schedules where they were made."""

    instance: XTreeInstance
    bounds: dict[int, Bound] = field(default_factory=dict)
    schedules: dict[int, Schedule] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    beyond: bool = False

    @property
    def chunks(self) -> int:
        """The number found soonest, the smallest of several."""
        return min(self.seconds, key=lambda chunks: (self.seconds[chunks], chunks))

    @property
    def least(self) -> float:
        """No number takes fewer seconds (if not ``beyond``: none of those tried)."""
        exact = least_seconds(self.instance, {c: bound[0] for c, bound in self.bounds.items()}, self.beyond)
        return float(exact) * (1 - 1e-15)  # a float never above the exact number

    def stated(self) -> dict[str, Any]:
        """``chunk_times`` of the certificate."""
        counts = [{"timesteps": steps, "certificate": proof} for steps, _, proof in self.bounds.values()]
        return {"least_seconds": self.least, "counts": counts, "beyond": self.beyond}

    def told(self) -> str:
        """The answer in words."""
        whose = "number of chunks" if self.beyond else f"number up to {len(self.bounds)}"
        best = self.chunks
        return (
            f"{node_bytes(self.instance):.0f} bytes a node: soonest in {best} chunk{'s' if best > 1 else ''}, "
            f"{self.schedules[best].steps} timesteps, {self.seconds[best] * 1e6:.4g} us; no {whose} takes less than "
            f"{self.least * 1e6:.4g} us"
        )


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``chunk_count``."""
    choice = choose(instance, options)
    own = choice.schedules.get(instance.chunks)
    known = choice.bounds.get(instance.chunks)
    if own is None or known is None:
        own, known = _solved(instance, options)
    steps, words, certificate = known
    message = choice.told()
    options.held.offer(partial(copy, own), own.steps, message)
    return Outcome("finished", own, float(steps), words, certificate | {"chunk_times": choice.stated()}, message)


def choose(instance: XTreeInstance, options: RunOptions) -> Choice:
    """Try the numbers of chunks from 1 on, for the bytes a node that the instance has."""
    choice = Choice(instance)
    for chunks in range(1, int(options.method.get("most", 32)) + 1):
        cut = cut_into(instance, chunks)
        choice.bounds[chunks] = lower_bound(cut)
        if not choice.seconds or at_count(instance, chunks, choice.bounds[chunks][0]) < min(choice.seconds.values()):
            schedule, choice.bounds[chunks] = _solved(cut, options)
            choice.schedules[chunks] = schedule
            timing = earliest_times(cut.topology, cut.task, schedule, cut.chunk_bytes)
            choice.seconds[chunks] = timing.completion
        choice.beyond = beyond(instance, chunks) >= min(choice.seconds.values())
        if choice.beyond or options.out_of_time():
            break
    return choice


def _solved(cut: XTreeInstance, options: RunOptions) -> tuple[Schedule, Bound]:
    """The shortest schedule of the references for this number of chunks, and the strongest bound on its timesteps."""
    plain = replace(options, method={"restarts": options.method.get("restarts", 10)})
    made = pull.solve(cut, plain).solution
    assert isinstance(made, Schedule)
    bound = lower_bound(cut)
    if cut.collective == "allreduce" and made.steps > bound[0]:
        try:
            other = forest.solve(cut, plain).solution
        except UnsupportedError:
            other = None
        if isinstance(other, Schedule) and other.steps < made.steps:
            made = other
    if made.steps > bound[0] and options.method.get("relaxation", True) and cut.collective != "allreduce":
        bound = _by_relaxation(cut, plain, bound)
    return made, bound


def _by_relaxation(cut: XTreeInstance, options: RunOptions, bound: Bound) -> Bound:
    """The bound that the LP relaxation proves, where it is stronger. It does not depend on the bytes, so one run keeps
    it for the next sizes."""
    key = cut.network.model_dump_json() + cut.collective, cut.chunks
    if key not in _RELAXED:
        found = bound
        try:
            from synth_models.xtree.bounds import relaxation  # imports Pyomo

            outcome = relaxation.solve(cut, options)
            if outcome.bound is not None and outcome.bound > bound[0] and outcome.certificate is not None:
                found = round(outcome.bound), outcome.bound_proof or "", dict(outcome.certificate)
        except UnsupportedError:
            pass
        _RELAXED[key] = found
    return _RELAXED[key]
