"""Moves that a user states, in rounds: rounds that are found, and those that are given."""

from __future__ import annotations

from typing import Any

import pytest

import synth
from synth.instance import Instance
from synth.records.record import Record


def record_of(moves: synth.Moves) -> Record:
    record = synth.solve(moves.instance, lambda instance: moves)
    assert record["verified"]["faults"] == []
    return record


def eight(collective: str, **keys: Any) -> Instance:
    """Eight ranks in two groups of four."""
    return synth.make("bine", groups="4,4", collective=collective, bytes=8000, **keys)


def test_a_binomial_tree() -> None:
    """Halving the distance: one of seven messages crosses, in three rounds. Stated in any order it is the same."""
    edges = [(0, 4), (0, 2), (4, 6), (0, 1), (2, 3), (4, 5), (6, 7)]
    for order in (edges, edges[::-1]):
        moves = synth.Moves(eight("broadcast", vector="small"))
        for source, target in order:
            moves.send(source, target)
        made = moves.schedule()
        record = record_of(moves) if order is edges else None
        if record is not None:
            assert record.value == 8000
            assert record["verified"]["facts"]["rounds"] == made.round.max() + 1 == 3


def test_a_ring_allreduce_crosses_twice_a_step() -> None:
    """14 rounds, in each a block of 1000 B from rank 3 to 4 and from 7 to 0: 28,000 B."""
    moves = synth.Moves(eight("allreduce", vector="large", problem="any"))
    for step in range(14):
        for k in range(8):
            moves.send((k + 1 + step) % 8, (k + 2 + step) % 8, k, adds=step < 7)
    record = record_of(moves)
    assert record.value == 28_000
    assert record["verified"]["facts"]["rounds"] == 14


def test_whole_vectors_are_exchanged() -> None:
    """Recursive doubling: three rounds, the last across: eight vectors of 8000 B."""
    moves = synth.Moves(eight("allreduce", vector="small", problem="any"))
    for bit in (1, 2, 4):
        for k in range(8):
            moves.send(k, k ^ bit, adds=True)
    record = record_of(moves)
    assert record.value == 64_000
    assert record["verified"]["facts"]["rounds"] == 3


def test_an_alltoall_and_a_round_that_is_given() -> None:
    """Every block straight to its goal: 32 of 64 cross, 1000 B each; over a rank in between, in two rounds."""
    moves = synth.Moves(eight("alltoall", problem="any"))
    for k in range(8):
        for ahead in range(1, 8):
            moves.send(k, (k + ahead) % 8, (k, (k + ahead) % 8), via=[(k + 1) % 8] if ahead == 7 else ())
    moves.stated[0] = moves.stated[0]._replace(start=20)
    record = record_of(moves)
    assert record["verified"]["facts"]["rounds"] == 21


@pytest.mark.parametrize(
    ("send", "words"),
    [
        ({"block": 8}, "must be one of the nodes 0..7"),
        ({"block": (0, 1)}, "must be a block's number, 0..7"),
        ({"links": [0]}, "there are none: messages go from rank to rank"),
        ({"via": [0]}, "names a rank twice in a row"),
        ({"block": 3}, "piece 0 of this block never comes to rank 0"),
    ],
)
def test_what_a_move_may_not_be(send: dict[str, Any], words: str) -> None:
    moves = synth.Moves(eight("allgather", problem="any"))
    moves.send(0, 2, **{"block": 0, **send})
    with pytest.raises(synth.InputError, match=words):
        moves.schedule()
