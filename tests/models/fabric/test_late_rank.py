"""Method ``late_rank``: its rounds by a count of its own, and its schedules."""

from __future__ import annotations

import pytest

import synth
from synth_models.fabric.references.late_rank.rounds import Rounds, by_flows, by_halves, least_rounds


def counted(n: int, pieces: int, rounds: Rounds, lag: int = 0) -> int:
    """The rounds, if everybody sends and receives one piece at most in each, only what it has got before, the source
    meets rank t mod (n - 1) in round t, and everybody has everything at last."""
    source = n - 1
    since: dict[tuple[int, int], int] = {}
    for t, found in enumerate(rounds):
        senders, receivers = [g.sender for g in found], [g.receiver for g in found]
        assert len(set(senders)) == len(found) == len(set(receivers))
        for g in found:
            assert (g.piece, g.receiver) not in since
            if g.sender == source and t < pieces:
                assert (g.piece, g.receiver) == (t, t % source)
                since[t, source] = -1
            else:
                assert since[g.piece, g.sender] < t - lag
                assert t >= pieces or t % source not in (g.sender, g.receiver)
        since |= {(g.piece, g.receiver): t for g in found}
    assert len(since) == n * pieces
    return len(rounds)


@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("share", [1, 2, 3])
def test_halves_take_the_least_rounds(n: int, share: int) -> None:
    pieces = share * (n - 1)
    assert counted(n, pieces, by_halves(n, pieces)) == least_rounds(n, pieces)


@pytest.mark.parametrize(("n", "seed"), [(3, 0), (5, 1), (7, 2), (11, 3), (12, 4), (13, 5)])
@pytest.mark.parametrize("lag", [0, 1])
def test_flows_are_rounds(n: int, seed: int, lag: int) -> None:
    pieces = 2 * (n - 1)
    assert counted(n, pieces, by_flows(n, pieces, seed, lag), lag) >= least_rounds(n, pieces)


def test_rounds_that_were_open() -> None:
    """StragglAR takes 15 rounds for 12 ranks, where 14 are the least."""
    assert min(counted(12, 11, by_flows(12, 11, seed)) for seed in range(60)) == 14 == least_rounds(12, 11)


@pytest.mark.parametrize("n", [5, 8])
def test_near_the_bound(n: int) -> None:
    """Its time behind the moment at which the late rank is ready, at most 5 % above the bound's."""
    instance = synth.make(
        "fabric", network="star", nodes=n, bandwidth="450GiB/s", latency="1.5us", collective="allreduce",
        bytes="1GiB", late="1:10ms",
    )  # fmt: skip
    value, bound = synth.solve(instance, "late_rank").value, synth.solve(instance, "bound").bound
    assert value is not None
    assert bound is not None
    assert 0 <= value - bound <= 0.05 * (value - 0.01)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"collective": "allreduce"}, "ready after all others"),
        ({"collective": "allgather", "late": "1:1ms"}, "no algorithm for allgather"),
        ({"collective": "allreduce", "ready": "1ms"}, "ready after all others"),
    ],
)
def test_what_it_does_not_take(keys: dict[str, str], words: str) -> None:
    instance = synth.make("fabric", network="full", nodes=4, bandwidth="1GB/s", latency="1us", bytes="1MiB", **keys)
    record = synth.solve(instance, "late_rank")
    assert record["termination"] == "unsupported"
    assert words in record["message"]
