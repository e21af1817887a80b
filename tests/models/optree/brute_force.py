"""Exhaustive search for tiny rings, written before the models and sharing no code with them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from itertools import combinations

State = tuple[int, ...]  # bit o of entry v: node v holds item o
Circuit = tuple[int, int, int]  # source, hops, direction


def fewest_steps(nodes: int, wavelengths: int, max_hops: int, limit: int = 4) -> int | None:
    """The fewest steps of any allgather, by breadth-first search over what nodes hold; None beyond ``limit``."""
    full = tuple((1 << nodes) - 1 for _ in range(nodes))
    states: set[State] = {tuple(1 << v for v in range(nodes))}
    for step in range(1, limit + 1):
        if any(_completes(state, nodes, wavelengths, max_hops) for state in states):
            return step
        states = {
            smallest_rotation(after, nodes) for state in states for after in _after(state, nodes, wavelengths, max_hops)
        }
        if full in states:
            raise AssertionError("completing steps are found above")
    return None


def smallest_rotation(state: State, nodes: int) -> State:
    """One state per class of rotated ones."""

    def turned(by: int) -> State:
        turn = [(bits << by | bits >> (nodes - by)) & ((1 << nodes) - 1) for bits in state]
        return tuple(turn[(v - by) % nodes] for v in range(nodes))

    return min(turned(by) for by in range(nodes))


def _layers(nodes: int, max_hops: int, direction: int) -> list[list[Circuit]]:
    """Every set of circuits that one wavelength of one direction can carry."""
    arcs = []
    for u in range(nodes):
        for h in range(1, max_hops + 1):
            links = {(u + k) % nodes if direction == 0 else (u - 1 - k) % nodes for k in range(h)}
            arcs.append(((u, h, direction), links))
    found: list[list[Circuit]] = []

    def grow(first: int, chosen: list[Circuit], used: set[int]) -> None:
        found.append(chosen)
        for i in range(first, len(arcs)):
            if not arcs[i][1] & used:
                grow(i + 1, [*chosen, arcs[i][0]], used | arcs[i][1])

    grow(0, [], set())
    return found


def _sets(nodes: int, wavelengths: int, max_hops: int) -> Iterator[list[Circuit]]:
    """Maximal sets of circuits of one step (leaving a link idle never helps: one hop more can be lit)."""
    both = []
    for direction in (0, 1):
        layers = [layer for layer in _layers(nodes, max_hops, direction) if sum(h for _, h, _ in layer) == nodes]
        both.append([functools.reduce(operator.iadd, pick, []) for pick in _multisets(layers, wavelengths)])
    for clockwise in both[0]:
        for counter in both[1]:
            yield clockwise + counter


def _multisets(layers: list[list[Circuit]], count: int) -> Iterator[list[list[Circuit]]]:
    for pick in combinations(range(len(layers) + count - 1), count):
        yield [layers[index - place] for place, index in enumerate(pick)]


def _target(nodes: int, circuit: Circuit) -> int:
    u, h, direction = circuit
    return (u + h) % nodes if direction == 0 else (u - h) % nodes


def _after(state: State, nodes: int, wavelengths: int, max_hops: int) -> set[State]:
    results: set[State] = set()
    for circuits in _sets(nodes, wavelengths, max_hops):
        partial = {state}
        for circuit in circuits:
            u, v = circuit[0], _target(nodes, circuit)
            new = state[u] & ~state[v]
            if new:
                partial = {
                    (*now[:v], now[v] | 1 << o, *now[v + 1 :]) for now in partial for o in range(nodes) if new >> o & 1
                }
        results |= partial
    return results


def _completes(state: State, nodes: int, wavelengths: int, max_hops: int) -> bool:
    """Whether one step from here brings every item everywhere."""
    full = (1 << nodes) - 1
    if max(bin(full & ~bits).count("1") for bits in state) > 2 * wavelengths:
        return False
    for circuits in _sets(nodes, wavelengths, max_hops):
        into: list[list[int]] = [[] for _ in range(nodes)]
        for circuit in circuits:
            v = _target(nodes, circuit)
            into[v].append(state[circuit[0]] & ~state[v])
        if all(_covers(into[v], full & ~state[v]) for v in range(nodes)):
            return True
    return False


def _covers(offers: list[int], missing: int) -> bool:
    """Whether every missing item can come over a circuit of its own."""
    if not missing:
        return True
    item = missing & -missing
    return any(
        offer & item and _covers(offers[:i] + offers[i + 1 :], missing & ~item) for i, offer in enumerate(offers)
    )
