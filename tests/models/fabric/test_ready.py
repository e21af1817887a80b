"""Ready times: files and keys, the replay, bounds, methods; brute force on tiny machines."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.slow_replay import replay
from models.fabric.small_machines import machine, random_schedule, schedule_of
from models.fabric.small_machines import random_instance as random_small
from models.fabric.test_brute_force import small_instance

import synth
from synth.errors import InputError
from synth.instance import parse
from synth.network.links_table import MOST_NODES
from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import colours
from synth_models.fabric.bounds.late_parts import strongest_late_parts
from synth_models.fabric.bounds.proven import NOTHING
from synth_models.fabric.bounds.senders import strongest_senders
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.scheduling import late_start
from synth_models.fabric.scheduling.late_start import late_schedules
from synth_models.fabric.solution import expanded

LINE: list[Any] = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)]
REFERENCES = ("direct", "ring", "recursive_doubling", "double_tree", "bruck")


def on_a_line(collective: str, late: dict[int, float], size: int = 1, **own: Any) -> FabricInstance:
    """Ranks 0-1-2 on links of a byte a second."""
    return machine(3, LINE, collective=collective, bytes=size, ready=list(late.items()), **own)


def with_ready(chooser: random.Random, instance: FabricInstance, moments: Any) -> FabricInstance:
    """The instance with drawn moments for some of its ranks."""
    some = chooser.sample(list(instance.members), chooser.randint(1, len(instance.members)))
    return instance.model_copy(update={"ready": [[rank, chooser.choice(moments)] for rank in some]})


def test_by_hand() -> None:
    """Broadcast of a byte along 0-1-2 from moment 5 on: 7. Allgather of 3 bytes where rank 1 comes at 5: what goes
    from end to end crosses it before, its own arrives at 6. An allreduce of a byte: rank 1 has got both others by then
    and sends the sum at 5, there at 6; where rank 0 comes at 5, its byte needs two hops to rank 2: 7."""
    moves = [(5, 0, [0]), (6, 0, [2])]
    assert check_schedule(on_a_line("broadcast", {0: 5.0}), schedule_of([(0, 1)], moves)).value == 7.0
    assert least_seconds(on_a_line("allgather", {1: 5.0}, 3)) == 6
    assert least_seconds(on_a_line("allreduce", {1: 5.0})) == 6
    assert least_seconds(on_a_line("allreduce", {0: 5.0})) == 7
    early = [(0, 0, [0], True), (0, 0, [3], True), (5, 0, [1]), (5, 0, [2])]
    assert check_schedule(on_a_line("allreduce", {1: 5.0}), schedule_of([(0, 1)], early)).value == 6.0


def test_a_sum_ends_when_its_root_is_ready() -> None:
    """Everything has come to rank 1 by moment 1; its own contribution is there at 5."""
    moves = [(0, 0, [0], True), (0, 0, [3], True)]
    instance = on_a_line("reduce", {1: 5.0}, root=1)
    assert check_schedule(instance, schedule_of([(0, 1)], moves)).value == 5.0
    assert least_seconds(instance) == 5
    found = strongest(instance, RunOptions())
    assert found.seconds == 5
    assert check_bound(instance, 5.0, found.certificate()) == []
    for rank in (0, 2, 3, -1, "1"):
        assert check_bound(instance, 5.0, {"argument": "own_part", "rank": rank}), rank
    assert check_bound(instance.on_time, 5.0, found.certificate())


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce"])
def test_nobody_sends_before_it_is_ready(collective: str) -> None:
    moves = {
        "broadcast": [(4, 0, [0]), (6, 0, [2])],
        "reduce": [(4, 0, [0], True), (5, 0, [3], True)],
        "allreduce": [(4, 0, [0], True), (5, 0, [3], True), (7, 0, [1]), (7, 0, [2])],
    }[collective]
    own = {"root": 1} if collective == "reduce" else {}
    verdict = check_schedule(on_a_line(collective, {0: 5.0}, **own), schedule_of([(0, 1)], moves))
    assert any("of its own before it is ready (5.00 s)" in fault for fault in verdict.faults), verdict.faults
    assert check_schedule(on_a_line(collective, {0: 4.0}, **own), schedule_of([(0, 1)], moves)).ok


def test_a_relay_that_is_not_ready_adds_nothing() -> None:
    """Rank 1 hands on what rank 0 has summed up, without its own; counted as complete that is a fault."""
    early = [(0, 0, [0], True), (1, 0, [2], True)]
    missing = check_schedule(on_a_line("reduce", {1: 5.0}, root=2), schedule_of([(0, 1)], early))
    assert "contributions lack" in missing.faults[0]
    twice = [*early, (5, 0, [2], True)]
    assert (
        "already has" in check_schedule(on_a_line("reduce", {1: 5.0}, root=2), schedule_of([(0, 1)], twice)).faults[0]
    )


def agreed(seed: int) -> set[str]:
    """The replay and the oracle on a random schedule with ready times, valid or not; the oracle's faults."""
    chooser = random.Random(seed)
    instance = with_ready(chooser, random_small(chooser), [0.0, 0.3, 1.0, 2.5, 7.0])
    schedule = random_schedule(chooser, instance.on_time)
    if chooser.random() < 0.5:
        schedule = next(iter(late_schedules(instance, schedule, instance.on_time)), ("", schedule))[1]
    verdict, (faults, ticks) = check_schedule(instance, schedule), replay(instance, schedule)
    assert bool(faults) == bool(verdict.faults), (seed, faults, verdict.faults)
    assert faults or verdict.value == float_above(Fraction(ticks, schedule.ticks_per_s))
    return faults


def test_replay_against_the_oracle() -> None:
    seen = Counter(bool(agreed(seed)) for seed in range(40))
    assert min(seen[True], seen[False]) > 10


def retimed(seed: int, seen: Counter[str]) -> None:
    """Every schedule that is made of a random one for late ranks is valid by the oracle's rules, too."""
    chooser = random.Random(seed)
    instance = with_ready(chooser, random_small(chooser), [0.0, 0.3, 1.0, 2.5, 7.0])
    schedule = random_schedule(chooser, instance.on_time)
    for words, made in late_schedules(instance, schedule, instance.on_time):
        faults, _ = replay(instance, made)
        assert not faults, (seed, words, faults)
        assert check_schedule(instance, made).ok, (seed, words)
        seen[words] += 1


def test_schedules_timed_again_are_valid() -> None:
    seen = Counter[str]()
    for seed in range(40):
        retimed(seed, seen)
    assert seen["all of it later"] > 20
    assert seen["timed again in its own order"] > 10


@pytest.mark.slow
def test_many_schedules_timed_again_are_valid() -> None:
    for seed in range(60, 2000):
        retimed(seed, Counter())


def brute_forced(seed: int, most_states: int, methods: bool) -> str:
    """No bound is above the least time, no method below it with whole blocks; what became of it."""
    chooser = random.Random(seed)
    instance = with_ready(chooser, small_instance(chooser, 3 if seed % 3 else 4), [0.0, 1.0, 2.0, 5.0])
    found = strongest(instance, RunOptions())
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    for name in REFERENCES if methods else ():
        record = synth.solve(instance, name, time_limit=20)
        assert record.ok or record["termination"] == "unsupported", record["verified"]["faults"]
        assert record.value is None or found.seconds <= record.value
    try:
        least = least_seconds(instance, most_states=most_states)
    except TooLarge:
        return "too large"
    assert found.seconds <= least, (seed, found.argument, float(found.seconds), float(least))
    return "tight" if found.seconds == least else "below"


def test_brute_force() -> None:
    seen = Counter(brute_forced(seed, 60, seed % 10 == 0) for seed in range(40))
    assert seen["tight"] > 5, seen
    assert seen["too large"] < 20, seen


@pytest.mark.slow
def test_brute_force_of_many() -> None:
    seen = Counter(brute_forced(seed, 3000, True) for seed in range(40, 400))
    assert sum(seen.values()) - seen["too large"] > 300, seen


def late_parts_of(seed: int, most_states: int) -> str:
    """What late ranks contribute, on a small machine without switches, takes no more than the least time."""
    rng = random.Random(seed)
    n = rng.choice([2, 3, 3, 4])
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    some = rng.sample(pairs, rng.randint(n, len(pairs)))
    links = [
        (u, v, rng.choice([1.0, 1.0, 2.0]), rng.choice([0.0, 0.0, 1.0]), rng.choice([None] * 5 + ["g"]))
        for u, v in some
    ]
    try:
        instance = machine(n, links, collective="allreduce", bytes=rng.choice([1, 2]))
    except ValueError:
        return "parted"
    instance = with_ready(rng, instance, [1.0, 2.0, 5.0])
    own = Links.of(instance)
    found = strongest_late_parts(own, colours(own), NOTHING)
    if found is NOTHING:
        return "on time"
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    assert check_bound(instance, float(found.seconds) * 1.001, found.certificate())
    try:
        least = least_seconds(instance, most_states=most_states)
    except TooLarge:
        return "too large"
    assert found.seconds <= least, (seed, float(found.seconds), float(least))
    return "tight" if found.seconds == least else "below"


def test_what_late_ranks_contribute() -> None:
    """A ring of 4 with 8 links of 1 GB/s, 1 GB, three ranks late by 2 s: behind that 4 + 3 - 2 GB cross links, 0.625 s.
    Each rank alone would say 0.5 s. Damaged certificates prove nothing."""
    ring = synth.make(
        "fabric", network="ring", nodes=4, bandwidth=1e9, latency=0, collective="allreduce", bytes=10**9, late="1-3:2s"
    )
    proven = synth.solve(ring, "bound", time_limit=10)
    certificate = {"argument": "partition", "part": [0, 1, 2, 3], "late": [1, 2, 3]}
    assert proven["bound"] == 2.625
    assert check_bound(ring, 2.625, certificate) == []
    assert check_bound(ring, 2.626, certificate)
    for late in ([], [1, 1, 2], [4], [0, 1, 2, 3]):
        assert check_bound(ring, 2.625, certificate | {"late": late}), late
    seen = Counter(late_parts_of(seed, 60) for seed in range(16))
    assert seen["below"] + seen["tight"] > 4, seen


@pytest.mark.slow
def test_what_late_ranks_contribute_of_many() -> None:
    seen = Counter(late_parts_of(seed, 1500) for seed in range(16, 600))
    assert seen["tight"] > 5, seen


def senders_of(seed: int, most_states: int) -> str:
    """What leaves ranks that are ready, on a small machine, is no more than what the least time lets through."""
    rng, latencies = random.Random(seed), [0.0, 0.0, 1.0]
    n, star = rng.choice([2, 3, 3, 4]), rng.random() < 0.4
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    some = (
        [*((u, n) for u in range(n)), *((n, u) for u in range(n))]
        if star
        else rng.sample(pairs, rng.randint(n, len(pairs)))
    )
    links = [
        (u, v, rng.choice([1.0, 1.0, 2.0]), rng.choice(latencies), rng.choice([None] * 5 + ["g"])) for u, v in some
    ]
    try:
        instance = machine(n + star, links, [n] * star, collective="allreduce", bytes=rng.choice([1, 2]))
    except ValueError:
        return "parted"
    instance = with_ready(rng, instance, [1.0, 2.0, 5.0])
    own = Links.of(instance)
    found = strongest_senders(own, colours(own), NOTHING)
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    assert check_bound(instance, float(found.seconds) * 1.001, found.certificate())
    try:
        least = least_seconds(instance, most_states=most_states)
    except TooLarge:
        return "too large"
    assert found.seconds <= least, (seed, float(found.seconds), float(least))
    return "tight" if found.seconds == least else "below"


def test_senders_that_are_ready() -> None:
    """Four ranks on a star of 1 GB/s, 1 GB, one late by 0.4 s: of 6 GB the late one's link carries 0.4 GB less than the
    others', so (6 + 0.4) / 4 s. Two ranks of a byte, one late by 1 s: (2 + 1) / 2 s."""
    keys: dict[str, Any] = {"network": "star", "nodes": 4, "bandwidth": 1e9, "latency": 0}
    star = synth.make("fabric", **keys, collective="allreduce", bytes=10**9, late="3:400ms")
    assert synth.solve(star, "bound", time_limit=10)["bound"] == pytest.approx(1.6, rel=1e-15)
    pair = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="allreduce", bytes=1, ready=[[0, 1.0]])
    own = Links.of(pair)
    found = strongest_senders(own, colours(own), NOTHING)
    assert found.seconds == Fraction(3, 2)
    assert check_bound(pair, 1.5, found.certificate()) == []
    assert check_bound(pair.on_time, 1.5, found.certificate())
    seen = Counter(senders_of(seed, 100) for seed in range(12))
    assert seen["below"] + seen["tight"] > 4, seen


@pytest.mark.slow
def test_senders_that_are_ready_of_many() -> None:
    seen = Counter(senders_of(seed, 1500) for seed in range(12, 600))
    assert seen["tight"] > 5, seen


def test_pieces_in_parts_carry_what_pieces_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules of which every piece is cut again, whatever the machine, pass the oracle too; a late rank's part of an
    allreduce is then spread while it is still sent."""
    monkeypatch.setattr(late_start, "FINER", (2, 3))
    seen = Counter[str]()
    for seed in range(12):
        retimed(seed, seen)
    assert sum(count for words, count in seen.items() if "each piece in" in words) > 5, seen
    keys: dict[str, Any] = {"network": "star", "nodes": 4, "bandwidth": 1e9, "latency": 1e-6}
    instance = synth.make("fabric", **keys, collective="allreduce", bytes=10**9, late="0:300ms")
    monkeypatch.setattr(late_start, "FINER", (32,))
    record = synth.solve(instance, "direct", time_limit=20)
    assert record.ok
    assert strongest(instance, RunOptions(5.0)).seconds <= record.value < 1.62  # (6 s + 0.3 s) / 4 at least


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("pull", "hierarchical", "flow", "symmetric", "forest")]


@pytest.mark.parametrize("method", ["direct", *LONG])
def test_methods_take_ready_times(method: str) -> None:
    """Whatever a method makes for ranks that are ready at once, it is timed again; nothing is below the bound."""
    collective = "alltoall" if method == "flow" else "allreduce"
    instance = synth.make(
        "fabric", machine="dgx-a100", boxes=2, gpus=2, collective=collective, bytes=2**20, late="1:1ms"
    )
    record = synth.solve(instance, method, time_limit=5)
    assert record.ok, record["message"]
    assert record.value >= strongest(instance, RunOptions(2.0)).seconds > 0.001


@pytest.mark.long
def test_sums_form_where_one_rank_is_late() -> None:
    """Four ranks, 1 MB at 1 GB/s, one late by 10 ms: all others' sum waits there, and 1 ms is left to send the whole;
    who begins when it comes needs two."""
    keys: dict[str, Any] = {"network": "star", "nodes": 4, "bandwidth": 1e9, "latency": 1e-6}
    instance = synth.make("fabric", **keys, collective="allreduce", bytes=10**6, late="0:10ms")
    record = synth.solve(instance, "double_tree", time_limit=20)
    assert record.ok
    assert 0.011 <= strongest(instance, RunOptions(5.0)).seconds <= record.value < 0.0113


@pytest.mark.slow
def test_a_late_box_of_256_gpus() -> None:
    """An allreduce of 1 GiB on 32 boxes, one late by 1 ms: within 5 % of the bound, where waiting costs 19 %."""
    keys: dict[str, Any] = {"machine": "dgx-h100", "boxes": 32, "collective": "allreduce", "bytes": "1GiB"}
    instance = synth.make("fabric", **keys, late="0-7:1ms")
    record, bound = (synth.solve(instance, name, time_limit=120) for name in ("hierarchical", "bound"))
    assert record.ok
    assert record.value < 1.05 * bound["bound"]


def test_instances_without_ready_times_are_as_before(tmp_path: Path) -> None:
    instance = synth.make("fabric", network="ring", nodes=4, collective="allgather", bytes=4)
    assert "ready" not in instance.to_json()
    assert instance.on_time is instance
    late = synth.make("fabric", network="ring", nodes=4, collective="allgather", bytes=4, late="3:300us", ready="1us")
    assert dict(late.ready) == {0: 1e-6, 1: 1e-6, 2: 1e-6, 3: 3e-4}
    assert late.on_time.ready is None
    table = tmp_path / "ready.csv"
    table.write_text("rank,ready\n2,1ms\ngpu1,3\n")
    named = synth.make("fabric", machine="dgx-a100", collective="allgather", bytes=8, ready=str(table))
    assert named.ready == ((2, 1e-3), (1, 3.0))


FAULTS: list[tuple[Any, str]] = [
    ([[0, -1.0]], "ready[0][1] = -1.0: must be >= 0"),
    ([[0, 90_000.0]], "ready[0][1] = 90000.0: must be <= 86400"),
    ([[0, 1.0], [0, 2.0]], "ready[1] = 0: stands twice"),
    ([[7, 1.0]], "ready[0] = 7: is no rank that takes part"),
    ([], "ready = []: must have at least 1 item"),
    ([[0]], "ready[0]: is missing"),
]


@pytest.mark.parametrize(("ready", "words"), FAULTS)
def test_bad_ready_times(ready: Any, words: str) -> None:
    raw = json.loads(on_a_line("allgather", {0: 1.0}, 3).to_json())
    with pytest.raises(InputError) as caught:
        parse(raw | {"ready": ready}, FabricInstance, "t")
    assert words in str(caught.value)


def test_bad_keys(tmp_path: Path) -> None:
    """All at once, with line and key."""
    table = tmp_path / "ready.csv"
    table.write_text("rank,ready\n0,-1us\n1,inf\n2,2e5\nx,1us\n")
    make = {"network": "ring", "nodes": 4, "collective": "allgather", "bytes": 4}
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **make, ready=str(table), late="9:1us,3,2:-1us")
    for words in ("line 2, ready", "line 3, ready", "line 4, ready", "late = '9:1us,3,2:-1us': must be RANK:TIME"):
        assert words in str(caught.value)
    table.write_text("rank,ready\n0,1us\n0,2us\n")
    with pytest.raises(InputError, match=r"ready\.csv, line 3, rank = '0': stands twice"):
        synth.make("fabric", **make, ready=str(table))
    table.write_text("rank,ready\n" + "0,1us\n" * (MOST_NODES + 1))
    with pytest.raises(InputError, match=f"has {MOST_NODES + 1:,} rows: at most {MOST_NODES:,}"):
        synth.make("fabric", **make, ready=str(table))
    with pytest.raises(InputError, match=r"ready = 'ready\.txt': must be a time such as 300us, or a CSV file"):
        synth.make("fabric", **make, ready="ready.txt")
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **make, late="1:-3us,1:1ms")
    for words in ("not 1:-3us", "names rank 1 twice, not 1:1ms"):
        assert words in str(caught.value)


def test_many_wrong_rows_share_a_line() -> None:
    """Of a kind the first hundred are kept; a key that names more ranks than a machine has is not followed."""
    raw = json.loads(on_a_line("allgather", {0: 1.0}, 3).to_json())
    with pytest.raises(InputError) as caught:
        parse(raw | {"ready": [[7, 1.0]] * 1000 + [[0, 1.0]] * 500}, FabricInstance, "t")
    assert "ready[0] = 7: is no rank that takes part (1,000 times" in str(caught.value)
    assert "ready[1001] = 0: stands twice (499 times" in str(caught.value)
    make = {"network": "ring", "nodes": 4, "collective": "allgather", "bytes": 4}
    with pytest.raises(InputError, match="names more than 65,536 ranks"):
        synth.make("fabric", **make, late="0-999999:1us")
    with pytest.raises(InputError, match="ready = True: must be a time"):
        synth.make("fabric", **make, ready=True)


def test_no_quotient_and_several_stay_without() -> None:
    instance = synth.make("fabric", network="torus", rows=4, cols=4, collective="allgather", bytes=16, late="3:1s")
    part = synth.solve(instance.on_time, "symmetric", time_limit=5, options={"quotient": "on"})
    from synth_models.fabric.solution import unpack

    quotient = unpack(instance.on_time, part.packed)
    assert check_schedule(instance, quotient).faults == [
        "where ranks are not ready at once only a list of all transfers counts"
    ]
    assert check_schedule(instance.on_time, expanded(instance.on_time, quotient)).ok


def test_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """Nodes that there are not, beside what is wrong with the rest, whichever file or key they stand in."""
    blocks, ready, pairs = (tmp_path / name for name in ("blocks.csv", "ready.csv", "pairs.csv"))
    blocks.write_text('bytes,holders,mode,wanters\n0,0,any,1\n4,"0,0",sum,1\n4,,any,1\n4,0,any,\n4,9,any,x\n')
    ready.write_text("rank,ready\n0,-1us\n1,inf\n9,1us\n2,1us\n2,90000\n")
    pairs.write_text("src,dst,bytes\n0,9,4\n1,1,4\nx,0,4\n3,0,-4\n")
    ring: dict[str, Any] = {"network": "ring", "nodes": 4, "collective": "demand", "ready": str(ready)}
    for table, own in (
        (blocks, ("2, bytes", "3, holders", "4, holders", "5, wanters", "6, holders = '9': 9: no such", "6, wanters")),
        (
            pairs,
            ("2, dst = '9': no such node", "3: goes from", "4, src = 'x'", "5, bytes", "5, src = '3': is no member"),
        ),
    ):
        with pytest.raises(InputError) as caught:
            synth.make("fabric", **ring, demand=str(table), ranks="0-2,8")
        told = str(caught.value)
        assert "ranks[3] = 8: no such node" in told
        for words in own[:-1] if table is pairs else own:
            assert f"{table}, line {words}" in told
        for words in ("2, ready", "3, ready", "4, rank = '9': no such node", "6, rank = '2': stands twice"):
            assert f"{ready}, line {words}" in told
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **ring, demand=str(pairs), ranks="0-2")
    assert f"{pairs}, line {own[-1]}" in str(caught.value)


def test_a_late_box_sends_all_behind_its_moment() -> None:
    """Between two boxes whose NICs are the narrowest, an alltoall takes as much longer as one box is late; each rank's
    own links alone prove less."""
    made: dict[str, Any] = {"machine": "dgx-h100", "boxes": 2, "collective": "alltoall", "bytes": 2**28}
    late, on_time = (synth.make("fabric", **made | own) for own in ({"late": "0-7:1ms"}, {}))
    assert isinstance(late, FabricInstance)
    assert isinstance(on_time, FabricInstance)
    found = strongest(late, RunOptions(10.0))
    assert 1e-3 < float(found.seconds) - 1e-3 == pytest.approx(float(strongest(on_time, RunOptions(10.0)).seconds))
    assert check_bound(late, float_below(found.seconds), found.certificate()) == []
