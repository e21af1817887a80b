"""The race: whoever makes a schedule is credited for it, in the record and in tables."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from models.fabric.small_several import ONE_LINK, several

import synth
from synth.clock.deadline import OutOfTime
from synth.errors import InputError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth.records import record as records
from synth.records.contents import demand_contents
from synth.records.repetition import repeat
from synth.records.summary import rows_by_instance
from synth_models.fabric import race
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.scheduling import chunks

BOTH = [
    {"collective": "broadcast", "bytes": 4, "ranks": [0, 1], "name": "a"},
    {"collective": "broadcast", "bytes": 2, "ranks": [0, 1], "name": "b"},
]


def star(collective: str, **own: Any) -> FabricInstance:
    """Four ranks at a switch, 1 kB/ms and 1 us a link."""
    made = synth.make(
        "fabric", network="star", nodes=4, bandwidth="1e6", latency="1e-6", collective=collective, bytes=4000, **own
    )
    assert isinstance(made, FabricInstance)
    return made


def nothing(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """A method that has no schedule of its own."""
    return Outcome("finished", message="nothing")


def slowly(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """A method whose own schedule is that of ``direct``, each tick ten times as long."""
    from dataclasses import replace

    made = race.call("direct", instance, RunOptions().started_now()).solution
    return Outcome("finished", replace(made, start=made.start * 10), message="slow")


@pytest.fixture
def borrower(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have ``pull`` be one of these functions, compared with ``ring`` and ``direct``."""

    def enter(own: Any, *lenders: str) -> None:
        monkeypatch.setattr(race, "load", lambda target: own)
        entry = race.Entry("own", beside=lambda _: lenders)
        monkeypatch.setitem(race.ENTRIES, "pull", entry)

    return enter


@pytest.mark.parametrize("own", [nothing, slowly])
def test_the_lender_is_credited(tmp_path: Path, borrower: Any, own: Any) -> None:
    """In the record, on disk, and in the row of its instance; its address stays that of the method that was asked."""
    borrower(own, "direct")
    instance = star("alltoall")
    record = synth.solve(instance, "pull", results=tmp_path)
    assert record.ok
    assert record["made_by"] == ["direct"]
    assert (record["method"], record.lender, record.whose, record.credit) == ("pull", "direct", "direct", "direct")
    assert record["message"].startswith("as direct: ")
    assert record.path is not None
    stored = records.read(record.path)
    assert (stored.path.stem if stored.path else "", stored.whose) == ("pull", "direct")
    row = rows_by_instance([stored])[0]
    assert (row.label, row.cells()[5]) == ("direct", "direct")
    assert record.value == synth.solve(instance, "direct").value


def test_who_makes_its_own_keeps_the_credit(borrower: Any) -> None:
    """Also of a schedule that takes as long as a lender's."""
    borrower(lambda instance, options, _: race.call("direct", instance, options), "direct", "ring")
    record = synth.solve(star("alltoall"), "pull")
    assert (record["made_by"], record.lender, record.whose) == (["pull"], "", "pull")


def test_credit_goes_through_two_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """``continuous`` is handed what ``pull`` took from ``direct``; none of them improves it."""
    own = race.load
    monkeypatch.setattr(race, "load", lambda target: nothing if target.endswith(":propose") else own(target))
    monkeypatch.setitem(race.ENTRIES, "pull", race.Entry("x:propose", beside=lambda _: ("direct",)))
    monkeypatch.setitem(race.ENTRIES, "continuous", race.Entry("x:propose", ("pull",)))
    found = race.continuous(star("alltoall"), RunOptions(10.0).started_now())
    assert found.made_by == ("direct",)


def test_what_was_beaten_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pull``'s own, which took ten times as long as what ``direct`` lent it, and that: ``continuous`` sees both."""
    seen: list[Outcome] = []

    def look(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
        seen.extend(incumbent.lent)
        return Outcome("finished", message="nothing")

    monkeypatch.setattr(race, "load", {"pull": slowly, "continuous": look}.__getitem__)
    monkeypatch.setitem(race.ENTRIES, "pull", race.Entry("pull", beside=lambda _: ("direct",)))
    monkeypatch.setitem(race.ENTRIES, "continuous", race.Entry("continuous", ("pull",)))
    instance = star("alltoall")
    race.continuous(instance, RunOptions(10.0).started_now())
    quick, slow = (chunks.seconds(instance, one.solution) for one in seen)
    assert slow > 5 * quick
    assert [one.made_by for one in seen] == [("direct",), None]


def test_a_composition_names_the_makers_of_its_parts() -> None:
    """Two broadcasts over one link: each alone by whoever is the quickest, both timed by ``together``."""
    record = synth.solve(several(BOTH, ONE_LINK), "together", time_limit=10)
    whole, *parts = record["made_by"]
    assert whole == "together"
    assert parts
    assert record.whose == f"together of {', '.join(parts)}"
    assert f"each by the best method for it ({', '.join(parts)})" in record["message"]


def test_of_several_collectives_each_names_its_lender(borrower: Any) -> None:
    borrower(nothing, "direct")
    record = synth.solve(several(BOTH, ONE_LINK), "pull", time_limit=10)
    assert record.ok
    assert (record["made_by"], record.whose) == (["pull", "direct"], "pull of direct")


def test_a_record_without_the_key_is_by_its_method(tmp_path: Path) -> None:
    record = synth.solve(star("alltoall"), "direct", results=tmp_path)
    assert record.path is not None
    data = json.loads(record.path.read_text())
    del data["made_by"]
    record.path.write_text(json.dumps(data))
    old = records.read(record.path)
    assert (old.lender, old.whose, old.credit) == ("", "direct", "direct")


@pytest.mark.parametrize("made_by", ["direct", [], [1], [""], ["x" * 201], ["a\x1b[2J"], ["a"] * 65])
def test_credit_in_a_file_is_checked(tmp_path: Path, made_by: Any) -> None:
    record = synth.solve(star("alltoall"), "direct", results=tmp_path)
    assert record.path is not None
    data = json.loads(record.path.read_text()) | {"made_by": made_by}
    with pytest.raises(InputError, match="made_by"):
        demand_contents(data, "file")


def test_a_method_without_a_schedule_says_what_it_lacks_only_if_nobody_lends(borrower: Any) -> None:
    def lacks(*_: object) -> Outcome:
        raise UnsupportedError("no way")

    borrower(lacks)
    assert synth.solve(star("alltoall"), "pull")["message"] == "no way"
    borrower(lacks, "direct")
    assert synth.solve(star("alltoall"), "pull")["made_by"] == ["direct"]


def test_the_incumbent_is_the_quickest_and_settles_at_its_bound() -> None:
    instance = star("alltoall")
    schedule = race.call("direct", instance, RunOptions()).solution
    took = chunks.seconds(instance, schedule)
    best = Incumbent(instance, RunOptions().started_now())
    assert best.offer(schedule, "one", ("direct",))
    assert not best.offer(schedule, "again", ("ring",))
    assert (best.time, best.told, best.made_by, best.tried) == (took, "one", ("direct",), 2)
    assert best.options.held.made_by == ("direct",)
    assert not best.settled
    best.least = took * Fraction(999, 1000)
    assert not best.settled
    best.least = took
    assert best.settled
    assert best.over()


def test_a_false_credit_is_seen_when_the_method_is_run_again(tmp_path: Path) -> None:
    instance = star("alltoall")
    record = synth.solve(instance, "direct", results=tmp_path)
    assert record.path is not None
    data = json.loads(record.path.read_text()) | {"made_by": ["pull"]}
    record.path.write_text(json.dumps(data))
    forged = records.read(record.path)
    found = repeat(forged, instance)
    assert (found.answer, found.words) == ("other makers", "run again it is made by direct")
    assert synth.check(forged, instance).faults == [
        "the record states that its solution is made by pull: run again it is made by direct"
    ]


def test_a_method_that_takes_all_its_time_is_compared_all_the_same(borrower: Any) -> None:
    """What it held when its part of the time was over is slower than the lender's schedule."""

    def endless(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
        incumbent.offer(slowly(instance, options, incumbent).solution, "slow")
        raise OutOfTime

    borrower(endless, "direct")
    record = synth.solve(star("alltoall"), "pull", time_limit=60)
    assert (record["termination"], record["made_by"]) == ("time_limit", ["direct"])
    borrower(endless)
    record = synth.solve(star("alltoall"), "pull", time_limit=60)
    assert (record["termination"], record["made_by"], record["message"]) == (
        "time_limit", ["pull"], "slow; stopped at the time limit",
    )  # fmt: skip


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
def test_ours_is_not_slower_than_leaders_where_ranks_share_a_nic(collective: str) -> None:
    """Eight boxes of eight ranks and four NICs: over all ranks at once a NIC carries most data several times."""
    made = synth.make("fabric", machine="dgx1", boxes=8, collective=collective, bytes="64MiB")
    assert isinstance(made, FabricInstance)
    ours, leaders = (race.call(name, made, RunOptions().started_now()) for name in ("hierarchical", "two_level"))
    assert ours.solution is not None
    assert leaders.solution is not None
    assert chunks.seconds(made, ours.solution) <= chunks.seconds(made, leaders.solution)
