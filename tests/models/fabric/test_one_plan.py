"""One plan for several scenarios: files and keys, the replay against an oracle, bounds against a search over plans."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from models.fabric.plan_oracle import TooLarge, ends, least_worst
from models.fabric.small_machines import machine, random_schedule, schedule_of
from models.fabric.small_machines import random_instance as random_small
from models.fabric.test_brute_force import small_instance

import synth
from synth.errors import InputError, UnsupportedError
from synth.instance import parse
from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.scheduling.one_plan import plans, worst_seconds

TWO = [(0, 1, 1.0), (1, 0, 1.0)]


def with_scenarios(chooser: random.Random, instance: FabricInstance, moments: Any) -> FabricInstance:
    """The instance with a scenario for every member, in which it is late, or a few drawn ones."""
    members = list(instance.members)
    if chooser.random() < 0.7:
        late = chooser.choice(moments)
        rows = [[[rank, late]] for rank in members]
    else:
        rows = []
        for _ in range(chooser.randint(1, 3)):
            some = chooser.sample(members, chooser.randint(1, len(members)))
            rows.append([[rank, chooser.choice(moments)] for rank in some])
    return instance.model_copy(update={"scenarios": rows})


def switched(instance: FabricInstance, **own: Any) -> FabricInstance:
    """The instance with switches that forward otherwise."""
    return instance.model_copy(update={"switching": instance.switching.model_copy(update=own)})


def test_by_hand() -> None:
    """Allgather of a byte each between two ranks: whoever is 3 s late sends then, the other one at once: 4. On a line
    0-1-2 rank 1 sends its own to rank 2 first: where it is late, what it passes on waits for that, and ends at 5; in
    the other order rank 0 being late makes it end at 6."""
    pair = machine(2, TWO, collective="allgather", bytes=2, scenarios=[[[0, 3.0]], [[1, 3.0]]])
    verdict = check_schedule(pair, schedule_of([(0, 1), (1, 1)], [(0, 0, [0]), (0, 1, [1])]))
    assert (verdict.value, verdict.facts["ends_s"], verdict.facts["on_time_s"]) == (4.0, [4.0, 4.0], 1.0)
    line = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)]
    rows = [[[0, 3.0]], [[1, 3.0]]]
    moves = [(0, 0, [0]), (0, 1, [1]), (0, 1, [2]), (1, 0, [2]), (0, 2, [3]), (1, 2, [1])]
    asked = machine(3, line, collective="allgather", bytes=3, scenarios=rows)
    assert check_schedule(asked, schedule_of([(b, 1) for b in range(3)], moves)).facts["ends_s"] == [5.0, 5.0]
    moves[2:4] = [(2, 1, [2]), (1, 0, [2])]
    assert check_schedule(asked, schedule_of([(b, 1) for b in range(3)], moves)).facts["ends_s"] == [6.0, 5.0]


def test_what_is_no_plan() -> None:
    asked = machine(2, TWO, collective="allgather", bytes=2, scenarios=[[[0, 3.0]]])
    verdict = check_schedule(asked, schedule_of([(0, 1), (1, 1)], [(0, 0, [0])]))
    assert "with all ranks on time: end: rank 0 does not hold" in verdict.faults[0]
    late = asked.model_copy(update={"scenarios": [[[0, 86_400.0]]]})
    far = check_schedule(late, schedule_of([(0, 1), (1, 1)], [(0, 0, [0]), (0, 1, [1])], 10**15))
    assert far.faults == ["in some scenario it runs longer than its clock"]


def agreed(seed: int) -> str:
    """The check's ends, the oracle's, and what methods compare plans by."""
    chooser = random.Random(seed)
    instance = with_scenarios(chooser, random_small(chooser), [0.3, 1.0, 2.5, 7.0])
    instance = switched(instance, mode="cut_through")
    schedule = random_schedule(chooser, instance.on_time)
    verdict = check_schedule(instance, schedule)
    try:
        assert [made for _, made in plans(instance, schedule)] == [schedule]
    except UnsupportedError:
        assert verdict.faults == ["one plan for several scenarios is of paths from a rank to a rank"]
        return "no paths"
    assert verdict.ok, (seed, verdict.faults)
    expected = [Fraction(tick, schedule.ticks_per_s) for tick in ends(instance, schedule)]
    assert verdict.facts["ends_s"] == [float_above(end) for end in expected], seed
    assert worst_seconds(instance, schedule) == max(expected)
    return "sums" if (instance.blocks.origin < 0).any() else "blocks"


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 400), marks=pytest.mark.slow)])
def test_replay_against_the_oracle(seeds: range) -> None:
    seen = Counter(agreed(seed) for seed in seeds)
    assert min(seen["sums"], seen["blocks"]) > len(seeds) // 10, seen


def brute_forced(seed: int, methods: bool = False) -> str:
    """No bound is above the least worst time of all plans; what became of it."""
    chooser = random.Random(seed)
    instance = with_scenarios(chooser, small_instance(chooser, 3), [1.0, 2.0, 5.0])
    instance = switched(instance, multicast=False)
    found = strongest(instance, RunOptions())
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    for name in ("direct", "pull") if methods else ():
        record = synth.solve(instance, name, time_limit=5)
        assert record.ok, record["verified"]["faults"]
        assert record.value is None or found.seconds <= record.value
    try:
        least = least_worst(instance, Fraction(10**6))
    except TooLarge:
        return "too large"
    assert found.seconds <= least, (seed, found.argument, float(found.seconds), float(least))
    return f"{found.argument} {'tight' if found.seconds == least else 'below'}"


def test_bounds_against_all_plans() -> None:
    seen = Counter(brute_forced(seed) for seed in range(8))
    assert seen["whoever tight"] + seen["scenario tight"] > 1, seen
    assert seen["too large"] < 5, seen


@pytest.mark.slow
def test_bounds_against_all_plans_of_many() -> None:
    seen = Counter(brute_forced(seed, seed % 5 == 0) for seed in range(8, 400))
    assert seen["whoever tight"] > 20, seen
    assert sum(seen.values()) - seen["too large"] > 200, seen


@pytest.mark.parametrize("collective", ["allreduce", "allgather"])
def test_not_knowing_costs_what_waiting_costs(collective: str) -> None:
    """Four ranks, any of which is 1 ms late: 1 ms more than on time, and no plan does better."""
    keys: dict[str, Any] = {"network": "star", "nodes": 4, "bandwidth": 1e11, "latency": 1e-6, "bytes": 2**30}
    instance = synth.make("fabric", **keys, collective=collective, late="any:1ms")
    assert isinstance(instance, FabricInstance)
    assert len(instance.scenarios or ()) == 4
    record, bound = (synth.solve(instance, name, time_limit=20) for name in ("direct", "bound"))
    assert record.ok
    assert bound["bound"] == pytest.approx(record.value, rel=1e-12)
    assert record.value == pytest.approx(0.001 + record["verified"]["facts"]["on_time_s"], rel=1e-12)


@pytest.mark.parametrize("rate", [1.1e10, 1.9e10])
def test_what_is_rounded_is_still_proven(rate: float) -> None:
    """The bound for ranks on time is rounded down in the certificate; what is stated on top of it is not more."""
    keys: dict[str, Any] = {"network": "star", "nodes": 3, "bandwidth": rate, "latency": 1.5e-6, "bytes": 2**30}
    instance = synth.make("fabric", **keys, collective="allreduce", late="any:1ms")
    assert isinstance(instance, FabricInstance)
    found = strongest(instance, RunOptions())
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []


def test_ranks_that_are_never_late_prove_less() -> None:
    """Only rank 0 may be late: nothing rises for all, and the bound is that of the one scenario."""
    pair = machine(2, TWO, collective="allgather", bytes=2, scenarios=[[[0, 3.0]]])
    found = strongest(pair, RunOptions())
    assert found.seconds == 4
    assert found.argument == "scenario"
    whole = dict(found.certificate())
    assert check_bound(pair, 4.0, whole) == []
    both = pair.model_copy(update={"scenarios": [[[0, 3.0]], [[1, 3.0]]]})
    inner = {"argument": "cut", "inside": [0], "origins": [0], "goals": [1]}
    certain = {"argument": "whoever", "bound": 1.0, "certificate": inner}
    assert check_bound(both, 4.0, certain) == []
    assert check_bound(pair, 4.0, certain)
    for damaged in (
        certain | {"bound": 1.1},
        certain | {"certificate": {"argument": "scenario"}},
        whole | {"of": 1},
        whole | {"of": -1},
        {"argument": "whoever"},
    ):
        assert check_bound(both if damaged.get("of") is None else pair, 4.0, damaged), damaged
    assert check_bound(pair.on_time, 1.0, certain)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"scenarios": []}, "scenarios = []: must have at least 1 item"),
    ({"scenarios": [[]]}, "scenarios[0] = []: must have at least 1 item"),
    ({"scenarios": [[[0, -1.0]]]}, "scenarios[0][0][1] = -1.0: must be >= 0"),
    ({"scenarios": [[[0, 1.0]], [[1, 1.0], [1, 2.0]]]}, "scenarios[1][1] = 1: stands twice"),
    ({"scenarios": [[[2, 1.0]]]}, "scenarios[0][0] = 2: is no rank that takes part"),
    ({"scenarios": [[[0, 1.0]]], "ready": [[0, 1.0]]}, "ready: has no meaning beside scenarios"),
    ({"scenarios": [[[0, 1e5]]]}, "scenarios[0][0][1] = 100000.0: must be <= 86400"),
    ({"scenarios": [7]}, "scenarios[0] = 7"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS)
def test_bad_scenarios(change: dict[str, Any], words: str) -> None:
    raw = json.loads(machine(2, TWO, collective="allgather", bytes=2).to_json())
    with pytest.raises(InputError) as caught:
        parse(raw | change, FabricInstance, "t")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"late": "any:-1us"}, "late = 'any:-1us'"),
        ({"late": "any:1us,3:2us"}, "any stands alone"),
        ({"late": "any:"}, "late = 'any:'"),
        ({"late": "any:1us", "ready": "1us"}, "ready: has no meaning beside scenarios"),
        ({"late": "any:2d"}, "late = 'any:2d'"),
    ],
)
def test_bad_keys(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("fabric", network="ring", nodes=4, collective="allgather", bytes=4, **keys)
    assert words in str(caught.value)
