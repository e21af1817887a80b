"""What changes what arrives is caught by the run itself, and nothing else is: against a simulation in plain Python that
knows contributions, copies and sums, and neither our check nor our replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from examples import some
from exchange.by_hand import direct_alltoall, ring_allgather, schedule
from exchange.possession import begins, needs, owners
from exchange.random_transfers import random_transfers

from synth.exchange.transfers import Transfers
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames, faults

RUBBISH = ((-1, 1),)


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew() as found:
        yield found


def ends_right(t: Transfers) -> bool:
    """Whether every rank that needs a piece ends with it: a rank's state of a piece counts how often each rank's
    contribution is in it; what nobody wrote is rubbish, and so is all that it is added to."""
    own = t.collective, t.ranks, t.root
    state = {
        (rank, p): tuple(sorted((r, 1) for r in begins(*own, part, rank))) or RUBBISH
        for p, part in enumerate(t.piece_part.tolist())
        for rank in range(t.ranks)
    }
    carried: dict[int, tuple[tuple[int, int], ...]] = {}
    events = [(time, 1, k) for k, time in enumerate(t.start_s.tolist())]
    events += [(time, 0, k) for k, time in enumerate(t.end_s.tolist())]
    for _, sends, k in sorted(events):
        piece, src, dst = int(t.piece[k]), int(t.src[k]), int(t.dst[k])
        if sends:
            carried[k] = state[src, piece]
        elif not t.adds[k]:
            state[dst, piece] = carried[k]
        elif RUBBISH in (carried[k], state[dst, piece]):
            state[dst, piece] = RUBBISH
        else:
            state[dst, piece] = tuple(sorted((Counter(dict(state[dst, piece])) + Counter(dict(carried[k]))).items()))
    return all(
        state[rank, p] == tuple(sorted((r, 1) for r in owners(*own, part)))
        for p, part in enumerate(t.piece_part.tolist())
        for rank in range(t.ranks)
        if needs(*own, part, rank)
    )


def dropped(t: Transfers, k: int, random: Random) -> Transfers:
    """A transfer is left out; in a sum, a contribution or more."""
    return t.taken(np.arange(len(t.piece)) != k)


def doubled(t: Transfers, k: int, random: Random) -> Transfers:
    """A transfer is made once more, right behind all others."""
    again = t.taken(np.append(np.arange(len(t.piece)), k))
    again.start_s[-1], again.end_s[-1] = t.end_s.max(), t.end_s.max() + 1
    return again


def changed(t: Transfers, k: int, **values: int) -> Transfers:
    columns = {name: getattr(t, name).copy() for name in values}
    for name, value in values.items():
        columns[name][k] = value
    return replace(t, **columns)


def other_piece(t: Transfers, k: int, random: Random) -> Transfers:
    """A transfer carries another piece."""
    return changed(t, k, piece=random.randrange(len(t.piece_part)))


def other_receiver(t: Transfers, k: int, random: Random) -> Transfers:
    """A transfer goes to another rank."""
    return changed(t, k, dst=random.choice([r for r in range(t.ranks) if r != t.src[k]]))


def stored_or_added(t: Transfers, k: int, random: Random) -> Transfers:
    """What is to be added is stored in place of what was there, or the other way round."""
    return changed(t, k, adds=not t.adds[k])


def too_early(t: Transfers, k: int, random: Random) -> Transfers:
    """A transfer begins before anything else, with what its sender has then."""
    early = replace(t, start_s=t.start_s + 10, end_s=t.end_s + 10)
    early.start_s[k] = 0.0
    return early


MUTATIONS: list[Callable[[Transfers, int, Random], Transfers]] = [
    dropped, doubled, other_piece, other_receiver, stored_or_added, too_early
]  # fmt: skip


def test_a_mutation_is_caught_exactly_if_something_else_arrives(crew: Crew) -> None:
    random, caught = Random("mutations"), Counter[str]()
    for seed in range(some(700)):
        t = random_transfers(seed)
        if not len(t.piece) or ((mutate := MUTATIONS[seed % len(MUTATIONS)]) is stored_or_added and not t.reduces):
            continue
        mutated = mutate(t, random.randrange(len(t.piece)), random)
        right = ends_right(mutated)
        done = crew.run(Job(program_of(mutated), seed, patience_s=5))
        assert (done.seconds != [], done.died) == (True, None)
        assert (done.wrong == []) == right, (seed, mutate.__name__)
        caught[mutate.__name__] += not right
    assert min(caught[mutate.__name__] for mutate in MUTATIONS) >= some(10)
    assert caught.total() >= some(200)


def test_swapped_words_are_caught(crew: Crew) -> None:
    """Two messages of a rank read each other's place: as many words, in the wrong order."""
    random = Random("swapped")
    for seed in range(some(40)):
        t = ring_allgather(random.randint(3, 6), split=random.choice([1, 2, 4])) if seed % 2 else direct_alltoall(5)
        program = program_of(t)
        rank = random.randrange(t.ranks)
        one, other = random.sample(np.flatnonzero(program.messages.src == rank).tolist(), 2)
        slot = program.messages.slot.copy()
        slot[[one, other]] = slot[[other, one]]
        swapped = replace(program, messages=replace(program.messages, slot=slot))
        assert crew.run(Job(swapped, seed)).wrong
        assert not crew.run(Job(program, seed)).wrong


def test_a_lacking_and_a_doubled_contribution_are_named(crew: Crew) -> None:
    """Every rank sends its contribution to rank 0, which rank 3's misses, or meets twice."""
    t = schedule("reduce", 5, [(r, 0, r, 0, True) for r in range(1, 5)], [0], root=0)
    last = int(np.flatnonzero(t.src == 3)[0])
    said = "the contribution of rank 3 is"
    for mutate, words in ((dropped, f"{said} missing"), (doubled, f"{said} counted twice")):
        mutated = mutate(t, last, Random(0))
        program = program_of(mutated)
        lines = faults(program, crew.run(Job(program, 5)), TransferNames(mutated), Data(5, t.ranks))
        assert [line.startswith("rank 0, piece 0 (part 0, offset 0): ") for line in lines] == [True]
        assert lines[0].endswith(words)


@pytest.mark.long(after=4)
@pytest.mark.parametrize("seed", range(some(20)))
def test_a_cycle_of_waits_is_named(seed: int, crew: Crew) -> None:
    """Some ranks in a ring: each is to receive from the one before it before it sends to the one after it."""
    random = Random(seed)
    n = random.randint(2, 6)
    t = direct_alltoall(n)
    ring = random.sample(range(n), random.randint(2, n))
    pairs = list(zip(ring, [*ring[1:], ring[0]], strict=True))
    at = [int(np.flatnonzero((t.src == a) & (t.dst == b))[0]) for a, b in pairs]
    t = replace(t, start_s=t.start_s + 10, end_s=t.end_s + 10)
    t.end_s[at], t.start_s[at] = 1.0, 2.0
    program = program_of(t)
    done = crew.run(Job(program, patience_s=0.3))
    assert done.seconds == []
    lines = faults(program, done, TransferNames(t), Data(0, n))
    for (src, dst), k in zip(pairs, at, strict=True):
        assert any(line.startswith(f"rank {dst} waits for rank {src} to send transfer {k}, piece") for line in lines)
