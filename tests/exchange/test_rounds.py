"""Schedules as rounds: what each message carries is kept, and a file is believed only after its replay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synth.errors import InputError
from synth.exchange.rounds import (
    Entry,
    Rounds,
    Table,
    demand_right,
    in_rounds,
    joined,
    read,
    read_table,
    write,
    write_table,
)
from synth.exchange.rounds.folder import FILE
from synth.exchange.transfers import Transfers


def ring(ranks: int) -> Transfers:
    """Allreduce in a ring, a piece a rank: n - 1 rounds of sums, n - 1 of copies."""
    rows = [(t, r, (r - t) % ranks) for t in range(2 * ranks - 2) for r in range(ranks)]
    step, src, piece = np.array(rows, dtype=np.int64).T
    one = np.ones(ranks, dtype=np.int64)
    return Transfers(
        "ring", "allreduce", ranks, None, ranks * 6, one * 0, np.arange(ranks) * 6, one * 6, piece, src,
        (src + 1) % ranks, step < ranks - 1, step.astype(float), step + 1.0, -np.ones_like(src),
    )  # fmt: skip


def test_a_ring_is_as_many_rounds_as_steps_and_is_right(tmp_path: Path) -> None:
    found = in_rounds(ring(4))
    assert (found.rounds, len(found.round), found.units) == (6, 24, 4)
    write(found, tmp_path / "a.json")
    again = read(tmp_path / "a.json")
    assert all(np.array_equal(getattr(again, name), getattr(found, name)) for name in ("round", "src", "dst", "piece"))


def test_two_that_send_each_other_their_sums_do_so_in_one_round() -> None:
    t = ring(2).taken([0, 1])
    both = replace(t, piece=np.zeros(2, dtype=np.int64), piece_part=np.zeros(1, dtype=np.int64),
                   piece_offset=np.zeros(1, dtype=np.int64), piece_bytes=np.array([12]))  # fmt: skip
    found = in_rounds(both)
    assert found.rounds == 1
    demand_right(found)


def test_pieces_that_the_same_messages_carry_are_one_wherever_they_lay() -> None:
    """Twelve pieces of three sizes, that of rank r every fourth: the ring of four equal pieces once more."""
    found = in_rounds(ring(4))
    sizes = np.repeat([1, 2, 3], 4)
    messages = np.flatnonzero(np.ones((24, 3))) // 3
    names = ("round", "src", "dst", "adds")
    scattered = replace(
        found, units=24, part=sizes * 0, offset=np.cumsum(sizes) - sizes, size=sizes,
        piece=(found.piece[:, None] + 4 * np.arange(3)).ravel(),
        **{name: getattr(found, name)[messages] for name in names},
    )  # fmt: skip
    demand_right(scattered)
    again = joined(scattered)
    demand_right(again)
    assert (again.units, len(again.part), len(again.round)) == (4, 4, 24)
    assert all(np.array_equal(getattr(again, name), getattr(found, name)) for name in names)


@pytest.mark.parametrize("row", range(0, 24, 5))
def test_a_ring_that_lacks_a_message_or_adds_where_it_should_copy_is_refused(row: int) -> None:
    found = in_rounds(ring(4))
    keep = np.arange(24) != row
    names = ("round", "src", "dst", "piece", "adds")
    with pytest.raises(InputError):
        demand_right(replace(found, **{name: getattr(found, name)[keep] for name in names}))
    with pytest.raises(InputError):
        demand_right(replace(found, adds=np.where(keep, found.adds, ~found.adds)))


def _with(data: dict, where: str, value: object) -> dict:
    *path, last = where.split(".")
    inner = data
    for key in path:
        inner = inner[key]
    inner[last] = value
    return data


@pytest.mark.parametrize(("where", "value", "said"), [
    ("ranks", 2**40, "ranks"), ("ranks", float("nan"), "ranks"), ("units", 0, "units"), ("root", 1, "root"),
    ("collective", "gossip", "collective"), ("pieces.size", [1, 2, 3], "size"), ("messages.src", ["a"] * 24, "src"),
    ("messages.dst", [-1] * 24, "dst"), ("messages.piece", [2**63] * 24, "piece"), ("pieces", [], "pieces"),
    ("messages.round", list(range(23, -1, -1)), "round"), ("pieces.offset", [0, 0, 0, 0], "part 0"),
])  # fmt: skip
def test_a_hostile_file_is_named_with_its_fault(tmp_path: Path, where: str, value: object, said: str) -> None:
    path = tmp_path / "a.json"
    write(in_rounds(ring(4)), path)
    path.write_text(json.dumps(_with(json.loads(path.read_text()), where, value)))
    with pytest.raises(InputError, match=said) as caught:
        read(path)
    assert "a.json" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 5000, '{"format": "synth-rounds/1"}'])
def test_what_is_no_file_of_rounds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError):
        read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("collective", "ranks", "pieces", "said"),
    [
        ("alltoall", 65536, 1, "4,294,967,296 parts of alltoall are too many"),
        ("allreduce", 65536, 200, "200 pieces, each of 65,536 contributions at as many, are too many"),
        ("allgather", 4096, 1000, "part 1000: nobody sends it"),
    ],
)
def test_rounds_of_many_ranks_are_refused_at_once(collective: str, ranks: int, pieces: int, said: str) -> None:
    whole = collective == "allreduce"
    zero, each = np.zeros(pieces, dtype=np.int64), np.arange(pieces)
    none, never = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    part, offset, units = (zero, each, pieces) if whole else (each, zero, 1)
    rounds = Rounds("x", collective, ranks, None, units, part, offset, zero + 1, none, none, none, none, never)
    with pytest.raises(InputError) as raised:
        demand_right(rounds)
    assert said in str(raised.value)
    assert len(raised.value.faults) <= 3


@pytest.mark.parametrize("value", ["null", "3", "[]", "NaN"])
def test_texts_are_texts_and_keys_stand_once(value: str, tmp_path: Path) -> None:
    write(in_rounds(ring(2)), tmp_path / "a.json")
    file = tmp_path / write_table(Table(tmp_path, "m", (Entry("allreduce", 2, 1, 2, "a.json"),))).name
    table = file.read_text()
    for old, new in (('"m"', value), ('"machine"', '"machine": "x", "machine"'), ('"method":""', f'"method":{value}')):
        file.write_text(table.replace(": ", ":").replace(old, new))
        assert file.read_text() != table.replace(": ", ":")
        with pytest.raises(InputError, match=r"torch\.json"):
            read_table(tmp_path)
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace('"ring"', value))
    with pytest.raises(InputError, match=r"a\.json: name is no text"):
        read(tmp_path / "a.json")


def test_a_table_finds_by_collective_ranks_and_size(tmp_path: Path) -> None:
    rows = (Entry("allreduce", 4, 1, 9, "a"), Entry("allreduce", 4, 10, 20, "b"), Entry("reduce", 4, 1, 9, "c"))
    write_table(Table(tmp_path, "m", rows))
    table = read_table(tmp_path)
    found = [table.find(*asked) for asked in (("allreduce", 4, 9), ("allreduce", 4, 10), ("allreduce", 8, 9))]
    assert [one and one.file for one in found] == ["a", "b", None]


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "", "..", "a/b", 3])
def test_a_table_names_files_of_its_folder_alone(tmp_path: Path, name: object) -> None:
    write_table(Table(tmp_path, "m", (Entry("allreduce", 4, 1, 9, "a"),)))
    data = json.loads((tmp_path / FILE).read_text())
    data["table"][0]["file"] = name
    (tmp_path / FILE).write_text(json.dumps(data))
    with pytest.raises(InputError, match="file"):
        read_table(tmp_path)
