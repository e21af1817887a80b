"""The published patterns and a first-fit greedy: methods ``closed_form``, ``shift``, ``pairwise`` and ``greedy``.

``closed_form`` is the paper's rule (section 2) with the corrected condition ``m <= l - 1 <= d``; the text asks for
``1 <= l - 1 <= m``. Phase ``(s, t, u)`` moves the layer by ``s`` and the slot by ``u``; ``t = 0`` keeps the column and
uses spine ``{j, j + k + 1 mod l}``, ``t > 0`` moves it by ``t + k + 1``, or ``t + k + 2`` once that reaches ``l``.

``shift`` sends from rank ``x`` to ``x + p mod N`` in phase ``p``; ``pairwise`` exchanges: ``x xor p`` when N is a
power of two, else ``p - x mod N``. Both use minimal routes fixed by the destination, as forwarding tables do: within
column j, slot k is reached through spine ``{j, j + k + 1}`` (counted over the working ones); their phases may be
congested.

``greedy`` takes all N * N transfers in random order (seeded) and puts each into the first phase in which both servers
and all links of one of its routes are free, trying routes shortest first. A transfer is kept out of at most 2N - 2
phases by its servers and of one per other flow on its route's links, which bounds the phases; time O(N * N * phases).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.mlfm.instance import IntArray, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, cut_off, leaf_problem
from synth_models.mlfm.solution import NOTHING, PhaseTable, ProductPhases, Table

MAX_DENSE = 16_000_000  # transfers of methods that store every one
MAX_PAIRS = 400_000_000  # pairs the check can mark off


def solve_closed_form(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``closed_form``. Raises :class:`UnsupportedError` where the rule does not hold.

    With ``as_printed`` the printed rule is applied to any block, so that the check shows where it fails.
    """
    if instance.block is None:
        raise UnsupportedError("closed_form needs a block of servers, the job is a subset")
    n, columns, m = instance.block.layers, instance.block.columns, instance.block.servers
    if instance.any_link_failed or instance.ranks < n * columns * m:
        raise UnsupportedError("closed_form needs a machine without failures")
    if instance.ranks**2 > MAX_PAIRS:
        raise SizeLimitError(f"more than {MAX_PAIRS} transfers to replay")
    solution = printed_rule(instance, n, columns, m)
    if options.method.get("as_printed", False):
        return Outcome("finished", solution=solution, message="the rule as printed; the check says where it fails")
    if not m <= columns - 1 <= instance.d:
        raise UnsupportedError(
            f"closed_form needs m <= l-1 <= d (the text's 1 <= l-1 <= m is misprinted); here l = {columns}, m = {m}, "
            f"d = {instance.d}. {_failure(instance, solution)}; -O as_printed=on replays it"
        )
    return Outcome("finished", solution=solution)


def printed_rule(instance: MLFMInstance, n: int, columns: int, m: int) -> ProductPhases:
    """The rule exactly as printed, for any block; where it names no spine, none is stored."""
    t = np.arange(columns, dtype=np.int32)[:, None, None]
    j = np.arange(columns, dtype=np.int32)[None, :, None]
    k = np.arange(m, dtype=np.int32)[None, None, :]
    step = t + k + 1
    moved = (j + np.where(step < columns, step, step + 1)) % columns
    column = np.where(t == 0, j, moved)
    partner = np.where(t == 0, (j + k + 1) % columns, moved)
    spine = instance.spine_number[np.broadcast_to(j, partner.shape), partner].astype(np.int32)
    s, pattern, u = (
        a.ravel().astype(np.int32) for a in np.meshgrid(np.arange(n), np.arange(columns), np.arange(m), indexing="ij")
    )
    return ProductPhases(n, pattern, s, u, np.ascontiguousarray(column, dtype=np.int32), spine)


def _failure(instance: MLFMInstance, solution: ProductPhases) -> str:
    """Where the printed rule goes wrong on this block, in words. Counts by itself, apart from the check."""
    if instance.ranks > 400:
        return "The printed rule fails"
    block = instance.block
    assert block is not None
    leaf, sent = instance.server_leaf, np.zeros((instance.ranks, instance.ranks), dtype=np.int64)
    everyone, clash = np.arange(instance.ranks), None
    for rows in solution.rows(1):
        dest, spine = rows.dest[0], rows.spine[0]
        np.add.at(sent, (everyone, dest), 1)
        bare = np.flatnonzero((spine < 0) & (leaf != leaf[dest]))
        _, index, uses = np.unique(leaf * len(instance.spine_columns) + spine, return_index=True, return_counts=True)
        double = index[(uses > 1) & (spine[index] >= 0)]
        if clash is None and (len(bare) or len(double)):
            s, rest = divmod(rows.first, block.columns * block.servers)
            t, u = divmod(rest, block.servers)
            x = int((bare if len(bare) else double)[0])
            what = "changes layer without a spine" if len(bare) else "shares its up-link with another flow"
            clash = f"in phase (s, t, u) = ({s}, {t}, {u}) server {'.'.join(map(str, instance.servers[x]))} {what}"
    never = int((sent == 0).sum())
    often = int((sent > 1).sum())
    return f"The printed rule fails here: {clash}; {never} of {sent.size} pairs are never sent, {often} more than once"


def solve_shift(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``shift``: the pattern that OpenMPI's *pairwise* runs and the paper measures against."""
    return _pattern(instance, "shift")


def solve_pairwise(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``pairwise``: partners exchange in every phase."""
    return _pattern(instance, "pairwise")


def _pattern(instance: MLFMInstance, kind: str) -> Outcome:
    ranks = instance.ranks
    if ranks**2 > MAX_DENSE:
        raise SizeLimitError(f"{kind} stores every transfer, at most {MAX_DENSE}; here {ranks**2}")
    problem = leaf_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    x = np.arange(ranks)
    if kind == "shift":
        dest = (x[None, :] + x[:, None]) % ranks
    elif ranks & (ranks - 1) == 0:
        dest = x[None, :] ^ x[:, None]
    else:
        dest = (x[:, None] - x[None, :]) % ranks
    return Outcome("finished", solution=with_routes(problem, dest, static_routes(instance, problem, dest)))


def static_routes(instance: MLFMInstance, problem: LeafProblem, dest: IntArray) -> IntArray:
    """Every transfer's route (its number, -1 inside a leaf), chosen among the shortest by the destination's slot."""
    place = np.searchsorted(problem.leaf, instance.server_leaf)
    pair = place[None, :] * problem.leaves + place[dest]
    shortest = np.bincount(problem.pair[problem.middle < 0], minlength=problem.leaves**2)
    all_routes = np.diff(problem.start)
    choices = np.where(shortest > 0, shortest, all_routes)
    turn = instance.servers[:, 2][dest] % np.maximum(1, choices[pair])
    return np.where(all_routes[pair] > 0, problem.start[:-1][pair] + turn, NOTHING)


def with_routes(problem: LeafProblem, dest: IntArray, route: IntArray) -> PhaseTable:
    """Dense phases from destinations and route numbers, both of shape (phases, ranks), -1 where absent."""

    def part(values: IntArray) -> Table:
        return np.append(values, NOTHING).astype(np.int32)[route]

    middle = part(problem.middle)
    if (middle < 0).all():
        return PhaseTable(dest.astype(np.int32), part(problem.spine))
    return PhaseTable(dest.astype(np.int32), part(problem.spine), middle, part(problem.second))


def solve_greedy(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``greedy``: first phase that fits."""
    ranks = instance.ranks
    if ranks > 1000:
        raise SizeLimitError("greedy takes at most 1000 servers")
    problem = leaf_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    order = np.random.default_rng(options.seed).permutation(ranks * ranks)
    place = np.searchsorted(problem.leaf, instance.server_leaf)
    most = 8 * ranks
    while True:
        state = (
            np.full((most, ranks), NOTHING, np.int64), np.full((most, ranks), NOTHING, np.int64),
            np.zeros((most, ranks), np.bool_), np.zeros((most, problem.link_count), np.bool_),
        )  # fmt: skip
        placed = True
        for begin in range(0, len(order), 20_000):
            if options.out_of_time():
                return Outcome("time_limit", message=f"{begin} of {len(order)} transfers placed")
            batch = order[begin : begin + 20_000]
            placed = placed and _first_fit(batch, place, problem.start, problem.links, problem.leaves, *state)
        if placed:
            break
        most *= 2
    dest, route = state[:2]
    phases = int(np.flatnonzero((dest >= 0).any(axis=1))[-1]) + 1
    return Outcome("finished", solution=with_routes(problem, dest[:phases], route[:phases]))


@jit
def _first_fit(
    order: Any, place: Any, start: Any, links: Any, leaves: int, dest: Any, route: Any, receives: Any, busy: Any
) -> bool:
    ranks = len(place)
    for item in order:
        x, y = item // ranks, item % ranks
        pair = place[x] * leaves + place[y]
        done = False
        for p in range(len(dest)):
            if dest[p, x] >= 0 or receives[p, y]:
                continue
            chosen = -1
            if place[x] != place[y]:
                for r in range(start[pair], start[pair + 1]):
                    free = True
                    for e in links[r]:
                        if e >= 0 and busy[p, e]:
                            free = False
                            break
                    if free:
                        chosen = r
                        break
                if chosen < 0:
                    continue
                for e in links[chosen]:
                    if e >= 0:
                        busy[p, e] = True
            dest[p, x], route[p, x], receives[p, y] = y, chosen, True
            done = True
            break
        if not done:
            return False
    return True
