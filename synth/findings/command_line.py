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
    """Commands that make these records again, each once: ``synth solve`` where the instance is a file of its own, the
    methods of one instance that run alike together; ``synth reproduce`` of the page (the folder below ``root``) where
    the instance was made for it."""
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    pages: dict[str, None] = {}
    for record in records:
        if record.data.get("instance_text") is None and record["instance_file"]:
            alike.setdefault((record["instance_file"], *_how(record)), {})[record["method"]] = None
        else:
            assert record.path is not None
            pages[record.path.relative_to(root).parts[0]] = None
    solved = [
        shlex.join(["synth", "solve", file, *(word for name in methods for word in ("-m", name)), *how])
        for (file, *how), methods in alike.items()
    ]
    return [*solved, *(f"synth reproduce {page}" for page in pages)]


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
