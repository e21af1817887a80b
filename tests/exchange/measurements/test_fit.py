"""Latencies and bandwidths out of logs: intervals that cover the truth, conclusions of people who posted logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from examples import some

import synth
from synth.errors import InputError
from synth.exchange.measurements import Fit, Series, fitted, read
from synth.exchange.measurements.comparison import stretches
from synth.exchange.measurements.logs import Hints
from synth.text.input_file import InputFile

SAMPLES = Path(__file__).parent / "samples"
# what a collective of n ranks costs, from the definitions: rounds, and bytes through a rank's busiest direction
STATEMENT = {
    "latency": lambda n, s: (1, s),
    "sendrecv": lambda n, s: (1, s),
    "allreduce": lambda n, s: (2 * (n - 1), 2 * (n - 1) * s / n),
    "allgather": lambda n, s: (n - 1, (n - 1) * s / n),
    "reduce_scatter": lambda n, s: (n - 1, (n - 1) * s / n),
}


def sample(name: str, **hints: Any) -> Series:
    return read(InputFile(SAMPLES / name), Hints(**hints))


def nccl_log(rng: np.random.Generator, latency: float, bandwidth: float, test: str, ranks: int) -> str:
    """What nccl-tests print on such links: noise of 0.3 to 15 %, normal or Student's with four degrees of freedom; up
    to every seventh time 2 to 10 times too long."""
    names = {"allreduce": "all_reduce", "allgather": "all_gather"}
    noise, outliers = 10 ** rng.uniform(-2.5, -0.8), rng.choice([0, 0.1, 1 / 7])
    text = f"# Collective test starting: {names.get(test, test)}_perf\n"
    text += "".join(f"#  Rank {r:2} Group  0 Pid {rng.integers(10**6)} on host device {r}\n" for r in range(ranks))
    text += "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    text += "#   (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n"
    for power in range(3, int(rng.integers(24, 31))):
        size = 2**power
        rounds, volume = STATEMENT[test](ranks, size)
        text += f"{size:12} {size // 4:10} float sum -1"
        for _ in range(2):
            wrong = rng.standard_t(4) if noise > 0.02 else rng.standard_normal()
            seconds = (rounds * latency + volume / bandwidth) * np.exp(noise * wrong)
            seconds *= rng.uniform(2, 10) if rng.random() < outliers else 1
            text += f" {seconds * 1e6:.2f} {size / seconds / 1e9:.2f} {volume / seconds / 1e9:.2f} 0"
        text += "\n"
    return text


@pytest.mark.parametrize("cases", [some(100), pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_cover_the_truth(tmp_path: Path, cases: int) -> None:
    """In at least 90 % of logs with noise and outliers, latency and bandwidth both known in nearly all."""
    rng = np.random.default_rng(21)
    covered: dict[str, list[bool]] = {"latency": [], "bandwidth": []}
    for _ in range(cases):
        truth = {"latency": 10 ** rng.uniform(-6.5, -4.5), "bandwidth": 10 ** rng.uniform(8.5, 11.5)}
        test = str(rng.choice(["sendrecv", "allreduce", "allgather", "reduce_scatter"]))
        ranks = 2 if test == "sendrecv" else int(rng.choice([2, 3, 4, 8, 16, 48]))
        path = tmp_path / "log.txt"
        path.write_text(nccl_log(rng, truth["latency"], truth["bandwidth"], test, ranks))
        series = read(InputFile(path))
        assert (series.test, series.ranks) == (test, ranks)
        found = fitted([series])
        for key, value in truth.items():
            one = getattr(found, key)
            if one is not None:
                assert 0 < one.low <= one.value <= one.high
                covered[key].append(one.low <= value <= one.high)
    for hits in covered.values():
        assert len(hits) >= 0.95 * cases
        assert np.mean(hits) >= 0.9


def test_exact_times_are_found_again_out_of_latency_and_stream_together() -> None:
    """3 us and 25 GB/s; the stream's own 0.4 us a message is no latency."""
    size = 2 ** np.arange(3, 28)
    latency = Series("a", "latency", 2, size, 3e-6 + size / 25e9, size, "a")
    stream = Series("b", "bandwidth", 2, size, 4e-7 + size / 25e9, size, "b")
    found = fitted([latency, stream])
    assert found.latency is not None
    assert found.bandwidth is not None
    assert found.latency.value == pytest.approx(3e-6, rel=1e-6)
    assert found.bandwidth.value == pytest.approx(25e9, rel=1e-6)
    assert found.overheads["b"].value == pytest.approx(4e-7, rel=1e-6)
    assert fitted([stream]).latency is None


def test_two_a100s_on_four_nvlinks_come_close_to_100_gigabytes() -> None:
    """EESSI/software-layer 716: "getting close to the max. bandwidth of 100GBs/s"; 93.1 GB/s is the last row."""
    found = fitted([sample("a100-pair-osu-bw.txt")])
    assert found.latency is None
    assert found.bandwidth is not None
    assert 0.9 * 93.1e9 < found.bandwidth.low < found.bandwidth.value < 1.05e11


def test_knomial_against_ring() -> None:
    """openucx/ucc 970 (the algorithms of issue 1357): knomial up to 512 bytes, up to 18 times faster; then the ring.
    The ring's latency a rank is what costs it."""
    logs = [sample(f"reduce-scatter-{name}.csv", label=name, test="reduce_scatter", ranks=512) for name in
            ("knomial", "ring")]  # fmt: skip
    small, large = stretches(logs)
    assert (small.faster, small.first, small.last) == ("knomial", 4, 512)
    assert (large.faster, large.first, large.last) == ("ring", 1024, 8192)
    assert small.most == pytest.approx(792.63 / 43.29)
    assert large.most == pytest.approx(8338.22 / 3880.91)
    ring, knomial = fitted([logs[1]], "ring"), fitted([logs[0]], "doubling")
    assert ring.latency is not None
    assert knomial.latency is not None
    assert 511 * ring.latency.value > 5 * 9 * knomial.latency.value


def test_the_size_that_a_user_complains_of_is_the_largest_residual() -> None:
    """aws/aws-ofi-nccl 65: performance drops at 64 MB. 16 ranks are read off busbw / algbw = 1.875."""
    series = sample("p4d-all-reduce.txt", test="allreduce")
    assert series.ranks == 16
    (left,) = fitted([series]).residuals
    assert series.size[np.argmax(left.relative)] == 64 * 2**20


def test_han_is_three_times_faster_at_every_size() -> None:
    """open-mpi/ompi 12387; a size is what goes to one rank, 192 times of which leave a rank."""
    (only,) = stretches([sample(f"{name}-alltoall.txt", ranks=192) for name in ("tuned", "han")])
    assert (only.faster[:3], only.first, only.last) == ("han", 192, 128 * 192)
    assert 2.6 < only.least < only.most < 3.2


def test_a_fit_becomes_a_machine(tmp_path: Path) -> None:
    """Two ranks on the machine are as far apart as the log says, and intervals stay in the file."""
    rng = np.random.default_rng(3)
    log, out = tmp_path / "nv.txt", tmp_path / "machine.json"
    log.write_text(nccl_log(rng, 4e-6, 2e10, "allreduce", 4))
    command.run("fit", str(log), "-o", str(out), cwd=tmp_path)
    raw = json.loads(out.read_text())
    latency, rate = raw["intervals"]["LINK"]["latency"], raw["intervals"]["LINK"]["bandwidth"]
    assert latency[0] * 2 < 4e-6 < latency[1] * 2
    assert rate[0] < 2e10 < rate[1]
    made = synth.make("fabric", machine=str(out), collective="allgather", bytes="1MiB")
    assert "synth fit nv.txt" in made.source
    assert made.machine.network.latency.tolist() == [raw["network"]["links"][0]["latency"]] * 8


def test_classes_of_an_imported_machine_get_their_logs(tmp_path: Path) -> None:
    """NVLinks join ranks directly; a path over the network is gpu, nic, switch, nic, gpu: two links of each class, so
    the measured 12 us are 2 (1 us + 5 us)."""
    from synth.exchange.machines.file import to_text
    from synth.exchange.machines.machine import Builder

    built = Builder()
    gpus = [built.rank(f"gpu{k}") for k in range(4)]
    nics, net = [built.switch(f"nic{k}") for k in range(2)], built.switch("net")
    for box in range(2):
        built.link(gpus[2 * box], gpus[2 * box + 1], "NV", 1e9, 1e-6)
        built.link(gpus[2 * box], nics[box], "PCI", 2e10, 1e-6)
        built.link(nics[box], net, "NET", 1e9, 1e-6)
    machine, out = tmp_path / "topo.json", tmp_path / "fitted.json"
    machine.write_text(to_text(built.machine("two", "test", "by hand")))
    rows = 2 ** np.arange(3, 26)
    for name, latency, rate in (("NV", 3e-6, 5e10), ("NET", 12e-6, 1.25e10)):
        (tmp_path / name).write_text("size,time\n" + "".join(f"{s},{latency + s / rate!r}\n" for s in rows.tolist()))
    logs = [f"NV={tmp_path / 'NV'}", f"NET={tmp_path / 'NET'}"]
    command.run("fit", *logs, "--test", "sendrecv", "--machine", str(machine), "-o", str(out), cwd=tmp_path)
    raw = json.loads(out.read_text())
    of = dict(zip(raw["classes"], raw["network"]["links"], strict=True))
    assert [of["NV"]["latency"], of["PCI"]["latency"], of["NET"]["latency"]] == pytest.approx([3e-6, 1e-6, 5e-6])
    assert [of["NV"]["bandwidth"], of["PCI"]["bandwidth"], of["NET"]["bandwidth"]] == pytest.approx(
        [5e10, 2e10, 1.25e10]
    )


BAD = {
    "": ("line 1", "no table of a benchmark"),
    "hello\n": ("line 1", "no table of a benchmark"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n1 nan\n2 1\n4 1\n": ("line 3, latency", "nan"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n1 1\n2 -1\n4 1\n": ("line 4, latency", "-1"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n1 1\n2 1e999\n4 1\n": ("line 4, latency", "1e999"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n1 1\n2\n4 1\n": ("line 4", "no value"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n1 1\n2 1\n": ("line 3", "at least 3"),
    "# OSU MPI Latency Test v7\n# Size Latency (us)\n99999999999999999999999 1\n": ("line 3, size", "whole number"),
    "# OSU MPI Allreduce Latency Test v7\n# Size Avg\n1 1\n2 1\n4 1\n": ("line 1", "--ranks"),
    "# OSU MPI Put Latency Test v7\n# Size Avg\n1 1\n2 1\n4 1\n": ("line 1", "not read"),
    "# size count type redop time algbw busbw error\n8 2 float sum 1.0 0.1 0.1 0\n": ("line 1", "--test"),
    "all_reduce_perf\n# size count type redop time algbw busbw error\n8 2 float sum 1.0 0.1\n": ("line 3", "columns"),
    "all_reduce_perf\n# size count type redop time algbw busbw error\n8 2 float sum 1.0 0 0 0\n16 4 float sum 1 0 0 0\n"
    "32 8 float sum 1 0 0 0\n": ("line 3", "--ranks"),
    "all_reduce_perf reduce_perf\n# size count type redop time algbw busbw error\n": ("line 1", "--test"),
    "size,time\n8,1us\n": ("--test", "names no test"),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_log_gets_one_message_with_file_and_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.log"
    path.write_text(text)
    with pytest.raises(InputError) as found:
        read(InputFile(path))
    message = str(found.value)
    place, words = BAD[text]
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{path}: {place}")
    assert words in message


def test_damaged_logs_are_read_or_refused_never_more(tmp_path: Path) -> None:
    """Cells, lines and characters of good logs changed at random."""
    rng = np.random.default_rng(5)
    good = [nccl_log(rng, 4e-6, 2e10, "allreduce", 4), (SAMPLES / "a100-pair-osu-bw.txt").read_text()]
    odd = ["nan", "-1", "1e400", "", "0", "9" * 40, "\x00", "é", "inf", "# size", "0x10", "1_000"]
    path = tmp_path / "log"
    for case in range(some(200)):
        lines = good[case % 2].split("\n")
        for _ in range(int(rng.integers(1, 4))):
            k = int(rng.integers(len(lines)))
            cells = lines[k].split(" ")
            cells[int(rng.integers(len(cells)))] = str(rng.choice(odd))
            lines[k] = " ".join(cells)
        path.write_text("\n".join(lines), encoding="utf-8")
        found, message = read_or_message(path)
        assert message == "" or re.match(rf"{re.escape(str(path))}: line [0-9]+", message)
        for one in (found.latency, found.bandwidth) if found else ():
            assert one is None or 0 < one.low <= one.value <= one.high < np.inf


def read_or_message(path: Path) -> tuple[Fit | None, str]:
    try:
        return fitted([read(InputFile(path))]), ""
    except InputError as error:
        return None, str(error)
