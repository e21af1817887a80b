"""A question of epochs below what counting proves is verified infeasible, from the record and the instance alone."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from models.fabric.small_machines import machine
from peers.teccl.epoch_machines import any_switches
from peers.teccl.epoch_oracle import fewest_copied, fewest_fluid
from peers.teccl.test_epochs import some_slow, tiny

import synth
from synth import api
from synth.records import record as records
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance


def read_back(record: records.Record, path: Path, **changes: Any) -> records.Record:
    """The record as it is read from a file, some of its options changed."""
    data = copy.deepcopy(records.plain_data(record, records.split_arrays(record)))
    data["options"]["method"].update(changes.pop("method", {}))
    path.write_text(json.dumps(data | changes, default=lambda value: value.item()))
    return records.read(path)


def asked(instance: FabricInstance, horizon: int, **method: Any) -> records.Record:
    return api.solve(instance, "epochs", solver="highs", options={"horizon": horizon, **method})


def drawn(first: int) -> Iterator[tuple[int, FabricInstance, Fraction, int, int]]:
    """Seed, instance, seconds of an epoch, chunks, and the fewest epochs by brute force."""
    for seed in range(first, first + 4):
        instance, tau, chunks = any_switches(seed)
        best = fewest_copied(instance, tau, chunks)
        if best is not None:
            yield seed, instance, tau, chunks, best
        instance, tau, _ = tiny(seed, ("alltoall", "gather", "scatter")[seed % 3], 4)
        best = fewest_fluid(instance, tau)
        assert best is not None
        yield seed, instance, tau, 1, best


@pytest.mark.long
@pytest.mark.parametrize("first", some_slow(*range(0, 60, 4)))
def test_fewer_epochs_than_counting_proves_are_verified_infeasible(first: int, tmp_path: Path) -> None:
    """Whatever the horizon, switches and rule are: what the record calls certified the check verifies, and it is no
    more than brute force needs; everything else rests on the solver's word."""
    ended: Counter[str] = Counter()
    for seed, instance, tau, chunks, best in drawn(first):
        for horizon in range(1, best):
            made = asked(instance, horizon, tau=str(float(tau)), chunks=chunks)
            assert made["termination"] == "infeasible", seed
            record = read_back(made, tmp_path / f"{seed}.json")
            verdict = synth.check(record, instance)
            assert not verdict.faults, (seed, verdict.faults)
            ended[record.words_of_end] += 1
            doubted = [text for text in verdict.unverified if text.startswith("termination")]
            by = record.infeasible_by
            assert doubted == ([] if by == "certified" else [f"termination infeasible: {made['message']}"])
            assert ("infeasible" in verdict.facts) == (by == "certified")
            if by != "certified":
                continue
            proof = dict(record.certificate["epochs"])
            assert Fraction(proof["tau_over"], proof["tau_under"]) == Fraction(repr(float(tau)))
            bound = {**record.certificate, "epochs": proof | {"horizon": best}}  # what is possible is not refuted
            assert check_bound(instance, record.stated_bound, bound), seed
    assert ended["infeasible, certified"]
    assert set(ended) <= {"infeasible, certified", "infeasible, HiGHS"}


def ring(collective: str = "allgather", slow: float = 0.5e9) -> FabricInstance:
    rows = [(0, 1, 1e9), (1, 2, 1e9), (2, 3, 1e9), (3, 0, slow)]
    return machine(4, rows, collective=collective, bytes=4000)


def test_the_solvers_word_and_the_certificate_are_told_apart(tmp_path: Path) -> None:
    """Two ranks that exchange a chunk over one group: two epochs, of which counting proves one. Without counting the
    distances are what is left to certify."""
    rows = [(0, 1, 1e9, 0.0, "bus"), (1, 0, 1e9, 0.0, "bus")]
    bus = machine(2, rows, collective="allgather", bytes=2000)
    assert asked(bus, 1).words_of_end == "infeasible, HiGHS"
    record = read_back(asked(bus, 1), tmp_path / "bus.json")
    assert any(text.startswith("termination infeasible") for text in synth.check(record, bus).unverified)
    assert asked(ring(), 2, tau="slow").words_of_end == "infeasible, certified"
    assert asked(ring(), 2, tau="slow", counting=False).words_of_end == "infeasible, certified"  # three hops
    assert asked(ring(), 3, tau="fast", counting=False).words_of_end == "infeasible, certified"
    assert asked(ring(), 5, tau="fast", counting=False).words_of_end == "infeasible, HiGHS"
    assert asked(ring(), 5, tau="fast").words_of_end == "infeasible, certified"


@pytest.mark.long(after=3)
@pytest.mark.parametrize("tau", ["fast", "slow", "8e-7", "1.2345678901234567e-07"])
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "alltoall"])
def test_seconds_of_an_epoch_are_derived_from_the_instance(tmp_path: Path, tau: str, collective: str) -> None:
    """Another length, another number of chunks or of epochs than was asked proves nothing of the question."""
    instance = ring(collective, 0.75e9)
    made = asked(instance, 2, tau=tau)
    record = read_back(made, tmp_path / "record.json")
    verdict = synth.check(record, instance)
    assert (verdict.faults, verdict.facts["infeasible"]) == ([], "verified")
    proof = record.certificate["epochs"]
    for method in ({"tau": "slow" if tau != "slow" else "fast"}, {"chunks": 2}, {"horizon": 10**6}, {"horizon": 1}):
        other = read_back(made, tmp_path / "other.json", method=method)
        assert other.infeasible_by != "certified", method
    lies: list[dict[str, Any]] = [
        {"tau_over": proof["tau_over"] + 1}, {"tau_under": 2 * proof["tau_under"]}, {"horizon": 10**6},
        {"tau": "1e-9"}, {"tau": 5}, {"tau": "inf"}, {"tau": None}, {"horizon": 0}, {"horizon": float("inf")},
        {"chunks": 0}, {"rule": "fluid" if proof["rule"] == "copied" else "copied"},
        {"tau_over": 2**10000},
    ]  # fmt: skip
    lies += [{key: [99]} for key in ("cut", "origins", "around", "goals", "price") if key in proof]
    lies += [{key: -1} for key in ("last", "away") if key in proof]
    for lie in lies:
        forged = {**record.certificate, "epochs": {**proof, **lie}}
        assert check_bound(instance, record.stated_bound, forged), lie
    for nothing in (None, [], "epochs", {}):
        assert check_bound(instance, record.stated_bound, {**record.certificate, "epochs": nothing}), nothing


def test_a_plan_for_epochs_of_any_length_is_read(tmp_path: Path) -> None:
    """Seventeen digits make a fraction beyond 64 bits; the plan that states it is replayed all the same."""
    made = api.solve(ring(slow=0.75e9), "epochs", options={"tau": "1.2345678901234567e-07"})
    record = read_back(made, tmp_path / "record.json")
    assert record.packed["plan_tau_under"] > 2**64
    assert synth.check(record, ring(slow=0.75e9)).faults == []
