"""What an executor takes: limits and attributes, read from the executors' parsers, all faults at once.

| executor | source |
|---|---|
| ``azure`` | Azure/msccl-executor-nccl: src/misc/msccl/msccl_parser.cc, src/include/msccl/msccl_struct.h |
| ``msccl`` | microsoft/msccl: src/graph/topo.cc, src/include/msccl.h, src/graph/xml.h, src/collectives/all_to_all.cc |

Limits are those of the parsers and of the widths of the fields they fill without a look (8 bits for the thread block of
a dependence, 16 for an offset), so that what passes here is neither refused nor garbled. That thread blocks must all
run at once (108 multiprocessors on an A100, 132 on an H100) is the GPU's limit, not the executor's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import Fault, InputError, first_of_kind
from synth.exchange.algorithm import KINDS, Algorithm
from synth.exchange.places import block_place, place, steps

NOP, RE = KINDS.index("nop"), KINDS.index("re")


@dataclass(frozen=True)
class Executor:
    """The most of everything: ``steps`` of a thread block (``steps_option``: the build option that raises it),
    ``blocks`` of a gpu, ``blocks_per_channel`` of a gpu in one direction, ``channels``, ``count`` of chunks of a step,
    ``fused`` reductions, ``dependence_block`` and ``offset`` that fit their fields, ``nodes`` of the file for one gpu,
    ``children`` of an element, characters of a ``name`` and of any attribute's value (``value_length``).

    ``collectives``: those it runs, as it spells them. ``attributes``: what ``algo`` must have. ``zero_is_endless``:
    whether ``maxBytes = 0`` means no limit. ``whole_buffers``: input and output, if declared, must have
    ``nchunksperloop`` chunks (a share of them on the side that has one part). ``never_in_place``: collectives whose
    call it refuses where input and output are one buffer. ``both``: a file may be for calls with one buffer and with
    two. ``below_most``: it runs calls of fewer bytes than ``maxBytes``, not of as many.
    """

    name: str
    collectives: Mapping[str, str]
    attributes: tuple[str, ...]
    steps: int
    blocks: int
    name_length: int
    zero_is_endless: bool
    whole_buffers: bool
    steps_option: str = ""
    blocks_per_channel: int = 32
    channels: int = 32
    count: int = 71
    fused: int = 16
    dependence_block: int = 127
    offset: int = 2**15 - 1
    nodes: int = 4095
    children: int = 1024
    value_length: int = 253
    never_in_place: tuple[str, ...] = ()
    both: bool = False
    below_most: bool = False


_ALIKE = {name: name for name in ("allgather", "allreduce", "alltoall", "broadcast", "reduce")}
_HEAD = ("ngpus", "nchunksperloop", "nchannels", "proto", "coll", "inplace")
EXECUTORS = {
    "azure": Executor(
        "azure",
        _ALIKE | {"reduce_scatter": "reducescatter", "gather": "gather", "scatter": "scatter"},
        (*_HEAD, "outofplace", "minBytes", "maxBytes"),
        steps=64, steps_option="MSCCL_MAX_NUM_STEPS", blocks=1024, name_length=254, zero_is_endless=True,
        whole_buffers=False, both=True,
    ),
    "msccl": Executor(
        "msccl",
        _ALIKE | {"reduce_scatter": "reduce_scatter"},
        (*_HEAD, "name"),
        steps=256, blocks=216, name_length=63, zero_is_endless=False, whole_buffers=True, never_in_place=("alltoall",),
        below_most=True,
    ),
}  # fmt: skip


ATTRIBUTES = tuple(dict.fromkeys(key for one in EXECUTORS.values() for key in one.attributes))


def executor(name: str) -> Executor:
    """The executor of that name. Raises :class:`InputError` naming the known ones."""
    if name not in EXECUTORS:
        raise InputError(f"unknown executor {name!r}; one of {', '.join(EXECUTORS)}")
    return EXECUTORS[name]


def faults(name: str, algorithm: Algorithm, written: Mapping[str, str] | None = None) -> list[Fault]:
    """Everything that the executor refuses or garbles. ``written``: the attributes of a file's ``algo``, where there is
    a file; they must be there and spelt as it reads them. Raises :class:`InputError` for an unknown name."""
    limits = executor(name)
    found = [
        *_head(limits, algorithm, written),
        *_blocks(limits, algorithm),
        *_steps(limits, algorithm),
        *_dependences(limits, algorithm),
        *_reductions(limits, algorithm),
    ]
    return [replace(fault, message=f"{name}: {fault.message}") for fault in found]


def missing(written: Mapping[str, str]) -> dict[str, list[str]]:
    """Attributes that a file's ``algo`` lacks: for each the executors that refuse the file without it."""
    wanted = {key: [name for name, one in EXECUTORS.items() if key in one.attributes] for key in ATTRIBUTES}
    return {key: names for key, names in wanted.items() if key not in written}


def _head(limits: Executor, a: Algorithm, written: Mapping[str, str] | None) -> Iterator[Fault]:
    spelt = limits.collectives.get(a.collective)
    if spelt is None:
        yield Fault("algo", f"does not run {a.collective}, only {', '.join(limits.collectives)}")
    if a.in_place and a.collective in limits.never_in_place:
        yield Fault("algo", f"runs no {a.collective} in place: it refuses a call with sendbuff = recvbuff")
    if written is not None:
        yield from _attributes(limits, a, written)
    if len(a.name) > limits.name_length:
        yield Fault("algo", f"name has {len(a.name)} characters, at most {limits.name_length}")
    endless = a.most_bytes == 0 and (limits.zero_is_endless or "maxBytes" not in (written or {}))
    if not endless and a.least_bytes > a.most_bytes:
        yield Fault("algo", f"minBytes = {a.least_bytes} is more than maxBytes = {a.most_bytes}")
    if limits.whole_buffers:
        yield from _whole_buffers(a)
    if a.wants is not None:
        most = max(len(" ".join(map(str, a.wants[rank :: a.ranks].tolist()))) for rank in range(a.ranks))
        if most > limits.value_length:
            yield Fault("gpu", f"wanted has {most} characters, at most {limits.value_length}")


def _attributes(limits: Executor, a: Algorithm, written: Mapping[str, str]) -> Iterator[Fault]:
    """What is wrong with the attributes of a file's ``algo``."""
    for key in limits.attributes:
        if key not in written:
            yield Fault("algo", f"{key} is missing, and the file is refused without it")
    spelt = limits.collectives.get(a.collective)
    if spelt is not None and written.get("coll", spelt) != spelt:
        yield Fault("algo", f"coll = {written['coll']!r}: it reads {spelt!r} only")
    channels = int(a.tb_channel.max(initial=0)) + 1
    stated = written.get("nchannels", "")
    if stated.isdigit() and int(stated) < channels:
        yield Fault("algo", f"nchannels = {stated}: thread blocks use {channels}")


def _whole_buffers(a: Algorithm) -> Iterator[Fault]:
    loop = a.chunks * (a.ranks if a.collective in ("allgather", "reduce_scatter", "alltoall") else 1)
    for side, parted in ((0, "allgather"), (1, "reduce_scatter")):
        yield from _sizes(a, side, loop // a.ranks if a.collective == parted else loop)


def _sizes(a: Algorithm, side: int, wanted: int) -> Iterator[Fault]:
    has = a.buffer_chunks[:, side]
    wrong = np.flatnonzero((has > 0) & (has != wanted)).tolist()
    return first_of_kind(
        wrong, lambda rank: Fault(f"gpu {rank}", f"{'io'[side]}_chunks = {has[rank]}: must be {wanted} or 0")
    )


def _blocks(limits: Executor, a: Algorithm) -> Iterator[Fault]:
    per_gpu = np.bincount(a.tb_rank, minlength=a.ranks)
    steps_of = np.bincount(steps(a).rank, minlength=a.ranks)
    yield from first_of_kind(
        np.flatnonzero(per_gpu > limits.blocks).tolist(),
        lambda rank: Fault(f"gpu {rank}", f"{per_gpu[rank]} thread blocks, at most {limits.blocks}"),
    )
    nodes = 1 + a.ranks + per_gpu + steps_of
    elements = "elements (gpus, its thread blocks, its steps), at most"
    yield from first_of_kind(
        np.flatnonzero(nodes > limits.nodes).tolist(),
        lambda rank: Fault(f"gpu {rank}", f"{nodes[rank]} {elements} {limits.nodes}"),
    )
    if a.ranks > limits.children:
        yield Fault("algo", f"{a.ranks} gpus, at most {limits.children}")
    yield from first_of_kind(
        np.flatnonzero((a.tb_channel < 0) | (a.tb_channel >= limits.channels)).tolist(),
        lambda tb: Fault(block_place(a, tb), f"chan = {a.tb_channel[tb]}: must be in 0..{limits.channels - 1}"),
    )
    for peers, word in ((a.tb_send, "send"), (a.tb_recv, "receive")):
        yield from _crowded(limits, a, peers >= 0, word)
    lengths = np.diff(a.step_start)
    option = f" ({limits.steps_option} of its build)" if limits.steps_option else ""
    yield from first_of_kind(
        np.flatnonzero(lengths > limits.steps).tolist(),
        lambda tb: Fault(block_place(a, tb), f"{lengths[tb]} steps, at most {limits.steps}{option}"),
    )


def _crowded(limits: Executor, a: Algorithm, used: BoolArray, word: str) -> Iterator[Fault]:
    """Channels of a gpu over which more thread blocks send (or receive) than the executor takes."""
    most = limits.blocks_per_channel
    channels, channel = np.unique(a.tb_channel[used], return_inverse=True)  # a file may hold any numbers
    pairs, count = np.unique(a.tb_rank[used] * len(channels) + channel.reshape(-1), return_counts=True)
    yield from first_of_kind(
        np.flatnonzero(count > most).tolist(),
        lambda k: Fault(
            f"gpu {pairs[k] // len(channels)}",
            f"{count[k]} thread blocks {word} on channel {channels[pairs[k] % len(channels)]}, at most {most}",
        ),
    )


def _at(a: Algorithm, wrong: Any, words: Any) -> Iterator[Fault]:
    return first_of_kind(np.flatnonzero(wrong).tolist(), lambda i: Fault(place(a, i), words(i)))


def _steps(limits: Executor, a: Algorithm) -> Iterator[Fault]:
    real = a.kind != NOP
    yield from _at(a, real & (a.count > limits.count), lambda i: f"cnt = {a.count[i]}: at most {limits.count}")
    far = real & (np.maximum(a.src_offset, a.dst_offset) > limits.offset)
    yield from _at(a, far, lambda i: f"an offset of {max(a.src_offset[i], a.dst_offset[i])}: at most {limits.offset}")
    if a.ranks > 2**15:
        yield Fault("algo", f"{a.ranks} gpus: a peer's number fits 16 bits only")


def _dependences(limits: Executor, a: Algorithm) -> Iterator[Fault]:
    """Of thread blocks whose number fits, and carried the way the parser collects them: by nops that each have one, and
    the first other step after them, which must have one too."""
    far = a.dep_tb > limits.dependence_block
    yield from _at(a, far, lambda i: f"depid = {a.dep_tb[i]}: at most {limits.dependence_block}")
    idle = (a.kind == NOP) & (a.dep_tb < 0)
    yield from _at(a, idle, lambda i: "a nop without a dependence: it is not counted, so that later numbers are off")
    inside = np.ones(a.steps, dtype=bool)
    inside[a.step_start[:-1][np.diff(a.step_start) > 0]] = False
    after_nop = np.zeros(a.steps, dtype=bool)
    after_nop[1:] = a.kind[:-1] == NOP
    bare = inside & after_nop & (a.kind != NOP) & (a.dep_tb < 0)
    words = "stands after nops that collect dependences, and must carry one itself"
    yield from _at(a, bare, lambda i: words)


def _reductions(limits: Executor, a: Algorithm) -> Iterator[Fault]:
    """Local reductions into one place, one after the other, are fused into one."""
    chain = _fused(a)
    yield from _at(a, chain > limits.fused, lambda i: f"the {chain[i]}th of fused reductions, at most {limits.fused}")
    other = np.zeros(a.steps, dtype=bool)
    other[1:] = (chain[1:] > 1) & (a.count[1:] != a.count[:-1])
    words = "is fused with the reduction before it, but has another cnt"
    yield from _at(a, other, lambda i: f"cnt = {a.count[i]}: {words}")


def _fused(a: Algorithm) -> IntArray:
    """For every local reduction, the how manieth it is of those that the parser fuses into one; 0 for other steps."""
    chain = np.zeros(a.steps, dtype=np.int64)
    starts = set(a.step_start.tolist())
    last: tuple[int, int, int] | None = None
    for i in np.flatnonzero(a.kind == RE).tolist():
        here = int(a.dst_buffer[i]), int(a.dst_offset[i]), int(a.src_buffer[i])
        goes_on = i > 0 and i not in starts and chain[i - 1] > 0 and here == last and a.dep_tb[i] < 0
        chain[i] = chain[i - 1] + 1 if goes_on else 1
        last = None if a.has_dependents[i] else here
    return chain
