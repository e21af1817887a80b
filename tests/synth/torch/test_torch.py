"""The back-end ``synth`` in jobs of real processes over gloo; skipped where PyTorch is absent."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from plans import MACHINES, folder_of  # noqa: E402

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is absent")


def job(case: str, ranks: int, folder: Path, scratch: Path) -> list[tuple[int, str]]:
    """The exit code and what was printed of every rank."""
    command = [sys.executable, "-W", "ignore", str(HERE / "job.py"), case]
    files = [scratch / f"rank{rank}.txt" for rank in range(ranks)]
    started = []
    for rank, path in enumerate(files):
        words = [*command, str(rank), str(ranks), str(scratch / "store"), str(folder)]
        with path.open("wb") as out:
            started.append(subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, env={**os.environ}))
    try:
        codes = [process.wait(300) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(code, path.read_text()) for code, path in zip(codes, files, strict=True)]


def ranks_of(machine: str) -> int:
    return int(machine[-1]) if machine != "mesh-2x2" else 4


def demand_right(found: list[tuple[int, str]]) -> None:
    assert [code for code, _ in found] == [0] * len(found), "\n".join(text[-1500:] for _, text in found)


@pytest.mark.long
def test_collectives_groups_and_odd_calls(tmp_path: Path) -> None:
    found = job("small", 3, folder_of("ring-3", tmp_path), tmp_path)
    demand_right(found)
    assert "allreduce by allreduce.rounds.json" in found[0][1]
    assert "allreduce by the inner back-end" in found[0][1]  # the maximum


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_eight_collectives_of_five_sizes_and_three_types(machine: str, tmp_path: Path) -> None:
    demand_right(job("grid", ranks_of(machine), folder_of(machine, tmp_path), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["many", "training"])
def test_random_sizes_and_training(case: str, tmp_path: Path) -> None:
    demand_right(job(case, 4, folder_of("ring-4", tmp_path), tmp_path))


@pytest.mark.slow
def test_a_rank_that_is_killed_is_named_by_all_others(tmp_path: Path) -> None:
    found = job("killed", 4, folder_of("ring-4", tmp_path), tmp_path)
    assert [code for code, _ in found] == [0, 0, -9, 0], [text[-500:] for _, text in found]


@pytest.mark.long
def test_a_folder_for_another_number_of_ranks_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ((code, text),) = job("small", 1, folder_of("ring-3", tmp_path, ("allreduce",)), tmp_path)
    assert code == 1
    assert text.strip().splitlines()[-1].endswith("is for 3 ranks, this job has 1")
