"""`synth run` of algorithms: every thread block a stream of its own. What is right ends right in both places, and what
is damaged ends as the oracle's interpreter of steps has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from command import run
from examples import some
from exchange.by_hand import ring_allgather
from exchange.possession import Run
from exchange.random_transfers import random_transfers
from exchange.small_algorithms import xml

from synth.errors import InputError
from synth.exchange import msccl_xml, mscclpp
from synth.exchange.algorithm import Algorithm
from synth.exchange.lowering import Wish
from synth.exchange.record_export import algorithm_of
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_algorithm import StepNames, program_of
from synth.ranks.launcher import Job
from synth.ranks.words import faults

WISHES = (Wish(), Wish(in_place=True, fuse=True), Wish(channels=2, instances=2))
TWO = """
gpu 0 i1 o2 s0
tb -1 -1 0: cpy i0 > o0
tb 1 1 0: s i0; r > o1
gpu 1 i1 o2 s0
tb -1 -1 0: cpy i0 > o1
tb 0 0 0: {}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew() as found:
        yield found


def said(crew: Crew, a: Algorithm, seed: int = 0) -> list[str]:
    program, step = program_of(a, 1 + seed % 3)
    done = crew.run(Job(program, seed, patience_s=0.5))
    return faults(program, done, StepNames(a, step), Data(seed, a.ranks))


def test_lowered_schedules_of_every_collective_end_right(crew: Crew) -> None:
    for seed in range(some(60)):
        a, _ = algorithm_of(random_transfers(seed), "azure", WISHES[seed % len(WISHES)])
        assert said(crew, a, seed) == [], a.name


def oracle(a: Algorithm, seed: int) -> bool:
    """Whether the interpreter finds nothing wrong, in several orders."""
    try:
        for k in range(3):
            Run(a, Random(seed + k)).run()
    except AssertionError:
        return False
    return True


def test_steps_that_read_elsewhere_are_caught(crew: Crew) -> None:
    """The chunk that a step reads or writes is another one: if the interpreter finds the end right, so does the run. If
    it does not, so does the run, but where it has only found a read of what nobody has written and nobody needs."""
    random, caught = Random("elsewhere"), 0
    for seed in range(some(100)):
        a, _ = algorithm_of(random_transfers(seed), "azure", WISHES[seed % len(WISHES)])
        moving = np.flatnonzero(a.kind != 8)
        if not len(moving):
            continue
        at, name = int(random.choice(moving)), random.choice(["src_offset", "dst_offset"])
        column = getattr(a, name).copy()
        column[at] += random.choice([-1, 1])
        damaged = replace(a, **{name: column})
        try:
            wrong = said(crew, damaged, seed)
        except InputError:
            continue  # there is no such chunk
        assert wrong == [] or not oracle(damaged, seed), (seed, name, wrong)
        caught += wrong != []
    assert caught >= some(20)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("r > o0; s i0", []),
        ("s i0", ["rank 1 received 0 bytes of rank 0, the schedule says 8", "rank 1, chunk 0 of part 0"]),
        ("r > o0", ["gpu 0, tb 1, step 1, waits for a message that nobody sends"]),
        ("r > o1; s i0", ["rank 1, chunk 0 of part 0 in its output o: 1 of 1 words are wrong"]),
        ("r > o0 @0.0; s i0", []),
    ],
)  # fmt: skip
def test_two_ranks_by_hand(steps: str, words: list[str], crew: Crew, tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    text = TWO.replace("cpy i0 > o1\n", "cpy i0 > o1 *\n") if "@" in steps else TWO
    path.write_text(xml("allgather", 2, 2, False, text.format(steps)))
    found = said(crew, msccl_xml.read(path).algorithm)
    assert (found == []) == (words == [])
    assert all(any(one in line for line in found) for one in words), found


def test_a_cycle_of_dependences_is_named(crew: Crew, tmp_path: Path) -> None:
    path = tmp_path / "cycle.xml"
    cycle = """
    gpu 0 i1 o2 s0
    tb -1 -1 0: cpy i0 > o0
    tb 1 1 0: r > o1 *; s i0
    gpu 1 i1 o2 s0
    tb -1 -1 0: cpy i0 > o1 @1.0
    tb 0 0 0: r > o0 *; s i0
    """
    path.write_text(xml("allgather", 2, 2, False, cycle))
    lines = said(crew, msccl_xml.read(path).algorithm)
    by_rank = {rank: [line for line in lines if line.startswith(f"rank {rank}, ")] for rank in (0, 1)}
    message = "gpu 0, tb 1, step 0, waits for rank 1 to send line "
    assert any(message in line and line.endswith("gpu 1, tb 1, step 1") for line in by_rank[0]), lines
    assert any("gpu 1, tb 0, step 0, waits for line " in line for line in by_rank[1]), lines


@pytest.mark.long
def test_the_command_takes_xml_and_plans(tmp_path: Path) -> None:
    t = ring_allgather(4)
    msccl_xml.write(algorithm_of(t, "azure")[0], tmp_path / "ring.xml", "azure")
    mscclpp.write(t, tmp_path / "ring.json")
    for name in ("ring.xml", "ring.json"):
        assert "│ yes" in run("run", name, "--repeat", 1, "--bytes", "4KiB", cwd=tmp_path).stdout
    (tmp_path / "bad.xml").write_text("<algo")
    assert run("run", "bad.xml", cwd=tmp_path, code=2).stderr.startswith("synth: bad.xml: ")
