"""The schedule that methods hold before their own searches: valid wherever there is one, and there at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some_of

import synth
from synth.family import get_family
from synth.graph.shortest_paths import PathTrees
from synth.options import RunOptions
from synth.records.verify import replay
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.first_schedule import AT_ONCE, hold_first
from synth_models.fabric.problem.blocks import COLLECTIVES
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.programs.forest import edge_splitting
from synth_models.fabric.programs.forest.capacities import Fluid, fluid_of, set_rate
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.solution import Schedule

FAMILY = get_family("fabric")
SHIPPED = sorted(path for path in Path("instances/fabric").glob("*.json") if "-several-" not in path.stem)
MACHINES: dict[str, dict[str, Any]] = {
    "boxes": {"machine": "dgx-h100", "boxes": 2},
    "nvlinks": {"machine": "dgx1"},
    "line": {"network": "line", "nodes": 4},
    "one-way": {"network": "ring", "nodes": 5, "bidirectional": "off"},
    "mesh": {"network": "mesh", "rows": 3, "cols": 4},
    "group": {"network": "mesh", "rows": 3, "cols": 4, "ranks": "0,2,5,7", "relay": "on"},
    "hops": {"network": "dragonfly", "groups": 2, "routers": 2, "hosts": 2, "switching": "store_and_forward"},
}


def held(instance: FabricInstance) -> Schedule | None:
    """The quickest of the schedules that a run holds at its start."""
    options = RunOptions()
    hold_first(instance, options, "the method", 0)
    return None if options.held.solution is None else options.held.solution()


@pytest.mark.long(after=13)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_there_is_one_for_every_shipped_instance(path: Path) -> None:
    """Replayed by the check, which knows nothing of how it was made."""
    instance = synth.read(path)
    found = held(instance)
    assert found is not None
    verdict = replay(FAMILY, instance, found)
    assert verdict.ok, verdict.faults
    assert verdict.value is not None


@pytest.mark.long(after=17)
@pytest.mark.parametrize("where", MACHINES)
@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if name not in ("demand", "traffic")])
def test_it_is_valid_on_any_machine(where: str, collective: str) -> None:
    """Also over ranks, one way only, hop by hop; None only for sums over ranks that have nothing to add."""
    instance = synth.make("fabric", **MACHINES[where], collective=collective, bytes=960_000)
    found = held(instance)
    if found is None:
        assert where == "group"
        assert collective in ("reduce_scatter", "allreduce", "reduce")
        return
    verdict = replay(FAMILY, instance, found)
    assert verdict.ok, verdict.faults


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "boxes", "collective"),
    some_of([("pull", 8, "allgather"), ("pull", 5, "reduce_scatter"), ("forest", 5, "allgather"),
             ("flow", 5, "alltoall")]),
)  # fmt: skip
def test_nothing_that_starts_from_it_ends_with_a_slower_one(method: str, boxes: int, collective: str) -> None:
    """Also where the method ends by itself, with what its own searches have found; nor are the library's rings."""
    instance = synth.make("fabric", machine="dgx-h100", boxes=boxes, collective=collective, bytes="1GiB")
    first = held(instance)
    assert first is not None
    found = synth.solve(instance, method, time_limit=1.0)
    assert found.value is not None
    assert found.value <= float_above(seconds(instance, first))  # values are rounded up
    if method == "pull":
        rings = synth.solve(instance, "ring").value
        assert rings is not None
        assert found.value <= rings


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allgather"])
def test_quickest_paths_are_searched_from_few_ranks_at_a_time(collective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit is obeyed between two searches, so none may be from all ranks; a stop by then leaves a schedule of a
    rooted collective, which needs the paths from one rank only; and rings ask for those of a rank once."""
    instance = synth.make("fabric", machine="dgx-h100", boxes=20, collective=collective, bytes=160 * 2**16)
    trees, asked = PathTrees.trees, list[int]()
    options = RunOptions()

    def noted(self: PathTrees, length: Any, sources: Any) -> Any:
        if collective != "allgather" and len(asked) == 1:
            assert options.held.solution is not None
        asked.append(len(sources))
        return trees(self, length, sources)

    monkeypatch.setattr(PathTrees, "trees", noted)
    hold_first(instance, options, "the method", 0)
    assert max(asked) <= AT_ONCE < 160
    assert sum(asked) == (320 if collective == "allgather" else 161)


def test_a_run_holds_the_better_one() -> None:
    """Its value is what the check finds."""
    instance, options = synth.make("fabric", machine="dgx1", collective="allgather", bytes="1GiB"), RunOptions()
    hold_first(instance, options, "the method", 0)
    assert options.held.solution is not None
    verdict = replay(FAMILY, instance, options.held.solution())
    assert verdict.value == pytest.approx(options.held.value)


def fluid(keys: dict[str, Any]) -> Fluid:
    """The fluid of a machine at its greatest rate, its switches still there."""
    instance = synth.make("fabric", **keys, collective="allgather", bytes=960_000)
    members = np.array(instance.members)
    made = fluid_of(instance.machine, members, dict.fromkeys(instance.members, 1))
    set_rate(made)
    edge_splitting.trim(made)
    return made


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    "keys",
    [
        {"machine": "dgx-h100", "boxes": 2},
        {"machine": "dgx-a100", "boxes": 3},
        {"machine": "ndv2", "boxes": 2},
        {"network": "fat_tree", "leaves": 3, "hosts": 2, "spines": 2},
        {"network": "dragonfly", "groups": 3, "routers": 2, "hosts": 1},
    ],
    ids=str,
)
def test_switches_split_off_together_leave_what_they_leave_one_by_one(
    keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts are looked at after several switches, and again one by one where they object."""
    together, alone = fluid(keys), fluid(keys)
    edge_splitting.split_off(together)

    class Careful(edge_splitting._Switch):
        def __init__(self, *given: Any, trusting: bool = False) -> None:
            super().__init__(*given)

    monkeypatch.setattr(edge_splitting, "_Switch", Careful)
    edge_splitting.split_off(alone)
    assert np.array_equal(together.capacity, alone.capacity)
    for pair, parts in alone.shares.items():
        assert sorted(together.shares[pair]) == sorted(parts)
