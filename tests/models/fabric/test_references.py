"""The reference methods: times worked out by hand, what the papers print, and replays of everything they make."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import machine
from scipy.optimize import linprog

import synth
from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule.collective import ROOTED
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.family import FAMILY
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import out_trees, spreading
from synth_models.fabric.problem.reach import COLLECTIVES_OF
from synth_models.fabric.references import bfb, double_tree
from synth_models.fabric.references.ring import cycles
from synth_models.fabric.references.ring import method as ring

METHODS = ("ring", "double_tree", "recursive_doubling", "direct", "bruck", "pat", "two_level", "bfb", "tacos")
MODES: tuple[dict[str, Any], ...] = ({"mode": "cut_through"}, {"mode": "store_and_forward"})


def named(network: dict[str, Any], **own: Any) -> FabricInstance:
    return FabricInstance.model_validate({"name": "t", "source": "test", "network": network, "bytes": 1} | own)


def star(ranks: int, latency: float = 0.0, **own: Any) -> FabricInstance:
    """Every rank joined to one switch at one byte a second."""
    links = [(u, v, 1.0, latency) for r in range(ranks) for u, v in ((r, ranks), (ranks, r))]
    return machine(ranks + 1, links, (ranks,), **own)


def around(ranks: int, latency: float = 0.0, **own: Any) -> FabricInstance:
    """A ring, both ways, at one byte a second."""
    links = [(u, v, 1.0, latency) for r in range(ranks) for u, v in ((r, (r + 1) % ranks), ((r + 1) % ranks, r))]
    return machine(ranks, links, **own)


def solved(method: str, instance: FabricInstance, seed: int = 0, **parameters: Any) -> Outcome:
    found: Outcome = FAMILY.methods[method].load()(instance, RunOptions(seed=seed, method=parameters).started_now())
    return found


def value(method: str, instance: FabricInstance) -> float:
    """The replayed time of what a method makes."""
    found = solved(method, instance)
    assert found.termination == "finished", found.message
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


@pytest.mark.parametrize("seed", some_of(range(15)))
def test_reductions_over_ranks_that_only_forward(seed: int) -> None:
    """A process group that leaves out some ranks, which forward: of several equally quick ways over them none may end
    at one, since backwards it would send on what it never got."""
    rng = random.Random(seed)
    grid = [{"kind": "mesh", "rows": 3, "cols": 3}, {"kind": "machine", "name": "ndv2", "boxes": 2, "gpus": (4, 4)}]
    for network in grid:
        ranks = rng.sample(range(8), rng.choice([4, 5, 6]))
        for method, collective in (("double_tree", "reduce"), ("pat", "reduce_scatter"), ("double_tree", "allreduce")):
            size = len(ranks) * rng.choice([1, 3])
            value(method, named(network, collective=collective, bytes=size, ranks=ranks, relay=True))


def test_ring_of_five_one_byte_a_block() -> None:
    """Latency 3, a block of 1 byte: 4 hops of 3 + 1 s; an allreduce of 5 bytes does that twice."""
    assert value("ring", around(5, 3.0, collective="allgather", bytes=5)) == 16
    assert value("ring", around(5, 3.0, collective="reduce_scatter", bytes=5)) == 16
    assert value("ring", around(5, 3.0, collective="allreduce", bytes=5)) == 32


def test_ring_of_four_both_ways() -> None:
    """Without latency: blocks of 2 bytes, half each way, 3 hops of 1 s; 3 blocks cross 2 links into a rank: 3 s."""
    assert value("ring", around(4, collective="allgather", bytes=8)) == 3


@pytest.mark.parametrize("count", [1, 2, 4])
def test_chain_in_chunks(count: int) -> None:
    """n = 4 ranks, latency a = 2, M = 8 bytes in k chunks: (n - 1) a + (n - 1 + k - 1) M / k seconds."""
    instance = around(4, 2.0, collective="broadcast", bytes=8)
    schedule = out_trees.spread(instance, ring.trees(instance, ((0, 1, 2, 3),)), count)
    assert check_schedule(instance, schedule).value == 3 * 2 + (3 + count - 1) * 8 // count


def test_direct_on_a_star() -> None:
    """n = 4, latency 5 a link, blocks of 6 bytes: three blocks leave a rank one after the other, no two want the same
    way down: 2 * 5 + 3 * 6 = 28 s; a broadcast of 6 bytes likewise. An allreduce of 24 bytes sends 6 bytes six times;
    in chunks of a byte a rank never waits: 36 s, and the last byte arrives 10 s later."""
    assert value("direct", star(4, 5.0, collective="allgather", bytes=24)) == 28
    assert value("direct", star(4, 5.0, collective="alltoall", bytes=24)) == 28
    assert value("direct", star(4, 5.0, collective="allreduce", bytes=24)) == 46
    assert value("direct", star(4, 5.0, collective="broadcast", bytes=6)) == 28


def test_doubling_on_a_star() -> None:
    """n = 4, latency 5 a link, blocks of 1 byte: both own blocks leave first, in 0..1 and 1..2; what arrives at
    10 + 1 goes on and arrives at 11 + 11 = 22. Whole buffers of 4 bytes: two exchanges of 10 + 4 = 28 s; halving and
    doubling would take 2 * 22."""
    assert value("recursive_doubling", star(4, 5.0, collective="allgather", bytes=4)) == 22
    assert value("bruck", star(4, 5.0, collective="allgather", bytes=4)) == 22
    assert value("recursive_doubling", star(4, 5.0, collective="allreduce", bytes=4)) == 28
    assert solved("recursive_doubling", star(4, 5.0, collective="allreduce", bytes=4)).message == (
        "doubling with whole buffers"
    )


def test_doubling_on_all_ports_of_a_cube() -> None:
    """A third of each block of 3 bytes goes over the dimensions in an order of its own: 1 + 2 + 4 bytes cross every
    link, and 21 of 24 bytes enter every rank over three links, so that nothing is quicker than 7 s."""
    cube = {"kind": "hypercube", "dimension": 3, "bandwidth": 1.0, "latency": 0.0}
    assert value("recursive_doubling", named(cube, collective="allgather", bytes=24)) == 7
    assert value("recursive_doubling", named(cube, collective="reduce_scatter", bytes=24)) == 7
    assert value("recursive_doubling", named(cube, collective="allreduce", bytes=24)) == 14


def test_bruck_of_radix_4_among_16() -> None:
    """All pairs linked, latency 5, blocks of 1 byte: everyone has 4 blocks at 6 s, of which its own went out at once;
    the other three are 3 s on each link, and arrive at 6 + 3 + 5 s. Radix 2 takes four steps, 20 s of latency alone."""
    full = {"kind": "full", "nodes": 16, "bandwidth": 1.0, "latency": 5.0}
    assert value("bruck", named(full, collective="allgather", bytes=16)) == 14
    assert solved("bruck", named(full, collective="allgather", bytes=16)).message == "Bruck, radix 4, 1 chunk"


@pytest.mark.parametrize("radix", [2, 3, 4, 8])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 16])
def test_bruck_of_any_radix_reaches_every_place_once(n: int, radix: int) -> None:
    """Whoever sends has the block from an earlier step, and none gets it twice, in the least steps s with r^s >= n."""
    for first in range(n):
        has = {first: -1}
        for u, v, step in spreading.bruck(n, first, radix):
            assert has[u] < step
            assert v not in has
            has[v] = step
        assert sorted(has) == list(range(n))
        steps = 1 + max(has.values())
        assert radix**steps >= n > radix ** (steps - 1) or n == 1


@pytest.mark.long
def test_two_trees_on_several_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four channels that begin at different ranks use links that one leaves idle."""
    cube = named({"kind": "hypercube", "dimension": 4, "bandwidth": 1e9}, collective="broadcast", bytes=2**14)
    several = value("double_tree", cube)
    monkeypatch.setattr(double_tree, "MOST_CHANNELS", 1)
    assert several < 0.8 * value("double_tree", cube)


def test_double_tree_on_a_star() -> None:
    """3 ranks, latency 5 a link, one byte: with the root 0 of a broadcast the only tree over ranks 1 and 2 is a chain:
    two hops of 10 + 1 s."""
    assert value("double_tree", star(3, 5.0, collective="broadcast", bytes=1)) == 22


def test_one_dgx_a100() -> None:
    """8 GPUs on a switch at 300 GB/s, 0.35 us a hop. Ring, M = 8 bytes: 7 hops of 0.7 us + 1 B / 300 GB/s; direct:
    0.7 us and 7 bytes. At 1 GiB both send 7/8 M at 300 GB/s, and the latencies are little beside it."""
    small = named({"kind": "machine", "name": "dgx-a100"}, collective="allgather", bytes=8)
    assert value("ring", small) == pytest.approx(7 * (0.7e-6 + 1 / 300e9), rel=1e-9)
    assert value("direct", small) == pytest.approx(0.7e-6 + 7 / 300e9, rel=1e-9)
    large = named({"kind": "machine", "name": "dgx-a100"}, collective="allgather", bytes=2**30)
    throughput = 7 / 8 * 2**30 / 300e9
    assert value("direct", large) == pytest.approx(throughput + 0.7e-6, rel=1e-9)
    assert throughput < value("ring", large) < throughput * 1.002


def test_rings_of_a_dgx1() -> None:
    """50 GB/s links make a cycle through all 8 GPUs and 25 GB/s links another: 75 GB/s each way, 150 GB/s in all."""
    dgx1 = named({"kind": "machine", "name": "dgx1"}, bytes=8)
    assert max(found.bandwidth for found in cycles.several(dgx1, 0)) == 150 * 10**9


def test_rings_of_two_dgx_a100() -> None:
    """Every GPU has a port of 25 GB/s, and every box is left once a ring: at most 8 rings of 25 GB/s."""
    two = named({"kind": "machine", "name": "dgx-a100", "boxes": 2}, bytes=16)
    assert max(found.bandwidth for found in cycles.several(two, 0)) == 200 * 10**9


@pytest.mark.parametrize("boxes", range(1, 34))
def test_two_trees(boxes: int) -> None:
    """Both span, have at most two children a box, and inner boxes of one are leaves of the other, but one at most."""
    inner = []
    for t in (0, 1):
        parent = double_tree.parents(boxes, t)
        assert sorted(parent).count(-1) == 1
        for box in range(boxes):
            up, steps = box, 0
            while parent[up] >= 0:
                up, steps = parent[up], steps + 1
                assert steps <= boxes.bit_length()
        assert max((parent.count(box) for box in range(boxes)), default=0) <= 2
        inner.append({p for p in parent if p >= 0})
    assert len(inner[0] & inner[1]) <= 1


def loads_of(network: dict[str, Any], degree: int) -> tuple[int, Fraction]:
    """T_L, and T_B as a multiple of M / B."""
    instance = named(network, collective="allgather", bytes=2**40)
    found = bfb.loads(instance.machine, instance.machine.ranks.tolist())
    link = Fraction(instance.machine.network.bandwidth[0])
    return found.steps, found.total * degree * link / len(instance.machine.ranks)


K44 = {
    "kind": "links",
    "nodes": 8,
    "links": [
        {"src": a, "dst": b, "bandwidth": 1.0} for u in range(4) for v in range(4, 8) for a, b in ((u, v), (v, u))
    ],
}


def test_bfb_as_printed() -> None:
    """NSDI 2025: K4,4 (2, 7/8), the hypercube of 16 and the 4x4 torus (4, 15/16)."""
    assert loads_of(K44, 4) == (2, Fraction(7, 8))
    assert loads_of({"kind": "hypercube", "dimension": 4}, 4) == (4, Fraction(15, 16))
    assert loads_of({"kind": "torus", "rows": 4, "cols": 4}, 4) == (4, Fraction(15, 16))
    found = solved("bfb", named(K44, collective="allgather", bytes=32))
    assert found.message is not None
    assert found.message.startswith("T_L 2, T_B 7/8 M/B")
    assert value("bfb", named(K44, collective="allgather", bytes=32)) == 7  # 7/8 of 32 bytes at 4 bytes/s


@pytest.mark.slow
def test_bfb_of_1024_nodes_as_printed() -> None:
    """Pi(4, 1024), the generalised Kautz graph: T_L 5, T_B 341/256."""
    assert loads_of({"kind": "kautz", "nodes": 1024, "degree": 4}, 4) == (5, Fraction(341, 256))


def test_least_load_is_the_linear_program() -> None:
    """Shares of every class over its links, at most L times its bandwidth on each: the least L by HiGHS."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        links = int(rng.integers(1, 6))
        masks = rng.choice(np.arange(1, 2**links), size=int(rng.integers(1, 2**links)), replace=False).tolist()
        classes = tuple((int(m), int(rng.integers(1, 9))) for m in masks)
        bandwidth = tuple(Fraction(int(b)) for b in rng.integers(1, 5, links))
        pairs = [(k, e) for k, (mask, _) in enumerate(classes) for e in range(links) if mask >> e & 1]
        equal = np.array([[float(k == c) for c, _ in pairs] + [0.0] for k in range(len(classes))])
        upper = np.array([[float(e == f) for _, f in pairs] + [-float(bandwidth[e])] for e in range(links)])
        cost = np.array([0.0] * len(pairs) + [1.0])
        best = linprog(cost, upper, np.zeros(links), equal, np.array([float(count) for _, count in classes]))
        assert float(bfb.least_load(classes, bandwidth)) == pytest.approx(best.fun, rel=1e-7)


UNEVEN = [(0, 1, 3.0, 1.0), (1, 2, 1.0, 0.5), (2, 3, 2.0), (3, 0, 1.0, 2.0), (0, 2, 1.0), (2, 0, 4.0, 1.5), (3, 1, 1.0)]
GROUPED = [(u, v, 1.0, 0.5, f"nic{u // 2}") for u in range(4) for v in range(4) if u != v]
MACHINES: dict[str, dict[str, Any]] = {
    "ring5": {"kind": "ring", "nodes": 5, "bandwidth": 1e9, "latency": 1e-6},
    "star3": {"kind": "star", "nodes": 3},
    "two": {"kind": "star", "nodes": 2},
    "mesh": {"kind": "mesh", "rows": 2, "cols": 3, "bandwidth": 1e9, "latency": 1e-6},
    "fat": {"kind": "fat_tree", "leaves": 2, "hosts": 3, "spines": 2},
    "dgx1": {"kind": "machine", "name": "dgx1"},
    "boxes": {"kind": "machine", "name": "ndv2", "boxes": 2},
    "uneven": dict(machine(4, UNEVEN, bytes=4).network.model_dump()),
    "grouped": dict(machine(4, GROUPED, bytes=4).network.model_dump()),
}


def replay(method: str, instance: FabricInstance) -> None:
    found = solved(method, instance, restarts=2)
    if found.termination == "unsupported":
        assert found.message
        assert found.solution is None
        return
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == [], (method, instance.collective, instance.bytes, found.message)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("name", "method"), some_of(product(MACHINES, METHODS)))
def test_everything_replays(method: str, name: str) -> None:
    """Every collective, both ways of switching; a byte a block, and more."""
    ranks = len(named(MACHINES[name], collective="broadcast").members)
    for number, collective in enumerate(name for name in COLLECTIVES_OF[method] if name != "traffic"):
        own: dict[str, Any] = {"demand": [[0, 1, 3], [1, 0, 2]]} if collective == "demand" else {}
        for mode, size in ((MODES[number % 2], ranks), (MODES[(number + 1) % 2], 7 * ranks)):
            if collective == "demand":
                size = 5
            if collective in ROOTED:
                own["root"] = ranks - 1
            replay(method, named(MACHINES[name], collective=collective, bytes=size, switching=mode, **own))


@pytest.mark.long
@pytest.mark.parametrize("method", some_of(METHODS))
def test_groups_failures_and_relays(method: str) -> None:
    """A process group in an order of its own, of one, two and three ranks; a failed link; others that relay."""
    box, grid = {"kind": "machine", "name": "dgx1"}, {"kind": "mesh", "rows": 3, "cols": 3}
    for collective in COLLECTIVES_OF[method]:
        if collective in ("demand", "traffic"):
            continue
        for ranks in ((3,), (5, 4), (6, 2, 3)):
            replay(method, named(box, collective=collective, bytes=6, ranks=ranks))
        if collective == "allreduce":
            replay(method, named(box, collective=collective, bytes=8, ranks=(6, 2, 3)))
        replay(method, named(box, collective=collective, bytes=7, failed={"links": [[0, 1], [4, 6]], "nodes": [5]}))
        replay(method, named(grid, collective=collective, bytes=8, ranks=[8, 0, 2, 6], relay=True))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("method", ["ring", "tacos"])
def test_the_same_seed_makes_the_same_schedule(method: str) -> None:
    instance = named(MACHINES["dgx1"], collective="allgather", bytes=8000)
    first, second = (solved(method, instance, seed=7, restarts=2).solution for _ in range(2))
    assert np.array_equal(first.start, second.start)
    assert np.array_equal(first.link, second.link)


def test_what_a_method_does_not_know() -> None:
    assert solved("ring", star(3, collective="alltoall", bytes=3)).termination == "unsupported"
    found = solved("bfb", star(3, collective="allgather", bytes=3))
    assert found.termination == "unsupported"
    assert "switches" in str(found.message)


ONE_WAY = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]  # from 0 to 3 by two ways, and none back


@pytest.mark.parametrize("method", METHODS + ("pull", "forest"))
@pytest.mark.parametrize(("collective", "root"), [("broadcast", 0), ("reduce", 3)])
def test_ranks_that_do_not_all_reach_each_other(method: str, collective: str, root: int) -> None:
    """A method makes a schedule or says why it has none; an error of the process it is not."""
    instance = machine(4, ONE_WAY, collective=collective, root=root, bytes=7)
    record = synth.solve(instance, method=method, time_limit=10)
    assert record["termination"] in ("finished", "unsupported")
    if record["termination"] == "unsupported":
        assert method in ("ring", "double_tree", "recursive_doubling", "bruck", "pat", "two_level")
        assert record["message"]
    else:
        assert synth.check(record, instance).ok


@pytest.mark.parametrize("method", METHODS)
def test_an_allreduce_of_fewer_bytes_than_ranks(method: str) -> None:
    instance = around(3, collective="allreduce", bytes=2)
    if method == "two_level":
        instance = named(MACHINES["boxes"], collective="allreduce", bytes=2)
    if "allreduce" in COLLECTIVES_OF[method]:
        assert value(method, instance) > 0


@pytest.mark.parametrize("method", ["ring", "direct", "tacos"])
def test_the_message_says_when_time_ran_out(method: str) -> None:
    instance = around(4, 3.0, collective="allgather", bytes=64)
    found = FAMILY.methods[method].load()(instance, RunOptions(time_limit_s=1e-6).started_now())
    assert "the time limit ended the search" in found.message
    assert check_schedule(instance, found.solution).faults == []
    assert "time limit" not in solved(method, instance).message
