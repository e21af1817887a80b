"""``synth explain``: why a collective takes as long as a log says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from synth.cli.common import bad_option, checked
from synth.cli.fit import PLACE
from synth.cli.machine_import import MachineFile
from synth.cli.options import grouped
from synth.cli.output import console, errors, table
from synth.cli.tune import EVERY, maker

if TYPE_CHECKING:
    from synth.errors import InputError
    from synth.exchange.measurements import Series
    from synth.explanation import Answer, Found, Library
    from synth.instance import Instance

LOG = (
    "Output of nccl-tests or rccl-tests (text, JSON), OSU or Intel MPI benchmarks, ucc_perftest, or a CSV file "
    "size,time. Lines of NCCL_DEBUG=INFO that name algorithms and protocols count."
)
GPU = "What the library reckons with: volta, ampere, hopper, blackwell, mi250, mi300x, or ideal: links alone."
HEAD = ("size", "measured", "bound", "library runs", "should take", "measured / that", "explained")
FEW = 8  # sizes, of which fewer tell hardly anything
CAUSES = ("", "what explains it", "95 %", "it leaves", "samples explained")


@dataclass(frozen=True)
class Shown:
    """By what, how long and how it is told."""

    gpu: Annotated[str | None, Option(help=GPU)] = None
    time_limit: Annotated[str, Option(help="Of the bounds: 90, 5m, 2h or none.")] = "20s"
    as_json: Annotated[bool, Option("--json", help="All of it as one JSON object, on standard output.")] = False


@dataclass(frozen=True)
class Logged:
    """What the log leaves open, and which part of it counts."""

    collective: Annotated[str | None, Option(help=f"What the log is of: {EVERY}.")] = None
    place: Annotated[str | None, Option(help=PLACE)] = None
    least: Annotated[str | None, Option("--from", help="Leave out smaller sizes: 128KiB.")] = None
    most: Annotated[str | None, Option("--to", help="Leave out larger sizes.")] = None


@grouped
def explain(
    log: str = typer.Argument(..., metavar="LOG", help=LOG),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=2."),
    machine: str = typer.Option(..., "--machine", help="A machine by name, a machine file, or one to import."),
    logged: Logged = Logged(),
    shown: Shown = Shown(),
    file: MachineFile = MachineFile(),
) -> None:
    """Put a log beside the bound and what the library should take, and say which change of the machine, the algorithm
    or its costs explains it, or that nothing does."""
    from synth.explanation import explain as answered
    from synth.options import read_limit

    seconds = checked("--time-limit", read_limit, shown.time_limit)
    _demand_gpu(shown.gpu)
    make = maker("synth explain", machine, parameters or [], file)
    series = _series(log, logged, len(_members(make("allgather", 2**20))))
    models = _models(make, series, shown.gpu)
    answer = answered(models, series.size, series.seconds)
    rows = list(_rows(series, answer, _bounds(make, series, seconds)))
    if shown.as_json:
        print(json.dumps(_as_data(series, answer, rows), indent=1, allow_nan=False))
        return
    _tell(series, answer, rows)


def _members(instance: Instance) -> Sequence[int]:
    found: Sequence[int] = getattr(instance, "members", ())
    return found


def _demand_gpu(name: str | None) -> None:
    from synth.tuning.reach import gpus

    if name is not None and name not in (*gpus(), "ideal"):
        raise bad_option("--gpu", f"must be one of {', '.join((*gpus(), 'ideal'))}", name)


def _series(log: str, logged: Logged, ranks: int) -> Series:
    """The log's one collective. Raises :class:`InputError` where it is another, or of other ranks than the machine."""
    from synth.errors import Fault, InputError
    from synth.exchange.measurements.logs import Hints, read
    from synth.exchange.measurements.series import PLACES
    from synth.exchange.measurements.two_lines import of_sizes
    from synth.text.amounts import size
    from synth.text.input_file import InputFile

    if logged.place is not None and logged.place not in PLACES:
        raise bad_option("--place", f"must be one of {', '.join(PLACES)}", logged.place)
    place = PLACES[logged.place] if logged.place else None
    try:
        found = read(InputFile(log), Hints(None, logged.collective, None, place, 1))
    except InputError as error:
        if "--ranks" not in str(error):
            raise _by_our_name(error) from None
        found = read(InputFile(log), Hints(None, logged.collective, ranks, place, 1))
    if found.of_pair:
        words = f"{found.test} is a test of one link, not a collective: `synth fit` says what it tells"
        raise InputError([Fault("test", words)], log)
    if logged.collective is not None and found.test != logged.collective:
        raise InputError([Fault("--collective", f"the log is of {found.test}", logged.collective, True)], log)
    if found.ranks != ranks:
        words = f"the log is of {found.ranks}, the machine has {ranks}: say boxes=… or gpus=…, as `synth make` does"
        raise InputError([Fault("ranks", words)], log)
    least, most = (checked(f"--{end}", lambda text: size(text) if text else None, text or "")
                   for end, text in (("from", logged.least), ("to", logged.most)))  # fmt: skip
    return of_sizes(found, least, most, 1)


def _by_our_name(error: InputError) -> InputError:
    """The same error where this command calls an option otherwise than `synth fit` does."""
    from dataclasses import replace

    from synth.errors import InputError

    def ours(text: str) -> str:
        return text.replace("--test", "--collective")

    faults = [replace(one, path=ours(one.path), message=ours(one.message)) for one in error.faults]
    return InputError(faults, error.source)


def _models(make: Callable[[str, int], Instance], series: Series, gpu: str | None) -> list[Library]:
    """What may run, by the algorithms that the log names where it does."""
    from synth.exchange.block_costs import gpu_of
    from synth.exchange.measurements.nccl_debug import choices
    from synth.explanation import libraries
    from synth.text.input_file import InputFile

    sizes = sorted(set(series.size.tolist()))
    models = libraries(make, series.test, sizes, gpu, gpu_of(make("allgather", 2**20)))
    named = choices(InputFile(series.source).text, series.test, sizes, series.ranks)
    return [model.pinned_to(named) for model in models]


def _bounds(make: Callable[[str, int], Instance], series: Series, seconds: float | None) -> dict[int, float]:
    """The certified bounds that are found in the time, the largest sizes first."""
    from synth import api
    from synth.clock.start_up_costs import counted_now
    from synth.errors import InputError
    from synth.family import defaults_for, get_family

    until = None if seconds is None else counted_now() + seconds
    found = {}
    for size in sorted(set(series.size.tolist()), reverse=True):
        left = None if until is None else until - counted_now()
        if left is not None and left <= 0:
            break
        try:
            instance = make(series.test, size)
        except InputError:  # bytes that no such call divides
            continue
        family = get_family(instance.family)
        name = next(one for one in defaults_for(family, instance) if family.methods[one].kind == "bound")
        bound = api.solve(instance, name, time_limit=left).bound
        if bound is not None:
            found[size] = bound
    return found


def _rows(series: Series, answer: Answer, bounds: dict[int, float]) -> Iterator[dict[str, Any]]:
    """A row a size: seconds measured (the median), the bound, what runs, what it should take, what the first of the
    causes says."""
    import numpy as np

    library, cause = answer.library, next(iter(answer.causes), None)
    explained = None if cause is None or answer.verdict != "explained" else cause.seconds
    for k, size in enumerate(library.size.tolist()):
        yield {
            "bytes": size,
            "measured_s": float(np.median(series.seconds[series.size == size])),
            "bound_s": bounds.get(size),
            "runs": library.ways[library.choice[k]].words,
            "logged": bool(library.pinned[k] >= 0),
            "library_s": float(answer.none.seconds[k]),
            "explained_s": None if explained is None else float(explained[k]),
        }


def _test_of(answer: Answer) -> str:
    """The one test that tells the first two apart, or the first from no cause, in words; empty where none does."""
    from synth.explanation.telling import telling

    if answer.verdict != "explained":
        return ""
    first, *others = answer.causes
    test = telling(first, others[0] if others else answer.none)
    if test is None:
        return "no test that is known here tells the first two apart" if others else ""
    about = "to tell the first two apart" if others else "to confirm it"
    return f"{about}: {test.measure}: {test.expects[0]}, or {test.expects[1]}{'' if others else ' if it is not so'}"


def _words_of(answer: Answer) -> str:
    """The verdict."""
    from synth.explanation.fit import TELLING
    from synth.text.quantities import counted

    noise, left = f"{answer.noise:.1%}", f"{answer.none.left:.1%}"
    model, count = answer.library.name, len(answer.library.size)
    little = f"; {counted(count, 'size')} tell{'s' * (count == 1)} little: measure {FEW} or more"
    unlike = f"not as predicted by {model}, which leaves {left}"
    if answer.verdict == "predicted":
        return f"as predicted by {model}: it leaves {left}, and the noise is {noise}"
    if answer.verdict == "explained":
        return unlike + (little if count < TELLING else f"; the noise is {noise}")
    words = f"nothing explains this: {model} leaves {left}, and the noise is {noise}"
    words = (unlike if count < TELLING else words) + (little if count < FEW else "")
    if answer.causes:
        nearest = ", or ".join(f"{one.words} (leaves {one.left:.1%})" for one in answer.causes)
        words += f"; the nearest: {nearest}"
    return words


def _tell(series: Series, answer: Answer, rows: list[dict[str, Any]]) -> None:
    from synth.text.quantities import shown, times

    cells = [
        (shown(row["bytes"], "bytes"), shown(row["measured_s"], "s"), shown(row["bound_s"], "s"),
         row["runs"] + (" (log)" if row["logged"] else ""), shown(row["library_s"], "s"),
         times(row["measured_s"] / row["library_s"]), shown(row["explained_s"], "s"))
        for row in rows
    ]  # fmt: skip
    head = HEAD if answer.verdict == "explained" else HEAD[:-1]
    console.print(table(*head, rows=[row[: len(head)] for row in cells], right=head[:3] + head[4:]))
    below = [row for row in rows if row["bound_s"] is not None and row["measured_s"] < row["bound_s"]]
    if below:
        sizes = ", ".join(shown(row["bytes"], "bytes") for row in below[:3])
        errors.print(f"note: quicker than the bound at {sizes}: the machine is not the one that was measured")
    if any(row["bound_s"] is None for row in rows):
        errors.print("note: some bounds were not found: --time-limit gives more time")
    console.print(f"{series.label}: {_words_of(answer)}")
    if answer.verdict == "explained":
        console.print(table(*CAUSES, rows=list(_cause_rows(answer)), right=CAUSES[3:]))
        if len({one.rank for one in answer.causes}) < len(answer.causes):
            console.print("causes of one row, or of one rank, fit too nearly alike for the log to tell them apart")
        if test := _test_of(answer):
            console.print(test)


def _words_by(found: Found, answer: Answer) -> str:
    """The cause, and by which model where that is another than the answer's."""
    return found.words + (f" (by {found.library.name})" if found.library is not answer.library else "")


def _cause_rows(answer: Answer) -> Iterator[tuple[str, ...]]:
    """A row a cause; causes that expect the same at all sizes of the log share one."""
    from synth.explanation.fit import same

    left = list(answer.causes)
    while left:
        first = left[0]
        alike = [one for one in left if one is first or (one.rank == first.rank and same(first, one, answer.noise))]
        left = [one for one in left if one not in alike]
        intervals = "; ".join(one.interval for one in alike if one.interval)
        yield (str(first.rank), "; or ".join(_words_by(one, answer) for one in alike), intervals, f"{first.left:.1%}",
               f"{first.explained:.0%}")  # fmt: skip


def _cause_as_data(found: Found, answer: Answer) -> dict[str, Any]:
    from synth.explanation.fit import same

    parts = [
        {"kind": cause.kind, "of": cause.of, "where": cause.where.strip(),
         "value": value and value.value, "from": value and value.low, "to": value and value.high}
        for cause, value in zip(found.causes, found.value, strict=True)
    ]  # fmt: skip
    return {
        "rank": found.rank, "same_as_first": same(answer.causes[0], found, answer.noise), "words": found.words,
        "model": found.library.name, "left": found.left, "explained": found.explained, "parts": parts,
    }  # fmt: skip


def _as_data(series: Series, answer: Answer, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All that is told, exactly: seconds, bytes, shares."""
    return {
        "log": series.label, "collective": series.test, "ranks": series.ranks, "model": answer.library.name,
        "verdict": answer.verdict, "words": _words_of(answer), "noise": answer.noise, "left": answer.none.left,
        "rows": rows, "causes": [_cause_as_data(one, answer) for one in answer.causes], "test": _test_of(answer),
    }  # fmt: skip
