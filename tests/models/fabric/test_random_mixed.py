"""All that a job moves at once, on at most four ranks: several collectives over drawn groups, releases, late ranks,
orders; brute force against the replay, every bound and what methods make."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from models.fabric.brute_force import TooLarge, best_schedule
from models.fabric.small_several import as_schedule, several

import synth
from synth.errors import InputError
from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

NAMES = ("allgather", "broadcast", "reduce", "allreduce", "alltoall", "scatter", "gather", "reduce_scatter", "demand")
ROOTED = ("broadcast", "reduce", "scatter", "gather")
METHODS = ("one_after_another", "together", "pull", "flow", "hierarchical", "forest", "continuous")


def network(rng: random.Random) -> dict[str, Any]:
    """A small machine, some of whose links are slower than others."""
    kind, ranks = rng.choice(["ring", "star", "line", "full", "links"]), rng.randint(2, 4)
    if kind != "links":
        return {"kind": kind, "nodes": max(ranks, 3), "bandwidth": 1.0, "latency": rng.choice([0.0, 1.0])}
    pairs = [(u, v) for u in range(ranks) for v in range(ranks) if u != v]
    some = rng.sample(pairs, rng.randint(min(len(pairs), ranks + 1), min(len(pairs), 8)))
    links = [
        {"src": u, "dst": v, "bandwidth": rng.choice([1.0, 1.0, 2.0]), "latency": rng.choice([0.0, 0.0, 1.0])}
        | ({"group": "g"} if rng.random() < 0.15 else {})
        for u, v in some
    ]
    return {"kind": "links", "nodes": ranks, "links": links}


def one(rng: random.Random, ranks: int) -> dict[str, Any]:
    """One collective over a drawn group."""
    group = rng.sample(range(ranks), rng.randint(2, ranks))
    name, unit = rng.choice(NAMES), rng.choice([1, 1, 2])
    row: dict[str, Any] = {"collective": name, "ranks": group, "priority": rng.choice([1, 3])}
    row["bytes"] = unit * (1 if name in ("broadcast", "reduce", "allreduce") else len(group))
    if name == "demand":
        row["demand"] = [[*rng.sample(group, 2), unit] for _ in range(rng.randint(1, 2))]
        row["bytes"] = unit * len(row["demand"])
    if name in ROOTED and rng.random() < 0.5:
        row["root"] = rng.choice(group)
    if rng.random() < 0.4:
        row["release"] = float(rng.choice([1, 2, 5]))
    late = [[rank, float(rng.choice([1, 2, 5]))] for rank in group if rng.random() < 0.4]
    return row | ({"ready": late} if late and rng.random() < 0.6 else {})


def mixed(rng: random.Random) -> FabricInstance:
    """One to three collectives, some behind others in any order of the list."""
    while True:
        machine = network(rng)
        rows = [one(rng, machine["nodes"]) for _ in range(rng.choice([1, 2, 2, 3]))]
        turn = rng.sample(range(len(rows)), len(rows))
        for place, number in enumerate(turn):
            before = [k for k in turn[:place] if rng.random() < 0.6]
            if before:
                rows[number]["after"] = before
        own = {"objective": "weighted_ends"} if rng.random() < 0.3 else {}
        try:
            return several(rows, machine, relay=rng.random() < 0.3, **own)
        except InputError as error:
            if "part" not in str(error) and "reach" not in str(error):
                raise


def kinds(instance: FabricInstance) -> set[str]:
    """What of the statement the instance has."""
    rows = instance.collectives or ()
    found = {"ready": any(row.ready for row in rows), "order": any(row.after for row in rows)}
    found |= {"release": any(row.release for row in rows), "several": len(rows) > 1}
    found |= {"sums": bool((instance.all_blocks[0].origin < 0).any())}
    return {word for word, there in found.items() if there}


def tried(seed: int, most_states: int, methods: int) -> set[str]:
    """Brute force passes the replay with its value; no bound is above it, no method below the bound; what was in it,
    nothing where brute force was given up."""
    rng = random.Random(seed)
    instance = mixed(rng)
    proven = strongest(instance, RunOptions(10.0))
    bound = float_below(proven.seconds)
    assert check_bound(instance, bound, proven.certificate()) == [], seed
    for name in rng.sample(METHODS, methods):
        record = synth.solve(instance, name, time_limit=2)
        assert record.ok or record.value is None, (seed, name, record["verified"]["faults"])
        assert record.value is None or record.value >= bound, (seed, name)
        assert not record["bound"] or record.value is None or record["bound"] <= record.value, (seed, name)
    last = instance.model_copy(update={"objective": None})
    least = strongest(last, RunOptions(10.0)) if instance.objective else proven
    try:
        seconds, unit, rows = best_schedule(instance, most_states=most_states)
    except TooLarge:
        return set()
    verdict = check_schedule(last, as_schedule(instance, unit, rows))
    if not np.any(instance.all_blocks[0].origin < 0):  # a sum may leave just before something arrives: never quite so
        assert verdict.faults == [], seed
    assert verdict.value in (None, float(seconds)), seed
    assert least.seconds <= seconds, (seed, least.argument, float(least.seconds), float(seconds))
    return kinds(instance) | {"done"} | ({"tight"} if least.seconds == seconds else set())


def test_some() -> None:
    seen = Counter(word for seed in range(6) for word in tried(seed, 60, 0))
    assert seen["done"] > 1, seen


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_two_thousand(first: int) -> None:
    seen = Counter(word for seed in range(first, first + 100) for word in tried(seed, 1000, int(seed % 10 == 0)))
    print(first, dict(seen), flush=True)
    assert seen["done"] > 50, seen
    assert min(seen[word] for word in ("ready", "order", "release", "sums")) >= 15, seen
