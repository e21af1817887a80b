"""Routes: what one transfer may take from a node that holds a piece to nodes that then hold it.

Cut through, a route is a path over switches from rank to rank, or with ``multicast`` an out-tree of them. Stored and
forwarded without a buffer it is the same, run hop by hop without waiting (an out-tree where switches copy). Where
switches buffer and copy they hold pieces like ranks, and every link is a route; where they buffer without copying, the
hops of a path start when they like, one after the other. Sums go over paths without waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.continuous.tuned import MOST_PATHS, MOST_TREES


@dataclass(frozen=True)
class TransferRoute:
    """``links`` in an order in which each comes after the one it hangs on, whose place is ``parent`` (-1: none);
    ``leaves``: pairs of a node that receives the piece and the place of the link into it. ``waits``: every hop has a
    start of its own."""

    source: int
    links: tuple[int, ...]
    parent: tuple[int, ...]
    leaves: tuple[tuple[int, int], ...]
    waits: bool = False

    @property
    def starts(self) -> int:
        """How many starts it has."""
        return len(self.links) if self.waits else 1


@dataclass(frozen=True)
class Timing:
    """In ticks or units of them, for pieces of one size: until every link is occupied, for how long, and until the
    piece has arrived at every leaf. With ``waits`` counted from the start of the hop."""

    offset: tuple[int, ...]
    duration: tuple[int, ...]
    arrival: tuple[int, ...]


def timing(route: TransferRoute, duration: Sequence[int], latency: Sequence[int], hop_by_hop: bool) -> Timing:
    """``duration`` and ``latency`` of every link of the machine."""
    offset, longest = [], []
    for e, p in zip(route.links, route.parent, strict=True):
        if p < 0 or route.waits:
            offset.append(0)
            longest.append(duration[e])
        elif hop_by_hop:
            offset.append(offset[p] + latency[route.links[p]] + duration[route.links[p]])
            longest.append(duration[e])
        else:
            offset.append(offset[p] + latency[route.links[p]])
            longest.append(max(longest[p], duration[e]))
    arrival = tuple(offset[k] + latency[route.links[k]] + longest[k] for _, k in route.leaves)
    return Timing(tuple(offset), tuple(duration[e] for e in route.links), arrival)


class TransferRoutes:
    """All routes of an instance; ``complete`` unless there are more than :data:`MOST_PATHS` or :data:`MOST_TREES` from
    some rank. Routes that a schedule takes are added by :meth:`number`."""

    def __init__(self, instance: FabricInstance) -> None:
        machine, switching = instance.machine, instance.switching
        net = machine.network
        self.instance = instance
        self.src, self.dst = net.src.tolist(), net.dst.tolist()
        self.is_switch = machine.is_switch.tolist()
        self.hop_by_hop = switching.mode == "store_and_forward"
        reduces = bool(instance.blocks.sums.any())
        stores = self.hop_by_hop and switching.buffer and not reduces
        self.by_link = stores and switching.copies
        self.waits = stores and not switching.copies
        self.branches = not self.by_link and (switching.copies and not reduces if self.hop_by_hop
                                              else switching.multicast)  # fmt: skip
        self.branches = self.branches and not self.waits
        # sums that wait in switches, or that are copied there, are not modelled
        self.complete = not (self.hop_by_hop and reduces and (switching.buffer or switching.copies) and self._switches)
        self.all: list[TransferRoute] = []
        self._number: dict[frozenset[int], int] = {}
        for u in range(machine.nodes):
            if self.holds(u):
                self._from(u)

    @property
    def _switches(self) -> bool:
        return any(self.is_switch)

    def holds(self, node: int) -> bool:
        """Whether pieces can stay there."""
        return self.by_link or not self.is_switch[node]

    @cached_property
    def _out(self) -> list[list[int]]:
        out: list[list[int]] = [[] for _ in self.is_switch]
        for e, u in enumerate(self.src):
            out[u].append(e)
        return out

    def number(self, links: Sequence[int]) -> int:
        """The number of the route over these links, which is a new one if it has none. Raises ``ValueError`` for links
        that make no route."""
        key = frozenset(links)
        if key not in self._number:
            self._add(self._way(list(links)))
        return self._number[key]

    def _add(self, route: TransferRoute) -> None:
        self._number[frozenset(route.links)] = len(self.all)
        self.all.append(route)

    def _way(self, links: list[int]) -> TransferRoute:
        source = self.src[links[0]]
        place = {self.dst[e]: k for k, e in enumerate(links)}
        parent = tuple(-1 if self.src[e] == source else place.get(self.src[e], len(links)) for e in links)
        inner = {self.src[e] for e in links} - {source}
        leaves = tuple((v, k) for v, k in place.items() if v not in inner)
        bad = any(p >= k for k, p in enumerate(parent)) or not all(self.holds(v) for v, _ in leaves)
        if bad or len(place) < len(links) or any(self.holds(v) for v in inner) or source in place:
            raise ValueError("these links are no route")
        return TransferRoute(source, tuple(links), parent, leaves, self.waits and len(links) > 1)

    def _from(self, u: int) -> None:
        if self.by_link:
            for e in self._out[u]:
                self._add(self._way([e]))
            return
        paths = self._paths(u)
        for path in paths:
            self._add(self._way(path))
        if self.branches:
            self._trees(u, paths)

    def _paths(self, u: int) -> list[list[int]]:
        """Simple paths over switches, fewest links first."""
        found: list[list[int]] = []
        level: list[tuple[list[int], int]] = [([], u)] if self._out[u] else []
        while level:
            longer: list[tuple[list[int], int]] = []
            for path, at in level:
                seen = {u, *(self.dst[e] for e in path)}
                for e in self._out[at]:
                    v = self.dst[e]
                    if v in seen:
                        continue
                    if self.is_switch[v]:
                        longer.append(([*path, e], v))
                    else:
                        found.append([*path, e])
            if len(found) + len(longer) > 16 * MOST_PATHS or (len(found) > MOST_PATHS and longer):
                self.complete = self.complete and not longer
                break
            level = longer
        return found

    def _trees(self, u: int, paths: list[list[int]]) -> None:
        """Out-trees of two or more leaves: a path or none to every rank, where common nodes have the same link in."""
        by_leaf: dict[int, list[list[int]]] = {}
        for path in paths:
            by_leaf.setdefault(self.dst[path[-1]], []).append(path)
        # few leaves to go first: whole trees come before small ones, so that a limit keeps the broadest
        trees: list[tuple[dict[int, int], int]] = [({}, 0)]
        for leaf in sorted(by_leaf):
            grown = list(trees)
            for tree, count in trees:
                for path in by_leaf[leaf]:
                    into = {self.dst[e]: e for e in path}
                    if all(tree.get(v, e) == e for v, e in into.items()):
                        grown.append((tree | into, count + 1))
            if len(grown) > 4 * MOST_TREES:
                self.complete = False
                grown = sorted(grown, key=lambda pair: -pair[1])[: 2 * MOST_TREES]
            trees = grown
        several = [tree for tree, count in trees if count > 1]
        if len(several) > MOST_TREES:
            self.complete = False
        several.sort(key=len, reverse=True)
        for tree in several[:MOST_TREES]:
            self._add(self._way(self._ordered(tree, u)))

    def _ordered(self, tree: dict[int, int], source: int) -> list[int]:
        links: list[int] = []
        done = {source}
        while len(links) < len(tree):
            for v, e in tree.items():
                if v not in done and self.src[e] in done:
                    links.append(e)
                    done.add(v)
        return links
