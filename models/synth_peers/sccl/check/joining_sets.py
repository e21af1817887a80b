"""The argument ``joining``: what one chunk crosses costs more than its share of what all links can earn.

Let a crossing of link e in step s cost p[e, s] >= 0. In steps of r_s rounds all links earn W = sum of p[e, s] c_e r_s
at most, so one of C chunks pays W / C or less. Whatever a chunk's sums and copies are, its crossings join every origin
(every contributor) to every goal: there is a path in time over them, of a link a step at most, waiting being free. So
if every set of crossings that joins them costs more than W / C, no plan brings C chunks.

That every such set costs more than a whole number is shown by cases. A set that does not join u to v misses some
crossing that leaves what u reaches (or enters what reaches v): one of these must be added. Each is tried, dearer ones
first, and is left out of the cases that follow. A case ends where all that is left costs too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Crossing = tuple[int, int]
"""Step, and the number of the pair of ranks."""

MOST_WORK = 50_000_000  # cases times members, steps and pairs of ranks
MOST_CROSSINGS = 500  # a case in a case adds one


class JoiningSets:
    """Crossings of ``pairs`` (tail, head) in ``steps`` that join ``origins`` to ``goals``; ``price[s][k]`` is that of
    pair k in step s, and what costs nothing is there from the start."""

    def __init__(
        self,
        pairs: Sequence[tuple[int, int]],
        price: Sequence[Sequence[int]],
        origins: Sequence[int],
        goals: Sequence[int],
        most_work: int = MOST_WORK,
    ) -> None:
        if len(pairs) * len(price) > MOST_CROSSINGS:
            raise ValueError(f"more than {MOST_CROSSINGS} crossings")
        self.pairs, self.price, self.origins, self.goals, self.most_work = pairs, price, origins, goals, most_work
        self.there = [[cost == 0 for cost in row] for row in price]
        self.left_out: set[Crossing] = set()
        self.work = 0

    def cost_more(self, share: int) -> bool:
        """Whether every set that joins them costs more than ``share``. Raises ``ValueError`` beyond ``most_work``."""
        self.work += (len(self.origins) + len(self.goals)) * len(self.price) * len(self.pairs)
        if self.work > self.most_work:
            raise ValueError("sets of crossings are too many to go through")
        missing = min(self._missing(share), key=len, default=None)
        if missing is None:
            return False  # all are joined
        more, tried = True, list[Crossing]()
        for s, k in sorted(missing, key=lambda one: -self.price[one[0]][one[1]]):
            self.there[s][k] = True
            more = self.cost_more(share - self.price[s][k])
            self.there[s][k] = False
            if not more:
                break
            self.left_out.add((s, k))
            tried.append((s, k))
        self.left_out.difference_update(tried)
        return more

    def _missing(self, share: int) -> Iterator[list[Crossing]]:
        """For every origin that does not reach all goals, and every goal that not all origins reach, the crossings of
        which one must be added: those that cost no more than ``share``."""
        for u in self.origins:
            reached = self._reached(u)
            if any(not reached[-1] >> v & 1 for v in self.goals):
                yield [one for one in self._affordable(share) if self._leaves(one, reached)]
        for v in self.goals:
            reaching = self._reaching(v)
            if any(not reaching[0] >> u & 1 for u in self.origins):
                yield [one for one in self._affordable(share) if self._enters(one, reaching)]

    def _affordable(self, share: int) -> Iterator[Crossing]:
        for s, (row, there) in enumerate(zip(self.price, self.there, strict=True)):
            for k, cost in enumerate(row):
                if not there[k] and cost <= share and (s, k) not in self.left_out:
                    yield s, k

    def _leaves(self, one: Crossing, reached: Sequence[int]) -> bool:
        s, (tail, head) = one[0], self.pairs[one[1]]
        return bool(reached[s] >> tail & 1) and not reached[s + 1] >> head & 1

    def _enters(self, one: Crossing, reaching: Sequence[int]) -> bool:
        s, (tail, head) = one[0], self.pairs[one[1]]
        return bool(reaching[s + 1] >> head & 1) and not reaching[s] >> tail & 1

    def _reached(self, origin: int) -> list[int]:
        """The ranks (bits) that the origin reaches, at first and after every step."""
        found = [1 << origin]
        for there in self.there:
            before = after = found[-1]
            for on, (tail, head) in zip(there, self.pairs, strict=True):
                if on and before >> tail & 1:
                    after |= 1 << head
            found.append(after)
        return found

    def _reaching(self, goal: int) -> list[int]:
        """The ranks (bits) from which the goal is reached, before every step and in the end."""
        found = [1 << goal]
        for there in reversed(self.there):
            after = before = found[-1]
            for on, (tail, head) in zip(there, self.pairs, strict=True):
                if on and after >> head & 1:
                    before |= 1 << tail
            found.append(before)
        return found[::-1]
