"""What a plan says of a schedule's streams through switches: which become operations over a switch, which do not.

``gstore`` copies a place of the rank that runs it to the same place of all ranks of a group, itself among them. A sum
has only ``glres``: of one place of all ranks of a group, handed on to all of a group at once. So a stream of sums is
one where all have their own data still, and where the first thing that their adder does with the sum is to copy it to
all of them through a switch. Every other stream is lowered to puts, and the adder adds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from synth.exchange.mscclpp.layout import Layout, Place
from synth.exchange.mscclpp.switches import Group
from synth.exchange.transfers import Transfers
from synth.text.quantities import counted

EVERYWHERE = ("allgather", "broadcast", "allreduce")  # collectives that end with a piece at one place of all ranks


@dataclass(frozen=True)
class Act:
    """What ``rank`` does with a piece over a switch: it stores it to ``target``, whose first chunk is ``to``; with a
    ``source``, the sum of what all of that have at ``own``. ``copies`` and ``sums``: the transfers that this makes."""

    rank: int
    piece: int
    copies: tuple[int, ...]
    target: Group
    to: int
    sums: tuple[int, ...] = ()
    source: Group | None = None
    own: int = 0


@dataclass(frozen=True)
class Acts:
    """``of``: the act that makes a transfer, by its number; ``refused``: why others are lowered to puts, with how many
    transfers each."""

    of: Mapping[int, Act] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def groups(self) -> list[Group]:
        """All groups, in the order in which every rank makes its own."""
        found = {group for act in self.of.values() for group in (act.source, act.target) if group is not None}
        return sorted(found)

    def sums(self, k: int) -> bool:
        """Whether a transfer is part of a sum that is loaded over a switch."""
        return k in self.of and k in self.of[k].sums


def acts(t: Transfers, at: Layout, in_place: bool, node: int | None) -> Acts:
    """The acts of a schedule whose pieces lie as ``at`` says; ``node``: ranks of one node, between which only memory
    channels are (None: all)."""
    if t.together is None:
        return Acts()
    return _Choice(t, at, in_place, node).made()


class _Choice:
    def __init__(self, t: Transfers, at: Layout, in_place: bool, node: int | None) -> None:
        self.t, self.at, self.in_place, self.node = t, at, in_place, node
        self.refused: dict[str, int] = defaultdict(int)
        assert t.together is not None
        streams: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
        for k, (number, piece, adds) in enumerate(zip(t.together, t.piece, t.adds, strict=True)):
            if number >= 0:
                streams[int(number), int(piece), bool(adds)].append(k)
        self.streams = {key: rows for key, rows in streams.items() if len(rows) > 1}
        self.into: dict[tuple[int, int], list[int]] = defaultdict(list)  # by rank and piece
        self.out_of: dict[tuple[int, int], list[int]] = defaultdict(list)
        for k in range(len(t.piece)):
            self.into[int(t.dst[k]), int(t.piece[k])].append(k)
            self.out_of[int(t.src[k]), int(t.piece[k])].append(k)

    def made(self) -> Acts:
        """All acts, sums with the copies that they are handed on by."""
        found: dict[int, Act] = {}
        for (_, _, adds), rows in self.streams.items():
            if not adds and (act := self.copy(rows)):
                found |= dict.fromkeys(rows, act)
        for (_, _, adds), rows in self.streams.items():
            if adds and (then := self.handed_on(rows, found)):
                act = self.summed(rows, then)
                found |= dict.fromkeys((*rows, *act.copies), act)
        return Acts(found, dict(self.refused))

    def refuse(self, rows: Sequence[int], why: str) -> None:
        self.refused[why] += len(rows)

    def copy(self, rows: list[int]) -> Act | None:
        """The act that copies to the receivers of these transfers."""
        t, k = self.t, rows[0]
        rank, piece = int(t.src[k]), int(t.piece[k])
        ranks = tuple(sorted({rank, *t.dst[rows].tolist()}))
        if t.collective not in EVERYWHERE:
            self.refuse(rows, f"{t.collective} does not end with a piece at one place of all ranks")
        elif self.apart(ranks):
            self.refuse(rows, "its ranks are in several nodes")
        else:
            buffer, to = self.at.store(rank, piece)
            return Act(rank, piece, tuple(rows), Group(buffer, ranks), to)
        return None

    def apart(self, ranks: Sequence[int]) -> bool:
        return self.node is not None and ranks[0] // self.node != ranks[-1] // self.node

    def handed_on(self, rows: list[int], copies: Mapping[int, Act]) -> Act | None:
        """The copy that hands on the sum of these transfers, None where the two are no ``glres``."""
        t, k = self.t, rows[0]
        rank, piece = int(t.dst[k]), int(t.piece[k])
        end = float(t.end_s[rows].max())
        ranks = {rank, *t.src[rows].tolist()}
        mine = set(rows)
        if any(t.start_s[j] < end for q in ranks for j in self.into[q, piece] if j not in mine):
            self.refuse(rows, "a sum of partial sums: glres loads what all ranks have at one place")
            return None
        later = [j for j in self.out_of[rank, piece] if t.start_s[j] >= end]
        first = min(later, key=lambda j: (t.start_s[j], j not in copies), default=-1)
        if first not in copies or any(j not in later for j in self.out_of[rank, piece]):
            self.refuse(rows, "its sum is not handed on to all of its ranks at once: no operation keeps a sum")
            return None
        act = copies[first]
        if not ranks <= set(act.target.ranks):
            self.refuse(rows, "its sum is not handed on to all of its ranks at once: no operation keeps a sum")
            return None
        if any(t.start_s[j] < t.start_s[first] for j in self.into[rank, piece] if j not in mine):
            self.refuse(rows, "more is added to its sum before that is handed on")
            return None
        return act

    def summed(self, rows: list[int], then: Act) -> Act:
        """The act of a sum and of the copy that hands it on."""
        ranks = tuple(sorted({then.rank, *self.t.src[rows].tolist()}))
        buffer, own = self.at.own(then.piece)
        if self.in_place:  # one buffer of two names
            buffer = then.target.buffer
        return Act(then.rank, then.piece, then.copies, then.target, then.to, tuple(rows), Group(buffer, ranks), own)


def over(act: Act, numbers: Mapping[Group, int], source: Place, size: int) -> dict[str, object]:
    """The operation of an act: ``numbers`` of a thread block's switch channels; what it stores lies at ``source``, if
    it is no sum."""
    to = {"switch_channel_id": numbers[act.target], "index": act.to, "size": size}
    if act.source is None:
        op = {"name": "gstore", "src_buff": [{"type": source[0], "index": source[1], "size": size}]}
        return {**op, "dst_buff": [to], "channel_type": "switch"}
    load = {"switch_channel_id": numbers[act.source], "index": act.own, "size": size}
    return {"name": "glres", "src_buff": [load], "dst_buff": [to], "channel_type": "switch", "reduce_op": "sum"}


def notes_on(t: Transfers, chosen: Acts, found: Acts) -> list[str]:
    """What became of the streams of switches."""
    whole = len({id(act) for act in chosen.of.values()})
    sums = len({id(act) for k, act in chosen.of.items() if chosen.sums(k)})
    notes = [f"over switches: {counted(sums, 'sum')} (glres), {whole - sums:,} copies alone (gstore)"] if whole else []
    refused = chosen.refused if chosen is found else {"as operations over switches they would be a race": len(found.of)}
    for why, moves in refused.items():
        notes.append(f"{counted(moves, 'move')} that a switch adds or copies are puts here: {why}")
    if t.summed and not notes:
        notes.append(f"{t.summed}: ranks add instead, as no one switch joins them")
    return notes
