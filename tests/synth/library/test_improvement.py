"""``synth library --improve``: what is open is run again, the widest gaps first; a killed run goes on where it was."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from command import SYNTH, flat
from typer.testing import CliRunner

import synth
from synth import api
from synth.cli.main import app
from synth.execution.runs import Run
from synth.library import best_known, improvement, submission
from synth.library.best_known import Row
from synth.library.improvement import Plan, Shard, Step, better, read_shard, read_tried
from synth.records import record as records
from synth.records.folder import pack
from synth.records.record import Record
from synth.text.input_file import InputFile

SIZES = (5, 8, 12)
PLAN = Plan(60.0, 1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library of rings whose allgather somebody handed in all clockwise, n - 1 timesteps, without a bound."""
    made, sender = tmp_path / "lib", submission.Sender("Jane Doe")
    for n in SIZES:
        raw = {"format": "synth-instance/1", "family": "xtree", "source": "test", "chunks": 1, "name": f"ring{n}"}
        (tmp_path / "ring.json").write_text(json.dumps(raw | {"network": {"kind": "ring", "nodes": n}}))
        rows = [f"{t + 1},{2 * v},{(v - t) % n},0\n" for t in range(n - 1) for v in range(n)]
        (tmp_path / "slow.csv").write_text("step,link,origin,chunk\n" + "".join(rows))
        slow = submission.schedule(synth.read(tmp_path / "ring.json"), [InputFile(tmp_path / "slow.csv")], sender)
        records.write(slow, records.record_path(made, "xtree", f"ring{n}", slow["method"], None, slow.question))
    pack(made)
    best_known.make(made)
    return made


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs go on in this process; the list grows by each, as ``instance method limit seed``."""
    ran: list[str] = []

    def run_all(runs: Sequence[Run]) -> Iterator[tuple[Run, Record, bool]]:
        for run in runs:
            options = run.options
            ran.append(f"{run.instance.name} {run.method.name} {options.time_limit_s:g} {options.seed}")
            yield run, api.execute(run.instance, run.method, options), False

    monkeypatch.setattr(improvement, "run_all", run_all)
    return ran


def steps(folder: Path, plan: Plan = PLAN) -> list[Step]:
    file = folder / best_known.NAME
    return list(better(best_known.read(file), file, plan))


def make(folder: Path) -> None:
    best_known.make(folder)


def collected(folder: Path) -> list[Row]:
    assert improvement.collect(folder, make)
    return best_known.read(folder / best_known.NAME)


def test_what_is_better_stands_in_the_library_and_what_stood_there_in_its_history(
    folder: Path, here: list[str]
) -> None:
    assert any(step.better for step in steps(folder))
    rows = collected(folder)
    assert [(row.instance, row.value, row.status) for row in rows] == [
        ("ring12", "6.0", "closed"), ("ring5", "2.0", "closed"), ("ring8", "4.0", "closed"),
    ]  # fmt: skip
    assert all(synth.check(folder / row.record).ok for row in rows)
    history = best_known.read_history(folder)
    assert [(one.number, one.by) for one in history] == [(number, "Jane Doe") for number in ("11.0", "4.0", "7.0")]
    assert steps(folder) == []  # all is closed
    assert not improvement.collect(folder, make)


def test_an_order_by_seed_and_nothing_twice(folder: Path, here: list[str], tmp_path: Path) -> None:
    untouched = Path(shutil.copytree(folder, tmp_path / "untouched"))
    taken = better(best_known.read(folder / best_known.NAME), folder / best_known.NAME, PLAN)
    next(taken)
    taken.close()  # type: ignore[attr-defined]
    collected(folder)
    steps(folder)
    there = list(here)
    assert len(set(there)) == len(there)  # what the first start had done is not done again
    assert len(read_tried(folder / improvement.FOLDER / "tried.csv")) == len(there)
    here.clear()
    steps(untouched)
    assert here[:1] == there[:1]
    assert sorted(here) == sorted(there)


@pytest.mark.long
def test_other_seeds_have_another_order(folder: Path, here: list[str]) -> None:
    orders = set()
    for seed in range(6):
        here.clear()
        taken = better(best_known.read(folder / best_known.NAME), folder / best_known.NAME, replace(PLAN, seed=seed))
        next(taken)
        taken.close()  # type: ignore[attr-defined]
        orders.add(here[0].split()[0])
    assert len(orders) > 1


def test_every_instance_is_in_one_shard(folder: Path, here: list[str]) -> None:
    rows = best_known.read(folder / best_known.NAME)
    for count in (1, 2, 7):
        shards = [Shard(number, count) for number in range(1, count + 1)]
        assert [sum(shard.has(row) for shard in shards) for row in rows] == [1] * len(rows)
    found = [steps(folder, replace(PLAN, shard=Shard(number, 2))) for number in (1, 2)]
    assert len({step.row.instance for part in found for step in part}) == len(SIZES)
    assert all(row.status == "closed" for row in collected(folder))


@pytest.mark.long
def test_the_widest_gap_has_its_turn_again_before_a_narrow_one(
    folder: Path, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps of 40, 8 and 30 %, where no run finds anything: halved at every turn, 40 30 20 15 10 8 7.5."""
    monkeypatch.setattr(improvement, "_value_better", lambda *_: "")
    monkeypatch.setattr(improvement, "_bound_better", lambda *_: "")
    monkeypatch.setattr(improvement, "MOST_TURNS", 3)
    file, gaps = folder / best_known.NAME, {"ring5": "0.4", "ring8": "0.08", "ring12": "0.3"}
    rows = [replace(row, gap=gaps[row.instance]) for row in best_known.read(file)]
    found = list(better(rows, file, PLAN))
    turns = list(dict.fromkeys((one.split()[0], one.split()[-2:][0]) for one in here))
    wide, narrow, middle = "ring5", "ring8", "ring12"
    order = [(wide, "1"), (middle, "1"), (wide, "2"), (middle, "2"), (wide, "4"), (narrow, "1")]
    assert turns[:6] == order
    assert not any(step.better for step in found)


def test_the_budget_ends_it_and_a_run_that_it_cut_is_not_called_tried(folder: Path, here: list[str]) -> None:
    assert steps(folder, replace(PLAN, budget_s=0.1)) == []
    assert here == []
    steps(folder, Plan(0.7, 100.0))
    assert here
    assert all(float(one.split()[2]) <= 0.7 for one in here)


@pytest.mark.long
def test_what_the_check_refuses_is_not_written(folder: Path, here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = api.check

    def refuse(*given: object) -> object:
        return replace(real(*given), faults=["link 0 twice"])  # type: ignore[arg-type]

    monkeypatch.setattr(api, "check", refuse)
    found = steps(folder, replace(PLAN, budget_s=1.0))
    assert not any(step.better for step in found)
    assert "link 0 twice" in {step.refused for step in found}
    assert not list((folder / improvement.FOLDER).rglob("*.json"))


def test_a_value_below_a_certified_bound_is_refused(folder: Path, here: list[str]) -> None:
    """The library claims a certified bound of 3 for a ring of 5, whose optimum is 2."""
    steps(folder)
    rows = {row.instance: row for row in collected(folder)}
    place = folder / rows["ring5"].bound_record
    false = records.read(place)
    records.write(replace(false, data={**false.data, "bound": 3.0}), place)
    state = improvement._Library(folder / best_known.NAME, PLAN)
    open_row = replace(rows["ring5"], value="", record="", bound="3.0", status="open")
    [run] = [one for one in state.untried(open_row, 5, folder.parent) if one.method.name == "xtree"]
    step = state.step(open_row, run, 5, 60.0)
    assert step.record.value == 2.0
    assert (step.better, step.refused) == ((), "it contradicts the library")


def test_a_line_that_was_being_written_is_cut_off(folder: Path, here: list[str]) -> None:
    steps(folder)
    file = folder / improvement.FOLDER / "tried.csv"
    whole = file.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    file.write_bytes(whole[: last + 20])
    assert len(read_tried(file)) == whole.count(b"\n") - 2
    improvement._Library(folder / best_known.NAME, PLAN)
    assert file.read_bytes() == whole[:last]
    file.write_text("a,b\n1,2\n")
    with pytest.raises(synth.InputError, match="is no list of runs"):
        steps(folder)


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "a/2", "1/", "1/2/3", "-1/2", "²/3"])
def test_what_is_no_shard_is_refused(text: str, folder: Path) -> None:
    with pytest.raises(ValueError, match="must be I/N"):
        read_shard(text)
    done = CliRunner().invoke(app, ["library", "--improve", str(folder), f"--shard={text}"])
    assert isinstance(done.exception, synth.InputError)
    assert not (folder / improvement.FOLDER).exists()


def test_a_folder_without_a_library_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["library", "--improve", str(tmp_path)])
    assert isinstance(done.exception, synth.InputError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_killed_it_goes_on_and_nothing_is_lost(folder: Path) -> None:
    """Killed with signal 9 as soon as a line stands in the list, three times, then left to its end: every run once."""
    words = [SYNTH, "library", "--improve", folder, "--budget", "120s", "--time-limit", "5s"]
    file = folder / improvement.FOLDER / "tried.csv"
    for kill in range(1, 4):
        process = subprocess.Popen(words, cwd=folder.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (file.is_file() and len(file.read_bytes().splitlines()) > kill):
            time.sleep(0.02)
        process.kill()
        process.wait()
        before = file.read_bytes()
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "better" in flat(done.stdout)
    assert file.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    tried = read_tried(file)
    assert len({(one.sha256, one.run, one.asked) for one in tried}) == len(tried)
    rows = best_known.read(folder / best_known.NAME)
    assert {row.instance: (row.value, row.status) for row in rows} == {
        "ring5": ("2.0", "closed"), "ring8": ("4.0", "closed"), "ring12": ("6.0", "closed"),
    }  # fmt: skip
    assert len(best_known.read_history(folder)) == len(SIZES)
