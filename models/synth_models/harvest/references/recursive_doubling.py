"""Harvest's Section 5: the best schedule for recursive doubling on one port, without any solver.

Source: Rahman et al., *Harvest*, Section 5 (Observations 3 and 4, Equation 8) and Algorithm 1.

============  =============  ===========================================  =======
paper         code           meaning                                      unit
============  =============  ===========================================  =======
i             ``exponent``   step i sends from u to ``u + 2^exponent``     –
m             ``message``    bytes of the whole vector over the bandwidth  s
t_c(a, b)     ``interval``   time of steps a … b on one ring               s
alpha_r       ``change``     reconfiguration delay                         s
============  =============  ===========================================  =======

Deviations. (1) The whole allreduce is scheduled at once: reduce-scatter with exponents 0 … s-1, then allgather with
s-1 … 0, so that an interval may span the middle. An interval is served by the ring of its smallest exponent; exponents
rise and then fall, so that is one of its two ends: the first step in the reduce-scatter half (Observation 4), the last
one in the allgather half, the smaller end across the middle. (2) The number of reconfigurations is no index of the
table: each interval after the first pays ``alpha_r``, which leaves O(log^2 n) intervals of O(1) each where the paper
has O(log^4 n). (3) ``alpha_r`` may differ from step to step, by what is hidden behind computation.

With one port every topology in question is a ring ``u -> u + 2^e``; that no other topology is better is Observation 4,
which the tests confirm against all permutations for 4 and 8 GPUs. It is about one delay for every change, also where
part of it is hidden. *Where delays depend on what changes* (``delay_per_circuit``, ``delay_by_ports``) it no longer
follows: two of these rings have no circuit in common, so a change between them always sets up n circuits and changes 2n
ports, but topologies that keep circuits change for less. The closed form is then the best over these rings only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.forced import pattern_shift

WHOLE, REDUCE_SCATTER, ALLGATHER = 0, 1, 2
RELATIVE = 1e-9  # how far the bytes of a step may be from message / 2^(exponent + 1)


class Shape(NamedTuple):
    """What recursive doubling is asked for: ``log2`` of the GPUs, which half, and the bytes of the whole vector."""

    stages: int
    half: int
    message_bytes: float


@jit
def best_rings(
    stages: int, half: int, message: float, alpha: float, delta: float, change: float
) -> tuple[float, IntArray]:
    """Least time in seconds, and for every step the exponent of the ring ``u -> u + 2^exponent`` that serves it.

    ``stages`` is log2 of the GPUs, ``half`` one of 0 (both), 1 (reduce-scatter), 2 (allgather), ``message`` the
    vector's bytes over the port's bandwidth; the exponents have shape (steps,). O(stages^2).
    """
    return best_rings_paying(stages, half, message, alpha, delta, np.full(2 * stages, change))


@jit
def best_rings_paying(
    stages: int, half: int, message: float, alpha: float, delta: float, change: FloatArray
) -> tuple[float, IntArray]:
    """(8), ``interval``, over all cuts into intervals: as :func:`best_rings`, with ``change[i]`` seconds for a change
    before step i, shape (steps,) or longer."""
    first, last = (0, 2 * stages) if half == 0 else ((0, stages) if half == 1 else (stages, 2 * stages))
    steps = last - first
    exponent = np.empty(steps, dtype=np.int64)
    distance = np.zeros(steps + 1)  # sums of 2^exponent: whole numbers, exact up to 2^53
    for i in range(steps):
        place = first + i
        exponent[i] = place if place < stages else 2 * stages - 1 - place
        distance[i + 1] = distance[i] + float(1 << exponent[i])
    least = np.full(steps + 1, np.inf)
    begin = np.zeros(steps + 1, dtype=np.int64)
    least[0] = 0.0
    for b in range(1, steps + 1):
        for a in range(b):
            ring = float(1 << min(exponent[a], exponent[b - 1]))
            interval = alpha * (b - a) + delta * (distance[b] - distance[a]) / ring + message * (b - a) / (2.0 * ring)
            before = least[a] + change[a] if a > 0 else 0.0  # the first topology is free
            if before + interval < least[b]:
                least[b] = before + interval
                begin[b] = a
    rings = np.empty(steps, dtype=np.int64)
    b = steps
    while b > 0:
        a = begin[b]
        rings[a:b] = min(exponent[a], exponent[b - 1])
        b = a
    return least[steps], rings


def shape_of(instance: HarvestInstance) -> Shape:
    """Recognise recursive doubling (either half or both, the allgather forwards) from the steps themselves.

    Raises :class:`UnsupportedError` when the instance is anything else or has more than one port.
    """
    if instance.ports != 1:
        raise UnsupportedError("the closed form is for one port")
    stages = instance.gpus.bit_length() - 1
    if instance.gpus != 1 << stages:
        raise UnsupportedError("recursive doubling needs a power of two of GPUs")
    shifts = [pattern_shift(pairs, instance.gpus) for pairs in instance.demands]
    up = [1 << e for e in range(stages)]
    known = {WHOLE: up + up[::-1], REDUCE_SCATTER: up, ALLGATHER: up[::-1]}
    for half, expected in known.items():
        if shifts == expected:
            size = instance.bytes_per_pair * [int(rows[0, 2]) for rows in instance.demands]
            message = size * 2.0 * np.array(expected)
            if np.ptp(message) <= RELATIVE * message[0]:
                return Shape(stages, half, float(message[0]))
            raise UnsupportedError("the steps' bytes are not message / 2^i as in recursive doubling")
    raise UnsupportedError("the steps are not those of recursive doubling with an allgather that runs forwards")


def applies(instance: HarvestInstance) -> bool:
    """Whether the closed form is for this instance."""
    try:
        shape_of(instance)
    except UnsupportedError:
        return False
    return True


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The best schedule over rings, the optimum over all topologies with one port if Observation 4 holds, which with
    delays that depend on what changes it need not (the message says so).

    Raises :class:`UnsupportedError` for other algorithms or more ports. Complexity: O(log^2 n), then the schedule.
    """
    # imported here: SciPy's solvers come with them, and `applies` is asked of every instance
    from synth_models.harvest.parts.delays import change_seconds
    from synth_models.harvest.parts.routing import route_steps
    from synth_models.harvest.parts.topologies import one_way_ring

    shape = shape_of(instance)
    whole = change_seconds(instance, np.array(instance.gpus), np.array(2 * instance.gpus))  # no circuit is kept
    seconds, rings = best_rings_paying(
        shape.stages,
        shape.half,
        shape.message_bytes / instance.port_bandwidth,
        instance.alpha,
        instance.hop_delay,
        np.maximum(float(whole) - instance.overlap, 0.0),
    )
    known = {e: one_way_ring(instance.gpus, 1, 1 << e) for e in set(rings.tolist())}
    schedule = route_steps(instance, [known[e] for e in rings.tolist()])
    changes = int(np.count_nonzero(np.diff(rings)))
    message = f"closed form {seconds:.9g} s, {changes} reconfigurations"
    if instance.delay_varies:
        message += (
            "; best over rings: with delays that depend on what changes, topologies that keep circuits may be better"
        )
    return Outcome("finished", schedule, message=message)
