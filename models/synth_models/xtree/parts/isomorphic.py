"""Networks that are one network with other numbers, and their schedules carried over.

A timestep is the same on links of any bandwidth and latency, so only how many links lead from node to node counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import isomorphisms
from synth.network import Network
from synth.schedule import Schedule

MOST_NODES = 512  # a search looks at all pairs of nodes, and goes a node deeper at a time


def renumberings(source: Network, target: Network) -> Iterator[IntArray]:
    """The images of the nodes, shape (nodes,), that turn ``source`` into ``target``. None beyond ``MOST_NODES``.

    Backtracking over what tells pairs of nodes apart: links between them, hops, and how all others lie to each.
    """
    if source.nodes != target.nodes or source.links != target.links or source.nodes > MOST_NODES:
        return
    one, other = _pairs(source), _pairs(target)
    if np.array_equal(np.sort(np.diagonal(one)), np.sort(np.diagonal(other))):
        yield from (np.array(image, dtype=np.int64) for image in isomorphisms(one, other))


@lru_cache(maxsize=64)
def _pairs(network: Network) -> IntArray:
    """A number for every ordered pair of nodes, shape (nodes, nodes), which any renumbering keeps: how many links, how
    many hops; on the diagonal a hash of all that a node's pairs are."""
    links = np.zeros((network.nodes, network.nodes), dtype=np.int64)
    np.add.at(links, (network.src, network.dst), 1)
    found: IntArray = links * (2 * network.nodes) + network.distances
    rows = np.concatenate([np.sort(found, axis=1), np.sort(found.T, axis=1)], axis=1)
    np.fill_diagonal(found, [hash(row.tobytes()) for row in rows])
    return found


def carried(schedule: Schedule, source: Network, target: Network, image: IntArray, chunks: int) -> Schedule:
    """A schedule of ``chunks`` chunks a node on ``source``, on ``target``, where node v of the one is ``image[v]``."""
    links = np.empty(source.links, dtype=np.int64)
    links[np.lexsort((image[source.dst], image[source.src]))] = np.lexsort((target.dst, target.src))
    owner, number = np.divmod(schedule.chunk, chunks)
    return Schedule.of(schedule.step, links[schedule.link], image[owner] * chunks + number, schedule.adds)
