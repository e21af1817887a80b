"""Files of arrays (``.npz``) by strangers: what they take of memory is known before anything is unpacked.

A few kilobytes can say that they hold gigabytes, or hold them without saying so. So the size of the archive's directory
is looked at before it is read, what a member may take before it is unpacked, what it does take while it is unpacked
piece by piece, and the shape of an array before there is one.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

MOST_BYTES = 2**31  # of one record's arrays: more is no schedule of ours, and would fill the memory
MOST_LISTED = 2**24  # bytes of an archive's directory: some hundred thousand arrays
PIECE = 2**12  # bytes that are unpacked at once; LZMA makes at most some thousand times as many of them
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)  # what numpy and we write; bounded in that way
_END, _LOCATOR = 22, 20  # bytes of an archive's last record, and of that before it where the archive is one of zip64
_MOST_HEADER = 10_000  # bytes of what an array says of itself


class ArrayFile:
    """An open archive. ``sizes`` are the bytes of each array as the directory states them, by the array's name."""

    def __init__(self, file: Path) -> None:
        """Open it. Raises ``ValueError`` in words, and whatever :mod:`zipfile` raises on damaged files."""
        with file.open("rb") as stream:
            _demand_hash(file.name, stream)
            _demand_short_directory(stream)
        self._archive = zipfile.ZipFile(file)
        members = self._archive.infolist()
        self._members = {member.filename.removesuffix(".npy"): member for member in members}
        if len(self._members) < len(members):
            raise ValueError("an array stands twice in it")
        self.sizes: Mapping[str, int] = {name: member.file_size for name, member in self._members.items()}

    def read(self, prefix: str) -> dict[str, Any]:
        """The arrays whose names begin so, under the rest of their names. Raises as opening does."""
        names = [name for name in self._members if name.startswith(prefix)]
        if sum(self.sizes[name] for name in names) > MOST_BYTES:
            raise ValueError(f"its arrays take more than {MOST_BYTES:,} bytes")
        return {name.removeprefix(prefix): self._array(name) for name in names}

    def _array(self, name: str) -> Any:
        member = self._members[name]
        if member.compress_type not in METHODS:
            raise ValueError(f"{name} is packed in a way that numpy does not use")
        with self._archive.open(member) as stream:  # never more than the stated size comes out of it
            unpacked = cast(io.BufferedIOBase, stream)
            data = io.BytesIO(b"".join(iter(lambda: unpacked.read1(PIECE), b"")))
        version = np.lib.format.read_magic(data)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise ValueError(f"{name} is in an unknown format")
        shape, _, kind = header[version](data, max_header_size=_MOST_HEADER)
        stated, held = math.prod(shape) * kind.itemsize, member.file_size - data.tell()
        if kind.hasobject or any(length < 0 for length in shape) or stated != held:
            raise ValueError(f"{name} has {held:,} bytes of numbers, and its header says otherwise")
        data.seek(0)
        return np.lib.format.read_array(data, allow_pickle=False)


def _demand_hash(name: str, stream: io.BufferedReader) -> None:
    """Raise ``ValueError`` unless the name carries the first twelve digits of the hash of the contents."""
    found = hashlib.file_digest(stream, "sha256").hexdigest()[:12]
    said = re.fullmatch(r".*\.([0-9a-f]{12})\.npz", name, re.DOTALL)
    if said is None or said[1] != found:
        raise ValueError(f"its name must end in .{found}.npz, after the hash of its contents")


def _demand_short_directory(stream: io.BufferedReader) -> None:
    """Raise ``ValueError`` unless the archive's directory is short. What has a comment, or a directory of 64 bits, is
    none that numpy or we write so."""
    length = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, length - _END - _LOCATOR))
    before, last = stream.read(_LOCATOR), stream.read()
    if length < _END + _LOCATOR or not last.startswith(b"PK\5\6") or before.startswith(b"PK\6\7"):
        raise ValueError("is no archive of arrays as numpy writes it")
    if int.from_bytes(last[12:16], "little") > MOST_LISTED:
        raise ValueError(f"lists more than {MOST_LISTED:,} bytes of names")
