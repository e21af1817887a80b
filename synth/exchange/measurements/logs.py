"""``synth fit``: which benchmark a log is of, and its series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from synth.arrays import BoolArray
from synth.errors import Fault, InputError
from synth.exchange.launcher_lines import without_prefixes
from synth.exchange.measurements import imb, nccl_json, nccl_tests, osu, perftest, sizes_csv, ucc_perftest
from synth.exchange.measurements.comparison import alike
from synth.exchange.measurements.lines import Line, Samples
from synth.exchange.measurements.series import BOTH, FEWEST_SIZES, IN, MOST_RANKS, OUT, Series, checked
from synth.text.input_file import InputFile

READERS = (nccl_json, nccl_tests, osu, imb, perftest, ucc_perftest, sizes_csv)
FORMATS = (
    "nccl-tests and rccl-tests (text or JSON), OSU and Intel MPI benchmarks, perftest, ucc_perftest, or a CSV file "
    "with the header size,time"
)


@dataclass(frozen=True)
class Hints:
    """What a person says of logs that leave it open. ``label``: what the series is called (default: the file's name);
    ``test``: the benchmark, such as ``sendrecv``; ``ranks``: how many took part; ``place``: ``out-of-place`` (default
    where a log holds both, unless they are alike), ``in-place`` or ``both``; ``fewest``:
    sizes that there must be."""

    label: str | None = None
    test: str | None = None
    ranks: int | None = None
    place: str | None = None
    fewest: int = FEWEST_SIZES


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
    return _series(found, hints, str(file), hints.label or file.stem)


def _series(found: Samples, hints: Hints, source: str, label: str) -> Series:
    """The samples of the place that was asked for, and those of the other. Raises :class:`InputError`."""
    places = np.array(found.places)
    held = [place for place in (OUT, IN) if (places == place).any()]
    if held and hints.place is not None and hints.place not in (*held, *((BOTH,) if len(held) > 1 else ())):
        raise InputError([Fault("--place", f"the log holds {held[0]} times alone", hints.place, True)], source)

    def of(mask: BoolArray, place: str) -> Series:
        columns = (found.size[mask], found.seconds[mask], found.lines[mask])
        return Series(label, found.test, found.ranks, *columns, source, place)

    if not held:
        return checked(of(places == "", ""), hints.fewest)
    apart = [of(places == place, place) for place in held]
    if hints.place == BOTH or (hints.place is None and len(held) > 1 and alike(*apart)):
        return checked(of(places != "", BOTH), hints.fewest)
    taken = apart[held.index(hints.place or held[0])]
    return checked(replace(taken, aside=next((one for one in apart if one is not taken), None)), hints.fewest)


def _lines(text: str) -> Iterator[Line]:
    for number, line in enumerate(without_prefixes(text.split("\n")), 1):
        yield Line(number, line.text.rstrip())
