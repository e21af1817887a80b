"""Lines as launchers print them: what they put before each line (a rank, a host, a time) taken away.

Known: ``mpirun --tag-output`` (``[1,0]<stdout>:``), ``mpiexec -prepend-rank`` (``[0] ``), ``srun -l`` (``0: ``), pdsh
(``node1: ``), ``kubectl logs --timestamps`` and ``--prefix`` (``2024-09-18T12:00:01.5Z ``, ``[pod/name/box] ``),
torchrun (``[rank0]:``), mails that quote (``> ``), and several of them one after the other. A prefix counts where most
lines carry one of its kind (a tag where any does, a host where it writes two lines or more): lines of another program
between them stay.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

_TIMES = re.compile(r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?:[ \t]|$)")
_TAGS = re.compile(r"[^<>#]{0,80}<std(?:out|err|diag)>:[ \t]?")
_QUOTES = re.compile(r"(?:>[ \t]?){1,4}(?=[^>]|$)")  # of a mail or a page
_HOSTS = re.compile(r"[A-Za-z0-9][\w.-]{0,62}:(?:[ \t]|$)")
_WRITERS = (
    re.compile(r"\[[ \t]{0,6}[\w.@/:,-]{1,160}\](?::[ \t]?|[ \t]|$)"),
    re.compile(r"[ \t]{0,9}\d{1,6}:(?:[ \t]|$)"),
    _HOSTS,
)
MOST_PREFIXES = 3  # one before the other
LOOKED_AT = 20_000  # lines, drawn, of a longer text


class Written(NamedTuple):
    """A line without its prefix; ``writer``: who the prefix says wrote it (``[0]``, ``node1:``), empty where none."""

    writer: str
    text: str


def without_prefixes(lines: Sequence[str]) -> list[Written]:
    """The same lines, one for one, without what launchers put before most of them."""
    found = [Written("", line) for line in lines]
    for _ in range(MOST_PREFIXES):
        kind = next((one for one in (_TAGS, _QUOTES, _TIMES, *_WRITERS) if _before_most(one, found)), None)
        if kind is None:
            break
        found = [_stripped(kind, line) for line in found]
    return found


def _before_most(kind: re.Pattern[str], lines: Sequence[Written]) -> bool:
    if kind is _TAGS:
        return any("<std" in line.text and kind.match(line.text) for line in lines)
    if len(lines) > LOOKED_AT:
        lines = [lines[n] for n in random.Random(0).sample(range(len(lines)), LOOKED_AT)]
    full = [line.text for line in lines if line.text.strip()]
    found = [match[0] for text in full if (match := kind.match(text))]
    return 3 * len(found) > 2 * len(full) and (kind is not _HOSTS or 2 * len(set(found)) <= len(found))


def _stripped(kind: re.Pattern[str], line: Written) -> Written:
    prefix = kind.match(line.text)
    if prefix is None:
        return line
    own = "" if kind in (_TIMES, _QUOTES) else prefix[0].strip()
    return Written(f"{line.writer} {own}".strip(), line.text[prefix.end() :])
