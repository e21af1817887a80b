"""The replay: hand-made schedules, every mutation that should break them, agreement with a slow replay, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models.mlfm.slow_replay import replay

import synth
from synth.instance import parse
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.certificates import check_bound, weighted_bound
from synth_models.mlfm.check.replay import check_phases, working_links
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import PhaseTable


def job(d: int = 2, servers: list[list[int]] | None = None, **changes: Any) -> MLFMInstance:
    raw = {"family": "mlfm", "name": "x", "source": "a test", "d": d, "subset": servers or [[0, 0, 0], [0, 1, 0]]}
    made = parse(raw | changes, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


def phases(dest: Any, spine: Any, middle: Any = None, second: Any = None) -> PhaseTable:
    parts = [None if part is None else np.array(part, dtype=np.int32) for part in (dest, spine, middle, second)]
    return PhaseTable(*parts)  # type: ignore[arg-type]


def blocked(*shape: int) -> MLFMInstance:
    sizes = dict(zip(("layers", "columns", "servers"), shape[1:], strict=True))
    raw = {"family": "mlfm", "name": "x", "source": "a test", "d": shape[0], "block": sizes}
    made = parse(raw, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


def test_two_servers_by_hand() -> None:
    """MLFM(2), servers 0.0.0 and 0.1.0, spines 0-1, 0-2, 1-2 (numbers 0, 1, 2). Phase 0: both to themselves, no link.
    Phase 1: they exchange through spine 0-1, loads 1. Two phases of 4 transfers, 2 * 16 MiB / 3770 MiB/s = 8.488 ms."""
    verdict = check_phases(job(), phases([[0, 1], [1, 0]], [[-1, -1], [0, 0]]))
    assert verdict.faults == []
    assert verdict.value == 2
    assert verdict.facts["transfers"] == 4
    assert verdict.facts["worst_link_load"] == 1
    assert verdict.facts["time_s"] == pytest.approx(2 * 16 / 3770)
    assert verdict.facts["throughput_bytes_per_s"] == pytest.approx(3770 * 2**20)


def test_a_congested_phase_counts_by_its_load() -> None:
    """Two servers on leaf 0.0 send to two on leaf 0.1: one up-link 0.0 to 0-1 carries both, so these two phases count 2
    each and the two inside the leaves 1 each: 6 in all, where spreading the four flows over 4 phases is optimal."""
    instance = job(servers=[[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]], latency=0.5)
    dest = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    verdict = check_phases(instance, phases(dest, [[-1] * 4, [-1] * 4, [0] * 4, [0] * 4]))
    assert (verdict.faults, verdict.value) == ([], 6)
    assert verdict.facts["mean_worst_link_load"] == 1.5
    assert verdict.facts["time_s"] == pytest.approx(4 * 0.5 + 6 * 16 / 3770)


def test_a_two_spine_route_by_hand() -> None:
    """The cable 0.0 to 0-1 has failed: 0.0.0 reaches 0.1.0 over spine 0-2 (1), leaf 0.2 (2) and spine 1-2 (2)."""
    instance = job(failed={"links": [{"leaf": [0, 0], "spine": [0, 1]}]}, routes="detour")
    middle, second = [[-1, -1], [2, 2]], [[-1, -1], [2, 1]]
    verdict = check_phases(instance, phases([[0, 1], [1, 0]], [[-1, -1], [1, 2]], middle, second))
    assert (verdict.faults, verdict.value, verdict.facts["two_spine_transfers"]) == ([], 2, 2)


BROKEN: list[tuple[str, dict[str, Any], PhaseTable]] = [
    ("does not exist", {}, phases([[0, 1], [2, 0]], [[-1, -1], [0, 0]])),
    ("receives a second transfer", {}, phases([[0, 0], [1, 1]], [[-1, 0], [0, -1]])),
    ("this pair was sent before", {}, phases([[0, 1], [0, 1], [1, 0]], [[-1, -1], [-1, -1], [0, 0]])),
    ("are never sent, the first from 0.1.0 to 0.0.0", {}, phases([[0, 1], [1, -1]], [[-1, -1], [0, -1]])),
    ("a route is named inside a leaf", {}, phases([[0, 1], [1, 0]], [[-1, 1], [0, 0]])),
    ("no spine is named", {}, phases([[0, 1], [1, 0]], [[-1, -1], [-1, 0]])),
    ("does not join its leaves", {}, phases([[0, 1], [1, 0]], [[-1, -1], [1, 0]])),
    ("does not join its leaves", {}, phases([[0, 1], [1, 0]], [[-1, -1], [3, 0]])),
    ("does not join its leaves", {}, phases([[0, 1], [1, 0]], [[-1, -1], [-7, 0]])),
    ("link on the route has failed", {"failed": {"spines": [[0, 1]]}}, phases([[0, 1], [1, 0]], [[-1, -1], [0, 0]])),
    (
        "link on the route has failed",
        {"failed": {"links": [{"leaf": [0, 1], "spine": [1, 0]}]}},
        phases([[0, 1], [1, 0]], [[-1, -1], [0, 0]]),
    ),
    ("minimal routes only", {}, phases([[0, 1], [1, 0]], [[-1, -1], [1, 2]], [[-1, -1], [2, 2]], [[-1, -1], [2, 1]])),
    (
        "is not in a third column",
        {"routes": "detour"},
        phases([[0, 1], [1, 0]], [[-1, -1], [0, 0]], [[-1, -1], [3, -1]], [[-1, -1], [0, -1]]),
    ),
    (
        "between its spines does not exist",
        {"routes": "detour"},
        phases([[0, 1], [1, 0]], [[-1, -1], [1, 0]], [[-1, -1], [6, -1]], [[-1, -1], [2, -1]]),
    ),
    (
        "between its spines does not exist",
        {"routes": "detour"},
        phases([[0, 1], [1, 0]], [[-1, -1], [1, 0]], [[-1, -1], [-1, -1]], [[-1, -1], [2, -1]]),
    ),
    (
        "link on the route has failed",
        {"routes": "detour", "failed": {"leaves": [[0, 2]]}},
        phases([[0, 1], [1, 0]], [[-1, -1], [1, 0]], [[-1, -1], [2, -1]], [[-1, -1], [2, -1]]),
    ),
    ("the phases are for 3 servers, the job has 2", {}, phases([[0, 1, 2]], [[-1, -1, -1]])),
]


@pytest.mark.parametrize(("message", "changes", "solution"), BROKEN)
def test_broken_schedules(message: str, changes: dict[str, Any], solution: PhaseTable) -> None:
    verdict = check_phases(job(**changes), solution)
    assert verdict.value is None
    assert any(message in fault for fault in verdict.faults), verdict.faults


def test_many_faults_are_counted_not_listed() -> None:
    """Both servers send to the first in 40 phases: its own transfer is sent 39 times too often, the other one is second
    in every phase; 4 of each kind are shown, 71 are not, and two pairs are never sent."""
    solution = phases(np.zeros((40, 2), int), np.full((40, 2), -1))
    verdict = check_phases(job(), solution)
    assert len(verdict.faults) == 4 + 4 + 1 + 1
    assert "and 71 more faults in the phases" in verdict.faults


@pytest.mark.parametrize("seed", range(40))
def test_mutations_of_a_valid_schedule_are_caught(seed: int) -> None:
    """A random change of one entry of an optimal schedule: the check agrees with the slow replay, and objects unless
    the change leaves a real route (then only loads may differ)."""
    random = np.random.default_rng(seed)
    instance = blocked(3, 2, 3, 2)
    stored = ((rows.dest, rows.spine, rows.middle, rows.second) for rows in _closed(instance).rows())
    arrays = [np.concatenate(column) for column in zip(*stored, strict=True)]
    which = int(random.integers(4))
    place = int(random.integers(12)), int(random.integers(12))
    old = arrays[which][place]
    arrays[which][place] = new = int(random.choice([v for v in range(-1, 12) if v != old]))
    solution = PhaseTable(*arrays)
    fine, loads = replay(instance, solution) if which < 2 and (which == 0 or new < 6) else (False, [])
    verdict = check_phases(instance, solution)
    assert verdict.ok == fine
    assert verdict.value == (sum(max(1, load) for load in loads) if fine else None)
    if which == 0:
        assert not fine  # every destination matters


def _closed(instance: MLFMInstance) -> Any:
    return load(FAMILY.unpack)(instance, synth.solve(instance, "closed_form").packed or {})


@pytest.mark.parametrize("method", ["closed_form", "shift", "pairwise", "greedy", "cpsat"])
def test_the_slow_replay_agrees(method: str) -> None:
    instance = blocked(3, 2, 4, 3)
    record = synth.solve(instance, method)
    fine, loads = replay(instance, load(FAMILY.unpack)(instance, record.packed or {}))
    assert fine
    assert record.value == sum(max(1, load) for load in loads)
    assert record["verified"]["facts"]["worst_link_load"] == max(loads)


def test_the_slow_replay_agrees_with_detours() -> None:
    instance = blocked(3, 2, 4, 3).model_copy(
        update={"routes": "detour", "failed": job(d=3, failed={"spines": [[0, 1]]}).failed}
    )
    record = synth.solve(instance, "cpsat")
    fine, loads = replay(instance, load(FAMILY.unpack)(instance, record.packed or {}))
    assert fine
    assert set(loads) == {1}
    assert record.value == len(loads) == 32


def test_working_links() -> None:
    """MLFM(2) has 6 leaves with 2 cables each; a spine takes 4, a leaf 2, a cable 1 (counted once where they meet)."""
    assert working_links(job()).sum() == 12
    assert working_links(job(failed={"spines": [[0, 1]]})).sum() == 8
    assert working_links(job(failed={"spines": [[0, 1]], "leaves": [[1, 0]]})).sum() == 7
    assert working_links(job(failed={"links": [{"leaf": [1, 2], "spine": [1, 2]}]})).sum() == 11


def test_bounds_follow_from_their_certificates_only() -> None:
    """Three servers on each of two leaves: 9 flows must use the up-link from 0.0 to 0-1, so weight 1 there proves 9."""
    servers = [[0, j, k] for j in range(2) for k in range(3)]
    instance = job(d=3, servers=servers)
    certificate = {"binding": "links", "links": [[0, 1, 0]], "weights": [1]}
    assert check_bound(instance, 9, certificate) == []
    assert check_bound(instance, 10, certificate) == ["the certificate proves 9 phases, not 10"]
    assert check_bound(instance, 6, {"binding": "ranks"}) == []
    assert check_bound(instance, 7, {"binding": "ranks"}) == ["the certificate proves 6 phases, not 7"]
    detour = job(d=3, servers=servers, routes="detour")  # round the link for nothing: its weight proves 0
    assert check_bound(detour, 1, certificate) == ["the certificate proves 0 phases, not 1"]
    every_up_link = {"binding": "links", "links": [[0, c, 0] for c in (1, 2, 3)], "weights": [1, 1, 1]}
    assert check_bound(detour, 3, every_up_link) == []  # 9 flows over 3 links
    assert check_bound(detour, 4, every_up_link) != []


LINKS: list[tuple[Any, Any]] = [
    *(([[0, 1, 0]], weights) for weights in ([], [-1], [0.5])),
    *(([link], [1]) for link in ([0, 1, 2], [99, 1, 0], [-1, 1, 0], [0, 0, 0])),
    *(([], []), (5, [1])),
]
CERTIFICATES = [{}, {"binding": "hope"}, {"binding": "links"}]
CERTIFICATES += [{"binding": "links", "links": links, "weights": weights} for links, weights in LINKS]


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_certificates_that_prove_nothing(certificate: dict[str, Any]) -> None:
    assert check_bound(job(), 1, certificate) != []


def test_weights_on_failed_links_count_neither_way() -> None:
    instance = job(failed={"links": [{"leaf": [0, 0], "spine": [0, 1]}]}, routes="detour")
    up, down = np.zeros((6, 3), np.int64), np.zeros((6, 3), np.int64)
    up[0, 1] = 5  # failed
    up[0, 2] = 1  # the one way out of leaf 0.0: one flow
    assert weighted_bound(instance, up, down) == 1
