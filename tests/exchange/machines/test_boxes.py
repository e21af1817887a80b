"""Boxes of machines that are read: stated, kept with their ways out, and multiplied as those of a machine by name."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exchange.machines.reading import SAMPLES, sample
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.machines.completion import Supplied, completed
from synth.exchange.machines.file import as_raw, checked, to_text
from synth.exchange.machines.formats import read_text
from synth.exchange.machines.machine import Machine, Port
from synth.exchange.selection import selection_format

GB = 1e9
EVERY = Supplied({"": 20 * GB}, {"": 1e-6})
PAIR = """\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity
GPU0\t X \tNV18\tPIX\tNODE\t0-31
GPU1\tNV18\t X \tNODE\tPIX\t0-31
NIC0\tPIX\tNODE\t X \tNODE
NIC1\tNODE\tPIX\tNODE\t X
"""
RATES = ("--bandwidth", "NV=25GB/s,PIX=63GB/s,NET=50GB/s", "--latency", "0.7us,NET=1.3us")


def tuned(folder: Path, *words: object) -> list[list[str]]:
    """The rules of NCCL's file that `synth tune` writes."""
    asked = ["tune", *map(str, words), "--for", "nccl", "-o", str(folder / "out")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, (done.output, done.exception)
    lines = (folder / "out/nccl.conf").read_text().splitlines()
    assert selection_format("nccl").read("\n".join(lines))
    return [line.split(",") for line in lines if not line.startswith("#")]


def instance(machine: object, **keys: object) -> synth.Instance:
    return synth.make("fabric", **{"machine": machine, "collective": "allreduce", "bytes": "1GiB"} | keys)


def alone(name: str, kinds: tuple[str, ...] = ()) -> Machine:
    return completed(sample(name), EVERY, 1, kinds)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("dgx1-topo.txt", ()),
        ("dgx1-topo.txt", ("NV", "PIX", "NET")),
        ("a100-topo.txt", ("NV", "PXB", "NET")),
        ("h100-topo.txt", ()),
        ("h100-topo.txt", ("NV", "PIX", "NET")),
        ("hgx-4gpu.xml", ()),
    ],
)
@pytest.mark.parametrize("boxes", [2, 3])
def test_boxes_of_a_file_are_those_of_import(name: str, kinds: tuple[str, ...], boxes: int) -> None:
    """One box's file with boxes=N is link by link what `synth import --boxes N` makes, and so are its boxes."""
    one, several = alone(name, kinds), completed(sample(name), EVERY, boxes, kinds)
    made, direct = instance(as_raw(one), boxes=boxes), instance(as_raw(several))
    assert made.network == direct.network  # type: ignore[attr-defined]
    assert made.hosts == boxes == len(made.boxes)  # type: ignore[attr-defined]
    assert {len(box) for box in made.boxes} == {len(sample(name).ranks)}  # type: ignore[attr-defined]
    again = instance(as_raw(several), boxes=boxes + 1)  # a file of several boxes says what one is
    assert again.network == instance(as_raw(one), boxes=boxes + 1).network  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["dgx1-topo.txt", "a100-topo.txt", "hgx-4gpu.xml"])
def test_a_box_alone_is_the_machine_as_before(name: str) -> None:
    """NICs are no part of one box's network; the file holds them beside it, and is read with and without."""
    raw = as_raw(alone(name))
    assert json.loads(to_text(alone(name))) == raw
    ports = [port["name"] for port in raw["box"]["ports"]]
    assert ports == [port.name for port in sample(name).ports]
    assert not {*ports} & {*raw["network"]["names"]}
    old = {key: value for key, value in raw.items() if key != "box"}
    del old["network"]["boxes"]
    assert instance(checked(old, "old")).machine.nodes == instance(raw).machine.nodes  # type: ignore[attr-defined]


def test_hosts_and_names_tell_boxes() -> None:
    """NCCL's XML by host, tables by what stands before the slash; other tables know none."""
    rows = "".join(
        f"{a},{b},25GB/s,1us\n{b},{a},25GB/s,1us\n"
        for a, b in [("x/0", "x/1"), ("y/0", "y/1"), ("x/0", "net"), ("y/0", "net")]
    )
    text = f"src,dst,bandwidth,latency\n{rows}"
    from synth.exchange.machines.machine import Hints

    machine = read_text(text, "t.csv", hints=Hints(switches=("net",)))
    assert machine.boxes == ((0, 1), (2, 3))
    assert any("2 boxes" in word for word in machine.assumed)
    assert instance(as_raw(completed(machine, Supplied({}, {})))).hosts == 2  # type: ignore[attr-defined]
    assert read_text(text, "t.csv").boxes == ()  # net is a rank there, in no box
    assert read_text(text.replace("x/", "x-").replace("y/", "y-"), "t.csv", hints=Hints(switches=("net",))).boxes == ()
    assert sample("hgx-4gpu.xml").boxes == (tuple(range(4)),)


@pytest.mark.long
def test_a_named_machine_and_a_read_one_give_nccl_the_same_rows(tmp_path: Path) -> None:
    """Two boxes of two GPUs are two nodes, by a tree while latencies count."""
    (tmp_path / "box.txt").write_text(PAIR)
    sizes = ("--sizes", "64KiB,1GiB", "--collective", "allreduce")
    read_in = tuned(tmp_path, tmp_path / "box.txt", "--boxes", 2, "--only", "NV,PIX,NET", *RATES, *sizes)
    by_key = tuned(tmp_path, tmp_path / "box.txt", "boxes=2", "--only", "NV,PIX,NET", *RATES, *sizes)
    named = tuned(tmp_path, "dgx-h100", "boxes=2", "gpus=2", *sizes)
    assert read_in == by_key == named
    assert ["tree", "2", "4"] in [[row[3], *row[6:8]] for row in read_in if row[0] == "allreduce"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["scheduled", "mscclpp"])
def test_the_table_of_a_tuned_cluster_counts_its_boxes(form: str, tmp_path: Path) -> None:
    (tmp_path / "box.txt").write_text(PAIR)
    words = ["tune", str(tmp_path / "box.txt"), "boxes=2", "leaf=1", "--only", "NV,PIX,NET", *RATES]
    words += ["--sizes", "1MiB", "-m", "hierarchical", "--for", form, "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    with (tmp_path / "out/table.csv").open(newline="") as stream:
        assert [row["nodes"] for row in csv.DictReader(stream)] == ["2"]


@pytest.mark.long
@pytest.mark.parametrize(("gpus", "boxes"), [(1, 2), (1, 3), (2, 1)])
def test_nodes_of_nccl_are_boxes(gpus: int, boxes: int, tmp_path: Path) -> None:
    """Also where a box has one GPU, and where there is one box; other rows are for any number of ranks."""
    (tmp_path / "box.txt").write_text(PAIR)
    words = (f"boxes={boxes}", f"gpus={gpus}", "--only", "NV,PIX,NET", *RATES, "--sizes", "1MiB")
    rows = tuned(tmp_path, tmp_path / "box.txt", *words)
    assert {tuple(row[6:8]) for row in rows if row[7] != "-1"} == {(str(boxes), str(boxes * gpus))}


def test_gaps_of_a_class_are_filled_and_nothing_stated_is_lost() -> None:
    """A table, node-link JSON and GraphML where some rates are missing: 25 GB/s stays beside the 10 GB/s given."""
    table = "src,dst,bandwidth,latency\n0,1,25GB/s,1us\n1,0,,1us\n"
    graph = json.dumps(
        {
            "directed": True, "multigraph": False, "graph": {}, "nodes": [{"id": 0}, {"id": 1}],
            "links": [{"source": 0, "target": 1, "bandwidth": 25e9}, {"source": 1, "target": 0}],
        }
    )  # fmt: skip
    given = Supplied({"link": 10 * GB}, {}, ("--bandwidth link=10GB/s",))
    for text, name in ((table, "two.csv"), (graph, "two.json")):
        made = completed(read_text(text, name), given)
        assert [link.bandwidth for link in made.links] == [25 * GB, 10 * GB], name
        assert made.given[1:] == ("--bandwidth link fills gaps only, beside 1 stated number",)
    stated = completed(read_text(table.replace(",,", ",5GB/s,"), "two.csv"), given)
    assert [link.bandwidth for link in stated.links] == [10 * GB, 10 * GB]
    assert stated.given[1:] == ("--bandwidth link takes the place of 2 stated numbers",)


def test_what_is_assumed_of_rates_goes_with_the_rates() -> None:
    """NCCL's PCIe rates are assumed as long as one of them is there."""
    machine = sample("v100-pair.xml")
    said = [text for text in machine.assumed if "PCIe carries" in text]
    assert said
    ports = tuple(replace(port, bandwidth=12 * GB) for port in machine.ports)
    machine = replace(machine, ports=ports)
    kept = completed(machine, Supplied({"": 9 * GB}, {"": 1e-6}))
    assert said[0] in kept.assumed
    whole = replace(machine, links=tuple(replace(link, bandwidth=12 * GB) for link in machine.links))
    assert said[0] not in completed(whole, Supplied({"PCI": 9 * GB}, {"": 1e-6})).assumed


def test_a_port_without_a_rate_is_filled_where_boxes_are_joined() -> None:
    """A box may be written before anybody knows its NICs; then `nic=` says it, and only that."""
    machine = completed(
        sample("dgx1-topo.txt"), Supplied({"NV": 25 * GB, "PIX": 12 * GB}, {"": 1e-6}), 1, ["NV", "PIX", "NET"]
    )
    raw = as_raw(machine)
    with pytest.raises(InputError, match=r"bandwidth: unknown for NET: say bandwidth=NET=…"):
        instance(raw, boxes=2)
    made = instance(raw, boxes=2, nic="5GB/s")
    rates = dict.fromkeys(made.machine.network.bandwidth.tolist())  # type: ignore[attr-defined]
    assert {*rates} == {5 * GB, 12 * GB, 25 * GB, 50 * GB}
    assert made.notes == ("nic=5.00 GB/s fills 4 links",)
    assert instance(raw, boxes=2, bandwidth="NET=5GB/s").network == made.network  # type: ignore[attr-defined]


TRAY = "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\n" + "".join(
    f"{own}\t" + "\t".join(
        " X " if own == other else "NV18" if own[0] == other[0] == "G" else "PIX" if own[3] == other[3] else "SYS"
        for other in (*(f"GPU{g}" for g in range(4)), *(f"NIC{g}" for g in range(4)))
    ) + "\n"
    for own in (*(f"GPU{g}" for g in range(4)), *(f"NIC{g}" for g in range(4)))
)  # fmt: skip
OF_TRAY = Supplied({"NV": 50 * GB, "PIX": 63 * GB, "NET": 50 * GB}, {"NV": 0.35e-6, "PIX": 0.325e-6, "NET": 0.65e-6})


def test_a_domain_of_nvlinks_spans_boxes_that_are_read() -> None:
    """Trays of a GB200 NVL72 as nvidia-smi shows one: value by value those of the machine by name."""
    raw = as_raw(completed(read_text(TRAY, "tray.txt"), OF_TRAY, 1, ("NV", "PIX", "NET")))
    for boxes, keys in ((3, {}), (18, {}), (20, {}), (36, {"leaf": 9})):
        read_in = instance(raw, boxes=boxes, domain=18, rails=True, **keys)
        named = instance("gb200-nvl72", boxes=boxes, **keys)
        switches = [sum("nvswitch" in name for name in one.machine.names) for one in (read_in, named)]  # type: ignore[attr-defined]
        assert switches == [-(-boxes // 18)] * 2
        assert (read_in.hosts, read_in.boxes) == (named.hosts, named.boxes)  # type: ignore[attr-defined]
    for collective, method in (("alltoall", "direct"), ("allreduce", "ring"), ("broadcast", "double_tree")):
        both = {"boxes": 4, "collective": collective, "bytes": "1MiB"}
        read_in = synth.make("fabric", machine=raw, domain=18, rails=True, **both)
        named = synth.make("fabric", machine="gb200-nvl72", **both)
        values = [synth.solve(one, method).value for one in (read_in, named)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_a_domain_needs_a_switch_of_nvlinks() -> None:
    for machine, words in (
        (as_raw(alone("mi250-topo.txt")), "domain = 2: there is no switch of NVLinks that boxes could share"),
        ("gb200-nvl72", "domain = 2: is for machine files"),
    ):
        with pytest.raises(InputError, match=words):
            instance(machine, domain=2)
    with pytest.raises(InputError, match="domain = 2: has no meaning without machine"):
        synth.make("fabric", network="ring", nodes=4, domain=2, collective="allreduce", bytes="1GiB")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"box": []}, "box: must be an object"),
        ({"box": {"names": ["a", "a"]}}, "box.names: must be a list of texts, each once"),
        ({"box": {"names": ["a"], "switches": [1], "links": [], "ports": []}}, "box.switches: must be numbers"),
    ],
)
def test_a_box_that_is_none_is_said_to_be_none(change: dict[str, object], words: str) -> None:
    raw = as_raw(alone("dgx1-topo.txt"))
    with pytest.raises(InputError) as caught:
        checked(raw | change, "m.json")
    assert words in str(caught.value)
    raw["box"]["links"][0] |= {"src": 99, "bandwidth": -1, "lanes": 0, "color": 1}
    raw["box"]["ports"][0] |= {"name": ""}
    with pytest.raises(InputError) as caught:
        checked(raw, "m.json")
    for word in ("links[0].src = 99: must be", "bandwidth = -1", "lanes = 0", "color: unknown key", "ports[0].name"):
        assert word in str(caught.value)


def test_boxes_that_are_no_ranks_are_refused() -> None:
    raw = as_raw(alone("dgx1-topo.txt"))
    for boxes, words in (([[99]], "is no rank"), ([[0], [0]], "stands twice"), ([[]], "boxes[0]")):
        with pytest.raises(InputError) as caught:
            instance(raw | {"network": raw["network"] | {"boxes": boxes}})
        assert words in str(caught.value)


def test_no_port_no_boxes() -> None:
    """A file without a way out is not multiplied, and says what to import."""
    machine = completed(read_text("src,dst\n0,1\n1,0\n", "x.csv"), EVERY)
    assert machine.box is None
    with pytest.raises(InputError, match="shows no way out of its box"):
        instance(as_raw(machine), boxes=2)
    assert completed(replace(machine, ports=(Port(0, "p"),)), EVERY).box is not None
    assert SAMPLES.is_dir()


def test_a_fit_of_a_class_is_one_of_the_box_too(tmp_path: Path) -> None:
    """What is measured between two boxes holds for as many as are made of the file."""
    raw = as_raw(completed(sample("dgx1-topo.txt"), EVERY, 2, ["NV", "PIX", "NET"]))
    (tmp_path / "two.json").write_text(json.dumps(raw))
    (tmp_path / "net.csv").write_text("size,time\n8,20us\n1024,20.1us\n1048576,124.9us\n268435456,26863us\n")
    words = ["fit", f"NET={tmp_path / 'net.csv'}", "--test", "sendrecv", "--machine", str(tmp_path / "two.json")]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "fitted.json")])
    assert done.exit_code == 0, (done.output, done.exception)
    fitted = json.loads((tmp_path / "fitted.json").read_text())
    (rate,) = {port["bandwidth"] for port in fitted["box"]["ports"]}
    assert rate == pytest.approx(10e9, rel=0.01)
    four: Any = instance(fitted, boxes=4)
    net = four.machine.network
    assert {*net.bandwidth[net.dst == four.machine.nodes - 1].tolist()} == {rate}


@pytest.mark.parametrize(
    ("change", "keys", "words"),
    [
        ({"boxes": 5}, {"boxes": 2}, "network.boxes = 5: must be a list of lists"),
        ({"links": [1]}, {"nvlink": "1GB/s"}, "classes: must be a list of texts, one a link"),
        ({"nodes": 10**9, "names": None}, {"gpus": 2}, "network.nodes = 1000000000: must be 1 to 65536"),
        ({}, {"boxes": 10**9}, "1000000000 boxes; at most"),
        ({}, {"nic": "1GB/s"}, "m.json, nic: no such class of links; this machine has NV"),
        ({}, {"boxes": 2}, "m.json, boxes: the machine file shows no way out of its box"),
    ],
)
def test_a_hostile_file_ends_in_words(change: dict[str, Any], keys: dict[str, Any], words: str, tmp_path: Path) -> None:
    raw = as_raw(alone("dgx1-topo.txt", ("NV",)))
    raw["network"] |= change
    (tmp_path / "m.json").write_text(json.dumps(raw))
    with pytest.raises(InputError) as caught:
        instance(str(tmp_path / "m.json"), **keys)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_of_old_takes_numbers_by_class(tmp_path: Path) -> None:
    """Without a box: its network as it stands, the slowest of a class gets the number."""
    raw = as_raw(alone("dgx1-topo.txt", ("NV",)))
    raw["network"]["links"][0]["bandwidth"] *= 2
    raw.pop("box", None)
    made: Any = instance(raw, nvlink="10GB/s", gpus=8)
    assert {*made.machine.network.bandwidth.tolist()} == {10e9, 20e9, 40e9}
    assert len(made.notes) == 1
    whole: Any = instance(raw, nvlink="10GB/s")
    assert {*whole.machine.network.bandwidth.tolist()} == {10e9, 20e9, 40e9}


@pytest.mark.parametrize("boxes", [1, 2])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("bandwidth", 7 * GB, r"network.links\[0\]: box.links state other numbers for .* say bandwidth=NV="),
        ("latency", 0.5, r"network.links\[0\]: box.links state other numbers"),
        ("bandwidth", float("nan"), r"network.links\[0\]: must be an object with numbers"),
        ("bandwidth", 2.0**63, r"network.links\[0\]: must be an object with numbers"),
        ("src", 2**63 - 1, r"network.links\[0\]: must lead from and to nodes below"),
    ],
)
def test_a_file_changed_in_one_place_of_two_is_refused(boxes: int, key: str, value: float, words: str) -> None:
    """A machine file states its box beside the network: a number changed by hand must not be passed over."""
    raw = as_raw(completed(sample("dgx1-topo.txt"), EVERY, boxes, ("NV", "PIX", "NET")))
    assert raw["classes"][0] == "NV"
    raw["network"]["links"][0][key] = value
    with pytest.raises(InputError, match=words):
        instance(raw, boxes=2)
    if boxes == 1 and key != "src":  # in both: taken
        for part in (raw["network"]["links"], raw["box"]["links"]):
            part[0][key] = 7 * GB if key == "bandwidth" else 0.5
        assert instance(raw, boxes=2).machine.network.links  # type: ignore[attr-defined]
