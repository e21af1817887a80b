"""The published rule and where it fails, shift's congestion on the published sizes, pairwise and greedy."""

from __future__ import annotations

import resource
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.mlfm.slow_replay import replay

import synth
from synth.instance import parse
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.references.closed_form import printed_rule


def block(d: int, n: int, columns: int, m: int, **changes: Any) -> MLFMInstance:
    sizes = {"layers": n, "columns": columns, "servers": m}
    made = parse(
        {"family": "mlfm", "name": "x", "source": "a test", "d": d, "block": sizes} | changes, MLFMInstance, "x"
    )
    assert isinstance(made, MLFMInstance)
    return made


@pytest.mark.long(after=4)
@pytest.mark.parametrize("d", range(1, 7))
def test_closed_form_on_every_block_where_it_holds(d: int) -> None:
    """m <= l-1 <= d: N phases, each a permutation, every pair once, worst link load 1 (0 when nobody leaves a leaf)."""
    sizes = [(n, c, m) for n in range(1, d + 1) for c in range(2, d + 2) for m in range(1, min(c - 1, d) + 1)]
    assert len(sizes) == d * d * (d + 1) // 2
    for n, columns, m in sizes:
        instance = block(d, n, columns, m)
        verdict = check_phases(instance, printed_rule(instance, n, columns, m))
        assert verdict.faults == [], (n, columns, m)
        assert verdict.value == verdict.facts["phases"] == n * columns * m
        assert verdict.facts["transfers"] == (n * columns * m) ** 2
        assert verdict.facts["worst_link_load"] == 1


def test_closed_form_is_right_by_the_slow_replay_too() -> None:
    for sizes in ((2, 3, 2), (3, 4, 2), (2, 4, 3)):
        instance = block(3, *sizes)
        assert replay(instance, printed_rule(instance, *sizes)) == (
            True,
            [0] * sizes[2] + [1] * (instance.ranks - sizes[2]),
        )


def test_the_printed_rule_fails_on_3_3_3() -> None:
    """m = 3 > l-1 = 2. Phase (0, 1, 0): server k of leaf 0.0 moves t+k+1 = 2, 3, 4 columns, the last two beyond l-1
    and so raised to 4 and 5, that is columns 2, 1 and 2: k = 0 and k = 2 share the up-link 0.0 to 0-2. In phase (0,
    2, 0) they move 3, 4, 5, raised to 4, 5, 6: columns 1, 2 and 0, so k = 2 stays in its column, a second time after
    t = 0, and never moves 1 column: 9 servers with k = 2 miss the 9 servers of that column, 81 pairs. In phase (1, 0,
    0) k = 2 changes layer through spine {j, j+3 mod 3} = {j, j}, which does not exist."""
    instance = block(3, 3, 3, 3)
    record = synth.solve(instance, "closed_form")
    assert record["termination"] == "unsupported"
    assert record.value is None
    assert "needs m <= l-1 <= d" in record["message"]
    assert "in phase (s, t, u) = (0, 1, 0) server 0.0.0 shares its up-link with another flow" in record["message"]
    assert "81 of 729 pairs are never sent, 81 more than once" in record["message"]
    shown = synth.solve(instance, "closed_form", options={"as_printed": "on"})
    assert not shown.ok
    assert shown.value is None
    faults = shown["verified"]["faults"]
    assert faults[0] == "phase 6: server 0.0.2 to 0.0.2: this pair was sent before"
    assert "phase 9: server 0.0.2 to 1.0.2: no spine is named between two different leaves" in faults
    assert shown["verified"]["facts"]["worst_link_load"] == 2
    assert not replay(instance, load(FAMILY.unpack)(instance, shown.packed or {}))[0]


def test_the_message_says_where_a_rule_fails_that_leaves_links_free() -> None:
    """(1, 2, 2): no link carries two flows in any phase, but some pairs are never sent."""
    message = synth.solve(block(4, 1, 2, 2), "closed_form")["message"]
    assert "The printed rule fails here: 4 of 16 pairs are never sent, 4 more than once" in message


def test_the_printed_rule_fails_on_every_block_beyond_its_condition() -> None:
    """m > l-1 (and l > 1): each of these is incomplete or congested, so none of them would be 'closed form holds'."""
    for d in range(2, 6):
        for n in range(1, d + 1):
            for columns in range(2, d + 1):
                for m in range(columns, d + 1):
                    instance = block(d, n, columns, m)
                    verdict = check_phases(instance, printed_rule(instance, n, columns, m))
                    assert verdict.faults or (verdict.value or 0) > instance.ranks, (d, n, columns, m)


@pytest.mark.parametrize(
    "changes",
    [
        {"block": None, "subset": [[0, 0, 0], [0, 1, 0]]},
        {"failed": {"spines": [[0, 1]]}},
        {"failed": {"servers": [[0, 0, 0]]}},
    ],
)
def test_closed_form_is_unsupported_elsewhere(changes: dict[str, Any]) -> None:
    assert synth.solve(block(3, 2, 3, 2, **changes), "closed_form")["termination"] == "unsupported"


@pytest.mark.parametrize(
    ("sizes", "mean", "total"),
    [((2, 3, 2), 1.5, 18), ((3, 3, 2), 1.56, 28), ((3, 4, 2), 1.46, 35), ((2, 4, 3), 2.17, 52)],
)
def test_shift_on_the_published_sizes(sizes: tuple[int, int, int], mean: float, total: int) -> None:
    """The mean worst link load over the phases; 2.17 is the factor of 2.2 that the paper measures."""
    record = synth.solve(block(3, *sizes), "shift")
    assert record.ok
    assert round(record["verified"]["facts"]["mean_worst_link_load"], 2) == mean
    assert record.value == total
    throughput = record["verified"]["facts"]["throughput_bytes_per_s"] / 2**20
    assert throughput == pytest.approx(3770 * int(np.prod(sizes)) / total)


def test_shift_by_hand() -> None:
    """Two leaves with two servers each, ranks 0, 1 | 2, 3. Shift 0: itself. Shift 1: 1 -> 2 and 3 -> 0 cross, load 1.
    Shift 2: 0, 1 -> 2, 3 and back, load 2. Shift 3: 0 -> 3 and 2 -> 1 cross, load 1. Together 1 + 1 + 2 + 1 = 5."""
    record = synth.solve(block(2, 1, 2, 2), "shift")
    assert record.value == 5


def test_pairwise_exchanges() -> None:
    """N = 8 is a power of two: partners x xor p. N = 12: p - x mod 12. Either way an involution."""
    for sizes in ((2, 2, 2), (2, 3, 2)):
        instance = block(3, *sizes)
        record = synth.solve(instance, "pairwise")
        assert record.ok
        for rows in load(FAMILY.unpack)(instance, record.packed or {}).rows():
            for dest in rows.dest:
                assert (dest[dest] == np.arange(instance.ranks)).all()
    assert [int(x) for x in synth.solve(block(3, 2, 2, 2), "pairwise").packed["dest"][5]] == [5, 4, 7, 6, 1, 0, 3, 2]  # type: ignore[index]


def test_references_avoid_failed_parts() -> None:
    instance = block(
        3, 2, 4, 3, failed={"spines": [[0, 1]], "links": [{"leaf": [1, 3], "spine": [2, 3]}]}, routes="detour"
    )
    for method in ("shift", "pairwise", "greedy"):
        record = synth.solve(instance, method)
        assert record.ok, record["verified"]["faults"]
        assert record.value is not None
        assert record.value >= 32


def test_greedy_follows_its_seed() -> None:
    instance = block(3, 2, 3, 2)
    one, again, other = (synth.solve(instance, "greedy", seed=seed).packed for seed in (1, 1, 2))
    assert one is not None
    assert again is not None
    assert other is not None
    assert np.array_equal(one["dest"], again["dest"])
    assert not np.array_equal(one["dest"], other["dest"])
    record = synth.solve(instance, "greedy")
    assert record["verified"]["facts"]["worst_link_load"] == 1


@pytest.mark.long
def test_dense_methods_decline_the_whole_machine_at_once() -> None:
    """Before they hold anything of the size of its 37.9 million transfers, which take 300 MB as whole numbers."""
    instance = synth.read("instances/mlfm/d18-n18l19m18.json")
    for method in ("shift", "pairwise", "greedy", "cpsat", "ilp", "min_congestion"):
        tracemalloc.start()
        try:
            assert synth.solve(instance, method)["termination"] == "size_limit"
            assert tracemalloc.get_traced_memory()[1] < 200e6
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_the_whole_machine_of_6156_servers(tmp_path: Path) -> None:
    """37.9 million transfers generated, stored, read back and replayed within 60 s and 4 GB."""
    instance = synth.read("instances/mlfm/d18-n18l19m18.json")
    started = time.monotonic()
    record = synth.solve(instance, "closed_form", results=tmp_path)
    assert synth.check(record.path or "", instance).ok
    assert time.monotonic() - started < 60
    assert record.value == 6156
    assert record["verified"]["facts"]["transfers"] == 6156**2 == 37_896_336
    assert sum(file.stat().st_size for file in tmp_path.rglob("*")) < 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 * 2**20  # KiB
