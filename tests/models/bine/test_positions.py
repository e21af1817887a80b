"""All placements counted over sets of positions, by the bound and by the check, against placements one by one."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from models.bine.test_programs import make, run

from synth_models.bine.bounds import positions
from synth_models.bine.check import placements
from synth_models.bine.check.certificates import check_bound, isoperimetric
from synth_models.bine.check.certificates import positions as counted

COLLECTIVES = [{"collective": "allreduce", "vector": "large"}, {"collective": "allreduce", "vector": "small"}]
COLLECTIVES += [{"collective": "allgather"}, {"collective": "alltoall"}]


def partitions(ranks: int, most: int):
    """All falling rows of whole numbers that sum up to ``ranks``."""
    if ranks == 0:
        yield ()
    for first in range(min(ranks, most), 0, -1):
        yield from ((first, *rest) for rest in partitions(ranks - first, first))


def one_by_one(instance, placed) -> float:
    """Bytes of the best of these placements, shape (placements, ranks): the rank at every position."""
    ranks = placed.shape[1]
    match instance.collective, instance.vector:
        case "alltoall", _:
            weights = [ranks // 2] * 8
        case "allreduce", "small":
            weights = [1] * 8
        case collective, _:
            weights = [(2 if collective == "allreduce" else 1) * (ranks >> bit + 1) for bit in range(8)]
    cut = np.zeros(len(placed), dtype=np.int64)
    by_position = np.ascontiguousarray(placed.T)
    for bit, v in product(range(ranks.bit_length() - 1), range(ranks)):
        if v < v ^ (1 << bit):  # there and back
            cut += 2 * weights[bit] * instance.crossings(0, by_position[v], by_position[v ^ (1 << bit)])
    return instance.bytes_of([(ranks, int(cut.min()))])


def both(instance) -> tuple[float, float]:
    """What the bound finds and what the check counts."""
    least = run("bound", instance).bound
    assert check_bound(instance, least, {"binding": "positions"}) == []
    assert check_bound(instance, np.nextafter(least, np.inf), {"binding": "positions"}) != []
    return least, counted(instance)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_partition_against_every_placement(ranks: int, collective: dict[str, str]) -> None:
    placed = np.array(list(permutations(range(ranks))))
    for sizes in partitions(ranks, ranks - 1):
        instance = make(groups=",".join(map(str, sizes)), problem="butterfly", **collective)
        expected = one_by_one(instance, placed)
        assert both(instance) == (expected, expected), sizes
        assert isoperimetric(instance) <= expected


@pytest.mark.parametrize("costs", ["0,1,3", "0,1,1", "1,2,5"])
@pytest.mark.parametrize("sizes", ["3,1", "2,1,1", "2,2", "1,1,1,1"])
def test_nodes_of_groups_against_every_placement(sizes: str, costs: str) -> None:
    placed = np.array(list(permutations(range(8))))
    for collective in COLLECTIVES:
        instance = make(groups=sizes, ranks_per_node=2, costs=costs, problem="butterfly", **collective)
        expected = one_by_one(instance, placed)
        assert both(instance) == (expected, expected)


@pytest.mark.long
def test_sixteen_ranks_against_every_placement() -> None:
    """7, 6 and 3 ranks fall on 16 positions in 960,960 ways; the isoperimetric count is 9 % below the best."""
    instance = make(groups="7,6,3", collective="reduce_scatter", problem="butterfly")
    second = np.array(list(combinations(range(9), 6)))
    placed = []
    for first in combinations(range(16), 7):
        rest = np.array([v for v in range(16) if v not in first])
        rows = np.full((len(second), 16), 13)
        rows[:, first] = 0
        np.put_along_axis(rows, rest[second], 7, axis=1)
        placed.append(rows)
    expected = one_by_one(instance, np.concatenate(placed))
    assert both(instance) == (expected, expected) == (4325376.0, 4325376.0)
    assert isoperimetric(instance) == 3932160.0


def test_a_job_of_more_ranks_keeps_the_isoperimetric_count() -> None:
    instance = make(groups="17,15", collective="allgather", problem="butterfly")
    assert counted(instance) == isoperimetric(instance) == run("bound", instance).bound
    assert run("bound", instance).certificate == {"binding": "isoperimetric"}


def test_too_many_kinds_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check says so, and the bound falls back on the isoperimetric count."""
    instance = make(groups="3,3,2", collective="allgather", problem="butterfly")
    assert run("bound", instance).certificate == {"binding": "positions"}
    monkeypatch.setattr(positions, "MOST_KINDS", 0)
    monkeypatch.setattr(placements, "MOST_KINDS", 0)
    assert run("bound", instance).certificate == {"binding": "isoperimetric"}
    assert run("placement", instance).certificate is None
    assert "0 kinds" in check_bound(instance, 1.0, {"binding": "positions"})[0]


def test_only_for_butterflies() -> None:
    instance = make(groups="3,3,2", collective="allgather")
    assert check_bound(instance, 1.0, {"binding": "positions"}) != []
