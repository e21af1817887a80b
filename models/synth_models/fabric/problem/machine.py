"""A machine: a directed multigraph whose nodes are ranks or switches, as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.network import Network
from synth_models.fabric.problem.abilities import Abilities
from synth_models.fabric.problem.exact import exact


@dataclass(frozen=True, eq=False)
class Machine:
    """Ranks and switches joined by links.

    Attributes
    ----------
    network : Network
        All nodes and links; bandwidths in bytes/s, latencies in seconds.
    is_switch : bool array, shape (nodes,)
        True for a switch, False for a rank.
    group : int64 array, shape (links,)
        Number of the group whose links take turns, -1 for none. A group carries one transfer at a time, each for as
        long as the link it uses is occupied (two ports behind one NIC, a bus).
    names : tuple of str, shape (nodes,)
        What people call the nodes.
    group_names : tuple of str
        What people call the groups.
    kept : int64 array, shape (links,), or None
        Where links were taken out: the number that every link had before (:attr:`file_links`).
    stated : Abilities or None
        What its switches copy and add, None where none does either (:attr:`abilities`).
    ticks_per_s : int or None
        The clock of all schedules on it that are to be put together, where they fit.
    """

    network: Network
    is_switch: BoolArray
    group: IntArray
    names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    kept: IntArray | None = None
    stated: Abilities | None = None
    ticks_per_s: int | None = None

    @cached_property
    def abilities(self) -> Abilities:
        """What every switch copies and adds."""
        return Abilities.none(self.nodes) if self.stated is None else self.stated

    @property
    def nodes(self) -> int:
        """Ranks and switches."""
        return self.network.nodes

    @property
    def links(self) -> int:
        """Number of links."""
        return self.network.links

    @property
    def file_links(self) -> IntArray:
        """The number of every link in the whole network, nothing taken out, shape (links,)."""
        return np.arange(self.links, dtype=np.int64) if self.kept is None else self.kept

    @cached_property
    def ranks(self) -> IntArray:
        """Node numbers of the ranks, ascending."""
        return np.flatnonzero(~self.is_switch).astype(np.int64)

    def reversed(self) -> Machine:
        """The machine with every link from its end to its start; numbers of links and nodes stay. Always the same."""
        return self._reversed

    @cached_property
    def _reversed(self) -> Machine:
        back = None if self.stated is None else self.stated.reversed()
        return replace(self, network=self.network.reversed(), kept=None, stated=back)

    def without(self, links: Iterable[int], nodes: Iterable[int]) -> Machine:
        """The machine without these links and without the links of these nodes; node numbers stay, links move up."""
        keep = np.ones(self.links, dtype=bool)
        keep[list(links)] = False
        gone = np.zeros(self.nodes, dtype=bool)
        gone[list(nodes)] = True
        keep &= ~(gone[self.network.src] | gone[self.network.dst])
        if keep.all():
            return self
        old = self.network
        network = Network(
            old.nodes,
            np.stack([old.src[keep], old.dst[keep]], axis=1),
            old.bandwidth[keep],
            old.latency[keep],
            kind=old.kind,
            grid=old.grid,
        )
        network.positions = old.positions
        left = self.file_links[keep]
        return replace(self, network=network, group=self.group[keep], kept=left)

    def slowed(self, shares: Mapping[tuple[int, int], Fraction]) -> Machine:
        """The machine with only a share of the bandwidth left on all links from a node to another, each rounded to the
        nearest float."""
        if not shares:
            return self
        old = self.network
        ends = zip(old.src.tolist(), old.dst.tolist(), old.bandwidth.tolist(), strict=True)
        left = [float(exact(rate) * shares[u, v]) if (u, v) in shares else rate for u, v, rate in ends]
        links = np.stack([old.src, old.dst], axis=1)
        network = Network(old.nodes, links, left, old.latency, kind=old.kind, grid=old.grid)
        network = network.shown_as(old.names, old.positions)
        return replace(self, network=network, kept=None)

    def parts_of(self, members: Sequence[int]) -> list[list[int]]:
        """The members by strongly connected component, a component's members together, in the order of the first."""
        left = [int(member) for member in members]
        if self.network.cut_off_pair() is None:
            return [left] if left else []
        found, backwards = [], self.reversed()
        while left:
            alike = self.reached_from(left[0]) & backwards.reached_from(left[0])
            found.append([member for member in left if alike[member]])
            left = [member for member in left if not alike[member]]
        return found

    @cached_property
    def component(self) -> list[int]:
        """Of every node the number of its component: nodes that reach each other over links."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        net = self.network
        joined = csr_array((np.ones(len(net.src)), (net.src, net.dst)), shape=(self.nodes, self.nodes))
        found: list[int] = connected_components(joined, connection="strong")[1].tolist()
        return found

    def reached_from(self, node: int) -> BoolArray:
        """Which nodes can be reached from ``node``, shape (nodes,)."""
        found: BoolArray = reached(self.network, node)
        return found


def reached(network: Network, node: int) -> Any:
    """Which nodes can be reached from ``node`` over links, shape (nodes,), bool."""
    return network.hops_from(node) >= 0
