"""Reading instances: every malformed file gets its own message, all faults at once, and never another exception."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth.errors import InputError
from synth.instance import parse
from synth_models.xtree.instance import XTreeInstance

GOOD: dict[str, Any] = {
    "format": "synth-instance/1", "family": "xtree", "name": "three", "source": "a test",
    "network": {
        "kind": "links", "nodes": 3,
        "links": [
            {"src": 0, "dst": 1, "bandwidth": 1e9, "latency": 1e-6}, {"src": 1, "dst": 2}, {"src": 2, "dst": 0},
            {"src": 2, "dst": 0},
        ],
    },
    "collective": "allgather", "chunks": 2,
}  # fmt: skip
MESH = {"kind": "mesh", "rows": 2, "cols": 3}


def faults(tmp_path: Path, content: Any) -> list[str]:
    """The lines of the one error that reading ``content`` (text, bytes or data) ends with, without the file's name."""
    path = tmp_path / "bad.json"
    data = content if isinstance(content, (str, bytes)) else json.dumps(content)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(InputError) as caught:
        synth.read(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def put(*path: Any) -> Callable[[Any], dict[str, Any]]:
    """A copy of the good file with the last item of ``path`` as value at the place before it; ... deletes the key."""

    def made(value: Any) -> dict[str, Any]:
        data = copy.deepcopy(GOOD)
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return data

    return made


def test_the_good_file(tmp_path: Path) -> None:
    path = tmp_path / "three.json"
    path.write_text(json.dumps(GOOD))
    instance = synth.read(path)
    assert isinstance(instance, XTreeInstance)
    assert (instance.name, instance.chunks, instance.topology.nodes, instance.topology.links) == ("three", 2, 3, 4)
    assert instance.topology.bandwidth.tolist() == [1e9, 128e9, 128e9, 128e9]
    assert instance.topology.latency.tolist() == [1e-6, 20e-9, 20e-9, 20e-9]
    assert instance.file == path
    assert instance.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ValueError, match="frozen"):
        instance.chunks = 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON: line 1, column 1: Expecting value"),
        ('{"format": "synth-instance/1",\n "family": }', "not valid JSON: line 2, column 12: Expecting value"),
        ("[" * 200_000, "not valid JSON: "), (b'{"name": "\xff"}', "not valid JSON: "),
        ("[]", "an instance file holds one JSON object"), ("5", "an instance file holds one JSON object"),
        ("null", "an instance file holds one JSON object"), ("9" * 5000, "not valid JSON: "),
        ('{"chunks": 1, "chunks": 2}', "not valid JSON: the key 'chunks' stands twice"),
        ('{"network": {"rows": 1, "rows": 1}}', "not valid JSON: the key 'rows' stands twice"),
        (put("format")("synth-instance/2"), "format = 'synth-instance/2': must be 'synth-instance/1'"),
        (put("format")(...), "format: must be 'synth-instance/1'"),
        (put("family")(...), "family: is missing or not a text"),
        (put("family")(["xtree"]), "family: is missing or not a text"),
        (put("family")("tree"), "family = 'tree': unknown family 'tree'; did you mean xtree? one of "),
        (put("chunk")(2), "chunk: unknown key"), (put("network", "speed")(1), "network.speed: unknown key"),
        (put("network", "links", 1, "bw")(1), "network.links[1].bw: unknown key"),
        (put("name")(...), "name: is missing"), (put("source")(...), "source: is missing"),
        (put("source")(""), "source = ''"),
        (put("chunks")(...), "chunks: is missing"), (put("network")(...), "network: is missing"),
        (put("network", "nodes")(...), "network.nodes: is missing"),
        (put("network", "links", 2, "dst")(...), "network.links[2].dst: is missing"),
        (put("name")("../x"), "name = '../x': string should match"), (put("name")("a b"), "name = 'a b'"),
        (put("name")("a\n"), "name = 'a\\n'"), (put("name")("x" * 101), "name = "), (put("name")(5), "name = 5"),
        (put("chunks")(0), "chunks = 0: must be >= 1"), (put("chunks")(-3), "chunks = -3: must be >= 1"),
        (put("chunks")(1.5), "chunks = 1.5: "), (put("chunks")("four"), "chunks = 'four': "),
        (put("chunks")("4"), "chunks = '4': "), (put("chunks")(True), "chunks = True: "),
        (put("chunks")(None), "chunks = None: "), (put("chunks")([4]), "chunks = [4]: "),
        (put("chunks")(10**30), "chunks = 1"), (put("chunk_bytes")(0), "chunk_bytes = 0: must be > 0"),
        (put("chunk_bytes")("1"), "chunk_bytes = '1': "),
        (put("collective")("gather"), "collective = 'gather': input should be 'allgather', 'reduce_s"),
        (put("network", "links", 3, "bandwidth")(-5), "network.links[3].bandwidth = -5: must be > 0"),
        (put("network", "links", 3, "bandwidth")(0), "network.links[3].bandwidth = 0: must be > 0"),
        (put("network", "links", 0, "latency")(-1), "network.links[0].latency = -1: must be >= 0"),
        (json.dumps(put("chunk_bytes")(float("nan"))), "chunk_bytes = nan: "),
        (json.dumps(put("network", "links", 1, "bandwidth")(float("inf"))), "network.links[1].bandwidth = inf: "),
        (json.dumps(put("network", "links", 1, "latency")(float("nan"))), "network.links[1].latency = nan: "),
        (json.dumps(put("network")({"kind": "ring", "nodes": 4, "bandwidth": 77})).replace("77", "1e999"),
         "network.bandwidth = inf: "),
        (put("network", "links", 1, "dst")(3),
         "network.links[1].dst = 3: node out of range, the network has nodes 0..2"),
        (put("network", "links", 1, "src")(-1), "network.links[1].src = -1: must be >= 0"),
        (put("network", "links")([]), "network.links = []: must have at least 1 item"),
        (put("network", "links", 1)({"src": 1, "dst": 1}), "goes from a node to itself"),
        (put("network", "links")([{"src": 0, "dst": 1}, {"src": 1, "dst": 2}]),
         "network: disconnected: node 0 cannot be reached from node 1"),
        (put("network", "links")([{"src": 0, "dst": 1}, {"src": 1, "dst": 0}]),
         "network: disconnected: node 2 cannot be reached from node 0"),
        (put("network", "links")([]), "network.links = []: "), (put("network", "links")({}), "network.links = {}: "),
        (put("network", "links", 0)("0->1"), "network.links[0] = '0->1': "),
        (put("network", "nodes")(0), "network.nodes = 0"),
        (put("network", "positions")([[0, 0], [1, 0]]), "network.positions: 2 positions for 3 nodes"),
        (put("network")(None), "network"), (put("network")([]), "network"), (put("network")("ring"), "network"),
        (put("network")({}), "network = {}: needs the key 'kind'"), (put("network")({"kind": 5}), "network.kind = "),
        (put("network")({"kind": "rings"}), "network.kind = 'rings': unknown; one of 'line', 'ring', "),
        (put("network")({"kind": "ring", "nodes": 1}), "network: every side is at least 1 and there"),
        (put("network")(MESH | {"rows": 0}), "network.rows = 0: must be >= 1"),
        (put("network")(MESH | {"bandwidth": 0}), "network.bandwidth = 0: must be > 0"),
        (put("network")(MESH | {"kind": "equimesh", "rows": 1}), "network.rows = 1: must be >= 2"),
        (put("network")(MESH | {"kind": "equimesh", "rings": {"top": "up"}}), "network.rings.top = 'up': "),
        (put("network")(MESH | {"kind": "equimesh", "rings": {"hub": "even_up"}}), "network.rings.hub: unknown key"),
        (put("network")({"kind": "hypercube", "dimension": 17}), "network.dimension = 17: must be <= 16"),
        (put("network")({"kind": "kautz", "nodes": 4, "degree": 4}), "network: nodes >= 2 and 1 <= degree < nodes"),
        (put("network")({"kind": "kautz", "nodes": 4, "degree": 1}), "network: disconnected"),
    ],
)  # fmt: skip
def test_one_fault_one_message(tmp_path: Path, content: Any, message: str) -> None:
    lines = faults(tmp_path, content)
    assert any(line.startswith(message) or message in line for line in lines), lines
    assert len(lines) == 1, lines


def test_all_faults_at_once(tmp_path: Path) -> None:
    """Six independent faults, of single fields and of fields together, in one go."""
    data = copy.deepcopy(GOOD)
    del data["source"]
    data |= {"chunks": 0, "extra": 1, "name": "?"}
    data["network"]["links"][0]["bandwidth"] = -5
    data["network"]["links"][1]["dst"] = 7
    lines = faults(tmp_path, data)
    assert sorted(line.split(":")[0].split(" =")[0] for line in lines) == [
        "chunks", "extra", "name", "network.links[0].bandwidth", "network.links[1].dst", "source",
    ]  # fmt: skip


def test_long_values_are_shortened(tmp_path: Path) -> None:
    assert all(len(line) < 250 for line in faults(tmp_path, put("chunks")("x" * 100_000)))


@pytest.mark.parametrize(
    ("network", "chunks"),
    [
        ({"kind": "ring", "nodes": 100_000}, 100_000),  # 10^5 * 10^5 chunks to 10^5 nodes: 10^15 transfers
        ({"kind": "ring", "nodes": 60_000}, 2),  # 7.2 * 10^9
        ({"kind": "mesh", "rows": 200, "cols": 200}, 3),  # 4.8 * 10^9
    ],
)
def test_hopeless_sizes_are_refused(tmp_path: Path, network: dict[str, Any], chunks: int) -> None:
    """No method has more than 2^32 transfers (``MAX_TRANSFERS``): better said on reading than by the kernel's
    out-of-memory killer, and before a network of any size is built."""
    lines = faults(tmp_path, put("network")(network) | {"chunks": chunks})
    assert len(lines) == 1
    assert re.search(r"(transfers|nodes), at most \d+ are supported", lines[0])


def test_unreadable_files(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "gone.json", "No such file"), (tmp_path, "directory")):
        with pytest.raises(InputError, match=words):
            synth.read(path)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 6), st.floats(), st.text(max_size=4), st.just("links")),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(
        st.sampled_from(["kind", "nodes", "links", "src", "dst", "rows", "cols", "positions", "rings", "bandwidth"]),
        inner, max_size=5)),
    max_leaves=15,
)  # fmt: skip


@given(path=st.sampled_from([(), ("network",), ("network", "links"), ("network", "links", 1)]), data=st.data())
@settings(max_examples=some(400), deadline=None)
def test_nothing_but_input_errors(path: tuple[Any, ...], data: st.DataObject) -> None:
    """Any value anywhere in the file: an instance or an InputError with at least one fault, nothing else."""
    made: Any = copy.deepcopy(GOOD)
    place = made
    for key in path:
        place = place[key]
    key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = data.draw(ANYTHING)
    try:
        instance = parse(made, XTreeInstance, "x")
    except InputError as error:
        assert error.faults  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(instance, XTreeInstance)
        assert instance.topology.cut_off_pair() is None


def test_round_trip(tmp_path: Path) -> None:
    """What `synth make` writes reads back as the same instance."""
    for parameters in (
        {"network": "equimesh", "rows": "3", "cols": "4", "chunks": "2", "rings": "odd_up,even_up,odd_up,even_up"},
        {"network": "ring", "nodes": "5", "bidirectional": "off", "collective": "allreduce", "latency": "0"},
        {"network": "kautz", "nodes": "6", "degree": "2", "chunk_bytes": "5e3", "bandwidth": "1e9", "name": "k"},
    ):
        made = synth.make("xtree", **parameters)
        path = tmp_path / "made.json"
        path.write_text(made.to_json())
        back = synth.read(path)
        assert back.model_dump() == made.model_dump()
        assert made.sha256 == back.sha256


@pytest.mark.parametrize(
    ("parameters", "messages"),
    [
        ({}, ["network: must be one of line, ring, "]),
        ({"network": "cube"}, ["network = 'cube': must be one of"]),
        ({"network": "links"}, ["network = 'links': must be one of"]),
        ({"network": "mesh"}, ["rows: is missing", "cols: is missing"]),
        ({"network": "mesh", "rows": "x", "cols": "0"}, ["rows = 'x': must be a whole", "cols = '0': must be >= 1"]),
        ({"network": "ring", "nodes": "4", "rows": "2"}, ["rows = '2': unknown parameter"]),
        ({"network": "ring", "nodes": "4", "chunks": "0"}, ["chunks = '0': must be >= 1"]),
        ({"network": "ring", "nodes": "4", "bandwidth": "nan"}, ["bandwidth = 'nan': must be a rate such as 25GB/s"]),
        ({"network": "ring", "nodes": "4", "chunk_bytes": "-1"}, ["chunk_bytes = '-1': must be > 0"]),
        ({"network": "ring", "nodes": "4", "collective": "x"}, ["collective = 'x': must be one of"]),
        ({"network": "ring", "nodes": "4", "name": "a/b"}, ["name = 'a/b'"]),
        ({"network": "ring", "nodes": "1"}, ["network"]),
        ({"network": "equimesh", "rows": "2", "cols": "2", "rings": "up"}, ["rings = 'up': one direction or four"]),
        ({"network": "equimesh", "rows": "2", "cols": "2", "rings": "odd_up,odd_up"}, ["rings = "]),
        ({"network": "mesh", "rows": "2", "cols": "2", "rings": "odd_up"}, ["rings = 'odd_up': unknown parameter"]),
        ({"links": "gone.csv"}, ["links (gone.csv): cannot be read"]),
    ],
)
def test_make_names_every_fault(parameters: dict[str, str], messages: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("xtree", **parameters)
    lines = [line.removeprefix("synth make xtree: ") for line in str(caught.value).splitlines()]
    assert len(lines) == len(messages)
    for line, message in zip(sorted(lines), sorted(messages), strict=True):
        assert line.startswith(message)


def csv_lines(tmp_path: Path, text: str | bytes) -> list[str]:
    path = tmp_path / "links.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    header = str(text).partition("\\n" if isinstance(text, bytes) else "\n")[0]
    keys = {key: "1" for key in ("bandwidth", "latency") if key not in header}  # what a file without columns needs
    with pytest.raises(InputError) as caught:
        synth.make("xtree", **{"links": str(path)}, **keys)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ["needs a header line src,dst"]),
        ("src,dst\n", ["at least one link"]),
        ("0,1\n1,0\n", ["needs a header line"]),
        ("src,dst,speed\n0,1,5\n", ["needs a header line"]),
        ("src\n0\n", ["needs a header line"]),
        (b"\xff\xfe\x00", ["cannot be read"]),
        ("src,dst\n0,x\n1,0\n", ["line 2, dst = 'x': nodes are numbers or names, not both"]),
        ("src,dst\n0,\n1.5,0\n", ["line 2, dst: is missing", "line 3, src = '1.5': nodes are numbers or names"]),
        ("src,dst\n0,1\n\n\n1,y\n", ["line 5, dst = 'y'"]),  # empty lines count when a person looks for line 5
        ("src,dst\n0,1\n1,0,7\n", ["line 3"]),  # more cells than the header has
        ("src,dst,bandwidth\n0,1,fast\n1,0,\n", ["line 2, bandwidth = 'fast': must be a rate"]),
        ("src,dst,bandwidth\n0,1,0\n1,0,-2\n", ["line 2, bandwidth = '0'", "line 3, bandwidth = '-2'"]),
        ("src,dst,latency\n0,1,nan\n1,0,1\n", ["line 2, latency = 'nan'"]),
        ("src,dst\n-1,0\n0,1\n1,0\n", ["line 2, src = '-1': nodes are numbers or names, not both"]),
        ("src,dst\n0,0\n0,1\n1,0\n", ["goes from a node to itself"]),
        ("src,dst\n0,1\n", ["disconnected"]),
        ("src,dst\n1,2\n2,1\n", ["disconnected: node 1 cannot be reached from node 0"]),
        (
            "src,dst\n0,999999999\n999999999,0\n",
            ["line 2, dst = '999999999': must be less", "line 3, src = '999999999'"],
        ),
    ],
)
def test_csv_faults(tmp_path: Path, text: str | bytes, messages: list[str]) -> None:
    lines = csv_lines(tmp_path, text)
    assert len(lines) == len(messages), lines
    for line, message in zip(lines, messages, strict=True):
        assert message in line


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "with the byte-order mark spreadsheets write"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_csv_links(tmp_path: Path, start: bytes, end: bytes) -> None:
    """Columns in any order, empty cells are filled by the key, equal rows are parallel links."""
    path = tmp_path / "links.csv"
    path.write_bytes(start + end.join([b"bandwidth,src,dst", b"1e9,0,1", b",0,1", b"5,1,0", b""]))
    instance = synth.make("xtree", **{"links": str(path), "chunks": "3", "bandwidth": "7GB/s", "latency": "0"})
    assert instance.chunks == 3
    assert instance.topology.bandwidth.tolist() == [1e9, 7e9, 5.0]
    assert (instance.topology.src.tolist(), instance.topology.dst.tolist()) == ([0, 0, 1], [1, 1, 0])
