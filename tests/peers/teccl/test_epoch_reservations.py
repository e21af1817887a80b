"""Reservations on a grid of epochs against plain counts, for random links, groups and routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_peers.teccl.programs import epoch_reservations as epochs
from synth_peers.teccl.programs.epoch_reservations import EpochLinks, EpochReservations, EpochRoutes

LINKS, GROUPS, EPOCHS, BUDGET = 4, 2, 12, 12
Hop = tuple[int, int]  # link, offset


def links_from(random: Any, fluid: bool) -> EpochLinks:
    """Windows of several epochs have a quota of 1; a fluid has windows of one epoch."""
    window = np.array([1 if fluid else random.choice([1, 1, 2, 3]) for _ in range(LINKS)], dtype=np.int64)
    quota = np.array([random.randint(1, 6 if fluid else 2) if w == 1 else 1 for w in window], dtype=np.int64)
    group = np.array([random.randint(-1, GROUPS - 1) for _ in range(LINKS)], dtype=np.int64)
    cost = np.array([random.randint(0 if fluid else 1, 6) if g >= 0 else 0 for g in group], dtype=np.int64)
    span = np.array([1 if fluid else random.randint(1, 3) for _ in range(GROUPS)], dtype=np.int64)
    return EpochLinks(window, quota, group, cost, span, BUDGET)


def routes_from(random: Any, count: int) -> tuple[list[list[Hop]], EpochRoutes]:
    rows: list[list[Hop]] = []
    for _ in range(count):
        picked = random.sample(range(LINKS), random.randint(1, 3))
        rows.append(list(zip(picked, sorted(random.randint(0, 3) for _ in picked), strict=True)))
    row = np.concatenate([[0], np.cumsum([len(hops) for hops in rows])]).astype(np.int64)
    link, offset = (np.array([hop[k] for hops in rows for hop in hops], dtype=np.int64) for k in range(2))
    none = np.zeros(count, dtype=np.int64)
    return rows, EpochRoutes(none, none, none, row, link, offset)


class Counts:
    """Shares that every link begins to send in every epoch, and what its rules say of them."""

    def __init__(self, links: EpochLinks) -> None:
        self.links = links
        self.sent = np.zeros((LINKS, EPOCHS), dtype=np.int64)

    def allowed(self) -> bool:
        """At most the quota in any window, at most the budget in any window of a group."""
        quotas = all(
            self.sent[e, t : t + w].sum() <= q
            for e, (w, q) in enumerate(zip(self.links.window, self.links.quota, strict=True))
            for t in range(EPOCHS)
        )
        return quotas and all(
            (self.sent * self.links.cost[:, None])[self.links.group == g, t : t + span].sum() <= BUDGET * span
            for g, span in enumerate(self.links.group_window)
            for t in range(EPOCHS)
        )

    def add(self, hops: list[Hop], k: int, amount: int) -> None:
        for e, offset in hops:
            self.sent[e, k + offset] += amount

    def takes(self, hops: list[Hop], k: int, amount: int) -> bool:
        """Whether so many shares more may start on a route in epoch k."""
        if any(k + offset >= EPOCHS for _, offset in hops):
            return False
        self.add(hops, k, amount)
        answer = self.allowed()
        self.add(hops, k, -amount)
        return answer


def enter(links: EpochLinks, reserved: EpochReservations, hops: list[Hop], k: int, amount: int) -> None:
    for e, offset in hops:
        epochs.reserve_epoch(links, reserved, e, k + offset, amount)


@given(st.randoms(use_true_random=False))
def test_one_share_at_a_time(random: Any) -> None:
    """What fits breaks no rule; where a route crosses no group twice, what does not fit would break one."""
    links = links_from(random, fluid=False)
    rows, routes = routes_from(random, 12)
    counts, reserved = Counts(links), epochs.new_epochs(links, EPOCHS, False)
    for r, hops in enumerate(rows):
        k = random.randrange(EPOCHS)
        fits = epochs.fits_route(links, reserved, routes, routes.row[r], routes.row[r + 1], k)
        allowed = counts.takes(hops, k, 1)
        groups = [int(links.group[e]) for e, _ in hops if links.group[e] >= 0]
        assert fits == allowed if len(set(groups)) == len(groups) else not fits or allowed
        if fits:
            enter(links, reserved, hops, k, 1)
            counts.add(hops, k, 1)


@pytest.mark.long
@given(st.randoms(use_true_random=False))
def test_any_amount(random: Any) -> None:
    """The largest amount that breaks no rule, and the first epoch in which every link by itself takes a share."""
    links = links_from(random, fluid=True)
    rows, routes = routes_from(random, 16)
    counts, reserved = Counts(links), epochs.new_epochs(links, EPOCHS, True)

    def first(hops: list[Hop], k: int) -> int:
        for e, offset in hops:
            if k + offset >= EPOCHS:
                return k
            if not counts.takes([(e, offset)], k, 1):
                return first(hops, k + 1)
        return k

    for r, hops in enumerate(rows):
        k = epochs.earliest_epoch(links, reserved, routes, r, random.randrange(EPOCHS // 2))
        assert k == first(hops, k)
        again = random.randrange(EPOCHS)
        assert epochs.earliest_epoch(links, reserved, routes, r, again) == first(hops, again)
        fits = epochs.amount_that_fits(links, reserved, routes, r, k)
        inside = all(k + offset < EPOCHS for _, offset in hops)
        assert fits == max((n for n in range(8) if counts.takes(hops, k, n)), default=0)
        assert inside or fits == 0
        if fits:
            amount = random.randint(1, fits)
            enter(links, reserved, hops, k, amount)
            counts.add(hops, k, amount)
