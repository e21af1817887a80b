"""Rings as strong as published: near the least time that links into a rank allow, and never worse for larger sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synth
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import out_trees
from synth_models.fabric.references.ring import cycles
from synth_models.fabric.references.ring import method as ring
from synth_models.fabric.references.ring.cycle_shares import shared
from synth_models.fabric.scheduling import chunks

KIB, GIB = 2**10, 2**30
EACH = {"bandwidth": "25GB/s", "latency": "0.5us"}


def made(collective: str, size: int, **keys: Any) -> FabricInstance:
    instance = synth.make("fabric", collective=collective, bytes=size, **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def seconds(instance: FabricInstance) -> float:
    found = ring.solve(instance, RunOptions().started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def table(folder: Path, edges: list[tuple[int, int, str]]) -> dict[str, Any]:
    """Links both ways from a file that does not say what the network is."""
    rows = [f"{a},{b},{rate},0.5us" for u, v, rate in edges for a, b in ((u, v), (v, u))]
    file = folder / "links.csv"
    file.write_text("\n".join(["src,dst,bandwidth,latency", *rows]) + "\n")
    return {"links": file}


def circulant(nodes: int, jumps: dict[int, str]) -> list[tuple[int, int, str]]:
    return [(u, (u + jump) % nodes, rate) for jump, rate in jumps.items() for u in range(nodes)]


def torus(rows: int, cols: int) -> dict[str, Any]:
    return {"network": "torus", "rows": rows, "cols": cols, **EACH}


def cube(dimension: int) -> dict[str, Any]:
    return {"network": "hypercube", "dimension": dimension, **EACH}


NETWORKS: dict[str, tuple[dict[str, Any], int, int]] = {  # with the ranks, and the links into each
    "4x4": (torus(4, 4), 16, 4),
    "6x6": (torus(6, 6), 36, 4),
    "4x4x4": ({**torus(4, 4), "layers": 4}, 64, 6),
    "cube 4": (cube(4), 16, 4),
    "cube 6": (cube(6), 64, 6),
    "3x5": (torus(3, 5), 15, 4),
    "2x3x4": ({**torus(2, 3), "layers": 4}, 24, 5),
    "cube 3": (cube(3), 8, 3),
    "cube 5": (cube(5), 32, 5),
}
SOME = ("4x4", "cube 4", "3x5", "cube 3")


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize(
    "name", [*SOME, *(pytest.param(name, marks=pytest.mark.long) for name in NETWORKS if name not in SOME)]
)
def test_within_a_hundredth_of_what_enters_a_rank(name: str, collective: str) -> None:
    """(n - 1) / n of 1 GiB enters (or leaves) every rank, of an allreduce twice: each contribution once summed up on
    its way to one place, and each sum back. No schedule is quicker than that over all links of a rank."""
    keys, ranks, links = NETWORKS[name]
    least = (2 if collective == "allreduce" else 1) * (ranks - 1) / ranks * GIB / (links * 25e9)
    assert least <= seconds(made(collective, GIB, **keys)) * (1 + 1e-9) <= 1.01 * least


@pytest.mark.long
def test_within_a_hundredth_of_the_certified_bound() -> None:
    instance = made("allreduce", GIB, **torus(6, 6))
    bound = synth.solve(instance, method="bound", time_limit=60).bound
    assert bound is not None
    assert bound <= seconds(instance) <= 1.01 * bound


MACHINES: dict[str, dict[str, Any]] = {
    "torus 3x4": torus(3, 4),
    "cube 3": cube(3),
    "dgx1": {"machine": "dgx1"},
    "mesh 3x3": {"network": "mesh", "rows": 3, "cols": 3, **EACH},
    "dgx-a100 x2": {"machine": "dgx-a100", "boxes": 2},
    "torus 6x6": torus(6, 6),
    "cube 5": cube(5),
}
JUMPS: dict[str, tuple[int, dict[int, str]]] = {
    "circulant 13": (13, {1: "25GB/s", 5: "25GB/s"}),
    "two speeds, 10": (10, {1: "25GB/s", 3: "50GB/s"}),
    "two speeds, 24": (24, {1: "25GB/s", 5: "50GB/s"}),
    "no common measure, 24": (24, {1: "30GB/s", 7: "47GB/s"}),
}
QUICK = ("torus 3x4", "dgx1", "two speeds, 10", "cube 3")


def timed(instance: FabricInstance) -> Fraction:
    """What ring says that its schedule takes, unreplayed."""
    return chunks.seconds(instance, ring.solve(instance, RunOptions().started_now()).solution)


def keys_of(name: str, folder: Path) -> dict[str, Any]:
    return MACHINES[name] if name in MACHINES else table(folder, circulant(*JUMPS[name]))


@pytest.mark.parametrize("name", ["cube 3", *(pytest.param(name, marks=pytest.mark.long) for name in QUICK[:-1])])
@pytest.mark.parametrize("size", [GIB, *(pytest.param(size, marks=pytest.mark.long) for size in (KIB, 128 * KIB))])
def test_twice_the_bytes_take_at_most_twice_as_long(name: str, size: int, tmp_path: Path) -> None:
    """A schedule for M bytes serves 2 M, each piece twice as large."""
    keys = keys_of(name, tmp_path)
    assert timed(made("allreduce", 2 * size, **keys)) <= 2 * timed(made("allreduce", size, **keys))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MACHINES, *JUMPS])
@pytest.mark.parametrize("collective", ["allreduce", "allgather", "broadcast"])
def test_from_1_kib_to_4_gib_no_doubling_takes_more_than_twice(name: str, collective: str, tmp_path: Path) -> None:
    took = [timed(made(collective, KIB << k, **keys_of(name, tmp_path))) for k in range(23)]
    assert all(later <= 2 * sooner for sooner, later in pairwise(took))


def sets_of(instance: FabricInstance) -> list[cycles.Cycles]:
    """All sets, each cycle of them through all ranks once, and each hop over links that lead there."""
    net, found = instance.machine.network, list(cycles.several(instance, 0))
    for one in found:
        for cycle, hops in zip(one.cycles, one.hops, strict=True):
            assert sorted(cycle) == sorted(instance.members)
            for u, v, hop in zip(cycle, (*cycle[1:], cycle[0]), hops, strict=True):
                nodes = [u, *(int(net.dst[e]) for route in hop for e in route)]
                assert [int(net.src[e]) for route in hop for e in route] == nodes[:-1]
                assert nodes[-1] == v
    return found


def carried(instance: FabricInstance, one: cycles.Cycles) -> Fraction:
    """Bytes/s of all cycles together, counted link by link."""
    shares, busy = one.shares or (1,) * len(one.cycles), dict[int, int]()
    for share, hops in zip(shares, one.hops, strict=True):
        for e in (e for hop in hops for route in hop for e in route):
            busy[e] = busy.get(e, 0) + share
    return sum(shares) / max(
        count / Fraction(float(instance.machine.network.bandwidth[e])) for e, count in busy.items()
    )


@pytest.mark.parametrize("name", [*list(JUMPS)[:3], pytest.param(list(JUMPS)[3], marks=pytest.mark.long)])
def test_rings_of_unequal_links(name: str, tmp_path: Path) -> None:
    """The sets carry what is said; where speeds are multiples of each other, all that links into a rank take, and else
    nearly all."""
    nodes, jumps = JUMPS[name]
    instance = made("allgather", GIB, **table(tmp_path, circulant(nodes, jumps)))
    found = sets_of(instance)
    assert all(carried(instance, one) == one.bandwidth for one in found)
    enters = 2e9 * sum(int(rate.removesuffix("GB/s")) for rate in jumps.values())
    best = float(max(one.bandwidth for one in found))
    assert best <= enters
    assert best >= (0.97 if name.startswith("no") else 1) * enters


@pytest.mark.parametrize("seed", range(4))
def test_the_network_is_known_by_its_links(seed: int, tmp_path: Path) -> None:
    """A torus of 3x4 with its ranks renumbered, from a file: four rings at 25 GB/s, as of the torus itself."""
    name = np.random.default_rng(seed).permutation(12).tolist()
    net = made("allgather", GIB, **torus(3, 4)).machine.network
    edges = {(min(u, v), max(u, v)) for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True)}
    found = sets_of(made("allgather", GIB, **table(tmp_path, [(name[u], name[v], "25GB/s") for u, v in sorted(edges)])))
    assert max((one.bandwidth, len(one.cycles)) for one in found) == (Fraction(100 * 10**9), 4)


def test_shares_are_those_of_the_linear_program() -> None:
    """Of two cycles one goes over a link of 1 GB/s and one over a link of 3 GB/s: they carry a part and three."""
    instance = made("allgather", 8, network="ring", nodes=4, bandwidth="1GB/s")
    machine = instance.machine
    slow, fast = ((((0,),),), (((1,),),))
    machine.network.bandwidth.setflags(write=True)
    machine.network.bandwidth[1] = 3e9
    found = shared(machine, {(0, 1): slow, (1, 0): fast})
    assert found is not None
    assert (found.shares, found.bandwidth) == ((1, 3), Fraction(4 * 10**9))


def test_unequal_shares_of_few_bytes() -> None:
    """Of 12 bytes a share of 1 in 13 gets none, and nothing is lost."""
    instance = made("broadcast", 12, network="ring", nodes=4, bandwidth="1GB/s")
    order = ((0, 1, 2, 3), (0, 3, 2, 1))
    for shares in ((12, 1), (1, 12), (1, 1)):
        for count in (1, 2, 12, 20):
            found = out_trees.spread(instance, ring.trees(instance, order, shares=shares), count)
            assert check_schedule(instance, found).faults == []
            assert sum(found.piece_bytes) == 12
