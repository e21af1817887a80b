"""What the optree tests share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from models.optree.grid_brute_force import plain_replay

import synth
from synth.options import RunOptions
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import COLUMNS, Circuits

INSTANCES = Path(__file__).parents[3] / "instances" / "optree"
SHIPPED = sorted(INSTANCES.glob("*.json"))


def ring(nodes: int, wavelengths: int, **more: Any) -> OpTreeInstance:
    return OpTreeInstance(
        name=f"ring-{nodes}-w{wavelengths}", source="test", nodes=nodes, wavelengths=wavelengths, **more
    )


def limited(nodes: int, wavelengths: int, hops: int) -> OpTreeInstance:
    """A ring whose power budget allows circuits of ``hops`` hops: ``hops + 1`` interfaces at 1 dB each."""
    return ring(nodes, wavelengths, power={"laser_dbm": hops + 1.0, "pass_loss_db": 1.0})


def read(name: str) -> Any:
    return synth.read(INSTANCES / f"{name}.json")


def options(**more: Any) -> RunOptions:
    return RunOptions(**({"time_limit_s": 60.0} | more))


TORUS = (True, True)


def grid(sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int, hops: int | None = None) -> OpTreeInstance:
    """A grid, with ``hops`` its power budget allows circuits of so many."""
    kinds = ["ring" if one else "line" for one in rings]
    made = synth.make("optree", sides=list(sides), kinds=kinds, wavelengths=wavelengths)
    assert isinstance(made, OpTreeInstance)
    if hops is not None:
        made = made.model_copy(update={"power": {"laser_dbm": hops + 1.0, "pass_loss_db": 1.0}})
    return made


def followed(rows: list[tuple[int, int, int, int, bool]], nodes: int, wavelengths: int) -> int:
    """The steps of one item's way round a ring (step, source, destination, hops, clockwise): from holders only, to
    every node once, at most ``wavelengths`` hops a step and direction."""
    since, used = {0: 0}, Counter[tuple[int, bool]]()
    for step, src, dst, hops, clockwise in sorted(rows):
        assert since[src] < step
        assert dst not in since
        assert 0 < hops < nodes
        assert (src + (hops if clockwise else -hops)) % nodes == dst
        since[dst] = step
        used[step, clockwise] += hops
    assert len(since) == nodes
    assert max(used.values(), default=0) <= wavelengths
    return max(since.values())


def rows_of(circuits: Circuits) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(circuits, name).tolist() for name in COLUMNS), strict=True))


def replayed(instance: OpTreeInstance, circuits: Circuits) -> int | None:
    """The check's steps, which must be those of the plain replay."""
    rings = [dimension.ring for dimension in instance.dimensions]
    sides = [dimension.side for dimension in instance.dimensions]
    steps = plain_replay(sides, rings, instance.wavelengths, instance.max_hops, rows_of(circuits))
    assert check_solution(instance, circuits).value == steps
    return steps
