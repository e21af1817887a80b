"""A fitted machine's intervals in what is solved on it: times at their ends, and choices that do not stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest

import synth
from synth import api
from synth.errors import InputError
from synth.exchange.forms import in_seconds
from synth.exchange.measurements import Series, fitted
from synth.exchange.measurements.fitted_machine import star
from synth.exchange.record_export import transfers_of
from synth.tuning.intervals import within
from synth.tuning.robustness import Moves, as_moves

SIZES = 2 ** np.arange(8, 27, 2)


def ring_seconds(ranks: int, size: int, latency: float, rate: float) -> float:
    """An allreduce by a ring: 2 (n - 1) steps with a part each."""
    return 2 * (ranks - 1) * (latency + size / ranks / rate)


def machine(latency: float, rate: float, noise: float, seed: int) -> dict[str, Any]:
    """A machine fitted to a log of four ranks with noise."""
    noises = np.exp(noise * np.random.default_rng(seed).standard_normal(len(SIZES)))
    seconds = np.array([ring_seconds(4, int(size), latency, rate) for size in SIZES]) * noises
    return star(fitted([Series("log", "allreduce", 4, SIZES, seconds, SIZES, "log")]), 4, "four", ["log"])


def on(raw: dict[str, Any], size: int) -> synth.Instance:
    return synth.make("fabric", machine=raw, collective="allreduce", bytes=size)


def moves(instance: synth.Instance, *methods: str) -> dict[str, Moves]:
    return {name: as_moves(transfers_of(api.solve(instance, name))) for name in methods}


def with_numbers(raw: dict[str, Any], latency: float, rate: float) -> dict[str, Any]:
    """The machine with these numbers on every link, and no interval."""
    links = [link | {"latency": latency, "bandwidth": rate} for link in raw["network"]["links"]]
    return raw | {"network": raw["network"] | {"links": links}, "intervals": {}}


@pytest.mark.parametrize("size", [4096, 2**20])
@pytest.mark.parametrize("method", ["ring", "direct"])
def test_times_at_the_ends_of_the_intervals(size: int, method: str) -> None:
    """The least and the most are the times on machines that have these numbers themselves."""
    raw = machine(3e-6, 2e10, 0.05, 1)
    moved = moves(on(raw, size), method)
    found = within(moved, method, on(raw, size))
    assert found is not None
    (low, high), (slow, fast) = (raw["intervals"]["LINK"][key] for key in ("latency", "bandwidth"))
    ends = [in_seconds(on(with_numbers(raw, *both), size), moved[method]) for both in ((low, fast), (high, slow))]
    assert (found.least, found.most) == pytest.approx(ends, rel=1e-9)
    assert found.least < in_seconds(on(raw, size), moved[method]) < found.most
    assert found.words.endswith("the choice stands")


def test_the_true_time_lies_within_as_often_as_stated() -> None:
    """Both numbers lie in their intervals in 95 % of logs each; the time then lies between its ends."""
    rng, hits = np.random.default_rng(4), []
    ring = moves(on(machine(1e-6, 1e10, 0.01, 0), 2**18), "ring")
    for seed in range(20):
        latency, rate = 10 ** rng.uniform(-6, -5), 10 ** rng.uniform(9.5, 11)
        raw = machine(latency, rate, 0.05, seed)
        found = within(ring, "ring", on(raw, 2**18))
        assert found is not None
        true = in_seconds(on(with_numbers(raw, latency / 2, rate), 2**18), ring["ring"])
        hits.append(found.least <= true <= found.most)
    assert np.mean(hits) >= 0.85


def test_a_choice_that_does_not_stand_names_its_rival() -> None:
    """Where the latency can be ten times more, recursive doubling's fewer steps win against the ring's small parts."""
    raw = machine(3e-6, 2e10, 0.05, 1)
    raw["intervals"]["LINK"] = {"latency": [1e-7, 3e-5], "bandwidth": [1e9, 3e10]}
    instance = on(raw, 2**20)
    found = within(moves(instance, "ring", "double_tree", "recursive_doubling"), "ring", instance)
    assert found is not None
    assert found.rival == "recursive_doubling"
    assert found.where == "most latency, most bandwidth"
    assert "quicker at most latency" in found.words
    assert found.lead > 0.05


@pytest.mark.parametrize(("intervals", "words"), [
    ([], "classes of links"),
    ({"WIRE": {"latency": [0, 1], "bandwidth": [1, 2]}}, "intervals.WIRE"),
    ({"LINK": {"latency": [2, 1], "bandwidth": [1, 2]}}, "the least and the most"),
    ({"LINK": {"latency": [0, 1e999], "bandwidth": [1, 2]}}, "finite"),
    ({"LINK": {"latency": [0, 1], "bandwidth": [0, 2]}}, "must be > 0"),
    ({"LINK": {"latency": [0, 1], "bandwidth": [1]}}, "bandwidth"),
    ({"LINK": {"latency": "x"}}, "latency"),
])  # fmt: skip
def test_hostile_intervals_are_refused(intervals: Any, words: str) -> None:
    raw = machine(3e-6, 2e10, 0.05, 1) | {"intervals": intervals or [1]}
    with pytest.raises(InputError, match=words):
        on(raw, 2**20)


def test_other_numbers_by_hand_leave_no_interval() -> None:
    raw = machine(3e-6, 2e10, 0.05, 1)
    instance = synth.make("fabric", machine=raw, collective="allreduce", bytes=2**20, bandwidth="LINK=1GB/s")
    assert within({}, "", instance) is None


def test_solve_says_it(tmp_path: Path) -> None:
    (tmp_path / "four.json").write_text(json.dumps(machine(3e-6, 2e10, 0.05, 1)))
    words = ("machine=four.json", "collective=allreduce", "bytes=64KiB")
    command.run("make", "fabric", *words, "-o", "i.json", cwd=tmp_path)
    done = command.run("solve", "i.json", "-m", "ring", "-m", "direct", cwd=tmp_path)
    assert "direct: within the fit's intervals of 95 %" in done.stdout


@pytest.mark.slow
def test_tune_says_it(tmp_path: Path) -> None:
    (tmp_path / "four.json").write_text(json.dumps(machine(3e-6, 2e10, 0.05, 1)))
    sizes = ("--sizes", "64KiB", "-m", "pull", "--for", "scheduled")
    done = command.run("tune", "four.json", *sizes, "-o", "tuned", "--reach", "hopper", cwd=tmp_path)
    assert "within the fit's intervals of 95 %, allreduce 64.0 KiB: " in done.stdout
    assert "allreduce 64.0 KiB: NCCL's ring, LL, should reach busbw" in done.stdout
    head = (tmp_path / "tuned" / "table.csv").read_text().splitlines()[0].split(",")
    assert {"least_s", "most_s", "rival", "rival_lead", "reach_seconds", "reach_algorithm", "reach_protocol"} <= set(
        head
    )
