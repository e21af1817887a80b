"""The schedule to begin with: the shortest of the references, which stop at a proven bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from synth.errors import UnsupportedError
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references import mesh2d_rings, pull, symmetric, tidalmesh, xtree

ALLREDUCES = {
    "pull": pull.solve,
    "symmetric": symmetric.solve,
    "mirror_xtree": xtree.solve_mirror,
    "tidalmesh": tidalmesh.solve,
    "mesh2d_rings": mesh2d_rings.solve,
}


def best_known(instance: XTreeInstance, options: RunOptions, bound: int) -> tuple[Schedule, str]:
    """The shortest schedule of the references, and which one it was."""
    joint = instance.collective == "allreduce"
    best: tuple[Schedule, str] | None = None
    for name, make in (_allreduces if joint else _allgathers)(instance, options, bound):
        try:
            schedule = make()
        except UnsupportedError:
            continue
        if best is None or schedule.steps < best[0].steps:
            best = schedule, name
            whole = partial(copy, schedule) if joint else partial(of_instance, instance, schedule)
            options.held.offer(whole, schedule.steps, f"incumbent {schedule.steps} by {name}")
        if best[0].steps <= bound or (not joint and options.out_of_time()):
            break
    assert best is not None
    return of_instance(instance, best[0]), best[1]


def as_allgather(instance: XTreeInstance) -> Network:
    """The network on which the instance is an allgather: the reversed one for a reduce-scatter."""
    return instance.topology.reversed() if instance.collective == "reduce_scatter" else instance.topology


def of_instance(instance: XTreeInstance, allgather: Schedule) -> Schedule:
    """The instance's schedule made of the one that was found: a reduce-scatter is an allgather backwards."""
    return allgather.reversed_in_time(adds=True) if instance.collective == "reduce_scatter" else allgather


def _allgathers(
    instance: XTreeInstance, options: RunOptions, bound: int
) -> Iterator[tuple[str, Callable[[], Schedule]]]:
    """Allgathers on the network on which the instance is one."""
    network, chunks, seeds = as_allgather(instance), instance.chunks, np.random.SeedSequence(options.seed)
    children = [np.random.SeedSequence([options.seed, restart]).spawn(1)[0] for restart in range(10)]
    yield "pull", partial(pull.allgather, network, chunks, children[0])
    yield "symmetric", lambda: symmetric.allgather(network, chunks, seeds.spawn(1)[0], bound)
    for child in children[1:]:
        yield "pull", partial(pull.allgather, network, chunks, child)
    yield "xtree", lambda: xtree.allgather(network, chunks, seeds.spawn(1)[0])


def _allreduces(instance: XTreeInstance, options: RunOptions, _: int) -> Iterator[tuple[str, Callable[[], Schedule]]]:
    bare = replace(options, method={"restarts": 10})
    for name, method in ALLREDUCES.items():
        yield name, lambda method=method: method(instance, bare).solution  # type: ignore[misc]
