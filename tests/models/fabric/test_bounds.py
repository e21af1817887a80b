"""Lower bounds: anchors as fractions, all cuts, partitions and paths of small machines, and what must hold of any."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from examples import some_of
from models.fabric.bound_oracles import UNICAST, concurrent_flow, drawn, strongest_cut, strongest_partition
from models.fabric.small_machines import machine

from synth.options import RunOptions
from synth_models.fabric.bounds import strongest
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.bounds.strongest import solve
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

CUTS = ("allgather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter")
COLLECTIVES = (*CUTS, "allreduce", "alltoall")


def named(name: str, boxes: int, collective: str, size: int, **own: Any) -> FabricInstance:
    return network({"kind": "machine", "name": name, "boxes": boxes}, collective, size, **own)


def network(spec: dict[str, Any], collective: str, size: int, **own: Any) -> FabricInstance:
    return FabricInstance.model_validate(
        {"name": "t", "source": "test", "network": spec, "collective": collective, "bytes": size} | own
    )


def without_latency(instance: FabricInstance) -> FabricInstance:
    net, parts = instance.machine.network, instance.machine
    links = [
        {"src": int(u), "dst": int(v), "bandwidth": float(b)}
        for u, v, b in zip(net.src, net.dst, net.bandwidth, strict=True)
    ]
    switches = [v for v in range(parts.nodes) if parts.is_switch[v]]
    spec = {"kind": "links", "nodes": parts.nodes, "switches": switches, "links": links}
    return instance.model_copy(update={"network": spec})


def bound(instance: FabricInstance) -> Fraction:
    """The strongest bound, exactly, after the check has verified it."""
    found = strongest.strongest(instance, RunOptions())
    certificate = found.certificate()
    assert check_bound(instance, float_below(found.seconds), certificate) == []
    above = float(found.seconds) * (1 + 1e-12)
    assert not found.seconds or check_bound(instance, above, certificate) != []
    return found.seconds


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("name", "boxes"), [("dgx-h100", 2), ("dgx1", 2)])
def test_what_methods_stop_at_is_proven(name: str, boxes: int) -> None:
    """Of an allreduce the quick bound is not above what the check has verified, and at a GiB near it."""
    instance = named(name, boxes, "allreduce", 2**30)
    proven = bound(instance)
    assert proven * Fraction(95, 100) <= quick_bound(instance) <= proven


@pytest.mark.parametrize("seed", some_of(range(20)))
def test_what_methods_stop_at_is_below_every_strongest_bound(seed: int) -> None:
    instance = drawn(random.Random(seed), ("allreduce",), groups=seed % 3 == 0)
    assert quick_bound(instance) <= bound(instance)


@pytest.mark.parametrize(
    ("name", "boxes", "algbw"), [("dgx-a100", 1, "2400/7"), ("dgx-a100", 2, "1040/3"), ("dgx1", 1, "1200/7")]
)
def test_allgather_of_known_machines(name: str, boxes: int, algbw: str) -> None:
    """One A100: 7/8 of the bytes enter each GPU at 300 GB/s, 300 * 8/7. Two: 15/16 enter it at 325 (NVSwitch and NIC).
    DGX-1: 7/8 at 150. In GB/s."""
    size = 8 * boxes * 10**8
    for collective in ("allgather", "reduce_scatter"):
        found = bound(without_latency(named(name, boxes, collective, size)))
        assert size / found / 10**9 == Fraction(algbw)


def test_alltoall_of_dgx1() -> None:
    """1 GB a rank, an eighth of it for each: 1/75 s."""
    assert bound(without_latency(named("dgx1", 1, "alltoall", 10**9))) == Fraction(1, 75)


@pytest.mark.long
@pytest.mark.parametrize(("rows", "cols", "timesteps"), [(8, 8, Fraction(144)), (5, 11, Fraction(55 * 108 * 4, 188))])
def test_allreduce_of_meshes(rows: int, cols: int, timesteps: Fraction) -> None:
    """C = 4 chunks a node: 2 (N - 1) messages for each of 4 N chunks over all links, 224 on the 8x8 mesh."""
    ranks, chunk = rows * cols, 10**6
    spec = {"kind": "mesh", "rows": rows, "cols": cols, "bandwidth": 1e9, "latency": 0.0}
    assert bound(network(spec, "allreduce", 4 * ranks * chunk)) == timesteps * chunk / 10**9


def test_allreduce_behind_one_switch() -> None:
    """2 (N - 1) M bytes leave the ports of N ranks if the switch copies nothing; M a port otherwise."""
    spec = {"kind": "star", "nodes": 5, "bandwidth": 10.0, "latency": 0.0}
    assert bound(network(spec, "allreduce", 1000)) == Fraction(2 * 4 * 1000, 5 * 10)
    assert bound(network(spec, "allreduce", 1000, switching={"multicast": True})) == Fraction(1000, 10)
    stores = {"mode": "store_and_forward", "copies": True}
    assert bound(network(spec, "allreduce", 1000, switching=stores)) == Fraction(1000, 10)
    assert bound(network(spec, "allreduce", 1000, switching=stores | {"copies": False})) == Fraction(8000, 50)


def test_broadcast_of_a_short_message_behind_one_switch() -> None:
    """N = 8, 1 us a hop (2 us a transfer), 1000 bytes at 1 GB/s: 1 us a port. Direct bytes leave the root from 0 to
    T - 2, relayed ones enter a rank from 3 us to T - 1 (4 us in all): 7 * 1 <= (T - 2) + 7 (T - 4), T = 37/8 us.
    Sharper: what leaves the root within x = T - 4 leaves once and is passed on, all else leaves 7 times within x + 2:
    7 (1 - x) + x <= x + 2, T = 33/7 us but for a tick."""
    spec = {"kind": "star", "nodes": 8, "bandwidth": 1e9, "latency": 1e-6}
    for collective in ("broadcast", "reduce"):
        assert 0 < Fraction(33, 7) / 10**6 - bound(network(spec, collective, 1000)) < Fraction(1, 10**12)


def test_late_arrivals_on_a_line() -> None:
    """Broadcast over three hops of 1 s, 5 bytes at 1 byte/s: the last byte leaves after 5 s and still takes 3."""
    line = machine(4, [(0, 1, 1.0, 1.0), (1, 2, 1.0, 1.0), (2, 3, 1.0, 1.0)], collective="broadcast", bytes=5)
    assert bound(line) == 8


def test_a_group_counts_once() -> None:
    """Both links out of the root are one port of 2 bytes/s at most."""
    links = [(0, 1, 2.0, 0.0, "nic"), (0, 2, 1.0, 0.0, "nic")]
    assert bound(machine(3, links, collective="scatter", bytes=12)) == Fraction(4, 2) + Fraction(4, 1)
    assert strongest_cut(machine(3, links, collective="scatter", bytes=12)) == Fraction(8, 2)


def test_one_rank_has_nothing_to_do() -> None:
    outcome = solve(network({"kind": "star", "nodes": 2}, "allgather", 100, ranks=[0]), RunOptions())
    assert outcome.bound == 0
    assert outcome.certificate == {"argument": "nothing"}


@pytest.mark.parametrize("seed", range(36))
def test_cuts_are_the_strongest_of_all(seed: int) -> None:
    """Without groups the search finds the best of all node sets; with groups what it finds is no more than that."""
    chooser = random.Random(seed)
    instance = drawn(chooser, CUTS, groups=seed % 3 == 0)
    best, found = strongest_cut(instance), bound(instance)
    if seed % 3 and instance.collective not in UNICAST:
        assert found == best
    else:
        assert instance.collective in UNICAST or found <= best
        assert seed % 3 == 0 or found >= best


@pytest.mark.parametrize("seed", some_of(range(18)))
def test_partitions_are_the_strongest_of_all(seed: int) -> None:
    """Allreduce without switches: partitions and cuts are all there is. With switches: at least the best cut."""
    chooser = random.Random(seed)
    instance = drawn(chooser, ("allreduce",), switches=0 if seed % 2 else 2)
    found = bound(instance)
    assert found >= strongest_cut(instance)
    if seed % 2:
        assert found == max(strongest_cut(instance), strongest_partition(instance))


@pytest.mark.parametrize("seed", some_of(range(18)))
def test_prices_reach_the_concurrent_flow(seed: int) -> None:
    instance = drawn(random.Random(seed), UNICAST)
    assert float(bound(instance)) == pytest.approx(concurrent_flow(instance), rel=1e-6)


def turned(instance: FabricInstance, collective: str) -> FabricInstance:
    raw = instance.model_dump(mode="json", exclude_none=True)
    for link in raw["network"]["links"]:
        link["src"], link["dst"] = link["dst"], link["src"]
    return FabricInstance.model_validate(raw | {"collective": collective})


@pytest.mark.parametrize("seed", some_of(range(18)))
def test_backwards_is_the_same(seed: int) -> None:
    """Allgather and reduce_scatter, broadcast and reduce, gather and scatter, on links turned round; latency too."""
    pairs = {"allgather": "reduce_scatter", "broadcast": "reduce", "gather": "scatter", "allreduce": "allreduce"}
    options = {"latency": 1.0, "switching": {"multicast": seed % 2 == 1}}
    instance = drawn(random.Random(seed), tuple(pairs), **options)
    other = turned(instance, pairs[instance.collective])
    assert float(bound(instance)) == pytest.approx(float(bound(other)), rel=1e-6)


def changed(instance: FabricInstance, change: Any) -> FabricInstance:
    raw = instance.model_dump(mode="json", exclude_none=True)
    change(raw)
    return FabricInstance.model_validate(raw)


@pytest.mark.parametrize("seed", some_of(range(18)))
def test_scaling_relabelling_and_more_links(seed: int) -> None:
    """Bandwidths times 4 divide the bound by 4, other numbers of nodes change nothing, another link never raises it."""
    chooser = random.Random(seed)
    instance = drawn(chooser, COLLECTIVES)
    found, nodes = bound(instance), instance.machine.nodes

    def faster(raw: dict[str, Any]) -> None:
        for link in raw["network"]["links"]:
            link["bandwidth"] *= 4

    assert bound(changed(instance, faster)) == found / 4
    at = chooser.sample(range(nodes), nodes)

    def renamed(raw: dict[str, Any]) -> None:
        for link in raw["network"]["links"]:
            link["src"], link["dst"] = at[link["src"]], at[link["dst"]]
        raw["network"]["switches"] = [at[v] for v in raw["network"]["switches"]]
        raw["ranks"] = [at[v] for v in instance.members]

    assert float(bound(changed(instance, renamed))) == pytest.approx(float(found), rel=1e-9)
    u, v = chooser.sample(range(nodes), 2)

    def joined(raw: dict[str, Any]) -> None:
        raw["network"]["links"].append({"src": u, "dst": v, "bandwidth": 2.0})

    assert bound(changed(instance, joined)) <= found * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("seed", some_of(range(15)))
def test_more_links_with_latency(seed: int) -> None:
    """Another link, however quick, never raises the bound where latency counts."""
    chooser = random.Random(seed)
    instance = drawn(chooser, COLLECTIVES, latency=chooser.choice([1.0, 10.0, 100.0]))
    u, v = chooser.sample(range(instance.machine.nodes), 2)

    def joined(raw: dict[str, Any]) -> None:
        raw["network"]["links"].append({"src": u, "dst": v, "bandwidth": 2.0, "latency": chooser.choice([0.0, 5.0])})

    assert bound(changed(instance, joined)) <= bound(instance) * (1 + Fraction(1, 10**9))


def test_the_outcome() -> None:
    instance = named("dgx1", 1, "allreduce", 64 * 1024)
    outcome = solve(instance, RunOptions())
    assert outcome.termination == "finished"
    assert outcome.bound is not None
    assert outcome.certificate is not None
    assert outcome.bound_proof
    assert outcome.bound_proof.startswith(str(outcome.certificate["argument"]))
    assert check_bound(instance, outcome.bound, outcome.certificate) == []
