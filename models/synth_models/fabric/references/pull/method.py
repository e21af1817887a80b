"""Method ``pull`` (ours): trees of pieces extended over idle links, then large-neighbourhood search.

1. Every block is cut into pieces, several numbers of them tried.
2. Every piece grows a tree over the direct routes of the machine (paths through switches), the earliest arrival first
   among all that is reserved so far (:mod:`.tree_growth`); ties and the order of pieces are random.
3. A few pieces, late ones first, are removed and grown again; the result is kept unless it is worse
   (:mod:`.neighbourhood_search`).
4. All transfers are pushed together from both ends (:mod:`.compaction`).
5. Where switches copy, trees of copies are tried beside these (:mod:`.multicast_trees`).

Reductions are searched backwards in time, on a reversed routing. An allreduce is a reduction and a spreading of the
same pieces, overlapped by 4., or sums exchanged in nested groups (:mod:`.nested_exchange`): the quicker one.
Blocks with several holders and wanters have a search of their own (:mod:`.traffic_search`).
All random numbers come from the seed, and searches end after a fixed number of rounds: the same seed gives the same
schedule unless the time limit ends a search, which the message says. No guarantee on the length; every schedule is
valid by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule.collective import REDUCING
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.references.pull import multicast_trees, nested_exchange, traffic_search
from synth_models.fabric.references.pull.compaction import pushed
from synth_models.fabric.references.pull.quick_lower_bound import quick_lower_bound
from synth_models.fabric.references.pull.routing_state import Routing, RoutingState, distances
from synth_models.fabric.references.pull.summed_in_switches import summed_up_again
from synth_models.fabric.references.pull.tree_search import Pieces, Timetable, TreeSearch, cut_blocks, schedule_of
from synth_models.fabric.references.pull.tuned import (
    LADDERS,
    MOST_CHUNKS,
    MOST_PUSHED,
    MOST_SEARCHED,
    MOST_TRANSFERS,
    PATIENCE,
    RUIN,
    SLICE,
    WORK,
    WORTH,
)
from synth_models.fabric.scheduling.switch_sums import adding_stores
from synth_models.fabric.solution import Schedule


def propose(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """Method ``pull``: offers all that it finds to the incumbent."""
    if not len(instance.blocks):
        none = np.zeros(0, dtype=np.int64)
        empty = Schedule(1, none, none, none, none, none > 0, np.zeros(1, dtype=np.int64), none)
        return Outcome("finished", empty, message="nothing to move")
    if instance.traffic is not None:
        return traffic_search.propose(incumbent)
    restarts = int(options.method.get("restarts", 8))
    incumbent.least = Fraction(_lower_bound(incumbent))
    if instance.collective == "allreduce":
        _allreduce(incumbent, restarts)
    else:
        if multicast_trees.fits(instance):
            multicast_trees.offer_multicast(incumbent)
        _grown(incumbent, restarts)
    words = f"{incumbent.told}; best of {incumbent.tried} schedules"
    if incumbent.hurried:
        words += "; the time limit ended the search, so that another run may find another schedule"
    return Outcome("finished", incumbent.best, message=words)


@dataclass(frozen=True, eq=False)
class _Cut:
    """Pieces of one size on a routing of their own."""

    routing: Routing
    pieces: Pieces
    chunks: int

    @property
    def transfers(self) -> int:
        """How often a piece has to arrive, at least."""
        return len(self.pieces) + int(np.sum(self.pieces.goal < 0)) * (int(np.sum(self.routing.is_member)) - 2)

    @classmethod
    def of(cls, instance: FabricInstance, chunks: int, seed: int, roots: IntArray | None = None) -> _Cut:
        """Every block in so many pieces. ``roots``: the ranks that an allreduce sums up at, by turns."""
        block, size = cut_blocks(instance.blocks.bytes, chunks)
        origin, goal = instance.blocks.origin[block], instance.blocks.goal[block]
        if roots is not None:
            origin, goal = np.resize(roots, len(block)), np.full(len(block), EVERYONE)
        elif instance.collective in REDUCING:
            origin, goal = goal, origin
        rounds = 4 if len(instance.members) <= 128 else 2 if len(instance.members) <= 384 else 1
        ticks = clock.ticks_per_second(instance.machine, _most_seconds(instance, chunks))
        routing = Routing.of(instance, ticks, int(np.median(size)), rounds, seed)
        return cls(routing, Pieces.of(routing, block, size, origin, goal), chunks)


def _most_seconds(instance: FabricInstance, chunks: int) -> float:
    """More than any schedule of ours takes."""
    net, blocks = instance.machine.network, instance.blocks
    copies = np.where((blocks.goal < 0) | (blocks.origin < 0), len(instance.members), 1).astype(float)
    amount = float(np.sum(blocks.bytes * copies)) / float(net.bandwidth.min())
    return 8.0 * (amount + float(np.sum(copies)) * chunks * float(net.latency.max(initial=0.0))) + 1e-5


def _numbers_of_chunks(incumbent: Incumbent, per_chunk: int) -> list[int]:
    """1, 2, 4 … while there are bytes and the transfers are not too many."""
    least = int(incumbent.instance.blocks.bytes.min())
    found = [1]
    while (n := 2 * found[-1]) <= min(least, MOST_CHUNKS) and n * per_chunk <= MOST_TRANSFERS:
        found.append(n)
    return found


def _deliveries(instance: FabricInstance) -> int:
    wide = (instance.blocks.goal < 0) | (instance.blocks.origin < 0)
    return int(np.sum(np.where(wide, len(instance.members) - 1, 1)))


@dataclass(frozen=True, eq=False)
class _Tried:
    """A cut with the seconds of its first schedule, and in words what made it."""

    seconds: float
    cut: _Cut
    words: str = ""


def _grown(incumbent: Incumbent, restarts: int) -> None:
    """Everything but an allreduce: several numbers of chunks, the best two searched."""
    instance, seed = incumbent.instance, incumbent.options.seed
    reverse = instance.collective in REDUCING
    tried: list[_Tried] = []
    worse = 0
    for chunks in _numbers_of_chunks(incumbent, _deliveries(instance)):
        if incumbent.over() or worse == 2:
            break
        cut = _Cut.of(instance, chunks, seed)
        before = min((one.seconds for one in tried), default=float("inf"))
        times = [_try(incumbent, cut, reverse, k, False) for k in range(2 if cut.transfers <= MOST_SEARCHED else 1)]
        worse = 0 if min(times) < before * WORTH else worse + 1
        tried.append(_Tried(min(times), cut))
    _search_best(incumbent, tried, restarts, lambda one, restart: _try(incumbent, one.cut, reverse, restart, True))


def _search_best(
    incumbent: Incumbent, tried: list[_Tried], restarts: int, search: Callable[[_Tried, int], object]
) -> None:
    """Search on from the best cuts, two of them at first, while each restart brings enough."""
    tried.sort(key=lambda one: (one.seconds, one.cut.chunks))
    for restart in range(restarts):
        now = incumbent.time
        for one in tried[: 2 if restart < 2 else 1]:
            if incumbent.over() or one.cut.transfers > MOST_SEARCHED:
                return
            search(one, restart)
        if restart and not _worth(incumbent, now):
            break


def _worth(incumbent: Incumbent, before: Fraction | None) -> bool:
    """Whether the last restart brought anything, so that another one is worth it."""
    return before is None or (incumbent.time is not None and incumbent.time < before)


def _lower_bound(incumbent: Incumbent) -> float:
    roots = np.array(incumbent.instance.members[:1]) if incumbent.instance.collective == "allreduce" else None
    cut = _Cut.of(incumbent.instance, 1, incumbent.options.seed, roots)
    return quick_lower_bound(incumbent.instance, cut.routing)


def _try(incumbent: Incumbent, cut: _Cut, reverse: bool, restart: int, search: bool) -> float:
    """One search, offered; its seconds."""
    timetable = _searched(incumbent, cut, reverse, restart, search)
    adds = np.full(len(timetable.piece), reverse)
    timetable = _pushed(cut, timetable)
    _offer(incumbent, schedule_of(cut.routing, cut.pieces, timetable, adds), f"{cut.chunks} pieces a block")
    return timetable.completion / cut.routing.ticks


def _pushed(cut: _Cut, timetable: Timetable) -> Timetable:
    passes = 2 if len(timetable.piece) <= MOST_TRANSFERS else 1
    return pushed(cut.routing, cut.pieces, timetable, passes) if len(timetable.piece) <= MOST_PUSHED else timetable


def _searched(incumbent: Incumbent, cut: _Cut, reverse: bool, restart: int, search: bool) -> Timetable:
    """One search: begun greedily, improved as long as the work allows if it is to be searched; with forward times."""
    routing = cut.routing.reversed() if reverse else cut.routing
    trees = TreeSearch(incumbent.instance, routing, cut.pieces)
    random = np.random.default_rng([incumbent.options.seed, restart, cut.chunks])
    timetable = None
    if trees.wide:
        timetable = trees.spread(int(random.integers(2**31)), PATIENCE[restart % len(PATIENCE)])
        if timetable is not None and search:
            trees.load(timetable)
    if timetable is None:
        trees.begin(random.permutation(len(cut.pieces)), int(random.integers(2**31)))
    if search:
        looks = len(routing.source) * RUIN * (3.0 if trees.wide else 0.5)
        left = int(min(2000, max(20, WORK / looks)))
        while left > 0 and not (incumbent.best is not None and incumbent.options.out_of_time()):
            made = trees.improve(min(left, SLICE), RUIN, 0, int(random.integers(2**31)))
            if made < min(left, SLICE):
                break
            left -= made
        timetable = None
    if timetable is None:
        timetable = trees.timetable()
    return timetable.reversed(timetable.completion) if reverse else timetable


def _allreduce(incumbent: Incumbent, restarts: int) -> None:
    members = np.array(incumbent.instance.members)
    _exchanged(incumbent)
    tried: list[_Tried] = []
    for roots, words in ((members, "every rank sums up its share"), (_centres(incumbent, 1), "one rank sums up all")):
        tried += _summed_at(incumbent, roots, words)
    _search_best(
        incumbent, tried, restarts, lambda one, restart: _offer_both(incumbent, one.cut, one.words, restart + 1, True)
    )


def _summed_at(incumbent: Incumbent, roots: IntArray, words: str) -> list[_Tried]:
    """First schedules of an allreduce that is summed up at these ranks, in several numbers of chunks."""
    instance = incumbent.instance
    total, n = int(instance.blocks.bytes[0]), len(instance.members)
    tried: list[_Tried] = []
    worse = 0
    for chunks in _numbers_of_chunks(incumbent, 2 * (n - 1) * len(roots)):
        if incumbent.over() or worse == 2:
            break
        if chunks * len(roots) > total and chunks > 1:
            break
        cut = _Cut.of(instance, min(chunks * len(roots), total), incumbent.options.seed, roots)
        before = incumbent.times.get(words)
        tried.append(_Tried(_offer_both(incumbent, cut, words, 0, False), cut, words))
        worse = 0 if before is None or float(incumbent.times[words]) < float(before) * WORTH else worse + 1
    return tried


def _centres(incumbent: Incumbent, count: int) -> IntArray:
    """The members from which, and to which, the farthest is nearest."""
    cut = _Cut.of(incumbent.instance, 1, incumbent.options.seed, np.array(incumbent.instance.members[:1]))
    apart = distances(cut.routing.state(cut.routing.table(cut.pieces.sizes)), 0, len(cut.routing.ranks))
    member = np.flatnonzero(cut.routing.is_member)
    apart = apart[np.ix_(member, member)]
    order = np.argsort(apart.max(axis=0) + apart.max(axis=1), kind="stable")
    found: IntArray = cut.routing.ranks[member[order[:count]]]
    return found


def _offer(incumbent: Incumbent, schedule: Schedule, words: str) -> None:
    """Offer what a search made."""
    incumbent.offer(summed_up_again(incumbent.instance, schedule), words)


def _offer_both(incumbent: Incumbent, cut: _Cut, words: str, restart: int, search: bool) -> float:
    """Summing up and spreading out, overlapped, offered; the seconds."""
    up = _searched(incumbent, cut, True, 2 * restart, search)
    down = _searched(incumbent, cut, False, 2 * restart + 1, search)
    count = len(up.piece)
    joined = Timetable(
        np.concatenate([up.piece, down.piece]),
        np.concatenate([up.route, down.route]),
        np.concatenate([up.start, down.start + up.completion]),
        np.concatenate([up.lag, down.lag]),
        up.completion + down.completion,
    )
    timetable = _pushed(cut, joined)
    _offer(incumbent, schedule_of(cut.routing, cut.pieces, timetable, np.arange(len(timetable.piece)) < count), words)
    return timetable.completion / cut.routing.ticks


def _exchanged(incumbent: Incumbent) -> None:
    """Sums exchanged within nested groups, where that is few transfers."""
    instance = incumbent.instance
    n = len(instance.members)
    if n * n > MOST_TRANSFERS or adding_stores(instance):
        return
    random = np.random.default_rng([incumbent.options.seed, 77])
    cuts = _PreparedCuts(instance, incumbent.options.seed)
    for attempt in range(LADDERS):
        if incumbent.over():
            return
        widest = (n, n, 2, 4, 8, 16)[attempt % 6]
        one, state = cuts.of(1)
        found = nested_exchange.ladder(nested_exchange.nearness(one.routing, state, 0), random, widest)
        if found is None:
            continue
        rungs, entered = found
        for kinds in _kinds(entered):
            for count in _shares(rungs, kinds):
                if _can_exchange(instance, count) and not incumbent.over():
                    _climb(incumbent, cuts, count, nested_exchange.Ladder(rungs, kinds), int(random.integers(2**31)))


def _kinds(entered: list[bool]) -> list[list[int]]:
    """What is done on each rung: exchanges or collecting in all combinations, but where groups are ``entered``."""
    tried = [
        tuple(nested_exchange.ENTER if enters else (code >> min(i, 2)) & 1 for i, enters in enumerate(entered))
        for code in range(2 ** min(len(entered), 3))
    ]
    return [list(kinds) for kinds in dict.fromkeys(tried)]


def _shares(rungs: list[IntArray], kinds: list[int]) -> Iterable[int]:
    """Numbers of pieces to try: one for every rank that collects, and twice as many; more where few ranks join boxes,
    whose links pieces then share one after the other."""
    shares = 1
    for below, rung, kind in zip(rungs, rungs[1:], kinds, strict=False):
        if kind == nested_exchange.COLLECT:
            shares *= max(1, int(np.bincount(rung).max()) // max(1, int(np.bincount(below).max())))
    more = (2, 4, 8) if nested_exchange.ENTER in kinds else (2,) if shares > 1 else ()
    return dict.fromkeys((shares, *(shares * number for number in more)))


def _can_exchange(instance: FabricInstance, count: int) -> bool:
    """Whether there are bytes for so many pieces, and not too many transfers."""
    n = len(instance.members)
    return count <= int(instance.blocks.bytes[0]) and count * n * n <= 10 * MOST_TRANSFERS


def _climb(incumbent: Incumbent, cuts: _PreparedCuts, count: int, ladder: nested_exchange.Ladder, seed: int) -> None:
    """One exchange over a ladder in ``count`` pieces, offered if it is valid."""
    cut, state = cuts.of(count)
    limit = 2**62 if incumbent.time is None else int(incumbent.time * cut.routing.ticks)
    found = nested_exchange.climb(cut.routing, state, cut.pieces, ladder, seed, limit)
    if found is not None:
        timetable, adds = found
        words = f"sums exchanged over {len(ladder.kinds)} rungs"
        incumbent.offer(schedule_of(cut.routing, cut.pieces, timetable, adds), words)


class _PreparedCuts:
    """Cuts of an allreduce by the number of pieces, and the states of their routings, each made once."""

    def __init__(self, instance: FabricInstance, seed: int) -> None:
        self._instance, self._seed = instance, seed
        self._known: dict[int, tuple[_Cut, RoutingState]] = {}

    def of(self, count: int) -> tuple[_Cut, RoutingState]:
        """That of so many pieces."""
        if count not in self._known:
            cut = _Cut.of(self._instance, count, self._seed, np.array(self._instance.members[:1]))
            self._known[count] = cut, cut.routing.state(cut.routing.table(cut.pieces.sizes))
        return self._known[count]
