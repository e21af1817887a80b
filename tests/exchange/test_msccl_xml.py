"""MSCCL XML in and out: what is valid comes back as it was, what is not is refused with its place."""

from __future__ import annotations

import io
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from exchange.small_algorithms import SMALL, edited, swapped, without

from synth.errors import InputError
from synth.exchange import executors, msccl_xml, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.msccl_xml import reader

SAMPLE = Path(__file__).resolve().parents[3] / "shared/data/peers/msccl-amd-32.xml"
needs_sample = pytest.mark.skipif(not SAMPLE.exists(), reason="needs ../shared/data/peers/msccl-amd-32.xml")


def read(text: str | bytes, **options: object) -> msccl_xml.MscclFile:
    data = text.encode() if isinstance(text, str) else text
    return msccl_xml.read_stream(io.BytesIO(data), "a.xml", **options)  # type: ignore[arg-type]


def same(a: Algorithm, b: Algorithm) -> bool:
    """Equal but for the lines that they stand in."""
    names = [field.name for field in fields(Algorithm) if field.name != "line"]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("executor", executors.EXECUTORS)
def test_what_is_written_is_read(name: str, executor: str) -> None:
    file = read(SMALL[name])
    text = "".join(msccl_xml.lines(file.algorithm, executor))
    back = read(text)
    if executor == "azure":
        assert same(file.algorithm, back.algorithm)
    assert validity.check(back.algorithm).ok
    collective = file.algorithm.collective
    refused = executors.faults(executor, back.algorithm, back.written)
    if "-in" in name and collective in executors.EXECUTORS[executor].never_in_place:
        assert "in place: it refuses" in str(refused[0])
    elif collective in executors.EXECUTORS[executor].collectives:
        assert refused == []
    else:
        assert f"does not run {collective}" in str(refused[0])


def test_the_order_of_attributes_is_that_of_msccl_tools() -> None:
    text = "".join(msccl_xml.lines(read(SMALL["reduce_scatter-in"]).algorithm))
    assert text.splitlines()[:5] == [
        '<algo name="small" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="reducescatter" '
        'inplace="1" outofplace="0" minBytes="0" maxBytes="0">',
        '  <gpu id="0" i_chunks="2" o_chunks="1" s_chunks="0">',
        '    <tb id="0" send="1" recv="1" chan="0">',
        '      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" '
        'hasdep="0"/>',
        '      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" '
        'hasdep="0"/>',
    ]
    assert 'coll="reduce_scatter"' in next(msccl_xml.lines(read(SMALL["reduce_scatter-in"]).algorithm, "msccl"))


def test_gpus_and_thread_blocks_may_stand_in_any_order() -> None:
    text = SMALL["allgather-two-blocks"]
    head, *gpus = re.split(r"(?=  <gpu)", text.replace("</algo>\n", ""))
    turned = []
    for gpu in gpus:
        top, *blocks = re.split(r"(?=    <tb)", gpu.replace("  </gpu>\n", ""))
        turned.append(top + "".join(blocks[::-1]) + "  </gpu>\n")
    assert same(read(text).algorithm, read(head + "".join(turned[::-1]) + "</algo>\n").algorithm)


def test_a_file_may_be_meant_for_both_modes_and_must_hold_in_each() -> None:
    """The ring out of place never writes the ranks' own parts: in place they are there."""
    file = read(SMALL["allgather-ring"].replace('outofplace="0"', 'outofplace="1"'))
    assert file.modes == (True, False)
    verdicts = [validity.check(algorithm) for algorithm in file.algorithms()]
    assert [verdict.ok for verdict in verdicts] == [True, False]
    assert any("o[0], which nothing has written" in str(fault) for fault in verdicts[1].faults)


def test_a_wish_overrules_the_file() -> None:
    file = read(SMALL["broadcast-in"], root=0)
    assert file.algorithm.root == 0
    assert not validity.check(file.algorithm).ok
    file = read(SMALL["allreduce-in"], collective="reduce")
    assert file.algorithm.collective == "reduce"
    assert validity.check(file.algorithm).ok


@needs_sample
def test_the_published_sample_is_valid() -> None:
    file = msccl_xml.read(SAMPLE)
    assert file.modes == (True,)
    verdict = validity.check(file.algorithm)
    assert verdict.ok, verdict.faults[:5]
    known = {"ranks": 32, "channels": 2, "steps": 3886, "thread_blocks": 532, "messages": 1910}
    assert {key: verdict.facts[key] for key in known} == known
    for name in executors.EXECUTORS:
        assert executors.faults(name, file.algorithm, file.written) == []


@needs_sample
def test_the_sample_comes_back_as_it_was(tmp_path: Path) -> None:
    first = msccl_xml.read(SAMPLE).algorithm
    msccl_xml.write(first, tmp_path / "a.xml")
    assert same(first, msccl_xml.read(tmp_path / "a.xml").algorithm)


@needs_sample
@pytest.mark.parametrize(
    ("gpu", "tb", "step", "values", "words"),
    [
        (0, 0, 1, {"depid": -1, "deps": -1}, "race: it writes o[52], line 7, gpu 0, tb 0, step 1 reads o[52]"),
        (0, 0, 5, {"cnt": 1}, "sends 1 chunks, which line"),
        (0, 0, 9, {"srcoff": 64}, r"reads o[64]; the buffer o of gpu 0 has 64 chunks"),
        (3, 2, None, {"send": 40}, "gpu 3, tb 2: send = 40: there are gpus 0..31"),
        (0, 0, 0, {"srcbuf": "i", "srcoff": 1}, "must end with i[0] of gpu 0; it holds i[1] of gpu 0"),
        (0, 0, 0, {"srcbuf": "s"}, "reads s[0]; the buffer s of gpu 0 has 0 chunks"),
    ],
)
def test_damage_to_the_sample(gpu: int, tb: int, step: int | None, values: dict[str, object], words: str) -> None:
    text = edited(SAMPLE.read_text(), gpu, tb, step, **values)
    assert words in said(text)


@pytest.mark.long
@needs_sample
def test_every_dependence_of_the_sample_on_another_thread_block_that_is_dropped_is_missed_or_not_needed() -> None:
    """Each dependence in turn: without it there is a race, or the order follows from the others (then all of its pairs
    are still ordered, which the interpreter of test_validity shows on small files)."""
    file = msccl_xml.read(SAMPLE).algorithm
    waits = np.flatnonzero(file.dep_tb >= 0)[::40]
    missed = 0
    for step in waits.tolist():
        dep_tb, dep_step = file.dep_tb.copy(), file.dep_step.copy()
        dep_tb[step] = dep_step[step] = -1
        damaged = Algorithm(**{**vars(file), "dep_tb": dep_tb, "dep_step": dep_step})
        found = validity.check(damaged).faults
        missed += not found
        assert all("race" in str(fault) or "nothing has written" in str(fault) for fault in found)
    assert missed < len(waits)


def said(text: str | bytes, executor: str | None = None) -> str:
    """What is said against a file: by the reader, the check, an executor."""
    try:
        file = read(text)
        lines = []
        for algorithm in file.algorithms():
            lines += [str(fault) for fault in validity.check(algorithm).faults]
        if executor is not None:
            lines += [str(fault) for fault in executors.faults(executor, file.algorithm, file.written)]
        return "\n".join(lines)
    except InputError as error:
        return str(error)


TWO, RING, OUT = SMALL["allgather-two-blocks"], SMALL["allreduce-ring"], SMALL["allgather-out"]
REDUCE, CHAIN = SMALL["reduce-out"], SMALL["allreduce-chain"]
HEAD = '<algo name="small"'
BOMB = '<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;&a;&a;">]>'

MUTATIONS: dict[str, tuple[str | bytes, str]] = {
    # dependences
    "a dependence dropped": (edited(TWO, 0, 0, 1, depid=-1, deps=-1), "line 5, gpu 0, tb 0, step 1"),
    "a dependence of a reduction dropped": (
        edited(CHAIN, 0, 1, 0, depid=-1, deps=-1), "gpu 1, tb 0, step 0: race: it reads i[0], line 15"
    ),
    "both nops' work undone": (edited(REDUCE, 0, 2, 1, depid=-1, deps=-1), "reads s[0]"),
    "the later dependence dropped": (edited(REDUCE, 0, 2, 2, depid=0, deps=0), "tb 2, step 3: race: it reads s[1]"),
    "nobody signals": (edited(TWO, 0, 1, 0, hasdep=0), "waits for step 0 of tb 1, which has hasdep = 0"),
    "a thread block that is not there": (edited(TWO, 0, 0, 1, depid=7), "depid = 7: gpu 0 has 3 thread blocks"),
    "a step that is not there": (edited(TWO, 0, 0, 1, deps=2), "gpu 0, tb 0, step 1: deps = 2: tb 1 has 2 steps"),
    "half a dependence": (edited(TWO, 0, 0, 1, deps=-1), "depid = 1 and deps = -1: both are -1, or none"),
    "a dependence on a nop": (
        edited(edited(TWO, 0, 0, 2, hasdep=1), 0, 2, 0, depid=0, deps=2),
        "gpu 0, tb 2, step 0: waits for step 2 of tb 0, a nop",
    ),
    "a dependence on itself": (edited(TWO, 0, 1, 0, depid=1, deps=0), "line 9, gpu 0, tb 1, step 0: deadlock"),
    "a dependence backwards": (edited(TWO, 0, 1, 0, depid=0, deps=1), "nobody signals"),
    "a circle of dependences": (
        edited(edited(TWO, 0, 1, 0, depid=0, deps=1), 0, 0, 1, hasdep=1), "deadlock: waits for its dependence, line"
    ),
    # the order of steps
    "send and receive swapped": (swapped(RING, 0, 0, 0), "must end with the sum of all gpus' i["),
    "both gpus receive first": (
        swapped(swapped(OUT, 0, 0, 0), 1, 0, 0), "deadlock: waits for the message of line 14, gpu 1, tb 0, step 1"
    ),
    "a ring turned around in one place": (swapped(RING, 1, 0, 0), "must end with the sum of all gpus' i["),
    "sends in another order than receives": (swapped(TWO, 0, 1, 0), "gpu 0, o[1]: must end with i[0] of gpu 1"),
    "a step left out": (without(RING, 1, 0, 4), "gpu 0 to 1 on channel 0: 4 sends, 3 receives; this is the last send"),
    "a send left out": (without(TWO, 2, 0, 1), "gpu 0, tb 1, step 1: gpu 2 to 0 on channel 0: 1 sends, 2 receives"),
    # peers and channels
    "a wrong peer": (edited(TWO, 0, 0, None, send=2), "gpu 0 to 2 on channel 0: 2 sends, 0 receives"),
    "the gpu itself as peer": (edited(TWO, 0, 0, None, send=0), "gpu 0, tb 0: send = 0: is its own gpu"),
    "a peer out of range": (edited(TWO, 0, 0, None, send=3), "gpu 0, tb 0: send = 3: there are gpus 0..2"),
    "a peer below -1": (edited(TWO, 0, 0, None, send=-2), "gpu 0, tb 0 = '-2': send must be in -1.."),
    "no peer to send to": (edited(TWO, 0, 0, None, send=-1), "step 0: type s, but its thread block has send = -1"),
    "no peer to receive from": (edited(TWO, 0, 1, None, recv=-1), "type r, but its thread block has recv = -1"),
    "another channel": (edited(TWO, 0, 0, None, chan=1), "gpu 0 to 1 on channel 1: 2 sends, 0 receives"),
    "a channel below 0": (edited(TWO, 0, 0, None, chan=-1), "gpu 0, tb 0: chan = -1: must be in 0.."),
    "two thread blocks at one end": (
        edited(TWO, 0, 2, None, send=1, chan=0), "gpu 0, tb 2: send = 1 on channel 0, as gpu 0, tb 0"
    ),
    # counts and offsets
    "a count that differs": (
        edited(SMALL["allgather-in"], 0, 0, 0, cnt=1),
        "sends 1 chunks, which line 11, gpu 1, tb 0, step 1 receives as 2"
    ),
    "a count of 0": (edited(OUT, 0, 0, 0, cnt=0), "gpu 0, tb 0, step 0: cnt = 0: it moves nothing"),
    "a negative count": (edited(OUT, 0, 0, 0, cnt=-1), "gpu 0, tb 0, step 0 = '-1': cnt must be in 0.."),
    "a count past the end": (edited(OUT, 0, 0, 0, cnt=2), "reads i[0..1]; the buffer i of gpu 0 has 1 chunks"),
    "a count beyond 64 bits": (edited(OUT, 0, 0, 0, cnt=2**70), "'1180591620717411303424': cnt is no whole number"),
    "an offset past the end": (edited(OUT, 0, 0, 1, dstoff=2), "writes o[2]; the buffer o of gpu 0 has 2 chunks"),
    "a negative offset": (edited(OUT, 0, 0, 1, dstoff=-1), "writes o[-1]; the buffer o of gpu 0 has 2 chunks"),
    "another chunk sent": (
        edited(SMALL["alltoall-out"], 0, 0, 0, srcoff=0),
        "gpu 1, o[0]: must end with i[1] of gpu 0; it holds i[0] of gpu 0",
    ),
    "another chunk written": (
        edited(OUT, 0, 0, 1, dstoff=0), "gpu 0, o[1]: must end with i[0] of gpu 1; it holds nothing"
    ),
    "a buffer larger than it is": (
        edited(OUT, 0, 0, 0, srcoff=3).replace('i_chunks="1"', 'i_chunks="9"'), "has 9 chunks, and really 1"
    ),
    "chunks that overlap": (
        edited(SMALL["alltoall-in"], 0, 0, 0, type="cpy", srcoff=0, dstbuf="i", dstoff=1),
        "gpu 0, tb 0, step 0: reads and writes chunks that overlap",
    ),
    # what is read, and what is there in the end
    "its own part is not copied": (without(OUT, 0, 1, 0), "gpu 0, o[0]: must end with its own i[0]; it holds nothing"),
    "its own part of an alltoall": (without(SMALL["alltoall-out"], 1, 0, 2), "gpu 1, o[1]: must end with its own i[1]"),
    "the root's own copy": (without(SMALL["broadcast-out"], 0, 0, 1), "gpu 0, o[0]: must end with its own i[0]"),
    "scratch read before it is written": (
        edited(SMALL["gather-out"].replace('s_chunks="0"', 's_chunks="1"'), 0, 0, 1, srcbuf="s"),
        "gpu 0, tb 0, step 1: reads s[0], which nothing has written by then",
    ),
    "a sum that is not sent on": (edited(RING, 0, 0, 1, type="rrc"), "gpu 0 to 1 on channel 0: 3 sends, 4 receives"),
    "a contribution added twice": (
        edited(REDUCE, 0, 2, 3, srcoff=0), "a sum with a contribution twice, added by line 13, gpu 0, tb 2, step 3"
    ),
    "a contribution left out": (without(REDUCE, 0, 2, 3), "a sum of i[0] over 2 gpus, which lacks 1 (gpu 2)"),
    "different chunks added": (edited(SMALL["allreduce-in"], 0, 0, 1, srcoff=1), "a sum of different chunks"),
    "a sum where none belongs": (edited(OUT, 0, 0, 1, type="rrc", srcbuf="i", srcoff=0), "allgather adds nothing"),
    "a copy instead of a sum": (edited(SMALL["reduce-in"], 0, 0, 0, type="r"), "it holds i[0] of gpu 1"),
    # words and numbers
    "an unknown collective": (OUT.replace("allgather", "alltoallv"), "line 1, algo = 'alltoallv': coll must be one of"),
    "an unknown protocol": (OUT.replace("Simple", "Difficult"), "proto must be one of LL, LL128, Simple"),
    "an unknown type": (edited(OUT, 0, 0, 0, type="send"), "gpu 0, tb 0, step 0 = 'send': type must be one of"),
    "an unknown buffer": (edited(OUT, 0, 0, 0, srcbuf="x"), "gpu 0, tb 0, step 0 = 'x': srcbuf must be one of i, o, s"),
    "a number in words": (edited(OUT, 0, 0, 0, srcoff="one"), "step 0 = 'one': srcoff is no whole number"),
    "a number with a point": (edited(OUT, 0, 0, 0, srcoff="1.0"), "srcoff is no whole number"),
    "a number in other digits": (edited(OUT, 0, 0, 0, srcoff="١"), "srcoff is no whole number"),
    "a number with a space": (edited(OUT, 0, 0, 0, srcoff=" 1"), "srcoff is no whole number"),
    "hasdep that is neither": (edited(OUT, 0, 0, 0, hasdep=2), "hasdep must be in 0..1"),
    "nobody would run it": (OUT.replace('outofplace="1"', 'outofplace="0"'), "inplace and outofplace are both 0"),
    "chunks that do not divide": (OUT.replace('loop="2"', 'loop="3"'), "nchunksperloop does not divide among 2 ranks"),
    "no gpus": (OUT.replace('ngpus="2"', 'ngpus="0"'), "ngpus must be a whole number in 1.."),
    "billions of gpus": (OUT.replace('ngpus="2"', 'ngpus="2000000000"'), "ngpus must be a whole number in 1..65536"),
    "billions of chunks": (OUT.replace('loop="2"', 'loop="2000000000"'), "chunks = 1000000000: must be in"),
    "scratch without end": (OUT.replace('s_chunks="0"', 's_chunks="2000000000"'), "its buffer s has 2000000000 chunks"),
    # what is missing or there twice
    "a gpu is missing": (OUT.replace('ngpus="2"', 'ngpus="4"').replace('loop="2"', 'loop="4"'), "gpu 2, 3: is missing"),
    "a gpu too many": (OUT.replace('ngpus="2"', 'ngpus="1"'), "line 11, gpu 1: there are 1 only (ngpus)"),
    "a gpu twice": (OUT.replace('gpu id="1"', 'gpu id="0"'), "line 11, gpu 0: stands in line 2 already"),
    "a thread block twice": (OUT.replace('tb id="1"', 'tb id="0"', 1), "gpu 0: tb 0: stands in line 3 already"),
    "a gap in the thread blocks": (OUT.replace('tb id="1"', 'tb id="2"', 1), "gpu 0: tb 1: is missing"),
    "a gap in the steps": (edited(OUT, 0, 0, 1, s=2), "gpu 0, tb 0, step 2: steps count 0, 1, … without gaps"),
    **{
        f"a step without {key}": (
            edited(OUT, 0, 0, 0, **{key: None}), f"step {'?' if key == 's' else 0}: {key} is missing"
        )
        for key in ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")
    },
    **{
        f"a thread block without {key}": (edited(OUT, 0, 0, None, **{key: None}), f"{key} is missing")
        for key in ("id", "send", "recv", "chan")
    },
    **{
        f"gpus without {key}": (re.sub(rf'(<gpu.*) {key}="\d"', r"\1", OUT), f"{key} is missing")
        for key in ("id", "i_chunks", "o_chunks", "s_chunks")
    },
    **{
        f"algo without {key}": (re.sub(rf' {key}="\w+"', "", OUT, count=1), f"line 1, algo: {key} ")
        for key in ("ngpus", "nchunksperloop", "coll", "proto")
    },
    # hostile and broken files
    "an entity bomb": (BOMB + OUT.replace('name="small"', 'name="&b;"'), "line 1: has a DTD or entities"),
    "a DTD": ("<!DOCTYPE algo SYSTEM 'file:///etc/passwd'>" + OUT, "line 1: has a DTD or entities"),
    "an external entity": ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + OUT, "has a DTD or entities"),
    "an entity that is not declared": (OUT.replace('name="small"', 'name="&x;"'), "line 1: is no XML"),
    "no end": (OUT.replace("</algo>", ""), "is no XML"),
    "tags that cross": (OUT.replace("</tb>", "</gpu>", 1), "line 6: is no XML"),
    "an attribute twice": (OUT.replace(HEAD, HEAD + ' name="x"'), "line 1: is no XML: duplicate attribute"),
    "nothing at all": ("", "a.xml: is no XML: it is empty"),
    "no XML": ("algo: allgather\n", "line 1: is no XML"),
    "two files in one": (OUT + OUT, "is no XML: junk after document element"),
    "Latin-1": (OUT.encode().replace(b"small", b"kl\xe4in"), "is not UTF-8"),
    "UTF-16": (OUT.encode("utf-16"), "is not UTF-8"),
    "zero bytes": (OUT.encode().replace(b"small", b"sm\0ll"), "line 1: is no XML"),
    "text between the elements": (OUT.replace("<tb", "hello <tb", 1), "line 3 = 'hello': text between the elements"),
    "a processing instruction": (OUT.replace("<tb", "<?php x?><tb", 1), "line 3: a processing instruction"),
    "an unknown element": (OUT.replace("<tb", "<Step/><tb", 1), "line 3: <Step> is no element of MSCCL XML"),
    "a step without thread block": (OUT.replace("    <tb", '<step s="0"/><tb', 1), "<step> must stand in <tb>"),
    "elements in each other": (OUT.replace("    <tb", "<algo>" * 40 + "<tb", 1), "more than 16 deep"),
    "a tag without end": (OUT.replace('name="small"', f'name="{"x" * 2**20}"'), "a tag or comment of more than"),
    "another root": ("<system/>", "line 1: <system> is no element of MSCCL XML"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_refused_with_their_place(name: str) -> None:
    text, words = MUTATIONS[name]
    assert words in said(text)


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 60


def test_all_faults_of_a_file_at_once() -> None:
    text = edited(edited(edited(OUT, 0, 0, 0, type="send"), 0, 1, 0, cnt="x"), 1, 0, 0, hasdep=None)
    text = text.replace("Simple", "Plain").replace('loop="2"', 'loop="-2"')
    assert len(said(text).splitlines()) == 5
    text = OUT.replace("Simple", "Plain").replace('loop="2"', 'loop="-2"').replace('tb id="1"', 'tb id="3"', 1)
    assert len(said(text).splitlines()) == 3
    text = edited(edited(edited(OUT, 0, 0, 0, cnt=5), 0, 1, 0, depid=9, deps=0), 1, 0, None, send=9)
    assert len(said(text).splitlines()) == 3
    text = without(without(OUT, 0, 1, 0), 1, 1, 0)
    assert len(said(text).splitlines()) == 2


def test_a_file_with_thousands_of_faults_is_not_read_to_its_end() -> None:
    step = '<step s="0"/>'
    text = OUT.replace("    <tb", '<tb id="0" send="1" recv="1" chan="0">' + step * 25000 + "</tb><tb", 1)
    found = said(text.replace(' minBytes="0"', ""))
    assert "200,001 faults up to here; the rest of the file was not read" in found
    assert "hasdep is missing" in found
    assert "minBytes is missing" in found
    words = "".join(f"<word{chr(97 + k % 26)}{chr(97 + k // 26)}/>" for k in range(26 * 26))
    assert "501 faults up to here" in said(OUT.replace("<gpu", f"{words}<gpu", 1))


def test_large_files_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_BYTES", 2**16)
    with pytest.raises(InputError, match="is larger than 0 MiB"):
        read(OUT + " " * 2**18)
    monkeypatch.setattr(reader, "MOST_STEPS", 3)
    assert "more than 3 steps" in said(OUT)
    monkeypatch.setattr(validity, "MOST_TOUCHED", 3)
    monkeypatch.setattr(reader, "MOST_STEPS", 30)
    assert "too large to be checked: 8 chunks that steps touch, at most 3" in said(OUT)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        msccl_xml.read(tmp_path / "none.xml")
    with pytest.raises(InputError, match="cannot be written"):
        msccl_xml.write(read(OUT).algorithm, tmp_path / "none" / "a.xml")


def test_names_are_made_plain() -> None:
    assert msccl_xml.plain('a "quoted" <name> & ä') == "a__quoted___name_____"
    assert len(msccl_xml.plain("x" * 100)) == 63
