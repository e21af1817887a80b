"""Single failures and their orbits, against all permutations of the nodes of tiny machines."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import machine as on_links

import synth
from synth.errors import InputError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.single_failures import every_failure, named, orbits, pairs_of
from synth_models.fabric.problem.symmetries import Symmetries


def tiny(seed: int) -> FabricInstance:
    """Up to six nodes, few kinds of links, many symmetries; some are one-way, parallel, or share a group."""
    chooser = random.Random(seed)
    while True:
        ranks, switches = chooser.randint(2, 4), chooser.randint(0, 2)
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(u)]
        kept = chooser.sample(pairs, chooser.randint(max(1, len(pairs) // 2), len(pairs)))
        links: list[tuple[Any, ...]] = []
        for u, v in kept:
            rate, group = chooser.choice([1, 1, 2]), chooser.choice([None, None, None, "bus"])
            links += [(u, v, rate, 0.5, group)] * chooser.choice([1, 1, 1, 2])
            links += [(v, u, rate, 0.5, group)] * chooser.choice([1, 1, 1, 0])
        try:
            return on_links(nodes, links, range(ranks, nodes), collective="allgather", bytes=12)
        except ValueError:
            continue


def rows(machine: Machine) -> list[tuple[Any, ...]]:
    net = machine.network
    return list(zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), machine.group.tolist(), strict=True))


def all_symmetries(machine: Machine) -> list[tuple[int, ...]]:
    """Permutations of the nodes that keep switches and the multiset of links, groups up to their names (there is one
    at most)."""
    here = sorted(rows(machine))
    return [
        image
        for image in permutations(range(machine.nodes))
        if all(machine.is_switch[v] == machine.is_switch[image[v]] for v in range(machine.nodes))
        and sorted((image[u], image[v], *rest) for u, v, *rest in here) == here
    ]


def what_fails(pairs: Any, nodes: Any) -> frozenset[Any]:
    return frozenset([*pairs, *nodes])


@pytest.mark.parametrize("seed", some_of(range(60)))
@pytest.mark.parametrize("several", [False, True])
def test_orbits_are_those_of_all_permutations(seed: int, several: bool) -> None:
    machine = tiny(seed).machine
    singles = every_failure(machine)
    failures = list(pairs_of(singles)) if several else singles
    found = orbits(failures, Symmetries(machine, (~machine.is_switch).astype(np.int64)))
    images = all_symmetries(machine)

    def image_of(failure: Any, image: Any) -> frozenset[Any]:
        parts = [(p.kind, frozenset((image[u], image[v]) for u, v in p.pairs)) for p in failure.parts]
        return frozenset((kind, pairs) for kind, pairs in parts)

    key = {failure.name: image_of(failure, range(machine.nodes)) for failure in failures}
    wanted = {frozenset(image_of(failure, image) for image in images) for failure in failures}
    assert {frozenset(key[failure.name] for failure in orbit.members) for orbit in found} == wanted
    for orbit in found:
        for member, moved in zip(orbit.members, orbit.images, strict=True):
            assert image_of(orbit.representative, moved) == key[member.name]
            assert tuple(moved[: machine.nodes].tolist()) in images


@pytest.mark.parametrize("seed", range(20))
def test_every_link_switch_and_group_fails_once(seed: int) -> None:
    """What fails is gone from the machine of the instance that states it, and nothing else is."""
    instance = tiny(seed)
    machine = instance.machine
    links = {frozenset(row[:2]) for row in rows(machine)}
    failures = every_failure(machine)
    switches = {v for v in np.flatnonzero(machine.is_switch).tolist() if any(v in link for link in links)}
    count = {kind: sum(f.kind == kind for f in failures) for kind in ("link", "switch", "group")}
    assert count["link"] == len(links)
    assert count["switch"] == len(switches)
    assert count["group"] == int((machine.group >= 0).any())
    for failure in failures:
        stated = failure.stated(None)
        gone, nodes = {tuple(pair) for pair in stated["links"]}, set(stated["nodes"])
        left = [r for r in rows(machine) if r[:2] not in gone and not nodes & set(r[:2])]
        assert left == [r for r in rows(machine) if r[:2] not in failure.pairs]
        assert len(left) < machine.links


def test_named_machines_and_what_a_person_calls_a_failure() -> None:
    instance = synth.make("fabric", machine="dgx-h100", boxes=4, bytes="64MiB", collective="allreduce")
    assert isinstance(instance, FabricInstance)
    machine = instance.machine
    failures = every_failure(machine)
    found = orbits(failures, Symmetries(machine, (~machine.is_switch).astype(np.int64)))
    sizes = {orbit.representative.name: len(orbit.members) for orbit in found}
    assert sizes == {
        "link 0/gpu0 0/nvswitch": 32,
        "link 0/gpu0 0/nic0": 32,
        "link 0/nic0 rail0": 32,
        "node 0/nvswitch": 4,
        "node 0/nic0": 32,
        "node rail0": 8,
    }
    by_pairs = {failure.pairs: failure.name for failure in failures if failure.kind == "link"}
    for text in ("link 3/gpu7 3/nic7", "link 3/nic7  3/gpu7", "link 31 3/nic7"):
        meant = named(text, machine)
        assert isinstance(meant, frozenset)
        assert by_pairs[meant] == "link 3/gpu7 3/nic7"
    assert named("node rail3", machine) == machine.names.index("rail3")
    for wrong in ("link 3/gpu7", "rail3", "node rail9", "link a b c d", ""):
        with pytest.raises(InputError):
            named(wrong, machine)
