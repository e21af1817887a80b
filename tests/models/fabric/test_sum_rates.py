"""Bounds of an allreduce where switches add more slowly than their links carry."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from examples import some_of
from models.fabric.tree_brute_force import least

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import colours, finer
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.bounds.sum_rates import strongest_sum_rates
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

BOX = {"machine": "dgx-h100-nvls", "collective": "allreduce", "bytes": 2**30, "adds": True, "multicast": True}


def made(**keys: Any) -> FabricInstance:
    found = synth.make("fabric", **keys)
    assert isinstance(found, FabricInstance)
    return found


def drawn(chooser: random.Random) -> FabricInstance:
    """Two to four ranks on one or two switches, of which one at least adds at a rate."""
    ranks, switches = chooser.randint(2, 4), chooser.choice([1, 1, 2])
    nodes = range(ranks, ranks + switches)
    pairs = [(v, s) for v in range(ranks) for s in nodes if s == ranks or chooser.random() < 0.6]
    pairs += [(ranks, s) for s in nodes if s > ranks and chooser.random() < 0.5]
    rates, latencies = chooser.choice([[1.0], [1.0], [1.0, 2.0]]), chooser.choice([[0.0], [0.0], [1.0]])
    links = [
        {"src": a, "dst": b, "bandwidth": chooser.choice(rates), "latency": chooser.choice(latencies)}
        for u, v in pairs
        for a, b in ((u, v), (v, u))
    ]
    able = [
        {"switch": s, "adds": s == ranks or chooser.random() < 0.6, "copies": chooser.random() < 0.7}
        | ({"add_rate": chooser.choice([0.25, 0.5, 0.8])} if s == ranks or chooser.random() < 0.7 else {})
        for s in nodes
    ]
    network = {"kind": "links", "nodes": ranks + switches, "switches": list(nodes), "links": links, "abilities": able}
    raw = {"name": "t", "source": "test", "network": network, "collective": "allreduce", "bytes": 4}
    return FabricInstance.model_validate(raw)


def proven(instance: FabricInstance) -> Proven:
    links = Links.of(instance)
    return strongest_sum_rates(links, finer(links, colours(links)), NOTHING)


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(8)))
def test_no_schedule_of_trees_is_faster(seed: int) -> None:
    """12 machines a seed: the least time of the search over all trees, whole or (of few ranks) in two pieces, is no
    less than what is proven, which the check accepts, and no more than that. It often proves more than all other
    arguments do."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(12):
        instance = drawn(chooser)
        found = proven(instance)
        assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
        assert check_bound(instance, float(found.seconds) * (1 + 1e-9), found.certificate()) != []
        best = strongest(instance, RunOptions(time_limit_s=20.0).started_now())
        assert found.seconds <= best.seconds
        seen[best.argument] += 1
        for pieces in ([[4]], [[2, 2]])[: 2 if len(instance.members) < 4 else 1]:
            quickest = least(instance, pieces, most_states=200).seconds
            assert quickest is None or best.seconds <= quickest, (best, quickest)
            seen["tight"] += quickest == best.seconds
    assert seen["sum_rates"], seen
    assert seen["tight"], seen


@pytest.mark.parametrize(("rate", "billions"), [(72.7e9, 272.9377), (400e9, 443.077), (60e9, 257.143)])
def test_a_box_of_eight(rate: float, billions: float) -> None:
    """(7 / 450 + 1 / r) / 8 ns a byte, or 14 / (8 * 450) where ranks do better without sums in the switch; 0.7 us."""
    instance = made(**BOX, ranks="0-7", add_rate=rate)
    best = strongest(instance, RunOptions(time_limit_s=10.0).started_now())
    assert 2**30 / (float(best.seconds) - 7e-7) / 1e9 == pytest.approx(billions, rel=1e-5)
    assert check_bound(instance, float_below(best.seconds), best.certificate()) == []


def test_it_is_refused_where_it_proves_nothing() -> None:
    instance = made(**BOX, add_rate=72.7e9)
    certificate = dict(proven(instance).certificate())
    assert certificate["argument"] == "sum_rates"
    bound = float_below(proven(instance).seconds)
    assert check_bound(instance, bound, certificate) == []
    without = made(**BOX)
    for other in (
        without,  # sums at the links' own rate
        made(**(BOX | {"collective": "reduce"}), add_rate=72.7e9),
        made(**BOX, add_rate=72.7e9, ranks="0-5", relay=True),  # two ranks that forward
    ):
        assert check_bound(other, bound, certificate) != []
    length = certificate["length"]
    for forged in (length[:-1], [0] * len(length), [-1 * value for value in length], [0.5] * len(length), "x", None):
        assert check_bound(instance, bound, certificate | {"length": forged}) != []
