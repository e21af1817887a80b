"""Instance files: bad input with its message, the physical limits, budgets nobody can meet."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from models.optree.cases import limited, ring
from typer.testing import CliRunner

import synth
from synth.errors import InputError
from synth_models.optree import FAMILY
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import Crosstalk, Power
from synth_models.optree.solution import StepCount

GOOD = {"format": "synth-instance/1", "family": "optree", "name": "x", "source": "test", "nodes": 8, "wavelengths": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 1}, "nodes = 1: must be >= 2"),
        ({"nodes": 0}, "nodes = 0: must be >= 2"),
        ({"nodes": None}, "nodes = None: input should be a valid integer"),
        ({"nodes": 8.5}, "nodes = 8.5: input should be a valid integer"),
        ({"nodes": 10**8}, "must be <= 1e+07"),
        ({"wavelengths": 0}, "wavelengths = 0: must be >= 1"),
        ({"wavelengths": -3}, "wavelengths = -3: must be >= 1"),
        ({"item_bytes": 0}, "item_bytes = 0: must be > 0"),
        ({"wavelength_bandwidth": -1}, "wavelength_bandwidth = -1: must be > 0"),
        ({"step_overhead": -1e-6}, "step_overhead = -1e-06: must be >= 0"),
        ({"colour": 3}, "colour: unknown key"),
        ({"power": {"pass_loss_db": 1}}, "power.laser_dbm: is missing"),
        ({"power": {"laser_dbm": 1, "pass_loss_db": -1}}, "power.pass_loss_db = -1: must be >= 0"),
        ({"crosstalk": {"signal_mw": 0, "rx_noise_mw": 1}}, "crosstalk.signal_mw = 0: must be > 0"),
        ({"crosstalk": {"signal_mw": 1, "rx_noise_mw": 1, "max_ber": 0.5}}, "crosstalk.max_ber = 0.5"),
    ],
)
def test_bad_files(tmp_path: Path, change: dict[str, object], message: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(GOOD | change))
    with pytest.raises(InputError) as caught:
        synth.read(file)
    assert message in str(caught.value)


def test_all_faults_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(GOOD | {"nodes": 1, "wavelengths": 0}))
    with pytest.raises(InputError) as caught:
        synth.read(file)
    assert [fault.path for fault in caught.value.faults] == ["nodes", "wavelengths"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nodes": "1", "wavelengths": "2"}, "nodes = '1': must be >= 2"),
        ({"nodes": "8", "wavelengths": "0"}, "wavelengths = '0': must be >= 1"),
        ({"nodes": "8"}, "wavelengths: is missing"),
        ({"nodes": "8", "wavelengths": "2", "speed": "1"}, "speed = '1': unknown parameter"),
        (
            {"nodes": "8", "wavelengths": "2", "laser_dbm": "x", "pass_loss_db": "1"},
            "laser_dbm = 'x': must be a number",
        ),
        ({"nodes": "8", "wavelengths": "2", "laser_dbm": "nan"}, "laser_dbm = 'nan': must be a finite number"),
        ({"nodes": "8", "wavelengths": "2", "laser_dbm": "1"}, "power.pass_loss_db: is missing"),
    ],
)
def test_bad_parameters(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("optree", **parameters)
    assert message in str(caught.value)


def test_make_round_trip(tmp_path: Path) -> None:
    made = synth.make(
        "optree", nodes=16, wavelengths=2, laser_dbm=9, pass_loss_db=0.5, max_ber=1e-6, signal_mw=1, rx_noise_mw=0
    )
    file = tmp_path / "x.json"
    file.write_text(made.to_json())
    assert synth.read(file).model_dump() == made.model_dump()
    assert made.name == "ring-16-w2-budget"


def test_power_by_hand() -> None:
    """Laser 10 dBm, modulator 4 dB, penalty 1 dB: 5 dB are left, 10 interfaces at 0.5 dB, so 9 hops;
    the loss is 4 + 5 = 9 dB."""
    power = Power(laser_dbm=10, modulator_loss_db=4, pass_loss_db=0.5, penalty_db=1)
    assert power.loss_db(10) == 9
    assert power.laser_needed_dbm(10) == 10
    assert power.allows(10)
    assert not power.allows(11)
    assert ring(64, 8, power=power).max_hops == 9
    assert ring(8, 8, power=power).max_hops == 7  # the ring itself


def test_crosstalk_by_hand() -> None:
    """Signal 1 mW, 2e-9 mW per interface and 2e-9 mW at the sender: after 4 interfaces 1e-8 mW, 80 dB, exp(-20)/2."""
    crosstalk = Crosstalk(signal_mw=1, rx_noise_mw=2e-9, tx_noise_mw=2e-9)
    assert crosstalk.snr_db(4) == pytest.approx(80)
    assert crosstalk.ber(4) == pytest.approx(0.5 * math.exp(-20))
    assert not crosstalk.allows(4)  # 1.03e-9; 1e-9 needs 4 ln(5e8) = 80.12 dB
    assert crosstalk.allows(3)
    assert ring(64, 2, crosstalk=crosstalk).max_hops == 2


def test_facts_of_a_schedule() -> None:
    """Ring algorithm: one hop, two interfaces."""
    instance = ring(8, 1, power={"laser_dbm": 3, "pass_loss_db": 1}, crosstalk={"signal_mw": 1, "rx_noise_mw": 1e-9})
    facts = check_solution(instance, StepCount("ring")).facts
    assert facts["path_interfaces"] == 2
    assert facts["insertion_loss_db"] == 2
    assert facts["worst_snr_db"] == pytest.approx(10 * math.log10(1 / 2e-9))


@pytest.mark.parametrize("method", list(FAMILY.methods))
def test_a_budget_that_nobody_can_meet(method: str) -> None:
    """Laser 1 dBm at 1 dB per interface passes one interface; the neighbour is two away."""
    record = synth.solve(limited(16, 2, 0), method)
    assert record["termination"] == "infeasible"
    assert "power budget" in record["message"]
    assert "not even a circuit to the neighbour" in record["message"]


def test_crosstalk_that_nobody_can_meet() -> None:
    instance = ring(16, 2, crosstalk={"signal_mw": 1, "rx_noise_mw": 1})
    record = synth.solve(instance, "relay")
    assert record["termination"] == "infeasible"
    assert "crosstalk budget" in record["message"]


def test_exit_code_of_an_unmeetable_budget(tmp_path: Path) -> None:
    from synth.cli.main import app

    file = tmp_path / "dark.json"
    file.write_text(limited(16, 2, 0).to_json())
    result = CliRunner().invoke(app, ["solve", str(file), "-m", "relay", "--results", str(tmp_path / "results")])
    assert result.exit_code == 3
