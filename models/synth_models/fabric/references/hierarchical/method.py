"""Method ``hierarchical`` (reference, ours): between boxes over all their NICs at once, and on inside each box.

The two-level algorithms of MPI libraries and of NCCL's tree and PAT, with every rank of a box at work between boxes
(a rank and those of equal number in other boxes: a rail). Allgather: a rank sends its own block straight to its rail
in the next box, the one after that, and so on; whatever arrives goes to the others of the box at once, or some of it
to them over rails that would be idle (:mod:`.spare_rails`). Broadcast: the data are dealt
out to the ranks of the root's box; each spreads its share along its rail, over 2^n boxes by the n edge-disjoint
binomial trees of Johnsson and Ho ("Optimum broadcasting and personalized communication in hypercubes", IEEE
Transactions on Computers 1989), over others by the two trees of Sanders, Speck and Träff (2009); a short one goes whole
to every rank of the root's box, and from each to a part of the other boxes. Reduce-scatter and reduce are these
backwards; allreduce is both, for shares of the buffer that each have a rank as root, or for short messages an exchange
(:mod:`.box_exchange`).

Where not all boxes see the same (leaf and spine switches, failures), links between switches may carry less than the
NICs behind them. There a block is also tried from box to box, each passing on what it received: between neighbouring
groups of boxes go the bytes of one box's NICs, whatever the oversubscription. Broadcast then takes two trees of which
few edges leave a group (:mod:`.box_trees`), or a short one leaders of groups
(:mod:`.group_leaders`). Up to 32 ranks, and where a rank has no
direct route to another box, what libraries run is compared with it (:mod:`synth_models.fabric.race`).

Where something has failed, an allreduce is also made of unequal shares (a linear program says which rank sums up how
much: :mod:`.share_weights`), turn by turn. Where links are slow, some of these go around
them: over other rails, or to the rank behind a slow link over its own rail instead of inside its box. Others come to
another rank of that box over its rail, so that the box, whose links have less to give, has less to carry.

Where every rank is a box of its own, groups of near ranks (the hosts of a dragonfly's group, or of a leaf switch) are
also taken for boxes, and a broadcast also deals a piece to every rank, which sends it to all. Where routes come to a
link from near and from afar, what comes from near also fills the gaps before what comes from afar. At last what was
found is timed again, backwards and forwards (:mod:`synth_models.fabric.scheduling.back_and_forth`), each schedule of
unequal shares at once.

On B boxes of g ranks (a NIC of b bytes/s a rank, a latency between boxes) allgather of M bytes in c chunks takes about
``(B - 1) M / (B g b)``, the bound of the NICs, plus ``M (g - 1) / (B g c v)`` for the last chunk's way in its box (v
bytes/s a rank there), as long as that is the quicker of the two. Broadcast in k rounds: ``M / (g b) (k + log2 B) / k``.
Complexity: N^2 transfers a chunk, made as arrays; searches for routes only out of one box where all are alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.block_schedules import best_trees
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.near_groups import near_groups
from synth_models.fabric.plans.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.plans.straight import straight
from synth_models.fabric.references.hierarchical.box_allreduce import of_unequal_shares, one_way_after_the_other
from synth_models.fabric.references.hierarchical.box_exchange import exchanged
from synth_models.fabric.references.hierarchical.box_known import Known
from synth_models.fabric.references.hierarchical.box_sends import (
    DEALT,
    EVERYTHING,
    GROUPS_LED,
    SHARED_OUT,
    SHARES,
    STRAIGHT,
    BoxStrategy,
    roots_of_shares,
    steps_of_a_round,
)
from synth_models.fabric.references.hierarchical.box_transfers import (
    boxes_of,
    rails_are_idle,
    root_of,
    slow_links,
    transfers_of,
)
from synth_models.fabric.references.hierarchical.group_leaders import groups_of_boxes, leave_narrowly
from synth_models.fabric.references.hierarchical.tuned import (
    DEALT_TWICE,
    ENTERED_ONCE,
    LAGS,
    MOST_CHUNKS,
    MOST_EXCHANGED,
    MOST_MEMBERS,
    MOST_PIECES,
    MOST_TRANSFERS,
    PIECES_BESIDE,
    QUICK,
    SEVERAL,
    SEVERAL_PIECES,
    SHORT,
)
from synth_models.fabric.routes.box_routes import PairRoutes, boxes_are_alike
from synth_models.fabric.routes.near_boxes import seconds_between
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.back_and_forth import TIMED_AGAIN, again, first_round_s
from synth_models.fabric.scheduling.from_afar import (
    FEW,
    farthest_first,
    from_afar,
    takes_long,
    timed_from_near_and_afar,
)
from synth_models.fabric.scheduling.list_scheduling import timed_backwards
from synth_models.fabric.scheduling.mirrored import mirrored, there_and_back, timed_one_way
from synth_models.fabric.scheduling.repeated_turns import Period, of_many_turns
from synth_models.fabric.scheduling.reversal import reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce", "traffic")
ROOTED_TREES = ("broadcast", "reduce")


def propose(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """Method ``hierarchical``; the incumbent learns the bound that its schedules are compared with."""
    refused = refusal(instance, KNOWN, "hierarchical", MOST_MEMBERS)
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    if not has_boxes(instance):
        return Outcome("unsupported", message="hierarchical needs several boxes of several ranks, or switches")
    if instance.traffic is not None:
        return best_trees(instance, options, f"{len(instance.boxes)} boxes, each entered once", ENTERED_ONCE)
    incumbent.least = incumbent.least or quick_bound(instance)
    schedule, words = _quickest(instance, options, incumbent.least)
    return Outcome("finished", solution=schedule, message=words + chunks.hurried(options))


def _quickest(instance: FabricInstance, options: RunOptions, least: Fraction) -> tuple[Schedule, str]:
    """The quickest schedule of all that are tried, and how it was made."""
    strategies = _strategies(instance)
    known = Known()
    variants = [_variant(instance, strategy, known, options, least) for strategy in strategies]
    _hold_small(instance, options, variants)
    found = chunks.most_promising(instance, options, variants, least, after=first_round_s)
    assert found is not None
    number, count, schedule = found
    strategy = strategies[number]
    boxes = f"{len(strategy.groups)} groups of near ranks" if strategy.groups else f"{len(instance.boxes)} boxes"
    words = f"{boxes}, {strategy}, {chunks.in_words(count)}"
    better = schedule if strategy.weighed else again(instance, options, schedule, least)
    words += TIMED_AGAIN if better is not schedule else ""
    return better, words


def _hold_small(instance: FabricInstance, options: RunOptions, variants: Sequence[chunks.Variant]) -> None:
    """Have the run hold the schedule of fewest transfers for the case that the first one, a large one, takes longer
    than there is time."""
    amounts = [variant.transfers(variant.first) for variant in variants]
    if amounts[0] <= QUICK or min(amounts) > QUICK:
        return
    small = variants[amounts.index(min(amounts))]
    with suppress(UnsupportedError):
        made = small.make(small.first)
        if made is not None:
            seconds = float(chunks.seconds(instance, made))
            options.held.offer(partial(replace, made), seconds, "the plan of fewest transfers")


def has_boxes(instance: FabricInstance) -> bool:
    """Whether there are several boxes of several ranks, or more than two ranks behind switches, each its own box."""
    boxes = instance.boxes
    return len(boxes) > 1 and (max(map(len, boxes)) > 1 or (len(boxes) > 2 and bool(instance.machine.is_switch.any())))


def _strategies(instance: FabricInstance) -> list[BoxStrategy]:
    """What is tried, the most promising first."""
    groups, net = near_groups(instance), instance.machine.network
    if not groups:
        return _strategies_of_boxes(instance)
    short = instance.bytes / net.bandwidth.min() < SHORT * net.latency.max(initial=0.0)
    strategies = [BoxStrategy(between=STRAIGHT, groups=groups)] if short else []
    if instance.collective in ROOTED_TREES:
        piece = instance.bytes / (len(instance.members) - 1)
        all_dealt, others = BoxStrategy(between=DEALT, groups=groups), _strategies_of_boxes(instance)
        return [*others, all_dealt] if takes_long(instance, piece) else [*strategies, all_dealt, *others]
    strategies += [BoxStrategy(groups=groups, mirrored=True)] if instance.collective == "allreduce" else []
    return [*strategies, BoxStrategy(groups=groups), *_strategies_of_boxes(instance)]


def _strategies_of_boxes(instance: FabricInstance) -> list[BoxStrategy]:
    alike = len(instance.boxes) < 3 or boxes_are_alike(instance.machine, instance.boxes)
    if instance.collective in ROOTED_TREES:
        return _rooted_strategies(instance, alike)
    passed = [] if alike else _of_unlike_boxes(instance)
    if instance.collective != "allreduce":
        return [*passed, BoxStrategy(), BoxStrategy(chain=True), BoxStrategy(spare_rails=True)]
    exchanges = [BoxStrategy(between=between) for between in (EVERYTHING, SHARES)]
    short = [strategy for strategy in exchanges if _first_chunks(instance, strategy, MOST_CHUNKS) <= MOST_EXCHANGED]
    lags = (0, *LAGS) if slow_links(instance).any() else (0,)
    unequal = instance.failed.anything and max(map(len, instance.boxes)) > 1
    weighed = [BoxStrategy(weighed=True, lag=lag) for lag in lags if unequal]
    strategies = [*weighed, *passed, BoxStrategy(by_chunk=True), *short, BoxStrategy(), BoxStrategy(chain=True)]
    if max(map(len, instance.boxes)) > 1:
        return strategies
    two = [BoxStrategy(between="two trees", one_root=True, gates=gates) for gates in (2, 1)]
    from_one_rank = [*two, *(BoxStrategy(slack=slack, one_root=True) for slack in (2, 1))]
    if _first_chunks(instance, from_one_rank[0], MOST_CHUNKS) > MOST_EXCHANGED:
        return [*strategies, *from_one_rank]
    return [*from_one_rank, *strategies]  # few transfers, where every rank is its own box


def _of_unlike_boxes(instance: FabricInstance) -> list[BoxStrategy]:
    """From box to box, and once into every group of near ones behind narrow links."""
    narrow = leave_narrowly(instance.machine, instance.boxes, _groups(instance))
    return [BoxStrategy(passed_on=True), *([BoxStrategy(between=GROUPS_LED)] if narrow else [])]


def _rooted_strategies(instance: FabricInstance, alike: bool) -> list[BoxStrategy]:
    gates = (1, 2) if max(map(len, instance.boxes)) > 1 else (2, 1)
    two = [BoxStrategy(between="two trees", gates=count) for count in gates]
    led = [BoxStrategy(between=between) for between in ("leaders", "own rail")]
    if not alike and _groups(instance):
        led.append(BoxStrategy(between=GROUPS_LED))
    spread = BoxStrategy(between=SHARED_OUT)
    if _first_chunks(instance, spread, MOST_CHUNKS) <= MOST_EXCHANGED:
        led = [spread, *led]
    plain = [BoxStrategy(chain, slack=slack) for chain in (True, False) for slack in (2, 1)]
    all_pairs = len(instance.boxes) ** 2 > QUICK  # searches for routes, which leaders need
    return [*two, *([] if all_pairs and not alike else led), *plain]


def _groups(instance: FabricInstance) -> list[list[int]]:
    """The groups of boxes that are nearer to each other than to the rest."""
    return groups_of_boxes(seconds_between(PairRoutes(instance, instance.boxes, 1), instance.boxes))


def _variant(
    instance: FabricInstance, strategy: BoxStrategy, known: Known, options: RunOptions, least: Fraction
) -> chunks.Variant:
    """The schedules of a strategy; of unequal shares timed again, which decides what number of chunks is best."""
    most, amount = _most_chunks(instance, strategy), partial(_amount, instance, strategy)
    most = min(most, MOST_PIECES) if strategy.weighed else most
    first = _first_chunks(instance, strategy, most)
    while first > 1 and amount(first) > QUICK and not strategy.weighed:
        first //= 2
    make: Callable[[int], Schedule | None] = partial(_made, instance, strategy, known=known)
    if strategy.weighed:
        make = partial(_made_again, instance, strategy, options, least)
    return chunks.Variant(make, first, most, amount, MOST_TRANSFERS)


def _made_again(
    instance: FabricInstance, strategy: BoxStrategy, options: RunOptions, least: Fraction, count: int
) -> Schedule:
    """The schedule with ``count`` chunks a share, timed again by list scheduling: the quicker one of two dealings that
    are equally good by their links, as their ends may differ by a hundredth."""
    both = not strategy.lag and _amount(instance, strategy, count) <= DEALT_TWICE
    found = []
    for busiest_first in (False, True) if both else (False,):
        made = _made(instance, strategy._replace(busiest_first=busiest_first), count)
        assert made is not None
        found.append(again(instance, options, made, least, listed=True))
    return min(found, key=partial(chunks.seconds, instance))


def _most_chunks(instance: FabricInstance, strategy: BoxStrategy) -> int:
    """Chunks of one byte of what a rank starts with, or of what each rank of the root's box is dealt."""
    return max(1, min(MOST_CHUNKS, int(instance.blocks.bytes.max()) // _shares_each(instance, strategy)))


def _shares_each(instance: FabricInstance, strategy: BoxStrategy) -> int:
    """Shares that a block is cut into before it is cut into chunks: one for every rank of the root's box, which deals
    them out; in an allreduce one for every rank, or for every rank of a box; else one."""
    boxes = boxes_of(instance, strategy)
    if strategy.between == SHARES:
        return len(boxes[0])
    if strategy.between == DEALT or (strategy.between == STRAIGHT and instance.collective in ROOTED_TREES):
        return len(instance.members) - 1
    if strategy.between in (EVERYTHING, SHARED_OUT, "own rail"):
        return 1
    root = root_of(instance, strategy)
    if root is not None:
        return next(len(box) for box in boxes if root in box)
    return len(roots_of_shares(boxes)) if instance.collective == "allreduce" else 1


def _first_chunks(instance: FabricInstance, strategy: BoxStrategy, most: int) -> int:
    """A number below the best: chunks that take several times as long on the slowest link as its latency; as many as
    there are leaders."""
    net = instance.machine.network
    if strategy.between in (SHARES, EVERYTHING):  # a piece is on its way for longer than its sender takes for all boxes
        on_the_way = float(net.bandwidth.min() * net.latency.max())
        wanted = (
            int(instance.bytes / _shares_each(instance, strategy)) * len(instance.boxes) // max(1, int(4 * on_the_way))
        )
        return max(1, min(most, wanted))
    if strategy.weighed:
        return min(most, SEVERAL_PIECES)
    if strategy.spare_rails:
        return min(most, PIECES_BESIDE)
    if strategy.between in (DEALT, STRAIGHT) or root_of(instance, strategy) is None or not net.latency.max(initial=0.0):
        return 1
    least = SEVERAL * float(net.bandwidth.min() * net.latency.max())
    wanted = int(instance.blocks.bytes[0] / _shares_each(instance, strategy) / least)
    if strategy.between in ("leaders", GROUPS_LED):
        wanted = max(wanted, len(instance.boxes))
    return 1 << (max(1, min(most, wanted)).bit_length() - 1)


def _amount(instance: FabricInstance, strategy: BoxStrategy, count: int) -> int:
    """Transfers of a schedule with so many chunks."""
    n = len(instance.members)
    if strategy.between in (SHARES, EVERYTHING):
        return n * count * (len(instance.boxes) + 2 * len(instance.boxes[0]))
    if instance.collective in ROOTED_TREES:
        return n * count * _shares_each(instance, strategy)
    if strategy.one_root:
        return 2 * n * count * _shares_each(instance, strategy)
    return n * _shares_each(instance, strategy) * count * 2 if instance.collective == "allreduce" else n * n * count


def _made(instance: FabricInstance, strategy: BoxStrategy, count: int, known: Known | None = None) -> Schedule | None:
    """The schedule with ``count`` chunks a share; None where there is none of an exchange, or no rail is idle."""
    known = known or Known()
    parts = count * _shares_each(instance, strategy)
    there = instance if instance.collective in SPREADING else reversed_instance(instance)
    if strategy.between == STRAIGHT:
        return straight(instance, count)
    if strategy.between in (SHARES, EVERYTHING):
        return exchanged(instance, chunks.equal(int(instance.blocks.bytes[0]), parts), strategy.between)
    if strategy.mirrored:
        return _mirrored(instance, parts, strategy, known)
    if strategy.between == DEALT:
        cut = chunks.in_step(there, int(there.blocks.bytes[0]), parts)
        return timed_one_way(instance, there, transfers_of(there, [cut], strategy, known=known))
    sizes = [chunks.equal(int(size), parts) for size in there.blocks.bytes]
    if strategy.spare_rails and not rails_are_idle(there, sizes, strategy, known):
        return None
    long = _of_many_turns(instance, there, sizes[0], strategy, known)
    if long is not None:
        return long
    if instance.collective in SPREADING:
        return timed_from_near_and_afar(
            instance, transfers_of(instance, sizes, strategy, known=known), strategy.in_order
        )
    if strategy.weighed:
        return of_unequal_shares(instance, there, sizes, strategy)
    summing = instance.collective in SUMMING
    up = transfers_of(there, sizes, strategy, instance.collective == "allreduce", known=known, backwards=summing)
    if summing:
        return _backwards(
            instance, there, up, timed_from_near_and_afar(there, up, strategy.in_order), strategy.in_order
        )
    return one_way_after_the_other(instance, there, up, transfers_of(instance, sizes, strategy, known=known), strategy)


def _mirrored(instance: FabricInstance, parts: int, strategy: BoxStrategy, known: Known) -> Schedule | None:
    """An allreduce that sums up as it spreads, with time reversed."""
    cut = chunks.in_step(instance, int(instance.blocks.bytes[0]), parts)
    transfers = transfers_of(instance, [cut], strategy, known=known)
    if len(transfers.piece) > FEW:
        transfers = farthest_first(instance, transfers)
    return there_and_back(instance, transfers)


def _of_many_turns(
    instance: FabricInstance, there: FabricInstance, sizes: list[int], strategy: BoxStrategy, known: Known
) -> Schedule | None:
    """From one root over two trees, by repeating turns that are alike: they differ by the tree, and by who else in the
    root's box the pieces of the root's own rail are handed to."""
    if strategy.between != "two trees" or strategy.one_root:
        return None
    width = next(len(box) for box in instance.boxes if instance.the_root in box)
    turns = math.lcm(2, max(1, width - 1))
    period = Period(turns * width, turns * steps_of_a_round(max(map(len, instance.boxes))))
    return of_many_turns(instance, there, sizes, period, partial(_near, instance, there, strategy, known))


def _backwards(
    instance: FabricInstance, there: FabricInstance, up: Transfers, spread: Schedule, in_order: bool
) -> Schedule:
    """The reduction that spreads as ``up``, with times ``spread``, on the machine turned around; a long one with time
    reversed, timed for that where links have an order, others timed again."""
    turned = mirrored(there, up, spread) if len(up.piece) > QUICK else None
    if turned is None and len(up.piece) > QUICK and in_order:
        turned = mirrored(there, up, timed_backwards(there, up), backwards=True)
    return turned or timed_from_near_and_afar(instance, reversed_transfers(there, up, spread), True)


def _near(
    instance: FabricInstance, there: FabricInstance, strategy: BoxStrategy, known: Known, sizes: list[int], whole: float
) -> Transfers | None:
    """Transfers of the first pieces of a ``whole`` that is so many times as much, unless routes come from afar."""
    transfers = transfers_of(there, [sizes], strategy, known=known, backwards=there is not instance)
    return None if from_afar(there, transfers, whole) else transfers
