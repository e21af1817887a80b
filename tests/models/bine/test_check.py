"""The check catches what is wrong with messages, and link loads by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import synth
from synth.method import load
from synth.options import RunOptions
from synth_models.bine import FAMILY
from synth_models.bine.check.replay import check_messages
from synth_models.bine.references import published as references


def made(method: str = "bine", **parameters):
    instance = synth.make("bine", **{key: str(value) for key, value in parameters.items()})
    return instance, FAMILY.methods[method].load()(instance, RunOptions()).solution


def without(messages, row: int):
    keep = np.arange(len(messages)) != row
    names = ("job", "round", "src", "dst", "first", "count", "adds")
    return replace(messages, **{name: getattr(messages, name)[keep] for name in names})


CASES = [
    ("bine", {"groups": "3,5", "collective": "broadcast"}),
    ("bine", {"groups": "3,4", "collective": "reduce"}),
    ("bine", {"groups": "3,5", "collective": "scatter"}),
    ("binomial_halving", {"groups": "3,5", "collective": "gather"}),
    ("bine", {"groups": "3,4", "collective": "allreduce", "vector": "large"}),
    ("recursive", {"groups": "3,5", "collective": "allreduce"}),
    ("bruck", {"groups": "3,4", "collective": "alltoall"}),
    ("sparbit", {"groups": "3,4", "collective": "allgather"}),
    ("ring", {"groups": "3,3", "collective": "reduce_scatter"}),
]


@pytest.mark.parametrize(("method", "parameters"), CASES)
def test_every_row_is_needed(method, parameters):
    instance, messages = made(method, **parameters)
    assert check_messages(instance, messages).ok
    for row in range(len(messages)):
        assert not check_messages(instance, without(messages, row)).ok


@pytest.mark.parametrize(("method", "parameters"), CASES)
def test_mutations_are_caught(method, parameters):
    instance, messages = made(method, **parameters)
    ranks = len(instance.allocations[0])
    last = len(messages) - 1
    for name, value in [
        ("src", ranks),
        ("dst", -1),
        ("first", 10**6),
        ("count", 0),
        ("round", -1),
        ("src", messages.dst[0]),
    ]:
        column = getattr(messages, name).copy()
        column[0] = value
        assert not check_messages(instance, replace(messages, **{name: column})).ok, name
    late = messages.round.copy()
    late[:] = late[0]  # everything at once: causality
    assert not check_messages(instance, replace(messages, round=late)).ok
    if instance.collective in ("reduce", "reduce_scatter", "allreduce"):
        names = ("job", "round", "src", "dst", "first", "count", "adds")
        twice = {name: np.append(getattr(messages, name), getattr(messages, name)[last]) for name in names}
        twice["round"][-1] += 1
        twice["adds"][-1] = True
        assert not check_messages(instance, replace(messages, **twice)).ok
    broken = messages.layout.copy()
    broken[0] = len(broken)
    assert not check_messages(instance, replace(messages, layout=broken)).ok


def test_faults_name_round_and_rank():
    instance, messages = made(groups="3,5", collective="broadcast")
    assert "ends without block 0" in " ".join(check_messages(instance, without(messages, len(messages) - 1)).faults)
    early = replace(messages, src=np.where(np.arange(len(messages)) == 0, 7, messages.src))
    assert check_messages(instance, early).faults[0].startswith("round 0: rank 7 -> ")


def test_tree_rule_limits_ports_and_rounds():
    """A star from rank 0 in one round moves the data, but rank 0 sends three messages; in a row it takes 3 rounds."""
    instance, messages = made("binomial_halving", groups="2,2", collective="broadcast")
    star = replace(
        messages, src=np.zeros(3, dtype=np.int64), dst=np.array([1, 2, 3]), round=np.zeros(3, dtype=np.int64)
    )
    assert check_messages(instance, star).faults == ["round 0: rank 0 sends 3 messages, one is allowed"]
    row = replace(star, round=np.array([0, 1, 2]))
    assert check_messages(instance, row).faults == ["takes 3 rounds, 2 are allowed"]
    longer = synth.make("bine", **{"groups": "2,2", "rounds": "3"})
    assert check_messages(longer, row).ok


def test_butterfly_rule():
    instance, messages = made("recursive", groups="4,4", collective="allreduce", vector="large", problem="butterfly")
    assert check_messages(instance, messages).ok
    free = synth.make("bine", **{"groups": "4,4", "collective": "allreduce", "vector": "large"})
    bine = references.bine(free, RunOptions()).solution
    assert check_messages(free, bine).ok
    assert "hypercube" in check_messages(instance, bine).faults[0]


def test_link_loads_by_hand():
    """Alltoall of 4 bytes a rank, blocks of 1 byte, groups 2 and 2, pairwise: 4 bytes cross in each direction. One link
    a pair: 4 on the worst; two links: 2; a fat-tree with 4 uplinks: 1."""
    worst = []
    for fabric in ({}, {"links_per_pair": "2"}, {"uplinks": "4"}):
        instance = synth.make("bine", **{"groups": "2,2", "collective": "alltoall", "bytes": "4", **fabric})
        verdict = check_messages(instance, references.ring(instance, RunOptions()).solution)
        assert verdict.value == 8
        assert verdict.facts["worst_group_pair_bytes"] == 4
        worst.append(verdict.facts["worst_link_bytes"])
    assert worst == [4, 2, 1]


def test_given_links_route_over_other_groups():
    """Groups 0-1-2 in a row: what 0 sends to 2 loads the link 1->2 too. Scatter of blocks of 1 byte from rank 0 of 3
    single-rank groups: 2 blocks over 0->1 and one over 1->2 in the worst link: 2 bytes."""
    instance = synth.make("bine", **{"groups": "1,1,1", "collective": "scatter", "bytes": "3"})
    raw = instance.model_dump(mode="json") | {
        "fabric": {"kind": "dragonfly", "pairs": [[0, 1, 1], [1, 2, 1]]},
    }
    linked = type(instance).model_validate(raw)
    verdict = check_messages(linked, references.binomial_doubling(linked, RunOptions()).solution)
    assert verdict.ok
    assert verdict.facts["worst_link_bytes"] == 2


SMALL = ("broadcast", "gather", "scatter", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter")


@pytest.mark.parametrize(("collective", "vector"), [*((what, "small") for what in SMALL), ("allreduce", "large")])
def test_reduction_is_against_the_baseline_itself(collective, vector):
    """The baseline's own record states 0 %, so the check's formula and the method's rows agree."""
    tree = collective in ("broadcast", "gather", "scatter", "reduce")
    groups, root = ("5,3,4,1", 6) if tree else ("5,3,7,1", 0)
    method = "binomial_halving" if tree else "recursive"
    instance, messages = made(method, groups=groups, collective=collective, vector=vector, root=root)
    facts = check_messages(instance, messages).facts
    assert (facts["baseline"], facts["reduction_percent"]) == (method, 0.0)


@pytest.mark.parametrize("method", ["bine", "binomial_halving"])
def test_pack_and_table(method):
    instance, messages = made(method, groups="3,5", collective="scatter", bytes=8)
    again = load(FAMILY.unpack)(instance, load(FAMILY.pack)(messages))
    assert check_messages(instance, again).value == check_messages(instance, messages).value
    table = load(FAMILY.table)(instance, messages)
    assert list(table.columns) == ["round", "src", "dst", "bytes", "copied", "added", "parts"]
    groups = instance.allocations[0]
    crossing = groups[table.src] != groups[table.dst]
    assert table.bytes[crossing].sum() == check_messages(instance, messages).value
    text = load(FAMILY.describe)(instance, messages)
    assert re.search(r"round 0: \d rows, \d+ B, \d+ B global: ", text)
    assert load(FAMILY.plot)(instance, messages, "t") is not None
