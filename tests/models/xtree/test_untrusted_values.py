"""Odd numbers in every field of a stored schedule and of every kind of certificate: nothing wrong passes, nothing
crashes.

The oracle for schedules is a replay in plain Python sets, for certificates the optimum of the exhaustive search: no
certificate whatever may carry a bound above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.odd_values import ODD, mutants
from models.xtree import brute_force
from models.xtree.cases import make

from synth.method import load
from synth.options import RunOptions
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.relaxation import refute
from synth_models.xtree.check.certificates import check_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.instance import XTreeInstance

CASES = {
    "allgather": dict(network="ring", nodes=3),
    "reduce_scatter": dict(network="kautz", nodes=4, degree=2),
    "allreduce": dict(network="line", nodes=3),
}


def plain_replay(instance: XTreeInstance, rows: list[tuple[int, int, int, bool]]) -> int | None:
    """Timesteps of a valid schedule, None for any other; contributions as Python sets, numbers of any size."""
    network, nodes, total = instance.topology, instance.topology.nodes, instance.total_chunks
    ends = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    reduces, everything = instance.collective != "allgather", frozenset(range(nodes))
    owner = [k // instance.chunks for k in range(total)]
    has = {
        (v, k): frozenset([v]) if reduces else (everything if v == owner[k] else frozenset())
        for v in range(nodes)
        for k in range(total)
    }
    if any(not 0 <= e < len(ends) or not 0 <= k < total or t < 1 for t, e, k, _ in rows):
        return None
    if len({(t, e) for t, e, _, _ in rows}) < len(rows):
        return None
    for step in sorted({t for t, _, _, _ in rows}):
        before = dict(has)
        for _, e, k, adds in sorted((row for row in rows if row[0] == step), key=lambda row: row[3]):
            u, v = ends[e]
            sent = before[u, k]
            if adds:
                if not reduces or sent & has[v, k]:
                    return None
                has[v, k] |= sent
            elif sent != everything:
                return None
            else:
                has[v, k] = everything
    wanted = [
        (v, k) for v in range(nodes) for k in range(total) if instance.collective != "reduce_scatter" or v == owner[k]
    ]
    return max((t for t, _, _, _ in rows), default=0) if all(has[pair] == everything for pair in wanted) else None


def judged(instance: XTreeInstance, packed: Mapping[str, Any]) -> float | None:
    """What the family makes of stored data: the value if it accepts them. Only ``ValueError`` and ``KeyError`` may end
    the reading, nothing the check."""
    try:
        schedule = load(FAMILY.unpack)(instance, packed)
    except (ValueError, KeyError):
        return None
    verdict = check_schedule(instance, schedule)
    if not verdict.ok:
        assert verdict.value is None
        return None
    rows = list(zip(*(getattr(schedule, name).tolist() for name in ("step", "link", "chunk", "adds")), strict=True))
    assert verdict.value == plain_replay(instance, rows)
    return verdict.value


@pytest.mark.long(after=2)
@pytest.mark.parametrize("collective", CASES)
def test_odd_numbers_in_a_stored_schedule(collective: str) -> None:
    instance = make(**CASES[collective], collective=collective)
    packed = load(FAMILY.pack)(FAMILY.method("pull").load()(instance, RunOptions()).solution)
    value = judged(instance, packed)
    optimum = brute_force.minimum_timesteps(instance.topology, collective, 1)
    assert value is not None
    assert value >= optimum
    for key in packed:
        for mutant in mutants(packed[key]):
            found = judged(instance, packed | {key: mutant})
            assert found is None or found >= optimum
        assert key == "adds" or judged(instance, {k: v for k, v in packed.items() if k != key}) is None
    one = load(FAMILY.pack)(FAMILY.method("pull").load()(make(network="line", nodes=2), RunOptions()).solution)
    assert judged(make(network="line", nodes=2), one | {"step": [1, 2**31 - 2]}) == 2**31 - 2


@settings(derandomize=True, max_examples=some(300), deadline=None)
@given(st.data())
def test_any_columns_of_odd_numbers(data: st.DataObject) -> None:
    instance = make(network="line", nodes=2)
    numbers = st.sampled_from([*ODD[:9], 2, 2**31 - 1])
    count = data.draw(st.integers(0, 3))
    packed = {key: data.draw(st.lists(numbers, min_size=count, max_size=count)) for key in ("step", "link", "chunk")}
    judged(instance, packed)


def kautz(collective: str) -> XTreeInstance:
    """Kautz with 9 nodes, or its links turned round for a reduce-scatter: 5 timesteps, and the LP refutes 4."""
    network = make(network="kautz", nodes=9, degree=2).topology
    ends = (network.src, network.dst) if collective == "allgather" else (network.dst, network.src)
    links = [{"src": int(u), "dst": int(v)} for u, v in zip(*ends, strict=True)]
    raw = {"kind": "links", "nodes": 9, "links": links}
    return XTreeInstance.model_validate(
        {"name": "t", "source": "test", "network": raw, "collective": collective, "chunks": 1}
    )


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("nodes", [2, 3])
def test_no_odd_number_in_a_certificate_lifts_a_bound_above_the_optimum(collective: str, nodes: int) -> None:
    instance = make(network="line", nodes=nodes, collective=collective)
    optimum = brute_force.minimum_timesteps(instance.topology, collective, 1)
    arcs = len(instance.topology.arcs[0])
    certificates: list[dict[str, Any]] = [
        {"binding": "cut", "inside": [0], "crossings": 1, "capacity": 1},
        {"binding": "diameter", "pair": [0, nodes - 1]},
        {"binding": "late arrivals", "node": 0, "hops": nodes - 1, "side": "in"},
        {"binding": "late arrivals", "node": nodes - 1, "hops": nodes - 1, "side": "out"},
        {"binding": "volume"},
        {
            "binding": "relaxation",
            "horizon": optimum,
            "capacity": np.ones((arcs, optimum), dtype=np.int64),
            "conservation": np.ones((nodes, nodes, optimum), dtype=np.int64),
            "causality": np.ones((nodes, arcs, optimum), dtype=np.int64),
        },
    ]
    for certificate in certificates:
        for key in certificate:
            for mutant in mutants(certificate[key]):
                assert check_bound(instance, optimum + 1, certificate | {key: mutant})
            check_bound(instance, 1, {k: v for k, v in certificate.items() if k != key})


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
def test_odd_multipliers_do_not_stretch_a_refutation(collective: str) -> None:
    """The least 64-bit number among the multipliers refuted any horizon, because its absolute value is negative."""
    instance = kautz(collective)
    network = instance.topology if collective == "allgather" else instance.topology.reversed()
    certificate = refute(network, 1, 4, RunOptions()).certificate
    assert certificate is not None
    assert check_bound(instance, 5, certificate) == []
    for key in ("horizon", "capacity", "conservation", "causality"):
        for mutant in mutants(certificate[key]):
            assert check_bound(instance, 6, certificate | {key: mutant})
    nodes, arcs = 9, len(instance.topology.arcs[0])
    for horizon in (5, 6, 20):  # there are schedules of 5
        for odd in (*ODD[:9], 2**40, -(2**40)):
            forged = {
                "binding": "relaxation",
                "horizon": horizon,
                "capacity": np.zeros((arcs, horizon), dtype=np.int64),
                "conservation": np.full((nodes, nodes, horizon), odd),
                "causality": np.zeros_like(certificate["causality"], shape=(nodes, arcs, horizon)),
            }
            assert check_bound(instance, horizon + 1, forged)


def test_sums_of_the_verdict_do_not_wrap() -> None:
    """Two nodes joined by 2000 links each way, one chunk: one timestep. The price 2^40 on both arcs in each of 3000
    timesteps is 2 * 3000 * 2000 * 2^40 on the right side, which is negative in 64 bits, so that the 0 on the left
    seemed to exceed it."""
    links = [{"src": u, "dst": 1 - u} for u in (0, 1)] * 2000
    raw = {"kind": "links", "nodes": 2, "links": links}
    instance = XTreeInstance.model_validate({"name": "t", "source": "test", "network": raw, "chunks": 1})
    forged = {
        "binding": "relaxation",
        "horizon": 3000,
        "capacity": np.full((2, 3000), 2**40),
        "conservation": np.zeros((2, 2, 3000), dtype=np.int64),
        "causality": np.zeros((2, 2, 3000), dtype=np.int64),
    }
    assert f"(0 <= {2 * 3000 * 2000 * 2**40})" in check_bound(instance, 3001, forged)[0]
