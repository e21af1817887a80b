"""Method ``forest`` (ours): an allreduce over a packing of shallow spanning trees, scheduled by justification.

Every chunk is summed up one spanning tree and handed down the same tree, so both halves share the network instead of
following each other. Where links come in equal opposite numbers the volume bound 2 (N-1) C N / links can be met by
trees that load all edges alike (:mod:`.spanning_trees`); what schedules lose is the way up and down one tree while the
links fill and drain, which :mod:`.justified` keeps short.

Restarts try roots near the network's centre, from the centre alone to all nodes, and trees as high as the centre is
eccentric or one hop more; the shortest schedule is kept.
"""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.justified import allreduce
from synth_models.xtree.references.multitree import hold_first
from synth_models.xtree.references.spanning_trees import balanced_trees, edges_of, tree_links

MOST_PAIRS = 20_000_000  # (chunk, node) pairs: about 1 GB


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``forest``; unsupported for other collectives and where links are not symmetric. Stops at the bound, at
    the time limit or after ``restarts``."""
    if instance.collective != "allreduce":
        raise UnsupportedError("forest is for allreduce; the bound of an allgather is met by pull")
    network, trees = instance.topology, instance.total_chunks
    if network.nodes == 1:
        return Outcome("finished", Schedule.of([], [], [], []), 0.0, "a single node has nothing to send")
    if trees * network.nodes > MOST_PAIRS:
        raise UnsupportedError(f"forest takes at most {MOST_PAIRS} pairs of a chunk and a node")
    edges = edges_of(network)
    bound, proof, certificate = lower_bound(instance)
    eccentricity = network.distances.max(axis=1)
    radius, diameter = int(eccentricity.min()), int(eccentricity.max())
    options.held.offer_bound(float(bound), proof, certificate)
    hold_first(instance, options)
    best: Schedule | None = None
    used = 0
    for restart in range(int(options.method.get("restarts", 10))):
        if best is not None and (options.out_of_time() or best.steps <= bound):
            break
        random = np.random.default_rng([options.seed, restart])
        spread = (diameter - radius) * (1, 2, 0, 3)[restart // 2 % 4] // 3
        central = np.flatnonzero(eccentricity <= radius + spread)
        roots = random.permutation(np.resize(random.permutation(central), trees)).astype(np.int32)
        parent = balanced_trees(network, edges, roots, radius + restart % 2, random)
        up, down = tree_links(edges, parent)
        schedule = allreduce(parent, up, down, network.links, int(options.method.get("passes", 30)), bound, random)
        used += 1
        if best is None or schedule.steps < best.steps:
            best = schedule
            options.held.offer(partial(copy, schedule), schedule.steps, f"best of {used} restarts")
    message = f"best of {used} restart{'s' if used > 1 else ''}"
    return Outcome("finished", best, float(bound), proof, certificate, message)
