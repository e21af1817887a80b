"""Method ``symmetric``: times worked out by hand, replays, the bound within reach on tori, what it refuses."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from examples import some_of

import synth
from synth.clock.deadline import OutOfTime
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.symmetric import method as symmetric
from synth_models.fabric.references.symmetric import one_origin

EVERYONE = ("allgather", "reduce_scatter", "allreduce")
ROOTED = ("broadcast", "reduce")
TORUS = {"network": "torus", "rows": 4, "cols": 4, "layers": 8, "bandwidth": 50e9, "latency": 1e-6}


def made(**keys: Any) -> FabricInstance:
    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def replayed(instance: FabricInstance) -> float:
    found = symmetric.solve(instance, RunOptions(time_limit_s=5.0).started_now())
    assert found.termination == "finished", found.message
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


@pytest.mark.parametrize("quotient", [False, True])
def test_the_search_for_one_origin_ends_with_the_limit(quotient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds on 16,384 ranks, where nothing else would look at the limit before it returns."""
    instance = made(**TORUS, collective="allgather", bytes=2**20)
    monkeypatch.setattr(one_origin, "left", lambda: -1.0)
    with pytest.raises(OutOfTime):
        symmetric.solve(instance, RunOptions(method={"quotient": quotient}).started_now())


def test_a_ring_of_five() -> None:
    """1 us a link and 1 us a block of 1 KB: both neighbours have a block after 2 us; while their links on are busy with
    it from then until 3 us, nothing else is to do; the other two have it after 4 us. Chunks save latency's like."""
    instance = made(network="ring", nodes=5, bandwidth=1e9, latency=1e-6, bytes=5000)
    one = check_schedule(instance, symmetric.scheduled(instance, 1))
    assert one.faults == []
    assert one.value == pytest.approx(4e-6, rel=1e-9)
    assert replayed(instance) <= 4e-6


WHERE: list[dict[str, Any]] = [
    {"network": "ring", "nodes": 7},
    {"network": "torus", "rows": 3, "cols": 5},
    {"network": "torus", "rows": 3, "cols": 4, "layers": 5},
    {"network": "hypercube", "dimension": 4},
    {"network": "torus", "rows": 2, "cols": 4, "layers": 3},
    {"network": "torus", "rows": 1, "cols": 6},
]


@pytest.mark.parametrize(("keys", "collective"), some_of(product(WHERE, [*EVERYONE, *ROOTED])))
def test_every_schedule_is_replayed(collective: str, keys: dict[str, Any]) -> None:
    """All collectives, at a size of latency and one of bytes that does not divide by chunks; never below what the
    links into a rank allow."""
    for each in (16, 3 * 5 * 7 * 11 * 16):
        ranks = len(made(**keys, bytes=16 * 420).members)
        instance = made(**keys, collective=collective, bytes=each * ranks, bandwidth=1e9, latency=1e-6)
        net = instance.machine.network
        if collective in ROOTED and ("dimension" in keys or keys.get("rows") == 2):
            assert symmetric.solve(instance, RunOptions()).termination == "unsupported"
            continue
        share = {"allreduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1}.get(collective, (ranks - 1) / ranks)
        degree = net.links // net.nodes
        assert replayed(instance) >= share * each * ranks / (degree * 1e9)


def test_any_root() -> None:
    for collective in ROOTED:
        replayed(made(network="torus", rows=3, cols=4, collective=collective, bytes=2**20, root=7))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", [*EVERYONE, *ROOTED])
def test_a_torus_of_128_within_a_fiftieth_of_its_links(collective: str) -> None:
    """4 x 4 x 8, 1 GiB: every rank takes in (or sends out) what six links of 50 GB/s can."""
    instance = made(**TORUS, collective=collective, bytes=2**30)
    verdict = check_schedule(instance, symmetric.scheduled(instance, 1024 if collective in ROOTED else 4))
    share = {"allreduce": 2 * 127 / 128, "broadcast": 1, "reduce": 1}.get(collective, 127 / 128)
    assert verdict.faults == []
    assert verdict.value is not None
    assert share * 2**30 / 300e9 <= verdict.value <= 1.02 * share * 2**30 / 300e9


def test_what_is_not_symmetric_is_refused() -> None:
    for keys in ({"network": "mesh", "rows": 3, "cols": 3}, {"network": "star", "nodes": 4}):
        assert symmetric.solve(made(**keys, bytes=2**20 * 9), RunOptions()).termination == "unsupported"
    ring = made(network="ring", nodes=6, bytes=2**20 * 6)
    for own in ({"failed": {"links": [[0, 1]]}}, {"ranks": [0, 1, 2]}):
        there = ring.model_copy(update={**own, "relay": True, "bytes": 3 * 2**20})
        assert symmetric.solve(there, RunOptions()).termination == "unsupported"


@pytest.mark.slow
@pytest.mark.parametrize("collective", [*EVERYONE, *ROOTED])
def test_a_pod_of_1024_within_a_twentieth_of_its_links(collective: str) -> None:
    """8 x 8 x 16, 1 GiB."""
    record = synth.solve(made(**TORUS | {"rows": 8, "cols": 8, "layers": 16}, collective=collective, bytes=2**30),
                         "symmetric", time_limit=60)  # fmt: skip
    assert record.ok, record["verified"]["faults"]
    share = {"allreduce": 2 * 1023 / 1024, "broadcast": 1, "reduce": 1}.get(collective, 1023 / 1024)
    assert record.value is not None
    assert record.value <= 1.05 * share * 2**30 / 300e9
