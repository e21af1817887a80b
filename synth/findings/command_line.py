"""The command that makes a record again, from what the record says of its run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from synth.family import get_family
from synth.options import RunOptions, as_text
from synth.records.record import Record

PLAIN = RunOptions()


def commands(records: Iterable[Record], root: Path) -> list[str]:
    """Commands that make these records again, each once, the methods of one instance that run alike together. They name
    the instance's file, or else a record that holds the instance; the new records then go to the same address below
    ``results`` as that record has below ``root``."""
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    holders: dict[tuple[str, str], Path] = {}
    for record in records:
        file, place = record["instance_file"], []
        if record.data.get("instance_text") is not None or not file:
            assert record.path is not None
            part = "/".join(["results", *record.path.relative_to(root).parts[:-3]])
            file = holders.setdefault((part, record["instance_sha256"]), record.path).as_posix()
            place = ["--results", part] if part != "results" else []
        alike.setdefault((file, *_how(record), *place), {})[record["method"]] = None
    return [
        shlex.join(["synth", "solve", file, *(word for name in methods for word in ("-m", name)), *how])
        for (file, *how), methods in alike.items()
    ]


def _how(record: Record) -> Sequence[str]:
    """The options of the run that are not the command's own defaults."""
    options, words = record["options"], []
    if record["solver"] is not None:
        words += ["--solver", record["solver"]]
    limit = options.get("time_limit_s", PLAIN.time_limit_s)
    words += ["--time-limit", "none" if limit is None else f"{limit:g}s"] if limit != PLAIN.time_limit_s else []
    plain = (("relative_gap", "--gap"), ("threads", "--threads"), ("seed", "--seed"))
    for key, word in plain:
        if options.get(key, getattr(PLAIN, key)) != getattr(PLAIN, key):
            words += [word, as_text(options[key])]
    given = options.get("method", {})
    for parameter in get_family(record["family"]).method(record["method"]).parameters:
        if given.get(parameter.name, parameter.default) != parameter.default:
            words += ["-O", f"{parameter.name}={as_text(given[parameter.name])}"]
    return words
