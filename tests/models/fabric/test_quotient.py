"""Quotients of schedules: the check's verdict is that of all transfers one by one, whatever is broken; they are stored
and read back; nothing that is forged passes."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.coset_machines import Acted, acted_on, one_after_the_other
from models.fabric.slow_replay import replay as slow_replay
from models.fabric.small_machines import machine, schedule_of
from models.fabric.small_quotients import Regular, boxes, drawn, judged, torus, whole_of

from synth.errors import InputError
from synth_models.fabric import solution
from synth_models.fabric.check import replay
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.solution import GENERATORS, ORDERS, Quotient, Schedule, expanded, pack, unpack
from synth_models.fabric.views import describe as views_describe
from synth_models.fabric.views import frames as views_frames
from synth_models.fabric.views.describe import describe
from synth_models.fabric.views.frames import frames
from synth_models.fabric.views.plot import plot
from synth_models.fabric.views.table import table
from synth_models.fabric.views.transfers import transfers

COLLECTIVES = ("allgather", "reduce_scatter", "allreduce")


def a_case(seed: int) -> tuple[random.Random, Regular, Quotient]:
    rng = random.Random(seed)
    sizes = [rng.choice([1, 3])] * rng.choice([1, 2, 3])
    found = rng.choice([torus, boxes])(rng, COLLECTIVES[seed % 3], sum(sizes))
    return rng, found, drawn(rng, found, sizes)


def on_the_quotient(instance: FabricInstance, quotient: Quotient, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The verdict without the transfers one by one."""
    with monkeypatch.context() as patch:
        patch.setattr(replay, "MOST_EXPANDED", -1)
        return check_schedule(instance, quotient)


def broken(rng: random.Random, found: Regular | Acted, quotient: Quotient) -> Quotient:
    """The quotient with something else in one place (which may be as right as before)."""
    part, k = quotient.part, rng.randrange(quotient.part.transfers)
    start, link, piece, adds = part.start.copy(), part.link.copy(), part.piece.copy(), part.adds.copy()
    generators, orders = quotient.generators.copy(), quotient.orders.copy()
    g, nodes = rng.randrange(len(orders)), generators.shape[1]
    match rng.randrange(10):
        case 0:
            start[k] = max(0, start[k] + rng.choice([-11, -5, -1, 1, 5, 11]))
        case 1:
            link[rng.randrange(len(link))] = rng.randrange(found.instance.machine.links)
        case 2:
            return replace(quotient, part=without(part, k))
        case 3:
            return replace(quotient, part=again(part, k, rng.choice([0, 1, 100_000])))
        case 4:
            piece[k] = rng.randrange(len(part.piece_block))
        case 5:
            adds[k] = not adds[k]
        case 6:
            generators[g] = rng.sample(range(nodes), nodes)
        case 7:
            u, v = rng.sample(range(nodes), 2)
            generators[g][[u, v]] = generators[g][[v, u]]
        case 8:
            generators[g] = generators[g][generators[rng.randrange(len(orders))]]
        case 9:
            orders[g] = rng.choice([1, 2, 3, len(found.instance.members)])
    return Quotient(replace(part, start=start, link=link, piece=piece, adds=adds), generators, orders)


def without(part: Schedule, k: int) -> Schedule:
    keep = np.arange(part.transfers) != k
    lengths = np.diff(part.route_start)
    return replace(
        part,
        start=part.start[keep],
        piece=part.piece[keep],
        adds=part.adds[keep],
        link=part.link[np.repeat(keep, lengths)],
        route_start=np.concatenate([[0], np.cumsum(lengths[keep])]).astype(np.int64),
    )


def again(part: Schedule, k: int, later: int) -> Schedule:
    route = part.link[part.route_start[k] : part.route_start[k + 1]]
    return replace(
        part,
        start=np.append(part.start, part.start[k] + later),
        piece=np.append(part.piece, part.piece[k]),
        adds=np.append(part.adds, part.adds[k]),
        link=np.concatenate([part.link, route]),
        route_start=np.append(part.route_start, len(part.link) + len(route)),
    )


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_a_valid_quotient_is_its_expansion_transfer_by_transfer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, quotient = a_case(seed)
    whole = whole_of(found.instance, quotient)
    assert whole is not None
    want = check_schedule(found.instance, whole)
    assert want.faults == []
    assert same(expanded(found.instance, quotient), whole)
    for verdict in (check_schedule(found.instance, quotient), on_the_quotient(found.instance, quotient, monkeypatch)):
        assert verdict.faults == []
        assert verdict.value == want.value
        assert want.facts.items() <= verdict.facts.items()


def same(one: Schedule, other: Schedule) -> bool:
    names = ("piece_block", "piece_bytes", "start", "piece", "adds", "route_start", "link")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.long(after=6)
@pytest.mark.parametrize("seed", some_of(range(60)))
def test_the_verdict_on_a_broken_quotient_is_that_of_its_expansion(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found, quotient = a_case(seed)
    for _ in range(12):
        bad = broken(rng, found, quotient)
        want = judged(found.instance, bad)
        got = on_the_quotient(found.instance, bad, monkeypatch)
        assert got.value == want, got.faults
        assert got.ok == (want is not None)
        assert check_schedule(found.instance, bad).value == want


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(20)))
def test_any_group_and_way_of_switching_as_the_plain_replay_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches and ports that elements leave where they are, multicast, hops into switches; some of it broken. The
    oracle: all transfers listed from the statement, and the plain replay in fractions."""
    rng, verdicts = random.Random(seed), {True: 0, False: 0}
    while sum(verdicts.values()) < 50:
        found = acted_on(rng, rng.choice(COLLECTIVES))
        quotient = None if found is None else one_after_the_other(rng, found)
        if found is None or quotient is None:
            continue
        for one in (quotient, *(broken(rng, found, quotient) for _ in range(4))):
            whole, want = whole_of(found.instance, one), None
            if whole is not None:
                faults, ticks = slow_replay(found.instance, whole)
                want = None if faults else float_above(Fraction(ticks, whole.ticks_per_s))
            got = on_the_quotient(found.instance, one, monkeypatch)
            assert got.value == want, got.faults
            assert got.ok == (want is not None)
            verdicts[got.ok] += 1
    assert min(verdicts.values()) >= 2


def test_breaking_breaks_and_spares() -> None:
    """The property above sees both verdicts, and every way to break one."""
    verdicts = {True: 0, False: 0}
    for seed in range(20):
        rng, found, quotient = a_case(seed)
        for _ in range(4):
            verdicts[judged(found.instance, broken(rng, found, quotient)) is None] += 1
    assert min(verdicts.values()) >= 5, verdicts


@pytest.mark.parametrize("seed", some_of(range(30)))
def test_a_machine_that_is_not_symmetric_is_refused(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One link of another bandwidth or latency, or in a group of its own."""
    rng, found, quotient = a_case(seed)
    raw = found.instance.model_dump(mode="json", exclude_none=True)
    link = rng.choice(raw["network"]["links"])
    link[rng.choice(["bandwidth", "latency"])] += 1.0
    other = FabricInstance.model_validate(raw)
    assert judged(other, quotient) is None
    assert "bandwidth and latency" in on_the_quotient(other, quotient, monkeypatch).faults[0]


def test_links_that_an_element_leaves_where_they_are_carry_too_much() -> None:
    """Two ranks that exchange their data through one link between two switches, each at the same time."""
    links = [(0, 2, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0), (3, 1, 1.0)]
    instance = machine(4, links, [2, 3], collective="allgather", bytes=2)
    part = Schedule(
        1, *(np.array(x) for x in ([0], [1], [0], [0])), np.array([False]), np.array([0, 3]), np.array([0, 2, 4])
    )
    verdict = check_schedule(instance, Quotient(part, np.array([[1, 0, 2, 3]]), np.array([2])))
    assert verdict.value is None
    assert "link 2 is used, but 2 elements leave it where it is" in verdict.faults[0]


def test_what_is_stored_is_read_back_and_what_is_forged_is_refused() -> None:
    _, found, quotient = a_case(0)
    packed = pack(quotient)
    back = unpack(found.instance, packed)
    assert isinstance(back, Quotient)
    assert same(back.part, quotient.part)
    assert np.array_equal(back.generators, quotient.generators)
    assert np.array_equal(back.orders, quotient.orders)
    assert not {GENERATORS, ORDERS} & set(pack(quotient.part))
    nodes = found.instance.machine.nodes
    for key, value in (
        (GENERATORS, quotient.generators[:, :-1]),
        (GENERATORS, quotient.generators + nodes),
        (GENERATORS, quotient.generators - 1),
        (GENERATORS, quotient.generators.astype(float) + np.nan),
        (GENERATORS, None),
        (ORDERS, quotient.orders - 2),
        (ORDERS, np.array([2**62, 2**62])),
        (ORDERS, np.ones(65, dtype=np.int64)),
        (ORDERS, "two"),
        ("piece_block", np.ones_like(quotient.part.piece_block)),
    ):
        with pytest.raises((ValueError, TypeError)):
            unpack(found.instance, packed | {key: value})
    for key in (GENERATORS, ORDERS):
        with pytest.raises(ValueError, match=f"{key} is missing"):
            unpack(found.instance, {k: v for k, v in packed.items() if k != key})


def test_arrays_of_the_wrong_kind_are_faults_and_no_errors() -> None:
    _, found, good = a_case(0)
    nodes, members = found.instance.machine.nodes, len(found.instance.members)
    same_nodes = np.arange(nodes)
    wrong = {
        "no 64-bit": (good.generators.astype(float), good.orders),
        "have shape": (good.generators[0], good.orders),
        "one row": (good.generators, good.orders[None]),
        "does not exist": (good.generators + 1, good.orders),
        "no permutation": (np.zeros_like(good.generators), good.orders),
        "as many elements": (np.zeros((0, nodes), dtype=np.int64), np.zeros(0, dtype=np.int64)),
        "do not carry rank": (same_nodes[None], np.array([members])),
        "orders [0": (good.generators, np.array([0, 0])),
    }
    for words, (generators, orders) in wrong.items():
        verdict = check_schedule(found.instance, Quotient(good.part, generators, orders))
        assert verdict.value is None
        assert words in verdict.faults[0], verdict.faults
    added = replace(good, part=replace(good.part, adds=~good.part.adds))
    assert "but allgather has no sums" in check_schedule(found.instance, added).faults[0]
    planned = replace(good, part=replace(good.part, plan={"kind": "steps"}))
    assert "has a plan" in check_schedule(found.instance, planned).faults[0]
    for collective in ("alltoall", "broadcast"):
        raw = found.instance.model_dump(mode="json", exclude_none=True) | {"collective": collective}
        assert "does not ask the same" in check_schedule(FabricInstance.model_validate(raw), good).faults[0]


def test_more_transfers_than_are_listed() -> None:
    _, found, quotient = a_case(0)
    with pytest.raises(InputError, match="listed one by one"):
        expanded(found.instance, quotient, most=3)
    bad = replace(quotient, generators=quotient.generators[:, ::-1].copy())
    with pytest.raises(InputError, match="synth check says more"):
        expanded(found.instance, bad)


@pytest.mark.parametrize(("second", "fits"), [(1, True), (2, True), (3, False), (4, True)])
def test_a_port_for_both_directions(second: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ranks at a switch, a port each for what leaves (at once) and what comes (3 s later), a second a block. A
    block to the next rank at 0 s, to the one after it at ``second``: at 3 s the port is taken by what arrives."""
    links = [(v, 3, 1.0, 3.0, f"port{v}") for v in range(3)] + [(3, v, 1.0, 0.0, f"port{v}") for v in range(3)]
    instance = machine(4, links, [3], collective="allgather", bytes=3)
    part = schedule_of([(0, 1)], [(0, 0, [0, 4]), (second, 0, [0, 5])])
    quotient = Quotient(part, np.array([[1, 2, 0, 3]]), np.array([3]))
    verdict = on_the_quotient(instance, quotient, monkeypatch)
    assert verdict.ok == (judged(instance, quotient) is not None)
    assert verdict.ok == fits
    if not verdict.ok:
        assert "an image of transfer" in verdict.faults[0]


def test_views_list_all_transfers_or_say_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, quotient = a_case(0)
    instance, whole = found.instance, whole_of(found.instance, quotient)
    assert whole is not None
    assert table(instance, quotient).equals(table(instance, whole))
    assert np.array_equal(transfers(instance, quotient).dst, transfers(instance, whole).dst)
    assert "symmetries\n" + describe(instance, whole) in describe(instance, quotient)
    for draw in (frames(instance, quotient), plot(instance, quotient, "t")):
        assert draw is not None
    monkeypatch.setattr(views_frames, "MAX_MOVES", len(quotient.part.link))
    sample = frames(instance, quotient)
    assert sample is not None
    assert sample.whole == len(quotient.part.link) * len(instance.members)
    assert len(sample.step) == len(quotient.part.link)
    for module in (solution, views_describe):
        monkeypatch.setattr(module, "MOST_EXPANDED", 1)
    monkeypatch.setattr(solution.expanded, "__defaults__", (1,))
    assert describe(instance, quotient).endswith("symmetries")
    for view in (table, transfers):
        with pytest.raises(InputError, match="more than the 1 that are listed one by one"):
            view(instance, quotient)


@pytest.mark.parametrize("value", [-(2**63), -(2**62), -1, 2**31, 2**62, 2**63 - 1])
def test_extreme_numbers_are_refused_or_judged_as_all_transfers_are(value: int) -> None:
    """The first number of each array of the stored form replaced: nothing but ``ValueError`` is raised."""
    _, found, quotient = a_case(1)
    packed = pack(quotient)
    for key, stored in packed.items():
        forged = np.array(stored, dtype=np.int64)
        forged.reshape(-1)[0] = value
        try:
            read = unpack(found.instance, packed | {key: forged if forged.ndim else int(forged)})
        except ValueError:
            continue
        assert isinstance(read, Quotient)
        assert check_schedule(found.instance, read).value == judged(found.instance, read), (key, value)
