"""Moves that a user states, in timesteps: links and steps that are found, and those that are given."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pytest

import synth
from synth.instance import Instance
from synth_models.xtree.instance import XTreeInstance


def steps(moves: synth.Moves) -> float:
    """Timesteps by the replay, which finds no fault."""
    record = synth.solve(moves.instance, lambda instance: moves)
    assert record["verified"]["faults"] == []
    assert record.value is not None
    return record.value


def ring(nodes: int, chunks: int = 1, collective: str = "allgather", **network: Any) -> Instance:
    return synth.make("xtree", network="ring", nodes=nodes, chunks=chunks, collective=collective, **network)


def test_rings_both_ways_are_the_reference_cycle() -> None:
    """Two chunks a node, one each way round six nodes: five steps, the optimum; the links are found."""
    instance = ring(6, 2)
    moves = synth.Moves(instance)
    for node in range(6):
        for step in range(5):
            moves.send((node + step) % 6, (node + step + 1) % 6, node, piece=0)
            moves.send((node - step) % 6, (node - step - 1) % 6, node, piece=1)
    assert steps(moves) == synth.solve(instance, "cycle").value == 5


def test_the_reduce_scatter_and_the_allreduce_of_a_ring() -> None:
    """Shard k from node k + 1 around to k, four steps of a ring of five; and on again as the sum, four more."""
    for collective, last, expected in (("reduce_scatter", 4, 4), ("allreduce", 8, 8)):
        moves = synth.Moves(ring(5, collective=collective))
        for step in range(last):
            for k in range(5):
                moves.send((k + 1 + step) % 5, (k + 2 + step) % 5, k, adds=step < 4)
        assert steps(moves) == expected
        random.Random(1).shuffle(moves.stated)
        assert steps(moves) == expected


def test_sums_are_exchanged() -> None:
    """Recursive doubling of four shards on a square: four over a link, and those of the second bit a step later: 5."""
    graph = synth.make("xtree", network="hypercube", dimension=2, chunks=1, collective="allreduce")
    moves = synth.Moves(graph)
    for bit in (1, 2):
        for shard in range(4):
            for node in range(4):
                moves.send(node, node ^ bit, shard, adds=True)
    assert steps(moves) == 5


def test_a_step_that_is_given_is_kept() -> None:
    """On a line of three by its middle: the first hop in step 3, so the second in step 4; another fits in before."""
    instance = synth.make("xtree", network="line", nodes=3, chunks=1)
    moves = synth.Moves(instance)
    moves.send(0, 2, 0, start=3)
    moves.send(1, 0, 1)
    moves.send(1, 2, 1)
    moves.send(2, 0, 2, via=[1])
    made = moves.schedule()
    assert made.step.tolist() == [3, 4, 1, 1, 1, 2]
    assert steps(moves) == 4


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_survive_a_replay_by_hand(seed: int) -> None:
    """One tree a chunk, in any order of the list: a link carries one chunk a step, a node sends what it has."""
    rng = random.Random(seed)
    rows, cols = rng.choice([(2, 2), (2, 3), (3, 3)])
    instance = synth.make("xtree", network=rng.choice(["mesh", "torus"]), rows=rows, cols=cols, chunks=2)
    assert isinstance(instance, XTreeInstance)
    net = instance.topology
    graph = nx.Graph(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    moves = synth.Moves(instance)
    sends = []
    for node in graph:
        for piece in range(2):
            for u, v in graph.edges:
                graph[u][v]["weight"] = rng.random()
            sends += [(u, v, node, piece) for u, v in nx.bfs_edges(nx.minimum_spanning_tree(graph), node)]
    rng.shuffle(sends)
    for send in sends:
        moves.send(*send)
    made = moves.schedule()
    has = {(k // 2, k): 0 for k in range(2 * len(graph))}  # node and chunk: since the end of which step
    for step, link, chunk in sorted(zip(made.step.tolist(), made.link.tolist(), made.chunk.tolist(), strict=True)):
        assert has[int(net.src[link]), chunk] < step
        has.setdefault((int(net.dst[link]), chunk), step)
    used = list(zip(made.step.tolist(), made.link.tolist(), strict=True))
    assert len(set(used)) == len(used) == len(sends)
    assert len(has) == 2 * len(graph) ** 2
    assert steps(moves) == made.steps


@pytest.mark.parametrize(
    ("send", "words"),
    [
        ({"block": None}, "must be a node"),
        ({"via": [4]}, "no link leads from 4 to 2"),
        ({"links": [0, 0]}, "its links lead over the nodes"),
        ({"links": [99]}, "there is no link 99"),
        ({"piece": 1}, "the block has pieces 0..0"),
        ({"start": "soon"}, "must be a time"),
    ],
)
def test_what_a_move_may_not_be(send: dict[str, Any], words: str) -> None:
    moves = synth.Moves(ring(5))
    moves.send(0, 2, **{"block": 0, **send})
    with pytest.raises(synth.InputError, match=words):
        moves.schedule()


def test_pieces_are_the_chunks() -> None:
    with pytest.raises(synth.InputError, match="pieces = 3: is the instance's number of chunks: 2"):
        synth.Moves(ring(4, 2), pieces=3).schedule()


def test_a_partial_sum_goes_node_by_node() -> None:
    moves = synth.Moves(ring(5, collective="reduce_scatter"))
    moves.send(0, 2, 2)
    with pytest.raises(synth.InputError, match="leads over other nodes, where a partial sum would be added"):
        moves.schedule()
