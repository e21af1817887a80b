"""Partial all-to-alls: the pairs of servers that send are given. Hand-solved jobs, exhaustive search, damaged phases.

The oracle is ``slow_replay``, written from the statement: every pair as often as it is asked for, in a phase a server
sends once and receives once and a link carries one transfer; all routes by enumeration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from models.mlfm.slow_replay import asked, least_phases, proves, replay, routes, value

import synth
from synth.errors import InputError
from synth.family import defaults_for
from synth.instance import parse
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.certificates import check_bound
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import PhaseTable
from synth_papers.mlfm import problems

EVERY = [(i, j, k) for i in range(2) for j in range(3) for k in range(2)]
CABLES = [{"leaf": [i, j], "spine": sorted((j, o))} for i in range(2) for j in range(3) for o in range(3) if o != j]
PROGRAMS = [(method, way) for method in ("cpsat", "ilp") for way in ("on", "off")]


def job(d: int, demand: list[dict[str, Any]] | None, **changes: Any) -> MLFMInstance:
    raw = {"family": "mlfm", "name": "x", "source": "a test", "d": d, "demand": demand} | changes
    made = parse({key: value for key, value in raw.items() if value is not None}, MLFMInstance, "x.json")
    assert isinstance(made, MLFMInstance)
    return made


def pairs(text: str) -> list[dict[str, Any]]:
    """``000>110*2`` is two transfers from server 0.0.0 to 1.1.0."""
    found = []
    for word in text.split():
        ends, _, count = word.partition("*")
        source, target = ends.split(">")
        found.append(problems.pair([*map(int, source)], [*map(int, target)], int(count or 1)))
    return found


def phases_of(record: Any, instance: MLFMInstance) -> Any:
    return load(FAMILY.unpack)(instance, record.packed or {})


def optimal(instance: MLFMInstance, method: str = "cpsat", way: str = "on") -> float:
    """The proven optimum, replayed by the oracle, too."""
    record = synth.solve(instance, method, options={"decompose": way})
    assert record.ok, record["verified"]["faults"]
    assert record["termination"] == "optimal", record["message"]
    assert record.value is not None
    assert record.value == record.bound
    assert record["verified"]["facts"]["worst_link_load"] <= 1
    assert replay(instance, phases_of(record, instance))[0]
    return record.value


@pytest.mark.parametrize(("method", "way"), PROGRAMS)
def test_by_hand(method: str, way: str) -> None:
    """One transfer: a phase. Four from one server, one of them twice: 5, and to itself is a turn as well: 6. Three
    servers of leaf 0.0 each to another server of leaf 0.1: three phases by the only link of minimal routes on MLFM(3),
    one when the two others go over a third column."""
    assert optimal(job(2, pairs("000>110")), method, way) == 1
    assert optimal(job(2, pairs("000>110*2 000>010 000>020 000>001")), method, way) == 5
    assert optimal(job(2, pairs("000>110*2 000>010 000>020 000>001 000>000")), method, way) == 6
    assert optimal(job(3, pairs("000>010 001>011 002>012")), method, way) == 3
    assert optimal(job(3, pairs("000>010 001>011 002>012"), routes="detour"), method, way) == 1


@pytest.mark.parametrize(("method", "way"), PROGRAMS)
def test_five_transfers_that_loads_would_put_into_two_phases(method: str, way: str) -> None:
    """a>t, a>u, b>u, b>v, c>v with a and c on leaf 0.0, t and v in column 1: neighbours share a server, the last and
    the first the up-link from 0.0 to 0-1. No server and no link has more than two of them, but a ring of five needs
    three."""
    instance = synth.read("instances/mlfm/d2-five-pairs.json")
    assert isinstance(instance, MLFMInstance)
    assert synth.solve(instance, "bound").bound == 2
    assert least_phases(instance, 5) == 3
    assert optimal(instance, method, way) == 3
    two = synth.solve(instance, method, options={"decompose": way, "horizon": "2"})
    assert (two["termination"], two.value) == ("infeasible", None)


@st.composite
def tiny_demands(draw: st.DrawFn) -> MLFMInstance:
    """Up to eight transfers among servers of MLFM(2): several targets, unequal counts, to itself; idle servers; failed
    cables, spines, leaves and servers; either route rule."""
    servers = draw(st.lists(st.sampled_from(EVERY), min_size=2, max_size=7, unique=True))
    end = st.sampled_from(servers)
    listed = draw(st.lists(st.tuples(end, end), min_size=1, max_size=6, unique=True))
    counts = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in listed]
    assume(sum(counts) <= 8)
    failed = {
        "links": draw(st.lists(st.sampled_from(CABLES), max_size=3, unique_by=str)),
        "spines": draw(st.lists(st.sampled_from([[0, 1], [0, 2], [1, 2]]), max_size=1)),
        "leaves": draw(st.lists(st.sampled_from([[0, 0], [1, 1]]), max_size=1)),
        "servers": draw(st.lists(end.map(list), max_size=1)),
    }
    demand = [problems.pair([*one], [*two], count) for (one, two), count in zip(listed, counts, strict=True)]
    subset = draw(st.sampled_from([None, servers]))
    try:
        return job(2, demand, subset=subset, failed=failed, routes=draw(st.sampled_from(["minimal", "detour"])))
    except InputError as error:
        assert "failed: leaves no" in str(error)  # noqa: PT017
        assume(False)
        raise


def cut_off(instance: MLFMInstance) -> bool:
    leaf = [tuple(server)[:2] for server in instance.servers.tolist()]
    return any(not routes(instance, leaf[x], leaf[y]) for x, y in asked(instance))


@settings(
    max_examples=some(30), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(tiny_demands(), st.sampled_from(["cpsat on", "cpsat off", "ilp on"]))
def test_the_optimum_is_that_of_exhaustive_search(instance: MLFMInstance, how: str) -> None:
    method, way = how.split()
    bound = synth.solve(instance, "bound")
    assert (bound["termination"] == "infeasible") == cut_off(instance)
    assume(not cut_off(instance))
    least = least_phases(instance, 12)
    assert optimal(instance, method, way) == least
    assert bound.bound is not None
    assert bound.bound <= least
    for name in ("greedy", "shift", "pairwise", "min_congestion"):
        record = synth.solve(instance, name)
        assert record.ok, record["verified"]["faults"]
        found = phases_of(record, instance)
        assert replay(instance, found)[0]
        assert record.value == value(instance, found) >= least


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(tiny_demands(), st.sampled_from(PROGRAMS))
def test_the_same_on_many_more(instance: MLFMInstance, how: tuple[str, str]) -> None:
    assume(not cut_off(instance))
    assert optimal(instance, *how) == least_phases(instance, 12)


def test_all_pairs_once_are_the_whole_all_to_all() -> None:
    """Twelve servers, no two alike in what has failed: both ways of stating it give the same optimum and bound."""
    block = {"layers": 2, "columns": 3, "servers": 2}
    failed = {"links": [CABLES[0]]}
    whole = job(2, None, block=block, failed=failed, routes="detour")
    everyone = whole.servers.tolist()
    demand = [problems.pair(one, other) for one in everyone for other in everyone]
    listed = job(2, demand, failed=failed, routes="detour")
    assert listed.transfers == whole.transfers == 144
    assert np.array_equal(listed.servers, whole.servers)
    assert optimal(listed) == optimal(whole)
    bounds = [synth.solve(one, "bound") for one in (whole, listed)]
    assert bounds[0].bound == bounds[1].bound


@pytest.mark.parametrize("method", ["closed_form", "shift", "pairwise"])
def test_an_order_of_all_transfers_keeps_what_is_asked_for(method: str) -> None:
    """On the job (2, 4, 3) with a torus' neighbours: every transfer in its order's phase, as often as it is asked for,
    and no phase without any."""
    instance = synth.read("instances/mlfm/d3-stencil-24.json")
    assert isinstance(instance, MLFMInstance)
    record = synth.solve(instance, method)
    assert record.ok
    found = phases_of(record, instance)
    assert replay(instance, found)[0]
    assert all((rows.dest >= 0).any(axis=1).all() for rows in found.rows())
    assert record["verified"]["facts"]["transfers"] == 24 * 6 == instance.transfers
    assert optimal(instance) == 6 <= record.value  # type: ignore[operator]


def test_the_check_sees_what_is_not_asked_for_and_what_is_missing() -> None:
    instance = job(3, pairs("000>010 000>110*2 011>020"))
    names = [instance.server_name(rank) for rank in range(instance.ranks)]
    assert names == ["0.0.0", "0.1.0", "0.1.1", "0.2.0", "1.1.0"]
    spine = {(0, 1): 0, (1, 2): 3}

    def table(*sends: str) -> PhaseTable:
        dest, over = np.full((len(sends), 5), -1, np.int32), np.full((len(sends), 5), -1, np.int32)
        for p, words in enumerate(sends):
            for word in words.split():
                x, y = map(int, word.split(">"))
                ends = sorted((int(instance.servers[x][1]), int(instance.servers[y][1])))
                dest[p, x], over[p, x] = y, spine[ends[0], ends[1]]
        return PhaseTable(dest, over)

    good = check_phases(instance, table("0>1 2>3", "0>4", "0>4"))
    assert (good.value, good.faults) == (3, [])
    assert good.facts["throughput_bytes_per_s"] == pytest.approx(instance.bandwidth)
    missing = check_phases(instance, table("0>1 2>3", "0>4"))
    assert missing.faults == ["1 of 4 transfers are never sent, the first from 0.0.0 to 1.1.0"]
    often = check_phases(instance, table("0>1 2>3", "0>4", "0>4", "0>4"))
    assert often.faults == ["phase 3: server 0.0.0 to 1.1.0: no (more) such transfer is asked for"]
    other = check_phases(instance, table("0>1 2>3", "0>4", "0>4 1>3"))
    assert other.faults == ["phase 2: server 0.1.0 to 0.2.0: no (more) such transfer is asked for"]
    assert missing.value is often.value is other.value is None


@settings(
    max_examples=some(20), deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(tiny_demands(), st.lists(st.integers(0, 4), min_size=24, max_size=24))
def test_certificates_prove_what_the_oracle_counts(instance: MLFMInstance, weights: list[int]) -> None:
    """Random weights on working links; the number by ranks is what the busiest server sends or receives."""
    assume(not cut_off(instance))
    wanted = asked(instance)
    turns = [
        sum(n for pair, n in wanted.items() if pair[end] == rank) for rank in range(instance.ranks) for end in (0, 1)
    ]
    assert check_bound(instance, max(turns), {"binding": "ranks"}) == []
    assert check_bound(instance, max(turns) + 1, {"binding": "ranks"}) != []
    links = [[cable["leaf"], sum(cable["spine"]) - cable["leaf"][1], way] for cable in CABLES for way in (0, 1)]
    named = {
        (("up", "down")[way], tuple(leaf), frozenset((leaf[1], c))): w
        for (leaf, c, way), w in zip(links, weights, strict=True)
    }
    dead = {link for link in named if not _works(instance, link)}
    assume(any(w for link, w in named.items() if link not in dead))
    rows = [[leaf[0] * 3 + leaf[1], c, way] for leaf, c, way in links]
    certificate = {"binding": "links", "links": rows, "weights": weights}
    proven = proves(instance, {link: w for link, w in named.items() if link not in dead})
    assert check_bound(instance, proven, certificate) == []
    assert check_bound(instance, proven + 1, certificate) != []


def _works(instance: MLFMInstance, link: Any) -> bool:
    from models.mlfm.slow_replay import failed_links

    return not failed_links(instance, link[1], link[2])


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("nothing asked", {"demand": []}, "demand: asks for no transfer"),
    ("twice", {"demand": pairs("000>010 001>000 000>010*3")}, "demand[2]"),
    ("slot beyond", {"demand": pairs("003>010")}, "demand[0].source = [0, 0, 3]: slot 3 does not exist"),
    ("column beyond", {"demand": pairs("000>040")}, "demand[0].target = [0, 4, 0]: column 4 does not exist"),
    ("no count", {"demand": [problems.pair([0, 0, 0], [0, 1, 0], 0)]}, "must be >= 1"),
    ("too many", {"demand": [problems.pair([0, 0, 0], [0, 1, 0], 10_001)]}, "must be <= 10000"),
    ("no target", {"demand": [{"source": [0, 0, 0]}]}, "demand[0].target: is missing"),
    (
        "not of the subset",
        {"demand": pairs("000>010"), "subset": [[0, 0, 0]]},
        "demand[0].target = [0, 1, 0]: is no server",
    ),
    (
        "not of the block",
        {"demand": pairs("000>010 200>000"), "block": {"layers": 2, "columns": 2, "servers": 1}},
        "demand[1].source = [2, 0, 0]: is no server of the job",
    ),
    ("nobody left", {"demand": pairs("000>010 010>011"), "failed": {"leaves": [[0, 1]]}}, "failed: leaves no transfer"),
]


@pytest.mark.parametrize(("changes", "message"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_malformed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        job(3, **changes)
    assert message in str(error.value)


def test_transfers_of_failed_servers_are_not_asked_for() -> None:
    instance = job(3, pairs("000>010*2 010>000 010>020"), failed={"servers": [[0, 0, 0]]})
    assert (instance.ranks, instance.transfers, instance.busiest) == (2, 1, 1)
    assert instance.pairs.tolist() == [[0, 1, 1]]
    assert optimal(instance) == 1


def test_instances_without_a_demand_say_nothing_of_it() -> None:
    for path in Path("instances/mlfm").glob("*.json"):
        instance = synth.read(path)
        assert isinstance(instance, MLFMInstance)
        assert instance.to_json() == path.read_text()
        assert (instance.demand is None) == ("demand" not in path.read_text())


def test_make_reads_lines_and_json_and_adds_up_what_stands_twice(tmp_path: Path) -> None:
    lines = tmp_path / "some pairs.csv"
    lines.write_text(
        "from layer,column,slot,to layer,column,slot,count\n0,0,0,1,1,0\n0 0 0  0 1 0  2 # both\n0,0,0,1,1,0,3\n"
    )
    made = synth.make("mlfm", d="3", demand=str(lines))
    assert isinstance(made, MLFMInstance)
    assert made.name == "d3-some-pairs"
    assert made.demand is not None
    assert [pair.model_dump(mode="json") for pair in made.demand] == pairs("000>110*4 000>010*2")
    stored = tmp_path / "pairs.json"
    for text in (
        '[[0, 0, 0, 1, 1, 0, 4], {"source": [0, 0, 0], "target": [0, 1, 0], "count": 2}]',
        "[[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 0, 3], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0]]",
    ):
        stored.write_text(text)
        listed = synth.make("mlfm", d="3", demand=str(stored))
        assert isinstance(listed, MLFMInstance)
        assert listed.demand == made.demand
    within = synth.make("mlfm", d="3", layers="2", columns="2", servers="1", demand=str(stored))
    assert isinstance(within, MLFMInstance)
    assert (within.name, within.ranks, within.transfers) == ("d3-n2l2m1-pairs", 4, 6)
    assert defaults_for(FAMILY, within) == ("bound", "closed_form", "shift", "greedy", "cpsat")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0 0 1 1\n", "line 1: expected layer column slot layer column slot [count], got '0 0 0 1 1'"),
        ("0 0 0 1 1 0\n0 0 0 1 1 x\n", "line 2: expected"),
        ("0 0 0 1 1 0 -1\n", "line 1: expected"),
        ("[[0, 0, 0, 1, 1]]", "[0]: expected 6 or 7 whole numbers"),
        ('[{"source": [0, 0, 0]}]', "[0]: expected"),
        ('[{"source": 3, "target": [0, 0, 0]}, true]', "[1]: expected"),
        ("[[0, 0, 0, 9, 1, 0]]", "layer 9 does not exist"),
        ("", "demand: asks for no transfer"),
    ],
)
def test_make_names_every_bad_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pairs"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        synth.make("mlfm", d="3", demand=str(file))
    assert message in str(error.value)


def test_help_knows_the_demand_file() -> None:
    from synth_models.mlfm.making import MLFMKeys

    assert "demand" in {key for key, *_ in MLFMKeys.described()}
    assert "[count]" in (MLFMKeys.__doc__ or "")
