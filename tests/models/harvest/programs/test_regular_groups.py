"""Groups that lead from every GPU to every other, and the best Cayley graphs of all of them."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from models.harvest.instances import made

from synth.options import RunOptions
from synth_models.harvest.bounds.automorphisms import generators
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.profiles import profile, step_time
from synth_models.harvest.programs.column_generation import cayley, cayley_pools
from synth_models.harvest.programs.column_generation.lifts import Lift
from synth_models.harvest.programs.column_generation.method import Columns
from synth_models.harvest.programs.column_generation.regular_groups import regular_lifts


def torus(sides: str, gpus: int, **more: object) -> HarvestInstance:
    keys = {"algorithm": "swing_torus", "torus": sides, "gpus": gpus, "ports": 4, "message_bytes": 1e6}
    return made(**(keys | more))


def groups_of(instance: HarvestInstance, seed: int = 0, most: int = 16) -> list[Lift]:
    patterns = list({rows.tobytes(): rows for rows in instance.demands}.values())
    kept = generators(patterns, instance.gpus)
    return regular_lifts(kept, patterns, np.random.default_rng(seed), most, lambda: False)


def commutes(lift: Lift) -> bool:
    return all(np.array_equal(a[b], b[a]) for a, b in product(lift.generators, repeat=2))


@pytest.mark.long
def test_each_leads_every_gpu_to_every_other_once_and_keeps_all_patterns() -> None:
    instance = torus("4x4", 16)
    found = groups_of(instance)
    everyone = np.arange(16)
    assert len(found) > 5
    assert any(commutes(lift) for lift in found)
    assert any(not commutes(lift) for lift in found)
    for lift in found:
        group = {tuple(moved) for moved in lift.moved.tolist()}
        assert len(group) == 16
        assert tuple(lift.moved[0]) == tuple(everyone)
        assert all(tuple(a[b]) in group for a, b in product(lift.moved, repeat=2))
        assert all(sorted(column) == everyone.tolist() for column in lift.moved.T.tolist())
        for rows, moved in product(instance.demands, lift.moved):
            assert {(moved[u], moved[v], m) for u, v, m in rows.tolist()} == {tuple(row) for row in rows.tolist()}


@pytest.mark.long
def test_the_same_seed_gives_the_same_groups_and_no_more_than_asked_for() -> None:
    instance = torus("4x4", 16)
    first, again = groups_of(instance, 3), groups_of(instance, 3)
    assert all(np.array_equal(a.moved, b.moved) for a, b in zip(first, again, strict=True))
    assert len(groups_of(instance, 3, most=2)) == 2


def test_swing_on_a_ring_has_one() -> None:
    """Shifts by two and reflections: what keeps permutations that lead everywhere is as large as they are."""
    assert len(groups_of(made(algorithm="swing", gpus=16, ports=2, message_bytes=1e6))) == 1


def best_over_groups(instance: HarvestInstance, lifts: list[Lift]) -> float:
    """Least seconds with Cayley graphs of these groups, of any of them before any step."""
    rows = list[list[float]]()
    for lift in lifts:
        for targets in combinations_with_replacement(range(instance.gpus), instance.ports):
            links = lift.links(np.array([targets]))
            rated = [profile(pairs, links, instance.gpus) if len(links) else () for pairs in instance.demands]
            if all(rated):
                rows.append([step_time(instance, step, one)[0] for step, one in enumerate(rated)])
    least = [0.0]
    for end in range(1, len(instance.steps) + 1):
        change = [instance.reconfiguration_delay if a else 0.0 for a in range(end)]
        least.append(min(least[a] + change[a] + min(sum(row[a:end]) for row in rows) for a in range(end)))
    return least[-1]


@pytest.mark.long
@pytest.mark.parametrize("many", [False, True], ids=["all rated", "annealed"])
def test_the_best_graphs_of_all_groups_together(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the per cent that the search's loads may lack, also where annealing must find them."""
    instance = torus("2x4", 8, ports=2, reconfiguration_delay=1e-6)
    columns = Columns(instance, RunOptions(solver="highs", method={}))
    lifts = columns.regular_lifts()
    assert len(lifts) > 1
    listed, best = columns.value, best_over_groups(instance, lifts)
    if many:
        monkeypatch.setattr(cayley, "MOST_WORK", 0)
        monkeypatch.setattr(cayley, "MOST_PAIRS", 0)
    columns.offer_cayley()
    assert columns.value <= min(best * 1.01, listed)
    verdict = check_schedule(instance, columns.ratings.schedule(columns.chosen))
    assert verdict.ok
    assert verdict.value == pytest.approx(columns.value, rel=1e-9)


def test_intervals_with_most_to_gain_are_apart() -> None:
    worth = np.array([[0.0, 3.0, 9.0, 8.0], [0.0, 0.0, 4.0, 7.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert cayley_pools.apart(worth) == [(0, 2), (2, 3)]
    assert cayley_pools.apart(np.zeros((3, 3))) == []
