"""Machines that people describe: a file as a name, numbers by class of link, boxes of several kinds, nodes by name."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import command
import pytest
import test_site
from hypothesis import given, settings
from hypothesis import strategies as st
from models.fabric.making import faults, made
from published import ROOT
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.family import defaults_for, get_family
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.box_data import machine_file, machine_names

MACHINES = resources.files("synth_models.fabric") / "machines"
PAGE = Path(test_site.PAGES) / "start/machine.md"
EVERY = ("allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter")
BOTH_WAYS: tuple[tuple[str, dict[str, object]], ...] = (
    ("dgx-h100", {"boxes": 2, "gpus": 2}),
    ("dgx-a100", {"boxes": 3, "gpus": 2}),
    ("dgx1", {"boxes": 2, "gpus": 4}),
    ("dgx-h100-nvls", {"boxes": 2, "gpus": 2}),
    ("mi250", {"boxes": 2, "gpus": 4, "leaf": 1, "rails": False}),
)


def copied(name: str, folder: Path, **change: object) -> str:
    """A copy of a machine's data, as a person takes one to change it."""
    path = folder / f"my-{name}.json"
    path.write_text(json.dumps(json.loads((MACHINES / f"{name}.json").read_text()) | change))
    return str(path)


def arrays(instance: FabricInstance) -> list[Any]:
    """All that a method sees of the machine and its boxes."""
    machine, net = instance.machine, instance.machine.network
    able = machine.abilities
    return [
        *(one.tolist() for one in (net.src, net.dst, net.bandwidth, net.latency, machine.is_switch, machine.group)),
        *(one.tolist() for one in (able.copies, able.adds, able.streams, able.add_rate)),
        machine.names, instance.boxes, instance.hosts, instance.switching,
    ]  # fmt: skip


KEYS: tuple[dict[str, object], ...] = (
    {},
    {"boxes": 2},
    {"boxes": 3, "nic": "7GB/s"},
    {"boxes": 2, "gpus": 2, "nvlink_latency": "3us"},
    {"boxes": 4, "leaf": 2, "oversubscription": 2},
    {"boxes": 5, "leaf": 2, "rails": False, "spines": 3, "nic": "100GB/s"},
)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "dgx1", "dgx2", "dgx-b200-nvls", "ndv2", "gb200-nvl72"])
@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: "-".join(keys))
def test_a_file_is_as_good_as_a_name(name: str, keys: dict[str, object], tmp_path: Path) -> None:
    """Node by node and link by link, boxes and what switches can do; methods see nothing else."""
    own, named = made(machine=copied(name, tmp_path), **keys), made(machine=name, **keys)
    assert arrays(own) == arrays(named)
    assert own.notes == named.notes


def values(machine: str, keys: dict[str, object], collective: str, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """What every default method finds."""
    instance = made(machine=machine, collective=collective, bytes="1MiB", **keys)
    methods = only or tuple(defaults_for(get_family("fabric"), instance))
    records = {method: synth.solve(instance, method, time_limit=120) for method in methods}
    return {method: (record.value, record.bound) for method, record in records.items()}


@pytest.mark.parametrize(("name", "keys"), BOTH_WAYS[:3], ids=lambda one: one if isinstance(one, str) else "")
def test_a_method_finds_the_same_both_ways(name: str, keys: dict[str, object], tmp_path: Path) -> None:
    own, named = (values(machine, keys, "alltoall", ("direct",)) for machine in (copied(name, tmp_path), name))
    assert own == named
    assert named["direct"][0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("collective", EVERY)
@pytest.mark.parametrize(("name", "keys"), BOTH_WAYS, ids=lambda one: one if isinstance(one, str) else "")
def test_all_methods_find_the_same_both_ways(
    name: str, keys: dict[str, object], collective: str, tmp_path: Path
) -> None:
    assert values(copied(name, tmp_path), keys, collective) == values(name, keys, collective)


def test_numbers_by_class_are_those_of_failures(tmp_path: Path) -> None:
    """Half the rate of all NICs by `nic=`, and by a share that is left of every link of theirs."""
    half = tmp_path / "half.txt"
    lines = [f"link {b}/{a} {c} 1/2\n" for b in range(2) for g in range(8) for a, c in ((f"gpu{g}", f"{b}/nic{g}"),)]
    lines += [f"link {b}/nic{g} ib{g % 2} 1/2\n" for b in range(2) for g in range(8)]
    half.write_text("".join(lines))
    by_rate, by_share = (
        made(machine="dgx-a100", boxes=2, nic="12.5GB/s"),
        made(machine="dgx-a100", boxes=2, failed=half),
    )
    assert arrays(by_rate) == arrays(by_share)
    assert by_rate.notes == ("nic=12.5 GB/s takes the place of 25.0 GB/s on 16 links",)
    assert by_rate.name == "dgx-a100-x2-nic12.5GB-allgather-1GiB"


@pytest.mark.parametrize(
    ("keys", "rates"),
    [
        ({"machine": "dgx1", "nvlink": "20GB/s"}, {20e9, 40e9}),
        ({"machine": "dgx1", "bandwidth": "NVLink=20GB/s"}, {20e9, 40e9}),
        ({"machine": "mi250", "xgmi": "48GB/s"}, {48e9, 96e9, 192e9}),
        ({"machine": "mi250-8", "xgmi": "40GB/s"}, {40e9, 80e9, 160e9}),
        ({"machine": "mi300x", "boxes": 2, "xgmi": "60GB/s", "nic": "25GB/s"}, {60e9, 25e9}),
        ({"machine": "teccl-ndv2-2", "nic": "25GB/s"}, {25e9, 50e9}),
        ({"machine": "dgx-h100", "boxes": 2, "nvlink": "100GB/s", "nic": "7GB/s"}, {100e9, 7e9}),
    ],
)
def test_the_slowest_gets_the_number_others_keep_their_proportion(keys: dict[str, object], rates: set[float]) -> None:
    assert {*made(**keys, bytes=15 * 2**20).machine.network.bandwidth.tolist()} == rates


def test_latencies_likewise() -> None:
    """NDv2: into a box nothing is lost, out of it 1.3 us."""
    instance = made(machine="ndv2", boxes=2, nic_latency="2.6us", nvlink_latency="1us")
    assert {*instance.machine.network.latency.tolist()} == {2.6e-6, 0.0, 1e-6}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"machine": "dgx1", "xgmi": "1GB/s"}, "xgmi: no such class of links; dgx1 has nvlink, nic"),
        ({"machine": "dgx1", "bandwidth": "IB=1GB/s"}, "bandwidth=IB: no such class of links; dgx1 has nvlink, nic"),
        ({"machine": "dgx1", "bandwidth": "1GB/s"}, "say bandwidth=CLASS=…, the classes of dgx1 are nvlink, nic"),
        ({"machine": "dgx1", "nic": "fast"}, "nic = 'fast': must be a rate"),
        ({"machine": "dgx1", "latency": "nic=1us,nic=2us"}, "latency = 'nic=1us,nic=2us': must be a value, or CLASS="),
        ({"network": "ring", "nodes": 4, "nic": "1GB/s"}, "nic = '1GB/s': has no meaning without machine"),
        ({"network": "ring", "nodes": 4, "bandwidth": "nic=1GB/s"}, "has classes of links only with machine"),
        ({"machine": "dgx1*2+nope"}, "nope is unknown; one of"),
        ({"machine": "dgx1*0+dgx2"}, "must be a name or FILE.json, or several"),
        ({"machine": "dgx1*2+dgx2", "boxes": 2}, "boxes = 2: is for boxes of one kind"),
        ({"machine": "dgx1*2+dgx2", "spines": 2}, "spines = 2: has no meaning with machine"),
        ({"machine": "dgx1*2+teccl-dgx2-2"}, "teccl-dgx2-2 shows no way out of its box"),
        ({"machine": "dgx1*2+dgx2", "gpus": "9"}, "gpus: a box of dgx1 has 8 at most, not 9"),
        ({"machine": "dgx1*3000+dgx2*3000"}, "at most 65536 are supported"),
    ],
)
def test_what_does_not_fit_is_said(keys: dict[str, object], words: str) -> None:
    (line,) = faults(**keys, bytes=2**20)
    assert words in line


def test_a_file_that_is_no_box_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    for change, words in (
        ({"gpus": 0}, "gpus = 0: must be >= 1"),
        ({"links": [{"src": "gpu0"}]}, "links[0].bandwidth: is missing"),
        ({"colour": 1}, "colour: unknown key"),
        ({"like": "dgx9"}, "like = 'dgx9': did you mean"),
    ):
        own = copied("dgx1", tmp_path, **change)
        text = "\n".join(faults(machine=own, bytes=8))
        assert words in text
        assert "my-dgx1.json" in text
    path.write_text("[1, 2")
    assert "m.json: not valid JSON: line 1" in faults(machine=str(path), bytes=8)[0]
    path.write_text("[1, 2]")
    assert "format must be 'synth-machine/1'" in faults(machine=str(path), bytes=8)[0]
    for text in ("\tGPU0\tGPU1\nGPU0\t X \tNV4\n", "<system/>", "src,dst\na,b\n", ""):
        path.write_text(text)
        assert "is no machine file, which are JSON; `synth import` makes one" in faults(machine=str(path), bytes=8)[0]
    path.write_text("{")
    assert "not valid JSON: line 1" in faults(machine=str(path), bytes=8)[0]


def test_boxes_of_two_kinds(tmp_path: Path) -> None:
    """Two DGX H100 and a copy with a NIC less: with rails the two share seven, alone on the eighth are two."""
    links = json.loads((MACHINES / "dgx-h100.json").read_text())
    less = [link for link in links["uplinks"] if "nic3" not in (link["src"], link["dst"])]
    own = copied("dgx-h100", tmp_path, uplinks=less)
    instance = made(machine=f"dgx-h100*2+{own}")
    assert instance.hosts == 3
    assert [len(box) for box in instance.boxes] == [8, 8, 8]
    names, net = instance.machine.names, instance.machine.network
    ends = {(names[u], names[v]) for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True)}
    assert {b for b in range(3) if (f"{b}/nic3", "rail3") in ends} == {0, 1}
    assert {b for b in range(3) if (f"{b}/nic4", "rail4") in ends} == {0, 1, 2}
    alike = made(machine="dgx-h100*3")
    assert arrays(alike) == arrays(made(machine="dgx-h100", boxes=3))


def test_boxes_that_share_other_switches() -> None:
    """One switch for all ports, with rails one for every port by its order, and leaves of one's own."""
    one = made(machine="dgx-h100*2+dgx-a100*1")
    assert [name for name in one.machine.names if "/" not in name] == ["net"]
    rails = made(machine="dgx-h100*2+dgx-a100*1", rails=True)
    assert [name for name in rails.machine.names if "/" not in name] == [f"rail{k}" for k in range(8)]
    tree = made(machine="dgx-h100*2+dgx-a100*2", leaf=2, oversubscription=2, spines=1)
    names, net = tree.machine.names, tree.machine.network
    up = {
        names[u]: rate
        for u, v, rate in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True)
        if names[v] == "spine0"
    }
    assert up["rail0.0"] == 2 * 50e9 / 2
    assert sum(rate for leaf, rate in up.items() if leaf.endswith(".1")) == 2 * 8 * 25e9 / 2
    assert [len(box) for box in made(machine="dgx1+dgx2*2").boxes] == [8, 16, 16]


def test_one_domain_over_boxes() -> None:
    """GB200 NVL72: 18 boxes on one NVSwitch, 72 NICs above; of 36 boxes two domains, which are NCCL's nodes."""
    rack, two = made(machine="gb200-nvl72", boxes=18), made(machine="gb200-nvl72", boxes=36)
    assert (len(rack.members), rack.hosts, len(rack.boxes)) == (72, 1, 18)
    assert (len(two.members), two.hosts, len(two.boxes)) == (144, 2, 2)
    switches = [name for name in two.machine.names if "nvswitch" in name]
    assert switches == ["nvswitch.0", "nvswitch.1"]
    names, net = two.machine.names, two.machine.network
    there = [(names[u], names[v]) for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True)]
    assert sum(v == "nvswitch.1" for _, v in there) == 72
    assert ("17/gpu3", "nvswitch.0") in there
    assert ("18/gpu0", "nvswitch.1") in there
    assert made(machine="gb200-nvl72", boxes=36, ranks="0/gpu0,17/gpu0").hosts == 1


def table(folder: Path, text: str, name: str = "links.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


LINE = "src,dst,bandwidth,latency\na,b,25GB/s,1us\nb,a,25GB/s,1us\nb,c,25GB/s,1us\nc,b,25GB/s,1us\n"


def test_nodes_by_name_are_those_by_number(tmp_path: Path) -> None:
    links = table(tmp_path, LINE)
    for name, number in (
        (dict(ranks="a,c", relay=True), dict(ranks="0,2", relay=True)),
        (dict(root="c"), dict(root=2)),
    ):
        own = {"links": links, "collective": "broadcast"}
        by_name, by_number = made(**own, **name), made(**own, **number)
        assert (by_name.ranks, by_name.root) == (by_number.ranks, by_number.root)
        assert by_name.name == by_number.name
    boxes = made(machine="dgx-h100", boxes=2, ranks="1/gpu7,0/gpu0,3-4", relay=True)
    assert boxes.ranks == (15, 0, 3, 4)


def test_names_in_a_file_of_collectives(tmp_path: Path) -> None:
    links = table(tmp_path, LINE)
    rows = (
        'collective,bytes,name,ranks,root\nallreduce,1MiB,one,"a,b",\nbroadcast,1MiB,two,"b,c",c\nreduce,1MiB,,0-2,b\n'
    )
    groups = table(tmp_path, rows, "groups.csv")
    instance: Any = synth.make("fabric", links=links, collective="several", collectives=groups)
    assert [one.ranks for one in instance.collectives] == [(0, 1), (1, 2), (0, 1, 2)]
    assert [one.root for one in instance.collectives] == [None, 2, 1]
    wrong = table(tmp_path, rows.replace('"b,c",c', '"b,z",q'), "wrong.csv")
    text = "\n".join(faults(links=links, collective="several", collectives=wrong))
    assert "wrong.csv, line 3, ranks = 'b,z': must be nodes by number or name" in text
    assert "wrong.csv, line 3, root = 'q'" in text
    assert "the nodes are a, b, c" in text


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"ranks": "a,d"}, "ranks = 'a,d': d: must be nodes by number or name, such as 0,1,4-7; the nodes are a, b, c"),
        ({"ranks": "a,,b"}, "ranks = 'a,,b'"),
        ({"root": "a,b", "collective": "broadcast"}, "root = 'a,b': must be one node, by number or name"),
        ({"root": "z", "collective": "broadcast"}, "root = 'z': must be nodes by number or name"),
        ({"ranks": "0-9"}, "no such node: there are 0..2"),
    ],
)
def test_nodes_that_are_not_there(keys: dict[str, object], words: str, tmp_path: Path) -> None:
    assert words in "\n".join(faults(links=table(tmp_path, LINE), bytes=2**20, **keys))


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["links=links.csv"], ["0,a,rank,", "1,b,rank,", "2,c,rank,"]),
        (["links=links.csv", "collective=several", "collectives=g.csv", "bytes=1MiB"], ["0,a,rank,", "2,c,rank,"]),
        (["machine=dgx1"], ["0,gpu0,rank,0"]),
        (["machine=dgx-h100*1+dgx-a100", "gpus=1"], ["0,0/gpu0,rank,0", "1,1/gpu0,rank,1", "4,1/nvswitch,switch,"]),
    ],
)
def test_the_numbering_is_listed(
    words: list[str], lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, LINE)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["make", "fabric", *words, "--names"])
    assert done.exit_code == 0, done.exception
    said = done.output.splitlines()
    assert said[0] == "number,name,kind,box"
    assert {*lines} <= {*said}
    assert [path.name for path in tmp_path.iterdir()] == ["links.csv"]


@given(name=st.sampled_from([n for n in machine_names() if not n.startswith("teccl")]), data=st.data())
@settings(max_examples=25, deadline=None)
def test_random_clusters_are_the_same_both_ways(name: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    boxes = data.draw(st.integers(1, 4))
    most = machine_file(name).gpus
    keys: dict[str, object] = {"boxes": boxes, "gpus": data.draw(st.integers(2 if boxes == 1 else 1, most))}
    if boxes > 1 and data.draw(st.booleans()):
        keys |= {"leaf": data.draw(st.integers(1, boxes)), "rails": data.draw(st.booleans())}
    own = copied(name, tmp_path_factory.mktemp("own"))
    assert outcome(own, keys) == outcome(name, keys)


def outcome(machine: str, keys: dict[str, object]) -> Any:
    """All that a method sees, or what is wrong with the machine."""
    try:
        return arrays(made(machine=machine, bytes=48, collective="broadcast", **keys))
    except InputError as error:
        return str(error)


@pytest.mark.slow
def test_one_study_tables_a_cluster_that_was_read(tmp_path: Path) -> None:
    """`synth study x32.toml` of the page, on fewer boxes and sizes: a best schedule and a bound of every collective."""
    titled = {block["title"]: block["text"] for block in test_site.blocks(PAGE) if block["title"]}
    shutil.copy(ROOT / "tests/exchange/machines/samples/dgx1-topo.txt", tmp_path / "topo.txt")
    (imported,) = [line for line in PAGE.read_text().splitlines() if line.endswith("-o box.json")]
    command.run(*shlex.split(imported)[1:], cwd=tmp_path)
    text = re.sub(r"boxes = .*\nleaf = .*", "boxes = 4\nleaf = 2", titled["x32.toml"])
    text = re.sub(r"bytes = \[.*?\]", 'bytes = ["1MiB", "64MiB"]', text)
    (tmp_path / "x32.toml").write_text(text)
    command.run("study", "x32.toml", "--time-limit", "20s", cwd=tmp_path)  # synth study x32.toml
    with (tmp_path / "results/studies/x32/best_by_size.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * len(EVERY)
    assert all(float(row["value"]) >= float(row["bound"]) > 0 for row in rows)
