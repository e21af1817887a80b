"""Two binary trees over boxes that carry half of the data each, along few edges out of a group of boxes.

Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009.
No box has children in both trees, so that each sends as much as it receives. Pieces take the trees in turn; an edge is
then in use in every other round, and by colours no box sends two pieces in a round or receives two.

Boxes behind the same leaf switches are a group, and such groups may be one again (hosts, routers and groups of a
dragonfly). The groups are joined by two trees themselves. Of the 2 n sends of n boxes in two rounds, 2 (n - 1) stay
inside, and the two that are left are those to other groups, which are made as soon as the tree can also go on inside.
So between groups goes at most what one box sends, whatever their size. Boxes that use all their sends send and receive
as many pieces in even rounds as in odd ones; so a group lets out one piece a round if it takes in one a round, as it
does if both trees enter it at one box. An oversubscribed switch that carries as much holds nothing up then. With a gate
for each tree two may meet there, but trees are half as deep.

Where both children of a box are leaves of the other tree, they may take each other's places there and so each other's
rounds: the one below which more follows goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from synth.arrays import IntArray
from synth_models.fabric.plans.out_trees import Edge
from synth_models.fabric.routes.near_boxes import Groups

NOBODY = -1
OUTSIDE = -1


class PlacedTrees(NamedTuple):
    """Two trees over places, and the box at each place, shape (boxes,)."""

    trees: list[list[Edge]]
    box: IntArray


def two_trees(
    groups: Groups, gates: int = 1, on_the_way: int = 1, near: int | None = None, held: int = 0
) -> list[list[Edge]]:
    """The edges of both trees from box 0, the first of the first group, in the order of their rounds: from box, to box,
    rounds after the piece left the root. A box sends what it was sent ``on_the_way`` rounds before at the latest;
    ``near`` rounds, if given, where that comes from the same innermost group. What goes to another group is ``held``
    for so many rounds before it is sent.
    ``groups`` may consist of groups, which both trees enter at one box, or with two ``gates`` each at its own."""
    count = _boxes(groups)
    parent = [[NOBODY] * count, [NOBODY] * count]
    _hang(groups, [], parent, Growth(gates, on_the_way, near or on_the_way))
    colour = _colours(parent)
    for which in (0, 1):
        _higher_first(which, parent, colour, _inner_groups(groups), on_the_way)
    trees: list[list[Edge]] = []
    group = _inner_groups(groups)
    for which, above in enumerate(parent):
        children: dict[int, list[int]] = {}
        for box, over in enumerate(above[1:], 1):
            children.setdefault(over, []).append(box)
        edges, queue = [], [(0, 0)]
        for box, soonest in queue:  # which grows
            for child in children.get(box, ()):
                beside = group[box] == group[child]
                begin = soonest + (0 if beside else held)
                wait = begin + (begin + which + colour[which][child]) % 2
                edges.append((box, child, wait))
                queue.append((child, wait + (near if beside and near is not None else on_the_way)))
        trees.append(sorted(edges, key=_wait))
    return trees


def _boxes(groups: Groups) -> int:
    return 1 if isinstance(groups, int) else sum(map(_boxes, groups))


class Growth(NamedTuple):
    """How trees grow: ``gates`` of a group, one or two, and the rounds that a send is ``on_the_way``, or to a ``near``
    box of the same group; ``held``: as :func:`two_trees` has it."""

    gates: int
    on_the_way: int
    near: int
    held: int = 0


class _Hung(NamedTuple):
    """A group whose inner edges are known: ``gate``, where each tree enters it, and the boxes of its sends to others,
    in the order in which they were asked for."""

    gate: tuple[int, int]
    leaves: list[int]


def _hang(groups: Groups, asked: Sequence[int], parent: list[list[int]], growth: Growth) -> _Hung:
    """Note in either tree the ``parent`` of every box inside; ``asked``: the tree of each send to others, two at most.

    A group of n has 2 n sends at most: in either tree n - 1 to its parts, and those asked for. Parts that serve one
    tree with both their sends carry that tree on, as soon as they have it; the others are its leaves.
    """
    if isinstance(groups, int):
        return _Hung((groups, groups), [groups] * len(asked))
    if len(groups) == 1:
        return _hang(groups[0], asked, parent, growth)
    single = growth.gates == 1 or _first(groups) == 0
    roles = _roles(len(groups), asked, single)
    sends: list[list[tuple[int, int]]] = [[] for _ in groups]  # of every part: tree and target, OUTSIDE for others
    first = [next(part for part, role in enumerate(roles) if tree in role) for tree in (0, 1)]
    for tree in (0, 1):
        for part, target in _grown(groups, tree, roles, first[tree], list(asked).count(tree), growth):
            sends[part].append((tree, target))
    hung = [_hang(part, [tree for tree, _ in own], parent, growth) for part, own in zip(groups, sends, strict=True)]
    outside: list[list[int]] = [[], []]
    for inner, own in zip(hung, sends, strict=True):
        for box, (tree, target) in zip(inner.leaves, own, strict=True):
            if target == OUTSIDE:
                outside[tree].append(box)
            else:
                parent[tree][hung[target].gate[tree]] = box
    return _Hung((hung[first[0]].gate[0], hung[first[1]].gate[1]), [outside[tree].pop(0) for tree in asked])


def _roles(count: int, asked: Sequence[int], single: bool) -> list[list[int]]:
    """The trees of every part's sends, two at most; with a ``single`` gate the first part has one in each."""
    need = [count - 1 + list(asked).count(tree) for tree in (0, 1)]
    roles: list[list[int]] = [[0, 1]] if single else []
    left = [number - single for number in need]
    roles += [[0, 0]] * (left[0] // 2) + [[1, 1]] * (left[1] // 2)
    odd = [tree for tree in (0, 1) if left[tree] % 2]
    roles += [odd] if odd else []
    return roles + [[]] * (count - len(roles))


def _grown(
    groups: Sequence[Groups], tree: int, roles: Sequence[Sequence[int]], first: int, outside: int, growth: Growth
) -> list[tuple[int, int]]:
    """Edges of one tree from part to part (or :data:`OUTSIDE`), each by the send that is free soonest: to others before
    the own, as long as the tree can go on inside."""
    carrying = [part for part, role in enumerate(roles) if tree in role and part != first]
    carrying.sort(key=lambda part: -roles[part].count(tree))
    leaves = [part for part, role in enumerate(roles) if tree not in role and part != first]
    free: list[tuple[int, int, int]] = []
    edges: list[tuple[int, int]] = []

    def reached(part: int, when: int) -> None:
        for after in _rounds_through(groups[part], growth)[: roles[part].count(tree)]:
            heappush(free, (when + after, len(edges), part))

    reached(first, 0)
    while free:
        when, _, part = heappop(free)
        target = OUTSIDE
        if carrying and (not free or not outside):
            target = carrying.pop(0)
        elif outside:
            outside -= 1
        elif leaves:
            target = leaves.pop(0)
        else:
            break
        edges.append((part, target))
        if target != OUTSIDE:
            reached(target, when)
    return edges


def _rounds_through(groups: Groups, growth: Growth) -> tuple[int, int]:
    """About how many rounds after it got a piece a group has sent it to another, and to a second."""
    if isinstance(groups, int):
        return growth.on_the_way, growth.on_the_way + 1
    soon, late = _rounds_through(groups[0], growth)
    if len(groups) == 1:
        return soon, late
    return (soon, late + soon) if growth.gates == 2 else (2 * soon, 2 * soon + late)


def _first(groups: Groups) -> int:
    return groups if isinstance(groups, int) else _first(groups[0])


def _colours(parent: Sequence[Sequence[int]]) -> list[list[int]]:
    """Whether the edge into a box is used in even or odd rounds, for either tree (section 4 of the paper): the edges
    into a box differ, and so do a box's two edges to children. Alternating so, one walks around even cycles."""
    count = len(parent[0])
    out: dict[int, list[tuple[int, int]]] = {}
    for which in (0, 1):
        for box in range(1, count):
            out.setdefault(parent[which][box], []).append((which, box))
    colour = [[NOBODY] * count for _ in parent]
    for start in [*out[0], *((which, box) for which in (0, 1) for box in range(1, count))]:
        first, box = start
        stack = [(start, first)] if colour[first][box] == NOBODY else []
        while stack:
            (which, box), own = stack.pop()
            if colour[which][box] != NOBODY:
                continue
            colour[which][box] = own
            beside = [edge for edge in out[parent[which][box]] if edge != (which, box)]
            stack += [(edge, 1 - own) for edge in (*beside, (1 - which, box))]
    return colour


def _higher_first(
    which: int, parent: list[list[int]], colour: list[list[int]], group: Sequence[int], on_the_way: int
) -> None:
    """Let a box of a tree send first to the child below which more rounds follow.

    Two children of one ``group`` that are leaves of the other tree take each other's places there: then, with the
    rounds of both trees as they are, they take each other's rounds here.
    """
    above, other = parent[which], 1 - which
    below: list[list[int]] = [[] for _ in above]
    inner = set(parent[other])
    for box, over in enumerate(above[1:], 1):
        below[over].append(box)
    order = [0]
    for box in order:  # which grows
        order += below[box]
    rounds = [0] * len(above)  # from when a box has a piece until all below it have it
    for box in reversed(order):

        def soon(child: int, box: int = box) -> bool:
            return not box or (colour[which][child] + on_the_way + colour[which][box]) % 2 == 0

        if len(below[box]) == 2:
            first, second = sorted(below[box], key=soon, reverse=True)
            alike = group[first] == group[second] and not {first, second} & inner
            if box and alike and rounds[first] < rounds[second]:
                for rows in (colour[which], colour[other], parent[other]):
                    rows[first], rows[second] = rows[second], rows[first]
        rounds[box] = max((rounds[child] + on_the_way + (not soon(child)) for child in below[box]), default=0)


def _inner_groups(groups: Groups) -> list[int]:
    """The number of the innermost group of every box."""
    found: dict[int, int] = {}
    stack = [groups]
    for number, group in enumerate(stack):  # which grows
        for part in () if isinstance(group, int) else group:
            if isinstance(part, int):
                found[part] = number
            else:
                stack.append(part)
    return [found[box] for box in range(len(found))]


def _wait(edge: Edge) -> int:
    _, _, wait = edge
    return wait
