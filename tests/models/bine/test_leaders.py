"""``leaders``: the receive count is met on all kinds of groupings, and is what brute force finds least."""

from __future__ import annotations

import heapq
from itertools import chain, combinations, product

import numpy as np
import pytest
from examples import some_of

from synth.api import execute
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.bine import FAMILY
from synth_models.bine.instance import BineInstance
from synth_models.bine.references import leaders
from synth_papers.bine.several_ranks import least_traffic

FORMS = [
    *((what, "small") for what in ("broadcast", "reduce", "scatter", "gather", "allgather", "reduce_scatter")),
    *((what, "large") for what in ("broadcast", "reduce", "allreduce")),
    ("allreduce", "small"),
]
COSTS = [None, (0, 1, 3), (0, 2, 2), (1, 2, 5), (2, 2, 2)]


def make(groups, nodes=None, collective: str = "allreduce", **fields) -> BineInstance:
    """One job, ``groups`` and ``nodes`` a label a rank; a vector of as many bytes as ranks."""
    job = {"name": "j", "allocation": " ".join(f"{g}x1" for g in groups)}
    if nodes is not None:
        job["nodes"] = " ".join(f"{n}x1" for n in nodes)
    raw = {"name": "t", "source": "test", "jobs": [job], "collective": collective, "bytes": float(len(groups))}
    return BineInstance.model_validate(raw | {"problem": "any"} | fields)


def solved(instance: BineInstance, method: str = "leaders"):
    return execute(instance, FAMILY.methods[method], RunOptions(60.0))


def least_by_search(price) -> float:
    """The least cost of an allreduce of one block: shortest way through all states, by whole rounds.

    A state is what every rank's partial sum contains. In a round every rank may take the sums of any ranks (as they
    were before it) that overlap neither its own nor one another, or the complete sum from one that has it.
    """
    ranks = len(price)
    full = (1 << ranks) - 1
    begin = tuple(1 << r for r in range(ranks))
    best, queue = {begin: 0.0}, [(0.0, begin)]
    while queue:
        cost, state = heapq.heappop(queue)
        if all(held == full for held in state):
            return cost
        if cost > best[state]:
            continue
        choices = []
        for r in range(ranks):
            others = [s for s in range(ranks) if s != r]
            takes = {}
            for chosen in chain.from_iterable(combinations(others, k) for k in range(ranks)):
                together, apart = state[r], True
                for s in chosen:
                    apart &= not together & state[s]
                    together |= state[s]
                complete = len(chosen) == 1 and state[chosen[0]] == full
                if apart or complete:
                    paid = sum(price[s][r] for s in chosen)
                    takes[together] = min(takes.get(together, np.inf), paid)
            choices.append(list(takes.items()))
        for taken in product(*choices):
            after = tuple(held for held, _ in taken)
            paid = cost + sum(price for _, price in taken)
            if paid < best.get(after, np.inf):
                best[after] = paid
                heapq.heappush(queue, (paid, after))
    raise AssertionError("an allreduce always ends")


@pytest.mark.long(after=4)
@pytest.mark.parametrize(
    ("groups", "nodes"),
    some_of(product(["ab", "aba", "abc", "aaaa", "aabb", "abbb", "abbc", "abcd"], [None, "aabb", "abbc", "abcc"])),
)
def test_no_small_allreduce_of_four_ranks_costs_less(groups: str, nodes: str | None) -> None:
    """Every partition into groups, nodes inside them: search over all schedules finds what ``leaders`` sends."""
    if nodes is not None and len({*zip(groups, nodes, strict=False)}) != len(set(nodes[: len(groups)])):
        return  # a node in two groups
    here = None if nodes is None else nodes[: len(groups)]
    for costs in COSTS[::3] if nodes is None else COSTS[1:4]:
        instance = make(groups, here, vector="small", **({} if costs is None else {"costs": costs}))
        r = np.arange(len(groups))
        price = [instance.crossings(0, np.full_like(r, s), r).tolist() for s in r]
        record = solved(instance)
        assert record.ok, record["verified"]["faults"]
        assert record.value == len(groups) * least_by_search(price)


def random_job(random: np.random.Generator, collective: str, vector: str) -> BineInstance:
    ranks = int(random.integers(2, 24))
    nodes = random.integers(0, random.integers(1, ranks + 1), ranks)
    group_of = random.integers(0, random.integers(1, 7), ranks)
    costs = COSTS[int(random.integers(len(COSTS)))]
    fields = {"root": int(random.integers(ranks)) if random.random() < 0.7 else 0, "vector": vector} | (
        {} if costs is None else {"costs": costs}
    )
    return make(group_of[nodes], nodes, collective, **fields)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("collective", "vector"), some_of(FORMS))
def test_the_receive_count_is_met_with_one_message_a_port(collective: str, vector: str) -> None:
    """Random groups of any sizes in any order, nodes, costs, roots: replayed, at the certified bound, and in no round
    does a rank send two messages or receive two."""
    random = np.random.default_rng(7)
    for _ in range(30):
        instance = random_job(random, collective, vector)
        record = solved(instance)
        assert record.ok, record["verified"]["faults"]
        assert record.value == solved(instance, "bound").bound
        if instance.costs is None and instance.root == 0:
            least = least_traffic(instance.allocations[0], collective)
            assert record.value == pytest.approx(least * instance.bytes)
        rows = record.table()
        for end in ("src", "dst"):
            assert not rows.duplicated(["round", end]).any()


def test_as_few_rounds_as_a_butterfly_where_groups_are_equal() -> None:
    """2^a groups of 2^b ranks in any order: a rounds among groups, b inside them, as a butterfly; a ring takes 63."""
    random = np.random.default_rng(3)
    for a in range(7):
        groups = random.permutation(np.repeat(np.arange(2**a), 2 ** (6 - a)))
        record = solved(make(groups, collective="allgather"))
        assert record["verified"]["facts"]["rounds"] == 6
        assert record.value == (2**a - 1) * 64


@pytest.mark.parametrize("shape", [{"problem": "tree"}, {"problem": "butterfly"}, {"collective": "alltoall"}])
def test_what_it_does_not_solve(shape: dict[str, str]) -> None:
    fields = {"collective": "broadcast" if shape.get("problem") == "tree" else "allgather"} | shape
    with pytest.raises(UnsupportedError, match="leaders"):
        leaders.solve(make("aabb", **fields), RunOptions())
