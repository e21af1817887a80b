"""Random schedules of fabric, switches, copies, failures and demands among them: what is a schedule ends right, and
what no rank can do is refused."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest
from examples import some
from models.fabric.small_machines import schedule_of
from models.fabric.test_flat_table import drawn
from models.fabric.test_traffic import among_three, random_traffic_schedule

from synth.errors import InputError
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames, faults
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule
from synth_models.fabric.views.transfers import demands, transfers


@pytest.mark.long
def test_random_schedules_on_random_machines_end_right() -> None:
    chooser, seen, refused = random.Random("moves by processes"), Counter[str](), Counter[str]()
    with Crew() as crew:
        for seed in range(some(100)):
            instance, schedule, features = drawn(chooser)
            make = demands if instance.collective == "demand" else transfers
            try:
                t = make(instance, schedule)
            except InputError as error:
                refused[
                    "sums" if "in switches" in str(error) else "relays" if "relays" in str(error) else str(error)
                ] += 1
                continue
            if not len(t.piece):
                continue
            program = program_of(t, 1e-3)
            done = crew.run(Job(program, seed))
            assert faults(program, done, TransferNames(t), Data(seed, t.ranks)) == [], (seed, features)
            seen.update([instance.collective, *features])
    assert set(refused) <= {"relays", "sums"}
    assert seen["demand"] >= 2
    assert seen["store and forward"] >= 5
    assert np.sum(list(refused.values())) <= some(100) // 2


def ends_right(crew: Crew, instance: FabricInstance, schedule: Schedule, seed: int) -> bool:
    """Whether all wanters have what they want, with integers or floats."""
    t = demands(instance, schedule)
    program, real = program_of(t), seed % 3 == 0
    done = crew.run(Job(program, seed, real=real))
    return faults(program, done, TransferNames(t), Data(seed, t.ranks, real, program.goals)) == []


def without(schedule: Schedule, lost: int) -> Schedule:
    """The schedule without a transfer."""
    kept = np.delete(np.arange(schedule.transfers), lost)
    lengths = np.diff(schedule.route_start)
    links = [schedule.link[schedule.route_start[i] : schedule.route_start[i + 1]] for i in kept.tolist()]
    return dataclasses.replace(
        schedule, piece=schedule.piece[kept], start=schedule.start[kept], adds=schedule.adds[kept],
        route_start=np.concatenate([[0], np.cumsum(lengths[kept])]), link=np.concatenate([schedule.link[:0], *links]),
    )  # fmt: skip


def test_blocks_of_several_holders_end_right_and_a_transfer_less_is_seen() -> None:
    """What the check accepts ends right; where a run ends wrong, the check refuses, too."""
    chooser, seen = random.Random("blocks of several holders"), Counter[str]()
    with Crew() as crew:
        for seed in range(some(150)):
            instance, schedule = random_traffic_schedule(chooser)
            nodes = {int(v) for v in instance.machine.network.dst[schedule.link]}
            if not schedule.transfers or nodes - set(instance.members):
                continue  # executors do not relay over others
            assert ends_right(crew, instance, schedule, seed), seed
            less = without(schedule, chooser.randrange(schedule.transfers))
            refused, right = bool(check_schedule(instance, less).faults), ends_right(crew, instance, less, seed)
            assert right or refused
            seen.update(["right" if right else "wrong", *("sum" if s else "any" for s in instance.blocks.sums)])
    assert min(seen["wrong"], seen["sum"], seen["any"]) >= 5


def test_what_comes_first_to_a_rank_without_a_contribution_is_stored() -> None:
    """Rank 0 and 1 have contributions; rank 2 wants the sum and adds none of its own."""
    instance = among_three((8, [0, 1], "sum", [2]))
    schedule = schedule_of([(0, 8)], [(0, 0, [4], True), (8, 0, [2], True)])
    with Crew() as crew:
        assert ends_right(crew, instance, schedule, 1)
        assert not ends_right(crew, instance, without(schedule, 0), 1)


def test_a_rank_adds_for_a_switch_only_where_its_own_sum_stays() -> None:
    """Three ranks at a switch that adds and copies, 2 bytes at 1 byte/s, 5 s a link: a hub from 0 to 12. Rank 1 sends
    rank 0 its contribution again, from 1 to 3: the finished sum replaces it, so rank 0 could not add up the others'."""
    links = [{"src": u, "dst": v, "bandwidth": 1.0, "latency": 5.0} for u, v in ((0, 3), (1, 3), (2, 3))]
    links += [link | {"src": 3, "dst": link["src"]} for link in links]
    links += [{"src": 1, "dst": 0, "bandwidth": 1.0, "latency": 0.0}]
    network = {"kind": "links", "nodes": 4, "switches": [3], "links": links}
    raw = {"network": network | {"abilities": [{"switch": 3, "adds": True, "copies": True}]}, "bytes": 2}
    instance = FabricInstance.model_validate({"name": "t", "source": "test", "collective": "allreduce"} | raw)
    one, two = np.array([0]), np.array([0, 0])
    route = np.arange(7)
    schedule = Schedule(1, one, one + 2, np.array([0, 1]), two, np.array([False, True]), np.array([0, 6, 7]), route)
    assert (check_schedule(instance, schedule).faults, check_schedule(instance, schedule).value) == ([], 12.0)
    t = transfers(instance, schedule)
    assert {int(v) for v in t.dst[t.adds & (t.start_s == 0)]} == {1, 2}
    with Crew() as crew:
        done = crew.run(Job(program_of(t), 0))
    assert faults(program_of(t), done, TransferNames(t), Data(0, 3)) == []
