"""``synth tune`` within its time: whose turn it is, what a limit or an interruption leaves, and what was not tried."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.family import get_family
from synth.tuning import Question, phases, runs, search, tune, turns
from synth.tuning.rows import Candidate, Row
from synth.tuning.table import left_out

WORDS = {"network": "ring", "nodes": "4", "bandwidth": "25GB/s", "latency": "0.7us"}
SIZES = (4096, 2**22)


def question(folder: Path, **more: Any) -> Question:
    make = partial(synth.make, "fabric", **WORDS)
    asked = {"collectives": ("allgather", "broadcast"), "sizes": SIZES, "form": "scheduled", "methods": ("forest",)}
    return Question(lambda what, size: make(collective=what, bytes=size), folder=folder, **asked | more)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """The runs that are made: collective, bytes, method."""
    found: list[tuple[str, int, str]] = []
    solve = synth.api.solve

    def noted(instance: Any, name: str, **keys: Any) -> Any:
        found.append((instance.collective, instance.bytes, name))
        return solve(instance, name, **keys)

    monkeypatch.setattr("synth.api.solve", noted)
    return found


def test_phases_have_half_of_what_is_left_and_turns_equal_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 s, four turns of the first phase have 40: 10 each. The first uses 1 s, so the others have 13; with these
    used 40 are left for the second and last phase, 20 each, of which a run of two has half."""
    now = [0.0]
    monkeypatch.setattr(turns, "counted_now", lambda: now[0])
    given: list[tuple[int, float]] = []

    def turn(phase: int, took: float, runs: int = 1) -> turns.Turn:
        def act(share: turns.Share) -> None:
            given.append((phase, share.seconds(runs)))
            now[0] += min(took, share.seconds())

        return turns.Turn(phase, 0, act)

    turns.in_turn([turn(1, 99, 2), turn(0, 1), turn(0, 99), turn(0, 99), turn(0, 99), turn(1, 99, 2)], 80.0)
    assert given == [(0, 10), (0, 13), (0, 13), (0, 13), (1, 10), (1, 10)]
    assert now == [80.0]
    assert turns.Share(80.0, 80.0).seconds() == 0
    assert turns.Share(90.0, 99.0, 80.0).seconds() == 0
    assert turns.Share(90.0, 99.0, 81.0).seconds() == 10
    assert turns.Share(82.0, 80.0).seconds() == turns.LEAST_S


@pytest.mark.parametrize("large", [pytest.param(False, marks=pytest.mark.long), True])
def test_of_many_ranks_ours_and_the_rings_come_first(
    large: bool, tmp_path: Path, made: list[tuple[str, int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every size of every collective, before anything else; of few ranks the bounds and the rings."""
    monkeypatch.setattr(search, "not_slower", lambda family, row, names: names)
    monkeypatch.setattr(search._Search, "_is_cut", lambda *_: False)  # on a busy machine too
    monkeypatch.setattr(phases, "MOST_PUBLISHED_FIRST", 3 if large else 4)
    tune(question(tmp_path, seconds=600.0))
    every = {(what, size) for what in ("allgather", "broadcast") for size in SIZES}
    order = ("forest", "bound", "ring") if large else ("bound",)
    assert large or made[4][2] == "ring"
    for k, name in enumerate(order):
        these = made[4 * k : 4 * k + 4]
        assert ({one[:2] for one in these}, {one[2] for one in these}) == (every, {name})


def test_what_had_too_little_time_runs_once_more(
    tmp_path: Path, made: list[tuple[str, int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first run that the clock cut, where several times its time is left; not one that is at its bound."""
    monkeypatch.setattr(phases, "MOST_PUBLISHED_FIRST", 3)
    recorded, limits = runs.recorded, list[float]()

    def cut(place: Any, instance: Any, name: str, options: Any, seconds: float) -> Any:
        found = recorded(place, instance, name, options, seconds)
        if name != "forest":
            return found
        limits.append(seconds)
        before = {**found["options"], "time_limit_s": 1.0 if len(limits) == 1 else seconds}
        return replace(found, data={**found.data, "options": before, "stopped_by": "clock"})

    monkeypatch.setattr(search, "recorded", cut)
    asked = question(tmp_path, seconds=600.0, collectives=("allgather",), sizes=(4096,))
    monkeypatch.setattr(search, "ENOUGH", -1.0)  # nothing is near its bound
    tune(asked)
    assert [one[2] for one in made].count("forest") == len(limits) == 2
    assert limits[0] <= runs.RUN_S < limits[1] == search.LONGER_S
    made.clear()
    monkeypatch.setattr(search, "ENOUGH", 1.0)
    tune(asked)
    assert [one[2] for one in made].count("forest") == 1


def test_no_row_is_slower_than_its_method_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among many ranks: a first run that the clock cut at one chunk is followed by a whole one, before references, and
    a bound that it cut at half of what can be proven by a whole one at the end."""
    monkeypatch.setattr(phases, "MOST_PUBLISHED_FIRST", 3)
    recorded, ran = runs.recorded, list[str]()

    def cut(place: Any, instance: Any, name: str, options: Any, seconds: float) -> Any:
        ran.append(name)
        if name == "bound" and ran.count(name) == 1:
            found = recorded(replace(place, folder=tmp_path / "cut"), instance, name, options, seconds)
            return replace(found, data={**found.data, "stopped_by": "clock", "bound": (found.bound or 0.0) / 2})
        if name != "forest" or "forest" in ran[:-1]:
            return recorded(place, instance, name, options, seconds)
        found = recorded(replace(place, folder=tmp_path / "cut"), instance, name, {"chunks": 1}, seconds)
        return replace(found, data={**found.data, "stopped_by": "clock"})

    monkeypatch.setattr(search, "recorded", cut)
    monkeypatch.setattr(search, "RUN_S", 2.0)
    asked = question(tmp_path, seconds=600.0, collectives=("broadcast",), sizes=(2**22,))
    [row] = tune(asked)
    alone = synth.solve(row.instance, "forest", time_limit=60).value
    assert ran[:4] == ["forest", "bound", "forest", "ring"]
    assert row.scheduled is not None
    assert alone is not None
    assert row.scheduled <= alone
    assert ran.count("bound") == 2
    assert ran[-1] == "bound"
    assert row.bound == synth.solve(row.instance, "bound").bound
    one_chunk = synth.solve(row.instance, "forest", options={"chunks": "1"}).value
    assert one_chunk is not None
    assert one_chunk > alone


@pytest.mark.parametrize("form", ["scheduled", pytest.param("msccl:azure", marks=pytest.mark.long)])
def test_an_interruption_leaves_a_table_and_names_what_was_not_tried(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fourth run never ends. What came before is in the table, and --resume goes on from it."""
    solve, count = synth.api.solve, [0]

    def stopped(*asked: Any, **keys: Any) -> Any:
        count[0] += 1
        if count[0] == 4:
            raise KeyboardInterrupt
        return solve(*asked, **keys)

    monkeypatch.setattr("synth.api.solve", stopped)
    monkeypatch.setattr(phases, "MOST_PUBLISHED_FIRST", 3)
    words = ["tune", *(f"{key}={value}" for key, value in WORDS.items()), "--sizes", "4KiB,1MiB", "-m", "forest"]
    words += ["--for", form, "-o", str(tmp_path), "--resume"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130, (done.output, done.exception)
    table = pd.read_csv(tmp_path / "table.csv")
    assert table["bytes"].tolist() == [4096, 2**20]
    assert table["method"].str.startswith("forest").all() or form != "scheduled"
    assert "interrupted" in done.output
    assert "not tried in the time: " in done.output
    assert "double_tree" in (tmp_path / "table.md").read_text()
    assert "not tried" in done.output
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, (again.output, again.exception)
    assert "not tried in the time" not in again.output


def test_without_time_what_is_there_is_taken_over(tmp_path: Path, made: list[tuple[str, int, str]]) -> None:
    """A limit that has passed runs nothing, but reads records; what is not there is named."""
    with pytest.raises(InputError, match=r"no schedule of .* can be run as scheduled: .*ring: not tried in the time"):
        tune(question(tmp_path, seconds=0.0))
    assert not made
    first = tune(question(tmp_path, collectives=("allgather",)))
    made.clear()
    rows = tune(question(tmp_path, seconds=0.0, resume=True))
    assert not made
    assert [row.best and row.best.seconds for row in rows if row.collective == "allgather"] == [
        row.best and row.best.seconds for row in first
    ]
    assert all(row.best is None for row in rows if row.collective == "broadcast")
    said = left_out(rows)
    assert any(words.startswith("broadcast, all sizes: not tried in the time: ring") for words in said), said
    assert "broadcast, all sizes: no schedule: not in the table" in said
    assert not any(words.startswith("allgather") and "not tried in the time" in words for words in said)


def test_patience_is_for_references_and_bounds(tmp_path: Path, made: list[tuple[str, int, str]]) -> None:
    """Without any time for ours all of these have run, and every row has its bound and the best of them."""
    rows = tune(question(tmp_path, seconds=0.0, patient=True))
    ran = {name for _, _, name in made}
    assert {"ring", "double_tree", "bound"} <= ran
    assert "forest" not in ran
    assert all(row.best is not None and row.bound is not None for row in rows)
    assert {why for row in rows for name, why in row.untried.items() if name != "forest"} <= {search.NEAR_BOUND}


def test_a_reference_that_does_not_know_the_collective_is_a_dash(tmp_path: Path) -> None:
    """Only that: one that was not tried says so."""
    known = tune(question(tmp_path, collectives=("alltoall",), sizes=(4096,), resume=True))
    assert known[0].beside("ring") == known[0].beside("double_tree") == ""
    [row] = tune(question(tmp_path, collectives=("allgather",), sizes=(4096,)))
    assert row.references["ring"] > 0
    row.untried["ring"] = search.NO_TIME
    assert row.beside("ring") == "not tried"


def test_what_yields_leaves_others_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many references there are, ours have half of a small limit. Runs of the phase take 1 s each, so 5 of the
    10 begin in the 5 s that it has of 10 s."""
    now, given = [0.0], list[float]()
    monkeypatch.setattr(turns, "counted_now", lambda: now[0])

    def act(share: turns.Share) -> None:
        given.append(share.seconds())
        now[0] += given[-1]

    turns.in_turn([turns.Turn(0, k, act, yields=True) for k in range(10)] + [turns.Turn(1, 0, act)], 10.0)
    assert given == [1.0] * 5 + [0.0] * 5 + [5.0]


def test_turns_that_nothing_is_left_for_have_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three turns is wanted, and has the whole phase."""
    monkeypatch.setattr(turns, "counted_now", lambda: 0.0)
    given: list[float] = []

    def act(share: turns.Share) -> None:
        given.append(share.seconds())

    asked = [turns.Turn(0, k, act, wanted=partial(eq, k, 1)) for k in range(3)]
    turns.in_turn([*asked, turns.Turn(1, 0, act)], 80.0)
    assert given == [40.0, 80.0]


def test_a_reference_among_many_that_is_slower_anyway_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once around a ring of four are 3 x 0.7 us: with a schedule of 2 us there is no need to, with one of 3 us there
    is, and among few ranks it always runs."""
    instance, family = synth.make("fabric", **WORDS, collective="allgather", bytes=4096), get_family("fabric")
    for most, scheduled, left in ((3, 2e-6, ["direct"]), (3, 3e-6, ["ring", "direct"]), (4, 2e-6, ["ring", "direct"])):
        monkeypatch.setattr(phases, "MOST_PUBLISHED_FIRST", most)
        row = Row(instance, "allgather", 4096, scheduled=scheduled, known=frozenset(["ring", "direct"]))
        assert phases.not_slower(family, row, ["ring", "direct"]) == left
        assert row.beside("ring") == ("not tried" if left == ["direct"] else "not lowered")
        assert ("ring" in row.untried) == (left == ["direct"])


BOXES = {"machine": "dgx-a100", "boxes": "2"}


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "broadcast"])
@pytest.mark.parametrize(
    "machine", [pytest.param(BOXES, marks=pytest.mark.long), {"network": "star", "nodes": "5"}, WORDS]
)
def test_no_ring_takes_less_than_its_chain(machine: dict[str, str], collective: str) -> None:
    """On small machines with few bytes; of other methods nothing is known."""
    instance = synth.make("fabric", collective=collective, bytes="1KiB", **machine)
    found = synth.solve(instance, "ring", time_limit=2)
    at_least = get_family("fabric").capability("at_least")
    assert found.value is not None
    assert 0 < at_least(instance, "ring") <= found.value
    assert at_least(instance, "direct") == 0


def test_without_intervals_no_schedule_is_read_again() -> None:
    """The candidate has no record that moves could come from."""
    instance = synth.make("fabric", **WORDS, collective="allgather", bytes=4096)
    row = Row(instance, "allgather", 4096, best=Candidate("ring", 2e-6, None))
    row.reckon_within()
    assert row.within is None
