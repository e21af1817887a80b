"""Links shared fairly by what is ready, against an exact fluid of fractions, whose rates are known to be max-min by the
bottleneck of every transfer."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import synth
from synth.exchange.forms import in_form
from synth.exchange.record_export import transfers_of
from synth.exchange.transfers import Transfers

RATE, LATENCY = 50e9, 7e-7


def record_of(size: int = 2**20, collective: str = "allreduce", method: str = "ring", **keys: object) -> synth.Record:
    made = synth.make("fabric", bandwidth=RATE, latency=LATENCY, collective=collective, bytes=size, **keys)
    return synth.solve(made, method)


def fluid(moves: Transfers, star: bool) -> float:
    """Seconds until all has arrived on links between neighbours, or over one switch (``star``), in fractions."""
    rate, latency = Fraction(RATE), Fraction(7, 10**7) * (2 if star else 1)
    count = len(moves.piece)
    routes = [
        [("up", int(s)), ("down", int(d))] if star else [(int(s), int(d))]
        for s, d in zip(moves.src, moves.dst, strict=True)
    ]
    before: list[list[int]] = [[] for _ in range(count)]
    for i in range(count):
        came = [j for j in range(count) if moves.piece[j] == moves.piece[i] and moves.dst[j] == moves.src[i]
                and moves.end_s[j] <= moves.start_s[i]]  # fmt: skip
        copies = [j for j in came if not moves.adds[j]]
        before[i] = [j for j in came if not copies or j >= copies[-1]]
    rest = [Fraction(int(moves.piece_bytes[p])) for p in moves.piece]
    arrived: list[Fraction | None] = [None] * count
    now, done = Fraction(0), 0
    while done < count:
        can = [i for i in range(count) if arrived[i] is None and all(arrived[j] is not None for j in before[i])]
        ready = {i: max((arrived[j] for j in before[i]), default=Fraction(0)) for i in can}  # type: ignore[type-var]
        going = [i for i, when in ready.items() if when <= now]
        rates = shares([routes[i] for i in going], rate)
        soonest = [when - now for when in ready.values() if when > now]
        step = min([rest[i] / r for i, r in zip(going, rates, strict=True)] + soonest)
        now += step
        for i, r in zip(going, rates, strict=True):
            rest[i] -= r * step
            if rest[i] == 0:
                arrived[i], done = now + latency, done + 1
    return float(max(when for when in arrived if when is not None))


def shares(routes: list[list[object]], rate: Fraction) -> list[Fraction]:
    """Max-min fair rates: the link that gives its transfers least fixes theirs, and so on. Every transfer has a full
    link on which none is quicker, which only the max-min fair rates have."""
    fixed: dict[int, Fraction] = {}
    links = {link for route in routes for link in route}
    while len(fixed) < len(routes):
        offers = {}
        for link in links:
            on = [i for i, route in enumerate(routes) if link in route]
            free = [i for i in on if i not in fixed]
            if free:
                offers[link] = (rate - sum(fixed[i] for i in on if i in fixed)) / len(free)
        least = min(offers, key=lambda link: offers[link])
        for i, route in enumerate(routes):
            if least in route and i not in fixed:
                fixed[i] = offers[least]
    for i, route in enumerate(routes):
        on = [[j for j, other in enumerate(routes) if link in other] for link in route]
        assert any(sum(fixed[j] for j in js) == rate and fixed[i] == max(fixed[j] for j in js) for js in on)
    return [fixed[i] for i in range(len(routes))]


@pytest.mark.long
@given(
    st.sampled_from(["ring", "full", "star"]),
    st.sampled_from(["allgather", "allreduce", "alltoall", "broadcast"]),
    st.sampled_from(["ring", "direct", "recursive_doubling", "bruck", "pull"]),
    st.integers(3, 5),
    st.sampled_from([1000, 2**20, 3 * 2**22]),
)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
def test_fair_shares_are_the_fluid(network: str, collective: str, method: str, nodes: int, size: int) -> None:
    record = record_of(size // nodes * nodes, collective, method, network=network, nodes=nodes)
    assume(record.value is not None)
    moves = transfers_of(record)
    neighbours = {(k, (k + way) % nodes) for k in range(nodes) for way in (1, -1)}
    pairs = set(zip(moves.src.tolist(), moves.dst.tolist(), strict=True))
    assume(len(moves.piece) <= 150 and (network != "ring" or pairs <= neighbours))
    assert in_form(record, "fair").seconds == pytest.approx(fluid(moves, network == "star"), rel=1e-6)
