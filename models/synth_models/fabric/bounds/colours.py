"""Nodes and links that look alike: colour refinement (Weisfeiler and Leman 1968).

Only where to look first, and which links get one common price, follows from the colours; every bound is verified on
the whole machine. Where one network is asked about as a whole, plain refinement is fine enough (:func:`colours`).
Prices of ways between pairs see more of it: there a link's colour is how it looks from every single member, one member
marked after the other (:func:`finer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import IntArray, WordArray
from synth_models.fabric.bounds.arrays import Links

MARK = np.uint64(0xD1B54A32D192ED03)
ROUNDS = 8
MOST_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class Colours:
    """``node``: shape (nodes,); ``link``: shape (links,); ``first``: one member per colour of members, as node numbers,
    with ``count`` members each."""

    node: IntArray
    link: IntArray
    first: IntArray
    count: IntArray


def colours(links: Links, marked: IntArray | None = None) -> Colours:
    """The coarsest stable colouring in which the nodes ``marked`` (default: a root, if there is one) stand out."""
    n, groups = links.nodes, len(links.instance.machine.group_names)
    colour = np.where(links.is_switch, 0, 1)
    colour[links.members] = 2
    if marked is None:
        root = links.instance.the_root
        marked = np.array([] if root is None else [root], dtype=np.int64)
    colour[marked] = 3 + np.arange(len(marked))
    colour = _numbered(colour, (links.reverse if links.is_reversed else links).begins)
    colour = np.concatenate([colour, np.full(groups, -1)])
    kind = _numbered(links.rate, links.delay)
    grouped = np.flatnonzero(links.group >= 0)
    tail = np.concatenate([links.src, links.src[grouped], n + links.group[grouped]])
    head = np.concatenate([links.dst, n + links.group[grouped], links.dst[grouped]])
    mark = np.concatenate([2 * kind, 2 * kind[grouped] + 1, 2 * kind[grouped] + 1])
    rng = np.random.default_rng(0)
    colours_now = -1
    colour = _numbered(colour)
    while colour.max(initial=0) + 1 != colours_now:
        colours_now = int(colour.max(initial=0)) + 1
        new = [colour]
        for here, there in ((tail, head), (head, tail)):
            seen = _numbered(mark, colour[there])
            secret = rng.integers(0, 2**63 - 1, size=int(seen.max(initial=0)) + 1, dtype=np.int64)
            total = np.zeros(n + groups, dtype=np.int64)
            np.add.at(total, here, secret[seen])  # wraps around
            new.append(total)
        colour = _numbered(*new)
    own = np.where(links.group >= 0, colour[np.where(links.group >= 0, n + links.group, 0)], -1)
    link = _numbered(colour[links.src], colour[links.dst], kind, own)
    _, first, count = np.unique(colour[links.members], return_index=True, return_counts=True)
    return Colours(colour[:n], link, links.members[first], count.astype(np.int64))


def finer(links: Links, look: Colours) -> Colours:
    """A refinement of ``look`` by what every node and link looks like from each member.

    Complexity: ``ROUNDS`` times links times members; with more than ``MOST_CELLS`` of these, ``look`` itself.
    """
    count = len(links.members)
    if not count or links.links * count > MOST_CELLS:
        return look
    kind = _mixed(_mixed(_hashes(links.rate), _hashes(links.delay)), _hashes(look.link))
    start = _hashes(look.node)
    colour = np.repeat(start[:, None], count, axis=1)
    colour[links.members, np.arange(count)] = _mixed(colour[links.members, np.arange(count)], MARK)
    sides = []
    for here, there in ((links.src, links.dst), (links.dst, links.src)):
        order = np.argsort(here, kind="stable")
        present, first = np.unique(here[order], return_index=True)
        sides.append((order, present, first, there))
    for _ in range(ROUNDS):
        new = _mixed(colour, MARK)
        for salt, (order, present, first, there) in enumerate(sides):
            seen = _mixed(colour[there[order]], kind[order, None] + np.uint64(salt))
            new[present] += _mixed(np.add.reduceat(seen, first, axis=0), np.uint64(salt + 7))
        colour = _mixed(new, MARK)
    node = _numbered(look.node, _mixed(colour, MARK).sum(axis=1).view(np.int64))
    ends = _mixed(colour[links.src], _mixed(colour[links.dst], MARK)).sum(axis=1)
    link = _numbered(look.link, ends.view(np.int64))
    _, first_member, times = np.unique(node[links.members], return_index=True, return_counts=True)
    return Colours(node, link, links.members[first_member], times.astype(np.int64))


def _hashes(numbers: IntArray) -> WordArray:
    found: WordArray = _mixed(numbers.astype(np.int64).view(np.uint64), MARK)
    return found


def _mixed(one: Any, other: Any) -> Any:
    """A hash of two (SplitMix64's finaliser: Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        z = one * np.uint64(0x9E3779B97F4A7C15) + other
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _numbered(*columns: IntArray) -> IntArray:
    """The distinct rows of the columns by number."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        which = np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64)
        number = np.unique(number * (int(which.max()) + 1) + which, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return number
