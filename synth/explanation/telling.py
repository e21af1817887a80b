"""The one measurement that tells two explanations of a log apart: that of the largest ratio of what they expect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from synth.explanation.fit import Found
from synth.explanation.ways import BETWEEN, INSIDE
from synth.text.quantities import shown

LEAST = 1.1  # ratio of what two expect that a measurement shows
PLAIN = 1.5  # ratio from which on a test of links alone is preferred
LEAST_S = 1e-9  # that a message takes
NOTHING_LEFT = 1e-3  # of a rate, where a NIC carries none


class Test(NamedTuple):
    """What to measure, and what each of two explanations expects of it, in words; ``ratio``: 1 or more."""

    measure: str
    expects: tuple[str, str]
    ratio: float


def telling(one: Found, other: Found) -> Test | None:
    """The measurement that tells two explanations apart best; None where none of those that are known does."""
    links = [test for test in _of_links(one, other) if test.ratio >= PLAIN]
    if not links and (says := _of_choice(one, other)):
        return says
    known = links or [test for test in (*_of_links(one, other), *_of_calls(one, other)) if test.ratio >= LEAST]
    return max(known, key=lambda test: test.ratio, default=None)


def _of_links(one: Found, other: Found) -> Iterator[Test]:
    """Rate and latency of links, as perftest and tests of copies measure them."""
    library = one.library
    tests = {
        BETWEEN: ("ib_write_bw over each NIC, the slowest", "ib_write_lat between two boxes"),
        INSIDE: ("copies between two ranks of a box, their rate", "copies between two ranks of a box, their latency"),
    }
    for kind in library.classes:
        rates = tuple(_rate(found, kind) for found in (one, other))
        words = tuple(shown(library.rated(kind) * rate, "bytes/s") if rate > NOTHING_LEFT else "nothing on one"
                      for rate in rates)  # fmt: skip
        yield _test(tests[kind][0], rates, (words[0], words[1]))
        late = tuple(max(library.latency[kind], LEAST_S) + float(np.max(found.change.latency.get(kind, 0.0)))
                     for found in (one, other))  # fmt: skip
        yield _test(tests[kind][1], late, (shown(late[0], "s"), shown(late[1], "s")))


def _rate(found: Found, kind: str) -> float:
    """The share of its rate that the slowest link of a class has for large messages."""
    if kind == BETWEEN and any(cause.kind == "rail" for cause in found.causes):
        return NOTHING_LEFT
    return float(np.min(np.broadcast_to(found.change.rate.get(kind, 1.0), (len(found.library.size),))[-1:]))


def _of_calls(one: Found, other: Found) -> Iterator[Test]:
    """The same collective with one algorithm and protocol, at one of the log's sizes."""
    if one.library is not other.library:
        return
    library, changes = one.library, (one.change, other.change)
    for way in library.ways:
        seconds = [np.broadcast_to(way.seconds(change), library.size.shape) for change in changes]
        at = int(np.abs(np.log(seconds[0] / seconds[1])).argmax())
        pair = float(seconds[0][at]), float(seconds[1][at])
        pinned = f" with NCCL_ALGO={way.algorithm} NCCL_PROTO={way.protocol}" if way.protocol else f" by {way.words}"
        measure = f"{library.group.collective} of {shown(int(library.size[at]), 'bytes')}{pinned}"
        yield _test(measure, pair, (shown(pair[0], "s"), shown(pair[1], "s")))


def _of_choice(one: Found, other: Found) -> Test | None:
    """What NCCL says that it runs, where the two differ in that, at the size where it matters most."""
    if one.library is not other.library:
        return None
    library = one.library
    ways = [library.choice if found.change.way is None else found.change.way for found in (one, other)]
    differ = ways[0] != ways[1]
    if not differ.any():
        return None
    at = int(np.where(differ, np.abs(np.log(one.seconds / other.seconds)), -1.0).argmax())
    words = tuple(library.ways[way[at]].words for way in ways)
    measure = f"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING names what runs at {shown(int(library.size[at]), 'bytes')}"
    return Test(measure, (words[0], words[1]), math.inf)


def _test(measure: str, values: tuple[float, ...], words: tuple[str, str]) -> Test:
    return Test(measure, words, math.exp(abs(math.log(values[0] / values[1]))))
