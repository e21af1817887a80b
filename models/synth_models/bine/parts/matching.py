"""Departures matched to arrivals elsewhere."""

from __future__ import annotations


def matched(leave: list[int], arrive: list[int]) -> list[tuple[int, int]]:
    """Pairs of different groups using up all departures and arrivals.

    Taking the group with most left to do and its busiest possible partner keeps ``leave + arrive <= total`` for every
    group (two groups can be tight at once, and then they are each other's partners), so it never gets stuck.
    """
    pairs = []
    groups = range(len(leave))
    while sum(leave):
        a = max(groups, key=lambda g: leave[g] + arrive[g])
        out = leave[a] > 0
        left = arrive if out else leave
        b = max((g for g in groups if g != a and left[g] > 0), key=lambda g: leave[g] + arrive[g])
        source, target = (a, b) if out else (b, a)
        leave[source] -= 1
        arrive[target] -= 1
        pairs.append((source, target))
    return pairs
