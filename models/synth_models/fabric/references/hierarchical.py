"""Method ``hierarchical`` (reference, ours): between boxes over all their NICs at once, and on inside each box.

The two-level algorithms of MPI libraries and of NCCL's tree and PAT, with every rank of a box at work between boxes
(a rank and those of equal number in other boxes: a rail). Allgather: a rank sends its own block straight to its rail
in the next box, the one after that, and so on; whatever arrives goes to the others of the box at once. Broadcast: the
data are dealt out to the ranks of the root's box; each spreads its share along its rail, over 2^n boxes by the n
edge-disjoint binomial trees of Johnsson and Ho ("Optimum broadcasting and personalized communication in hypercubes",
IEEE Transactions on Computers 1989), over others by the two trees of Sanders, Speck and Träff (2009). Reduce-scatter
and reduce are these backwards; allreduce is both, for shares of the buffer that each have a rank as root.

On B boxes of g ranks (a NIC of b bytes/s a rank, a latency between boxes) allgather of M bytes in c chunks takes about
``(B - 1) M / (B g b)``, the bound of the NICs, plus ``M (g - 1) / (B g c v)`` for the last chunk's way in its box (v
bytes/s a rank there), as long as that is the quicker of the two. Broadcast in k rounds: ``M / (g b) (k + log2 B) / k``.
Complexity: N^2 transfers a chunk, made as arrays; searches for routes only out of one box where all are alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.double_tree import parents
from synth_models.fabric.references.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.box_routes import PairRoutes
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.reversal import joined, mirrored, turned
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
MOST_TRANSFERS = 4_500_000
MOST_CHUNKS = 4096
ROOTED_TREES = ("broadcast", "reduce")
SEVERAL = 32
NOBODY = -1
LEAD = 16  # rounds by which the root's box prefers what leaves it


class Sends(NamedTuple):
    """Who sends which piece to whom, shape (sends,) each: ``after`` is the send that brings the piece to ``source``
    (:data:`NOBODY` where it begins), the least ``step`` goes first."""

    piece: IntArray
    source: IntArray
    target: IntArray
    after: IntArray
    step: IntArray


class _Plan(NamedTuple):
    """What a schedule is made by: ``chain``: inside a box a piece goes from rank to rank, instead of from the first to
    all others; ``slack``: rounds until a box sends on along its rail what it received."""

    chain: bool
    slack: int

    def __str__(self) -> str:
        return f"inside a box {'along a chain' if self.chain else 'straight to all'}"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``hierarchical``."""
    refused = refusal(instance, KNOWN, "hierarchical")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    boxes = instance.boxes
    if len(boxes) < 2 or max(map(len, boxes)) < 2:
        return Outcome("unsupported", message="hierarchical needs several boxes of several ranks")
    rooted = instance.collective in ROOTED_TREES
    best: tuple[Schedule, str] | None = None
    lacking: UnsupportedError | None = None
    for chain in (rooted, not rooted):
        for slack in (2, 1) if rooted else (1,):
            plan = _Plan(chain, slack)
            try:
                found = _best_number(instance, options, partial(_made, instance, plan), best is None)
            except UnsupportedError as error:
                lacking = error
                continue
            if found is None:
                continue
            count, schedule = found
            if best is None or chunks.seconds(instance, schedule) < chunks.seconds(instance, best[0]):
                best = schedule, f"{len(boxes)} boxes, {plan}, {chunks.in_words(count)}"
    if best is None:
        assert lacking is not None
        raise lacking
    return Outcome("finished", solution=best[0], message=best[1] + chunks.hurried(options))


def _best_number(
    instance: FabricInstance, options: RunOptions, make: Callable[[int], Schedule], first: bool
) -> tuple[int, Schedule] | None:
    """The number of chunks and its schedule; a number is tried where the last one's time suggests that it fits."""
    most = _most_chunks(instance)
    first_tried = _first_chunks(instance, most)
    took = [(1, 0.0)]

    def timed_make(count: int) -> Schedule | None:
        tried, seconds = took[-1]
        if not (first and count == first_tried) and (
            _amount(instance, count) > MOST_TRANSFERS or not options.fits(1.5 * seconds * count / tried)
        ):
            return None
        began = time.monotonic()
        schedule = make(count)
        took.append((count, time.monotonic() - began))
        return schedule

    return chunks.best_number(instance, options, timed_make, most, first_tried)


def _most_chunks(instance: FabricInstance) -> int:
    """Chunks of one byte of what a rank starts with, or of what each rank of the root's box is dealt."""
    return max(1, min(MOST_CHUNKS, int(instance.blocks.bytes.max()) // _shares_each(instance)))


def _shares_each(instance: FabricInstance) -> int:
    """Shares that a block is cut into before it is cut into chunks: one for every rank of the root's box, which deals
    them out; in an allreduce one for every rank; else one."""
    if instance.collective == "allreduce":
        return len(instance.members)
    if instance.the_root is None:
        return 1
    return next(len(box) for box in instance.boxes if instance.the_root in box)


def _first_chunks(instance: FabricInstance, most: int) -> int:
    """A number below the best: chunks that take several times as long on the slowest link as its latency."""
    net = instance.machine.network
    if instance.collective not in ROOTED_TREES or not net.latency.max(initial=0.0):
        return 1
    least = SEVERAL * float(net.bandwidth.min() * net.latency.max())
    share = float(instance.blocks.bytes[0]) / _shares_each(instance)
    return 1 << (max(1, min(most, int(share / least))).bit_length() - 1)


def _equal(size: int, parts: int) -> list[int]:
    """``size`` bytes in at most ``parts`` pieces, all equal but for the last, which may be smaller: pieces that differ
    by a byte would no longer take turns."""
    each = -(-size // parts)
    return [each] * (size // each) + ([size % each] if size % each else [])


def _amount(instance: FabricInstance, count: int) -> int:
    """Transfers of a schedule with so many chunks."""
    n = len(instance.members)
    if instance.collective in ROOTED_TREES:
        return n * count * _shares_each(instance)
    return n * n * count * (2 if instance.collective == "allreduce" else 1)


def _made(instance: FabricInstance, plan: _Plan, count: int) -> Schedule:
    """The schedule with ``count`` chunks a share."""
    parts = count * _shares_each(instance)
    if instance.collective in SPREADING:
        return timed(instance, _transfers(instance, _cut(instance, parts), plan))
    there = turned(instance)
    sizes = _cut(there, parts)
    up = _transfers(there, sizes, plan)
    back = mirrored(there, up, timed(there, up))
    if instance.collective in SUMMING:
        return timed(instance, back, in_order=True)
    down = _transfers(instance, sizes, plan)
    alone = timed(instance, down).start
    if instance.switching.mode == "store_and_forward":
        alone = alone[down.route_start[:-1]]
    down = replace(down, priority=alone)  # each link keeps the order that was found without the sums
    return timed(instance, joined(instance.machine, back, down), in_order=True)


def _cut(instance: FabricInstance, parts: int) -> list[list[int]]:
    """The bytes of every block's pieces."""
    return [_equal(int(size), parts) for size in instance.blocks.bytes]


def _shares(instance: FabricInstance, sizes: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """The rank that every piece starts from, and the number of the piece among those of its rank, shape (pieces,)."""
    blocks = instance.blocks
    if blocks.origin[0] < 0 or len(blocks) == 1:
        number = np.arange(len(sizes[0]), dtype=np.int64)
        members = np.asarray(instance.members, dtype=np.int64)
        return members[number % len(members)], number // len(members)
    lengths = [len(row) for row in sizes]
    return np.repeat(blocks.origin, lengths), np.concatenate([np.arange(length) for length in lengths])


def _transfers(instance: FabricInstance, sizes: list[list[int]], plan: _Plan) -> Transfers:
    """Allgather or broadcast of pieces of these sizes, or every rank's share of an allreduce to all others."""
    block, size = pieces_of(sizes)
    routes = PairRoutes(instance, instance.boxes, int(max(size)))
    rails = _Rails.of(routes, instance.boxes)
    if instance.collective == "broadcast":
        sends = _from_one(rails, int(instance.blocks.origin[0]), len(block), plan)
    else:
        sends = _from_everyone(rails, *_shares(instance, sizes), plan.chain)
    waits = sends.after != NOBODY
    return Transfers(
        np.asarray(block, dtype=np.int64),
        np.asarray(size, dtype=np.int64),
        sends.piece,
        np.zeros(len(sends.piece), dtype=bool),
        sends.step,
        *routes.of(sends.source, sends.target),
        np.concatenate([[0], np.cumsum(waits)]).astype(np.int64),
        sends.after[waits],
    )


class _Rails(NamedTuple):
    """Where members stand, and who of a box sends to whom of another.

    ``box``, ``number``: of every node, shape (nodes,): its box and its place there. ``rank[box, number]``, repeated
    from the first where a box has fewer than the largest; ``size`` of every box. What ``rank`` holds goes to box b from
    ``leaves[rank, b]``, itself wherever it can, to ``enters[rank, b]``, shape (nodes, boxes).
    """

    box: IntArray
    number: IntArray
    rank: IntArray
    size: IntArray
    leaves: IntArray
    enters: IntArray

    @classmethod
    def of(cls, routes: PairRoutes, boxes: Sequence[Sequence[int]]) -> _Rails:
        """Raises :class:`UnsupportedError` where no direct route joins two boxes."""
        nodes, width = 1 + max(map(max, boxes)), max(map(len, boxes))
        box, number = np.zeros((2, nodes), dtype=np.int64)
        for b, members in enumerate(boxes):
            box[list(members)], number[list(members)] = b, np.arange(len(members))
        rank = np.array([np.resize(np.asarray(members), width) for members in boxes], dtype=np.int64)
        size = np.array([len(members) for members in boxes], dtype=np.int64)
        found = cls(box, number, rank, size, *np.zeros((2, nodes, len(boxes)), dtype=np.int64))
        for b, members in enumerate(boxes):
            for u in members:
                found.leaves[u] = u
                found.enters[u] = NOBODY
                reach = routes.reached_from(u)[rank]  # (boxes, width)
                like = np.arange(len(boxes)), number[u] % size
                found.enters[u] = np.where(reach[like], rank[like], NOBODY)
                for other in np.flatnonzero((found.enters[u] == NOBODY) & reach.any(axis=1)).tolist():
                    can = rank[other][: size[other]][reach[other][: size[other]]]
                    found.enters[u, other] = can[number[u] % len(can)]
            for other, goals in enumerate(boxes):
                cut_off = [u for u in members if found.enters[u, other] == NOBODY and other != b]
                gates = [u for u in members if found.enters[u, other] != NOBODY]
                if cut_off and not gates:
                    raise UnsupportedError(f"no direct route joins ranks {members[0]} and {goals[0]}")
                for u in cut_off:
                    found.leaves[u, other] = gates[number[u] % len(gates)]
                    found.enters[u, other] = found.enters[found.leaves[u, other], other]
        return found


class _Collected:
    """Sends, as they are added."""

    def __init__(self, rails: _Rails, chain: bool) -> None:
        self._rails, self._chain = rails, chain
        self._parts: list[Sends] = []
        self._count = 0

    def add(self, piece: IntArray, source: IntArray, target: IntArray, after: IntArray, step: IntArray) -> IntArray:
        """Note one send a piece; what number each has among all."""
        self._parts.append(Sends(piece, source, target, after, step))
        self._count += len(piece)
        return np.arange(self._count - len(piece), self._count)

    def into_the_box(
        self, piece: IntArray, at: IntArray, after: IntArray, step: IntArray, but: int = NOBODY
    ) -> IntArray:
        """From the ranks ``at`` that hold pieces to all others of their boxes, ``but`` one. The send by which each
        member got each, shape (pieces, width): ``after`` for those that had it."""
        rails, source, came = self._rails, at.copy(), after.copy()
        box = rails.box[at]
        brought = np.repeat(after[:, None], rails.rank.shape[1], axis=1)
        for k in range(1, int(rails.size.max())):
            other = rails.rank[box, (rails.number[at] + k) % rails.size[box]]
            to = np.flatnonzero((k < rails.size[box]) & (other != but))
            sent = self.add(piece[to], source[to], other[to], came[to], step[to])
            brought[to, rails.number[other[to]]] = sent
            if self._chain:
                source[to], came[to] = other[to], sent
        return brought

    def to_the_box(self, piece: IntArray, at: IntArray, brought: IntArray, box: IntArray, step: IntArray) -> IntArray:
        """From the boxes where ``at`` got pieces, and others what ``brought`` says, to the members of ``box``."""
        rails = self._rails
        leaves, enters = rails.leaves[at, box], rails.enters[at, box]
        entered = self.add(piece, leaves, enters, brought[np.arange(len(piece)), rails.number[leaves]], step)
        return self.into_the_box(piece, enters, entered, step)

    def all(self) -> Sends:
        """Everything, in the order in which it was added."""
        return Sends(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))


def _from_everyone(rails: _Rails, holder: IntArray, chunk: IntArray, chain: bool) -> Sends:
    """From the holder of every piece straight along its rail to the next box, and the next; then inside each."""
    count, piece = len(rails.size), np.arange(len(holder), dtype=np.int64)
    chunks_each = int(chunk.max(initial=0)) + 1
    sends = _Collected(rails, chain)
    brought = sends.into_the_box(piece, holder, np.full_like(piece, NOBODY), chunk)
    for ahead in range(1, count):
        sends.to_the_box(piece, holder, brought, (rails.box[holder] + ahead) % count, ahead * chunks_each + chunk)
    return sends.all()


def _from_one(rails: _Rails, root: int, pieces: int, plan: _Plan) -> Sends:
    """From the root to the ranks of its box in turn, each along its rail to all boxes, and inside each of them.

    With a slack of 2 a piece's latency is hidden behind another's bytes.
    """
    count, home = len(rails.size), int(rails.box[root])
    width, piece = int(rails.size[home]), np.arange(pieces, dtype=np.int64)
    rail, turn = piece % width, piece // width
    group, lane = turn // plan.slack, turn % plan.slack
    first_step, first = plan.slack * group + lane, np.full_like(piece, NOBODY)
    sends = _Collected(rails, plan.chain)
    # the root's own link into the box carries every piece once: those of its own rail go to one of the others in turn,
    # and whoever got a piece first hands it to the rest of the box
    begin = rails.rank[home, rail]
    next_to_root = rails.rank[home, (rails.number[root] + 1 + turn % max(width - 1, 1)) % width]
    helper = np.where(begin == root, next_to_root, begin)
    if width > 1:
        urgent = np.where(begin == root, first_step + LEAD, first_step - LEAD)  # no NIC waits for the root's handing
        handed = sends.add(piece, np.full_like(piece, root), helper, first, urgent)
        at_home = sends.into_the_box(piece, helper, handed, first_step + LEAD, but=root)
    else:
        at_home = first[:, None]
    at_home[:, rails.number[root]] = NOBODY
    trees = _trees(count)
    for which, edges in enumerate(trees):
        mine = np.flatnonzero(group % len(trees) == which)
        brought = {0: at_home[mine]}
        at = {0: begin[mine]}
        for source, target, wait in edges:
            box = np.full(len(mine), (home + target) % count)
            step = first_step[mine] + plan.slack * wait
            at[target] = rails.enters[at[source], box]
            brought[target] = sends.to_the_box(mine, at[source], brought[source], box, step)
    return sends.all()


def _trees(count: int) -> list[list[tuple[int, int, int]]]:
    """Trees over boxes 0 (the root) to ``count - 1`` that pieces take in turn: from, to, rounds after the piece left
    the root; a box receives before it sends."""
    bits = count.bit_length() - 1
    if count == 1 << bits:
        return [_binomial(bits, dimension) for dimension in range(bits)]
    return [_binary(count, which) for which in (0, 1)]


def _binomial(bits: int, dimension: int) -> list[tuple[int, int, int]]:
    """Johnsson and Ho's tree that leaves the root over ``dimension``, over the others in turn, and over it again at
    last to all that are on the root's side: in round r all boxes use dimension r, and each sends one piece."""
    edges, has = [(0, 1 << dimension, 0)], [1 << dimension]
    for wait in range(1, bits):
        bit = 1 << ((dimension + wait) % bits)
        edges += [(box, box ^ bit, wait) for box in has]
        has += [box ^ bit for box in has]
    return edges + [(box, box ^ (1 << dimension), bits) for box in has if box != 1 << dimension]


def _binary(count: int, which: int) -> list[tuple[int, int, int]]:
    """One of the two binary trees, hung below box 0; a box sends to its children in two rounds of their own."""
    parent = [-1] + [p + 1 for p in parents(count - 1, which)]
    children: dict[int, list[int]] = {}
    for box, above in enumerate(parent[1:], 1):
        children.setdefault(above, []).append(box)
    edges, queue = [], [(0, 0)]
    for box, step in queue:  # which grows
        for k, child in enumerate(children.get(box, ())):
            edges.append((box, child, step + k))
            queue.append((child, step + k + 1))
    return edges
