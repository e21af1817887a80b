"""Random schedules of fabric, switches, copies, failures and demands among them: what is a schedule ends right, and
what no rank can do is refused."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from examples import some
from models.fabric.test_flat_table import drawn

from synth.errors import InputError
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames, faults
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
