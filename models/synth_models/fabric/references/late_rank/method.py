"""Method ``late_rank`` (reference): an allreduce that one rank joins later than all others.

StragglAR (Devraj, Ding, Kumar, Kleinberg, Singh, 2025, arXiv 2505.23523): while they wait, the n - 1 others add up
among themselves, each its share; then the late rank meets them in turn, and whoever has a whole piece spreads it while
the late rank goes on (:mod:`synth_models.fabric.references.late_rank.rounds`). Of a power of two the rounds are
StragglAR's, of other numbers ours, which are fewer at 12, 48, 96 and 192 ranks. Here what the others have added up
goes to the late rank before it is ready, so that it sends whole pieces.

With direct routes between all (latency a, bandwidth b a rank) R rounds of C pieces of M bytes end at most
``R (M / (C b) + a)`` behind the moment at which the late rank is ready, R at least ``C + ceil(log2 n) - 1``; its own
part takes ``M / b + a`` to leave it. StragglAR has C = n - 1, and so has the first schedule here. Of more pieces, what
comes in a round is sent on two rounds later, so that it is on its way for nothing: some more rounds, each of ``M / (C
b)``. The best of several multiples of n - 1 is kept (``chunks=q`` states it: q pieces a rank). Complexity: 2 n C
transfers. Guarantee: for n = 2^k and C = n - 1 the least rounds.
"""

from __future__ import annotations

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import refusal
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.references.late_rank.rounds import Rounds, by_flows, by_halves, least_rounds
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.late_start import timed_late
from synth_models.fabric.scheduling.transfers import Transfers

MOST_RANKS = 256
MOST_TRANSFERS = 300_000
SHARES = (1, 2, 4, 8, 16, 32)  # pieces a rank, of which the best is kept
SEARCHING = 0.5  # of the time that is left, for fewer rounds of one number of pieces
MOST_RUNS, FEW_RUNS = 400, 2  # of flows with other random numbers, for the first schedule and for others


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``late_rank``. Raises :class:`UnsupportedError` where two ranks have no direct route to each other,
    :class:`SizeLimitError` for more than :data:`MOST_TRANSFERS`."""
    refused = refusal(instance, ("allreduce",), "late_rank", MOST_RANKS)
    if refused is not None:
        return refused
    late = _late_rank(instance)
    if late is None:
        return Outcome("unsupported", message="late_rank wants one rank of two or more that is ready after all others")
    others = [rank for rank in instance.members if rank != late]
    asked, incumbent = options.method.get("chunks"), Incumbent(instance, options)
    for share in SHARES if asked is None else (asked,):
        sizes = chunks.cut(int(instance.blocks.bytes[0]), share * len(others))
        many = 2 * len(instance.members) * len(sizes)
        if incumbent.best is not None and (options.out_of_time() or many > MOST_TRANSFERS):
            break
        if many > MOST_TRANSFERS:
            raise SizeLimitError(f"{many} transfers: at most {MOST_TRANSFERS} are made")
        rounds = _rounds(len(instance.members), len(sizes), int(share > 1), options.part(SEARCHING))
        told = f"{len(rounds)} rounds of {len(sizes)} pieces"
        incumbent.offer(timed_late(instance, _transfers(instance, late, others, sizes, rounds)), told)
    return Outcome("finished", solution=incumbent.best, message=incumbent.told)


def _late_rank(instance: FabricInstance) -> int | None:
    """The rank that is ready last, if it is one alone."""
    ready = moments(instance.ready)
    last = sorted(instance.members, key=lambda rank: ready.get(rank, 0))[-2:]
    return last[-1] if len(last) == 2 and ready.get(last[0], 0) < ready.get(last[1], 0) else None


def _rounds(n: int, pieces: int, lag: int, options: RunOptions) -> Rounds:
    """By halves where that meets the bound, else the fewest rounds of several runs."""
    if not lag and n == 1 << (n.bit_length() - 1) and pieces >= n - 1:
        return by_halves(n, pieces)
    best = by_flows(n, pieces, options.seed, lag)
    for run in range(1, FEW_RUNS if lag else MOST_RUNS):
        if len(best) == least_rounds(n, pieces) or options.out_of_time():
            break
        best = min(best, by_flows(n, pieces, options.seed + 1_000_003 * run, lag), key=len)
    return best


def _transfers(instance: FabricInstance, late: int, others: list[int], sizes: list[int], rounds: Rounds) -> Transfers:
    """Every piece is added up at the rank that meets the late one for it, goes there, and is spread as the rounds say;
    earlier pieces and rounds first."""
    routes, members = Routes.of(instance, max(sizes)), [*others, late]
    m, count = len(others), len(sizes)
    piece: list[int] = []
    way, before, adds, priority = [], [], [], []

    def send(source: int, target: int, c: int, after: list[int], adding: bool, place: int) -> int:
        route = routes.direct(members[source], members[target])
        if route is None:
            names = instance.machine.names
            raise UnsupportedError(f"{names[members[source]]} has no direct route to {names[members[target]]}")
        routes.take(route, sizes[c])
        piece.append(c)
        way.append(route)
        before.append(after)
        adds.append(adding)
        priority.append(place)
        return len(piece) - 1

    came: dict[tuple[int, int], int] = {}  # of a piece and a rank: the transfer that brought the whole sum
    for c in range(count):
        owner = c % m
        parts = [send((owner + ahead) % m, owner, c, [], True, c * m + ahead) for ahead in range(1, m)]
        came[c, m] = send(owner, m, c, parts, True, c * m + m)
    for t, found in enumerate(rounds):
        for c, sender, receiver in found:
            place = count * m + m + t
            came[c, receiver] = send(sender, receiver, c, [came[c, sender]], False, place)
    block = np.zeros(count, dtype=np.int64)
    return Transfers.of(block, sizes, piece, way, before, priority, adds)
