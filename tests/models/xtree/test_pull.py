"""What `pull` promises: verified schedules, the bound met on the paper's networks, reproduced by the seed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from examples import some_of
from models.xtree.cases import instance_of

from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references import multitree, pull, xtree


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("kind", "rows", "cols", "steps"),
    [
        # EquiMesh, in-degree 4, C = 4: every node receives (N-1)*4 chunks over 4 links: N-1 steps
        ("equimesh", 3, 3, 8),
        ("equimesh", 4, 4, 15),
        ("equimesh", 5, 5, 24),
        ("equimesh", 8, 8, 63),
        ("equimesh", 5, 11, 54),
        # mesh: a corner has two links, ceil(63*4/2) = 126; torus: four links everywhere, 63
        ("mesh", 8, 8, 126),
        ("torus", 8, 8, 63),
    ],
)
def test_meets_the_bound(kind: str, rows: int, cols: int, steps: int) -> None:
    instance = instance_of({"kind": kind, "rows": rows, "cols": cols}, 4)
    assert lower_bound(instance)[0] == steps
    outcome = pull.solve(instance, RunOptions(seed=0))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.faults == []
    assert verdict.value == steps
    # nothing is sent twice: N*C chunks reach the N-1 other nodes
    nodes = rows * cols
    assert verdict.facts["transfers"] == nodes * 4 * (nodes - 1)
    assert verdict.facts["redundant_transfers"] == 0


def columns(schedule: object) -> list[bytes]:
    return [getattr(schedule, name).tobytes() for name in ("step", "link", "chunk", "adds")]


@pytest.mark.parametrize("method", [pull.solve, xtree.solve])
def test_a_seed_reproduces_the_schedule(method: object) -> None:
    """Equal seeds give equal transfers, other seeds other ones (72 transfers leave room to differ)."""
    assert callable(method)
    instance = instance_of({"kind": "equimesh", "rows": 3, "cols": 3}, 1)
    first, again, other = (columns(method(instance, RunOptions(seed=s)).solution) for s in (5, 5, 6))
    assert first == again
    assert first != other


def test_more_restarts_never_hurt() -> None:
    """Restart r uses the same random numbers however many follow, and the best is kept."""
    instance = instance_of({"kind": "torus", "rows": 5, "cols": 5}, 1)
    steps = [pull.solve(instance, RunOptions(method={"restarts": n})).solution.steps for n in (1, 3, 9)]
    assert steps == sorted(steps, reverse=True)


@pytest.mark.long(after=7)
@pytest.mark.parametrize("collective", ["reduce_scatter", "allreduce"])
@pytest.mark.parametrize("rings", some_of((one,) for one in product(("even_up", "odd_up"), repeat=4)))
def test_reductions_on_mixed_ring_directions(collective: str, rings: tuple[str, ...]) -> None:
    """The reversed EquiMesh has every ring turned round; schedules built there and played backwards must still use
    links of the real one, counting every contribution once."""
    sides = dict(zip(("top", "bottom", "left", "right"), rings, strict=True))
    instance = instance_of({"kind": "equimesh", "rows": 3, "cols": 4, "rings": sides}, 2, collective)
    for solve in (pull.solve, xtree.solve_mirror):
        schedule = solve(instance, RunOptions(method={"restarts": 2})).solution
        verdict = check_schedule(instance, schedule)
        assert verdict.faults == []
        assert verdict.value is not None
        assert verdict.value >= lower_bound(instance)[0]
        assert int(schedule.adds.sum()) == 24 * 11  # every chunk's 11 foreign contributions are added in 11 transfers


def test_published_methods_refuse_other_collectives() -> None:
    allgather = instance_of({"kind": "ring", "nodes": 4}, 1)
    with pytest.raises(UnsupportedError, match="use xtree for allgather"):
        xtree.solve_mirror(allgather, RunOptions())
    with pytest.raises(UnsupportedError, match="use mirror_xtree"):
        xtree.solve(instance_of({"kind": "ring", "nodes": 4}, 1, "allreduce"), RunOptions())


def star(leaves: int) -> XTreeInstance:
    links = [{"src": a, "dst": b} for leaf in range(1, leaves + 1) for a, b in ((0, leaf), (leaf, 0))]
    return instance_of({"kind": "links", "nodes": leaves + 1, "links": links}, 1)


def test_many_links_into_one_node() -> None:
    """The matching keeps a node's links in the bits of one integer: 62 links work, 63 are refused in words.

    Star of 62 leaves: a leaf's one link brings it 62 chunks, and the hub has all of them after step 1: 62 steps.
    """
    instance = star(62)
    verdict = check_schedule(instance, pull.solve(instance, RunOptions()).solution)
    assert verdict.faults == []
    assert verdict.value is not None
    assert verdict.value >= lower_bound(instance)[0] == 62
    with pytest.raises(UnsupportedError, match="62 links"):
        pull.solve(star(63), RunOptions())


def test_pull_uses_parallel_links() -> None:
    """Two nodes, three links up and one down, C=3: up all three at once, down one per step: 3 steps, 6 transfers."""
    links = [{"src": 0, "dst": 1}] * 3 + [{"src": 1, "dst": 0}]
    instance = instance_of({"kind": "links", "nodes": 2, "links": links}, 3)
    schedule = pull.solve(instance, RunOptions()).solution
    assert check_schedule(instance, schedule).value == 3
    up = schedule.link < 3
    assert np.array_equal(np.sort(schedule.link[up]), [0, 1, 2])
    assert set(schedule.step[up].tolist()) == {1}


@pytest.mark.parametrize("chunks", [1, 2])
def test_what_stands_in_costs_less_than_a_restart(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    """A large instance's run holds MultiTree's schedule first where that is quicker to make: from two chunks a node."""
    made = []
    allgather = multitree.allgather
    monkeypatch.setattr(multitree, "allgather", lambda *words: made.append(words) or allgather(*words))
    monkeypatch.setattr(multitree, "LARGE", 1)
    instance = instance_of({"kind": "torus", "rows": 3, "cols": 3}, chunks)
    assert pull.solve(instance, RunOptions()).termination == "finished"
    assert len(made) == (chunks > 1)
