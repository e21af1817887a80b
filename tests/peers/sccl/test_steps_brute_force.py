"""SCCL's question against everything tried: all networks of two and three ranks, some of four."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from examples import some_of
from models.fabric.small_machines import machine
from peers.sccl.steps_oracle import answer
from peers.sccl.test_steps import COLLECTIVES, options

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_peers.sccl.check.counted_steps import fault_of
from synth_peers.sccl.programs.lp_relaxation import relaxed
from synth_peers.sccl.programs.one_question import Decider
from synth_peers.sccl.programs.plan import schedule_of


def oracle_chunks(instance: FabricInstance, copies: int) -> list[tuple[int | None, list[int]]]:
    rows = zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True)
    everyone = list(instance.members)
    return [
        (None if origin == EVERYONE else origin, everyone if goal == EVERYONE else [goal])
        for origin, goal in rows
        for _ in range(copies)
    ]


def small_instance(ranks: int, links: list[tuple[int, int, int]], collective: str) -> FabricInstance:
    rows = [(u, v, 100.0 * c, 0.25) for u, v, c in links]
    if links and {c for _, _, c in links} == {2}:  # capacities are ratios
        rows = [(u, v, 100.0, 0.25) for u, v, _ in links]
    return machine(ranks, rows, collective=collective, bytes=24 * ranks)


def agrees(
    ranks: int,
    links: list[tuple[int, int, int]],
    collective: str,
    question: tuple[int, int, int],
    solvers: tuple[str, ...] = ("cpsat",),
) -> None:
    """Programs, counting and relaxation against everything tried; a plan passes the check."""
    try:
        instance = small_instance(ranks, links, collective)
    except ValueError:  # not connected enough
        return
    if {c for _, _, c in links} == {2}:
        links = [(u, v, 1) for u, v, _ in links]
    steps, rounds, copies = question
    unit = ranks if collective == "alltoall" else 1
    asked = (steps, rounds, copies * unit)
    expected = answer(ranks, links, oracle_chunks(instance, copies), steps, rounds)
    for solver in solvers:
        decider = Decider(instance, options(instance, solver))
        decided = decider.decide(asked)
        assert decided.answer == ("feasible" if expected else "infeasible"), (links, collective, asked, solver)
        if decided.plan is not None:
            schedule = schedule_of(instance, decider.arcs, decided.plan, {})
            verdict = check_schedule(instance, schedule)
            assert verdict.ok, verdict.faults
            assert (verdict.facts["steps"], verdict.facts["rounds"], verdict.facts["chunks"]) == asked
        elif decided.certificate is not None:
            assert fault_of(instance, asked, decided.certificate) is None
    if expected:  # no argument refutes what is possible
        assert decider.refuter.refuted(asked) is None
        loose = relaxed(instance, decider.arcs, steps, rounds)
        assert loose is None or loose.most >= copies - 1e-6


@pytest.mark.long(after=2)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_all_networks_of_two_and_three_ranks(collective: str) -> None:
    """Every set of links between two or three ranks, one chunk and two."""
    pairs = list(permutations(range(3), 2))
    agrees(2, [(0, 1, 1), (1, 0, 2)], collective, (1, 2, 2))
    agrees(2, [(0, 1, 1), (1, 0, 1)], collective, (2, 2, 2))
    one_end = collective in ("broadcast", "gather", "scatter", "reduce")
    wanted = [(2, 2, 1), (2, 3, 2 if one_end else 1), (1, 2, 1), (3, 3, 1) if collective == "allreduce" else (1, 1, 1)]
    for bits in range(2 ** len(pairs)):
        links = [(u, v, 1) for k, (u, v) in enumerate(pairs) if bits >> k & 1]
        if len(links) >= 2:
            solvers = ("cpsat", "highs") if bits % 8 == 3 else ("cpsat",)
            agrees(3, links, collective, wanted[bits % len(wanted) if len(links) < 6 else 2], solvers)


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_random_networks_of_four_ranks(seed: int) -> None:
    """A ring one way and a few links more."""
    rng = random.Random(seed)
    collective = COLLECTIVES[seed % len(COLLECTIVES)]
    ring = [(u, (u + 1) % 4) for u in range(4)]
    others = [pair for pair in permutations(range(4), 2) if pair not in ring]
    crowded = collective in ("alltoall", "reduce_scatter", "allreduce")
    pairs = ring + rng.sample(others, rng.randint(0, 1 if crowded else 3))
    links = [(u, v, 1 if crowded else rng.choice((1, 1, 2))) for u, v in pairs]
    steps = rng.choice((2, 2, 3)) if not crowded else 2
    agrees(4, links, collective, (steps, steps + rng.choice((0, 0, 1)) * (not crowded), 1), ("cpsat", "highs"))
