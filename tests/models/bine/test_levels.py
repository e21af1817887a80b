"""Several ranks a node: levels of traffic, the hierarchical collectives, trees and placements with a cost per level."""

from __future__ import annotations

from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
from examples import some_of

import synth
from synth.api import execute
from synth.errors import InputError
from synth.options import RunOptions
from synth.solvers.catalogue import solvers_for
from synth_models.bine import FAMILY
from synth_models.bine.check.certificates import check_bound
from synth_models.bine.instance import BineInstance
from synth_models.bine.making import counted_hosts, ranks_on_nodes, tasks

COSTS = [(0, 0, 1), (0, 1, 3), (0, 2, 2), (1, 2, 5), (2, 2, 3)]


def make(**parameters) -> BineInstance:
    return synth.make("bine", **{key: str(value) for key, value in parameters.items()})


def run(name: str, instance: BineInstance, solver: str | None = None, **own):
    method = FAMILY.methods[name]
    own = {p.name: own.get(p.name, p.default) for p in method.parameters}
    return execute(
        instance, method, RunOptions(60.0, solver=solver or next(iter(solvers_for(method.needs)), None), method=own)
    )


def job(groups: str, nodes: str, **fields) -> BineInstance:
    """One job, its groups and nodes a letter a rank."""
    runs = [" ".join(f"{letter}x1" for letter in text) for text in (groups, nodes)]
    raw = {"name": "levels", "source": "by hand", "jobs": [{"name": "j", "allocation": runs[0], "nodes": runs[1]}]}
    return BineInstance.model_validate(raw | fields)


def levels(instance: BineInstance, record) -> list[float]:
    """Bytes inside nodes, inside groups, between groups, from the flat table row by row."""
    found = [0.0, 0.0, 0.0]
    nodes, groups = instance.nodes[0].tolist(), instance.allocations[0].tolist()
    for row in record.table().itertuples():
        a, b = int(row.src), int(row.dst)
        found[0 if nodes[a] == nodes[b] else 1 if groups[a] == groups[b] else 2] += row.bytes
    return found


@pytest.mark.long(after=5)
@pytest.mark.parametrize(
    ("local", "groups", "collective"),
    some_of(
        product([1, 2, 4], ["2,2", "1,3,1", "8,8", "5,6,2,4", "16,48"], ["allreduce", "reduce_scatter", "allgather"])
    ),
)
def test_hierarchical_is_replayed(local: int, groups: str, collective: str) -> None:
    """4 to 64 nodes: the check replays every contribution; g = 1 is the flat algorithm bit for bit; between groups go
    what the flat algorithm sends among the nodes, whatever g is, for every g-th has its own share."""
    order = {"rank_order": "round_robin"} if local == 2 else {}
    large = {"vector": "large"} if collective == "allreduce" else {}
    instance = make(groups=groups, ranks_per_node=local, collective=collective, **large, **order)
    flat = make(groups=groups, collective=collective, **large)
    for between in ("bine", "recursive", "ring"):
        record = run("hierarchical", instance, between=between)
        assert record.ok, record["verified"]["faults"]
        published = run(between, flat)
        assert record.value == pytest.approx(published.value, rel=1e-12)
        if local == 1:
            assert record.value == published.value
            assert record["verified"]["facts"]["total_bytes"] == published["verified"]["facts"]["total_bytes"]
        facts = record["verified"]["facts"]
        assert [facts[k] for k in ("node_bytes", "group_bytes", "global_bytes")] == pytest.approx(
            levels(instance, record)
        )
        halves = 2 if collective == "allreduce" else 1
        nodes = sum(map(int, groups.split(",")))
        assert facts["node_bytes"] == pytest.approx(halves * nodes * (local - 1) * instance.bytes)


@pytest.mark.parametrize("method", ["bine", "recursive", "ring"])
def test_nodes_of_one_rank_change_nothing(method: str) -> None:
    fields = {"groups": "3,4,9", "collective": "allreduce", "vector": "large"}
    with_nodes, without = run(method, make(**fields, ranks_per_node=1)), run(method, make(**fields))
    assert with_nodes.value == without.value
    assert "node_bytes" not in without["verified"]["facts"]
    assert with_nodes["verified"]["facts"]["node_bytes"] == 0


def brute_tree(instance: BineInstance, volumes: bool) -> int:
    """Least cost over all trees from the root: every round every informed rank may inform one more."""
    nodes, groups, costs = instance.nodes[0], instance.allocations[0], instance.costs or (0, 0, 1)
    ranks, root = len(nodes), instance.root

    def cost(a: int, b: int) -> int:
        return costs[0] if nodes[a] == nodes[b] else costs[1] if groups[a] == groups[b] else costs[2]

    states = {((root, 0),): 0}  # (rank, what a byte to it has cost) -> least cost of the messages so far
    for _ in range((ranks - 1).bit_length()):
        following: dict[tuple[tuple[int, int], ...], int] = {}
        for state, so_far in states.items():
            rest = [r for r in range(ranks) if r not in {rank for rank, _ in state}]
            for n in range(min(len(state), len(rest)) + 1):
                for senders, chosen in product(combinations(state, n), combinations(rest, n)):
                    for order in permutations(chosen):
                        pairs = list(zip(senders, order, strict=True))
                        added = tuple((r, d + cost(s, r) if volumes else 0) for (s, d), r in pairs)
                        grown = tuple(sorted(state + added))
                        total = so_far + sum(cost(s, r) for (s, _), r in pairs)
                        following[grown] = min(following.get(grown, 10**9), total)
        states = following
    full = [(s, c) for s, c in states.items() if len(s) == ranks]
    return min(sum(d for _, d in s) if volumes else c for s, c in full)


@pytest.mark.parametrize("costs", some_of((costs,) for costs in COSTS))
@pytest.mark.parametrize(("groups", "nodes", "root"), [
    ("aab", "xyz", 0), ("aabb", "xyzz", 2), ("aaab", "xxyz", 1), ("aaabb", "xyyzw", 0), ("ababa", "xzyzx", 1),
    ("aaaa", "xxyy", 0), ("aabbc", "xxyyz", 4),
])  # fmt: skip
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "scatter", "gather"])
def test_trees_against_brute_force(
    costs: tuple[int, int, int], groups: str, nodes: str, root: int, collective: str
) -> None:
    volumes = collective in ("scatter", "gather")
    unit = len(groups) if volumes else 1
    fields = {"collective": collective, "problem": "tree", "bytes": float(unit), "root": root, "costs": costs}
    instance = job(groups, nodes, **fields)
    record = run("tree_ilp", instance)
    if volumes and costs[0]:
        assert record["termination"] == "unsupported"
        return
    expected = brute_tree(instance, volumes)
    assert (record.value, record.bound, record["termination"]) == (expected, expected, "optimal")
    least = run("bound", instance)
    assert least.bound <= expected
    assert not check_bound(instance, least.bound, {"binding": "receive"})
    assert check_bound(instance, least.bound * 1.001 + 1, {"binding": "receive"})
    assert run("binomial_halving", instance).value >= expected


@pytest.mark.long(after=13)
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("solver", ["cpsat", "highs"])
@pytest.mark.parametrize(
    ("groups", "nodes"), [("aaaabbbb", "xxyyzzww"), ("aaaaabbb", "xyyyxzzw"), ("aaabbbcc", "xxyzzwuu")]
)
def test_placements_against_brute_force(costs: tuple[int, int, int], solver: str, groups: str, nodes: str) -> None:
    instance = job(groups, nodes, collective="allreduce", vector="large", problem="butterfly", bytes=8.0, costs=costs)
    record = run("placement", instance, solver)
    edges = [(v, v ^ (1 << b), (8, 4, 2)[b]) for v in range(8) for b in range(3) if v < v ^ (1 << b)]

    def cost(a: str, b: str) -> int:  # a node's letter, then its group's
        return costs[0] if a == b else costs[1] if a[1] == b[1] else costs[2]

    ranks = [n + g for n, g in zip(nodes, groups, strict=True)]
    expected = 2 * min(sum(w * cost(p[u], p[v]) for u, v, w in edges) for p in set(permutations(ranks)))
    assert record.value == record.bound == expected
    assert record["termination"] == "optimal"
    greedy, least = run("placement_greedy", instance), run("bound", instance)
    assert least.bound <= expected <= greedy.value
    assert run("recursive", instance).value >= expected


def test_host_lists_with_counts(tmp_path: Path) -> None:
    assert counted_hosts("node[01-03]*4, a7") == [("node01", 4), ("node02", 4), ("node03", 4), ("a7", None)]
    assert tasks("4(x3),2", 4) == [4, 4, 4, 2]
    assert ranks_on_nodes([2, 1, 3], "block") == [0, 0, 1, 2, 2, 2]
    assert ranks_on_nodes([2, 1, 3], "round_robin") == [0, 1, 2, 0, 2, 2]
    (tmp_path / "map.csv").write_text("host,group\nh10,b\nh2,a\nh1,a\n")
    (tmp_path / "hosts").write_text("h[10]*1,h[1-2]*2\n")
    (tmp_path / "plain").write_text("h10,h1,h2\n")
    fields = {"nodes": tmp_path / "map.csv", "collective": "allreduce", "vector": "large"}
    first = make(hosts=tmp_path / "hosts", order="name", **fields)
    assert first.nodes[0].tolist() == [0, 0, 1, 1, 2]
    assert first.allocations[0].tolist() == [0, 0, 0, 0, 1]
    second = make(hosts=tmp_path / "plain", tasks_per_node="1,2(x2)", rank_order="round_robin", **fields)
    assert second.nodes[0].tolist() == [0, 1, 2, 1, 2]
    assert second.allocations[0].tolist() == [0, 1, 1, 1, 1]
    assert first.level(0, np.array([0, 0, 0]), np.array([1, 2, 4])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"groups": "4,4", "rank_order": "round_robin"}, "round_robin needs ranks_per_node"),
        ({"groups": "4,4", "ranks_per_node": "0"}, "ranks_per_node = '0'"),
        ({"groups": "4,4", "costs": "3,2,1"}, "must not fall"),
        ({"groups": "4,4", "costs": "0,0,0"}, "the last >= 1"),
        ({"groups": "4,4", "costs": "0,1"}, "give three numbers"),
        ({"groups": "40000", "ranks_per_node": "2"}, "makes 80000 ranks"),
        ({"torus": "2x2", "ranks_per_node": "2"}, "has no meaning on a torus"),
        ({"groups": "4,4", "tasks_per_node": "2"}, "is for hosts"),
    ],
)
def test_what_cannot_be_made_is_told(keys: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        make(collective="allreduce", vector="large", **keys)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("groups", "nodes", "words"),
    [
        ("ax2 bx2", "xx2 yx1", "name 3 ranks, the allocation 4"),
        ("ax2 bx2", "xx3 yx1", "node x lies in several groups"),
        ("ax2 bx2", "x", "is not GROUPxCOUNT"),
    ],
)
def test_nodes_that_do_not_fit_are_told(groups: str, nodes: str, words: str) -> None:
    raw = {"family": "bine", "name": "n", "source": "s", "jobs": [{"name": "j", "allocation": groups, "nodes": nodes}]}
    with pytest.raises(InputError) as caught:
        synth.instance.parse(raw, BineInstance, "n")
    assert words in str(caught.value)


def test_unequal_nodes_are_unsupported() -> None:
    instance = job("aaab", "xxyz", collective="allreduce", vector="large")
    record = run("hierarchical", instance)
    assert record["termination"] == "unsupported"
    assert "equal numbers" in record["message"]
