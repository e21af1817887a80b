"""Rounds as a JSON file, which is checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth.errors import InputError
from synth.exchange.rounds.check import demand_right
from synth.exchange.rounds.plan import Rounds
from synth.instance import parse_json
from synth.schedule.collective import NAMES
from synth.text import untrusted
from synth.text.files import dumps, write_atomically
from synth.text.input_file import InputFile

FORMAT = "synth-rounds/1"
MOST_RANKS = 2**16
PIECES = ("part", "offset", "size")
MESSAGES = ("round", "src", "dst", "piece")


def write(rounds: Rounds, path: Path) -> None:
    """Write a file. Raises :class:`InputError` for rounds that are not right, and ``OSError``."""
    demand_right(rounds)
    data = {
        "format": FORMAT, "name": rounds.name, "collective": rounds.collective, "ranks": rounds.ranks,
        "root": rounds.root, "units": rounds.units,
        "pieces": {name: getattr(rounds, name).tolist() for name in PIECES},
        "messages": {name: getattr(rounds, name).tolist() for name in MESSAGES} | {"adds": rounds.adds.tolist()},
    }  # fmt: skip
    write_atomically(path, (dumps(data) + "\n").encode())


def read(file: InputFile | Path) -> Rounds:
    """Read and check a file. Raises :class:`InputError` naming it."""
    file = file if isinstance(file, InputFile) else InputFile(file)
    data = json_of(file, FORMAT)
    try:
        found = _rounds(data)
    except (ValueError, KeyError) as error:
        raise InputError(str(error), str(file)) from None
    try:
        demand_right(found)
    except InputError as error:
        raise InputError(error.faults, str(file)) from None
    return found


def json_of(file: InputFile, form: str) -> dict[str, Any]:
    """The object of a JSON file of that format. Raises :class:`InputError` naming the file."""
    data = parse_json(file.data, str(file))
    if not isinstance(data, dict) or data.get("format") != form:
        raise InputError(f"is not of the format {form}", str(file))
    return data


def text_of(data: Mapping[str, Any], key: str) -> str:
    """A text that may be left out. Raises ``ValueError``."""
    found = data.get(key, "")
    if not isinstance(found, str):
        raise ValueError(f"{key} is no text")
    return found


def _rounds(data: dict[str, Any]) -> Rounds:
    pieces, messages = (data.get(key) for key in ("pieces", "messages"))
    for key, value in (("pieces", pieces), ("messages", messages)):
        if not isinstance(value, dict):
            raise ValueError(f"{key} is not an object")
    assert isinstance(pieces, dict)
    assert isinstance(messages, dict)
    columns = {name: untrusted.whole_numbers(pieces, name, 0) for name in PIECES}
    count = len(columns["part"])
    columns = {name: untrusted.whole_numbers(pieces, name, 0, shape=(count,)) for name in PIECES}
    sends = len(untrusted.whole_numbers(messages, "round", 0))
    columns |= {name: untrusted.whole_numbers(messages, name, 0, shape=(sends,)) for name in MESSAGES}
    return Rounds(
        name=text_of(data, "name"),
        collective=untrusted.choice(data, "collective", *NAMES),
        ranks=untrusted.whole(data, "ranks", 1, MOST_RANKS),
        root=None if data.get("root") is None else untrusted.whole(data, "root", 0, MOST_RANKS),
        units=untrusted.whole(data, "units", 1),
        adds=untrusted.flags(messages, "adds", (sends,)),
        **columns,
    )
