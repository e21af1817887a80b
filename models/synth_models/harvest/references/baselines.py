"""What the published evaluation compares with: static topologies and BvN (reconfigure before every step).

None has a guarantee on the time; each is one pass over the steps after the profiles it needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import most_partners
from synth_models.harvest.parts.flows.profiles import profile, step_time
from synth_models.harvest.parts.routing import route_steps
from synth_models.harvest.parts.topologies import Topology, direct, kautz, shifted_ring, static_tori


def static_ring(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The 1-D ring throughout: one-way with one port, else half of the ports each way."""
    return _static(instance, [shifted_ring(instance.gpus, instance.ports)])


def hold_ring(instance: HarvestInstance, options: RunOptions, why: str) -> None:
    """Have the run hold the static ring, if it joins all pairs, for the case that it is stopped; ``why`` by what."""
    with suppress(UnsupportedError):
        found = static_ring(instance, options).solution
        options.held.offer(lambda: found, math.inf, f"the static ring stands in: {why} did not end in time")


def static_torus(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The 2-D or 3-D torus (the faster of those that the ports allow, most even sides) throughout."""
    tori = static_tori(instance)
    if not tori:
        raise UnsupportedError(f"no torus on {instance.gpus} GPUs with {instance.ports} ports")
    return _static(instance, tori)


def static_kautz(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The generalised Kautz network whose degree is the number of ports throughout."""
    expander = kautz(instance.gpus, instance.ports)
    if expander is None:
        raise UnsupportedError("a Kautz network needs at least 2 ports and fewer than GPUs")
    return _static(instance, [expander])


def _static(instance: HarvestInstance, choices: Sequence[Topology]) -> Outcome:
    best: tuple[float, Topology] | None = None
    for topology in choices:
        known = {p.tobytes(): profile(p, topology.links, instance.gpus) for p in _distinct(instance)}
        total = sum(step_time(instance, i, known[p.tobytes()])[0] for i, p in enumerate(instance.demands))
        if np.isfinite(total) and (best is None or total < best[0]):
            best = (total, topology)
    if best is None:
        raise UnsupportedError(f"a pair cannot be reached on {choices[0].name}")
    return Outcome("finished", route_steps(instance, [best[1]] * len(instance.steps)), message=best[1].name)


def bvn(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Every step on its own direct topology: reconfigure before every step whose pattern differs.

    Raises :class:`UnsupportedError` when a GPU has more partners in a step than ports: no topology joins all pairs.
    """
    known: dict[bytes, Topology] = {}
    for i, pairs in enumerate(instance.demands):
        if pairs.tobytes() not in known:
            links = direct(pairs, instance.gpus, instance.ports)
            if links is None:
                busiest = f"a GPU of step {i} has {most_partners(pairs)} partners"
                raise UnsupportedError(f"{busiest} and {instance.ports} ports: the step has no direct topology")
            known[pairs.tobytes()] = Topology("direct", links)
    return Outcome("finished", route_steps(instance, [known[pairs.tobytes()] for pairs in instance.demands]))


def _distinct(instance: HarvestInstance) -> list[IntArray]:
    return list({pairs.tobytes(): pairs for pairs in instance.demands}.values())
