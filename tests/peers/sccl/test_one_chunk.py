"""Refutations of allreduces by the price of one chunk: never against what is possible, and SCCL's two open rows."""

from __future__ import annotations

import random
from itertools import permutations
from math import gcd
from typing import Any

import pytest
from examples import some_of
from models.fabric.small_machines import machine
from peers.sccl.steps_oracle import answer
from peers.sccl.test_steps import dgx1, options

from synth.solvers import program
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_peers.sccl.check.counted_steps import fault_of
from synth_peers.sccl.programs import sums
from synth_peers.sccl.programs.method import solve
from synth_peers.sccl.programs.one_chunk import OneChunk
from synth_peers.sccl.programs.one_question import Decider
from synth_peers.sccl.programs.rank_arcs import rank_arcs

Link = tuple[int, int, int]


def allreduce(nodes: int, links: list[Link], **own: Any) -> FabricInstance | None:
    try:
        rows = [(u, v, 100.0 * c, 0.25) for u, v, c in links]
        return machine(nodes, rows, collective="allreduce", bytes=24 * nodes, **own)
    except ValueError:  # not connected enough
        return None


def fewest(instance: FabricInstance, question: tuple[int, int, int], copies: bool = True, limit: float = 60) -> int:
    """The fewest chunks that are refuted; 0 for none."""
    asked = options(instance, limit=limit)
    found, *seconds = OneChunk(rank_arcs(instance.machine), instance.members, copies).impossible(
        question, lambda: asked
    )
    assert min(seconds) >= 0
    assert found is None or 0 < found <= question[2]
    return found or 0


def exact(instance: FabricInstance, question: tuple[int, int, int], copies: bool) -> str:
    """The exact program's answer."""
    steps, rounds, chunks = question
    model = sums.build(rank_arcs(instance.machine), instance.members, chunks, steps, rounds, copies)
    return program.solve(model.program, options(instance, limit=5.0)).answer


def networks(ranks: int, draw: random.Random) -> list[list[Link]]:
    """A path, a ring, one with all pairs, and random links; of equal capacities and of several."""
    ring = [(u, v) for u in range(ranks) for v in {(u + 1) % ranks, (u - 1) % ranks}]
    path = [(u, v) for u, v in ring if abs(u - v) == 1]
    full = list(permutations(range(ranks), 2))
    some = [[(u, (u + 1) % ranks) for u in range(ranks)] + draw.sample(full, 2) for _ in range(3)]
    found = []
    for pairs in (path, ring, full, *some):
        for most in (1, 3):
            rooms = [draw.randint(1, most) for _ in set(pairs)]  # capacities are ratios
            found.append([(u, v, c // gcd(*rooms)) for (u, v), c in zip(sorted(set(pairs)), rooms, strict=True)])
    return found


@pytest.mark.parametrize("copies", [True, False])
def test_never_against_everything_tried(copies: bool) -> None:
    """Three ranks: what is refuted has no plan by the oracle, which knows nothing of programs."""
    refuted = 0
    for links in networks(3, random.Random(1)):
        instance = allreduce(3, links)
        for question in ((2, 2, 2), (2, 3, 2)) if len(links) < 5 else ((2, 2, 2),):
            found = fewest(instance, question, copies) if instance else 0
            if found:
                refuted += 1
                assert not answer(3, links, [(None, range(3))] * found, *question[:2], copies), (links, question)
    assert refuted >= 5


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_never_against_the_exact_program(seed: int) -> None:
    """Four ranks, some of them not asked: the exact program has no plan for what is refuted."""
    draw = random.Random(seed)
    refuted = 0
    for links in networks(4, draw):
        own = {"ranks": sorted(draw.sample(range(4), 3)), "relay": True} if draw.random() < 0.3 else {}
        instance = allreduce(4, links, **own)
        question = (draw.choice((2, 3)), draw.choice((3, 4)), draw.choice((3, 4, 6)))
        copies = draw.random() < 0.7
        found = fewest(instance, question, copies) if instance else 0
        if instance and found:
            refuted += 1
            assert exact(instance, (*question[:2], found), copies) != "feasible", (links, question)
    assert refuted >= 2


def test_two_ranks_by_hand() -> None:
    """Every chunk crosses either arc, once at least, and the slower carries one a round: 2 in 2 rounds."""
    for rooms in ((1, 1), (2, 1), (2, 2)):
        instance = allreduce(2, [(0, 1, rooms[0]), (1, 0, rooms[1])])
        assert instance
        assert fewest(instance, (2, 2, 2)) == 0
        assert fewest(instance, (2, 2, 9)) == 3


@pytest.mark.long
def test_a_dgx1_in_four_steps_and_rounds() -> None:
    """(4, 4, 12) has a plan, and at the prices of the packing one chunk costs a 12th of all, so 13 do not fit."""
    instance = dgx1("allreduce")
    asked = options(instance)
    one = OneChunk(rank_arcs(instance.machine), instance.members, True)
    assert one.impossible((4, 4, 14), lambda: asked)[0] == 13
    assert one.impossible((4, 4, 12), lambda: asked)[0] is None


@pytest.mark.slow
def test_most_chunks_of_a_dgx1_in_four_steps() -> None:
    """The refutation goes with the plan, and the check counts it again."""
    instance = dgx1("allreduce")
    verdict = check_schedule(instance, solve(instance, options(instance, limit=120, steps=4, rounds=4)).solution)
    assert verdict.ok
    assert verdict.facts["chunks"] == 12
    assert "4 steps, 4 rounds, 13 chunks: joining" in verdict.facts["refuted"]
    assert verdict.unverified == []


@pytest.mark.slow
def test_a_dgx1_in_four_steps_and_six_rounds() -> None:
    """All ten ways to cut 6 rounds into 4 steps."""
    assert fewest(dgx1("allreduce"), (4, 6, 20), limit=400) == 17


@pytest.mark.long
def test_the_decider_asks_what_one_chunk_costs() -> None:
    """A DGX-1 again: the refuted number is remembered, and a network where halves and counting settle it."""
    instance = dgx1("allreduce")
    decider = Decider(instance, options(instance, limit=15.0))
    decided = decider.decide((4, 4, 13))
    assert decided.answer == "infeasible"
    assert decided.certificate is not None
    assert fault_of(instance, (4, 4, 13), decided.certificate) is None
    assert fault_of(instance, (4, 4, 12), decided.certificate) is not None
    assert [known for known, _ in decider.refuted] == [(4, 4, 13)]
    three = allreduce(3, [(u, v, 1) for u, v in permutations(range(3), 2)])
    assert three
    decider = Decider(three, options(three))
    assert [decider.decide((2, 2, chunks)).answer for chunks in (4, 3)] == ["infeasible", "feasible"]
