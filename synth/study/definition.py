"""What a study runs: a family's shipped instances, or what a TOML file says.

A study file (paths are relative to it)::

    name = "xtree-solvers"                      # records go to results/studies/<name>/
    title = "Solvers on small EquiMeshes"       # optional
    instances = ["../xtree/equimesh-*.json"]    # files, folders, patterns
    baselines = ["xtree"]                       # methods that ratios are taken against, instead of the published ones
    figures = ["gaps", "profile", "progress", "bandwidth"]
    labels = { "forest-highs" = "Ours" }        # names of runs and instances in figures and tables for print

    [[generate]]                                # instances made from parameters, every combination of the lists
    family = "xtree"
    parameters = { network = "torus", rows = [3, 4], cols = 4, chunks = 1 }

    [[run]]                                     # one or several; without any: the families' default methods
    methods = ["ilp", "cpsat"]                  # default: the family's
    only = ["*-allreduce"]                      # default: all instances; patterns of their names
    solvers = ["highs", "scip"]                 # default: each method's first; methods without solvers run once
    seeds = [0, 1]
    time_limits = ["60s"]
    gap = 1e-4
    threads = 1
    options = { horizon = 12 }                  # of the methods that know them
"""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synth.errors import Fault, InputError, one_of
from synth.execution.runs import Request, Run, expand, expand_paths, name_clashes, read_all
from synth.family import Family, family_names, get_family
from synth.instance import Instance, faults_of, read
from synth.making import make
from synth.method import Method
from synth.options import RELATIVE_GAP, as_text, read_limit
from synth.plugins.method_file import as_module, method_of
from synth.study import names
from synth.study.table import sizes_of
from synth.text.files import write_atomically
from synth.text.input_file import InputFile
from synth.text.toml import parse_toml

DEFAULT_LIMIT = "60s"
FigureName = Literal["gaps", "profile", "progress", "bandwidth"]
FIGURES: tuple[FigureName, ...] = ("gaps", "profile", "progress", "bandwidth")
Text = str | int | float | bool
MethodName = Annotated[str, AfterValidator(as_module)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Generate(_Part):
    """Instances made by ``Family.make`` from every combination of the listed parameter values."""

    family: str
    parameters: dict[str, Text | list[Text]]

    def combinations(self) -> Iterator[dict[str, str]]:
        """Each combination as texts, the last key varying fastest."""
        lists = [value if isinstance(value, list) else [value] for value in self.parameters.values()]
        for values in itertools.product(*lists):
            yield {key: as_text(value) for key, value in zip(self.parameters, values, strict=True)}


class RunGrid(_Part):
    """One ``[[run]]``: methods x solvers x seeds x limits."""

    methods: list[MethodName] | None = None
    only: list[str] | None = None
    solvers: list[str] | None = None
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0]
    time_limits: Annotated[list[str], Field(min_length=1)] = [DEFAULT_LIMIT]
    gap: Annotated[float, Field(ge=0, le=1)] = RELATIVE_GAP
    threads: Annotated[int, Field(ge=1)] = 1
    options: dict[str, Text] = {}

    def request(self) -> Request:
        """What :func:`synth.execution.runs.expand` is to make of it."""
        parameters = {key: as_text(value) for key, value in self.options.items()}
        return Request(
            self.methods, self.solvers or (), self.seeds, self.time_limits, self.gap, self.threads, parameters, True
        )


class _File(_Part):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    title: str = ""
    instances: list[str] = []
    generate: list[Generate] = []
    run: list[RunGrid] = []
    baselines: list[MethodName] = []
    figures: list[FigureName] = list(FIGURES)
    labels: dict[str, str] = {}


@dataclass(frozen=True)
class Study:
    """A study as defined: what to run, and what to show of it. :meth:`prepare` makes runs of it."""

    name: str
    title: str
    paths: tuple[Path, ...]
    generate: tuple[Generate, ...] = ()
    grids: tuple[RunGrid, ...] = (RunGrid(),)
    baselines: tuple[str, ...] = ()
    figures: tuple[str, ...] = FIGURES
    source: Path | None = None
    text: str = ""  # of the source, as it was read
    labels: Mapping[str, str] = field(default_factory=dict)  # names for print

    def with_options(self, time_limit: str | None = None, seed: int | None = None, threads: int | None = None) -> Study:
        """The same study with one time limit, seed or number of threads in place of its own."""
        changes: dict[str, Any] = {}
        if time_limit is not None:
            changes["time_limits"] = [time_limit]
        if seed is not None:
            changes["seeds"] = [seed]
        if threads is not None:
            changes["threads"] = threads
        return replace(self, grids=tuple(RunGrid.model_validate(grid.model_dump() | changes) for grid in self.grids))

    def _instances(self, folder: Path) -> list[Instance]:
        """All instances; generated ones are written below ``folder/instances``. Raises :class:`InputError`."""
        found, faults = read_all(self.paths)
        for part in self.generate:
            made: list[tuple[dict[str, str], Instance]] = []
            for parameters in part.combinations():
                try:
                    made.append((parameters, make(get_family(part.family), parameters)))
                except InputError as error:
                    faults += [Fault("", line) for line in str(error).splitlines()]
            try:
                found += [read(_write_instance(one, folder / "instances")) for one in _named_apart(made)]
            except InputError as error:
                faults += [Fault("", line) for line in str(error).splitlines()]
        faults += name_clashes(found)
        if faults:
            raise InputError(list(dict.fromkeys(faults)), self._where)
        if not found:
            raise InputError("the study has no instances", self._where)
        return found

    def prepare(self, folder: Path) -> PreparedStudy:
        """Read every instance and expand every run, its record going below ``folder/records/<variant>``. A variant is
        what the contract's record path has no room for: seed, limit, gap, threads and parameters that are no question.
        Combinations that a method cannot take and solvers that are not installed are left out. Raises
        :class:`InputError`."""
        instances = self._instances(folder)
        if faults := list(self._faults(instances)):
            raise InputError(list(dict.fromkeys(faults)), self._where)
        runs: dict[Path, Run] = {}
        left_out: dict[str, None] = {}
        for grid in self.grids:
            patterns = ["*"] if grid.only is None else grid.only
            chosen = [one for one in instances if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
            made = expand(chosen, grid.request(), folder / "records")
            for run in made.runs(self._where):
                runs.setdefault(run.path, run)
            left_out |= dict.fromkeys(made.left_out)
        return PreparedStudy(self, folder, tuple(instances), tuple(runs.values()), tuple(left_out))

    def _faults(self, instances: Sequence[Instance]) -> Iterator[Fault]:
        """What is wrong with the grids and the baselines, given the instances."""
        families = {instance.family: get_family(instance.family) for instance in instances}
        for grid in self.grids:
            yield from _grid_faults(grid, families.values(), instances)
            for pattern in grid.only or ():
                if not any(fnmatchcase(instance.name, pattern) for instance in instances):
                    yield Fault("run.only", "no instance of the study has such a name", pattern, True)
        known = {name for family in families.values() for name in family.methods}
        known |= {name for grid in self.grids for name in grid.methods or () if ":" in name}
        shown = [*(one.name for one in instances), *(series for series, _ in sizes_of(instances).values())]
        yield from names.faults_of(self.labels, shown, known)
        yield from self._baseline_faults(known)

    def _baseline_faults(self, known: set[str]) -> Iterator[Fault]:
        for name in self.baselines:
            if name not in known:
                words = f"no family of this study has this method; {one_of(name, sorted(known))}"
                yield Fault("baselines", words, name, True)

    @property
    def _where(self) -> str:
        return str(self.source) if self.source else f"study {self.name}"


@dataclass(frozen=True)
class PreparedStudy:
    """A study in its folder: its instances, its runs, and what was ``left_out`` of them and why."""

    study: Study
    folder: Path
    instances: tuple[Instance, ...]
    runs: tuple[Run, ...]
    left_out: tuple[str, ...]


def load(target: str | Path) -> Study:
    """The study of a family's shipped instances, or of a TOML file.

    Raises :class:`InputError` listing everything wrong with the file.
    """
    if isinstance(target, str) and target in family_names() and not Path(target).suffix:
        return _family_study(target)
    path = Path(target)
    if path.is_dir() or not path.exists():
        raise InputError(f"no family and no study file; families: {one_of(target, family_names())}", str(target))
    text = InputFile(path).text
    if path.suffix == ".json":
        raise InputError("is no study: studies are TOML files; synth solve takes instances", str(path))
    file = _parsed(text, path)
    faults: list[Fault] = []
    paths = list(_instance_files(file.instances, path.parent, faults))
    for index, grid in enumerate(file.run):
        faults += _limit_faults(grid, f"run[{index}]")
    if not file.instances and not file.generate:
        faults.append(Fault("instances", "is missing: a study needs instances or [[generate]]"))
    if faults:
        raise InputError(faults, str(path))
    return Study(
        file.name,
        file.title or file.name,
        tuple(dict.fromkeys(paths)),
        tuple(file.generate),
        tuple(file.run) or (RunGrid(),),
        tuple(file.baselines),
        tuple(file.figures),
        path,
        text,
        file.labels,
    )


def _parsed(text: str, path: Path) -> _File:
    """The keys of a study file. Raises :class:`InputError`."""
    raw = parse_toml(text, str(path))
    try:
        return _File.model_validate(raw)
    except ValidationError as error:
        raise InputError([_with_known_keys(fault) for fault in faults_of(error, raw)], str(path)) from None


def _instance_files(patterns: Iterable[str], folder: Path, faults: list[Fault]) -> Iterator[Path]:
    """The instance files that the patterns name, seen from the study's folder."""
    for index, pattern in enumerate(patterns):
        found = sorted(glob.glob(str(folder / pattern), recursive=True))
        if not found:
            faults.append(Fault(f"instances[{index}]", "no such file or folder", pattern, True))
            continue
        try:
            yield from expand_paths([Path(item) for item in found])
        except InputError as error:
            faults.append(Fault(f"instances[{index}]", error.faults[0].message, pattern, True))


def _with_known_keys(fault: Fault) -> Fault:
    """An unknown key's fault with the keys that are known there."""
    if fault.message != "unknown key":
        return fault
    above, _, key = fault.path.rpartition(".")
    parts: dict[str, type[_Part]] = {"run": RunGrid, "generate": Generate}
    part = parts.get(above.partition("[")[0], _File)
    return replace(fault, message=f"unknown key; {one_of(key, part.model_fields)}")


def _family_study(name: str) -> Study:
    folder = Path("instances") / name
    if not folder.is_dir():
        raise InputError("no such folder: the shipped instances are looked for below the current folder", str(folder))
    return Study(name, get_family(name).title, tuple(expand_paths([folder])))


def _grid_faults(grid: RunGrid, families: Iterable[Family], instances: Sequence[Instance]) -> Iterator[Fault]:
    methods = dict(pair for family in families for pair in family.methods.items())
    in_files = [name for name in grid.methods or () if ":" in name]
    for name, instance in itertools.product(in_files, instances):
        try:
            methods[name] = method_of(get_family(instance.family), name, instance)
        except InputError as error:
            yield Fault("run.methods", str(error))
    for name in grid.methods or ():
        if name not in methods and ":" not in name:
            yield Fault("run.methods", f"no family of this study has it; {one_of(name, methods)}", name, True)
    yield from _solver_faults(grid)
    used = [methods[name] for name in grid.methods or methods if name in methods]
    yield from _option_faults(grid, used)
    yield from _limit_faults(grid, "run")


def _solver_faults(grid: RunGrid) -> Iterator[Fault]:
    from synth.solvers.catalogue import known_solvers

    for solver in grid.solvers or ():
        if solver not in known_solvers():
            yield Fault("run.solvers", f"unknown solver; {one_of(solver, known_solvers())}", solver, True)


def _option_faults(grid: RunGrid, methods: Iterable[Method]) -> Iterator[Fault]:
    parameters = {parameter.name: parameter for method in methods for parameter in method.parameters}
    for key, value in grid.options.items():
        if key not in parameters:
            words = f"no method of this run takes this parameter; {one_of(key, parameters)}"
            yield Fault("run.options", words, key, True)
            continue
        try:
            parameters[key].read(as_text(value))
        except ValueError as error:
            yield Fault(f"run.options.{key}", str(error), value, True)


def _limit_faults(grid: RunGrid, where: str) -> Iterator[Fault]:
    for limit in grid.time_limits:
        try:
            read_limit(limit)
        except ValueError as error:
            yield Fault(f"{where}.time_limits", str(error), limit, True)


def _named_apart(made: list[tuple[dict[str, str], Instance]]) -> Iterator[Instance]:
    """Instances of a grid. Where a family's own name leaves out what the grid varies (such as a size in bytes), those
    with one name get it written behind: ``-message-bytes-4096``."""
    alike: dict[str, list[dict[str, str]]] = {}
    for parameters, instance in made:
        alike.setdefault(instance.name, []).append(parameters)
    for parameters, instance in made:
        others = alike[instance.name]
        varied = [key for key in parameters if len({other[key] for other in others}) > 1]
        words = [re.sub(r"[^A-Za-z0-9.]+", "-", f"{key}-{parameters[key]}") for key in varied]
        yield instance.model_copy(update={"name": "-".join([instance.name, *words])}) if words else instance


def _write_instance(instance: Instance, folder: Path) -> Path:
    path = folder / f"{instance.name}.json"
    text = instance.to_json()
    if not path.is_file() or path.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    return path
