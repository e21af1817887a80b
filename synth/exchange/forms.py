"""The time of a schedule in a *form*: as it was made, or as an executor or a simulator runs what is exported of it.

An executor keeps the order of its thread blocks, has so many of them, of steps and of channels, knows chunks of one
size and runs a loop over slices of them. Its time is that of the exported algorithm, replayed on the machine by the
family's ``timing`` (every message and every wait kept, links taken by what is ready); how the schedule is lowered is
chosen by that time, :func:`wishes` being what is tried: an exhaustive search over spreads of the moves between two
ranks over channels, and over numbers of chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from synth.errors import Fault, InputError, LimitError
from synth.exchange import mscclpp
from synth.exchange.algorithm import Algorithm
from synth.exchange.block_costs import CostModel
from synth.exchange.copies import Tried
from synth.exchange.counts import even_chunks
from synth.exchange.executors import EXECUTORS
from synth.exchange.file_check import MULTIPROCESSORS
from synth.exchange.lowering import Limits, Wish, in_chunks, limits_of, lower
from synth.exchange.lowering.ways import ways
from synth.exchange.mscclpp.dealing import DEALINGS, Dealing
from synth.exchange.mscclpp.plan import EXECUTOR
from synth.exchange.programs import Program, in_seconds
from synth.exchange.record_export import algorithm_of, transfers_of
from synth.exchange.transfers import Transfers
from synth.instance import Instance
from synth.records.record import Record

SCHEDULED = "scheduled"
FORMS = {
    SCHEDULED: "exact times, as the schedule has them",
    "msccl:azure": "MSCCL XML, run by Azure/msccl-executor-nccl",
    "msccl": "MSCCL XML, run by microsoft/msccl",
    "mscclpp": "an execution plan of MSCCL++",
    "chakra-fifo": "Chakra traces, on links that serve first come, first served",
    "fair": "every move as soon as it can begin, links shared fairly (max-min) by those under way",
}
SERVICES = {"chakra-fifo": "fifo", "fair": "fair"}  # forms of the moves alone, and how links serve them
SPREADS = (1, 2, 4, 8, 16, 32)  # channels that the moves between two ranks are spread over
FEW_SPREADS = (1, 2)  # of these, tried where there are very many moves
BY_TIME = (2, 4, 8)  # of these, tried with moves on one channel that start at about one time
IN_TURN = (1, 2)  # and with sends that leave a rank over one link in the schedule's order, whatever their thread blocks
ROUNDED = tuple(1 << power for power in range(9, -1, -1))  # chunks a part, where pieces ask for too many
DEALT = ((108, "time"), (32, "time"), (32, "place"), (1, "load"))  # thread blocks of a plan, at least, and how pieces
# are dealt: with few of them, each does much of what a GPU sends in the schedule's order
PASSES = (8, 16, 32, 64, 128, 256)  # of a plan's loop that are tried where moves are few
LEAST_SLICE = 2**14  # bytes of a piece that a pass takes, at least
LOOPED = 100  # moves a rank, at most, that are tried in a loop
MEETINGS = (15, 0)  # times at most at which the thread blocks of a GPU meet
UNLIMITED = 2**30
MOST_MOVES = 2**16  # that are lowered in every way there is, among however few ranks
PLANNED = 1000  # moves a rank of a plan: its thread blocks take 64 operations each, and all 108 of a GPU run at once
MANY = 400  # moves a rank that need all thread blocks, dealt in the first way


@dataclass(frozen=True)
class InForm:
    """The time of a schedule in a form, in seconds, and the program that takes it (None as scheduled). ``refused``:
    the limit of the executor that kept the schedule from being lowered as it is, in words, or empty."""

    seconds: float
    program: Program | None = None
    refused: str = ""


def form_of(name: str) -> str:
    """The form of that name. Raises :class:`InputError` naming the known ones."""
    if name not in FORMS:
        raise InputError([Fault("--form", f"must be one of {', '.join(FORMS)}", name, True)])
    return name


def in_form(record: Record, form: str, costs: CostModel | None = None) -> InForm:
    """The time of a record's schedule in a form, with these ``costs`` (None: of an ideal executor).

    Raises :class:`InputError` for an unknown form, for a record without a schedule, where no executor can run it, and
    for families whose moves nobody can time.
    """
    if form_of(form) == SCHEDULED:
        if record.value is None:
            raise InputError(f"holds no schedule ({record['method']} ended: {record['termination']})")
        return InForm(record.value)
    instance = record.find_instance()
    if form in SERVICES:
        moves = transfers_of(record)
        return InForm(in_seconds(instance, lambda _: moves, SERVICES[form]))
    tried = Lowered(transfers_of(record), form, costs=costs, instance=instance)
    found = min((InForm(p.seconds(instance), p) for p in tried.programs()), key=lambda one: one.seconds, default=None)
    if found is None:
        raise InputError(f"cannot be lowered for {form}: {tried.refused}", str(record.path) if record.path else None)
    return replace(found, refused=tried.refused)


def limits_in(form: str) -> Mapping[str, str]:
    """The limits of a form's executor that can be lifted, to see what each costs: by name, in words."""
    if form == "mscclpp":
        return {
            "operations": f"{EXECUTOR.operations} operations a thread block",
            "blocks": f"{EXECUTOR.blocks} thread blocks a gpu",
            "channels": f"{EXECUTOR.channels} channels a thread block",
        }
    one = EXECUTORS[executor_of(form)]
    return {
        "steps": f"{one.steps} steps a thread block",
        "blocks": f"{MULTIPROCESSORS} thread blocks a gpu",
        "channels": f"{one.channels} channels",
        "nodes": f"{one.nodes:,} elements a gpu",
    }


def most_moves(form: str, ranks: int) -> int:
    """Moves among so many ranks that are lowered: more are beyond the form's executor, even rounded."""
    return max(MOST_MOVES, (PLANNED if form == "mscclpp" else EXECUTORS[executor_of(form)].nodes // 2) * ranks)


def refusal(form: str, moves: int, ranks: int) -> str:
    """Why so many moves among so many ranks are too many, in words: by the limits of the form's executor, if it is
    these that so many pass."""
    each = f"{moves:,} moves among {ranks} gpus"
    if form == "mscclpp":
        if moves > ranks * EXECUTOR.operations * MULTIPROCESSORS // 2:
            most = f"{MULTIPROCESSORS} thread blocks of {EXECUTOR.operations} operations run at once"
            return f"{each}: {2 * moves // ranks:,} puts and waits a gpu, where {most}"
    elif 2 * moves > ranks * EXECUTORS[executor_of(form)].nodes:
        one = EXECUTORS[executor_of(form)]
        return f"{one.name}: {each}: {2 * moves // ranks:,} sends and receives a gpu, at most {one.nodes:,} elements"
    return f"{each} are too many to lower"


class _Way(NamedTuple):
    """A way to lower: channels a pair and whether moves go to them ``by_time``, or sends over one link wait for each
    other (``in_turn``), in the order of arrivals (``by_arrival``); or thread blocks of a plan, how pieces are dealt to
    them, and whether it uses operations over switches."""

    spread: int
    dealt: Dealing = Dealing()
    switches: bool = False
    by_time: bool = False
    in_turn: bool = False
    by_arrival: bool = False


class Lowered:
    """The programs of a schedule for a form. ``refused``: the first limit that was in the way, in words; ``whole``:
    whether a program needed no rounding; ``without``: what of the schedule the form cannot say and leaves to ranks, in
    words; ``lifted``: names of :func:`limits_in` that are not kept to: such programs do not run, their times say what
    the limit costs; ``worth``: whether a plan is to be made of moves whose pieces had to be rounded; ``evenly``: make
    also programs that serve all sizes of whole 8 KiB a rank, with pieces rounded for that; ``costs``: of thread blocks
    and steps on an ``instance``, by whose times copies, channels and protocols are then chosen."""

    def __init__(
        self,
        transfers: Transfers,
        form: str,
        lifted: Collection[str] = (),
        worth: Callable[[Transfers], bool] = lambda _: True,
        evenly: bool = False,
        costs: CostModel | None = None,
        instance: Instance | None = None,
    ) -> None:
        self.costs, self.instance = costs, instance
        self.transfers, self.form, self.refused, self.lifted = transfers, form_of(form), "", frozenset(lifted)
        self.worth, self.evenly = worth, evenly
        self.whole, self.meets = False, True  # meets: the thread blocks of the last plan
        self.crowded: dict[tuple[_Way, bytes, bytes], str] = {}  # pieces and moves that were too many, and why
        self.looped: dict[int | None, tuple[mscclpp.Planned, Dealing]] = {}  # a plan with loops, by chunks a part
        self._took: dict[int, float] = {}  # seconds of programs that were chosen by time, by identity
        self._timed: list[Program] = []  # these, so that each keeps its identity
        self.without = f"{transfers.summed}, which {form} knows not" if transfers.summed and form != "mscclpp" else ""

    def programs(self, spreads: Sequence[int] | None = None) -> Iterator[Program]:
        """Every different program that fits the executor, valid by its check."""
        seen: set[bytes] = set()
        for even_ones in even_chunks(self.transfers, self.form == "mscclpp") if self.evenly else ():
            yield from self._cut(even_ones, spreads, seen)
        for chunks in (None, *ROUNDED):
            if (yield from self._cut(chunks, spreads, seen)):
                self.whole = chunks is None
                return

    def _cut(
        self, chunks: int | None, spreads: Sequence[int] | None, seen: set[bytes]
    ) -> Generator[Program, None, bool]:
        """Those of so many chunks a part that have not been ``seen``; whether there are any that fit."""
        refused, fits = None, False
        if self.form == "mscclpp" and chunks is not None and not self.worth(rounded(self.transfers, chunks)):
            return False
        if self.costs is not None and self.form != "mscclpp":
            return (yield from self._by_time(chunks))
        for way in self._ways(spreads):
            try:
                program, key = self._plan(chunks, way) if self.form == "mscclpp" else self._xml(chunks, way)
            except LimitError as error:
                refused = refused or error
                continue
            except InputError as error:  # its check says no
                self.refused = self.refused or str(error).splitlines()[0]
                continue
            fits = True
            if key not in seen:
                seen.add(key)
                yield program
        if refused is not None and not self.refused:
            self.refused = str(refused).splitlines()[0]
        return fits

    def seconds(self, program: Program, instance: Instance) -> float:
        """The seconds of one of the programs on the instance, which are known where it was chosen by them there."""
        return self._took[id(program)] if id(program) in self._took else program.seconds(instance)

    def _by_time(self, chunks: int | None) -> Generator[Program, None, bool]:
        """The same where steps cost something, by copies, channels and protocols as they are quick."""
        tried = self._tried(chunks)
        yield from tried.run()
        if tried.refused is not None and not tried.found and not self.refused:
            self.refused = str(tried.refused).splitlines()[0]
        return bool(tried.found)

    def _tried(self, chunks: int | None) -> Tried[Program]:
        """Copies, channels and protocols by their times on the instance."""
        instance = self.instance
        assert instance is not None

        def made(wish: Wish) -> list[Program]:
            try:
                return self._program(wish)[0].by_protocol(self.transfers.part_bytes)
            except LimitError:
                raise
            except InputError as error:  # its check says no
                raise LimitError(str(error).splitlines()[0]) from None

        def seconds(program: Program) -> float:
            try:
                self._took[id(program)] = program.seconds(instance)
            except InputError:  # no bytes are left of its chunks
                return math.inf
            self._timed.append(program)
            return self._took[id(program)]

        several = bool(ways(self.transfers).max(initial=0))
        return Tried(made, seconds, Wish(chunks=chunks), several)

    def _ways(self, spreads: Sequence[int] | None) -> Iterator[_Way]:
        """What is tried: spreads, some of them also by time."""
        if self.form == "mscclpp":
            yield from self._plan_ways(spreads)
            return
        many = len(self.transfers.piece) > MOST_MOVES
        for spread in spreads or (FEW_SPREADS if many else SPREADS):
            yield _Way(spread)
            if spread in BY_TIME:
                yield _Way(spread, by_time=True)
            if spread in IN_TURN and self.transfers.outlet is not None:
                yield _Way(spread, in_turn=True)
                if self.transfers.reduces:
                    yield _Way(spread, in_turn=True, by_arrival=True)

    def _plan_ways(self, spreads: Sequence[int] | None) -> Iterator[_Way]:
        """The same of plans: thread blocks and how pieces are dealt to them, with meetings of these and without, with
        and without operations over switches."""
        pieces, many = len(self.transfers.piece_part), len(self.transfers.piece) > MANY * self.transfers.ranks
        ways: dict[tuple[int, str], None] = {}  # those that differ
        for blocks, dealt in DEALT if "blocks" not in self.lifted else ((pieces, DEALINGS[0]),):
            if not many or (blocks, dealt) == DEALT[0]:
                ways[min(blocks, pieces), dealt if blocks < pieces else DEALINGS[0]] = None
        for blocks, dealt in ways if spreads is None else product(spreads, DEALINGS[:2]):
            for switches in (True, False) if self.transfers.together is not None else (False,):
                self.meets = True  # until a plan says otherwise
                for meetings in MEETINGS:
                    if meetings or self.meets:  # else the same plan once more
                        yield _Way(blocks, Dealing(dealt, meetings), switches)
        yield from self._loops()

    def _loops(self) -> Iterator[_Way]:
        """The same with loops, a thread block for every piece where there are so few moves that this pays."""
        t = self.transfers
        for passes in PASSES if len(t.piece) <= LOOPED * t.ranks else ():
            if min(t.piece_bytes.tolist(), default=0) >= passes * LEAST_SLICE:
                blocks = min(len(t.piece_part), EXECUTOR.blocks)
                yield _Way(blocks, Dealing(loop=mscclpp.Loop(passes, t.part_bytes)))

    def _xml(self, chunks: int | None, way: _Way) -> tuple[Program, bytes]:
        wish = Wish(chunks=chunks, channels=way.spread, by_time=way.by_time)
        return self._program(replace(wish, in_turn=way.in_turn, by_arrival=way.by_arrival))

    def _program(self, wish: Wish) -> tuple[Program, bytes]:
        executor, spread = executor_of(self.form), wish.channels
        if "nodes" not in self.lifted:
            _demand_room(self.transfers, executor, wish.chunks)
        if "blocks" not in self.lifted:
            wish = replace(wish, blocks=MULTIPROCESSORS)
        made = self._lowered(executor, wish)
        one = replace(wish, in_place=True)
        turns = "by time" if wish.by_time else "in turn" if wish.in_turn else ""
        turns += " of arrival" if wish.by_arrival else ""
        copies = f"{wish.instances} copies" if wish.instances > 1 else ""
        slices = f"{wish.slices} slices" if wish.slices > 1 else ""
        channels = f"{spread} channels a pair" if spread > 1 else ""
        fused = "a channel a way" if wish.by_way else "fused" if wish.fuse else ""
        how = _words(", ".join(filter(None, (copies, slices, channels, fused))), turns, wish.chunks)
        again = partial(self._lowered, executor, one)
        program = Program(self.form, how, spread, made, again=again, costs=self.costs)
        if program.thread_blocks > MULTIPROCESSORS and "blocks" not in self.lifted:
            words = f"{program.thread_blocks} thread blocks a gpu, more than the {MULTIPROCESSORS} that run at once"
            raise LimitError(words)
        columns = made.tb_channel, made.step_start, made.src_offset, made.kind, made.dep_tb
        return program, b"".join(column.tobytes() for column in columns)

    def _lowered(self, executor: str, wish: Wish) -> Algorithm:
        """The algorithm within the limits that are kept to."""
        made, _ = (
            lower(self.transfers, self._xml_limits(), wish)
            if self.lifted
            else algorithm_of(self.transfers, executor, wish)
        )
        return made

    def _xml_limits(self) -> Limits:
        """The executor's limits but for those lifted."""
        parts = {"steps": ("steps",), "blocks": ("blocks",), "channels": ("channels", "peers"), "nodes": ()}
        names = [part for name in self.lifted for part in parts[name]]
        free: dict[str, Any] = dict.fromkeys(names)
        return replace(limits_of(EXECUTORS[executor_of(self.form)]), **free)

    def _plan(self, chunks: int | None, way: _Way) -> tuple[Program, bytes]:
        whole, _ = in_chunks(self.transfers if way.switches else self.transfers.alone(), chunks)
        if len(whole.piece) > PLANNED * whole.ranks and not self.lifted:
            words = f"{len(whole.piece):,} moves among {whole.ranks} gpus: a plan takes 64 operations a thread block"
            raise LimitError(words)
        limits = replace(EXECUTOR, **dict.fromkeys(self.lifted, UNLIMITED))
        blocks = UNLIMITED if "blocks" in self.lifted else way.spread
        loop = way.dealt.loop
        if loop is not None and chunks in self.looped:
            made, dealt = self.looped[chunks]
            made, dealt = mscclpp.at_pace(made, loop, limits), dealt._replace(loop=loop)
        else:
            made, dealt = self._shortest(whole, way, blocks, limits)
        if loop is not None:
            self.looped.setdefault(chunks, (made, dealt))
        over = any(channel["channel_type"] == "switch" for channel in made.plan["gpus"][0]["channels"])

        def again() -> Any:
            return mscclpp.plan(whole, in_place=True, thread_blocks=blocks, limits=limits, dealt=dealt)

        program = Program(self.form, "", way.spread, plan=made.plan, replay=made.replay, again=again, costs=self.costs)
        self.meets = program.meets
        second = f"a loop of {loop.passes} passes" if loop else "thread blocks meet" if program.meets else ""
        words = _words("over switches" if over else "", second, chunks)
        key = repr((program.chunks, program.thread_blocks, over, program.meets, dealt)).encode()
        return replace(program, how=words), key

    def _shortest(
        self, whole: Transfers, way: _Way, blocks: int, limits: mscclpp.Limits
    ) -> tuple[mscclpp.Planned, Dealing]:
        """The plan, dealt so that no thread block has too many operations. Raises :class:`LimitError`."""
        key = way, whole.piece_part.tobytes(), whole.piece.tobytes()
        if key in self.crowded:  # larger chunks of the same pieces
            raise LimitError(self.crowded[key])
        for dealt in way.dealt.shorter():
            try:
                return mscclpp.planned(whole, thread_blocks=blocks, limits=limits, dealt=dealt), dealt
            except mscclpp.CrowdedError as error:
                self.crowded.setdefault(key, str(error))
        raise LimitError(self.crowded[key])


def rounded(transfers: Transfers, chunks: int) -> Transfers:
    """The moves with pieces rounded to so many chunks a part."""
    whole, _ = in_chunks(transfers, chunks)
    size = transfers.part_bytes
    first, last = (place * size // chunks for place in (whole.piece_offset, whole.piece_offset + whole.piece_bytes))
    return replace(whole, part_bytes=size, piece_offset=first, piece_bytes=last - first)


def _demand_room(t: Transfers, executor: str, chunks: int | None) -> None:
    """Raises :class:`LimitError` where a rank has more messages than an executor's file takes steps of it."""
    if chunks is None:
        most = int(np.bincount(t.src, minlength=1).max(initial=0) + np.bincount(t.dst, minlength=1).max(initial=0))
        limit = EXECUTORS[executor].nodes
        if most > limit:
            raise LimitError(f"{executor}: {most:,} sends and receives of a gpu, at most {limit:,} elements")


def _words(first: str, second: str, chunks: int | None) -> str:
    return ", ".join(filter(None, (first, second, f"rounded to {chunks} chunks a part" if chunks else "")))


def executor_of(form: str) -> str:
    """The executor of a form."""
    return {"msccl:azure": "azure"}.get(form, form)


__all__ = [
    "FORMS",
    "SCHEDULED",
    "SERVICES",
    "InForm",
    "Lowered",
    "Program",
    "form_of",
    "in_form",
    "in_seconds",
]
