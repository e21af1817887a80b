"""The workloads of the paper's Figures 5, 8, 9 and 10, with the parameters that it leaves open filled in.

Given: 800 Gbit/s per port (100e9 bytes/s), alpha = delta = 500 ns, 1 KiB … 1 GiB, reconfiguration delays of 10 ns …
10 ms, 64 GPUs in Figure 8. Candidate topologies are those of its appendix A: shifted rings, a generalised Kautz
network, shifted tori, and every step's own pattern; in Figure 5, whose simulations are of one dimension, rings and
patterns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synth.making import make
from synth_models.harvest.family import FAMILY
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.topologies import (
    Topology,
    kautz,
    one_way_ring,
    shifted_ring,
    static_tori,
    torus,
    torus_sides,
)
from synth_papers.harvest.heatmaps import Grid, Rates, grid, rates, ticks

GPUS, BANDWIDTH, ALPHA, DELTA = 64, 100e9, 500e-9, 500e-9
KIB, MIB, GIB = 1024.0, 1024.0**2, 1024.0**3
SIZES = ticks(KIB, GIB, 21)
DELAYS = ticks(10e-9, 10e-3, 25)


@dataclass(frozen=True)
class Workload:
    """A row of heatmaps: what runs (``given``, as for ``synth make harvest``), on how many ports, against which static
    topologies (the fastest counts), and the candidates; both are some of ``ring``, ``torus`` and ``kautz``."""

    name: str
    title: str
    given: tuple[tuple[str, str], ...]
    ports: int
    static: tuple[str, ...]
    candidates: tuple[str, ...]

    def instance(self, message: float = MIB, delay: float = 1e-5, gpus: int = GPUS) -> HarvestInstance:
        """The workload as an instance for one message size (bytes) and one reconfiguration delay (s)."""
        fixed = {
            "gpus": gpus,
            "ports": self.ports,
            "port_bandwidth": BANDWIDTH,
            "alpha": ALPHA,
            "delta": DELTA,
            "message_bytes": message,
            "reconfiguration_delay": delay,
            "name": self.name,
        }
        words = {key: repr(value) for key, value in fixed.items()} | {"name": self.name} | dict(self.given)
        instance = make(FAMILY, words)
        assert isinstance(instance, HarvestInstance)
        return instance


def _of(algorithm: str, **more: object) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in {"algorithm": algorithm, **more}.items())


RING, TORUS = ("ring",), ("torus",)
EVERY = ("ring", "torus", "kautz")
FIGURE_5 = (
    Workload("recursive-doubling-64-p1", "Recursive doubling, 1 port", _of("recursive_doubling"), 1, RING, RING),
    Workload("swing-64-p2", "Swing, 2 ports", _of("swing"), 2, RING, RING),
    Workload("alltoall-64-p1", "All-to-all, direct, 1 port", _of("alltoall_direct"), 1, RING, RING),
)
TORI_OF_64 = ((8, 8), (4, 16), (2, 32), (4, 4, 4), (2, 4, 8), (2, 2, 16))  # all of two or three sides, powers of two


def _swing_on(sides: tuple[int, ...]) -> Workload:
    """Swing, mirrored, on a torus: a port for either direction of every dimension."""
    torus, ports = "x".join(map(str, sides)), 2 * len(sides)
    given = _of("swing_torus", torus=torus)
    return Workload(f"swing-torus-{torus}-p{ports}", f"Swing on {torus}, {ports} ports", given, ports, TORUS, EVERY)


FIGURE_8 = tuple(_swing_on(sides) for sides in TORI_OF_64)
_TWO, _FOUR = _of("", radix=2)[1:], _of("", radix=4, sends=3)[1:]
FIGURE_9 = (
    *(
        Workload(f"bruck-{short}-r{r}-p{r}", f"Bruck {short}, r = {r}, {r} ports", _of(name) + more, r, EVERY, EVERY)
        for short, name in (("alltoall", "bruck_alltoall"), ("allgather", "bruck_allgather"))
        for r, more in ((2, _TWO), (4, _FOUR))
    ),
    Workload("binomial-broadcast-p2", "Binomial broadcast, 2 ports", _of("binomial_broadcast"), 2, EVERY, EVERY),
    Workload("binary-broadcast-p2", "Binary broadcast, 2 ports", _of("binary_broadcast"), 2, EVERY, EVERY),
)
FIGURE_10 = tuple(
    Workload(f"alltoall-64-p{p}", f"All-to-all, direct, {p} ports", _of("alltoall_direct"), p, (), EVERY)
    for p in (2, 4, 6)
)
ALL = (*FIGURE_5, *FIGURE_8, *FIGURE_9, *FIGURE_10)


def published_candidates(instance: HarvestInstance, kinds: Sequence[str] = EVERY) -> list[Topology]:
    """Shifted rings, shifted tori and a generalised Kautz network; the rates add the steps' own topologies."""
    found = shifted_rings(instance) if "ring" in kinds else []
    found += shifted_tori(instance) if "torus" in kinds else []
    network = kautz(instance.gpus, instance.ports) if "kautz" in kinds else None
    return found + ([network] if network else [])


def shifted_rings(instance: HarvestInstance) -> list[Topology]:
    """One way and both ways, by every distance that is a step's, or by all when the steps are shifts."""
    gpus, ports = instance.gpus, instance.ports
    distances = {int(d) for pairs in instance.pairs for d in (pairs[:, 1] - pairs[:, 0]) % gpus}
    shifts = range(1, gpus) if all(step.shift is not None for step in instance.steps) else sorted({1, *distances})
    both_ways = [shifted_ring(gpus, ports, shift) for shift in shifts if 2 * shift <= gpus] if ports > 1 else []
    return [one_way_ring(gpus, ports, shift) for shift in shifts] + both_ways


def shifted_tori(instance: HarvestInstance) -> list[Topology]:
    """The static ones, and those of the most even sides with their links shifted."""
    found = [*static_tori(instance)]
    for sides in filter(None, (torus_sides(instance.gpus, 2), torus_sides(instance.gpus, 3))):
        moved = (torus(sides, instance.ports, shift) for shift in range(2, max(sides) // 2))
        found += [one for one in moved if one is not None]
    return found


def rate(workload: Workload) -> Rates:
    """The workload's profiles on its candidates."""
    instance = workload.instance()
    return rates(instance, published_candidates(instance, workload.candidates))


def static_indices(rated: Rates, kinds: Sequence[str]) -> list[int]:
    """Which of the rated topologies compete as static ones; kinds that the ports do not allow are left out."""
    instance = rated.instance
    gpus, ports = instance.gpus, instance.ports
    found: list[Topology] = []
    if "ring" in kinds:
        found.append(shifted_ring(gpus, ports))
    if "torus" in kinds:
        found += static_tori(instance)
    network = kautz(gpus, ports) if "kautz" in kinds else None
    found += [network] if network else []
    return [rated.index(one) for one in found]


def heatmap(workload: Workload, rated: Rates) -> Grid:
    """The workload's times over the published ranges."""
    return grid(rated, SIZES, DELAYS, static_indices(rated, workload.static))
