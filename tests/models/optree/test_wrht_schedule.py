"""WRHT's routing as circuits: replayed, held against its routing's definition, a lower bound and exhaustive search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.optree.cases import limited, ring

import synth
from synth_models.optree.check.counts import count_steps
from synth_models.optree.check.replay import check_solution
from synth_models.optree.references.wrht_schedule import least_steps, wrht_circuits

State = tuple[int, ...]  # bit o of entry v: node v holds item o


def _allowed(nodes: int, wavelengths: int, variant: int) -> set[tuple[int, int]]:
    """Pairs of nodes that WRHT lets talk, from its definition: group members with the middle one, the top ones."""
    group, left = 2 * wavelengths + 1, list(range(nodes))
    pairs: set[frozenset[int]] = set()
    while len(left) > (1 if variant == 2 else group):
        middles = []
        for k in range(0, len(left), group):
            members = left[k : k + group]
            middles.append(members[len(members) // 2])
            pairs |= {frozenset((member, middles[-1])) for member in members if member != middles[-1]}
        left = middles
    pairs |= {frozenset((a, b)) for a in left for b in left if a != b}
    return {(a, b) for a, b in map(tuple, pairs)} | {(b, a) for a, b in map(tuple, pairs)}


@settings(derandomize=True, max_examples=some(200), deadline=None)
@given(st.integers(2, 70), st.integers(1, 8), st.sampled_from((1, 2)))
def test_any_ring_replays(nodes: int, wavelengths: int, variant: int) -> None:
    circuits, stages = wrht_circuits(nodes, wavelengths, variant)
    verdict = check_solution(ring(nodes, wavelengths), circuits)
    assert verdict.ok, verdict.faults
    assert verdict.value == sum(stages) == circuits.steps
    assert verdict.facts["redundant_circuits"] == 0
    talking = set(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True))
    assert talking <= _allowed(nodes, wavelengths, variant)
    least = least_steps(nodes, wavelengths, variant)
    assert least is None or verdict.value >= least


@pytest.mark.parametrize(
    ("nodes", "wavelengths", "variant", "stages"),
    [
        (4, 1, 1, (1, 2, 3)),  # {0,1,2} in 1; 1 and 3 exchange 3 items by two links; 1 sends 0 and 2 three each
        (5, 2, 1, (0, 2, 0)),  # one group: 3 wavelengths for all to all
        (4, 2, 2, (1, 0, 3)),  # node 2 collects; two members on one side lack 3 items each, over 2 wavelengths
        (1024, 64, 1, (1, 17, 1023)),  # 129 items among 8 nodes: ceil(129 * 8 / 64); a full group lacks 1023
    ],
)
def test_stages_by_hand(nodes: int, wavelengths: int, variant: int, stages: tuple[int, int, int]) -> None:
    circuits, found = wrht_circuits(nodes, wavelengths, variant)
    assert tuple(found) == stages
    assert check_solution(ring(nodes, wavelengths), circuits).value == sum(stages)


def test_smallest_rings_below_their_routing() -> None:
    """The printed counts first fall below what their routing takes at least at these rings, in order of size."""

    def below(variant: int, levels: int) -> tuple[int, int]:
        for nodes in range(2, 40):
            for wavelengths in range(1, nodes):
                counted = count_steps(nodes, wavelengths, "wrht", (variant,))
                least = least_steps(nodes, wavelengths, variant)
                if counted.facts["levels"] == levels and least is not None and counted.steps < least:
                    return nodes, wavelengths
        raise AssertionError

    assert (below(1, 2), below(2, 1), below(2, 2)) == ((7, 1), (4, 2), (16, 2))


@pytest.mark.parametrize(("variant", "fewest"), [(1, 5), (2, 5)])
def test_no_order_takes_fewer_steps_than_the_bound(variant: int, fewest: int) -> None:
    """Exhaustive on 4 nodes with one wavelength: all circuits between the pairs that WRHT lets talk, in any order."""
    assert least_steps(4, 1, variant) == 5
    assert _fewest(4, _allowed(4, 1, variant)) == fewest


def _fewest(nodes: int, pairs: set[tuple[int, int]]) -> int:
    """The fewest steps with one wavelength and circuits between these pairs only, breadth first."""
    full = (1 << nodes) - 1
    states: set[State] = {tuple(1 << v for v in range(nodes))}
    arcs = []
    for u, v in sorted(pairs):
        for way in (0, 1):
            hops = (v - u) % nodes if way == 0 else (u - v) % nodes
            links = sum(1 << (nodes * way + ((u + k) % nodes if way == 0 else (u - k) % nodes)) for k in range(hops))
            arcs.append((u, v, links))
    for step in range(1, 3 * nodes):
        after = {new for state in states for new in _steps(state, arcs, 0, 0, state)}
        if any(all(held == full for held in state) for state in after):
            return step
        states = _undominated(after)
    raise AssertionError("no schedule")


def _steps(state: State, arcs: list[tuple[int, int, int]], first: int, taken: int, now: State) -> Iterator[State]:
    """What nodes may hold after one step from ``state``; links are taken by at most one circuit."""
    yield now
    for i in range(first, len(arcs)):
        u, v, links = arcs[i]
        useful = state[u] & ~now[v]
        if not links & taken:
            while useful:
                item = useful & -useful
                useful ^= item
                yield from _steps(state, arcs, i + 1, taken | links, (*now[:v], now[v] | item, *now[v + 1 :]))


def _undominated(states: set[State]) -> set[State]:
    """Without the states that another one includes."""
    kept: list[State] = []
    for state in sorted(states, key=lambda state: -sum(held.bit_count() for held in state)):
        if not any(all(a & b == a for a, b in zip(state, other, strict=True)) for other in kept):
            kept.append(state)
    return set(kept)


def test_the_method_makes_the_circuits() -> None:
    record = synth.solve(ring(16, 2), "wrht", options={"circuits": "on"})
    assert record.ok, record["verified"]["faults"]
    assert (record.value, record["message"]) == (21, "collect 1, exchange 5, broadcast 15 steps")
    assert synth.solve(ring(16, 2), "wrht").value == 11  # the printed count stays what it was


def test_a_budget_below_its_longest_circuit_is_unsupported() -> None:
    longest = check_solution(ring(16, 2), wrht_circuits(16, 2, 1)[0]).facts["longest_circuit_hops"]
    record = synth.solve(limited(16, 2, longest - 1), "wrht", options={"circuits": "on"})
    assert record["termination"] == "unsupported"
    assert synth.solve(limited(16, 2, longest), "wrht", options={"circuits": "on"}).ok
