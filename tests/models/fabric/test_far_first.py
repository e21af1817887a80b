"""Allgather and reduce-scatter over switches that copy or add, as ``in_network`` sends them."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from examples import some_of
from models.fabric.test_tree_replay import adding_machine
from models.fabric.tree_replay import replay as plain_replay

from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.references.in_network import far_first
from synth_models.fabric.references.in_network import method as in_network
from synth_papers.fabric.nvls import MACHINES

FEW = 400  # transfers
MOST_GAP = {2**10: 0.002, 2**16: 0.001, 2**20: 0.04, 2**24: 0.02}
THREE_LEVELS = MACHINES["fat-tree-sharp, 3 levels"]


def solved(instance: FabricInstance) -> float | None:
    """Seconds of the method's schedule, which both replays judge alike (the plain one of few transfers); None where it
    is none for it."""
    found = in_network.solve(instance, RunOptions(time_limit_s=20.0).started_now())
    if found.termination == "unsupported":
        return None
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    if len(found.solution.start) <= FEW:
        faults, ticks = plain_replay(instance, found.solution)
        assert not faults
        assert verdict.value == float_above(Fraction(ticks, found.solution.ticks_per_s))
    return verdict.value


def drawn(chooser: random.Random, collective: str) -> FabricInstance:
    """A machine whose ranks reach each other as the collective needs them to."""
    while True:
        found = adding_machine(chooser)
        if found.collective == collective:
            return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(8)))
def test_random_machines(seed: int) -> None:
    """40 machines a seed, some of whose switches copy and add, with and without limits: schedules are valid and below
    no bound. Some branch."""
    chooser, seen = random.Random(seed), Counter[str]()
    for k in range(40):
        instance = drawn(chooser, far_first.KNOWN[k % 2])
        value = solved(instance)
        seen["none" if value is None else "made"] += 1
        if value is not None:
            assert strongest(instance, RunOptions(time_limit_s=0.5).started_now()).seconds <= value
    assert seen["made"] >= 3, seen
    assert seen["none"] >= 3, seen


@pytest.mark.parametrize("size", MOST_GAP)
@pytest.mark.parametrize("collective", far_first.KNOWN)
@pytest.mark.parametrize("machine", ["fat-tree-sharp, 2 levels", "fat-tree-sharp, 3 levels"])
def test_fat_trees_are_near_their_bounds(machine: str, collective: str, size: int) -> None:
    """The bound is that of a rank's port, which is idle until the nearest data come."""
    instance = MACHINES[machine](collective, size, True)
    value = solved(instance)
    assert value is not None
    proven = float(strongest(instance, RunOptions(time_limit_s=5.0).started_now()).seconds)
    assert proven <= value <= proven / (1 - MOST_GAP[size])


def test_what_goes_near_fills_gaps() -> None:
    """1 MiB on three levels: sent in the order of distance, the last of the farthest arrive 4 us after the nearest
    could, 26.97 us and 25.66 us by one port; the method's schedule is quicker, and cut it is no slower."""
    value = solved(THREE_LEVELS("allgather", 2**20, True))
    assert value is not None
    assert value < 15 * 2**16 / 50e9 + 6e-6


def test_without_copies_or_sums_nothing_branches() -> None:
    plain = THREE_LEVELS("allgather", 2**20, False)
    assert solved(plain) is None
    assert far_first.variants(plain) is None
