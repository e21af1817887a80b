"""The enumeration that the exact programs are compared with, on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from models.harvest import exhaustive

import synth

FABRIC = {"port_bandwidth": "1e9", "alpha": "1", "delta": "0.25", "message_bytes": "8e9"}


def _made(**changes: str):
    return synth.make("harvest", **{**FABRIC, "gpus": "4", "ports": "1", "reconfiguration_delay": "100", **changes})


def test_one_port_by_hand():
    """4 GPUs, 8 s of message, reduce-scatter: steps of 4 s and 2 s a pair. On the ring: 1 + 0.25 + 4 and, two hops and
    two pairs a link, 1 + 0.5 + 4; a change for 0.1 s makes the second 1 + 0.25 + 2."""
    ring = _made(algorithm="recursive_doubling", half="reduce_scatter")
    assert exhaustive.optimum(ring) == pytest.approx(5.25 + 5.5)
    assert exhaustive.optimum(
        _made(algorithm="recursive_doubling", half="reduce_scatter", reconfiguration_delay="0.1")
    ) == pytest.approx(5.25 + 3.25 + 0.1)


def test_one_port_two_hops():
    """A single pair (0, 2) on the ring 0 -> 1 -> 2 -> 3: 2 hops, one pair a link."""
    instance = _made(algorithm="recursive_doubling")
    times = exhaustive.one_port_seconds(instance, np.array([[0, 2]]), 3.0)
    orders = list(exhaustive.permutations(range(4)))
    assert times[orders.index((1, 2, 3, 0))] == pytest.approx(1 + 0.5 + 3)
    assert times[orders.index((2, 3, 0, 1))] == pytest.approx(1 + 0.25 + 3)
    assert np.isinf(times[orders.index((1, 0, 3, 2))])


def test_every_topology_is_listed_once():
    """Matrices with row and column sums 2: 1, 3, 21, 282 (OEIS A000681)."""
    for gpus, count in ((1, 1), (2, 3), (3, 21), (4, 282)):
        found = [links.tobytes() for links in exhaustive.topologies(gpus, 2)]
        assert len(found) == len(set(found)) == count


def test_hop_limits_by_hand():
    """Links 0 -> 1 (2), 0 -> 2, 2 -> 1: within one hop the pair (0, 1) has load 1/2, within two 1/3; not (2, 0)."""
    links = np.array([[0, 2, 1], [0, 0, 0], [0, 1, 0]])
    pair = np.array([[0, 1]])
    assert exhaustive.hop_limited_load(pair, links, 1) == pytest.approx(1 / 2)
    assert exhaustive.hop_limited_load(pair, links, 2) == pytest.approx(1 / 3)
    assert exhaustive.hop_limited_load(np.array([[2, 0]]), links, 2) == float("inf")
