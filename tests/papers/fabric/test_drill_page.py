"""What the page `drill` says is what its records say; a random other member of every orbit takes as long."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from published import PUBLISHED, below, whole

import synth
from synth.drill import search
from synth.family import get_family
from synth.instance import Instance
from synth.making import make
from synth.method import load
from synth.records.record import Record
from synth.text.quantities import percent, shown
from synth_papers.fabric.drill import ALONE, HALF, MACHINES, SIZES, SLOWED, TRIED

FABRIC = get_family("fabric")
DRILLS = [(machine, boxes, size) for machine, boxes in MACHINES.items() for size in SIZES]
TIME = 300  # seconds of a run: on a busy machine a minute cuts one short
SLOW = [asked for asked in DRILLS if asked[0] in SLOWED]


def kept() -> list[Record]:
    """Without what lies in the folder of all runs, where somebody has made the page."""
    tried = PUBLISHED / "drill" / TRIED
    return [one for one in below("drill") if one.path is not None and tried not in one.path.parents]


def by_instance() -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in kept():
        found.setdefault(str(record["instance"]), []).append(record)
    return found


def tables() -> dict[str, list[dict[str, str]]]:
    """The page's tables by heading."""
    found: dict[str, list[dict[str, str]]] = {}
    for part in (PUBLISHED / "drill.md").read_text().split("\n## ")[1:]:
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")]
        found[part.splitlines()[0]] = [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]
    return found


def drilled(machine: str, boxes: int, size: str, folder: Path, share: str | None = None) -> search.Drill:
    """The drill with the page's records."""
    keys = {"machine": machine, "boxes": str(boxes), "collective": "allreduce", "bytes": size}
    drill = search.prepared(search.Question(make(FABRIC, keys), folder, share))
    held = by_instance()
    for case in (drill.whole, *drill.cases):
        if case.instance is not None:
            own = [one for one in held[case.instance.name] if one["instance_sha256"] == case.instance.sha256]
            case.records = [whole(one) for one in own]
    if share is None:
        search.borrow(drill)
    return drill


def title(machine: str, boxes: int, size: str) -> str:
    return f"{machine} ×{boxes}, allreduce of {size}"


@pytest.mark.long(after=1)
@pytest.mark.parametrize("asked", DRILLS)
def test_every_failure_is_within_two_percent(asked: tuple[str, int, str], tmp_path: Path) -> None:
    drill = drilled(*asked, tmp_path)
    demand_rows(title(*asked), drill)
    assert all(case.within(0.02) for case in (drill.whole, *drill.cases))


@pytest.mark.parametrize("asked", SLOW)
def test_every_slower_link_is_within_two_percent(asked: tuple[str, int, str], tmp_path: Path) -> None:
    """The cables of an NIC, and a GPU's port to its NVSwitch."""
    drill = drilled(*asked, tmp_path, HALF)
    demand_rows(f"{title(*asked)}, a link at half its rate", drill)
    assert len(drill.cases) == 3
    assert all(case.within(0.02) for case in (drill.whole, *drill.cases))


def test_the_answer_says_the_largest_gap_of_a_slower_port() -> None:
    found = tables()
    for machine in SLOWED:
        mine = [
            row for asked in SLOW if asked[0] == machine for row in found[f"{title(*asked)}, a link at half its rate"]
        ]
        most = max(
            (row["gap"] for row in mine if "nvswitch" in row["failure"]), key=lambda text: float(text.split()[0])
        )
        assert f"gaps there reach {most}." in (PUBLISHED / "drill.md").read_text()


def demand_rows(heading: str, drill: search.Drill) -> None:
    """The table, row by row from the worst down, out of the records; every bound is certified."""
    rows = tables()[heading]
    assert [row["failure"] for row in rows] == [case.name for case in (*drill.ordered(), drill.whole)]
    for row, case in zip(rows, (*drill.ordered(), drill.whole), strict=True):
        assert case.seconds is not None
        assert case.bound is not None
        assert case.bound <= case.seconds
        assert (row["time"], row["bound"]) == (shown(case.seconds, "s"), shown(case.bound, "s"))
        assert row["gap"] == percent(1 - case.bound / case.seconds)
        if case.orbit is not None:
            assert row["alike"] == str(len(case.orbit.members))
            loss = drill.loss(case)
            assert loss is not None
            assert row["loss"] == percent(loss)


def test_all_failures_are_covered() -> None:
    found = tables()
    slow = "Schedules that cover every link at half its rate, dgx-h100 ×4 and dgx-a100 ×2"
    rows = found["Schedules that cover all single failures"] + found[slow]
    for row in rows:
        assert row["covered"] == row["failures"]
        assert row["proven least"] == "yes"
        assert int(row["schedules"]) <= int(row["kinds"])


def test_a_box_without_alternatives_is_parted(tmp_path: Path) -> None:
    drill = drilled(*ALONE, tmp_path)
    rows = {row["failure"]: row for row in tables()[f"{title(*ALONE)}: no alternatives"]}
    text = (PUBLISHED / "drill.md").read_text()
    for case in drill.cases:
        assert case.cut is not None
        assert rows[case.name]["loss"] == "parted"
        assert str(case.cut) in text


@pytest.mark.long(after=41)
@pytest.mark.parametrize("record", kept(), ids=lambda one: f"{one['instance']}-{one['method']}")
def test_the_records_pass_the_check(record: Record) -> None:
    assert synth.check(whole(record)).ok


@pytest.mark.slow
@pytest.mark.parametrize("asked", DRILLS)
def test_a_random_other_member_is_no_different(asked: tuple[str, int, str], tmp_path: Path) -> None:
    """The bound again, and the published schedule moved there, which the check replays: as quick to the tick. And the
    drill's methods anew, that of the published schedule first, until one is within the gap, as the drill runs them."""
    drill = drilled(*asked, tmp_path)
    chooser = random.Random(str(asked))
    for case in drill.cases:
        assert case.orbit is not None
        k = chooser.randrange(1, len(case.orbit.members))
        other = drill.breakable.broken(case.orbit.members[k], None)
        bound = synth.solve(other, "bound", time_limit=60).bound
        assert bound == pytest.approx(case.bound, rel=1e-9)
        if case.best is None:
            continue
        moved = drill.breakable.carried(search.solution_of(case), case.orbit.images[k], case.instance, other)
        verdict = load(FABRIC.check)(other, moved)
        assert (verdict.ok, verdict.value) == (True, case.best.value)
        assert bound is not None
        again = quickest(other, str(case.best["method"]), bound)
        assert bound <= again * (1 + 1e-12)
        assert 1 - bound / again <= search.ENOUGH


def quickest(instance: Instance, first: str, bound: float) -> float:
    """Seconds of the drill's methods, one after the other until the gap is small enough."""
    value = math.inf
    for name in dict.fromkeys([first, *search.methods_of(FABRIC, instance, ())]):
        made = synth.solve(instance, name, time_limit=TIME, gap=search.ENOUGH).value
        value = value if made is None else min(value, made)
        if 1 - bound / value <= search.ENOUGH:
            break
    return value
