"""Tables in CSV files, read into typed rows with every fault by its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from synth.errors import Fault, InputError, did_you_mean
from synth.text.input_file import InputFile
from synth.text.visible import visible

LONGEST = 30  # digits of a number in a cell
MOST_STRANGE = 3  # columns of no known name that are named
MOST_FAULTS = 1000  # that are listed: a file of another kind has one in every line
_WORDS: Mapping[Callable[[str], Any], str] = {int: "not a whole number", float: "not a number"}


def typed_rows(
    file: InputFile,
    columns: Mapping[str, Callable[[str], Any]],
    needed: Sequence[str],
    what: str,
    wrong: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]] = lambda values: (),
    line_key: str | None = None,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """The rows of a CSV file with a header, a mapping each; what is left empty in a column that is not ``needed`` is
    left out.

    ``columns`` are the readers of all columns there may be, ``what`` the name of a row; ``wrong`` says of the values of
    a row that could be read what they must not be, as (column or "" for the whole row, message). A row holds the number
    of its line under ``line_key``. More than ``most`` rows are not looked at. Raises :class:`InputError` naming the
    file and every faulty line, up to ``MOST_FAULTS``; a reader's ``ValueError`` is in its own words.
    """
    faults: list[Fault] = []
    rows: list[dict[str, Any]] = []
    header, lines = _lines(file, columns, needed, what)
    if most is not None and len(lines) > most:
        raise InputError(f"has {len(lines):,} rows: at most {most:,} are supported", str(file))
    for number, row in lines:
        if len(faults) >= MOST_FAULTS:
            faults.append(Fault("", f"{MOST_FAULTS:,} faults and more: what follows line {number - 1} was not read"))
            break
        if None in row:
            faults.append(Fault(f"line {number}", f"has more than the header's {len(header)} columns"))
        values: dict[str, Any] = {} if line_key is None else {line_key: number}
        values |= _values(row, columns, needed, number, faults)
        for key, message in wrong(values):
            if key:
                faults.append(Fault(f"line {number}, {key}", message, row[key], True))
            else:
                faults.append(Fault(f"line {number}", message))
        rows.append(values)
    if faults:
        raise InputError(faults, str(file))
    return rows


def _lines(
    file: InputFile, columns: Mapping[str, Callable[[str], Any]], needed: Sequence[str], what: str
) -> tuple[set[str], list[tuple[int, dict[str, str]]]]:
    """The names in the header, and of every row the number of its line and its cells."""
    try:
        reader = csv.DictReader(io.StringIO(file.text), skipinitialspace=True)
        names = list(reader.fieldnames or ())
        lines = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"not valid CSV: {error}", str(file)) from None
    header = set(names)
    line = ",".join(needed) + "".join(f"[,{name}]" for name in columns if name not in needed)
    wrong = wrong_columns(names, columns, needed)
    if wrong or not header & set(columns) or not lines:
        raise InputError(f"{wrong}needs a header line {line} and at least one {what}", str(file))
    if len(names) > len(header):
        twice = ", ".join(name for name in columns if names.count(name) > 1)
        raise InputError(f"a column stands twice in the header line: {twice}", str(file))
    return header, lines


def wrong_columns(names: Sequence[str], columns: Iterable[str], needed: Iterable[str]) -> str:
    """Which columns of a header are missing and which are none, with a semicolon behind each; empty where all is well,
    and where the first line is no header at all."""
    known = list(columns)
    if not set(names) & set(known):
        return ""
    told = [f"column {name} is missing; " for name in needed if name not in names]
    strange = [name for name in names if name not in known]
    told += [
        f"no column is called {visible(name[:LONGEST])!r}; {did_you_mean(name, known)}"
        for name in strange[:MOST_STRANGE]
    ]
    return "".join(told)


def whole_cell(most: int, least: int = 0) -> Callable[[str], int]:
    """What reads a whole number in ``least..most``, in plain digits; raises ``ValueError`` in words."""

    def read(text: str) -> int:
        text = text.strip()
        if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= LONGEST):
            raise ValueError("not a whole number")
        value = int(text)
        if not least <= value <= most:
            raise ValueError(f"must be in {least}..{most}")
        return value

    return read


def choice_cell(*choices: str) -> Callable[[str], str]:
    """What reads one of a few words; raises ``ValueError`` in words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be {' or '.join(choices)}")
        return text

    return read


def _values(
    row: Mapping[str, str],
    columns: Mapping[str, Callable[[str], Any]],
    needed: Sequence[str],
    number: int,
    faults: list[Fault],
) -> dict[str, Any]:
    """The cells of a line as read; those that are empty or cannot be read are left out."""
    values: dict[str, Any] = {}
    for key, convert in columns.items():
        if row.get(key) in (None, ""):
            if key in needed:
                faults.append(Fault(f"line {number}, {key}", "is missing"))
            continue
        try:
            values[key] = convert(row[key])
        except ValueError as error:
            words = _WORDS.get(convert) or str(error) or "cannot be read"
            faults.append(Fault(f"line {number}, {key}", words, row[key], True))
    return values
