"""Exhaustive search and a replay in plain Python for tiny tori and meshes, written before the models and sharing no
code with them.

The problem in words: nodes stand on a grid of given sides. In every dimension the nodes that differ only in that
coordinate form a ring or a line of fibre, both ways, ``w`` wavelengths on every link and direction. A circuit runs
along one such ring or line. In a step a wavelength of a link and direction carries one circuit, a circuit one item that
its source held before the step. At the end every node holds every item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

State = tuple[int, ...]  # bit o of entry v: node v holds item o
Fibre = tuple[tuple[int, ...], bool]  # the nodes in order, and whether it closes to a ring


def fibres(sides: Sequence[int], rings: Sequence[bool]) -> list[list[Fibre]]:
    """Per dimension its rings or lines. Nodes are numbered with the last coordinate running fastest."""
    points = list(product(*(range(side) for side in sides)))
    number = {point: v for v, point in enumerate(points)}
    found = []
    for k, side in enumerate(sides):
        starts = [point for point in points if point[k] == 0]
        lines = [tuple(number[(*p[:k], x, *p[k + 1 :])] for x in range(side)) for p in starts]
        found.append([(line, rings[k]) for line in lines])
    return found


def fewest_steps(
    sides: Sequence[int], rings: Sequence[bool], wavelengths: int, max_hops: int, limit: int
) -> int | None:
    """The fewest steps of any allgather, by breadth-first search over what nodes hold; None beyond ``limit``."""
    every = [fibre for dimension in fibres(sides, rings) for fibre in dimension]
    nodes = max(max(line) for line, _ in every) + 1
    states: set[State] = {tuple(1 << v for v in range(nodes))}
    for step in range(1, limit + 1):
        if any(_completes(state, every, wavelengths, max_hops) for state in states):
            return step
        states = _undominated({after for state in states for after in _after(state, every, wavelengths, max_hops)})
    return None


def _undominated(states: Iterable[State]) -> set[State]:
    """Without states that hold nowhere more than another one: whatever those can do, the other one can."""
    kept: list[State] = []
    for state in sorted(set(states), key=lambda s: -sum(bits.bit_count() for bits in s)):
        if not any(all(a | b == b for a, b in zip(state, other, strict=True)) for other in kept):
            kept.append(state)
    return set(kept)


def _layers(fibre: Fibre, forward: bool, max_hops: int) -> list[list[tuple[int, int]]]:
    """Every maximal set of circuits (source, destination) that one wavelength of one direction can carry."""
    line, ring = fibre
    order = line if forward else line[::-1]
    n = len(order)
    arcs = []
    for u in range(n):
        for h in range(1, min(max_hops, n - 1) + 1):
            if ring or u + h < n:
                arcs.append(((order[u], order[(u + h) % n]), frozenset((u + k) % n for k in range(h))))
    found: list[tuple[list[tuple[int, int]], frozenset[int]]] = []

    def grow(first: int, chosen: list[tuple[int, int]], used: frozenset[int]) -> None:
        if not any(not links & used for _, links in arcs):
            found.append((chosen, used))
        for i in range(first, len(arcs)):
            if not arcs[i][1] & used:
                grow(i + 1, [*chosen, arcs[i][0]], used | arcs[i][1])

    grow(0, [], frozenset())
    return [chosen for chosen, _ in found]


def _gains(state: State, fibre: Fibre, wavelengths: int, max_hops: int) -> set[State]:
    """What one fibre can bring to the nodes in one step, the larger ones only."""
    nothing = tuple(0 for _ in state)
    gains = {nothing}
    for forward in (True, False):
        layers = _layers(fibre, forward, max_hops)
        for _ in range(wavelengths):
            following = set()
            for gain, layer in product(gains, layers):
                partial = {gain}
                for u, v in layer:
                    new = state[u] & ~state[v]
                    partial = {
                        (*now[:v], now[v] | bit, *now[v + 1 :])
                        for now in partial
                        for bit in (_bits(new & ~now[v]) or [0])
                    }
                following |= partial
            gains = _undominated(following)
    return gains


def _bits(number: int) -> list[int]:
    return [1 << k for k in range(number.bit_length()) if number >> k & 1]


def _after(state: State, every: list[Fibre], wavelengths: int, max_hops: int) -> set[State]:
    """What can be held after a step; fibres add up, as all send what was held before."""
    found = {state}
    for fibre in every:
        gains = _gains(state, fibre, wavelengths, max_hops)
        found = {tuple(a | b for a, b in zip(now, gain, strict=True)) for now in found for gain in gains}
    return _undominated(found)


def _completes(state: State, every: list[Fibre], wavelengths: int, max_hops: int) -> bool:
    """Whether one step from here brings every item everywhere."""
    full = (1 << len(state)) - 1
    links = [[0] * len(state)]  # most items that the fibres from here on can bring to a node
    for line, ring in reversed(every):
        into = links[-1].copy()
        for place, v in enumerate(line):
            into[v] += wavelengths * (2 if ring or 0 < place < len(line) - 1 else 1)
        links.append(into)
    links.reverse()
    gains: list[set[State]] = []

    def search(k: int, now: State) -> bool:
        if any((full & ~bits).bit_count() > most for bits, most in zip(now, links[k], strict=True)):
            return False
        if k == len(every):
            return True
        if len(gains) == k:
            gains.append(_gains(state, every[k], wavelengths, max_hops))
        return any(search(k + 1, tuple(a | b for a, b in zip(now, gain, strict=True))) for gain in gains[k])

    return search(0, state)


def plain_replay(
    sides: Sequence[int], rings: Sequence[bool], wavelengths: int, max_hops: int, rows: list[tuple[int, ...]]
) -> int | None:
    """Steps of a valid schedule, None for any other. ``rows``: step, source, destination, direction, wavelength, item;
    direction ``2 k`` goes up in dimension ``k``, ``2 k + 1`` down."""
    dimensions = fibres(sides, rings)
    nodes = max(max(line) for line, _ in dimensions[0]) + 1
    held = {v: {v} for v in range(nodes)}
    taken = set()
    for step in sorted({row[0] for row in rows}):
        before = {v: set(items) for v, items in held.items()}
        for _, src, dst, direction, wave, item in (row for row in rows if row[0] == step):
            if step < 1 or not 0 <= direction < 2 * len(sides) or not 0 <= wave < wavelengths or src == dst:
                return None
            mine = [fibre for fibre in dimensions[direction // 2] if src in fibre[0] and dst in fibre[0]]
            if not mine or item not in before[src]:
                return None
            [(line, ring)] = mine
            order = line if direction % 2 == 0 else line[::-1]
            at, hops = order.index(src), 0
            while order[at] != dst:
                if at + 1 == len(order) and not ring:
                    return None
                slot = (step, direction, order[at], wave)
                if slot in taken:
                    return None
                taken.add(slot)
                at, hops = (at + 1) % len(order), hops + 1
            if hops > max_hops:
                return None
            held[dst].add(item)
    return max(row[0] for row in rows) if rows and all(len(items) == nodes for items in held.values()) else None
