"""The bound against brute force over all topologies, against the methods, and its certificate against mutations."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.harvest import instances
from models.harvest.instances import stated

from synth.options import RunOptions
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.interval import QUICK, RATES, Patterns, Relaxation
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.profiles import Profile, profile, step_time
from synth_models.harvest.programs import candidates


def made(algorithm: str, gpus: int, ports: int, delay: float = 1e-5, **more: str) -> HarvestInstance:
    asked = {"algorithm": algorithm, "gpus": gpus, "ports": ports, "reconfiguration_delay": delay}
    return instances.made(**{"message_bytes": 4194304, **asked, **more})


def proven(instance: HarvestInstance, **method: str) -> float:
    """The bound, after its certificate went through a file and was verified."""
    outcome = bound_method.solve(instance, RunOptions(method=method))
    assert outcome.bound is not None
    assert outcome.certificate is not None
    stored = json.loads(json.dumps(outcome.certificate))
    assert check_bound(instance, outcome.bound, stored) == []
    assert check_bound(instance, outcome.bound * (1 + 1e-9), stored), "a larger bound passes the check"
    return outcome.bound


@cache
def topologies(gpus: int, ports: int) -> list[Any]:
    """All matrices of link counts with row and column sums ``ports``; what stands on the diagonal is dropped."""
    found: set[tuple[int, ...]] = set()
    for chosen in product(permutations(range(gpus)), repeat=ports):
        matrix = np.zeros((gpus, gpus), dtype=np.int64)
        for one in chosen:
            matrix[np.arange(gpus), one] += 1
        np.fill_diagonal(matrix, 0)
        found.add(tuple(matrix.ravel().tolist()))
    result = []
    for flat in sorted(found):
        matrix = np.array(flat).reshape(gpus, gpus)
        src, dst = np.nonzero(matrix)
        result.append(np.stack([src, dst, matrix[src, dst]], axis=1).astype(np.int64))
    return result


@cache
def profiles(pairs: tuple[tuple[int, int], ...], gpus: int, ports: int) -> list[Profile]:
    """Of all topologies for one pattern, which several instances and delays have."""
    return [profile(np.array(pairs, dtype=np.int64), links, gpus) for links in topologies(gpus, ports)]


def best_by_enumeration(instance: HarvestInstance) -> tuple[np.ndarray, float]:
    """Cheapest common topology of every interval, shape (steps, steps), and the best completion time."""
    found = [profiles(tuple(map(tuple, pairs.tolist())), instance.gpus, instance.ports) for pairs in instance.pairs]
    cost = np.array([[step_time(instance, i, one)[0] for one in each] for i, each in enumerate(found)])
    steps = len(cost)
    interval = np.full((steps, steps), np.inf)
    for a in range(steps):
        for b in range(a, steps):
            interval[a, b] = cost[a : b + 1].sum(axis=0).min()
    best = [-instance.reconfiguration_delay]
    for end in range(steps):
        best.append(min(best[a] + instance.reconfiguration_delay + interval[a, end] for a in range(end + 1)))
    return interval, best[-1]


@st.composite
def drawn(draw: st.DrawFn, gpus: int, ports: int) -> HarvestInstance:
    """Random patterns (shifts, or partial permutations) with sizes and times of very different weight."""
    steps: list[dict[str, Any]] = []
    size = st.sampled_from([1.0, 1e3, 1e5, 3e6])
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            steps.append({"bytes": draw(size), "shift": draw(st.integers(1, gpus - 1))})
            continue
        pairs = {(u, v) for u, v in enumerate(draw(st.permutations(range(gpus)))) if u != v and draw(st.booleans())}
        if ports > 1 and draw(st.booleans()):
            pairs |= {(u, v) for u, v in enumerate(draw(st.permutations(range(gpus)))) if u != v}
        steps.append({"bytes": draw(size), "pairs": sorted(pairs) or [(0, 1)]})
    return stated(
        gpus=gpus,
        ports=ports,
        port_bandwidth=1e9,
        alpha=draw(st.sampled_from([0.0, 1e-6])),
        delta=draw(st.sampled_from([0.0, 1e-6, 1e-4])),
        reconfiguration_delay=draw(st.sampled_from([0.0, 1e-6, 1e-4, 1.0])),
        latency=draw(st.sampled_from(["on", "off"])),
        steps=steps,
    )


def holds_everywhere(instance: HarvestInstance) -> None:
    """No interval's bound exceeds its best topology, nor the whole bound the best schedule; certificates verify."""
    interval, best = best_by_enumeration(instance)
    for a in range(len(instance.steps)):
        for b in range(a + 1, len(instance.steps)):
            found = Relaxation(Patterns(instance), a, b).solve(lambda: False, RATES)
            assert float(found.seconds) <= interval[a, b] * (1 + 1e-8) + 1e-15
    assert proven(instance) <= best * (1 + 1e-8) + 1e-15


@settings(max_examples=some(40), deadline=None, derandomize=True)
@given(drawn(4, 1))
def test_four_gpus_one_port_never_above_the_optimum(instance: HarvestInstance) -> None:
    holds_everywhere(instance)


@settings(max_examples=some(6), deadline=None, derandomize=True)
@given(drawn(6, 1))
def test_six_gpus_one_port_never_above_the_optimum(instance: HarvestInstance) -> None:
    holds_everywhere(instance)


@settings(max_examples=some(3), deadline=None, derandomize=True)
@given(drawn(4, 2))
def test_four_gpus_two_ports_never_above_the_optimum(instance: HarvestInstance) -> None:
    holds_everywhere(instance)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.one_of(drawn(4, 1), drawn(5, 1), drawn(6, 1), drawn(4, 2), drawn(3, 3)))
def test_many_random_instances_never_above_the_optimum(instance: HarvestInstance) -> None:
    holds_everywhere(instance)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["recursive_doubling", "swing", "binomial_broadcast"])
def test_eight_gpus_one_port_against_all_permutations(algorithm: str) -> None:
    holds_everywhere(made(algorithm, 8, 1, 1e-5))


@pytest.mark.parametrize("delay", [0.0, 1e-6, 1e-5, 1e-4, 1e-2])
def test_recursive_doubling_with_one_port_is_settled(delay: float) -> None:
    """Trees of 2^k GPUs force distances that sum to 2^k - 1, which a shifted ring attains: candidates are optimal."""
    instance = made("recursive_doubling", 16, 1, delay)
    schedule = candidates.solve(instance, RunOptions()).solution
    value = check_schedule(instance, schedule).value
    assert value is not None
    assert proven(instance) == pytest.approx(value, rel=1e-9)


def test_reduce_scatter_of_eight_with_one_port_costs_three_halves() -> None:
    """No latency, no reconfiguration: the issue's 1.5 beta*m. Rates alone (the fractional topology) prove less."""
    instance = made("recursive_doubling", 8, 1, 1e3, half="reduce_scatter", alpha="0", delta="0", message_bytes="8e11")
    assert proven(instance) == pytest.approx(1.5 * 8, rel=1e-9)


def test_all_reduce_by_exchanges_needs_a_cycle_through_all() -> None:
    """Swing at n = 4, one port: partners both ways on a cycle of four, so a step and its reverse take four hops, and
    with one topology for all four steps the distances 1 and 3 are met at best: load 2 on average by volume."""
    instance = made("swing", 4, 1, 1.0, alpha="0", delta="0")
    seconds = 2 * (4194304 / 2 + 4194304 / 4) / 100e9
    assert proven(instance) >= 2 * seconds * (1 - 1e-9)


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("algorithm", "gpus", "ports", "more"),
    [
        ("bruck_alltoall", 8, 1, {}),
        ("bruck_allgather", 12, 1, {}),
        ("bruck_allgather", 8, 2, {}),
        ("swing", 8, 2, {}),
        ("recursive_doubling", 16, 2, {}),
        ("alltoall_direct", 16, 1, {}),
        ("binomial_broadcast", 16, 2, {}),
        ("binary_broadcast", 15, 2, {}),
        ("swing_torus", 16, 4, {"torus": "4x4"}),
        ("ring", 16, 1, {}),
    ],
)
def test_bound_is_verified_and_below_candidates(algorithm: str, gpus: int, ports: int, more: dict[str, str]) -> None:
    instance = made(algorithm, gpus, ports, 2e-5, **more)
    value = check_schedule(instance, candidates.solve(instance, RunOptions()).solution).value
    assert value is not None
    assert 0 < proven(instance) <= value * (1 + 1e-9)


def test_bound_grows_with_the_reconfiguration_delay() -> None:
    bounds = [proven(made("swing", 8, 1, delay)) for delay in (0.0, 1e-6, 1e-5, 1e-4, 1e-3)]
    assert all(low <= high * (1 + 1e-9) for low, high in pairwise(bounds))


def test_large_instances_fall_back_to_single_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = made("alltoall_direct", 16, 1)
    alone = 15 * (1e-6 + 4194304 / 16 / 100e9)
    assert proven(instance) > 1.01 * alone
    monkeypatch.setattr(bound_method, "STEPS_UP_TO", 14)
    assert proven(instance) == pytest.approx(alone, rel=1e-9)


def mutations(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every one makes the certificate claim more than it may, or name something that is not there."""

    def changed(word: str, change: Any) -> tuple[str, dict[str, Any]]:
        mutant = copy.deepcopy(certificate)
        change(mutant)
        return word, mutant

    for i, interval in enumerate(certificate["intervals"]):
        for r, row in enumerate(interval["rows"]):
            at = f"interval {i} row {r} ({row['row']})"

            def entry(mutant: dict[str, Any], i: int = i, r: int = r) -> dict[str, Any]:
                return mutant["intervals"][i]["rows"][r]  # type: ignore[no-any-return]

            yield changed(f"{at} negative", lambda m, e=entry: e(m).update(multiplier=-1.0))
            yield changed(f"{at} infinite", lambda m, e=entry: e(m).update(multiplier=float("inf")))
            yield changed(f"{at} unknown kind", lambda m, e=entry: e(m).update(row="magic"))
            if row["row"] in ("tree", "rate", "cycle"):
                yield changed(f"{at} doubled", lambda m, e=entry: e(m).update(multiplier=2 * e(m)["multiplier"]))
            if row["row"] == "tree":
                yield changed(f"{at} repeated GPU", lambda m, e=entry: e(m)["nodes"].__setitem__(0, e(m)["nodes"][-1]))
                yield changed(f"{at} parent after child", lambda m, e=entry: e(m)["parents"].__setitem__(1, 1))
                yield changed(f"{at} GPU out of range", lambda m, e=entry: e(m)["nodes"].__setitem__(-1, 999))
            if row["row"] == "rate":
                yield changed(f"{at} no such bundle", lambda m, e=entry: e(m).update(bundle=99))
                yield changed(f"{at} zero rate", lambda m, e=entry: e(m)["rates"][0].__setitem__(1, 0))
                yield changed(f"{at} rate twice", lambda m, e=entry: e(m)["rates"].append(e(m)["rates"][0]))
        yield changed(f"interval {i} too long", lambda m, i=i: m["intervals"][i].update(last=99))
        yield changed(
            f"interval {i} is a step", lambda m, i=i: m["intervals"][i].update(last=m["intervals"][i]["first"])
        )
    for b in range(len(certificate["bundles"])):
        yield changed(f"bundle {b} cover 0", lambda m, b=b: m["bundles"][b]["of_source"].__setitem__(0, 0))
        yield changed(f"bundle {b} price", lambda m, b=b: m["bundles"][b]["prices"][0].__setitem__(1, 10**9))
        yield changed(f"bundle {b} negative", lambda m, b=b: m["bundles"][b]["prices"][0].__setitem__(1, -1))
        yield changed(f"bundle {b} short", lambda m, b=b: m["bundles"][b]["prices"].pop())
    yield changed("generator no permutation", lambda m: m["generators"].append([0] * len(m["generators"][0])))
    yield changed("unit of no power", lambda m: m.update(unit_exponent=0.5))


@pytest.mark.parametrize(("algorithm", "ports"), [("recursive_doubling", 2), ("swing", 1), ("swing", 2)])
def test_every_mutation_is_caught(algorithm: str, ports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_method.permutations, "MOST_GPUS", 0)  # rows, as of more GPUs
    instance = made(algorithm, 8, ports, 1e-4)
    outcome = bound_method.solve(instance, RunOptions(method={"cases": "off"}))  # of cases: test_hop_cases.py
    assert outcome.bound is not None
    assert outcome.certificate is not None
    stored = json.loads(json.dumps(outcome.certificate))
    assert check_bound(instance, outcome.bound, stored) == []
    caught = 0
    for word, mutant in mutations(stored):
        assert check_bound(instance, outcome.bound, mutant), f"not caught: {word}"
        caught += 1
    assert caught > 20


def test_generators_must_keep_the_patterns() -> None:
    instance = made("swing", 8, 1, 1e-4)
    outcome = bound_method.solve(instance, RunOptions())
    assert outcome.bound is not None
    assert outcome.certificate is not None
    wrong = {**outcome.certificate, "generators": [[1, 0, *range(2, 8)]]}
    assert "does not map every pattern onto itself" in check_bound(instance, outcome.bound, wrong)[0]


def test_cycle_rows_are_refused_with_two_ports() -> None:
    """A certificate of the one-port instance proves nothing where there are two ports."""
    one, two = made("swing", 8, 1, 1e-4), made("swing", 8, 2, 1e-4)
    outcome = bound_method.solve(one, RunOptions())
    assert outcome.bound is not None
    assert outcome.certificate is not None
    assert check_bound(two, outcome.bound, outcome.certificate)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("ports", [2, 3])
@pytest.mark.parametrize("gpus", [9, pytest.param(20, marks=pytest.mark.slow)])
def test_stars_alone_bound_all_partitions_of_an_alltoall(gpus, ports):
    """The first level of effort, few patterns or many: of the partners of a step's interval, `ports` stand one hop
    away, `ports` squared two, and so on; every hop costs its delay and loads a share of the ports."""
    instance = made("alltoall_direct", gpus, ports)
    hop = instance.hop_delay + instance.bytes_per_pair[0] / instance.port_bandwidth / ports
    hops = [h for h in range(1, gpus) for _ in range(min(ports**h, gpus))]
    least = [0.0]
    for end in range(1, gpus):
        costs = [
            least[a]
            + (a > 0) * instance.reconfiguration_delay
            + (end - a) * instance.alpha
            + hop * sum(hops[: end - a])
            for a in range(end)
        ]
        least.append(min(costs))
    shared = Patterns(instance)
    for first, last in ((0, 1), (0, gpus - 2), (3, gpus // 2)):
        found = Relaxation(shared, first, last).solve(lambda: False, QUICK)
        steps = last - first + 1
        assert float(found.seconds) == pytest.approx(steps * instance.alpha + hop * sum(hops[:steps]), rel=1e-9)
    assert proven(instance, cases="off") >= least[-1] * (1 - 1e-9)
