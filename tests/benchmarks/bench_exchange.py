"""Benchmarks of formats. Run: ``pytest tests/benchmarks/bench_exchange.py --benchmark-only`` (compiled before).

A ring allreduce over K channels, in place, as an executor runs it: 50,000 steps to write, to read, to check; the
reference of the group is one pass of Python's own XML parser over the same file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from synth.exchange import msccl_xml, validity
from synth.exchange.algorithm import KINDS, Algorithm


def ring(ranks: int, channels: int) -> Algorithm:
    """Every channel a thread block a gpu: send, N - 1 times receive and add and send, N - 2 times on, receive."""
    kinds = ["s", *["rrcs"] * (ranks - 1), *["rcs"] * (ranks - 2), "r"]
    count = len(kinds)
    rank, channel = np.repeat(np.arange(ranks), channels), np.tile(np.arange(channels), ranks)
    blocks, steps = len(rank), len(rank) * count
    chunk = ((rank[:, None] - np.arange(count)) % ranks) * channels + channel[:, None]
    offset, zero, none = chunk.reshape(-1), np.zeros(steps, dtype=np.int64), np.full(steps, -1)
    return Algorithm(
        "ring", "allreduce", ranks, None, True, "Simple", ranks * channels,
        np.tile([ranks * channels, 0, 0], (ranks, 1)), rank, (rank + 1) % ranks, (rank - 1) % ranks, channel,
        np.arange(blocks + 1) * count, np.tile([KINDS.index(kind) for kind in kinds], blocks), zero, offset, zero,
        offset, zero + 1, none, none, zero.astype(bool),
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ring") / "ring.xml"
    msccl_xml.write(ring(32, 25), path)
    return path


@pytest.mark.benchmark(group="50,000 steps")
def test_check(benchmark) -> None:
    algorithm = ring(32, 25)
    assert algorithm.steps == 50400
    assert benchmark(validity.check, algorithm).ok


@pytest.mark.benchmark(group="50,000 steps")
def test_read(benchmark, file: Path) -> None:
    assert benchmark(msccl_xml.read, file).algorithm.steps == 50400


@pytest.mark.benchmark(group="50,000 steps")
def test_write(benchmark, file: Path) -> None:
    benchmark(msccl_xml.write, ring(32, 25), file.with_name("again.xml"))


@pytest.mark.benchmark(group="50,000 steps")
def test_reference_is_parsing_alone(benchmark, file: Path) -> None:
    benchmark(ET.parse, file)


@pytest.mark.benchmark(group="millions of steps")
def test_check_of_two_million(benchmark) -> None:
    assert benchmark.pedantic(validity.check, (ring(1024, 1),), rounds=1).ok
