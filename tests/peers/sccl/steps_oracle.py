"""SCCL's question answered by trying everything, written from its definition (Cai et al., PPoPP 2021, section 3).

S steps of one round or more each, R rounds in all; in a step of r rounds a link of capacity c carries at most c r
chunks, each held by its sender when the step began; what arrives can be sent on in the next step. In a reduction
every rank holds one sum a chunk, as a set of contributions: one may be added if it has none of the receiver's and of
those that are added there in the same step, or replace the receiver's if it is complete. Knows nothing of programs and
bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

Link = tuple[int, int, int]
"""Tail, head, chunks a round."""
State = tuple[tuple[int, ...], ...]
"""By chunk and rank: the contributions held, as bits (1 for what is no sum, 0 for nothing)."""


def answer(
    ranks: int, links: Sequence[Link], chunks: Sequence[tuple[int | None, Sequence[int]]], steps: int, rounds: int,
    copies: bool = True,
) -> bool:  # fmt: skip
    """Whether there is a plan. ``chunks``: origin (None: everyone contributes) and goals of each."""
    everyone = 2**ranks - 1
    begin = tuple(tuple((1 << v) if origin is None else int(v == origin) for v in range(ranks)) for origin, _ in chunks)
    full = [everyone if origin is None else 1 for origin, _ in chunks]
    done = [[(i, v) for v in goals] for i, (_, goals) in enumerate(chunks)]
    goals = list(chain.from_iterable(done))

    def there(state: State) -> bool:
        return all(state[i][v] == full[i] for i, v in goals)

    plain = all(origin is not None for origin, _ in chunks)
    for lengths in compositions(rounds, steps):
        states = {begin}
        for number, length in enumerate(lengths):
            wanted = set(goals) if number == steps - 1 else None
            states = {after for state in states for after in steps_from(state, links, full, length, copies, wanted)}
            states = maximal(states) if plain else states
        if any(map(there, states)):
            return True
    return False


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All rows of that many whole numbers >= 1 with that sum."""
    for cuts in combinations(range(1, total), parts - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, total), strict=True))


def steps_from(
    state: State, links: Sequence[Link], full: Sequence[int], rounds: int, copies: bool,
    wanted: set[tuple[int, int]] | None,
) -> Iterator[State]:  # fmt: skip
    """All states one step later. Not tried: what nobody is sent twice for, and less of what is no sum than fits; in the
    last step only what a goal wants is sent (``wanted``)."""
    choices = []
    for tail, head, capacity in links:
        ways = {}
        for i, row in enumerate(state):
            if row[tail] and row[head] != full[i] and (wanted is None or (i, head) in wanted):
                adding = [True] if full[i] != 1 and not row[tail] & row[head] else []
                ways[i] = adding + ([False] if row[tail] == full[i] and (copies or full[i] == 1) else [])
        sendable = [i for i, row in ways.items() if row]
        most = min(len(sendable), capacity * rounds)
        sizes = range(most + 1) if any(full[i] != 1 for i in sendable) else [most]
        choices.append(
            [
                [(i, tail, head, adds) for i, adds in zip(some, row, strict=True)]
                for size in sizes
                for some in combinations(sendable, size)
                for row in product(*(ways[i] for i in some))
            ]
        )
    for sent in product(*choices):
        after = arrived(state, list(chain.from_iterable(sent)), full)
        if after is not None:
            yield after


def arrived(state: State, sent: Sequence[tuple[int, int, int, bool]], full: Sequence[int]) -> State | None:
    """The state after a step, None if it breaks a rule."""
    after = [list(row) for row in state]
    touched: dict[tuple[int, int], bool] = {}
    for i, tail, head, adds in sent:
        what = state[i][tail]
        if not adds:
            if what != full[i] or touched.get((i, head)):
                return None
            after[i][head] = what
        else:
            if after[i][head] & what or touched.get((i, head)) is False:
                return None
            after[i][head] |= what
        touched[i, head] = adds
    return tuple(map(tuple, after))


def maximal(states: set[State]) -> set[State]:
    """States that no other holds all of."""
    bits = {tuple(chain.from_iterable(state)): state for state in states}
    keep = [
        row
        for row in bits
        if not any(row != other and all(a & b == a for a, b in zip(row, other, strict=True)) for other in bits)
    ]
    return {bits[row] for row in keep}
