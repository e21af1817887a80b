"""``synth drill``: drills of small machines against an own replay; a random other member; drawers; bad input."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from examples import some_of
from models.fabric.flat_replay import replay
from models.fabric.test_single_failures import tiny

import synth
from synth.drill import cover, drawer, page, search
from synth.errors import InputError
from synth.family import get_family, load
from synth.instance import Instance
from synth.options import RunOptions

FABRIC = get_family("fabric")
RING = {"network": "ring", "nodes": 5, "collective": "allgather", "bytes": "5MiB"}


def drilled(instance: Instance, folder: Path, methods: tuple[str, ...], share: str | None = None) -> search.Drill:
    """A drill whose runs are made in this process."""
    drill = search.prepared(search.Question(instance, folder, share, methods=methods))
    for case in (drill.whole, *drill.cases):
        if case.instance is not None:
            case.records = [synth.solve(case.instance, name, time_limit=10) for name in ("bound", *methods)]
    if share is None:
        search.borrow(drill)
    return drill


def table_of(instance: Any, solution: Any) -> str:
    """The flat table, as `synth show --csv` prints it."""
    return str(load(FABRIC.table)(instance, solution).to_csv(index=False))


def small(seed: int, collective: str) -> Instance:
    """A machine of :func:`tiny` with its links one by one, and the keys that an own replay reads."""
    made = tiny(seed)
    size = 12 * len(made.members)
    return made.model_copy(update={"collective": collective, "bytes": size, "name": f"tiny-{seed}-{collective}"})


def demand_sound(drill: search.Drill, folder: Path, chooser: random.Random) -> int:
    """No schedule uses what failed (own replay, which knows the instance file alone), none is below its bound, and the
    drawer answers every failure; returns how many have a schedule."""
    found = cover.cover(drill, RunOptions(20.0, solver="highs"))
    contents = drawer.write(drill, found, folder)
    parted = {one.failure for one in contents.parted}
    answered = 0
    for single in found.singles:
        stated = drill.question.share
        name = single.failure.name
        if name in parted:
            with pytest.raises(InputError, match=r"part|reach"):
                drill.breakable.broken(single.failure, stated)
            continue
        if single.case.seconds is None:
            continue
        one = drawer.answer(folder, name)
        assert one.row is not None
        target, solution, _ = one.solution()
        assert target.sha256 == drill.breakable.broken(single.failure, stated).sha256  # type: ignore[attr-defined]
        if stated is None:
            seconds = replay(table_of(target, solution), json.loads(target.to_json()))
            assert float(seconds) == pytest.approx(one.row.seconds, rel=1e-12)
            for link in solution.link.tolist():
                net = target.machine.network  # type: ignore[attr-defined]
                assert (int(net.src[link]), int(net.dst[link])) not in single.failure.pairs
        assert one.row.seconds <= one.row.best_seconds * 1.02
        bound = synth.solve(target, "bound", time_limit=10).bound if chooser.random() < 0.3 else single.case.bound
        assert bound is not None
        assert bound <= one.row.seconds * (1 + 1e-12)
        assert one.row.best_seconds * (1 + 1e-12) >= bound
        answered += 1
    return answered


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 1000))])
def test_no_schedule_uses_what_failed(seed: int, tmp_path: Path) -> None:
    chooser = random.Random(seed)
    instance = small(seed, chooser.choice(["allgather", "allreduce", "reduce_scatter", "broadcast", "alltoall"]))
    method = "flow" if instance.collective == "alltoall" else "pull"  # type: ignore[attr-defined]
    drill = drilled(instance, tmp_path, (method,))
    demand_sound(drill, tmp_path / "drawer", chooser)
    for case in drill.cases:
        assert (case.cut is None) == (case.instance is not None)
        if case.cut is not None:
            demand_cut(instance, case)


def demand_cut(instance: Any, case: search.Case) -> None:
    """No link that is left leaves the closed set, which holds some rank and misses another; the parts are those that
    reach each other, by searches of this test's own."""
    assert case.cut is not None
    assert case.orbit is not None
    net, names = instance.machine.network, instance.machine.names
    pairs = set(zip(net.src.tolist(), net.dst.tolist(), strict=True)) - case.orbit.representative.pairs
    inside = {names.index(name) for name in case.cut.closed}
    assert not [pair for pair in pairs if pair[0] in inside and pair[1] not in inside]
    members = set(instance.members)
    assert inside & members
    assert members - inside
    reach = {v: {v} for v in range(net.nodes)}
    for _ in range(net.nodes):
        for u, v in pairs:
            for held in reach.values():
                held |= {v} if u in held else set()
    if instance.collective == "broadcast":
        assert {frozenset(map(names.index, part)) for part in case.cut.parts} == {
            frozenset(members & inside),
            frozenset(members - inside),
        }
        assert instance.members[0] in inside
        return
    alike = {frozenset(v for v in members if v in reach[u] and u in reach[v]) for u in members}
    assert {frozenset(names.index(name) for name in part) for part in case.cut.parts} == alike


@pytest.mark.parametrize("seed", some_of(range(8)))
def test_pairs_of_failures(seed: int, tmp_path: Path) -> None:
    """All pairs, each in one orbit; those that part the ranks have a cut, others a schedule that uses neither (own
    replay) and is not below its bound."""
    instance = small(seed + 80, "allgather")
    drill = search.prepared(search.Question(instance, tmp_path, most_pairs=1000))
    pairs = [case for case in drill.cases if case.orbit is not None and len(case.orbit.representative.parts) == 2]
    singles = sum(len(case.orbit.members) for case in drill.cases if case.orbit is not None and case not in pairs)
    assert sum(len(case.orbit.members) for case in pairs if case.orbit is not None) == singles * (singles - 1) // 2
    for case in pairs:
        assert case.orbit is not None
        if case.cut is not None:
            demand_cut(instance, case)
            continue
        target: Any = case.instance
        record = synth.solve(target, "forest", time_limit=10)
        bound = synth.solve(target, "bound", time_limit=10).bound
        assert record.value is not None
        assert bound is not None
        solution = load(FABRIC.unpack)(target, record.packed)
        seconds = replay(table_of(target, solution), json.loads(target.to_json()))
        assert float(seconds) == pytest.approx(record.value, rel=1e-12)
        assert bound <= record.value * (1 + 1e-12)
        net, gone = target.machine.network, case.orbit.representative.pairs
        assert not {(int(net.src[link]), int(net.dst[link])) for link in solution.link.tolist()} & gone


@pytest.mark.parametrize("seed", some_of(range(6)))
def test_slower_links(seed: int, tmp_path: Path) -> None:
    """Schedules at half the rate are what the check replays there."""
    instance = small(seed + 50, "allgather")
    drill = drilled(instance, tmp_path, ("pull",), "1/2")
    found = cover.cover(drill, RunOptions(20.0, solver="highs"))
    assert found.proven
    for single, by in zip(found.singles, found.by, strict=True):
        assert by is not None
        candidate, seconds = found.chosen[by[0]], by[1]
        assert single.case.seconds is not None
        assert seconds <= single.case.seconds * 1.02
        target: Any = drill.breakable.broken(single.failure, "1/2")
        assert target.machine.links == instance.machine.links  # type: ignore[attr-defined]
        own = candidate.case.orbit is None or np.array_equal(candidate.image, candidate.case.orbit.images[0])
        if own and candidate.case is not single.case:
            again = drill.breakable.seconds_slowed(
                search.solution_of(candidate.case), candidate.case.instance, target, 1e9
            )
            assert again == pytest.approx(seconds)


def test_a_random_other_member_takes_as_long(tmp_path: Path) -> None:
    """The same methods on another member of every orbit: same bound, and the time of the representative's schedule."""
    whole = synth.make("fabric", machine="dgx-a100", boxes=2, collective="allgather", bytes="64MiB")
    drill = drilled(whole, tmp_path, ("forest",))
    chooser = random.Random(5)
    for case in drill.cases:
        assert case.orbit is not None
        k = chooser.randrange(1, len(case.orbit.members))
        other = drill.breakable.broken(case.orbit.members[k], None)
        rerun = synth.solve(other, "forest", time_limit=10)
        assert synth.solve(other, "bound", time_limit=10).bound == pytest.approx(case.bound, rel=1e-9)
        assert rerun.value == pytest.approx(case.best.value, rel=0.01)  # type: ignore[union-attr]
        carried = drill.breakable.carried(search.solution_of(case), case.orbit.images[k], case.instance, other)
        verdict = load(FABRIC.check)(other, carried)
        assert (verdict.ok, verdict.value) == (True, case.best.value)  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_the_core_holds_every_route(seed: int, tmp_path: Path) -> None:
    """Every route from rank to rank through switches, none met twice, lies in the core of what a failure leaves."""
    instance: Any = small(seed, "allgather")
    drill = search.prepared(search.Question(instance, tmp_path))
    net, switch, members = instance.machine.network, instance.machine.is_switch, set(instance.members)
    for case in drill.cases:
        assert case.orbit is not None
        failure = case.orbit.representative
        left = set(zip(net.src.tolist(), net.dst.tolist(), strict=True)) - failure.pairs
        used: set[tuple[int, int]] = set()
        routes = [[u] for u in members]
        while routes:
            route = routes.pop()
            for v in {v for u, v in left if u == route[-1]} - set(route):
                if v in members:
                    used |= set(zip(route, [*route[1:], v], strict=True))
                elif switch[v]:
                    routes.append([*route, v])
        assert used <= drill.breakable.core(failure) <= left


def test_an_nic_and_its_cables_are_solved_once(tmp_path: Path) -> None:
    """Two boxes of two. Without NIC 0 of a box, either of its cables, or its switch, the other rail is left; without
    the NVSwitch of a box, or a port of it, the rails: two schedules and that of the whole machine. A method that
    reaches the gap is the last that runs. `synth check` takes what is there, and every failure has its answer."""
    words = ["drill", "dgx-a100", "boxes=2", "gpus=2", "--collective", "allgather", "--size", "64MiB", "--jobs", "1"]
    done = command.run(*words, "-m", "forest", "-m", "ring", "-o", "out", cwd=tmp_path)
    made = sorted(path.parent.name + " " + path.stem for path in (tmp_path / "out/records").rglob("*.json"))
    assert len([name for name in made if name.endswith(" bound")]) == 7
    forests = [name for name in made if "forest" in name]
    assert len([name for name in forests if "nic0" in name]) == 1
    assert len(forests) == 3
    assert not [name for name in made if name.endswith(" ring")]
    assert "the schedule for link 0/gpu0 0/nic0" in done.stdout
    command.run("check", "out/records", "out/drawer", cwd=tmp_path)
    for failure in ("node 1/nic1", "link 0/nic1 ib1", "link 1/gpu0 1/nic0"):
        command.run("drill", "out/drawer", "--answer", failure, "-o", "now.json", cwd=tmp_path)
        assert synth.check(tmp_path / "now.json").ok


def test_a_rank_and_the_switch_behind_its_nic_name_the_nic(tmp_path: Path) -> None:
    """Nodes between which an NIC alone stands; others have no link, and an NVSwitch is none of those."""
    whole: Any = synth.make("fabric", machine="dgx-a100", boxes=2, collective="allgather", bytes="64MiB")
    breakable = search.prepared(search.Question(whole, tmp_path)).breakable
    assert breakable.find("link 0/gpu3 ib1", None).name == "node 0/nic3"
    assert breakable.find("link ib1 0/gpu3", None).name == "node 0/nic3"
    assert breakable.find("link 0/gpu3 ib1", "1/2").name == "link 0/gpu3 0/nic3"
    for far in ("link 0/gpu3 ib0", "link 0/gpu3 0/gpu4", "link 0/gpu3 1/gpu3"):
        with pytest.raises(InputError, match="there is no link between"):
            breakable.find(far, None)


def test_the_command_from_machine_to_answer(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["drill", "network=ring", "nodes=5", "bandwidth=1GB/s", "latency=1us", "--collective", "allgather"]
    made = command.run(*words, "--size", "5MiB", "-m", "forest", "-o", out, cwd=tmp_path)
    assert "10 failures" not in made.stdout
    assert "5 failures are covered within 2% by 5 schedules (the least that do), renumberings of 1 files" in made.stdout
    assert {file.name for file in out.iterdir()} == {
        "instances", "records", "drawer", "table.csv", "table.md", "losses.svg",
    }  # fmt: skip
    command.run("check", out / "records", out / "drawer", cwd=tmp_path)
    command.run("drill", out / "drawer", "--answer", "link 3 2", "-o", tmp_path / "record.json", cwd=tmp_path)
    record = synth.check(tmp_path / "record.json")
    assert record.ok
    instance = json.loads(json.loads((tmp_path / "record.json").read_text())["instance_text"])
    assert sorted(instance["failed"]["links"]) == [[2, 3], [3, 2]]
    again = command.run(*words, "--size", "5MiB", "-m", "forest", "-o", out, "--resume", cwd=tmp_path)
    assert again.stdout == made.stdout
    line = ["drill", "network=line", "nodes=3", "--collective", "allreduce", "-m", "forest", "-o", out]
    parted = command.run(*line, cwd=tmp_path)
    assert "link 0 1 (2 alike): parted into {0} | {1, 2}: no link leaves {0} without {0 -> 1}" in parted.stdout
    cut = command.run("drill", out / "drawer", "--answer", "link 2 1", cwd=tmp_path, code=3)
    assert cut.stdout.startswith("link 1 2: parted into {0, 1} | {2}: no link leaves")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dgx-a100", "--collective", "foo", "-o", "x"], "collective = 'foo'"),
        (["dgx-a100", "--size", "3x", "-o", "x"], "bytes = '3x'"),
        (["dgx-a100", "--degraded", "1.5", "-o", "x"], "--degraded = '1.5'"),
        (["dgx-a100", "--degraded", "nan", "-o", "x"], "--degraded = 'nan'"),
        (["dgx-a100", "-m", "nope", "-o", "x"], "unknown method 'nope'"),
        (["dgx-a100", "--time-limit", "soon", "-o", "x"], "--time-limit = 'soon'"),
        (["dgx-a100", "boxes=2", "--pairs", "5", "-o", "x"], "2278 pairs of failures are more than --pairs 5"),
        (["dgx-a100", "bytes=3", "-o", "x"], "say --collective and --size instead"),
        (["dgx-a100"], "--out"),
        (["nope", "-o", "x"], "machine = 'nope'"),
        (["nowhere", "--answer", "node 3"], "is no drawer"),
    ],
)
def test_one_message(words: list[str], message: str, tmp_path: Path) -> None:
    said = command.run("drill", *words, cwd=tmp_path, code=2)
    assert message in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert "Traceback" not in said.stderr


def test_a_forged_drawer_is_refused(tmp_path: Path) -> None:
    drill = drilled(synth.make("fabric", **RING), tmp_path, ("forest",))
    drawer.write(drill, cover.cover(drill, RunOptions(20.0, solver="highs")), tmp_path / "d")
    text = (tmp_path / "d" / "index.json").read_text()
    whole = json.loads(text)
    assert drawer.answer(tmp_path / "d", "link 1 2").solution()
    for key, value, message in (
        ("schedule", 99, "there are 1 schedules"),
        ("image", [0, 0, 1, 2, 3], "must be a permutation"),
        ("image", [1, 0, 2, 3, 4], "no symmetry"),
        ("image", [0, 1, 2, 3, 4], "uses what is not there"),
        ("seconds", -1.0, "seconds"),
        ("seconds", "1", "seconds"),
    ):
        forged = json.loads(text)
        row = next(row for row in forged["failures"] if row["failure"] == "link 2 3")
        row[key] = value
        (tmp_path / "d" / "index.json").write_text(json.dumps(forged))
        with pytest.raises(InputError, match=message):
            drawer.answer(tmp_path / "d", "link 2 3").record()
    whole["schedules"] = ["../../etc/passwd.json"]
    (tmp_path / "d" / "index.json").write_text(json.dumps(whole))
    with pytest.raises(InputError, match="schedules"):
        drawer.answer(tmp_path / "d", "link 1 2")


def test_the_table_is_from_the_worst_down(tmp_path: Path) -> None:
    drill = drilled(synth.make("fabric", machine="dgx-a100", boxes=2, bytes="1MiB"), tmp_path, ("forest",))
    table = page.frame(drill)
    losses = [loss for loss in table["loss"].tolist() if loss == loss]
    assert losses == sorted(losses, reverse=True)
    assert table["failure"].tolist()[-1] == "nothing"
    assert len(page.figure(drill, "t").axes) == 2
