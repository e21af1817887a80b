"""No bound of a machine whose switches copy and add exceeds the least time of any schedule of trees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from examples import some, some_of
from models.fabric.small_machines import machine
from models.fabric.tree_brute_force import least

from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import colours, finer
from synth_models.fabric.bounds.cuts import strongest_cut
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.strongest import searches, searches_of_loads, strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above, float_below

COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "reduce", "gather", "scatter")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 11))]
A_SEED = some(40)


def tiny(chooser: random.Random, collective: str) -> FabricInstance:
    """Two to four ranks, one or two switches, each plain, copying, adding or both, sometimes with limits; sometimes
    switches that store."""
    while True:
        ranks = chooser.randint(2, 3 if collective in ("alltoall", "allgather", "reduce_scatter") else 4)
        switches = chooser.randint(1, 2)
        nodes = ranks + switches
        pairs = [(u, s) for u in range(ranks) for s in range(ranks, nodes) if s == ranks or chooser.random() < 0.5]
        pairs += [(ranks, s) for s in range(ranks + 1, nodes)]
        pairs += [(v, u) for u, v in pairs]
        pairs = [pair for pair in pairs if chooser.random() < 0.93]
        pairs += [(u, v) for u in range(ranks) for v in range(ranks) if u != v and chooser.random() < 0.1]
        bandwidths, latencies = (
            chooser.choice([[1.0], [1.0, 2.0], [0.5, 1.0, 3.0]]),
            chooser.choice([[0.0], [0.0, 1.0]]),
        )
        links: list[tuple[Any, ...]] = []
        for u, v in pairs:
            group = chooser.choice(["a", "b"]) if chooser.random() < 0.06 else None
            links.append((u, v, chooser.choice(bandwidths), chooser.choice(latencies), group))
        rows = [dict(zip(("src", "dst", "bandwidth", "latency", "group"), link, strict=False)) for link in links]
        network: dict[str, Any] = {
            "kind": "links", "nodes": nodes, "switches": list(range(ranks, nodes)), "links": rows,
        }  # fmt: skip
        raw: dict[str, Any] = {"collective": collective, "bytes": chooser.choice([1, 2]) * ranks}
        if chooser.random() < 0.2 and (ranks == 2 or collective != "reduce_scatter"):
            adds = collective in ("allreduce", "reduce", "reduce_scatter")
            raw["switching"] = {"mode": "store_and_forward", "buffer": True, "copies": True, "adds": adds}
        else:
            network["abilities"] = [_able(chooser, s) for s in range(ranks, nodes)]
        if chooser.random() < 0.15 and ranks > 2:
            raw |= {"ranks": list(range(ranks - 1)), "bytes": 2 * (ranks - 1), "relay": chooser.random() < 0.7}
        try:
            return FabricInstance.model_validate({"name": "t", "source": "test", "network": network} | raw)
        except ValueError:
            continue  # parts of the ranks do not reach each other


def _able(chooser: random.Random, switch: int) -> dict[str, Any]:
    found: dict[str, Any] = {"switch": switch, "adds": chooser.random() < 0.6, "copies": chooser.random() < 0.6}
    if chooser.random() < 0.2:
        found["streams"] = 1
    if chooser.random() < 0.2:
        found["add_rate"] = chooser.choice([0.5, 1.0])
    return found


def every_argument(instance: FabricInstance) -> Iterator[Proven]:
    """What each argument proves of the instance where no other has proven anything before."""
    links = Links.of(instance)
    look = finer(links, colours(links))

    def few() -> Callable[[], bool]:
        left = iter(range(200))
        return lambda: next(left, None) is not None

    yield strongest_cut(links, look, few())
    for search in (*searches_of_loads(instance, links, look), *searches(instance, links, look)):
        found = search(few(), NOTHING)
        if found is not NOTHING:
            yield found


def cut_up(chooser: random.Random, instance: FabricInstance) -> list[list[int]]:
    """Whole blocks, or one of few blocks in two."""
    sizes = [[int(n)] for n in instance.blocks.bytes]
    if len(sizes) == 1 and sizes[0][0] > 1 and chooser.random() < 0.4:
        sizes[0] = [sizes[0][0] // 2, sizes[0][0] - sizes[0][0] // 2]
    return sizes


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_of_trees_is_faster(seed: int) -> None:
    """40 machines a seed, 400 in all, of which the search may give up on one in 20: every argument's certificate proves
    its bound, the strongest nothing higher; the
    best schedule of the search is valid, takes the time that the check finds too, and no less than any bound."""
    chooser, seen = random.Random(seed), Counter[str]()
    for k in range(A_SEED):
        instance = tiny(chooser, COLLECTIVES[k % len(COLLECTIVES)])
        found = least(instance, cut_up(chooser, instance))
        if found.seconds is None or found.schedule is None:
            seen["not found"] += 1
            continue
        verdict = check_schedule(instance, found.schedule)
        assert verdict.faults == []
        assert verdict.value == float_above(found.seconds)
        best = strongest(instance, RunOptions(time_limit_s=2.0).started_now())
        assert check_bound(instance, float(best.seconds) * (1 + 1e-4), best.certificate()) != []
        for proven in (best, *every_argument(instance)):
            assert check_bound(instance, float_below(proven.seconds), proven.certificate()) == []
            assert proven.seconds <= found.seconds, (instance.collective, proven.argument, proven.seconds)
            seen[proven.argument] += 1
        seen["tight"] += best.seconds == found.seconds
        seen["complete"] += found.complete
    assert seen["not found"] <= -(-A_SEED // 20), seen
    assert seen["complete"] >= A_SEED // 3, seen
    assert seen["tight"] >= A_SEED // 3, seen
    assert seen["gossip"] + seen["partition"], seen


def with_abilities(chooser: random.Random, plain: FabricInstance) -> FabricInstance:
    """The same machine, at least one of whose switches copies or adds; or with multicast everywhere."""
    raw = plain.model_dump(mode="json", exclude_none=True)
    switches = raw["network"]["switches"]
    able = [_able(chooser, s) for s in switches]
    able[0] |= chooser.choice([{"adds": True}, {"copies": True}, {"adds": True, "copies": True}])
    if chooser.random() < 0.3:
        return FabricInstance.model_validate(raw | {"switching": {"multicast": True, "adds": chooser.random() < 0.5}})
    return FabricInstance.model_validate(raw | {"network": raw["network"] | {"abilities": able}})


def plain_star(chooser: random.Random, collective: str) -> FabricInstance:
    """Three ranks, seldom four, behind one or two switches, with latency: where single arrivals prove most."""
    ranks, switches = chooser.choice([3, 3, 4]), chooser.randint(1, 2)
    links = [(u, s, 1.0, 1.0) for u in range(ranks) for s in range(ranks, ranks + switches)]
    links += [(v, u, rate, latency) for u, v, rate, latency in links]
    if chooser.random() < 0.3:
        links.append((0, 1, 1.0, 1.0))
    size = ranks if collective in ("allgather", "reduce_scatter") else chooser.choice([1, 2, 6])
    return machine(ranks + switches, links, range(ranks, ranks + switches), collective=collective, bytes=size)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_certificates_of_plain_machines_prove_nothing_false_where_switches_multiply(seed: int) -> None:
    """Every certificate made for a plain machine, offered for the same one with switches that copy or add: it is
    refused, or no schedule of trees is faster than what it says. Both happen; arrivals, moments are always refused."""
    chooser, seen = random.Random(5000 + seed), Counter[str]()
    for k in range(15):
        plain = plain_star(chooser, ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")[k % 5])
        able = with_abilities(chooser, plain)
        found = least(able, most_states=500)
        assert found.seconds is not None
        for proven in every_argument(plain):
            certificate, bound = proven.certificate(), float_below(proven.seconds)
            assert check_bound(plain, bound, certificate) == []
            accepted = check_bound(able, bound, certificate) == []
            assert not accepted or proven.seconds <= found.seconds, (certificate, proven.seconds, found.seconds)
            seen[f"{proven.argument} {'accepted' if accepted else 'refused'}"] += 1
            assert not accepted or proven.argument in ("cut", "partition", "gossip"), certificate
    assert seen["cut accepted"], seen
    for argument in ("deliveries", "sums", "gossip"):
        assert seen[f"{argument} refused"], seen


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(4)))
def test_switches_that_are_said_to_do_nothing_change_no_bound(seed: int) -> None:
    """Stated abilities of which none is one leave every argument and its certificate as they are."""
    chooser = random.Random(9000 + seed)
    for collective in COLLECTIVES:
        plain = plain_star(chooser, "broadcast").model_copy(update={"collective": collective, "bytes": 12})
        raw = FabricInstance.model_validate(plain.model_dump(mode="json", exclude_none=True)).model_dump(
            mode="json", exclude_none=True
        )
        nothing = [{"switch": s, "adds": False, "copies": False} for s in raw["network"]["switches"]]
        said = FabricInstance.model_validate(raw | {"network": raw["network"] | {"abilities": nothing}})
        plain = FabricInstance.model_validate(raw)
        for one, other in zip(every_argument(plain), every_argument(said), strict=True):
            assert (one.seconds, one.certificate()) == (other.seconds, other.certificate())
