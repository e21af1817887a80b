"""Logs of every benchmark that is read: the truth they were made of is found again, and their two columns apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from examples import some
from exchange import benchmark_logs as logs

from synth.errors import InputError
from synth.exchange.measurements import Fit, Series, fitted, read
from synth.exchange.measurements.logs import Hints
from synth.exchange.measurements.series import BOTH, IN, OUT
from synth.text.input_file import InputFile

SAMPLES = Path(__file__).parent / "samples"
TWO_PLACES = (logs.nccl_text, logs.nccl_json, logs.nccl_by_size, logs.rccl_json, logs.rccl_csv)
ROUNDS = {  # latencies, and parts of the size over the bandwidth
    "latency": lambda n: (1, 1.0),
    "sendrecv": lambda n: (1, 1.0),
    "read": lambda n: (2, 1.0),
    "allreduce": lambda n: (2 * (n - 1), 2 * (n - 1) / n),
    "allgather": lambda n: (n - 1, (n - 1) / n),
}


def times(test: str, ranks: int, latency: float, rate: float, noise: float = 0.0, seed: int = 0) -> logs.Times:
    """Sizes 64 B to 64 MiB, every fourth power, with noise of a seed."""
    steps, share = ROUNDS[test](ranks)
    rng = np.random.default_rng(seed)
    sizes = [2**power for power in range(6, 27, 2)]
    return [(s, (steps * latency + share * s / rate) * float(np.exp(noise * rng.standard_normal()))) for s in sizes]


def series(folder: Path, text: str, **hints: Any) -> Series:
    path = folder / "run.log"
    path.write_text(text)
    return read(InputFile(path), Hints(**hints))


@pytest.mark.parametrize("write", TWO_PLACES)
@pytest.mark.parametrize(("test", "ranks"), [("allreduce", 8), ("allgather", 4), ("sendrecv", 2)])
def test_out_of_place_and_in_place_are_kept_apart(
    tmp_path: Path, write: Callable[..., str], test: str, ranks: int
) -> None:
    """Each finds its own two numbers; out-of-place is what is taken where nothing is said."""
    truth = {OUT: (7e-6, 1e11), IN: (9e-6, 3.3e10)}
    text = write(test, ranks, *(times(test, ranks, *truth[place]) for place in (OUT, IN)))
    hints = {"test": test} if write is logs.nccl_by_size else {}
    for place in (OUT, IN, None):
        found = series(tmp_path, text, place=place, **hints)
        assert (found.test, found.ranks, found.place) == (test, ranks, place or OUT)
        assert found.aside is not None
        assert {found.place, found.aside.place} == {OUT, IN}
        fit, (latency, rate) = fitted([found]), truth[place or OUT]
        assert fit.latency is not None
        assert fit.bandwidth is not None
        assert fit.latency.value == pytest.approx(latency, rel=5e-3)
        assert fit.bandwidth.value == pytest.approx(rate, rel=5e-3)
    assert len(series(tmp_path, text, place=BOTH, **hints).size) == 2 * len(found.size)


@pytest.mark.parametrize("write", TWO_PLACES)
def test_columns_that_are_alike_count_both(tmp_path: Path, write: Callable[..., str]) -> None:
    """Noise of 1 % about one cost: both; a tenth more latency in place: out-of-place alone."""
    hints = {"test": "allreduce"} if write is logs.nccl_by_size else {}
    out = times("allreduce", 8, 7e-6, 1e11, 0.01, 1)
    same, other = (times("allreduce", 8, latency, 1e11, 0.01, 2) for latency in (7e-6, 7.7e-6))
    assert series(tmp_path, write("allreduce", 8, out, same), **hints).place == BOTH
    assert series(tmp_path, write("allreduce", 8, out, other), **hints).place == OUT


def one_place(test: str, ranks: int, drawn: logs.Times, kind: str) -> str:
    """A log of a benchmark without two places."""
    match kind:
        case "imb":
            return logs.imb(test, ranks, drawn)
        case "osu":
            return logs.osu(test, ranks, drawn)
    return logs.perftest({"read": "RDMA_Read Latency", "latency": "Send Latency"}[test], drawn)


KINDS = [("imb", "latency"), ("imb", "sendrecv"), ("imb", "allreduce"), ("imb", "allgather"), ("osu", "latency"),
         ("osu", "allreduce"), ("osu", "allgather"), ("perftest", "latency"), ("perftest", "read")]  # fmt: skip


@pytest.mark.parametrize(("cases", "least"), [(30, 0.85), pytest.param(600, 0.92, marks=pytest.mark.slow)])
def test_intervals_of_every_format_cover_the_truth(tmp_path: Path, cases: int, least: float) -> None:
    """Noise of 3 %: as often as stated, as far as so many logs tell; half of them have two places."""
    rng = np.random.default_rng(62)
    covered = []
    for case in range(cases):
        latency, rate = 10 ** rng.uniform(-6, -4.5), 10 ** rng.uniform(9, 11)
        if case % 2:
            kind, test = KINDS[case // 2 % len(KINDS)]
            ranks = 2 if test in ("latency", "sendrecv", "read") else 8
            text, hints = one_place(test, ranks, times(test, ranks, latency, rate, 0.03, case), kind), {"ranks": ranks}
        else:
            write, (test, ranks) = TWO_PLACES[case // 2 % 5], (("allreduce", 8), ("allgather", 4))[case // 10 % 2]
            columns = [times(test, ranks, factor * latency, rate, 0.03, case) for factor in (1, 5)]
            text, hints = write(test, ranks, *columns), {"test": test} if write is logs.nccl_by_size else {}
        found = series(tmp_path, text, **hints)
        assert (found.test, found.ranks) == (test, ranks)
        fit = fitted([found])
        for truth, one in ((latency, fit.latency), (rate, fit.bandwidth)):
            if one is not None:
                covered.append(one.low <= truth <= one.high)
    assert len(covered) > 1.8 * cases
    assert np.mean(covered) >= least


@pytest.mark.parametrize(("title", "bits", "ways"), [
    ("RDMA_Write BW", False, 1), ("Send BW", True, 1), ("RDMA_Write Bidirectional BW", True, 2),
])  # fmt: skip
def test_streams_of_perftest_give_the_bandwidth(tmp_path: Path, title: str, bits: bool, ways: int) -> None:
    """25 GB/s each way; MB are 2**20 bytes there."""
    found = series(tmp_path, logs.perftest(title, [(s, t / ways) for s, t in times("latency", 2, 1e-7, 2.5e10)], bits))
    fit = fitted([found])
    assert found.test == "bandwidth"
    assert fit.latency is None
    assert fit.bandwidth is not None
    assert fit.bandwidth.value == pytest.approx(2.5e10, rel=1e-3)


def test_a_real_log_is_read_apart() -> None:
    """MI300X (rouge3877/ns3-msccl-data): in-place allgather is 133 times slower; people saw 309 and 2.3 GB/s."""
    path = InputFile(SAMPLES / "mi300x-all-gather.txt")
    out, inside = (fitted([read(path, Hints(place=place))]).bandwidth for place in (OUT, IN))
    assert out is not None
    assert inside is not None
    assert out.low < 3.0e11 < out.high
    assert inside.low < 2.3e9 < inside.high


def test_the_command_says_what_it_took(tmp_path: Path) -> None:
    (tmp_path / "ag.log").write_text(
        logs.nccl_text("allgather", 2, times("allgather", 2, 7e-6, 1e11), times("allgather", 2, 7e-6, 3.3e10))
    )
    done = command.run("fit", "ag.log", cwd=tmp_path)
    assert "note: ag: out-of-place times are fitted; --place in fits the in-place ones, which differ" in done.stderr
    assert "100 GB/s" in done.stdout
    other = command.run("fit", "ag.log", "--place", "in", cwd=tmp_path)
    assert "33.0 GB/s" in other.stdout
    command.run("fit", "ag.log", "--place", "sideways", cwd=tmp_path, code=2)
    other = command.run("fit", "ag.log", "--ranks", "16", cwd=tmp_path)
    assert "note: ag: the log names its ranks, 2; --ranks 16 is for the machine alone" in other.stderr
    assert "100 GB/s" in other.stdout
    other = command.run("fit", "ag.log", "--test", "allreduce", cwd=tmp_path)
    assert "note: ag: the log names its test, allgather; --test allreduce is for logs that do not" in other.stderr
    assert "100 GB/s" in other.stdout


def test_of_two_tests_in_a_file_one_is_taken(tmp_path: Path) -> None:
    """Two runs of nccl-tests; three benchmarks of IMB, one among 2 and 4 processes."""
    first, second = times("allreduce", 4, 1e-6, 1e10), times("allgather", 4, 2e-6, 2e10)
    text = logs.nccl_text("allreduce", 4, first, first) + logs.nccl_text("allgather", 4, second, second)
    found = series(tmp_path, text, test="allgather", place=IN)
    assert found.seconds.tolist() == pytest.approx([s for _, s in second], abs=1e-8)
    text = logs.imb("latency", 2, times("latency", 2, 1e-6, 1e10)) + logs.imb("allreduce", 2, first)
    text += logs.imb("allreduce", 4, second)
    found = series(tmp_path, text, test="allreduce", ranks=4)
    assert found.seconds.tolist() == pytest.approx([s for _, s in second], abs=1e-8)
    assert series(tmp_path, text, test="latency").ranks == 2
    for hints, words in (({}, "--test allreduce|latency"), ({"test": "allreduce"}, "among 2, 4 processes each")):
        with pytest.raises(InputError, match=words.replace("|", r"\|")):
            series(tmp_path, text, **hints)


IMB = "# Benchmarking {}\n# #processes = 4\n #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
JSON = '{{"results": [{}], "args": ["all_reduce_perf"]}}'
BAD = {
    IMB.format("Barrier"): ("line 1 = 'barrier'", "not read"),
    IMB.format("Allreduce"): ("line 1", "no row"),
    IMB.format("Uniband").replace("usec", "/sec"): ("line 1", "not read"),
    IMB.format("Iallreduce").replace("t_min[usec]", "t_ovrl[usec]") + "8 9 1 1 1\n": ("line 1", "not read"),
    IMB.partition("\n")[2].format() + "8 9 1 1 1\n": ("line 1 = 'without a name'", "not read"),
    "# OSU MPI_Put Latency Test v7.3\n# Size Latency (us)\n1 1\n2 1\n4 1\n": ("line 1 = 'MPI_Put", "not read"),
    "# OSU OpenSHMEM Put Test v7.3\n# Size Latency (us)\n1 1\n2 1\n4 1\n": ("line 1 = 'OpenSHMEM", "not read"),
    "./gather_perf\n# size count type redop root time algbw busbw #wrong\n8 2 float none 0 1 1 1 0\n": (
        "line 1 = 'gather_perf'", "this test is not read",
    ),
    "alltoallv_perf -b 8\n# size count type redop root time algbw busbw #wrong\n": ("line 1 = 'alltoallv", "known"),
    IMB.format("Exchange") + "8 9 1 1 1\n": ("line 1", "not read"),
    IMB.format("Allreduce") + "8 9 1 1\n": ("line 4", "4 columns"),
    IMB.format("Allreduce") + "8 9 1 1 nan\n": ("line 4, time", "nan"),
    IMB.format("Allreduce") + "8 9 1 1 1\n16 9 1 1 1\n": ("line 4", "at least 3"),
    IMB.format("Alltoall").replace("4", "1000000") + f"{2**50} 9 1 1 1\n": ("line 4, size", "1000000 ranks"),
    " #bytes #iterations BW peak[X/sec] BW average[X/sec]\n8 9 1 1\n": ("line 2, BW average", "Gb/sec"),
    " #bytes #iterations t_min[usec] t_typical[usec]\n8 9 1\n": ("line 2", "3 columns"),
    " #bytes #iterations t_min[usec] t_typical[usec]\n8 9 1 1e300\n": ("line 2, t_typical[usec]", "1e300"),
    "  Atomic Fetch and Add Latency Test\n #bytes #iterations t_typical[usec]\n8 9 1\n": ("line 3", "atomic"),
    JSON.format('{"size": 8, "out_of_place": {"time": "nan"}}'): ("line 1, results[0].out_of_place.time", "nan"),
    JSON.format('{"size": 8, "out_of_place": {"time": -1}}'): ("line 1, results[0].out_of_place.time", "-1"),
    JSON.format('{"size": -8, "out_of_place": {"time": 1}}'): ("line 1, results[0].out_of_place.size", "whole"),
    JSON.format('{"size": 8, "out_of_place": {"cpu_time": 1}}'): ("line 1", "without -C 1"),
    JSON.format('{"size": 8, "out_of_place": {"time": Infinity}}'): ("line 1", "Infinity"),
    '{"results": [{"out_of_place": {"time"': ("line 1", "cut short or changed"),
    '{"results": [],\n "out_of_place": ' + "[" * 10**5: ("line 1", "cut short or changed"),
    "name,size,inPlace,time,algBw\nAllReduce,8,0,1\n": ("line 2", "4 cells"),
    "name,size,inPlace,time,algBw\nAllReduce,8,0,-1,1\n": ("line 2, time", "-1"),
    '{"size": 8, "inPlace": 2, "time": 1, "algBw": 1}': ("line 1, inPlace", "0 or 1"),
    '{"name": "Barrier", "size": 8, "inPlace": 0, "time": 1, "algBw": 1}': ("line 1, name", "Barrier"),
    '{"size": 8, "inPlace": 0, "time": 1, "algBw": 1}': ("line 1", "--test"),
    "all_reduce_perf\n# size count type redop root cputime algbw busbw #wrong\n": ("line 2, cputime", "without -C 1"),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_log_gets_one_message_with_file_and_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as found:
        series(tmp_path, text)
    message, (place, words) = str(found.value), BAD[text]
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{tmp_path / 'run.log'}: {place}")
    assert words in message


def test_rows_of_tests_that_are_not_read_are_left_out(tmp_path: Path) -> None:
    """A batch of several programs in one file: those of gather_perf count as nobody's."""
    first, other = times("allgather", 4, 1e-6, 1e10), times("allgather", 4, 9e-6, 1e9)
    text = logs.nccl_text("allgather", 4, first, first)
    text += logs.nccl_text("allgather", 4, other, other).replace("all_gather_perf", "gather_perf")
    found = series(tmp_path, text, place=OUT)
    assert found.seconds.tolist() == pytest.approx([s for _, s in first], abs=1e-8)


def test_runs_that_differ_are_said(tmp_path: Path) -> None:
    """Two runs of one test in a file, one of them with other settings; two that are alike go together unsaid."""
    first, slower = times("allreduce", 4, 1e-6, 1e10), times("allreduce", 4, 2e-6, 5e9)
    run, other = (logs.nccl_text("allreduce", 4, one, one) for one in (first, slower))
    (tmp_path / "two.log").write_text(run + other)
    (tmp_path / "same.log").write_text(run + run)
    lines = [n for n, line in enumerate((run + other).splitlines(), 1) if line.split()[:1] == [str(first[-1][0])]]
    done = command.run("fit", "two.log", "same.log", "--place", "out", cwd=tmp_path)
    words = f"note: two: runs are fitted together that are 2× apart (lines {lines[0]} and {lines[1]})"
    assert words in " ".join(done.stderr.split())
    assert "note: same" not in done.stderr.replace("note: same: out-of-place times are fitted", "")


def test_times_that_are_computed_are_no_change_of_protocol(tmp_path: Path) -> None:
    """Exact times deviate alike in the last digits: no note."""
    rows = "".join(f"{size},{s!r}\n" for size, s in times("allreduce", 8, 2.5e-6, 1e11))
    (tmp_path / "exact.csv").write_text(f"size,time\n{rows}")
    assert command.run("fit", "exact.csv", "--test", "allreduce", "--ranks", "8", cwd=tmp_path).stderr == ""


def test_a_title_with_a_colon(tmp_path: Path) -> None:
    """As oneCCL's benchmark writes it."""
    pair = times("allreduce", 4, 2e-6, 1e10)
    text = (
        logs.imb("allreduce", 4, pair).replace("Benchmarking ", "Benchmarking: ").replace("#processes =", "#processes:")
    )
    found = series(tmp_path, text)
    assert (found.test, found.ranks) == ("allreduce", 4)
    assert found.seconds.tolist() == pytest.approx([s for _, s in pair], abs=1e-8)


def test_damaged_logs_are_read_or_refused_never_more(tmp_path: Path) -> None:
    """Characters of good logs changed, left out, or doubled at random."""
    rng = np.random.default_rng(7)
    pair = times("allreduce", 4, 1e-6, 1e10)
    good = [write("allreduce", 4, pair, pair) for write in TWO_PLACES]
    good += [one_place(test, 4, times(test, 4, 1e-6, 1e10), kind) for kind, test in KINDS]
    odd = ["nan", "-1", "1e400", "", "9" * 40, "\x00", "é", "{", "]", "null", '"', "٣"]
    for case in range(some(300)):
        text = good[case % len(good)]
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(text)))
            text = text[:at] + str(rng.choice(odd)) + text[at + int(rng.integers(0, 3)) :]
        fit, message = fit_or_message(tmp_path, text)
        assert len(message.splitlines()) == (fit is None)
        for one in (fit.latency, fit.bandwidth) if fit else ():
            assert one is None or 0 < one.low <= one.value <= one.high < np.inf


def fit_or_message(folder: Path, text: str) -> tuple[Fit | None, str]:
    try:
        return fitted([series(folder, text, ranks=4)]), ""
    except InputError as error:
        return None, str(error)
