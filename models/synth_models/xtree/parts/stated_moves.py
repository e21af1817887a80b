"""A schedule from moves that somebody states (:class:`synth.schedule.moves.Moves`): links and timesteps found where
none are given."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from synth.errors import Fault, InputError
from synth.schedule import Schedule
from synth.schedule.moves import Moves, fault
from synth.schedule.stated import NOBODY, Ground, Hops, Stated, settled, understood
from synth_models.xtree.instance import XTreeInstance

_Way = list[list[int]]  # hop after hop, the links that may carry it


def schedule(instance: XTreeInstance, moves: Moves) -> Schedule:
    """The moves hop by hop over links of the least number that are free first, in the order in which they were stated;
    those with a timestep at it. Raises :class:`InputError` with all that is wrong with them."""
    if moves.pieces is not None and moves.pieces != instance.chunks:
        words = f"is the instance's number of chunks: {instance.chunks}"
        raise InputError([Fault("pieces", words, moves.pieces, True)])
    names = [instance.topology.name(v) for v in range(instance.topology.nodes)]
    ground = _ground(instance, names)
    stated = understood(moves, ground)
    ways = _ways(instance, moves, stated, names)
    hops = settled(moves, ground, stated, lambda earliest: _placed(stated, ways, earliest), 1)
    rows = [
        (step, link, node * instance.chunks + chunk, adds)
        for row, (node, chunk), adds in zip(hops, stated.piece, stated.adds, strict=True)
        for step, link in row
    ]
    columns: tuple[Sequence[int], ...] = tuple(zip(*rows, strict=True)) if rows else ((), (), (), ())
    return Schedule.of(*(list(column) for column in columns))


def _ground(instance: XTreeInstance, names: Sequence[str]) -> Ground:
    """What the instance asks: a block is a node's chunks, or its share of a sum."""
    nodes, reduces = range(len(names)), instance.task.reduces

    def block(key: object) -> int:
        if not isinstance(key, int):
            raise ValueError("must be a node: a block is a node's chunks, or its share of a sum")
        return key

    holder = [NOBODY if reduces else node for node in nodes]
    adds = instance.collective == "reduce_scatter"
    return Ground(names, frozenset(nodes), block, holder, [instance.chunks] * len(names), adds)


def _ways(instance: XTreeInstance, moves: Moves, stated: Stated, names: Sequence[str]) -> list[_Way]:
    """Of every move its hops. Raises :class:`InputError`."""
    net = instance.topology
    ends = list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    between: dict[tuple[int, int], list[int]] = {}
    after: dict[int, list[int]] = {}
    for e, (u, v) in enumerate(ends):
        between.setdefault((u, v), []).append(e)
        after.setdefault(u, []).append(v)
    faults: list[Fault] = []
    ways: list[_Way] = []
    for i, (path, links) in enumerate(zip(stated.path, stated.links, strict=True)):
        try:
            if links is not None:
                way = _along(links, path, ends)
            else:
                nodes = path if len(path) > 2 else _shortest(path[0], path[1], after, names)
                way = [_joining(pair, between, names) for pair in pairwise(nodes)]
            if stated.adds[i] and len(way) > 1:
                raise ValueError("leads over other nodes, where a partial sum would be added: send it node by node")
            ways.append(way)
        except ValueError as error:
            faults.append(fault(moves, i, "", str(error)))
    if faults:
        raise InputError(faults)
    return ways


def _along(links: Sequence[int], path: Sequence[int], ends: Sequence[tuple[int, int]]) -> _Way:
    """The links, if they lead from the source over the nodes between to the target."""
    wrong = [e for e in links if not 0 <= e < len(ends)]
    if wrong:
        raise ValueError(f"there is no link {wrong[0]}: links are 0..{len(ends) - 1}")
    nodes = [ends[links[0]][0], *(ends[e][1] for e in links)]
    joined = all(ends[a][1] == ends[b][0] for a, b in pairwise(links))
    if not joined or (nodes[0], nodes[-1]) != (path[0], path[-1]) or (len(path) > 2 and nodes != list(path)):
        raise ValueError(f"its links lead over the nodes {' '.join(map(str, nodes))}")
    return [[e] for e in links]


def _joining(pair: tuple[int, int], between: dict[tuple[int, int], list[int]], names: Sequence[str]) -> list[int]:
    if pair not in between:
        raise ValueError(f"no link leads from {names[pair[0]]} to {names[pair[1]]}")
    return between[pair]


def _shortest(source: int, target: int, after: dict[int, list[int]], names: Sequence[str]) -> list[int]:
    """The nodes of a shortest path, of the least numbers."""
    before = {source: source}
    queue = deque([source])
    while queue and target not in before:
        node = queue.popleft()
        for other in sorted(after.get(node, ())):
            if other not in before:
                before[other] = node
                queue.append(other)
    if target not in before:
        raise ValueError(f"{names[target]} cannot be reached from {names[source]}")
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]


def _placed(stated: Stated, ways: Sequence[_Way], earliest: Sequence[int]) -> list[Hops]:
    """Of every move timestep and link of every hop, each as early as a link is free; those that say theirs first."""
    busy: set[tuple[int, int]] = set()  # link and timestep
    free: dict[int, int] = {}  # of every link the first timestep that may be free
    hops: list[Hops] = [[] for _ in ways]

    def take(i: int, begin: int, kept: bool) -> None:
        for links in ways[i]:
            step, link = min((_first(busy, free, e, begin), e) for e in links)
            step = begin if kept else step
            if kept:
                link = next((e for e in links if (e, step) not in busy), links[0])
            busy.add((link, step))
            hops[i].append((step, link))
            begin, kept = step + 1, False

    for i, start in enumerate(stated.start):
        if start is not None:
            take(i, max(1, round(start)), True)
    for i in stated.order:
        if not hops[i]:
            take(i, max([earliest[i], *(hops[k][-1][0] + 1 for k in stated.waits[i])]), False)
    return hops


def _first(busy: set[tuple[int, int]], free: dict[int, int], link: int, begin: int) -> int:
    """The first timestep from ``begin`` on at which the link is free."""
    least = free.get(link, 1)
    while (link, least) in busy:
        least += 1
    free[link] = least
    step = max(begin, least)
    while (link, step) in busy:
        step += 1
    return step
