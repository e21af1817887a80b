"""Every number of every kind of record, made infinite, no number, huge, minus zero or one beyond what a double holds:
the check complains or lists the place as not verified, and never raises.

The records are real runs of every family, and published ones of kinds that take long to make. The oracle is the
mutation itself: a record that states another number than the run's is false wherever the check can compute it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import synth
from synth import api
from synth.errors import InputError
from synth.method import Verdict
from synth.records import record as records
from synth.text.untrusted import equal

ROOT = Path(__file__).resolve().parents[3]
SHIPPED, PUBLISHED = ROOT / "instances", ROOT / "results" / "published"
CASES = {
    "xtree": ("xtree/ring-8-c1", "pull", {}),
    "xtree horizon": ("xtree/ring-8-c1", "cpsat", {"horizon": 2}),
    "mlfm": ("mlfm/d3-n2l4m3", "repair", {}),
    "optree": ("optree/ring-16-w2", "optree", {}),
    "bine": ("bine/groups-5-3-5-allreduce-small", "recursive", {}),
    "bine tree": ("bine/groups-5-3-8-reduce", "tree_ilp", {}),
    "harvest": ("harvest/recursive-doubling-8-p1", "static_ring", {}),
    "fabric": ("tour/dgx1-allgather", "direct", {}),
    **{f"{family} bound": (name, "bound", {}) for family, name in (
        ("xtree", "xtree/ring-8-c1"), ("mlfm", "mlfm/d3-n2l4m3"), ("optree", "optree/ring-16-w2"),
        ("bine", "bine/groups-5-3-5-allreduce-small"), ("harvest", "harvest/recursive-doubling-8-p1"),
        ("fabric", "tour/dgx1-allgather"),
    )},
}  # fmt: skip
KEPT = (
    "fabric/exact/fabric/dgx-a100-allgather-16KiB/continuous-cpsat.json",
    "peers/sccl/fabric/dgx1-allgather-315KiB/steps-cpsat-steps=2-rounds=4-chunks=3.json",
    "xtree/four-steps/xtree/equimesh-2x3-c4/ilp-highs.json",
)
ODD = ("Infinity", "-Infinity", "NaN", "1e999", "1e308", "-0.0", str(2**53 + 1))
MARK = "@the odd number@"
WORD = ("options", "seconds", "progress", "peak_memory_mb")  # what every verdict lists as the run's own word


def places(data: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every number below, by its keys; of a list the first and last entries."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*keys, key))
    elif isinstance(data, list):
        for index in sorted({0, len(data) - 1} if data else ()):
            yield from places(data[index], (*keys, index))
    elif isinstance(data, (int, float)) and not isinstance(data, bool):
        yield keys, data


def mutated(data: Any, keys: tuple[Any, ...], odd: str) -> str:
    """The record's text with the odd number, as it is written, in that place."""
    copy = json.loads(json.dumps(data))
    at = copy
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = MARK
    return json.dumps(copy).replace(f'"{MARK}"', odd)


def check(path: Path) -> Verdict:
    try:
        return synth.check(path)
    except InputError as error:
        return Verdict(None, faults=[str(error)])


def whole(path: Path) -> dict[str, Any]:
    """The record's data with its arrays in it and its instance's text, so that its text alone is the record."""
    record = records.read(path)
    data = {**records.plain_data(record, records.split_arrays(record)), "instance_text": None}
    text = Path(record.instance_paths()[0]).read_bytes().decode() if record["instance_file"] and (
        record.instance_paths()) else record.data["instance_text"]  # fmt: skip
    data = json.loads(json.dumps(data | {"instance_text": text}, default=lambda value: value.item()))
    return dict(data)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("numbers")
    made = {}
    for name, (place, method, options) in CASES.items():
        instance = synth.read(SHIPPED / f"{place}.json")
        path = api.solve(instance, method, options=options, results=folder / name).path
        assert path is not None
        made[name] = whole(path)
    return made


def all_found(data: dict[str, Any], folder: Path) -> int:
    """Try every number of the record with every odd one; how many were tried."""
    path, count = folder / "record.json", 0
    path.write_text(json.dumps(data))
    before = check(path)
    assert before.faults == [], before.faults
    for keys, value in places(data):
        for odd in ODD:
            infinite = not math.isfinite(float(odd))
            same = not infinite and Fraction(odd) == Fraction(value)
            path.write_text(mutated(data, keys, odd))
            verdict = check(path)
            count += 1
            ends = keys[0] == "progress" and keys[1] == len(data["progress"]) - 1 and keys[2] > 0
            proof = keys[0] == "certificate" or (keys[0] == "solution" and data["kind"] == "bound")
            if infinite or not (same or proof or (keys[0] in WORD and not ends)):  # -0.0 is 0; another proof is a proof
                assert verdict.faults or verdict.unverified != before.unverified, (keys, value, odd)
    return count


@pytest.mark.long(after=3)
@pytest.mark.parametrize("name", list(CASES))
def test_no_odd_number_passes(stored: dict[str, dict[str, Any]], tmp_path: Path, name: str) -> None:
    assert all_found(stored[name], tmp_path) > 30


@pytest.mark.long(after=1)
@pytest.mark.parametrize("address", KEPT)
def test_no_odd_number_passes_in_published_records(tmp_path: Path, address: str) -> None:
    assert all_found(whole(PUBLISHED / address), tmp_path) > 30


NUMBERS = (
    *(0, 1, -1, 2**53, 2**53 + 1, 10**400, -(10**400), 0.0, -0.0, 1.0, 2.0**53, 1e308, -1e308, 5e-324, 0.1),
    *(0.1 * (1 + 1e-12), 0.1 * (1 + 1e-8), 1 + 2**-52, 1 - 1e-9, 1 - 2e-9, math.inf, -math.inf, math.nan),
)


@pytest.mark.parametrize("within", [0.0, 1e-9])
def test_equal_is_equality_of_rationals(within: float) -> None:
    """By the definition, over all pairs: both finite, and no further apart than the share; whole numbers exactly."""
    for left, right in product(NUMBERS, repeat=2):
        expected = False
        if all(isinstance(value, int) or math.isfinite(value) for value in (left, right)):
            one, other = Fraction(left), Fraction(right)
            allowed = 0 if isinstance(left, int) and isinstance(right, int) else Fraction(within)
            expected = abs(one - other) <= allowed * max(abs(one), abs(other))
        assert equal(left, right, within) is expected, (left, right)
    for value in NUMBERS:
        assert not any(equal(value, other, within) for other in ("1", True, None, [value]))
