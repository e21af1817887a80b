"""Demands whose moments are stated (fabric's moments and orbit_moments): both checkers prove the same bound to the last
double, and refuse the same changes of a certificate."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from handed_in import published
from two_checkers import ROOT, greatest, last_that, opinions, verify, whole

Certificate = dict[str, Any]
MOMENTS = [
    "fabric/exact/fabric/dgx-a100-broadcast-64KiB/bound",  # a switch between all ranks
    "fabric/exact/fabric/dgx1-allgather-256KiB/bound",  # several blocks
    "fabric/exact/fabric/dgx1-allreduce-256KiB/bound",
]
ORBITS = [
    "nvls/boxes-4/fabric/dgx-b200-nvls-x4-broadcast-1KiB/bound",  # switches that copy and add in boxes
    "nvls/boxes-4/fabric/dgx-h100-nvls-x4-allreduce-64KiB/bound",
    "clusters/records/fabric/dgx-h100-x16-leaf4-over2-broadcast-64KiB/bound",  # several rows of moments, no such switch
]
TOLLS = [
    "nvls/boxes-4/fabric/dgx-b200-nvls-x4-allreduce-1MiB/bound",
    "nvls/boxes-4/fabric/dgx-b200-nvls-x4-reduce-1MiB/bound",  # backwards
]


def at(key: str, where: int, number: int) -> Callable[[Certificate], None]:
    """One number of an array."""

    def change(held: Certificate) -> None:
        held[key][where] = number

    return change


def judged(record: dict[str, Any], folder: Path) -> tuple[str, str]:
    """What both say of a record; equal, as whoever reads it wants to see both reasons."""
    ours, theirs, reason, why = opinions(json.dumps(record), folder)
    assert ours == theirs, f"{reason} | {why}"
    return ours, reason


@pytest.mark.long(after=5)
@pytest.mark.parametrize("name", MOMENTS + ORBITS + TOLLS)
def test_moments_prove_the_same_to_the_last_double(name: str, tmp_path: Path) -> None:
    """No bound above the earliest moment of a target."""
    record = whole(published(name))
    most = greatest(record)
    assert judged(record | {"bound": most}, tmp_path)[0] == "accept"
    assert judged(record | {"bound": math.nextafter(most, math.inf)}, tmp_path)[0] == "refuse"


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", MOMENTS + ORBITS + TOLLS)
def test_moments_and_tolls_prove_the_same_to_the_last_tick(name: str, tmp_path: Path) -> None:
    """A moment, or a toll, as late, or as high, as it may be for what is needed to cross the links still."""
    record = whole(published(name)) | {"bound": 1e-12}
    held = record["solution"]
    instance = verify.read_instance(record["instance_text"], str(ROOT))
    last = max(range(len(held["since"])), key=lambda i: held["since"][i])
    places = [("since", last)] + [("toll", i) for i, toll in enumerate(held.get("toll", [])) if toll][:1]
    for key, i in places:
        latest = last_that(partial(proves, held, key, i, instance), held[key][i])
        for number, said in ((latest, "accept"), (latest + 1, "refuse")):
            changed = deepcopy(record)
            changed["solution"][key][i] = number
            assert judged(changed, tmp_path)[0] == said, (key, number)


def proves(held: Certificate, key: str, i: int, instance: Any, number: int) -> bool:
    """Whether the certificate with one number changed proves next to nothing to the second checker."""
    numbers = list(held[key])
    numbers[i] = number
    try:
        instance.certify(verify.Held(held | {key: numbers}), Fraction(1e-12))
    except verify.Fault:
        return False
    return True


FALSE: dict[str, tuple[list[str], Callable[[Certificate], None]]] = {
    "a source later than 0": (MOMENTS + ORBITS + TOLLS, lambda held: held.update(since=[x + 1 for x in held["since"]])),
    "no share at all": (MOMENTS + ORBITS + TOLLS, lambda held: held.update(share=[0] * len(held["share"]))),
    "a share of every link": (ORBITS[:2] + TOLLS, lambda held: held.update(share=[1] * len(held["share"]))),
    "no weight": (MOMENTS + ORBITS + TOLLS, at("weight", 0, 0)),
    "a target that is the source": (MOMENTS + ORBITS + TOLLS, lambda held: held.update(target=held["source"])),
    "backwards twice": (ORBITS + TOLLS, lambda held: held.update(backwards=2)),
    "backwards a floating number": (ORBITS + TOLLS, lambda held: held.update(backwards=float(held["backwards"]))),
    "a demand of no row that leads nowhere": (
        ORBITS + TOLLS,
        lambda held: held["target"].__setitem__(-1, held["source"][-1]),
    ),
    "a clock of nothing": (MOMENTS + ORBITS + TOLLS, lambda held: held.update(finer=0)),
    "a rank that knows nothing": (MOMENTS + ORBITS + TOLLS, lambda held: held["since"].pop()),
    "one image twice a node": (ORBITS + TOLLS, lambda held: held["images"].__setitem__(0, held["images"][1])),
    "a rank moved to a switch": (ORBITS + TOLLS, lambda held: held["images"].insert(0, held["images"].pop())),
    "a class that has no moment": (ORBITS + TOLLS, lambda held: held["classes"].__setitem__(0, 10**6)),
    "a row of no demand": (ORBITS + TOLLS, at("of", 0, 99)),
    "moments of tolls fall": (TOLLS, lambda held: held["toll_at"].reverse()),
    "a toll that rises again": (TOLLS, lambda held: held["toll"].__setitem__(-1, 10**9)),
    "a toll below 0": (TOLLS, at("toll", 0, -1)),
    "a toll on every link": (TOLLS, lambda held: held.update(toll_of=[1] * len(held["toll_of"]))),
    "one moment of tolls": (TOLLS, lambda held: held.update(toll_at=held["toll_at"][:1], toll=[])),
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("said", FALSE)
def test_what_is_wrong_with_moments_both_refuse(said: str, tmp_path: Path) -> None:
    """At a bound of next to nothing: refused for what the certificate says, not for what it proves."""
    names, change = FALSE[said]
    for name in names:
        record = whole(published(name)) | {"bound": 1e-12}
        assert judged(record, tmp_path)[0] == "accept"
        change(record["solution"])
        assert judged(record, tmp_path)[0] == "refuse", name
