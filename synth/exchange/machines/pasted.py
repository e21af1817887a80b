"""Text as people paste it: what a terminal, a shell, a launcher or a web page put around a tool's output taken away.

Lines stay where they are, one for one, so that a fault's line is the file's. Several writers (``node1: ``, ``[0] ``)
are parted: each part is the text with the others' lines left blank, and writers of the same lines share one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from synth.exchange.launcher_lines import Written, without_prefixes

MOST_BYTES, MOST_PARTS = 2**21, 64  # beyond these a text is none that people paste
MOST_LINES_EACH, MOST_LINES = 50_000, 10**6  # of the text; of all parts, which are each as long as the text
LONGEST_PROMPT = 400
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9])")
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\u3000", " ") | dict.fromkeys("\u200b\u2060\ufeff"))
_AROUND = re.compile(
    r"\s*(?:```\w*"  # a fence of Markdown
    r"|(?:\([\w.-]{1,60}\)\s{0,4}){0,4}"  # an environment of Python's
    r"(?:\[?[\w.-]{1,60}@[\w.-]{1,80}[^<>|#$%]{0,200}[$#%>]|[\w.-]{1,60}[$%]|[$%>]|PS [A-Za-z]:\\[^>]{0,200}>)"
    r"(?:\s.*)?)?"
)
_ROOT = re.compile(r"[ \t]*<(system|topology|platform|graphml)[ >]")
_DECLARATION = re.compile(r"<\?xml[^<>]*\?>")


class Part(NamedTuple):
    """What one writer wrote, with as many lines as the file; ``writer`` empty where no line says who did; ``same``:
    who else wrote the same lines."""

    writer: str
    text: str
    same: tuple[str, ...] = ()


def plain(text: str) -> str:
    """The text without colours, with spaces for a web page's."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text if text.isascii() else text.translate(_SPACES)


def trimmed(text: str) -> str:
    """The text, plain, without the prompts and fences before and after it."""
    return _inside(plain(text).split("\n"))


def element(text: str) -> str | None:
    """What stands between the lines that open and close the root of a format of XML, the others blank; None where no
    such lines are or nothing is around them."""
    lines = plain(text[:MOST_BYTES]).split("\n")
    first = next((n for n, line in enumerate(lines) if _ROOT.match(line)), 0)
    root = _ROOT.match(lines[first])
    last = next((n for n in range(len(lines) - 1, -1, -1) if root and f"</{root[1]}>" in lines[n]), first)
    if root is None or last < first or (first == 0 and last == len(lines) - 1):
        return None
    return "\n".join(line if first <= n <= last else "" for n, line in enumerate(lines))


def parts(text: str) -> list[Part]:
    """What each writer wrote, without prefixes and without the prompts and fences before and after it; none of a text
    that is too large or has too many writers who differ."""
    if len(text) > MOST_BYTES or text.count("\n") > MOST_LINES_EACH:
        return []
    lines = without_prefixes(plain(text).split("\n"))
    own: dict[str, list[str]] = {}
    for line in lines:
        if line.text.strip():
            own.setdefault(line.writer, []).append(line.text)
    alike: dict[tuple[str, ...], list[str]] = {}
    for writer, wrote in own.items():
        alike.setdefault(tuple(wrote), []).append(writer)
    if len(alike) > MOST_PARTS or len(alike) * len(lines) > max(MOST_LINES, len(lines)):
        return []
    return [Part(first, _inside(_of(first, lines)), tuple(others)) for first, *others in alike.values()]


def _of(writer: str, lines: list[Written]) -> list[str]:
    """A writer's lines, those of others blank."""
    return [line.text if line.writer == writer else "" for line in lines]


def _inside(lines: list[str]) -> str:
    """The lines between the first and the last that is no prompt, the others blank."""
    inner = [n for n, line in enumerate(lines) if len(line) > LONGEST_PROMPT or not _AROUND.fullmatch(line)]
    first, last = (inner[0], inner[-1]) if inner else (0, -1)
    text = "\n".join(line if first <= n <= last else "" for n, line in enumerate(lines))
    return _DECLARATION.sub("", text, count=1) if first else text
