"""Text files: as people have them (with or without a byte-order mark, in UTF-8 or what the mark says), and as we write
them (whole or not at all, JSON that a person can read)."""

from __future__ import annotations

import codecs
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

_MARKS = (  # the longer ones first: that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(data: bytes) -> str:
    """The text of a file's bytes, without its byte-order mark. Raises ``UnicodeDecodeError``."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    return data.decode(encoding)


def read_text(path: Path) -> str:
    """The file's text, line ends as ``\\n``. Raises ``OSError`` and ``UnicodeDecodeError``."""
    return decode(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")


def dumps(data: Mapping[str, Any], one_line: bool = False) -> str:
    """The data as JSON: long lists on one line each, so that a person can read the rest."""
    if one_line:
        return json.dumps(data, default=_plain, allow_nan=False)
    lists: list[str] = []
    mark = secrets.token_hex(12)  # stands for a folded list; no text of the data can hold it

    def fold(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: fold(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)) and value and not any(isinstance(v, Mapping) for v in value):
            lists.append(json.dumps(value, default=_plain, allow_nan=False))
            return f"{mark}{len(lists) - 1}"
        return value

    text = json.dumps(fold(data), indent=1, default=_plain, allow_nan=False)
    return re.sub(rf'"{mark}(\d+)"', lambda found: lists[int(found[1])], text)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"cannot store {type(value).__name__} in a record")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose bytes become the file when the block ends, and never do when it raises: at any moment either the
    old file or the new one is there. Raises ``OSError``."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file such that at any moment either the old one or the new one is there. Raises ``OSError``."""
    with replacing(path) as stream:
        stream.write(content)


def remove_leftovers(path: Path) -> None:
    """Delete temporary files that a killed writer of this record left behind."""
    for leftover in path.parent.glob(f".{path.stem}.*tmp"):
        leftover.unlink(missing_ok=True)
