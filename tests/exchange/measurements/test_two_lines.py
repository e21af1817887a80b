"""Logs of a library that changes its protocol at a size: two lines are offered and hold both truths; of one protocol
none are, whatever the noise."""

from __future__ import annotations

import json
from pathlib import Path

import command
import numpy as np
import pytest
from exchange import benchmark_logs as logs

from synth.errors import InputError
from synth.exchange.measurements import Series, fitted
from synth.exchange.measurements.two_lines import explained, of_sizes, two_lines

SIZES = 2 ** np.arange(6, 28)


def series(small: tuple[float, float], large: tuple[float, float], change: int, noise: float, seed: int) -> Series:
    """Latency and bandwidth below a size and from it on."""
    rng = np.random.default_rng(seed)
    latency, rate = np.where(SIZES[:, None] < change, small, large).T
    seconds = (latency + SIZES / rate) * np.exp(noise * rng.standard_normal(len(SIZES)))
    return Series("log", "latency", 2, SIZES, seconds, np.arange(1, len(SIZES) + 1), "log")


@pytest.mark.parametrize("change", [2**13, 2**17, 2**20])
def test_two_lines_hold_both_truths(change: int) -> None:
    """LL is quick to begin and slow, Simple the reverse: as people see it from 8 KiB to 1 MiB."""
    covered = []
    for seed in range(6):
        rng = np.random.default_rng([seed, change])
        small = (10 ** rng.uniform(-5.6, -5.2), 10 ** rng.uniform(9.2, 9.6))
        large = (small[0] * rng.uniform(3, 6), small[1] * rng.uniform(8, 20))
        log = series(small, large, change, 0.02, seed)
        found = two_lines(log, fitted([log]), "ring")
        assert found is not None
        assert found.one < 0.9 < found.both
        assert change / 4 <= found.first <= change * 4  # near it the lines cross, and either side may win a sample
        for fit, (latency, rate) in ((found.small, small), (found.large, large)):
            for one, truth in ((fit.latency, latency), (fit.bandwidth, rate)):
                if one is not None:
                    covered.append(one.low <= truth <= one.high)
    assert len(covered) > 15
    assert np.mean(covered) >= 0.8  # the size of the change is told by the same samples


@pytest.mark.parametrize("noise", [0.001, 0.03, 0.2])
def test_one_line_is_not_split(noise: float) -> None:
    """Of 10 logs with every seventh time too long at most one; all explain what they can."""
    offered = 0
    for seed in range(10):
        rng, log = np.random.default_rng(seed), series((5e-6, 2e10), (5e-6, 2e10), 0, noise, seed)
        log.seconds[rng.random(len(SIZES)) < 1 / 7] *= 5
        fit = fitted([log])
        assert explained(log, fit) > 0.6
        offered += two_lines(log, fit, "ring") is not None
    assert offered <= 1


def test_a_part_of_the_sizes(tmp_path: Path) -> None:
    log = series((5e-6, 3e9), (2e-5, 5e10), 2**17, 0.01, 3)
    assert of_sizes(log, 2**17, None).size.tolist() == SIZES[SIZES >= 2**17].tolist()
    for least, most in ((2**40, None), (None, 1), (2**20, 2**21)):
        with pytest.raises(InputError, match=r"leave none of the sizes|at least 3 are needed"):
            of_sizes(log, least, most)
    (tmp_path / "log.txt").write_text(logs.osu("latency", 2, list(zip(SIZES.tolist(), log.seconds, strict=True))))
    done = command.run("fit", "log.txt", cwd=tmp_path)
    assert "the cost changes between 64.0 KiB and 128 KiB" in done.stderr
    assert "--to 65536 or --from 131072" in done.stderr
    command.run("fit", "log.txt", "--from", "131072", "-o", "large.json", cwd=tmp_path)
    raw = json.loads((tmp_path / "large.json").read_text())
    low, high = raw["intervals"]["LINK"]["bandwidth"]
    assert low < 5e10 < high
    assert raw["given"][-1] == "fitted to sizes of 128 KiB to 128 MiB"
    command.run("fit", "log.txt", "--from", "many", cwd=tmp_path, code=2)
