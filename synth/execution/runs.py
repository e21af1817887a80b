"""What there is to run: one run, its records, and the one place that expands instances x methods x solvers x seeds x
limits."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from synth.api import method_options
from synth.errors import Fault, InputError, SolverMissingError
from synth.family import Family, defaults_for, get_family
from synth.instance import Instance, read
from synth.method import Method
from synth.options import RELATIVE_GAP, RunOptions, asked, read_limit
from synth.plugins.method_file import method_of
from synth.records import packed
from synth.records import record as records
from synth.records.folder import KEPT
from synth.records.record import Record
from synth.solvers.catalogue import require, solvers_for
from synth.text.files import write_atomically


@dataclass(frozen=True)
class Run:
    """One run: an instance, a method and its options."""

    instance: Instance
    method: Method
    options: RunOptions
    results: Path

    @property
    def path(self) -> Path:
        """Where its record goes."""
        return self._path(asked(self.method.parameters, self.options.method))

    def _path(self, question: str) -> Path:
        instance, solver = self.instance, self.options.solver
        return records.record_path(self.results, instance.family, instance.name, self.method.name, solver, question)

    def finished_record(self, retry_failed: bool = False) -> Record | None:
        """The record of an earlier run with the same instance, method, solver and options, if it is done (see
        :meth:`synth.records.record.Record.is_done`)."""
        record = self.stored_record()
        return record if record is not None and record.is_done(retry_failed) else None

    def stored_record(self) -> Record | None:
        """The record of an earlier run with the same instance, method, solver and options, however it ended; a file
        that holds the method has to be as it was. A parameter that the method did not have then counts as at its
        default. In older folders other questions have the address of the method's ordinary run."""
        options = json.loads(json.dumps(self.options.as_record()))
        default = json.loads(json.dumps({one.name: one.default for one in self.method.parameters}))
        for path in dict.fromkeys((self.path, self._path(""))):
            with suppress(InputError, OSError):  # no record, or no name that the system takes
                record = records.read(path)
                stored = record["options"] | {"method": default | record["options"].get("method", {})}
                same = record["instance_sha256"] == self.instance.sha256 and stored == options
                if same and (self.method.folder is None or record.data.get("method_origin") == self.method.origin):
                    return record
        return None


class _LeftOutError(Exception):
    """A grid leaves this method out; the message says why, behind the method's name."""


class _Chosen(NamedTuple):
    """A method, the parameters that it is ``given`` as texts, the solver that will run, and all parameters as read."""

    method: Method
    given: dict[str, str]
    solver: str | None
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What is asked of every instance: each method (None: the family's defaults) by each solver (none: its first), seed
    and time limit (a duration as text, seconds, ``none`` or None), with one gap and number of threads.

    A parameter goes to the methods that know it. With ``grid`` (a study, of several families at once) the records of
    each variant have a folder of their own, and what a method or this machine cannot do is left out; otherwise that is
    a fault, except that one solver asked of several methods goes to those that can use it.
    """

    methods: Sequence[str] | None = None
    solvers: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    limits: Sequence[str | float | None] = ("60s",)
    gap: float = RELATIVE_GAP
    threads: int = 1
    parameters: Mapping[str, str] = field(default_factory=dict)
    grid: bool = False

    def names(self, family: Family, instance: Instance) -> list[str]:
        """The methods for this instance. Where none of the default ones can use a solver asked for, a program that can
        takes the place of the default programs."""
        if self.methods:
            known = family.methods
            return [name for name in dict.fromkeys(self.methods) if not self.grid or name in known or ":" in name]
        names = list(defaults_for(family, instance))
        able = [name for name, method in family.methods.items() if set(self.solvers) & set(solvers_for(method.needs))]
        if self.grid or not able or set(able) & set(names):
            return names
        return [name for name in names if family.methods[name].kind != "program"] + able[:1]

    def chosen(
        self, family: Family, method: Method, solver: str | None, alone: bool, usable: Collection[str]
    ) -> _Chosen:
        """The method with what of the request it gets. ``alone``: no other method is asked for; ``usable``: the
        parameters that some method knows. Raises :class:`InputError`, and :class:`_LeftOutError` for what a grid leaves
        out."""
        if solver is not None and solver not in solvers_for(method.needs):
            if self.grid and method.needs:
                raise _LeftOutError(f" does not run with {solver}")
            solver = solver if alone and not self.grid else None
        mine = {parameter.name for parameter in method.parameters}
        of_others = set() if self.grid else set(self.parameters) - set(usable)
        given = {key: value for key, value in self.parameters.items() if key in mine | of_others}
        try:
            return _Chosen(method, given, *method_options(family, method, solver, given))
        except SolverMissingError as error:
            if self.grid:
                raise _LeftOutError(f": {error}") from None
            raise

    def variant(self, seed: int, limit: str | float | None, given: Mapping[str, str]) -> str:
        """A folder name for what tells runs of one method, solver and question apart, such as ``seed0-60s-fold=on``."""
        parts = [f"seed{seed}", str(limit).replace(" ", "")]
        parts += [f"gap{self.gap:g}"] if self.gap != RELATIVE_GAP else []
        parts += [f"threads{self.threads}"] if self.threads != 1 else []
        parts += [f"{key}={value}" for key, value in sorted(given.items())]
        return re.sub(r"[^A-Za-z0-9._=-]", "_", "-".join(parts))


@dataclass
class Expansion:
    """The runs of a request by the place of their records, what is wrong with it, and what was left out of a grid."""

    by_path: dict[Path, Run] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def runs(self, source: str | None = None) -> list[Run]:
        """The runs. Raises :class:`InputError` with all faults, each once."""
        if self.faults:
            raise InputError(list(dict.fromkeys(self.faults)), source)
        return list(self.by_path.values())


def expand(instances: Iterable[Instance], request: Request, results: Path) -> Expansion:
    """Every run of the request on these instances, in their order, records below ``results``. Raises
    :class:`SolverMissingError` when no method takes the solver because there is none of that name."""
    made = Expansion()
    for instance in instances:
        family = get_family(instance.family)
        names = request.names(family, instance)
        methods = list(_methods(family, names, instance, made))
        usable = {parameter.name for method in methods for parameter in method.parameters}
        solvers: Sequence[str | None] = request.solvers or [None]
        for method, solver in product(methods, solvers):
            try:
                chosen = request.chosen(family, method, solver, len(names) == 1, usable)
            except _LeftOutError as reason:
                made.left_out.append(f"{family.name} {method.name}{reason}")
            except InputError as error:
                made.faults += [Fault("", line) for line in str(error).splitlines()]
            else:
                for run in _runs(instance, chosen, request, results):
                    made.by_path.setdefault(run.path, run)
    if not (request.grid or made.faults) and request.limits:
        made.faults += _unused(request.solvers, made.by_path.values())
    return made


def _methods(family: Family, names: Iterable[str], instance: Instance, made: Expansion) -> Iterator[Method]:
    """The methods of these names; what is wrong with the others becomes faults."""
    for name in names:
        try:
            yield method_of(family, name, instance)
        except InputError as error:
            made.faults.append(Fault("", str(error)))


def _runs(instance: Instance, chosen: _Chosen, request: Request, results: Path) -> Iterator[Run]:
    """A run for every seed and time limit."""
    questions = {parameter.name for parameter in chosen.method.parameters if parameter.question}
    others = {key: value for key, value in chosen.given.items() if key not in questions}
    family = get_family(instance.family)
    once = request.grid and (chosen.method.kind == "bound" or chosen.method.name in family.seedless)
    for seed, limit in product(request.seeds[:1] if once else request.seeds, request.limits):
        seconds = read_limit(limit)
        options = RunOptions(seconds, request.gap, request.threads, seed, chosen.solver, chosen.parameters)
        folder = results / request.variant(seed, limit, others) if request.grid else results
        yield Run(instance, chosen.method, options, folder)


def _unused(solvers: Iterable[str], runs: Collection[Run]) -> Iterator[Fault]:
    """A fault for every solver that no run uses. Raises :class:`SolverMissingError` where there is none of the name."""
    for solver in solvers:
        if all(run.options.solver != solver for run in runs):
            require(solver)
            yield Fault("", f"none of the methods can use solver {solver}")


def plan(paths: Iterable[Path], request: Request, results: Path) -> list[Run]:
    """Every run on instance files, folders of them and the instances of records, or one :class:`InputError` that lists
    everything wrong with limits, files, methods, solvers and parameters."""
    faults: list[Fault] = []
    for limit in request.limits:
        try:
            read_limit(limit)
        except ValueError as error:
            faults.append(Fault("--time-limit", str(error), limit, True))
    if faults:
        request = replace(request, limits=())
    instances, unreadable = read_all(expand_paths([instance_file(path, results) for path in paths]))
    faults += [*unreadable, *name_clashes(instances)]
    made = expand(instances, request, results)
    made.faults[:0] = faults
    return made.runs()


def instance_file(path: Path, results: Path) -> Path:
    """The path; of a record the file of its instance. If the record itself holds the instance's text, that is written
    into ``results/instances``. Raises :class:`InputError` for a record without its instance."""
    if not packed.is_record(path):
        return path
    instance = records.read(path).find_instance()
    if instance.file is not None:
        return instance.file
    text = str(records.read(path).data["instance_text"]).encode()
    file = results / "instances" / f"{instance.name}{KEPT}"
    if file.is_file() and file.read_bytes() != text:
        file = file.with_name(f"{instance.name}-{instance.sha256[:8]}{KEPT}")
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)
    return file


def read_all(paths: Iterable[Path]) -> tuple[list[Instance], list[Fault]]:
    """The instances of these files, and what is wrong with the others."""
    instances: list[Instance] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            instances.append(read(path))
        except InputError as error:
            faults += [Fault("", line) for line in str(error).splitlines()]
    return instances, faults


def name_clashes(instances: Iterable[Instance]) -> list[Fault]:
    """Instances whose records would have one place."""
    files = defaultdict(list)
    for instance in instances:
        files[instance.family, instance.name].append(str(instance.file))
    words = "two instances are both named {} ({}); their records would overwrite each other"
    return [Fault("", words.format(key[1], " and ".join(where))) for key, where in files.items() if len(where) > 1]


def expand_paths(paths: Iterable[Path]) -> list[Path]:
    """Files as they are, folders as all ``*.json`` below them in name order. Raises :class:`InputError`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.json"))
            if not found:
                raise InputError("no instance files (*.json) below this folder", str(path))
            files += found
        elif path.is_file():
            files.append(path)
        elif path.exists():
            raise InputError("is no regular file: every run and check reads it again; write it to one", str(path))
        else:
            raise InputError("no such file or folder", str(path))
    return list(dict.fromkeys(files))
