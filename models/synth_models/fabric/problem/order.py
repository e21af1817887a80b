"""Which of several collectives come after which: faults of ``after``, and an order in which none comes too early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth.errors import Fault
from synth_models.fabric.problem.place_faults import whole


def order_faults(raw: Mapping[str, Any]) -> Iterator[Fault]:
    """Numbers in ``after`` that there are not, that stand twice or are the collective's own; then cycles."""
    listed = raw.get("collectives")
    rows = [row if isinstance(row, dict) else {} for row in (listed if isinstance(listed, (list, tuple)) else ())]
    after: list[list[int]] = []
    for i, row in enumerate(rows):
        stated = row.get("after")
        numbers = [k for k in (stated if isinstance(stated, (list, tuple)) else ()) if whole(k)]
        for k in dict.fromkeys(numbers):
            if k >= len(rows):
                yield Fault(f"collectives[{i}].after", f"no such collective: there are 0..{len(rows) - 1}", k, True)
            elif k == i:
                yield Fault(f"collectives[{i}].after", "names the collective itself", k, True)
            elif numbers.count(k) > 1:
                yield Fault(f"collectives[{i}].after", "stands twice", k, True)
        after.append([k for k in numbers if k < len(rows) and k != i])
    left = _left(after)
    if left:
        yield Fault(f"collectives[{left[0]}].after", f"wait for each other: collectives {', '.join(map(str, left))}")


def in_order(after: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[int]:
    """The numbers in the order ``wanted``, each behind those that it comes after, which are not in a cycle."""
    found: list[int] = []

    def take(number: int) -> None:
        if number not in found:
            for before in after[number]:
                take(before)
            found.append(number)

    for number in wanted:
        take(number)
    return found


def _left(after: Sequence[Sequence[int]]) -> list[int]:
    """Those in cycles, and between two of them."""
    left = set(range(len(after)))
    for sides in (after, [[k for k, row in enumerate(after) if i in row] for i in range(len(after))]):
        while free := {i for i in left if not left & set(sides[i])}:
            left -= free
    return sorted(left)
