"""Random schedules and what becomes of them: every export is one that its readers and checks take, with the same moves
in it, or a reason in words; and ranks that move real data by it end right.

Found by these: a circle of ranks that all wait for copies of a sum, contributions that nobody asks for and that came to
a sum again when the finished one had replaced it, tracebacks of collectives on one rank, and reasons that named another
cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from exchange.random_transfers import random_transfers
from exchange.ways_out import WAYS, Refused, leaves, wrong_data, wrong_data_of
from models.fabric.random_machines import random_instance
from models.fabric.small_machines import random_schedule
from models.fabric.test_flat_table import drawn
from models.fabric.test_tree_replay import adding_machine, drawn_schedule

import synth
from synth.errors import InputError
from synth.exchange.record_export import moves_of
from synth.exchange.transfers import Transfers
from synth.instance import Instance
from synth.ranks.crew import Crew
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.views.transfers import demands

QUICK = ("direct", "ring", "double_tree", "recursive_doubling", "bruck", "pat", "two_level", "nvls", "sharp",
         "in_network", "tacos", "hierarchical", "spread_out", "plan", "pull")  # fmt: skip
DEFAULT, ALL, AT_ONCE = 200, 3000, 50
REASONS = (
    "several collectives at once", "outside the process group", "sums are formed in switches",
    "added up in switches: ", "does not run ", "runs no ", " takes ", "a demand is no collective", "has added to it",
    "replaces what",
)  # fmt: skip


def of_method(seed: int) -> tuple[FabricInstance, Transfers] | None:
    """The moves of a quick method's schedule of a random instance, None where it has none."""
    chance = Random(f"method {seed}")
    instance = random_instance(seed)
    record = synth.solve(instance, chance.choice(QUICK), time_limit=0.5)
    if record.value is None or not record["verified"]["ok"]:
        return None  # what methods answer: tests/models/fabric
    return instance, moves_of(record)


def of_trees(seed: int) -> tuple[FabricInstance, Transfers]:
    """Random in-trees, out-trees and hubs of switches that add and copy."""
    chance = Random(f"trees {seed}")
    while True:
        instance = adding_machine(chance)
        schedule = drawn_schedule(chance, instance)
        if check_schedule(instance, schedule).ok:
            return instance, demands(instance, schedule)


def of_moves(seed: int) -> tuple[FabricInstance, Transfers]:
    """Random routes, pieces and times, also over switches that store, and moves that nobody asks for."""
    chance = Random(f"moves {seed}")
    instance, schedule, _ = drawn(chance)
    wasteful = random_schedule(chance, instance, useless=0.2)
    return instance, demands(instance, wasteful if check_schedule(instance, wasteful).ok else schedule)


def of_no_machine(seed: int) -> tuple[None, Transfers]:
    """Moves by hand of a random number, contributions that nobody asks for among them."""
    return None, random_transfers(seed // 4)


def drawn_moves(seed: int) -> tuple[Instance | None, Transfers] | str:
    """An instance (if there is one) and moves, or why there are none."""
    try:
        found = (of_method, of_trees, of_moves, of_no_machine)[seed % 4](seed)
    except InputError as error:
        return str(error)
    return found or "no schedule"


def leave(seed: int, folder: Path, ways: Sequence[str], crew: Crew | None) -> Counter[str]:
    """Everything that becomes of the moves of a seed: what was refused, by its reason, and what was not."""
    found = drawn_moves(seed)
    if isinstance(found, str):
        return Counter([found])
    (instance, t), seen = found, Counter[str]()
    if crew is not None:
        assert wrong_data(t, crew, seed) == []
        seen["run"] += 1
    for way in ways:
        try:
            path = leaves(way, t, instance, folder, Random(f"{way} {seed}"))
        except Refused as refused:
            seen[str(refused)] += 1
            continue
        seen[way] += 1
        if crew is not None and way in ("azure", "msccl", "mscclpp", "csv") and len(t.piece):
            assert wrong_data_of(path, t, crew, seed) == []
    return seen


def in_turn(first: int, folder: Path, ways: int, crew: Crew | None = None) -> Counter[str]:
    """The same of :data:`AT_ONCE` seeds, each by so many formats in turn."""
    seen = Counter[str]()
    for seed in range(first, first + AT_ONCE):
        chosen = Random(f"ways {seed}").sample(WAYS, ways)
        try:
            place = folder / str(seed)
            place.mkdir()
            seen += leave(seed, place, chosen, crew)
        except Exception as error:
            error.add_note(f"seed {seed}, {chosen}")
            raise
    return seen


def told(seen: Counter[str]) -> list[str]:
    """Reasons that are none of those known."""
    known = {*WAYS, "run", "no schedule"}
    return [words for words in seen if words not in known and not any(reason in words for reason in REASONS)]


@pytest.mark.parametrize("first", range(0, DEFAULT, AT_ONCE))
def test_every_export_is_read_back(first: int, tmp_path: Path) -> None:
    seen = in_turn(first, tmp_path, 1)
    assert told(seen) == []
    assert min(seen[way] for way in WAYS) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(DEFAULT, ALL, AT_ONCE))
def test_every_export_of_all(first: int, tmp_path: Path) -> None:
    seen = in_turn(first, tmp_path, len(WAYS))
    assert told(seen) == []


@pytest.mark.long
def test_real_data_ends_right(tmp_path: Path) -> None:
    with Crew() as crew:
        seen = in_turn(ALL, tmp_path, 1, crew)
    assert told(seen) == []
    assert seen["run"] >= AT_ONCE // 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(ALL, ALL + 10 * AT_ONCE, AT_ONCE))
def test_real_data_of_all_exports_ends_right(first: int, tmp_path: Path) -> None:
    with Crew() as crew:
        seen = in_turn(first, tmp_path, len(WAYS), crew)
    assert told(seen) == []
    assert seen["run"] >= AT_ONCE // 2
