"""What schedules lose on machines they were not made for: machines within the variation, regrets by definition."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from examples import some_of

import synth
from synth.errors import InputError
from synth.exchange.record_export import transfers_of
from synth.instance import Instance
from synth.records.record import Record
from synth.tuning.robustness import Regrets, Variation, machines, read_variation, regrets

KEYS: dict[str, Any] = {"network": "full", "nodes": 4, "bandwidth": 1e10, "latency": 1e-6}


def asked(folder: Path, **keys: Any) -> Instance:
    instance = synth.make("fabric", **{**KEYS, "collective": "allgather", "bytes": 2**20, **keys})
    (folder / "instance.json").write_text(instance.to_json())
    return synth.read(folder / "instance.json")


def solved(instance: Instance, method: str, folder: Path) -> Record:
    return synth.solve(instance, method, time_limit=20, results=folder / "results")


def of_machine(instance: Any) -> tuple[np.ndarray, np.ndarray]:
    net = instance.machine.network
    return net.bandwidth, net.latency


@pytest.mark.parametrize("seed", some_of(range(5)))
def test_machines_are_within_the_variation_and_the_seeds(seed: int, tmp_path: Path) -> None:
    """Both directions alike, no factor beyond what was said, all else the same; the same seed draws the same."""
    instance: Any = asked(tmp_path, **({"machine": "dgx-a100", "boxes": 2, "network": None} if seed % 2 else {}))
    rates, waits = of_machine(instance)
    drawn: list[Any] = list(machines(instance, Variation(0.1, 0.3, 4, seed)))
    again: list[Any] = list(machines(instance, Variation(0.1, 0.3, 4, seed)))
    spread = []
    for one, other in zip(drawn, again, strict=True):
        here, there = of_machine(one)
        assert np.all(np.abs(here / rates - 1) <= 0.1 * (1 + 1e-12))
        assert np.all(np.abs(there / waits - 1) <= 0.3 * (1 + 1e-12))
        assert np.array_equal(here, of_machine(other)[0])
        assert np.array_equal(there, of_machine(other)[1])
        assert (one.members, one.boxes, one.bytes) == (instance.members, instance.boxes, instance.bytes)
        net = one.machine.network
        of = dict(zip(zip(net.src.tolist(), net.dst.tolist(), strict=True), (here / rates).tolist(), strict=True))
        assert all(of[u, v] == pytest.approx(of[v, u]) for u, v in of)
        spread.append(np.abs(here / rates - 1).max())
    assert max(spread) > 0.05
    assert np.array_equal(of_machine(instance)[0], rates)
    assert [of_machine(one)[0].tolist() for one in machines(instance, Variation(0, 0, 2))] == [rates.tolist()] * 2


@pytest.mark.long
def test_the_time_of_a_direct_exchange_is_that_of_its_slowest_link(tmp_path: Path) -> None:
    """Full mesh, allgather: every rank sends its quarter straight to the others, latency + bytes / bandwidth of each
    link; on every machine drawn that is also the best there can be but for relays, so no regret is negative."""
    instance = asked(tmp_path)
    moves = transfers_of(solved(instance, "direct", tmp_path))
    variation = Variation(0.2, 0.5, 6, 3)
    found = regrets({"direct": lambda _: moves}, instance, variation, ["ring", "direct"])
    for k, drawn in enumerate(machines(instance, variation)):
        rates, waits = of_machine(drawn)
        assert found.seconds["direct"][k] == pytest.approx(float(np.max(waits + 2**18 / rates)), rel=1e-6)
    assert np.all(found.best <= found.seconds["direct"])
    assert np.allclose(found.regret["direct"], found.seconds["direct"] / found.best - 1)
    assert np.all(found.regret["direct"] >= 0)


def test_the_robust_schedule_has_the_least_worst_regret() -> None:
    """By hand: a loses 0 and 50 %, b 20 and 20 %: b."""
    best = np.array([1.0, 1.0])
    regret = {"a": np.array([0.0, 0.5]), "b": np.array([0.2, 0.2])}
    seconds = {name: best * (1 + one) for name, one in regret.items()}
    found = Regrets({"a": 1.0, "b": 1.2}, seconds, regret, best, ("a", "x"))
    assert found.robust == "b"


def test_commands_evaluate_records_and_tables(tmp_path: Path) -> None:
    instance = asked(tmp_path)
    record = solved(instance, "ring", tmp_path)
    assert record.path is not None
    words = ("--vary", "bandwidth=±10%", "--vary", "latency=30%", "--samples", "3", "-m", "direct", "--csv")
    done = command.run("evaluate", record.path, *words, cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["machine"] for row in rows] == ["0", "1", "2"]
    for row in rows:
        assert float(row["regret"]) == pytest.approx(float(row["seconds"]) / float(row["best_s"]) - 1)
        assert float(row["regret"]) >= 0
    (tmp_path / "table").mkdir()
    command.run("export", record.path, "-o", "table/ring.xml", cwd=tmp_path)
    (tmp_path / "table/instances").mkdir()
    (tmp_path / "table/instances/one.json").write_text(instance.to_json())
    (tmp_path / "table/table.csv").write_text("collective,bytes,algorithm\nallgather,1048576,ring.xml\n")
    shown = command.run("evaluate", "table/table.csv", *words[:-1], cwd=tmp_path).stdout
    assert "ring.xml" in shown
    for text, message in (
        ("collective,bytes,algorithm\nallgather,7,ring.xml\n", "no such instance"),
        ("collective,bytes,algorithm\nallgather,1048576,../../etc/passwd\n", "no such file"),
        ("a,b\n1,2\n", "must be a table"),
    ):
        (tmp_path / "table/wrong.csv").write_text(text)
        refused = command.run("evaluate", "table/wrong.csv", *words, cwd=tmp_path, code=2)
        assert message in refused.stderr


@pytest.mark.parametrize(
    "texts", [["bandwidth"], ["bandwidth=100%"], ["latency=-5%"], ["speed=5%"], ["latency=5%"] * 2]
)
def test_a_variation_that_is_none_is_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError, match=r"must be|twice"):
        read_variation(texts)


def test_no_schedule_is_refused(tmp_path: Path) -> None:
    assert read_variation(["bandwidth=±10%", "latency=+-2.5%"]) == Variation(0.1, 0.025)
    with pytest.raises(InputError, match="no schedule to evaluate"):
        regrets({}, asked(tmp_path), Variation())
