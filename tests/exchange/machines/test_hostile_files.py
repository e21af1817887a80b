"""Whatever a file holds, it is read or refused in words: any text, samples with parts changed, huge and odd ones."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import pytest
from exchange.machines.reading import SAMPLES, refused
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import InputError
from synth.exchange.machines import completion, file
from synth.exchange.machines.formats import FORMATS, read, read_text
from synth.exchange.machines.machine import Hints, Machine
from synth.exchange.machines.pasted import MOST_BYTES, parts

NAMES = sorted(path.name for path in SAMPLES.iterdir())
WORDS = (
    "", "0", "-1", "1e400", "nan", "NaN", "null", "true", "[]", "{}", "[[]]", '"', "<", ">", "&x;", "\x00", "\ud800",
    "GPU0", "X", "NV99999", "é", "1" * 5000, "9" * 30, "*a", "&a ", "!!str ", ",", "\n", "\t", " ", "../..", "%n",
)  # fmt: skip


def ready(machine: Machine) -> None:
    """All that the command does with a machine."""
    machine = completion.without_dead_ends(completion.several(machine, 1))
    completion.described(machine)
    completion.parted(machine)
    completion.missing(machine)
    numbers = dict.fromkeys(machine.kinds, 1000000000.0)
    file.to_text(completion.supplied(machine, completion.Supplied(numbers, numbers | dict.fromkeys(numbers, 1e-6))))


@given(st.text(max_size=200), st.sampled_from([*(one.name for one in FORMATS), None]))
def test_any_text_is_read_or_refused(text: str, name: str | None) -> None:
    with contextlib.suppress(InputError):
        ready(read_text(text, "x", name))


@pytest.mark.parametrize("name", NAMES)
def test_samples_with_parts_changed_are_read_or_refused(name: str) -> None:
    """200 of each sample: a part cut, doubled, or replaced by a word."""
    draw = random.Random(f"parts of {name}")
    text = (SAMPLES / name).read_text()
    chosen = {one.name: one for one in FORMATS if one.looks_like(text)}
    assert len(chosen) == 1
    for _ in range(200):
        changed = text
        for _ in range(draw.randint(1, 3)):
            first = draw.randrange(len(changed) + 1)
            last = min(len(changed), first + draw.choice((0, 1, 1, 2, 5, 40)))
            changed = changed[:first] + draw.choice((*WORDS, changed[first:last] * 2)) + changed[last:]
        with contextlib.suppress(InputError):
            ready(read_text(changed, "x", next(iter(chosen)), Hints(chunk_bytes=1000, time_unit_s=1e-6)))


@pytest.mark.parametrize("name", NAMES)
def test_one_format_knows_a_sample(name: str) -> None:
    text = (SAMPLES / name).read_text()
    assert sum(one.looks_like(text) for one in FORMATS) == 1


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, data, message in [
        ("a.csv", b"\xff\xff\xff", "is no text"),
        ("b.csv", b"", "is empty; --format names one of nvidia-smi, nccl,"),
        (
            "b2.csv",
            b"a,b,1e9\n",
            "graphml, csv; a table with the first line src,dst,bandwidth .links CSV. always works",
        ),
        ("c2.json", b'{"format": "synth-record/1"}', "is a record: synth show FILE, synth export FILE"),
        ("b3.csv", b"src,dst,bandwidth\n" + b"a,b,x\n" * 20000, "1,000 faults and more: the rest was not read"),
        ("b4.csv", b"src,dst,bandwidth\n" + b"a,b\n" * 20000, "1,000 faults and more: the rest was not read"),
        ("c.json", b'{"format": "lstopo"}', "is of no topology format that is known"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=message):
            read(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(InputError, match="unknown; one of nvidia-smi"):
        read_text("x", "x", "lstopo")


def test_marks_and_line_ends_of_other_systems(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        for name in ("dgx1-topo.txt", "links.csv", "graph.json", "torus.yml"):
            text = (SAMPLES / name).read_text().replace("\n", "\r\n")
            (tmp_path / name).write_bytes(text.encode(encoding))
            assert read(tmp_path / name).links == read(SAMPLES / name).links


def test_a_file_is_no_larger_than_its_format_allows() -> None:
    assert "is larger than 16,384 characters, the most for astra-sim" in refused(
        "topology: [Ring]\nnpus_count:\n" + "#" * 70_000
    )


def test_deep_nesting_ends_in_words() -> None:
    assert "not valid" in refused('{"nodes": ' + "[" * 100_000 + "]" * 100_000 + ', "links": []}')
    for nested in ("[" * 10_000, "[" * 255, "\n" + "- " * 5000 + "1", "\n" + "- " * 255 + "1", "{" * 256, "? " * 256):
        assert refused(f"topology: {nested}\nnpus_count: [1]\n")


def test_a_large_file_takes_seconds() -> None:
    """20,000 links of 1,000 ranks; beyond what a mistake of order would take no processor time is asserted."""
    lines = ["src,dst,bandwidth,latency"]
    lines += [f"{u},{(u + d) % 1000},25GB/s,1us" for u in range(1000) for d in range(1, 21)]
    started = time.thread_time()
    assert len(read_text("\n".join(lines), "big.csv").links) == 20_000
    assert time.thread_time() - started < 60


LONG = {
    "line": "a b " * 600_000,
    "lines": "user@host:~$ ls\n" * 60_000,
    "prefixes": "".join(f"[{n % 60}] hello\n" for n in range(60_000)),
    "comments": "<!-- x -->" * 300_000,
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_of_no_kind_is_told_by_its_beginning(name: str) -> None:
    words = " by its first 1,048,576 characters" if len(LONG[name]) > MOST_BYTES else ""
    assert f"is of no topology format that is known{words}" in refused(LONG[name])
    assert parts(LONG[name]) == []


def test_a_long_file_wrong_throughout_is_not_read_to_its_end() -> None:
    assert "holds more than 1,500,000 tags" in refused("<platform>" + "<host/>" * 1_500_000)
    wrong = "".join(f"{n},{n + 1},x\n" for n in range(5_000))
    assert "line 2, bandwidth" in refused("src,dst,bandwidth\n" + wrong)
    assert "needs a header line src,dst" in refused("src,dst,bandwidth" + ",x" * 100_000 + "\n0,1,1\n")
    assert "is larger than 1,048,576 characters, the most of YAML" in refused("- topology: a\n  tree:\n" + "#" * 2**20)
    twice = "SwitchName=a Nodes=n[0-9]\n" * 3_000
    assert "1,000 faults and more: the rest was not read" in refused(twice)
    wide = "\t" + "\t".join(f"GPU{n}" for n in range(5_000)) + "\n" + "GPU0\tNV1\n"
    assert "5000 devices; at most 512 are supported" in refused(wide)
