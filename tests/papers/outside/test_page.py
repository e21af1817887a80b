"""The page of simulators: what it publishes is what is asked of it, of schedules that its records hold."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from models.fabric.making import made
from published import PUBLISHED, below

from synth.reproduction.collect import Reproduction
from synth_papers.outside import astra_sim, loggopsim, page, simgrid

RUNS = PUBLISHED / "outside/runs.csv"


def runs() -> pd.DataFrame:
    return pd.read_csv(RUNS).assign(beyond=lambda rows: rows["seconds"] / rows["ours, s"] - 1)


def test_simgrid_takes_our_time_one_transfer_at_a_time() -> None:
    """Every published schedule within 1e-6, no transfer later; two boxes of DGX A100 over whole routes within 2 %; the
    simulators' versions are stated."""
    rows = runs()
    hops = rows[rows["asked"] == "one-at-a-time"]
    assert {"ring of 8", "full mesh of 8", "torus 4x4", "dgx-a100 x2"} <= set(hops["machine"])
    assert hops["beyond"].abs().max() < 1e-6
    assert hops["later by"].max() < 1e-6
    whole = rows[(rows["asked"] == "whole-routes") & (rows["machine"] == "dgx-a100 x2")]
    assert len(whole) > 5
    assert whole["beyond"].abs().max() < 0.02
    assert not rows["version"].str.contains("unstated").any()


def test_our_times_are_those_of_the_published_records() -> None:
    """A record behind every row, with its value and number of transfers; all three simulators have rows."""
    held = {(record.find_instance().name, record["method"]): record for record in below("outside")}
    values = {(value.value, value["verified"]["facts"].get("transfers"), value["method"]) for value in held.values()}
    rows = runs()
    assert {tuple(row) for row in rows[["ours, s", "transfers", "method"]].itertuples(index=False)} <= values
    assert set(rows["simulator"]) == {"SimGrid", "ASTRA-sim", "LogGOPSim"}


@pytest.mark.parametrize(("keys", "shape", "ports"), [
    ({"network": "ring", "nodes": 5}, "Ring", False), ({"network": "full", "nodes": 4}, "FullyConnected", False),
    ({"network": "star", "nodes": 4}, "Switch", True), ({"machine": "dgx-a100"}, "Switch", True),
    ({"network": "ring", "nodes": 5, "bidirectional": "off"}, None, True), ({"machine": "dgx1"}, None, False),
    ({"network": "torus", "rows": 3, "cols": 3}, None, False), ({"machine": "dgx-a100", "boxes": 2}, None, False),
])  # fmt: skip
def test_who_knows_which_machine(keys: dict[str, object], shape: str | None, ports: bool, tmp_path: Path) -> None:
    """ASTRA-sim's three shapes; LogGP's one port a rank. Who does not know it says so instead of a time."""
    instance = made(**keys, collective="allgather", bytes="360MiB")
    assert astra_sim.topology(instance) == shape
    assert (loggopsim.parameters(instance) is not None) == ports
    for simulator, knows in ((astra_sim, shape is not None), (loggopsim, ports)):
        if not knows:
            with pytest.raises(ValueError, match=instance.name):
                simulator.replay(instance, None, tmp_path)  # type: ignore[arg-type]


def test_loggps_parameters() -> None:
    """25 GB/s and 0.7 us: 40 ps a byte; in units of 40 ps a byte takes 1, 0.7 us 17,500; over a switch twice that."""
    ring = loggopsim.parameters(
        made(network="ring", nodes=4, bidirectional="off", collective="allgather", **page.SPEED)
    )
    assert ring is not None
    assert (ring.latency, ring.gap, float(ring.unit)) == (17_500, 1, 40e-12)
    star = loggopsim.parameters(made(network="star", nodes=4, collective="allgather", **page.SPEED))
    assert star is not None
    assert star.latency * star.unit == 2 * ring.latency * ring.unit


def test_what_is_not_there_is_said_and_earlier_rows_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any simulator the page is made of the published rows where the schedule is the same, and of no others."""
    monkeypatch.delenv(astra_sim.BINARY, raising=False)
    monkeypatch.setenv(loggopsim.FOLDER, str(tmp_path))
    monkeypatch.setattr(simgrid.shutil, "which", lambda _: None)
    assert simgrid.missing() == "g++ is not installed"
    folder = tmp_path / "outside"
    folder.mkdir()
    shutil.copy(RUNS, folder)
    rows = pd.read_csv(RUNS)
    first = rows.index[(rows["machine"] == "ring of 8") & (rows["simulator"] == "ASTRA-sim")][0]
    rows.loc[first, "ours, s"] *= 2  # another schedule's
    rows.to_csv(folder / "runs.csv", index=False)
    made_page = Reproduction(folder, quick=True)
    page.reproduce(made_page)
    left = pd.read_csv(folder / "runs.csv")
    made = {(case.instance.collective, case.record["method"]): case.record.value for case in page._cases(made_page)}
    keys = zip(rows["collective"], rows["method"], strict=True)
    same = [made.get(key) == ours for key, ours in zip(keys, rows["ours, s"], strict=True)]
    expected = rows[same].query("machine == 'ring of 8'")
    assert first not in expected.index
    assert len(expected) > 10
    assert sorted(left["seconds"]) == pytest.approx(sorted(expected["seconds"]))
    said = [text.partition(";")[0] for text in made_page.skipped]
    assert said[1:] == [
        "SimGrid: g++ is not installed",
        "ASTRA-sim: SYNTH_ASTRA_SIM names no binary of ASTRA-sim",
        f"LogGOPSim: SYNTH_LOGGOPSIM = {tmp_path}: no program txt2bin there",
    ]


@pytest.mark.skipif(astra_sim.missing() is not None, reason=str(astra_sim.missing()))
@pytest.mark.parametrize(("network", "method", "collective"), [
    ("ring", "ring", "allgather"), ("ring", "direct", "allreduce"), ("full", "direct", "alltoall"),
])  # fmt: skip
def test_astra_sim_takes_our_time(network: str, method: str, collective: str, tmp_path: Path) -> None:
    """Where the order that messages come in is ours: within 0.1 % (whole nanoseconds)."""
    import synth
    from synth_models.fabric.views.transfers import transfers

    instance = made(network=network, nodes=8, collective=collective, **page.SPEED)
    record = synth.solve(instance, method=method, time_limit=60)
    moves = transfers(instance, record.solution())
    assert astra_sim.replay(instance, moves, tmp_path) == pytest.approx(record.value, rel=1e-3)


@pytest.mark.skipif(loggopsim.missing() is not None, reason=str(loggopsim.missing()))
def test_loggopsim_loses_a_latency_a_step(tmp_path: Path) -> None:
    """One way around a ring of 4, 3 steps of n bytes, by hand: a rank begins its next send when it has received, a
    latency and n - 1 bytes after the last began, so 3 (L + (n - 1) G); ours is the same where pieces are not cut."""
    from dataclasses import replace

    from exchange.by_hand import ring_allgather

    t = ring_allgather(4)
    t = replace(t, part_bytes=10**6, piece_bytes=np.full(4, 10**6))
    instance = made(network="ring", nodes=4, bidirectional="off", collective="allgather", **page.SPEED)
    by_hand = 3 * (0.7e-6 + (10**6 - 1) / 25e9)
    assert loggopsim.replay(instance, t, tmp_path) == pytest.approx(by_hand, rel=1e-9)


def test_a_simulator_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binary that prints an error, or ends well without a time, is an error with its words, never a time."""
    from exchange.by_hand import ring_allgather

    instance = made(network="ring", nodes=4, bidirectional="on", collective="allgather", **page.SPEED)
    for text, said in (("echo out of order; exit 3", "out of order"), ("echo sys[0] finished, 5 cycles", "5 cycles")):
        binary = tmp_path / "astra"
        binary.write_text(f"#!/bin/sh\n{text}\n")
        binary.chmod(0o755)
        monkeypatch.setenv(astra_sim.BINARY, os.fspath(binary))
        assert astra_sim.missing() is None
        with pytest.raises(RuntimeError, match=said):
            astra_sim.replay(instance, ring_allgather(4), tmp_path)
