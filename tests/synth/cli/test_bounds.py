"""``synth bounds``: the bounds that the family's method proves, and what nccl-tests would print of them."""

from __future__ import annotations

import csv
import io

import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.schedule.collective import NAMES

RING = {"network": "ring", "nodes": "4", "bandwidth": "25GB/s", "latency": "0.7us"}
WORDS = [f"{key}={value}" for key, value in RING.items()]


def test_every_collective_has_the_bound_of_its_method() -> None:
    """busbw of nccl-tests: algbw times 2 (n - 1) / n of an allreduce, 1 of a broadcast or reduce, else (n - 1) / n."""
    done = CliRunner().invoke(app, ["bounds", *WORDS, "--sizes", "4KiB,1MiB", "--csv"])
    assert done.exit_code == 0, (done.output, done.exception)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["collective"], int(row["bytes"])) for row in rows] == [
        (name, size)
        for name in (
            "allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter",
        )
        for size in (4096, 2**20)
    ]  # fmt: skip
    assert {row["collective"] for row in rows} == set(NAMES)
    for row in rows:
        asked = synth.make("fabric", **RING, collective=row["collective"], bytes=row["bytes"])
        bound, size = float(row["bound_s"]), int(row["bytes"])
        assert bound == synth.solve(asked, "bound").bound
        share = {"allreduce": 6 / 4, "broadcast": 1, "reduce": 1}.get(row["collective"], 3 / 4)
        assert float(row["algbw_bytes_per_s"]) == pytest.approx(size / bound)
        assert float(row["busbw_bytes_per_s"]) == pytest.approx(size / bound * share)
        assert ":" in row["proof"]


def test_the_table_names_the_argument() -> None:
    done = CliRunner().invoke(app, ["bounds", *WORDS, "--collective", "broadcast", "--sizes", "1MiB"])
    assert done.exit_code == 0, (done.output, done.exception)
    [line] = [line for line in done.stdout.splitlines() if "broadcast" in line]
    assert "1.00 MiB" in line
    assert "GB/s" in line
    assert ":" not in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bytes=4"], "say --collective and --sizes instead"),
        (["--sizes", "9..x"], "--sizes"),
        (["--collective", "allsum"], "collective"),
        (["--time-limit", "soon"], "--time-limit"),
        (["--boxes", "2"], "another tool's file"),
    ],
)
def test_what_cannot_be_asked(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["bounds", *WORDS, *words])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
