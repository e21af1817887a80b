"""The records below a folder: reading all of them, each in a file of its own or packed, and packing them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from synth import collection
from synth import record as records
from synth.errors import Fault, InputError
from synth.record import Record
from synth.textfile import write_atomically

KEPT = ".instance"  # how files end that hold an instance made for a page (records alone end in .json there)


def read_all(paths: Iterable[Path]) -> Iterator[Record | InputError]:
    """The records at these addresses: of files, of collections, and of everything below folders, in path order, one at
    a time. What is damaged comes as the error that says so, collections first. Raises :class:`InputError` for an
    address where nothing is."""
    addresses: dict[Path, None] = {}
    faults: dict[str, InputError] = {}
    for path in paths:
        found, damaged = _addresses(path)
        addresses |= dict.fromkeys(found)
        faults |= {str(error): error for error in damaged}
    yield from faults.values()
    for address in addresses:
        try:
            yield records.read(address)
        except InputError as error:
            yield error


def _addresses(path: Path) -> tuple[list[Path], list[InputError]]:
    found: set[Path] = set()
    faults: list[InputError] = []
    whole = path.name == collection.NAME and path.is_file()
    path = path.parent if whole else collection.plain(path)
    if path.is_file():
        return [path], []
    files = [path / collection.NAME] if whole else [*sorted(path.rglob(collection.NAME)), *collection.files_above(path)]
    for file in files:
        try:
            opened = collection.opened(file)
        except InputError as error:
            faults.append(error)
            continue
        found |= set(opened.below(path))
        faults += opened.faults if path == file.parent or path in file.parents else ()
    if not whole:
        found |= {file for file in path.rglob("*.json") if not _is_instance(file)}
    if not found and not faults:
        what = (
            f"no records (*.json, {collection.NAME}) below this folder" if path.is_dir() else "no such file or folder"
        )
        raise InputError(what, str(path))
    return sorted(found), faults


def _is_instance(file: Path) -> bool:
    """Whether the file is an instance (a study's, lying beside its records) and no record."""
    try:
        with file.open("rb") as stream:
            return b'"synth-instance/1"' in stream.read(200)
    except OSError:
        return False


def beside(path: Path) -> Iterator[Record]:
    """The readable records whose addresses are in this folder itself."""
    with suppress(InputError):
        for found in read_all([path]):
            if isinstance(found, Record) and found.path is not None and found.path.parent == path:
                yield found


def written_at(path: Path) -> float:
    """When the file that holds the record at this address was last written, in seconds. Raises ``OSError``."""
    found = None if path.is_file() else collection.holding(path)
    return (path if found is None else found[0].file).stat().st_mtime


def pack(folder: Path) -> int:
    """Put every record below ``folder`` that has a file of its own into the nearest collection above it, made at
    ``folder`` where there is none, and return how many. The files go once the collection is on disk; instances that
    lie below ``folder`` and end in ``.instance`` go with them into their records.

    Nothing is touched before every record was read. Raises :class:`InputError` naming each that cannot be, and
    ``OSError``.
    """
    loose = sorted(file for file in folder.rglob("*.json") if not _is_instance(file))
    faults: list[InputError] = []
    groups: dict[Path, list[tuple[str, Record]]] = defaultdict(list)
    stamps = {path: _stamp(path) for path in loose}
    for path in loose:
        above = [parent for parent in path.parents if parent == folder or folder in parent.parents]
        home = next((parent for parent in above if (parent / collection.NAME).is_file()), folder)
        try:
            groups[home].append((path.relative_to(home).as_posix(), records.read(path)))
        except InputError as error:
            faults.append(error)
    for home, new in groups.items():
        file, here = home / collection.NAME, {place for place, _ in new}
        opened = collection.opened(file) if file.is_file() else collection.Collection(file, {})
        faults += opened.faults
        for place in set(opened.lines) - here:
            try:
                new.append((place, records.read(home / place)))
            except InputError as error:
                faults.append(error)
    if faults:
        raise InputError([Fault("", line) for error in faults for line in str(error).splitlines()])
    for home, held in groups.items():
        entries = [(place, _with_instance(record, folder), records.split_arrays(record)) for place, record in held]
        collection.write(home / collection.NAME, entries, write_atomically)
    for path in loose:
        if _stamp(path) == stamps[path]:  # else a run has written it again in the meantime
            _remove(path)
    _remove_instances(folder)
    return len(loose)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ino


def _with_instance(record: Record, folder: Path) -> dict[str, Any]:
    """The record's JSON object, with the text of its instance where that is a file below the folder."""
    data = records.plain_data(record, {})
    if data.get("instance_text") is None:
        for file in record.instance_paths():
            if folder.resolve() in file.resolve().parents:
                text = file.read_bytes()
                if hashlib.sha256(text).hexdigest() == record["instance_sha256"]:
                    with suppress(UnicodeDecodeError):
                        return data | {"instance_text": text.decode()}
    return data


def _remove(path: Path) -> None:
    """Delete a record's own files, and the folders that are empty then."""
    path.unlink()
    for beside in path.parent.glob(f"{path.stem}.*.npz"):
        beside.unlink()
    _remove_empty(path.parent)


def _remove_instances(folder: Path) -> None:
    """Delete the instances made for pages below this folder that stand in a record of its collections."""
    held = set()
    for file in folder.rglob(collection.NAME):
        opened = collection.opened(file)
        data = (opened.data(place) for place in opened.lines)
        held |= {record["instance_sha256"] for record in data if record.get("instance_text") is not None}
    for file in sorted(folder.rglob(f"*{KEPT}")):
        if hashlib.sha256(file.read_bytes()).hexdigest() in held:
            file.unlink()
            _remove_empty(file.parent)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        for parent in (folder, *folder.parents):
            parent.rmdir()
