"""Bounds from their certificates alone; the proofs stand in ``bounds/load.py``. Imports no method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.text.untrusted import choice, is_finite, whole_numbers
from synth_models.mlfm.check.replay import working_links
from synth_models.mlfm.instance import MLFMInstance

MAX_WEIGHT = 10**9  # of a link in a certificate


def check_bound(instance: MLFMInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Verify a bound on the number of phases from its certificate alone.

    ``binding`` is ``ranks`` (the server that sends or receives most makes one transfer a phase; of a whole
    all-to-all all make N) or ``links``: with weights w on links, every
    transfer uses up at least the weighted length of its shortest allowed route and a phase offers at most the
    weights' sum, so phases >= sum of lengths / sum of weights. ``links`` holds rows ``[leaf, column, 0 up or 1 down]``,
    none twice, ``weights`` whole numbers from 0 to :data:`MAX_WEIGHT`.
    """
    try:
        if choice(certificate, "binding", "ranks", "links") == "ranks":
            proven = _most_turns(instance)
        else:
            proven = weighted_bound(instance, *_weights(instance, certificate))
    except ValueError as error:
        return [f"the bound's certificate cannot be read: {error}"]
    return [] if -np.inf < bound <= proven else [f"the certificate proves {proven} phases, not {bound:g}"]


def refutes(options: Mapping[str, Any], bound: float, certificate: Mapping[str, Any]) -> bool:
    """Whether fewer ``phases`` are asked for than a server has transfers, which no congestion makes up for."""
    phases = options.get("phases", np.inf)
    return is_finite(phases) and bool(phases < bound) and certificate.get("binding") == "ranks"


def _weights(instance: MLFMInstance, certificate: Mapping[str, Any]) -> tuple[Any, Any]:
    """Weights on up- and on down-links, both of shape (leaves, columns). Raises ``ValueError``."""
    leaves, columns = instance.leaves, instance.columns
    shape = (2, leaves, columns)
    links = whole_numbers(certificate, "links", 0, max(shape), (None, 3))
    weights = whole_numbers(certificate, "weights", 0, MAX_WEIGHT, (len(links),))
    leaf, column, way = links.T
    if (links >= np.array([leaves, columns, 2])).any():
        raise ValueError("links names a link that does not exist")
    if len(np.unique(links, axis=0)) != len(links):
        raise ValueError("links names a link twice")
    both = np.zeros(shape, dtype=np.int64)
    both[way, leaf, column] = weights
    return both[0], both[1]


def weighted_bound(instance: MLFMInstance, up: Any, down: Any) -> int:
    """The phases that link weights prove, rounded up. ``up``, ``down``: whole numbers, shape (leaves, columns).

    Raises ``ValueError`` when all weights are 0 or a pair of the job's leaves has no allowed route.
    """
    far = 1 << 50
    alive = working_links(instance)
    up, down = np.where(alive, up, far), np.where(alive, down, far)
    leaves, columns = alive.shape
    column = np.arange(leaves) % columns
    # one spine: between columns the spine is given, within a column the cheapest is taken
    one = up[:, column] + down[:, column].T
    for j in range(columns):
        mine = np.flatnonzero(column == j)
        one[np.ix_(mine, mine)] = (up[mine][:, None, :] + down[mine][None, :, :]).min(axis=2)
    job, per_leaf = np.unique(instance.server_leaf, return_counts=True)
    length = one[np.ix_(job, job)]
    if instance.routes == "detour":
        for q, leaf in enumerate(job):
            third = (column != column[leaf])[:, None] & (column[:, None] != column[job][None, :])
            two = np.where(third, one[leaf][:, None] + one[:, job], 2 * far).min(axis=0)
            length[q] = np.minimum(length[q], two)
    np.fill_diagonal(length, 0)
    asked = _between_leaves(instance, job, per_leaf)
    length[asked == 0] = 0
    if (length >= far).any():
        raise ValueError("some pair of leaves has no allowed route")
    total = int(up[alive].sum() + down[alive].sum())
    if total <= 0:
        raise ValueError("all weights are 0")
    needed = sum(int(flows) * int(far) for flows, far in zip(asked.ravel(), length.ravel(), strict=True))
    return -(-needed // total)


def _most_turns(instance: MLFMInstance) -> int:
    """The transfers of the server that sends or receives most."""
    if instance.demand is None:
        return instance.ranks
    working = set(map(tuple, instance.servers.tolist()))
    turns: Counter[tuple[str, Any]] = Counter()
    for pair in instance.demand:
        if pair.source in working and pair.target in working:
            turns["out", pair.source] += pair.count
            turns["in", pair.target] += pair.count
    return max(turns.values(), default=0)


def _between_leaves(instance: MLFMInstance, job: Any, per_leaf: Any) -> Any:
    """The transfers between the leaves with servers, shape (Q, Q)."""
    if instance.demand is None:
        return np.outer(per_leaf, per_leaf)
    source, target, count = instance.pairs.T
    asked = np.zeros((len(job), len(job)), dtype=np.int64)
    place = np.searchsorted(job, instance.server_leaf)
    np.add.at(asked, (place[source], place[target]), count)
    return asked
