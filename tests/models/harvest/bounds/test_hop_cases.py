"""Intervals divided by the hops of their patterns: against brute force over all topologies, and against mutations."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from models.harvest.bounds.test_bounds import best_by_enumeration, made
from models.harvest.brute_force import optimum
from models.harvest.instances import stated

from synth.options import RunOptions
from synth_models.harvest.bounds import hop_cases
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.hop_cases import Division
from synth_models.harvest.bounds.interval import QUICK, RATES, Patterns, Relaxation
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs import candidates

Node = dict[str, Any]


def proven(instance: HarvestInstance) -> tuple[float, Node]:
    """The bound with cases, after its certificate went through a file and was verified."""
    outcome = bound_method.solve(instance, RunOptions(60.0, method={"rates": "on", "cases": "on"}))
    assert outcome.bound is not None
    stored = json.loads(json.dumps(outcome.certificate))
    assert check_bound(instance, outcome.bound, stored) == []
    assert check_bound(instance, outcome.bound * (1 + 1e-9), stored), "a larger bound passes the check"
    return outcome.bound, stored


def divided(certificate: Node) -> list[Node]:
    """The divided cases of all intervals, each with its parts."""
    found, parts = list[Node](), list(certificate["intervals"])
    while parts:
        part = parts.pop()
        if "within" in part:
            found.append(part)
            parts += [part["within"], part["beyond"]]
    return found


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["bruck_allgather", "swing", "recursive_doubling"])
def test_four_gpus_never_above_the_best_of_all_topologies(algorithm: str) -> None:
    cases = 0
    for delay in (1e-6, 1e-5, 1e-3):
        instance = made(algorithm, 4, 2, delay)
        bound, certificate = proven(instance)
        assert bound <= best_by_enumeration(instance)[1] * (1 + 1e-12)
        cases += len(divided(certificate))
    assert cases


def random_shifts(seed: int, gpus: int) -> dict[str, Any]:
    """Steps of one or two shifts with volumes, some again; short and long messages beside a hop of a second."""
    random, steps = np.random.default_rng(seed), list[dict[str, Any]]()
    for _ in range(3):
        shifts = random.choice(np.arange(1, gpus), size=int(random.integers(1, 3)), replace=False).tolist()
        volumes = random.integers(1, 4, len(shifts)).tolist()
        pairs = [[u, (u + shift) % gpus] for shift in shifts for u in range(gpus)]
        size = float(random.choice([1e10, 1e11, 4e11]))
        steps.append({"bytes": size, "pairs": pairs, "volumes": np.repeat(volumes, gpus).tolist()})
    delay = float(random.choice([0.5, 2.0, 100.0]))
    times = {"alpha": 0.25, "delta": 1.0, "latency": "on", "reconfiguration_delay": delay}
    return {"gpus": gpus, "ports": 2, "port_bandwidth": 1e11, "steps": [*steps, steps[0]], **times}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_random_steps_never_above_brute_force(seed: int) -> None:
    raw = random_shifts(seed, 4)
    assert proven(stated(**raw))[0] <= optimum(raw) * (1 + 1e-12)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_steps_of_unequal_bytes_never_above_brute_force(seed: int) -> None:
    """The first step comes again, with far fewer or more bytes: its routes may be others then."""
    raw = random_shifts(seed, 4)
    raw["steps"][-1] = raw["steps"][0] | {"bytes": raw["steps"][0]["bytes"] * (0.05 if seed % 2 else 20.0)}
    instance = stated(**raw)
    bound, certificate = proven(instance)
    assert bound <= optimum(raw) * (1 + 1e-12)
    assert certificate.get("by_bytes") == 1 or not certificate["intervals"]
    assert Patterns(instance, by_bytes=True).of_step[0] != Patterns(instance, by_bytes=True).of_step[-1]


@pytest.mark.parametrize(
    "seed",
    [1, 2, 3, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60) if seed not in {1, 2, 3, 5})],
)
def test_with_cases_first_no_less_is_proven_than_without(seed: int) -> None:
    """Of 4 to 16 GPUs; the plain search is among those of which the larger counts."""
    instance = stated(**random_shifts(seed, int(np.random.default_rng(seed).integers(4, 17))))
    first, plain = (RunOptions(600.0, method={"cases": word}) for word in ("on", "off"))
    assert set(map(repr, bound_method._searches(instance, plain))) <= set(
        map(repr, bound_method._searches(instance, first))
    )
    more, less = bound_method.solve(instance, first).bound, bound_method.solve(instance, plain).bound
    assert more is not None
    assert less is not None
    assert more >= less


@pytest.mark.long
@pytest.mark.parametrize(("algorithm", "gpus", "more"), [("swing", 16, 0.05), ("bruck_allgather", 8, 0.01)])
def test_the_default_proves_more_and_no_schedule_is_below(algorithm: str, gpus: int, more: float) -> None:
    """One topology for all steps."""
    instance = made(algorithm, gpus, 2, 1e-3)
    bound = bound_method.solve(instance, RunOptions(60.0)).bound
    plain = bound_method.solve(instance, RunOptions(60.0, method={"cases": "off"})).bound
    value = check_schedule(instance, candidates.solve(instance, RunOptions()).solution).value
    assert plain is not None
    assert bound is not None
    assert value is not None
    assert plain * (1 + more) < bound <= value


def test_two_steps_by_hand() -> None:
    """Swing's first two steps, in the case that both have one hop: every pair has one link, which takes its bytes."""
    instance = made("swing", 8, 2, 1e-3)
    case = Relaxation(Patterns(instance), 0, 1, {0: (1, 1), 1: (1, 1)}).solve(lambda: False, RATES)
    sizes = sum(float(size) for size in instance.bytes_per_pair[:2]) / instance.port_bandwidth
    assert float(case.seconds) == pytest.approx(2 * instance.alpha + 2 * instance.hop_delay + sizes, rel=1e-4)


def test_a_bound_keeps_its_proof_while_its_interval_is_divided_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases whose parts prove less than they do: the bound from before must not take over the parts' proof."""
    division = Division(Patterns(made("swing", 8, 2, 1e-3)), 0, 3)
    assert division.go_on(1, lambda: False)
    found = division.bound()
    assert found is not None
    proof = json.dumps(found.proof())
    monkeypatch.setattr(hop_cases, "RATES", QUICK)
    assert division.go_on(3, lambda: False)
    assert json.dumps(division.root.proof()) != proof == json.dumps(found.proof())


def mutations(certificate: Node) -> Iterator[tuple[str, Node]]:
    """Wrong cases, with what is wrong."""

    def changed(number: int, change: Callable[[Node], object]) -> Node:
        mutant = copy.deepcopy(certificate)
        change(divided(mutant)[number])
        return mutant

    for number, node in enumerate(divided(certificate)):
        yield "no part beyond", changed(number, lambda one: one.pop("beyond"))
        yield "no such pattern", changed(number, lambda one: one.update(pattern=99))
        yield "no hops", changed(number, lambda one: one.update(hops=0))
        yield "parts exchanged", changed(number, lambda one: one.update(within=one["beyond"], beyond=one["within"]))
        for word in ("within", "beyond"):
            if "rows" in node[word]:
                for what, other in (("not crowded", {"crowded": True}), ("no rows", {"rows": []})):
                    mutant = copy.deepcopy(certificate)
                    divided(mutant)[number][word] = other
                    yield what, mutant


@pytest.mark.long
def test_every_mutation_is_caught() -> None:
    """Every one that would prove as much: a case that is not the least one may lose some of its rows."""
    instance = made("swing", 8, 2, 1e-3)
    bound, certificate = proven(instance)
    kinds: dict[str, int] = {}
    for word, mutant in mutations(certificate):
        kinds.setdefault(word, 0)
        kinds[word] += bool(check_bound(instance, bound, mutant))
    assert set(kinds) == {"no part beyond", "no such pattern", "no hops", "parts exchanged", "not crowded", "no rows"}
    number = len(divided(certificate))
    assert kinds["no part beyond"] == kinds["no such pattern"] == kinds["no hops"] == number
    assert kinds["not crowded"] > 0
    assert kinds["no rows"] > 0
    assert kinds["parts exchanged"] > 0
    deep: Node = {"rows": []}
    for _ in range(300):
        deep = {"pattern": 0, "hops": 1, "within": deep, "beyond": {"rows": []}}
    whole = certificate["intervals"][0]
    faults = check_bound(instance, bound, {**certificate, "intervals": [{"first": 0, "last": whole["last"], **deep}]})
    assert faults


@pytest.mark.long
def test_a_limit_stands_only_where_the_case_has_it() -> None:
    instance = made("swing", 8, 2, 1e-3)
    bound, certificate = proven(instance)
    whole = certificate["intervals"][0]
    row = {"row": "limit", "pattern": 0, "orbit": 0, "multiplier": 1e-9}
    alone = {"first": whole["first"], "last": whole["last"], "rows": [row]}
    faults = check_bound(instance, bound, {**certificate, "intervals": [alone]})
    assert faults
    assert "no limit" in faults[0]


def test_steps_that_differ_in_bytes_are_not_divided() -> None:
    """They may take different routes: one direct, the other within three hops."""
    instance = made("swing", 8, 2, 1e-3)
    steps = [instance.steps[0], instance.steps[0].model_copy(update={"bytes": 1000.0}), instance.steps[1]]
    unlike = instance.model_copy(update={"steps": steps})
    division = Division(Patterns(unlike), 0, 2)
    assert list(division.root.hops) == [Patterns(unlike).of_step[2]]
    apart = Patterns(unlike, by_bytes=True)
    assert list(Division(apart, 0, 2).root.hops) == [0, 1, 2] == apart.of_step
    case = {"pattern": 0, "hops": 1, "within": {"rows": []}, "beyond": {"rows": []}}
    certificate = {
        "unit_exponent": 100,
        "generators": [],
        "bundles": [],
        "intervals": [{"first": 0, "last": 2, **case}],
    }
    assert "differ in bytes" in check_bound(unlike, 1e-9, certificate)[0]
