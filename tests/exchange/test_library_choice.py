"""What a library should run: the quickest of its own algorithms by replay, and never beyond what it has."""

from __future__ import annotations

import csv
from pathlib import Path

import command
import pytest

import synth
from synth.errors import InputError
from synth.exchange.selection import FORMATS, chosen
from synth.exchange.selection.choice import KNOWN, choices, rules
from synth.exchange.selection.library_times import ALGORITHMS
from synth.instance import Instance

LATENCY, RATE, RANKS = 1e-6, 1e10, 8


def star(collective: str, size: int) -> Instance:
    """Eight ranks on one switch, 1 us and 10 GB/s from rank to rank."""
    keys = {"network": "star", "nodes": RANKS, "bandwidth": RATE, "latency": LATENCY / 2}
    return synth.make("fabric", **keys, collective=collective, bytes=size)


def test_every_algorithm_is_a_word_of_the_library() -> None:
    for library, by_collective in ALGORITHMS.items():
        for collective, words in by_collective.items():
            assert set(words) <= set(FORMATS[library].vocabulary.algorithms[collective]), (library, collective)


def test_an_allreduce_goes_from_whole_buffers_to_halves() -> None:
    """On eight even ranks (Thakur et al. 2005) recursive doubling takes 3 (a + M / b) and Rabenseifner's 6 a + 7/4
    M / b. At 1 KiB the first is best, at 1 MiB, where M / b is a hundred latencies, the second."""
    found = choices("ompi", star, "allreduce", [1024, 2**20])
    for one in found:
        byte_s = one.bytes / RATE
        best = min(3 * (LATENCY + byte_s), 6 * LATENCY + 7 / 4 * byte_s)
        assert one.seconds[one.algorithm] == pytest.approx(best, rel=1e-6)
        assert one.bound is not None
        assert one.bound >= max(LATENCY, 7 / 4 * byte_s) * (1 - 1e-9)
        assert one.restriction is not None
        assert one.restriction >= 1 - 1e-9
    small, large = found
    assert small.algorithm == "recursive_doubling"
    assert large.algorithm == "rabenseifner"
    first, second = rules("ompi", found)
    assert (first.min_bytes, first.max_bytes, second.min_bytes, second.max_bytes) == (0, 2**15, 2**15 + 1, None)
    text = FORMATS["ompi"].write([first, second])
    for one in found:
        rule = chosen(FORMATS["ompi"].read(text), "allreduce", one.bytes, RANKS)
        assert rule is not None
        assert rule.algorithm == one.algorithm


@pytest.mark.long
@pytest.mark.parametrize("library", KNOWN)
def test_rules_for_every_collective_of_a_library_are_a_file(library: str) -> None:
    found = [one for collective in KNOWN[library] for one in choices(library, star, collective, [2**12])]
    text = FORMATS[library].write(rules(library, found))
    for one in found:
        rule = chosen(FORMATS[library].read(text), one.collective, one.bytes, RANKS)
        assert rule is not None
        assert (rule.algorithm, one.seconds[one.algorithm]) == (one.algorithm, min(one.seconds.values()))


def test_a_collective_that_a_library_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="takes no rules for alltoall; only for broadcast"):
        choices("nccl", star, "alltoall", [1024])


def test_one_rank_has_no_choice() -> None:
    keys = {"machine": "dgx-h100", "gpus": 1}
    for library in KNOWN:
        with pytest.raises(InputError, match="no choice for one rank"):
            choices(library, lambda c, s: synth.make("fabric", **keys, collective=c, bytes=s), "allreduce", [1024])


def test_tune_writes_the_file_of_a_library(tmp_path: Path) -> None:
    """Four GPUs of a DGX A100: the file is the library's, the table has its time over the bound."""
    words = ("dgx-a100", "gpus=4", "--for", "ompi", "--sizes", "1KiB,1MiB", "-o", "tuned")
    command.run("tune", *words, cwd=tmp_path)
    (_, _, read_rules), (_, _, read_json) = FORMATS["ompi"].forms
    read = read_rules((tmp_path / "tuned/ompi.rules").read_text())
    assert read == read_json((tmp_path / "tuned/ompi.json").read_text())
    with (tmp_path / "tuned/table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["bytes"]) for row in rows] == [1024, 2**20]
    for row in rows:
        rule = chosen(read, "allreduce", int(row["bytes"]), 4)
        assert rule is not None
        assert rule.algorithm == row["algorithm"]
        assert float(row["library_s"]) == min(float(row[key]) for key in row if key.endswith("_s") and row[key]
                                              and key not in ("bound_s", "algbw_bytes_per_s"))  # fmt: skip
        assert float(row["bound_s"]) <= float(row["library_s"])
