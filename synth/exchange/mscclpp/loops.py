"""Loops of a plan (``pipeline``): a thread block does some operations again and again, each time on the next slice of
all that they touch.

A pass is the loop's body on one slice. What the operations of loops touch are the same chunks or others, never a part
of them, so that slices of two passes never meet; and a signal that a loop waits for is of the same pass. So every pass
does what the first one does, and a plan that is right in one, two and three passes is right in any number;
:func:`replays` replays these, with the loops written out (:func:`unrolled`). Other loops are not replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from synth.errors import Fault, InputError, UnsupportedError
from synth.exchange.mscclpp.goals import Goal
from synth.exchange.mscclpp.plan import GIVES, TAKES, ExecutionPlan, Gpu, Op, Span
from synth.exchange.mscclpp.replay import Replay

PASSES = (1, 2, 3)  # that are replayed
NEVER = [(0, 0)]  # uses of a channel that is not used
ANY_SIZE = 2**63  # bytes from which on a plan does not say how large its messages are
MOST_PASSES = 2**16 - 1  # of a loop: the kernel counts them in 16 bits


def faults(plan: ExecutionPlan, collective: str | None = None, root: int | None = None) -> list[Fault]:
    """All that is wrong with a plan, the first few of every kind.

    ``collective``: one of ours, where the plan's own name is not to be trusted; ``root``: of a rooted one. Raises
    :class:`UnsupportedError` for a plan that cannot be replayed: a collective that is not known, loops that are not
    alike.
    """
    return replays(plan, collective, root)[0]


def replays(plan: ExecutionPlan, collective: str | None = None, root: int | None = None) -> tuple[list[Fault], Replay]:
    """The faults of a plan in the first number of passes that has any, and its replay in one. ``collective`` and
    ``root`` as for :class:`Replay`; raises :class:`UnsupportedError` as there, and for loops that are not replayed."""
    first = Replay(unrolled(plan, 1), collective, root)
    found = first.run()
    if has_loops(plan) and not found:
        demand_alike(plan)
        demand_apart(plan, first.goal)
        demand_in_step(plan, first)
        found = size_faults(plan)
        for passes in PASSES[1:]:
            found = found or Replay(unrolled(plan, passes), collective, root).run()
    return found, first


def size_faults(plan: ExecutionPlan) -> list[Fault]:
    """Messages for which a plan says it is, and on which its loops would go round too often."""
    chunks = plan.gpus[0].chunks["o" if plan.collective == "allgather" else "i"]
    try:
        if plan.most_bytes < ANY_SIZE:
            passes_of(plan, Fraction(plan.most_bytes, chunks))
    except InputError as error:
        return [Fault("max_message_size", str(error))]
    return []


def has_loops(plan: ExecutionPlan) -> bool:
    """Whether any thread block has a loop."""
    return any(op.body for gpu in plan.gpus for block in gpu.blocks for op in block)


def loops_alone(plan: ExecutionPlan) -> bool:
    """Whether all that GPUs bring each other is moved and waited for in loops."""
    ops = [(rank, op) for rank, gpu in enumerate(plan.gpus) for block in gpu.blocks for op in block if not op.body]
    return all(op.name not in ("signal", "wait") and all(s.rank == r for s in (*op.src, *op.dst)) for r, op in ops)


def passes_of(plan: ExecutionPlan, chunk_bytes: Fraction) -> int:
    """How many passes the loops make where a chunk has so many bytes; 1 without a loop. Raises :class:`InputError` for
    more than :data:`MOST_PASSES`."""
    pace = _pace(plan)
    passes = 1 if pace is None else max(1, -(-chunk_bytes // pace))
    if passes > MOST_PASSES:
        words = f"its loop goes round {passes:,} times on chunks of {float(chunk_bytes):g} bytes"
        raise InputError(f"{words}, more than the {MOST_PASSES:,} that the kernel counts to")
    return passes


def _paces(plan: ExecutionPlan) -> Iterator[Fraction]:
    """Of every loop the bytes of a chunk that a pass takes."""
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for op in block:
                if op.body:
                    yield Fraction(op.unit_bytes * plan.units, op.size)


def _pace(plan: ExecutionPlan) -> Fraction | None:
    return next(_paces(plan), None)


def demand_alike(plan: ExecutionPlan) -> None:
    """Raises :class:`UnsupportedError` where loops may make different numbers of passes."""
    if len(set(_paces(plan))) > 1:
        raise UnsupportedError("loops that take different shares of a chunk in a pass are not replayed")


def demand_apart(plan: ExecutionPlan, goal: Goal) -> None:
    """Raises :class:`UnsupportedError` where operations of loops share a part of their chunks: a pass of one would meet
    several of the other."""
    places: dict[tuple[int, str], set[tuple[int, int]]] = {}
    for gpu in plan.gpus:
        for op in (inner for block in gpu.blocks for loop in block for inner in loop.body):
            for span in (*op.src, *op.dst):
                s = goal.one_place(span)
                places.setdefault((s.rank, s.buffer), set()).add((s.start, s.start + s.size))
    for (rank, buffer), spans in places.items():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            if start < end:
                here = f"{buffer}[{start // plan.units}] of gpu {rank}"
                raise UnsupportedError(f"loops whose operations share a part of their chunks ({here}) are not replayed")


def demand_in_step(plan: ExecutionPlan, replay: Replay) -> None:
    """Raises :class:`UnsupportedError` where a loop may take a signal of another pass, or meets what is in none.
    ``replay``: in one pass, nothing found wrong."""
    given, taken = ([_uses(gpu.blocks, names) for gpu in plan.gpus] for names in (GIVES, TAKES))
    for end, other in replay.syncs.other.items():
        if taken[other[0]].get(other[1:], NEVER) != given[end[0]].get(end[1:], NEVER):
            rank, kind, channel = other
            here = f"gpu {rank}, {kind} channel {channel}"
            raise UnsupportedError(f"loops that take signals of other passes ({here}) are not replayed")
    for rank, gpu in enumerate(plan.gpus):
        outside = {op.barrier for block in gpu.blocks for op in block if op.name == "barrier"}
        inside = [op for block in gpu.blocks for loop in block for op in loop.body]
        if any(op.semaphores or (op.name == "barrier" and op.barrier in outside) for op in inside):
            raise UnsupportedError(f"semaphores, and barriers that stand outside too, in a loop (gpu {rank})")


def _uses(blocks: Sequence[Sequence[Op]], names: Sequence[str]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """By kind and number of a channel that a GPU uses with these operations: how often outside loops and then in a
    loop, one loop after the other."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    outside: Counter[tuple[str, int]] = Counter()
    for op in (op for block in blocks for op in block):
        inside = op.body or (op,)
        used = Counter((one.channel_type, number) for one in inside if one.name in names for number in one.channels)
        if not op.body:
            outside.update(used)
            continue
        for channel, times in used.items():
            found.setdefault(channel, []).append((outside.pop(channel, 0), times))
    return {channel: [*found.get(channel, []), (outside[channel], 0)] for channel in {*found, *outside}}


def unrolled(plan: ExecutionPlan, passes: int) -> ExecutionPlan:
    """The plan with its loops written out, in so many passes over slices of equal size; as it is without a loop."""
    if not has_loops(plan):
        return plan
    gpus = [
        Gpu(gpu.chunks, gpu.peers, gpu.semaphores, [list(_written_out(block, passes)) for block in gpu.blocks])
        for gpu in plan.gpus
    ]
    return replace(plan, units=plan.units * passes, gpus=gpus)


def _written_out(block: Sequence[Op], passes: int) -> Iterator[Op]:
    for k, op in enumerate(block):
        if not op.body:
            yield _sliced(op, f"op {k}", passes, 0, whole=True)
        for turn in range(passes if op.body else 0):
            for i, inner in enumerate(op.body):
                yield _sliced(inner, f"op {k}, pass {turn}, op {i}", passes, turn, whole=False)


def _sliced(op: Op, at: str, passes: int, turn: int, whole: bool) -> Op:
    """An operation in smaller units: all of it, or its slice of a pass."""

    def cut(s: Span) -> Span:
        if whole:
            return Span(s.rank, s.buffer, s.start * passes, s.size * passes, s.packets)
        return Span(s.rank, s.buffer, s.start * passes + turn * s.size, s.size, s.packets)

    return op._replace(src=tuple(map(cut, op.src)), dst=tuple(map(cut, op.dst)), at=at)
