"""Exact minimum timesteps on tiny networks by exhaustive search; shares nothing with the toolkit but src and dst.

Chunks meet only on links: two chunks disturb each other iff they want the same link in the same timestep. So for a
horizon T

1. ``plans`` enumerates every minimal set of (timestep, link) slots with which one chunk alone fulfils the
   collective, by running over all subsets of links in every timestep. For reductions the state is the contribution set
   of every node, under the rule of the replay: a partial sum may be added only where it is disjoint from what is
   there, a copy only of a complete sum. Any such schedule is covered, not only rooted trees: a node may send its
   partial sum to several others, and nodes may become complete by exchange;
2. ``_pack`` searches one plan per chunk such that no slot is used twice, pruned by counting free slots over cuts.

The least T with a packing is the optimum. Exponential in links; meant for at most four nodes.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

Links = tuple[tuple[int, int], ...]


def minimum_timesteps(network: Any, collective_name: str, chunks: int, most: int = 12) -> int:
    """The optimum of ``allgather``, ``reduce_scatter`` or ``allreduce`` with ``chunks`` chunks per node.

    ``network`` needs ``nodes``, ``src`` and ``dst``. Raises ``ValueError`` when no horizon up to ``most`` will do.
    """
    links = tuple((int(u), int(v)) for u, v in zip(network.src, network.dst, strict=True))
    for horizon in range(1, most + 1):
        if feasible(network.nodes, links, collective_name, chunks, horizon):
            return horizon
    raise ValueError(f"no schedule of up to {most} timesteps")


def feasible(nodes: int, links: Links, collective_name: str, chunks: int, horizon: int) -> bool:
    """Whether a schedule of ``horizon`` timesteps exists."""
    owners = [None] * nodes if collective_name == "allreduce" else list(range(nodes))  # in an allreduce all are alike
    families: dict[int | None, list[int]] = {o: plans(nodes, links, collective_name, o, horizon) for o in set(owners)}
    copies = {o: chunks * owners.count(o) for o in families}
    return all(families.values()) and _pack(nodes, links, horizon, families, copies)


@cache
def plans(nodes: int, links: Links, collective_name: str, owner: int | None, horizon: int) -> list[int]:
    """All inclusion-minimal slot sets for one chunk; slot ``t * len(links) + e`` is bit t * len(links) + e."""
    full = (1 << nodes) - 1
    if collective_name == "allgather":  # the set held is {owner}, which is all there is to have: complete or nothing
        start = tuple(full if v == owner else 0 for v in range(nodes))
        wanted = range(nodes)
    else:
        start = tuple(1 << v for v in range(nodes))
        wanted = range(nodes) if owner is None else range(owner, owner + 1)

    def done(state: tuple[int, ...]) -> bool:
        return all(state[v] == full for v in wanted)

    @cache
    def moves(state: tuple[int, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(links used, next state) for every legal and nowhere useless set of simultaneous transfers."""
        partial: list[tuple[int, tuple[int, ...]]] = [(0, state)]
        for e, (u, v) in enumerate(links):
            if state[u] == 0 or state[v] == full:
                continue
            more = []
            for used, after in partial:
                if state[u] == full:  # a copy replaces whatever is there; one copy a step is enough
                    if after[v] == state[v]:
                        more.append((used | 1 << e, (*after[:v], full, *after[v + 1 :])))
                elif after[v] & state[u] == 0:
                    more.append((used | 1 << e, (*after[:v], after[v] | state[u], *after[v + 1 :])))
            partial += more
        return tuple(partial)

    @cache
    def alive(state: tuple[int, ...], left: int) -> bool:
        """Whether the chunk alone can still be finished in ``left`` timesteps."""
        return done(state) or (left > 0 and any(alive(after, left - 1) for _, after in moves(state)))

    layer: dict[tuple[int, ...], set[int]] = {start: {0}}
    for step in range(horizon):
        following: dict[tuple[int, ...], set[int]] = {}
        for state, masks in layer.items():
            if done(state):
                following.setdefault(state, set()).update(masks)
                continue
            for used, after in moves(state):
                if alive(after, horizon - step - 1):
                    shifted = used << step * len(links)
                    following.setdefault(after, set()).update(mask | shifted for mask in masks)
        layer = {state: _minimal(masks) for state, masks in following.items()}
    return sorted(_minimal({mask for state, masks in layer.items() if done(state) for mask in masks}))


def _minimal(masks: set[int]) -> set[int]:
    """The masks that contain no other one: a chunk that gets by with fewer slots never needs more."""
    kept: list[int] = []
    for mask in sorted(masks, key=int.bit_count):
        if not any(small & mask == small for small in kept):
            kept.append(mask)
    return set(kept)


def _pack(
    nodes: int, links: Links, horizon: int, families: dict[int | None, list[int]], copies: dict[int | None, int]
) -> bool:
    """Whether one plan for every copy can be chosen, all disjoint; equal chunks take plans in increasing order."""
    cuts = []
    for size in range(1, nodes):
        for inside in combinations(range(nodes), size):
            into = sum(1 << e for e, (u, v) in enumerate(links) if u not in inside and v in inside)
            cuts.append(sum(into << t * len(links) for t in range(horizon)))
    least = {o: [min((p & cut).bit_count() for p in family) for cut in cuts] for o, family in families.items()}
    smallest = {o: min(p.bit_count() for p in family) for o, family in families.items()}
    everything = (1 << horizon * len(links)) - 1

    def search(free: int, candidates: dict[int | None, list[int]], left: dict[int | None, int]) -> bool:
        left = {o: n for o, n in left.items() if n}
        if not left:
            return True
        if free.bit_count() < sum(n * smallest[o] for o, n in left.items()):
            return False
        for i, cut in enumerate(cuts):
            if (free & cut).bit_count() < sum(n * least[o][i] for o, n in left.items()):
                return False
        open_plans = {o: [p for p in candidates[o] if p & ~free == 0] for o in left}
        if any(len(open_plans[o]) < n for o, n in left.items()):
            return False
        chosen = min(left, key=lambda o: len(open_plans[o]) / left[o])
        for i, plan in enumerate(open_plans[chosen]):
            rest = open_plans | {chosen: open_plans[chosen][i + 1 :]}
            if search(free & ~plan, rest, left | {chosen: left[chosen] - 1}):
                return True
        return False

    return search(everything, families, copies)
