"""What the Harvest paper gets wrong, each with the computation that shows it."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.reproduction.collect import Reproduction
from synth_models.harvest.parts.flows.profiles import profile
from synth_models.harvest.parts.topologies import one_way_ring
from synth_models.harvest.references.recursive_doubling import REDUCE_SCATTER, WHOLE, best_rings
from synth_papers.harvest import workloads as published
from synth_papers.harvest.workloads import ALPHA, BANDWIDTH, DELTA, KIB


def errata(page: Reproduction) -> None:
    """Appendix A's demand, the missing latency, the topology of an allgather interval."""
    _double_bytes(page)
    _no_latency(page)
    _allgather_half(page)


def unit_load(gpus: int, shift: int, ring: int) -> float | None:
    """Load of the pattern ``u -> u + shift`` on the one-port ring, None where it cannot run."""
    pairs = np.stack([np.arange(gpus), (np.arange(gpus) + shift) % gpus], axis=1)
    found = profile(pairs, one_way_ring(gpus, 1, ring).links, gpus)
    return float(found.unit_load[0]) if len(found.hops) else None


def _double_bytes(page: Reproduction) -> None:
    """With D = m_i * M_i and theta * D routed, theta = 1 / (m_i * u_i), so beta * m_i / theta is beta * m_i^2 * u_i."""

    def total(message: float, power: int) -> float:
        loads = [unit_load(8, 1 << e, 1) for e in range(3)]
        return sum((message / (2 << e)) ** power * load for e, load in enumerate(loads) if load is not None)

    page.erratum(
        "Appendix A, (12) and (15)",
        "demand D = m_i * M_i together with theta_i * T_i >= beta * m_i.",
        "unit demands M_i in (12); m_i stays in (15).",
        f"n = 8, reduce-scatter half on the ring, beta = 1. Doubling m from 1 to 2 multiplies the printed time by "
        f"{total(2, 2) / total(1, 2):g} ({total(1, 2):g} to {total(2, 2):g}). It multiplies the corrected one by "
        f"{total(2, 1) / total(1, 1):g} ({total(1, 1):g} to {total(2, 1):g}, which is (8): 1.5 beta m).",
    )


def _no_latency(page: Reproduction) -> None:
    message, change, stages = KIB / BANDWIDTH, 1e-6, 6
    best, _ = best_rings(stages, WHOLE, message, ALPHA, DELTA, change)
    _, blind = best_rings(stages, WHOLE, message, ALPHA, 0.0, change)
    paid = _cost(blind, stages, message, change)
    page.erratum(
        "Appendix A, (9)",
        "the objective is the sum of the transmission times T_i alone.",
        "alpha + delta * l_i belongs to a step's time, as in (3) and (4); ours keeps it (`latency=off` gives theirs).",
        f"recursive doubling, n = 64, 1 KiB, alpha_r = 1 us, delta = 500 ns. The schedule that is best without latency "
        f"has {np.count_nonzero(np.diff(blind))} reconfigurations and takes {paid * 1e6:.4g} us. The best one takes "
        f"{best * 1e6:.4g} us.",
    )


def _cost(rings: IntArray, stages: int, message: float, change: float) -> float:
    """Seconds of a schedule for a whole recursive doubling, from the profiles."""
    exponents = [*range(stages), *reversed(range(stages))]
    total = change * float(np.count_nonzero(np.diff(rings)))
    for e, ring in zip(exponents, rings.tolist(), strict=True):
        load = unit_load(1 << stages, 1 << e, 1 << ring)
        assert load is not None
        total += ALPHA + DELTA * load + message / (2 << e) * load  # on a one-way ring hops and load are equal
    return total


def _allgather_half(page: Reproduction) -> None:
    gpus = published.GPUS
    reached = [shift for shift in (32, 16, 8, 4, 2, 1) if unit_load(gpus, shift, 32) is not None]
    backwards, _ = best_rings(6, REDUCE_SCATTER, 1.0, 0.0, 0.0, 1e9)
    forwards = sum((unit_load(gpus, 1 << e, 1) or 0.0) / (2 << e) for e in reversed(range(6)))
    page.erratum(
        "Section 5.1, Observations 3 and 4",
        "an interval is best served by the direct topology of its first step, which keeps all later steps connected.",
        "true of the reduce-scatter half only. In the allgather half distances shrink: the topology of the last step "
        "serves an interval, and across the middle that of the end with the smaller distance.",
        f"n = 64: of the six allgather steps only the shift {', '.join(map(str, reached))} can run on the ring of the "
        f"first one. On the ring of the last one all six run and take {forwards:g} beta m, as the reduce-scatter half "
        f"does by (8): {backwards:g} beta m.",
    )
