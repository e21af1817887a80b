"""The libraries' algorithms as messages: everybody ends with what is asked, sums count everybody once, and what is sent
has come by the messages that it waits for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import synth
from synth.exchange.forms import in_seconds
from synth.exchange.selection import library_moves as shapes
from synth.exchange.selection.library_messages import Moves
from synth.exchange.selection.library_times import ALGORITHMS, ALIKE, Algorithm, Replay, cut_of
from synth.instance import Instance

REDUCING = ("allreduce", "reduce", "reduce_scatter")
CASES = [
    (library, collective, word, k)
    for library, known in ALGORITHMS.items()
    for collective, words in known.items()
    for word, variants in words.items()
    for k in range(len(variants))
]
State = list[dict[int, Counter[int]]]  # of every rank the pieces that it holds: whose contributions, how often


def begun(moves: Moves) -> State:
    """What every rank has before anything is sent."""
    n, collective, cut = moves.ranks, moves.collective, moves.cut
    if collective in REDUCING:
        return [{piece: Counter([r]) for piece in moves.blocks} for r in range(n)]
    if collective == "alltoall":
        return [{r * n + t: Counter([r]) for t in range(n)} for r in range(n)]
    if collective in ("broadcast", "scatter"):
        return [{piece: Counter([0]) for piece in moves.blocks} if r == 0 else {} for r in range(n)]
    return [{r * cut + k: Counter([r]) for k in range(cut)} for r in range(n)]


def asked(moves: Moves) -> dict[int, set[int]]:
    """By rank the pieces that it must end with."""
    n, collective, cut = moves.ranks, moves.collective, moves.cut
    own = {r: {r * cut + k for k in range(cut)} for r in range(n)}
    if collective == "alltoall":
        return {t: {r * n + t for r in range(n)} for t in range(n)}
    if collective in ("reduce", "gather"):
        return {0: set(moves.blocks)}
    return own if collective in ("reduce_scatter", "scatter") else {r: set(moves.blocks) for r in range(n)}


def replayed(moves: Moves) -> State:
    """What every rank has in the end. Every message carries what its sender had before its step."""
    state = begun(moves)
    brought: dict[tuple[int, int], list[int]] = {}
    for step in sorted({message.step for message in moves.messages}):
        before = [{piece: held.copy() for piece, held in rank.items()} for rank in state]
        arrived = []
        for number, message in enumerate(moves.messages):
            if message.step != step:
                continue
            for j in message.waits:
                assert moves.messages[j].step < step
                assert moves.messages[j].target == message.source
            for piece in message.pieces:
                held = before[message.source][piece]
                assert set(brought.get((message.source, piece), ())) <= waited(moves, number), message
                if message.adds:
                    state[message.target][piece] = state[message.target].get(piece, Counter()) + held
                else:
                    state[message.target][piece] = held.copy()
                arrived.append((message, piece, number))
        for message, piece, number in arrived:
            there = brought.setdefault((message.target, piece), [])
            if not message.adds:
                there.clear()
            there.append(number)
    return state


def waited(moves: Moves, number: int) -> set[int]:
    """All messages that one waits for, those that these wait for, and those before them from the same rank to the same:
    messages from rank to rank come in their order."""
    found: set[int] = set()
    left = list(moves.messages[number].waits)
    while left:
        j = left.pop()
        if j not in found:
            found.add(j)
            ends = moves.messages[j][:2]
            left += moves.messages[j].waits + tuple(i for i in range(j) if moves.messages[i][:2] == ends)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_everybody_ends_with_what_is_asked(case: tuple[str, str, str, int]) -> None:
    library, name, word, k = case
    algorithm, collective = ALGORITHMS[library][name][word][k], ALIKE.get(name, name)
    ran = 0
    for n in (2, 3, 4, 5, 6, 8, 9):
        moves = Moves(collective, n, 4096, 3 if algorithm.segmented else cut_of(algorithm.cut, n))
        if not algorithm.shape(moves):
            continue
        ran += 1
        state = replayed(moves)
        whole = Counter(range(n))
        for rank, pieces in asked(moves).items():
            for piece in pieces:
                if collective in REDUCING:
                    assert state[rank][piece] == whole, (n, rank, piece)
                else:
                    assert len(state[rank][piece]) == 1
    assert ran >= 2


def star(n: int = 8) -> Instance:
    keys = {"network": "star", "nodes": n, "bandwidth": 1e10, "latency": 0.5e-6}
    return synth.make("fabric", **keys, collective="alltoall", bytes=n * 1024)


@pytest.mark.parametrize("size", [8 * 2**10, 8 * 2**20])
def test_textbook_times_on_a_switch(size: int) -> None:
    """Eight ranks, a = 1 us, b = 10 GB/s. A ring takes 2 (n - 1) (a + M / n b) (Patarasuk, Yuan 2009), recursive
    doubling log2 n (a + M / b) and Rabenseifner's 2 log2 n a + 2 (n - 1) / n M / b (Thakur et al. 2005): exactly, as
    nothing here is chopped or overlaps. One ring is one ring, though the switch would carry two at once."""
    a, byte_s = 1e-6, size / 1e10
    wanted = {
        "ring": 14 * (a + byte_s / 8),
        "recursive_doubling": 3 * (a + byte_s),
        "rabenseifner": 6 * a + 14 / 8 * byte_s,
    }
    for word, value in wanted.items():
        ((found, told),) = Replay(star()).seconds("allreduce", size, ALGORITHMS["ompi"]["allreduce"][word][0])
        assert found == pytest.approx(value, rel=1e-6)
        assert not told


def test_a_pipeline_s_segments() -> None:
    """A chain of n ranks in s segments: (n - 2 + s) (a + m / b) where a segment of m bytes is sent on when it is there
    and its link is free; here sends overlap the latency: (n - 1) (a + m / b) + (s - 1) m / b. The extrapolation beyond
    what is replayed is exact, the last segment being whole."""
    pipeline = Algorithm(shapes.along(shapes.chain), segmented=True)
    for size in (2**20, 2**28):
        found = {int(told["segment"]): value for value, told in Replay(star()).seconds("broadcast", size, pipeline)}
        assert found.keys() == {0, 2**13, 2**16, 2**19}
        for segment, value in found.items():
            m = segment or size
            assert value == pytest.approx(7 * (1e-6 + m / 1e10) + (size / m - 1) * m / 1e10, rel=1e-6)


def test_a_root_that_is_not_the_first_and_messages_over_other_ranks() -> None:
    """On a line of four the third message of rank 0 leaves when two are out, and takes three hops; from rank 1 on
    nobody is further than two."""
    keys = {"network": "line", "nodes": 4, "bandwidth": 1e9, "latency": 1e-6}
    line = synth.make("fabric", **keys, collective="alltoall", bytes=4096)
    linear = ALGORITHMS["ompi"]["broadcast"]["basic_linear"][0]
    far, near = (next(Replay(line).seconds("broadcast", 1000, linear, root))[0] for root in (0, 1))
    assert far == pytest.approx(2 * 1e-6 + 3 * (1e-6 + 1e-6), rel=1e-6)
    assert near < far


def test_shapes_of_trees() -> None:
    assert shapes.chain(6) == [0, 0, 1, 2, 3, 4]
    assert shapes.chain(7, 2) == [0, 0, 1, 2, 0, 4, 5]
    assert shapes.binomial(8) == [0, 0, 0, 1, 0, 1, 2, 3]
    assert shapes.knomial(9, 4) == [0, 0, 0, 0, 0, 4, 4, 4, 0]
    assert shapes.binary(7) == [0, 0, 0, 1, 2, 1, 2]
    for n in range(2, 20):
        for tree in (*shapes.double_trees(n), shapes.binary(n), shapes.binomial(n), shapes.knomial(n)):
            children = Counter(p for v, p in enumerate(tree) if p != v)
            assert sum(children.values()) == n - 1
        assert max(Counter(p for v, p in enumerate(shapes.binary(n)) if p != v).values()) <= 2
        assert all(max(Counter(p for v, p in enumerate(t) if p != v).values()) <= 2 for t in shapes.double_trees(n))


def test_pieces_without_bytes_are_not_sent() -> None:
    moves = Moves("allreduce", 8, 3, 8)
    assert shapes.ring_allreduce(moves)
    assert all(moves.bytes_of(message) for message in moves.messages)
    assert in_seconds(star(), lambda part: moves.raised("few", part, 0)) > 0
    assert np.sum([moves.bytes_of(message) for message in moves.messages]) == 2 * 7 * 3
