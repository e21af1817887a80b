"""Which copies, channels and protocols of a program are tried where thread blocks, steps and launches cost something.

A program of few steps is slow on large messages, where a thread block is slower than its links, and one of many copies
on small ones, where a step costs more than its data: copies are doubled as long as that makes it quicker, and so are
the channels that moves between two ranks are spread over; with one step for a receive and the send behind it, and with
a step for each; and, where there are several rings or trees, with a channel for each. Then what each copy moves is cut
into slices, one behind the other over the same channels, so that a rank sends on the first while the others come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from synth.errors import LimitError
from synth.exchange.lowering import Wish

P = TypeVar("P")

COPIES = (2, 4, 8, 16, 32)  # powers of two: their chunks divide sizes of whole KiB
CHANNELS = (2, 4, 8, 16, 32)
SLICES = (2, 4, 8, 16)
FEWER = (1, 2, 4)  # of the copies, with slices: so many times fewer
WORTH = 0.995  # of the time before: more is no reason to go on
PATIENCE = 1  # numbers in turn that may be in vain
LL_MOST, LL128_MOST = 2**18, 2**24  # bytes of a chunk up to which a protocol is tried


def protocols_for(known: tuple[str, ...], chunk_bytes: float) -> Iterator[str]:
    """The protocols that may be quickest for chunks of so many bytes."""
    most = {"LL": LL_MOST, "LL128": LL128_MOST}
    return (name for name in known if chunk_bytes <= most.get(name, math.inf))


class Tried(Generic[P]):
    """The programs of one schedule: ``make`` lowers as wished and raises :class:`LimitError` beyond the executor's
    limits, ``seconds`` times what it made (infinite: it cannot run). ``refused``: the first limit, ``found``: the
    programs, ``first``: a wish that all others start from; ``several``: whether there are several rings or trees."""

    def __init__(
        self, make: Callable[[Wish], list[P]], seconds: Callable[[P], float], first: Wish, several: bool = False
    ) -> None:
        self.make, self.seconds, self.first, self.several = make, seconds, first, several
        self.refused: LimitError | None = None
        self.found: list[P] = []

    def run(self) -> list[P]:
        """All that were made."""
        for by_way in (True, False) if self.several else (False,):
            took = {fuse: self._copied(replace(self.first, fuse=fuse, by_way=by_way)) for fuse in (True, False)}
        known = {fuse: seconds for fuse, seconds in took.items() if seconds is not None}
        if known:
            fuse = min(known, key=lambda one: known[one])
            start = replace(self.first, fuse=fuse)
            spread, seconds = self._climb("channels", CHANNELS, start, known[fuse])
            if spread != start:
                self._sliced(*self._climb("instances", COPIES, spread, seconds))
        return self.found

    def _copied(self, start: Wish) -> float | None:
        """A wish and its copies: the seconds of the one, None beyond the limits."""
        took = self._try(start)
        if took is not None:
            self._sliced(*self._climb("instances", COPIES, start, took))
        return took

    def _sliced(self, best: Wish, took: float) -> None:
        """A wish of so many seconds with slices, and with fewer copies, as long as it gets quicker."""
        for slices in SLICES:
            copies = dict.fromkeys(max(best.instances // fewer, 1) for fewer in FEWER)
            wishes = [replace(best, slices=slices, instances=count) for count in copies]
            timed = [(found, wish) for wish in wishes if (found := self._try(wish)) is not None]
            least, wish = min(timed, key=lambda one: one[0], default=(math.inf, best))
            if least > took * WORTH:
                break
            best, took = wish, least

    def _climb(self, name: str, numbers: tuple[int, ...], best: Wish, took: float) -> tuple[Wish, float]:
        """One number after the other from a wish of so many seconds on, as long as it gets quicker: the best and its
        seconds."""
        in_vain = 0
        for number in numbers:
            changed: dict[str, Any] = {name: number}
            wish = replace(best, **changed)
            found = self._try(wish)
            if found is None or in_vain + (found > took * WORTH) > PATIENCE:
                break
            in_vain = in_vain + 1 if found > took * WORTH else 0
            if found < took:
                best, took = wish, found
        return best, took

    def _try(self, wish: Wish) -> float | None:
        try:
            made = self.make(wish)
        except LimitError as error:
            self.refused = self.refused or error
            return None
        timed = [(self.seconds(one), one) for one in made]
        self.found += [one for took, one in timed if math.isfinite(took)]
        return min((took for took, _ in timed), default=math.inf)
