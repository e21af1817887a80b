"""What the references share: every piece goes along an out-tree of its own, and the collectives that this makes.

An algorithm says along which tree of ranks the data of a rank spreads (:class:`Trees`). Allgather and broadcast are
such trees; reduce-scatter and reduce are trees on the reversed machine, played backwards in time
(:mod:`synth_models.fabric.scheduling.reversal`); allreduce is both, one after the other, for shares of the buffer that
each have a rank as root. The parts of a message are not bundled: a message of k blocks is k transfers one after the
other on the same link, which takes equally long, since a link is occupied for bytes over bandwidth only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed, timed_at_once
from synth_models.fabric.scheduling.moves import Moves, Ways, in_chunks, only_useful, pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

Edge = tuple[int, int, int]  # from rank, to rank, step: a rank sends in a later step than it received in
SPREADING = ("allgather", "broadcast")
SUMMING = ("reduce_scatter", "reduce")
MOST_MEMBERS = 1024  # of a collective in which everyone's data goes to everyone: a million transfers
MOST_TRIED = 300_000  # transfers of a schedule with more than the fewest chunks
MOST_AT_ALL = 4_400_000  # transfers of a schedule where there is one of fewer
MOST_TWICE = 20_000  # transfers up to which two ways to serve links in turn are compared
MOST_CHUNKS = 1024
MOST_CHANNELS, MOST_SPLIT = 4, 65  # of other routes each; ranks from which on there is one
_CHANNELS: WeakKeyDictionary[Machine, dict[tuple[tuple[int, ...], bytes], int]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Trees:
    """Trees of an algorithm on one machine.

    ``variants``: how many kinds of tree a block is dealt out to (a ring in both directions: 2). ``edges(holder,
    variant)``: the tree by which data of rank ``holder`` reaches all members, senders after they have received.
    ``roots(variant)``: the ranks that shares of an allreduce are summed up at. ``routes(variant)``: the direct routes,
    one after the other, from a rank to the next, where the quickest are not meant. ``shares``: the parts of the data
    that the variants carry, where they are not equal. ``apart``: in no step do two pieces want a link, so that links
    serve them in the order of steps, which large schedules are made by.
    """

    variants: int
    edges: Callable[[int, int], Iterable[Edge]]
    roots: Callable[[int], Sequence[int]]
    routes: Callable[[int], Ways] | None = None
    shares: tuple[int, ...] | None = None
    apart: bool = False


Kind = tuple[str, Callable[[], tuple[Trees, Trees]]]  # its name; its trees on the machine and on the reversed machine


def spread(instance: FabricInstance, trees: Trees, count: int) -> Schedule:
    """Allgather or broadcast (or what a reversed instance asks for), every block in ``count`` chunks a variant."""
    return _timed(instance, _spreading(instance, trees, count), trees.apart)


def summed(instance: FabricInstance, trees: Trees, count: int) -> Schedule:
    """Reduce-scatter or reduce; ``trees`` are of the reversed machine."""
    there = reversed_instance(instance)
    transfers = _spreading(there, trees, count)
    first = _timed(there, transfers, trees.apart)
    return _timed(instance, reversed_transfers(there, transfers, first), trees.apart)


def summed_and_spread(instance: FabricInstance, up: Trees, down: Trees, count: int) -> Schedule:
    """Allreduce: shares of the buffer, dealt out to variants and their roots, ``count`` chunks each, are summed up by
    ``up`` (trees of the reversed machine) and spread by ``down``; of first all sums, then all else, and of both
    as they come, what is quicker; large ones of trees that are apart the first way only."""
    there = reversed_instance(instance)
    slots = [(variant, root) for variant in range(down.variants) for root in down.roots(variant)]
    shares = None if down.shares is None else [down.shares[variant] for variant, _ in slots]
    sizes, rows = _cut(int(instance.blocks.bytes[0]), len(slots), count, shares)
    block, size = pieces_of([sizes])
    sets = []
    for on, trees in ((there, up), (instance, down)):
        template = _template(on, trees, slots, sizes[0])
        sets.append(in_chunks(template, rows, block, size, lambda step, chunk: step + chunk))
    first = reversed_transfers(there, sets[0], _timed(there, sets[0], up.apart))
    alike = up.apart and down.apart and len(first.piece) > MOST_TRIED
    orders = (True,) if alike else (True, False)
    found = [_timed(instance, joined(instance.machine, first, sets[1], later), alike) for later in orders]
    return min(found, key=lambda s: chunks.seconds(instance, s))


def _timed(instance: FabricInstance, transfers: Transfers, apart: bool = False) -> Schedule:
    """The transfers with start times: the quicker of two ways to serve links in turn, where they are few; in the order
    of their steps where they are many and ``apart``."""
    one = timed(instance, transfers, in_order=apart and len(transfers.piece) > MOST_TRIED)
    if len(transfers.piece) > MOST_TWICE:
        return one
    other = timed_at_once(instance, transfers)
    return other if chunks.seconds(instance, other) < chunks.seconds(instance, one) else one


def _spreading(instance: FabricInstance, trees: Trees, count: int) -> Transfers:
    blocks, variants = instance.blocks, trees.variants
    cuts = [_cut(int(n), variants, count, trees.shares) for n in blocks.bytes]
    sizes = [row for row, _ in cuts]
    block, size = pieces_of(sizes)
    slots = [(variant, int(origin)) for origin in blocks.origin for variant in range(variants)]
    first = np.concatenate([[0], np.cumsum([len(row) for row in sizes])])
    rows = np.concatenate([np.where(table < 0, -1, table + first[b]) for b, (_, table) in enumerate(cuts)], axis=1)
    template = _template(instance, trees, slots, sizes[0][0])
    if len(blocks) == 1:  # one source: chunk after chunk
        return in_chunks(template, rows, block, size, lambda step, chunk: step + chunk)
    return in_chunks(template, rows, block, size, lambda step, chunk: step * count + chunk)


def _template(instance: FabricInstance, trees: Trees, slots: Sequence[tuple[int, int]], size: int) -> Transfers:
    """One piece a slot (variant, holder), with the steps as priorities, over the best routes for ``size`` bytes; to no
    rank outside the group that sends it to nobody, which backwards would send what it has not."""
    moves = Moves(
        Routes.of(instance, size), [0] * len(slots), [size] * len(slots), [holder for _, holder in slots], take=False
    )
    for slot, (variant, holder) in enumerate(slots):
        if trees.routes is not None:
            moves.go_over(variant, trees.routes)
        moves.send_along(slot, trees.edges(holder, variant))
    return only_useful(instance.machine, moves.transfers(), instance.members)


def _cut(size: int, width: int, count: int, shares: Sequence[int] | None) -> tuple[list[int], IntArray]:
    """``size`` bytes for ``width`` slots in ``count`` chunks each, in turn, none empty, and the number of each slot's
    piece in every chunk, shape (count, width), -1 where it has none. ``shares``: of the slots, where not equal."""
    if shares is None or len(set(shares)) == 1:
        sizes = chunks.cut(size, width * count)
        table = np.full(width * count, -1, dtype=np.int64)
        table[: len(sizes)] = np.arange(len(sizes))
        return sizes, table.reshape(count, width)
    total = sum(shares) * count
    ends = [size * ((k // width) * sum(shares) + sum(shares[: k % width])) // total for k in range(width * count)]
    sizes = [end - begin for begin, end in pairwise([*ends, size])]
    there = np.array(sizes) > 0
    return [each for each in sizes if each], np.where(there, np.cumsum(there) - 1, -1).reshape(count, width)


def best_of(
    instance: FabricInstance,
    options: RunOptions,
    kinds: Iterable[Kind],
    pipelined: bool = True,
    beat: Fraction | None = None,
    racing: bool = False,
) -> Outcome:
    """The quickest over ``kinds``, made one after the other, and, if ``pipelined``, over numbers of chunks.

    The message names it. Kinds that need a route where there is none are left out. Raises :class:`UnsupportedError`
    where all do. ``beat``: the seconds of a schedule that there is already; kinds that cannot reach them are not tried
    in more chunks. ``racing``: nor those that cannot reach the best kind so far.
    """
    incumbent, chosen = Incumbent(instance, options), None
    lacking: UnsupportedError | None = None
    for name, make_trees in kinds:
        if incumbent.best is not None and options.out_of_time():
            break
        made = _Made(name, *make_trees())
        if incumbent.best is not None and _pieces(instance, made.down) * len(instance.members) > MOST_AT_ALL:
            continue
        if racing and incumbent.time is not None:
            beat = incumbent.time
        try:
            better = _offered(incumbent, made, pipelined, beat)
        except UnsupportedError as error:
            lacking = lacking or error
            continue
        chosen = made if better else chosen
    if chosen is None:
        raise UnsupportedError(f"no schedule of the algorithm can be made: {lacking}")
    if pipelined and not options.out_of_time():
        _over_all_routes(incumbent, chosen)
    return Outcome("finished", solution=incumbent.best, message=incumbent.told + chunks.hurried(options))


class _Made(NamedTuple):
    """A kind by its name, with its trees."""

    name: str
    down: Trees
    up: Trees


def _offered(incumbent: Incumbent, made: _Made, pipelined: bool, beat: Fraction | None) -> bool:
    """Offer the quickest along these trees over numbers of chunks; whether it is the best so far."""
    name, down, up = made
    instance = incumbent.instance
    deliveries = _pieces(instance, down) * len(instance.members)
    make = partial(_in_chunks, instance, down, up, max(1, MOST_TRIED // deliveries))
    most = _most_chunks(instance, down) if pipelined else 1
    found = chunks.best_number(instance, incumbent.options, make, most, beat=beat)
    if found is None:
        return False
    count, schedule = found
    return incumbent.offer(schedule, f"{name}, {chunks.in_words(count)}")


def _over_all_routes(incumbent: Incumbent, made: _Made) -> None:
    """Offer the same in channels over other routes each, where ranks have several equally quick ones: NICs on several
    rails, spines; nothing where they have not, or the algorithm has routes of its own."""
    instance, (name, down, up) = incumbent.instance, made
    many = channels(instance, _largest(instance))
    if many == 1 or down.routes is not None or many * _pieces(instance, down) * len(instance.members) > MOST_TRIED:
        return
    there = instance if instance.collective in SPREADING else reversed_instance(instance)
    down, up = _dealt_out(instance, down, many), _dealt_out(there, up, many)
    _offered(incumbent, _Made(f"{name}, {many} channels", down, up), True, incumbent.time)


def channels(instance: FabricInstance, size: int) -> int:
    """How many equally quick direct routes for so many bytes there are from the first rank to some other,
    :data:`MOST_CHANNELS` at most; 1 for :data:`MOST_SPLIT` ranks and more."""
    first, *others = instance.members
    if len(others) + 1 >= MOST_SPLIT:
        return 1
    routes = Routes.of(instance, max(1, size))
    known = _CHANNELS.setdefault(instance.machine, {}) if routes.by_latency else {}
    key = instance.members, routes.widths(first).tobytes()  # two sizes that take the same widths have equal routes
    if key not in known:
        known[key] = max(1, min(MOST_CHANNELS, max((len(routes.equal(first, v)) for v in others), default=1)))
    return known[key]


def _dealt_out(on: FabricInstance, trees: Trees, many: int) -> Trees:
    """Every tree so many times for a part of the data each, over other routes."""
    routes, place = Routes.of(on, max(1, _largest(on) // many)), {rank: k for k, rank in enumerate(on.members)}
    equal = {(u, v): routes.equal(u, v) for u in on.members for v in on.members if u != v}

    def ways(variant: int) -> Ways:
        turn = variant // trees.variants
        return {(u, v): (of[(turn + place[u] + place[v]) % len(of)],) for (u, v), of in equal.items() if of}

    return Trees(
        many * trees.variants,
        lambda holder, variant: trees.edges(holder, variant % trees.variants),
        lambda variant: trees.roots(variant % trees.variants),
        ways,
    )


def _in_chunks(instance: FabricInstance, down: Trees, up: Trees, most: int, count: int) -> Schedule | None:
    """The collective along the trees in ``count`` chunks; None for more than ``most``."""
    if count > most:
        return None
    if instance.collective in SPREADING:
        return spread(instance, down, count)
    if instance.collective in SUMMING:
        return summed(instance, up, count)
    return summed_and_spread(instance, up, down, count)


def _most_chunks(instance: FabricInstance, trees: Trees) -> int:
    """How many chunks of a tree's share are tried at most: none smaller than a byte."""
    pieces_a_block = max(_pieces(instance, trees) // max(len(instance.blocks), 1), 1)
    return max(min(MOST_CHUNKS, -(-_largest(instance) // pieces_a_block)), 1)


def too_large(instance: FabricInstance, most: int = MOST_MEMBERS) -> str | None:
    """Why a collective has too many transfers for a reference, if it has."""
    many = instance.collective in ("allgather", "reduce_scatter", "allreduce")
    if many and len(instance.members) > most:
        return f"{len(instance.members)} ranks: {instance.collective} is supported for up to {most}"
    return None


def refusal(instance: FabricInstance, known: Sequence[str], name: str, most: int = MOST_MEMBERS) -> Outcome | None:
    """``unsupported`` with the reason, where an algorithm does not know the collective."""
    message = too_large(instance, most)
    if instance.collective not in known:
        message = f"{name} is no algorithm for {instance.collective}: it knows {', '.join(known)}"
    return None if message is None else Outcome("unsupported", message=message)


def empty(instance: FabricInstance) -> Outcome:
    """Nothing has to move: one rank."""
    return Outcome("finished", solution=timed(instance, Transfers.of([], [], [], [], [])))


def _pieces(instance: FabricInstance, trees: Trees) -> int:
    if instance.collective == "allreduce":
        return sum(len(trees.roots(variant)) for variant in range(trees.variants))
    return trees.variants * len(instance.blocks)


def _largest(instance: FabricInstance) -> int:
    return int(instance.blocks.bytes.max(initial=1))
