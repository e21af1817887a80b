"""``synth explain``: a log beside the bound and the library's own times, what explains it, and what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exchange.benchmark_logs import nccl_text
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError

SIZES = [2**k for k in range(10, 31, 2)]
RING = ["--machine", "network=ring", "nodes=4", "bandwidth=25GB/s", "latency=0.7us", "--gpu", "ideal"]
NCCL = """box:1:1 [0] NCCL INFO AllReduce: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..31}}
"""


def by_ring(size: int, rate: float = 50e9, latency: float = 0.7e-6) -> float:
    """An allreduce of four ranks on a ring of two directions: six steps, and 6/4 of the bytes."""
    return 6 * latency + 1.5 * size / rate


def log_of(folder: Path, scale: float, rate: float = 50e9) -> Path:
    """A log of nccl-tests whose two columns scatter by 2 % about the times of a ring."""
    times = [(size, scale * by_ring(size, rate)) for size in SIZES]
    columns = [[(size, s * (1 + 0.02 * (-1) ** (k + add))) for k, (size, s) in enumerate(times)] for add in (0, 1)]
    path = folder / "run.log"
    path.write_text(nccl_text("allreduce", 4, *columns))
    return path


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["explain", *map(str, words)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_every_size_has_its_bound_and_a_slow_link_is_named(tmp_path: Path) -> None:
    """Links at 10 of 25 GB/s, both ways 20 of 50."""
    log = log_of(tmp_path, 1.0, 20e9)
    found = json.loads(run(log, *RING, "--json"))
    assert [row["bytes"] for row in found["rows"]] == SIZES
    asked = {"network": "ring", "nodes": "4", "bandwidth": "25GB/s", "latency": "0.7us", "collective": "allreduce"}
    for row in (found["rows"][0], found["rows"][-1]):
        assert row["bound_s"] == synth.solve(synth.make("fabric", **asked, bytes=str(row["bytes"])), "bound").bound
        assert row["bound_s"] < row["library_s"] < row["measured_s"]
    assert found["verdict"] == "explained"
    [part] = found["causes"][0]["parts"]
    assert (part["kind"], part["from"] < 0.4 < part["to"]) == ("rate", True)
    assert "to confirm it" in found["test"] or "apart" in found["test"]
    shown = run(log, *RING)
    assert "not as predicted by links alone" in shown
    assert "links of a rank at" in shown


def test_a_log_as_predicted_is_said_to_be_so(tmp_path: Path) -> None:
    """Both as a log that says what it is of, and as a table that does not."""
    path = tmp_path / "table.csv"
    path.write_text("size,time\n" + "".join(f"{size},{by_ring(size)}\n" for size in SIZES))
    for words in ([log_of(tmp_path, 1.0)], [path, "--collective", "allreduce"]):
        found = json.loads(run(*words, *RING, "--json"))
        assert (found["verdict"], found["causes"], found["test"]) == ("predicted", [], ""), found["words"]
        assert "by ring at all sizes" in found["words"]


def test_lines_of_nccl_pin_what_ran(tmp_path: Path) -> None:
    log = log_of(tmp_path, 1.0)
    lines = [NCCL.format(size, "TREE", "SIMPLE") for size in SIZES[:2]] + [NCCL.format(SIZES[2], 1, 0)]
    log.write_text("".join(lines) + log.read_text())
    rows = json.loads(run(log, *RING[:-2], "--gpu", "hopper", "--json"))["rows"]
    assert [(row["runs"], row["logged"]) for row in rows[:3]] == [("tree Simple", True)] * 2 + [("ring LL", True)]
    assert not any(row["logged"] for row in rows[3:])


def test_one_size_is_put_beside_the_model_with_what_would_give_it(tmp_path: Path) -> None:
    """Links at 10 of 25 GB/s."""
    path = tmp_path / "one.csv"
    path.write_text(f"size,time\n256MiB,{by_ring(2**28, 20e9)}\n")
    found = json.loads(run(path, *RING, "--collective", "allreduce", "--json"))
    assert "1 size tells little" in found["words"]
    assert any(part["kind"] == "rate" and part["value"] == pytest.approx(0.4, rel=0.01)
               for cause in found["causes"] for part in cause["parts"])  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--collective", "allgather"], "the log is of allreduce"),
        (["nodes=5"], "ranks: the log is of 4, the machine has 5"),
        (["--gpu", "z80"], "--gpu"),
        (["--place", "beside"], "--place"),
        (["--from", "2GiB"], "leave none of the sizes"),
        (["bytes=4"], "bytes: say --collective instead"),
    ],
)
def test_what_cannot_be_asked(words: list[str], message: str, tmp_path: Path) -> None:
    own = [word for word in RING if word.partition("=")[0] not in [one.partition("=")[0] for one in words]]
    done = CliRunner().invoke(app, ["explain", str(log_of(tmp_path, 1.0)), *own, *words])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
    assert len(str(done.exception).splitlines()) == 1


def test_a_test_of_one_link_is_no_collective(tmp_path: Path) -> None:
    path = tmp_path / "pair.csv"
    path.write_text("size,time\n8,1us\n1024,2us\n1048576,30us\n")
    done = CliRunner().invoke(app, ["explain", str(path), *RING, "--collective", "latency"])
    assert isinstance(done.exception, InputError)
    assert "`synth fit` says what it tells" in str(done.exception)
