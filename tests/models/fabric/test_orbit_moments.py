"""The bound of flows over time on the quotient by what looks alike: never above the optimum, certified, and what it is
for: broadcast, reduce and allreduce of small messages over many boxes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.never_above import least_above
from models.fabric.small_machines import Link, machine

from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.block_flows import DirectRoutes, FlowsOverTime, OneBlock
from synth_models.fabric.bounds.orbit_moments import RouteOrbits, _least_rounding, strongest_orbit_moments
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

TIGHT = (0, 1)  # seeds on some of whose machines the argument is the strongest there can be
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))]
COLLECTIVES = ("broadcast", "reduce", "allreduce")


def boxes(chooser: random.Random) -> FabricInstance:
    """Two or three ranks, some near each other and some far, or two boxes of a switch with two ranks each."""
    while True:
        collective, size = chooser.choice(COLLECTIVES), chooser.choice([1, 2, 3])
        speeds = chooser.choice([[1.0], [1.0, 2.0]])
        links: list[Link]
        if chooser.random() < 0.4:
            near, far = chooser.choice([0.5, 1.0]), chooser.choice([1.0, 2.0])
            fast, slow = chooser.choice(speeds), chooser.choice(speeds)
            links = [(v, 4 + v // 2, fast, near) for v in range(4)] + [(4 + v // 2, v, fast, near) for v in range(4)]
            links += [(u, v, slow, far) for u, v in ((0, 2), (2, 0), (1, 3), (3, 1))]
            nodes, switches = 6, [4, 5]
        else:
            nodes, switches = chooser.choice([2, 3, 3]), []
            pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
            drawn = chooser.sample(pairs, chooser.randint(nodes, len(pairs)) if nodes > 2 else 2)
            links = [(u, v, chooser.choice(speeds), chooser.choice([0.5, 1.0, 2.0])) for u, v in drawn]
        try:
            return machine(nodes, links, switches, collective=collective, bytes=size)
        except ValueError:
            continue


def alone(instance: FabricInstance, known: float = 0.0) -> Proven | None:
    """The bound without the help of any other, beginning at one that is known."""
    before = replace(NOTHING, seconds=Fraction(known))
    found = strongest_orbit_moments(Links.of(instance), lambda: True, before)
    return None if found is before else found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_is_faster(seed: int) -> None:
    """Whole blocks and pieces of a byte."""
    chooser, seen = random.Random(seed), Counter[str]()
    for _ in range(8):
        instance = boxes(chooser)
        known = float(strongest(instance, RunOptions()).seconds) * chooser.choice([0.5, 0.8])
        found = alone(instance, known)
        if found is None:
            continue
        least = least_above(instance, found, chooser)
        if least is None:
            continue
        seen["tight" if found.seconds > 0.97 * least else "below"] += 1
    assert seen["tight"] >= 2 or seed not in TIGHT


def over_switches(chooser: random.Random) -> FabricInstance:
    """Ranks and switches joined at random: several ways over switches between two ranks, slow last links and quick."""
    while True:
        ranks = chooser.randint(2, 4)
        nodes = ranks + chooser.randint(1, 3)
        drawn = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and chooser.random() < 0.5]
        drawn += [pair for pair in drawn if chooser.random() < 0.1]
        links = [(u, v, chooser.choice([1.0, 2.0]), chooser.choice([0.5, 1.0, 2.0])) for u, v in drawn]
        own = {"collective": chooser.choice(COLLECTIVES), "bytes": chooser.choice([1, 2, 3])}
        try:
            return machine(nodes, links, range(ranks, nodes), **own)
        except ValueError:
            continue


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_every_last_link_pays(seed: int) -> None:
    """The check accepts what is made where the quickest way between two ranks is not the only one."""
    chooser, certified = random.Random(seed), 0
    for _ in range(16):
        instance = over_switches(chooser)
        found = alone(instance)
        if found is not None and found.seconds > 0:
            assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
            certified += 1
    assert certified >= 8


def cluster(count: int, collective: str, size: int, **own: Any) -> FabricInstance:
    """Boxes of dgx-h100."""
    network = {"kind": "machine", "name": "dgx-h100", "boxes": count}
    keys = {"name": "t", "source": "test", "network": network, "collective": collective, "bytes": size}
    return FabricInstance.model_validate(keys | own)


@pytest.mark.long
@pytest.mark.parametrize(
    "collective", ["broadcast", *(pytest.param(name, marks=pytest.mark.slow) for name in COLLECTIVES[1:])]
)
def test_two_hops_and_the_bytes_of_a_box(collective: str) -> None:
    """1 MiB on 16 boxes: what a box has after one hop (2.6 us) comes out of the root's box alone, all else after two,
    and has to reach eight GPUs: more than 5.2 us and 90 % of the bytes at 400 GB/s, in whatever order they come."""
    instance = cluster(16, collective, 2**20)
    found = alone(instance, 6e-6)
    assert found is not None
    assert float(found.seconds) > 5.2e-6 + 0.9 * 2**20 / 400e9 + 0.7e-6
    certificate = dict(found.certificate())
    assert check_bound(instance, float_below(found.seconds), certificate) == []
    assert len(certificate["of"]) < 100  # one demand of a kind, not one of every rank


@pytest.mark.long
@pytest.mark.parametrize("oversubscription", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_boxes_behind_other_leaf_switches(oversubscription: float) -> None:
    """64 KiB to 8 boxes, 4 behind a leaf: nothing gets to the 4 others in less than 3.9 us. What gets there without a
    relay in another box comes out of the root's box alone, 4 times 64 KiB at 400 GB/s; over a relay it takes a hop of
    2.6 us more. The switches between them look alike to all, which rails do not."""
    network = {"kind": "machine", "name": "dgx-h100", "boxes": 8, "leaf": 4, "oversubscription": oversubscription}
    instance = cluster(8, "broadcast", 2**16, network=network)
    found = alone(instance, 4e-6)
    assert found is not None
    assert float(found.seconds) > 3.9e-6 + 0.9 * 4 * 2**16 / 400e9 + 0.5e-6
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []


@pytest.mark.long
def test_symmetry_that_a_failure_breaks() -> None:
    """With one link less, boxes that are no longer alike stay where they are."""
    instance = cluster(3, "broadcast", 2**16, failed={"links": [[19, 24 + 1 + 9 * 2 + 3]]})
    found = alone(instance, 3e-6)
    assert found is not None
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []


@pytest.mark.parametrize("own", [{}, {"failed": {"links": [[19, 24 + 1 + 9 * 2 + 3]]}}])
def test_links_that_are_counted_together_are_crossed_alike(own: dict[str, Any]) -> None:
    """As many links of every rate, orbits and tolls as counted one by one, whichever links of a route pay."""
    links = Links.of(cluster(3, "broadcast", 2**16, **own))
    direct = DirectRoutes.of(links)
    assert direct is not None
    routes = RouteOrbits(OneBlock(links, direct, 0))
    toll = np.random.default_rng(1).integers(-1, 2, links.links)
    for payers in direct.payers:
        one_by_one: Counter[tuple[int, frozenset[tuple[int, int]]]] = Counter()
        for e in np.unique(np.concatenate(payers)).tolist():
            over = np.flatnonzero(np.any([column == e for column in payers], axis=0))
            crossed = zip(routes.of[over].tolist(), toll[direct.first[over]].tolist(), strict=True)
            one_by_one[int(links.rate[e]), frozenset(crossed)] += 1
        together: Counter[tuple[int, frozenset[tuple[int, int]]]] = Counter()
        for alike in routes.crossing(payers, toll):
            together[alike.rate, frozenset(alike.crossed)] += alike.number
        assert together == one_by_one


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_program_is_solved_twice(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Bins that are to be finer, but not finer than what latencies have in common, are those of before."""
    chooser, solved = random.Random(seed), list[tuple[int, int]]()
    solve = FlowsOverTime.solve

    def counted(program: FlowsOverTime) -> Any:
        solved.append((program.whole, program.length))
        return solve(program)

    monkeypatch.setattr(FlowsOverTime, "solve", counted)
    some = [(boxes(chooser), chooser.choice([0.5, 2.0])) for _ in range(6)] + [(cluster(2, "broadcast", 2**16), 2e-6)]
    programs = 0
    for instance, known in some:
        solved.clear()
        alone(instance, known)
        assert len(set(solved)) == len(solved)
        programs += len(solved)
    assert programs > len(some)


def with_tolls(good: dict[str, Any], instance: FabricInstance, chooser: random.Random) -> dict[str, Any]:
    """The certificate without symmetries, where last links pay and links out of ranks take tolls drawn at random, which
    are 0 at first or not, and then fall."""
    net, switch = instance.machine.network, instance.machine.is_switch
    leaving, arriving = ~switch[net.src] & switch[net.dst], switch[net.src] & ~switch[net.dst]
    at = sorted(set(good["since"]) | {0})
    at = at if len(at) > 1 else [0, good["finer"]]
    rows, highest = chooser.randint(1, 3), sum(good["weight"])
    toll = []
    for _ in range(rows):
        begin = chooser.randint(0, len(at) - 2)
        falling = sorted((chooser.randint(1, highest) for _ in range(len(at) - 1 - begin)), reverse=True)
        toll += [0] * begin + falling
    number = [chooser.randint(0, rows) if out else 0 for out in leaving.tolist()]
    share = (arriving | ~(switch[net.src] | switch[net.dst])).astype(int).tolist()
    return good | {"images": [], "share": share, "toll_at": at, "toll": toll, "toll_of": number}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_tolls_that_begin_late_prove_nothing_false(seed: int) -> None:
    """Whatever tolls a certificate states, and from when on, the check accepts no bound above brute force."""
    chooser, accepted = random.Random(seed), 0
    for _ in range(20):
        instance = boxes(chooser)
        found = alone(instance) if instance.machine.is_switch.any() else None
        if found is None:
            continue
        try:
            least = least_seconds(instance, [[int(n)] for n in instance.blocks.bytes], most_states=3000)
            least = min(least, least_seconds(instance, [[1] * int(n) for n in instance.blocks.bytes], most_states=3000))
        except TooLarge:
            continue
        for _ in range(40):
            drawn = with_tolls(dict(found.certificate()), instance, chooser)
            assert check_bound(instance, float(least) * (1 + 1e-6), drawn) != []
            accepted += check_bound(instance, float(least) / 2, drawn) == []
    assert accepted


@pytest.mark.long
def test_forged_certificates() -> None:
    """Images that are no symmetries, tolls that rise, demands of nobody, and weights that were raised."""
    instance = cluster(4, "broadcast", 2**20)
    found = alone(instance, 6e-6)
    assert found is not None
    bound, good = float_below(found.seconds), dict(found.certificate())
    assert check_bound(instance, bound, good) == []
    nodes = instance.machine.nodes
    moved = np.array(good["images"]).reshape(-1, nodes)
    moved[0, [8, 9]] = moved[0, [9, 8]]
    rising = np.array(good["toll"])[::-1]
    late = np.array(good["toll"]).reshape(-1, len(good["toll_at"]) - 1)
    late[:, : late.shape[1] // 2] = 0
    forgeries: list[dict[str, Any]] = [
        {"images": moved.reshape(-1).tolist()},
        {"images": [0] * nodes},
        {"toll": rising.tolist()},
        {"toll": late.reshape(-1).tolist()},
        {"toll": [0] * len(rising)},
        {"toll_of": [1] * len(good["toll_of"])},
        {"source": [good["source"][0] + 1] * len(good["source"])},
        {"share": [1] * len(good["share"])},
        {"backwards": 1},
        {"since": [0] * len(good["since"])},
        {"classes": [0] * len(good["classes"])},
        {"finer": good["finer"] * 2},
    ]
    for forged in forgeries:
        assert check_bound(instance, bound, good | forged) != [], list(forged)
    assert check_bound(cluster(4, "allgather", 4 * 2**18), bound, good) != []
    assert check_bound(cluster(4, "broadcast", 2**20, switching={"multicast": True}), bound, good) != []


@pytest.mark.parametrize("seed", range(3))
def test_the_length_of_a_bin_is_the_best_of_all(seed: int) -> None:
    """Of few lengths as of every length; latencies of 10^12 ticks took half a minute."""
    rng = random.Random(seed)
    for _ in range(200):
        most = rng.randint(1, 300)
        delay = np.array(
            [rng.choice([0, rng.randint(1, 20 * most), rng.randint(1, 5)]) for _ in range(rng.randint(1, 6))]
        )
        distinct = np.unique(delay[delay > 0]) if delay.any() else np.ones(1, dtype=np.int64)
        lost = {length: float(np.sum(distinct % length / distinct)) for length in range(most, most // 2, -1)}
        assert _least_rounding(delay, most) == min(lost, key=lambda length: lost[length])
    assert _least_rounding(np.array([10**12]), 3 * 10**11) == 25 * 10**10
