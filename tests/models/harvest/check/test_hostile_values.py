"""Every number of a stored schedule or certificate replaced by hostile ones: refused, or what it says is really so."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from models.harvest.instances import made

from synth.method import load
from synth.options import RunOptions
from synth_models.harvest import FAMILY

WHOLE = [0, 1, -1, 2**31, -(2**31), 2**31 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, -(2**63), 2**64, 10**400]
BROKEN = [*map(float, ("nan", "inf", "-inf")), 0.5, -0.0, 1e-320, 1e300, True, None, "1", "", [], [1], {}, {"a": 1}]
WHOLE_COLUMNS = (
    "topology_start",
    "topology_of_step",
    "link_src",
    "link_dst",
    "link_count",
    "flow_start",
    "pair",
    "hop",
    "src",
    "dst",
)
HOSTILE = [*WHOLE, *map(float, WHOLE[:-1]), *BROKEN]


def small(**keys: Any):
    return made(**{"gpus": 4, "message_bytes": 4e6, "reconfiguration_delay": 1e-6, **keys})


def solved(instance) -> dict[str, Any]:
    outcome = FAMILY.method("candidates").load()(instance, RunOptions(solver="highs", method={}))
    return {name: np.asarray(values) for name, values in load(FAMILY.pack)(outcome.solution).items()}


def replayed(instance, packed: dict[str, Any]) -> Fraction | None:
    """Completion time of a schedule in plain Python, from the statement of the problem; None when it is no schedule."""
    data = {name: np.asarray(packed[name]).tolist() for name in (*WHOLE_COLUMNS, "share")}
    if any(type(v) is not int for name in WHOLE_COLUMNS for v in data[name]):
        return None
    gpus, ports = range(instance.gpus), instance.ports
    tables = []
    for a, b in pairwise(data["topology_start"]):
        links: dict[tuple[int, int], int] = {}
        for row in range(a, b):
            u, v, count = (data[name][row] for name in ("link_src", "link_dst", "link_count"))
            if u not in gpus or v not in gpus or u == v or (u, v) in links or count < 1:
                return None
            links[u, v] = count
        if any(sum(c for ends, c in links.items() if ends[side] == u) > ports for side in (0, 1) for u in gpus):
            return None
        tables.append(links)
    if any(not 0 <= t < len(tables) for t in data["topology_of_step"]):
        return None
    time, before = Fraction(0), None
    for step, number in enumerate(data["topology_of_step"]):
        links = tables[number]
        if before is not None and links != before:
            time += Fraction(instance.reconfiguration_delay)
        before = links
        pairs = instance.pairs[step].tolist()
        load: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        at: dict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
        for p, (s, _) in enumerate(pairs):
            at[p, 0, s] = Fraction(1)
        arrived = [Fraction(0)] * len(pairs)
        longest = 0
        for row in range(data["flow_start"][step], data["flow_start"][step + 1]):
            p, hop, u, v, share = (data[name][row] for name in ("pair", "hop", "src", "dst", "share"))
            if not 0 <= p < len(pairs) or hop < 0 or (u, v) not in links or not 0 < share <= 1 + 1e-9:
                return None
            at[p, hop, u] -= Fraction(share)
            if v == pairs[p][1]:
                arrived[p] += Fraction(share)
            else:
                at[p, hop + 1, v] += Fraction(share)
            load[u, v] += Fraction(share)
            longest = max(longest, hop + 1)
        for p in range(len(pairs)):
            if sum(abs(left) for (q, _, _), left in at.items() if q == p) > Fraction(1, 10**9):
                return None
        worst = max(amount / links[ends] for ends, amount in load.items())
        time += Fraction(instance.alpha) + Fraction(instance.hop_delay) * longest
        time += Fraction(float(instance.bytes_per_pair[step])) / Fraction(instance.port_bandwidth) * worst
    return time


def verdict_of(instance, packed) -> float | None:
    """The value of the check, None when it refuses; anything but a refusal in words is a failure of the test."""
    try:
        schedule = load(FAMILY.unpack)(instance, packed)
    except (ValueError, KeyError):
        return None
    verdict = load(FAMILY.check)(instance, schedule)
    assert verdict.ok == (verdict.value is not None)
    return verdict.value


def changed_columns(values: np.ndarray) -> Iterator[Any]:
    """The column with its first, a middle, its last and all entries hostile, as lists and as arrays."""
    for hostile in HOSTILE:
        for places in ([0], [len(values) // 2], [len(values) - 1], range(len(values))):
            column = values.tolist()
            for place in places:
                column[place] = hostile
            yield column
            for kind in (np.int64, np.uint64, np.float64, object):
                try:
                    with np.errstate(all="ignore"):
                        yield np.array(column, dtype=kind)
                except (ValueError, TypeError, OverflowError):
                    continue
    yield from HOSTILE
    yield np.zeros((2, 2), dtype=np.int64)


@pytest.mark.long(after=3)
@pytest.mark.parametrize("field", [*WHOLE_COLUMNS, "share"])
@pytest.mark.parametrize(
    ("algorithm", "ports"), [("swing", 2), pytest.param("bruck_allgather", 1, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_schedules_are_refused_or_right(algorithm, ports, field):
    instance = small(algorithm=algorithm, ports=ports)
    packed = solved(instance)
    honest = verdict_of(instance, packed)
    assert honest == pytest.approx(float(replayed(instance, packed) or 0), rel=1e-12)
    accepted = 0
    for column in changed_columns(packed[field]):
        found = verdict_of(instance, packed | {field: column})
        if found is not None:
            expected = replayed(instance, packed | {field: column})
            assert expected is not None, (field, column)
            assert found == pytest.approx(float(expected), rel=1e-8)
            accepted += 1
    assert accepted < len(HOSTILE) * 20


def test_every_field_of_a_stored_schedule_is_among_the_hostile_ones():
    assert set(solved(small(algorithm="ring", ports=1))) == {*WHOLE_COLUMNS, "share"}


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of the certificate, numbers and what holds them."""
    if path:
        yield path
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from leaves(node[key], (*path, key))


def put(certificate: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(certificate)
    node: Any = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


CERTIFIED = {
    "one port": {"algorithm": "recursive_doubling", "ports": 1},
    "two ports": {"algorithm": "recursive_doubling", "ports": 2, "gpus": 8, "half": "reduce_scatter"},
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("places", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_certificates_prove_nothing_false(name, places):
    """No change of one part makes a certificate that proves more than the best schedule known takes; none ends in an
    error. (The delay is large, so that the bound is one of intervals, with rows of every kind.)"""
    instance = small(**CERTIFIED[name], reconfiguration_delay=1e-3)
    outcome = FAMILY.method("bound").load()(instance, RunOptions(time_limit_s=20, method={"rates": "on"}))
    certificate: Any = copy.deepcopy(outcome.certificate)
    if name == "two ports":
        assert certificate["bundles"]
    assert load(FAMILY.check_bound)(instance, outcome.bound, certificate) == []
    best = load(FAMILY.check)(
        instance, FAMILY.method("candidates").load()(instance, RunOptions(solver="highs", method={})).solution
    ).value
    ways = list(leaves(certificate))
    random = np.random.default_rng(0)
    if len(ways) > places:
        ways = [ways[i] for i in sorted(random.permutation(len(ways))[:places].tolist())] + ways[:12]
    for path in ways:
        for hostile in HOSTILE:
            changed = put(certificate, path, hostile)
            assert load(FAMILY.check_bound)(instance, best * (1 + 1e-6), changed) != [], (path, hostile)


@pytest.mark.parametrize("stated", HOSTILE, ids=lambda value: repr(value)[:24])
def test_hostile_bounds_are_refused(stated):
    instance = small(algorithm="ring", ports=1)
    outcome = FAMILY.method("bound").load()(instance, RunOptions(method={"rates": "on"}))
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    true = is_number and -float("inf") < stated <= outcome.bound
    assert (load(FAMILY.check_bound)(instance, stated, outcome.certificate) == []) == true


@pytest.mark.parametrize("whole", HOSTILE, ids=lambda value: repr(value)[:24])
def test_hostile_certificates_as_a_whole(whole):
    assert load(FAMILY.check_bound)(small(algorithm="ring", ports=1), 1e-9, whole) != []
