"""Topologies that the methods try: shifted rings, tori, generalised Kautz networks, and those made from the steps.

A topology is its link counts: an array of rows (source, destination, parallel links), each pair of ends once, no loops,
sorted. Adding links never makes a step slower, so all of these use as many of the ports as their shape allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.network import builders
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import most_partners, pattern_degree, volumes

HALVINGS = 60  # of the range of loads of a direct topology
NO_LINKS: IntArray = np.zeros((0, 3), dtype=np.int64)
ALL_SHIFTS_UP_TO = 64  # GPUs; beyond, rings are shifted only by the distances that the steps have


@dataclass(frozen=True)
class Topology:
    """``links`` has shape (links, 3): source, destination, number of parallel links, sorted by the ends."""

    name: str
    links: IntArray

    def key(self) -> bytes:
        """Equal for equal link counts."""
        return self.links.tobytes()


def count_links(gpus: int, src: IntArray, dst: IntArray, count: IntArray | int = 1) -> IntArray:
    """Rows (source, destination, count), sorted; the same ends are added up and loops are left out."""
    keys = np.asarray(src, dtype=np.int64) * gpus + dst
    weight = np.broadcast_to(np.asarray(count, dtype=np.int64), keys.shape)
    keep = np.asarray(src) != np.asarray(dst)
    ends, at = np.unique(keys[keep], return_inverse=True)
    total = np.zeros(len(ends), dtype=np.int64)
    np.add.at(total, at, weight[keep])
    return np.stack([ends // gpus, ends % gpus, total], axis=1)


def circulant(gpus: int, counts: dict[int, int]) -> IntArray:
    """Links ``u -> u + shift`` for every shift with its number of parallel links, at every GPU."""
    shifts = np.array(list(counts), dtype=np.int64)
    number = np.array(list(counts.values()), dtype=np.int64)
    src = np.repeat(np.arange(gpus, dtype=np.int64), len(shifts))
    dst = (src + np.tile(shifts, gpus)) % gpus
    return count_links(gpus, src, dst, np.tile(number, gpus))


def one_way_ring(gpus: int, ports: int, shift: int = 1) -> Topology:
    """All ports of u lead to ``u + shift``; several rings when shift and gpus have a common divisor."""
    return Topology(f"one-way ring {shift}", circulant(gpus, {shift % gpus: ports}))


def shifted_ring(gpus: int, ports: int, shift: int = 1) -> Topology:
    """Half of the ports (the larger half) lead to ``u + shift``, the others to ``u - shift``; one-way with one port."""
    forward, back = (ports + 1) // 2, ports // 2
    counts = {shift % gpus: forward}
    if back:
        counts[-shift % gpus] = counts.get(-shift % gpus, 0) + back
    return Topology(f"ring {shift}", circulant(gpus, counts))


def kautz(gpus: int, ports: int) -> Topology | None:
    """The generalised Kautz network of degree ``ports`` (loops left out); None with one port or too many."""
    if not 2 <= ports < gpus:
        return None
    network = builders.kautz(gpus, ports)
    return Topology("kautz", count_links(gpus, np.asarray(network.src), np.asarray(network.dst)))


def torus(sides: Sequence[int], ports: int, shift: int = 1) -> Topology | None:
    """Row-major torus whose links go ``shift`` positions along each dimension.

    Both ways where there are two ports a dimension (several parallel links where there are more), one way where there
    is one; None with fewer ports.
    """
    dimensions = sum(side > 1 for side in sides)
    ways = (1, -1) if ports >= 2 * dimensions else (1,)
    parallel = ports // (len(ways) * dimensions)
    if parallel == 0:
        return None
    gpus = int(np.prod(sides))
    ids = np.arange(gpus, dtype=np.int64).reshape(sides)
    src, dst = [], []
    for axis, side in enumerate(sides):
        if side == 1:
            continue
        for way in ways:
            src.append(ids.ravel())
            dst.append(np.roll(ids, -way * shift, axis).ravel())
    links = count_links(gpus, np.concatenate(src), np.concatenate(dst), parallel)
    words = (
        "x".join(map(str, sides)) + (f" shift {shift}" if shift != 1 else "") + ("" if len(ways) == 2 else " one-way")
    )
    return Topology(f"torus {words}", links)


def torus_sides(gpus: int, dimensions: int) -> tuple[int, ...] | None:
    """The most even sides >= 2 with that product, or None (gpus is prime, say)."""
    if dimensions == 1:
        return (gpus,) if gpus >= 2 else None
    for side in range(round(gpus ** (1 / dimensions)) + 1, 1, -1):
        if gpus % side == 0 and side**dimensions <= gpus:
            rest = torus_sides(gpus // side, dimensions - 1)
            if rest is not None:
                return (*rest, side)
    return None


def direct(pairs: IntArray, gpus: int, ports: int) -> IntArray | None:
    """Every pair of the step joined by parallel links, so many that the largest volume a link is the least (as many as
    all pairs can have where volumes are equal); None where a GPU has more partners than ports."""
    if most_partners(pairs) > ports:
        return None
    volume = volumes(pairs)
    low, high = pattern_degree(pairs) / ports / 2, float(volume.max())
    found = np.ones_like(volume)
    for _ in range(HALVINGS):
        load = (low + high) / 2
        count = np.ceil(volume / load).astype(np.int64)
        if all(np.bincount(pairs[:, side], count).max() <= ports for side in (0, 1)):
            found, high = count, load
        else:
            low = load
    return count_links(gpus, pairs[:, 0], pairs[:, 1], found)


def completed(links: IntArray, others: Iterable[IntArray], gpus: int, ports: int) -> IntArray:
    """``links`` with the free ports used up: first for the pairs of ``others`` in order, then GPU by GPU in a ring."""
    matrix = np.zeros((gpus, gpus), dtype=np.int64)
    matrix[links[:, 0], links[:, 1]] = links[:, 2]
    out, into = ports - matrix.sum(axis=1), ports - matrix.sum(axis=0)
    for pairs in others:
        if not out.any():
            break
        for u, v in pairs[(out[pairs[:, 0]] > 0) & (into[pairs[:, 1]] > 0), :2].tolist():
            if out[u] > 0 and into[v] > 0:
                matrix[u, v] += 1
                out[u] -= 1
                into[v] -= 1
    for u in np.flatnonzero(out).tolist():
        for v in [*range(u + 1, gpus), *range(u)]:
            if out[u] == 0:
                break
            taken = min(int(out[u]), int(into[v]))
            matrix[u, v] += taken
            out[u] -= taken
            into[v] -= taken
    src, dst = np.nonzero(matrix)
    return np.stack([src, dst, matrix[src, dst]], axis=1).astype(np.int64)


def step_topologies(instance: HarvestInstance) -> list[Topology]:
    """For every step its direct topology, the same with its free ports used for the steps that follow and precede, and
    the union of as many consecutive steps from there as fit into the ports. A step with more partners than ports has
    only the last: as many of its pairs as fit, those of large volume first, in their order."""
    gpus, ports, steps = instance.gpus, instance.ports, instance.demands
    found = []
    for i, pairs in enumerate(steps):
        links = direct(pairs, gpus, ports)
        later = [*steps[i + 1 :], *steps[:i][::-1]]
        if links is None:
            heaviest = pairs[np.argsort(-volumes(pairs), kind="stable")]
            found.append(Topology(f"part of step {i}", completed(NO_LINKS, [heaviest, *later], gpus, ports)))
            continue
        found.append(Topology(f"direct {i}", links))
        if links[:, 2].sum() < gpus * ports:
            found.append(Topology(f"direct {i} completed", completed(links, later, gpus, ports)))
        single = count_links(gpus, pairs[:, 0], pairs[:, 1])
        if ports > most_partners(pairs):
            found.append(Topology(f"steps from {i}", completed(single, later, gpus, ports)))
    return found


def ring_shifts(instance: HarvestInstance) -> list[int]:
    """Shifts worth a ring: all of them up to 64 GPUs when every step is a shift, else the distances of the steps."""
    gpus = instance.gpus
    if gpus <= ALL_SHIFTS_UP_TO and all(step.shift is not None for step in instance.steps):
        return list(range(1, gpus))
    distances: set[int] = {1}
    for pairs in {pairs.tobytes(): pairs for pairs in instance.pairs}.values():
        found = np.unique((pairs[:, 1] - pairs[:, 0]) % gpus)
        distances.update(np.minimum(found, gpus - found).tolist() if instance.ports > 1 else found.tolist())
    return sorted(distances)


def candidates(instance: HarvestInstance) -> list[Topology]:
    """All topologies that the methods over candidates try, each link count once; the cheap ones to rate come first."""
    gpus, ports = instance.gpus, instance.ports
    found = [Topology(one.name, _sorted(gpus, one.links)) for one in instance.candidates]
    shifts = ring_shifts(instance)
    found += [one_way_ring(gpus, ports, shift) for shift in shifts]
    if ports > 1:
        found += [shifted_ring(gpus, ports, shift) for shift in shifts if 2 * shift <= gpus]
    found += step_topologies(instance)
    found += static_tori(instance)
    for dimensions in (2, 3):
        sides = torus_sides(gpus, dimensions)
        for shift in range(2, max(sides) // 2 + 1) if sides else ():
            shifted = torus(sides, ports, shift) if sides else None
            found += [shifted] if shifted else []
    expander = kautz(gpus, ports)
    found += [expander] if expander else []
    unique: dict[bytes, Topology] = {}
    for topology in found:
        unique.setdefault(topology.key(), topology)
    return list(unique.values())


def static_tori(instance: HarvestInstance) -> list[Topology]:
    """The 2-D and 3-D tori that the ports allow, most even sides; the sides of a torus algorithm first."""
    gpus, ports = instance.gpus, instance.ports
    wanted = [torus_sides(gpus, dimensions) for dimensions in (2, 3)]
    given = str((instance.algorithm or {}).get("torus", ""))
    if all(side.isdecimal() for side in given.split("x")):
        sides = tuple(int(side) for side in given.split("x"))
        if int(np.prod(sides)) == gpus and min(sides) > 1:
            wanted.insert(0, sides)
    tori = [torus(sides, ports) for sides in dict.fromkeys(wanted) if sides is not None]
    return [topology for topology in tori if topology is not None]


def _sorted(gpus: int, links: Sequence[tuple[int, int, int]]) -> IntArray:
    rows = np.array(links, dtype=np.int64).reshape(-1, 3)
    return count_links(gpus, rows[:, 0], rows[:, 1], rows[:, 2])
