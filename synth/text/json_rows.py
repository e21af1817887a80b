"""Lists of tables in JSON files, read into typed rows as those of CSV files are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import no_repeated_keys
from synth.text.csv import MOST_FAULTS
from synth.text.input_file import InputFile

_BLANKS = " \t\n\r"


def is_list(file: InputFile) -> bool:
    """Whether a file begins as such a list does."""
    return file.text.lstrip("\ufeff" + _BLANKS)[:1] == "["


def typed_tables(
    file: InputFile,
    columns: Mapping[str, Callable[[str], Any]],
    needed: Sequence[str],
    what: str,
    wrong: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]] = lambda values: (),
) -> list[dict[str, Any]]:
    """As :func:`synth.text.csv.typed_rows`; a list stands for its values with blanks between. Raises
    :class:`InputError` with every fault by the line on which its table begins."""
    rows, faults = list[dict[str, Any]](), list[Fault]()
    for line, stated in elements(file):
        if len(faults) >= MOST_FAULTS:
            faults.append(Fault("", f"{MOST_FAULTS:,} faults and more: what follows line {line} was not read"))
            break
        if not isinstance(stated, dict):
            faults.append(Fault(f"line {line}", f"is no table of {', '.join(columns)}"))
            continue
        words = f"no such key: there are {', '.join(columns)}"
        faults += [Fault(f"line {line}, {key}", words) for key in stated if key not in columns]
        rows.append(_read(line, stated, columns, needed, faults))
        for key, message in wrong(rows[-1]):
            place = f"line {line}, {key}" if key else f"line {line}"
            faults.append(Fault(place, message, stated.get(key), bool(key)))
    if not rows and not faults:
        faults.append(Fault("", f"needs at least one {what}"))
    if faults:
        raise InputError(faults, str(file))
    return rows


def _read(
    line: int, stated: Mapping[str, Any], columns: Mapping[str, Callable[[str], Any]], needed: Sequence[str],
    faults: list[Fault],
) -> dict[str, Any]:  # fmt: skip
    """The values of a table; those that are missing or cannot be read are left out."""
    found: dict[str, Any] = {}
    for key, read in columns.items():
        value, path = stated.get(key), f"line {line}, {key}"
        if value in (None, "", []):
            faults += [Fault(path, "is missing")] if key in needed else []
            continue
        try:
            found[key] = read(" ".join(map(str, value)) if isinstance(value, list) else str(value))
        except ValueError as error:
            faults.append(Fault(path, str(error), value, True))
    return found


def elements(file: InputFile) -> Iterator[tuple[int, Any]]:
    """The elements of the list that the file holds, and the line on which each begins."""
    text, decoder = file.text, json.JSONDecoder(object_pairs_hook=no_repeated_keys)
    at, line, counted = text.index("[") + 1, 1, 0
    first = True
    while True:
        at = _behind(text, at)
        if text[at : at + 1] == "]" and first:
            break
        try:
            line, counted = line + text.count("\n", counted, at), at
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError([Fault(f"line {line}", f"not valid JSON: {error}")], str(file)) from None
        yield line, found
        first, at = False, _behind(text, at)
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise InputError([Fault(f"line {line}", "not valid JSON: a comma or ] is missing behind it")], str(file))
        at += 1
    if text[at + 1 :].strip():
        raise InputError("not valid JSON: something stands behind the list", str(file))


def _behind(text: str, at: int) -> int:
    """The next place that is not blank."""
    while text[at : at + 1] and text[at] in _BLANKS:
        at += 1
    return at
