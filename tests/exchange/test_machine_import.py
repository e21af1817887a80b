"""``synth import`` as a person meets it: what it prints, the files it writes, what it refuses, and on to a schedule."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from command import flat, run
from exchange.machines.reading import SAMPLES
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.machines.completion import Supplied, completed
from synth.exchange.machines.formats import FORMATS, read

ROOT = Path(__file__).resolve().parents[2]
TOPO = SAMPLES / "dgx1-topo.txt"
NUMBERS = ("--only", "NV", "--bandwidth", "NV=25GB/s", "--latency", "0.7us")


def test_help_lists_every_format(tmp_path: Path) -> None:
    text = flat(run("import", "--help", cwd=tmp_path).stdout)
    assert all(f" {one.name} {one.summary}" in text for one in FORMATS)


def test_what_is_in_a_file_is_said_and_nothing_written(tmp_path: Path) -> None:
    done = run("import", TOPO, cwd=tmp_path)
    assert "dgx1-topo: synth import dgx1-topo.txt (nvidia-smi topo -m, 8 GPUs and 4 NICs)" in done.stdout
    assert "8 ranks, 7 switches, 60 links" in done.stdout
    assert "│ NV    │    32 │ unknown (bonds of 1, 2) │ unknown │" in done.stdout
    assert "needed: bandwidth: unknown for NV (32 links)" in done.stdout
    assert "give --latency NV=0.7us," in done.stdout
    assert done.stdout.endswith("next: with these, -o MACHINE.json writes it\n")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_unknown_is_asked_for(tmp_path: Path) -> None:
    done = run("import", TOPO, "--only", "NV", "-o", "m.json", cwd=tmp_path, code=2)
    lines = done.stderr.splitlines()
    assert [line.partition("dgx1-topo.txt: ")[2] for line in lines[:2]] == [
        "bandwidth: unknown for NV (32 links); give --bandwidth NV=… (NV: of one NVLink, one direction)",
        "latency: unknown for NV (32 links); give --latency NV=0.7us",
    ]
    assert lines[2].startswith("nothing is written")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["machine.json", "a machine.json"])
def test_a_machine_file_and_an_instance_at_once_are_the_same_problem(file: str, tmp_path: Path) -> None:
    """The machine file, taken by `synth make`, gives the instance that `synth import` gives with the same keys."""
    keys = ("collective=allgather", "bytes=1GiB", "name=mine")
    run("import", TOPO, *NUMBERS, "-o", file, cwd=tmp_path)
    run("make", "fabric", f"machine={file}", *keys, "-o", "made.json", cwd=tmp_path)
    done = CliRunner().invoke(app, ["import", "-", *NUMBERS, *keys, "-o", "-"], input=TOPO.read_text())
    assert done.exit_code == 0, done.output
    made, direct = json.loads((tmp_path / "made.json").read_text()), json.loads(done.stdout)
    assert made.pop("source").replace("dgx1-topo.txt", "standard input") == direct.pop("source")
    direct["network"]["names"] = made["network"]["names"]
    assert made == direct
    instance = synth.read(tmp_path / "made.json")
    assert "nvidia-smi topo -m" in instance.source
    assert "given: --bandwidth NV=25GB/s; --latency 0.7us" in instance.source
    assert "left out: mlx5_0" in instance.source
    hand = synth.make("fabric", machine="dgx1", collective="allgather", bytes="1GiB")
    ours = {(int(u), int(v)): float(b) for u, v, b in zip(*_arrays(instance), strict=True)}
    assert ours == {(int(u), int(v)): float(b) for u, v, b in zip(*_arrays(hand), strict=True)}


def _arrays(instance: object) -> tuple[list[int], list[int], list[float]]:
    net = instance.machine.network  # type: ignore[attr-defined]
    return net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist()


def test_bad_files_and_options_end_in_words(tmp_path: Path) -> None:
    def refusal(*words: object) -> str:
        done = CliRunner().invoke(app, ["import", *map(str, words)])
        assert isinstance(done.exception, InputError), (words, done.output, done.exception)
        return str(done.exception)

    bad = tmp_path / "bad.txt"
    bad.write_text("\tGPU0\tGPU1\nGPU0\t X \tLAN\nGPU1\tLAN\t X \n")
    text = refusal(bad)
    assert "bad.txt: line 2, GPU0-GPU1 = 'LAN': must be one of X, NV#" in text
    assert "line 3, GPU1-GPU0" in text
    for words, message in [
        (("--nvlinks", "maybe"), "--nvlinks = 'maybe': must be direct or switch"),
        (("--bandwidth", "NV=1e18"), "--bandwidth: times the number of bonded links must be in 0.001..1e+18 bytes/s"),
        (("--bandwidth", "NV=quick"), "--bandwidth = 'NV=quick': must be a rate"),
        (("--format", "lstopo"), "--format = 'lstopo': unknown; one of nvidia-smi"),
        (("--family", "xtree", *NUMBERS, "chunks=1"), "--family = 'xtree': takes no machines; one of fabric"),
        ((*NUMBERS, "-o", tmp_path), "cannot be written"),
    ]:
        assert message in refusal(TOPO, *words)


def test_keys_that_do_not_fit_an_imported_machine(tmp_path: Path) -> None:
    run("import", TOPO, *NUMBERS, "-o", tmp_path / "m.json", cwd=tmp_path)
    machine = str(tmp_path / "m.json")

    def faults(**keys: object) -> str:
        with pytest.raises(InputError) as caught:
            synth.make("fabric", **keys)
        return str(caught.value)

    assert "boxes: the machine file shows no way out of its box" in faults(machine=machine, boxes=2, bytes=8)
    assert "rows = 2: has no meaning with machine" in faults(machine=machine, rows=2, bytes=8)
    assert "No such file" in faults(machine=str(tmp_path / "none.json"), bytes=8)
    raw = json.loads((tmp_path / "m.json").read_text())
    for key, value, message in [
        ("format", "synth-instance/1", "is no machine file: format must be 'synth-machine/1'"),
        ("source", 3, "source = 3: must be a text"),
        ("unknown", "much", "unknown = 'much': must be a list of texts"),
        ("switching", "magic", "switching = 'magic': must be one of cut_through, store_and_forward"),
        ("network", [], "network: must be an object of the kind links"),
    ]:
        (tmp_path / "m.json").write_text(json.dumps(raw | {key: value}))
        assert message in faults(machine=machine, bytes=8)
    raw["network"]["links"][0]["bandwidth"] = -1
    raw["network"]["links"][1]["dst"] = 99
    (tmp_path / "m.json").write_text(json.dumps(raw))
    text = faults(machine=machine, bytes=8)
    assert "network.links[0].bandwidth = -1: must be > 0" in text
    assert "network.links[1].dst = 99: link to nowhere" in text


def test_what_is_ours_already_is_said_so(tmp_path: Path) -> None:
    run("import", TOPO, *NUMBERS, "-o", "m.json", cwd=tmp_path)
    (tmp_path / "i.json").write_text(synth.make("fabric", machine="dgx1", bytes=8).to_json())
    for name, message in (("m.json", "is a machine file already"), ("i.json", "is an instance already")):
        with pytest.raises(InputError, match=message):
            read(tmp_path / name)


def test_from_python(tmp_path: Path) -> None:
    """A machine as read is a machine to make an instance of, once nothing of it is unknown."""
    machine = read(SAMPLES / "teccl-input.json")
    instance = synth.make("fabric", machine=machine, collective="alltoall", bytes=800)
    assert instance.name == "teccl-input-alltoall-800B"
    with pytest.raises(InputError, match=r"machine.*bandwidth: unknown for NV"):
        synth.make("fabric", machine=read(TOPO), bytes=8)
    with pytest.raises(InputError, match="is no machine file"):
        synth.make("fabric", machine={"format": "mine"}, bytes=8)


def test_an_a100_box_is_the_shipped_one() -> None:
    """12 NVLinks of 25 GB/s to the NVSwitch: our machine dgx-a100, whose allgather cannot pass 2400/7 GB/s."""
    numbers = Supplied({"NV": 25e9}, {"NV": 3.5e-7})
    box = completed(read(SAMPLES / "a100-topo.txt"), numbers, kinds=["NV"])
    theirs = synth.make("fabric", machine=box, bytes=8 * 10**12)
    ours = synth.make("fabric", machine="dgx-a100", bytes=8 * 10**12)
    assert sorted(zip(*_arrays(theirs), strict=True)) == sorted(zip(*_arrays(ours), strict=True))
    bound = synth.solve(theirs, method="bound", time_limit=10).bound
    assert bound == pytest.approx(8e12 / (2400e9 / 7), rel=1e-6)


def test_te_ccl_switches_store_and_forward(tmp_path: Path) -> None:
    """Its NDv2 of two chassis is our machine teccl-ndv2-2, way of switching included."""
    (tmp_path / "in.json").write_text('{"TopologyParams": {"name": "NDv2", "chassis": 2}}')
    theirs = synth.make("fabric", machine=read(tmp_path / "in.json"), bytes="15MB")
    ours = synth.make("fabric", machine="teccl-ndv2-2", bytes="15MB")
    assert theirs.switching == ours.switching
    assert sorted(zip(*_arrays(theirs), strict=True)) == sorted(zip(*_arrays(ours), strict=True))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a100-topo.txt", ("--bandwidth", "NV=25GB/s,PXB=24GB/s,SYS=20GB/s", "--latency", "1us")),
        ("a100-topo.txt", ("--boxes", "2", "--only", "NV,PXB,NET", "--bandwidth", "NV=25GB/s,PXB=24GB/s,NET=25GB/s",
                           "--latency", "1us")),
        ("hgx-4gpu.xml", ("--bandwidth", "SYS=40GB/s", "--latency", "1us")),
        ("cloud-topo.xml", ("--latency", "1us")),
        ("torus.yml", ()),
        ("taccl-known.json", ("--chunk", "1MB", "--time-unit", "1us")),
        ("teccl-input.json", ()),
        ("graph.json", ("--latency", "1us")),
        ("graph.graphml", ("--latency", "1us")),
    ],
)  # fmt: skip
def test_every_format_ends_in_an_instance_that_can_be_solved(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """In this process: the command's function by itself, then the bound of an allgather."""
    path = tmp_path / "instance.json"
    keys = ["collective=allgather", "bytes=5040KB", "name=it"]
    done = CliRunner().invoke(app, ["import", str(SAMPLES / name), *words, *keys, "-o", str(path)])
    assert done.exit_code == 0, (done.output, done.exception)
    record = synth.solve(synth.read(path), method="bound", time_limit=10)
    assert record.bound is not None
    assert record.bound > 0


def test_the_lines_of_the_page_on_formats_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its commands, on samples by the names it gives them; its CSV file as it stands there."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "synth/exchange/machines/README.md").read_text()
    blocks = re.findall(r"```(\w+)[^\n]*\n(.*?)```", page, re.DOTALL)
    [own] = [text for kind, text in blocks if kind == "csv"]
    Path("mine.csv").write_text(own)
    shutil.copy(TOPO, "topo.txt")
    shutil.copy(SAMPLES / "a100-topo.txt", "a100.txt")
    lines = [line.partition("  #")[0].split() for kind, text in blocks if kind == "bash" for line in text.splitlines()]
    assert len(lines) == 4
    for line in lines:
        done = CliRunner().invoke(app, line[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
    [python] = [text for kind, text in blocks if kind == "python"]
    names: dict[str, object] = {}
    exec(python, names)
    assert names["instance"].members == tuple(range(8))  # type: ignore[attr-defined]
    three = json.loads(Path("three.json").read_text())
    assert sum(name.endswith(tuple(f"gpu{i}" for i in range(8))) for name in three["network"]["names"]) == 24
    assert synth.read("instance.json").machine.nodes == 3
