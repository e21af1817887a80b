"""Collections: the records of a sweep in one file, ``records.jsonl``, their larger arrays in one ``.npz`` beside it.

A line is a record, as its own file would hold it, with ``record_path`` before it: where below this folder that file
would lie (``equimesh-5x5-c1/pull.json``). A record keeps its address when it is packed:
``DIR/equimesh-5x5-c1/pull.json`` names it either way, and so does ``DIR/records.jsonl/equimesh-5x5-c1/pull.json``. A
file of its own at that address is the newer one and hides it.

The arrays of a record are ``<record_path>/<key>`` in the file that ``solution_file`` names; the name carries the hash
of its contents, so at any moment lines and arrays on disk belong together. This module knows lines and arrays;
:mod:`synth.records.record` knows what a record is.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from synth.errors import InputError, abridged
from synth.instance import parse_json
from synth.records.array_file import ArrayFile

NAME = "records.jsonl"
PATH = "record_path"
MARK, HEAD = b'"synth-record/1"', 200  # what stands in the first bytes of a record's file
LONGEST_NAME = 255  # bytes of a file's name
Arrays = Mapping[str, Any]
Entry = tuple[str, Mapping[str, Any], Arrays]  # place, record without its arrays, arrays


@dataclass(frozen=True)
class Collection:
    """An open collection: its lines by ``record_path``, and what is wrong with the others."""

    file: Path
    lines: Mapping[str, tuple[int, bytes]]
    faults: tuple[InputError, ...] = field(default=())

    def data(self, place: str) -> dict[str, Any]:
        """The record at that place, fresh from its line."""
        number, text = self.lines[place]
        data: dict[str, Any] = parse_json(text, str(self.file), number)
        del data[PATH]
        return data

    def below(self, folder: Path) -> Iterator[Path]:
        """The addresses of its records in a folder (or at it)."""
        for place in self.lines:
            address = self.file.parent / place
            if folder == address or folder in address.parents:
                yield address


def opened(file: Path) -> Collection:
    """The collection in this file; read once as long as the file stays the same. Raises :class:`InputError` when it
    cannot be read at all."""
    try:
        status = file.stat()
        return _opened(file, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(file)) from None


@lru_cache(maxsize=32)
def _opened(file: Path, *_: int) -> Collection:
    lines: dict[str, tuple[int, bytes]] = {}
    faults = []
    for number, text in enumerate(file.read_bytes().split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            place = _place(parse_json(text, str(file), number), lines)
            lines[place] = number, text
        except InputError as error:
            faults.append(error)
        except ValueError as error:
            faults.append(InputError(f"line {number}: {error}", str(file)))
    return Collection(file, lines, tuple(faults))


def _place(data: Any, lines: Mapping[str, tuple[int, bytes]]) -> str:
    """The line's place. Raises ``ValueError`` in words."""
    if not isinstance(data, dict):
        raise ValueError("holds no record")
    place = data.get(PATH)
    if not isinstance(place, str):
        raise ValueError(f"{PATH} is missing or not a text")
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != place or path.suffix != ".json":
        raise ValueError(f"{PATH} = {abridged(repr(place))}: must be a path below this folder that ends in .json")
    if not place.isprintable() or max(len(part.encode()) for part in path.parts) > LONGEST_NAME:
        what = f"names must be printable and of at most {LONGEST_NAME} bytes"
        raise ValueError(f"{PATH} = {abridged(repr(place))}: {what}")
    if place in lines:
        raise ValueError(f"{PATH} = {place!r} stands in line {lines[place][0]} too")
    return place


def plain(path: Path) -> Path:
    """The address without a collection that is used like a folder: ``DIR/a/pull.json`` of
    ``DIR/records.jsonl/a/pull.json``."""
    for parent in path.parents:
        if parent.name == NAME and parent.is_file():
            return parent.parent / path.relative_to(parent)
    return path


def files_above(path: Path) -> Iterator[Path]:
    """The collections that may hold something at this address, nearest first."""
    for parent in path.parents:
        if (parent / NAME).is_file():
            yield parent / NAME


def holding(path: Path) -> tuple[Collection, str] | None:
    """The collection that holds the record at this address, and its place in it. Raises :class:`InputError`."""
    for file in files_above(path):
        found, place = opened(file), path.relative_to(file.parent).as_posix()
        if place in found.lines:
            return found, place
    return None


def is_record(path: Path) -> bool:
    """Whether a record is at this address, in a file of its own, as its beginning says, or in a collection."""
    if path.is_file():
        with path.open("rb") as stream:
            return MARK in stream.read(HEAD)
    return not path.exists() and holding(plain(path)) is not None


def state(path: Path) -> list[tuple[int, int, int]]:
    """What tells whether the record at this address was written again or packed: the state of its file and of the
    collections that may hold it."""
    found = []
    for file in (path, *(parent / NAME for parent in path.parents)):
        with suppress(OSError):
            status = file.stat()
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return found


def read_arrays(file: Path, prefix: str = "") -> dict[str, Any]:
    """The arrays of an ``.npz`` whose names begin with ``prefix``, under the rest of their names. Raises whatever numpy
    and zipfile raise on damaged files, and ``ValueError`` on what :mod:`synth.records.array_file` refuses."""
    status = file.stat()
    return _archive(file, os.getpid(), status.st_mtime_ns, status.st_size, status.st_ino).read(prefix)


@lru_cache(maxsize=4)
def _archive(file: Path, *_: int) -> ArrayFile:
    """The open archive in this file; a collection's is asked for hundreds of records. Closed when its place is taken.
    Never shared with a process forked from this one: they would share its position."""
    return ArrayFile(file)


@dataclass(frozen=True)
class Prepared:
    """What :func:`commit` puts on disk: the lines, and the arrays' file, whose name carries its hash."""

    file: Path
    text: bytes
    arrays: str | None
    blob: bytes


def prepare(file: Path, entries: Iterable[Entry]) -> Prepared:
    """The bytes of a collection of these entries; nothing is written."""
    entries = sorted(entries, key=lambda entry: entry[0])
    arrays = {f"{place}/{key}": values for place, _, held in entries for key, values in held.items()}
    blob = _npz(arrays) if arrays else b""
    name = f"{file.stem}.{hashlib.sha256(blob).hexdigest()[:12]}.npz" if arrays else None
    lines = [
        json.dumps({PATH: place, **data, "solution_file": name if held else None}, separators=(",", ":"))
        for place, data, held in entries
    ]
    return Prepared(file, "".join(line + "\n" for line in lines).encode(), name, blob)


def commit(made: Prepared, write_atomically: Callable[[Path, bytes], None]) -> None:
    """Write a collection: the arrays first, then the lines that name their file, then older arrays go. Raises
    ``OSError``; what was there is there then."""
    file, is_new = made.file, made.arrays is not None and not made.file.with_name(made.arrays).exists()
    if made.arrays is not None:
        write_atomically(file.with_name(made.arrays), made.blob)
    try:
        write_atomically(file, made.text)
    except BaseException:
        if is_new and made.arrays is not None:
            file.with_name(made.arrays).unlink(missing_ok=True)
        raise
    remove_arrays(file, but=made.arrays)


def _npz(arrays: Arrays) -> bytes:
    """An ``.npz`` as numpy reads it, compressed by LZMA: for schedules three quarters of ``savez_compressed``'s size.
    The same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_LZMA)
    return buffer.getvalue()


def narrow(values: Any) -> Any:
    """Whole numbers in the smallest type that holds them: fewer bytes to compress."""
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    kinds = (np.int8, np.int16, np.int32) if low < 0 else (np.uint8, np.uint16, np.uint32)
    fits = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return values.astype(next(fits, values.dtype))


def remove_arrays(path: Path, but: str | None = None) -> None:
    """Delete the files of arrays that belong to the file at this address, ``but`` for one."""
    name = re.compile(re.escape(path.stem) + r"\.[0-9a-f]{12}\.npz")
    for old in sorted(path.parent.glob("*.npz")):
        if name.fullmatch(old.name) and old.name != but:
            old.unlink(missing_ok=True)
