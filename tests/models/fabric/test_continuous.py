"""Method ``continuous``: equal to brute force on all tiny machines, valid in every way of switching, never worse than
``pull``, and honest about what it has proven."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.random_machines import random_instance as drawn_instance
from models.fabric.small_machines import COLLECTIVES, machine, random_instance
from models.fabric.test_brute_force import small_instance
from models.fabric.test_traffic import Drawn
from models.fabric.traffic_brute_force import TooLarge as TrafficTooLarge

import synth
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.proven import NOTHING
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.programs.continuous import method, neighbourhood
from synth_models.fabric.programs.continuous.claims import Claims
from synth_models.fabric.programs.continuous.exact_answer import Answer, quickest
from synth_models.fabric.programs.continuous.method import propose
from synth_models.fabric.programs.continuous.order import Order
from synth_models.fabric.programs.continuous.problem import Problem, most_seconds
from synth_models.fabric.programs.continuous.sizes import adjusted, resized
from synth_models.fabric.programs.continuous.timed_trees import orders
from synth_models.fabric.programs.continuous.transfer_routes import TransferRoutes
from synth_models.fabric.programs.continuous.tuned import MOST_CUT
from synth_models.fabric.race import continuous as solve
from synth_models.fabric.race import pull
from synth_models.fabric.scheduling.chunks import cut
from synth_models.fabric.solution import Schedule, pack, unpack

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))]
QUICK = ("broadcast", "allreduce", "alltoall")
MANY = [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in COLLECTIVES]


def transfers_of(schedule: Schedule) -> list[tuple[int, int, bool, list[int]]]:
    """Start, piece, adds and links of every transfer, in order."""
    routes = np.split(schedule.link, schedule.route_start[1:-1])
    columns = zip(schedule.start, schedule.piece, schedule.adds, routes, strict=True)
    return sorted(
        (int(start), int(piece), bool(adds), [int(e) for e in route]) for start, piece, adds, route in columns
    )


def settled(instance: FabricInstance, sizes: list[list[int]]) -> tuple[Problem, Answer, Fraction | None]:
    """The program's answer for these pieces, and the seconds of its schedule, which passes the check."""
    block = [b for b, row in enumerate(sizes) for _ in row]
    problem = Problem.of(instance, TransferRoutes(instance), block, [n for row in sizes for n in row])
    horizon = int(most_seconds(instance, problem.size) * problem.ticks)
    answer = quickest(problem, horizon, 0, RunOptions(time_limit_s=60))
    if answer.rows is None:
        return problem, answer, None
    schedule = problem.schedule(answer.rows)
    verdict = check_schedule(instance, schedule)
    assert verdict.ok, verdict.faults
    again = problem.schedule(problem.rows(schedule))  # perhaps told in other routes: a tree is also a path and a branch
    assert transfers_of(again) == transfers_of(schedule)
    return problem, answer, Fraction(problem.completion(answer.rows), problem.ticks)


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_brute_force(seed: int) -> None:
    """Two and three ranks, perhaps a switch, all collectives, one or two pieces a block; sums may lose the time that
    two transfers are kept apart."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(10):
        instance = small_instance(chooser, 3)
        sizes = [cut(int(n), chooser.choice([1, 1, 2])) for n in instance.blocks.bytes]
        try:
            least = least_seconds(instance, sizes, most_states=1500)
        except TooLarge:
            continue
        problem, answer, found = settled(instance, sizes)
        assert answer.settled
        assert found is not None
        apart = Fraction(20 * problem.unit, problem.ticks) if problem.sums else Fraction(0)
        assert least <= found <= least + apart, (instance.collective, float(found), float(least))
        seen[instance.collective] += 1
    assert sum(seen.values()) >= 7


def equals(instance: FabricInstance, sizes: list[list[int]], least: Fraction) -> bool:
    """Whether the program's answer is that least time; where several want a sum it may lose what keeps transfers
    apart."""
    problem, answer, found = settled(instance, sizes)
    assert answer.settled
    assert found is not None
    apart = Fraction(20 * problem.unit, problem.ticks) if problem.sums else Fraction(0)
    return least <= found <= least + apart


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 900), marks=pytest.mark.slow)])
def test_traffic_equals_brute_force(seeds: range) -> None:
    """Blocks with several holders and wanters, copies and sums, on two to four ranks that are late."""
    seen = Counter[str]()
    for seed in seeds:
        drawn = Drawn.of(random.Random(seed))
        try:
            least = drawn.least(300)
        except TrafficTooLarge:
            continue
        assert least is not None
        assert equals(drawn.instance, [[int(n)] for n in drawn.instance.blocks.bytes], Fraction(least)), seed
        seen.update({"sums": bool(drawn.instance.blocks.sums.any()), "late": any(drawn.ready), "all": 1})
    assert seen["all"] > len(seeds) // 2
    assert min(seen["sums"], seen["late"]) > len(seeds) // 4


@pytest.mark.parametrize("seeds", [range(24), pytest.param(range(24, 300), marks=pytest.mark.slow)])
def test_late_ranks_equal_brute_force(seeds: range) -> None:
    """As on time, with one rank or more that are late."""
    seen = Counter[str]()
    for seed in seeds:
        chooser = random.Random(seed)
        instance = small_instance(chooser, 3)
        late = chooser.sample(instance.members, chooser.randint(1, len(instance.members)))
        ready = [[rank, float(chooser.choice([1, 2, 5]))] for rank in late]
        instance = instance.model_copy(update={"ready": ready})
        sizes = [cut(int(n), chooser.choice([1, 1, 2])) for n in instance.blocks.bytes]
        try:
            least = least_seconds(instance, sizes, most_states=600)
        except TooLarge:
            continue
        assert equals(instance, sizes, least), (seed, instance.collective)
        seen[instance.collective] += 1
    assert sum(seen.values()) > len(seeds) // 2
    assert len(seen) > 4


@pytest.mark.slow
@pytest.mark.parametrize("modes", [("any",), ("sum",)])
def test_races_for_late_ranks_and_several_holders(modes: tuple[str, ...]) -> None:
    """The race's answer is valid, no worse than pull's, and not below its bound."""
    for seed in range(3):
        instance = Drawn.of(random.Random(seed), modes).instance
        record, other = (synth.solve(instance, name, time_limit=5) for name in ("continuous", "pull"))
        assert record.ok, record["verified"]["faults"]
        assert record["bound"] <= record.value <= other.value


@pytest.mark.parametrize("seed", SEEDS)
def test_switches_that_store(seed: int) -> None:
    """Without switches the way of switching makes no difference; with them a buffer, or copies, never hurt."""
    chooser = random.Random(seed)
    for _ in range(4):
        instance = small_instance(chooser, 3)
        sizes = [[int(n)] for n in instance.blocks.bytes]
        times = {}
        for buffer in (False, True):
            for copies in (False, True):
                stored = {"mode": "store_and_forward", "buffer": buffer, "copies": copies}
                other = instance.model_copy(update={"switching": type(instance.switching)(**stored)})
                times[buffer, copies] = settled(other, sizes)[2]
        found = [time for time in times.values() if time is not None]
        assert len(found) == 4
        if instance.collective not in ("allreduce", "reduce", "reduce_scatter"):  # there only paths without waiting
            assert times[True, True] <= min(found)  # type: ignore[operator]
            assert times[False, False] >= max(found)  # type: ignore[operator]
        if not instance.machine.is_switch.any() and not instance.switching.multicast:
            assert set(found) == {settled(instance, sizes)[2]}


@pytest.mark.parametrize("seed", [20868, 5158, 2299])
def test_begins_without_a_schedule(seed: int) -> None:
    """Where no other method had one in the time; pieces may wait in switches, or be summed up."""
    instance = drawn_instance(seed)
    given = Incumbent(instance, RunOptions(time_limit_s=60, relative_gap=0.9).started_now())
    given.prove(strongest(instance, RunOptions()))
    outcome = propose(instance, given.options, given)
    assert outcome.solution is not None
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    out_of_time = Incumbent(instance, RunOptions(time_limit_s=1e-9).started_now(), proven=given.proven)
    assert propose(instance, out_of_time.options, out_of_time).termination in ("time_limit", "optimal", "finished")


def test_ways_not_taken_need_not_fit() -> None:
    """Hops of a way are in order only if it is taken: else what is too slow for all would leave no schedule at all."""
    instance = drawn_instance(20868)
    sizes = [[int(n)] for n in instance.blocks.bytes]
    problem = Problem.of(instance, TransferRoutes(instance), range(len(sizes)), [n for (n,) in sizes])
    answer = quickest(problem, 3014, 0, RunOptions(time_limit_s=20))
    assert answer.rows is not None
    assert problem.completion(answer.rows) <= 2009
    verdict = check_schedule(instance, problem.schedule(answer.rows))
    assert verdict.ok, verdict.faults


COARSE = [
    (2, [1e-12, 0.25]), (2, [1e-12, 1e-12, 0.25]), (3, [1e-12, 1e-12, 0.25]), (3, [0.25, 1e-12, 0.1, 1e-9]),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "latencies"), COARSE)
def test_sums_in_coarse_units(pieces: int, latencies: list[float]) -> None:
    """Where the clock is too fine for the program, what arrives within the last unit counts as arrived."""
    pairs = [(u, v) for u in range(3) for v in range(3) if u != v]
    links = [(u, v, 1e9 * (1 + k % 3), latencies[k % len(latencies)]) for k, (u, v) in enumerate(pairs)]
    instance = machine(3, links, collective="allreduce", bytes=4096)
    sizes = [cut(int(n), pieces) for n in instance.blocks.bytes]
    block = [b for b, row in enumerate(sizes) for _ in row]
    problem = Problem.of(instance, TransferRoutes(instance), block, [n for row in sizes for n in row])
    assert not problem.exact
    answer = quickest(problem, 2 * problem.ticks, 0, RunOptions(seed=1), work=1.0)
    assert answer.rows is not None
    verdict = check_schedule(instance, problem.schedule(answer.rows))
    assert verdict.ok, verdict.faults


def test_pieces_pipeline() -> None:
    """Six bytes over 0 -> 1 -> 2 at 1 byte/s: 12 s whole, 9 s in two pieces (3 + 3 + 3), 8 s in three."""
    line = machine(3, [(0, 1, 1.0), (1, 2, 1.0)], collective="broadcast", bytes=6)
    assert [settled(line, [cut(6, k)])[2] for k in (1, 2, 3)] == [12, 9, 8]


def test_uneven_pieces() -> None:
    """Twelve bytes over 0 -> 1 at 1 byte/s -> 2 at 2: two even pieces take 12 + 3 s; 8 and 4 bytes 12 + 2: the second
    link is done with the first piece when the other one comes."""
    line = machine(3, [(0, 1, 1.0), (1, 2, 2.0)], collective="broadcast", bytes=12)
    problem, answer, found = settled(line, [[6, 6]])
    assert found == 15
    assert answer.rows is not None
    order = Order.of(problem, answer.rows)
    assert resized(order) == [8, 4]
    better = adjusted(order)
    assert better is not None
    assert better[0].completion(better[1]) == 14 * better[0].ticks
    finer = order.halved(MOST_CUT)
    halves = finer.timed()
    assert halves is not None
    assert finer.problem.completion(halves) <= 15 * finer.problem.ticks


def test_the_largest_are_halved_where_not_all_may_be() -> None:
    """Pieces of 2, 8 and 4 bytes of two transfers each: with room for 8 transfers, only that of 8 bytes is cut."""
    line = machine(3, [(0, 1, 1.0), (1, 2, 2.0)], collective="broadcast", bytes=14)
    problem, answer, _ = settled(line, [[2, 8, 4]])
    assert answer.rows is not None
    order = Order.of(problem, answer.rows)
    sizes = {most: order.halved(most).problem.size for most in (6, 7, 8, 10, 12)}
    assert sizes[6] == sizes[7] == (2, 8, 4)
    assert sizes[8] == (2, 4, 4, 4)
    assert sizes[10] == (2, 4, 4, 2, 2)
    assert sizes[12] == (1, 1, 4, 4, 2, 2)


def test_halving_ends_at_the_limit_of_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three even pieces of 1200 bytes over two like links; five may be had where six are too many, and are quicker."""
    line = machine(3, [(0, 1, 1.0), (1, 2, 1.0)], collective="broadcast", bytes=1200)
    routes = TransferRoutes(line)
    problem, answer, _ = settled(line, [[400, 400, 400]])
    assert answer.rows is not None
    ended = {}
    for most in (6, 11, 12):
        monkeypatch.setattr(neighbourhood, "MOST_CUT", most)
        incumbent = Claims(line, RunOptions())
        incumbent.offer(problem.schedule(answer.rows), "three")
        neighbourhood._halved(incumbent, routes)
        assert incumbent.best is not None
        assert incumbent.best.transfers <= most
        ended[most] = incumbent.time
    assert ended == {6: 1600, 11: 1440, 12: 1400}


def test_an_allreduce_keeps_time_for_its_last_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tried, left = [0.0], list[int](), list[float | None]()
    monkeypatch.setattr("synth.options.time.monotonic", lambda: clock[0])

    def one(incumbent: Claims, routes: TransferRoutes, number: int, share: float) -> bool:
        tried.append(number)
        clock[0] += 9.0
        return True

    monkeypatch.setattr(method, "_one_number", one)
    monkeypatch.setattr(method, "search", lambda own, routes: left.append(own.options.remaining()))
    line = machine(2, [(0, 1, 1.0, 1.0), (1, 0, 1.0, 1.0)], collective="allreduce", bytes=8)
    given = Incumbent(line, RunOptions(time_limit_s=40.0).started_now(), proven=NOTHING)
    propose(line, given.options, given)
    assert tried == [2, 4, 8, 1]  # the next one would begin with less than a quarter
    assert left == [4.0]


@pytest.mark.parametrize(("most_rows", "largest", "ended"), [(3, 660, 533), (3, 720, 600), (500, 660, 600)])
def test_what_is_slower_now_may_be_the_quickest_with_better_sizes(
    monkeypatch: pytest.MonkeyPatch, most_rows: int, largest: int, ended: int
) -> None:
    """1200 bytes from rank 0 to 1 and 2. Straight to both they take 600 s over the slower link, whatever the pieces;
    in three pieces by way of rank 1 the largest counts twice: 620 s if it has 660 bytes, 533 s if all have 400. Of
    720 bytes it takes over 1.05 times 600 s, which is not tried, and nothing is where steps of the search may be."""
    monkeypatch.setattr(neighbourhood, "MOST_ROWS", most_rows)
    monkeypatch.setattr(neighbourhood, "MOST_CUT", 6)
    links = [(0, 1, 3.0), (1, 2, 3.0), (0, 2, 2.0)]
    both = machine(3, links, collective="broadcast", bytes=1200)
    rest = (1200 - largest) // 2
    lent = []
    for of, sizes, own in (([0, 2], [600, 600], links[::2]), ([0, 1], [largest, rest, rest], links[:2])):
        problem, answer, _ = settled(machine(3, own, collective="broadcast", bytes=1200), [sizes])
        assert answer.rows is not None
        made = problem.schedule(answer.rows)
        lent.append(Outcome("finished", replace(made, link=np.array(of)[made.link]), made_by=("one", "other")))
    incumbent = Claims(both, RunOptions(), lent=lent)
    incumbent.offer(lent[0].solution, "straight", ("one",))
    neighbourhood.improve_lent(incumbent, TransferRoutes(both))
    assert incumbent.time is not None
    assert round(float(incumbent.time)) == ended
    assert incumbent.made_by == (None if ended == 533 else ("one",))


@pytest.mark.parametrize("seed", SEEDS)
def test_orders_keep_schedules_valid(seed: int) -> None:
    """Whatever valid schedule is read: pushed to the left, halved, and with better sizes it stays valid; where nothing
    is kept apart by a hair, it does not end later."""
    chooser = random.Random(seed)
    for _ in range(6):
        instance = small_instance(chooser, 3)
        sizes = [[int(n)] for n in instance.blocks.bytes]
        problem, answer, found = settled(instance, sizes)
        assert answer.rows is not None
        assert found is not None
        order = Order.of(problem, answer.rows)
        rows = order.timed()
        assert rows is not None
        assert check_schedule(instance, problem.schedule(rows)).ok
        assert Fraction(problem.completion(rows), problem.ticks) <= found
        finer = order.halved(MOST_CUT)
        for made in ((finer.problem, finer.timed()), adjusted(finer) or (finer.problem, None)):
            if made[1] is not None and not problem.sums:
                assert check_schedule(instance, made[0].schedule(made[1])).ok


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", ["broadcast", "allgather", "reduce", "reduce_scatter", "scatter"])
def test_trees_over_time(collective: str) -> None:
    """They are valid, and more pieces come nearer to the bound."""
    instance = synth.make(
        "fabric", network="star", nodes=4, bandwidth="1e9", latency="1e-6", bytes=8000, collective=collective
    )
    incumbent, proven = Incumbent(instance, RunOptions()), strongest(instance, RunOptions())
    incumbent.prove(proven)
    times = []
    for order, urgency in orders(instance, TransferRoutes(instance), incumbent):
        for rows in (order.timed(), order.listed(urgency)):
            assert rows is not None
            assert check_schedule(instance, order.problem.schedule(rows)).ok
            times.append(Fraction(order.problem.completion(rows), order.problem.ticks))
            assert times[-1] >= proven.seconds
    assert times
    assert min(times) <= proven.seconds * Fraction(11, 10)


@pytest.mark.long
@pytest.mark.parametrize("collective", MANY)
def test_never_worse_than_pull(collective: str) -> None:
    """Any machine, either way of switching; every record passes the check."""
    chooser, tried = random.Random(COLLECTIVES.index(collective)), 0
    while tried < 1:
        instance = random_instance(chooser)
        if instance.collective != collective or instance.bytes > 20:
            continue
        tried += 1
        record = synth.solve(instance, "continuous", time_limit=1.5)
        assert record.ok, record["verified"]["faults"]
        theirs = pull(instance, RunOptions(time_limit_s=1.5)).solution
        assert record.value is not None
        assert record.value <= (check_schedule(instance, theirs).value or 0.0)
        assert record.bound is not None
        assert record["termination"] in ("optimal", "finished")


def test_optimal_is_what_has_a_certificate() -> None:
    """Where no time was left to prove anything, a schedule at the quick bound is no proof."""
    instance = machine(2, [(0, 1, 1e9, 0.0), (1, 0, 1e9, 0.0)], collective="broadcast", bytes=1000)
    found = pull(instance, RunOptions(time_limit_s=5)).solution
    given = Incumbent(instance, RunOptions(), least=Fraction(1, 10**6))
    given.offer(found, "as pull", ("pull",))
    given.prove(NOTHING)
    assert given.settled
    outcome = propose(instance, RunOptions(), given)
    assert (outcome.termination, outcome.bound) == ("finished", 0.0)
    given.prove(strongest(instance, RunOptions()))
    assert propose(instance, RunOptions(), given).termination == "optimal"


@pytest.mark.long
def test_claims_are_carried_and_refuted() -> None:
    """What the solver says of a cutting is a fact that is not verified; a schedule of that cutting refutes a false
    one; it is no bound, as other cuttings are quicker."""
    line = machine(3, [(0, 1, 1.0), (1, 2, 1.0)], collective="broadcast", bytes=60)
    outcome = solve(line, RunOptions(time_limit_s=6.0, method={"chunks": 2}))
    assert outcome.termination == "finished" or outcome.bound is not None
    schedule = outcome.solution
    assert "proven optimal among schedules of 2 even pieces a block: 90.0 s" in (outcome.message or "")
    verdict = check_schedule(line, schedule)
    assert verdict.ok
    assert verdict.value is not None
    assert verdict.value < 90
    assert verdict.facts["cuttings"] == ["no schedule of 2 even pieces a block takes less than 90.0 s"]
    assert verdict.unverified
    again = unpack(line, pack(schedule))
    assert check_schedule(line, again) == verdict
    one = settled(line, [[30, 30]])
    assert one[1].rows is not None
    plan: dict[str, Any] = {"kind": "cutting", "pieces": np.array([2]), "least_s": np.array([91.0])}
    lie = replace(one[0].schedule(one[1].rows), plan=plan)
    assert "but this one does" in check_schedule(line, lie).faults[0]
    for broken in ({"pieces": [0]}, {"least_s": [float("nan")]}, {"least_s": [1.0, 2.0]}, {"pieces": []}):
        bad = check_schedule(line, replace(lie, plan=plan | broken))
        assert bad.faults


@pytest.mark.long
def test_too_fine_a_clock_and_nothing_to_move() -> None:
    alone = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="broadcast", bytes=5, ranks=[0])
    assert solve(alone, RunOptions()).termination == "finished"
    odd = machine(3, [(0, 1, 1.234567891, 0.1), (1, 2, 0.987654321, 0.3)], collective="broadcast", bytes=7)
    record = synth.solve(odd, "continuous", time_limit=2.0)
    assert record.ok


@pytest.mark.long
@pytest.mark.parametrize(("limit", "keys"), [
    (2, {"machine": "dgx1", "collective": "broadcast", "bytes": "64KiB"}),
    (20, {"machine": "teccl-ndv2-2", "collective": "allgather", "bytes": "15MB"}),  # done in two seconds
    (2, {"network": "mesh", "rows": "2", "cols": "2", "collective": "alltoall", "bytes": "4KiB"}),
])  # fmt: skip
def test_never_worse_than_epochs(limit: float, keys: dict[str, str]) -> None:
    """``epochs`` alone has a quarter of what ``continuous`` gives it: a busy machine changes nothing."""
    instance = synth.make("fabric", **keys)
    epochs = synth.solve(instance, "epochs", time_limit=limit / 20)
    continuous = synth.solve(instance, "continuous", time_limit=limit)
    assert epochs.value is not None
    assert continuous.value is not None
    assert continuous.value <= epochs.value
