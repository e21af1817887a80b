"""Tokens of mixtures of experts: plans against the least time of any schedule, tables and their faults."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from models.fabric.small_machines import machine
from models.fabric.traffic_brute_force import Block, Link, TooLarge, least_ticks

import synth
from synth.errors import InputError, UnsupportedError
from synth.instance import parse
from synth.options import RunOptions
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames, faults
from synth_models.fabric import race
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.tokens.batches import dealt
from synth_models.fabric.plans.tokens.classes import WIDEST, of_routing
from synth_models.fabric.plans.tokens.planner import PlannedTokens, TokenPlanner
from synth_models.fabric.views.transfers import demands

INSIDE, RAILS = ((0, 1), (1, 0), (2, 3), (3, 2)), ((0, 2), (2, 0), (1, 3), (3, 1))


def two_boxes(rail: int, latency: int) -> tuple[FabricInstance, list[Link]]:
    """Two boxes of two ranks: a tick a byte inside, ``rail`` of them on the rails."""
    links = [Link(u, v, 1, 0) for u, v in INSIDE] + [Link(u, v, rail, latency) for u, v in RAILS]
    table = [(u, v, 1.0 / per_byte, float(late)) for u, v, per_byte, late in links]
    found = machine(4, table, collective="broadcast", bytes=1)
    network = found.network.model_copy(update={"boxes": ((0, 1), (2, 3))})
    return found.model_copy(update={"network": network}), links


def planned(chooser: random.Random, most: int) -> tuple[list[Link], list[tuple[int, set[int]]], list[PlannedTokens]]:
    """Links, a random routing of at most so many tokens (source, goals), and both ways of its plan."""
    instance, links = two_boxes(chooser.choice([1, 2, 4]), chooser.choice([0, 1]))
    routing = [
        (chooser.randrange(4), set(chooser.sample(range(4), chooser.randint(1, 3))))
        for _ in range(chooser.randint(1, most))
    ]
    goals = np.array([[*goal, *[-1] * (4 - len(goal))] for _, goal in routing], dtype=np.int64)
    source = np.array([s for s, _ in routing], dtype=np.int64)
    return links, routing, list(TokenPlanner(instance).plan(source, goals, 1, chooser.choice([1, 2])))


def against_every_schedule(seed: int, most: int, states: int) -> list[str]:
    """Check both ways of a random routing. How the plan compares with the least time of the tokens, each wanted by all
    of its ranks, and of the sums of what they make of it."""
    links, routing, ways = planned(random.Random(seed), most)
    found = []
    for way in ways:
        assert not way.check().faults
        assert way.bound <= way.seconds
        back, blocks = way.name == "combine", list[Block]()
        for source, goals in routing:
            if goals - {source}:
                ends = frozenset([source]), frozenset(goals if back else goals - {source})
                holders, wanters = ends[::-1] if back else ends
                blocks.append(Block(way.token_bytes, holders, back and len(holders) > 1, wanters))
        try:
            least = least_ticks(4, links, blocks, [0] * 4, states, way.seconds) if blocks else 0
        except TooLarge:
            found.append("too large")
            continue
        least = int(way.seconds) if least is None else least  # replayed above: nothing is shorter
        assert way.proven.seconds <= least <= Fraction(way.seconds) + Fraction(1, 10**6)
        found.append("optimal" if way.seconds <= least else "longer")
        found += ["tight"] if way.proven.seconds == least else []
    return found


def test_no_plan_beats_every_schedule_and_no_bound_is_above_it() -> None:
    seen = Counter(word for seed in range(20) for word in against_every_schedule(seed, 2, 200))
    assert seen["optimal"] >= 12, seen
    assert seen["tight"] >= 4, seen


@pytest.mark.slow
def test_300_routings() -> None:
    """Both ways of 240 routings of up to four tokens and 60 of up to six; the search gives up on few."""
    seen = Counter(word for seed in range(300) for word in against_every_schedule(seed, 4 if seed % 5 else 6, 2_000))
    assert seen["too large"] <= 60, seen
    assert seen["optimal"] >= 440, seen


def pairs_end_right(seeds: range) -> None:
    """Dispatch and combine of random routings, run by a process a rank with real data."""
    with Crew() as crew:
        for seed in seeds:
            _, _, ways = planned(random.Random(seed), 8)
            for way in ways:
                if not way.schedule.transfers:
                    continue
                t = demands(way.instance, way.schedule)
                program, real = program_of(t), seed % 2 == 1
                done = crew.run(Job(program, seed, real=real))
                assert faults(program, done, TransferNames(t), Data(seed, t.ranks, real, program.goals)) == []


def test_pairs_end_right_by_processes() -> None:
    pairs_end_right(range(5))


@pytest.mark.slow
def test_50_pairs_end_right_by_processes() -> None:
    pairs_end_right(range(50))


def test_one_token_by_hand() -> None:
    """Rank 0 has a token of one byte for 2 and 3: two ticks on the rail to 2, one on to 3; back the same: 3 hands its
    part to 2, which sends the sum."""
    instance, _ = two_boxes(2, 0)
    out, back = TokenPlanner(instance).plan(np.array([0]), np.array([[2, 3]]), 1, 1)
    assert (out.seconds, back.seconds) == (3.0, 3.0)
    assert (out.nic_bytes, back.nic_bytes) == (1, 1)
    assert out.matrix_bytes.sum() == 2
    assert out.schedule.transfers == back.schedule.transfers == 2
    assert not back.schedule.adds.all() or back.instance.blocks.sums.all()


def test_method_plan_takes_such_traffic() -> None:
    _, _, ways = planned(random.Random(5), 6)
    for way in ways:
        assert way.instance.traffic is not None
        again = parse(json.loads(way.instance.to_json()), FabricInstance, "test")
        outcome = race.plan(again, RunOptions(None))
        verdict = check_schedule(again, outcome.solution)
        assert verdict.ok
        assert verdict.value == way.seconds


@pytest.mark.parametrize("machine", ["dgx-a100", "dgx2"])
def test_method_plan_repeats_what_the_tokens_were_planned(machine: str) -> None:
    """So that a record of ``synth plan --tokens`` holds; boxes of 8 and of 16 ranks."""
    planner = synth.TokenPlanner(machine, boxes=2)
    for way in planner.plan(*planner.drawn(tokens=4, experts=32, top=3, boxes=2)):
        again = race.plan(parse(json.loads(way.instance.to_json()), FabricInstance, "test"), RunOptions(None))
        assert check_schedule(way.instance, again.solution).value == way.seconds


def test_wide_boxes_are_counted_alike() -> None:
    """One box of eleven ranks is counted set by set; each of its tokens is in one class."""
    rng = np.random.default_rng(0)
    source, goals = rng.integers(0, 22, 300), rng.integers(-1, 22, (300, 3))
    assert WIDEST < 11
    classes = of_routing(source, goals, np.arange(22), 2, 11)
    copies = {(t, g // 11, s) for t, (s, row) in enumerate(zip(source, goals, strict=True))
              for g in row.tolist() if g >= 0 and g != s}  # fmt: skip
    assert classes.tokens.sum() == len(copies)
    assert classes.leave_rank.sum() == len({t for t, _, _ in copies})


def test_every_rail_gets_its_share() -> None:
    sent = np.random.default_rng(1).integers(0, 50, (3, 3, 4))
    share = dealt(sent)
    apart = ~np.eye(3, dtype=bool)
    assert np.array_equal(share.sum(axis=3)[apart], sent[apart])
    assert np.ptp(share.sum(axis=2)[apart], axis=1).max() <= 1


def read(folder: Path, tokens: str, placement: str | None = None) -> Sequence[np.ndarray]:
    """What a table of tokens says."""
    (folder / "t.csv").write_text(tokens)
    if placement is not None:
        (folder / "p.csv").write_text(placement)
    return TokenPlanner(two_boxes(2, 0)[0]).read(
        str(folder / "t.csv"), None if placement is None else str(folder / "p.csv")
    )


def test_tables(tmp_path: Path) -> None:
    source, goals = read(tmp_path, "source,goals,tokens\n0,1 2,2\n3,0-1,1\n")
    assert source.tolist() == [0, 0, 3]
    assert goals.tolist() == [[1, 2], [1, 2], [0, 1]]
    _, goals = read(tmp_path, "source,experts\n0,7 8\n3,7\n1,7\n", "expert,rank\n7,0\n7,2\n8,3\n")
    assert goals.tolist() == [[0, 3], [2, -1], [0, -1]]


def test_faults_of_both_tables_come_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, "source,experts\n9,1\n0,1 1\n", "expert,rank\n1,77\n")
    words = str(caught.value)
    assert "p.csv, line 2, rank" in words
    assert "t.csv, line 2, source" in words
    assert "names 1 twice" in words
    with pytest.raises(InputError, match="expert 5 is nowhere"):
        read(tmp_path, "source,experts\n0,1 5\n", "expert,rank\n1,2\n")
    with pytest.raises(InputError, match="where they are"):
        read(tmp_path, "source,experts\n0,1\n")


def test_a_token_takes_the_nearest_copy_of_its_expert(tmp_path: Path) -> None:
    """Its own rank's, else the first one in its box, else one after the other by the token's number."""
    chooser = random.Random(7)
    placed = [(e, r) for e in range(6) for r in range(4) if chooser.random() < 0.4 or r == e % 4]
    chooser.shuffle(placed)
    tokens = [(chooser.randrange(4), chooser.sample(range(6), 3)) for _ in range(60)]
    rows = "".join(f"{source},{' '.join(map(str, experts))}\n" for source, experts in tokens)
    _, goals = read(tmp_path, "source,experts\n" + rows, "expert,rank\n" + "".join(f"{e},{r}\n" for e, r in placed))
    for t, ((source, experts), found) in enumerate(zip(tokens, goals.tolist(), strict=True)):
        for expert, rank in zip(experts, found, strict=True):
            at = [r for e, r in placed if e == expert]
            near = [r for r in at if r // 2 == source // 2]
            assert rank == (source if source in at else near[0] if near else at[t % len(at)])


@pytest.mark.parametrize(
    ("rows", "placement", "fault"),
    [
        ("source,goals\n0," + "1 2 " * 15_000, None, "names 1 twice"),
        ("source,experts,tokens\n0," + " ".join(map(str, range(20_000))) + ",9999\n", "", "tokens, one with 20,000"),
        ("source,experts\n0,1\n", "".join(f"{e},0,1024\n" for e in range(4097)), "4,195,328 copies: at most"),
    ],
)
def test_tables_that_would_fill_the_memory(rows: str, placement: str | None, fault: str, tmp_path: Path) -> None:
    head = "expert,rank,copies\n"
    wide = None if placement is None else head + (placement or "".join(f"{e},0,1\n" for e in range(20_000)))
    with pytest.raises(InputError, match=fault):
        read(tmp_path, rows, wide)


def test_draws_that_would_fill_the_memory() -> None:
    planner = TokenPlanner(two_boxes(2, 0)[0])
    with pytest.raises(InputError, match="times experts is 1,099,511,627,776 of a rank"):
        planner.drawn(tokens=2**20, experts=2**20)


def test_json_says_what_csv_says(tmp_path: Path) -> None:
    rows = [{"source": 0, "experts": [0, 1], "tokens": 3}, {"source": "1", "experts": "1"}]
    where = [{"expert": 0, "rank": 2}, {"expert": 1, "rank": 3, "copies": 2}]
    source, goals = read(tmp_path, json.dumps(rows), json.dumps(where))
    same = read(tmp_path, "source,experts,tokens\n0,0 1,3\n1,1,1\n", "expert,rank,copies\n0,2,1\n1,3,2\n")
    assert (source == same[0]).all()
    assert (goals == same[1]).all()


@pytest.mark.parametrize(
    ("tokens", "placement", "faults"),
    [
        ('[{"source": 0, "goals": [1, 1]},\n{"source": 99, "goals": true, "x": 1}, 7]', None,
         ("line 1, goals = [1, 1]: names 1 twice", "line 2, source = 99", "line 2, goals = True",
          "line 2, x: no such key",
          "line 2: is no table of source, goals, tokens")),
        ('[{"source": 0, "experts": [5]}]', '[{"expert": 0, "rank": 1},\n{"expert": 0}]', ("p.csv, line 2, rank",)),
        ('[{"source": 0, "experts": [5]}]', '[{"expert": 0, "rank": 1}]', ("expert 5 is nowhere",)),
        ("[]", None, ("needs at least one token",)),
        ('[{"source": 0, "source": 1, "goals": [2]}]', None, ("line 1: not valid JSON",)),
        ('[{"source": 0, "goals": [2]}', None, ("not valid JSON",)),
        ("[[" + "[" * 100_000, None, ("not valid JSON",)),
    ],
)  # fmt: skip
def test_faults_of_json_are_named(tokens: str, placement: str | None, faults: Sequence[str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, tokens, placement)
    for fault in faults:
        assert fault in str(caught.value)


def test_drawn_tokens_keep_to_their_boxes() -> None:
    planner = TokenPlanner(two_boxes(2, 0)[0])
    source, goals = planner.drawn(tokens=20, experts=16, top=3, boxes=1, zipf=0.8, seed=4)
    assert source.tolist() == sorted([0, 1, 2, 3] * 20)
    assert (np.ptp(goals // 2, axis=1) == 0).all()
    with pytest.raises(InputError, match="experts = 15"):
        planner.drawn(experts=15)


def test_unequal_boxes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="unequal"):
        synth.TokenPlanner("dgx-a100", gpus="2+4")
