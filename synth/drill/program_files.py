"""The files of a drawer that an executor runs: one for every schedule of a cover, with its ranks renumbered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from synth.drill.cover import Candidate, Cover
from synth.drill.in_form import lowered
from synth.drill.search import Drill, solution_of
from synth.errors import InputError
from synth.exchange import program_files
from synth.exchange.file_check import check_file
from synth.exchange.forms import Program, executor_of
from synth.family import get_family
from synth.instance import Instance

SUFFIX = {"mscclpp": ".json"}


class ProgramFile(NamedTuple):
    """A file's ``name``, and the ``seconds`` that it takes with each of the failures that it is for, by name."""

    name: str
    seconds: Mapping[str, float]


def write(drill: Drill, cover: Cover, folder: Path) -> list[ProgramFile]:
    """Write a file for each of the chosen candidates into the folder; every one has passed the check of its executor.
    Raises :class:`InputError` where one has not, and ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    form, share = drill.question.form, drill.question.share
    asked: Any = drill.question.whole
    size, collective = int(asked.bytes), str(asked.collective)
    found = []
    for k, candidate in enumerate(cover.chosen):
        failures = [one.failure for one, by in zip(cover.singles, cover.by, strict=True) if by and by[0] == k]
        broken = {failure.name: drill.breakable.broken(failure, share) for failure in failures}
        program = _program(drill, candidate, next(iter(broken.values()), None))
        assert candidate.case.instance is not None
        name = f"{candidate.case.instance.name}-{k}{SUFFIX.get(form, '.xml')}"
        made = program_files.write(program, folder / name, size, size)
        for path in filter(None, (made.path, made.one)):
            if wrong := check_file(path, collective, executor_of(form)).faults:
                raise InputError(wrong, str(path))
        found.append(ProgramFile(name, {failure: program.seconds(there) for failure, there in broken.items()}))
    return found


def _program(drill: Drill, candidate: Candidate, target: Instance | None) -> Program:
    """The candidate's program with its ranks moved, lowered again for a machine that it is for."""
    case = candidate.case
    assert case.quickest is not None
    assert case.instance is not None
    image = candidate.image if len(candidate.image) else np.arange(len(drill.breakable.names()))
    if target is None or np.array_equal(image, np.arange(len(image))):
        return case.quickest.program
    moved = drill.breakable.carried(solution_of(case), image, case.instance, target)
    moves = get_family(target.family).capability("export")(target, moved)
    spreads, asked = [case.quickest.program.spread], drill.question
    found = lowered(moves, asked.form, target, case.quickest.record, spreads=spreads, costs=asked.costs)
    if found is None:  # what fits with one numbering of the ranks fits with another
        raise InputError(f"the schedule for {case.name}, its ranks renumbered, cannot be lowered")
    return found.program
