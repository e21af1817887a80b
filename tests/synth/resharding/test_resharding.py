"""Meshes, tensors and classes of bytes against the statement entry by entry; plans move real arrays."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections import Counter, defaultdict
from math import prod
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.cli.reshard import _run
from synth.errors import InputError
from synth.exchange.record_export import moves_of
from synth.family import get_family
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames
from synth.ranks.words import faults as wrong
from synth.records import record as records
from synth.resharding.classes import Class, classes_of
from synth.resharding.mesh import Mesh, read_mesh
from synth.resharding.tensors import DTYPES, Tensor, read_tensors
from synth.text.input_file import InputFile

Ends = tuple[frozenset[int], frozenset[int]]
MACHINE = ("dgx-a100", "boxes=2")
SIZES = {"tp": 2, "dp": 2}


def draw(seed: int, folder: Path) -> tuple[Path, Path, Path]:
    """Two meshes of two or four ranks, and a few tensors of at most 64 entries."""
    rng = random.Random(seed)
    files = []
    for side, ranks in (("from", [0, 1, 2, 3]), ("to", [8, 2, 9, 11])):
        axes = rng.choice([{"tp": 2}, {"dp": 2, "tp": 2}, {"tp": 2, "dp": 2}, {"dp": 2}])
        inline = ", ".join(f"{axis} = {size}" for axis, size in axes.items())
        files.append(folder / f"{side}.toml")
        files[-1].write_text(f"axes = {{ {inline} }}\nranks = {ranks[: prod(axes.values())]}\n")
    known = [list(read_mesh(InputFile(file)).axes) for file in files]
    rows = ["name,shape,dtype,from,to"]
    for number in range(rng.randint(1, 3)):
        shape = (rng.choice([4, 8]), rng.choice([1, 2, 4]))
        words = [" ".join(_word(rng, axis, shape) for axis in axes if rng.random() < 0.8) for axes in known]
        rows.append(f'"t{number}",{shape[0]}x{shape[1]},{rng.choice(["bf16", "f32", "i8"])},"{words[0]}","{words[1]}"')
    table = folder / "tensors.csv"
    table.write_text("\n".join(rows) + "\n")
    return files[0], files[1], table


def _word(rng: random.Random, axis: str, shape: tuple[int, ...]) -> str:
    """One word of a layout; sizes are powers of two, so that two axes on one dimension divide it."""
    kind = rng.choice(["equal", "equal", "fixed", "columns", "up"])
    if kind == "fixed":
        return f"{axis}={rng.randrange(2)}"
    if kind == "columns":
        return f"{axis}:1/up"
    return f"{axis}:0{'/up' if kind == 'up' else ''}"


def owners(text: str, shape: tuple[int, ...], mesh: Mesh) -> dict[tuple[int, ...], frozenset[int]]:
    """Who has every entry, from the words alone: a rank has what every word lets it keep of what the words before
    left it, dimension by dimension."""
    found = defaultdict(set)
    for place in itertools.product(*(range(size) for size in mesh.axes.values())):
        rank, at = int(mesh.grid[place]), dict(zip(mesh.axes, place, strict=True))
        kept = [list(range(size)) for size in shape]
        there = text.strip() != "-"
        for word in text.split() if there else ():
            axis = word.replace("=", ":").partition(":")[0]
            if "=" in word:
                there = there and at[axis] in {int(n) for n in word.partition("=")[2].split(",")}
                continue
            dim, how = int(word.partition(":")[2][0]), word.partition(":")[2][1:]
            mine, size, k = kept[dim], mesh.axes[axis], at[axis]
            if how.startswith("("):
                sizes = [int(n) for n in how[1:-1].split(",")]
                kept[dim] = mine[sum(sizes[:k]) : sum(sizes[: k + 1])]
            elif how == "/up":
                each = -(-len(mine) // size)
                kept[dim] = mine[k * each : (k + 1) * each]
            else:
                parts, rest = how[1:-1].split(",") if how else [str(len(mine))], mine
                kept[dim] = []
                for part in parts:
                    length, copies = (int(n) for n in f"{part}*1".split("*")[:2])
                    each = length * copies // size
                    kept[dim] += rest[:length][k // copies * each : (k // copies + 1) * each]
                    rest = rest[length:]
        if there:
            for entry in itertools.product(*kept):
                found[entry].add(rank)
    return {entry: frozenset(ranks) for entry, ranks in found.items()}


def read(files: tuple[Path, Path, Path]) -> tuple[Mesh, Mesh, list[Tensor], list[dict[str, str]]]:
    source, target = (read_mesh(InputFile(file)) for file in files[:2])
    with files[2].open() as stream:
        rows = list(csv.DictReader(stream))
    return source, target, read_tensors(InputFile(files[2]), source, target), rows


def expected(source: Mesh, target: Mesh, rows: list[dict[str, str]]) -> Counter[Ends]:
    """Bytes by holders and wanters, entry by entry."""
    found: Counter[Ends] = Counter()
    for row in rows:
        shape = tuple(int(n) for n in row["shape"].split("x"))
        held, wanted = owners(row["from"], shape, source), owners(row["to"], shape, target)
        for entry, ranks in wanted.items():
            if ranks - held[entry]:
                found[held[entry], ranks] += DTYPES[row["dtype"]]
    return found


def by_ends(classes: list[Class]) -> Counter[Ends]:
    return Counter({(frozenset(one.holders), frozenset(one.wanters)): one.bytes for one in classes})


@pytest.mark.parametrize("seed", range(60))
def test_classes_say_who_holds_and_who_wants_every_byte(seed: int, tmp_path: Path) -> None:
    source, target, tensors, rows = read(draw(seed, tmp_path))
    assert by_ends(classes_of(tensors, source, target)) == expected(source, target, rows)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("tp:0[8,4,4]", "tp:0[8,4*2,4*2]"), ("tp:0(5,11)", "dp:0 tp:0"), ("tp:0/up dp:0", "tp:0[12,4]"),
        ("tp=1", "dp=0 tp:0(16,0)"), ("dp:0 tp:0", "tp:0 dp:0"),
    ],
)  # fmt: skip
def test_fused_and_uneven_parts(held: str, wanted: str, tmp_path: Path) -> None:
    """16 rows of three bytes: what is fused, uneven or nested is cut as its words say."""
    source, target = Mesh({"dp": 2, "tp": 2}, (0, 1, 2, 3)), Mesh({"tp": 2, "dp": 2}, (8, 9, 10, 11))
    table = tmp_path / "t.csv"
    table.write_text(f'name,shape,dtype,from,to\nqkv,16x3,i8,"{held}","{wanted}"\n')
    tensors = read_tensors(InputFile(table), source, target)
    rows = [{"shape": "16x3", "dtype": "i8", "from": held, "to": wanted}]
    assert by_ends(classes_of(tensors, source, target)) == expected(source, target, rows)


def ends_right_by_processes(out: Path) -> None:
    """Every plan of the folder, run by a process a rank with real data."""
    paths = sorted(out.rglob("class_trees*.json"))
    assert len(paths) == 5
    with Crew() as crew:
        for path in paths:
            t = moves_of(records.read(path))
            program = program_of(t)
            done = crew.run(Job(program))
            assert wrong(program, done, TransferNames(t), Data(0, t.ranks, goals=program.goals)) == []


def moved(files: tuple[Path, Path, Path], folder: Path) -> dict[str, Any]:
    """Plan by the command, then move real arrays by its two tables alone and compare every wanter's entries."""
    out = folder / "out"
    words = ("--from", files[0], "--to", files[1], "--tensors", files[2], "-o", out, "--json")
    done = CliRunner().invoke(app, list(map(str, ("reshard", *MACHINE, *words))), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    if "nothing has to move" in done.stdout:
        return {}
    source, target, _, rows = read(files)
    rng = np.random.default_rng(1)
    memory: dict[int, dict[tuple[str, tuple[int, ...]], bytes]] = defaultdict(dict)
    truth, want = {}, []
    for row in rows:
        shape = tuple(int(n) for n in row["shape"].split("x"))
        for entry, ranks in owners(row["from"], shape, source).items():
            truth[row["name"], entry] = rng.bytes(DTYPES[row["dtype"]])
            for rank in ranks:
                memory[rank][row["name"], entry] = truth[row["name"], entry]
        want += [(rank, (row["name"], e)) for e, ranks in owners(row["to"], shape, target).items() for rank in ranks]
    width = {row["name"]: DTYPES[row["dtype"]] for row in rows}
    where = defaultdict(list)  # of every block the (tensor, entry, byte) of each of its bytes
    for line in csv.DictReader(next(out.glob("*-ranges.csv")).open()):
        box = [range(*map(int, part.split(":"))) for part in line["entries"].split("x")]
        entries = [(line["tensor"], e, k) for e in itertools.product(*box) for k in range(width[line["tensor"]])]
        assert len(where[line["block"]]) == int(line["offset"])
        assert len(entries) == int(line["bytes"])
        where[line["block"]] += entries
    held = {rank: {(*key, k): value[k] for key, value in own.items() for k in range(len(value))}
            for rank, own in memory.items()}  # fmt: skip
    for line in csv.DictReader(next(out.glob("*-transfers.csv")).open()):
        src, dst, offset, size = (int(line[key]) for key in ("src", "dst", "offset", "bytes"))
        for key in where[line["block"]][offset : offset + size]:
            held.setdefault(dst, {})[key] = held[src][key]
    for rank, (name, entry) in want:
        assert bytes(held[rank][name, entry, k] for k in range(width[name])) == truth[name, entry]
    ends_right_by_processes(out)
    answer: dict[str, Any] = json.loads(done.stdout)
    seconds = {row["rule"]: row["seconds"] for row in answer["plans"]}
    assert answer["plans"][0]["bound"] <= seconds[answer["kept"]] == min(seconds.values())
    return answer


@pytest.mark.parametrize("seed", range(5))
def test_plans_move_real_arrays(seed: int, tmp_path: Path) -> None:
    moved(draw(seed, tmp_path), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 50))
def test_many_plans_move_real_arrays(seed: int, tmp_path: Path) -> None:
    moved(draw(seed, tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("axes = { tp = 3 }\nranks = [0, 1]", "line 1, axes: tp 3 is 3, but there are 2 ranks"),
        ("axes = { tp = 2 }\nranks = [0, 0]", "line 2, ranks: names rank 0 twice"),
        ("axes = { tp = 0 }\nranks = [0]", "line 1, axes = 0: axis tp: size must be a whole number in 1..65536"),
        ("axes = { tp = 1 }\nranks = '3-x'", """line 2, ranks = '3-x': must be node numbers, such as "0-7,12\""""),
        ("axes = { tp = 1 }\nranks = [0]\norder = ['pp']", "line 3, order = ['pp']: must name every axis once: tp"),
        ("axis = 1", "line 1, axis: no such key: there are axes, ranks, order"),
        ("axes = ", "not valid TOML"),
        ("axes = { tp = 2 }\nranks = '" + ",".join(["0-32767"] * 2) + "'", "line 2, ranks: names rank 0 twice"),
        (f"axes = {{ tp = 2 }}\nranks = {[0] * 65537}", "line 2, ranks: names 65537 ranks: at most 65536"),
    ],
)
def test_faults_of_a_mesh(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "mesh.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_mesh(InputFile(file))
    assert fault in str(caught.value)


def test_ranks_behind_no_switch_are_said_to_be_so() -> None:
    """The command then takes another method."""
    instance = synth.make("fabric", machine="dgx1", collective="broadcast", bytes=8)
    rows = [(8, (0, 1), (2, 3))]
    rule, record, _ = _run(get_family("fabric").capability("with_traffic")(instance, "t", "test", rows), "trees")
    assert (rule, record.data["termination"]) == ("trees", "unsupported")
    assert record.data["message"] == "some rank is behind no switch"


def test_faults_of_meshes_and_table_are_named_together(tmp_path: Path) -> None:
    """Ranks that the machine has not, axes that do not multiply, and seven faults of three files in one answer."""
    (tmp_path / "from.toml").write_text('axes = { tp = 3 }\nranks = "0-1"\nother = 1\n')
    (tmp_path / "to.toml").write_text('axes = { tp = 4 }\nranks = "6-9"\n')
    rows = ["a,7x2,bf16,,tp:0", "b,8,f12,,", "a,8,bf16,,xp:0"]
    (tmp_path / "t.csv").write_text("\n".join(["name,shape,dtype,from,to", *rows]))
    words = ("--from", "from.toml", "--to", "to.toml", "--tensors", "t.csv", "-o", "out")
    told = command.run("reshard", "dgx-a100", *words, cwd=tmp_path, code=2).stderr
    for fault in (
        "from.toml: line 1, axes: tp 3 is 3, but there are 2 ranks", "from.toml: line 3, other: no such key",
        "to.toml: line 2, ranks: the machine has no rank 8, 9: its ranks are among 0 to 7",
        "t.csv: line 2, to = 'tp:0': tp:0: 7 does not divide among 4", "t.csv: line 3, dtype",
        "t.csv: line 4, name = 'a': stands on line 2 too", "t.csv: line 4, to = 'xp:0': xp:0: there is no axis xp",
    ):  # fmt: skip
        assert fault in told, told
    assert not (tmp_path / "out").exists()


def test_faults_of_a_table_are_named_all_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    for side, ranks in (("from", "0-3"), ("to", "4-7")):
        (tmp_path / f"{side}.toml").write_text(f'axes = {{ dp = 2, tp = 2 }}\nranks = "{ranks}"\n')
    rows = ["a,7x2,bf16,tp:0,", "b,8,bf16,-,tp:0", "c,8,f12,,", "a,8,bf16,xp:0,tp:3", 'e,8,f8,tp=2,"tp:0[6,4]"']
    (tmp_path / "t.csv").write_text("\n".join(["name,shape,dtype,from,to", *rows]))
    words = ("--from", "from.toml", "--to", "to.toml", "--tensors", "t.csv", "-o", "out")
    done = command.run("reshard", "dgx-a100", *words, cwd=tmp_path, code=2)
    for fault in (
        "line 2, from = 'tp:0': tp:0: 7 does not divide among 2 coordinates",
        "line 3, from = '-': nobody holds tensor b", "line 4, dtype", "line 5, name = 'a': stands on line 2 too",
        "line 5, from = 'xp:0': xp:0: there is no axis xp: dp, tp", "there is no dimension 3 of 1",
        "line 6, from = 'tp=2': tp=2: coordinates are 0 to 1", "what is fused adds up to 10, not 8",
    ):  # fmt: skip
        assert fault in done.stderr
    assert not (tmp_path / "out").exists()
