"""Prices over blocks of GPUs: valid for the GPUs, and about as good as those of all GPUs while distances differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from models.harvest.bounds.test_bounds import best_by_enumeration, made
from two_checkers import ROOT, verify

from synth.options import RunOptions
from synth_models.harvest.bounds import coarse_prices, rate_prices
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.hop_cases import Division
from synth_models.harvest.bounds.interval import RATES, TREES, Patterns, Relaxation
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs import candidates


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices are sought over eight blocks and more, of few GPUs too."""
    monkeypatch.setattr(rate_prices, "JOINT_ABOVE", 3)
    monkeypatch.setattr(rate_prices, "GPUS_UP_TO", 0)
    monkeypatch.setattr(coarse_prices, "BLOCKS_FROM", 8)


def short(algorithm: str, gpus: int, steps: int) -> HarvestInstance:
    """The first steps alone, one topology for all of them."""
    whole = made(algorithm, gpus, 2, 1e-3)
    return whole.model_copy(update={"steps": whole.steps[:steps]})


@cache
def scheduled(algorithm: str, gpus: int, delay: float) -> float | None:
    """Seconds of a schedule, which asks for no bound: the same with cases and without."""
    instance = made(algorithm, gpus, 2, delay)
    return check_schedule(instance, candidates.solve(instance, RunOptions()).solution).value


@pytest.mark.long
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("algorithm", "gpus"), [("swing", 16), ("bruck_allgather", 16), ("swing", 32)])
@pytest.mark.parametrize("cases", ["off", "on"])
def test_it_is_verified_and_never_above_a_schedule(algorithm: str, gpus: int, cases: str) -> None:
    for delay in (1e-6, 1e-3):
        instance = made(algorithm, gpus, 2, delay)
        value = scheduled(algorithm, gpus, delay)
        outcome = bound_method.solve(instance, RunOptions(5.0, method={"cases": cases}))
        assert outcome.bound is not None
        assert value is not None
        assert outcome.certificate is not None
        assert check_bound(instance, outcome.bound, outcome.certificate) == []
        assert outcome.bound <= value * (1 + 1e-12)


@pytest.mark.long
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("algorithm", ["bruck_allgather", "swing", "recursive_doubling"])
def test_two_blocks_never_above_the_best_of_all_topologies(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    monkeypatch.setattr(coarse_prices, "BLOCKS_FROM", 2)
    for delay in (1e-6, 1e-3):
        instance = made(algorithm, 4, 2, delay)
        outcome = bound_method.solve(instance, RunOptions(5.0, method={"cases": "on"}))
        assert outcome.bound is not None
        assert outcome.bound <= best_by_enumeration(instance)[1] * (1 + 1e-12)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("algorithm", ["swing", "bruck_allgather"])
def test_blocks_lose_little_beyond_trees(algorithm: str) -> None:
    """Of 32 GPUs in 8 blocks, three steps whose distances differ from block to block: more than trees, about what
    all GPUs prove (either search ends where more rounds gain little)."""
    instance = short(algorithm, 32, 3)
    trees = Relaxation(Patterns(instance), 0, 2).solve(lambda: False, TREES).seconds
    shared = Patterns(instance)
    assert [one.gpus for one in shared.coarse] == [8, 16]
    hops = {k: (shared.hops(k), None) for k in range(3)}  # a case that leaves everything open
    blocks = Relaxation(shared, 0, 2, hops).solve(lambda: False, RATES).seconds
    shared = Patterns(instance)
    shared.coarse = []
    every = Relaxation(shared, 0, 2, hops).solve(lambda: False, RATES).seconds
    assert trees < blocks
    assert every * 90 / 100 <= blocks <= every * 102 / 100


@pytest.mark.long
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("algorithm", ["swing", "bruck_allgather"])
def test_prices_over_more_blocks_follow(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    """Cases that cannot be divided get prices over more blocks, in the end over all GPUs: about what these prove."""
    instance = made(algorithm, 16, 2, 1e-3)
    bounds = []
    for blocks in (8, 16):
        monkeypatch.setattr(coarse_prices, "BLOCKS_FROM", blocks)
        division = Division(Patterns(instance, by_bytes=True), 0, 2)
        while division.go_on(1, lambda: False):
            pass
        levels = {case.level for case in division.root.leaves()}
        assert levels <= ({0, 1} if blocks == 8 else {0})
        assert max(levels) == (1 if blocks == 8 else 0)
        found = division.bound()
        assert found is not None
        bounds.append(found.seconds)
    assert bounds[0] >= bounds[1] * 98 / 100


@pytest.mark.long
@pytest.mark.parametrize(("algorithm", "priced"), [("swing", [10] * 4), ("bruck_allgather", [6, 7, 8, 9])])
def test_blocks_are_mapped_onto_blocks(algorithm: str, priced: list[int]) -> None:
    """Of 1,024 GPUs: 64 to 512 blocks. Swing's distances are odd, so that all have prices; of Bruck's, which are powers
    of two, those that are no multiple of the number of blocks."""
    shared = Patterns(made(algorithm, 1024, 2))
    for known, number, blocks in zip(shared.coarse, priced, (64, 128, 256, 512), strict=True):
        assert np.bincount(known.block).tolist() == [1024 // blocks] * blocks
        for moved in shared.group:
            assert len(set(zip(known.block.tolist(), known.block[moved].tolist(), strict=True))) == blocks
        assert [k for k in range(10) if known.prices_all([k])] == list(range(number))
    usable = [one.gpus for one in coarse_prices.prices_of(shared.coarse, [priced[1] - 1])]
    assert usable == [64, 128, 256, 512][algorithm != "swing" :]
    assert (coarse_prices.prices_of(shared.coarse, [9]) == []) == (algorithm != "swing")


Change = Callable[[dict[str, Any]], object]
WRONG: dict[str, Change] = {
    "another column": lambda proof: proof["columns"][0].reverse(),
    "a column that prices do not have": lambda proof: proof["columns"][0].__setitem__(0, 99),
    "a label without a column": lambda proof: proof["columns"][0].pop(),
    "a bundle of columns that are not there": lambda proof: proof["bundles"][0].__setitem__("columns", 1),
    "no columns": lambda proof: proof.pop("columns"),
    "ends that are paid for by two": lambda proof: proof["bundles"][0]["of_source"].append(0),
    "ends that are not paid for": lambda proof: proof["bundles"][0].__setitem__("of_source", [0]),
    "a price more": lambda proof: proof["bundles"][0]["prices"][0].append(1),
}


@pytest.fixture(scope="module")
def swing_in_blocks() -> tuple[HarvestInstance, float, str]:
    """An instance, its bound by cases over eight blocks and more, and the certificate as text."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rate_prices, "JOINT_ABOVE", 3)
        patched.setattr(rate_prices, "GPUS_UP_TO", 0)
        patched.setattr(coarse_prices, "BLOCKS_FROM", 8)
        instance = made("swing", 16, 2, 1e-3)
        outcome = bound_method.solve(instance, RunOptions(4.0, method={"cases": "on"}))
    assert outcome.bound is not None
    return instance, outcome.bound, json.dumps(outcome.certificate)


@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_both_checkers_read_prices_of_several_orbits(
    swing_in_blocks: tuple[HarvestInstance, float, str], name: str
) -> None:
    """A bundle over blocks states each price once; what is wrong in it proves nothing to either checker."""
    instance, bound, text = swing_in_blocks
    proof: dict[str, Any] = json.loads(text)
    assert {len(row) for row in proof["columns"]} == {16}
    second = verify.read_instance(instance.to_json(), str(ROOT))
    second.certify(verify.Held(proof), Fraction(bound))
    assert check_bound(instance, bound, proof) == []
    WRONG[name](proof)
    assert check_bound(instance, bound, proof) != []
    with pytest.raises((verify.Fault, KeyError, IndexError)):
        second.certify(verify.Held(proof), Fraction(bound))
