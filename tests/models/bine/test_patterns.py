"""Every published algorithm moves the data correctly: all collectives, p with and without powers of two, every root."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some_of

import synth
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.bine import FAMILY
from synth_models.bine.check.replay import check_messages
from synth_models.bine.instance import BineInstance, Job
from synth_models.bine.parts.butterfly import partners
from synth_models.bine.references import published as references

ROOTED = ("broadcast", "reduce", "scatter", "gather")
SMALL = ("broadcast", "reduce", "scatter", "gather", "allgather", "reduce_scatter", "allreduce", "alltoall")
FORMS = [*((what, "small") for what in SMALL), *((what, "large") for what in ("broadcast", "reduce", "allreduce"))]
OWN = {"bine": [{"order": o, "blocks": b} for o in ("halving", "doubling") for b in ("permute", "pieces", "exchange")]}


def job(ranks: int, collective: str, vector: str = "small", root: int = 0, **more) -> BineInstance:
    half = max(1, ranks // 3)
    runs = f"ax{half} bx{ranks - half}"
    jobs = [Job(name="j", allocation=runs)]
    return BineInstance(
        family="bine", name="t", source="test", jobs=jobs, collective=collective, vector=vector, root=root, **more
    )


def replay_all(ranks: int, roots) -> int:
    replayed = 0
    for collective, vector in FORMS:
        for root in roots if collective in ROOTED else [0]:
            instance = job(ranks, collective, vector, root)
            for method, function in references.ALL.items():
                for own in OWN.get(method, [{}]):
                    try:
                        outcome = function(instance, RunOptions(method=own))
                    except UnsupportedError:
                        continue
                    verdict = check_messages(instance, outcome.solution)
                    assert verdict.ok, (ranks, collective, vector, root, method, own, verdict.faults)
                    replayed += 1
    return replayed


@pytest.mark.long(after=2)
@pytest.mark.parametrize("ranks", some_of([*range(2, 18), 24, 31, 32, 33]))
def test_every_algorithm_replays_from_many_roots(ranks):
    assert replay_all(ranks, range(ranks) if ranks < 9 else (0, 1, ranks // 2, ranks - 1)) > 30


@pytest.mark.slow
@pytest.mark.parametrize("ranks", range(2, 65))
def test_every_algorithm_replays_from_every_root(ranks):
    assert replay_all(ranks, range(ranks)) > 30


@pytest.mark.parametrize(
    ("method", "collective", "vector"),
    [
        ("binomial_halving", "broadcast", "small"),
        ("binomial_doubling", "gather", "small"),
        ("bine", "reduce", "small"),
        ("recursive", "allreduce", "large"),
        ("ring", "allgather", "small"),
        ("bruck", "alltoall", "small"),
        ("swing", "reduce_scatter", "small"),
        ("sparbit", "allgather", "small"),
    ],
)
def test_every_algorithm_has_a_form(method, collective, vector):
    instance = job(12, collective, vector)
    assert check_messages(instance, FAMILY.methods[method].load()(instance, RunOptions()).solution).ok


def test_bine_partners_by_hand():
    """p = 8, rho = 1, -1, 3: rank 0 meets 1, 7, 3; rank 1 meets 0, 2, 6; rank 6 meets 7, 5, 1."""
    met = partners("bine", "doubling", 3)
    assert met[:, 0].tolist() == [1, 7, 3]
    assert met[:, 1].tolist() == [0, 2, 6]
    assert met[:, 6].tolist() == [7, 5, 1]
    assert partners("bine", "halving", 3)[:, 0].tolist() == [3, 7, 1]


def test_figure_1_of_the_paper():
    """8 ranks, two to a leaf: distance-doubling crosses 0->2, 1->3 (2 and 3 are on the second leaf), then 4 more: 6 n
    bytes; distance-halving crosses 0->4, then 0->2 and 4->6: 3 n bytes."""
    instance = synth.make("bine", **{"groups": "2,2,2,2", "bytes": "1"})
    doubling = references.binomial_doubling(instance, RunOptions()).solution
    halving = references.binomial_halving(instance, RunOptions()).solution
    assert check_messages(instance, doubling).value == 6
    assert check_messages(instance, halving).value == 3


def test_pieces_of_scattered_blocks():
    """Bine's reduce-scatter on 8 ranks: permuted blocks make one piece a message (8 * 3 messages); Swing sends more."""
    instance = job(8, "reduce_scatter")
    one = check_messages(instance, references.bine(instance, RunOptions(method={"blocks": "permute"})).solution)
    more = check_messages(instance, references.swing(instance, RunOptions()).solution)
    swapped = check_messages(instance, references.bine(instance, RunOptions(method={"blocks": "exchange"})).solution)
    assert one.facts["pieces"] == one.facts["messages"] == more.facts["messages"] == 24
    assert more.facts["pieces"] > 24
    assert one.value == more.value
    assert swapped.facts["rounds"] == one.facts["rounds"] + 1


@pytest.mark.parametrize("torus", [[4, 4], [2, 4, 8], [8], [3, 5]])
@pytest.mark.parametrize("method", ["bucket", "bine_torus"])
def test_torus_algorithms_replay(torus, method):
    for collective in ("allgather", "reduce_scatter", "allreduce"):
        instance = BineInstance(
            family="bine", name="t", source="test", torus=torus, collective=collective, vector="large", bytes=1.0
        )
        if method == "bine_torus" and 3 in torus:
            with pytest.raises(UnsupportedError, match="powers of two"):
                references.bine_torus(instance, RunOptions())
            continue
        messages = references.ALL[method](instance, RunOptions()).solution
        verdict = check_messages(instance, messages)
        assert verdict.ok
        assert messages.shares == (2 * len(torus) if method == "bine_torus" else 1)
        lower = (int(np.prod(torus)) - 1) * (2 if collective == "allreduce" else 1)
        assert verdict.value >= lower - 1e-9


def test_torus_ring_by_hand():
    """A ring of 4 as a torus: bucket's allgather sends p - 1 = 3 blocks of m/4 over each of the 4 upward links: 3 m in
    all and 3/4 m on the worst link."""
    instance = synth.make("bine", **{"torus": "4", "collective": "allgather", "bytes": "1"})
    verdict = check_messages(instance, references.bucket(instance, RunOptions()).solution)
    assert verdict.value == 3.0
    assert verdict.facts["worst_link_bytes"] == 0.75
