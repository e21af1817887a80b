"""`synth run` with processes: right schedules end with the right data, whatever breaks them shows in the data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import flat, run
from examples import some
from exchange.by_hand import schedule
from exchange.possession import needs
from exchange.random_transfers import random_transfers

import synth
from synth.exchange import transfers_csv
from synth.exchange.record_export import moves_of
from synth.exchange.transfers import Transfers
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.program import WORD
from synth.ranks.words import TransferNames, faults

ROOT = Path(__file__).resolve().parents[3]
RELAY = ROOT / "results/published/optree/mesh-2x2x2-w1/relay.json"


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew() as found:
        yield found


def test_random_schedules_of_every_collective_end_right(crew: Crew) -> None:
    """Integers and floats; what arrives is counted and is what the schedule sends, pair by pair."""
    for seed in range(some(80)):
        t = random_transfers(seed)
        done = crew.run(Job(program_of(t), seed, real=seed % 3 == 0, repeat=2))
        assert (len(done.seconds), done.wrong, done.died, done.blocked) == (2, [], None, []), t.name
        sent = np.zeros((t.ranks, t.ranks), dtype=np.int64)
        np.add.at(sent, (t.src, t.dst), np.maximum(1, np.rint(t.piece_bytes[t.piece] / WORD)).astype(np.int64) * WORD)
        assert np.array_equal(done.received, sent)


def test_copies_that_take_no_time_are_no_circle(crew: Crew) -> None:
    """A switch's sum as moves: each of three ranks adds up one third and hands it to the others at the very moment when
    theirs come. Whoever took those first would wait for all."""
    rows = [(0, k, src, k, True) for k in range(3) for src in range(3) if src != k]
    rows += [(1, k, k, dst, False) for k in range(3) for dst in range(3) if dst != k]
    t = schedule("reduce_scatter", 3, rows, [0, 1, 2])
    once = replace(
        t, collective="allreduce", part_bytes=192, piece_part=np.zeros(3, dtype=np.int64),
        piece_offset=np.arange(3) * 64, end_s=np.ones(len(t.piece)),
    )  # fmt: skip
    assert (once.start_s == once.end_s).sum() == 6
    done = crew.run(Job(program_of(once), 0, patience_s=5))
    assert (done.wrong, done.died, done.blocked) == ([], None, [])


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "keys"),
    [
        ("in_network", {"machine": "dgx-h100-nvls", "gpus": "4", "bytes": "1MiB"}),
        ("nvls", {"machine": "dgx-h100-nvls", "gpus": "3", "boxes": "2", "bytes": "64KiB"}),
        ("sharp", {"network": "fat_tree", "leaves": "2", "hosts": "3", "spines": "2", "multicast": "on", "adds": "on",
                   "bytes": "10"}),
        ("steiner", {"network": "star", "nodes": "5", "multicast": "on", "adds": "on", "bytes": "1MiB"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("collective", ["allreduce", "reduce", "broadcast"])
def test_sums_and_copies_of_switches(method: str, keys: dict[str, str], collective: str, crew: Crew) -> None:
    """Hubs, in-trees and out-trees over one switch and several."""
    record = synth.solve(synth.make("fabric", collective=collective, **keys), method, time_limit=20)
    if record.value is None:
        assert record["termination"] == "unsupported"
        assert collective != "allreduce"
        return
    t = moves_of(record)
    done = crew.run(Job(program_of(t, 1e-2), 0, patience_s=5))
    assert faults(program_of(t, 1e-2), done, TransferNames(t), Data(0, t.ranks)) == []


@pytest.mark.long
def test_a_record_and_its_table(tmp_path: Path) -> None:
    record = json.loads(run("run", RELAY, "--json", "--repeat", 2, cwd=tmp_path).stdout)
    assert (record["correct"], record["transfers"], record["ranks"], record["faults"]) == (True, 56, 8, [])
    run("export", RELAY, "-o", "moves.csv", cwd=tmp_path)
    table = json.loads(run("run", "moves.csv", "--collective", "allgather", "--json", cwd=tmp_path).stdout)
    assert table["correct"]
    assert table["bytes_moved"] == record["bytes_moved"]
    whole = (tmp_path / "moves.csv").read_text().splitlines()
    (tmp_path / "less.csv").write_text("\n".join(whole[:4] + whole[5:]))
    less = run("run", "less.csv", "--collective", "allgather", cwd=tmp_path, code=1).stdout
    assert "rank 0, piece 3 (part 3, offset 0): 524,288 of 524,288 words are wrong" in flat(less)


def first_needed(t: Transfers) -> int:
    """A transfer to a rank that needs the piece, nothing else bringing it there."""
    for k in range(len(t.piece)):
        same = (t.piece == t.piece[k]) & (t.dst == t.dst[k])
        if same.sum() == 1 and needs(t.collective, t.ranks, t.root, int(t.piece_part[t.piece[k]]), int(t.dst[k])):
            return k
    return -1


def test_a_dropped_transfer_shows_at_its_receiver(crew: Crew) -> None:
    seen = 0
    for seed in range(some(60)):
        t = random_transfers(seed)
        k = first_needed(t)
        if k < 0:
            continue
        seen += 1
        done = crew.run(Job(program_of(t.taken(np.arange(len(t.piece)) != k)), seed))
        assert int(t.dst[k]) in {one.rank for one in done.wrong}, (t.name, k)
    assert seen > some(60) // 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["moves.csv"], "moves.csv: a table does not say of which collective it is: name it with --collective"),
        (["moves.csv", "--collective", "allgather", "--ranks", 3], "--ranks = '3': the schedule has 4 ranks"),
        (["moves.csv", "--collective", "allgather", "--bytes", 10], "--bytes: 10 bytes are too few for 4 pieces"),
        (["moves.csv", "--collective", "gossip"], "--collective = 'gossip': one of allgather,"),
        (["moves.csv", "--collective", "allgather", "--root", 1], "--root = 1: allgather has no root"),
        (["absent.json"], "absent.json: "),
        (["moves.csv", "--with", "pigeons", "--collective", "allgather"], "--with = 'pigeons': must be one of"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words: list[object], said: str, tmp_path: Path) -> None:
    from exchange.by_hand import ring_allgather

    transfers_csv.write(ring_allgather(4), tmp_path / "moves.csv")
    error = run("run", *words, cwd=tmp_path, code=2).stderr
    assert len(error.splitlines()) == 1
    assert said in error
