"""Which cause explains a log: fits of one number each, ranked, with intervals, and which of them a log tells apart.

Residuals are ``r = log(measured) - log(T)``, one a sample; T as :mod:`synth.explanation.ways` states it. The noise is
told from how neighbouring sizes scatter about the cause that fits best (the median of second differences), so that a
model through the wrong places is no noise. A cause's misfit is ``n log(mean of H(r) + floor^2)``, H of Huber: squares
up to three times the noise, then straight, so that a few wrong samples decide nothing. To it come ``log n`` (corrected
for few samples) for a number that is fitted, ``2 log m`` for one of m classes, algorithms or places of a cause, and the
squared distance of the number from what such numbers usually are, in spreads; :data:`RARER` for links in a box. The
least total is the best. A cause counts only if it is better than no cause by :data:`MARGIN`; it *explains* the log if
nine of ten samples lie within a tenth of it, or three times the noise. Where none does, two causes at once are tried.
Intervals are those of the profile: all values whose misfit rises by no more than Student's quantile allows, 95 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from synth.arrays import FloatArray, IntArray
from synth.exchange.measurements.fitting import Interval
from synth.explanation.causes import NONE, Cause, every
from synth.explanation.ways import INSIDE, NOTHING, Change, Library

TOLERANCE, NOISES, ENOUGH = 0.1, 3.0, 0.9  # what a sample that is explained may be off, and how many must be
FLOOR = 0.01  # relative: what no model of times is better than
MARGIN = 5.0  # by which a cause must be better than none
ALIKE = 3.0  # from the best on that a log does not tell apart
RARER = 1.5  # of the total: that links of a box fail, and not those between boxes
SAME = 2.0  # standard errors that two explanations are apart, of which a log sees nothing
SECOND, VARIANT = 8.0, 2.0  # of the total: what another model than the likeliest costs, and the next of its kind
MOST_NOISE = 0.2  # beyond which a log tells nothing
ROUGH = 0.3  # from which on H is straight at first
LEVEL = 0.95
NEAR = 6.0  # from the best on that a cause is listed in any case, and of its kind that it is not fitted finely
FINE = 160  # values of a second, finer grid
FEW = 60  # values of each of two causes at once
LISTED, LISTED_FEW = 5, 3
TELLING = 3  # sizes, of which fewer have no noise to be told from


class Samples(NamedTuple):
    """``at``: number of the size, ``log_s``: logarithm of the seconds; shape (samples,)."""

    at: IntArray
    log_s: FloatArray


@dataclass(frozen=True, eq=False)
class Found:
    """A fitted explanation by a model of the library: one cause, or two at once. ``value``: with its interval, by
    cause, None where it has no number; ``total``: what is ranked; ``seconds``: at each size; ``left``: root mean square
    of what it leaves; ``explained``: the part of the samples; ``rank``: shared by those that are not told apart."""

    library: Library
    causes: tuple[Cause, ...]
    value: tuple[Interval | None, ...]
    total: float
    seconds: FloatArray
    left: float
    explained: float
    rank: int = 0

    @property
    def change(self) -> Change:
        """The change of the machine."""
        found = NOTHING
        for cause, value in zip(self.causes, self.value, strict=True):
            found = cause.change(found, np.full(1, value.value if value else 0.0))
        return found

    @property
    def words(self) -> str:
        """The causes in words with their numbers."""
        parts = [cause.says(one.value if one else 0.0) for cause, one in zip(self.causes, self.value, strict=True)]
        return ", and ".join(parts)

    @property
    def interval(self) -> str:
        """The intervals in words, empty where nothing was fitted."""
        pairs = [(cause.amount(one.low), cause.amount(one.high))
                 for cause, one in zip(self.causes, self.value, strict=True) if one]  # fmt: skip
        return ", ".join(f"{low} to {high}" for low, high in pairs)


def same(one: Found, other: Found, noise: float) -> bool:
    """Whether a log with so much noise cannot tell two explanations apart, as they expect the same at all its sizes."""
    apart = float(np.sum(np.log(one.seconds / other.seconds) ** 2))
    return apart <= (SAME * max(noise, FLOOR)) ** 2


@dataclass(frozen=True, eq=False)
class Answer:
    """``verdict``: ``predicted``, ``explained`` or ``nothing``; ``library``: the model that the answer is by; ``noise``
    in logarithms; ``none``: the model without a cause; ``causes``: those that explain, or, of ``nothing``, the nearest,
    ranked."""

    verdict: str
    library: Library
    noise: float
    none: Found
    causes: tuple[Found, ...]


def explain(libraries: Sequence[Library], size: IntArray, seconds: FloatArray) -> Answer:
    """The answer for samples of these sizes in bytes and seconds, shape (samples,), by models of the same sizes, the
    likelier first."""
    samples = Samples(np.searchsorted(libraries[0].size, size), np.log(seconds))
    first = libraries[0].ways
    fits = [_Fits(one, samples, SECOND * (one.ways is not first) + VARIANT * bool(one.throughout)) for one in libraries]
    cut = _scale(fits)
    nothing = min((one.none(cut) for one in fits), key=lambda found: found.total)
    singles = [found for one in fits for found in one.singles(cut)]
    best = min(singles, key=lambda found: found.total, default=nothing)
    if best.total >= nothing.total - MARGIN:
        noise = _noise(samples, nothing.seconds)
        verdict = "predicted" if _explains(nothing, noise) else "nothing"
        nearest = _nearest(singles, samples) if verdict == "nothing" else ()
        return Answer(verdict, nothing.library, noise, nothing, nearest)
    noise = _noise(samples, best.seconds)
    found = _told(singles, nothing.total, noise)
    if not found:
        found = _told([pair for one in fits for pair in one.pairs(cut, singles)], best.total - MARGIN, noise)
    ranked = _ranked(found)[:LISTED] if found else _nearest(singles, samples)
    none = next(one for one in fits if one.library is ranked[0].library).none(cut)
    return Answer("explained" if found else "nothing", none.library, noise, none, tuple(ranked))


def _nearest(singles: Sequence[Found], samples: Samples) -> tuple[Found, ...]:
    """What comes nearest to explaining a log that nothing explains; more of it where sizes are too few to tell."""
    ranked = _ranked(singles)
    few = len(set(samples.at.tolist())) < TELLING
    return (*ranked[:1], *(one for one in ranked[1:LISTED_FEW] if few and one.left <= TOLERANCE))


def _told(found: Sequence[Found], below: float, noise: float) -> list[Found]:
    """Those of a total below that which explain the log, and what comes near the best of them; none if none does."""
    told = [one for one in found if one.total < below and _explains(one, noise)]
    near = min((one.total for one in told), default=-math.inf) + NEAR
    return [*told, *(one for one in found if one.total < min(near, below) and not _explains(one, noise))]


def _explains(found: Found, noise: float) -> bool:
    return found.explained >= ENOUGH and noise <= MOST_NOISE and found.left <= max(TOLERANCE, 2 * noise)


def _scale(fits: Sequence[_Fits]) -> float:
    """Where Huber's H becomes straight: by the noise about what fits best on the coarse grids, with H straight from
    three tenths on."""
    _, seconds = min((one.rough(ROUGH) for one in fits), key=lambda pair: pair[0])
    return max(NOISES * _noise(fits[0].samples, seconds), NOISES * FLOOR)


def _noise(samples: Samples, seconds: FloatArray) -> float:
    """Relative, by the median of second differences of residuals in the order of sizes."""
    order = np.argsort(samples.at, kind="stable")
    residual = (samples.log_s - np.log(seconds[samples.at]))[order]
    bends = np.abs(np.diff(residual, 2))
    return 1.4826 * float(np.median(bends)) / math.sqrt(6) if len(bends) else 0.0


def _ranked(found: Iterable[Found]) -> list[Found]:
    """The best of each kind, each with its rank: one that is not told from the best of a rank shares it."""
    best: dict[tuple[tuple[str, str], ...], Found] = {}
    for one in sorted(found, key=lambda each: each.total):
        best.setdefault(tuple((cause.kind, cause.of) for cause in one.causes), one)
    ranked: list[Found] = []
    first = math.inf
    for place, one in enumerate(best.values(), 1):
        shared = bool(ranked) and one.total <= first + ALIKE
        first = first if shared else one.total
        ranked.append(replace(one, rank=ranked[-1].rank if shared else place))
    return ranked


class _Fits:
    """All fits of one model to one log; ``more``: what the model costs in every total."""

    def __init__(self, library: Library, samples: Samples, more: float) -> None:
        self.library, self.samples, self.more = library, samples, more
        self.causes = every(library)
        kinds = [(cause.kind, cause.of) for cause in self.causes]
        alike = Counter(kind for kind, _ in set(kinds))
        self.places = [
            2 * math.log(alike[kind[0]] * (1 + kinds.count(kind) * bool(cause.where))) + RARER * (cause.of == INSIDE)
            for cause, kind in zip(self.causes, kinds, strict=True)
        ]

        self.coarse = [np.log(self._seconds(cause, cause.values)) for cause in self.causes]

    def none(self, cut: float) -> Found:
        """Without a cause."""
        seconds = self.library.seconds(NOTHING)
        return self._found((), (), seconds, self.more + float(self._misfit(np.log(seconds), cut)))

    def rough(self, cut: float) -> tuple[float, FloatArray]:
        """The least total on the coarse grids, with the seconds there."""
        none = self.none(cut)
        best = none.total, none.seconds
        for cause, place, logs in zip(self.causes, self.places, self.coarse, strict=True):
            total = self.more + place + self._totals(cause, cause.values, self._misfit(logs, cut))
            at = int(np.argmin(total))
            if total[at] < best[0]:
                best = float(total[at]), np.exp(logs[at])
        return best

    def singles(self, cut: float) -> list[Found]:
        """The best fit of every cause alone, of causes alike in kind those that are near the best of them."""
        misfit = [self._misfit(logs, cut) for logs in self.coarse]
        total = [float((place + self._totals(cause, cause.values, values)).min())
                 for cause, place, values in zip(self.causes, self.places, misfit, strict=True)]  # fmt: skip
        least: dict[tuple[str, str], float] = {}
        for cause, value in zip(self.causes, total, strict=True):
            least[cause.kind, cause.of] = min(value, least.get((cause.kind, cause.of), math.inf))
        return [
            self._single(cause, place, values, cut)
            for cause, place, values, value in zip(self.causes, self.places, misfit, total, strict=True)
            if value <= least[cause.kind, cause.of] + NEAR or (cause.free and not cause.where)
        ]

    def pairs(self, cut: float, singles: Sequence[Found]) -> list[Found]:
        """Two causes at once: of rates and latencies, and of other ways, the best few of each kind alone."""
        mine = [one for one in singles if one.library is self.library]
        kinds: dict[tuple[str, str], Found] = {}
        for one in sorted(mine, key=lambda each: each.total):
            kinds.setdefault((one.causes[0].kind, one.causes[0].of), one)
        few = list(kinds.values())
        whole = [one for one in mine if one.causes[0].free and not one.causes[0].where]
        either = list({id(one): one for one in (*few[:12], *whole)}.values())
        return [
            self._pair(first.causes[0], second.causes[0], cut)
            for k, first in enumerate(either) for second in either[k + 1 :]
            if first.causes[0].kind != second.causes[0].kind or first.causes[0].of != second.causes[0].of
        ]  # fmt: skip

    def _seconds(self, cause: Cause, values: FloatArray) -> FloatArray:
        """Of a cause alone by its values, shape (values, sizes)."""
        found = self.library.seconds(cause.change(NOTHING, values[:, None]))
        return np.broadcast_to(found, (len(values), len(self.library.size)))

    def _misfit(self, logs: FloatArray, cut: float) -> FloatArray:
        """Of logarithms of predictions, shape (…, sizes) to (…,)."""
        off = np.abs(self.samples.log_s - logs[..., self.samples.at])
        loss = np.where(off <= cut, off**2, cut * (2 * off - cut))
        found: FloatArray = len(self.samples.at) * np.log(loss.mean(axis=-1) + FLOOR**2)
        return found

    def _number(self, free: int) -> float:
        """What fitted numbers cost."""
        count = len(self.samples.at)
        return free * math.log(count) * count / max(count - free - 2, 0.5)

    def _totals(self, cause: Cause, values: FloatArray, misfit: FloatArray) -> FloatArray:
        """Misfits with what a cause's values cost."""
        return misfit + _unusual(cause, values) + self._number(1) if cause.free else misfit

    def _single(self, cause: Cause, place: float, coarse: FloatArray, cut: float) -> Found:
        if not cause.free:
            return self._found((cause,), (None,), self._seconds(cause, NONE), self.more + place + float(coarse[0]))
        at = int(np.argmin(self._totals(cause, cause.values, coarse)))
        fine = np.geomspace(cause.values[max(at - 1, 0)], cause.values[min(at + 1, len(cause.values) - 1)], FINE)
        seconds = self._seconds(cause, fine)
        misfit = self._misfit(np.log(seconds), cut)
        total = self._totals(cause, fine, misfit)
        best = int(np.argmin(total))
        value, allowed = float(fine[best]), float(misfit[best]) + self._rise(1)
        low, high = _profile(cause.values, coarse, fine, misfit, allowed)
        interval = Interval(value, min(low, value), max(high, value))
        return self._found((cause,), (interval,), seconds[best], self.more + place + float(total[best]))

    def _rise(self, free: int) -> float:
        """By how much the misfit may rise in an interval."""
        count = len(self.samples.at)
        freedom = max(count - free, 1)
        return count * math.log1p(float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2 / freedom)

    def _pair(self, one: Cause, other: Cause, cut: float) -> Found:
        mine, theirs = (_few(cause.values) for cause in (one, other))
        for _ in range(2):
            change = other.change(one.change(NOTHING, mine[:, None, None]), theirs[None, :, None])
            misfit = self._misfit(np.log(self.library.seconds(change)), cut)
            misfit = np.broadcast_to(misfit, (len(mine), len(theirs)))
            total = misfit + _unusual(one, mine)[:, None] + _unusual(other, theirs)[None, :]
            a, b = np.unravel_index(int(np.argmin(total)), total.shape)
            grids, mine, theirs = (mine, theirs), _about(mine, int(a)), _about(theirs, int(b))
        places = sum(self.places[self.causes.index(cause)] for cause in (one, other))
        free = sum(cause.free for cause in (one, other))
        values = tuple(
            _ends(grid, misfit.min(axis=1 - axis), k, self._rise(2)) if cause.free else None
            for axis, (cause, grid, k) in enumerate(((one, grids[0], int(a)), (other, grids[1], int(b))))
        )
        found = self._found((one, other), values, np.ones(len(self.library.size)), 0.0)
        seconds = np.broadcast_to(self.library.seconds(found.change), (len(self.library.size),))
        return self._found((one, other), values, seconds, self.more + places + self._number(free) + float(total[a, b]))

    def _found(
        self, causes: tuple[Cause, ...], values: tuple[Interval | None, ...], seconds: FloatArray, total: float
    ) -> Found:
        seconds = seconds.reshape(-1, len(self.library.size))[0]
        off = np.abs(self.samples.log_s - np.log(seconds)[self.samples.at])
        allowed = max(TOLERANCE, NOISES * _noise(self.samples, seconds))
        return Found(
            self.library,
            causes,
            values,
            total,
            seconds,
            float(np.sqrt(np.mean(off**2))),
            float(np.mean(off <= allowed)),
        )


def _unusual(cause: Cause, values: FloatArray) -> FloatArray:
    """How far values are from what is usual, in squared spreads."""
    if not cause.free:
        return np.zeros(len(values))
    found: FloatArray = ((np.log(values) - cause.usual[0]) / cause.usual[1]) ** 2
    return found


def _few(values: FloatArray) -> FloatArray:
    return values if len(values) == 1 else np.geomspace(values[0], values[-1], FEW)


def _about(values: FloatArray, at: int) -> FloatArray:
    """A finer grid about one of the values."""
    if len(values) == 1:
        return values
    return np.geomspace(values[max(at - 2, 0)], values[min(at + 2, len(values) - 1)], FEW)


def _profile(
    values: FloatArray, coarse: FloatArray, fine: FloatArray, misfit: FloatArray, allowed: float
) -> tuple[float, float]:
    """The least and the largest value whose misfit is allowed, on both grids; between two it is told by a line."""
    both = np.concatenate([values, fine])
    order = np.argsort(both, kind="stable")
    return _crossings(both[order], np.concatenate([coarse, misfit])[order], allowed)


def _crossings(values: FloatArray, misfit: FloatArray, allowed: float) -> tuple[float, float]:
    within = np.flatnonzero(misfit <= allowed)
    if not len(within):
        at = int(np.argmin(misfit))
        return float(values[at]), float(values[at])
    ends = []
    for k, beside in ((int(within[0]), -1), (int(within[-1]), 1)):
        if 0 <= k + beside < len(values):
            part = (allowed - misfit[k]) / (misfit[k + beside] - misfit[k])
            ends.append(float(np.exp(np.log(values[k]) + part * np.log(values[k + beside] / values[k]))))
        else:
            ends.append(float(values[k]))
    return ends[0], ends[1]


def _ends(values: FloatArray, misfit: FloatArray, at: int, rise: float) -> Interval:
    """The interval about a value of a profile."""
    low, high = _crossings(values, misfit, float(misfit.min()) + rise)
    value = float(values[at])
    return Interval(value, min(low, value), max(high, value))
