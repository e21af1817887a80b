"""Texts that pretend to be the command's own words, where they can stand in a file, and what must hold of the output.

Where they can stand follows from the file's schema (pydantic), so that a new field is covered by itself, or, of formats
that are not ours, from every place of a sample.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import command
import forked_command

from synth import execution
from synth.cli import main

VERDICT = "ok     rs/forged/record.json: completion time 1.00 us, replayed"
ENDS = "".join(end + VERDICT for end in ("\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"))
TERMINAL = "\x1b[2K\x1b[1;31m\x1b]0;title\x07\x9b1A\u202e\u2066\u200b\u200f\ufeff\0\x7f\b"
MARKUP = "[red]a[/red][/][nothing] $\\frac{{$ <script>alert(1)</script> | `x` \"' {{ 1 }}"
HOSTILE = ENDS + TERMINAL + MARKUP
HALF = "\ud800" + "n" * 100_000 + "\n" + VERDICT  # half of a character, and a name of 100 kB
TEXTS = {"ends": HOSTILE, "half": HALF}
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
APART = ("solve", "study")
Place = tuple[str | int, ...]


def places(schema: Mapping[str, Any], data: Any) -> list[Place]:
    """Every place of the data that may hold a text as the schema has it, stated there or not, and in every object a key
    that the schema does not know. ``[-1]`` of such a place is the hostile text itself."""
    return list(dict.fromkeys(_places(schema, schema, data, ())))


def _places(whole: Mapping[str, Any], part: Mapping[str, Any], data: Any, at: Place) -> Iterator[Place]:
    if "$ref" in part:
        yield from _places(whole, whole["$defs"][part["$ref"].rpartition("/")[2]], data, at)
        return
    for kind in ("anyOf", "oneOf", "allOf"):
        for choice in part.get(kind, ()):
            yield from _places(whole, choice, data, at)
    if part.get("type") == "string" or not ({"type", "anyOf", "oneOf", "allOf"} & set(part)):
        yield at
    if isinstance(data, dict) and part.get("type") == "object":
        yield (*at, HOSTILE)
        for key, field in part.get("properties", {}).items():
            yield from _places(whole, field, data.get(key), (*at, key))
        known, other = part.get("properties", {}), part.get("additionalProperties")
        for key, value in data.items():
            if key not in known:
                yield from _places(whole, other if isinstance(other, Mapping) else {}, value, (*at, key))
    if isinstance(data, list) and data:
        for index, item in enumerate([*part.get("prefixItems", ()), part.get("items")][: len(data)]):
            if isinstance(item, Mapping):
                yield from _places(whole, item, data[index], (*at, index))


def every_place(data: Any, at: Place = ()) -> Iterator[Place]:
    """Every place of the data, and in every object a key of its own."""
    if at:
        yield at
    if isinstance(data, dict):
        yield (*at, HOSTILE)
        for key, value in data.items():
            yield from every_place(value, (*at, key))
    elif isinstance(data, list):
        for index in range(min(len(data), 2)):
            yield from every_place(data[index], (*at, index))


def put(data: Any, place: Place, text: str) -> Any:
    """A copy of the data with the text at the place; objects that lead there are made where they are missing."""
    made = deepcopy(data)
    within = made
    for key, _ in pairwise(place):
        if isinstance(within, dict) and not isinstance(within.get(key), (dict, list)):
            within[key] = {}
        within = within[key]
    within[text if place[-1] == HOSTILE else place[-1]] = text
    return made


def variants(data: Any, found: list[Place]) -> Iterator[Any]:
    """The data with each text at each of the places."""
    for place in found:
        for text in TEXTS.values():
            yield put(data, place, text)


def write_all(folder: Path, made: Iterator[Any], dump: Callable[[Any], str] = json.dumps, suffix: str = ".json") -> int:
    """Write each into a file of its own; how many there are."""
    folder.mkdir()
    count = 0
    for count, data in enumerate(made, 1):
        (folder / f"v{count}{suffix}").write_bytes(dump(data).encode("utf-8", "surrogatepass"))
    return count


def run(*words: object, cwd: Path, codes: tuple[int, ...] = (0, 1, 2, 4)) -> subprocess.CompletedProcess[str]:
    """`synth words…`, whose output must be :func:`honest`; it must end with one of the codes, without a traceback. What
    starts processes of its own runs in one; all else in this one, with what it writes as bytes."""
    line = [str(command.SYNTH), *map(str, words)]
    done = forked_command.run(line, cwd, dict(os.environ), 300) if words[0] in APART else _within(line, cwd)
    assert done.returncode in codes, (done.returncode, done.stderr[-3000:])
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    honest(done.stdout)
    honest(done.stderr)
    return done


def _within(line: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=how) for how in ("strict", "backslashreplace"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before, code, may_fork = sys.argv, 0, execution.may_fork
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            sys.argv = line
            try:
                main.run()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except Exception:
                traceback.print_exc()
                code = 1
    finally:
        sys.argv, execution.may_fork = before, may_fork
        for number, handler in handlers.items():
            signal.signal(number, handler)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(line, code, *texts)


def honest(shown: str) -> None:
    """No line begins as the forged one does, and nothing moves a cursor, hides, or turns the reading around."""
    forged = [line for line in shown.splitlines() if line.strip().startswith(VERDICT[:12])]
    assert not forged, forged[:3]
    controls = {letter for letter in shown if unicodedata.category(letter) in UNSEEN} - {"\n"}
    assert not controls, (controls, next(line for line in shown.split("\n") if controls & set(line))[:500])
