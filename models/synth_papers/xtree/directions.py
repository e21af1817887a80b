"""The directions of an EquiMesh's rings, which the paper leaves free, as part of the problem: the fewest timesteps of
all sixteen choices with one chunk per node, and which are best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import pandas as pd

from synth.making import make
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.family import FAMILY
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.parts.ring_directions import PHASES, Directions, best, carried, classes, turned
from synth_models.xtree.references import pull

SIDES = ((4, 4), (4, 5), (4, 6), (5, 5), (6, 6), (5, 11), (8, 8))
QUICK = SIDES[:1]
PART = "rings"
TIME_LIMIT = 300.0
CHUNKS = (2, 3, 4)  # with which directions make no difference
RESTARTS = 60
FOLDED = {((8, 8), "oooo")}  # found in 130 s among the schedules that the half turn keeps, not in 300 s among all
SEEDS = {((5, 11), "eoeo"): 2}  # seed 0 finds no schedule in 300 s, 1 none in 150 s; 2 finds one in 34 s


def directions(page: Reproduction) -> None:
    """The table of all choices, the table of the best ones, and what they show."""
    found, proofs, several = [], [], []
    for rows, cols in QUICK if page.quick else SIDES:
        settled = {first: _settled(page, rows, cols, first) for first in classes(rows, cols)}
        found += _of_all(rows, cols, settled)
        proofs += _of_best(rows, cols, settled)
        several += [_of_several(rows, cols, chunks, list(settled)) for chunks in CHUNKS]
    page.table(
        "All directions of EquiMesh's rings, C = 1, timesteps (directions of top, bottom, left and right ring: e for "
        "even_up, o for odd_up)",
        pd.DataFrame(found),
        file="ring-directions",
    )
    page.table("The best directions, C = 1, and what `rings=best` takes", pd.DataFrame(proofs))
    page.table(
        "With more chunks per node: the allgathers of all sixteen choices by `pull`, each replayed",
        pd.DataFrame(several),
    )
    page.note(
        "Ring directions: a rotation or reflection of the grid turns some of the sixteen choices into each other, so "
        "one of each class is solved. Turning all rings reverses the network, so a choice's reduce-scatter is the "
        "turned choice's allgather played backwards. The allreduce here is that reduce-scatter and then the allgather, "
        "each replayed on its own network; beside it stands the bound of any allreduce, overlapped or not."
    )


def short(choice: Directions) -> str:
    """The first letters: ``eeoo``."""
    return "".join(word[0] for word in choice)


def instance_of(
    rows: int, cols: int, choice: Directions, collective: str = "allgather", chunks: int = 1
) -> XTreeInstance:
    """The instance on the EquiMesh of these directions."""
    words = {"network": "equimesh", "rows": rows, "cols": cols, "rings": ",".join(choice), "collective": collective}
    made = make(FAMILY, words | {"chunks": chunks, "name": f"equimesh-{rows}x{cols}-{short(choice)}-c{chunks}"})
    assert isinstance(made, XTreeInstance)
    return made


@dataclass(frozen=True)
class Settled:
    """What is known of one choice's allgather: the shortest schedule and the best proven bound of all runs."""

    schedule: Record
    bound: Record

    @property
    def timesteps(self) -> int:
        """Of the shortest schedule."""
        assert self.schedule.value is not None
        return int(self.schedule.value)

    @property
    def open(self) -> bool:
        """Whether the bound lies below the schedule."""
        return _bound(self.bound) < self.timesteps


def _settled(page: Reproduction, rows: int, cols: int, choice: Directions) -> Settled:
    """The allgather with these directions: by counting and ``pull``; what these leave open by the relaxation, at once
    where no link has a timestep to spare, elsewhere after the program."""
    instance = page.keep(instance_of(rows, cols, choice), PART)
    sides = rows, cols
    program = {"ilp": {"fold": "on"} if (sides, short(choice)) in FOLDED else {}}
    attempts: list[Mapping[str, Mapping[str, str]]] = [{"relaxation": {}}, program]
    runs: list[Record] = []
    for methods in [{"bound": {}, "pull": {}}, *(attempts if rows * cols % 4 == 0 else attempts[::-1])]:
        seed = SEEDS.get((sides, short(choice)), 0)
        runs += [r for _, r in page.solve([instance], methods, time_limit=TIME_LIMIT, part=PART, seed=seed)]
        found = Settled(min(runs, key=_value), max(runs, key=_bound))
        if not found.open:
            break
    return found


def _value(record: Record) -> float:
    return inf if record.value is None else record.value


def _bound(record: Record) -> float:
    return record.bound or 0.0


def _of_all(rows: int, cols: int, settled: Mapping[Directions, Settled]) -> list[dict[str, Any]]:
    """A row a class of choices."""
    table = []
    for first, members in classes(rows, cols).items():
        gather, scatter = settled[first], settled[_class_of(turned(first), rows, cols)]
        table.append(
            {
                "EquiMesh": f"{rows}x{cols}",
                "directions": ", ".join(short(choice) for choice in members),
                "allgather": gather.timesteps,
                "bound": int(_bound(gather.bound)),
                "proof": gather.bound.proof,
                "shown by": f"{gather.schedule['method']}; {gather.bound['bound_proof']}",
                "reduce-scatter": scatter.timesteps,
                "reduce-scatter, then allgather": gather.timesteps + scatter.timesteps,
            }
        )
    return table


def _of_several(rows: int, cols: int, chunks: int, firsts: list[Directions]) -> dict[str, Any]:
    """A row a number of chunks: bounds and shortest schedules over one choice of each class."""
    bounds, lengths = [], []
    for first in firsts:
        instance = instance_of(rows, cols, first, chunks=chunks)
        bounds.append(lower_bound(instance)[0])
        schedule = min(_until(bounds[-1], instance), key=lambda found: found.steps)
        verdict = check_schedule(instance, schedule)
        if not verdict.ok:
            raise RuntimeError(f"pull on {instance.name}: {verdict.faults}")
        lengths.append(schedule.steps)
    ends = {"bound": bounds, "timesteps": lengths}
    return {"EquiMesh": f"{rows}x{cols}", "C": chunks} | {
        f"{which} {name}": pick(values)
        for name, values in ends.items()
        for which, pick in (("least", min), ("largest", max))
    }


def _until(bound: int, instance: XTreeInstance) -> Iterator[Schedule]:
    """Schedules of ``pull`` by seed, up to the first that meets the bound."""
    for seed in range(RESTARTS):
        schedule = pull.once(instance, seed, 0)
        yield schedule
        if schedule.steps <= bound:
            return


def _of_best(rows: int, cols: int, settled: Mapping[Directions, Settled]) -> list[dict[str, Any]]:
    """A row a collective: the least timesteps of any choice, how many reach them, and what ``rings=best`` takes."""
    table = []
    for collective in PHASES:
        steps = {first: _timesteps(rows, cols, first, collective, settled) for first in settled}
        least = min(steps.values())
        reach = [c for first, members in classes(rows, cols).items() if steps[first] == least for c in members]
        taken = best(rows, cols, 1, collective)
        table.append(
            {
                "EquiMesh": f"{rows}x{cols}",
                "collective": collective,
                "least": least,
                "most": max(steps.values()),
                "bound of any": lower_bound(instance_of(rows, cols, taken, collective))[0],
                "choices that reach the least": len(reach),
                "rings=best": short(taken),
                "which takes": steps[_class_of(taken, rows, cols)],
            }
        )
    return table


def _timesteps(rows: int, cols: int, choice: Directions, collective: str, settled: Mapping[Directions, Settled]) -> int:
    """The length of the schedule for this collective that the allgathers found are put together to, after its replay:
    each is moved to the network of ``choice``, or to its reversed network and played backwards."""
    instance = instance_of(rows, cols, choice, collective)
    whole = Schedule.of([], [], [])
    for backwards in PHASES[collective]:
        first = _class_of(turned(choice) if backwards else choice, rows, cols)
        record = settled[first].schedule
        target = instance.topology.reversed() if backwards else instance.topology
        phase = carried(record.solution(), instance_of(rows, cols, first).topology, target)
        whole = whole.then(phase.reversed_in_time(adds=True) if backwards else phase)
    verdict = check_schedule(instance, whole)
    if not verdict.ok:
        raise RuntimeError(f"{collective} on {rows}x{cols} {short(choice)}: {verdict.faults}")
    return whole.steps


def _class_of(choice: Directions, rows: int, cols: int) -> Directions:
    """The first choice of its class."""
    return next(first for first, members in classes(rows, cols).items() if choice in members)
