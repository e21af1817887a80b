"""The programs against brute force, hand-solved cases, brackets, and each other; bounds with their certificates."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

import synth
from synth.api import execute
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth.solvers.catalogue import solvers_for
from synth.solvers.status import SolverResult
from synth_models.bine import FAMILY
from synth_models.bine.bounds import global_bytes as bound
from synth_models.bine.check.certificates import check_bound, internal_weights, isoperimetric
from synth_models.bine.check.replay import check_messages
from synth_models.bine.parts.units import units_of
from synth_models.bine.programs.placement import method as placement
from synth_models.bine.programs.tree import method as tree_ilp
from synth_models.bine.references import placement_greedy as greedy
from synth_models.bine.references import published as references


def make(**parameters):
    return synth.make("bine", **{key: str(value) for key, value in parameters.items()})


def run(name: str, instance, solver: str | None = None, **own):
    method = FAMILY.methods[name]
    own = {p.name: own.get(p.name, p.default) for p in method.parameters}
    return execute(
        instance, method, RunOptions(60.0, solver=solver or next(iter(solvers_for(method.needs)), None), method=own)
    )


def brute_tree(groups: list[int], rounds: int, volumes: bool) -> int:
    """Least cost over all trees from rank 0: every round every informed rank may inform one more."""
    states = {((0, 0),): 0}  # (rank, depth) of the informed -> least crossings
    for _ in range(rounds):
        following: dict[tuple[tuple[int, int], ...], int] = {}
        for state, cost in states.items():
            rest = [r for r in range(len(groups)) if r not in {rank for rank, _ in state}]
            for n in range(min(len(state), len(rest)) + 1):
                for senders, chosen in product(combinations(state, n), combinations(rest, n)):
                    for order in permutations(chosen):
                        added = tuple(
                            (r, d + (groups[s] != groups[r])) for (s, d), r in zip(senders, order, strict=True)
                        )
                        crossed = sum(groups[s] != groups[r] for (s, _), r in zip(senders, order, strict=True))
                        grown = tuple(sorted(state + (added if volumes else tuple((r, 0) for r, _ in added))))
                        following[grown] = min(following.get(grown, 10**9), cost + crossed)
        states = following
    full = [(s, c) for s, c in states.items() if len(s) == len(groups)]
    return min(sum(d for _, d in s) if volumes else c for s, c in full)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (1, 1, 2), (3, 2), (1, 2, 2), (2, 1, 1, 1), (1, 4)])
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "scatter", "gather"])
def test_tree_ilp_against_brute_force(sizes, collective):
    text = ",".join(map(str, sizes))
    unit = 1 if collective in ("broadcast", "reduce") else sum(sizes)
    instance = make(groups=text, collective=collective, bytes=unit)
    groups = instance.allocations[0].tolist()
    expected = brute_tree(groups, (len(groups) - 1).bit_length(), collective in ("scatter", "gather"))
    record = run("tree_ilp", instance)
    assert (record.value, record.bound, record["termination"]) == (expected, expected, "optimal")


def test_tree_ilp_by_hand():
    """Groups of 1 and 3, two rounds for four ranks: everybody informed must send in both rounds, so rank 0 sends twice
    across: 2 crossings. With three rounds one crossing is enough: 0->1, then 1->2, then 1->3."""
    assert run("tree_ilp", make(groups="1,3", bytes=1)).value == 2
    assert run("tree_ilp", make(groups="1,3", bytes=1, rounds=3)).value == 1


def test_tree_ilp_with_fewer_rounds_than_allowed_claims_no_bound():
    instance = make(groups="1,3", bytes=1, rounds=3)
    record = run("tree_ilp", instance, rounds=2)
    assert (record.value, record.bound) == (2, None)


@pytest.mark.parametrize("solver", ["scip", "gurobi"])
def test_solvers_agree_on_trees(solver):
    pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    instance = make(groups="5,4,7", bytes=1, root=3)
    assert run("tree_ilp", instance, solver).value == run("tree_ilp", instance, "highs").value


@pytest.mark.parametrize(("groups", "root"), [("7,3,6,5", 4), ("1,1,1,1,9", 2), ("4,4,4,4", 0), ("30,2,13,19", 63)])
@pytest.mark.parametrize("collective", ["broadcast", "scatter"])
def test_bound_program_references_are_ordered(groups, root, collective):
    instance = make(groups=groups, root=root, collective=collective)
    least = bound.solve(instance, RunOptions()).bound
    best = run("tree_ilp", instance)
    assert best.ok
    assert least <= best.bound <= best.value + 1e-6
    assert best["termination"] == "optimal"
    for name in ("bine", "binomial_halving", "binomial_doubling"):
        assert best.value <= run(name, instance).value + 1e-6


def test_relabelling_groups_and_more_rounds():
    values = [run("tree_ilp", make(groups="2,6,5,3", bytes=1, rounds=k)).value for k in (4, 5, 6)]
    assert values == sorted(values, reverse=True)
    assert run("tree_ilp", make(groups="2,3,6,5", bytes=1)).value == values[0]


def test_out_of_time_is_not_infeasible():
    method = FAMILY.methods["tree_ilp"]
    instance = make(groups="30,2,13,19")
    record = execute(instance, method, RunOptions(1e-9, solver="highs", method={"rounds": None}))
    assert record["termination"] == "time_limit"
    assert record.bound <= record.value
    assert record.ok


def brute_placement(sizes, weights) -> int:
    labels = np.repeat(np.arange(len(sizes)), sizes).tolist()
    edges = [(v, v ^ (1 << b), w) for v in range(len(labels)) for b, w in enumerate(weights) if v < v ^ (1 << b)]
    return min(sum(w * (p[u] != p[v]) for u, v, w in edges) for p in set(permutations(labels)))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3), (1, 2, 5), (4, 4)])
@pytest.mark.parametrize("solver", ["cpsat", "highs"])
@pytest.mark.parametrize(
    ("collective", "vector"), [("allreduce", "large"), ("allreduce", "small"), ("alltoall", "small")]
)
def test_placement_against_brute_force(sizes, solver, collective, vector):
    instance = make(groups=",".join(map(str, sizes)), collective=collective, vector=vector, problem="butterfly")
    record = run("placement", instance, solver)
    weights = {"large": [8, 4, 2], "small": [1, 1, 1]}[vector] if collective == "allreduce" else [4, 4, 4]
    cut = brute_placement(sizes, weights)
    expected = 2 * cut * instance.block_bytes(8)
    assert record.value == record.bound == expected
    _, found, proven = placement.place(units_of(instance, 0), weights, 0, RunOptions(60.0, solver=solver))
    assert (found, proven) == (cut, cut)  # by the solver alone
    least, above = isoperimetric(instance), run("placement_greedy", instance)
    assert least <= expected <= above.value
    assert check_messages(instance, references.recursive(instance, RunOptions()).solution).value >= expected


def test_isoperimetric_by_hand():
    """p = 4, large allreduce in 4 blocks: rounds carry 2, 1, 1, 2 blocks, so the dimensions weigh 4 and 2, all edges
    together 2 * 4 + 2 * 2 = 12. Two groups of 2 keep at most f(2) = 4 each: the cut is 4, both ways 8 blocks = 2 m."""
    assert internal_weights(np.array([4, 2]), 4).tolist() == [0, 0, 4, 6, 12]
    instance = make(groups="2,2", collective="allreduce", vector="large", problem="butterfly", bytes=1)
    assert isoperimetric(instance) == 2.0
    assert check_bound(instance, 2.0, {"binding": "isoperimetric"}) == []
    assert check_bound(instance, 2.1, {"binding": "isoperimetric"}) != []
    assert check_bound(instance, 1.0, {"binding": "wishes"}) != []
    free = make(groups="2,2", collective="allreduce", vector="large")
    assert check_bound(free, 1.0, {"binding": "isoperimetric"}) != []


@pytest.mark.long
def test_isoperimetric_bounds_every_set():
    """All subsets of the 3- and 4-dimensional cube for falling weights: none holds more than f(k)."""
    for weights in ([4, 2, 1], [1, 1, 1], [5, 5, 1], [8, 4, 2, 1]):
        size = 1 << len(weights)
        most = internal_weights(np.array(weights), size)
        for chosen in range(1 << size):
            inside = np.array([chosen >> v & 1 for v in range(size)], dtype=bool)
            v = np.arange(size)
            held = sum(w * int(np.sum(inside & inside[v ^ (1 << b)])) for b, w in enumerate(weights)) // 2
            assert held <= most[inside.sum()]


def test_programs_want_their_problem():
    free = make(groups="2,2", collective="allreduce", vector="large")
    for method in (placement, greedy, tree_ilp):
        with pytest.raises(UnsupportedError):
            method.solve(free, RunOptions())
    butterfly = make(groups="4,4", collective="allreduce", vector="large", problem="butterfly")
    with pytest.raises(UnsupportedError, match="hypercube"):
        references.bine(butterfly, RunOptions())


TREES, BUTTERFLIES = ("broadcast", "gather"), ("allgather", "reduce_scatter", "allreduce", "alltoall")
FORMS = {
    "bine": TREES + BUTTERFLIES,
    "binomial_halving": TREES,
    "recursive": BUTTERFLIES,
    "ring": BUTTERFLIES,
    "bruck": ("allgather", "alltoall"),
    "sparbit": ("allgather",),
    "bucket": (),
}


@pytest.mark.parametrize(("name", "collective"), [(name, form) for name, forms in FORMS.items() for form in forms])
@pytest.mark.parametrize("groups", ["5,3", "2,6,5", "1,1,1,6"])
def test_receive_bound_holds(name, collective, groups):
    """Every method that has a form of the collective; the others are named by the next test."""
    vector = "large" if collective == "allreduce" else "small"
    instance = make(groups=groups, collective=collective, vector=vector)
    record = run(name, instance)
    assert record["termination"] == "finished"
    assert record.ok
    outcome = bound.solve(instance, RunOptions())
    assert outcome.bound <= record.value
    assert check_bound(instance, outcome.bound, outcome.certificate) == []
    assert check_bound(instance, np.nextafter(outcome.bound, np.inf), outcome.certificate) != []


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("torus", ["2x3", "4"])
def test_receive_bound_holds_on_a_torus(collective, torus):
    instance = make(torus=torus, collective=collective, vector="large")
    assert bound.solve(instance, RunOptions()).bound <= run("bucket", instance).value


@pytest.mark.parametrize("name", FORMS)
def test_methods_without_a_form_of_the_collective_say_so(name):
    for collective in {*TREES, *BUTTERFLIES} - set(FORMS[name]):
        instance = make(groups="5,3", collective=collective, vector="large" if collective == "allreduce" else "small")
        assert run(name, instance)["termination"] == "unsupported"


UNEVEN = {"groups": "3,3,2", "collective": "allreduce", "vector": "large", "problem": "butterfly"}


def outcome_of(name: str, instance, solver: str, seconds: float = 60.0):
    own = {p.name: p.default for p in FAMILY.methods[name].parameters}
    return FAMILY.methods[name].load()(instance, RunOptions(seconds, solver=solver, method=own))


@pytest.mark.parametrize(
    ("name", "solver", "parameters", "binding"),
    [
        ("placement", "cpsat", {"groups": "4,4", "problem": "butterfly", "collective": "allreduce"}, "isoperimetric"),
        ("placement", "highs", {"groups": "4,2,2", "problem": "butterfly", "collective": "alltoall"}, "isoperimetric"),
        ("placement", "cpsat", UNEVEN, "positions"),
        ("tree_ilp", "highs", {"groups": "4,4"}, "receive"),
        ("tree_ilp", "highs", {"groups": "1,3"}, None),
        ("tree_ilp", "highs", {"groups": "4,4", "collective": "gather", "root": "5"}, "receive"),
    ],
)
def test_a_counting_bound_has_its_certificate_and_a_solver_s_has_none(name, solver, parameters, binding):
    """Groups of four are subcubes, so the isoperimetric count is reached; of 3, 3, 2 ranks all placements are counted;
    the tree of 1, 3 needs a solver."""
    instance = make(**parameters)
    outcome = outcome_of(name, instance, solver)
    assert outcome.termination == "optimal"
    if binding is None:
        assert outcome.certificate is None
        assert solver in outcome.bound_proof
        for counted in ("receive", "isoperimetric"):
            assert check_bound(instance, outcome.bound, {"binding": counted}) != []
    else:
        assert outcome.certificate == {"binding": binding}
        assert check_bound(instance, outcome.bound, outcome.certificate) == []
        assert solver not in outcome.bound_proof


def test_out_of_time_the_counting_bounds_keep_their_certificates():
    for name, solver, instance in (
        ("tree_ilp", "highs", make(groups="30,2,13,19")),
        ("placement", "cpsat", make(groups="5,3,8", collective="allreduce", problem="butterfly")),
    ):
        outcome = outcome_of(name, instance, solver, 1e-9)
        assert outcome.certificate is not None
        assert check_bound(instance, outcome.bound, outcome.certificate) == []


@pytest.mark.parametrize("ended", ["error", "unbounded", "infeasible"])
@pytest.mark.parametrize(
    ("name", "solver", "module", "parameters"),
    [
        ("tree_ilp", "highs", "mathprog", {"groups": "1,3"}),
        ("placement", "highs", "mathprog", UNEVEN),
        ("placement", "cpsat", "cpsat", UNEVEN),
    ],
)
def test_a_solver_that_fails_is_an_error(monkeypatch, ended, name, solver, module, parameters):
    """Trees and placements always exist, so infeasible is as wrong an answer as a crash: no bound, no time limit."""
    import importlib

    result = SolverResult(ended, False, None, None, 0.0, message="it broke")
    solve = (lambda *_, **__: (result, None)) if module == "cpsat" else (lambda *_, **__: result)
    monkeypatch.setattr(importlib.import_module(f"synth.solvers.{module}"), "solve", solve)
    with pytest.raises(RuntimeError, match="it broke"):
        outcome_of(name, make(**parameters), solver)


def test_values_and_bounds_are_the_exact_fraction_rounded_once():
    """1 byte over many jobs of 3, 7 and 11 ranks: sums of thirds, sevenths and elevenths in floats drift apart."""
    from fractions import Fraction

    from synth.instance import parse
    from synth_models.bine.instance import BineInstance

    jobs = [{"name": f"j{i}", "allocation": f"ax{n // 2} bx{n - n // 2}"} for i, n in enumerate([3, 7, 11] * 30)]
    raw = {"family": "bine", "name": "x", "source": "a test", "jobs": jobs, "problem": "tree"}
    raw |= {"collective": "gather", "bytes": 0.1}
    instance = parse(raw, BineInstance, "x")
    exact = 30 * Fraction(0.1) * (Fraction(2, 3) + Fraction(4, 7) + Fraction(6, 11))  # rank 0 is in the smaller group
    outcome = bound.solve(instance, RunOptions())
    assert outcome.bound == float(exact)
    assert check_bound(instance, outcome.bound, outcome.certificate) == []
    best = run("tree_ilp", instance)
    assert best.bound == best.value == float(exact)


@pytest.mark.slow
def test_2048_ranks_in_24_groups():
    instance = make(groups="89,47,125,90,189,20,211,145,132,190,54,20,79,101,20,70,39,93,20,122,43,42,20,87", bytes=1)
    record = run("tree_ilp", instance)
    assert record.ok
    assert record.value == record.bound
