"""Speed-ups over message sizes and delays when every circuit that a change sets up takes its share of the delay.

The delay of the grid is that of setting up all ``gpus * ports`` circuits; a change of some takes that share of it. What
a change of everything costs is thus as with one delay for every change, and so is everything that never changes;
profiles and candidates are shared with :mod:`synth_papers.harvest.heatmaps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.parts.delays import changed_between
from synth_models.harvest.parts.kept_topologies import jumping_rings, kept_topologies
from synth_papers.harvest.heatmaps import Grid, Rates, grid, message_bytes, rates, step_costs
from synth_papers.harvest.workloads import GPUS, Workload, published_candidates


@dataclass(frozen=True)
class CircuitGrid(Grid):
    """As :class:`Grid`, with ``circuits``, how many the best schedule sets up, shape (sizes, delays)."""

    circuits: IntArray


def rate_with_kept(workload: Workload, gpus: int = GPUS) -> Rates:
    """The workload's profiles on the published candidates and on topologies that keep circuits."""
    instance = workload.instance(gpus=gpus)
    more = [*kept_topologies(instance), *jumping_rings(instance)]
    return rates(instance, [*published_candidates(instance, workload.candidates), *more])


def circuit_grid(rated: Rates, sizes: FloatArray, delays: FloatArray, static: Sequence[int]) -> CircuitGrid:
    """Times over the grid with a delay per circuit; ``static`` as for :func:`grid`.

    O(sizes * delays * steps * topologies^2).
    """
    instance = rated.instance
    alike = grid(rated, sizes, delays, static)
    set_up, _ = changed_between([one.links for one in rated.topologies], instance.gpus, instance.ports)
    per_circuit = delays / (instance.gpus * instance.ports)
    weight = instance.bytes_per_pair / message_bytes(instance)
    times, bvn = np.empty(alike.best.shape), np.full(alike.best.shape, np.inf)
    changes, circuits = (np.empty(times.shape, dtype=np.int64) for _ in range(2))
    steps = np.arange(len(weight))
    for row, size in enumerate(sizes):
        seconds = size * weight / instance.port_bandwidth
        cost = step_costs(rated.hops, rated.load, rated.pattern, seconds, instance.alpha, instance.hop_delay)
        if rated.own.min() >= 0:
            bvn[row] = cost[steps, rated.own].sum() + set_up[rated.own[:-1], rated.own[1:]].sum() * per_circuit
        _schedules(cost, set_up, per_circuit, times[row], changes[row], circuits[row])
    return CircuitGrid(alike.sizes, alike.delays, times, bvn, alike.static, changes, circuits)


@jit
def _schedules(
    cost: FloatArray,
    set_up: IntArray,
    per_circuit: FloatArray,
    times: FloatArray,
    changes: IntArray,
    circuits: IntArray,
) -> None:
    """Shortest path over (step, topology) for every delay; writes its seconds, changes and circuits set up."""
    steps, topologies = cost.shape
    for r in range(len(per_circuit)):
        total = cost[0].copy()
        count, circuit = np.zeros(topologies, dtype=np.int64), np.zeros(topologies, dtype=np.int64)
        for i in range(1, steps):
            following = total.copy()
            origin = np.arange(topologies)
            for t in range(topologies):
                for old in range(topologies):
                    through = total[old] + set_up[old, t] * per_circuit[r]
                    if through < following[t]:
                        following[t] = through
                        origin[t] = old
            moved, longer = count[origin], circuit[origin]
            for t in range(topologies):
                if origin[t] != t:
                    moved[t] += 1
                    longer[t] += set_up[origin[t], t]
            count, circuit = moved, longer
            total = following + cost[i]
        best = np.argmin(total)
        times[r] = total[best]
        changes[r] = count[best]
        circuits[r] = circuit[best]
