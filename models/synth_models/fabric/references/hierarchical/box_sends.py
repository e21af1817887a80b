"""Who sends which piece to whom, over rails between boxes and inside each: what ``hierarchical`` is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.plans.out_trees import Edge
from synth_models.fabric.references.hierarchical.box_rails import AROUND, BESIDE, Around, Rails
from synth_models.fabric.references.hierarchical.box_trees import NOBODY, PlacedTrees
from synth_models.fabric.references.hierarchical.share_weights import Dealt
from synth_models.fabric.references.hierarchical.trees_over_boxes import leader, trees_of
from synth_models.fabric.references.hierarchical.tuned import LEAD, MOST_SHARES

SHARES, EVERYTHING = "shares", "everything"  # exchanges of an allreduce
DEALT, SHARED_OUT = "dealt", "shared out"  # broadcasts
GROUPS_LED = "leaders of groups"  # broadcasts over groups of near boxes
STRAIGHT = "straight"  # to all, whichever box they are in


class Sends(NamedTuple):
    """Who sends which piece to whom, shape (sends,) each: ``after`` is the send that brings the piece to ``source``
    (:data:`NOBODY` where it begins), the least ``step`` goes first."""

    piece: IntArray
    source: IntArray
    target: IntArray
    after: IntArray
    step: IntArray

    def at_home(self, rails: Rails, root: int) -> int:
        """How many of them, the first, stay in the root's box."""
        stay = (rails.box[self.source] == rails.box[root]) & (rails.box[self.target] == rails.box[root])
        return len(stay) if stay.all() else int(np.argmin(stay))


class BoxStrategy(NamedTuple):
    """What a schedule is made by.

    ``chain``: inside a box a piece goes from rank to rank, instead of from the first to all others. ``between`` boxes,
    from one rank: over ``trees``, by way of ``leaders``, or the latter over the root's ``own rail`` alone, or of
    ``leaders of groups`` of near boxes, or over ``two trees`` of which few edges join boxes that are not near, or
    ``dealt``: to every rank, which sends it to all (``straight``: whatever the box), or ``shared out``: every rank of
    the root's box sends everything to a part of
    the boxes; in an allreduce also exchanges of ``shares`` or ``everything``. ``slack``: rounds until a box sends on
    what it received (trees). ``by_chunk``, from everyone: chunk after chunk to all boxes, not all chunks to one box
    after the other; ``passed_on``: from box to box, not from where it begins to each. ``one_root``: an allreduce sums
    up everything at one rank, which spreads it. ``groups``: of ranks near each other, which stand for boxes where
    every rank is a box of its own. ``gates``: of a group, where two trees enter it. ``weighed``: the shares of an
    allreduce are as large as suits the links; with a ``lag``, its way down goes before the way up of turns that are
    later by the lag-th part of all. ``mirrored``: it sums up as it spreads, with time reversed. ``spare_rails``: some
    pieces come to a rank over its rail instead of inside its box.
    """

    chain: bool = False
    between: str = "trees"
    slack: int = 1
    by_chunk: bool = False
    passed_on: bool = False
    weighed: bool = False
    one_root: bool = False
    groups: tuple[tuple[int, ...], ...] = ()
    gates: int = 2
    mirrored: bool = False
    lag: int = 0
    busiest_first: bool = False  # which of equally good dealings: how the linear program meets the links
    spare_rails: bool = False

    @property
    def in_order(self) -> bool:
        """Whether its rounds fit each other so well that every link is to keep to them."""
        return self.between not in ("trees", DEALT, SHARED_OUT, GROUPS_LED)

    def __str__(self) -> str:
        if self.between in (SHARES, EVERYTHING):
            return (
                "shares of a box exchanged" if self.between == SHARES else "everything exchanged, then inside each box"
            )
        said = {
            DEALT: "dealt to all, ",
            SHARED_OUT: "over all rails of the root's box, ",
            "leaders": "by way of leaders, ",
            GROUPS_LED: "by way of leaders to every group of boxes, ",
            "own rail": "over the root's rail, ",
            "two trees": "over two trees, ",
        }
        words = "from box to box, " if self.passed_on else said.get(self.between, "")
        words = f"everything to one rank and back, {words}" if self.one_root else words
        shares = f"unequal shares, down 1/{self.lag} behind up, " if self.lag else "unequal shares, "
        words = shares + words if self.weighed else words
        words = f"up as down with time reversed, {words}" if self.mirrored else words
        words = f"also over idle rails, {words}" if self.spare_rails else words
        if self.between == STRAIGHT:
            return "straight from everybody to all"
        return f"{words}inside a box {'along a chain' if self.chain else 'straight to all'}"


class Collected:
    """Sends, as they are added. ``around``: over what those go that keep off slow links; ``left_out``: the ranks that
    do not get a piece inside their box, shape (pieces, nodes)."""

    def __init__(
        self, rails: Rails, chain: bool, around: Around | None = None, left_out: BoolArray | None = None
    ) -> None:
        self.rails, self._chain, self._around, self._left_out = rails, chain, around, left_out
        self._parts: list[Sends] = []
        self._count = 0

    def add(self, piece: IntArray, source: IntArray, target: IntArray, after: IntArray, step: IntArray) -> IntArray:
        """Note one send a piece; what number each has among all."""
        self._parts.append(Sends(piece, source, target, after, step))
        self._count += len(piece)
        return np.arange(self._count - len(piece), self._count)

    def into_the_box(
        self,
        piece: IntArray,
        at: IntArray,
        after: IntArray,
        step: IntArray,
        but: int = NOBODY,
        apart: int = 0,
        helper: IntArray | None = None,
    ) -> IntArray:
        """From the ranks ``at`` that hold pieces to all others of their boxes, ``but`` one, so many steps ``apart``; by
        a ``helper`` of the box that first gets it, where there is one. The send by which each member got each, shape
        (pieces, width): ``after`` for those that had it."""
        rails, source, came = self.rails, at.copy(), after.copy()
        box = rails.box[at]
        brought = np.repeat(after[:, None], rails.rank.shape[1], axis=1)
        by = np.full_like(at, NOBODY) if helper is None else np.where(helper == at, NOBODY, helper)
        helped = np.flatnonzero(by != NOBODY)
        if len(helped):
            handed = self.add(piece[helped], at[helped], by[helped], after[helped], step[helped])
            source[helped], came[helped] = by[helped], handed
            brought[helped, rails.number[by[helped]]] = handed
        for k in range(1, int(rails.size.max())):
            other = rails.rank[box, (rails.number[at] + k) % rails.size[box]]
            wanted = (k < rails.size[box]) & (other != but) & (other != by)
            if self._left_out is not None:
                wanted &= ~self._left_out[piece, other]
            to = np.flatnonzero(wanted)
            sent = self.add(piece[to], source[to], other[to], came[to], step[to] + k * apart)
            brought[to, rails.number[other[to]]] = sent
            if self._chain:
                source[to], came[to] = other[to], sent
        return brought

    def to_the_box(
        self,
        piece: IntArray,
        at: IntArray,
        brought: IntArray,
        box: IntArray,
        step: IntArray,
        turn: IntArray | int = 0,
        helped: IntArray | None = None,
    ) -> IntArray:
        """From the boxes where ``at`` got pieces, and others what ``brought`` says, to the members of ``box``, there
        as ``helped`` says (:meth:`Rails.helpers`)."""
        rails = self.rails
        leaves, enters = rails.between(at, box, turn)
        if self._around is not None and helped is not None:
            others = self._around.rails.between(at, box, turn)
            leaves, enters = (np.where(helped == AROUND, *pair) for pair in zip(others, (leaves, enters), strict=True))
        entered = self.add(piece, leaves, enters, brought[np.arange(len(piece)), rails.number[leaves]], step)
        helper = None if helped is None else rails.helpers(enters, np.asarray(turn), helped)
        return self.into_the_box(piece, enters, entered, step, helper=helper)

    def all(self) -> Sends:
        """Everything, in the order in which it was added."""
        return Sends(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))


def roots_of_shares(boxes: Sequence[Sequence[int]]) -> list[int]:
    """The rank that each of equal shares of an allreduce is summed up at: all, once each, where boxes are equal.

    Else every box sums up an equal part, as nearly as :data:`MOST_SHARES` shares a rank make it. All but its own part
    leaves a box for the others, over as many NICs as it has ranks, so that no box may have much less than another.
    """
    sizes = [len(box) for box in boxes]
    whole = min(math.lcm(*sizes), MOST_SHARES * max(sizes))
    return [
        rank
        for turn in range(whole)
        for box, size in zip(boxes, sizes, strict=True)
        if turn < max(1, round(whole / size))
        for rank in box
    ]


class OverRails(NamedTuple):
    """The ``ranks`` that get a piece over their own rail instead of inside their box, shape (pieces, nodes)."""

    ranks: BoolArray


def from_everyone(
    rails: Rails,
    holder: IntArray,
    chunk: IntArray,
    strategy: BoxStrategy,
    order: IntArray,
    dealt_to: Dealt | None = None,
    around: Around | OverRails | None = None,
) -> Sends:
    """From the holder of every piece straight along its rail to the next box, and the next (or from each to the next);
    then inside each. ``order``: of the boxes, shape (boxes,). ``dealt_to``: how pieces are spread in each box, and
    whose turn it is where several serve one (else its ``chunk`` says that); some go ``around`` slow links, or come over
    idle rails, after all that others wait for there."""
    helped, turn = (None, chunk) if dealt_to is None else (dealt_to.helped, dealt_to.turn)
    place = np.argsort(order)
    count, piece = len(rails.size), np.arange(len(holder), dtype=np.int64)
    chunks_each = int(chunk.max(initial=0)) + 1
    later, left_out = 0, None
    if isinstance(around, OverRails):
        later, left_out, around = count * chunks_each, around.ranks, None
    elif helped is not None:
        left_out = _left_out(rails, around, holder, helped, turn)
    sends = Collected(rails, strategy.chain, around, left_out)
    first_step = chunk * (count if strategy.by_chunk else 1)
    helper = None if helped is None else rails.helpers(holder, turn, helped)
    at, brought = holder, sends.into_the_box(piece, holder, np.full_like(piece, NOBODY), first_step, helper=helper)
    brought_by, step_by = [brought], [first_step]
    for ahead in range(1, count):
        step = chunk * count + ahead if strategy.by_chunk else ahead * chunks_each + chunk
        box = order[(place[rails.box[holder]] + ahead) % count]
        came = sends.to_the_box(piece, at, brought, box, step, turn, helped)
        if strategy.passed_on:
            (_, at), brought = rails.between(at, box, turn), came
        brought_by.append(came)
        step_by.append(step)
    if left_out is not None:
        _beside(sends, holder, turn, order, np.array(brought_by), np.array(step_by) + later, left_out)
    return sends.all()


def _left_out(
    rails: Rails, around: Around | None, holder: IntArray, helped: IntArray, turn: IntArray
) -> BoolArray | None:
    """The ranks that do not get a piece inside their box, shape (pieces, nodes); None where there are none."""
    found = np.zeros((len(holder), len(rails.box)), dtype=bool)
    if around is not None:
        nodes = len(rails.box)  # up to the last rank; switches get no pieces
        found |= around.apart[:nodes] & ((helped == AROUND) & ~around.apart[holder])[:, None]
    piece = np.flatnonzero(helped == BESIDE)
    rank = rails.beside(holder[piece], turn[piece])
    found[piece[rank != NOBODY], rank[rank != NOBODY]] = True
    return found if found.any() else None


def _beside(
    sends: Collected,
    holder: IntArray,
    turn: IntArray,
    order: IntArray,
    brought: IntArray,
    step: IntArray,
    left_out: BoolArray,
) -> None:
    """To the ranks ``left_out`` from their rail's rank in the holder's box, or in another box in turn. ``brought``:
    the sends that brought each piece to the boxes from the holder's on in this order, shape (boxes, pieces, width)."""
    rails, count = sends.rails, len(order)
    place = np.argsort(order)
    for rank in np.flatnonzero(left_out.any(axis=0)).tolist():
        piece = np.flatnonzero(left_out[:, rank])
        home, box = rails.box[holder[piece]], int(rails.box[rank])
        away = order[(place[box] + 1 + turn[piece] % (count - 1)) % count]
        source_box = np.where(home == box, away, home)
        source = rails.rank[source_box, rails.number[rank]]
        ahead = (place[source_box] - place[home]) % count
        late = np.where(home == box, ahead, (place[box] - place[home]) % count)
        sends.add(
            piece, source, np.full_like(piece, rank), brought[ahead, piece, rails.number[source]], step[late, piece]
        )


class Rounds(NamedTuple):
    """Pieces that a link between boxes takes while one is on its way: ``between`` boxes, to the nearest and to the
    ``farthest``, ``inside`` a box; the ``seconds`` that it takes for one. ``slower``: how many of those to the farthest
    a slow link makes, not latency."""

    between: int
    farthest: int
    inside: int
    seconds: float
    slower: int = 0


def dealt(rails: Rails, root: int, pieces: int, rounds: Rounds) -> Sends:
    """From the root a piece to every other rank in turn, which sends it to its rail's rank in all other boxes, each of
    which hands it on in its box; nothing goes back to the root, in whose place others of its box take turns.

    Scatter, then allgather (Barnett, Payne, van de Geijn, Watts: "Broadcasting on meshes with worm-hole routing",
    1993), piece by piece: a rank sends its piece on while others are dealt theirs.
    """
    home, count, number = int(rails.box[root]), len(rails.size), rails.number
    order = np.concatenate([rails.rank[b, : rails.size[b]] for b in np.roll(np.arange(count), -home)])
    order = order[order != root]
    piece, width = np.arange(pieces, dtype=np.int64), int(rails.size[home])
    holder = order[piece % len(order)]
    sends = Collected(rails, chain=False)
    handed = sends.add(piece, np.full_like(piece, root), holder, np.full_like(piece, NOBODY), piece)
    arrives = piece + rounds.between
    brought = sends.into_the_box(piece, holder, handed, arrives + rounds.inside, but=root, apart=1)
    brought[rails.box[holder] == home, number[root]] = NOBODY
    for ahead in range(1, count):
        box = (rails.box[holder] + ahead) % count
        leaves, enters = rails.between(holder, box, piece)
        instead = rails.rank[home, (number[root] + 1 + (piece + rails.box[holder]) % max(1, width - 1)) % width]
        enters = np.where(enters == root, instead, enters)
        to = np.flatnonzero(enters != root)
        step = arrives[to] + ahead + rounds.between
        came = sends.add(piece[to], leaves[to], enters[to], brought[to, number[leaves[to]]], step)
        sends.into_the_box(piece[to], enters[to], came, step + rounds.inside, but=root, apart=1)
    return sends.all()


def shared_out(rails: Rails, root: int, pieces: int, rounds: Rounds) -> Sends:
    """From the root every piece to its box, each rank of which sends it along its rail to a part of the other boxes,
    and on inside each. For short messages: the NICs of a box take turns, and the root's begins while others wait.
    """
    home, count = int(rails.box[root]), len(rails.size)
    piece = np.arange(pieces, dtype=np.int64)
    sends = Collected(rails, chain=False)
    brought = sends.into_the_box(piece, np.full_like(piece, root), np.full_like(piece, NOBODY), piece, apart=1)
    free = np.full(int(rails.size[home]), rounds.inside)
    free[rails.number[root]] = 0
    for ahead in range(1, count):
        number = int(np.argmin(free))
        step = int(free[number]) + count * piece
        free[number] += 1
        at, box = rails.rank[home, number], (home + ahead) % count
        sends.to_the_box(piece, np.full_like(piece, at), brought, np.full_like(piece, box), step)
    return sends.all()


def from_one(
    rails: Rails, root: int, pieces: int, strategy: BoxStrategy, rounds: Rounds, placed: PlacedTrees | None = None
) -> Sends:
    """From the root to the ranks of its box in turn, each along its rail to all boxes, and inside each of them.

    With a slack of 2 a piece's latency is hidden behind another's bytes. ``placed``: a strategy's two trees.
    """
    home = int(rails.box[root])
    width = 1 if strategy.between == "own rail" else int(rails.size[home])
    piece = np.arange(pieces, dtype=np.int64)
    turn = piece // width
    sends = Collected(rails, strategy.chain)
    begin = np.full_like(piece, root) if width == 1 else rails.rank[home, piece % width]
    count = len(rails.size)
    if strategy.between == "two trees":
        assert placed is not None
        return _over_two_trees(sends, root, begin, turn, placed)
    if strategy.between == "trees":
        trees, first, slack, lead = trees_of(count), turn, strategy.slack, LEAD
        number, shifted = turn // slack % len(trees), np.zeros_like(turn)
    else:
        trees, first, number, shifted = _led(count, turn, rounds.between)
        slack, lead = 1, rounds.inside
    home_first = at_home(sends, root, begin, turn, lead)
    for which, edges in enumerate(trees):
        mine = np.flatnonzero(number == which)
        brought, at = {0: home_first[mine]}, {0: begin[mine]}
        for source, target, wait in edges:
            box = (home + 1 + (target - 1 + shifted[mine]) % (count - 1)) % count
            _, at[target] = rails.between(at[source], box, turn[mine])
            step = first[mine] + slack * wait
            brought[target] = sends.to_the_box(mine, at[source], brought[source], box, step, turn[mine])
    return sends.all()


def steps_of_a_round(widest: int) -> int:
    """Of two trees over boxes of so many ranks at most: places for what goes into the root's box, for its own rail's
    there, and for what the trees send."""
    return 4 * widest


def _over_two_trees(sends: Collected, root: int, begin: IntArray, turn: IntArray, placed: PlacedTrees) -> Sends:
    """As :func:`from_one`: pieces take the trees in turn. Steps are parts of rounds."""
    rails, steps = sends.rails, steps_of_a_round(int(sends.rails.size.max()))
    at_home = _handed_out(sends, root, begin, turn, steps)
    for which, edges in enumerate(placed.trees):
        mine = np.flatnonzero(turn % 2 == which)
        brought, at = {0: at_home[mine]}, {0: begin[mine]}
        for source, target, wait in edges:
            box = np.full(len(mine), placed.box[target])
            _, at[target] = rails.between(at[source], box, turn[mine])
            step = steps * (turn[mine] + wait) + steps // 2
            brought[target] = sends.to_the_box(mine, at[source], brought[source], box, step, turn[mine])
    return sends.all()


def _handed_out(sends: Collected, root: int, begin: IntArray, turn: IntArray, steps: int) -> IntArray:
    """As :func:`at_home`, without two sends at once to one rank: in a round's k-th place every rank sends k places
    on, the root the new round's pieces and the others what they got some rounds before. Of the root's own rail as many
    pieces as there are others go so together, in places of their own after as many rounds. ``steps`` of a round."""
    rails, piece, first = sends.rails, np.arange(len(turn), dtype=np.int64), np.full_like(turn, NOBODY)
    home, others = rails.box[root], int(rails.size[rails.box[root]]) - 1
    if not others:
        return first[:, None]
    own = begin == root
    ahead = np.where(own, 1 + turn % others, (rails.number[begin] - rails.number[root]) % (others + 1))
    helper = rails.rank[home, (rails.number[root] + ahead) % (others + 1)]
    together = turn // others * others + others - 1  # the round that the own rail's go after
    later = others + 1
    begun = np.where(own, steps * together + steps // 4, steps * turn)
    handed = sends.add(piece, np.full_like(piece, root), helper, first, begun + ahead)
    passed = np.where(own, steps * (together + later) + steps // 4, steps * (turn + later))
    brought = sends.into_the_box(piece, helper, handed, passed, but=root, apart=1)
    brought[:, rails.number[root]] = NOBODY
    return brought


def at_home(sends: Collected, root: int, begin: IntArray, turn: IntArray, lead: int) -> IntArray:
    """From the root to the ranks ``begin`` of its box, from which pieces leave it, and to all others there; the send
    by which each member got each, shape (pieces, width). ``lead``: rounds that a piece is on its way in the box.

    The root's own link into the box carries every piece once: those of its own rail go to one of the others in turn,
    and whoever got a piece first hands it to the rest of the box.
    """
    rails, piece = sends.rails, np.arange(len(begin), dtype=np.int64)
    home, first = int(rails.box[root]), np.full(len(begin), NOBODY, dtype=np.int64)
    others = int(rails.size[home]) - 1
    if not others:
        return first[:, None]
    next_to_root = rails.rank[home, (rails.number[root] + 1 + turn % others) % (others + 1)]
    helper = np.where(begin == root, next_to_root, begin)
    urgent = np.where(begin == root, turn + lead, turn - lead)  # no NIC waits for the root's handing
    handed = sends.add(piece, np.full_like(piece, root), helper, first, urgent)
    brought = sends.into_the_box(piece, helper, handed, np.maximum(urgent, turn) + lead, but=root)
    brought[:, rails.number[root]] = NOBODY
    return brought


def _led(count: int, turn: IntArray, rounds: int) -> tuple[list[list[Edge]], IntArray, IntArray, IntArray]:
    """The tree by way of a leader, and for the last pieces that straight from the root; when each piece leaves the
    root, the number of its tree, and how many boxes on all boxes of it but the root's are.

    Karp, Sahay, Santos and Schauser: "Optimal broadcast and summation in the LogP model" (SPAA 1993): the root sends
    every piece once, to one box after the other, which sends it to all others. In round s the root sends to box s
    modulo the others. The last pieces go straight from the root instead, as many as that is sooner for.
    """
    others, turns = count - 1, int(turn.max(initial=0)) + 1
    straight = min(turns, (rounds + others - 1) // others)
    led = turns - straight
    first = np.where(turn < led, turn, led + (turn - led) * others)
    star = [(0, 1 + k, k) for k in range(others)]
    return [leader(others, rounds), star], first, (turn >= led).astype(np.int64), first % others
