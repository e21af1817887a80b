"""Method ``repair`` (ours): the published rule where cables and spines have failed, at the size of whole machines.

For a block on which the rule holds, with routes over two spines allowed. What the rule does between columns stays, less
the transfers whose cables have failed; the others are placed anew, one of every m alike:

* **Slots.** Server k of leaf x owes leaf y its m servers. One phase in which k sends to some server of y, repeated m times
  with the receivers turned by one slot each time, serves them all (``SlotPhases``); the receivers of a leaf in a phase
  stay different. So only *flows* (server, leaf) have to be placed, m times fewer than transfers, in *groups* of m phases.
* **What is kept.** n (l-1) groups of the rule (t > 0). In them every link of the block is in use, so little is lost.
* **What is placed.** The flows that lost a cable, over a leaf of a third column; the flows inside a column, which the rule
  puts on one server's link each, and may now go over any column; the flows inside a leaf, which need no link.
* **How.** One flow after the other goes where it meets nobody, else where it meets fewest, and these are placed again
  (``placement.py``); when that does not come to an end, a group is added. The first number of groups is what the lower
  bound asks for.

The phases are a multiple of m, so that up to m - 1 phases above the bound are due to that. Nothing is proven here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.instance import IntArray, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import working
from synth_models.mlfm.references.closed_form import MAX_PAIRS, printed_rule
from synth_models.mlfm.references.placement import Placement
from synth_models.mlfm.solution import NOTHING, PhaseTable, ProductPhases, RepairedPhases, SlotPhases

EXTRA_GROUPS = 400  # beyond what the bound asks for


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``repair``. Raises :class:`UnsupportedError` for other jobs and :class:`SizeLimitError`."""
    block = instance.block
    if block is None or instance.demand is not None:
        raise UnsupportedError("repair needs a block of servers that all send to all")
    if not block.servers <= block.columns - 1 <= instance.d or instance.failed.leaves or instance.failed.servers:
        raise UnsupportedError("repair needs a block with m <= l-1 <= d of which no leaf or server has failed")
    if instance.routes != "detour":
        raise UnsupportedError("repair needs routes = detour")
    if instance.ranks**2 > MAX_PAIRS:
        raise SizeLimitError(f"more than {MAX_PAIRS} transfers to replay")
    bound = machine_bound(instance)
    if isinstance(bound, str):
        return Outcome("infeasible", message=bound)
    kept = kept_rule(instance)
    least = -(-bound.phases // block.servers) - kept.phases // block.servers
    placement = Placement(instance, options.seed)
    flows = flows_to_place(instance)
    fewest = max(1, block.layers, least)
    for groups in range(fewest, fewest + EXTRA_GROUPS):
        if placement.place(flows, groups, options):
            solution = RepairedPhases(kept, SlotPhases(block.servers, added_groups(instance, placement)))
            words = (
                f"{kept.phases} phases of the rule and {groups} groups of {block.servers}; the bound asks for {least}"
            )
            return Outcome("finished", solution, float(bound.phases), bound.words, bound.certificate, f"{words} groups")
        if options.out_of_time():
            break
    return Outcome(
        "time_limit", None, float(bound.phases), bound.words, bound.certificate, "no place for all flows in time"
    )


def dead_cables(instance: MLFMInstance) -> IntArray:
    """The failed cables at leaves of the machine, shape (cables, 3): layer, column, other column of the spine."""
    usable = working(instance)
    leaf, other = np.nonzero(~usable)
    layer, column = np.divmod(leaf, instance.columns)
    return np.stack([layer, column, other], axis=1)[column != other]


def kept_rule(instance: MLFMInstance) -> ProductPhases:
    """The phases of the rule between columns, less the transfers over failed cables."""
    block = instance.block
    assert block is not None
    rule = printed_rule(instance, block.layers, block.columns, block.servers)
    between = rule.pattern > 0
    shifts = (rule.pattern[between], rule.layer_shift[between], rule.slot_shift[between])
    return ProductPhases(rule.layers, *shifts, rule.column, rule.spine, dead_cables(instance).astype(np.int32))


@dataclass(frozen=True)
class Flows:
    """Flows (F,): the rank that sends, the number of the leaf that receives; those that are hardest to place first."""

    source: IntArray
    leaf: IntArray


def flows_to_place(instance: MLFMInstance) -> Flows:
    """All flows that the kept phases do not hold: over failed cables, inside a column, inside a leaf."""
    block, usable = instance.block, working(instance)
    assert block is not None
    n, columns, m = block.layers, block.columns, block.servers
    leaf, column = instance.server_leaf, instance.servers[:, 1]
    layer, other = (grid.ravel() for grid in np.meshgrid(np.arange(n), np.arange(columns), indexing="ij"))
    target = layer * instance.columns + other  # every leaf of the block
    direct = usable[leaf][:, other] & usable[target][:, column].T  # [rank, leaf]: both cables of the direct route work
    lost = ~direct & (column[:, None] != other[None, :])
    same = (column[:, None] == other[None, :]) & (leaf[:, None] != target[None, :])
    source, place = np.nonzero(lost)
    broken = (~usable).sum(axis=1)
    order = np.argsort(-(broken[leaf[source]] + broken[target[place]]), kind="stable")
    inside_column, inside_leaf = np.nonzero(same), np.arange(instance.ranks)
    return Flows(
        np.concatenate([source[order], inside_column[0], inside_leaf]),
        np.concatenate([target[place[order]], target[inside_column[1]], leaf]),
    )


def added_groups(instance: MLFMInstance, placement: Placement) -> PhaseTable:
    """The placed flows as the first phases of their groups; receivers of a leaf in a phase are numbered as they come."""
    block = instance.block
    assert block is not None
    group, source, leaf, spine, middle, second = placement.placed()
    order = np.lexsort((source, leaf, group))
    key = (group * instance.leaves + leaf)[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    slot = np.empty(len(key), dtype=np.int64)
    slot[order] = np.arange(len(key)) - np.repeat(first, np.diff(np.append(first, len(key))))
    base = np.full(instance.leaves, NOTHING, dtype=np.int64)
    base[instance.server_leaf[:: block.servers]] = np.arange(0, instance.ranks, block.servers)
    tables = [np.full((placement.groups, instance.ranks), NOTHING, np.int32) for _ in range(4)]
    for table, values in zip(tables, (base[leaf] + slot, spine, middle, second), strict=True):
        table[group, source] = values
    return PhaseTable(*tables)
