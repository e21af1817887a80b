"""The records below a folder: reading all of them, each in a file of its own or packed, and packing them."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.records import lock, packed
from synth.records import record as records
from synth.records.record import Record
from synth.text.files import remove_leftovers, write_atomically

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
    whole = path.name == packed.NAME and path.is_file()
    path = path.parent if whole else packed.plain(path)
    if path.is_file():
        return [path], []
    # files first: what is packed meanwhile is found in a collection then
    found |= set() if whole else {file for file in _files(path, "*.json") if not _is_instance(file)}
    below = [path / packed.NAME] if whole else sorted(_files(path, packed.NAME))
    for file in [*below, *([] if whole else packed.files_above(path))]:
        try:
            opened = packed.opened(file)
        except InputError as error:
            faults.append(error)
            continue
        found |= set(opened.below(path))
        faults += opened.faults if path == file.parent or path in file.parents else ()
    if not found and not faults:
        what = f"no records (*.json, {packed.NAME}) below this folder" if path.is_dir() else "no such file or folder"
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
    found = None if path.is_file() else packed.holding(path)
    return (path if found is None else found[0].file).stat().st_mtime


@dataclass(frozen=True)
class _Loose:
    """A record that has a file of its own: where it is to be packed, what was read, and the hash of the file then."""

    path: Path
    home: Path
    record: Record
    sha256: str

    @property
    def results(self) -> Path:
        """The folder whose lock holds whoever writes or removes the file."""
        return lock.results_folder(self.path, self.record["family"], self.record["instance"])

    def is_packed(self) -> bool:
        """Whether the file is as it was read, and no collection nearer to it than ``home`` has come up since."""
        nearest = next(packed.files_above(self.path), None)
        return _sha256(self.path) == self.sha256 and nearest == self.home / packed.NAME


def pack(folder: Path, own_page: bool = False) -> int:
    """Put every record below ``folder`` that has a file of its own into the nearest collection above it, made at
    ``folder`` where there is none, and return how many. The files go once the collection is on disk; instances that
    lie below ``folder`` and end in ``.instance`` go with them into their records, those of a page that another process
    makes now (not ``own_page``) excepted.

    Nothing is touched before every record was read. Whoever else packs these folders waits until this has ended; runs
    that write records wait while collections take the place of files. A record written again meanwhile keeps its file.
    Raises :class:`InputError` naming each record that cannot be read, and ``OSError``.
    """
    with ExitStack() as locks:
        homes = {folder, *(file.parent for file in _files(folder, packed.NAME))}
        for home in sorted(homes, key=Path.resolve):
            locks.enter_context(lock.held(home, "packing"))
            remove_leftovers(home / packed.NAME)
        loose, held = _read_all_of(folder, homes)
        while not _replaced(loose, held, folder):
            loose = [one for one in loose if one.path.is_file()]  # others were packed into another folder, or deleted
        _remove_instances(folder, own_page)
    return len(loose)


def _read_all_of(folder: Path, homes: AbstractSet[Path]) -> tuple[list[_Loose], dict[Path, dict[str, Record]]]:
    """The records below the folder that have files of their own, and by their homes those that are packed there. Raises
    :class:`InputError` with all that cannot be read."""
    faults: list[InputError] = []
    loose: list[_Loose] = []
    using: set[Path] = set()
    for path in sorted(_files(folder, "*.json")):
        sha256 = _sha256(path)
        if sha256 is None or _is_instance(path):
            continue
        home = next(parent for parent in path.parents if parent in homes)
        using.add(home)
        try:
            loose.append(_Loose(path, home, records.read(path), sha256))
        except InputError as error:
            faults += [error] if path.is_file() else []
    newer = {one.path for one in loose}
    held = {home: _read_packed(home / packed.NAME, newer, faults) for home in using}
    if faults:
        raise InputError([Fault("", line) for error in faults for line in str(error).splitlines()])
    return loose, held


def _read_packed(file: Path, newer: AbstractSet[Path], faults: list[InputError]) -> dict[str, Record]:
    """The records of a collection, by place, without those at ``newer`` addresses; what is wrong is appended."""
    found: dict[str, Record] = {}
    opened = packed.opened(file) if file.is_file() else packed.Collection(file, {})
    faults += opened.faults
    for place in opened.lines:
        if file.parent / place not in newer:
            try:
                found[place] = records.read(file.parent / place)
            except InputError as error:
                faults.append(error)
    return found


def _replaced(loose: Sequence[_Loose], held: Mapping[Path, Mapping[str, Record]], folder: Path) -> bool:
    """Write the collections and delete the files whose records stand in them; False, with nothing done, if one of the
    files is gone."""
    made = []
    for home in sorted({one.home for one in loose}):
        new = {one.path.relative_to(home).as_posix(): one.record for one in loose if one.home == home}
        entries = [
            (place, _with_instance(record, folder), records.split_arrays(record))
            for place, record in {**held[home], **new}.items()
        ]
        made.append(packed.prepare(home / packed.NAME, entries))
    results = {one.results for one in loose}
    with ExitStack() as locks:
        for place in sorted(results):
            locks.enter_context(lock.held(place, "writing"))
        if not all(one.path.is_file() for one in loose):
            return False
        for one in made:
            packed.commit(one, write_atomically)
        for each in loose:
            if each.is_packed():
                _remove(each.path)
    for place in results:
        _remove_empty(place)
    return True


def _remove(path: Path) -> None:
    """Delete a record's own files, and the folders that are empty then."""
    path.unlink()
    packed.remove_arrays(path)
    _remove_empty(path.parent)


def _sha256(path: Path) -> str | None:
    """The hash of the file; None where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    """The files below the folder whose names match; folders that go away meanwhile hold none, and the built
    documentation, which the README puts into ``results/site``, holds no records."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not Path(place, name, "objects.inv").is_file()]
        yield from (Path(place, name) for name in fnmatch.filter(names, pattern))


def _with_instance(record: Record, folder: Path) -> dict[str, Any]:
    """The record's JSON object, with the text of its instance where that is a file below the folder."""
    data = records.plain_data(record, {})
    if data.get("instance_text") is None:
        for file in record.instance_paths():
            if folder.resolve() in file.resolve().parents:
                with suppress(FileNotFoundError, UnicodeDecodeError):
                    text = file.read_bytes()
                    if hashlib.sha256(text).hexdigest() == record["instance_sha256"]:
                        return data | {"instance_text": text.decode()}
    return data


def _remove_instances(folder: Path, own_page: bool) -> None:
    """Delete the instances made for pages below this folder that stand in a record of its collections."""
    held = set()
    for file in _files(folder, packed.NAME):
        opened = packed.opened(file)
        data = (opened.data(place) for place in opened.lines)
        held |= {record["instance_sha256"] for record in data if record.get("instance_text") is not None}
    for file in sorted(_files(folder, f"*{KEPT}")):
        in_use = not own_page and any(lock.file(parent, "page").exists() for parent in file.parents)
        if not in_use and _sha256(file) in held:
            file.unlink(missing_ok=True)
            _remove_empty(file.parent)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        for parent in (folder, *folder.parents):
            parent.rmdir()
