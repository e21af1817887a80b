"""Where ranks meet: planes of switches, and the two halves of every route through one.

A *plane* is a set of switches joined to each other, taken alone. A rank has a *port* at every plane that its links lead
to: links out to the plane's *hub*, and links in from there. The hub is the switch that is nearest to all ranks of the
plane; of several as near, routes use all in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import Rows, picked, rows_of, starts

LONGEST = 16  # links from a rank to a hub
MOST_HUBS = 64  # of a plane


class Half(NamedTuple):
    """``out``, ``into``: links from the rank to the hub and back, in their order."""

    out: tuple[int, ...]
    into: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ports:
    """All ports, those of one rank one behind the other.

    ``rank`` (place in the group), ``plane``: shape (ports,). ``first``: of every rank its first port, shape
    (ranks + 1,). ``island``: of every rank, shape (ranks,). ``halves``: of every port one for each hub of its plane.
    """

    rank: IntArray
    plane: IntArray
    first: IntArray
    island: IntArray
    halves: tuple[tuple[Half, ...], ...]

    @classmethod
    def of(cls, instance: FabricInstance) -> Ports:
        """Those of a machine. Raises :class:`UnsupportedError` where ranks are joined without switches."""
        machine, members = instance.machine, instance.members
        place = {rank: k for k, rank in enumerate(members)}
        island = np.zeros(len(members), dtype=np.int64)
        for number, box in enumerate(instance.boxes):
            island[[place[rank] for rank in box]] = number
        rows: list[tuple[int, int, tuple[Half, ...]]] = []
        for plane, switches in enumerate(_planes(machine)):
            for rank, halves in _halves(machine, switches).items():
                if rank in place:
                    rows.append((place[rank], plane, halves))
        rows.sort(key=lambda row: row[:2])
        owner = np.array([row[0] for row in rows], dtype=np.int64)
        if len(np.unique(owner)) < len(members):
            raise UnsupportedError("some rank is behind no switch")
        first = np.searchsorted(owner, np.arange(len(members) + 1)).astype(np.int64)
        return cls(owner, np.array([row[1] for row in rows], dtype=np.int64), first, island, tuple(r[2] for r in rows))

    def routes(self, out: IntArray, into: IntArray, turn: IntArray) -> Rows:
        """The links from each port ``out`` to the port ``into`` of its plane, by the hub whose ``turn`` it is, or less
        far; shape (routes,) each."""
        halves = rows_of([links for of_port in self.halves for half in of_port for links in half])
        hubs = np.array([len(of_port) for of_port in self.halves], dtype=np.int64)
        first = starts(hubs)
        pair = np.stack([first[out], first[into]], axis=1) + (turn % hubs[out])[:, None]
        rows, links = picked(halves, (2 * pair + [0, 1]).reshape(-1))
        return rows[::2], links

    def pairs(self, holds: BoolArray, wants: BoolArray) -> tuple[IntArray, IntArray]:
        """The number of the port's pair: towards each island, -1 for none, shape (ports, islands), and in its own,
        shape (ports,). Who sends to ports of its own pair disturbs few others.

        ``holds``: ports of holders: each is paired with one port, or as many as there are for it, among those of all
        islands that want something (``wants``, shape (islands,)). Any other port is paired with the one of its place in
        every other island."""
        islands, ports = int(self.island.max()) + 1, len(self.rank)
        home = self.island[self.rank]
        into, out = np.zeros(ports, dtype=np.int64), np.full((ports, islands), -1, dtype=np.int64)
        for plane in range(int(self.plane.max()) + 1):
            here = np.flatnonzero(self.plane == plane)
            for i in range(islands):
                mine = here[home[here] == i]
                into[mine] = np.arange(len(mine))
            senders, receivers = here[holds[here]], here[wants[home[here]]]
            rest = here[~holds[here]]
            out[rest] = into[rest][:, None]
            pairs = min(len(senders), len(receivers))
            for side in range(pairs):
                few = senders[side * len(senders) // pairs : (side + 1) * len(senders) // pairs]
                many = receivers[side * len(receivers) // pairs : (side + 1) * len(receivers) // pairs]
                for port in many[::-1].tolist():
                    out[few, home[port]] = into[port]
        return out, into

    def resources(self, machine: Machine) -> tuple[IntArray, IntArray]:
        """Of every port what the halves of its first hub occupy, links or groups (number of links + group), -1 behind
        the last: shape (2, ports, longest), out and in; the link of each likewise."""
        longest = max(len(half) for halves in self.halves for half in halves[0])
        link = np.full((2, len(self.halves), longest), -1, dtype=np.int64)
        for port, halves in enumerate(self.halves):
            for way, links in enumerate(halves[0]):
                link[way, port, : len(links)] = links
        group = machine.group[link]
        resource = np.where(link < 0, -1, np.where(group >= 0, machine.links + group, link))
        return resource.astype(np.int64), link


def _planes(machine: Machine) -> list[IntArray]:
    """The switches of every plane."""
    net = machine.network
    both = machine.is_switch[net.src] & machine.is_switch[net.dst]
    joined = csr_array((np.ones(int(both.sum())), (net.src[both], net.dst[both])), shape=(machine.nodes, machine.nodes))
    _, number = connected_components(joined, directed=False)
    switches = np.flatnonzero(machine.is_switch)
    return [switches[number[switches] == k] for k in np.unique(number[switches]).tolist()]


def _halves(machine: Machine, switches: IntArray) -> dict[int, tuple[Half, ...]]:
    """Of every rank at the plane the halves of its routes by the plane's hubs; none where the plane has no hub."""
    net = machine.network
    inside = np.zeros(machine.nodes, dtype=bool)
    inside[switches] = True
    links = np.flatnonzero((inside[net.src] | inside[net.dst]) & (net.src != net.dst))
    leaves, enters = links[inside[net.src[links]]], links[inside[net.dst[links]]]  # a rank forwards nothing
    counted = np.bincount(net.src[leaves], minlength=machine.nodes)[switches]
    order = switches[np.argsort(-counted, kind="stable")][:MOST_HUBS]
    far = [_hops(machine, *ways, order) for ways in ((leaves, False), (enters, True))]
    near = (np.maximum(*far) <= LONGEST) & ~machine.is_switch
    total = np.where(near, far[0] + far[1] - 1e9, 0.0).sum(axis=1)
    total[~near.any(axis=1)] = np.inf
    chosen = []
    for hub in order[(total == total.min()) & np.isfinite(total)].tolist():
        into, out = _paths(machine, leaves, hub, False), _paths(machine, enters, hub, True)
        chosen.append({rank: Half(out[rank], into[rank]) for rank in into.keys() & out.keys()})
    return {rank: tuple(halves[rank] for halves in chosen) for rank in sorted(chosen[0])} if chosen else {}


def _hops(machine: Machine, links: IntArray, backwards: bool, hubs: IntArray) -> FloatArray:
    """Over how many of the links every node is from each hub, or to it, infinite for none: shape (hubs, nodes)."""
    net = machine.network
    ends = (net.dst[links], net.src[links]) if backwards else (net.src[links], net.dst[links])
    there, number = np.unique(np.concatenate([hubs, *ends]), return_inverse=True)
    at, source, target = np.split(number.reshape(-1), [len(hubs), len(hubs) + len(links)])
    graph = csr_array((np.ones(len(links)), (source, target)), shape=(len(there), len(there)))
    found = np.full((len(hubs), machine.nodes), np.inf)
    found[:, there] = dijkstra(graph, indices=at, unweighted=True)
    return found


def _paths(machine: Machine, links: IntArray, hub: int, backwards: bool) -> dict[int, tuple[int, ...]]:
    """Of every rank the links from the hub, or to it, with fewest of them through switches alone."""
    net = machine.network
    ends = (net.dst[links], net.src[links]) if backwards else (net.src[links], net.dst[links])
    by_rate = np.argsort(net.bandwidth[links], kind="stable")  # of parallel links the quickest stays
    link_at = dict(
        zip(
            zip(ends[0][by_rate].tolist(), ends[1][by_rate].tolist(), strict=True), links[by_rate].tolist(), strict=True
        )
    )
    graph = csr_array((np.ones(len(links)), ends), shape=(machine.nodes, machine.nodes))
    order, before = breadth_first_order(graph, hub, directed=True)
    found: dict[int, tuple[int, ...]] = {}
    for node in order.tolist():
        if machine.is_switch[node]:
            continue
        path, at = [], node
        while at != hub:
            path.append(link_at[int(before[at]), at])
            at = int(before[at])
        if len(path) <= LONGEST:
            found[node] = tuple(path) if backwards else tuple(path[::-1])
    return found
