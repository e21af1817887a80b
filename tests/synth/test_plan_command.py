"""``synth plan``: a stream of matrices, of which some are wrong; what comes out is replayed by others."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import command
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth.text.matrices import matrices

GOOD = "[[0, 100, 5000000, 3], [1, 0, 2, 3], [7, 7, 0, 7], [1, 2, 3, 0]]"
WRONG = {
    2: ("[[0, 1, 2, NaN]]", "line 2: is no JSON: NaN"),
    3: ("[[0, 1], [1, 0]]", "line 3: .*2 x 2: must be 4 x 4"),
    4: ("[[0, 1, 2, 1e999], [1, 0, 2, 3], [1, 1, 0, 3], [1, 1, 2, 0]]", "line 4: row 0, column 3 = inf"),
    5: ("[[0, 1, 2, 3], [1, 0, 2, 3], [1, -1, 0, 3], [1, 1, 2, 0]]", "line 5: .*row 2, column 1 = -1"),
    6: ("{}", "line 6: must be a list of rows"),
    7: ("[" * 100_000, "line 7: is no JSON"),
    8: ("0,1,2,3", "line 10: column 1 = 'many'"),
    9: ("4,0,5,6", ""),
    10: ("7,many,0,9", ""),
}


def test_what_is_wrong_is_refused_by_line_and_costs_no_other(tmp_path: Path) -> None:
    block = "0,1,2,3\n4,0,5,6\n7,8,0,1099511627776\n1,2,3,0"
    text = "\n".join([GOOD, *(line for line, _ in WRONG.values()), "", GOOD, block, "", GOOD])
    (tmp_path / "demands.txt").write_text(text)
    words = ("plan", "dgx-h100", "boxes=2", "gpus=2", "--demands", "demands.txt")
    done = command.run(*words, "--json", "-o", "out", cwd=tmp_path, code=2)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["line"] for row in rows] == [1, 12, 13, 18]
    assert rows[0]["seconds"] == rows[1]["seconds"] == rows[3]["seconds"]
    said = [line for line in done.stderr.splitlines() if line.startswith("synth:")]
    expected = [what for _, what in WRONG.values() if what]
    assert len(said) == len(expected)

    assert [line for line, what in zip(said, expected, strict=True) if not re.search(what, line)] == []
    records = sorted((tmp_path / "out/fabric").rglob("plan.json"))
    assert len(records) == 4
    for path in records:
        assert synth.check(path).faults == []
    values = sorted(synth.check(path).value or 0 for path in records)
    assert values == sorted(row["seconds"] for row in rows)


def test_one_plan_for_all_matrices(tmp_path: Path) -> None:
    other = "[[0, 1, 2, 3], [1, 0, 2, 3], [1, 1, 0, 3], [1, 1, 2, 0]]"
    (tmp_path / "demands.txt").write_text(f"{GOOD}\n[[1]]\n{other}\n")
    words = ("plan", "dgx-h100", "boxes=2", "gpus=2", "--demands", "demands.txt", "--one-plan")
    *rows, last = map(json.loads, command.run(*words, "--json", cwd=tmp_path, code=2).stdout.splitlines())
    assert [row["line"] for row in rows] == [1, 3]
    worst = max(row["seconds"] / row["bound"] - 1 for row in rows)
    assert f"worst regret {worst:.2%}" in command.run(*words, cwd=tmp_path, code=2).stdout
    assert last["one_plan"]["worst_regret"] == worst
    assert last["one_plan"]["average_regret"] == last["one_plan"]["seconds"] / last["one_plan"]["average_bound"] - 1
    *near, last = map(
        json.loads, command.run(*words, "--near", "10%", "--json", cwd=tmp_path, code=2).stdout.splitlines()
    )
    assert [row["line"] for row in near] == [1, 3]
    for row, alone in zip(near, rows, strict=True):
        assert row["seconds"] >= alone["seconds"]
        assert row["bound"] <= alone["bound"]
    for wrong, said in ((("--near", "1"), "--near = '1'"), (("--near", "nan"), "--near = 'nan'")):
        assert said in command.run(*words, *wrong, cwd=tmp_path, code=2).stderr
    alone = command.run(*words[:-1], "--near", "0.1", cwd=tmp_path, code=2)
    assert "needs --one-plan" in alone.stderr
    stores = tmp_path / "ring.json"
    made = synth.make("fabric", machine="teccl-ndv2-2", collective="broadcast", bytes="1")
    stores.write_text(made.to_json())
    ranks = len(synth.Planner(made).ranks)
    (tmp_path / "many.txt").write_text(json.dumps([[1] * ranks] * ranks))
    refused = command.run("plan", "ring.json", "--demands", "many.txt", "--one-plan", cwd=tmp_path, code=2)
    assert "switches store" in refused.stderr


def test_a_file_and_a_machine_that_are_none(tmp_path: Path) -> None:
    unknown = command.run("plan", "nothing", "--demands", "none.txt", cwd=tmp_path, code=2)
    assert "nothing" in unknown.stderr
    missing = command.run("plan", "dgx-h100", "boxes=2", "--demands", "none.txt", cwd=tmp_path, code=2)
    assert "none.txt: cannot be read" in missing.stderr


@pytest.mark.parametrize(
    "words",
    ["plan {} --demands none.txt", "tune {} -o out", "drill {} --collective broadcast --size 1MiB -o out"],
)
def test_what_is_wrong_with_a_machine_is_said_of_the_command(words: str, tmp_path: Path) -> None:
    """The three take the keys of ``synth make``, which nobody typed."""
    for machine, fault in (
        ("nothing", "machine = 'nothing': unknown"),
        ("dgx1 boxes=-2", "boxes = '-2': must be >= 1"),
    ):
        refused = command.run(*words.format(machine).split(), cwd=tmp_path, code=2).stderr
        assert f"synth {words.split()[0]}: {fault}" in refused
        assert "synth make" not in refused


@pytest.mark.parametrize("more", [[], ["--one-plan"]])
@pytest.mark.parametrize("text", ["", "\n\n"])
def test_no_demand_at_all(text: str, more: list[str], tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text(text)
    refused = command.run("plan", "dgx-h100", "boxes=2", "--demands", "none.txt", *more, cwd=tmp_path, code=2)
    assert refused.stderr.strip().endswith(
        "none.txt: holds no demand: it needs a JSON line or a block of CSV for every matrix"
    )


@given(st.lists(st.sampled_from(["", "1,2", "3,x", "[[1,2],[3,4]]", "[[1", "é,1", "nan,1", "\x00", " 7 , 8 "])))
@settings(max_examples=100, deadline=None)
def test_the_stream_loses_no_line(lines: list[str]) -> None:
    """By a reader of one line at a time: every line with text belongs to exactly one block, in order; a block is a JSON
    line, or lines one after the other."""
    found = list(matrices(io.BytesIO("\n".join(lines).encode())))
    expected: list[tuple[int, list[str]]] = []
    open_block = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("["):
            expected.append((number, [text]))
            open_block = False
        elif not text:
            open_block = False
        elif open_block:
            expected[-1][1].append(text)
        else:
            expected.append((number, [text]))
            open_block = True
    assert [block.line for block in found] == [number for number, _ in expected]
    for block, (_, texts) in zip(found, expected, strict=True):
        rows = values(texts)
        assert (block.fault is None) == (rows is not None)
        assert block.rows == (rows or [])


def values(texts: list[str]) -> list[list[Any]] | None:
    """The numbers that lines hold, None where one is no number."""
    if texts[0].startswith("["):
        return [[1, 2], [3, 4]] if texts[0] == "[[1,2],[3,4]]" else None
    cells = [[cell.strip() for cell in text.split(",")] for text in texts]
    if not all(cell.isdecimal() for row in cells for cell in row):
        return None
    return [[int(cell) for cell in row] for row in cells]


def test_bytes_that_are_no_text() -> None:
    blocks = list(matrices(io.BytesIO(b"1,2\n\xff\xfe\n\n3,4\n")))
    assert [(block.line, block.fault_line, block.rows) for block in blocks] == [(1, 2, []), (4, 0, [[3, 4]])]


@pytest.mark.parametrize("size", [2, 3])
def test_planner_takes_a_machine_in_three_ways(size: int, tmp_path: Path) -> None:
    demand = [[0 if i == j else 1000 * (i + 1) for j in range(2 * size)] for i in range(2 * size)]
    named = synth.Planner("dgx-a100", boxes=2, gpus=str(size))
    instance = synth.make("fabric", machine="dgx-a100", boxes=2, gpus=str(size), collective="alltoall", bytes="1MiB")
    (tmp_path / "machine.json").write_text(instance.to_json())
    plans = [named, synth.Planner(instance), synth.Planner(synth.read(tmp_path / "machine.json"))]
    assert len({planner.plan(demand).seconds for planner in plans}) == 1
    assert plans[0].ranks[:2] == ("0/gpu0", "0/gpu1")


def test_a_machine_of_another_tool_is_read(tmp_path: Path) -> None:
    """A table of links plans as the ring that it states; what only such a file needs is refused elsewhere."""
    links = [f"{u},{v},25GB/s,0.7us" for k in range(4) for u, v in ((k, (k + 1) % 4), ((k + 1) % 4, k))]
    (tmp_path / "four.csv").write_text("\n".join(["src,dst,bandwidth,latency", *links, ""]))
    (tmp_path / "demands.txt").write_text(GOOD + "\n")
    ring = ("network=ring", "nodes=4", "bandwidth=25GB/s", "latency=0.7us")
    read, made = (
        json.loads(command.run("plan", *words, "--demands", "demands.txt", "--json", cwd=tmp_path).stdout)
        for words in (("four.csv",), ring)
    )
    assert (read["seconds"], read["bound"]) == (made["seconds"], made["bound"])
    done = command.run("plan", *ring, "--boxes", "2", "--demands", "demands.txt", cwd=tmp_path, code=2)
    assert "--boxes = '2': is for another tool's file of a machine" in done.stderr
    assert "say --demands instead" in command.run(
        "plan", *ring, "bytes=3", "--demands", "demands.txt", cwd=tmp_path, code=2
    ).stderr  # fmt: skip
