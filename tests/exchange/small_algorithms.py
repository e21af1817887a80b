"""Algorithms small enough to check by hand, as MSCCL XML, written down in a short form of their own.

One line a thread block, below its gpu: `tb SEND RECV CHANNEL: step; step; …`. A step is its type, a chunk where it
reads, `>` and a chunk where it writes (what a type does not use is left out), `xN` for N chunks, `@T.S` for a
dependence on step S of thread block T, `*` if another step depends on it.
"""

from __future__ import annotations

import re

HEAD = {
    "name": "small", "proto": "Simple", "nchannels": "1", "nchunksperloop": "1", "ngpus": "2", "coll": "allgather",
    "inplace": "0", "outofplace": "1", "minBytes": "0", "maxBytes": "0",
}  # fmt: skip
STEP = re.compile(r"(\w+)(?: ([ios]\d+))?(?: ?> ?([ios]\d+))?(?: x(\d+))?(?: @(\d+)\.(\d+))?( \*)?")


def xml(coll: str, ranks: int, loop: int, in_place: bool, text: str, **head: str) -> str:
    """The file of an algorithm in the short form; ``loop``: chunks per loop."""
    words = HEAD | {
        "coll": coll, "ngpus": str(ranks), "nchunksperloop": str(loop), "inplace": str(int(in_place)),
        "outofplace": str(int(not in_place)),
    } | head  # fmt: skip
    lines = ["<algo " + " ".join(f'{key}="{value}"' for key, value in words.items()) + ">"]
    number, opened = 0, False
    for line in filter(None, (row.strip() for row in text.splitlines())):
        if line.startswith("gpu"):
            rank, i, o, s = re.findall(r"\d+", line)
            lines += ["  </gpu>"] * opened
            lines.append(f'  <gpu id="{rank}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">')
            number, opened = 0, True
            continue
        peers, _, steps = line.removeprefix("tb").partition(":")
        send, recv, channel = peers.split()
        lines.append(f'    <tb id="{number}" send="{send}" recv="{recv}" chan="{channel}">')
        number += 1
        for s, step in enumerate(filter(None, (word.strip() for word in steps.split(";")))):
            found = STEP.fullmatch(step)
            assert found, step
            kind, src, dst, count, dep, at, marked = found.groups()
            src, dst = src or dst or "i0", dst or src or "o0"
            values = {
                "s": s, "type": kind, "srcbuf": src[0], "srcoff": src[1:], "dstbuf": dst[0], "dstoff": dst[1:],
                "cnt": count or (0 if kind == "nop" else 1), "depid": dep or -1, "deps": at or -1,
                "hasdep": int(bool(marked)),
            }  # fmt: skip
            lines.append("      <step " + " ".join(f'{key}="{value}"' for key, value in values.items()) + "/>")
        lines.append("    </tb>")
    return "\n".join([*lines, "  </gpu>", "</algo>", ""])


SMALL = {
    "allgather-out": xml("allgather", 2, 2, False, """
        gpu 0 1 2 0
        tb 1 1 0: s i0; r >o1
        tb -1 -1 0: cpy i0 >o0
        gpu 1 1 2 0
        tb 0 0 0: s i0; r >o0
        tb -1 -1 0: cpy i0 >o1"""),
    "allgather-in": xml("allgather", 2, 4, True, """
        gpu 0 2 4 0
        tb 1 1 0: s o0 x2; r >o2 x2
        gpu 1 2 4 0
        tb 0 0 0: s i0 x2; r >o0 x2"""),
    "allgather-ring": xml("allgather", 3, 3, True, """
        gpu 0 1 3 0
        tb 1 2 0: s o0; rcs >o2; r >o1
        gpu 1 1 3 0
        tb 2 0 0: s o1; rcs >o0; r >o2
        gpu 2 1 3 0
        tb 0 1 0: s o2; rcs >o1; r >o0"""),
    "allgather-two-blocks": xml("allgather", 3, 3, False, """
        gpu 0 1 3 0
        tb 1 -1 0: s i0; s o2 @1.0; nop @1.1
        tb -1 2 0: r >o2 *; r >o1 *
        tb -1 -1 1: cpy i0 >o0
        gpu 1 1 3 0
        tb 2 -1 0: s i0; s o0 @1.0
        tb -1 0 0: r >o0 *; r >o2
        tb -1 -1 1: cpy i0 >o1
        gpu 2 1 3 0
        tb 0 -1 0: s i0; s o1 @1.0
        tb -1 1 0: r >o1 *; r >o0
        tb -1 -1 1: cpy i0 >o2"""),
    "reduce_scatter-out": xml("reducescatter", 2, 2, False, """
        gpu 0 2 1 0
        tb 1 1 0: s i1; rrc i0 >o0
        gpu 1 2 1 0
        tb 0 0 0: s i0; rrc i1 >o0"""),
    "reduce_scatter-in": xml("reduce_scatter", 2, 2, True, """
        gpu 0 2 1 0
        tb 1 1 0: s i1; rrc i0 >o0
        gpu 1 2 1 0
        tb 0 0 0: s i0; rrc i1 >o0"""),
    "reduce_scatter-ring": xml("reducescatter", 3, 3, False, """
        gpu 0 3 1 0
        tb 1 2 0: s i2; rrs i1; rrc i0 >o0
        gpu 1 3 1 0
        tb 2 0 0: s i0; rrs i2; rrc i1 >o0
        gpu 2 3 1 0
        tb 0 1 0: s i1; rrs i0; rrc i2 >o0"""),
    "allreduce-out": xml("allreduce", 2, 2, False, """
        gpu 0 2 2 0
        tb 1 1 0: s i1; rrc i0 >o0; s o0; r >o1
        gpu 1 2 2 0
        tb 0 0 0: s i0; rrc i1 >o1; s o1; r >o0"""),
    "allreduce-in": xml("allreduce", 2, 2, True, """
        gpu 0 2 0 0
        tb 1 1 0: s i1; rrc i0; s i0; r >i1
        gpu 1 2 0 0
        tb 0 0 0: s i0; rrc i1; s i1; r >i0"""),
    "allreduce-chain": xml("allreduce", 3, 1, True, """
        gpu 0 1 1 0
        tb -1 1 0: rrc i0 *
        tb 1 -1 1: s i0 @0.0
        gpu 1 1 1 0
        tb 0 2 0: rrs i0
        tb 2 0 1: rcs >i0
        gpu 2 1 1 0
        tb 1 -1 0: s i0
        tb -1 1 1: r >o0"""),
    "allreduce-ring": xml("allreduce", 3, 3, True, """
        gpu 0 3 0 0
        tb 1 2 0: s i0; rrcs i2; rrcs i1; rcs >i0; r >i2
        gpu 1 3 0 0
        tb 2 0 0: s i1; rrcs i0; rrcs i2; rcs >i1; r >i0
        gpu 2 3 0 0
        tb 0 1 0: s i2; rrcs i1; rrcs i0; rcs >i2; r >i1"""),
    "alltoall-out": xml("alltoall", 2, 2, False, """
        gpu 0 2 2 0
        tb 1 1 0: s i1; r >o1; cpy i0 >o0
        gpu 1 2 2 0
        tb 0 0 0: s i0; r >o0; cpy i1 >o1"""),
    "alltoall-in": xml("alltoall", 2, 4, True, """
        gpu 0 4 4 0
        tb 1 1 0: s i2 x2; r >o2 x2
        gpu 1 4 4 0
        tb 0 0 0: s i0 x2; r >o0 x2"""),
    "broadcast-out": xml("broadcast", 3, 1, False, """
        gpu 0 1 1 0
        tb 1 -1 0: s i0; cpy i0 >o0
        gpu 1 1 1 0
        tb 2 0 0: rcs >o0
        gpu 2 1 1 0
        tb -1 1 0: r >o0"""),
    "broadcast-in": xml("broadcast", 2, 1, True, """
        gpu 0 1 1 0
        tb -1 1 0: r >o0
        gpu 1 1 1 0
        tb 0 -1 0: s i0""", root="1"),
    "reduce-out": xml("reduce", 3, 1, False, """
        gpu 0 1 1 2
        tb -1 1 0: r >s0 *
        tb -1 2 0: r >s1 *
        tb -1 -1 0: cpy i0 >o0; nop @0.0; re s0 >o0 @1.0; re s1 >o0
        gpu 1 1 1 0
        tb 0 -1 0: s i0
        gpu 2 1 1 0
        tb 0 -1 0: s i0"""),
    "reduce-in": xml("reduce", 2, 1, True, """
        gpu 0 1 1 0
        tb -1 1 0: rrc i0
        gpu 1 1 1 0
        tb 0 -1 0: s i0"""),
    "gather-out": xml("gather", 2, 1, False, """
        gpu 0 1 2 0
        tb -1 1 0: r >o1; cpy i0 >o0
        gpu 1 1 0 0
        tb 0 -1 0: s i0"""),
    "gather-in": xml("gather", 2, 1, True, """
        gpu 0 1 0 0
        tb 1 -1 0: s i0
        gpu 1 1 2 0
        tb -1 0 0: r >o0""", root="1"),
    "scatter-out": xml("scatter", 2, 1, False, """
        gpu 0 2 1 0
        tb 1 -1 0: s i1; cpy i0 >o0
        gpu 1 0 1 0
        tb -1 0 0: r >o0"""),
    "scatter-in": xml("scatter", 2, 1, True, """
        gpu 0 0 1 0
        tb -1 1 0: r >o0
        gpu 1 2 1 0
        tb 0 -1 0: s i0""", root="1"),
}  # fmt: skip


def edited(text: str, gpu: int, tb: int, step: int | None, **values: object) -> str:
    """The file with attributes of one step (of a thread block: None) set; None takes an attribute away."""
    lines = text.splitlines(keepends=True)
    at_gpu = at_tb = at_step = -1
    for n, line in enumerate(lines):
        if "<gpu" in line:
            at_gpu, at_tb = at_gpu + 1, -1
        elif "<tb" in line:
            at_tb, at_step = at_tb + 1, -1
        elif "<step" in line:
            at_step += 1
        else:
            continue
        if (at_gpu, at_tb) == (gpu, tb) and ("<tb" in line if step is None else "<step" in line and at_step == step):
            for key, value in values.items():
                line = re.sub(rf' {key}="[^"]*"', "" if value is None else f' {key}="{value}"', line)
            lines[n] = line
    assert "".join(lines) != text, "nothing was changed"
    return "".join(lines)


def swapped(text: str, gpu: int, tb: int, step: int) -> str:
    """The file with a step and the next one in each other's place."""
    pattern = re.compile(r'(<step s="\d+")')
    lines = text.splitlines(keepends=True)
    begin = [n for n, line in enumerate(lines) if "<gpu" in line][gpu]
    begin = [n for n, line in enumerate(lines) if "<tb" in line and n > begin][tb]
    a, b = begin + 1 + step, begin + 2 + step
    assert "<step" in lines[b]
    lines[a], lines[b] = pattern.sub(f'<step s="{step}"', lines[b]), pattern.sub(f'<step s="{step + 1}"', lines[a])
    return "".join(lines)


def without(text: str, gpu: int, tb: int, step: int) -> str:
    """The file without one step; later ones move up."""
    lines = text.splitlines(keepends=True)
    begin = [n for n, line in enumerate(lines) if "<gpu" in line][gpu]
    begin = [n for n, line in enumerate(lines) if "<tb" in line and n > begin][tb]
    del lines[begin + 1 + step]
    n = begin + 1 + step
    while "<step" in lines[n]:
        lines[n] = re.sub(r's="(\d+)"', lambda found: f's="{int(found[1]) - 1}"', lines[n], count=1)
        n += 1
    return "".join(lines)
