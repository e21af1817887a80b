"""Reservations on a grid of epochs: how many shares of a chunk every link begins to send in which epoch.

A link begins to send at most ``quota`` shares in any ``window`` epochs; a group of links is busy for at most as many
epochs as any ``group_window`` has. Where windows are one epoch long, any amount that fits can be reserved, and links
that are full stay full: :func:`amount_that_fits`, :func:`earliest_epoch`. Otherwise one share at a time:
:func:`fits_route`. For transfers in continuous time see :mod:`synth_models.fabric.scheduling.reservations`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit


class EpochLinks(NamedTuple):
    """What links carry. ``window`` (epochs), ``quota`` (shares), ``group`` (-1: none), ``cost`` (of a share, in
    1 / ``budget`` of its group's epoch), shape (links,); ``group_window`` (epochs), shape (groups,)."""

    window: IntArray
    quota: IntArray
    group: IntArray
    cost: IntArray
    group_window: IntArray
    budget: int


class EpochRoutes(NamedTuple):
    """Route r leads from ``source[r]`` to ``target[r]``, where it arrives ``lag[r]`` epochs after its start; it is at
    link ``link[i]`` after ``offset[i]`` epochs, i in ``row[r]:row[r + 1]``."""

    source: IntArray
    target: IntArray
    lag: IntArray
    row: IntArray
    link: IntArray
    offset: IntArray


class EpochReservations(NamedTuple):
    """``used``: shares that each link begins to send in each epoch, shape (links, epochs); ``group_used``: costs of
    them, shape (groups, epochs). ``later``: where a link that is full in an epoch may next have room, shape
    (links, epochs), or (0, 0) if that is not asked."""

    used: IntArray
    group_used: IntArray
    later: Int32Array


@jit
def new_epochs(links: EpochLinks, epochs: int, fluid: bool) -> EpochReservations:
    """Nothing reserved; ``fluid``: for :func:`earliest_epoch` too, which takes windows of one epoch."""
    count = len(links.quota)
    later = np.empty((count if fluid else 0, epochs if fluid else 0), dtype=np.int32)
    for e in range(len(later)):
        later[e, :] = np.arange(1, epochs + 1)
    used = np.zeros((count, epochs), dtype=np.int64)
    return EpochReservations(used, np.zeros((len(links.group_window), epochs), dtype=np.int64), later)


@jit
def reserve_epoch(links: EpochLinks, reserved: EpochReservations, e: int, t: int, amount: int) -> None:
    """Let link e begin to send so many shares in epoch t."""
    reserved.used[e, t] += amount
    if links.group[e] >= 0:
        reserved.group_used[links.group[e], t] += amount * links.cost[e]


@jit
def _fits(links: EpochLinks, reserved: EpochReservations, e: int, t: int, more: int) -> bool:
    """Whether link e can begin one more share in epoch t, and its group carry it and ``more``. Where a window has
    several epochs its quota is 1."""
    w, epochs = links.window[e], reserved.used.shape[1]
    if t >= epochs:
        return False
    if w == 1:
        if reserved.used[e, t] >= links.quota[e]:
            return False
    else:
        for other in range(max(0, t - w + 1), min(epochs, t + w)):
            if reserved.used[e, other] > 0:
                return False
    g = links.group[e]
    if g >= 0:
        span = links.group_window[g]
        for first in range(max(0, t - span + 1), t + 1):
            total = links.cost[e] + more
            for other in range(first, min(epochs, first + span)):
                total += reserved.group_used[g, other]
            if total > links.budget * span:
                return False
    return True


@jit
def fits_route(
    links: EpochLinks, reserved: EpochReservations, routes: EpochRoutes, first: int, last: int, k: int
) -> bool:
    """Whether the links ``first:last`` of a route that starts in epoch k can all take a share, those of one group
    together."""
    group = links.group
    for i in range(first, last):
        e = routes.link[i]
        more: Any = np.int64(0)
        if group[e] >= 0:
            for j in range(first, i):
                if group[routes.link[j]] == group[e]:
                    more += links.cost[routes.link[j]]
        if not _fits(links, reserved, e, k + routes.offset[i], more):
            return False
    return True


@jit
def amount_that_fits(links: EpochLinks, reserved: EpochReservations, routes: EpochRoutes, r: int, k: int) -> int:
    """Shares that fit on route r when it starts in epoch k. Windows of one epoch."""
    fits: Any = np.int64(2**62)
    for i in range(routes.row[r], routes.row[r + 1]):
        e, t = routes.link[i], k + routes.offset[i]
        if t >= reserved.used.shape[1]:
            return 0
        fits = min(fits, links.quota[e] - reserved.used[e, t])
        g = links.group[e]
        if g >= 0 and links.cost[e] > 0:
            times = np.int64(0)  # one route may cross a group twice in one epoch
            for j in range(routes.row[r], routes.row[r + 1]):
                if links.group[routes.link[j]] == g and k + routes.offset[j] == t:
                    times += links.cost[routes.link[j]]
            fits = min(fits, (links.budget - reserved.group_used[g, t]) // times)
    return int(fits)


@jit
def earliest_epoch(links: EpochLinks, reserved: EpochReservations, routes: EpochRoutes, r: int, k: int) -> int:
    """The first epoch from k on in which route r can start, as far as each of its links tells by itself. Windows of
    one epoch."""
    i = routes.row[r]
    while i < routes.row[r + 1]:
        t = k + routes.offset[i]
        if t >= reserved.used.shape[1]:
            return int(k)
        u = _open(links, reserved, routes.link[i], t)
        if u > t:
            k, i = u - routes.offset[i], routes.row[r]
        else:
            i += 1
    return int(k)


@jit
def _open(links: EpochLinks, reserved: EpochReservations, e: int, t: int) -> int:
    """The first epoch from t on in which link e has room by itself; epochs once full stay full and are skipped."""
    used, group_used, later = reserved.used, reserved.group_used, reserved.later
    g = links.group[e] if links.cost[e] > 0 else np.int64(-1)
    u: Any = t
    while u < used.shape[1] and (
        used[e, u] == links.quota[e] or (g >= 0 and links.budget - group_used[g, u] < links.cost[e])
    ):
        u = np.int64(later[e, u])
    passed: Any = t
    while passed < u:
        following = np.int64(later[e, passed])
        later[e, passed] = u
        passed = following
    return int(u)
