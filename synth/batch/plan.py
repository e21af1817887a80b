"""What a batch is to do and what was submitted for it: ``batch.json``, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from synth.errors import InputError
from synth.execution.pool import GRACE_S
from synth.execution.runs import Run
from synth.family import get_family
from synth.instance import Instance, faults_of, read_json
from synth.options import RELATIVE_GAP, RunOptions
from synth.plugins.method_file import find
from synth.text.files import write_atomically

FORMAT = "synth-batch/1"
FILE = "batch.json"
JOB_S = 600.0  # how long the runs of a chunk may take at most, unless the user says how many belong together
START_S = 60.0  # for a job to start and end
SUPERVISOR_MB = 300.0  # of a job's memory, what supervisor and guards hold themselves

Engine = Literal["slurm", "local"]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must hold no null character: it names a file")
    return text


class _Options(BaseModel):
    """What :meth:`RunOptions.as_record` states."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    time_limit_s: float | None
    relative_gap: float = RELATIVE_GAP
    threads: int
    seed: int = 0
    method: dict[str, Any] = {}


def _of_a_run(options: Mapping[str, Any]) -> Mapping[str, Any]:
    _Options.model_validate(options)
    return options


Text = Annotated[str, AfterValidator(_without_nul)]


@dataclass(frozen=True)
class Entry:
    """One run of a batch, as stored; paths are relative to the batch's working directory and folder."""

    family: Text
    instance: Text
    instance_file: Text
    sha256: Text
    method: Text
    solver: Text | None
    options: Annotated[Mapping[str, Any], AfterValidator(_of_a_run)]
    results: Text
    method_folder: Text | None = None  # of a method in a file

    @classmethod
    def of(cls, run: Run, folder: Path) -> Entry:
        """The entry for a run whose records go below the batch folder."""
        instance, options = run.instance, run.options
        assert instance.file is not None
        what = instance.family, instance.name, str(instance.file), instance.sha256
        results = os.path.relpath(run.results, folder)
        folder_of_method = None if run.method.folder is None else str(run.method.folder)
        return cls(*what, run.method.name, options.solver, options.as_record(), results, folder_of_method)

    def run(self, folder: Path) -> Run:
        """The run again. The instance file is not read here: the run's own process does that, and says so when the file
        is no longer what it was."""
        instance = Instance.model_construct(family=self.family, name=self.instance, source="batch")
        instance._file, instance._sha256 = Path(self.instance_file), self.sha256
        options = RunOptions(**{**self.options, "solver": self.solver})
        if self.method_folder is None:
            method = get_family(self.family).method(self.method)
        else:
            method = find(self.method, [Path(self.method_folder)])
        return Run(instance, method, options, folder / self.results)

    @property
    def limit_s(self) -> float | None:
        """The run's time limit."""
        limit = self.options["time_limit_s"]
        return None if limit is None else float(limit)

    @property
    def threads(self) -> int:
        """The threads of the run."""
        return int(self.options["threads"])

    def __str__(self) -> str:
        return f"{self.instance} {self.method}" + (f" ({self.solver})" if self.solver else "")


@dataclass(frozen=True)
class Resources:
    """What a job asks for. ``time_s`` and ``cpus`` are worked out from the runs when they are None."""

    partition: str | None = None
    account: str | None = None
    time_s: float | None = None
    mem_mb: float | None = None
    cpus: int | None = None
    array_parallelism: int | None = None
    chunk: int | None = None
    grace_s: float = GRACE_S


@dataclass(frozen=True)
class Task:
    """The runs of one job (one element of an array): indices into the batch's entries."""

    name: Text
    runs: tuple[int, ...]
    cpus: int
    time_min: int
    job: Text | None = None


@dataclass(frozen=True)
class Submission:
    """What one ``submit`` or ``resubmit`` sent off."""

    engine: Engine
    created: float
    resources: Resources
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Batch:
    """The whole batch. ``study`` is what ``synth study`` would be given, None for a list of instances."""

    folder: Path
    directory: str
    entries: tuple[Entry, ...]
    study: str | None = None
    submissions: tuple[Submission, ...] = field(default=())

    def write(self) -> None:
        """Write ``batch.json`` atomically. Raises ``OSError``."""
        data = {
            "format": FORMAT,
            "study": self.study,
            "directory": self.directory,
            "runs": [asdict(entry) for entry in self.entries],
            "submissions": [asdict(submission) for submission in self.submissions],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / FILE, (json.dumps(data, indent=1) + "\n").encode())

    def task(self, name: str) -> tuple[Submission, Task]:
        """The task of that name and its submission. Raises :class:`InputError`."""
        for submission in self.submissions:
            for task in submission.tasks:
                if task.name == name:
                    return submission, task
        raise InputError(f"no task {name}", str(self.folder / FILE))

    def with_submission(self, submission: Submission) -> Batch:
        """The batch with one more submission."""
        return replace(self, submissions=(*self.submissions, submission))

    def with_jobs(self, jobs: Mapping[str, str]) -> Batch:
        """The batch whose last submission knows the job ids of its tasks, by task name."""
        *rest, last = self.submissions
        tasks = tuple(replace(task, job=jobs.get(task.name, task.job)) for task in last.tasks)
        return replace(self, submissions=(*rest, replace(last, tasks=tasks)))


def read(folder: Path) -> Batch:
    """The batch in a folder. Raises :class:`InputError` when there is none."""
    if not (folder / FILE).is_file():
        raise InputError(f"no batch here (no {FILE})", str(folder))
    data, _ = read_json(folder / FILE)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"not a batch ({FORMAT})", str(folder / FILE))
    try:
        held = _reader().validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise InputError(list(faults_of(error, data)), str(folder / FILE)) from None
    return Batch(folder, held.directory, held.runs, held.study, held.submissions)


@dataclass(frozen=True)
class _Stored:
    """What ``batch.json`` holds beside its format."""

    directory: Text
    runs: tuple[Entry, ...]
    study: Text | None
    submissions: tuple[Submission, ...]


@cache
def _reader() -> TypeAdapter[_Stored]:
    return TypeAdapter(_Stored)


def now() -> float:
    """Seconds since 1970."""
    return datetime.now(UTC).timestamp()


def submission(batch: Batch, engine: Engine, which: Sequence[int], resources: Resources) -> Submission:
    """Divide the runs ``which`` into tasks: only runs that need the same go together, as many as a job may take.

    Raises :class:`InputError` when the job's time is needed and missing, or too short for one of its runs.
    """
    number = len(batch.submissions) + 1
    groups: dict[tuple[int, float | None], list[int]] = {}
    for index in which:
        entry = batch.entries[index]
        groups.setdefault((entry.threads, entry.limit_s), []).append(index)
    tasks: list[Task] = []
    faults: list[str] = []
    for (threads, limit), runs in groups.items():
        cpus = max(threads, resources.cpus or 0)
        slots = cpus // threads
        try:
            time_min = 0 if engine == "local" else job_minutes(limit, slots, len(runs), resources)
        except InputError as error:
            faults.append(str(error))
            continue
        # on one machine a new chunk would only wait for the slowest run of the one before
        size = len(runs) if engine == "local" else chunk_size(limit, slots, resources)
        for chunk in _chunks(runs, size):
            tasks.append(Task(f"{number}-{len(tasks)}", tuple(chunk), cpus, time_min))
    if faults:
        raise InputError("; ".join(dict.fromkeys(faults)))
    return Submission(engine, now(), resources, tuple(tasks))


def chunk_size(limit_s: float | None, slots: int, resources: Resources) -> int:
    """How many runs of this time limit make one job."""
    if resources.chunk:
        return resources.chunk
    return 1 if limit_s is None else max(1, int(JOB_S // limit_s)) * slots


def job_minutes(limit_s: float | None, slots: int, runs: int, resources: Resources) -> int:
    """The time to ask Slurm for, in whole minutes (it knows no less): every run of a chunk to its limit and grace."""
    if limit_s is None:
        if resources.time_s is None:
            raise InputError("runs without a time limit need --time for their jobs")
        return math.ceil(resources.time_s / 60)
    rounds = math.ceil(min(runs, chunk_size(limit_s, slots, resources)) / slots)
    needed = rounds * (limit_s + resources.grace_s) + START_S
    if resources.time_s is None:
        return max(3, math.ceil(needed / 60))
    if resources.time_s < limit_s + START_S:
        raise InputError(f"--time is too short for one run of {limit_s:g} s: at least {limit_s + START_S:g} s")
    return math.ceil(resources.time_s / 60)


def run_memory_mb(resources: Resources, cpus: int, threads: int) -> float | None:
    """The memory limit of each run: the job's, less what supervisor and guards need, shared by the runs at once."""
    if resources.mem_mb is None:
        return None
    return max(100.0, (resources.mem_mb - SUPERVISOR_MB) / max(1, cpus // threads))


def _chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def parts(tasks: Iterable[Task], most: int) -> list[list[Task]]:
    """Tasks that can be one array: the same resources, at most ``most`` of them."""
    groups: dict[tuple[int, int], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.cpus, task.time_min), []).append(task)
    return [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]
