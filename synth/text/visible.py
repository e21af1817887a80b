"""Text that came out of a file, as it is shown: one line, whatever stands in it.

Nothing in it moves a cursor, changes a colour or the direction of reading, hides, or begins a line of its own. Errors,
the command's output and pages all show such text through :func:`visible`; pages of Markdown through :func:`in_cell`.
"""

from __future__ import annotations

import re

# Python counts these as printable, and no font draws them: Unicode's Default_Ignorable_Code_Point, an empty Braille.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_MARKDOWN = re.compile(r"[\\`*\[\]<|]")  # what begins something within a line: not _ in a word, not a > alone


def visible(text: str) -> str:
    """Return the text with every unseen character as Python writes it: ``\\n``, ``\\x1b``, ``\\u202e``.

    Unseen are control characters, line and paragraph ends, the marks of direction and of zero width, halves of
    characters, unassigned ones, and every space but ``" "``. What is visible stays, and stays if asked again.
    """
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(map(_seen, text))


def _seen(letter: str) -> str:
    if letter.isprintable() and not _UNSEEN.match(letter):
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def in_cell(text: str) -> str:
    """Return the text as a cell of a Markdown table (or a part of a line) that shows it and does nothing else: neither
    link, picture, HTML nor another cell."""
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))
