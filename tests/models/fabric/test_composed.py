"""`composed`: of one allgather on three ranks, all that follows from it, in seconds worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.fabric.small_machines import machine

import synth
from synth.errors import InputError, UnsupportedError
from synth.library import best_known
from synth.options import RunOptions
from synth.records.folder import pack
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references import composed
from synth_models.fabric.scheduling import carried_over
from synth_models.fabric.solution import Schedule

BETWEEN = [(u, v, 1.0, 0.0) for u in range(3) for v in range(3) if u != v]  # every two ranks, 1 byte/s each way


def three(collective: str, size: int, links: list[tuple[int, int, float, float]] = BETWEEN) -> FabricInstance:
    return machine(3, links, collective=collective, bytes=size)


@pytest.fixture
def library(tmp_path: Path) -> str:
    """The library of one record: an allgather of 6 bytes, 2 of every rank, straight to both others in 2 seconds."""
    file = tmp_path / "three.json"
    file.write_text(three("allgather", 6).to_json())
    record = synth.solve(synth.read(file), "direct", results=tmp_path / "results")
    assert record.value == 2.0
    pack(tmp_path / "results")
    best_known.make(tmp_path / "results")
    return str(tmp_path / "results" / best_known.NAME)


@pytest.mark.parametrize(
    ("collective", "size", "seconds", "words"),
    [
        ("allgather", 3, 1.0, ""),  # half of every piece
        ("allgather", 12, 4.0, "2 times "),
        ("reduce_scatter", 6, 2.0, "backwards"),
        ("gather", 6, 2.0, "what a gather needs of it"),
        ("scatter", 6, 2.0, "what a gather needs of it, backwards"),
        ("allreduce", 6, 4.0, "backwards, then "),  # 2 seconds each, and no less: each rank receives 2 * 4 bytes
    ],
)
def test_what_follows_from_an_allgather(library: str, collective: str, size: int, seconds: float, words: str) -> None:
    instance = three(collective, size)
    outcome = composed.solve(instance, RunOptions(None, method={"library": library, "tries": 4}))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.faults == []
    assert verdict.value == seconds
    assert words in (outcome.message or "")
    assert outcome.made_by == ("composed", "direct")


def test_what_does_not_follow(library: str) -> None:
    """Other collectives; a machine that lacks a link; but of one with a link more it is the same."""
    options = RunOptions(None, method={"library": library, "tries": 4})
    for instance in (three("alltoall", 6), three("allgather", 6, [*BETWEEN[1:], (0, 1, 2.0, 0.0)])):
        with pytest.raises(UnsupportedError, match="no schedule of the same ranks"):
            composed.solve(instance, options)
    more = three("allgather", 6, [(0, 1, 5.0, 0.0), *BETWEEN])
    outcome = composed.solve(more, options)
    assert check_schedule(more, outcome.solution).value == 2.0


def test_what_would_be_repeated_too_often_is_left_out(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six transfers, at most 18 where they are repeated: three times, not four."""
    monkeypatch.setattr(composed, "MOST_REPEATED", 18)
    options = RunOptions(None, method={"library": library, "tries": 4})
    assert check_schedule(three("allgather", 18), composed.solve(three("allgather", 18), options).solution).value == 6.0
    with pytest.raises(UnsupportedError, match="no schedule of the same ranks"):
        composed.solve(three("allgather", 24), options)


def test_no_library_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is named; one that is named must be there."""
    monkeypatch.chdir(tmp_path)
    record = synth.solve(three("allgather", 6), "composed")
    assert record["termination"] == "unsupported"
    assert "library=FILE" in record["message"]
    with pytest.raises(InputError):
        synth.solve(three("allgather", 6), "composed", options={"library": "none.csv"})


def test_sizes_keep_a_block_whole() -> None:
    """Blocks of 7 and 3 bytes, cut 4 + 3 and 1 + 1 + 1, for 3 and 2: pieces of no bytes go, with what moves them."""
    five = np.arange(5, dtype=np.int64)
    pieces = np.array([0, 1, 0, 1, 1], dtype=np.int64), np.array([4, 1, 3, 1, 1], dtype=np.int64)
    given = Schedule(1, *pieces, five, five, five > 9, np.arange(6, dtype=np.int64), five)
    made = carried_over.resized(given, np.array([7, 3]), np.array([3, 2]))
    assert made.piece_block.tolist() == [0, 0, 1, 1]  # floor(4 * 3 / 7) = 1; floor(2 / 3) = 0, floor(4 / 3) = 1
    assert made.piece_bytes.tolist() == [1, 2, 1, 1]
    assert made.start.tolist() == [0, 2, 3, 4]
    assert made.piece.tolist() == [0, 1, 2, 3]
    assert made.link.tolist() == [0, 2, 3, 4]


def test_halves_that_are_cut_otherwise_are_cut_alike() -> None:
    """Reduce-scatter in whole blocks of 2 bytes, allgather in single bytes: the allreduce has 6 pieces of a byte."""
    instance = three("allreduce", 6)
    whole = synth.solve(three("reduce_scatter", 6), "direct").solution()
    single = synth.solve(three("allgather", 3), "direct").solution()
    twice = carried_over.repeated(three("allgather", 3), single, 2)
    made = carried_over.in_a_row(instance, whole, twice)
    assert sorted(made.piece_bytes.tolist()) == [1] * 6
    verdict = check_schedule(instance, made)
    assert verdict.faults == []
    assert verdict.value == 4.0
