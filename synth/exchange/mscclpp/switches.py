"""Channels over a switch: groups of GPUs whose buffers one address reaches, and how the executor makes them.

Every GPU lists the groups that it is in, and makes one after the other, together with all of its members
(``connectNvlsCollective``): the member of least number allocates memory of its buffer's size, to which the others bind
theirs. A group that its members come to in different orders is waited for for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from synth.errors import Fault
from synth.exchange.mscclpp.plan import MOST_CHUNKS
from synth.exchange.mscclpp.values import Values

MOST_REACHED = 2**22  # ours: buffers that all operations of a plan reach over switches


class Group(NamedTuple):
    """A channel over a switch: the buffer (``i``, ``o`` or ``s``) of the GPUs ``ranks``, in ascending order."""

    buffer: str
    ranks: tuple[int, ...]


def declared(group: Group) -> dict[str, Any]:
    """A group as a GPU's entry among its channels."""
    ends = [{"size": len(group.ranks), "ranks": list(group.ranks)}]
    return {"channel_type": "switch", "buffer_type": group.buffer, "rank_groups": ends}


def read_groups(values: Values, channel: Any, rank: int, ranks: int, place: str) -> Iterator[Group]:
    """The groups of one entry of a GPU's channels, as far as they can be read; ``ranks``: GPUs of the plan."""
    buffer = values.word(channel, "buffer_type", ("i", "o", "s"), place)
    for number, stored in enumerate(values.value(channel, "rank_groups", list, place)):
        here = f"{place}, rank_groups[{number}]"
        values.whole(stored, "size", 1, MOST_CHUNKS, here)
        found = tuple(sorted(set(listed := values.numbers(stored, "ranks", ranks - 1, here))))
        if len(found) < len(listed):
            values.fault(here, "ranks names a gpu twice")
        elif len(found) < 2:
            values.fault(here, "ranks has fewer than two gpus: a switch joins several")
        elif rank not in found:
            values.fault(here, f"ranks lacks gpu {rank} itself")
        yield Group(buffer, found)


def making_faults(groups: Sequence[Sequence[Group]], chunks: Sequence[dict[str, int]]) -> Iterator[Fault]:
    """What keeps the executor from making the groups, as every GPU lists them; ``chunks``: of every GPU's buffers."""
    at = [0] * len(groups)
    there: Counter[tuple[int, ...]] = Counter(mine[0].ranks for mine in groups if mine)
    ready = [ranks for ranks, count in there.items() if count == len(ranks)]
    while ready:
        ranks = ready.pop()
        del there[ranks]
        yield from _binding_faults(ranks, [groups[r][at[r]].buffer for r in ranks], at, chunks)
        for r in ranks:
            at[r] += 1
            if at[r] < len(groups[r]):
                then = groups[r][at[r]].ranks
                there[then] += 1
                if there[then] == len(then):
                    ready.append(then)
    heads = [mine[k].ranks if k < len(mine) else () for mine, k in zip(groups, at, strict=True)]
    for rank, wanted in enumerate(heads):
        lost = [r for r in wanted if heads[r] != wanted]
        if wanted:
            others = ", ".join(map(str, lost[:4])) + (" …" if len(lost) > 4 else "")
            text = f"waits for ever for gpu {others}, which must make the same group at the same place among its own"
            yield Fault(f"gpu {rank}, switch channel {at[rank]}", text)


def _binding_faults(
    ranks: Sequence[int], buffers: Sequence[str], at: Sequence[int], chunks: Sequence[dict[str, int]]
) -> Iterator[Fault]:
    """Members that bind another buffer than the first, or one that is larger."""
    for rank, buffer in zip(ranks, buffers, strict=True):
        place = f"gpu {rank}, switch channel {at[rank]}"
        if buffer != buffers[0]:
            yield Fault(place, f"binds its buffer {buffer}, gpu {ranks[0]} its {buffers[0]}")
        elif chunks[rank][buffer] > chunks[ranks[0]][buffer]:
            room = f"gpu {ranks[0]} makes room for {chunks[ranks[0]][buffer]}"
            yield Fault(place, f"binds {chunks[rank][buffer]} chunks of {buffer}, {room}")
        elif not chunks[rank][buffer]:
            yield Fault(place, f"binds {buffer}, which has no chunks")
