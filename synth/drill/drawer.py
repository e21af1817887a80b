"""The drawer: a folder with the schedules of a cover, each a record, and an index that says which one is for which
failure. A failure is answered by the schedule of its orbit's representative, its nodes renumbered."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from synth.drill.breakable import Breakable
from synth.errors import InputError
from synth.family import get_family
from synth.instance import Instance, Part, faults_of, from_bytes, read_json
from synth.method import Outcome, load
from synth.records import record as records
from synth.records.record import Record
from synth.text.files import write_atomically

if TYPE_CHECKING:
    from synth.drill.cover import Candidate, Cover
    from synth.drill.search import Drill

INDEX = "index.json"
PROGRAMS = "programs"  # the folder of the files that an executor runs
Index = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Row(Part):
    """A failure: which schedule is for it, how the nodes are renumbered (``image[v]``: what node v of the schedule is;
    empty: as they are), its seconds there; the least that is known and the bound; the file that an executor runs."""

    failure: str
    schedule: Index
    image: tuple[Index, ...]
    seconds: Seconds
    best_seconds: Seconds
    bound_seconds: Seconds | None = None
    program: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.(json|xml)$")] | None = None


class Parted(Part):
    """A failure that parts the ranks: the parts, and the nodes of a set that no link leaves any more."""

    failure: str
    parts: tuple[tuple[str, ...], ...]
    closed: tuple[str, ...]


class Contents(Part):
    """The index: the whole machine's ``instance`` (its file), the ``share`` of the rate that is left of links (None:
    nothing), ``within`` which share of the best each schedule is, the ``schedules`` (records) by file name, whether
    their number (with renumberings) is ``proven`` least, a row a failure, the failures that part the ranks, and those
    without a schedule. ``form``: of the files that an executor runs, and of all seconds; None without any."""

    format: Literal["synth-drawer/1"]
    instance: dict[str, Any]
    share: str | None = None
    within: float
    schedules: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.json$")], ...]
    renumbered: Index
    proven: bool
    failures: tuple[Row, ...]
    parted: tuple[Parted, ...] = ()
    unanswered: tuple[str, ...] = ()
    form: str | None = None


def write(drill: Drill, cover: Cover, folder: Path) -> Contents:
    """Write the drawer, a file a schedule, and one for the executor for each of their renumberings. Raises
    :class:`InputError` where the latter do not pass their check, and ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = []
    if drill.question.exports:
        from synth.drill import program_files  # an answer out of a drawer lowers nothing

        programs = program_files.write(drill, cover, folder / PROGRAMS)
    files: dict[int, str] = {}
    for candidate in cover.chosen:
        case = candidate.case
        if id(case) in files:
            continue
        assert case.instance is not None
        assert case.best is not None
        files[id(case)] = f"{case.instance.name}.json"
        text = {"instance_file": files[id(case)], "instance_text": case.instance.to_json()}
        record = records.read(case.best.path) if case.best.path is not None else case.best
        records.write(Record({**record.data, **text}, record.packed, instance=case.instance), folder / files[id(case)])
    names = list(dict.fromkeys(files.values()))
    rows, without = [], []
    for single, by in zip(cover.singles, cover.by, strict=True):
        if by is None:
            without += [single.failure.name] if single.case.cut is None else []
            continue
        chosen = cover.chosen[by[0]]
        assert single.case.seconds is not None
        rows.append(
            Row(
                failure=single.failure.name,
                schedule=names.index(files[id(chosen.case)]),
                image=_image(chosen),
                seconds=programs[by[0]].seconds[single.failure.name] if programs else by[1],
                best_seconds=single.case.seconds,
                bound_seconds=single.case.bound,
                program=programs[by[0]].name if programs else None,
            )
        )
    contents = Contents(
        format="synth-drawer/1",
        instance=json.loads(drill.question.whole.to_json()),
        share=drill.question.share,
        within=max([cover.within, *(row.seconds / row.best_seconds - 1 for row in rows if row.best_seconds)]),
        schedules=tuple(names),
        renumbered=len(cover.chosen),
        proven=cover.proven,
        failures=tuple(rows),
        parted=tuple(_parted(drill)),
        unanswered=tuple(without),
        form=drill.question.form if drill.question.exports else None,
    )
    write_atomically(folder / INDEX, (contents.model_dump_json(exclude_none=True) + "\n").encode())
    return contents


def _image(candidate: Candidate) -> tuple[int, ...]:
    image = candidate.image.tolist()
    return () if image == sorted(image) else tuple(image)


def _parted(drill: Drill) -> list[Parted]:
    """Every member of the orbits that part the ranks, each with its own parts."""
    found = []
    for case in drill.cases:
        if case.cut is None or case.orbit is None or len(case.orbit.representative.parts) > 1:
            continue
        for failure in case.orbit.members:
            cut = drill.breakable.cut(failure)
            assert cut is not None
            parts = tuple(map(tuple, cut.parts))
            found.append(Parted(failure=failure.name, parts=parts, closed=tuple(cut.closed)))
    return found


@dataclass(frozen=True)
class Answer:
    """What to run when something has failed: the record's ``file``, where its ranks go (by name, only those that move),
    seconds, the best known, the bound, the ``program`` that an executor runs; or the ``parts`` of the ranks that no
    longer reach each other."""

    failure: str
    row: Row | None
    file: Path | None
    moves: dict[str, str]
    parted: Parted | None
    breakable: Breakable
    contents: Contents
    instance: Instance
    program: Path | None = None

    def solution(self) -> tuple[Instance, Any, Record]:
        """The instance with the failure, its schedule, and the record that it comes from. Raises :class:`InputError`
        where the record is none, or its schedule uses what failed."""
        assert self.row is not None
        assert self.file is not None
        record = records.read(self.file)
        share = self.contents.share
        source = from_bytes(str(record.data.get("instance_text")).encode(), str(self.file))
        if source.sha256 != record["instance_sha256"] or source.family != self.instance.family:
            raise InputError("its instance_text is not the instance it belongs to", str(self.file))
        target = self.breakable.broken(self.breakable.find(self.failure, share), share)
        try:
            solution = load(get_family(source.family).unpack)(source, record.packed)
            nodes = self.row.image or tuple(range(len(self.breakable.names())))
            return target, self.breakable.carried(solution, np.array(nodes), source, target), record
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise InputError(f"is no schedule for {self.failure}: {error}", str(self.file)) from None

    def record(self) -> Record:
        """The schedule as a checked record of the instance with the failure. Raises :class:`InputError` where the
        replay finds a fault."""
        target, solution, _ = self.solution()
        from synth.api import hand_in

        assert self.file is not None
        content = self.file.read_bytes()
        statement = {
            "by": "synth drill", "file": self.file.name, "file_sha256": hashlib.sha256(content).hexdigest(),
        }  # fmt: skip
        made = hand_in(target, Outcome("finished", solution=solution), statement, "drill")
        if not made["verified"]["ok"]:
            raise InputError(f"is no schedule for {self.failure}: {made['verified']['faults'][0]}", str(self.file))
        return made


def read(folder: Path) -> tuple[Contents, Instance, Breakable]:
    """The index and the whole machine's instance. Raises :class:`InputError`."""
    path = folder / INDEX
    if not path.is_file():
        raise InputError("is no drawer: it has no index.json, which `synth drill` writes", str(folder))
    raw, _ = read_json(path)
    try:
        contents = Contents.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        raise InputError(list(faults_of(error, raw)), str(path)) from None
    instance = from_bytes(json.dumps(contents.instance).encode(), str(path))
    family = get_family(instance.family)
    if not family.can("failures"):
        raise InputError(f"machines of family {family.name} do not fail", str(path))
    breakable: Breakable = family.capability("failures")(instance)
    vertices = len(breakable.names())
    for k, row in enumerate(contents.failures):
        if row.schedule >= len(contents.schedules):
            raise InputError(f"failures[{k}].schedule: there are {len(contents.schedules)} schedules", str(path))
        if row.image and sorted(row.image) != list(range(vertices)):
            raise InputError(f"failures[{k}].image: must be a permutation of 0..{vertices - 1}", str(path))
    return contents, instance, breakable


def answer(folder: Path, text: str) -> Answer:
    """What the drawer has for the failure that a person names. Raises :class:`InputError`."""
    contents, instance, breakable = read(folder)
    name = breakable.find(text, contents.share).name
    parted = next((one for one in contents.parted if one.failure == name), None)
    row = next((one for one in contents.failures if one.failure == name), None)
    if row is None and parted is None:
        why = "no schedule was found for it" if name in contents.unanswered else "it is not in the index"
        raise InputError(f"{name}: {why}; run `synth drill` with a longer --time-limit", str(folder))
    if row is None:
        return Answer(name, None, None, {}, parted, breakable, contents, instance)
    names, image = breakable.names(), row.image
    moves = {names[v]: names[image[v]] for v in breakable.ranks() if image and v != image[v]}
    file = folder / contents.schedules[row.schedule]
    program = None if row.program is None else folder / PROGRAMS / row.program
    if program is not None and not program.is_file():
        raise InputError(f"{name}: the file that runs is not there", str(program))
    return Answer(name, row, file, moves, None, breakable, contents, instance, program)
