"""Which of several collectives come after which: faults of ``after``, and an order in which none comes too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from synth.errors import Fault
from synth_models.fabric.problem.place_faults import whole

MOST_TOLD = 100  # collectives of one cycle


def order_faults(raw: Mapping[str, Any]) -> Iterator[Fault]:
    """Numbers in ``after`` that there are not, that stand twice or are the collective's own; then every cycle, or what
    of several that share a collective waits for each other."""
    listed = raw.get("collectives")
    rows = [row if isinstance(row, dict) else {} for row in (listed if isinstance(listed, (list, tuple)) else ())]
    after: list[list[int]] = []
    for i, row in enumerate(rows):
        stated = row.get("after")
        numbers = Counter(k for k in (stated if isinstance(stated, (list, tuple)) else ()) if whole(k))
        for k, times in numbers.items():
            if k >= len(rows):
                yield Fault(f"collectives[{i}].after", f"no such collective: there are 0..{len(rows) - 1}", k, True)
            elif k == i:
                yield Fault(f"collectives[{i}].after", "names the collective itself", k, True)
            elif times > 1:
                yield Fault(f"collectives[{i}].after", "stands twice", k, True)
        after.append([k for k in numbers if k < len(rows) and k != i])
    for cycle in _cycles(after):
        words = ", ".join(map(str, cycle[:MOST_TOLD])) + (f", … ({len(cycle)})" if len(cycle) > MOST_TOLD else "")
        yield Fault(f"collectives[{cycle[0]}].after", f"wait for each other: collectives {words}")


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


def _cycles(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Those that wait for each other, in rising order: strongly connected components (Kosaraju; Sharir 1981), in linear
    time."""
    behind: list[list[int]] = [[] for _ in after]
    for i, row in enumerate(after):
        for k in row:
            behind[k].append(i)
    last_first = _reached(range(len(after)), after)[::-1]
    left, found = set(last_first), []
    for root in last_first:
        if root in left:
            part = _reached([root], behind, left)
            if len(part) > 1:
                found.append(sorted(part))
    return sorted(found)


def _reached(roots: Iterable[int], ways: Sequence[Sequence[int]], left: set[int] | None = None) -> list[int]:
    """What is reached from the roots, each behind all that is reached from it first; of those that are ``left`` only,
    from which these are taken."""
    left = set(range(len(ways))) if left is None else left
    found: list[int] = []
    for root in roots:
        open_ = [(root, iter(ways[root]))] if root in left else []
        left.discard(root)
        while open_:
            node, rest = open_[-1]
            further = next((k for k in rest if k in left), None)
            if further is None:
                found.append(node)
                open_.pop()
            else:
                left.discard(further)
                open_.append((further, iter(ways[further])))
    return found
