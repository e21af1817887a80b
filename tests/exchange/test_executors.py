"""Every limit of every executor: at the limit an algorithm passes, one beyond it does not."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from exchange.small_algorithms import SMALL, edited, xml

from synth.errors import InputError
from synth.exchange import executors, msccl_xml
from synth.exchange.algorithm import Algorithm


def read(text: str) -> msccl_xml.MscclFile:
    return msccl_xml.read_stream(io.BytesIO(text.encode()), "a.xml")


def refused(name: str, file: msccl_xml.MscclFile | Algorithm) -> str:
    if isinstance(file, Algorithm):
        found = executors.faults(name, file)
    else:
        found = executors.faults(name, file.algorithm, file.written)
    return "\n".join(map(str, found))


def blocks(count: int, steps: int = 1, step: str = "cpy i0 >o0", block: str = "tb -1 -1 0") -> str:
    """A gpu with so many thread blocks of so many steps each, and one with none."""
    body = "\n".join(f"{block}: {'; '.join([step] * steps)}" for _ in range(count))
    return xml("allgather", 2, 2, False, f"gpu 0 1 2 0\n{body}\ngpu 1 1 2 0")


@pytest.mark.parametrize(("name", "most"), [("azure", 64), ("msccl", 256)])
def test_steps_of_a_thread_block(name: str, most: int) -> None:
    assert refused(name, read(blocks(1, most))) == ""
    assert f"gpu 0, tb 0: {name}: {most + 1} steps, at most {most}" in refused(name, read(blocks(1, most + 1)))
    assert "MSCCL_MAX_NUM_STEPS" in refused("azure", read(blocks(1, 65)))


@pytest.mark.parametrize(("name", "most"), [("azure", 1024), ("msccl", 216)])
def test_thread_blocks_of_a_gpu(name: str, most: int) -> None:
    assert refused(name, read(blocks(most))) == ""
    assert f"gpu 0: {name}: {most + 1} thread blocks, at most {most}" in refused(name, read(blocks(most + 1)))


def test_elements_of_a_gpu() -> None:
    """1 algo, 2 gpus, 63 thread blocks of 64 steps: 1 + 2 + 63 + 4032 = 4098; with one block less 4033."""
    assert refused("azure", read(blocks(62, 64))) == ""
    assert "4098 elements (gpus, its thread blocks, its steps), at most 4095" in refused("azure", read(blocks(63, 64)))


@pytest.mark.parametrize("name", executors.EXECUTORS)
def test_numbers_that_do_not_fit(name: str) -> None:
    text = SMALL["allgather-two-blocks"]
    plain = read(text).algorithm
    for column, good, bad, words in (
        ("count", 71, 72, "cnt = 72: at most 71"),
        ("src_offset", 32767, 32768, "an offset of 32768: at most 32767"),
        ("dst_offset", 32767, 32768, "an offset of 32768: at most 32767"),
        ("dep_tb", 127, 128, "depid = 128: at most 127"),
        ("tb_channel", 31, 32, "chan = 32: must be in 0..31"),
    ):
        for value in (good, bad):
            values = getattr(plain, column).copy()
            values[1] = value
            said = refused(name, replace(plain, **{column: values}))
            assert (words in said) == (value == bad)
    assert "chan = -1" in refused(name, replace(plain, tb_channel=plain.tb_channel - 1))


def test_thread_blocks_of_a_channel() -> None:
    """Thirty-three send to gpu 1 over channel 0 (which no valid algorithm does: one for a peer)."""
    assert refused("azure", read(blocks(32, block="tb 1 -1 0"))) == ""
    assert "gpu 0: azure: 33 thread blocks send on channel 0, at most 32" in refused(
        "azure", read(blocks(33, block="tb 1 -1 0"))
    )
    assert "33 thread blocks receive on channel 0" in refused("azure", read(blocks(33, block="tb -1 1 0")))


def test_how_dependences_are_collected() -> None:
    text = SMALL["reduce-out"]
    assert refused("azure", read(text)) == ""
    bare = edited(text, 0, 2, 2, depid=-1, deps=-1)
    assert "gpu 0, tb 2, step 2: azure: stands after nops that collect dependences" in refused("azure", read(bare))
    idle = edited(text, 0, 2, 1, depid=-1, deps=-1)
    assert "gpu 0, tb 2, step 1: azure: a nop without a dependence" in refused("azure", read(idle))


def test_fused_reductions() -> None:
    """Seventeen into one place are one too many; a signal ends a chain, another count breaks it."""
    head = "cpy i0 >o0; "
    for count, wrong in ((16, False), (17, True)):
        text = xml("reduce", 1, 1, False, f"gpu 0 1 1 20\ntb -1 -1 0: {head}{'; '.join(['re s0 >o0'] * count)}")
        assert ("the 17th of fused reductions, at most 16" in refused("azure", read(text))) == wrong
    steps = ["re s0 >o0"] * 17
    steps[8] += " *"
    text = xml("reduce", 1, 1, False, f"gpu 0 1 1 20\ntb -1 -1 0: {head}{'; '.join(steps)}")
    assert refused("azure", read(text)) == ""
    text = xml("reduce", 1, 2, False, "gpu 0 2 2 20\ntb -1 -1 0: re s0 >o0; re s1 >o0 x2")
    assert "gpu 0, tb 0, step 1: azure: cnt = 2: is fused with the reduction before it" in refused("azure", read(text))


def test_the_head() -> None:
    text = SMALL["reduce_scatter-out"]
    assert refused("azure", read(text)) == ""
    assert "coll = 'reducescatter': it reads 'reduce_scatter' only" in refused("msccl", read(text))
    other = text.replace("reducescatter", "reduce_scatter")
    assert refused("msccl", read(other)) == ""
    assert "coll = 'reduce_scatter': it reads 'reducescatter' only" in refused("azure", read(other))
    assert "msccl: does not run gather" in refused("msccl", read(SMALL["gather-out"]))
    assert refused("azure", read(SMALL["alltoall-in"])) == ""
    assert "msccl: runs no alltoall in place" in refused("msccl", read(SMALL["alltoall-in"]))
    assert refused("msccl", read(SMALL["alltoall-out"])) == ""
    for key, wanting in (
        ("name", "msccl"), ("outofplace", "azure"), ("minBytes", "azure"), ("maxBytes", "azure"),
        ("inplace", "azure"), ("inplace", "msccl"), ("nchannels", "azure"), ("nchannels", "msccl"),
    ):  # fmt: skip
        text = SMALL["allgather-out"].replace(f' {key}="', f' no{key}="')
        for name in executors.EXECUTORS:
            missing = f"{key} is missing, and the file is refused without it" in refused(name, read(text))
            assert missing == (name == wanting or key in ("inplace", "nchannels"))
    text = SMALL["allgather-out"]
    assert "at most 63" in refused("msccl", read(text.replace("small", "x" * 64)))
    assert refused("msccl", read(text.replace("small", "x" * 63))) == ""
    sizes = text.replace('minBytes="0"', 'minBytes="9"')
    assert refused("azure", read(sizes)) == ""  # 0: no limit
    assert "minBytes = 9 is more than maxBytes = 0" in refused("msccl", read(sizes))
    assert "nchannels = 1: thread blocks use 3" in refused("azure", read(text.replace('chan="0"', 'chan="2"', 1)))


def test_buffers_that_the_older_executor_wants_whole() -> None:
    text = SMALL["allgather-out"].replace('i_chunks="1"', 'i_chunks="2"', 1)
    assert refused("azure", read(text)) == ""
    assert "gpu 0: msccl: i_chunks = 2: must be 1 or 0" in refused("msccl", read(text))
    assert refused("msccl", read(SMALL["allreduce-in"])) == ""  # o_chunks = 0


def test_all_faults_at_once() -> None:
    plain = read(SMALL["allgather-two-blocks"]).algorithm
    many = replace(plain, count=np.full(plain.steps, 99), tb_channel=plain.tb_channel + 40, name="x" * 300)
    nops = int(np.sum(plain.kind == executors.NOP))
    found = executors.faults("azure", many)
    assert sum(1 + fault.more for fault in found) == 1 + len(plain.tb_rank) + plain.steps - nops


def test_unknown_executors_are_named() -> None:
    with pytest.raises(InputError, match="unknown executor 'nccl'; one of azure, msccl"):
        executors.faults("nccl", read(SMALL["allgather-out"]).algorithm)


UNREAD = {
    "a byte-order mark": "\ufeff" + SMALL["allgather-out"],
    "an XML declaration": '<?xml version="1.0"?>' + SMALL["allgather-out"],
    "a tab between elements": SMALL["allgather-out"].replace("  <gpu", "\t<gpu"),
    "a value in single quotes": SMALL["allgather-out"].replace('"small"', "'small'"),
    "attributes on several lines, or parted by tabs": SMALL["allgather-out"].replace(" proto", "\n  proto"),
    "a space before an equals sign": SMALL["allgather-out"].replace("proto=", "proto ="),
}


@pytest.mark.parametrize("what", UNREAD)
def test_xml_that_executors_do_not_read(what: str) -> None:
    """A byte-order mark, say, is right XML; NCCL's reader wants a `<` first."""
    assert read(UNREAD[what]).unread == (what,)
    long = UNREAD[what].replace("</algo>", f"<!-- {'x' * 70000} --></algo>")
    assert read(long).unread == (what,)


@pytest.mark.parametrize("name", SMALL)
def test_what_we_write_they_read(name: str) -> None:
    assert read("".join(msccl_xml.lines(read(SMALL[name]).algorithm))).unread == ()
    assert read(SMALL[name]).unread == ()
