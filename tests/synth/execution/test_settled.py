"""The race between an instance's default methods ends when a schedule meets the bound."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command import run

from synth import api
from synth.execution.runs import Request, Run, expand
from synth.execution.settled import Settled
from synth.family import get_family
from synth.instance import Instance, read
from synth.records.record import Record

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
FULL = INSTANCES / "fabric" / "full-4-allgather-4KiB.json"  # a link from every rank to every other


def runs_of(instance: Instance, request: Request, folder: Path) -> dict[str, Run]:
    return {run.method.name: run for run in expand([instance], request, folder).runs()}


def solved(run: Run) -> Record:
    return api.execute(run.instance, run.method, run.options)


@pytest.fixture(scope="module")
def instance() -> Instance:
    return read(FULL)


@pytest.fixture(scope="module")
def ended(instance: Instance) -> dict[str, Record]:
    """1 KiB over each link of 4: 1.04 us by ``direct``; with Bruck's algorithm twice that, a latency each."""
    runs = runs_of(instance, Request(["bound", "bruck", "direct"]), Path("results"))
    return {name: solved(run) for name, run in runs.items()}


@pytest.mark.parametrize(
    ("done", "over"),
    [
        ((), False),
        (("direct",), False),  # nothing proves that it is best
        (("bound",), False),
        (("bound", "bruck"), False),  # 2.05 us, and 1.04 us are not ruled out
        (("bound", "bruck", "direct"), True),
    ],
)
def test_ours_are_left_out_at_the_bound_only(
    instance: Instance, ended: dict[str, Record], done: tuple[str, ...], over: bool
) -> None:
    """What ours are measured against always runs."""
    runs, settled = runs_of(instance, Request(), Path("results")), Settled()
    for name in done:
        settled.add(runs[name], ended[name])
    left_out = [name for name, run in runs.items() if settled.needless(run)]
    assert left_out == (["pull", "forest"] if over else [])
    assert [run.method.name for run in settled.spared] == left_out


def test_a_larger_gap_ends_it_sooner(instance: Instance, ended: dict[str, Record]) -> None:
    """Bruck's algorithm is 49.25 % above the bound, counted from its own value."""
    for allowed, over in ((0.49, False), (0.5, True)):
        runs, settled = runs_of(instance, Request(gap=allowed), Path("results")), Settled()
        for name in ("bound", "bruck"):
            settled.add(runs[name], ended[name])
        assert settled.needless(runs["forest"]) == over


def test_another_instance_of_the_name_is_another_race(instance: Instance, ended: dict[str, Record]) -> None:
    other = read(INSTANCES / "fabric" / "torus-4x4-allgather-16MiB.json")
    mine, theirs = (runs_of(one, Request(), Path("results")) for one in (instance, other))
    settled = Settled()
    for name in ("bound", "direct"):
        settled.add(mine[name], ended[name])
    assert settled.needless(mine["pull"])
    assert not settled.needless(theirs["pull"])


def test_families_without_a_race_run_every_method() -> None:
    """Their programs are what is studied."""
    raced = [name for name in ("bine", "harvest", "mlfm", "optree", "xtree") if get_family(name).can("raced")]
    assert raced == []


@pytest.mark.long
def test_the_command_says_what_it_left_out(tmp_path: Path) -> None:
    """Named methods, and methods by a named solver, run all the same; a line of JSON for every record."""
    shutil.copy(FULL, tmp_path / "full.json")
    done = run("solve", "full.json", "--jobs", "1", cwd=tmp_path)
    assert "not run, for a schedule met the bound: pull, forest" in done.stdout
    names = sorted(path.stem for path in (tmp_path / "results/fabric/full-4-allgather-4KiB").glob("*.json"))
    assert names == ["bfb", "bound", "bruck", "direct", "pat", "recursive_doubling", "ring", "tacos"]
    lines = run("solve", "full.json", "--jobs", "1", "--json", cwd=tmp_path).stdout.splitlines()
    assert sorted(json.loads(line)["method"] for line in lines) == names
    done = run("solve", "full.json", "--jobs", "1", "-m", "bound", "-m", "direct", "-m", "forest", cwd=tmp_path)
    assert "not run" not in done.stdout
    assert (tmp_path / "results/fabric/full-4-allgather-4KiB/forest-highs.json").is_file()
