"""``synth fit``: latencies and bandwidths from logs of benchmarks, as a machine file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from synth.cli.common import bad_option, checked
from synth.cli.options import grouped
from synth.cli.output import console, errors, table

if TYPE_CHECKING:
    from synth.exchange.measurements import Fit, Series

LOGS = (
    "Output of nccl-tests or rccl-tests (text, JSON), OSU or Intel MPI benchmarks, perftest, ucc_perftest, or a CSV "
    "file size,time. NAME=FILE names a log; with --machine, NAME is the class of links it measured, and several logs "
    "of a class are fitted together."
)
TEST = "What logs that do not say it measured: sendrecv, latency, bandwidth, allreduce, allgather, …"
PLACE = "Of logs that hold both: out (of place), in (place), or both as one cost. Default: both where alike, else out."
APART = 1.25  # from this ratio of out-of-place and in-place times on they are two costs
EXACT = 0.005  # times with less noise are computed, not measured
ALIKE = 0.5  # neighbouring residuals that are more alike than this are no noise


@dataclass(frozen=True)
class Said:
    """What logs leave open."""

    test: Annotated[str | None, Option(help=TEST)] = None
    ranks: Annotated[int | None, Option(min=2, help="How many ranks took part, and the machine gets.")] = None
    algorithm: Annotated[str, Option(help="What collectives ran: ring, tree or doubling.")] = "ring"
    place: Annotated[str | None, Option(help=PLACE)] = None
    least: Annotated[str | None, Option("--from", help="Leave out smaller sizes: 128KiB.")] = None
    most: Annotated[str | None, Option("--to", help="Leave out larger sizes.")] = None


@dataclass(frozen=True)
class Writing:
    """What is written."""

    output: Annotated[Path | None, Option("-o", "--output", help="Where to write the machine file.")] = None
    machine: Annotated[Path | None, Option(help="A machine file of `synth import` whose classes get the fits.")] = None
    name: Annotated[str | None, Option(help="The machine's name (default: the first log's).")] = None


@grouped
def fit(
    logs: list[str] = typer.Argument(..., metavar="LOG…", help=LOGS),
    said: Said = Said(),
    writing: Writing = Writing(),
) -> None:
    """Fit latency and bandwidth, with intervals of 95 %, to logs of benchmarks; say which of several logs of a test is
    faster, and at which sizes; write a machine file that `synth make` takes."""
    from synth.exchange.measurements.series import ALGORITHMS, PLACES

    if said.place is not None and said.place not in PLACES:
        raise bad_option("--place", f"must be one of {', '.join(PLACES)}", said.place)
    if said.algorithm not in ALGORITHMS:
        raise bad_option("--algorithm", f"must be one of {', '.join(ALGORITHMS)}", said.algorithm)
    series = [_read(log, said) for log in logs]
    for one in series:
        _say_what_was_taken(one, said.test, said.ranks)
    _compared(series)
    fits = {name: _fitted(members, said.algorithm) for name, members in _groups(series, writing).items()}
    if said.algorithm == "ring":
        from synth.exchange.measurements.ring_costs import ring_costs

        if (costs := ring_costs(series)) is not None:
            console.print(f"as an executor's costs: {costs.words}")
    if writing.output is not None:
        _write(fits, series, writing, said.ranks)


def _groups(series: list[Series], writing: Writing) -> dict[str, list[Series]]:
    """The series that are fitted together: those of a class, those of one machine, or each alone where none is
    written."""
    if writing.machine is None and writing.output is None:
        return {f"{k}": [one] for k, one in enumerate(series)}
    if writing.machine is None:
        pairs = [one for one in series if one.of_pair]
        return {"": pairs or series}
    groups: dict[str, list[Series]] = {}
    for one in series:
        groups.setdefault(one.label, []).append(one)
    return groups


def _read(log: str, said: Said) -> Series:
    from synth.exchange.measurements.logs import Hints, read
    from synth.exchange.measurements.series import PLACES
    from synth.exchange.measurements.two_lines import of_sizes
    from synth.text.amounts import size
    from synth.text.input_file import InputFile

    name, equals, path = log.partition("=")
    if not equals or "/" in name:
        name, path = "", log
    place = PLACES[said.place] if said.place else None
    found = read(InputFile(path), Hints(name or None, said.test, said.ranks, place))
    least, most = (checked(f"--{end}", lambda text: size(text) if text else None, text or "")
                   for end, text in (("from", said.least), ("to", said.most)))  # fmt: skip
    return of_sizes(found, least, most)


def _say_what_was_taken(series: Series, test: str | None, ranks: int | None) -> None:
    """Notes on what a log holds beside what is fitted: the other place's times, and another test or other ranks than
    were stated."""
    from synth.exchange.measurements.comparison import apart
    from synth.exchange.measurements.series import BOTH, PLACES, READ
    from synth.text.quantities import shown, times

    notes = []
    if series.place == BOTH:
        notes.append("out-of-place and in-place times are fitted together; --place out or in takes one")
    if series.aside is not None:
        other = series.aside.place
        option = next(name for name, place in PLACES.items() if place == other)
        found = apart(series, series.aside)
        words = f"{series.place} times are fitted; --place {option} fits the {other} ones"
        if found is not None and found.ratio >= APART:
            slower = other if found.slower else series.place
            words += (
                f", which differ: {slower} takes up to {times(found.ratio)} as long (at {shown(found.size, 'bytes')})"
            )
        notes.append(words)
    notes += _words_of_runs(series)
    if test is not None and series.test != test:
        notes.append(f"the log names its test, {series.test}; --test {test} is for logs that do not")
    if ranks is not None and series.ranks != ranks and not series.of_pair:
        notes.append(f"the log names its ranks, {series.ranks}; --ranks {ranks} is for the machine alone")
    if series.test == READ:
        notes.append("a read is a round trip: its time counts as two latencies and the data's way back")
    for words in notes:
        errors.print(f"note: {series.label}: {words}")


def _words_of_runs(series: Series) -> list[str]:
    """What is to be said of a log of several runs that differ."""
    from synth.exchange.measurements.comparison import runs_apart
    from synth.text.quantities import times

    runs = runs_apart(series)
    if runs is None or runs.ratio < APART:
        return []
    lines = " and ".join(str(line) for line in series.lines[series.size == runs.size][:2])
    return [f"runs are fitted together that are {times(runs.ratio)} apart (lines {lines}): a file of each parts them"]


def _fitted(members: list[Series], algorithm: Any) -> Fit:
    """The fit, shown with its residuals."""
    from synth.exchange.measurements import fitted
    from synth.text.quantities import counted, percent, shown

    found = fitted(members, algorithm)
    numbers: list[tuple[str, ...]] = []
    streams = [(f"a message of {label}", own, "s") for label, own in found.overheads.items()]
    both = [("latency", found.latency, "s"), ("bandwidth", found.bandwidth, "bytes/s")]
    for name, value, unit in both + streams:
        words = ("unknown", "", "") if value is None else tuple(shown(end, unit) for end in value)
        numbers.append((name, *words))
    logs = ", ".join(one.label for one in members)
    console.print(f"{logs}: noise {percent(found.spread)}")
    console.print(table("", "fitted", "from", "to", rows=numbers, right=("fitted", "from", "to")))
    rows: list[tuple[str, ...]] = []
    for one, left in zip(members, found.residuals, strict=True):
        worst = int(abs(left.relative).argmax())
        rows.append((one.label, one.test, str(one.ranks), counted(len(one.size), "sample"),
                     str(int((left.weight == 0).sum())), f"{left.relative[worst]:+.0%}",
                     f"{shown(int(one.size[worst]), 'bytes')} (line {one.lines[worst]})"))  # fmt: skip
        if len(members) == 1 and _told_two_lines(one, found, algorithm):
            continue
        if left.alike > ALIKE and found.spread > EXACT:
            errors.print(
                f"note: {one.label}: neighbouring sizes deviate alike (correlation {left.alike:.2f}): the cost is not "
                "latency + bytes / bandwidth throughout (a protocol changes); the intervals are too narrow",
            )
    columns = ("log", "test", "ranks", "samples", "left out", "largest residual", "at")
    console.print(table(*columns, rows=rows, right=("ranks", "samples", "left out", "largest residual")))
    return found


def _told_two_lines(series: Series, fit: Fit, algorithm: Any) -> bool:
    """Show two lines where one explains too little and they do more; whether it is so."""
    from synth.exchange.measurements.two_lines import ENOUGH, explained, two_lines
    from synth.text.quantities import shown

    found = two_lines(series, fit, algorithm)
    if found is None:
        if (one := explained(series, fit)) < ENOUGH:
            words = f"one line explains {one:.0%} of the samples, and two no more: some times are outliers or scatter"
            errors.print(f"note: {series.label}: {words}")
        return False
    last, first = (shown(end, "bytes") for end in (found.last, found.first))
    errors.print(
        f"note: {series.label}: one line explains {found.one:.0%} of the samples, two explain {found.both:.0%}: the "
        f"cost changes between {last} and {first} (a protocol or algorithm changes). A machine has one line: fit that "
        f"of the sizes you ask for, --to {found.last} or --from {found.first}",
    )  # fmt: skip
    rows = []
    for words, part in ((f"up to {last}", found.small), (f"from {first}", found.large)):
        both = ((part.latency, "s"), (part.bandwidth, "bytes/s"))
        rows.append((words, *("unknown" if one is None else f"{shown(one.value, unit)} ({shown(one.low, unit)} to "
                              f"{shown(one.high, unit)})" for one, unit in both)))  # fmt: skip
    console.print(table("sizes", "latency", "bandwidth", rows=rows, right=("latency", "bandwidth")))
    return True


def _compared(series: list[Series]) -> None:
    """A row for every stretch of sizes at which one of two logs of a test is faster."""
    from synth.exchange.measurements.comparison import stretches
    from synth.text.quantities import shown, times

    rows = [
        (one.test, str(one.ranks), f"{shown(one.first, 'bytes')} – {shown(one.last, 'bytes')}", one.faster, one.slower,
         times(one.least), times(one.most))
        for one in stretches(series)
    ]  # fmt: skip
    if rows:
        console.print(table("test", "ranks", "sizes", "faster", "than", "at least", "at most", rows=rows))


def _write(fits: dict[str, Fit], series: list[Series], writing: Writing, ranks: int | None) -> None:
    from synth.exchange.measurements import fitted_machine
    from synth.text.files import dumps
    from synth.text.input_file import InputFile
    from synth.text.quantities import shown

    assert writing.output is not None
    logs = [fitted_machine.log_name(one.source) for one in series]
    if writing.machine is None:
        name = writing.name or series[0].label
        raw = fitted_machine.star(fits[""], ranks or max(one.ranks for one in series), name, logs)
    else:
        raw = fitted_machine.with_classes(InputFile(writing.machine), fits, logs)
        raw["name"] = writing.name or raw["name"]
    least, most = (end(getattr(one.size, end.__name__)() for one in series) for end in (min, max))
    raw["given"] = [*raw["given"], f"fitted to sizes of {shown(int(least), 'bytes')} to {shown(int(most), 'bytes')}"]
    try:
        writing.output.write_text(dumps(raw) + "\n", encoding="utf-8")
    except OSError as error:
        raise bad_option("-o", f"cannot be written: {error.strerror}", str(writing.output)) from None
    console.print(f"{writing.output}: machine file")
