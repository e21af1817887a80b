"""Algorithms that came in as schedules: times worked out by hand, every small algorithm replayed, what cannot be."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange.small_algorithms import SMALL, edited, xml
from models.fabric.small_machines import machine

import synth
from synth.errors import InputError, UnsupportedError
from synth.exchange.algorithm import Algorithm
from synth.exchange.moves_from_algorithm import raised
from synth.exchange.msccl_xml import read_stream
from synth.exchange.record_export import format_of, transfers_of, write_schedule
from synth.records.record import read as load_record
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import SHARED_OUT
from synth_models.fabric.scheduling.given_moves import from_algorithm, from_transfers

SAMPLE = Path(__file__).resolve().parents[4] / "shared/data/peers/msccl-amd-32.xml"


def read(text: str) -> Algorithm:
    return read_stream(io.BytesIO(text.encode()), "small.xml").algorithm


def full(ranks: int, latency: float = 0.0, **own: Any) -> FabricInstance:
    """Every rank joined to every other at one byte a second."""
    links = [(u, v, 1.0, latency) for u in range(ranks) for v in range(ranks) if u != v]
    return machine(ranks, links, **own)


def instance_for(algorithm: Algorithm, part: int, latency: float = 0.0) -> FabricInstance:
    size = part * (algorithm.ranks if algorithm.collective in SHARED_OUT else 1)
    own = {} if algorithm.root is None else {"root": algorithm.root}
    return full(algorithm.ranks, latency, collective=algorithm.collective, bytes=size, **own)


def seconds(instance: FabricInstance, algorithm: Algorithm) -> float:
    verdict = check_schedule(instance, from_algorithm(instance, algorithm))
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


# Links of 1 byte/s and 2 s, parts of 4 bytes: a chunk of 4 bytes arrives 6 s after it is sent, two of 2 bytes each 4 s
# and 6 s after. Rings of three: two hops of a part, 12 s; the sum around the ring takes four hops of a third of 6 bytes
# (part = all the data), each 2 + 2 s.
TIMES = {
    "allgather-out": (4, 6), "allgather-in": (4, 6), "allgather-ring": (4, 12), "allgather-two-blocks": (4, 12),
    "reduce_scatter-out": (4, 6), "reduce_scatter-in": (4, 6), "reduce_scatter-ring": (4, 12),
    "allreduce-out": (4, 8), "allreduce-in": (4, 8), "allreduce-chain": (4, 24), "allreduce-ring": (6, 16),
    "alltoall-out": (4, 6), "alltoall-in": (4, 6), "broadcast-out": (4, 12), "broadcast-in": (4, 6),
    "reduce-out": (4, 6), "reduce-in": (4, 6), "gather-out": (4, 6), "gather-in": (4, 6), "scatter-out": (4, 6),
    "scatter-in": (4, 6),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_times_by_hand(name: str) -> None:
    part, time = TIMES[name]
    algorithm = read(SMALL[name])
    instance = instance_for(algorithm, part, 2.0)
    if algorithm.collective == "alltoall":  # what a rank sends, its own part included
        assert instance.bytes == part * algorithm.ranks
    assert seconds(instance, algorithm) == time


@pytest.mark.parametrize("name", SMALL)
def test_moves_are_those_of_the_messages(name: str) -> None:
    """As many transfers as chunks are sent; pieces cover the parts that move; a rank that forwards has received."""
    algorithm = read(SMALL[name])
    found = raised(algorithm, 7)
    moves = found.transfers
    sends = [
        k in ("s", "rcs", "rrs", "rrcs")
        for k in np.array(["s", "r", "cpy", "re", "rrc", "rcs", "rrs", "rrcs", "nop"])[algorithm.kind]
    ]
    assert len(moves.src) == int(algorithm.count[np.array(sends)].sum())
    for part in np.unique(moves.piece_part):
        mine = moves.piece_part == part
        assert moves.piece_bytes[mine].sum() == 7
        assert np.array_equal(moves.piece_offset[mine], np.cumsum(moves.piece_bytes[mine]) - moves.piece_bytes[mine])
    assert np.all(moves.start_s < moves.end_s)
    for i in range(len(moves.src)):
        for j in found.wait[found.wait_start[i] : found.wait_start[i + 1]]:
            assert j < i
            assert moves.dst[j] == moves.src[i]
            assert moves.end_s[j] <= moves.start_s[i]
    instance = instance_for(algorithm, 7)
    assert check_schedule(instance, from_transfers(instance, moves)).faults == []  # the data alone says what waits


def test_the_thread_blocks_order_is_kept() -> None:
    """Gpu 0 has everything and could send both parts at once; its one thread block for gpu 1 waits for gpu 2's message
    before it sends its second chunk: 2 x 4 s instead of 4 s, links of 1 byte/s and no latency."""
    text = xml("allgather", 3, 3, True, """
        gpu 0 1 3 0
        tb 1 2 0: r >o2; s o0
        tb 2 -1 1: s o0
        tb -1 1 1: r >o1
        gpu 1 1 3 0
        tb 0 0 0: r >o0
        tb 2 -1 0: s o1
        tb 0 -1 1: s o1
        tb -1 2 1: r >o2
        gpu 2 1 3 0
        tb 0 -1 0: s o2
        tb 1 -1 1: s o2
        tb -1 0 1: r >o0
        tb -1 1 0: r >o1""")  # fmt: skip
    algorithm = read(text.replace('nchannels="1"', 'nchannels="2"'))
    instance = instance_for(algorithm, 4)
    assert seconds(instance, algorithm) == 8
    verdict = check_schedule(instance, from_transfers(instance, raised(algorithm, 4).transfers))
    assert verdict.value == 4


def test_channels_share_parallel_links_and_a_missing_link_is_gone_around() -> None:
    """Two links from 0 to 1: two channels of 4 bytes each take 4 s, not 8. From 1 back to 0 only over 2: 8 s."""
    links = [(0, 1, 1.0, 0.0), (0, 1, 1.0, 0.0), (1, 2, 1.0, 0.0), (2, 0, 1.0, 0.0)]
    instance = machine(3, links, collective="broadcast", bytes=8, ranks=[0, 1], relay=True)
    text = xml("broadcast", 2, 2, True, """
        gpu 0 2 2 0
        tb 1 -1 0: s i0
        tb 1 -1 1: s i1
        gpu 1 2 2 0
        tb -1 0 0: r >o0
        tb -1 0 1: r >o1""")  # fmt: skip
    assert seconds(instance, read(text)) == 4
    back = machine(3, links, collective="allgather", bytes=8, ranks=[0, 1], relay=True)
    assert seconds(back, read(SMALL["allgather-out"])) == 8
    sums = machine(3, links, collective="allreduce", bytes=8, ranks=[0, 1], relay=True)
    with pytest.raises(UnsupportedError, match="no direct route joins ranks 1 and 0"):
        from_algorithm(sums, read(SMALL["allreduce-in"]))


def test_what_is_not_for_the_instance() -> None:
    ring = read(SMALL["allgather-ring"])
    with pytest.raises(InputError, match="allgather among 3 gpus, the instance asks for allgather among 2 ranks"):
        from_algorithm(full(2, collective="allgather", bytes=4), ring)
    with pytest.raises(InputError, match="the instance asks for alltoall among 3 ranks"):
        from_algorithm(full(3, collective="alltoall", bytes=6), ring)
    with pytest.raises(InputError, match="cannot be cut into 2 chunks"):
        from_algorithm(full(2, collective="allgather", bytes=2), read(SMALL["allgather-in"]))
    with pytest.raises(InputError, match="the moves have rank 1, the instance node 0"):
        from_algorithm(full(2, collective="broadcast", bytes=4), read(SMALL["broadcast-in"]))
    with pytest.raises(InputError, match="deadlock"):
        from_algorithm(
            full(3, collective="allgather", bytes=6),
            read(edited(SMALL["allgather-two-blocks"], 0, 1, 0, depid=1, deps=0)),
        )
    own = edited(SMALL["alltoall-out"], 0, 0, 0, srcoff=0)
    with pytest.raises(InputError, match="must end with"):
        from_algorithm(full(2, collective="alltoall", bytes=4), read(own))


def test_the_method(tmp_path: Path) -> None:
    """A record of it is checked like any other; without a file it says what it needs."""
    path = tmp_path / "ring.xml"
    path.write_text(SMALL["allgather-ring"])
    instance = full(3, collective="allgather", bytes=12)
    record = synth.solve(instance, "imported", options={"file": str(path)}, results=tmp_path)
    assert record.value == 8
    assert synth.check(record, instance).ok
    nothing = synth.solve(instance, "imported")
    assert nothing["termination"] == "unsupported"
    assert "file=FILE.xml" in nothing["message"]


@pytest.mark.long
def test_an_exported_schedule_comes_back_about_as_quick(tmp_path: Path) -> None:
    """The ring on a DGX-1, out as XML and as a plan, and in again."""
    instance = synth.make("fabric", machine="dgx1", collective="allreduce", bytes="8MiB")
    ring = synth.solve(instance, "ring")
    assert ring.value is not None
    moves = transfers_of(ring)
    for name, file, slower in (("msccl-xml", "ring.xml", 1.001), ("mscclpp", "ring.json", 1.1)):
        path = tmp_path / file
        write_schedule(moves, format_of(name, path), path)
        record = synth.solve(instance, "imported", options={"file": str(path)})
        assert record.ok
        assert record.value is not None
        assert record.value <= ring.value * slower  # chunks are a little uneven; a plan names no parallel links


def recorded(instance: Any, folder: Path) -> str:
    """The address of a record of ``direct``, whose instance lies in a file."""
    path = folder / "instance.json"
    path.write_text(instance.to_json())
    return str(synth.solve(synth.read(path), "direct", results=folder).path)


@pytest.mark.parametrize(
    ("collective", "mirror"),
    [("reduce", "broadcast"), ("reduce_scatter", "allgather"), ("gather", "scatter"), ("scatter", "gather")],
)
def test_a_mirrored_record_backwards(tmp_path: Path, collective: str, mirror: str) -> None:
    """On a DGX-1, whose links come in equal opposite pairs, it takes exactly as long."""
    there = synth.make("fabric", machine="dgx1", collective=mirror, bytes="64KiB")
    file = recorded(there, tmp_path)
    back = synth.make("fabric", machine="dgx1", collective=collective, bytes="64KiB")
    own = synth.solve(back, "imported", options={"file": file})
    assert own.ok
    assert own.value == load_record(file).value


def test_records_that_are_no_mirror(tmp_path: Path) -> None:
    """Another collective, other roots, or links without one back."""
    one_way = [(0, 1, 1.0, 0.0), (1, 2, 1.0, 0.0), (2, 0, 1.0, 0.0)]
    for back, there, words in (
        (full(3, collective="reduce", bytes=2), full(3, collective="scatter", bytes=3), "origins and goals exchanged"),
        (full(3, collective="reduce", bytes=2, root=1), full(3, collective="broadcast", bytes=2), "goals exchanged"),
        (machine(3, one_way, collective="reduce", bytes=2), machine(3, one_way, collective="broadcast", bytes=2),
         "without an equal one back"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            synth.solve(back, "imported", options={"file": recorded(there, tmp_path)})


@pytest.mark.skipif(not SAMPLE.exists(), reason="needs ../shared/data/peers/msccl-amd-32.xml")
def test_the_published_sample_on_two_boxes_of_sixteen() -> None:
    """It is no faster than the bound, and its record holds."""
    instance = synth.make("fabric", machine="amd16", boxes=2, collective="allgather", bytes="32MiB")
    record = synth.solve(instance, "imported", options={"file": str(SAMPLE)})
    assert record.ok
    bound = synth.solve(instance, "bound", time_limit=20)
    assert record.value is not None
    assert bound.bound is not None
    assert record.value > bound.bound
