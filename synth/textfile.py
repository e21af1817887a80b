"""Text files as people have them: with or without a byte-order mark, in UTF-8 or, where the mark says so, UTF-16."""

from __future__ import annotations

import codecs
from pathlib import Path

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
