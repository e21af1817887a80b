"""The number of chunks by size: against exhaustive search on tiny networks, and its certificate against damage."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import pytest
from models.xtree.brute_force import minimum_timesteps

import synth
from synth.options import RunOptions
from synth_models.xtree.check.certificates import check_bound
from synth_models.xtree.check.chunk_times import at_count, cut_into, node_bytes
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.chunk_count import choose, solve

LATENCY, RATE = 1e-6, 1e9


def _instance(network: str, size: float, chunks: int = 1, collective: str = "allgather", **keys: Any) -> XTreeInstance:
    words = {"network": network, "chunks": str(chunks), "chunk_bytes": repr(size / chunks), "collective": collective}
    made = synth.make("xtree", **words | {"bandwidth": "1GB/s", "latency": "1us"} | keys)
    assert isinstance(made, XTreeInstance)
    return made


def _options(**more: Any) -> RunOptions:
    return RunOptions(time_limit_s=60.0, method={"most": 32, "relaxation": True, "restarts": 10} | more)


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
@pytest.mark.parametrize(("network", "keys"), [("ring", {"nodes": "3"}), ("mesh", {"rows": "1", "cols": "3"})])
@pytest.mark.parametrize("size", [1.0, 300.0, 1000.0, 3000.0, 20000.0, 1e6])
def test_the_choice_is_that_of_exhaustive_search(
    collective: str, network: str, keys: dict[str, str], size: float
) -> None:
    """Least seconds of one, two and three chunks by the fewest timesteps that exhaustive search finds."""
    instance = _instance(network, size, collective=collective, **keys)
    exact = {
        chunks: minimum_timesteps(instance.topology, collective, chunks) * (LATENCY + size / chunks / RATE)
        for chunks in (1, 2, 3)
    }
    choice = choose(instance, _options(most=3))
    assert math.isclose(choice.seconds[choice.chunks], min(exact.values()))
    assert math.isclose(exact[choice.chunks], min(exact.values()))
    assert choice.least <= min(exact.values()) * (1 + 1e-12)


def test_a_size_by_hand() -> None:
    """On a ring of 5 nodes (2 links in): T(1) = 2, T(2) = 4, so cutting gains nothing; on one of 4: T(1) = 2,
    T(2) = 3, which is sooner from 1 us * (3 - 2) < D / RATE * (2 - 3/2), D > 2000 bytes."""
    assert choose(_instance("ring", 1e6, nodes="5"), _options()).chunks == 1
    assert choose(_instance("ring", 1900.0, nodes="4"), _options()).chunks == 1
    assert choose(_instance("ring", 2100.0, nodes="4"), _options()).chunks == 2
    choice = choose(_instance("ring", 2100.0, nodes="4"), _options())
    assert math.isclose(choice.seconds[2], 3 * (LATENCY + 1050 / RATE))
    assert choice.beyond
    assert math.isclose(choice.least, choice.seconds[2])


def test_the_record_is_of_the_instance_and_states_the_answer() -> None:
    record = synth.solve(_instance("equimesh", 4e5, 4, rows="2", cols="3"), "chunk_count")
    assert record.ok, record["verified"]
    assert (record.value, record.bound) == (5, 5)
    assert "no number of chunks takes less than" in record["message"]


def test_fewer_than_all_numbers_are_not_called_all() -> None:
    outcome = solve(_instance("equimesh", 1e8, 4, rows="2", cols="3"), _options(most=2))
    assert outcome.certificate is not None
    assert outcome.certificate["chunk_times"]["beyond"] is False
    assert "no number up to 2 takes less than" in str(outcome.message)
    assert check_bound(_instance("equimesh", 1e8, 4, rows="2", cols="3"), 5.0, outcome.certificate) == []


def _damaged(certificate: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    other = copy.deepcopy(certificate)
    *place, last = key.split(".")
    inner: Any = other["chunk_times"]
    for part in place:
        inner = inner[int(part) if part.isdigit() else part]
    inner[last] = value
    return other


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("least_seconds", 1.0, "are proven, not 1 s"),
        ("least_seconds", math.nan, "are proven, not nan"),
        ("least_seconds", "1", "needs least_seconds"),
        ("beyond", 1, "needs least_seconds, beyond"),
        ("counts", [], "1 to 1000 counts"),
        ("counts", {}, "no list of counts"),
        ("counts.0.timesteps", 9, "1 chunks: the"),
        ("counts.0.timesteps", -1, "timesteps"),
        ("counts.0.certificate", {"binding": "guess"}, "unknown kind of bound"),
        ("counts.0.certificate", None, "1 chunks: no certificate"),
    ],
)
def test_damage_is_found(key: str, value: Any, words: str) -> None:
    instance = _instance("equimesh", 4e5, 4, rows="2", cols="3")
    outcome = solve(instance, _options())
    assert outcome.certificate is not None
    assert outcome.bound is not None
    assert check_bound(instance, outcome.bound, outcome.certificate) == []
    [fault] = check_bound(instance, outcome.bound, _damaged(dict(outcome.certificate), key, value))
    assert words in fault


def test_a_bound_for_all_numbers_needs_enough_of_them() -> None:
    """With one count alone nothing is proven of the larger numbers that are sooner."""
    instance = _instance("ring", 1e6, nodes="4")
    outcome = solve(instance, _options())
    assert outcome.certificate is not None
    stated = dict(outcome.certificate["chunk_times"])
    stated["counts"] = stated["counts"][:1]
    stated["least_seconds"] = 2 * (LATENCY + 1e6 / RATE)
    certificate = dict(outcome.certificate) | {"chunk_times": stated | {"beyond": True}}
    [fault] = check_bound(instance, 2.0, certificate)
    assert "are proven, not" in fault
    assert check_bound(instance, 2.0, certificate | {"chunk_times": stated | {"beyond": False}}) == []


def test_cut_into_keeps_the_bytes() -> None:
    instance = _instance("ring", 1000.0, 4, nodes="4")
    assert [(cut_into(instance, c).chunks, node_bytes(cut_into(instance, c))) for c in (1, 3)] == [(1, 1000), (3, 1000)]
    assert cut_into(instance, 3).task.chunks == 12


def test_the_bound_in_seconds_is_of_the_bytes_to_the_last_bit() -> None:
    """Also where a chunk's bytes, rounded, times their number are not the node's."""
    numbers = [c for c in range(2, 60) if c * (0.1 / c) != 0.1]
    assert numbers
    instance = _instance("ring", 0.1, 1, nodes="4")
    for c in numbers:
        assert at_count(instance, c, 7) == 7 * (Fraction(LATENCY) + Fraction(0.1) / (c * Fraction(RATE)))
