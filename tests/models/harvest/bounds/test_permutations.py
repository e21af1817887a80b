"""One port and few GPUs: the least of all topologies, by the method, by both checks and by brute force."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from models.harvest import brute_force
from two_checkers import opinions, whole

import synth
from synth_models.harvest.check.certificates import check_bound

RAW = {
    "format": "synth-instance/1", "family": "harvest", "source": "test", "port_bandwidth": 1e9, "ports": 1,
    "alpha": 0.5, "delta": 0.25,
}  # fmt: skip


def drawn(seed: int) -> dict[str, Any]:
    """Two or three steps of some pairs on 3 or 4 GPUs."""
    rng = random.Random(seed)
    gpus = rng.choice((3, 4))
    every = [[u, v] for u in range(gpus) for v in range(gpus) if u != v]
    steps = []
    for _ in range(rng.randint(2, 3)):
        pairs = rng.sample(every, rng.randint(1, gpus))
        volumes = [rng.randint(1, 3) for _ in pairs]
        steps.append({"bytes": rng.choice((1e8, 1e9, 3e9)), "pairs": pairs, "volumes": volumes})
    return RAW | {"name": "drawn", "gpus": gpus, "reconfiguration_delay": rng.choice((0.0, 1.0, 50.0)), "steps": steps}


def made(raw: dict[str, Any], folder: Path) -> Any:
    (folder / "drawn.json").write_text(json.dumps(raw))
    return synth.read(folder / "drawn.json")


def stated(record: Any, folder: Path) -> dict[str, Any]:
    """The record with the text of its instance's file."""
    return whole(record) | {"instance_text": (folder / "drawn.json").read_text()}


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_optimum(seed: int, tmp_path: Path) -> None:
    raw = drawn(seed)
    record = synth.solve(made(raw, tmp_path), "bound")
    assert record.ok
    assert record.bound == pytest.approx(brute_force.optimum(raw), rel=1e-12)
    assert opinions(json.dumps(stated(record, tmp_path)), tmp_path)[:2] == ("accept", "accept")


def test_both_checks_refuse_a_larger_bound_and_other_entries(tmp_path: Path) -> None:
    steps = [{"bytes": 1e9, "shift": 1}, {"bytes": 1e9, "shift": 2}]
    instance = made(RAW | {"name": "drawn", "gpus": 4, "reconfiguration_delay": 1000.0, "steps": steps}, tmp_path)
    record = stated(synth.solve(instance, "bound"), tmp_path)
    assert opinions(json.dumps(record), tmp_path)[:2] == ("accept", "accept")
    for forged in (
        {"bound": math.nextafter(record["bound"] * (1 + 1e-9), math.inf)},
        {"solution": {**record["solution"], "intervals": [{"first": 0, "last": 0, "permutations": 1}]}},
        {"solution": {**record["solution"], "intervals": record["solution"]["intervals"][:1]}},
    ):
        assert opinions(json.dumps(record | forged), tmp_path)[:2] == ("refuse", "refuse")


@pytest.mark.parametrize("changed", [{"ports": 2}, {"gpus": 9}])
def test_more_ports_or_gpus_are_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    """The same entries on instances of which a permutation is not all that there is, or too many are."""
    record = stated(synth.solve(made(drawn(3), tmp_path), "bound"), tmp_path)
    other = made(drawn(3) | changed, tmp_path)
    faults = check_bound(other, record["bound"], record["solution"])
    assert "one port and at most 8 GPUs" in faults[0]
    text = (tmp_path / "drawn.json").read_text()
    said = opinions(json.dumps(record | {"instance_text": text, "instance_sha256": other.sha256}), tmp_path)
    assert said[:2] == ("refuse", "refuse")
    assert "permutations" in said[2]


def test_eight_gpus_by_hand(tmp_path: Path) -> None:
    """Shifts by 1 and by 2 of 1 GB at 1 GB/s, alpha 0.5 s, a hop 0.25 s. On the ring of the first (1.75 s) the second
    has two hops and a load of two (3 s); no topology has both within one hop. A change of 0.5 s is worth it."""
    steps = [{"bytes": 1e9, "shift": 1}, {"bytes": 1e9, "shift": 2}]
    raw = RAW | {"name": "drawn", "gpus": 8, "reconfiguration_delay": 1000.0, "steps": steps}
    assert synth.solve(made(raw, tmp_path), "bound").bound == 1.75 + 3.0
    assert synth.solve(made(raw | {"reconfiguration_delay": 0.5}, tmp_path), "bound").bound == 1.75 + 0.5 + 1.75
