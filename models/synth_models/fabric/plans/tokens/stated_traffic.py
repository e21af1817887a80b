"""Method ``plan`` of traffic: blocks that one rank sends to ranks of one box, or sums on their way back."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.tokens.classes import Classes, turn_of
from synth_models.fabric.plans.tokens.planner import TokenPlanner
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.problem.traffic import SUM


def propose(instance: FabricInstance, planner_of: Callable[[FabricInstance], TokenPlanner]) -> Outcome:
    """The plan of an instance's blocks, in units of the greatest common divisor of their bytes."""
    try:
        planner = planner_of(instance)
        origin, goal = instance.blocks.origin, instance.blocks.goal
        back = any(row.mode == SUM for row in instance.traffic or ())
        classes, order, unit = _classes(planner, *((goal, origin) if back else (origin, goal)))
        way = planner.of_classes(classes, unit, back)
    except UnsupportedError as error:
        return Outcome("unsupported", message=str(error))
    schedule = way.numbered(order)
    words = f"{way.name}, {schedule.transfers} transfers"
    return Outcome("finished", schedule, way.bound, str(way.proven), way.proven.certificate(), words)


def _classes(planner: TokenPlanner, sender: IntArray, wants: IntArray) -> tuple[Classes, IntArray, int]:
    """The classes of blocks, the block of each, and the bytes of their unit. Raises :class:`UnsupportedError` where a
    block has several senders or wanters in several boxes."""
    instance, layout = planner.machine, planner.layout
    boxes, size = layout.boxes, layout.size
    place = {int(node): k for k, node in enumerate(layout.node)}
    key, wanted = list[int](), list[int]()
    for u, code in zip(sender.tolist(), wants.tolist(), strict=True):
        at = [place[rank] for rank in instance.blocks.ranks(code, instance.members)]
        if u < 0 or len({p // size for p in at}) > 1 or (place[u] in at):
            raise UnsupportedError("plans traffic from one rank to others of one box, or sums on such ways back")
        key.append((place[u] // size * boxes + at[0] // size) * size + place[u] % size)
        wanted.append(sum(1 << p % size for p in at))
    k, sets, amount = np.array(key, np.int64), np.array(wanted, np.int64), instance.blocks.bytes
    unit = gcd(*amount.tolist())
    order = np.lexsort((turn_of(sets, size), k)).astype(np.int64)
    k, sets, tokens = k[order], sets[order], amount[order] // unit
    row = starts(np.bincount(k, minlength=boxes * boxes * size))
    gone = np.cumsum(tokens) - tokens
    before = gone - gone[np.minimum(row[:-1][k], len(gone) - 1)]
    b, c, g = k // (boxes * size), k // size % boxes, k % size
    leave_rank, leave_box = np.zeros(boxes * size, np.int64), np.zeros(boxes, np.int64)
    np.add.at(leave_rank, b * size + g, tokens)
    np.add.at(leave_box, b[b != c], tokens[b != c])
    return Classes(row, sets, tokens, before, leave_rank, leave_box), order, unit
