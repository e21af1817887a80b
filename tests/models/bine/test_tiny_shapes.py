"""Every method on every tiny shape: a solution that the check takes, or ``unsupported`` with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import synth
from synth.api import method_options
from synth.errors import InputError, SizeLimitError, UnsupportedError
from synth.options import RunOptions
from synth_models.bine import FAMILY
from synth_models.bine.check.replay import check_messages
from synth_models.bine.instance import TREES, BineInstance

FORMS = [*((what, None) for what in ("scatter", "gather", "allgather", "reduce_scatter", "alltoall")),
         *product(("broadcast", "reduce", "allreduce"), ("small", "large"))]  # fmt: skip
ALWAYS = [("1", {"ranks_per_node": 2}), ("1", {"ranks_per_node": 3}), ("3", {}), ("1,1", {"ranks_per_node": 2})]
GROUPS = ["2", "3", "4", "5", "1,1", "1,2", "2,1", "1,1,1", "2,2", "3,1", "2,2,1"]
NODES = [{}, {"ranks_per_node": 2}, {"ranks_per_node": 3}, {"ranks_per_node": 2, "rank_order": "round_robin"}]
TORI = ["2", "3", "4", "5", "2x2", "2x3", "3x3", "2x2x2"]
CHOICES: dict[str, list[dict[str, Any]]] = {
    "recursive": [{"order": "halving"}, {"order": "doubling"}],
    "swing": [{"order": "halving"}, {"order": "doubling"}],
    "bine": [{"order": o, "blocks": b} for o in ("halving", "doubling") for b in ("permute", "pieces", "exchange")],
    "hierarchical": [{"between": name} for name in ("bine", "recursive", "ring")],
}


def quick_or_slow(rows: list[tuple[Any, ...]], quick: int) -> list[Any]:
    """Parameters, of which the first ``quick`` are always tried."""
    return [*rows[:quick], *(pytest.param(*row, marks=pytest.mark.slow) for row in rows[quick:])]


def instances(shape: dict[str, Any]) -> Iterator[BineInstance]:
    """All that can be asked of a shape: collectives, vectors, problems, first and last root."""
    for (collective, vector), problem in product(FORMS, ("any", "tree", "butterfly")):
        keys = {**shape, "collective": collective, "problem": problem, "bytes": 840, "name": "t"}
        keys |= {} if vector is None else {"vector": vector}
        try:
            first = synth.make("bine", **keys)
        except InputError:
            continue  # a problem that this collective does not have
        yield first
        last = min(job.groups.size for job in first.jobs) - 1 if first.jobs else 0
        if collective in TREES and last:
            yield synth.make("bine", **keys, root=last)


def ended(instance: BineInstance, name: str, chosen: dict[str, Any]) -> str:
    """How the method ended: its solution and bound are checked, its reason is there."""
    method = FAMILY.method(name)
    solver, own = method_options(FAMILY, method, None, {})
    options = RunOptions(time_limit_s=10.0, solver=solver, method={**own, **chosen}).started_now()
    try:
        outcome = method.load()(instance, options)
    except (UnsupportedError, SizeLimitError) as error:
        return "unsupported" if str(error) else "no reason"
    if outcome.solution is None:
        assert method.kind == "bound" or (outcome.termination in ("unsupported", "infeasible") and outcome.message)
        return outcome.termination
    verdict = check_messages(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    assert outcome.bound is None or outcome.bound <= verdict.value
    return "solved"


def test_one_rank_is_no_collective() -> None:
    for shape in ({"groups": "1"}, {"torus": "1"}, {"torus": "1x1"}, {"groups": "1", "ranks_per_node": 1}):
        with pytest.raises(InputError):
            synth.make("bine", **shape, collective="allreduce", vector="large")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    "jobs",
    [
        [("ax3", "nx3"), ("ax1 bx1", "nx1 mx1"), ("ax2 bx2", "nx1 mx1 kx1 lx1")],
        [("ax3", "nx2 mx1"), ("ax2", "nx2")],
        [("ax1 bx2 ax1", "nx1 mx2 nx1")],
        [("ax2 bx3", None), ("ax5", None), ("ax6 bx2", "nx2 mx2 kx2 lx2")],
    ],
    ids=str,
)
def test_every_method_on_jobs_of_unlike_shapes(jobs: list[tuple[str, str | None]]) -> None:
    """Several jobs at once: of one node, of nodes with unequal numbers of ranks, of nodes that a rank comes back to."""
    rows = [
        {"name": f"j{i}", "allocation": groups, **({} if nodes is None else {"nodes": nodes})}
        for i, (groups, nodes) in enumerate(jobs)
    ]
    count = 0
    for (collective, vector), problem in product(FORMS, ("any", "tree", "butterfly")):
        raw = {"family": "bine", "name": "t", "source": "test", "jobs": rows, "collective": collective, "bytes": 840}
        raw |= {"problem": problem} | ({} if vector is None else {"vector": vector})
        try:
            instance = BineInstance.model_validate(raw)
        except ValueError:
            continue  # a problem that this collective does not have
        for name in FAMILY.methods:
            for chosen in CHOICES.get(name, [{}]):
                count += ended(instance, name, chosen) == "solved"
    assert count > 20


@pytest.mark.parametrize(("key", "torus"), quick_or_slow([("torus", torus) for torus in TORI], 3))
def test_every_method_on_every_tiny_torus(key: str, torus: str) -> None:
    assert solved({key: torus}) > 20


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("groups", "nodes"), ALWAYS + quick_or_slow(list(product(GROUPS, NODES)), 0), ids=str)
def test_every_method_on_every_tiny_shape_of_groups(groups: str, nodes: dict[str, Any]) -> None:
    assert solved({"groups": groups, **nodes}) > 20


def solved(shape: dict[str, Any]) -> int:
    """How many of a shape's questions are answered by a solution."""
    count = 0
    for instance in instances(shape):
        for name in FAMILY.methods:
            for chosen in CHOICES.get(name, [{}]):
                how = ended(instance, name, chosen)
                assert how != "no reason"
                count += how == "solved"
    return count
