"""From :class:`synth.exchange.algorithm.Algorithm` to MSCCL XML, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from synth.errors import InputError
from synth.exchange import executors
from synth.exchange.algorithm import BUFFERS, KINDS, Algorithm
from synth.exchange.msccl_xml.reader import ENDLESS, MULTIPLIED, NAMES
from synth.text.files import replacing


def write(algorithm: Algorithm, path: Path, executor: str = "azure") -> None:
    """Write a file line by line, whole or not at all, with the head as the executor reads it. Raises
    :class:`InputError` where the path cannot be written."""
    try:
        with replacing(path) as stream:
            write_stream(algorithm, stream, executor)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None


def write_stream(algorithm: Algorithm, stream: IO[bytes], executor: str = "azure") -> None:
    """The same into an open binary stream: one element a line, plain ASCII, no declaration (executors read none)."""
    for text in lines(algorithm, executor):
        stream.write(text.encode("ascii"))


def lines(algorithm: Algorithm, executor: str = "azure") -> Iterator[str]:
    """The file, a thread block or a tag at a time. ``maxBytes = 0`` stands for no limit where the executor knows it;
    where it runs only what is smaller than ``maxBytes``, a byte more is written."""
    a, reads = algorithm, executors.executor(executor)
    coll = reads.collectives.get(a.collective, NAMES[a.collective])
    most = a.most_bytes + reads.below_most if a.most_bytes else 0 if reads.zero_is_endless else ENDLESS
    per_loop = a.chunks * (a.ranks if a.collective in MULTIPLIED else 1)
    channels = int(a.tb_channel.max()) + 1 if len(a.tb_channel) else 1
    root = "" if a.root is None else f' root="{a.root}"'
    yield (
        f'<algo name="{plain(a.name)}" proto="{a.protocol}" nchannels="{max(channels, 1)}" nchunksperloop="{per_loop}" '
        f'ngpus="{a.ranks}" coll="{coll}" inplace="{int(a.in_place or a.both)}" '
        f'outofplace="{int(not a.in_place)}" minBytes="{a.least_bytes}" maxBytes="{most}"{root}>\n'
    )
    bounds = np.searchsorted(a.tb_rank, np.arange(a.ranks + 1)).tolist()
    for rank, (i, o, s) in enumerate(a.buffer_chunks.tolist()):
        wanted = "" if a.wants is None else f' wanted="{" ".join(map(str, a.wants[rank :: a.ranks].tolist()))}"'
        yield f'  <gpu id="{rank}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}"{wanted}>\n'
        for number, block in enumerate(range(bounds[rank], bounds[rank + 1])):
            yield "".join(_block_lines(a, number, block))
        yield "  </gpu>\n"
    yield "</algo>\n"


def _block_lines(a: Algorithm, number: int, block: int) -> Iterator[str]:
    rows = slice(int(a.step_start[block]), int(a.step_start[block + 1]))
    yield (f'    <tb id="{number}" send="{a.tb_send[block]}" recv="{a.tb_recv[block]}" chan="{a.tb_channel[block]}">\n')
    columns = (
        a.kind, a.src_buffer, a.src_offset, a.dst_buffer, a.dst_offset, a.count, a.dep_tb, a.dep_step,
        a.has_dependents.astype(np.int64),
    )  # fmt: skip
    for s, row in enumerate(zip(*(column[rows].tolist() for column in columns), strict=True)):
        kind, src, src_offset, dst, dst_offset, count, dep_tb, dep_step, dependents = row
        yield (
            f'      <step s="{s}" type="{KINDS[kind]}" srcbuf="{BUFFERS[src]}" srcoff="{src_offset}" '
            f'dstbuf="{BUFFERS[dst]}" dstoff="{dst_offset}" cnt="{count}" depid="{dep_tb}" deps="{dep_step}" '
            f'hasdep="{dependents}"/>\n'
        )
    yield "    </tb>\n"


def plain(name: str) -> str:
    """A name that every executor reads: at most 63 plain characters, none that XML would have to escape."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:63] or "algorithm"
