"""Method ``two_level`` (reference): what libraries run on boxes: inside a box, between leaders of boxes, inside again.

Two parameters and what they are called where:

* ``leaders=one``: what a box has is gathered (or added up) at one of its ranks, the leaders run an algorithm among
  themselves and hand on what they got. MPI's leader-based algorithms (Karonis, de Supinski, Foster, Gropp, Lusk,
  Bresnahan: "Exploiting hierarchy in parallel computer networks to optimize collective operation performance", IPDPS
  2000; Open MPI's HAN: Luo et al., IEEE CLUSTER 2020).
* ``leaders=all``: every rank of a box leads a share of the data, with those of equal number in other boxes (MVAPICH's
  multi-leader design: Bayatpour, Chakraborty, Subramoni, Lu, Panda: "Scalable reduction collectives with data
  partitioning-based multi-leader design", SC 2017). With ``between=doubling`` this is hierarchical recursive doubling
  and halving; with ``inside=chain`` the way of NCCL's CollNet chain, whose switches between boxes are replaced by
  ``between``.

``inside`` a box from the leader to the others: ``star``, ``chain`` or ``binomial`` tree, and the same backwards.
``between`` boxes: ``direct``, ``chain`` (a ring's way), ``doubling`` (recursive doubling and halving), ``binomial``
trees (the farthest step first, as PAT), ``two_trees`` (double binary tree: from one root, and allreduce), or for an
allreduce ``exchange``: recursive doubling with whole buffers, which both partners add up. Unless stated, those that
libraries combine are tried and the best is kept, with its number of chunks.

On B = 2^k boxes of g ranks (latencies a between and i inside boxes, a NIC of b bytes/s a rank) an allreduce of M bytes
with all ranks as leaders takes at least ``2 i + 2 a log2 B + 2 (B - 1) M / (B g b)``; ``exchange``
``2 i + log2 B (a + M / (g b))``. Complexity: N^2 transfers a chunk (2 N from one root). Guarantee: none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import NamedTuple

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.double_trees import parents
from synth_models.fabric.plans.out_trees import Edge, Kind, Trees, best_of, empty, refusal
from synth_models.fabric.plans.spreading import Pattern, chain, doubling, far_first, star
from synth_models.fabric.plans.whole_messages import Message, exchanged, messages
from synth_models.fabric.scheduling import chunks

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
MUCH, MOST_CHUNKED = 2, 2  # of combinations that are tried in chunks
Box = tuple[int, ...]
INSIDE: dict[str, Pattern] = {"star": star, "chain": chain, "binomial": far_first}
BETWEEN: dict[str, Pattern] = {"direct": star, "chain": chain, "doubling": doubling, "binomial": far_first}
TWO_TREES, EXCHANGE = "two_trees", "exchange"


class Levels(NamedTuple):
    """What is done on each level: ``leaders`` (``one`` or ``all``), ``inside`` a box and ``between`` boxes."""

    leaders: str
    inside: str
    between: str

    def __str__(self) -> str:
        who = "all ranks lead" if self.leaders == "all" else "one leader a box"
        return f"{who}, {self.between.replace('_', ' ')} between boxes, {self.inside} inside"


USUAL = {
    "allgather": (
        Levels("all", "star", "direct"), Levels("all", "star", "doubling"), Levels("all", "star", "binomial"),
        Levels("one", "star", "doubling"), Levels("one", "chain", "chain"),
    ),
    "broadcast": (
        Levels("all", "star", TWO_TREES), Levels("all", "chain", TWO_TREES), Levels("all", "star", "binomial"),
        Levels("one", "binomial", "binomial"), Levels("one", "chain", "chain"),
    ),
    "allreduce": (
        Levels("all", "star", "doubling"), Levels("all", "star", EXCHANGE), Levels("one", "star", EXCHANGE),
        Levels("all", "star", "direct"), Levels("all", "chain", TWO_TREES), Levels("all", "chain", "doubling"),
        Levels("one", "star", "doubling"), Levels("one", "binomial", "binomial"),
    ),
}  # fmt: skip
FORWARDS = {"reduce_scatter": "allgather", "reduce": "broadcast"}


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``two_level``."""
    return quicker_than(None, instance, options)


def quicker_than(beat: Fraction | None, instance: FabricInstance, options: RunOptions) -> Outcome:
    """The same, ending early where it cannot be quicker than a schedule that there is, of ``beat`` seconds."""
    refused = refusal(instance, KNOWN, "two_level")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    boxes = instance.boxes
    sizes = sorted(set(map(len, boxes)))
    if len(boxes) < 2 or sizes[-1] < 2 or len(sizes) > 1:
        here = f"{len(boxes)} of {' or '.join(map(str, sizes))}"
        return Outcome("unsupported", message=f"two_level needs several boxes of equally many ranks; here: {here}")
    combinations = _asked(instance, options)
    if not combinations:
        return Outcome("unsupported", message=f"two_level: {instance.collective} is not made of these parts")
    found = _over_trees(instance, options, [levels for levels in combinations if levels.between != EXCHANGE], beat)
    return _or_exchanged(instance, options, found, [levels for levels in combinations if levels.between == EXCHANGE])


def _asked(instance: FabricInstance, options: RunOptions) -> list[Levels]:
    """The combinations that the options leave, those that libraries combine unless all parts are stated."""
    collective = FORWARDS.get(instance.collective, instance.collective)
    usual = USUAL[collective]
    stated = [options.method.get(part) for part in Levels._fields]
    known = [levels for levels in usual if all(part in (None, own) for part, own in zip(stated, levels, strict=True))]
    if known or not any(stated):
        return known
    between = [*BETWEEN, *([TWO_TREES] if collective != "allgather" else [])]
    between += [EXCHANGE] if collective == "allreduce" else []
    there = zip(stated, (("all", "one"), INSIDE, between), strict=True)
    parts = [[one for one in all_of if part in (None, one)] for part, all_of in there]
    return [Levels(*levels) for levels in product(*parts)]


def _over_trees(
    instance: FabricInstance, options: RunOptions, combinations: Sequence[Levels], beat: Fraction | None
) -> Outcome | None:
    """The quickest of these combinations; where everybody sends anyway, chunks are tried for those that are quickest
    without, of which none takes more than :data:`MUCH` times as long as another."""
    kinds: list[Kind] = [(str(levels), partial(_both, instance, levels)) for levels in combinations]
    if len(kinds) > 1 and instance.the_root is None:
        alone = [chunks.seconds(instance, best_of(instance, options, [kind], False).solution) for kind in kinds]
        quickest = sorted(range(len(kinds)), key=alone.__getitem__)[:MOST_CHUNKED]
        kinds = [kinds[k] for k in quickest if alone[k] <= MUCH * min(alone)]
    return best_of(instance, options, kinds, beat=beat) if kinds else None


def _or_exchanged(
    instance: FabricInstance, options: RunOptions, found: Outcome | None, combinations: Sequence[Levels]
) -> Outcome:
    """The quicker of what was found and the exchanges of whole buffers."""
    for levels in combinations:
        if found is not None and options.out_of_time():
            break
        whole = exchanged(instance, *_exchange(instance, levels))
        if whole is None:
            continue
        if found is None or chunks.seconds(instance, whole) < chunks.seconds(instance, found.solution):
            found = Outcome("finished", solution=whole, message=str(levels))
    if found is None:
        words = "two_level: an exchange needs direct routes, and that all have sent before they receive"
        return Outcome("unsupported", message=words)
    return found


def _both(instance: FabricInstance, levels: Levels) -> tuple[Trees, Trees]:
    found = trees(instance, levels)
    return found, found


def _aligned(instance: FabricInstance) -> list[Box]:
    """The boxes, that of the root first, each from the rank that has the root's number."""
    root, boxes = instance.the_root, instance.boxes
    if root is None:
        return boxes
    home = next(b for b, box in enumerate(boxes) if root in box)
    by = boxes[home].index(root)
    return [(*box[by:], *box[:by]) for box in (*boxes[home:], *boxes[:home])]


def trees(instance: FabricInstance, levels: Levels) -> Trees:
    """Up to a leader where data begin at another rank, between leaders, and inside each box.

    Where everybody has data, all leading means that a rank leads its own (or the share that is added up at it); from
    one root, that every rank of its box gets a share to lead.
    """
    boxes, rooted = _aligned(instance), instance.the_root is not None
    place = {rank: (b, number) for b, box in enumerate(boxes) for number, rank in enumerate(box)}
    width = len(boxes[0]) if levels.leaders == "all" else 1
    between = _between(len(boxes), levels.between)

    def edges(holder: int, variant: int) -> Iterator[Edge]:
        at, number = place[holder]
        lead = variant // between.variants if rooted else number % width
        if holder != boxes[at][lead]:
            yield holder, boxes[at][lead], 0
        came = {at: 1}
        for here, there, step in between.edges(at, variant % between.variants):
            yield boxes[here][lead], boxes[there][lead], 1 + step
            came[there] = 2 + step
        for b, step in came.items():
            own = (*boxes[b][lead:], *boxes[b][:lead])
            for u, v, later in INSIDE[levels.inside](len(own), 0):
                yield own[u], own[v], step + later

    def roots(variant: int) -> list[int]:
        return [boxes[b][lead] for b in between.roots(variant) for lead in range(width)]

    return Trees(between.variants * (width if rooted else 1), edges, roots)


def _between(count: int, name: str) -> Trees:
    """Trees over the numbers of boxes; in an allreduce shares are summed up at the ``roots``."""
    if name == TWO_TREES:
        made = [_hung(count, t) for t in (0, 1)]
        return Trees(2, lambda first, t: made[t], lambda t: [0])
    pattern = BETWEEN[name]
    all_of = {"doubling": 1 << (count.bit_length() - 1), "binomial": 1}.get(name, count)
    return Trees(1, lambda first, t: pattern(count, first), lambda t: range(all_of))


def _hung(count: int, t: int) -> list[Edge]:
    """Edges of double tree t over boxes 1 to ``count - 1``, hung below box 0."""
    parent = [-1] + [p + 1 for p in parents(count - 1, t)]
    edges: list[Edge] = []
    queue = [(0, 0)]
    for box, step in queue:  # which grows
        for k, child in enumerate(b for b in range(1, count) if parent[b] == box):
            edges.append((box, child, step + k))
            queue.append((child, step + k + 1))
    return edges


def _exchange(instance: FabricInstance, levels: Levels) -> tuple[list[Message], int]:
    """Messages of an allreduce: into the leaders, recursive doubling with whole shares between boxes, out again; and
    the number of shares, one for each leader of a box."""
    boxes = instance.boxes
    place = {rank: k for k, rank in enumerate(instance.members)}
    shares = len(boxes[0]) if levels.leaders == "all" else 1
    found: list[Message] = []
    for share in range(shares):
        order = [[place[rank] for rank in (*box[share:], *box[:share])] for box in boxes]
        inside = INSIDE[levels.inside](len(order[0]), 0)
        last = max(step for _, _, step in inside)
        found += [Message(box[v], box[u], last - step, True, share) for box in order for u, v, step in inside]
        exchange = messages(len(boxes))
        for m in exchange:
            found.append(Message(order[m.source][0], order[m.target][0], last + 1 + m.step, m.adds, share))
        later = last + 2 + max(m.step for m in exchange)
        found += [Message(box[u], box[v], later + step, False, share) for box in order for u, v, step in inside]
    return sorted(found, key=_step), shares


def _step(message: Message) -> int:
    return message.step
