"""Why the objective counts colours: a job whose schedule claims fewer phases by loads than any congestion-free one has.

MLFM(5), six leaves of which hold a server or more, and three that only pass on. Names of leaves are layer and column:

* 00 has 4 servers, 11 has 3; 01, 02, 10 and 12 have one each: N = 11. Only the cables in ``CABLES`` work.
* 11 is reached from 00 only over 02, 12 from 01 only over 00, 10 from 02 only over 01. These 12 + 1 + 1 transfers go
  round the ring 00 - 02 - 01 and any two meet, but no link sees all three kinds: those from 00 and 01 share the up-link
  from 00 to 0-2, those from 00 and 02 that from 02 to 1-2, those from 01 and 02 that from 01 to 0-1. So 14
  congestion-free phases are the least there can be.
* 12 phases suffice when one of them may have load 2: it carries a transfer of each kind. By loads that is 13.

The oracle is ``slow_replay``, written from the statement of the problem: all routes by enumeration, a plain replay.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from models.mlfm.slow_replay import replay, routes, value

import synth
from synth.instance import parse
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import PhaseTable

Leaf = tuple[int, int]

SERVERS = {"00": 4, "01": 1, "02": 1, "10": 1, "11": 3, "12": 1}  # ranks in this order
CABLES = {"00": "124", "01": "025", "02": "0145", "10": "13", "11": "235", "12": "034"}  # to the spine of that column
CABLES |= {"03": "012", "04": "02", "05": "12"}  # no servers of the job on these

KINDS = (("00", "11"), ("01", "12"), ("02", "10"))  # source and destination of the transfers round the ring

# the spines between two leaves, and the leaf between the spines; the way back is the same
PATHS = {
    ("00", "01"): ("01",),
    ("00", "02"): ("04", "04", "24"),
    ("00", "10"): ("01",),
    ("00", "11"): ("02", "02", "12"),
    ("00", "12"): ("04", "04", "24"),
    ("01", "02"): ("15", "05", "25"),
    ("01", "10"): ("01",),
    ("01", "11"): ("15",),
    ("01", "12"): ("01", "00", "02"),
    ("02", "10"): ("12", "01", "01"),
    ("02", "11"): ("25", "05", "15"),
    ("02", "12"): ("24",),
    ("10", "11"): ("03", "03", "13"),
    ("10", "12"): ("03", "03", "23"),
    ("11", "12"): ("13", "03", "23"),
}

# the rank that every rank sends to, phase by phase, a is 10
PHASES = """7321a650-94 281439a6057 149a5738260 3-68019a425 a2091564738 573640218a9
            41856a09372 -657-812a43 85-094736-a 094283-7516 6a7-2-85901 90a3724-18-"""


def leaf(name: str) -> Leaf:
    return int(name[0]), int(name[1])


def job() -> MLFMInstance:
    every = [f"{layer}{column}" for layer in range(5) for column in range(6)]
    dead = [(name, c) for name in CABLES for c in range(6) if c != int(name[1]) and str(c) not in CABLES[name]]
    made = parse(
        {
            "family": "mlfm",
            "name": "ring",
            "source": "a test",
            "d": 5,
            "routes": "detour",
            "subset": [[*leaf(name), slot] for name, servers in SERVERS.items() for slot in range(servers)],
            "failed": {
                "leaves": [leaf(name) for name in every if name not in CABLES],
                "links": [{"leaf": leaf(name), "spine": sorted((int(name[1]), c))} for name, c in dead],
            },
        },
        MLFMInstance,
        "x",
    )
    assert isinstance(made, MLFMInstance)
    return made


def schedule() -> PhaseTable:
    spines = ["".join(pair) for pair in itertools.combinations("012345", 2)]
    where = [name for name, servers in SERVERS.items() for _ in range(servers)]
    phases = PHASES.split()
    dest, spine, middle, second = (np.full((len(phases), len(where)), -1, dtype=np.int32) for _ in range(4))
    for p, row in enumerate(phases):
        for x, y in enumerate(int(c, 16) if c != "-" else -1 for c in row):
            dest[p, x] = y
            if y < 0 or where[x] == where[y]:
                continue
            path = PATHS.get((where[x], where[y])) or PATHS[where[y], where[x]][::-1]
            spine[p, x] = spines.index(path[0])
            if len(path) == 3:
                layer, column = leaf(path[1])
                middle[p, x], second[p, x] = layer * 6 + column, spines.index(path[2])
    return PhaseTable(dest, spine, middle, second)


def test_fourteen_transfers_of_which_any_two_meet() -> None:
    """So they need 14 phases, whatever their routes and whatever else is sent. All their routes are tried."""
    instance = job()
    ring = [(a, b) for a, b in KINDS for _ in range(SERVERS[a] * SERVERS[b])]
    assert len(ring) == 14
    for one, two in itertools.combinations(ring, 2):
        for first in routes(instance, leaf(one[0]), leaf(one[1])):
            for other in routes(instance, leaf(two[0]), leaf(two[1])):
                assert set(first) & set(other)


def test_by_loads_a_schedule_claims_thirteen() -> None:
    instance, solution = job(), schedule()
    fine, loads = replay(instance, solution)
    assert fine
    assert sorted(loads) == [1] * 11 + [2]
    assert sum(loads) == 13
    # counted as what it stands for it is optimal: the phase of load 2 holds one transfer of each kind
    verdict = check_phases(instance, solution)
    assert (verdict.faults, verdict.value) == ([], 14)
    assert value(instance, solution) == 14


def test_thirteen_is_the_least_by_loads() -> None:
    """13 transfers must cross the up-link from 00 to 0-2, so the loads of all phases add up to no less."""
    instance = job()
    link = ("up", (0, 0), frozenset((0, 2)))
    crossing = [
        servers * others
        for (a, servers), (b, others) in itertools.permutations(SERVERS.items(), 2)
        if all(link in route for route in routes(instance, leaf(a), leaf(b)))
    ]
    assert sum(crossing) == 13


@pytest.mark.long
@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_the_programs_refute_thirteen(method: str) -> None:
    """All phases in one model: 13 congestion-free ones are infeasible, 14 are found. Counting flows per route asks for
    13 only, and then packing fails, which proves nothing."""
    instance = job()
    whole = synth.solve(instance, method, options={"decompose": "off"})
    assert (whole["termination"], whole.value, whole.bound) == ("optimal", 14, 14)
    assert str(whole["bound_proof"]).startswith("13 phases proven impossible")
    flows = synth.solve(instance, method)
    assert flows.bound == 13
    assert flows.value is not None
    assert flows.value >= 14
