"""Chakra traces: written, read back by Chakra's own package where it is there, and damaged in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange.by_hand import EVERY, ring_allgather, ring_allreduce, schedule
from exchange.random_transfers import random_transfers

from synth.errors import InputError
from synth.exchange import chakra
from synth.exchange.chakra import faults, transfers
from synth.exchange.chakra.messages import GlobalMetadata, Node, read_messages, write_message
from synth.exchange.transfers import Transfers


@pytest.mark.parametrize("name", EVERY)
def test_round_trip_and_replay(name: str, tmp_path: Path) -> None:
    original = EVERY[name]
    paths = chakra.write(original, tmp_path / "a.b")
    assert [path.name for path in paths] == [f"a.b.{r}.et" for r in range(original.ranks)]
    trace = chakra.read(tmp_path / "a.b")
    assert faults(trace) == []
    found = transfers(trace)
    assert _moves(found) == _moves(original)
    for field in ("name", "collective", "ranks", "root", "part_bytes"):
        assert getattr(found, field) == getattr(original, field)
    for field in ("piece_part", "piece_offset", "piece_bytes"):
        assert np.array_equal(getattr(found, field), getattr(original, field))
    chakra.write(found, tmp_path / "again")
    assert faults(chakra.read(tmp_path / "again")) == []


def _moves(t: Transfers) -> list[tuple[int, int, int, bool]]:
    return sorted(zip(t.piece.tolist(), t.src.tolist(), t.dst.tolist(), t.adds.tolist(), strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_chakras_own_package_reads_the_same(name: str, tmp_path: Path) -> None:
    """The fields by Chakra's schema, and a simulation of ASTRA-sim's rules on them (nothing of our reader): a node is
    issued when what it depends on has ended, a receive ends when the k-th send of its pair, tag and size is issued."""
    schema = pytest.importorskip(
        "chakra.schema.protobuf.et_def_pb2", reason="mlc-chakra is not installed (pip install --no-deps mlc-chakra)"
    )
    original = EVERY[name]
    chakra.write(original, tmp_path / "t")
    ranks: list[dict[int, Any]] = []
    for rank in range(original.ranks):
        metadata, *nodes = _theirs(schema, tmp_path / f"t.{rank}.et")
        assert metadata.version == "0.0.4"
        ranks.append({node.id: node for node in nodes})
        assert len(ranks[-1]) == len(nodes) > 0
    sent: list[tuple[int, int, int, int]] = []
    ended: list[set[int]] = [set() for _ in ranks]
    mailbox: dict[tuple[int, int, int, int], int] = {}
    while True:
        before = sum(map(len, ended))
        for rank, nodes_of in enumerate(ranks):
            for node in nodes_of.values():
                if node.id in ended[rank] or not set(node.data_deps) <= ended[rank]:
                    continue
                values = {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}
                kinds = {a.name: a.WhichOneof("value") for a in node.attr}
                if node.type == schema.COMM_SEND_NODE:
                    assert kinds == dict(
                        comm_type="int64_val", comm_size="int64_val", comm_dst="int32_val", comm_tag="int32_val"
                    )
                    assert values["comm_type"] == 5
                    key = (rank, values["comm_dst"], values["comm_tag"], values["comm_size"])
                    mailbox[key] = mailbox.get(key, 0) + 1
                    sent.append((values["comm_tag"], rank, values["comm_dst"], values["comm_size"]))
                elif node.type == schema.COMM_RECV_NODE:
                    assert values["comm_type"] == 6
                    assert kinds["comm_src"] == "int32_val"
                    key = (values["comm_src"], rank, values["comm_tag"], values["comm_size"])
                    if not mailbox.get(key):
                        continue
                    mailbox[key] -= 1
                else:
                    assert node.type == schema.COMP_NODE
                    assert node.duration_micros == 0
                ended[rank].add(node.id)
        if sum(map(len, ended)) == before:
            break
    assert [len(e) for e in ended] == [len(nodes_of) for nodes_of in ranks]
    assert not any(mailbox.values())
    size = original.piece_bytes
    sent = [(tag % len(size), *move) for tag, *move in sent]
    assert sorted(sent) == sorted((p, s, d, int(size[p])) for p, s, d, _ in _moves(original))


def _theirs(schema: Any, path: Path) -> list[Any]:
    decode = pytest.importorskip("google.protobuf.internal.decoder")._DecodeVarint32
    data, place, found = path.read_bytes(), 0, []
    while place < len(data):
        length, place = decode(data, place)
        found.append((schema.Node if found else schema.GlobalMetadata).FromString(data[place : place + length]))
        place += length
    return found


def test_what_the_nodes_of_a_ring_are(tmp_path: Path) -> None:
    """Three ranks, allreduce, three pieces: rank 0 sends its own piece 2, adds what it gets of piece 1 and sends that
    on, adds piece 0, which is complete then and goes on, as does what comes. Pieces 2 and 1 go over their pair twice:
    the second time their tags are 3 (pieces) more."""
    chakra.write(ring_allreduce(3), tmp_path / "r")
    trace = chakra.read(tmp_path / "r")
    mine = np.flatnonzero(trace.rank == 0)
    seen = [
        ({4: "add", 5: "send", 6: "receive"}[int(trace.kind[k])], int(trace.tag[k]))
        + tuple((trace.dep[trace.dep_start[k] : trace.dep_start[k + 1]]).tolist())
        for k in mine
    ]
    assert seen == [
        ("send", 2),
        ("receive", 1),
        ("add", -1, 1),
        ("send", 1, 2),
        ("receive", 0),
        ("add", -1, 4),
        ("send", 0, 5),
        ("receive", 2),
        ("send", 5, 7),
        ("receive", 4),
    ]


def test_an_idle_rank_has_a_node(tmp_path: Path) -> None:
    """ASTRA-sim stops at a file without a node that depends on none."""
    alone = schedule("broadcast", 1, [], [], root=0)
    chakra.write(alone, tmp_path / "one")
    trace = chakra.read(tmp_path / "one")
    assert trace.kind.tolist() == [4]
    assert faults(trace) == []


def test_a_piece_twice_over_one_pair_has_two_tags(tmp_path: Path) -> None:
    """Rank 0 sends its contribution up and, after the sum came back to it, the sum."""
    moves = [(0, 0, 0, 1, True), (1, 0, 1, 0, False), (2, 0, 0, 1, False)]
    chakra.write(schedule("allreduce", 2, moves, [0]), tmp_path / "t")
    trace = chakra.read(tmp_path / "t")
    assert faults(trace) == []
    assert _moves(transfers(trace)) == sorted((p, s, d, a) for _, p, s, d, a in moves)


def test_the_example_configuration(tmp_path: Path) -> None:
    for name, key, size in (
        ("allreduce", "all-reduce-implementation-custom", 64 * 4),
        ("reduce_scatter", "reduce-scatter-implementation-custom", 64 * 4),
        ("alltoall", "all-to-all-implementation-custom", 64 * 4),
        ("broadcast", "all-gather-implementation-custom", 64),
    ):
        paths = chakra.write_example(EVERY[name], tmp_path / name)
        system = json.loads(paths[0].read_text())
        assert system[key] == [name]
        assert system["preferred-dataset-splits"] == 1
        assert [path.name for path in paths[1:]] == [f"{name}.workload.{r}.et" for r in range(EVERY[name].ranks)]
        _, node = read_messages(paths[1].open("rb"), paths[1].stat().st_size)
        values = {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}
        number = {"allreduce": 0, "reduce_scatter": 7, "alltoall": 6, "broadcast": 2}[name]
        assert (node.type, values) == (7, {"is_cpu_op": False, "comm_type": number, "comm_size": size})


# ------------------------------------------------------------------------------------------------------ damaged traces

Edit = Callable[[dict[int, list[Any]]], None]


def _damaged(tmp_path: Path, original: Transfers, edit: Edit) -> list[str]:
    """What is said of a trace after ``edit`` of its messages (rank -> metadata and nodes)."""
    chakra.write(original, tmp_path / "t")
    files = {}
    for rank in range(original.ranks):
        path = tmp_path / f"t.{rank}.et"
        with path.open("rb") as stream:
            files[rank] = list(read_messages(stream, path.stat().st_size))
    edit(files)
    for rank, messages in files.items():
        with (tmp_path / f"t.{rank}.et").open("wb") as stream:
            for message in messages:
                write_message(stream, message)
    try:
        return [str(fault) for fault in faults(chakra.read(tmp_path / "t"))]
    except InputError as error:
        return [str(fault) for fault in error.faults]


def _set(node: Any, name: str, value: int) -> None:
    attribute = next(a for a in node.attr if a.name == name)
    setattr(attribute, attribute.WhichOneof("value"), value)


def _first(files: dict[int, list[Any]], rank: int, kind: int, tag: int | None = None) -> Any:
    def fits(node: Any) -> bool:
        return node.type == kind and tag in (None, *(a.int32_val for a in node.attr if a.name == "comm_tag"))

    return next(node for node in files[rank][1:] if fits(node))


def _do(*edits: object) -> None:
    """Several edits, or one with a result, as one."""


def _drop(attributes: Any, name: str) -> None:
    del attributes[next(k for k, a in enumerate(attributes) if a.name == name)]


DAMAGE: dict[str, tuple[str, Edit]] = {
    "a receive is gone": ("(send to 1): tag 2: no receive at rank 1 for it", lambda f: _do(f[1].pop())),
    "another size": ("48 bytes, but t.1.et, node", lambda f: _set(_first(f, 0, 5), "comm_size", 48)),
    "both of another size": (
        "48 bytes, but piece 0 has 64",
        lambda f: _do([_set(_first(f, r, k, 0), "comm_size", 48) for r, k in ((0, 5), (1, 6))]),
    ),
    "no size": ("t.2.et, node 0: comm_size is missing", lambda f: _drop(_first(f, 2, 5).attr, "comm_size")),
    "no bytes": ("comm_size = 0 is outside 1..", lambda f: _set(_first(f, 2, 5), "comm_size", 0)),
    "no tag": ("t.2.et, node 0: comm_tag is missing", lambda f: _drop(_first(f, 2, 5).attr, "comm_tag")),
    "a tag beyond ASTRA-sim's": ("is outside 0..499999999", lambda f: _set(_first(f, 2, 5), "comm_tag", 500_000_000)),
    "a tag that is no piece": (
        "sends piece 3, which the rank does not hold",
        lambda f: _do([_set(_first(f, r, k, 0), "comm_tag", 79) for r, k in ((0, 5), (1, 6))]),
    ),
    "a wrong tag": ("no receive at rank 1 for it", lambda f: _set(_first(f, 0, 5), "comm_tag", 3)),
    "to itself": ("comm_dst = 0 is the rank itself", lambda f: _set(_first(f, 0, 5), "comm_dst", 0)),
    "to nobody": ("comm_dst = 4 is outside 0..3", lambda f: _set(_first(f, 0, 5), "comm_dst", 4)),
    "another type of node": ("t.0.et, node 0: type 2", lambda f: setattr(_first(f, 0, 5), "type", 2)),
    "a send that says it is a receive": ("comm_type = 6 is not", lambda f: _set(_first(f, 0, 5), "comm_type", 6)),
    "an id twice": ("t.0.et, node 0: this id is taken", lambda f: setattr(f[0][2], "id", 0)),
    "a dependence on nothing": ("depends on node 99", lambda f: f[0][2].data_deps.append(99)),
    "a circle in a rank": ("waits for itself", lambda f: _first(f, 0, 6, 3).data_deps.append(_first(f, 0, 5, 3).id)),
    "a circle over ranks": (
        "over dependences and messages, for itself",
        lambda f: _do([_first(f, r, 5).data_deps.append(_first(f, r, 6).id) for r in range(4)]),
    ),
    "sent before it has come": (
        "sends piece 3, which the rank does not hold",
        lambda f: _first(f, 0, 5, 3).ClearField("data_deps"),
    ),
    "the last hop is gone": (
        "rank 0: ends without the whole of part 1",
        lambda f: _do(f[3].remove(_first(f, 3, 5, 1)), f[0].remove(_first(f, 0, 6, 1))),
    ),
    "an empty file": ("t.3.et: has no nodes", lambda f: f.update({3: []})),
    "no nodes": ("t.3.et: has no nodes", lambda f: f.update({3: f[3][:1]})),
    "another rank's file": ("says that it is rank 1 of 4, but is rank 0", lambda f: f.update({0: f[1], 1: f[0]})),
    "another collective's file": (
        "t.2.et: is of another collective",
        lambda f: setattr(f[2][0].attr[2], "string_val", "alltoall"),
    ),
    "no collective at all": ("metadata: collective is none of", lambda f: setattr(f[0][0].attr[2], "string_val", "x")),
    "no table of pieces": ("metadata: piece_part", lambda f: _drop(f[0][0].attr, "piece_bytes")),
    "a part that there is not": (
        "piece 1: its part is out of range",
        lambda f: f[0][0].attr[7].int64_list.values.__setitem__(1, 4),
    ),
    "pieces that overlap": (
        "piece 1: it and its neighbours",
        lambda f: f[0][0].attr[7].int64_list.values.__setitem__(1, 0),
    ),
    "piece sizes that overflow": (
        "piece 1: its bytes is out of range",
        lambda f: f[0][0].attr[9].int64_list.values.__setitem__(1, 2**63 - 1),
    ),
    "a root where there is none": ("metadata: root is 2", lambda f: setattr(f[0][0].attr[5], "int64_val", 2)),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_traces_are_refused_with_the_place(name: str, tmp_path: Path) -> None:
    message, edit = DAMAGE[name]
    found = _damaged(tmp_path, ring_allgather(4), edit)
    assert any(message in fault for fault in found), found


SUMS: dict[str, tuple[str, Edit]] = {
    "added twice": ("a contribution that is in it already", lambda f: f[1][6].data_deps.append(2)),
    "not added": ("stores an incomplete sum", lambda f: _first(f, 0, 4).ClearField("data_deps")),
    "sent before it is added": (
        "incomplete sum",
        lambda f: _first(f, 0, 5, 1).data_deps.__setitem__(0, 1),
    ),
    "two of one piece": (
        "depends on several nodes that hold piece 1",
        lambda f: _first(f, 0, 5, 1).data_deps.append(1),
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_damaged_sums_are_refused_with_the_place(name: str, tmp_path: Path) -> None:
    """Rank 0 of the ring of three: nodes 1, 2 are piece 1 received and added, 4, 5 piece 0, 9 the sum of piece 1."""
    message, edit = SUMS[name]
    found = _damaged(tmp_path, ring_allreduce(3), edit)
    assert any(message in fault for fault in found), found


def test_open_order_within_a_tag(tmp_path: Path) -> None:
    """Two sends of one tag and pair without an order between them: which receive meets which?"""
    moves = [(0, 0, 0, 1, True), (1, 0, 1, 0, False), (2, 0, 0, 1, False)]

    def edit(files: dict[int, list[Any]]) -> None:
        for rank, kind in ((0, 5), (1, 6)):
            _set(_first(files, rank, kind, 1), "comm_tag", 0)
        for node in files[0][1:]:
            node.ClearField("data_deps")

    found = _damaged(tmp_path, schedule("allreduce", 2, moves, [0]), edit)
    assert any("which meets which is open" in fault for fault in found), found


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80", "its length is cut off"),
        (b"\xff\xff\xff\xff\xff\xff\x01", "its length is cut off or too long"),
        (b"\x05abc", "5 bytes long, but the file ends before"),
        (b"\x03\xff\xff\xff", "no GlobalMetadata"),
        (b"\x00\x03\xff\xff\xff", "message 1 at byte 1 is no Node"),
        (b"\x00\x02\x08\x05\x7f", "message 2 at byte 4: 127 bytes long"),
    ],
)
def test_files_that_are_no_traces(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.0.et").write_bytes(data)
    with pytest.raises(InputError, match=message):
        chakra.read(tmp_path / "x")


def test_which_files_belong_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        chakra.read(tmp_path / "t")
    chakra.write(ring_allgather(4), tmp_path / "t")
    with pytest.raises(InputError, match=r"t\.3\.et is there already, but this trace has ranks 0 to 2"):
        chakra.write(ring_allgather(3), tmp_path / "t")
    (tmp_path / "t.1.et").unlink()
    with pytest.raises(InputError, match=r"t\.1\.et is missing"):
        chakra.read(tmp_path / "t")
    (tmp_path / "t.999999999.et").write_bytes(b"")
    with pytest.raises(InputError, match="is missing"):
        chakra.read(tmp_path / "t")


def test_traces_of_others_are_checked_without_a_collective(tmp_path: Path) -> None:
    """Nothing says what the tags stand for: messages and dependences are checked, no schedule is made of it."""
    for rank in range(2):
        with (tmp_path / f"t.{rank}.et").open("wb") as stream:
            write_message(stream, GlobalMetadata(version="1"))
            for number, (kind, name) in enumerate(((5, "comm_dst"), (6, "comm_src"))):
                node = Node(id=number, type=kind)
                for key, value in (("comm_size", 8), (name, 1 - rank), ("comm_tag", 0)):
                    node.attr.add(name=key, int64_val=value)
                write_message(stream, node)
    trace = chakra.read(tmp_path / "t")
    assert faults(trace) == []
    with pytest.raises(InputError, match="does not say what the tags stand for"):
        transfers(trace)


@pytest.mark.parametrize("seed", range(40))
def test_random_schedules_come_back(seed: int, tmp_path: Path) -> None:
    """Every collective five times: pieces of unequal bytes, overlapping moves, relays, exchanges, waste."""
    original = random_transfers(seed)
    chakra.write(original, tmp_path / "t")
    trace = chakra.read(tmp_path / "t")
    assert faults(trace) == []
    assert _moves(transfers(trace)) == _moves(original)


@pytest.mark.slow
def test_a_million_transfers_in_two_gigabytes(tmp_path: Path) -> None:
    """Written in a process of its own whose peak memory is asked."""
    import subprocess
    import sys

    code = f"""
import resource, pathlib
from exchange.by_hand import ring_allgather
from synth.exchange import chakra
t = ring_allgather(64, split=250)
assert len(t.piece) == 1_008_000
chakra.write(t, pathlib.Path({str(tmp_path / "big")!r}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    root = Path(__file__).resolve().parents[2]
    paths = {"PYTHONPATH": f"{root}:{root / 'tests'}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=paths, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2000  # MiB
