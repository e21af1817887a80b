"""Moves that a user states, on machines: routes, waits and start times that are found, and those that are given."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from models.fabric.small_machines import machine

import synth
from synth.instance import Instance
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

PAGE = Path(__file__).resolve().parents[3] / "models/site/pages/start/algorithm.md"
FAST = {"bandwidth": "50GB/s", "latency": "1us"}


def value(moves: synth.Moves) -> float:
    """Seconds by the replay, which finds no fault."""
    record = synth.solve(moves.instance, lambda instance: moves)
    assert record["verified"]["faults"] == []
    assert record.value is not None
    return record.value


def faults(moves: synth.Moves) -> list[str]:
    with pytest.raises(synth.InputError) as error:
        moves.schedule()
    return [str(fault) for fault in error.value.faults]


def test_the_pages_rings_on_a_torus_are_those_of_the_reference() -> None:
    """The page's own code: two cycles of all 32 edges, each both ways round, two chunks each. That is what `ring` finds
    by itself, and takes as long."""
    [block] = re.findall(r"```python title=\"torus.py\"\n(.*?)```", PAGE.read_text(), re.DOTALL)
    own: dict[str, Any] = {}
    exec(block, own)
    instance = synth.make("fabric", network="torus", rows=4, cols=4, bytes="16MiB", **FAST)
    moves = own["rings"](instance)
    sent = {(move.source, move.target) for move in moves.stated}
    assert len(sent) == 64
    assert all((v, u) in sent for u, v in sent)
    assert value(moves) == synth.solve(instance, "ring").value


def test_a_broadcast_tree() -> None:
    """0 to 1 and 2 on links of its own, 1 on to 3: twice (1 us + 1 MB / 50 GB/s)."""
    instance = synth.make("fabric", network="full", nodes=4, collective="broadcast", bytes=1_000_000, **FAST)
    moves = synth.Moves(instance)
    moves.send(1, 3)  # stated before what brings it
    moves.send(0, 1)
    moves.send(0, 2)
    assert value(moves) == pytest.approx(2 * (1e-6 + 20e-6), rel=1e-12)


def test_an_alltoall_by_routes() -> None:
    """Four ranks behind one switch: each of 12 blocks over it, three a rank, one after the other on 25 GB/s."""
    instance = synth.make("fabric", network="star", nodes=4, collective="alltoall", bytes=4_000_000, **FAST)
    assert isinstance(instance, FabricInstance)
    [hub] = [v for v in range(instance.machine.nodes) if v not in instance.members]
    net = instance.machine.network
    number = {ends: e for e, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))}
    found = []
    for given in ({"via": [hub]}, {"via": [instance.machine.names[hub]]}, {}, None):
        moves = synth.Moves(instance)
        for ahead in (1, 2, 3):
            for k in range(4):
                goal = (k + ahead) % 4
                links = {"links": [number[k, hub], number[hub, goal]]} if given is None else given
                moves.send(k, goal, (k, goal), **links)
        found.append(value(moves))
    assert len(set(found)) == 1
    assert found[0] == synth.solve(instance, "direct").value


def test_over_ranks_a_piece_is_stored_and_sent_on() -> None:
    """On a line of three what goes from end to end comes by the middle too: no other move is needed."""
    instance = synth.make("fabric", network="line", nodes=3, collective="broadcast", bytes=1_000_000, **FAST)
    for via in ((), (1,)):
        moves = synth.Moves(instance)
        moves.send(0, 2, via=via)
        assert value(moves) == pytest.approx(2 * 21e-6, rel=1e-12)


def ring_allreduce(instance: Instance, n: int) -> synth.Moves:
    """Piece k is summed up from rank k + 1 around to k, and its sum goes the same way on."""
    moves = synth.Moves(instance, pieces=n)
    for step in range(2 * n - 2):
        for k in range(n):
            at = k + 1 + step
            moves.send(at % n, (at + 1) % n, piece=k, adds=step < n - 1)
    return moves


def test_a_ring_allreduce() -> None:
    """Six steps of a quarter each on the ring of four: 6 (1 us + 0.25 MB / 50 GB/s). In any order of the list too:
    sums wait for sums, copies for the whole sum."""
    instance = synth.make("fabric", network="ring", nodes=4, collective="allreduce", bytes=1_000_000, **FAST)
    moves = ring_allreduce(instance, 4)
    assert value(moves) == pytest.approx(6 * (1e-6 + 5e-6), rel=1e-12)
    random.Random(1).shuffle(moves.stated)
    assert value(moves) == pytest.approx(6 * (1e-6 + 5e-6), rel=1e-12)


def test_one_function_for_both_families() -> None:
    """The same ring allreduce by shares: 6 steps, of 1 us + 0.25 MB / 50 GB/s each in one of the families."""

    def around(instance: Any) -> synth.Moves:
        moves = synth.Moves(instance)
        for step in range(6):
            for k in range(4):
                moves.send((k + 1 + step) % 4, (k + 2 + step) % 4, k, adds=step < 3)
        return moves

    asked = {"network": "ring", "nodes": 4, "collective": "allreduce"}
    assert value(around(synth.make("fabric", bytes=1_000_000, **asked, **FAST))) == pytest.approx(36e-6, rel=1e-12)
    assert value(around(synth.make("xtree", chunks=1, **asked))) == 6
    mixed = around(synth.make("fabric", bytes=1_000_000, **asked))
    mixed.send(0, 1)
    assert "a block is a rank's share of the buffer, in all moves" in faults(mixed)[0]


@pytest.mark.parametrize("start", [None, "5us"])
def test_a_move_waits_for_one_that_ends_elsewhere(start: str | None) -> None:
    """A broadcast over links of their own, one move after the other has arrived: three times (1 us + 1 MB / 50 GB/s),
    and what is left free before a given start."""
    instance = synth.make("fabric", network="full", nodes=4, collective="broadcast", bytes=1_000_000, **FAST)
    moves = synth.Moves(instance)
    first = moves.send(0, 1, start=start)
    moves.send(0, 2, after=first, name="second")
    moves.send(0, 3, after=["second", first])
    assert value(moves) == pytest.approx(3 * 21e-6 + (0 if start is None else 5e-6), rel=1e-12)


def test_sums_that_are_exchanged_wait_for_what_was_stated_before() -> None:
    """Recursive doubling of whole buffers: twice (1 us + 1 MB / 50 GB/s). Where one link is slower, what comes back
    sooner is held back until the slow one has begun: sums still count once."""
    even = synth.make("fabric", network="full", nodes=4, collective="allreduce", bytes=1_000_000, **FAST)
    assert value(doubling(even)) == pytest.approx(2 * 21e-6, rel=1e-12)
    for seed in range(5):
        rng = random.Random(seed)
        links = [
            (u, v, rng.choice([1e9, 25e9, 50e9]), rng.choice([0.0, 1e-6]))
            for u, v in nx.complete_graph(4, nx.DiGraph).edges
        ]
        uneven = machine(4, links, collective="allreduce", bytes=1_000_000)
        value(doubling(uneven))


def doubling(instance: Instance) -> synth.Moves:
    moves = synth.Moves(instance)
    for bit in (1, 2):
        for k in range(4):
            moves.send(k, k ^ bit, adds=True)
    return moves


def test_a_sum_that_comes_too_early_is_named() -> None:
    """Given starts are kept: at 50 us rank 1 has what rank 0 sent at 0 and does not wait for."""
    instance = synth.make("fabric", network="full", nodes=2, collective="allreduce", bytes=1_000_000, **FAST)
    moves = synth.Moves(instance)
    moves.send(0, 1, adds=True, start=0)
    moves.send(1, 0, adds=True, start=50e-6, after=())
    [fault] = faults(moves)
    assert "move 0 (test_stated_moves.py, line " in fault
    assert "brings its sum to rank 1 before move 1 has left without it" in fault


def test_starts_are_kept_and_all_else_is_fitted_in() -> None:
    """Three pieces of 0.5 MB (10 us each) over one link: the second at 30 us, the others from 0 on; then one that is
    given at 5 us shares the link with another that is, which the check refuses."""
    instance = synth.make(
        "fabric", network="line", nodes=2, collective="broadcast", bytes=1_500_000, latency="0", bandwidth="50GB/s"
    )
    moves = synth.Moves(instance, pieces=3)
    for piece, start in enumerate((None, 30e-6, None)):
        moves.send(0, 1, piece=piece, start=start)
    made = moves.schedule()
    assert (made.start / made.ticks_per_s).tolist() == [0.0, pytest.approx(30e-6), pytest.approx(10e-6)]
    assert value(moves) == pytest.approx(40e-6, rel=1e-12)
    clash = synth.Moves(instance, pieces=3)
    for piece, start in enumerate((0.0, 5e-6, 20e-6)):
        clash.send(0, 1, piece=piece, start=start)
    record = synth.solve(instance, lambda _: clash)
    assert record.value is None
    assert record["verified"]["faults"]


def test_a_start_before_the_piece_is_there_is_named() -> None:
    """From 0 over 1 to 2, 21 us each; and the same in timesteps."""
    instance = synth.make("fabric", network="line", nodes=3, collective="broadcast", bytes=1_000_000, **FAST)
    for start, late in (("21us", False), (21e-6, False), ("20us", True)):
        moves = synth.Moves(instance)
        moves.send(1, 2, start=start)
        moves.send(0, 1)
        if late:
            [fault] = faults(moves)
            assert fault.endswith("start = 2e-05: is before move 1, which it waits for, has arrived")
        else:
            assert value(moves) == pytest.approx(42e-6, rel=1e-12)
    moves = synth.Moves(synth.make("xtree", network="line", nodes=3, chunks=1))
    moves.send(1, 2, 0, start=1)
    moves.send(0, 1, 0)
    [fault] = faults(moves)
    assert "start = 1.0: is before move 1" in fault


def trees_of(instance: FabricInstance, rng: random.Random, pieces: int) -> synth.Moves:
    """Random spanning trees, one a piece of each block; sums go up, copies down; the list in any order."""
    reduces, root = instance.collective in ("reduce", "reduce_scatter"), instance.the_root
    n = len(instance.members)
    graph = nx.Graph(zip(instance.machine.network.src.tolist(), instance.machine.network.dst.tolist(), strict=True))
    keys = [None] if root is not None else list(range(n))
    sends = []
    for key in keys:
        for piece in range(pieces):
            for u, v in graph.edges:
                graph[u][v]["weight"] = rng.random()
            tree = nx.minimum_spanning_tree(graph)
            start = root if key is None else key
            sends += [(v, u, key, piece) if reduces else (u, v, key, piece) for u, v in nx.bfs_edges(tree, start)]
    rng.shuffle(sends)
    moves = synth.Moves(instance, pieces)
    for send in sends:
        moves.send(*send)
    return moves


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_survive_a_replay_by_hand(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(2, 6)
    graph = nx.path_graph(n)
    graph.add_edges_from(rng.sample(list(nx.complete_graph(n).edges), rng.randint(0, n * (n - 1) // 2)))
    links = [
        (u, v, rng.choice([1e9, 4e9]), rng.choice([0.0, 1e-6, 3e-6]))
        for a, b in graph.edges
        for u, v in ((a, b), (b, a))
    ]
    collective = rng.choice(["broadcast", "allgather", "reduce", "reduce_scatter"])
    instance = machine(n, links, collective=collective, bytes=n * rng.randint(3, 999))
    moves = trees_of(instance, rng, rng.randint(1, 3))
    replayed(instance, moves.schedule())
    value(moves)
    for k, move in enumerate(moves.stated):  # some given starts, late enough to be kept by all
        if rng.random() < 0.2 and move.source == (instance.the_root if move.block is None else move.block):
            moves.stated[k] = move._replace(start=1.0 + k)
    if collective in ("broadcast", "allgather"):
        last = moves.schedule()
        given = [move.start for move in moves.stated]
        assert all(s is None or last.start[k] == round(s * last.ticks_per_s) for k, s in enumerate(given))


def replayed(instance: FabricInstance, made: Schedule) -> None:
    """Every link carries one transfer at a time, and what a rank sends it has: of a sum, all that came before."""
    net, ticks = instance.machine.network, made.ticks_per_s
    events, busy = [], defaultdict[int, list[tuple[float, float]]](list)
    for t in range(made.transfers):
        [link] = made.link[made.route_start[t] : made.route_start[t + 1]].tolist()
        size, begin = int(made.piece_bytes[made.piece[t]]), made.start[t] / ticks
        lasts = size / net.bandwidth[link]
        busy[link].append((begin, begin + lasts))
        events.append((begin, begin + lasts + net.latency[link], int(net.src[link]), int(net.dst[link]), t))
    for intervals in busy.values():
        assert all(a[1] <= b[0] + 1e-12 for a, b in pairwise(sorted(intervals)))
    blocks, members = instance.blocks, instance.members
    held: dict[tuple[int, int], frozenset[int]] = {}
    for piece, block in enumerate(made.piece_block.tolist()):
        origin = int(blocks.origin[block])
        for rank in members:
            held[piece, rank] = frozenset([rank] if origin < 0 else members if rank == origin else [])
    arrivals: list[tuple[float, int, int, frozenset[int]]] = []
    for begin, end, src, dst, t in sorted(events):
        arrivals.sort(key=lambda each: each[:2])
        while arrivals and arrivals[0][0] <= begin + 1e-12:
            _, who, piece, what = arrivals.pop(0)
            held[piece, who] = held[piece, who] | what
        piece = int(made.piece[t])
        assert held[piece, src]
        arrivals.append((end, dst, piece, held[piece, src]))
    for _, who, piece, what in sorted(arrivals, key=lambda each: each[:2]):
        assert not made.adds.any() or not held[piece, who] & what
        held[piece, who] = held[piece, who] | what
    for piece, block in enumerate(made.piece_block.tolist()):
        goal = int(blocks.goal[block])
        for rank in members if goal < 0 else [goal]:
            assert held[piece, rank] == frozenset(members)


def test_what_is_wrong_is_said_of_all_moves_at_once() -> None:
    instance = synth.make("fabric", network="torus", rows=4, cols=4, bytes="16MiB")
    moves = synth.Moves(instance)
    moves.send("gpu", 3, 4, 2, via=[88], links=[2.5], after=["a"], start=-1)  # type: ignore[list-item]
    moves.send(3, 3, block=77, adds=True)
    moves.send(3, 4, block=2, name="n")
    moves.send(3, 4, block=2, name="n", piece=9)
    said = faults(moves)
    for words in (
        "move 0 (test_stated_moves.py, line ", "source = 'gpu': no node has this name", "via = [88]: must be one of",
        "piece = 2: the block has pieces 0..0", "links = [2.5]: must be a list", "no move is named 'a'",
        "start = -1: must be a time", "target = 3: is the source", "block = 77: must be one of the nodes",
        "name = 'n': move 2 has this name already", "piece = 9: the block has pieces 0..0",
    ):  # fmt: skip
        assert any(words in fault for fault in said), words
    assert len(said) == 10


def test_moves_that_never_begin_are_said_once() -> None:
    """Two circles, a move that waits for itself, a piece that comes from nowhere; who waits for these is not said."""
    instance = synth.make("fabric", network="torus", rows=4, cols=4, bytes="16MiB")
    moves = synth.Moves(instance)
    moves.send(0, 1, block=2)
    moves.send(1, 0, block=2)
    moves.send(1, 2, block=0)
    moves.send(2, 3, block=0)
    moves.send(5, 6, block=5, after=5)
    moves.send(6, 7, block=6, after=4)
    moves.send(6, 7, block=6, after=6)
    said = [fault.partition(": ")[2] for fault in faults(moves)]
    assert said == [
        "piece 0 of this block never comes to rank 1",
        "moves 0, 1 wait for each other",
        "moves 4, 5 wait for each other",
        "waits for itself",
    ]


@pytest.mark.parametrize(
    ("collective", "send", "words"),
    [
        ("allgather", {"via": [3]}, "no link leads from 0 to 3"),
        ("allgather", {"links": [99]}, "there is no link 99: links are 0..9"),
        ("allgather", {"links": [0]}, "its links lead over the nodes 0 1"),
        ("allgather", {"adds": True}, "this collective sums nothing up"),
        ("reduce_scatter", {"block": 2}, "leads over other ranks, where a partial sum would be added"),
        ("alltoall", {}, "is no block that moves: a block is the pair (from, to)"),
        ("broadcast", {}, "is no block that moves: a block is left out: there is one"),
        ("allreduce", {"block": None}, "nothing is added at rank 0, which has no sum to copy"),
    ],
)
def test_what_a_move_may_not_be(collective: str, send: dict[str, Any], words: str) -> None:
    """On a ring of five, from 0 to 2."""
    instance = synth.make("fabric", network="ring", nodes=5, collective=collective, bytes=5000)
    moves = synth.Moves(instance)
    moves.send(0, 2, **{"block": 0, **send})
    [fault] = faults(moves)
    assert words in fault


def test_ranks_have_names_and_those_outside_the_group_take_no_part() -> None:
    instance = synth.make("fabric", machine="dgx-a100", boxes=1, bytes=4000, ranks="0-3")
    assert isinstance(instance, FabricInstance)
    names = instance.machine.names
    moves = synth.Moves(instance)
    for k in range(4):
        for other in range(4):
            if k != other:
                moves.send(names[k], names[other], names[k])
    value(moves)
    moves.send(0, 5, 0)
    [fault] = faults(moves)
    assert "target = 5: is no rank that takes part" in fault
