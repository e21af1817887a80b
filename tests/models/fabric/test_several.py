"""Several collectives on one machine: the file, the replay, bounds, methods; brute force on tiny machines."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.fabric.brute_force import TooLarge, best_schedule
from models.fabric.small_machines import schedule_of
from models.fabric.small_several import ONE_LINK, as_schedule, drawn, drawn_in_order, several

import synth
from synth.clock.deadline import OutOfTime
from synth.errors import InputError
from synth.family import get_family
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric import race
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.tables import MOST_COLLECTIVES
from synth_models.fabric.references import direct
from synth_models.fabric.references.pull import method as pull
from synth_models.fabric.scheduling.released import Together
from synth_models.fabric.solution import Schedule, pack, unpack
from synth_models.fabric.views.describe import describe
from synth_models.fabric.views.table import table

BIG = 31  # the seed whose brute force takes half a minute
BOTH = [
    {"collective": "broadcast", "bytes": 4, "ranks": [0, 1], "name": "a", "release": 1.5},
    {"collective": "broadcast", "bytes": 2, "ranks": [0, 1], "name": "b", "priority": 3},
]


def one_link(**own: Any) -> FabricInstance:
    """Two broadcasts of 4 and 2 bytes over one link of 1 byte/s; the first is released at 1.5 s."""
    return several(BOTH, ONE_LINK, **own)


def on_one_link(a: float, b: float) -> Schedule:
    """The two broadcasts, begun at these seconds."""
    return schedule_of([(0, 4), (1, 2)], [(int(2 * a), 0, [0]), (int(2 * b), 1, [0])], 2)


def test_two_on_one_link() -> None:
    """6 bytes take 6 s from moment 0 on, if the second goes first: it ends at 2, the first at 6. Later than 2 the first
    may not begin without the last end growing. Weighted 1 to 3 the mean is (6 + 3 * 2) / 4 = 3."""
    verdict = check_schedule(one_link(), on_one_link(2, 0))
    assert verdict.ok
    assert verdict.value == 6.0
    assert verdict.facts["ends_s"] == [6.0, 2.0]
    assert check_schedule(one_link(objective="weighted_ends"), on_one_link(2, 0)).value == 3.0
    assert check_schedule(one_link(objective="weighted_ends"), on_one_link(1.5, 5.5)).value == (5.5 + 3 * 7.5) / 4
    assert strongest(one_link(), RunOptions(10.0)).seconds == 6
    assert strongest(one_link(objective="weighted_ends"), RunOptions(10.0)).seconds == 3
    for name in ("together", "pull"):
        assert synth.solve(one_link(), name, time_limit=10).value == 6.0
        assert synth.solve(one_link(objective="weighted_ends"), name, time_limit=10).value == 3.0


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (on_one_link(1, 5), "of its own before it is ready (1.50 s)"),
        (on_one_link(2, 3), "the link carries transfer 0 until"),
        (schedule_of([(0, 4), (1, 2)], [(4, 0, [0])], 2), "collective 1 (b), counted within it: end: rank 1 does not"),
        (schedule_of([(0, 4), (1, 2)], [(4, 0, [0]), (0, 1, [1])], 2), "collective 1 (b), counted within it: transfer"),
        (schedule_of([(0, 3), (1, 2)], [(4, 0, [0]), (0, 1, [0])], 2), "its pieces have 3 bytes, not 4"),
        (replace(on_one_link(2, 0), plan={"kind": "cutting"}), "with no plan"),
        (replace(on_one_link(2, 0), piece_block=np.array([0, 2])), "piece_block[1] is 2, outside 0..1"),
    ],
)
def test_what_the_replay_refuses(schedule: Schedule, words: str) -> None:
    verdict = check_schedule(one_link(), schedule)
    assert not verdict.ok
    assert any(words in fault for fault in verdict.faults), verdict.faults


def test_no_rank_of_another_group_forwards() -> None:
    """On a line 0-1-2 data of the group 0, 2 may pass rank 1 only with relay, also where 1 belongs to another."""
    line = {"kind": "line", "nodes": 3, "bandwidth": 1.0, "latency": 0.0}
    rows = [{"collective": "broadcast", "bytes": 1, "ranks": [0, 2]}, {"collective": "broadcast", "bytes": 1}]
    with pytest.raises(InputError, match=r"collectives\[0\], network: is parted"):
        several(rows, line)
    through = [(0, 0, [0]), (1, 0, [2]), (1, 1, [0]), (2, 1, [2])]
    assert check_schedule(several(rows, line, relay=True), schedule_of([(0, 1), (1, 1)], through)).value == 3.0
    ring = {"kind": "ring", "nodes": 3, "bandwidth": 1.0, "latency": 0.0}
    over = [e for e, ends in enumerate([(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]) if ends in ((0, 1), (1, 2))]
    rows[1]["ranks"] = [0, 1]
    moves = [(0, 0, [over[0]]), (1, 0, [over[1]]), (1, 1, [over[0]])]
    verdict = check_schedule(several(rows, ring), schedule_of([(0, 1), (1, 1)], moves))
    assert "uses link 0 of a rank that is not in its group" in verdict.faults[0]


def brute_forced(seed: int, most_states: int, draw: Any = drawn) -> bool:
    """Brute force finds the replay's value, and no bound is above it; False where it was given up."""
    instance = draw(random.Random(seed))
    try:
        seconds, unit, rows = best_schedule(instance, most_states=most_states)
    except TooLarge:
        return False
    verdict = check_schedule(instance, as_schedule(instance, unit, rows))
    if not np.any(instance.all_blocks[0].origin < 0):  # a sum may leave just before something arrives: never quite so
        assert verdict.faults == []
    assert verdict.value in (None, float(seconds))
    for objective in (None, "weighted_ends"):
        asked = instance.model_copy(update={"objective": objective})
        proven = strongest(asked, RunOptions(10.0))
        assert check_bound(asked, float_below(proven.seconds), proven.certificate()) == []
        assert objective or proven.seconds <= seconds
    return True


@pytest.mark.long
def test_brute_force() -> None:
    done = sum(brute_forced(seed, 300) for seed in range(14))
    assert done > 9


@pytest.mark.slow
def test_brute_force_of_many() -> None:
    done = sum(brute_forced(seed, 3000) for seed in range(150) if seed != BIG)
    assert done > 100


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 40), marks=pytest.mark.long)])
def test_brute_force_in_order(seeds: range) -> None:
    done = sum(brute_forced(seed, 60, drawn_in_order) for seed in seeds)
    assert done >= len(seeds) // 3


@pytest.mark.slow
def test_brute_force_of_many_in_order() -> None:
    done = sum(brute_forced(seed, 3000, drawn_in_order) for seed in range(40, 400))
    assert done > 300


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))])
def test_methods_keep_the_order(seed: int) -> None:
    """What every method makes of drawn orders and ready times passes the check, and is no quicker than the bound."""
    instance = drawn_in_order(random.Random(seed))
    proven = strongest(instance, RunOptions(5.0))
    for name in ("one_after_another", "together", "pull", "flow"):
        record = synth.solve(instance, name, time_limit=2)
        assert record.ok or record.value is None, (name, record["verified"]["faults"])
        assert record.value is None or record.value >= proven.seconds, name


@pytest.mark.long
def test_weighted_ends_against_every_order() -> None:
    """Three broadcasts over one link: the best is one of the orders, each begun as soon as it may."""
    rng = random.Random(5)
    for _ in range(6):
        rows = [
            {
                "collective": "broadcast", "bytes": rng.randint(1, 5), "ranks": [0, 1],
                "release": float(rng.choice([0, 0, 2])), "priority": rng.randint(1, 4),
            }
            for _ in range(3)
        ]  # fmt: skip
        instance = several(rows, ONE_LINK, objective="weighted_ends")
        least = min(_in_turn(rows, order) for order in permutations(range(3)))
        proven = strongest(instance, RunOptions(10.0))
        assert check_bound(instance, float_below(proven.seconds), proven.certificate()) == []
        assert proven.seconds <= least
        assert proven.seconds == least or any(row["release"] for row in rows)  # a piece may be cut and interrupted
        record = synth.solve(instance, "together", time_limit=10)
        assert record.ok
        assert record.value <= float(least) * (1 + 1e-12)


def _in_turn(rows: list[dict[str, Any]], order: tuple[int, ...]) -> Fraction:
    now, total = Fraction(0), Fraction(0)
    for k in order:
        now = max(now, Fraction(rows[k]["release"])) + rows[k]["bytes"]
        total += rows[k]["priority"] * now
    return total / sum(row["priority"] for row in rows)


def test_damaged_certificates_prove_nothing() -> None:
    instance = one_link()
    proven = strongest(instance, RunOptions(10.0))
    bound, whole = float_below(proven.seconds), dict(proven.certificate())
    assert check_bound(instance, bound, whole) == []
    assert check_bound(instance, bound * 1.001, whole)
    [row] = [row for row in whole["joint"] if [0, 1] in row["of"]]
    at = row["of"].index([0, 1])
    damaged: list[Any] = [
        row | {"bounds": [*row["bounds"][:at], 6.5, *row["bounds"][at + 1 :]]},
        row | {"of": [*row["of"][:at], [0, 0], *row["of"][at + 1 :]]},
        row | {"of": [*row["of"][:at], [0, 2], *row["of"][at + 1 :]]},
        row | {"of": [*row["of"][:at], [], *row["of"][at + 1 :]]},
        row | {"length": row["length"][1:]},
        row | {"length": [-1 for _ in row["length"]]},
        row | {"bounds": [float("nan")] * len(row["bounds"])},
        row | {"bounds": row["bounds"][1:]},
        {},
        7,
    ]
    for one in damaged:
        assert check_bound(instance, bound, whole | {"joint": [one]}), one
    for alone in ([{"of": 0, "bound": 9.0, "certificate": whole["alone"][0]["certificate"]}], [{}], 3, [[]]):
        assert check_bound(instance, bound, whole | {"alone": alone}), alone
    assert check_bound(instance, bound, {"argument": "nothing"})
    assert check_bound(instance, 1.0, dict(whole["alone"][0]["certificate"]))
    assert check_bound(several(BOTH[:1], ONE_LINK).parts[0], bound, whole)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"collectives": None}, "collectives: is missing"),
    ({"collectives": []}, "collectives"),
    ({"bytes": 7}, "bytes = 7: must be the sum over all collectives, 6"),
    ({"root": 0}, "root: belongs into the entries of collectives"),
    ({"ranks": [0, 1]}, "ranks: belongs into the entries"),
    ({"collective": "allgather"}, "collectives = 'allgather': needs collective several"),
    ({"objective": "first"}, "objective = 'first'"),
    ({"collectives": [BOTH[0], BOTH[1] | {"release": -1.0}]}, "collectives[1].release = -1.0: must be >= 0"),
    ({"collectives": [BOTH[0], BOTH[1] | {"release": 1e300}]}, "collectives[1].release = 1e+300"),
    ({"collectives": [BOTH[0], BOTH[1] | {"priority": 0}]}, "collectives[1].priority = 0: must be >= 1"),
    ({"collectives": [BOTH[0], BOTH[1] | {"ranks": [0, 2]}]}, "collectives[1].ranks[1] = 2: no such node"),
    ({"collectives": [BOTH[0], BOTH[1] | {"ranks": [1]}]}, "collectives[1].ranks: has one rank"),
    ({"collectives": [BOTH[0], BOTH[1] | {"name": "a b"}]}, "collectives[1].name = 'a b'"),
    ({"collectives": [BOTH[0], BOTH[1] | {"late": 1}]}, "collectives[1].late: unknown key"),
    ({"collectives": [BOTH[0], BOTH[1] | {"collective": "several"}]}, "collectives[1].collective = 'several'"),
    ({"collectives": [BOTH[0], BOTH[1] | {"collective": "demand"}]}, "collectives[1].demand: is missing"),
    ({"ready": [[0, 1.0]]}, "ready: belongs into the entries"),
    ({"collectives": [BOTH[0], BOTH[1] | {"ready": [[0, -1.0]]}]}, "collectives[1].ready[0][1] = -1.0: must be >= 0"),
    ({"collectives": [BOTH[0], BOTH[1] | {"ready": [[2, 1.0]]}]}, "collectives[1].ready[0] = 2: is no rank"),
    (
        {"collectives": [BOTH[0], BOTH[1] | {"after": [2]}]},
        "collectives[1].after = 2: no such collective: there are 0..1",
    ),
    ({"collectives": [BOTH[0], BOTH[1] | {"after": [1]}]}, "collectives[1].after = 1: names the collective itself"),
    ({"collectives": [BOTH[0], BOTH[1] | {"after": [0, 0]}]}, "collectives[1].after = 0: stands twice"),
    (
        {"collectives": [BOTH[0] | {"after": [1]}, BOTH[1] | {"after": [0]}]},
        "collectives[0].after: wait for each other: collectives 0, 1",
    ),
]


def test_one_behind_the_other() -> None:
    """The first ends at rank 1 at 5.5; rank 0 wants nothing of it, and sends of the second at once. From rank 1 on the
    second starts then: 5.5 + 2, which the bound says too."""
    back = [BOTH[0], BOTH[1] | {"root": 1, "after": [0]}]
    whole = [BOTH[0] | {"release": 2.0}, back[1]]
    moves = [(0, 4), (1, 2)], [(3, 0, [0]), (11, 1, [1])], 2
    assert check_schedule(several(back, ONE_LINK), schedule_of(*moves)).value == 7.5
    early = schedule_of(moves[0], [(3, 0, [0]), (10, 1, [1])], 2)
    fault = "collective 1 (b), counted within it: transfer 0, link 1 (1->0) at tick 10 (5.00 s): node 1 sends piece 0"
    assert fault in check_schedule(several(back, ONE_LINK), early).faults[0]
    assert strongest(several(back, ONE_LINK), RunOptions(10.0)).seconds == Fraction(15, 2)
    same = [BOTH[0], BOTH[1] | {"after": [0]}]
    assert check_schedule(several(same, ONE_LINK), on_one_link(2, 0)).value == 6.0
    for name in ("together", "pull"):
        assert synth.solve(several(whole, ONE_LINK), name, time_limit=10).value == 8.0


def test_a_table_with_order(tmp_path: Path) -> None:
    """Names or numbers in ``after``, late ranks in ``late``; what is wrong by line and column, all at once."""
    table = tmp_path / "operations.csv"
    table.write_text('collective,bytes,name,late,after\nallgather,4,a,"3:300us,0:1us",\nalltoall,4,,,a\n')
    made = synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    assert made.collectives[0].ready == ((3, 3e-4), (0, 1e-6))
    assert made.collectives[1].after == (0,)
    table.write_text("collective,bytes,name,late,after\nallgather,4,a,3:-1us,\nalltoall,4,b,x,\n")
    with pytest.raises(InputError, match=r"(?s)line 2, late.*line 3, late"):
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    table.write_text(
        "collective,bytes,name,late,after\nallgather,4,a,9:-1s,b\nalltoall,4,b,,a\nallgather,4,c,any:1us,d\n"
        'allgather,4,d,,"c,zz"\nfoo,4,e,,e\nallgather,4,f,,\nallgather,4,f,,f\n'
    )
    with pytest.raises(InputError) as caught:
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    for words in (
        "line 2, late = '9:-1s': must be 0 to 86400 s (a day)", "line 4, late = 'any:1us': any stands alone",
        "line 5, after = 'zz': no such collective", "line 8, after = 'f': is the name of several collectives",
        "line 2, after: wait for each other: collectives 0, 1", "line 4, after: wait for each other: collectives 2, 3",
        "line 6, collective = 'foo'", "line 6, after = 4: names the collective itself",
    ):  # fmt: skip
        assert words in str(caught.value)
    table.write_text('collective,bytes,late\nallgather,4,"0:1us,0:2us"\n')
    with pytest.raises(InputError, match=r"line 2, late = .*: names rank 0 twice"):
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    table.write_text("collective,bytes,name,late,after\nallgather,4,a,,b\nalltoall,4,b,,a\n")
    with pytest.raises(InputError, match="line 2, after: wait for each other: collectives 0, 1"):
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    table.write_text("collective,bytes,name,late,after\nallgather,4,a,0:-1us,b\nalltoall,4,b,,a\n")
    with pytest.raises(InputError, match=r"(?s)line 2, late.*line 2, after: wait for each other: collectives 0, 1"):
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table))
    table.write_text('collective,bytes,ranks\nallgather,4,\nalltoall,4,"0,1"\n')
    with pytest.raises(InputError) as caught:
        synth.make("fabric", network="ring", nodes=4, collective="several", collectives=str(table), ready="1ms")
    assert [str(fault) for fault in caught.value.faults] == ["ready: belongs into the entries of collectives"]


@pytest.mark.parametrize(("change", "words"), FAULTS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_file_must_not_hold(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        several(BOTH, ONE_LINK, **change)
    assert words in str(caught.value)


def test_old_instances_keep_their_digest() -> None:
    """The new keys stand in no file that does not use them."""
    for path in ("star-6-scatter-6KiB", "dgx-a100-x2-demand", "dgx-h100-x2-allreduce-1MiB-r4"):
        instance = synth.read(Path("instances/fabric") / f"{path}.json")
        assert "collectives" not in instance.to_json()
        assert "objective" not in instance.to_json()
        assert instance.parts == (instance,)
        assert not instance.all_blocks[1].any()


def test_every_method_takes_several_or_says_why_not() -> None:
    family = get_family("fabric")
    takes = set()
    for name, method in family.methods.items():
        if name == "imported":
            continue
        record = synth.solve(one_link(), method, time_limit=5)
        assert record["termination"] in ("finished", "optimal", "unsupported"), (name, record["message"])
        assert record.ok, (name, record["verified"]["faults"])
        if record["termination"] == "unsupported":
            assert record["message"], name
        else:
            takes.add(name)
    assert takes >= {"bound", "one_after_another", "together", "pull", "continuous", "forest"}


def test_one_after_another_waits_for_shared_ranks_and_links_only() -> None:
    """Two pairs on a star share nothing but the switch and run side by side; a third waits for the pair that it shares
    a rank with, though it uses other links."""
    star = {"kind": "star", "nodes": 4, "bandwidth": 1.0, "latency": 0.0}
    rows = [{"collective": "broadcast", "bytes": 3, "ranks": pair} for pair in ([0, 1], [2, 3], [1, 2])]
    record = synth.solve(several(rows, star), "one_after_another", time_limit=10)
    assert record["verified"]["facts"]["ends_s"] in ([3.0, 3.0, 6.0], [6.0, 6.0, 3.0])
    together = synth.solve(several(rows, star), "together", time_limit=10)
    assert together.value == 3.0  # broadcasts 0 -> 1, 1 -> 2, 2 -> 3 use links of their own


def out_of_time(*_: object) -> Outcome:
    """What the clock does to a method that is not ready."""
    raise OutOfTime


@pytest.mark.parametrize("name", ["one_after_another", "together"])
def test_a_method_that_its_time_ends_leaves_the_others_theirs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Two broadcasts one after the other: 1.5 + 4 + 2 s, or 2 + 4 s if the second one comes first."""
    own = race.call
    monkeypatch.setattr(race, "call", lambda name, *of: out_of_time() if name == "hierarchical" else own(name, *of))
    record = synth.solve(one_link(), name, time_limit=60)
    assert record.ok
    assert record.value == 6.0


def test_what_has_no_schedule_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull, "_grown", out_of_time)
    monkeypatch.setattr(race, "hold_first", lambda *_: None)
    monkeypatch.setitem(race.ENTRIES, "pull", race.Entry(race.ENTRIES["pull"].own))
    record = synth.solve(one_link(), "pull", time_limit=60)
    assert (record["termination"], record.value) == ("time_limit", None)
    assert record["message"] == "collective 0: stopped at the time limit"


def test_a_collective_cut_by_the_clock_keeps_what_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two broadcasts, one after the other in 6 s: each has what it held before its search was stopped."""

    def held_then_stopped(incumbent: Any, restarts: int) -> None:
        made = direct.solve(incumbent.instance, incumbent.options).solution
        incumbent.options.held.offer(lambda: made, 1.0, "stand in")
        raise OutOfTime

    monkeypatch.setattr(pull, "_grown", held_then_stopped)
    record = synth.solve(one_link(), "pull", time_limit=60)
    assert record.ok
    assert record.value == 6.0


@pytest.mark.long
def test_sums_stay_what_they_are() -> None:
    """Allreduces over the same ranks, timed anew: no contribution comes twice, whatever the order."""
    ring = {"kind": "ring", "nodes": 4, "bandwidth": 1.0, "latency": 0.5}
    rows = [{"collective": "allreduce", "bytes": 8}, {"collective": "reduce_scatter", "bytes": 8, "release": 3.0}]
    record = synth.solve(several(rows, ring), "together", time_limit=10)
    assert record.ok
    assert record.value < synth.solve(several(rows, ring), "one_after_another", time_limit=10).value


def test_what_a_person_sees() -> None:
    instance, schedule = one_link(), on_one_link(2, 0)
    text = describe(instance, schedule)
    assert "collective 0 (a): broadcast of 4 B over 2 ranks, released at 1.50 s, priority 1, ends at 6.00 s" in text
    assert "minimised: the last end" in text
    rows = table(instance, schedule)
    assert rows["collective"].tolist() == [1, 0]
    again = unpack(instance, pack(schedule))
    assert check_schedule(instance, again).value == 6.0


def test_contributions_are_those_of_the_own_group() -> None:
    """A reduce over ranks 1 and 2 of a full mesh: rank 2's contribution is its group's second bit."""
    full = {"kind": "full", "nodes": 3, "bandwidth": 1.0, "latency": 0.0}
    rows = [{"collective": "broadcast", "bytes": 1}, {"collective": "reduce", "bytes": 1, "ranks": [1, 2]}]
    instance = several(rows, full)
    ends = list(zip(instance.machine.network.src.tolist(), instance.machine.network.dst.tolist(), strict=True))
    moves = [(0, 0, [ends.index((0, 1))]), (0, 0, [ends.index((0, 2))]), (0, 1, [ends.index((2, 1))], True)]
    schedule = schedule_of([(0, 1), (1, 1)], moves)
    assert check_schedule(instance, schedule).value == 1.0
    assert table(instance, schedule)["contributions"].tolist() == ["0", "0", "2"]


def test_make_reads_a_file_of_collectives(tmp_path: Path) -> None:
    file = tmp_path / "layers.csv"
    file.write_text('name,collective,bytes,ranks,release,priority\na,allreduce,4KiB,"0,1",2us,3\nb,alltoall,8KiB,,,\n')
    made = synth.make("fabric", network="full", nodes=4, collective="several", collectives=str(file))
    assert isinstance(made, FabricInstance)
    assert made.name == "full-4-several-layers"
    assert made.collectives is not None
    assert [one.release for one in made.collectives] == [2e-6, 0.0]
    assert made.bytes == 3 * 4096
    file.write_text('collective,bytes,ranks\nallgather,3,"0,1"\nreduce,1,"0,9"\n')
    with pytest.raises(InputError) as caught:
        synth.make("fabric", network="full", nodes=4, collective="several", collectives=str(file))
    assert "line 2, bytes = '3': does not divide among 2 ranks" in str(caught.value)
    assert "line 3, ranks = '0,9': 9: no such node" in str(caught.value)
    file.write_text("collective,bytes\n" + "alltoall,4\n" * (MOST_COLLECTIVES + 1))
    with pytest.raises(InputError, match=f"has {MOST_COLLECTIVES + 1:,} rows: at most {MOST_COLLECTIVES:,}"):
        synth.make("fabric", network="full", nodes=4, collective="several", collectives=str(file))


@pytest.mark.parametrize(("far", "kept"), [(5.0, False), (0.5, True)])
def test_a_whole_sum_does_not_come_before_a_part_of_it(far: float, kept: bool) -> None:
    """Two ranks send each other their parts, one over a switch far away, and rank 1 the whole sum at last. Timed again
    the whole goes at 2 s: the part over the switch, which nobody needs, must not be added to it."""
    links = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, far), (2, 0, far)]
    network = {"kind": "links", "nodes": 3, "switches": [2],
               "links": [{"src": u, "dst": v, "bandwidth": 1.0, "latency": wait} for u, v, wait in links]}  # fmt: skip
    instance = several([{"collective": "allreduce", "bytes": 1, "ranks": [0, 1]}], network)
    alone = schedule_of([(0, 1)], [(0, 0, [0], True), (0, 0, [2, 3], True), (20, 0, [1], False)])
    assert check_schedule(instance, alone).faults == []
    together = Together.from_schedules(instance, [alone])
    assert together is not None
    made = together.timed(np.arange(3), in_gaps=False)
    assert (made is not None) == kept
    assert made is None or check_schedule(instance, made).faults == []


def test_what_follows_must_still_fit_behind() -> None:
    """Two copies from rank 0 to 1, a second a byte; behind one rank 1 sends to 2, behind the other to 3. The link 0-1
    is busy for 8 s, and 4 s follow the later copy: 12, and no certificate of 8 s says so without order."""
    pairs = [(0, 1), (1, 2), (0, 1), (1, 3)]
    rows: list[dict[str, Any]] = [
        {"collective": "demand", "bytes": 4, "demand": [[u, v, 4]]} | ({"after": [k - 1]} if k % 2 else {})
        for k, (u, v) in enumerate(pairs)
    ]
    line = {"kind": "links", "nodes": 4, "links": [{"src": u, "dst": v, "bandwidth": 1.0} for u, v in pairs[1:]]}
    chains = [several(rows, line), several([{k: v for k, v in row.items() if k != "after"} for row in rows], line)]
    found = strongest(chains[0], RunOptions(10.0))
    assert float(found.seconds) == 12.0
    assert check_bound(chains[0], 12.0, found.certificate()) == []
    assert check_bound(chains[0], 12.1, found.certificate()) != []
    assert check_bound(chains[1], 12.0, found.certificate()) != []
    assert float(best_schedule(chains[0])[0]) == 12.0
