"""The best schedule over candidate topologies: ``candidates`` (shortest path) and ``dp_k`` (Harvest's Algorithm 1).

Every step is rated on every candidate by a maximum concurrent flow (see :mod:`profiles`), then a dynamic program picks
the topology of every step. Optimal over the candidates listed by :mod:`topologies` and the hop limits the profiles
list; a topology outside may be better, so no bound is claimed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.harvest.flows import UNREACHABLE, Profile
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.plan import FloatArray, IntArray, Plan
from synth_models.harvest.planning import make_plan
from synth_models.harvest.profiles import cost_matrix, profile
from synth_models.harvest.schedule_dp import front, shortest_schedule
from synth_models.harvest.topologies import Topology, candidates

RATING_SHARE = 0.6  # of the time limit; what is not rated by then is left out, and the message says so


@dataclass(frozen=True)
class Rated:
    """Candidates with the seconds of every step on each, shape (steps, topologies), and the profiles behind them."""

    topologies: list[Topology]
    table: dict[bytes, list[Profile]]
    cost: FloatArray
    left_out: int

    def plan(self, instance: HarvestInstance, chosen: IntArray) -> Plan:
        """The plan that runs step i on topology ``chosen[i]``."""
        known = [self.table[pairs.tobytes()][t] for pairs, t in zip(instance.pairs, chosen, strict=True)]
        return make_plan(instance, [self.topologies[t] for t in chosen], known)


def rate(instance: HarvestInstance, options: RunOptions, topologies: list[Topology] | None = None) -> Rated:
    """Rate the candidates of the instance (or those given), the time limit permitting.

    Topologies made from the steps are rated first, so that every step can run on one of them.
    """
    found = candidates(instance) if topologies is None else topologies
    patterns = {pairs.tobytes(): pairs for pairs in instance.pairs}
    table: dict[bytes, list[Profile]] = {key: [UNREACHABLE] * len(found) for key in patterns}
    own = [number for number, topology in enumerate(found) if topology.name.startswith("direct")]
    order = own + [number for number in range(len(found)) if number not in set(own)]
    limit = options.time_limit_s
    left_out = 0
    for number in order:
        if limit is not None and number not in own and time.monotonic() - options.started > RATING_SHARE * limit:
            left_out += 1
            continue
        for key, pairs in patterns.items():
            table[key][number] = profile(pairs, found[number].links, instance.gpus)
    cost, _ = cost_matrix(instance, table)
    if not np.all(np.isfinite(cost).any(axis=1)):
        raise UnsupportedError("a step cannot run on any of the topologies")
    return Rated(found, table, cost, left_out)


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The schedule of least time over the candidates: a shortest path over (step, topology).

    Complexity: a profile per distinct pattern and candidate, then O(steps * candidates).
    """
    rated = rate(instance, options)
    _, chosen = shortest_schedule(rated.cost, instance.reconfiguration_delay)
    return Outcome("finished", rated.plan(instance, chosen), message=_tried(rated))


def solve_dp_k(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Harvest's Algorithm 1 over the candidates: the least time for every number of reconfigurations, and the best.

    The message lists the Pareto front as ``k: seconds without the reconfigurations``. Complexity: O(steps^2 *
    candidates + steps^3). The value is that of ``candidates``.
    """
    rated = rate(instance, options)
    found = front(rated.cost)
    k = found.best(instance.reconfiguration_delay)
    wanted = options.method.get("reconfigurations")
    if wanted is not None:
        k = min(int(wanted), len(found.time) - 1)
    points = ", ".join(f"{j}: {found.time[j]:.6g}" for j in found.pareto())
    word = "best k" if wanted is None else "k as asked"
    message = f"{word} = {k}; Pareto front (reconfigurations: seconds without their delays) {points}; {_tried(rated)}"
    return Outcome("finished", rated.plan(instance, found.topology[k]), message=message)


def _tried(rated: Rated) -> str:
    more = f", {rated.left_out} left out for lack of time" if rated.left_out else ""
    return f"{len(rated.topologies) - rated.left_out} candidate topologies{more}"
