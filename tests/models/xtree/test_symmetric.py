"""Schedules carried over by translations: the bounds on tori that the issue names, and where they do not apply."""

from __future__ import annotations

import pytest
from models.xtree.cases import make

import synth
from synth.method import load
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.timestep_bounds import lower_bound


@pytest.mark.parametrize(("side", "steps"), [(5, 6), (8, 16), (16, 64), (20, 100)])
def test_square_tori_meet_the_receive_bound(side, steps):
    """ceil((side^2 - 1) / 4): 24 / 4 = 6, 63 / 4 -> 16, 255 / 4 -> 64, 399 / 4 -> 100."""
    record = synth.solve(make(network="torus", rows=side, cols=side), "symmetric")
    assert record.ok
    assert record.value == steps == -(-(side * side - 1) // 4)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(network="torus", rows=4, cols=16),
        dict(network="torus", rows=3, cols=7, chunks=2),
        dict(network="torus", rows=2, cols=8),
        dict(network="ring", nodes=9, chunks=3),
        dict(network="ring", nodes=6, bidirectional="off"),
        dict(network="hypercube", dimension=6, chunks=2),
        dict(network="torus", rows=5, cols=5, collective="reduce_scatter"),
        dict(network="torus", rows=4, cols=4, collective="allreduce", chunks=4),
    ],
    ids=str,
)
def test_other_translation_networks_meet_the_bound(parameters):
    instance = make(**parameters)
    record = synth.solve(instance, "symmetric")
    assert record.ok
    assert record.value == lower_bound(instance)[0]


@pytest.mark.parametrize("parameters", [dict(network="mesh", rows=3, cols=3), dict(network="equimesh", rows=4, cols=4)])
def test_networks_without_translations_are_unsupported(parameters):
    record = synth.solve(make(**parameters), "symmetric")
    assert record["termination"] == "unsupported"
    assert "translations" in record["message"]


def test_unequal_links_break_the_symmetry():
    """A ring whose link 0 is faster is no longer mapped onto itself."""
    raw = {"family": "xtree", "name": "t", "source": "test", "chunks": 1, "network": {"kind": "ring", "nodes": 4}}
    instance = load(FAMILY.instance).model_validate(raw)
    from synth.network import Network
    from synth.network.symmetry import translations

    base = instance.topology
    bandwidth = base.bandwidth.copy()
    bandwidth[0] *= 2
    uneven = Network(4, list(zip(base.src, base.dst, strict=True)), bandwidth, base.latency, grid=base.grid)
    assert translations(base) is not None
    assert translations(uneven) is None
