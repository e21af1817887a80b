"""The method ``forest``: rates against brute force over cuts, packings against capacities, schedules by the replay."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from examples import some_of

import synth
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.forest.balance import _balanced
from synth_models.fabric.programs.forest.forest import Forest, equal_rates, forest_of
from synth_models.fabric.programs.forest.spanning_trees import spanning_trees
from synth_models.fabric.race import forest as solve


def instance(network: dict[str, Any], collective: str = "allgather", size: int = 2**20, **more: Any) -> FabricInstance:
    raw = {"name": "x", "source": "test", "network": network, "collective": collective, "bytes": size, **more}
    return FabricInstance.model_validate(raw)


def machine(name: str, boxes: int = 1) -> dict[str, Any]:
    return {"kind": "machine", "name": name, "boxes": boxes}


def links(ends: dict[tuple[int, int], int], nodes: int, switches: tuple[int, ...] = ()) -> dict[str, Any]:
    """A network of the kind ``links``; bandwidths in GB/s, latencies of 100 ns."""
    rows = tuple({"src": u, "dst": v, "bandwidth": b * 1e9, "latency": 1e-7} for (u, v), b in ends.items())
    return {"kind": "links", "nodes": nodes, "switches": switches, "links": rows}


def forest_for(made: FabricInstance) -> Forest:
    roots = {made.the_root: 1} if made.the_root is not None else dict.fromkeys(made.members, 1)
    return forest_of(made.machine, list(made.members), roots)


def rate_by_cuts(made: FabricInstance) -> Fraction:
    """Least capacity out of S over the roots in S, over all node sets S that miss a member: bytes/s a root."""
    net, members = made.machine.network, set(made.members)
    roots = {made.the_root} if made.the_root is not None else members
    best: Fraction | None = None
    for size in range(1, made.machine.nodes):
        for chosen in combinations(range(made.machine.nodes), size):
            inside = set(chosen)
            if inside >= members or not roots & inside:
                continue
            out = sum(
                Fraction(int(b))
                for u, v, b in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True)
                if u in inside and v not in inside
            )
            ratio = out / len(roots & inside)
            best = ratio if best is None else min(best, ratio)
    assert best is not None
    return best


def packs(forest: Forest, made: FabricInstance) -> None:
    """Every tree spans from its root, copies make up the rate, and no link carries more than its bandwidth."""
    members, net = list(made.members), made.machine.network
    roots = [made.the_root] if made.the_root is not None else members
    copies = dict.fromkeys(roots, 0)
    used: dict[tuple[int, int], int] = {}
    for row, count in zip(forest.trees.parent.tolist(), forest.trees.copies.tolist(), strict=True):
        assert count > 0
        root = row.index(-1)
        copies[members[root]] += count
        for v in range(len(members)):
            hops = 0
            while v != root:
                v, hops = row[v], hops + 1
                assert hops < len(members)
        for v, p in enumerate(row):
            if p >= 0:
                used[members[p], members[v]] = used.get((members[p], members[v]), 0) + count
    assert set(copies.values()) == {forest.per_root}
    load: dict[int, Fraction] = {}
    for pair, amount in used.items():
        parts = forest.shares[pair]
        assert amount <= sum(part for part, _ in parts)
        for part, route in parts:
            ends = [(int(net.src[e]), int(net.dst[e])) for e in route]
            assert ends[0][0] == pair[0]
            assert ends[-1][1] == pair[1]
            assert all(a[1] == b[0] for a, b in pairwise(ends))
            for e in route:
                load[e] = load.get(e, Fraction(0)) + Fraction(amount * part, sum(p for p, _ in parts))
    for e, amount in load.items():
        assert amount * forest.rate / forest.per_root <= Fraction(float(net.bandwidth[e]))


def random_network(rng: np.random.Generator, ranks: int, switches: int, opposite: bool) -> dict[str, Any]:
    """A cycle through all nodes, and more links at random; ``opposite``: each with one back."""
    n = ranks + switches
    ends: dict[tuple[int, int], int] = {}
    for u in range(n):
        for v in range(n):
            if u < v and (v == u + 1 or rng.random() < 0.5):
                ends[u, v] = int(rng.integers(1, 6))
                ends[v, u] = ends[u, v] if opposite or switches else int(rng.integers(1, 6))
    ends.setdefault((0, n - 1), 1)
    ends.setdefault((n - 1, 0), 1)
    return links(ends, n, tuple(range(ranks, n)))


@pytest.mark.long
@pytest.mark.parametrize("collective", ["allgather", "broadcast"])
def test_rate_and_packing_agree_with_all_cuts(collective: str) -> None:
    rng = np.random.default_rng(15)
    for _ in range(150):
        ranks, switches = int(rng.integers(2, 5)), int(rng.integers(0, 3))
        made = instance(random_network(rng, ranks, switches, False), collective, 2**4 * 3)
        forest = forest_for(made)
        assert forest.cut_rate == rate_by_cuts(made)
        packs(forest, made)
        assert forest.rate == forest.cut_rate


def equal_share_by_cuts(made: FabricInstance, count: int) -> Fraction:
    """The greatest share for which every node set that misses a member lets out ``count`` of them for every root in it,
    each link a whole number: of all links' bandwidths over whole numbers the greatest that will do. In bytes/s."""
    net, members = made.machine.network, set(made.members)
    roots = {made.the_root} if made.the_root is not None else members
    ends = list(zip(net.src.tolist(), net.dst.tolist(), map(int, net.bandwidth.tolist()), strict=True))
    cuts = [
        set(inside)
        for size in range(1, made.machine.nodes)
        for inside in combinations(range(made.machine.nodes), size)
        if not set(inside) >= members and roots & set(inside)
    ]
    most = count * len(roots)  # more of a link than all trees is of no use
    for share in sorted({Fraction(b, k) for _, _, b in ends for k in range(1, most + 1)}, reverse=True):
        if all(
            sum(b // share for u, v, b in ends if u in inside and v not in inside) >= count * len(roots & inside)
            for inside in cuts
        ):
            return share
    raise AssertionError("a member cannot be reached")


@pytest.mark.long
@pytest.mark.parametrize("collective", ["allgather", "broadcast"])
def test_equal_trees_reach_what_all_cuts_allow(collective: str) -> None:
    """Or none are said to reach enough where they have less than a quarter of the best rate."""
    rng = np.random.default_rng(17)
    few = 0
    for _ in range(60):
        ranks, switches = int(rng.integers(2, 5)), int(rng.integers(0, 2))
        made = instance(random_network(rng, ranks, switches, True), collective, 2**4 * 3)
        roots = {made.the_root: 1} if made.the_root is not None else dict.fromkeys(made.members, 1)
        rates = equal_rates(made.machine, list(made.members), roots, (1, 2, 3, 5))
        best = rate_by_cuts(made)
        for count in (1, 2, 3, 5):
            rate = equal_share_by_cuts(made, count) * count
            assert rates.get(count) == (rate if rate * 4 >= best else None)
            if count in rates:
                forest = forest_of(made.machine, list(made.members), roots, equal=count)
                assert (forest.rate, forest.per_root) == (rate, count)
                packs(forest, made)
                few += rate < best
    assert few


@pytest.mark.long(after=10)
@pytest.mark.parametrize("collective", ["allgather", "broadcast", "reduce", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("most", [1, 60, 400])
def test_few_transfers_are_kept_to(collective: str, most: int) -> None:
    """As far as a round of one tree a root has no more; and more transfers are no slower."""
    made = instance(machine("dgx1"), collective, 2**26)
    outcome = solve(made, RunOptions(method={"transfers": most}))
    assert outcome.solution is not None
    again = check_schedule(made, outcome.solution)
    assert again.ok
    least = len(made.members) - 1 if made.the_root is not None else 56 * (1 + (collective == "allreduce"))
    assert outcome.solution.transfers <= max(most, least)


def test_uneven_switches_are_packed_truly() -> None:
    """Links one way only: the cuts may promise what a switch that does not copy cannot do; trees must still fit."""
    rng = np.random.default_rng(16)
    for _ in range(60):
        ranks = int(rng.integers(2, 5))
        n = ranks + 1
        ends = {(u, v): int(rng.integers(1, 6)) for u in range(n) for v in range(n) if u != v and rng.random() < 0.6}
        for u in range(n):
            ends.setdefault((u, (u + 1) % n), 1)
        made = instance(links(ends, n, (ranks,)), "allgather", 2**4 * 3)
        forest = forest_for(made)
        assert 0 < forest.rate <= forest.cut_rate == rate_by_cuts(made)
        packs(forest, made)


def test_a_switch_that_must_copy_gets_what_routes_can_do() -> None:
    """Rank 0 sends 1 GB/s into a switch that lets out 1 GB/s to each of 1 and 2, which have 1 GB/s back to 0 each:
    the cuts around {0} allow 1 GB/s of broadcast, routes half of it (no rank but 0 has a way to 1 or 2)."""
    ends = {(0, 3): 1, (3, 1): 1, (3, 2): 1, (1, 0): 1, (2, 0): 1}
    made = instance(links(ends, 4, (3,)), "broadcast", 2**10)
    forest = forest_for(made)
    assert forest.cut_rate == 10**9
    assert forest.rate == Fraction(10**9, 2)
    packs(forest, made)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("network", "algbw"),
    [
        (machine("dgx-a100"), Fraction(2400, 7)),
        (machine("dgx-a100", 2), Fraction(1040, 3)),
        (machine("dgx1"), Fraction(1200, 7)),
        (machine("mi250"), Fraction(2400, 7)),
        (machine("dgx-h100", 2), Fraction(1600, 3)),
        (machine("ndv2", 2), Fraction(25)),
        ({"kind": "torus", "rows": 4, "cols": 4, "bandwidth": 1e9}, Fraction(64, 15)),
        ({"kind": "fat_tree", "leaves": 4, "hosts": 4, "spines": 2, "bandwidth": 1e9}, Fraction(16, 15)),
        ({"kind": "dragonfly", "groups": 5, "routers": 2, "hosts": 2, "bandwidth": 1e9}, Fraction(20, 19)),
    ],
)
def test_known_optima_are_packed(network: dict[str, Any], algbw: Fraction) -> None:
    """Bytes/s into the poorest rank over (N - 1)/N, where that is the least cut; see FABRIC.md for the machines."""
    made = instance(network, size=2**4 * 3 * 5 * 7 * 19 * 31)
    forest = forest_for(made)
    assert forest.rate * len(made.members) == algbw * 10**9
    packs(forest, made)


def _partitions(n: int) -> Any:
    def extended(labels: list[int]) -> Any:
        if len(labels) == n:
            yield labels
            return
        for label in range(max(labels) + 2):
            yield from extended([*labels, label])

    return extended([0])


def test_spanning_trees_meet_the_worst_partition() -> None:
    rng = np.random.default_rng(17)
    for _ in range(150):
        n = int(rng.integers(2, 6))
        upper = np.triu(rng.integers(0, 5, (n, n)), 1)
        capacity = (upper + upper.T).astype(np.int64)
        best = min(
            Fraction(int(sum(capacity[u, v] for u, v in combinations(range(n), 2) if p[u] != p[v])), max(p))
            for p in _partitions(n)
            if max(p)
        )
        if best == 0:
            with pytest.raises(ValueError, match="not joined"):
                spanning_trees(capacity)
            continue
        trees, rate, copies = spanning_trees(capacity)
        used = trees.used()
        assert rate == best
        assert trees.copies.sum() == copies
        assert np.all((used + used.T) * rate.numerator <= capacity * copies * rate.denominator)


COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


@pytest.mark.long
@pytest.mark.parametrize("collective", some_of(COLLECTIVES))
@pytest.mark.parametrize("mode", ["cut_through", "store_and_forward"])
def test_schedules_replay_and_no_faster_than_cuts(collective: str, mode: str) -> None:
    rng = np.random.default_rng(18)
    for _ in range(4):
        ranks, switches = int(rng.integers(2, 5)), int(rng.integers(0, 3))
        network = random_network(rng, ranks, switches, True)
        made = instance(network, collective, 12 * int(rng.integers(1, 10**6)), switching={"mode": mode})
        outcome = solve(made, RunOptions(time_limit_s=0.3))
        verdict = check_schedule(made, outcome.solution)
        assert verdict.ok, verdict.faults
        root = {"root": 0} if collective in ("broadcast", "reduce") else {}
        like = instance(network, "broadcast" if root else "allgather", made.bytes, **root)
        factor = 1 if root else ranks
        assert verdict.value is not None
        assert verdict.value >= float(made.bytes / (rate_by_cuts(like) * factor)) * (1 - 1e-12)


@pytest.mark.long(after=3)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_groups_and_relays(collective: str) -> None:
    """Two ports of rank 0 behind one NIC take turns; a process group may go through ranks outside it."""
    ends = {(u, v): 2 for u in range(4) for v in range(4) if abs(u - v) in (1, 3)}
    network = links(ends, 4)
    for row in network["links"]:
        if row["src"] == 0:
            row["group"] = "nic0"
    grouped = instance(network, collective, 12_000)
    verdict = check_schedule(grouped, solve(grouped, RunOptions()).solution)
    assert verdict.ok, verdict.faults
    through = instance({"kind": "mesh", "rows": 3, "cols": 3}, collective, 12_000, ranks=(0, 2, 8), relay=True)
    outcome = solve(through, RunOptions(time_limit_s=0.5))
    if collective in ("allgather", "broadcast"):
        verdict = check_schedule(through, outcome.solution)
        assert verdict.ok, verdict.faults
    else:
        assert outcome.termination == "unsupported"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "collective", "loss"),
    [
        (machine("dgx-a100", 2), "allgather", 0.01),
        (machine("dgx1"), "allgather", 0.01),
        ({"kind": "torus", "rows": 8, "cols": 8}, "allgather", 0.01),
        ({"kind": "mesh", "rows": 8, "cols": 8}, "allreduce", 0.01),
        ({"kind": "mesh", "rows": 5, "cols": 11}, "allreduce", 0.01),
    ],
)
def test_large_messages_come_near_the_fluid_optimum(network: dict[str, Any], collective: str, loss: float) -> None:
    """The least time here is from volume: (N - 1)/N or 2 (N - 1) times the bytes over all capacity into ranks."""
    made = instance(network, collective, 2**30)
    outcome = solve(made, RunOptions())
    verdict = check_schedule(made, outcome.solution)
    assert verdict.ok
    assert verdict.value is not None
    n, net = len(made.members), made.machine.network
    into = [float(net.bandwidth[net.dst == v].sum()) for v in made.members]
    least = (n - 1) * made.bytes / n / min(into) if collective == "allgather" else 2 * (n - 1) * made.bytes / sum(into)
    assert verdict.value <= least * (1 + loss)


def test_chunks_are_taken_as_asked_and_what_is_not_known_is_said() -> None:
    made = instance(machine("dgx-a100"), size=2**20)
    outcome = solve(made, RunOptions(method={"chunks": 3}))
    assert len(outcome.solution.piece_bytes) == 24
    assert solve(instance(machine("dgx-a100"), "alltoall", 2**20), RunOptions()).termination == "unsupported"


@pytest.mark.long
def test_a_box_without_its_switch_hangs_on_the_other() -> None:
    """Its GPUs have nothing but 25 GB/s each to the other box, whose NVSwitch adds up: 64 MiB / 25 GB/s = 2.684 ms.
    Hung on each other as well, they would need more of these."""
    whole = synth.make("fabric", machine="dgx-a100", boxes=2, gpus="4", collective="allreduce", bytes="64MiB")
    assert isinstance(whole, FabricInstance)
    switch = whole.machine.names.index("0/nvswitch")
    broken = whole.model_copy(update={"failed": {"nodes": [switch], "links": []}})
    record = synth.solve(broken, "forest", time_limit=20)
    assert record.ok
    assert 2**26 / 25e9 < record.value < 1.01 * 2**26 / 25e9


def test_what_a_switch_has_too_much_does_not_go_round_among_switches() -> None:
    """Switches 1 and 2 are joined by 10^12 units both ways, 1 has one too much and 3 one too little: taken off the
    larger amounts one by one, the unit would go to and fro between 1 and 2."""
    wanted = np.zeros((4, 4), dtype=np.int64)
    wanted[1, 2], wanted[2, 1], wanted[3, 2], wanted[1, 3] = 10**12, 10**12 + 5, 5, 4
    kept = _balanced(wanted, np.array([True, False, False, False]))
    assert (kept.sum(axis=0) == kept.sum(axis=1)).all()
    assert wanted.sum() - kept.sum() == 2


@pytest.mark.parametrize("seed", range(20))
def test_switches_are_balanced_by_taking_away(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 9))
    wanted = rng.integers(0, rng.choice([3, 10**9]), (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.6)
    np.fill_diagonal(wanted, 0)
    members = rng.random(nodes) < 0.5
    kept = _balanced(wanted, members)
    assert ((kept >= 0) & (kept <= wanted)).all()
    assert (kept.sum(axis=0) == kept.sum(axis=1))[~members].all()
