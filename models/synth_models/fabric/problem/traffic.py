"""Traffic: blocks of which several ranks have a copy or a contribution, and that several ranks want.

``traffic`` of an instance with the collective ``traffic`` lists them. Mode ``any``: each holder has the whole block,
and any copy will do. Mode ``sum``: each holder has a contribution; wanted is the sum of all, each exactly once. What
a wanter has from the start is no part of the block that moves. Every collective is such a list
(:class:`synth_models.fabric.problem.blocks.Blocks`); this one is written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from synth.errors import Fault
from synth.instance import Part, Unit
from synth_models.fabric.problem.blocks import Blocks, in_set
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.place_faults import ranks_of, whole

TRAFFIC: Literal["traffic"] = "traffic"
ANY, SUM = "any", "sum"
MOST_BYTES = 2**48
MOST_SHOWN = 8
Node = Annotated[int, Field(ge=0)]
Nodes = Annotated[tuple[Node, ...], Field(min_length=1)]


class HeldBlock(Part):
    """``bytes`` that the ``holders`` have, each all of it (mode ``any``) or a contribution (``sum``), and that all
    ``wanters`` want."""

    bytes: Annotated[int, Field(ge=1, le=MOST_BYTES), Unit("bytes")]
    holders: Nodes
    mode: Literal["any", "sum"] = "any"
    wanters: Nodes


def blocks_of_traffic(rows: Sequence[HeldBlock]) -> Blocks:
    """The blocks that have to move, in the order of the rows; one row that moves nothing is left out."""
    origin, goal, size, sums = list[int](), list[int](), list[int](), list[bool]()
    numbers: dict[tuple[int, ...], int] = {}

    def code(ranks: Sequence[int]) -> int:
        if len(ranks) == 1:
            return ranks[0]
        return in_set(numbers.setdefault(tuple(sorted(ranks)), len(numbers)))

    for row in rows:
        adds = row.mode == SUM and len(row.holders) > 1
        lacking = [rank for rank in row.wanters if adds or rank not in row.holders]
        if lacking:
            origin.append(code(row.holders))
            goal.append(code(lacking))
            size.append(row.bytes)
            sums.append(adds)
    holds, wants, amount = (np.array(column, dtype=np.int64) for column in (origin, goal, size))
    return Blocks(holds, wants, amount, np.array(sums, dtype=bool), tuple(numbers))


def shape_faults(raw: Mapping[str, Any]) -> Iterator[Fault]:
    """What concerns the key ``traffic`` and its rows, but for the ranks that it names."""
    rows, size = raw.get("traffic"), raw.get("bytes")
    if raw.get("collective") != TRAFFIC:
        if rows is not None:
            yield Fault("traffic", f"has no meaning for {raw.get('collective', 'allgather')}")
        return
    if rows is None:
        yield Fault("traffic", "is missing: the collective traffic needs rows of bytes, holders, mode, wanters")
    listed = rows if isinstance(rows, (list, tuple)) else ()
    if rows is not None and not listed:
        yield Fault("traffic", "has no rows")
    named = Counter(ranks_of(listed)) if _twice(listed) else {}
    yield from (Fault(path, f"names rank {node} {times} times") for (path, node), times in named.items() if times > 1)
    sizes = [row.get("bytes") for row in listed if isinstance(row, dict)]
    amounts: list[Any] = [amount for amount in sizes if whole(amount)]
    if listed and len(amounts) == len(listed) and whole(size) and sum(amounts) != size:
        yield Fault("bytes", f"must be the sum over all blocks, {sum(amounts)}", size, True)


def _twice(rows: Sequence[Any]) -> bool:
    """Whether a list of ranks may name one twice: quicker than to look for which."""
    lists = [row.get(key) for row in rows if isinstance(row, dict) for key in ("holders", "wanters")]
    return any(len(set(map(str, ranks))) < len(ranks) for ranks in lists if isinstance(ranks, (list, tuple)))


def _joined(rows: Sequence[Mapping[str, Any]], machine: Machine) -> bool:
    """Whether all holders and wanters are in one component, and so reach each other."""
    ranks = set().union(*(row[key] for row in rows for key in ("holders", "wanters")))
    return len({machine.component[rank] for rank in ranks}) < 2


def reach_faults(rows: Sequence[Mapping[str, Any]], machine: Machine, key: str) -> Iterator[Fault]:
    """Wanters that no copy can reach, or not every contribution; the first few."""
    if _joined(rows, machine):
        return
    seen = {rank: machine.reached_from(rank) for rank in {rank for row in rows for rank in row["holders"]}}
    told = 0
    for i, row in enumerate(rows):
        for rank in row["wanters"]:
            off = [holder for holder in row["holders"] if not seen[holder][rank]]
            if off and (row.get("mode", ANY) == SUM or len(off) == len(row["holders"])) and told < MOST_SHOWN:
                told += 1
                where = f"traffic[{i}].wanters" if key == TRAFFIC else key
                yield Fault(where, f"rank {rank} cannot be reached from rank {off[0]}")
