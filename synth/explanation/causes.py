"""What may be otherwise than stated: each cause changes one thing by one number, or says where another way runs.

Kinds: ``rate`` (a class of links has a share of its rate, at all sizes, or from or up to one), ``rail`` (one of a box's
NICs carries nothing), ``latency`` (seconds more a message over a class of links), ``step`` (seconds more a step of any
class), ``algorithm`` and ``protocol`` (another than the library's choice at all sizes, up to or from one), ``switch``
(seconds more a call from a size on, as where a protocol that first asks begins), ``quick`` (the library waits less than
it reckons).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from synth.arrays import BoolArray, FloatArray
from synth.explanation.ways import BETWEEN, NOTHING, Change, Library, Way
from synth.text.quantities import shown

LEAST_SIZES = 2  # that a part of a log has
LEAST_SHARE = 0.002  # of a rate as stated
NONE = np.zeros(1)  # the one value of a cause without a number
KNOWS = ", and the library chooses by it"


@dataclass(frozen=True, eq=False)
class Cause:
    """One hypothesis. ``kind`` and ``of`` (class of links, algorithm, protocol): causes alike in both differ in where
    they hold, ``where`` in words, and in whether the library knows of it. ``values``: those of its one number that are
    tried, ascending, shape (values,), :data:`NONE` where it has none; ``usual``: logarithms of the middle and of the
    spread that such a number has. ``change``: the change by values of shape (…, 1); ``says``: the cause in words for a
    value, ``amount``: the value alone."""

    kind: str
    of: str
    where: str
    values: FloatArray
    usual: tuple[float, float]
    change: Callable[[Change, FloatArray], Change]
    says: Callable[[float], str]
    amount: Callable[[float], str]

    @property
    def free(self) -> bool:
        """Whether it has a number to fit."""
        return len(self.values) > 1


def every(library: Library) -> list[Cause]:
    """All causes that one log may have on a machine, by this model."""
    found: list[Cause] = []
    for kind in library.classes:
        found += _rates(library, kind)
        found += _told_or_not(_latency(library, kind)) if len(library.classes) > 1 else ()
    return [*found, *_rail(library), *_told_or_not(_step(library)), _quick(), *_switches(library), *_ways(library)]


def named(library: Library, kind: str) -> str:
    """What a class of links is called."""
    if kind == BETWEEN:
        return "NIC" if library.group.width > 1 or library.group.nics > 1 else "links of a rank"
    return "links in the box"


def _spaced(low: float, high: float, count: int) -> FloatArray:
    return np.geomspace(low, high, count)


def parts(library: Library) -> Iterator[tuple[str, BoolArray]]:
    """All sizes, those up to each, and those from each on, in words and as a mask, shape (sizes,)."""
    size = library.size
    yield "", np.ones(len(size), dtype=bool)
    for k in range(LEAST_SIZES, len(size) - LEAST_SIZES + 1):
        yield f" up to {shown(int(size[k - 1]), 'bytes')}", size < size[k]
        yield f" from {shown(int(size[k]), 'bytes')} on", size >= size[k]


def _rates(library: Library, kind: str) -> Iterator[Cause]:
    rated, word = library.rated(kind), named(library, kind)

    def says(where: str) -> Callable[[float], str]:
        return lambda share: f"{word} at {amount(share)} of {shown(rated, 'bytes/s')}{where}"

    def amount(share: float) -> str:
        return shown(share * rated, "bytes/s")

    def changed(mask: BoolArray, knows: bool = False) -> Callable[[Change, FloatArray], Change]:
        def change(before: Change, share: FloatArray) -> Change:
            rate = before.rate.get(kind, 1.0) * np.where(mask, share, 1.0)
            return before._replace(rate={**before.rate, kind: rate}, knows=before.knows or knows)

        return change

    shares, usual = _spaced(LEAST_SHARE, 1.0, 140), (math.log(0.5), 1.0)
    for where, mask in parts(library):
        yield Cause("rate", kind, where, shares, usual, changed(mask), says(where), amount)
    everywhere = np.ones(len(library.size), dtype=bool)
    yield Cause("rate", kind, KNOWS, shares, usual, changed(everywhere, True), says(KNOWS), amount)


def _told_or_not(cause: Cause) -> Iterator[Cause]:
    """A cause that the library does not know of, and one by which it chooses."""
    yield cause
    yield Cause(
        cause.kind, cause.of, KNOWS, cause.values, cause.usual,
        lambda before, value: cause.change(before, value)._replace(knows=True),
        lambda value: cause.says(value) + KNOWS, cause.amount,
    )  # fmt: skip


def _seconds(value: float) -> str:
    return shown(value, "s")


def _latency(library: Library, kind: str) -> Cause:
    def change(before: Change, value: FloatArray) -> Change:
        return before._replace(latency={**before.latency, kind: before.latency.get(kind, 0.0) + value})

    word, stated = named(library, kind), max(library.latency[kind], 1e-7)
    return Cause(
        "latency", kind, "", _spaced(1e-8, 1e-2, 200), (math.log(4 * stated), 0.8), change,
        lambda value: f"latency of {word} {_seconds(value)} more a message", _seconds,
    )  # fmt: skip


def _step(library: Library) -> Cause:
    """Where there is one class of links a step costs more or its messages do: that is one cause."""
    also = f" (or latency of {named(library, library.classes[0])})" if len(library.classes) == 1 else ""
    return Cause(
        "step", "", "", _spaced(1e-8, 1e-2, 200), (math.log(8e-6), 0.8),
        lambda before, value: before._replace(step=before.step + value),
        lambda value: f"{_seconds(value)} more a step{also}", _seconds,
    )  # fmt: skip


def _quick() -> Cause:
    return Cause(
        "quick", "", "", _spaced(0.1, 1.0, 80), (math.log(0.6), 0.4),
        lambda before, share: before._replace(quick=before.quick * share),
        lambda share: f"steps and launch at {share:.0%} of what the library reckons", lambda share: f"{share:.0%}",
    )  # fmt: skip


def _rail(library: Library) -> Iterator[Cause]:
    nics = library.group.nics
    if library.group.boxes < 2 or nics < 2:
        return
    left = (nics - 1) / nics

    def change(before: Change, _: FloatArray) -> Change:
        return before._replace(rate={**before.rate, BETWEEN: before.rate.get(BETWEEN, 1.0) * np.full(1, left)})

    words = f"1 of {nics} rails unused"
    yield Cause("rail", "", "", NONE, (0.0, 1.0), change, lambda _: words, lambda _: f"1 of {nics}")


def _switches(library: Library) -> Iterator[Cause]:
    """Seconds more a call from a size on."""

    def changed(mask: BoolArray) -> Callable[[Change, FloatArray], Change]:
        return lambda before, value: before._replace(call=before.call + np.where(mask, value, 0.0))

    def says(where: str) -> Callable[[float], str]:
        return lambda value: f"a protocol that costs {_seconds(value)} more a call{where}"

    for where, mask in parts(library):
        if where.startswith(" from"):
            spaced = _spaced(1e-7, 1e-1, 150)
            yield Cause("switch", "", where, spaced, (math.log(2e-5), 1.5), changed(mask), says(where), _seconds)


def _ways(library: Library) -> Iterator[Cause]:
    """Another algorithm, another protocol, or both, than the library would choose; what says the same is said once."""
    choice, said = library.choice, set[bytes]()
    nominal = np.array([way.seconds(NOTHING) for way in library.ways])
    for kind, names in _choices(library.ways):
        for name in names:
            mine = np.array([name in (_of(kind, way)) for way in library.ways])
            best = np.where(mine[:, None], nominal, np.inf).argmin(axis=0)
            for where, mask in parts(library):
                way = np.where(mask, best, choice)
                differs = way != choice
                if differs.any() and _ends_differ(differs, mask) and way.tobytes() not in said:
                    said.add(way.tobytes())
                    yield _other(library, kind, name, (where, way, differs))


def _of(kind: str, way: Way) -> tuple[str, ...]:
    return {"algorithm": (way.algorithm,), "protocol": (way.protocol,), "way": (way.words,)}[kind]


def _choices(ways: tuple[Way, ...]) -> Iterator[tuple[str, list[str]]]:
    for kind in ("algorithm", "protocol"):
        names = list(dict.fromkeys(name for way in ways for name in _of(kind, way) if name))
        yield kind, names if len(names) > 1 else []
    if any(way.protocol for way in ways):
        yield "way", [way.words for way in ways]


def _ends_differ(differs: BoolArray, mask: BoolArray) -> bool:
    """Whether the part of the log ends where it matters: of parts that change the same sizes the least is enough."""
    edge = [k if mask[k] else k + 1 for k, (a, b) in enumerate(pairwise(mask.tolist())) if a != b]
    return all(bool(differs[k]) for k in edge)


def _other(library: Library, kind: str, name: str, at: tuple[str, np.ndarray, BoolArray]) -> Cause:
    where, way, differs = at
    instead = dict.fromkeys(
        (library.ways[k].words if kind == "way" else _of(kind, library.ways[k])[0])
        for k in library.choice[differs].tolist()
    )
    others = " and ".join(one for one in instead if one != name) or "another"
    words = f"{name} where {others} {'are' if ' and ' in others else 'is'} better{where or ' at all sizes'}"
    return Cause(
        kind, name, where, NONE, (0.0, 1.0), lambda before, _: before._replace(way=way), lambda _: words,
        lambda _: name,
    )  # fmt: skip
