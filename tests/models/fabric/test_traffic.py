"""Traffic: blocks with several holders and wanters, copies and contributions; files, replay, bounds, methods."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from models.fabric.slow_replay import replay
from models.fabric.small_machines import machine, random_instance, random_schedule, random_traffic, schedule_of
from models.fabric.test_replay_oracle import compare, mutated
from models.fabric.traffic_brute_force import Block, Link, TooLarge, least_ticks

import synth
from synth.errors import InputError
from synth.instance import parse
from synth.options import RunOptions
from synth.text.input_file import InputFile
from synth_models.fabric import race
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.problem.traffic_table import read_table
from synth_models.fabric.solution import Schedule
from synth_models.fabric.views.transfers import transfers

TRIANGLE: list[Any] = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (0, 2, 1.0), (2, 0, 1.0)]


@pytest.mark.parametrize("text", ["bytes,holders,wanters\n" + "1,0,1\n" * (2**17 + 1), "[" + "1,\n" * 2**17 + "1]"])
def test_tables_of_too_many_blocks_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=r"t\.csv: has .*131,07[23].*supported"):
        read_table(InputFile(file))


def among_three(*rows: tuple[int, list[int], str, list[int]], **own: Any) -> FabricInstance:
    """Ranks 0, 1, 2 with links of a byte a second both ways between any two."""
    listed = [{"bytes": n, "holders": holders, "mode": mode, "wanters": wanters} for n, holders, mode, wanters in rows]
    return machine(3, TRIANGLE, collective="traffic", traffic=listed, bytes=sum(row[0] for row in rows), **own)


def test_any_copy_will_do_and_every_contribution_once() -> None:
    """Rank 2 gets a byte from either holder at 1; the sum of both needs both; a contribution twice is a fault, and so
    is a copy of what is not complete."""
    copies, sums = among_three((1, [0, 1], "any", [2])), among_three((1, [0, 1], "sum", [2]))
    for link in (4, 2):
        assert check_schedule(copies, schedule_of([(0, 1)], [(0, 0, [link])])).value == 1.0
    both = [(0, 0, [4], True), (0, 0, [2], True)]
    assert check_schedule(sums, schedule_of([(0, 1)], both)).value == 1.0
    lacking = check_schedule(sums, schedule_of([(0, 1)], both[:1])).faults
    assert lacking == [
        "end: rank 2 does not hold the complete sum of piece 0 of block 0: 1 contributions lack, first rank 1's"
    ]
    twice = [*both, (1, 0, [4], True)]
    assert "that its receiver already has" in check_schedule(sums, schedule_of([(0, 1)], twice)).faults[0]
    assert "passes on piece 0 as complete" in check_schedule(sums, schedule_of([(0, 1)], [(0, 0, [4])])).faults[0]
    assert "traffic has no sums" in check_schedule(copies, schedule_of([(0, 1)], both)).faults[0]


def test_a_holder_that_is_late_hands_on_what_it_has_got() -> None:
    """Both hold the byte, rank 1 from 5 on; it hands on rank 0's copy at 1, not its own."""
    instance = among_three((1, [0, 1], "any", [2]), ready=[[1, 5.0]])
    assert check_schedule(instance, schedule_of([(0, 1)], [(0, 0, [0]), (1, 0, [2])])).value == 2.0
    early = check_schedule(instance, schedule_of([(0, 1)], [(1, 0, [2])])).faults
    assert "of its own before it is ready (5.00 s)" in early[0]


def random_traffic_schedule(chooser: random.Random) -> tuple[FabricInstance, Schedule]:
    """A random instance that transfers at random can solve, and such a schedule."""
    while True:
        instance = random_instance(chooser, traffic=True)
        try:
            schedule = random_schedule(chooser, instance)
        except IndexError:
            continue  # no in-tree to the rank that was drawn
        if schedule.transfers:
            return instance, schedule


def replays_agree(seed: int, seen: Counter[str]) -> None:
    chooser = random.Random(seed)
    instance, schedule = random_traffic_schedule(chooser)
    assert compare(instance, schedule) == set()
    for _ in range(3):
        schedule = mutated(chooser, instance, schedule)
        seen.update(compare(instance, schedule) or {"none"})
        if not schedule.transfers:
            break


def test_replay_against_the_oracle() -> None:
    seen = Counter[str]()
    for seed in range(40):
        replays_agree(seed, seen)
    assert {"none", "missing", "adds", "incomplete"} <= seen.keys()


@pytest.mark.slow
def test_many_replays_against_the_oracle() -> None:
    for seed in range(40, 3000):
        replays_agree(seed, Counter())


@dataclass
class Drawn:
    """Tiny traffic as the brute force and as an instance file states it; ``ready``: ticks, a second each."""

    links: list[Link]
    blocks: list[Block]
    ready: list[int]
    instance: FabricInstance

    @classmethod
    def of(cls, chooser: random.Random, modes: Sequence[str] = ("any", "sum"), late: bool = True) -> Drawn:
        """Two to four ranks, at most six blocks; one that has nothing to move is drawn again."""
        while True:
            ranks = chooser.randint(2, 4)
            pairs = [(u, v) for u in range(ranks) for v in range(ranks) if u != v]
            ends = chooser.sample(pairs, chooser.randint(ranks, len(pairs)))
            links = [Link(u, v, chooser.randint(1, 2), chooser.randint(0, 2)) for u, v in ends]
            rows = random_traffic(chooser, list(range(ranks)), 6 if ranks < 4 else 4, 2)
            for row in rows:
                row["mode"] = chooser.choice(modes)
            ready = [chooser.choice([0, 0, 2, 5]) if late else 0 for _ in range(ranks)]
            blocks = [_block(row) for row in rows]
            blocks = [block for block in blocks if block.wanters]
            own: dict[str, Any] = {"traffic": rows, "bytes": sum(row["bytes"] for row in rows)}
            own["ready"] = [[rank, float(moment)] for rank, moment in enumerate(ready)]
            try:
                table = [(u, v, 1.0 / per_byte, float(latency)) for u, v, per_byte, latency in links]
                instance = machine(ranks, table, collective="traffic", **own)
            except ValueError:
                continue  # some wanter cannot be reached
            if blocks:
                return cls(links, blocks, ready, instance)

    def least(self, most_states: int) -> int | None:
        return least_ticks(len(self.ready), self.links, self.blocks, self.ready, most_states)


def _block(row: dict[str, Any]) -> Block:
    holders, wanters = frozenset(row["holders"]), frozenset(row["wanters"])
    sums = row["mode"] == "sum" and len(holders) > 1
    return Block(row["bytes"], holders, sums, wanters if sums else wanters - holders)


def never_above(drawn: Drawn, most_states: int) -> str:
    """The certified bound is at most the least time; what became of it."""
    found = strongest(drawn.instance, RunOptions())
    bound = float_below(found.seconds)
    assert check_bound(drawn.instance, bound, found.certificate()) == []
    assert check_bound(drawn.instance, bound * 1.01, found.certificate()) != []
    try:
        least = drawn.least(most_states)
    except TooLarge:
        return "too large"
    assert least is None or found.seconds <= least, (drawn, found.argument)
    return "none" if least is None else "tight" if found.seconds == least else "below"


def test_brute_force_by_hand() -> None:
    """Along 0-1-2, a tick a byte: the sum of all at 2 takes 2 ticks; a copy of 0 or 1 one; of rank 0 from 5 on 7."""
    line = [Link(0, 1, 1, 0), Link(1, 2, 1, 0)]
    goal = frozenset([2])
    assert least_ticks(3, line, [Block(1, frozenset([0, 1, 2]), True, goal)], [0, 0, 0]) == 2
    assert least_ticks(3, line, [Block(1, frozenset([0, 1]), False, goal)], [0, 0, 0]) == 1
    assert least_ticks(3, line, [Block(1, frozenset([0]), False, goal)], [5, 0, 0]) == 7
    assert least_ticks(3, line[:1], [Block(1, frozenset([0]), False, goal)], [0, 0, 0]) is None


def test_no_bound_is_above_the_least_time() -> None:
    seen = Counter(never_above(Drawn.of(random.Random(seed)), 300) for seed in range(40))
    assert seen["tight"] > 12


@pytest.mark.slow
@pytest.mark.parametrize(("modes", "late"), [(("any",), False), (("sum",), False), (("any", "sum"), True)])
def test_no_bound_is_above_the_least_time_of_300(modes: tuple[str, ...], late: bool) -> None:
    seen = Counter(never_above(Drawn.of(random.Random(1000 + seed), modes, late), 3000) for seed in range(300))
    assert seen["tight"] > 80
    assert seen["too large"] < 150


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"holders": []}, "traffic[0].holders"),
        ({"wanters": []}, "traffic[0].wanters"),
        ({"holders": [0, 0], "mode": "sum"}, "traffic[0].holders: names rank 0 2 times"),
        ({"mode": "most"}, "traffic[0].mode"),
        ({"bytes": -1}, "traffic[0].bytes"),
        ({"bytes": float("inf")}, "traffic[0].bytes"),
        ({"holders": [7]}, "traffic[0].holders = 7: no such node"),
        ({"size": 1}, "traffic[0].size"),
    ],
)
def test_faults_of_a_file(change: dict[str, Any], fault: str) -> None:
    row = {"bytes": 1, "holders": [0], "mode": "any", "wanters": [2]} | change
    with pytest.raises(InputError) as caught:
        among_three((1, [0], "any", [2])).model_copy(update={"traffic": [row]})
    assert fault in str(caught.value)


METHODS = ("direct", "pull", "flow")


def is_valid(seed: int, method: str, modes: tuple[str, ...] = ("any", "sum"), late: bool = True) -> None:
    """The method's schedule is valid by the oracle's rules and the check's, and no shorter than the certified bound."""
    instance = Drawn.of(random.Random(seed), modes, late).instance
    found = race.call(method, instance, RunOptions())
    faults, ticks = replay(instance, found.solution)
    verdict = check_schedule(instance, found.solution)
    assert not faults
    assert verdict.ok
    assert verdict.value == float_above(Fraction(ticks, found.solution.ticks_per_s))
    assert verdict.value >= strongest(instance, RunOptions()).seconds


@pytest.mark.parametrize("seed", range(40))
def test_methods_are_valid(seed: int) -> None:
    is_valid(seed, METHODS[seed % len(METHODS)])


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("modes", [("any",), ("sum",)])
def test_methods_are_valid_for_300(method: str, modes: tuple[str, ...]) -> None:
    for seed in range(2000, 2300):
        is_valid(seed, method, modes, late=seed % 3 == 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wanters", [[0, 1, 2], [3, 0]])
def test_a_sum_is_formed_where_all_wanters_are_reached_from(method: str, wanters: list[int]) -> None:
    """Nothing leads on from ranks 0 and 3, the first wanters; the sum of 1 and 2 is formed at 2, whoever wants it."""
    links = [(1, 2, 1.0), (2, 1, 1.0), (2, 0, 1.0), (2, 3, 1.0)]
    rows = [{"bytes": 2, "holders": [1, 2], "mode": "sum", "wanters": wanters}]
    instance = machine(4, links, collective="traffic", traffic=rows, bytes=2)
    verdict = check_schedule(instance, race.call(method, instance, RunOptions()).solution)
    assert verdict.ok
    assert verdict.value == 4.0


def test_hierarchical_enters_every_box_once() -> None:
    """Two boxes of three ranks; a byte of one is wanted by all of the other. One transfer leads from box to box."""
    own = {"bytes": 8, "traffic": [{"bytes": 8, "holders": [0, 1], "wanters": [3, 4, 5]}]}
    inside = [(u, v, 8.0) for box in (range(3), range(3, 6)) for u in box for v in box if u != v]
    rows = inside + [(u, v, 1.0) for u in range(3) for v in range(3, 6)]
    links = [dict(zip(("src", "dst", "bandwidth"), row, strict=True)) for row in rows]
    network = {"kind": "links", "nodes": 6, "links": links, "boxes": [[0, 1, 2], [3, 4, 5]]}
    raw = {"name": "t", "source": "test", "network": network, "collective": "traffic"} | own
    instance = FabricInstance.model_validate(raw)
    found = race.call("hierarchical", instance, RunOptions())
    assert check_schedule(instance, found.solution).ok
    net = instance.machine.network
    crossing = (net.src[found.solution.link] < 3) & (net.dst[found.solution.link] >= 3)
    size = found.solution.piece_bytes[found.solution.piece]
    assert size[crossing].sum() == 8


def test_other_methods_say_that_they_do_not_take_it() -> None:
    for name in ("ring", "forest", "bruck", "plan", "tacos"):
        record = synth.solve(among_three((1, [0, 1], "any", [2])), name, time_limit=20)
        assert (record["termination"], record.value) == ("unsupported", None)


def test_several_collectives_with_traffic_among_them() -> None:
    """A sum for rank 2, and behind it a copy from there to rank 0: each takes a second."""
    rows = [
        {
            "collective": "traffic",
            "bytes": 1,
            "traffic": [{"bytes": 1, "holders": [0, 1], "mode": "sum", "wanters": [2]}],
        },
        {
            "collective": "traffic",
            "bytes": 1,
            "traffic": [{"bytes": 1, "holders": [2], "wanters": [0, 1]}],
            "after": [0],
        },
    ]
    instance = machine(3, TRIANGLE, collective="several", bytes=2, collectives=rows)
    found = strongest(instance, RunOptions())
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    for method in ("together", "one_after_another"):
        record = synth.solve(instance, method, time_limit=20)
        assert record.ok
        assert record.value == 2.0


CSV = 'bytes,holders,mode,wanters\n64KB,"0,1",sum,4-7\n1MiB,0/gpu2,,"0/gpu5,1/gpu3"\n'
JSON = """[{"bytes": "64KB", "holders": [0, 1], "mode": "sum", "wanters": "4-7"},
 {"bytes": 1048576, "holders": ["0/gpu2"], "wanters": [5, "1/gpu3"]}]"""


@pytest.mark.parametrize(("name", "text"), [("blocks.csv", CSV), ("blocks.json", JSON)])
def test_tables(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    instance = synth.make("fabric", machine="dgx-a100", boxes=2, collective="demand", demand=tmp_path / name)
    assert [row.model_dump() for row in instance.traffic] == [
        {"bytes": 64000, "holders": (0, 1), "mode": "sum", "wanters": (4, 5, 6, 7)},
        {"bytes": 1048576, "holders": (2,), "mode": "any", "wanters": (5, 11)},
    ]
    assert parse(json.loads(instance.to_json()), FabricInstance, "it").blocks.sums.tolist() == [True, False]


@pytest.mark.parametrize("text", ["bytes,holders,wanters\n5,1,3\n", '[{"bytes": 5, "src": 1, "dst": 3}]'])
def test_a_table_of_single_holders_and_wanters_is_a_demand(tmp_path: Path, text: str) -> None:
    (tmp_path / "general").write_text(text)
    (tmp_path / "plain.csv").write_text("src,dst,bytes\n1,3,5\n")
    made = [
        synth.make("fabric", machine="dgx-a100", collective="demand", demand=tmp_path / name)
        for name in ("general", "plain.csv")
    ]
    assert [row.model_dump(exclude={"source"}) for row in made[:1]] == [made[1].model_dump(exclude={"source"})]


def test_faults_of_a_table_are_named_all_at_once(tmp_path: Path) -> None:
    text = """[{"bytes": -5, "holders": [0, 1, 1], "mode": "sum", "wanters": "4-7"},
 {"bytes": Infinity, "holders": [], "mode": "most", "wanters": []}, {"bytes": 3, "src": 1, "holders": [1]},
 {"bytes": 3, "holders": [1], "wanters": [2], "size": 3}, 7]"""
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError) as caught:
        synth.make("fabric", machine="dgx-a100", collective="demand", demand=tmp_path / "b.json")
    said = [str(fault).rpartition("b.json, ")[2] for fault in caught.value.faults]
    assert said == [
        "line 1, bytes = -5: must be in 1..281474976710656",
        "line 1, holders = [0, 1, 1]: names rank 1 twice",
        "line 2, bytes = inf: must be a size in bytes such as 1GiB, 64KB or 4096",
        "line 2, holders: is missing",
        "line 2, wanters: is missing",
        "line 2, mode = 'most': must be any or sum",
        "line 2: has src and dst beside holders, wanters and mode: one or the other",
        "line 3, size: no such key: there are bytes, holders, wanters, mode",
        "line 3: is no table of bytes, holders, wanters, mode",
    ]


def test_views_and_exports() -> None:
    """What is shown says whose a piece is; formats that have no such blocks refuse it in one line."""
    instance = among_three((1, [0, 1], "any", [2]), (1, [0, 1], "sum", [2]))
    record = synth.solve(instance, "direct", time_limit=20)
    assert "of rank 0 or rank 1" in record.describe()
    assert set(record.table()["origin"]) == {"0 1", "sum"}
    with pytest.raises(InputError, match="several holders or wanters"):
        transfers(instance, record.solution())
