"""Instances: making them, and one malformed file per fault with its message."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth.instance import parse
from synth_models.mlfm.instance import MLFMInstance

SHIPPED = sorted(Path("instances/mlfm").glob("*.json"))


def raw(**changes: Any) -> dict[str, Any]:
    block = {"layers": 2, "columns": 3, "servers": 2}
    return {"family": "mlfm", "name": "x", "source": "a test", "d": 3, "block": block} | changes


def read(**changes: Any) -> MLFMInstance:
    made = parse(raw(**changes), MLFMInstance, "x.json")
    assert isinstance(made, MLFMInstance)
    return made


def synth_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from synth.cli.main import run; run()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_published_sizes_and_the_whole_machine() -> None:
    """36-port switches: d = 18, 18 * 19 = 342 leaves, 18 * 19 / 2 = 171 spines, 342 * 18 = 6156 servers."""
    machine = read(d=18, block={"layers": 18, "columns": 19, "servers": 18})
    assert (machine.leaves, len(machine.spine_columns), machine.ranks) == (342, 171, 6156)


def test_ranks_follow_layer_column_slot_and_a_subset_keeps_its_order() -> None:
    assert read().servers[:5].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 2, 0]]
    listed = [[2, 3, 1], [0, 0, 0], [1, 1, 2]]
    assert read(block=None, subset=listed).servers.tolist() == listed


def test_failed_leaves_and_servers_leave_the_job_but_failed_links_do_not() -> None:
    assert read(failed={"leaves": [[0, 0]]}).ranks == 10
    assert read(failed={"servers": [[0, 0, 0], [2, 3, 2]]}).ranks == 11  # the second was not in the job
    assert read(failed={"links": [{"leaf": [0, 0], "spine": [0, 1]}], "spines": [[1, 2]]}).ranks == 12


FAULTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("slot out of range", {"block": None, "subset": [[0, 0, 3]]}, ["subset[0] = [0, 0, 3]: slot 3 does not exist"]),
    ("layer out of range", {"block": None, "subset": [[3, 0, 0]]}, ["layer 3 does not exist: must be <= 2 (d = 3)"]),
    ("column out of range", {"block": None, "subset": [[0, 4, 0]]}, ["column 4 does not exist: must be <= 3 (d = 3)"]),
    ("negative id", {"block": None, "subset": [[0, -1, 0]]}, ["subset[0][1] = -1: must be >= 0"]),
    ("not a triple", {"block": None, "subset": [[0, 0]]}, ["subset[0]"]),
    (
        "duplicate server",
        {"block": None, "subset": [[0, 0, 1], [0, 0, 0], [0, 0, 1]]},
        ["subset[2] = [0, 0, 1]: stands twice, first as subset[0]"],
    ),
    ("empty subset", {"block": None, "subset": []}, ["subset: holds no server"]),
    (
        "too many columns",
        {"block": {"layers": 2, "columns": 5, "servers": 2}},
        ["block.columns = 5: must be <= d + 1 = 4"],
    ),
    ("too many layers", {"block": {"layers": 4, "columns": 4, "servers": 2}}, ["block.layers = 4: must be <= d = 3"]),
    ("too many servers", {"block": {"layers": 3, "columns": 4, "servers": 4}}, ["block.servers = 4: must be <= d = 3"]),
    ("no columns", {"block": {"layers": 3, "columns": 0, "servers": 3}}, ["block.columns = 0: must be >= 1"]),
    ("neither block nor subset", {"block": None}, ["block: is missing"]),
    ("both", {"subset": [[0, 0, 0]]}, ["subset: stands beside block"]),
    ("no d", {"d": 0}, ["d = 0: must be >= 1"]),
    ("huge d", {"d": 65}, ["d = 65: must be <= 64"]),
    ("d is no number", {"d": "three"}, ["d = 'three'"]),
    ("unknown key", {"layers": 2}, ["layers: unknown key"]),
    ("unknown route rule", {"routes": "any"}, ["routes = 'any'"]),
    ("no bandwidth", {"bandwidth": 0}, ["bandwidth = 0: must be > 0"]),
    ("negative latency", {"latency": -1}, ["latency = -1: must be >= 0"]),
    ("no message", {"message_bytes": 0}, ["message_bytes = 0: must be > 0"]),
    (
        "spine of one column",
        {"failed": {"spines": [[1, 1]]}},
        ["failed.spines[0] = [1, 1]: a spine joins two different columns"],
    ),
    ("spine twice", {"failed": {"spines": [[0, 1], [1, 0]]}}, ["failed.spines[1] = [1, 0]: stands twice"]),
    ("spine out of range", {"failed": {"spines": [[0, 4]]}}, ["failed.spines[0] = [0, 4]: column 4 does not exist"]),
    ("leaf out of range", {"failed": {"leaves": [[3, 0]]}}, ["failed.leaves[0] = [3, 0]: layer 3 does not exist"]),
    ("leaf twice", {"failed": {"leaves": [[1, 0], [1, 0]]}}, ["failed.leaves[1] = [1, 0]: stands twice"]),
    ("failed server out of range", {"failed": {"servers": [[0, 0, 3]]}}, ["failed.servers[0] = [0, 0, 3]: slot 3"]),
    (
        "link that is not there",
        {"failed": {"links": [{"leaf": [0, 0], "spine": [1, 2]}]}},
        ["failed.links[0].spine = [1, 2]: does not join column 0"],
    ),
    (
        "link twice",
        {"failed": {"links": [{"leaf": [0, 0], "spine": [0, 1]}, {"leaf": [0, 0], "spine": [1, 0]}]}},
        ["failed.links[1]", "stands twice, first as failed.links[0]"],
    ),
    ("link without spine", {"failed": {"links": [{"leaf": [0, 0]}]}}, ["failed.links[0].spine: is missing"]),
    (
        "nobody left",
        {"failed": {"leaves": [[i, j] for i in range(2) for j in range(3)]}},
        ["failed: leaves no server of the job"],
    ),
]


@pytest.mark.parametrize(("changes", "messages"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_malformed(changes: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(InputError) as error:
        read(**changes)
    for message in messages:
        assert message in str(error.value)


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    bad = raw(block={"layers": 9, "columns": 9, "servers": 9}, failed={"leaves": [[7, 7]]}, bandwidth=-1, routes="no")
    path.write_text(json.dumps({"format": "synth-instance/1"} | bad))
    with pytest.raises(InputError) as error:
        synth.read(path)
    text = str(error.value)
    for part in (
        "block.layers = 9",
        "block.columns = 9",
        "block.servers = 9",
        "layer 7",
        "column 7",
        "bandwidth",
        "routes",
    ):
        assert part in text
    assert len(error.value.faults) == 7


def test_make_reads_lists_of_servers_and_failures(tmp_path: Path) -> None:
    servers, parts = tmp_path / "job.csv", tmp_path / "broken.txt"
    servers.write_text("layer,column,slot\n0,0,0\n0,1,2  # a comment\n\n2 3 1\n")
    parts.write_text("link 0 0 0 1\nspine 1 2\nleaf 2 2\nserver 0 0 1\n")
    made = synth.make("mlfm", **{"d": "3", "subset": str(servers), "failed": str(parts)})
    assert made.servers.tolist() == [[0, 0, 0], [0, 1, 2], [2, 3, 1]]
    assert made.routes == "detour"  # what has failed needs ways round
    assert made.failed.links[0].leaf == (0, 0)
    assert (made.failed.spines, made.failed.leaves, made.failed.servers) == (((1, 2),), ((2, 2),), ((0, 0, 1),))
    assert made.name == "d3-job-broken"
    servers.write_text("[[0, 0, 0], [1, 1, 1]]")
    parts.write_text('{"spines": [[0, 1]]}')
    again = synth.make("mlfm", **{"d": "3", "subset": str(servers), "failed": str(parts), "routes": "minimal"})
    assert (again.ranks, again.routes) == (2, "minimal")


def test_make_lists_every_fault(tmp_path: Path) -> None:
    servers, parts = tmp_path / "job.txt", tmp_path / "broken.txt"
    servers.write_text("0 0 0\n0 0\nx y z\n")
    parts.write_text("cable 1 2\nspine 1\n")
    with pytest.raises(InputError) as error:
        synth.make("mlfm", **{"d": "three", "subset": str(servers), "failed": str(parts), "rows": "2", "layers": "1"})
    text = str(error.value)
    for part in ("d = 'three'", "line 2", "line 3", "line 1: expected link", "spine takes 2", "rows", "layers = '1'"):
        assert part in text
    with pytest.raises(InputError, match="must be <= d \\+ 1 = 4"):
        synth.make("mlfm", **{"d": "3", "layers": "2", "columns": "5", "servers": "2"})
    with pytest.raises(InputError, match="cannot be read"):
        synth.make("mlfm", **{"d": "3", "subset": str(tmp_path / "nowhere")})
    with pytest.raises(InputError, match="columns: is missing"):
        synth.make("mlfm", **{"d": "3", "layers": "2"})


def test_make_reports_faults_of_the_listed_servers(tmp_path: Path) -> None:
    servers = tmp_path / "job.txt"
    servers.write_text("0 0 0\n0 0 0\n0 4 0\n")
    with pytest.raises(InputError) as error:
        synth.make("mlfm", **{"d": "3", "subset": str(servers)})
    assert "subset[1] = [0, 0, 0]: stands twice" in str(error.value)
    assert "column 4 does not exist" in str(error.value)


@pytest.mark.long
def test_bad_input_exits_with_2_and_a_cut_off_job_with_3(tmp_path: Path) -> None:
    """A leaf whose three cables have all failed: its server cannot reach the others, by whatever route."""
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"format": "synth-instance/1"} | raw(block={"layers": 9, "columns": 9, "servers": 1})))
    ended = synth_command("solve", str(bad), "--results", str(tmp_path / "r"))
    assert ended.returncode == 2
    assert "block.layers = 9" in ended.stderr
    assert "block.columns = 9" in ended.stderr
    assert "Traceback" not in ended.stderr
    cut = tmp_path / "cut.json"
    links = [{"leaf": [0, 0], "spine": [0, b]} for b in (1, 2, 3)]
    made = read(failed={"links": links}, routes="detour")
    cut.write_text(made.to_json())
    ended = synth_command("solve", str(cut), "-m", "cpsat", "--results", str(tmp_path / "r"))
    assert ended.returncode == 3
    assert "server 0.0.0 is cut off from server 0.1.0" in " ".join(ended.stderr.split())


@pytest.mark.parametrize("method", ["bound", "shift", "pairwise", "greedy", "cpsat", "ilp", "min_congestion"])
def test_every_method_names_the_cut_off_pair(method: str) -> None:
    record = synth.solve(read(failed={"spines": [[0, 1]]}), method)  # minimal routes between columns 0 and 1 need it
    assert record["termination"] == "infeasible"
    assert "server 0.0.0 is cut off from server 0.1.0" in record["message"]
    assert "routes = detour allows more" in record["message"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_instances_read_and_name_their_source(path: Path) -> None:
    shipped = synth.read(path)
    assert shipped.name == path.stem
    assert len(shipped.source) > 10


def test_shipped_instances_are_what_the_study_makes() -> None:
    from synth_papers.mlfm.problems import shipped

    assert {made.name: made.to_json() for made in shipped()} == {path.stem: path.read_text() for path in SHIPPED}


def test_a_failed_cable_fails_in_both_directions_and_that_is_said(tmp_path: Path) -> None:
    """In the note that the command prints and the instance's source, from lines as from JSON."""
    lines, data = tmp_path / "a.txt", tmp_path / "b.json"
    lines.write_text("link 0 0 0 1\nspine 1 2\nserver 0 3 2\n")
    parts = {"links": [{"leaf": [0, 0], "spine": [0, 1]}], "spines": [[1, 2]], "servers": [[0, 3, 2]]}
    data.write_text(json.dumps(parts))
    words = "failed: cables (both directions) leaf 0.0 <-> spine 0.1; spines 1.2; servers 0.3.2"
    for file in (lines, data):
        instance = synth.make("mlfm", d=3, layers=2, columns=4, servers=3, failed=file)
        assert instance.notes == (words,)
        assert instance.source.endswith(words)
