"""Topologies that keep circuits from one step to the next, for delays that depend on what changes.

Where every change costs the same, a topology may as well use all ports. Where a circuit that is set up costs time, a
topology that joins a step's pairs should else keep what the one before has, or have already what the next one wants:
the first topology is free. Ours; no guarantee.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.shared_topologies import shared_topologies
from synth_models.harvest.parts.topologies import Topology, candidates, count_links, direct

MOST_SHIFTS = 16  # different distances of the steps for which jumping rings are listed


def tried_topologies(instance: HarvestInstance) -> list[Topology]:
    """All that the methods over candidates try: :func:`candidates`, those of
    :mod:`synth_models.harvest.parts.shared_topologies` where volumes differ, and :func:`kept_topologies` where delays
    depend on what changes; each link count once."""
    found = candidates(instance) + shared_topologies(instance)
    if instance.delay_varies:
        found += kept_topologies(instance) + jumping_rings(instance)
    unique: dict[bytes, Topology] = {}
    for topology in found:
        unique.setdefault(topology.key(), topology)
    return list(unique.values())


def kept_topologies(instance: HarvestInstance) -> list[Topology]:
    """Two chains over the steps, each with one link a pair and with as many as all pairs can have. Backwards: the
    step's pairs joined, and beside them what fits of the next step's topology. Then forwards from the first of those:
    the step's pairs joined, and what fits of the topology before. Steps with more partners than ports hand on what they
    got."""
    gpus, ports = instance.gpus, instance.ports
    found: list[Topology] = []
    for word, parallel in (("", True), ("single ", False)):
        joined = [_joined(pairs, gpus, ports, parallel) for pairs in instance.demands]
        last = len(joined) - 1
        links = beside(joined[last], (), gpus, ports)
        for i in range(last, -1, -1):
            links = beside(joined[i], (links,), gpus, ports)
            found.append(Topology(f"{word}direct {i}, ready for later steps", links))
        for i in range(1, last + 1):
            links = beside(joined[i], (links,), gpus, ports)
            found.append(Topology(f"{word}direct {i}, the rest as before", links))
    return found


def jumping_rings(instance: HarvestInstance) -> list[Topology]:
    """For steps that are shifts: rings of which one link in q is another. Along the ring with shift r every q-th GPU
    sends to ``u + s - (q - 1) r``, the others to ``u + r``: q hops lead from every GPU to the one s further, and n/q
    circuits make this of the ring, or of the same for another s. r is 1 or a step's shift, q > 1, ``q r`` divides s and
    the number of GPUs."""
    gpus, found = instance.gpus, list[Topology]()
    shifts = sorted({int(d) for pairs in instance.demands for d in np.unique((pairs[:, 1] - pairs[:, 0]) % gpus)})
    if len(shifts) > len(instance.steps) or len(shifts) > MOST_SHIFTS:
        return found  # not shifts, or too many of them
    everyone = np.arange(gpus, dtype=np.int64)
    for base in sorted({1, *shifts}):
        for shift in shifts:
            for q in range(2, shift // base + 1):
                if shift % (q * base) or gpus % (q * base) or shift == q * base:
                    continue
                jumps = (everyone // base) % q == 0
                to = (everyone + np.where(jumps, shift - (q - 1) * base, base)) % gpus
                name = f"ring {base}, one link in {q} jumps, to {shift}"
                found.append(Topology(name, count_links(gpus, everyone, to, instance.ports)))
    return found


def _joined(pairs: IntArray, gpus: int, ports: int, parallel: bool) -> IntArray:
    links = direct(pairs, gpus, ports)
    if links is None:
        return np.zeros((0, 3), dtype=np.int64)
    return links if parallel else count_links(gpus, pairs[:, 0], pairs[:, 1])


def beside(links: IntArray, others: tuple[IntArray, ...], gpus: int, ports: int) -> IntArray:
    """``links`` and, in their order, those of ``others`` that add to them and for which both ends have a port free."""
    counts = {(u, v): count for u, v, count in links.tolist()}
    out = (ports - np.bincount(links[:, 0], links[:, 2], gpus).astype(np.int64)).tolist()
    into = (ports - np.bincount(links[:, 1], links[:, 2], gpus).astype(np.int64)).tolist()
    for u, v, count in (row for other in others for row in other.tolist()):
        more = min(count - counts.get((u, v), 0), out[u], into[v])
        if more > 0:
            counts[u, v] = counts.get((u, v), 0) + more
            out[u] -= more
            into[v] -= more
    return np.array([(u, v, counts[u, v]) for u, v in sorted(counts)], dtype=np.int64).reshape(-1, 3)
