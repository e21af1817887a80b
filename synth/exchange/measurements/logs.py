"""``synth fit``: which benchmark a log is of, and its series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synth.errors import Fault, InputError
from synth.exchange.launcher_lines import without_prefixes
from synth.exchange.measurements import nccl_tests, osu, sizes_csv, ucc_perftest
from synth.exchange.measurements.lines import Line
from synth.exchange.measurements.series import MOST_RANKS, Series, checked
from synth.text.input_file import InputFile

READERS = (nccl_tests, osu, ucc_perftest, sizes_csv)
FORMATS = "nccl-tests, OSU micro-benchmarks, ucc_perftest, or a CSV file with the header size,time"


@dataclass(frozen=True)
class Hints:
    """What a person says of logs that leave it open. ``label``: what the series is called (default: the file's name);
    ``test``: the benchmark, such as ``sendrecv``; ``ranks``: how many took part."""

    label: str | None = None
    test: str | None = None
    ranks: int | None = None


def read(file: InputFile, hints: Hints | None = None) -> Series:
    """The one test of a log. Raises :class:`InputError` with one message that names the file and the line."""
    hints = hints or Hints()
    lines = list(_lines(file.text))
    reader = next((one for one in READERS if one.looks_like(lines)), None)
    if reader is None:
        first = next((f"line {line.number}" for line in lines if line.text.strip()), "line 1")
        raise InputError([Fault(first, f"no table of a benchmark is in this file; known: {FORMATS}")], str(file))
    try:
        found = reader.read(lines, hints.test, hints.ranks)
    except InputError as error:
        raise InputError(error.faults[:1], str(file)) from None
    if not 2 <= found.ranks <= MOST_RANKS:
        words = f"{found.ranks} ranks are named; a benchmark of links takes 2 to {MOST_RANKS}"
        raise InputError([Fault(f"line {found.lines[0]}", words)], str(file))
    label = hints.label or file.stem
    return checked(Series(label, found.test, found.ranks, found.size, found.seconds, found.lines, str(file)))


def _lines(text: str) -> Iterator[Line]:
    for number, line in enumerate(without_prefixes(text.split("\n")), 1):
        yield Line(number, line.text.rstrip())
