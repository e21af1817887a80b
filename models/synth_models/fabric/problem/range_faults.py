"""Bandwidths, latencies and rates of adding that no machine has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synth.errors import Fault
from synth_models.fabric.problem.machine import Machine

LEAST_BANDWIDTH, MOST_BANDWIDTH, MOST_LATENCY = 1e-3, 1e18, 1e6


def range_faults(machine: Machine) -> Iterator[Fault]:
    """Bandwidths and latencies that no machine has, and that would leave exact times no room."""
    net = machine.network
    for e in np.flatnonzero((net.bandwidth < LEAST_BANDWIDTH) | (net.bandwidth > MOST_BANDWIDTH)).tolist():
        words = f"the bandwidth must be in {LEAST_BANDWIDTH:g}..{MOST_BANDWIDTH:g} bytes/s"
        yield Fault(f"network.links[{e}]", words, float(net.bandwidth[e]), True)
    rate = machine.abilities.add_rate
    for v in np.flatnonzero((rate < LEAST_BANDWIDTH) | ((rate > MOST_BANDWIDTH) & np.isfinite(rate))).tolist():
        words = f"the add_rate must be in {LEAST_BANDWIDTH:g}..{MOST_BANDWIDTH:g} bytes/s"
        yield Fault(f"network, switch {machine.names[v]}", words, float(rate[v]), True)
    for e in np.flatnonzero(net.latency > MOST_LATENCY).tolist():
        yield Fault(
            f"network.links[{e}]", f"the latency must be at most {MOST_LATENCY:g} s", float(net.latency[e]), True
        )


def rate_faults(switching: Any) -> Iterator[Fault]:
    """Rates of adding likewise, as an instance states them for all switches."""
    rate = switching.get("add_rate") if isinstance(switching, dict) else None
    if isinstance(rate, (int, float)) and not LEAST_BANDWIDTH <= rate <= MOST_BANDWIDTH:
        words = f"must be in {LEAST_BANDWIDTH:g}..{MOST_BANDWIDTH:g} bytes/s"
        yield Fault("switching.add_rate", words, rate, True)
