"""MSCCL++ execution plans: the writer.

The pieces are dealt to groups; a group has one thread block on every GPU and channels of its own, so nothing that a
thread block does depends on another one's of the same GPU. It runs the starts and arrivals of its pieces in the order
of the schedule's times: a start is a ``put`` into the receiver's buffer and a ``signal`` (over a port channel ``pwsf``,
which is both), an arrival a ``wait``, and where the receiver adds, a ``re`` from a slot of its scratch buffer. Before
the first of these the GPUs tell each other, by relaxed signals, that their kernels run. What switches add and copy are
operations over a switch as far as these can say it (:mod:`synth.exchange.mscclpp.streams`): a rank whose part is added
there signals that it is ready, and knows by the signal of the sum that its part has been read.

There are as many groups as asked for, and more where a thread block would pass a limit of the executor; all thread
blocks of a GPU must fit on it at once, or they wait for each other for ever. Every plan is read back and replayed
before it is handed over.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError, LimitError, UnsupportedError
from synth.exchange.collector import collecting_seldom
from synth.exchange.mscclpp.blocks import Block
from synth.exchange.mscclpp.dealing import Dealing, Parts, groups_of, in_one, in_two
from synth.exchange.mscclpp.entries import gpu_entry
from synth.exchange.mscclpp.goals import COLLECTIVES
from synth.exchange.mscclpp.landings import Landings
from synth.exchange.mscclpp.layout import Place
from synth.exchange.mscclpp.loops import MOST_PASSES, replays
from synth.exchange.mscclpp.meetings import Meeting, meetings
from synth.exchange.mscclpp.pieces import cut, needed
from synth.exchange.mscclpp.plan import (
    ALIGNED,
    EXECUTOR,
    MAX_BUFFERS,
    MAX_CHANNEL_PER_OPERATION,
    MOST_CHUNKS,
    CrowdedError,
    Limits,
)
from synth.exchange.mscclpp.reader import understood
from synth.exchange.mscclpp.schedule import Replayed
from synth.exchange.mscclpp.streams import Act, Acts, notes_on, over
from synth.exchange.mscclpp.switches import Group
from synth.exchange.transfers import Transfers
from synth.schedule.collective import REDUCING
from synth.text.files import write_atomically

PLAIN = Dealing()
THEIR_NAMES = {ours: theirs for theirs, ours in COLLECTIVES.items()}


def write(transfers: Transfers, path: Path, **options: Any) -> list[str]:
    """Write the plan of a schedule as JSON; options as for :func:`plan`. Returns what became of what switches add and
    copy, in words. Raises :class:`InputError`, ``OSError``."""
    made = planned(transfers, **options)
    store(made.plan, path)
    return made.notes


def store(plan: dict[str, Any], path: Path) -> None:
    """Write a plan as JSON. Raises ``OSError``."""
    write_atomically(path, (json.dumps(plan, indent=1) + "\n").encode())


def plan(transfers: Transfers, **options: Any) -> dict[str, Any]:
    """The plan of a schedule, as JSON has it; options and errors as of :func:`planned`."""
    return planned(transfers, **options).plan


class Planned(NamedTuple):
    """A ``plan`` as JSON has it; what became of what switches add and copy, in words; and its replay."""

    plan: dict[str, Any]
    notes: list[str]
    replay: Replayed


@collecting_seldom()
def planned(
    transfers: Transfers,
    in_place: bool = False,
    thread_blocks: int = 8,
    instances: int = 1,
    ranks_per_node: int | None = None,
    limits: Limits = EXECUTOR,
    dealt: Dealing = PLAIN,
) -> Planned:
    """The plan of a schedule, with its replay.

    ``thread_blocks``: at least so many a GPU where there are so many pieces; ``instances``: every piece is cut into so
    many; ``ranks_per_node``: ranks r and s with different r // ranks_per_node talk over port channels (all over memory
    channels without); ``limits``: others than the executor's, to see what one costs. Raises :class:`InputError` that
    names the limit where the schedule does not fit the executor.
    """
    chunks = cut(needed(transfers), instances)
    pieces = max(len(chunks.piece_part), 1)
    groups = max(1, min(thread_blocks, pieces, limits.blocks))
    landings = Landings(chunks, in_place, ranks_per_node)
    while True:
        try:
            return _checked(landings, groups_of(chunks, groups, dealt.by), limits, dealt)
        except _Limit as limit:
            if groups >= min(pieces, limits.blocks):
                raise CrowdedError(
                    f"{limit} (with {groups} groups of the {pieces:,} pieces, at most {limits.blocks})"
                ) from None
            groups = min(2 * groups, pieces, limits.blocks)


class _Limit(Exception):
    """A thread block would pass a limit of the executor."""


def _checked(landings: Landings, group: IntArray, limits: Limits, dealt: Dealing) -> Planned:
    """The plan, replayed; with puts for what switches do, and with all copies over scratch, where doing
    so at once is a race."""
    wrong: list[Fault] = []
    t, found = landings.t, landings.acts
    apart = in_two(t, group) if dealt.loop else None
    for (chosen, staged), parts in product(
        ((found, False), (Acts(), False), (Acts(), True)), (apart, in_one(t, group))
    ):
        if parts is not None and (chosen is found or found.of or staged):
            writer = _Writer(landings, group, staged, chosen, limits)
            writer.arrange(dealt, parts)
            made = writer.plan()
            read = understood(made, limits)
            try:
                wrong, replay = replays(read, t.collective, t.root)
            except UnsupportedError as error:
                raise LimitError(f"the plan is too large to be checked: {error}") from None
            if not wrong:
                return Planned(made, notes_on(t, chosen, found), Replayed(read, replay))
    raise InputError(wrong, "the plan of this schedule is not right")


class _Writer:
    def __init__(self, landings: Landings, group: IntArray, staged: bool, chosen: Acts, limits: Limits) -> None:
        self.limits, self.pace = limits, 0
        self.t = t = landings.t
        self.in_place, self.node, self.rows, self.group = landings.in_place, landings.node, landings.rows, group
        self.at, self.landing = landings.of(chosen, staged)
        self.acts = chosen
        self.joined = [[one for one in chosen.groups if rank in one.ranks] for rank in range(t.ranks)]
        self.stored: set[tuple[int, int]] = set()  # a rank's own pieces that an act stores at its own end
        self.peers: list[dict[str, list[int]]] = [{"memory": [], "port": []} for _ in range(t.ranks)]
        self.remote: list[dict[tuple[int, str, str], int]] = [{} for _ in range(t.ranks)]
        self.state: dict[tuple[int, int], Place] = {}
        self.meetings: dict[tuple[int, int], list[Meeting]] = {}

    def arrange(self, dealt: Dealing, parts: Parts) -> None:
        """Let thread blocks do their ``parts``, run a loop, or meet those of their GPU at so many times at most."""
        self.parts = parts
        if dealt.loop is not None:
            self.pace = dealt.loop.pace(self.t.part_bytes)
        elif dealt.meetings:
            put = ~np.isin(np.arange(len(self.t.piece)), list(self.acts.of))
            self.meetings = meetings(self.t, self.group, put, dealt.meetings)

    def plan(self) -> dict[str, Any]:
        t = self.t
        chunks = self.at.sizes()
        if max(chunks) > MOST_CHUNKS:
            raise LimitError(f"{max(chunks):,} chunks, more than {MOST_CHUNKS:,}: the pieces fit no coarser grid")
        blocks = self.dealt()
        self.numbered(blocks)
        for (group, rank), block in blocks.items():
            self.greet(block, group, rank)
            greeted = len(block.ops)
            self.run(block, group, rank)
            self.repeat(block, greeted, group, rank)
            self.demand_room(block, rank)  # before all others are made
        self.own_parts(blocks)
        if self.at.swaps:
            self.swapped(blocks)
        gpus = [
            self.gpu(rank, [b for (_, r), b in sorted(blocks.items()) if r == rank], chunks) for rank in range(t.ranks)
        ]
        return {
            "name": f"{t.name} ({t.ranks} gpus)",
            "collective": THEIR_NAMES[t.collective],
            "protocol": "Simple",
            **({} if t.root is None else {"root": t.root}),  # for us: the executor does not read it
            "inplace": self.in_place,
            "reuse_resources": False,
            "num_threads_per_block": 1024,
            "use_double_scratch_buffer": False,
            "buffer_alignment": ALIGNED,
            "min_message_size": 0,
            "max_message_size": self.pace * chunks[t.collective == "allgather"] * MOST_PASSES or 2**64 - 1,
            "gpus": gpus,
        }

    def dealt(self) -> dict[tuple[int, int], Block]:
        """A thread block for every group and rank that has anything to do, and the transfers of each group and pair."""
        t = self.t
        self.members: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.pairs: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for k in np.argsort(t.start_s, kind="stable").tolist():
            src, dst = self.rows.src[k], self.rows.dst[k]
            self.members[self.parts.sender[k], src].append(k)
            self.members[self.parts.receiver[k], dst].append(k)
            self.pairs[self.parts.line[k], src, dst].append(k)
        self.inward: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
        for (_, _, dst), transfers in self.pairs.items():
            self.inward[self.parts.receiver[transfers[0]], dst].append(transfers)
        blocks = {key: Block() for key in sorted(self.members)}
        for rank in range(t.ranks):
            if not any(r == rank for _, r in blocks):
                blocks[0, rank] = Block()
        return blocks

    def numbered(self, blocks: dict[tuple[int, int], Block]) -> None:
        """Channels: for every line and pair one, counted alike at both ends."""
        self.channel: dict[tuple[int, int, int], tuple[str, int]] = {}
        ends: dict[tuple[int, int, int], int] = {}  # thread blocks
        for (line, src, dst), transfers in self.pairs.items():
            ends[line, src, dst] = self.parts.sender[transfers[0]]
            ends[line, dst, src] = self.parts.receiver[transfers[0]]
        for (line, rank, peer), group in sorted(ends.items()):
            kind = "memory" if self.node is None or rank // self.node == peer // self.node else "port"
            mine = blocks[group, rank].channels[kind]
            mine.append(len(self.peers[rank][kind]))
            self.peers[rank][kind].append(peer)
            if len(mine) > (most := self.limits.channels):
                raise _Limit(f"a thread block of gpu {rank} has more than MAX_CHANNEL = {most} {kind} channels")
            self.channel[line, rank, peer] = kind, len(mine) - 1

    def run(self, block: Block, group: int, rank: int) -> None:
        """The events of a thread block: waits (0), use of what came (1), meetings (2), starts (3), in runs."""
        mine, met = self.members[group, rank], self.meetings.get((group, rank), [])
        events = [(self.rows.start_s[k], 3, k) for k in mine if self.rows.src[k] == rank]
        events += [(self.rows.end_s[k], 1, k) for k in mine if self.rows.dst[k] == rank]
        events += [(time, 0, k) for time, k in self.waits(group, rank)]
        events += [(meeting.time_s, 2, k) for k, meeting in enumerate(met)]
        arrivals: list[tuple[int, int]] = []
        starts: list[int] = []
        for _, kind, k in [*sorted(events), (math.inf, 2, -1)]:
            if kind < 3 and starts:
                self.start(block, rank, starts)
                starts = []
            if kind > 1 and arrivals:
                self.arrive(block, rank, arrivals)
                arrivals = []
            if kind == 3:
                starts.append(k)
            elif kind < 2:
                arrivals.append((kind, k))
            elif k >= 0:
                block.barrier(met[k].number, met[k].parties)

    def repeat(self, block: Block, first: int, group: int, rank: int) -> None:
        """Where thread blocks run a loop, its operations from ``first`` on become one."""
        sizes = {self.rows.size[self.rows.piece[k]] for k in self.members[group, rank]}
        if self.pace and sizes:
            if len(sizes) > 1:
                raise _Limit(f"a thread block of gpu {rank} has pieces of different sizes, and a loop takes one")
            block.loop(first, self.pace, *sizes)

    def demand_room(self, block: Block, rank: int) -> None:
        """Raises :class:`_Limit` where a thread block has too many operations."""
        if (count := block.operations) > (most := self.limits.operations):
            text = f"a thread block of gpu {rank} has {count} operations"
            raise _Limit(f"{text}, more than MAX_OPERATION = {most}")

    def greet(self, block: Block, group: int, rank: int) -> None:
        """Before anything is written to a GPU it says that its kernel runs."""
        written = [k for k in self.members[group, rank] if not self.acts.sums(k)]
        line = self.parts.line
        inward = sorted({(line[k], rank, self.rows.src[k]) for k in written if self.rows.dst[k] == rank})
        outward = sorted({(line[k], rank, self.rows.dst[k]) for k in written if self.rows.src[k] == rank})
        block.signals("rlxsignal", [self.channel[end] for end in inward])
        block.signals("rlxwait", [self.channel[end] for end in outward])

    def waits(self, group: int, rank: int) -> list[tuple[float, int]]:
        """When to wait for the signals of each sender: in the order in which they start, none later than it arrives."""
        found = []
        for transfers in self.inward[group, rank]:
            due = math.inf
            for k in reversed(transfers):
                found.append((due := min(due, self.rows.end_s[k]), k))
        return found

    def arrive(self, block: Block, rank: int, arrivals: list[tuple[int, int]]) -> None:
        waits = [k for kind, k in arrivals if kind == 0]
        block.signals("wait", [self.channel[self.parts.line[k], rank, self.rows.src[k]] for k in waits])
        pending: dict[int, list[int]] = defaultdict(list)  # piece -> slots to add
        for kind, k in arrivals:
            piece = self.rows.piece[k]
            if kind == 1 and self.acts.sums(k):
                continue
            if kind == 1 and self.rows.adds[k]:
                pending[piece].append(self.landing[k][1])
                if len(pending[piece]) == MAX_BUFFERS - 1:
                    self.add(block, rank, piece, pending.pop(piece))
            elif kind == 1:
                if piece in pending:
                    self.add(block, rank, piece, pending.pop(piece))
                store = self.at.store(rank, piece)
                if self.landing[k] != store:
                    block.copy(self.landing[k], store, self.rows.size[piece])
                self.state[rank, piece] = store
        for piece, slots in pending.items():
            self.add(block, rank, piece, slots)

    def add(self, block: Block, rank: int, piece: int, slots: list[int]) -> None:
        size = self.rows.size[piece]
        state, store = self.state.get((rank, piece), self.at.own(piece)), self.at.store(rank, piece)
        sources = [state, *(("s", slot) for slot in slots)]
        op = {
            "name": "re",
            "src_buff": [{"type": b, "index": i, "size": size} for b, i in sources],
            "dst_buff": [{"type": store[0], "index": store[1], "size": size}],
            "reduce_op": "sum",
        }
        block.access(op, [(b, i, size, False) for b, i in sources] + [(*store, size, True)])
        self.state[rank, piece] = store

    def start(self, block: Block, rank: int, starts: list[int]) -> None:
        """Puts, as many in one operation as it may have, and their signals."""
        for act in {id(act): act for k in starts if (act := self.acts.of.get(k)) and k in act.copies}.values():
            self.act(block, act)
        for kind, several in self.batches(rank, [k for k in starts if k not in self.acts.of]):
            self.put(block, rank, kind, several)
        over_memory = [self.channel[self.parts.line[k], rank, self.rows.dst[k]] for k in starts]
        block.signals("signal", [end for end in over_memory if end[0] == "memory"])

    def batches(self, rank: int, starts: list[int]) -> list[tuple[str, list[int]]]:
        """Puts that go in one operation: over channels of one kind, out of one buffer. Over ports, which signal as they
        put, they keep their order, and none goes over a channel of another."""
        found: list[tuple[str, list[int]]] = []
        open_ones: dict[tuple[str, str], tuple[str, list[int]]] = {}  # by kind; over memory also by buffer
        for k in starts:
            buffer, _ = self.state.get((rank, self.rows.piece[k]), self.at.own(self.rows.piece[k]))
            kind, _ = self.channel[self.parts.line[k], rank, self.rows.dst[k]]
            key = kind, buffer if kind == "memory" else ""
            there, batch = open_ones.get(key, ("", []))
            again = kind == "port" and self.rows.dst[k] in {self.rows.dst[j] for j in batch}
            if there != buffer or again or len(batch) == MAX_CHANNEL_PER_OPERATION:
                batch = []
                found.append((kind, batch))
                open_ones[key] = buffer, batch
            batch.append(k)
        return found

    def act(self, block: Block, act: Act) -> None:
        """A sum or a copy over a switch."""
        size, place = self.rows.size[act.piece], (act.target.buffer, act.to)
        own = self.state.get((act.rank, act.piece), self.at.own(act.piece))
        numbers = {one: self.over_switch(block, act.rank, one) for one in (act.source, act.target) if one is not None}
        block.access(over(act, numbers, own, size), [(*own, size, False), (*place, size, True)])
        if act.source is not None:
            self.state[act.rank, act.piece] = place
        elif own == self.at.own(act.piece):
            self.stored.add((act.rank, act.piece))

    def over_switch(self, block: Block, rank: int, group: Group) -> int:
        """The number, in the thread block, of a switch channel."""
        number, mine = self.joined[rank].index(group), block.channels["switch"]
        if number not in mine:
            mine.append(number)
            if len(mine) > (most := self.limits.channels):
                raise _Limit(f"a thread block of gpu {rank} has more than MAX_CHANNEL = {most} switch channels")
        return mine.index(number)

    def put(self, block: Block, rank: int, kind: str, several: list[int]) -> None:
        src, dst, ids, spans = [], [], [], []
        for k in several:
            piece, peer = self.rows.piece[k], self.rows.dst[k]
            size = self.rows.size[piece]
            buffer, index = self.state.get((rank, piece), self.at.own(piece))
            src.append({"type": buffer, "index": index, "size": size})
            spans.append((buffer, index, size, False))
            to, place = self.landing[k]
            dst.append({"buffer_id": self.buffer(block, rank, peer, to, kind), "index": place, "size": size})
            ids.append(self.channel[self.parts.line[k], rank, peer][1])
        op: dict[str, Any] = {"name": "put" if kind == "memory" else "pwsf", "src_buff": src, "dst_buff": dst}
        if kind == "port":
            op["channel_ids"] = ids
        block.access({**op, "channel_type": kind}, spans)

    def buffer(self, block: Block, rank: int, peer: int, buffer: str, kind: str) -> int:
        """The number, in the thread block, of a peer's buffer."""
        table = self.remote[rank]
        number = table.setdefault((peer, buffer, kind), len(table))
        mine = block.buffers[kind]
        if number not in mine:
            mine.append(number)
            if len(mine) > (most := self.limits.channels):
                raise _Limit(f"a thread block of gpu {rank} has more than MAX_CHANNEL = {most} remote buffers")
        return mine.index(number)

    # ----------------------------------------------------------------------------------------------- a rank's own data

    def own_parts(self, blocks: dict[tuple[int, int], Block]) -> None:
        """Copies of what a rank has from the beginning and ends with, where input and output are two buffers."""
        t = self.t
        if self.in_place or t.wants is not None or (t.collective in REDUCING and t.ranks > 1):
            return
        for rank in range(t.ranks):
            block = min(((b.operations, g), b) for (g, r), b in blocks.items() if r == rank)[1]
            ends = self.at.own_ends(rank)
            left = [p for p in range(len(t.piece_part)) if (rank, p) not in self.stored]
            if ends is None or len(left) == len(t.piece_part):
                for source, to in [ends] if ends else []:
                    block.copy(("i", source), ("o", to), t.part_bytes)
                continue
            for p in left:  # no act has stored it
                if t.collective == "broadcast" or t.piece_part[p] == rank:
                    block.copy(self.at.own(p), self.at.store(rank, p), self.rows.size[p])

    def swapped(self, blocks: dict[tuple[int, int], Block]) -> None:
        """In place, what came to its end is copied there when all that lay there has left."""
        t = self.t
        for rank in range(t.ranks):
            mine = [(group, block) for (group, r), block in sorted(blocks.items()) if r == rank]
            for _, block in mine:
                block.barrier(0, len(mine))
            for piece in np.flatnonzero(t.piece_part % t.ranks == rank).tolist():
                if (rank, piece) in self.state:
                    end = self.at.final(rank, piece)
                    assert end is not None
                    block = dict(mine).get(int(self.group[piece]), mine[0][1])
                    block.copy(self.state[rank, piece], end, self.rows.size[piece])

    def gpu(self, rank: int, blocks: list[Block], chunks: tuple[int, int]) -> dict[str, Any]:
        if self.at.scratch[rank] > MOST_CHUNKS:
            raise LimitError(f"gpu {rank} needs {self.at.scratch[rank]:,} chunks of scratch, more than {MOST_CHUNKS:,}")
        for block in blocks:
            self.demand_room(block, rank)
        sizes = (*chunks, self.at.scratch[rank])
        wanted = None if self.t.wants is None else self.t.wants[rank :: self.t.ranks].tolist()
        return gpu_entry(rank, sizes, blocks, self.peers[rank], list(self.remote[rank]), self.joined[rank], wanted)
