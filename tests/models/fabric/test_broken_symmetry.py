"""Equal boxes but for one link that failed or is slower: ``hierarchical`` beside what needs no symmetry at all."""

from __future__ import annotations

import random
from typing import Any

import pytest

import synth
from synth_models.fabric.instance import FabricInstance, suited

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]
REFERENCES = ("ring", "double_tree", "recursive_doubling", "direct", "bruck", "pat")
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def value(instance: FabricInstance, method: str) -> float | None:
    """The replayed seconds of a method; None where it knows none here."""
    if not suited(instance, method):
        return None
    record = synth.solve(instance, method, time_limit=20)
    assert record.ok, (method, record["verified"]["faults"])
    return record.value


def broken(chooser: random.Random) -> FabricInstance:
    """Two to four boxes of two to four GPUs, one link of which, in one direction or both, failed or lost half."""
    gpus, boxes = chooser.choice([2, 3, 4]), chooser.choice([2, 3, 4])
    network = {
        "kind": "machine",
        "name": chooser.choice(["dgx-h100", "dgx-a100"]),
        "boxes": boxes,
        "gpus": [gpus] * boxes,
    }
    own: dict[str, Any] = {"name": "t", "source": "test", "network": network, "collective": chooser.choice(COLLECTIVES)}
    own["bytes"] = gpus * boxes * chooser.choice([16, 2**10, 2**16, 2**22])
    whole = FabricInstance.model_validate(own)
    net = whole.machine.network
    e = chooser.randrange(net.links)
    ends = [int(net.src[e]), int(net.dst[e])]
    failed: dict[str, Any] = {"reduced": [[*ends, "1/2"]]} if chooser.random() < 0.5 else {"links": [ends]}
    return FabricInstance.model_validate(own | {"failed": failed})


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_never_slower_than_what_needs_no_symmetry(seed: int) -> None:
    """Wherever the machine still joins all ranks: accepted by the check, and no later than any published reference."""
    chooser, compared = random.Random(seed), 0
    for _ in range(2):
        try:
            instance = broken(chooser)
        except ValueError:  # a rank is cut off
            continue
        ours = value(instance, "hierarchical")
        theirs = {name: value(instance, name) for name in REFERENCES}
        for name, time in theirs.items():
            if time is not None:
                assert ours is not None, (name, instance)
                assert ours <= time * (1 + 1e-9), (name, instance)
                compared += 1
    assert compared
