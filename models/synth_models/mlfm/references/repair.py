"""Method ``repair`` (ours): the published rule where cables and spines have failed, at the size of whole machines.

For a block on which the rule holds, with routes over two spines allowed. The rule stays but for what must move:

* **Slots.** Server k of leaf x owes every server of leaf y a transfer. One phase in which k sends to some server of y,
  repeated m times with all receivers turned by one slot each time, serves them all, and the receivers of a leaf stay
  different. The rule is made of such groups of m phases, too. So only *flows* (server, leaf) have to be placed in
  *groups*, m times fewer than transfers in phases.
* **What moves.** The flows that lost a cable go over a leaf of a third column, or, inside a column, over any other one.
  What stands in their way moves on: into groups after the rule's last, which are empty, or within the rule.
* **How.** ``placement.py``: one flow after the other where it meets nobody, else where it meets fewest. When that does
  not come to an end, it starts again with more groups; their first number is what the lower bound asks for.

The phases are a multiple of m, so up to m - 1 phases above the bound are due to that. The method proves nothing but the
bound it starts from (``bounds/machine.py``).
"""

from __future__ import annotations

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.instance import Block, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import working
from synth_models.mlfm.references.closed_form import MAX_PAIRS, printed_rule
from synth_models.mlfm.references.placement import INSIDE, ONE_SPINE, Placement
from synth_models.mlfm.solution import Flows, ProductPhases, RepairedPhases

ATTEMPTS = 30  # numbers of groups, further and further apart


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``repair``. Raises :class:`UnsupportedError` for other jobs and :class:`SizeLimitError`."""
    block = _block(instance)
    bound, reason = machine_bound(instance)
    if bound is None:
        return Outcome("infeasible", message=reason)
    held = {"bound": float(bound.phases), "bound_proof": bound.words, "certificate": bound.certificate}
    rule = printed_rule(instance, block.layers, block.columns, block.servers)
    ruled, least = rule.phases // block.servers, -(-bound.phases // block.servers)
    groups = max(ruled, least)
    for attempt in range(ATTEMPTS):
        groups += attempt // 2
        placement = placed_rule(instance, rule, options.seed)
        if placement.settle(groups, options):
            moved = moved_flows(instance, rule, placement)
            words = (
                f"{groups} groups of {block.servers} phases, the bound asks for {least}; {moved.group.size} flows moved"
            )
            return Outcome("finished", RepairedPhases(rule, block.servers, groups, moved), message=words, **held)  # type: ignore[arg-type]
        if options.out_of_time():
            break
    return Outcome("time_limit", message="no place for all flows in time", **held)  # type: ignore[arg-type]


def _block(instance: MLFMInstance) -> Block:
    """The job's block. Raises :class:`UnsupportedError` where the method does not apply."""
    block = instance.block
    if block is None or instance.demand is not None:
        raise UnsupportedError("repair needs a block of servers that all send to all")
    if not block.servers <= block.columns - 1 <= instance.d or instance.failed.leaves or instance.failed.servers:
        raise UnsupportedError("repair needs a block with m <= l-1 <= d of which no leaf or server has failed")
    if instance.routes != "detour":
        raise UnsupportedError("repair needs routes = detour")
    if instance.ranks**2 > MAX_PAIRS:
        raise SizeLimitError(f"more than {MAX_PAIRS} transfers to replay")
    return block


def placed_rule(instance: MLFMInstance, rule: ProductPhases, seed: int) -> Placement:
    """All flows of the job where the rule has them; those over failed cables wait for a place."""
    block = _block(instance)
    ranks, m, usable = instance.ranks, block.servers, working(instance)
    group, source, target, between = [], [], [], []
    sums = instance.spine_columns.sum(axis=1)
    everyone, leaf = np.arange(ranks), instance.server_leaf
    for number, rows in enumerate(rule.rows(m)):
        dest, spine = rows.dest[0], rows.spine[0]
        group.append(np.full(ranks, number))
        source.append(everyone)
        target.append(leaf[dest])
        between.append(np.where(spine < 0, -1, sums[spine] - leaf % instance.columns))
    g, s, y, c = (np.concatenate(part).astype(np.int64) for part in (group, source, target, between))
    x = leaf[s]
    kind = np.where(c < 0, INSIDE, ONE_SPINE)
    # the column whose spine leaf y has in common with leaf x: c for a route inside a column, x's own otherwise
    other = np.where(x % instance.columns == y % instance.columns, c, x % instance.columns)
    lost = (kind == ONE_SPINE) & ~(usable[x, c] & usable[y, other])
    lost |= x % instance.columns == y % instance.columns
    broken = (
        10 * (x % instance.columns != y % instance.columns)
        + 5 * (x != y)
        + (usable.sum(axis=1).max() - usable.sum(axis=1))[[x, y]].sum(axis=0)
    )
    return Placement(instance, np.stack([s, x, y], axis=1), np.stack([g, c, kind], axis=1), lost, broken, seed)


def moved_flows(instance: MLFMInstance, rule: ProductPhases, placement: Placement) -> Flows:
    """The flows that are not where the rule has them, each with a server of its leaf that is free in all its group."""
    block = _block(instance)
    m = block.servers
    group, source, leaf, spine, middle, second = (part[placement.moved_at()] for part in placement.routes())
    place = np.full(instance.leaves, -1, dtype=np.int64)
    place[instance.server_leaf[::m]] = np.arange(instance.ranks // m)
    taken = np.zeros((placement.groups, instance.ranks), dtype=bool)
    stays = np.ones((instance.ranks, instance.ranks // m), dtype=bool)
    stays[source, place[leaf]] = False
    everyone = np.arange(instance.ranks)
    for number, rows in enumerate(rule.rows(m)):
        dest = rows.dest[0]
        taken[number, dest[stays[everyone, dest // m]]] = True
    # of every leaf in every group, the free servers in order; flows take them as they come
    free = np.argsort(taken.reshape(placement.groups, -1, m), axis=2, kind="stable")
    key = group * (instance.ranks // m) + place[leaf]
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(key) else np.zeros(0, np.int64)
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = np.arange(len(key)) - np.repeat(begins, np.diff(np.append(begins, len(key))))
    dest = place[leaf] * m + free[group, place[leaf], turn]
    return Flows(*(values.astype(np.int32) for values in (group, source, dest, spine, middle, second)))
