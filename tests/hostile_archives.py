"""Files that take little room and would take gigabytes of memory, or that are not what their name says; of each what a
checker must say: ``refuse``, or ``not covered`` where it may as well be too large to be looked at."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

MIB = 2**20
LARGE = 512 * MIB  # more than the processes that read it may have


def npy(shape: tuple[int, ...], data: bytes = b"") -> bytes:
    """The beginning of an array in numpy's format, and some of its bytes."""
    header = repr({"descr": "|i1", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


def archive(pieces: Iterator[bytes], method: int, change: Callable[[bytearray], None] = lambda blob: None) -> bytes:
    """A zip archive of one member of these bytes, changed afterwards."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as made, made.open("step.npy", "w") as stream:
        for piece in pieces:
            stream.write(piece)
    blob = bytearray(buffer.getvalue())
    change(blob)
    return bytes(blob)


def zeros(head: bytes, size: int = LARGE) -> Iterator[bytes]:
    yield head
    for _ in range(size // MIB):
        yield bytes(MIB)


def states(size: int) -> Callable[[bytearray], None]:
    """State another size of the member in both of its headers."""

    def change(blob: bytearray) -> None:
        at = blob.rindex(b"PK\1\2")
        blob[at + 24 : at + 28] = blob[22:26] = struct.pack("<I", size)

    return change


def long_directory(blob: bytearray) -> None:
    """State a directory of 2 GB."""
    at = blob.rindex(b"PK\5\6")
    blob[at + 12 : at + 16] = struct.pack("<I", 2**31)


def archives() -> dict[str, tuple[str, bytes]]:
    """By name: the verdict, and the archive."""
    small, deflate, lzma = [npy((1,), b"1")], zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA
    return {
        "states-much": ("not covered", archive(iter(small), deflate, states(2**31))),
        "is-much": ("not covered", archive(zeros(npy((LARGE,))), deflate)),
        "is-more-than-it-states": ("refuse", archive(zeros(npy((100,))), deflate, states(228))),
        "is-more-by-lzma": ("refuse", archive(zeros(npy((100,)), 32 * MIB), lzma, states(228))),
        "by-bzip2": ("refuse", archive(zeros(npy((100,)), 8 * MIB), zipfile.ZIP_BZIP2, states(228))),
        "long-shape": ("refuse", archive(iter([npy((10**13,), b"1")]), deflate)),
        "longer-shape": ("refuse", archive(iter([npy((10**40, 0))]), deflate)),
        "negative-shape": ("refuse", archive(iter([npy((-1, -1), b"1")]), deflate)),
        "long-header": ("refuse", archive(iter([b"\x93NUMPY\x02\0\0\0\x10\0" + b"[" * 2**20]), deflate)),
        "long-directory": ("not covered", archive(iter(small), deflate, long_directory)),
        "no-archive": ("refuse", b"PK\5\6" * 20),
    }


def texts(record: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """By the name of a file: the verdict, and its bytes."""
    start = json.dumps(record)[:-1].encode()
    return {
        "latin.json": ("refuse", b'{"format": "\xe9"}'),
        "deep.json": ("refuse", start + b', "x": ' + b"[" * 10**6 + b"]" * 10**6 + b"}"),
        "digits.json": ("refuse", start + b', "x": ' + b"9" * 10**6 + b"}"),
        "many-lists.json": ("not covered", start + b', "x": [' + b"[]," * 8 * MIB + b"[]]}"),
        "empty.json": ("refuse", b""),
        "lines/records.jsonl": ("refuse", b"\xff\n"),
        "forged\nok     name.json": ("refuse", start + b', "family": "a\\nok     b\\u001b"}'),
    }


def write(folder: Path, record: Mapping[str, Any]) -> dict[Path, str]:
    """Write all of them, the archives each with a record whose ``step`` it holds; what must be said of each record."""
    expected = {}
    for name, (verdict, blob) in archives().items():
        for stated in (hashlib.sha256(blob).hexdigest()[:12], "0" * 12, None):
            file = f"{name}.{stated}.npz" if stated else f"{name}.npz"
            path = folder / f"{name}-{stated}.json"
            (folder / file).write_bytes(blob)
            solution = {key: value for key, value in record["solution"].items() if key != "step"}
            path.write_text(json.dumps({**record, "solution": solution, "solution_file": file}))
            expected[path] = verdict if stated and stated != "0" * 12 else "refuse"
    for name, (verdict, text) in texts(record).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
        expected[path] = verdict
    (folder / "gone.json").symlink_to("nowhere")
    expected[folder / "gone.json"] = "refuse"
    return expected
