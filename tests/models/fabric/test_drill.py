"""``synth drill``: pairs and slower links on small machines; a random other member; drawers; bad input."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from examples import some_of
from models.fabric.flat_replay import replay
from models.fabric.test_random_drills import demand_cut
from models.fabric.test_single_failures import tiny

import synth
from synth.drill import cover, drawer, page, search
from synth.errors import InputError
from synth.family import get_family
from synth.instance import Instance
from synth.method import load
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


@pytest.mark.long
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
            gone = case.orbit.representative.pairs
            demand_cut(json.loads(instance.to_json()), case.cut, gone, set(drill.breakable.ranks()))
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_random_other_member_takes_as_long(tmp_path: Path) -> None:
    """The same methods on another member of every orbit: same bound, and the time of the representative's schedule."""
    keys = {"machine": "dgx-a100", "boxes": 2, "gpus": 4}
    drill = drilled(synth.make("fabric", **keys, collective="allgather", bytes="64MiB"), tmp_path, ("forest",))
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


@pytest.mark.long
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
    assert [name for name in made if name.endswith(" ring")] == ["dgx-a100-x2-gpus2-allgather-64MiB ring"]  # to compare
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


@pytest.mark.long
@pytest.mark.parametrize("degraded", [(), ("--degraded", "0.5")])
def test_an_answer_imports_no_solver(degraded: tuple[str, ...], tmp_path: Path) -> None:
    """In a new process, of a schedule that is moved and of one that is timed again: it takes half a second so."""
    words = ["drill", "dgx-a100", "boxes=2", "gpus=2", "--collective", "allgather", "--size", "64MiB", "-m", "forest"]
    command.run(*words, *degraded, "-o", "out", cwd=tmp_path)
    look = "import sys; from synth.cli.main import run\ntry: run()\nfinally: print(*sys.modules, file=sys.stderr)"
    for failure in ("link 1/gpu1 1/nvswitch", "link 1/gpu1 ib1"):
        asked = [sys.executable, "-c", look, "drill", "out/drawer", "--answer", failure]
        done = subprocess.run(asked, cwd=tmp_path, text=True, capture_output=True, check=True)
        assert "1/gpu1" in done.stdout or "1/nic1" in done.stdout
        loaded = {name.split(".")[0] for name in done.stderr.split()}
        assert "synth_models" in loaded
        assert not loaded & {"highspy", "ortools", "pyomo", "pyscipopt", "scipy", "numba", "pandas", "matplotlib"}


@pytest.mark.long
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


@pytest.mark.long(after=4)
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


@pytest.mark.long
def test_the_table_is_from_the_worst_down(tmp_path: Path) -> None:
    drill = drilled(synth.make("fabric", machine="dgx-a100", boxes=2, bytes="1MiB"), tmp_path, ("forest",))
    table = page.frame(drill)
    losses = [loss for loss in table["loss"].tolist() if loss == loss]
    assert losses == sorted(losses, reverse=True)
    assert table["failure"].tolist()[-1] == "nothing"
    assert len(page.figure(drill, "t").axes) == 2
