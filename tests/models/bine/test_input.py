"""Every way an instance, a host list or a trace can be wrong has its message and exit code 2."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import synth
from synth.errors import InputError
from synth.instance import parse, read
from synth.options import RunOptions
from synth_models.bine.check.replay import check_messages
from synth_models.bine.instance import BineInstance, parse_runs
from synth_models.bine.making import by_name, expand_hosts, read_trace
from synth_models.bine.references import published as references

MAP = "# host and group\nhost,group\nn1,a\nn2,a\nn3,b\nn4,b\n"


def make(**parameters):
    return synth.make("bine", **{key: str(value) for key, value in parameters.items()})


@pytest.fixture
def files(tmp_path):
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_host_lists_as_slurm_prints_them():
    assert expand_hosts("lrdn[0059,0074-0076]") == ["lrdn0059", "lrdn0074", "lrdn0075", "lrdn0076"]
    assert expand_hosts("a7,b[1-2]-ib c9") == ["a7", "b1-ib", "b2-ib", "c9"]


@pytest.mark.parametrize("text", ["n[3-1]", "n[1", "n[a]", "n[]", "n[1]]"])
def test_host_lists_that_are_none(text):
    with pytest.raises(ValueError, match=r"is not|is empty"):
        expand_hosts(text)


def test_hosts_and_map_give_an_allocation(files):
    instance = make(hosts=files("job.txt", "n[3-4]\nn1\n"), nodes=files("map.csv", MAP), collective="gather")
    assert instance.jobs[0].allocation == "bx2 ax1"
    assert instance.allocations[0].tolist() == [0, 0, 1]


def test_hosts_keep_the_order_of_their_file_unless_sorted_by_name(files):
    """h10 is the tenth host, not the second; with order=name h2 comes first, whatever the file says."""
    hosts, table = files("job.txt", "h[9-10]\nh2\nb[1-2]\n"), files("map.csv", "h9,x\nh10,y\nh2,z\nb1,u\nb2,v\n")
    runs = {
        order: make(hosts=hosts, nodes=table, **own).jobs[0].allocation
        for order, own in (("default", {}), ("file", {"order": "file"}), ("name", {"order": "name"}))
    }
    assert runs == {"default": "xx1 yx1 zx1 ux1 vx1", "file": "xx1 yx1 zx1 ux1 vx1", "name": "ux1 vx1 zx1 xx1 yx1"}
    assert sorted(["n2", "n10", "n1-ib", "n01", "n1", "a"], key=by_name) == ["a", "n01", "n1", "n1-ib", "n2", "n10"]
    for own, message in (
        ({"order": "size"}, "must be one of file, name"),
        ({"groups": 4, "order": "name"}, "is for hosts"),
    ):
        given = own if "groups" in own else {"hosts": hosts, "nodes": table, **own}
        with pytest.raises(InputError, match=message):
            make(**given)


def linked(pairs, groups="2,1,1"):
    raw = json.loads(make(groups=groups, collective="alltoall").to_json())
    return parse(raw | {"fabric": {"kind": "dragonfly", "pairs": pairs}}, BineInstance, "x")


def test_pairs_of_groups_that_are_no_links():
    """Every fault at once: no links, links less than none, a group joined to itself, groups that are not there."""
    with pytest.raises(InputError) as error:
        linked([[0, 1, 0], [1, 2, -4], [1, 1, 1], [0, 3, 1], [-1, 2, 1], [0, 2, 10**400]])
    text = str(error.value)
    for part in (
        "fabric.pairs[0] = [0, 1, 0]: must have 1 to",
        "fabric.pairs[1] = [1, 2, -4]: must have 1 to",
        "fabric.pairs[2] = [1, 1, 1]: joins a group to itself",
        "fabric.pairs[3] = [0, 3, 1]: names a group that no job has: they are 0..2",
        "fabric.pairs[4] = [-1, 2, 1]",
        "fabric.pairs[5]",
    ):
        assert part in text


def test_groups_that_no_route_joins():
    with pytest.raises(InputError, match=r"fabric\.pairs: give no route from group 0 to group 2; all groups"):
        linked([[0, 1, 1]])
    with pytest.raises(InputError, match="group 1 and 1 more"):
        linked([])
    assert linked([[1, 2, 1], [0, 1, 1]]).fabric is not None


def test_the_check_names_groups_without_a_route():
    """An instance that was never read anew: the check says so instead of storing an infinite load."""
    instance = linked([[1, 2, 1], [0, 1, 1]])
    instance.fabric.pairs.pop()
    verdict = check_messages(instance, references.ring(instance, RunOptions()).solution)
    assert verdict.faults == ["no route over the fabric's pairs joins two groups that exchange messages"]
    assert all(np.isfinite(v) for v in verdict.facts.values() if isinstance(v, float))


@pytest.mark.parametrize("size", [0, -1.0, 1e19, 1e999, float("nan")])
def test_vectors_have_a_size(size):
    with pytest.raises(InputError, match="bytes"):
        parse(json.loads(make(groups="4,4").to_json()) | {"bytes": size}, BineInstance, "x")


@pytest.mark.parametrize(
    ("hosts", "table", "message"),
    [
        ("n1\nn9\n", MAP, "line 2: host n9 has no group in the table"),
        ("n1\nn2\nn1\n", MAP, "line 3: host n1 stands twice (first on line 1)"),
        ("n[1-\n", MAP, "line 1: "),
        ("n1\n", MAP, "a collective needs at least 2 ranks"),
        ("# nothing\n", MAP, "names no hosts"),
        ("n1\nn2\n", "n1,a\nn1,b\n", "line 2: host n1 stands twice"),
        ("n1\nn2\n", "n1,a\nn2\n", "line 2 = 'n2': is not host,group"),
    ],
)
def test_bad_host_lists(files, hosts, table, message):
    with pytest.raises(InputError) as error:
        make(hosts=files("job.txt", hosts), nodes=files("map.csv", table))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("j2,8", "line 3 = 'j2,8': is not job,nodes,groups"),
        ("j2,x,1x8", "line 3 = 'j2,x,1x8': is not job,nodes,groups"),
        ("j2,8,1x8 2y3", "line 3: '2y3' is not GROUPxCOUNT with a count >= 1"),
        ("j2,8,1x7", "line 3: says 8 nodes, its groups hold 7"),
        ("j2,1,1x1", "line 3: a collective needs at least 2 ranks"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_unreadable_trace_lines_are_named_by_number(tmp_path, line, message, packed):
    path = tmp_path / "trace.csv"
    data = f"job,nodes,groups\nj1,4,1x2 2x2\n{line}\n".encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(InputError) as error:
        make(jobs=path)
    assert message in str(error.value)


def test_damaged_gzip_and_missing_file(tmp_path):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(b"job,nodes,groups\nj1,4,1x4\n")[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(path)
    with pytest.raises(InputError, match="cannot be read"):
        make(jobs=tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"groups": "1"}, "a collective needs at least 2 ranks"),
        ({"groups": "4,4", "root": "8"}, "root = 8: the smallest job has ranks 0..7"),
        ({"groups": "4,4", "root": "-1"}, "root = '-1': must be >= 0"),
        ({"groups": "4,x"}, "give sizes like 8,8,16"),
        ({"torus": "4,4"}, "give sides like 8x8x8"),
        ({"groups": "4,4", "torus": "4x4"}, "give one of groups, hosts, jobs, torus"),
        ({}, "give one of groups, hosts, jobs, torus"),
        ({"groups": "4,4", "rounds": "2"}, "reaching 8 ranks takes at least 3 rounds"),
        ({"groups": "4,4", "collective": "allreduce", "rounds": "9"}, "only the problem tree limits rounds"),
        ({"groups": "4,3", "collective": "allreduce", "problem": "butterfly"}, "needs a power of two of ranks, not 7"),
        ({"groups": "4,4", "problem": "butterfly"}, "broadcast is no butterfly collective"),
        ({"groups": "4,4", "collective": "alltoall", "problem": "tree"}, "alltoall is no tree collective"),
        ({"groups": "4,4", "uplinks": "2", "links_per_pair": "1"}, "a fat-tree or a dragonfly, not both"),
        ({"groups": "4,4", "colour": "red"}, "colour = 'red': unknown parameter"),
        ({"groups": "70000,1"}, "at most 65536 are supported"),
        ({"hosts": "x.txt"}, "nodes: is missing"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InputError) as error:
        make(**parameters)
    assert message in str(error.value)


def test_all_faults_of_a_file_at_once(tmp_path):
    path = tmp_path / "x.json"
    raw = json.loads(make(groups="4,4").to_json())
    jobs = [{"name": "a", "allocation": "4x0"}, {"name": "b", "allocation": "1x8"}]
    raw |= {"name": "x", "root": 9, "bytes": -1, "jobs": jobs}
    path.write_text(json.dumps(raw))
    with pytest.raises(InputError) as error:
        read(path)
    text = str(error.value)
    assert "bytes = -1: must be > 0" in text
    assert "jobs[0].allocation = '4x0': '4x0' is not GROUPxCOUNT" in text
    assert "root = 9: the smallest job has ranks 0..7" in text


@pytest.mark.long
def test_exit_code_2(tmp_path):
    synth = Path(sys.executable).with_name("synth")
    for words, message in ((["groups=1"], "at least 2 ranks"), (["groups=4,4", "root=8"], "ranks 0..7")):
        command = [synth, "make", "bine", *words, "-o", tmp_path / "x.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr


def test_runs():
    assert parse_runs("8x2 9x7") == (["8", "9"], [2, 7])
    assert parse_runs("cell-1x3") == (["cell-1"], [3])
