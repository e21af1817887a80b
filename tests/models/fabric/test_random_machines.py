"""Every method on instances drawn over all that a file may state: no failed check, no traceback, no bound too high.

Found by such instances: sums through switches that store and add, which counted contributions twice; schedules of
several collectives under clocks of their own, put together a tick off or not at all; cuts that no link crosses; clocks,
bins and prices beyond 64 bits; plans in epochs that wait on a way round, or fill a group by rounding; trees whose links
take turns in a switch that stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.random_machines import DRAWN, random_instance

import synth
from synth import kernels
from synth.family import get_family
from synth.instance import parse
from synth.records.optimality import exceeds
from synth.records.record import Record
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.switch_trees import hub_routes
from synth_models.fabric.problem.reach import OF_SEVERAL, knows

METHODS = [name for name in get_family("fabric").methods if name not in ("bound", "imported")]  # that asks for a file
FEW: dict[str, dict[str, Any]] = {"pull": {"restarts": 1}, "tacos": {"restarts": 1}}
NOTHING = ("unsupported", "time_limit", "size_limit")


def able(instance: FabricInstance) -> list[str]:
    """The methods that take this collective."""
    if instance.collectives is None:
        return [name for name in METHODS if knows(name, instance.collective) or name == "steps"]
    parts = {part.collective for part in instance.parts}
    own = [name for name in ("hierarchical", "forest", "continuous") if all(knows(name, part) for part in parts)]
    return [*OF_SEVERAL[1:], *own]


def ran(instance: FabricInstance, names: Sequence[str], seconds: float, again: bool = False) -> dict[str, Record]:
    """The records of these methods, none with a fault (``again``: nor when all that they state is compared), each with
    a value, a bound or a reason; no bound above a value."""
    found = {}
    for name in names:
        record = found[name] = synth.solve(instance, name, time_limit=seconds, options=FEW.get(name))
        about = name, instance.name, record["termination"], record["message"]
        assert record["verified"]["ok"], (*about, record["verified"]["faults"][:3])
        assert not again or synth.check(record).ok, (*about, synth.check(record).faults[:3])
        if record.value is None and (record.bound is None or name == "bound"):
            expected = (*NOTHING, "finished") if name == "bound" else NOTHING
            assert record["termination"] in expected, about
            assert record["termination"] == "finished" or record["message"], about
    least = min((record.value for record in found.values() if record.value is not None), default=float("inf"))
    for name, record in found.items():
        if record["bound_grade"] == "certified":
            assert record.bound <= least * (1 + 1e-15), (name, instance.name, record.bound, least)
        assert least == float("inf") or not exceeds(record.bound, least), (name, instance.name, record.bound, least)
    return found


def in_turn(seed: int, count: int) -> list[str]:
    """So many of the methods that take this instance's collective, others for another seed, and one of all."""
    names = able(random_instance(seed))
    own = [names[(seed * 7 + k * 5) % len(names)] for k in range(count)]
    return list(dict.fromkeys([*own, METHODS[seed % len(METHODS)]]))


@pytest.mark.parametrize("part", range(10))
def test_methods_in_turn(part: int) -> None:
    """Two hundred instances."""
    with kernels.mode("plain"):
        for seed in range(20 * part, 20 * part + 20):
            ran(random_instance(seed), [*(["bound"] if seed % 4 == 0 else []), *in_turn(seed, 1)], 0.05)


FOUND = [
    (8, "plan"), (393, "ring"), (227, "steiner"), (111, "bound"), (93, "epochs"), (1230, "epochs"), (304, "epochs"),
    (306, "pull"), (309, "one_after_another"), (328, "pull"), (1183, "pull"), (47, "forest"), (222, "pat"),
    (54, "recursive_doubling"), (2194, "hierarchical"), (2831, "epochs"), (5047, "bound"),
]  # fmt: skip


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("seed", "method"), FOUND)
def test_what_was_found(seed: int, method: str) -> None:
    """A seed of every kind of fault that is no other test's."""
    instance = random_instance(seed)
    ran(instance if method != "pull" or seed != 1183 else instance.parts[1], [method], 2, again=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(30))
def test_methods_in_turn_of_many(part: int) -> None:
    """Three thousand instances."""
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        ran(random_instance(seed), ["bound", *in_turn(seed, 4)], 1, again=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_all_methods(part: int) -> None:
    for seed in range(5000 + 5 * part, 5005 + 5 * part):
        ran(random_instance(seed), ["bound", *METHODS], 2, again=True)


@pytest.mark.long
@pytest.mark.parametrize("collective", [*DRAWN, "several"])
def test_beside_brute_force(collective: str) -> None:
    """No schedule of whole blocks is below any bound."""
    for seed in range(10_000, 20_000):
        instance = random_instance(seed)
        plain = instance.switching.mode == "cut_through" and not instance.special_switches
        if instance.collective != collective or not plain or not 1 < len(instance.members) <= 3:
            continue
        if instance.objective == "weighted_ends" or instance.machine.abilities.streams.any():
            continue
        try:
            least = least_seconds(instance, most_states=300)
        except TooLarge:
            continue
        found = ran(instance, ["bound", *in_turn(seed, 3)], 0.5)
        assert all((record.bound or 0.0) <= float(least) * (1 + 1e-15) for record in found.values()), instance.name
        return
    raise AssertionError("no instance is small enough")


def star(collective: str, ranks: int = 3) -> FabricInstance:
    """A star whose switch stores and adds, 1 GB/s and 1 us a link, 3,000 bytes."""
    raw = {
        "family": "fabric", "name": "star", "source": "by hand", "collective": collective, "bytes": 3000,
        "network": {"kind": "star", "nodes": ranks, "bandwidth": 1e9, "latency": 1e-6},
        "switching": {"mode": "store_and_forward", "buffer": True, "copies": True, "adds": True},
    }  # fmt: skip
    return parse(raw, FabricInstance, "star")


@pytest.mark.parametrize(
    ("collective", "least", "most"),
    [("reduce", 5e-6, 8e-6), ("reduce_scatter", 4e-6, 6e-6), ("allreduce", 5e-6, 16e-6)],
)
def test_switches_that_store_and_add(collective: str, least: float, most: float) -> None:
    """Reduce: the last of 3,000 bytes leaves a rank at 3 us, and crosses two links of 1 us. In one piece, 3 + 1 us to
    the switch, which adds, and 3 + 1 us on. Reduce-scatter: two parts of 1,000 bytes leave every rank; in one piece
    the switch has the last sum at 4 us, and sends it on in 2. Allreduce: as reduce; then a broadcast in one piece."""
    with kernels.mode("plain"):
        found = ran(star(collective), ["bound", "ring", "direct", "tacos", "forest", "pull", "hierarchical"], 0.6)
    values = [record.value for record in found.values() if record.value is not None]
    assert len(values) >= 5
    assert least <= min(values) <= most


def test_exchanges_of_sums_are_left_out() -> None:
    """Two ranks that exchange whole buffers over a switch which adds would get their own contributions back."""
    with kernels.mode("plain"):
        record = ran(star("allreduce", 4), ["recursive_doubling"], 10.0)["recursive_doubling"]
    assert record.value is not None
    assert record["message"].startswith("halving and doubling")


@pytest.mark.parametrize("behind", [1, 2])
def test_switches_behind_the_one_that_joins_all(behind: int) -> None:
    """What all ranks send is one sum at their own switch, which adds 0.1 GB/s: others behind it that add quicker are no
    hubs. 3,000 bytes take 30 us, and two links of 1 us."""
    ends = [(v, 3) for v in range(3)] + [(3 + k, 4 + k) for k in range(behind)]
    links = [{"src": a, "dst": b, "bandwidth": 1e9, "latency": 1e-6} for u, v in ends for a, b in ((u, v), (v, u))]
    switches = [*range(3, 4 + behind)]
    able = [{"switch": v, "adds": True, "copies": True} for v in switches]
    able[0]["add_rate"] = 1e8
    raw = {
        "family": "fabric", "name": "behind", "source": "by hand", "collective": "allreduce", "bytes": 3000,
        "network": {"kind": "links", "nodes": 4 + behind, "switches": switches, "links": links, "abilities": able},
    }  # fmt: skip
    instance = parse(raw, FabricInstance, "behind")
    assert [len(route) for route in hub_routes(instance)] == [6]  # three links to switch 3, and three from it
    with kernels.mode("plain"):
        found = ran(instance, ["bound", "in_network", "steiner", "sharp"], 1.0)
    assert found["in_network"].value == pytest.approx(32e-6)
    assert found["sharp"].value == pytest.approx(32e-6)


def several(latencies: tuple[float, float], release: float, rate: float = 1e10 / 3) -> FabricInstance:
    """Two collectives on a line of three ranks, on links of two latencies."""
    ends = [(0, 1, 0), (1, 0, 1), (1, 2, 1), (2, 1, 0)]
    links = [{"src": u, "dst": v, "bandwidth": rate, "latency": latencies[k]} for u, v, k in ends]
    rows = [
        {"collective": "allreduce", "bytes": 1000, "release": 0.0},
        {"collective": "reduce_scatter", "bytes": 3003, "release": release},
    ]
    raw = {
        "family": "fabric", "name": "several", "source": "by hand", "collective": "several", "collectives": rows,
        "bytes": 4003, "network": {"kind": "links", "nodes": 3, "links": links},
    }  # fmt: skip
    return parse(raw, FabricInstance, "several")


@pytest.mark.parametrize("latencies", [(1e-9, 3e-3), (1e-12, 0.25)])
@pytest.mark.parametrize("release", [0.0, 2e-6, 1e5])
def test_several_share_a_clock(latencies: tuple[float, float], release: float) -> None:
    """No clock has whole ticks for a byte at 10/3 GB/s, these latencies and these releases."""
    with kernels.mode("plain"):
        instance = several(latencies, release)
        found = ran(instance, ["one_after_another", "together"], 10.0)
    assert len({part.machine.ticks_per_s for part in instance.parts}) == 1
    assert all(record.value is not None and record.value >= release for record in found.values())


def test_a_rank_that_nothing_leaves() -> None:
    """Links of one direction have failed: nothing leaves rank 2, which a scatter does not ask for."""
    links = [{"src": u, "dst": v, "bandwidth": 1e9, "latency": 1e-6} for u, v in [(0, 1), (1, 0), (1, 2), (2, 1)]]
    raw = {
        "family": "fabric", "name": "one-way", "source": "by hand", "collective": "scatter", "bytes": 3000,
        "network": {"kind": "links", "nodes": 3, "links": links}, "failed": {"links": [[2, 1]]},
    }  # fmt: skip
    with kernels.mode("plain"):
        found = ran(parse(raw, FabricInstance, "one-way"), ["bound", "plan", "flow", "direct", "pull"], 10.0)
    value = found["plan"].value
    assert value is not None
    assert 4e-6 <= value <= 5e-6  # 2,000 bytes leave rank 0 in 2 us, the last over two links; in whole blocks 1 us more


def test_the_instances_are_the_same_each_time_and_of_all_kinds() -> None:
    """Of two hundred numbers some state each of these."""
    drawn = [random_instance(seed) for seed in range(200)]
    random_instance.cache_clear()
    assert [random_instance(seed).to_json() for seed in range(20)] == [one.to_json() for one in drawn[:20]]
    files: list[dict[str, Any]] = [one.model_dump() for one in drawn]
    assert {one["collective"] for one in files} == {*DRAWN, "several"}
    assert {len(one.members) for one in drawn} == set(range(1, 9))
    switching = [one.switching for one in drawn if one.machine.is_switch.any()]
    for mode, flag in (("cut_through", "multicast"), ("store_and_forward", "buffer"), ("store_and_forward", "copies")):
        assert {bool(getattr(own, flag)) for own in switching if own.mode == mode} == {False, True}
    assert {own.mode for own in switching if own.adds} == {"cut_through", "store_and_forward"}
    for key in ("links", "nodes", "reduced"):
        assert any(one["failed"][key] for one in files)
    assert any(len(one.boxes) < len(one.members) for one in drawn)
    assert any((one.machine.group >= 0).any() for one in drawn)
    assert any(one.relay and one.ranks for one in drawn)


def test_a_demand_beyond_the_planners_clock() -> None:
    """Its ticks are the machine's, of whatever is planned on it: what takes longer is ``direct``'s, with a clock of its
    own, which here does not run so long either (drawn instance 1249)."""
    found = ran(random_instance(1249), ["bound", "plan"], 1)
    assert found["plan"].value is None
    assert "36 years" in found["plan"]["message"]
